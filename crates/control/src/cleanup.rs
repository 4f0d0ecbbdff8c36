//! Steps that are undone where something does not begin.

/// Undoes what was made for something that has not begun yet, such as empty files for rows. It does
/// so when it is dropped.
#[derive(Default)]
pub struct Cleanup(Vec<Box<dyn FnOnce() + Send>>);

impl Cleanup {
    /// Calls this, too.
    pub fn add(&mut self, undo: impl FnOnce() + Send + 'static) {
        self.0.push(Box::new(undo));
    }

    /// Takes over what another one would undo.
    pub(crate) fn absorb(&mut self, mut other: Cleanup) {
        self.0.append(&mut other.0);
    }

    /// Undoes nothing any more.
    pub(crate) fn cancel(mut self) {
        self.0.clear();
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|undo| undo());
    }
}
