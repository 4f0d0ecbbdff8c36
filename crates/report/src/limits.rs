//! The limits of this crate: how much it holds at most.

/// Characters of a text that comes from packets, in a page or a picture; longer ones are cut.
pub const TEXT_MAX: usize = 512;

/// Points of a time line. Where more would be needed, each is of a longer time.
pub const POINTS_MAX: usize = 600;

/// Steps of time that are kept while packets come; [`POINTS_MAX`] of them are drawn.
pub const STEPS_MAX: usize = 4 * POINTS_MAX;

/// Rows of the table that stands for a time line.
pub const TIME_ROWS_MAX: usize = 40;

/// Rows of an output of the page that are kept: `top` gives fewer.
pub const ROWS_MAX: usize = 64;

/// Kinds of traffic in a time line; packets of further ones count as the last.
pub const KINDS_MAX: usize = 8;

/// Rules with findings that a page shows; those of further ones are counted.
pub const RULES_MAX: usize = 256;

/// Findings of a rule that a page shows; further ones are counted.
pub const FINDINGS_MAX: usize = 50;

/// Lines of a plot, and the one of the other keys.
pub const LINES_MAX: usize = 12;

/// Keys whose points are kept for a plot; those with the least total are added up beyond that.
pub const KEYS_MAX: usize = 512;

/// Pictures in a plot: one for each column of numbers of each output.
pub const PANELS_MAX: usize = 16;
