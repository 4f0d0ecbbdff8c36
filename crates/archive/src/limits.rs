//! Bounds of what is stored.

use std::time::Duration;

/// Rows of a file.
pub(crate) const FILE_ROWS_MAX: u64 = 1 << 20;

/// Hours of one output whose rows may wait in memory at a time; the one that got none for the
/// longest is written first.
pub(crate) const HOURS_MAX: usize = 24;

/// Bytes of rows that wait in memory, of all outputs; the largest file is written first.
pub(crate) const WAITING_BYTES_MAX: usize = 256 << 20;

/// Time after which rows of a live run are on disk, once the next of them comes.
pub(crate) const LIVE_AGE_MAX: Duration = Duration::from_secs(60);

/// How often the folder of a file is made, where another process removes it while it is empty.
pub(crate) const FOLDER_TRIES: usize = 10;
