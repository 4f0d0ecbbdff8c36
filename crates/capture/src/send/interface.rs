//! A network interface: frames leave by it as they are (packet(7)).

use super::attempt::Attempt;
use super::carry::Carries;
use super::error::{Remedy, SendError};
use crate::sys::link;
use crate::sys::send::{Pieces, bind_to, packet_socket, send_some};
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
        let index = link::index(name).map_err(|_| SendError::no_interface(name))?;
        let socket = packet_socket().map_err(|e| {
            let remedy = Remedy::permission(&e, "cap_net_raw");
            SendError::refused(name, e, remedy)
        })?;
        let of_interface = |e| SendError::refused(name, e, Remedy::None);
        let carries = match link::hardware(&socket, name).map_err(of_interface)? {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Carries::Ethernet,
            libc::ARPHRD_NONE => Carries::Ip,
            hardware => return Err(SendError::Hardware { name: name.to_owned(), hardware }.into()),
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
            && link::index_by(&self.socket, &self.name)
                .is_ok_and(|index| bind_to(&self.socket, index).is_ok())
    }

    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        let error = match send_some(self.socket.as_fd(), messages) {
            Ok(n) => return Attempt::Took(n),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => Attempt::Took(0),
            Some(libc::EAGAIN) => Attempt::Full,
            // The driver's queue is full, or its interface has lost its carrier.
            Some(libc::ENOBUFS) if self.is_back() => Attempt::FullUntold,
            Some(libc::ENOBUFS | libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                Attempt::Away(Refusal::Down)
            }
            Some(libc::EMSGSIZE) => Attempt::Refused(Refusal::Long, error),
            Some(libc::EINVAL) => Attempt::Refused(Refusal::Short, error),
            _ => Attempt::Refused(Refusal::Other, error),
        }
    }
}
