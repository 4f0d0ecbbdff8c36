//! Limits.

/// Record batches that wait between the thread that decodes packets and those that compute.
pub(crate) const BATCHES_WAITING: usize = 4;

/// Rows of a record batch of a scan.
pub(crate) const SCAN_ROWS: usize = 8192;

/// Columns of a table that a message names all of.
pub(crate) const COLUMNS_LISTED: usize = 30;
