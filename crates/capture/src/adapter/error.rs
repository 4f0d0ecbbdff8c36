//! Why an interface can't be looked at.

use std::{error, fmt, io};

/// Why an interface can't be looked at.
#[derive(Debug)]
#[non_exhaustive]
pub enum AdapterError {
    /// There is no interface of this name.
    NoInterface {
        /// The name.
        name: String,
        /// The interfaces that there are.
        known: Vec<String>,
    },
    /// The kernel does not say what interfaces there are.
    System(io::Error),
}

impl From<io::Error> for AdapterError {
    fn from(error: io::Error) -> AdapterError {
        AdapterError::System(error)
    }
}

impl fmt::Display for AdapterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdapterError::NoInterface { name, known } => {
                write!(f, "{name}: there is no such interface; there are {}", known.join(", "))
            }
            AdapterError::System(e) => write!(f, "asking for interfaces: {e}"),
        }
    }
}

impl error::Error for AdapterError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            AdapterError::NoInterface { .. } => None,
            AdapterError::System(e) => Some(e),
        }
    }
}
