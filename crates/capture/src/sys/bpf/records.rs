//! A ring of records that programs write and this process reads (`BPF_MAP_TYPE_RINGBUF`).
//!
//! It is sound for these reasons. The kernel maps a page with the counter of what was read, one
//! with the counter of what was written, and the records twice, one copy after the other, so that
//! each record lies in one piece. Counters and headers are read as atomics only. The records read
//! as one slice of bytes that cannot be written here, while programs write to the part that was not
//! handed out yet or was given back: as for memory of AF_XDP ([`xsk`](crate::sys::xsk)), nothing
//! relies on reading the same value twice, and all access is by checked slices.

use super::call::{MapCreate, bpf_fd, name_of};
use super::map::MAP_CREATE;
use crate::tcx::ring::Records;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// `BPF_MAP_TYPE_RINGBUF` (Linux 5.8).
const RING_BUFFER: u32 = 27;

/// A ring of records.
pub(crate) struct RecordRing {
    fd: OwnedFd,
    /// The page with the counter of what was read.
    consumer: MmapRaw,
    /// The page with the counter of what was written, and the records twice.
    producer: MmapRaw,
    page: usize,
    size: usize,
}

impl RecordRing {
    /// A ring of so many bytes, a power of two of pages.
    ///
    /// # Errors
    /// Without the capability CAP_BPF, or where there is not as much memory.
    pub(crate) fn new(name: &str, size: usize) -> io::Result<RecordRing> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let mut attr = MapCreate {
            kind: RING_BUFFER,
            key_size: 0,
            value_size: 0,
            max_entries: u32::try_from(size).map_err(|_| invalid())?,
            flags: 0,
            inner_map_fd: 0,
            numa_node: 0,
            name: name_of(name),
        };
        // SAFETY: the struct that BPF_MAP_CREATE reads, without pointers; it makes a descriptor.
        let fd = unsafe { bpf_fd(MAP_CREATE, &mut attr)? };
        let page = rustix::param::page_size();
        let consumer = MmapOptions::new().len(page).map_raw(&fd)?;
        let mut records = MmapOptions::new();
        let producer = records.offset(page as u64).len(page + 2 * size).map_raw_read_only(&fd)?;
        Ok(RecordRing { fd, consumer, producer, page, size })
    }

    /// Its number in this process, for instructions that name the map.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

impl AsFd for RecordRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Records for RecordRing {
    fn produced(&self) -> &AtomicU64 {
        // SAFETY: the start of a page that is mapped as long as `self` lives; read as an atomic.
        unsafe { AtomicU64::from_ptr(self.producer.as_mut_ptr().cast()) }
    }

    fn consumed(&self) -> &AtomicU64 {
        // SAFETY: as above; this process alone writes it.
        unsafe { AtomicU64::from_ptr(self.consumer.as_mut_ptr().cast()) }
    }

    fn header(&self, at: usize) -> &AtomicU32 {
        assert!(at < self.size && at.is_multiple_of(8), "a record of the ring");
        // SAFETY: within the mapping and aligned, as was just checked; read as an atomic only.
        unsafe { AtomicU32::from_ptr(self.producer.as_mut_ptr().add(self.page + at).cast()) }
    }

    fn size(&self) -> usize {
        self.size
    }
}

impl AsRef<[u8]> for RecordRing {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: mapped as long as `self` lives, all of it initialised by the kernel; what
        // programs may write meanwhile is said at the top.
        unsafe { std::slice::from_raw_parts(self.producer.as_ptr().add(self.page), 2 * self.size) }
    }
}
