//! Why a capture by AF_XDP can't begin or go on: interface, queue, cause, and what to try.
//!
//! An [`XdpError`] is the error within a [`SourceError::Io`], which names the interface and queue.

use super::link::LinkInfo;
use crate::ebpf::LoadError;
use crate::limits::{XDP_FRAME_BYTES, XDP_INTERFACES_MAX, XDP_QUEUES_MAX};
use std::{error, fmt, io};
use weir_packet::source::SourceError;

/// The step that the kernel refused, which says what may help.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// bpf(2).
    Bpf(io::Error),
    /// The program.
    Load(LoadError),
    /// The program, for the card.
    LoadOnCard(LoadError),
    /// Putting the program on the interface.
    Attach(io::Error),
    /// Making or setting up a socket.
    XdpSocket(io::Error),
    /// Registering memory.
    Memory(io::Error),
    /// Binding a socket to a queue.
    Bind(io::Error),
    /// The step that stands in the text already.
    Other(io::Error),
}

/// Why an interface can't be captured from by AF_XDP.
#[derive(Debug)]
#[non_exhaustive]
pub enum XdpError {
    /// None are named, or too many: how many.
    Interfaces(usize),
    /// It is named twice.
    Twice,
    /// There is no interface of this name.
    NoInterface {
        /// The names that there are.
        known: Vec<String>,
    },
    /// Its frames have no Ethernet headers; its hardware type.
    Hardware(u16),
    /// Another XDP program is on it.
    Occupied {
        /// The interface.
        interface: String,
        /// Where the program is.
        place: &'static str,
        /// Its number in the system.
        id: u32,
        /// Its name; empty where the kernel does not say.
        name: String,
    },
    /// Zero-copy was asked for, and the program is in the stack; why it is not in the driver.
    NoZeroCopy(Option<String>),
    /// A place for the program was asked for from which an output can't get frames: why.
    Outputs(String),
    /// Its frames may be longer than the room for one.
    Mtu {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The largest that there is room for.
        most: usize,
    },
    /// It has too many receive queues.
    Queues {
        /// The interface.
        interface: String,
        /// How many it has.
        queues: u32,
    },
    /// The kernel refused something.
    Refused {
        /// The step that was tried.
        doing: &'static str,
        /// The kernel's error, by the step that it refused.
        why: Refused,
        /// A hint that may help.
        hint: Option<String>,
    },
}

/// The error of `doing` something with an interface or one of its queues.
pub(super) fn refused(
    interface: &str,
    queue: Option<u32>,
    doing: &'static str,
    why: Refused,
) -> SourceError {
    let hint = hint(&why, interface);
    let name = match queue {
        Some(queue) => format!("{interface}, queue {queue}"),
        None => interface.to_owned(),
    };
    XdpError::Refused { doing, why, hint }.on(&name)
}

impl XdpError {
    /// The error of an interface.
    pub(super) fn on(self, name: &str) -> SourceError {
        let kind = match &self {
            XdpError::NoInterface { .. } => io::ErrorKind::NotFound,
            XdpError::Refused { why, .. } => why.error().kind(),
            _ => io::ErrorKind::InvalidInput,
        };
        SourceError::Io { name: name.to_owned(), source: io::Error::new(kind, self) }
    }

    /// That an interface has too large an MTU.
    pub(super) fn mtu(interface: &LinkInfo, overhead: usize) -> XdpError {
        let most = XDP_FRAME_BYTES[XDP_FRAME_BYTES.len() - 1] - overhead;
        XdpError::Mtu { interface: interface.name.clone(), mtu: interface.mtu, most }
    }
}

impl Refused {
    /// The kernel's words.
    fn error(&self) -> &io::Error {
        match self {
            Refused::Load(e) | Refused::LoadOnCard(e) => &e.source,
            Refused::Bpf(e)
            | Refused::Attach(e)
            | Refused::XdpSocket(e)
            | Refused::Memory(e)
            | Refused::Bind(e)
            | Refused::Other(e) => e,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Load(e) | Refused::LoadOnCard(e) => e.fmt(f),
            _ => self.error().fmt(f),
        }
    }
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::Interfaces(n) => {
                write!(f, "{n} interfaces to capture; 1 to {XDP_INTERFACES_MAX} can be")
            }
            XdpError::Twice => f.write_str("it is named twice"),
            XdpError::NoInterface { known } => {
                write!(f, "no such interface; there are {}", known.join(", "))
            }
            XdpError::Hardware(kind) => write!(
                f,
                "it is of hardware type {kind}, and AF_XDP capture takes Ethernet only; AF_PACKET \
                 captures it"
            ),
            XdpError::Occupied { interface, place, id, name } => {
                let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
                write!(
                    f,
                    "another XDP program{name} (number {id}, {place}) is on it; end the process \
                     that holds it, or take it away: ip link set dev {interface} xdp off"
                )
            }
            XdpError::NoZeroCopy(why) => {
                f.write_str("zero-copy needs the program in the driver, not in the stack")?;
                why.iter().try_for_each(|why| write!(f, " ({why})"))
            }
            XdpError::Outputs(why) => write!(
                f,
                "the program sends frames on, which takes generic XDP here, and another mode was \
                 asked for: {why}"
            ),
            XdpError::Mtu { interface, mtu, most } => write!(
                f,
                "its MTU of {mtu} needs frames in several pieces, which are not supported; ip \
                 link set dev {interface} mtu {most} or less, or capture it by AF_PACKET"
            ),
            XdpError::Queues { interface, queues } => write!(
                f,
                "it has {queues} receive queues, of which {XDP_QUEUES_MAX} can be captured: \
                 ethtool -L {interface} combined {XDP_QUEUES_MAX}"
            ),
            XdpError::Refused { doing, why, hint } => {
                write!(f, "{doing}: {why}")?;
                hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
            }
        }
    }
}

impl error::Error for XdpError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            XdpError::Refused { why: Refused::Load(e) | Refused::LoadOnCard(e), .. } => Some(e),
            XdpError::Refused { why, .. } => Some(why.error()),
            _ => None,
        }
    }
}

/// A hint on what to try.
fn hint(why: &Refused, interface: &str) -> Option<String> {
    let (error, what) = match why {
        Refused::Bpf(e) => (e, "XDP programs"),
        Refused::Load(e) | Refused::LoadOnCard(e) => (&e.source, "XDP programs"),
        Refused::Attach(e) => (e, "XDP programs"),
        Refused::XdpSocket(e) => (e, "AF_XDP"),
        Refused::Memory(e) => (e, "memory"),
        Refused::Bind(e) => (e, "a queue"),
        Refused::Other(_) => return None,
    };
    Some(match (error.raw_os_error()?, why) {
        (libc::EPERM | libc::EACCES, _) => {
            "run it as root, or give the program its capabilities once: \
             setcap cap_net_raw,cap_net_admin,cap_bpf=ep /path/to/weir"
                .to_owned()
        }
        (libc::ENOBUFS, Refused::Memory(_)) => {
            "more memory would be locked than is allowed: ask for less, raise the limit \
             (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or add the capability cap_ipc_lock"
                .to_owned()
        }
        (libc::EBUSY | libc::EEXIST, Refused::Attach(_)) => {
            "another XDP program was put on it: end the process that holds it".to_owned()
        }
        (libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE, Refused::Attach(_)) => {
            "the driver has no XDP, or not with this MTU, these queues or offloads: \
             generic XDP works everywhere"
                .to_owned()
        }
        (libc::EOPNOTSUPP | libc::EINVAL, Refused::LoadOnCard(_)) => {
            "its driver runs no programs on the card, or none that hand frames to sockets: \
             --xdp-mode native runs them in the driver"
                .to_owned()
        }
        (libc::ENOMEM, _) => "there is too little free memory: ask for less".to_owned(),
        (libc::EBUSY, Refused::Bind(_)) => {
            "another socket of AF_XDP receives this queue: end its program".to_owned()
        }
        (libc::ENETDOWN | libc::ENODEV, Refused::Bind(_)) => {
            format!("is the interface up? ip link set dev {interface} up")
        }
        (
            libc::EAFNOSUPPORT | libc::ENOSYS | libc::EINVAL,
            Refused::XdpSocket(_) | Refused::Bpf(_),
        ) => {
            format!("this kernel lacks {what} (Linux 5.9 with CONFIG_XDP_SOCKETS is needed)")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers tell errors apart by their types.
    #[test]
    fn an_error_keeps_its_type_kind_and_cause() {
        let refusal = io::Error::from_raw_os_error(libc::EBUSY);
        let (kind, words) = (refusal.kind(), refusal.to_string());
        let SourceError::Io { source, .. } =
            refused("eth0", None, "binding a socket", Refused::Bind(refusal))
        else {
            panic!("another error");
        };
        assert_eq!(source.kind(), kind);
        let inner = source.get_ref().and_then(|e| e.downcast_ref::<XdpError>());
        assert!(matches!(inner, Some(XdpError::Refused { why: Refused::Bind(_), .. })));
        let cause = inner.and_then(error::Error::source);
        assert_eq!(cause.map(ToString::to_string), Some(words));
    }

    #[test]
    fn errors_name_place_cause_and_remedy() {
        let error = |code| io::Error::from_raw_os_error(code);
        let text = |queue, doing, why| refused("eth0", queue, doing, why).to_string();
        assert_eq!(
            text(None, "loading the XDP program", Refused::Bpf(error(libc::EPERM))),
            "eth0: loading the XDP program: Operation not permitted (os error 1); run it as root, or give the program its capabilities once: setcap cap_net_raw,cap_net_admin,cap_bpf=ep /path/to/weir"
        );
        assert_eq!(
            text(Some(3), "registering memory", Refused::Memory(error(libc::ENOBUFS))),
            "eth0, queue 3: registering memory: No buffer space available (os error 105); more memory would be locked than is allowed: ask for less, raise the limit (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or add the capability cap_ipc_lock"
        );
        assert_eq!(
            text(Some(0), "binding a socket", Refused::Bind(error(libc::EBUSY))),
            "eth0, queue 0: binding a socket: Device or resource busy (os error 16); another socket of AF_XDP receives this queue: end its program"
        );
    }
}
