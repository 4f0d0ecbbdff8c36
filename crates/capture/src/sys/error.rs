//! Faults that this crate finds with the kernel, or with what it is asked for.

use std::{error, fmt, io};

/// A fault of the kernel, or of what it is asked for, besides its own errors: the error within an
/// [`io::Error`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel is older than this version.
    OlderThan(&'static str),
    /// The rings of an AF_XDP socket do not lie as they are known to.
    RingLayout,
    /// Key and value have other lengths than those of the map of eBPF.
    MapLengths {
        /// Bytes of the key, and of the value.
        given: [usize; 2],
        /// The words of the map.
        map: [usize; 2],
    },
    /// A list of processors can't be read.
    Processors {
        /// Its file.
        path: &'static str,
        /// The contents of the file, or why it can't be read.
        reason: String,
    },
}

impl From<KernelError> for io::Error {
    fn from(error: KernelError) -> io::Error {
        let kind = match &error {
            KernelError::OlderThan(_) => io::ErrorKind::Unsupported,
            KernelError::MapLengths { .. } => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelError::OlderThan(version) => write!(f, "the kernel is older than {version}"),
            KernelError::RingLayout => {
                f.write_str("the kernel lays its rings out in an unknown way")
            }
            KernelError::MapLengths { given: [key, value], map: [map_key, map_value] } => write!(
                f,
                "a key of {key} bytes and a value of {value} for a map of {map_key} and \
                 {map_value}"
            ),
            KernelError::Processors { path, reason } => write!(f, "{path}: {reason}"),
        }
    }
}

impl error::Error for KernelError {}
