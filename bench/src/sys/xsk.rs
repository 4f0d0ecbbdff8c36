//! A loop over AF_XDP sockets that receives frames and drops them, by hand and as short as can be:
//! what a capture is measured against.
//!
//! It is sound: rings are mapped where and as long as the kernel says, which is checked;
//! counters and entries are read and written through raw pointers into those mappings, counters as
//! atomics, at positions masked by the size of the ring. The mapping lives as long as the pointers,
//! in the same value. Frames are not looked at: nothing here reads the memory that the kernel
//! fills.

use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_UMEM_PGOFF_FILL_RING, XdpRingOffset,
    XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{self, AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of memory for a frame.
pub(crate) const FRAME: usize = 2048;

/// Bytes of a huge page, by their logarithm.
const HUGE_PAGE_BITS: u8 = 21;

/// `XDP_RING_NEED_WAKEUP`.
const NEED_WAKEUP: u32 = 1;

/// How busy-polling is set: microseconds at a time, and frames at a time.
const BUSY_POLL_MICROS: u32 = 20;
const BUSY_POLL_BUDGET: u32 = 256;

/// A descriptor of a received frame (`struct xdp_desc`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    address: u64,
    len: u32,
    _options: u32,
}

/// A ring shared with the kernel.
struct Ring {
    map: MmapRaw,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    mask: u32,
}

/// A socket of one receive queue, and its memory.
pub(crate) struct Xsk {
    socket: OwnedFd,
    fill: Ring,
    rx: Ring,
    /// The descriptors that were put into the fill ring, and those taken from the other.
    filled: u32,
    taken: u32,
    // The kernel holds its pages; this keeps the addresses ours.
    _memory: MmapMut,
}

impl Ring {
    fn new(
        socket: &OwnedFd,
        at: u64,
        offsets: XdpRingOffset,
        (entries, entry): (u32, usize),
    ) -> io::Result<Ring> {
        let place = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let old = || io::Error::new(io::ErrorKind::Unsupported, "the kernel is older than 5.4");
        let flags = place(offsets.flags.ok_or_else(old)?)?;
        let (producer, consumer) = (place(offsets.producer)?, place(offsets.consumer)?);
        let start = place(offsets.desc)?;
        let len = start + entries as usize * entry;
        let map = MmapOptions::new().offset(at).len(len).populate().map_raw(socket)?;
        let fits = [producer, consumer, flags].iter().all(|&o| o % 4 == 0 && o + 4 <= len);
        if !fits || start % 8 != 0 || !entries.is_power_of_two() {
            return Err(io::Error::other("the kernel lays its rings out in an unknown way"));
        }
        Ok(Ring { map, producer, consumer, flags, entries: start, mask: entries - 1 })
    }

    #[inline(always)]
    fn counter(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned, as `new` checked; an atomic on either side.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }
}

impl Xsk {
    /// Receives frames of a queue that a program redirects here, into memory for so many frames,
    /// a power of two. With `busy`, the kernel looks after the queue when it is asked to.
    pub(crate) fn open(ifindex: u32, queue: u32, frames: u32, busy: bool) -> io::Result<Xsk> {
        let flags = SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let bytes = frames as usize * FRAME;
        let huge = MmapOptions::new().len(bytes).huge(Some(HUGE_PAGE_BITS)).populate().map_anon();
        let memory = match huge {
            Ok(memory) => memory,
            Err(_) => {
                let memory = MmapMut::map_anon(bytes)?;
                // Only advice: small pages are slower, not wrong.
                let _ = memory.advise(Advice::HugePage);
                memory
            }
        };
        let region = XdpUmemReg {
            addr: memory.as_ptr() as u64,
            len: bytes as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, region)?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, frames)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, 1)?;
        sockopt::set_xdp_rx_ring_size(&socket, frames)?;
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let fill = Ring::new(&socket, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, (frames, 8))?;
        let entry = size_of::<Descriptor>();
        let rx = Ring::new(&socket, XDP_PGOFF_RX_RING, offsets.rx, (frames, entry))?;
        if busy {
            set(&socket, libc::SO_PREFER_BUSY_POLL, 1)?;
            set(&socket, libc::SO_BUSY_POLL, BUSY_POLL_MICROS)?;
            set(&socket, libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET)?;
        }
        for i in 0..frames {
            // SAFETY: there are `frames` entries of 8 bytes, aligned to them, and the kernel reads
            // none before the counter says so.
            unsafe {
                let entry = fill.map.as_mut_ptr().add(fill.entries).cast::<u64>();
                entry.add(i as usize).write(u64::from(i) * FRAME as u64);
            }
        }
        fill.counter(fill.producer).store(frames, Ordering::Release);
        let mode = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        net::bind(&socket, &SocketAddrXdp::new(mode, ifindex, queue))?;
        Ok(Xsk { socket, fill, rx, filled: frames, taken: 0, _memory: memory })
    }

    /// Takes all frames that have come and gives their memory back; how many.
    #[inline(always)]
    pub(crate) fn turn(&mut self) -> usize {
        let come = self.rx.counter(self.rx.producer).load(Ordering::Acquire);
        let n = come.wrapping_sub(self.taken);
        if n == 0 {
            return 0;
        }
        for i in 0..n {
            let from = (self.taken.wrapping_add(i) & self.rx.mask) as usize;
            let to = (self.filled.wrapping_add(i) & self.fill.mask) as usize;
            // SAFETY: both positions are masked by the sizes of the rings, whose entries lie within
            // their mappings, aligned. The kernel has written the descriptor, and does not read the
            // other entry before the counter says so: as many frames as entries go round.
            unsafe {
                let entries = self.rx.map.as_mut_ptr().add(self.rx.entries);
                let frame = entries.cast::<Descriptor>().add(from).read();
                debug_assert!(frame.len as usize <= FRAME);
                let entries = self.fill.map.as_mut_ptr().add(self.fill.entries);
                entries.cast::<u64>().add(to).write(frame.address & !(FRAME as u64 - 1));
            }
        }
        (self.taken, self.filled) = (self.taken.wrapping_add(n), self.filled.wrapping_add(n));
        self.fill.counter(self.fill.producer).store(self.filled, Ordering::Release);
        self.rx.counter(self.rx.consumer).store(self.taken, Ordering::Release);
        if self.fill.counter(self.fill.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0 {
            self.wake();
        }
        n as usize
    }

    /// Has the kernel look after the queue.
    pub(crate) fn wake(&self) {
        // All that it can say is that there is nothing to do now.
        let _ = net::recv(&self.socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
    }

    /// The counts of the kernel.
    pub(crate) fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(sockopt::xdp_statistics(&self.socket)?)
    }

    /// The number of the NAPI that looks after the queue, as far as the kernel knows; 0 if not.
    pub(crate) fn napi(&self) -> io::Result<u32> {
        let (mut napi, mut len) = (0_u32, size_of::<u32>() as libc::socklen_t);
        let (fd, to) = (self.socket.as_raw_fd(), (&raw mut napi).cast());
        let (level, option) = (libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID);
        // SAFETY: room for a number, and its size.
        match unsafe { libc::getsockopt(fd, level, option, to, &mut len) } {
            0 => Ok(napi),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its number in this process, for a map of sockets.
    pub(crate) fn number(&self) -> i32 {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Xsk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set(socket: &OwnedFd, option: libc::c_int, value: u32) -> io::Result<()> {
    let (at, len) = (ptr::from_ref(&value).cast(), size_of::<u32>() as u32);
    // SAFETY: an option of 4 bytes, read from a number that lives through the call.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, at, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
