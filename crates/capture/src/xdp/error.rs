//! Why a capture by AF_XDP can't begin or go on: interface, queue, cause, and what to try.

use crate::ebpf::LoadError;
use std::io;
use weir_packet::source::SourceError;

/// What the kernel refused, which says what may help.
pub(super) enum Refused {
    /// bpf(2).
    Bpf(io::Error),
    /// The program.
    Load(LoadError),
    /// Putting the program on the interface.
    Attach(io::Error),
    /// Making or setting up a socket.
    Socket(io::Error),
    /// Registering memory.
    Memory(io::Error),
    /// Binding a socket to a queue.
    Bind(io::Error),
    /// What stands in the text already.
    Other(io::Error),
}

/// The error of `doing` something with an interface or one of its queues.
pub(super) fn refused(
    interface: &str,
    queue: Option<u32>,
    doing: &str,
    why: Refused,
) -> SourceError {
    let hint = hint(&why, interface).map_or_else(String::new, |hint| format!("; {hint}"));
    let (kind, cause) = match why {
        Refused::Load(e) => (e.source.kind(), e.to_string()),
        Refused::Bpf(e)
        | Refused::Attach(e)
        | Refused::Socket(e)
        | Refused::Memory(e)
        | Refused::Bind(e)
        | Refused::Other(e) => (e.kind(), e.to_string()),
    };
    let name = match queue {
        Some(queue) => format!("{interface}, queue {queue}"),
        None => interface.to_owned(),
    };
    SourceError::Io { name, source: io::Error::new(kind, format!("{doing}: {cause}{hint}")) }
}

/// An error of our own words.
pub(super) fn unfit(interface: &str, reason: String) -> SourceError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, reason);
    SourceError::Io { name: interface.to_owned(), source }
}

/// What to try.
fn hint(why: &Refused, interface: &str) -> Option<String> {
    let (error, what) = match why {
        Refused::Bpf(e) => (e, "XDP programs"),
        Refused::Load(e) => (&e.source, "XDP programs"),
        Refused::Attach(e) => (e, "XDP programs"),
        Refused::Socket(e) => (e, "AF_XDP"),
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
        (libc::ENOMEM, _) => "there is too little free memory: ask for less".to_owned(),
        (libc::EBUSY, Refused::Bind(_)) => {
            "another socket of AF_XDP receives this queue: end its program".to_owned()
        }
        (libc::ENETDOWN | libc::ENODEV, Refused::Bind(_)) => {
            format!("is the interface up? ip link set dev {interface} up")
        }
        (
            libc::EAFNOSUPPORT | libc::ENOSYS | libc::EINVAL,
            Refused::Socket(_) | Refused::Bpf(_),
        ) => {
            format!("this kernel lacks {what} (Linux 5.9 with CONFIG_XDP_SOCKETS is needed)")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
