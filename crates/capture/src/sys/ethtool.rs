//! What only the ethtool ioctl tells of an interface: how many receive queues are in use.
//!
//! What makes it sound: the two structs are laid out as `linux/if.h` and `linux/ethtool.h` say, and
//! live through the call.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::AsRawFd;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// `struct ifreq`, its union as a pointer.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut Channels,
    rest: [u64; 2],
}

/// Receive queues of the interface of this name, in the network namespace of this thread. `None`:
/// the driver does not say.
pub(crate) fn rx_queues(name: &str) -> io::Result<Option<u32>> {
    let mut request =
        Request { name: [0; libc::IFNAMSIZ], data: std::ptr::null_mut(), rest: [0; 2] };
    let room = &mut request.name[..libc::IFNAMSIZ - 1];
    room.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    request.data = &raw mut channels;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: SIOCETHTOOL takes a struct ifreq that points to what its command takes; for this
    // one the kernel reads and writes a struct ethtool_channels.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result == 0 {
        return Ok(Some(channels.rx.saturating_add(channels.combined)).filter(|&n| n > 0));
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        e => Err(e),
    }
}
