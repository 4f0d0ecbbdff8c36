//! Why a capture at the traffic control hook can't begin or go on.
//!
//! A [`TcxError`] is the error within a [`SourceError::Io`], which names the interface.

use crate::ebpf::LoadError;
use std::{error, fmt, io};
use weir_packet::source::SourceError;

/// Why an interface can't be captured from at this hook.
#[derive(Debug)]
#[non_exhaustive]
pub enum TcxError {
    /// All interfaces were asked for, which this hook does not have.
    Any,
    /// The headers of its packets are not known; its hardware type.
    Hardware(u16),
    /// Its packets were to bear the times of an adapter.
    NoTimes,
    /// The kernel refused something.
    Refused {
        /// The step that was tried.
        doing: &'static str,
        /// The kernel's words.
        source: io::Error,
    },
    /// The kernel does not take the program.
    Load(LoadError),
    /// The hook does not take the program.
    Attach(io::Error),
}

impl TcxError {
    /// The error of an interface.
    pub(super) fn on(self, name: &str) -> SourceError {
        let kind = match &self {
            TcxError::Refused { source: e, .. } | TcxError::Attach(e) => e.kind(),
            TcxError::Load(e) => e.source.kind(),
            _ => io::ErrorKind::InvalidInput,
        };
        SourceError::Io { name: name.to_owned(), source: io::Error::new(kind, self) }
    }

    /// A hint that may help.
    fn hint(&self) -> Option<&'static str> {
        let error = match self {
            TcxError::Refused { source: e, .. } | TcxError::Attach(e) => e,
            TcxError::Load(e) => &e.source,
            _ => return None,
        };
        match (error.raw_os_error()?, self) {
            (libc::EPERM | libc::EACCES, _) => Some(
                "run it as root, or give the program its capabilities once: \
                 setcap cap_net_raw,cap_net_admin,cap_bpf=ep /path/to/weir",
            ),
            (libc::ENOMEM, _) => Some("there is too little free memory: -B asks for less"),
            (libc::EINVAL | libc::EOPNOTSUPP, TcxError::Attach(_)) => {
                Some("tcx needs Linux 6.6; --capture packet works everywhere")
            }
            _ => None,
        }
    }
}

impl fmt::Display for TcxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcxError::Any => f.write_str(
                "the traffic control hook is one of each interface: name them, or capture all by \
                 --capture packet",
            ),
            TcxError::Hardware(kind) => write!(
                f,
                "it is of hardware type {kind}, and capture by tcx takes Ethernet and plain IP; \
                 --capture packet takes it"
            ),
            TcxError::NoTimes => f.write_str(
                "the traffic control hook has the kernel's clock only; use --time-stamp-type host",
            ),
            TcxError::Refused { doing, source } => write!(f, "{doing}: {source}"),
            TcxError::Load(e) => write!(f, "loading the program for tcx: {e}"),
            TcxError::Attach(e) => write!(f, "putting a program on its tcx hook: {e}"),
        }?;
        self.hint().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl error::Error for TcxError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            TcxError::Refused { source, .. } | TcxError::Attach(source) => Some(source),
            TcxError::Load(e) => Some(e),
            _ => None,
        }
    }
}
