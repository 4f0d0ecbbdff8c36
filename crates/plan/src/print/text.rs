//! Lines and lists.

use std::fmt::Write;

/// Appends a line, so many levels indented.
pub(super) fn line(out: &mut String, depth: usize, text: &str) {
    writeln!(out, "{:width$}{text}", "", width = depth * 2).expect("writing to a string");
}

/// The texts of some items, with commas between them.
pub(super) fn list<T>(items: &[T], text: impl FnMut(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}
