//! One command of bpf(2), and what its arguments are made of.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Longest name of a map or program, with its NUL.
pub(super) const NAME: usize = 16;

/// The struct that MAP_CREATE reads.
#[repr(C)]
pub(super) struct MapCreate {
    pub(super) kind: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
    pub(super) inner_map_fd: u32,
    pub(super) numa_node: u32,
    pub(super) name: [u8; NAME],
}

/// Passes one command to the kernel.
///
/// # Safety
/// `attr` is what the command reads, and pointers in it are to memory as long as it says that
/// outlives the call.
pub(super) unsafe fn bpf<T>(command: libc::c_int, attr: &mut T) -> io::Result<i32> {
    // SAFETY: as the caller promises; the kernel reads and writes `size_of::<T>()` bytes at most.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// The same, where a descriptor comes back.
///
/// # Safety
/// As for [`bpf`], and the command is one that makes a descriptor.
pub(super) unsafe fn bpf_fd<T>(command: libc::c_int, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises; the descriptor is new and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attr)?)) }
}

pub(super) fn name_of(name: &str) -> [u8; NAME] {
    let mut to = [0; NAME];
    let wanted = name.bytes().map(|b| if b.is_ascii_alphanumeric() { b } else { b'_' });
    to[..NAME - 1].iter_mut().zip(wanted).for_each(|(to, byte)| *to = byte);
    to
}

pub(super) fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_kernel_takes() {
        assert_eq!(&name_of("weir-redirect_and_more")[..], b"weir_redirect_a\0");
    }
}
