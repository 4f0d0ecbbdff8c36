//! The cells of an aggregate in the rows of a table: a few 64-bit words a group.

/// The cells of one aggregate in all rows of a table.
pub(crate) struct Cells<'a> {
    /// The rows of the table.
    pub rows: &'a mut [u64],
    /// Words per row.
    pub stride: usize,
    /// Where in a row the cells start.
    pub at: usize,
}

impl Cells<'_> {
    /// The `N` cells of a group.
    #[inline(always)]
    pub(crate) fn of<const N: usize>(&mut self, group: u32) -> &mut [u64; N] {
        let start = group as usize * self.stride + self.at;
        self.rows[start..start + N].as_mut().try_into().expect("N words")
    }
}

/// The cells of another table's rows, to be merged or finished.
#[derive(Clone, Copy)]
pub(crate) struct CellsRef<'a> {
    /// The rows of the table.
    pub rows: &'a [u64],
    /// Words per row.
    pub stride: usize,
    /// Where in a row the cells start.
    pub at: usize,
}

impl CellsRef<'_> {
    /// The `N` cells of a group.
    #[inline(always)]
    pub(crate) fn of<const N: usize>(&self, group: u32) -> &[u64; N] {
        let start = group as usize * self.stride + self.at;
        self.rows[start..start + N].try_into().expect("N words")
    }
}
