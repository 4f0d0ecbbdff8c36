//! Rows as Rust values.

use crate::cell::RowCell;
use weir_engine::rows::Rows;
use weir_plan::{Schema, Type};

/// A value that a row is read as: a tuple of cells, in the order of the columns, or a struct that
/// derives it, whose fields have the names of columns.
///
/// ```
/// use std::net::IpAddr;
/// use weir_stream::{FromRow, packets};
///
/// #[derive(FromRow)]
/// struct Talker {
///     ip_src: IpAddr, // ip.src: `_` stands for a dot, too
///     bytes: i64,
///     #[column("last.port")]
///     port: Option<i64>, // absent for ICMP, say
/// }
///
/// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
/// let (talkers, _) = packets()
///     .query("where ip | summarize bytes = sum(len), last.port = last(sport) by ip.src")
///     .run(&mut capture)
///     .collect::<Talker>()?;
/// # let is_host = |t: &Talker| !t.ip_src.is_multicast() && t.port != Some(-1);
/// # assert!(talkers.iter().all(|t| t.bytes > 0 && is_host(t)));
/// # Ok::<(), weir_stream::StreamError>(())
/// ```
pub trait FromRow: Sized {
    /// The columns that it reads, in its own order.
    fn columns() -> Vec<ColumnOf>;

    /// Reads a row. `None` where a cell is absent that may not be.
    fn read(cells: &mut Cells<'_>) -> Option<Self>;
}

/// A column that a [`FromRow`] reads.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnOf {
    /// The name, in which `_` stands for itself or a dot; none: the next column.
    pub name: Option<&'static str>,
    /// Its type.
    pub ty: Type,
}

impl ColumnOf {
    /// The column of this name, of the type of a cell.
    pub fn named<T: RowCell>(name: &'static str) -> ColumnOf {
        ColumnOf { name: Some(name), ty: T::COLUMN }
    }

    fn is(&self, name: &str) -> bool {
        self.name.is_some_and(|own| own == name || own == name.replace('.', "_"))
    }
}

/// The cells of one row, in the order of a [`FromRow`]'s columns.
#[derive(Debug)]
pub struct Cells<'a> {
    rows: &'a Rows,
    row: usize,
    /// Where the columns are, and their types.
    places: &'a [(usize, Type)],
    at: usize,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(rows: &'a Rows, row: usize, places: &'a [(usize, Type)]) -> Cells<'a> {
        Cells { rows, row, places, at: 0 }
    }

    /// The next cell. `None` if it is absent and may not be.
    ///
    /// # Panics
    /// If more cells are read than there are columns.
    pub fn next_cell<T: RowCell>(&mut self) -> Option<T> {
        let (place, ty) = &self.places[self.at];
        let cell = T::of(&self.rows.value(self.row, *place, ty))?;
        self.at += 1;
        Some(cell)
    }

    /// Which column the cell was of that could not be read.
    pub(crate) fn absent(&self) -> usize {
        self.places[self.at].0
    }
}

/// Where the columns of rows are that a type reads, or why rows of this schema are none of it.
pub(crate) fn places(columns: &[ColumnOf], schema: &Schema) -> Result<Vec<(usize, Type)>, String> {
    let all = &schema.columns;
    let names = || all.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let by_place = columns.iter().all(|column| column.name.is_none());
    if by_place && columns.len() != all.len() {
        let (found, wanted) = (all.len(), columns.len());
        return Err(format!("a tuple of {wanted} reads no rows of {found} columns: {}", names()));
    }
    let place = |(i, column): (usize, &ColumnOf)| {
        // The exact name counts before one in which `_` stands for a dot.
        let named = || column.name.and_then(|own| all.iter().position(|c| c.name == own));
        let like = || all.iter().position(|c| column.is(&c.name));
        let found = if by_place { Some(i) } else { named().or_else(like) };
        let Some(found) = found else {
            let name = column.name.unwrap_or_default();
            return Err(format!("there is no column `{name}`; there are {}", names()));
        };
        let (name, ty) = (&all[found].name, &all[found].ty);
        if *ty != column.ty {
            let wanted = &column.ty;
            return Err(format!("the column `{name}` is of type {ty}, and read as {wanted}"));
        }
        Ok((found, ty.clone()))
    };
    columns.iter().enumerate().map(place).collect()
}

/// Implements [`FromRow`] for tuples of each length.
macro_rules! tuples {
    ($($($cell:ident)*;)*) => {$(
        impl<$($cell: RowCell),*> FromRow for ($($cell,)*) {
            fn columns() -> Vec<ColumnOf> {
                vec![$(ColumnOf { name: None, ty: $cell::COLUMN }),*]
            }

            fn read(cells: &mut Cells<'_>) -> Option<Self> {
                Some(($(cells.next_cell::<$cell>()?,)*))
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}
