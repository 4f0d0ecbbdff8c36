//! Requests about a network interface: its number, whether it is up, what it carries.
//!
//! It is sound: every request of `ioctl` here takes a `struct ifreq` (netdevice(7)), which
//! lives on the stack for the length of the call, as does what it points to; of its union that part
//! is read which the request wrote, and all of it was zero before.

use super::checked;
use std::ffi::{CString, c_char, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};

/// How an interface is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State {
    /// Whether it is up.
    pub(crate) up: bool,
    /// Whether it has a carrier, too.
    pub(crate) running: bool,
}

/// The number of an interface.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: a string that ends in NUL.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The same, asked by any socket: no further one is made for it.
pub(crate) fn index_by(socket: impl AsFd, name: &str) -> io::Result<u32> {
    let request = ask(socket, libc::SIOCGIFINDEX, request(name)?)?;
    // SAFETY: SIOCGIFINDEX writes the number.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.unsigned_abs())
}

/// A socket to ask by, of no use otherwise.
pub(crate) fn control() -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    checked(fd)?;
    // SAFETY: a descriptor that was just opened and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How an interface is doing; asked by any socket.
pub(crate) fn state(socket: impl AsFd, name: &str) -> io::Result<State> {
    let request = ask(&socket, libc::SIOCGIFFLAGS, request(name)?)?;
    // SAFETY: SIOCGIFFLAGS writes the flags.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    let up = flags & libc::IFF_UP != 0;
    // The flag follows the carrier only after a while.
    let carrier = || carrier(&socket, name).unwrap_or(flags & libc::IFF_RUNNING != 0);
    Ok(State { up, running: up && carrier() })
}

/// Bytes of the longest packet that an interface sends.
pub(crate) fn mtu(socket: impl AsFd, name: &str) -> io::Result<u32> {
    let request = ask(socket, libc::SIOCGIFMTU, request(name)?)?;
    // SAFETY: SIOCGIFMTU writes the MTU.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.unsigned_abs())
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// ETHTOOL_GLINK of `linux/ethtool.h`.
const GET_LINK: u32 = 10;

/// Whether an interface has a carrier, where its driver can tell.
fn carrier(socket: impl AsFd, name: &str) -> io::Result<bool> {
    let mut value = EthtoolValue { command: GET_LINK, data: 0 };
    // SAFETY: what this command reads and writes.
    unsafe { ask_with(socket, libc::SIOCETHTOOL, name, &mut value)? };
    Ok(value.data != 0)
}

/// Its hardware type: one of `ARPHRD_`.
pub(crate) fn hardware(socket: impl AsFd, name: &str) -> io::Result<u16> {
    let request = ask(socket, libc::SIOCGIFHWADDR, request(name)?)?;
    // SAFETY: SIOCGIFHWADDR writes a hardware address.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// Sets an interface up.
pub(crate) fn set_up(socket: impl AsFd, name: &str) -> io::Result<()> {
    let mut request = ask(&socket, libc::SIOCGIFFLAGS, request(name)?)?;
    // SAFETY: SIOCGIFFLAGS writes the flags.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    ask(socket, libc::SIOCSIFFLAGS, request).map(|_| ())
}

/// A request about this interface.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: plain data, of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(name)?;
    let bytes = name.as_bytes_with_nul();
    if bytes.len() > request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, &byte) in request.ifr_name.iter_mut().zip(bytes) {
        *to = byte as c_char;
    }
    Ok(request)
}

/// Asks about an interface with data of its own.
///
/// # Safety
/// `what` reads and writes a `T` where it finds the pointer of its request.
pub(crate) unsafe fn ask_with<T>(
    socket: impl AsFd,
    what: c_ulong,
    name: &str,
    data: &mut T,
) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut *data).cast();
    ask(socket, what, request).map(drop)
}

fn ask(socket: impl AsFd, what: c_ulong, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: an open descriptor, and a request of the type that all of these take.
    checked(unsafe { libc::ioctl(fd, what as _, &mut request) })?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known() {
        let socket = control().expect("a socket");
        assert_eq!(index("lo").expect("there"), 1);
        assert_eq!(index_by(&socket, "lo").expect("there"), 1);
        assert!(index_by(&socket, "no-such-thing").is_err());
        assert_eq!(hardware(&socket, "lo").expect("there"), libc::ARPHRD_LOOPBACK);
        state(&socket, "lo").expect("there");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let socket = control().expect("a socket");
        assert!(index("no such one").is_err());
        let error = state(&socket, "weir-none").expect_err("not there");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let long = state(&socket, "a name that is too long").expect_err("not there");
        assert_eq!(long.raw_os_error(), Some(libc::ENODEV));
        assert!(state(&socket, "nul\0").is_err());
    }
}
