//! Why a capture from interfaces can't begin or go on.
//!
//! A [`LiveError`] is the error within a [`SourceError::Io`], which names the interface; it says
//! what was refused, and what to try.

use crate::limits::{LIVE_INTERFACES_MAX, RING_BUFFER_MAX, RINGS_MAX};
use std::{error, fmt, io};
use weir_packet::source::SourceError;

/// Why an interface can't be captured from.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// None are named, or too many: how many.
    Interfaces(usize),
    /// It is named twice.
    Twice,
    /// All interfaces are asked for, and others beside.
    BesideAll,
    /// So many rings of an interface can't be.
    Rings(usize),
    /// So large a buffer can't be had.
    Buffer,
    /// There is no interface of this name.
    NoInterface {
        /// The names of the interfaces that there are.
        known: Vec<String>,
    },
    /// Adapters were to put their times on frames of all interfaces.
    TimesOfAll,
    /// The adapter puts no times on frames.
    NoTimes,
    /// The process may not have the adapter put times on frames.
    MayNotTime(io::Error),
    /// The process may not capture.
    MayNot(io::Error),
    /// There are no packet sockets here, whatever is asked for: another way of capturing may do.
    NoPacketSockets(io::Error),
    /// There is no memory for a buffer.
    NoMemory {
        /// How large it was to be.
        bytes: usize,
        /// The kernel's words.
        source: io::Error,
    },
    /// The kernel refuses something else.
    Refused {
        /// The request that is refused.
        what: &'static str,
        /// The kernel's words.
        source: io::Error,
    },
    /// The kernel was required to run a part of the query, and can't: one clause.
    NotOffloaded(String),
    /// libpcap can't capture from it.
    Libpcap(PcapError),
}

/// Why libpcap can't capture from a device.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PcapError {
    /// It could not be loaded; the loader's words.
    Missing(String),
    /// It does not say which devices there are; its words.
    NoList(String),
    /// It knows no such device.
    NoDevice {
        /// The names that it knows; none where it does not say.
        known: Vec<String>,
    },
    /// The process may not capture; its words.
    Permission(String),
    /// The device is down, where libpcap wants it up.
    Down {
        /// The device.
        name: String,
    },
    /// It has no such times of the device.
    NoTimes,
    /// It can't tell the directions of the device apart; its words.
    NoDirections(String),
    /// It refuses something else; its words.
    Refused(String),
    /// It can't read from the device any more; its words.
    Unreadable(String),
}

impl LiveError {
    /// The error of an interface.
    pub(crate) fn on(self, name: &str) -> SourceError {
        let source = io::Error::new(self.kind(), self);
        SourceError::Io { name: name.to_owned(), source }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            LiveError::NoInterface { .. } => io::ErrorKind::NotFound,
            LiveError::NoPacketSockets(_) => io::ErrorKind::Unsupported,
            LiveError::MayNotTime(e)
            | LiveError::MayNot(e)
            | LiveError::NoMemory { source: e, .. }
            | LiveError::Refused { source: e, .. } => e.kind(),
            _ => io::ErrorKind::Other,
        }
    }
}

/// The error of an interface that the kernel gives by itself.
#[cfg(target_os = "linux")]
pub(super) fn error(name: &str, source: io::Error) -> SourceError {
    SourceError::Io { name: name.to_owned(), source }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Interfaces(n) => {
                write!(f, "{n} interfaces, where 1 to {LIVE_INTERFACES_MAX} can be")
            }
            LiveError::Twice => f.write_str("is given twice; its frames would count twice"),
            LiveError::BesideAll => f.write_str("has the frames of all others; give it alone"),
            LiveError::Rings(n) => write!(f, "{n} rings, where 1 to {RINGS_MAX} can be"),
            LiveError::Buffer => {
                write!(f, "a buffer of at most {} KiB can be asked for", RING_BUFFER_MAX >> 10)
            }
            LiveError::NoInterface { known } => {
                write!(f, "there is no such interface; there are {}", known.join(", "))
            }
            LiveError::TimesOfAll => {
                f.write_str("times of adapters can be had of named interfaces only")
            }
            LiveError::NoTimes => f.write_str(
                "its adapter puts no times on the frames that it receives; use \
                 --time-stamp-type host (`ethtool -T` shows what it can)",
            ),
            LiveError::MayNotTime(_) => f.write_str(
                "switching on the times of an adapter needs the capability CAP_NET_ADMIN: run \
                 as root, or: sudo setcap cap_net_raw,cap_net_admin+ep \"$(command -v weir)\"",
            ),
            LiveError::MayNot(_) => f.write_str(
                "capturing needs the capability CAP_NET_RAW: run as root, or give it to the \
                 program once: sudo setcap cap_net_raw+ep \"$(command -v weir)\"",
            ),
            LiveError::NoPacketSockets(_) => f.write_str(
                "there are no packet sockets here (CONFIG_PACKET of the kernel, \
                 RestrictAddressFamilies= of a service)",
            ),
            LiveError::NoMemory { bytes, .. } => {
                write!(f, "no memory for a buffer of {} KiB; -B asks for less", bytes >> 10)
            }
            LiveError::Refused { what, source } => {
                write!(f, "the kernel refuses {what}: {source}")
            }
            LiveError::NotOffloaded(why) => {
                write!(f, "the kernel can't run a part of the query (--offload require): {why}")
            }
            LiveError::Libpcap(e) => e.fmt(f),
        }
    }
}

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PcapError::Missing(why) => write!(
                f,
                "capturing by libpcap needs libpcap, which could not be loaded ({why}); install \
                 it: apt-get install libpcap0.8"
            ),
            PcapError::NoList(why) => write!(f, "libpcap does not list its devices: {why}"),
            PcapError::NoDevice { known } if known.is_empty() => {
                f.write_str("libpcap knows no such device")
            }
            PcapError::NoDevice { known } => {
                write!(f, "libpcap knows no such device; there are {}", known.join(", "))
            }
            PcapError::Permission(why) => write!(
                f,
                "{why}: run as root, or give the program the capability CAP_NET_RAW once: sudo \
                 setcap cap_net_raw+ep \"$(command -v weir)\""
            ),
            PcapError::Down { name } => write!(
                f,
                "is down, and libpcap captures from interfaces that are up only: ip link set \
                 {name} up"
            ),
            PcapError::NoTimes => {
                f.write_str("libpcap has no such times of it; use --time-stamp-type host")
            }
            PcapError::NoDirections(why) => {
                write!(f, "libpcap can't tell its directions apart: {why}; leave -Q out")
            }
            PcapError::Refused(why) => write!(f, "libpcap refuses to capture from it: {why}"),
            PcapError::Unreadable(why) => {
                write!(f, "libpcap can't read from it any more: {why}")
            }
        }
    }
}

impl error::Error for PcapError {}

impl error::Error for LiveError {
    /// Of what says by itself what to do, the kernel's words would add nothing for users.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            LiveError::Refused { source, .. } => Some(source),
            LiveError::Libpcap(e) => Some(e),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers tell errors apart by their types, and users read the kernel's words once.
    #[test]
    fn an_error_keeps_its_type_kind_and_cause() {
        let refusal = io::Error::from_raw_os_error(libc::EPERM);
        let (kind, words) = (refusal.kind(), refusal.to_string());
        let error = LiveError::Refused { what: "a ring", source: refusal }.on("eth0");
        assert_eq!(error.to_string(), format!("eth0: the kernel refuses a ring: {words}"));
        let SourceError::Io { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), kind);
        let inner = source.get_ref().and_then(|e| e.downcast_ref::<LiveError>());
        assert!(matches!(inner, Some(LiveError::Refused { what: "a ring", .. })), "{inner:?}");
        let cause = inner.and_then(error::Error::source);
        assert_eq!(cause.map(ToString::to_string), Some(words));
    }

    #[test]
    fn an_error_of_libpcap_says_what_to_try() {
        let text = |e| LiveError::Libpcap(e).on("eth0").to_string();
        assert_eq!(
            text(PcapError::NoDevice { known: Vec::new() }),
            "eth0: libpcap knows no such device"
        );
        let known = vec!["lo".to_owned(), "any".to_owned()];
        assert_eq!(
            text(PcapError::NoDevice { known }),
            "eth0: libpcap knows no such device; there are lo, any"
        );
        assert!(text(PcapError::Down { name: "eth0".to_owned() }).ends_with("ip link set eth0 up"));
    }
}
