//! Limits.

/// Record batches that wait between the thread that decodes packets and those that compute.
pub(crate) const BATCHES_WAITING: usize = 4;

/// Rows of a record batch of a scan.
pub(crate) const SCAN_ROWS: usize = 8192;

/// Columns of a table that a message names all of.
pub(crate) const COLUMNS_LISTED: usize = 30;

/// How deep conditions hold each other that the decoder decides.
pub(crate) const DEPTH_MAX: usize = 20;

/// Comparisons that the decoder decides for a table.
pub(crate) const TERMS_MAX: usize = 1000;

/// Bytes of the stack of a thread that plans and computes: a long condition nests as deep as it has
/// parts.
pub(crate) const STACK_BYTES: usize = 64 << 20;
