//! Network namespaces, interfaces and senders of tests that need root.
//!
//! It is sound: the calls take plain values, or a struct that lives through the call and
//! its size. A namespace is that of one thread and the children it starts, has no name, and goes
//! with them however they end, with all that is in it.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity, unshare_unsafe};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

/// Whether this test may do what root may; says that it is skipped where not.
#[expect(clippy::print_stderr, reason = "tests say what they leave out")]
pub(crate) fn may(test: &str) -> bool {
    let kind = crate::ebpf::MapKind::Array;
    // SAFETY: no arguments.
    let refused = match unsafe { libc::geteuid() } {
        0 => crate::ebpf::Map::new(kind, "weir-test", 4, 8, 1).err(),
        _ => Some(io::ErrorKind::PermissionDenied.into()),
    };
    if let Some(why) = &refused {
        eprintln!("SKIPPED {test} needs root and bpf(2): {why}");
    }
    refused.is_none()
}

/// Runs `test` in a network namespace of its own, in which nobody sends by himself.
pub(crate) fn in_namespace<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: a namespace for the network; file descriptors stay those of the process.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace");
            for which in ["all", "default"] {
                let quiet = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                // There may be no IPv6 at all.
                let _ = std::fs::write(quiet, "1");
            }
            test()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` with these words.
pub(crate) fn ip(words: &str) {
    let done = Command::new("ip").args(words.split_whitespace()).output().expect("iproute2");
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Two ends of a wire, each with so many queues, both up.
pub(crate) fn veth(a: &str, b: &str, queues: u32) {
    let q = format!("numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add {a} {q} type veth peer name {b} {q}"));
    for end in [a, b] {
        ip(&format!("link set dev {end} up"));
    }
}

/// Changes how many queues one end of a wire uses, of those it has: `ethtool -L`.
pub(crate) fn set_queues(interface: &str, rx: u32, tx: u32) {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_SCHANNELS: u32 = 0x3d;
    // struct ethtool_channels: command, four maxima, receive, send, other, combined.
    let mut channels = [ETHTOOL_SCHANNELS, 0, 0, 0, 0, rx, tx, 0, 0];
    // SAFETY: all zeros is a request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.bytes().take(libc::IFNAMSIZ - 1);
    request.ifr_name.iter_mut().zip(name).for_each(|(to, byte)| *to = byte as libc::c_char);
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
    // SAFETY: a request that points to a struct ethtool_channels, both alive through the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    assert_eq!(done, 0, "ethtool -L {interface}: {}", io::Error::last_os_error());
}

/// Has this thread run on one CPU.
pub(crate) fn on_cpu(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("a CPU that there is");
}

/// Sends frames as they are.
pub(crate) struct Sender {
    socket: OwnedFd,
    ifindex: i32,
}

impl Sender {
    /// By this interface, past its queueing discipline and what hooks there are before it.
    pub(crate) fn new(interface: &str) -> Sender {
        let sender = Sender::queued(interface);
        let socket = &sender.socket;
        // Without the queueing discipline a frame takes the queue of the CPU it is sent from.
        let (on, len) = (1_u32, size_of::<u32>() as u32);
        let bypass = libc::PACKET_QDISC_BYPASS;
        // SAFETY: an option of 4 bytes, read from a number that lives through the call.
        let set = unsafe {
            let on = (&raw const on).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, bypass, on, len)
        };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
        sender
    }

    /// By this interface, as others send.
    pub(crate) fn queued(interface: &str) -> Sender {
        let name = std::ffi::CString::new(interface).expect("no NUL");
        // SAFETY: a string that ends in NUL.
        let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
        assert!(ifindex > 0, "no interface {interface}");
        let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a raw socket");
        Sender { socket, ifindex: ifindex as i32 }
    }

    /// Sends one frame.
    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: all zeros is an address.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = self.ifindex;
        let (fd, len) = (self.socket.as_raw_fd(), size_of_val(&to) as u32);
        // SAFETY: a frame and an address that live through the call, with their lengths.
        let sent = unsafe {
            let to = (&raw const to).cast();
            libc::sendto(fd, frame.as_ptr().cast(), frame.len(), 0, to, len)
        };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}
