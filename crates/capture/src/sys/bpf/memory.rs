//! Memory that programs and this process share: the one value of an array map, mapped.
//!
//! It is sound: the mapping is as long as the value, filled up to whole pages, which the
//! kernel checks; it stays until the [`SharedMemory`] is dropped, and is only shown as words that
//! are read and written as atomics, since programs write to them at any time.

use super::call::{MapCreate, bpf_fd, name_of};
use super::map::{MAP_CREATE, MapKind};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// `BPF_F_MMAPABLE` (Linux 5.5).
const MMAPABLE: u32 = 1 << 10;

/// `MEMBARRIER_CMD_QUERY` and `MEMBARRIER_CMD_GLOBAL` of membarrier(2).
const QUERY: libc::c_int = 0;
const GLOBAL: libc::c_int = 1;

/// The one value of an array map, which programs address by
/// [`LoadMapValue`](weir_ebpf::EbpfInstruction::LoadMapValue): zeros at first. Reading and writing
/// it takes no system call.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    start: NonNull<AtomicU64>,
    words: usize,
    /// Bytes that are mapped.
    mapped: usize,
}

// SAFETY: a piece of memory that no thread owns; it is only seen as atomics.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// A map with one value of so many words of 8 bytes.
    ///
    /// # Errors
    /// Without the capability CAP_BPF, where there is not as much memory, or before Linux 5.5.
    pub fn new(name: &str, words: usize) -> io::Result<SharedMemory> {
        let invalid = || io::Error::from_raw_os_error(libc::E2BIG);
        let bytes = words.checked_mul(8).filter(|bytes| *bytes > 0).ok_or_else(invalid)?;
        let mut attr = MapCreate {
            kind: MapKind::Array as u32,
            key_size: 4,
            value_size: u32::try_from(bytes).map_err(|_| invalid())?,
            max_entries: 1,
            flags: MMAPABLE,
            inner_map_fd: 0,
            numa_node: 0,
            name: name_of(name),
        };
        // SAFETY: the struct that BPF_MAP_CREATE reads, without pointers; it makes a descriptor.
        let fd = unsafe { bpf_fd(MAP_CREATE, &mut attr)? };
        let mapped = bytes.next_multiple_of(rustix::param::page_size());
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), mapped, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(invalid)?;
        Ok(SharedMemory { fd, start, words, mapped })
    }

    /// Its number in this process, for instructions that name the map.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The words. Programs may change them at any time.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped, aligned to a page, as long as `self` lives; atomics may
        // be changed by others.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: what was mapped; no slice of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// Waits until all programs have ended that were running when it was called: those that start
/// later see what this thread wrote before. It takes some milliseconds.
///
/// # Errors
/// On kernels that keep processors free of ticks (`nohz_full`), and without membarrier(2).
pub fn wait_for_programs() -> io::Result<()> {
    membarrier(GLOBAL).map(|_| ())
}

/// Whether [`wait_for_programs`] works on this kernel.
pub fn can_wait_for_programs() -> bool {
    membarrier(QUERY).is_ok_and(|commands| commands & libc::c_long::from(GLOBAL) != 0)
}

/// The kernel implements the global barrier by `synchronize_rcu`, which waits for each program
/// since these run as readers of RCU.
fn membarrier(command: libc::c_int) -> io::Result<libc::c_long> {
    // SAFETY: it takes three plain numbers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
