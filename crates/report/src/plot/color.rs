//! Which colour is whose.

/// The classes of the colours. Beyond eight, lines are dashed as well.
const COLORS: [&str; 13] =
    ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12"];

/// The class of the colour of that number.
pub(crate) fn color(number: usize) -> &'static str {
    COLORS[number.min(COLORS.len() - 1)]
}
