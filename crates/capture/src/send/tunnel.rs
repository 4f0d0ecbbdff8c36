//! A tunnel to another host: frames leave in packets of their own, whose IP and UDP headers, with
//! their checksums, the kernel writes (udp(7), raw(7)).

use super::attempt::Attempt;
use super::carry::Carries;
use super::error::{Remedy, SendError};
use super::place::{self, Wrap};
use crate::sys::send::{Pieces, connect, never_fragment, raw_socket, send_some, udp_socket};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use weir_packet::egress::Refusal;
use weir_packet::gre;

/// The other end of a tunnel.
pub(super) struct TunnelSender {
    socket: OwnedFd,
    to: SocketAddr,
}

impl TunnelSender {
    /// Opens a tunnel; says what it carries. `outlet` stands in errors.
    pub(super) fn open(
        outlet: &str,
        tunnel: &place::Tunnel,
    ) -> io::Result<(TunnelSender, Carries)> {
        let (port, carries) = match tunnel.wrap {
            Wrap::Udp(port) => (port, Carries::Any),
            Wrap::Vxlan { port, vni } => (port, Carries::Vxlan(vni)),
            Wrap::Gre { key } => (0, Carries::Gre(key)),
            Wrap::Erspan { session } => (0, Carries::Erspan(session, 0)),
        };
        let to = resolve(outlet, &tunnel.host, port)?;
        let of_tunnel = |e: io::Error| {
            let remedy = Remedy::permission(&e, "cap_net_raw");
            SendError::refused(outlet, e, remedy)
        };
        let socket = match tunnel.wrap {
            Wrap::Udp(_) | Wrap::Vxlan { .. } => udp_socket(to),
            Wrap::Gre { .. } | Wrap::Erspan { .. } => raw_socket(to, gre::PROTOCOL),
        };
        let socket = socket.map_err(of_tunnel)?;
        if !tunnel.fragment {
            never_fragment(&socket, to).map_err(of_tunnel)?;
        }
        connect(&socket, to).map_err(|e| SendError::refused(outlet, e, Remedy::Route))?;
        Ok((TunnelSender { socket, to }, carries))
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The address that its packets leave from.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        let socket = UdpSocket::from(self.socket.try_clone().ok()?);
        Some(socket.local_addr().ok()?.ip())
    }

    /// Whether there is a way to the other end again.
    pub(super) fn come_back(&mut self) -> bool {
        connect(&self.socket, self.to).is_ok()
    }

    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        let error = match send_some(self.socket.as_fd(), messages) {
            Ok(n) => return Attempt::Took(n),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => Attempt::Took(0),
            Some(libc::EAGAIN) => Attempt::Full,
            Some(libc::ENOBUFS) => Attempt::FullUntold,
            Some(libc::EMSGSIZE) => Attempt::Refused(Refusal::Long, error),
            // The answer of the other end to an earlier packet.
            Some(libc::ECONNREFUSED | libc::ENOPROTOOPT) => Attempt::Again(error),
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN) => {
                Attempt::Away(Refusal::Unreachable)
            }
            _ => Attempt::Refused(Refusal::Other, error),
        }
    }
}

/// The address of the other end.
fn resolve(outlet: &str, host: &str, port: u16) -> io::Result<SocketAddr> {
    let refused = |e| SendError::refused(outlet, e, Remedy::None);
    let mut addresses = (host, port).to_socket_addrs().map_err(refused)?;
    addresses.next().ok_or_else(|| SendError::NoAddress { name: outlet.to_owned() }.into())
}
