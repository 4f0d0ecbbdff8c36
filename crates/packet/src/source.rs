//! The [`Source`] trait: batches of frames, by reference into shared memory.

mod account;
mod batch;
mod chunk;
mod columns;
mod lengths;
mod times;

pub use crate::link_type::LinkType;
pub use account::{Account, Gap, KernelCounts, Lost, PauseLosses};
pub use batch::FrameBatch;
pub use chunk::Chunk;

use std::fmt;
use std::io;

/// Why a source could not go on. Everything it delivered before stays good.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The operating system refused to open or read.
    Io {
        /// The file as the user named it, `-` for standard input.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The bytes are not a capture file of a known format.
    Format {
        /// The file as the user named it.
        name: String,
        /// The contents that were found instead.
        reason: String,
    },
    /// A record breaks off or contradicts itself; the frames before it were delivered.
    Corrupt {
        /// The file as the user named it.
        name: String,
        /// Where the broken record starts, in bytes of the uncompressed capture.
        offset: u64,
        /// Frames delivered before it.
        records: u64,
        /// The fault of the record.
        reason: String,
    },
    /// Frames of a link type that is not decoded.
    LinkType {
        /// The file as the user named it.
        name: String,
        /// The link type.
        link: LinkType,
    },
    /// The capture filter can't be applied to the frames of this capture.
    Filter {
        /// The file as the user named it.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Several captures that were read at the same time broke off, each for a reason of its own;
    /// two at least.
    Several(Vec<SourceError>),
}

/// Captures whose errors are told one by one.
const TOLD_MAX: usize = 10;

impl SourceError {
    /// All of these as one error; `None` of none.
    pub fn all(mut errors: Vec<SourceError>) -> Option<SourceError> {
        match errors.len() {
            0 | 1 => errors.pop(),
            _ => Some(SourceError::Several(errors)),
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Io { name, source } => write!(f, "{name}: {source}"),
            SourceError::Format { name, reason } | SourceError::Filter { name, reason } => {
                write!(f, "{name}: {reason}")
            }
            SourceError::Corrupt { name, offset, records, reason } => write!(
                f,
                "{name}: {reason}, at byte {offset} after {records} whole records; \
                 everything before it was processed"
            ),
            SourceError::LinkType { name, link } => write!(
                f,
                "{name}: link type {} ({}) is not supported",
                link.0,
                crate::ethernet::link_name(*link)
            ),
            SourceError::Several(errors) => {
                for (n, error) in errors.iter().take(TOLD_MAX).enumerate() {
                    write!(f, "{}{error}", if n > 0 { "; also " } else { "" })?;
                }
                match errors.len().saturating_sub(TOLD_MAX) {
                    0 => Ok(()),
                    more => write!(f, "; and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Where frames come from.
pub trait Source: Send {
    /// Replaces the contents of `batch` with the next frames, at least one. `Ok(false)`: there are
    /// no more, and `batch` is empty. A batch holds frames of one link type, in capture order.
    ///
    /// A source of a wire does not wait long: where no frame comes for a while, it returns an empty
    /// batch that says what time is [reached](FrameBatch::reached), so that windows close and
    /// rows are shown. It says what it [lost](FrameBatch::gap) soon: while frames come that are
    /// hardly later than that, so that the windows are open that lack those frames; and at the end
    /// by an empty batch, if need be.
    ///
    /// # Errors
    /// When the source can't go on. Frames read before the fault were delivered by earlier calls;
    /// a call after an error returns `Ok(false)`.
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError>;

    /// Whether the next [`fill`](Source::fill) returns at once; `false` where it may wait for
    /// frames of a wire. With several workers only one thread waits for the source, and it does
    /// so only when no packet is left that it has to hand on. So a source that may wait says so
    /// here: a peer that gets no answer from a network function sends nothing more, and both would
    /// wait for each other until the source gives up. Files never wait. There is no default, since
    /// a source around another has to ask it.
    fn is_ready(&mut self) -> bool;

    /// The counts of frames received, filtered and lost so far.
    fn account(&self) -> Account;

    /// The same of each interface, by name; none where frames come from files.
    fn interfaces(&self) -> Vec<(String, Account)> {
        Vec::new()
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        (**self).fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        (**self).is_ready()
    }

    fn account(&self) -> Account {
        (**self).account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        (**self).interfaces()
    }
}
