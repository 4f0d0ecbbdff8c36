//! A network interface: frames leave by it as they are (packet(7)).

use super::carry::Carries;
use super::{Tried, advice, named};
use crate::sys::send::{Pieces, bind_to, packet_socket, send_some};
use crate::sys::{interface, link};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use weir_packet::egress::Refusal;

/// An interface that frames are sent by.
pub(super) struct InterfaceSender {
    name: String,
    socket: OwnedFd,
}

impl InterfaceSender {
    /// Opens the interface of this name; says what it carries.
    pub(super) fn open(name: &str) -> io::Result<(InterfaceSender, Carries)> {
        let index = link::index(name).map_err(|e| none_such(name, &e))?;
        let socket = packet_socket().map_err(|e| named(name, &e, &advice(&e, "cap_net_raw")))?;
        let of_interface = |e: io::Error| named(name, &e, "");
        let carries = match link::hardware(&socket, name).map_err(of_interface)? {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Carries::Ethernet,
            libc::ARPHRD_NONE => Carries::Ip,
            other => {
                let reason = format!("sending by interfaces of hardware type {other}");
                let e = io::Error::new(io::ErrorKind::Unsupported, reason);
                return Err(named(name, &e, " is not supported: Ethernet and raw IP are"));
            }
        };
        bind_to(&socket, index).map_err(of_interface)?;
        Ok((InterfaceSender { name: name.to_owned(), socket }, carries))
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether it is up and has a carrier.
    pub(super) fn is_back(&self) -> bool {
        link::state(&self.socket, &self.name).is_ok_and(|state| state.running)
    }

    /// Takes it into use again if it is back, perhaps as another one of the same name.
    pub(super) fn come_back(&mut self) -> bool {
        self.is_back()
            && link::index(&self.name).is_ok_and(|index| bind_to(&self.socket, index).is_ok())
    }

    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Tried {
        let error = match send_some(self.socket.as_fd(), messages) {
            Ok(n) => return Tried::Took(n),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => Tried::Took(0),
            Some(libc::EAGAIN) => Tried::Full { tells: true },
            // The driver's queue is full, or its interface has lost its carrier.
            Some(libc::ENOBUFS) if self.is_back() => Tried::Full { tells: false },
            Some(libc::ENOBUFS | libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                Tried::Away(Refusal::Down)
            }
            Some(libc::EMSGSIZE) => Tried::Refused(Refusal::Long, error),
            Some(libc::EINVAL) => Tried::Refused(Refusal::Short, error),
            _ => Tried::Refused(Refusal::Other, error),
        }
    }
}

/// Tells which interfaces there are.
pub(super) fn none_such(name: &str, e: &io::Error) -> io::Error {
    let all = interface::list().unwrap_or_default();
    let names = all.iter().map(|facts| facts.name.as_str()).collect::<Vec<_>>().join(", ");
    let file = match std::path::Path::new(name).exists() {
        true => format!("; the file of this name is ./{name}"),
        false => "; the name of a file ends in .pcap or .pcapng, or has a slash".to_owned(),
    };
    let reason = format!("{name}: there is no such interface, of {names}{file}");
    io::Error::new(e.kind(), reason)
}
