//! Why packets around an alert are not in a file.

use std::time::Duration;
use std::{error, fmt, io};

/// Why packets around an alert are not in a file, or not all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LookbackError {
    /// The name that was asked for is not that of a file.
    NotAName {
        /// The name that was asked for.
        name: String,
    },
    /// The system refused something.
    System {
        /// The file.
        name: String,
        /// The kind of the system's error.
        kind: io::ErrorKind,
        /// The system's words.
        reason: String,
    },
    /// Nothing could be written for as long as the end waits.
    Stalled {
        /// The file.
        name: String,
        /// How long.
        waited: Duration,
    },
}

impl LookbackError {
    /// The error of a file that the system refused.
    pub(super) fn system(name: &str, e: &io::Error) -> LookbackError {
        LookbackError::System { name: name.to_owned(), kind: e.kind(), reason: e.to_string() }
    }
}

impl fmt::Display for LookbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookbackError::NotAName { name } => write!(f, "{name}: not the name of a file"),
            LookbackError::System { name, reason, .. } => write!(f, "{name}: {reason}"),
            LookbackError::Stalled { name, waited } => {
                write!(f, "{name}: nothing could be written for {} s", waited.as_secs())
            }
        }
    }
}

impl error::Error for LookbackError {}
