//! The supply that workers read from, one at a time.

/// The supply that workers read from.
pub(crate) trait Supply {
    /// Whether reading from it does not wait.
    fn is_ready(&mut self) -> bool;
}
