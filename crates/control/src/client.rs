//! The side that asks.

use crate::limits::ANSWER_PATIENCE;
use crate::message::{Reply, Request, read_line, write};
use std::fmt;
use std::io::{self, BufReader, BufWriter};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where a run listens by default.
pub const SOCKET: &str = "/run/weir.sock";

/// The socket to ask: the one given, or named in `WEIR_SOCKET`, or [`SOCKET`].
pub fn socket(given: Option<PathBuf>) -> PathBuf {
    let named = || std::env::var_os("WEIR_SOCKET").filter(|name| !name.is_empty());
    given.or_else(|| named().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from(SOCKET))
}

/// Why a run could not be asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// No run listens on the socket.
    NoRun,
    /// The permissions of the socket do not allow it.
    Denied(io::Error),
    /// The connection failed.
    Connect(io::Error),
    /// The run did not answer.
    NoAnswer(io::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NoRun => f.write_str("no run listens there"),
            AskError::Denied(e) | AskError::Connect(e) => e.fmt(f),
            AskError::NoAnswer(e) => {
                write!(f, "the run does not answer; it may be waiting for its source: {e}")
            }
        }
    }
}

impl std::error::Error for AskError {}

/// Asks the run that listens on a socket, and waits for its answer.
///
/// # Errors
/// If no run listens there, the socket may not be used, or no answer comes.
pub fn ask(socket: &Path, request: Request) -> Result<Reply, AskError> {
    let stream = UnixStream::connect(socket).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NoRun,
        io::ErrorKind::PermissionDenied => AskError::Denied(e),
        _ => AskError::Connect(e),
    })?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE)).map_err(AskError::Connect)?;
    let sent = write(&mut BufWriter::new(&stream), request);
    // The run may have refused a request that is too large before it had read all of it.
    let reply = read_line(&mut BufReader::new(&stream));
    sent.or_else(|e| if reply.is_ok() { Ok(()) } else { Err(e) })
        .and(reply)
        .map_err(AskError::NoAnswer)
}
