//! Packets around a row.

use crate::expr::Expr;
use weir_packet::fields::FieldId;

/// Adds a column `capture` with the name of a file for each row, and asks that packets around the
/// row be written to that file. The last stage of a printed pipeline.
///
/// The packets are those of the time from `before_ns` before the row to `after_ns` after it, whose
/// fields `keys` have the values that the row has in its columns; an absent field is a value of
/// its own. A row of a window lasts from its start to its end, one of a session from its first row
/// to its last.
#[derive(Clone, PartialEq, Debug)]
pub struct Capture {
    /// Position of the column in the output schema.
    pub output: usize,
    /// The name of the file, a string; it depends on nothing but the row.
    pub name: Expr,
    /// Position of the column that says when the row's time begins.
    pub start: usize,
    /// How long its time is, where it is that of a window.
    pub over_ns: i64,
    /// How long before.
    pub before_ns: i64,
    /// How long after.
    pub after_ns: i64,
    /// Packet fields, of fixed width, and the column of each; none for all packets.
    pub keys: Vec<(FieldId, usize)>,
}

/// The column's name.
pub const CAPTURE: &str = "capture";
