//! Why a program does not run to its end.

use std::fmt;
use weir_engine::run::RunError;
use weir_packet::source::SourceError;

/// Why a program was not run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// The text that the streams stand for has mistakes; these, drawn below its lines.
    Query(String),
    /// Two functions have this name.
    Twice(String),
    /// Rows are not what they were to be read as: of which output, and why.
    Rows {
        /// The name of the output; none where a stream runs alone.
        output: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// There is no output of this name.
    NoOutput(String),
    /// The source could not be opened.
    Source(SourceError),
    /// The run ended early. Rows that came before were handed out.
    Run(RunError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Query(drawn) => f.write_str(drawn.trim_end()),
            StreamError::Twice(name) => write!(f, "two functions are called `{name}`"),
            StreamError::Rows { output: Some(name), reason } => {
                write!(f, "rows of `{name}`: {reason}")
            }
            StreamError::Rows { output: None, reason } => f.write_str(reason),
            StreamError::NoOutput(name) => write!(f, "the program has no output called `{name}`"),
            StreamError::Source(e) => e.fmt(f),
            StreamError::Run(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StreamError::Source(e) => Some(e),
            StreamError::Run(e) => Some(e),
            _ => None,
        }
    }
}

impl From<SourceError> for StreamError {
    fn from(e: SourceError) -> StreamError {
        StreamError::Source(e)
    }
}
