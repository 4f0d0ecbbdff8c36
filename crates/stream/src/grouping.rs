//! A stream on its way to groups.

/// A stream, the key of its items, and how many keys are held at once.
pub(crate) struct Grouping<S, F> {
    pub(crate) input: S,
    pub(crate) key: F,
    pub(crate) max_keys: usize,
}
