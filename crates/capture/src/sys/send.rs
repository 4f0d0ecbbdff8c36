//! Sockets that frames leave by, and `sendmmsg` (packet(7), raw(7), sendmmsg(2)).
//!
//! It is sound: message headers point into arrays on the stack and into slices that are
//! borrowed for the length of the call, and the kernel only reads what they point to; addresses
//! are given with the length of the type that they are of.

use super::checked;
use crate::limits::{SEND_AT_ONCE, SEND_BUFFER};
use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// The pieces of a message: a header and a frame, one after the other.
pub(crate) type Pieces<'a> = [&'a [u8]; 2];

/// Sends messages in order by a socket that has a destination, as many as it takes without waiting:
/// at least one, at most [`SEND_AT_ONCE`]; says how many.
///
/// # Errors
/// Why the first of them could not be sent.
pub(crate) fn send_some(socket: BorrowedFd<'_>, messages: &[Pieces<'_>]) -> io::Result<usize> {
    const NO_PIECE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut pieces = [[NO_PIECE; 2]; SEND_AT_ONCE];
    // SAFETY: plain data, of which zero is a value: no address, no pieces.
    let mut headers: [libc::mmsghdr; SEND_AT_ONCE] = unsafe { std::mem::zeroed() };
    let messages = &messages[..messages.len().min(SEND_AT_ONCE)];
    for ((message, pieces), header) in messages.iter().zip(&mut pieces).zip(&mut headers) {
        for (piece, bytes) in pieces.iter_mut().zip(message) {
            // The kernel does not write through it.
            piece.iov_base = bytes.as_ptr().cast_mut().cast::<c_void>();
            piece.iov_len = bytes.len();
        }
        header.msg_hdr.msg_iov = pieces.as_mut_ptr();
        header.msg_hdr.msg_iovlen = 2;
    }
    // SAFETY: so many headers as messages, each with two pieces that live longer than the call.
    let sent = unsafe {
        let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), messages.len() as _, flags)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Waits until a descriptor takes something, or so long; only so long without one. Says whether it
/// does.
pub(crate) fn wait_writable(socket: Option<BorrowedFd<'_>>, wait_ns: u64) -> bool {
    let fd = socket.map_or(-1, |fd| fd.as_raw_fd());
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    let wait = libc::timespec {
        tv_sec: (wait_ns / 1_000_000_000) as _,
        tv_nsec: (wait_ns % 1_000_000_000) as _,
    };
    // SAFETY: one entry (whose descriptor is passed over if negative), a time, no signal mask.
    unsafe { libc::ppoll(&mut poll, 1, &wait, std::ptr::null()) > 0 }
}

/// A socket that sends frames as they are and receives none. Not bound yet.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let socket = open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    // Straight to the driver. Frames may be lost where its queue is full, which the call tells; and
    // other packet sockets on the interface do not see them, which keeps them out of captures.
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    Ok(socket)
}

/// Binds it to the interface of this number.
pub(crate) fn bind_to(socket: impl AsFd, index: u32) -> io::Result<()> {
    // SAFETY: plain data, of which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as _;
    address.sll_ifindex = index.try_into().unwrap_or(c_int::MAX);
    let len = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: an address of this length.
    let bound = unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), len) };
    checked(bound).map(drop)
}

/// A socket of an IP protocol, whose IP header the kernel writes, with this other end.
pub(crate) fn raw_socket(to: SocketAddr, protocol: u8) -> io::Result<OwnedFd> {
    open(family(to), libc::SOCK_RAW, protocol.into())
}

/// Gives a socket its other end; says whether there is a way there.
pub(crate) fn connect(socket: impl AsFd, to: SocketAddr) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let connected = match to {
        SocketAddr::V4(to) => {
            // SAFETY: plain data, of which zero is a value.
            let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            address.sin_family = libc::AF_INET as _;
            address.sin_port = to.port().to_be();
            address.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
            let len = std::mem::size_of_val(&address) as libc::socklen_t;
            // SAFETY: an address of this length.
            unsafe { libc::connect(fd, (&raw const address).cast(), len) }
        }
        SocketAddr::V6(to) => {
            // SAFETY: as above.
            let mut address: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
            address.sin6_family = libc::AF_INET6 as _;
            address.sin6_port = to.port().to_be();
            address.sin6_addr.s6_addr = to.ip().octets();
            address.sin6_scope_id = to.scope_id();
            let len = std::mem::size_of_val(&address) as libc::socklen_t;
            // SAFETY: as above.
            unsafe { libc::connect(fd, (&raw const address).cast(), len) }
        }
    };
    checked(connected).map(drop)
}

/// Forbids IP to fragment what the socket sends.
pub(crate) fn never_fragment(socket: impl AsFd, to: SocketAddr) -> io::Result<()> {
    match to {
        SocketAddr::V4(_) => {
            set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
        }
        SocketAddr::V6(_) => {
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
        }
    }
}

/// A UDP socket with any port of its own.
pub(crate) fn udp_socket(to: SocketAddr) -> io::Result<OwnedFd> {
    open(family(to), libc::SOCK_DGRAM, 0)
}

fn family(to: SocketAddr) -> c_int {
    if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}

fn open(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: a descriptor that was just opened and is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // As much as the system allows, and nothing is read from it.
    let most = c_int::try_from(SEND_BUFFER).unwrap_or(c_int::MAX);
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, most)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 1)?;
    Ok(socket)
}

fn set(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let len = std::mem::size_of::<c_int>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: a number of this length, as these options take.
    checked(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), len) })
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let to = receiver.local_addr().expect("an address");
        let socket = udp_socket(to).expect("a socket");
        connect(&socket, to).expect("connects");
        let bodies: Vec<Vec<u8>> = (0..100u8).map(|i| vec![i; usize::from(i)]).collect();
        let messages: Vec<Pieces<'_>> = bodies.iter().map(|b| [&b"head"[..], &b[..]]).collect();
        let (mut sent, mut buffer) = (0, [0; 256]);
        while sent < messages.len() {
            let n = send_some(socket.as_fd(), &messages[sent..]).expect("sends");
            assert!((1..=SEND_AT_ONCE).contains(&n));
            for body in &bodies[sent..sent + n] {
                let got = receiver.recv(&mut buffer).expect("receives");
                assert_eq!(buffer[..got], [&b"head"[..], &body[..]].concat());
            }
            sent += n;
        }
        let long = vec![0; 70_000];
        let error = send_some(socket.as_fd(), &[[&[], &long]]).expect_err("too long");
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn waiting_ends() {
        assert!(!wait_writable(None, 1000));
        let to = "127.0.0.1:9".parse().expect("an address");
        assert!(wait_writable(Some(udp_socket(to).expect("a socket").as_fd()), u64::MAX / 4));
    }
}
