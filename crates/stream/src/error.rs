//! Why a program does not run to its end.

use std::fmt;
use weir_engine::counters::Ledger;
use weir_engine::run::RunError;
use weir_packet::source::SourceError;

/// Why a program was not run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// The text that the streams stand for has mistakes: they are drawn below its lines.
    Query(String),
    /// A function, a state or a closure can't be used so: the reason.
    Refused(String),
    /// Rows are not what they were to be read as.
    Rows {
        /// The name of the output; none where a stream runs alone.
        output: Option<String>,
        /// The reason.
        reason: String,
    },
    /// The source could not be opened.
    Source(SourceError),
    /// The run ended early. Rows that came before were handed out.
    Run {
        /// Why it did.
        error: RunError,
        /// The counts of packets until then.
        ledger: Box<Ledger>,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Query(drawn) => f.write_str(drawn.trim_end()),
            StreamError::Refused(reason) => f.write_str(reason),
            StreamError::Rows { output: Some(name), reason } => {
                write!(f, "rows of `{name}`: {reason}")
            }
            StreamError::Rows { output: None, reason } => f.write_str(reason),
            StreamError::Source(e) => e.fmt(f),
            StreamError::Run { error: RunError::Panicked { words, .. }, .. } => {
                write!(f, "a closure or a stage panicked: {words}; rows before were handed out")
            }
            StreamError::Run { error, .. } => error.fmt(f),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StreamError::Source(e) => Some(e),
            StreamError::Run { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<SourceError> for StreamError {
    fn from(e: SourceError) -> StreamError {
        StreamError::Source(e)
    }
}
