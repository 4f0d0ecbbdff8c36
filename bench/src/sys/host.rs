//! This process among others: where and when it runs, its network, and what interrupts it.
//!
//! It is sound: each call is given plain numbers, or pointers to values that live through
//! it, of the types and sizes that the kernel's headers say. The signal handler does nothing.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{CpuSet, Pid, UnshareFlags, sched_setaffinity, unshare_unsafe};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Moves this thread, and the processes that it starts, to a network of their own, in which the
/// kernel sends nothing by itself. `/sys` is that of the network from then on.
///
/// # Errors
/// Without the capability CAP_SYS_ADMIN; the error says which step failed.
pub(crate) fn leave_the_network() -> io::Result<()> {
    let doing = |what: &'static str| {
        move |e: rustix::io::Errno| {
            let e = io::Error::from(e);
            io::Error::new(e.kind(), format!("{what}: {e}; run as root"))
        }
    };
    let flags = UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    // SAFETY: descriptors stay those of the process; memory is not touched.
    unsafe { unshare_unsafe(flags) }.map_err(doing("making a network namespace"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(doing("keeping mounts to this process"))?;
    mount(c"sysfs", c"/sys", c"sysfs", MountFlags::empty(), None)
        .map_err(doing("mounting the /sys of the namespace"))?;
    for which in ["all", "default"] {
        // Where there is no IPv6, there is nothing to switch off.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    Ok(())
}

/// Has a thread run on one processor; this one, if none is named.
pub(crate) fn pin(thread: Option<i32>, cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(thread.and_then(Pid::from_raw), &set)?)
}

/// Has a thread run before all others of a lower priority (SCHED_FIFO, sched(7)); this one, if none
/// is named.
pub(crate) fn run_first(thread: Option<i32>, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are read while the call lasts.
    match unsafe { libc::sched_setscheduler(thread.unwrap_or(0), libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Switches generic receive offload of an interface on: a virtual one has its frames looked after
/// by NAPI then, whether or not it has an XDP program.
pub(crate) fn receive_offload(interface: &str) -> io::Result<()> {
    const ETHTOOL_SGRO: u32 = 0x2c;
    ethtool(interface, [ETHTOOL_SGRO, 1])
}

/// Has check sums made before frames get to an interface, and so segments, too.
pub(crate) fn transmit_offload_off(interface: &str) -> io::Result<()> {
    const ETHTOOL_STXCSUM: u32 = 0x17;
    ethtool(interface, [ETHTOOL_STXCSUM, 0])
}

/// Sets what an interface does by itself, by a `struct ethtool_value`.
fn ethtool(interface: &str, mut value: [u32; 2]) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: plain data, of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.bytes().take(libc::IFNAMSIZ - 1);
    request.ifr_name.iter_mut().zip(name).for_each(|(to, byte)| *to = byte as libc::c_char);
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just made, owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a request that points to a struct ethtool_value, both alive through the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Interrupts the system call that this process, which has one thread, is in after some time.
pub(crate) fn interrupt_after(time: Duration) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain data, of which zero is a value: no flags, so that calls end; an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    let timer = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: time.as_secs() as _,
            tv_usec: time.subsec_micros().max(1) as _,
        },
    };
    // SAFETY: an action whose handler does nothing, and a time, both read while the calls last.
    let set = unsafe {
        match libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()) {
            0 => libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()),
            error => error,
        }
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
