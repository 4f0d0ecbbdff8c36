//! The exceptions from the rules of [`crate::house`] that are left. The lists only shrink.

/// Files that import each other in a circle.
