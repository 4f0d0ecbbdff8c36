//! What only the ethtool ioctl tells of an interface: how many receive queues are in use.
//!
//! What makes it sound: the struct is laid out as `linux/ethtool.h` says, and lives through the
//! call.

use super::link;
use std::io;

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

/// Receive queues of the interface of this name, in the network namespace of this thread. `None`:
/// the driver does not say.
pub(crate) fn rx_queues(name: &str) -> io::Result<Option<u32>> {
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    // SAFETY: what this command reads and writes.
    match unsafe { link::ask_with(link::control()?, libc::SIOCETHTOOL, name, &mut channels) } {
        Ok(()) => Ok(Some(channels.rx.saturating_add(channels.combined)).filter(|&n| n > 0)),
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(e) => Err(e),
    }
}
