//! How much is kept, and where files go.

use crate::limits::{LOOKBACK_FILE_BYTES_MAX, LOOKBACK_FILES_MAX, LOOKBACK_QUEUE_BYTES};
use std::path::PathBuf;
use weir_base::full::WhenFull;

/// How much is kept, and where files go.
#[derive(Clone, Debug)]
pub struct LookbackOptions {
    /// Bytes of memory for frames; each takes 24 more than there are of it.
    pub bytes: usize,
    /// The folder of the files.
    pub folder: PathBuf,
    /// Files of one run at most.
    pub files_max: u64,
    /// Bytes of frames that one file takes at most.
    pub file_bytes_max: u64,
    /// The fate of frames while more wait to be written than
    /// [`LookbackOptions::queue_bytes_max`].
    pub when_full: WhenFull,
    /// Bytes that wait to be written at most; each open file has up to 64 KiB and a frame besides.
    pub queue_bytes_max: usize,
}

impl LookbackOptions {
    /// Of this many bytes, files in the current folder, for which reading waits.
    pub fn new(bytes: usize) -> LookbackOptions {
        LookbackOptions {
            bytes,
            folder: PathBuf::from("."),
            files_max: LOOKBACK_FILES_MAX,
            file_bytes_max: LOOKBACK_FILE_BYTES_MAX,
            when_full: WhenFull::Wait,
            queue_bytes_max: LOOKBACK_QUEUE_BYTES,
        }
    }
}
