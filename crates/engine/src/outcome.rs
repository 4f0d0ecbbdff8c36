//! What a run comes to.

use crate::counters::Ledger;
use std::fmt;
use std::io;
use weir_packet::source::SourceError;

/// Why a run ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The source could not go on. Everything before was processed and put out.
    Source(SourceError),
    /// The sink could not take rows.
    Sink(io::Error),
    /// An outlet could not take frames; the error names it.
    Egress(io::Error),
    /// A stage, or something else that the run is made of, panicked: a fault of this library, or of
    /// a registered function. What was put out before is written.
    Panicked {
        /// The pipeline whose stage it was, where that is known and has a name.
        pipeline: Option<String>,
        /// What it panicked with.
        words: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Source(e) => write!(f, "{e}"),
            RunError::Sink(e) => write!(f, "writing rows: {e}"),
            RunError::Egress(e) => write!(f, "{e}"),
            RunError::Panicked { pipeline, words } => {
                match pipeline {
                    Some(name) => write!(f, "a stage of `{name}` failed: {words}")?,
                    None => write!(f, "the run failed: {words}")?,
                }
                write!(
                    f,
                    "; this is a fault of the program, not of the packets: please report it. What \
                     was put out before is written, and the query goes no further"
                )
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Source(e) => Some(e),
            RunError::Sink(e) | RunError::Egress(e) => Some(e),
            RunError::Panicked { .. } => None,
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What happened to everything received.
    pub ledger: Ledger,
    /// Why it ended early, if it did.
    pub error: Option<RunError>,
}
