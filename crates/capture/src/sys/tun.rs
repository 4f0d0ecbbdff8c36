//! TUN and TAP devices (Linux: Documentation/networking/tuntap.rst).
//!
//! It is sound: TUNSETIFF takes a `struct ifreq`, which lives on the stack for the length
//! of the call. Reading and writing go through [`File`].

use super::checked;
use super::link::request;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The file that TUN and TAP devices are made by.
pub(crate) const DEVICES: &str = "/dev/net/tun";

/// Whether frames have an Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// They do.
    Tap,
    /// They are IP packets.
    Tun,
}

/// Opens a device of this name, and makes it where there is none; then it is gone when the file is
/// closed. Each write is a frame that the kernel receives by it.
pub(crate) fn open(name: &str, kind: Kind) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = file.open(DEVICES)?;
    let mut request = request(name)?;
    let kind = match kind {
        Kind::Tap => libc::IFF_TAP,
        Kind::Tun => libc::IFF_TUN,
    };
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: an open file, and the request that it takes.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &request) })?;
    Ok(file)
}
