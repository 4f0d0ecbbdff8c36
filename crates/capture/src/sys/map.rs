//! A file mapped into memory, read-only.
//!
//! It is sound: the mapping is private and read-only, its pages stay mapped as long as the
//! [`Mapping`] lives, and batches hold the [`Mapping`] by `Arc`. One thing remains that neither
//! this process nor the type system can forbid: that somebody changes the file meanwhile.
//!
//! - *Appended to* (a capture still being written): harmless, the mapping keeps the length the
//!   file had when it was opened.
//! - *Overwritten in place*: a byte may read differently the second time. Nothing here or behind
//!   relies on reading the same value twice: every length taken from the bytes is checked, once
//!   loaded, against the length of the mapping, and all access is by checked slices. The answers
//!   may be wrong, memory stays safe.
//! - *Truncated*: reading beyond the new end raises SIGBUS, which ends the process; no rows are
//!   made up. A user who reads a file that may be truncated pipes it in: `cat FILE | weir … -r -`.
//!
//! Capture tools write and rotate files without doing the last two.

use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Range;

/// The bytes of a file.
pub(crate) struct Mapping(Mmap);

impl Mapping {
    /// Maps the whole of `file`, to be read from front to back.
    pub(crate) fn new(file: &File) -> io::Result<Mapping> {
        // SAFETY: a private read-only mapping of a file opened for reading; what happens if the
        // file is changed from outside is said at the top.
        let map = unsafe { MmapOptions::new().map(file)? };
        // Advice may be refused; reading works without.
        let _ = map.advise(Advice::Sequential);
        Ok(Mapping(map))
    }

    /// Makes the pages of a range present: cheaper than meeting them one fault at a time, and a
    /// prefetch of a page that is not there does nothing.
    pub(crate) fn populate(&self, range: Range<usize>) {
        let end = range.end.min(self.0.len());
        if range.start < end {
            // Elsewhere the pages are only asked for.
            #[cfg(target_os = "linux")]
            let advice = Advice::PopulateRead;
            #[cfg(not(target_os = "linux"))]
            let advice = Advice::WillNeed;
            let _ = self.0.advise_range(advice, range.start, end - range.start);
        }
    }

    /// Lets go of the pages of a range, so that a process is not as large as what it has read. They
    /// come back if they are looked at again.
    pub(crate) fn release(&self, range: Range<usize>) {
        let end = range.end.min(self.0.len());
        if range.start < end {
            // SAFETY: of a private mapping that nobody writes to, dropping pages loses nothing:
            // they are read from the file again.
            let _ = unsafe {
                self.0.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    range.start,
                    end - range.start,
                )
            };
        }
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
