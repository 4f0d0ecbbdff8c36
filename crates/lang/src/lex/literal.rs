//! The common parts of the readers of literals.

use crate::diagnostic::Diagnostic;
use weir_plan::Value;

/// The result of a reader of literals: how many bytes it took, and what they say. Spans in the
/// diagnostic are relative to the literal's first byte.
pub(super) type LiteralRead = (usize, Result<Value, Diagnostic>);

/// The length of the letters, digits and underscores that `text` starts with.
pub(super) fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}
