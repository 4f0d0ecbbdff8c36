//! The exceptions from the rules of [`crate::house`] that are left. The lists only shrink.

/// Files that import each other in a circle.
pub(crate) const CIRCLES: &[&str] =
    &["packet pcapng.rs", "packet pcapng/run.rs", "packet pcapng/write.rs"];
