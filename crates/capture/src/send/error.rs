//! Why packets can't be sent to an outlet.

use std::{error, fmt, io};

/// Why packets can't be sent to an outlet: the error within an [`io::Error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SendError {
    /// There is no interface of this name.
    NoInterface {
        /// The outlet.
        name: String,
        /// The interfaces that there are.
        known: Vec<String>,
        /// Whether there is a file of this name.
        is_file: bool,
    },
    /// Nothing is sent by interfaces of this hardware type.
    Hardware {
        /// The outlet.
        name: String,
        /// The hardware type, one of `ARPHRD_`.
        hardware: u16,
    },
    /// AF_XDP sends by no such interface.
    XdpHardware {
        /// The outlet.
        name: String,
    },
    /// Frames of the interface may be longer than AF_XDP sends.
    XdpMtu {
        /// The outlet.
        name: String,
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The largest MTU that AF_XDP can send.
        mtu_max: usize,
    },
    /// The name of a tunnel's other end has no address.
    NoAddress {
        /// The outlet.
        name: String,
    },
    /// A file was to be opened as something that sends.
    File {
        /// The outlet.
        name: String,
    },
    /// Nothing can be sent on this system.
    FilesOnly {
        /// The outlet.
        name: String,
    },
    /// The system, or DPDK, refused something.
    Refused {
        /// The outlet.
        name: String,
        /// The reason.
        source: io::Error,
        /// The remedy that the user can try.
        remedy: Remedy,
    },
}

/// A remedy that the user can try against a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Remedy {
    /// Nothing that is known.
    None,
    /// To give the program this capability.
    Capability(&'static str),
    /// To look for a route to the other end.
    Route,
    /// To load the kernel's module for TUN and TAP devices.
    TunModule,
    /// To end the process that has the device.
    DeviceInUse,
    /// To choose another name: there is an interface of this name and of another kind.
    OtherKind(String),
    /// To end programs that have all queues for AF_XDP.
    XdpQueues,
    /// To allow the process to lock more memory.
    LockedMemory,
    /// To send without AF_XDP, which the kernel lacks.
    NoXdp,
}

impl Remedy {
    /// A capability, where the system refused something for lack of permission.
    pub(super) fn permission(e: &io::Error, capability: &'static str) -> Remedy {
        match e.kind() {
            io::ErrorKind::PermissionDenied => Remedy::Capability(capability),
            _ => Remedy::None,
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::None => Ok(()),
            Remedy::Capability(capability) => write!(
                f,
                "; this needs {}: run as root, or once: sudo setcap {capability}+ep \"$(command \
                 -v weir)\"",
                capability.to_uppercase()
            ),
            Remedy::Route => f.write_str(": is there a route to it?"),
            Remedy::TunModule => f.write_str("; /dev/net/tun is missing: sudo modprobe tun"),
            Remedy::DeviceInUse => f.write_str("; another process has the device"),
            Remedy::OtherKind(name) => {
                write!(f, "; there is an interface {name} of another kind")
            }
            Remedy::XdpQueues => f.write_str(
                "; other sockets of AF_XDP have all its queues: end their programs, or send \
                 without xdp:",
            ),
            Remedy::LockedMemory => f.write_str(
                "; more memory would be locked than is allowed: raise the limit (`ulimit -l`, \
                 LimitMEMLOCK= of a systemd unit), or add the capability cap_ipc_lock",
            ),
            Remedy::NoXdp => {
                f.write_str("; this kernel lacks AF_XDP (CONFIG_XDP_SOCKETS): send without xdp:")
            }
        }
    }
}

impl SendError {
    /// The error of an outlet for which something was refused.
    pub(super) fn refused(name: &str, source: io::Error, remedy: Remedy) -> io::Error {
        SendError::Refused { name: name.to_owned(), source, remedy }.into()
    }

    /// The error of an outlet that is named after no interface.
    #[cfg(target_os = "linux")]
    pub(super) fn no_interface(name: &str) -> io::Error {
        let all = crate::sys::interface::list().unwrap_or_default();
        let known = all.into_iter().map(|facts| facts.name).collect();
        let is_file = std::path::Path::new(name).exists();
        SendError::NoInterface { name: name.to_owned(), known, is_file }.into()
    }
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> io::Error {
        let kind = match &error {
            SendError::NoInterface { .. } | SendError::NoAddress { .. } => io::ErrorKind::NotFound,
            SendError::Hardware { .. } | SendError::FilesOnly { .. } => io::ErrorKind::Unsupported,
            SendError::XdpHardware { .. } | SendError::XdpMtu { .. } | SendError::File { .. } => {
                io::ErrorKind::InvalidInput
            }
            SendError::Refused { source, .. } => source.kind(),
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::NoInterface { name, known, is_file } => {
                let known = known.join(", ");
                write!(f, "{name}: there is no such interface, of {known}; ")?;
                match is_file {
                    true => write!(f, "the file of this name is ./{name}"),
                    false => {
                        f.write_str("the name of a file ends in .pcap or .pcapng, or has a slash")
                    }
                }
            }
            SendError::Hardware { name, hardware } => write!(
                f,
                "{name}: sending by interfaces of hardware type {hardware} is not supported: \
                 Ethernet and raw IP are"
            ),
            SendError::XdpHardware { name } => {
                write!(f, "{name}: AF_XDP sends Ethernet only; without xdp: it may do")
            }
            SendError::XdpMtu { name, interface, mtu, mtu_max } => write!(
                f,
                "{name}: its MTU of {mtu} is more than AF_XDP sends in one piece, {mtu_max}; send \
                 by {interface} without xdp:"
            ),
            SendError::NoAddress { name } => write!(f, "{name}: the name has no address"),
            SendError::File { name } => write!(f, "{name} is a file"),
            SendError::FilesOnly { name } => {
                write!(f, "{name}: packets can be sent to files only on this system")
            }
            SendError::Refused { name, source, remedy } => write!(f, "{name}: {source}{remedy}"),
        }
    }
}

impl error::Error for SendError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            SendError::Refused { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers tell errors apart by their types, and those of the system by their kinds.
    #[test]
    fn an_error_keeps_its_type_kind_and_cause() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let words = denied.to_string();
        let remedy = Remedy::permission(&denied, "cap_net_raw");
        let error = SendError::refused("eth0", denied, remedy);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let start = format!("eth0: {words}; this needs CAP_NET_RAW: run as root, or once: sudo ");
        assert!(error.to_string().starts_with(&start), "{error}");
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<SendError>());
        assert!(matches!(inner, Some(SendError::Refused { name, .. }) if name == "eth0"));
        let cause = inner.and_then(error::Error::source);
        assert_eq!(cause.map(ToString::to_string), Some(words));
    }
}
