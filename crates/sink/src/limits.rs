//! The named maxima of this crate.

/// Bytes of finished rows that a sink holds before it writes them out; it writes earlier when
/// told to flush.
pub const BUFFER_BYTES: usize = 64 << 10;

/// Rows that a table holds back to find out how wide its columns are.
pub const TABLE_ROWS_MAX: usize = 1000;

/// Characters up to which a column grows with its cells; a longer cell puts its own row out of
/// line instead of widening all others.
pub const TABLE_COLUMN_WIDTH_MAX: usize = 80;

/// Characters of names of rules up to which lines of alerts are lined up.
pub const RULE_WIDTH_MAX: usize = 24;

/// Batches of rows that may wait for a slow sink unless told otherwise, of up to 256 rows each.
pub const QUEUE_BATCHES: usize = 1024;

/// Most batches that may be asked to wait.
pub const QUEUE_BATCHES_MAX: usize = 1 << 20;

/// Bytes of an IPFIX message in a file; a row that is larger has a message of its own.
pub const IPFIX_MESSAGE_BYTES: usize = 32 << 10;

/// Bytes of an IPFIX message in a datagram, so that none is sent in fragments.
pub const IPFIX_DATAGRAM_BYTES: usize = 1400;

/// Bytes of a text in an IPFIX record, beyond which it is cut.
pub const IPFIX_TEXT_BYTES: usize = 8 << 10;
