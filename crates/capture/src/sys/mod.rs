//! Where this crate meets the operating system and C: its only unsafe code.

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "bpf(2)")]
pub(crate) mod bpf;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "adjtimex(2)")]
pub(crate) mod clock;
#[cfg(target_os = "linux")]
pub(crate) mod error;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "an ioctl")]
pub(crate) mod ethtool;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "asks the kernel about interfaces")]
pub(crate) mod interface;
#[expect(unsafe_code, reason = "calls into libpcap")]
pub(crate) mod libpcap;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "asks about network interfaces")]
pub(crate) mod link;
#[expect(unsafe_code, reason = "maps files")]
pub(crate) mod map;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "sockets that see frames")]
pub(crate) mod packet;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory shared with the kernel")]
pub(crate) mod ring;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "sends by sockets")]
pub(crate) mod send;
#[cfg(all(test, target_os = "linux"))]
#[expect(unsafe_code, reason = "namespaces and sockets of tests")]
#[path = "tests/testbed.rs"]
pub(crate) mod testbed;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "makes TUN and TAP devices")]
pub(crate) mod tun;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory shared with the kernel")]
pub(crate) mod xsk;

/// The result of a call into the system, or why it failed.
#[cfg(target_os = "linux")]
pub(crate) fn checked(result: std::ffi::c_int) -> std::io::Result<std::ffi::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
