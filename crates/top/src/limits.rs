//! The bounds of the screen, whatever is on the wire.

/// Rows that a table takes of each window: the largest ones.
pub const ROWS_OF_WINDOW: usize = 1000;

/// Groups that a table counts at the same time, where the run has one worker. Packets of further
/// groups are counted as evicted, and shown as `other`.
pub const GROUPS_MAX: usize = 1 << 18;

/// Keys that a table remembers; at one more, those with the least traffic are forgotten until
/// [`KEYS_KEPT`] are left. Their traffic is shown as `other`.
pub const KEYS_MAX: usize = 8192;

/// Keys that are left then.
pub const KEYS_KEPT: usize = 4096;

/// Rows of a table that can be scrolled to; the others are shown as `other`.
pub const ROWS_SHOWN: usize = 1000;

/// Addresses whose names are remembered; beyond, the one that was named the longest ago is
/// forgotten.
pub const NAMES_MAX: usize = 16_384;

/// Addresses of one name that its filter asks for.
pub const NAMED_MAX: usize = 32;

/// Interfaces that are shown by themselves.
pub const INTERFACES_MAX: usize = 64;

/// Points of a time line.
pub const POINTS_MAX: usize = 1024;

/// Seconds over which the rates of a live run are averaged.
pub const RATE_SECONDS: i64 = 5;

/// Bytes of a filter.
pub const FILTER_MAX: usize = 2048;

/// Filters that can be gone back to.
pub const HISTORY_MAX: usize = 64;

/// Characters of a text of packets that are kept.
pub const TEXT_MAX: usize = 256;

/// Rows of an output of a query that are kept: the latest ones.
pub const QUERY_ROWS_MAX: usize = 1000;

/// Bytes of memory that these rows may take, about. The latest row is kept however large it is.
pub const QUERY_BYTES_MAX: usize = 4 << 20;
