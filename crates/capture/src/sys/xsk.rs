//! AF_XDP sockets: the memory frames are received into, and the rings about it.
//!
//! It is sound for these reasons. System calls and mappings are those of rustix and memmap2, which
//! check theirs; what is left is to read memory that the kernel writes:
//!
//! - *Rings.* Counters and entries are read and written as atomics, at offsets that the kernel
//!   gave and that are checked against the length of the mapping. No plain reference to them
//!   exists.
//! - *The UMEM* reads as one slice of bytes while the kernel fills frames in it. The bytes read
//!   through a batch are those of frames that the kernel has handed out and gets back only when no
//!   batch refers to them (see [`loans`](crate::loans)); the other bytes may change at any time.
//!   Code that looks a little beyond a frame may so see bytes that change, as in a mapped file that
//!   somebody writes to: nothing relies on reading the same value twice, all access is by checked
//!   slices, and what lies beyond a frame is masked away.
//!
//! Frames to be sent are written by their one owner as plain memory, and only read by the kernel,
//! while it is called.
//!
//! The kernel holds the pages of the UMEM as long as the socket is open, the mapping as long as any
//! batch refers to it: in whatever order they go, nothing is written to memory of others.

use super::error::KernelError;
use crate::xdp::ring::RingIndices;
use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpRingOffset, XdpStatistics,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a huge page, by their logarithm.
const HUGE_PAGE_BITS: u8 = 21;

/// Memory that frames are received into.
pub(crate) struct Umem {
    map: MmapRaw,
    /// Why it is not of huge pages.
    pub(crate) no_huge_pages: Option<io::Error>,
}

impl Umem {
    /// Memory of `bytes`, of huge pages if there are enough of them.
    pub(crate) fn new(bytes: usize) -> io::Result<Umem> {
        let huge = bytes.next_multiple_of(1 << HUGE_PAGE_BITS);
        let mut options = MmapOptions::new();
        let wanted = options.len(huge).huge(Some(HUGE_PAGE_BITS)).populate().map_anon();
        let no_huge_pages = match wanted {
            Ok(map) => return Ok(Umem { map: map.into(), no_huge_pages: None }),
            Err(error) => error,
        };
        let map = MmapRaw::from(MmapMut::map_anon(bytes)?);
        // The kernel may find some all the same; it may refuse the advice too.
        let _ = map.advise(Advice::HugePage);
        Ok(Umem { map, no_huge_pages: Some(no_huge_pages) })
    }
}

impl AsRef<[u8]> for Umem {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: memory that is mapped as long as `self` lives, all of it initialised by the
        // kernel; what it may write meanwhile is said at the top.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr(), self.map.len()) }
    }
}

impl Umem {
    /// Has a socket receive into it, in pieces of `frame_bytes`.
    pub(crate) fn serve(&self, socket: &XdpSocket, frame_bytes: u32) -> io::Result<()> {
        socket.register(self.map.as_ptr(), self.map.len(), frame_bytes)
    }
}

/// A reference to a UMEM with a count of its own.
pub(crate) struct View(pub(crate) Arc<Umem>);

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// A ring in memory shared with the kernel.
pub(crate) struct RingMap {
    map: MmapRaw,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    words: usize,
}

impl RingMap {
    fn new(socket: &OwnedFd, at: u64, offsets: XdpRingOffset, words: usize) -> io::Result<RingMap> {
        let old = KernelError::OlderThan("5.4");
        let place = |offset: u64| usize::try_from(offset).map_err(|_| KernelError::RingLayout);
        let (entries, flags) = (place(offsets.desc)?, place(offsets.flags.ok_or(old)?)?);
        let (producer, consumer) = (place(offsets.producer)?, place(offsets.consumer)?);
        let len = entries.saturating_add(words * size_of::<u64>());
        let map = MmapOptions::new().offset(at).len(len).populate().map_raw(socket)?;
        // Mappings begin with a page, so that these offsets align as the addresses do.
        let fits = [producer, consumer, flags].iter().all(|&o| o % 4 == 0 && o < len - 3);
        if !fits || entries % 8 != 0 {
            return Err(KernelError::RingLayout.into());
        }
        Ok(RingMap { map, producer, consumer, flags, entries, words })
    }

    fn counter(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned, as `new` checked; mapped as long as `self` lives;
        // this process reads and writes it as an atomic only, and so does the kernel.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }
}

impl RingIndices for RingMap {
    fn producer(&self) -> &AtomicU32 {
        self.counter(self.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.counter(self.consumer)
    }

    fn flags(&self) -> &AtomicU32 {
        self.counter(self.flags)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: within the mapping, whose length was made of these two, and aligned, as `new`
        // checked; mapped as long as `self` lives; read and written as atomics only.
        unsafe {
            let start = self.map.as_ptr().add(self.entries).cast::<AtomicU64>();
            std::slice::from_raw_parts(start, self.words)
        }
    }
}

/// An AF_XDP socket.
pub(crate) struct XdpSocket(OwnedFd);

impl XdpSocket {
    /// A socket in the network namespace of this thread.
    pub(crate) fn new() -> io::Result<XdpSocket> {
        let flags = SocketFlags::CLOEXEC;
        Ok(XdpSocket(net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?))
    }

    /// Says which memory frames are in, in pieces of `frame_bytes`. The kernel checks that it is
    /// this process's, and holds its pages.
    pub(crate) fn register(&self, at: *const u8, len: usize, frame_bytes: u32) -> io::Result<()> {
        let region = XdpUmemReg {
            addr: at as u64,
            len: len as u64,
            chunk_size: frame_bytes,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        Ok(sockopt::set_xdp_umem_reg(&self.0, region)?)
    }

    /// Makes the fill ring and the receive ring, with so many entries each, a power of two.
    pub(crate) fn rings(&self, entries: u32) -> io::Result<(RingMap, RingMap)> {
        sockopt::set_xdp_umem_fill_ring_size(&self.0, entries)?;
        // Nothing is sent, but without this ring no socket can be bound.
        sockopt::set_xdp_umem_completion_ring_size(&self.0, 1)?;
        sockopt::set_xdp_rx_ring_size(&self.0, entries)?;
        let offsets = sockopt::xdp_mmap_offsets(&self.0)?;
        let n = entries as usize;
        let fill = RingMap::new(&self.0, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, n)?;
        let rx = RingMap::new(&self.0, XDP_PGOFF_RX_RING, offsets.rx, 2 * n)?;
        Ok((fill, rx))
    }

    /// Makes the completion ring and the send ring, with so many entries, powers of two.
    pub(crate) fn send_rings(&self, tx: u32, completion: u32) -> io::Result<(RingMap, RingMap)> {
        // Nothing is received, but without this ring no socket can be bound.
        sockopt::set_xdp_umem_fill_ring_size(&self.0, 1)?;
        sockopt::set_xdp_umem_completion_ring_size(&self.0, completion)?;
        sockopt::set_xdp_tx_ring_size(&self.0, tx)?;
        let offsets = sockopt::xdp_mmap_offsets(&self.0)?;
        let back = completion as usize;
        let back = RingMap::new(&self.0, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, back)?;
        let tx = RingMap::new(&self.0, XDP_PGOFF_TX_RING, offsets.tx, 2 * tx as usize)?;
        Ok((back, tx))
    }

    /// How many bytes may be on their way; the system may allow less.
    pub(crate) fn send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.set(libc::SO_SNDBUF, u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// Has the kernel send what is in the send ring, as far as it does at once.
    pub(crate) fn send_now(&self) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(net::send(&self.0, &[], flags).map(drop)?)
    }

    /// Receives the frames of this queue from here on, those that a program redirects here; what is
    /// sent leaves by it.
    pub(crate) fn bind(&self, ifindex: u32, queue: u32, zero_copy: bool) -> io::Result<()> {
        let mode = match zero_copy {
            true => SocketAddrXdpFlags::XDP_ZEROCOPY,
            false => SocketAddrXdpFlags::XDP_COPY,
        };
        let flags = mode | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        Ok(net::bind(&self.0, &SocketAddrXdp::new(flags, ifindex, queue))?)
    }

    /// Has the kernel look after this socket's queue when it is called rather than by interrupts:
    /// for up to `micros` at a time, and up to `budget` frames (Linux 5.11).
    pub(crate) fn prefer_busy_poll(&self, micros: u32, budget: u32) -> io::Result<()> {
        self.set(libc::SO_PREFER_BUSY_POLL, 1)?;
        self.set(libc::SO_BUSY_POLL, micros)?;
        self.set(libc::SO_BUSY_POLL_BUDGET, budget)
    }

    /// Whether the kernel knows whom to poll for the socket's queue (`SO_INCOMING_NAPI_ID`).
    pub(crate) fn is_pollable(&self) -> bool {
        let (mut napi, mut len) = (0_u32, size_of::<u32>() as libc::socklen_t);
        let (at, option) = ((&raw mut napi).cast(), libc::SO_INCOMING_NAPI_ID);
        let fd = self.0.as_raw_fd();
        // SAFETY: room for a number, and its size.
        let got = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, at, &mut len) };
        got == 0 && napi > 0
    }

    fn set(&self, option: libc::c_int, value: u32) -> io::Result<()> {
        let (at, len) = (std::ptr::from_ref(&value).cast(), size_of::<u32>() as u32);
        // SAFETY: an option of 4 bytes, read from a number that lives through the call.
        match unsafe { libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, option, at, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Calls the kernel to go on filling frames.
    pub(crate) fn wake(&self) {
        // All that it can say is that there is nothing to do now, or what `error` says.
        let _ = net::recv(&self.0, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
    }

    /// The kernel's counts for this socket.
    pub(crate) fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(sockopt::xdp_statistics(&self.0)?)
    }

    /// The error of the socket, told once.
    pub(crate) fn error(&self) -> Option<io::Error> {
        match sockopt::socket_error(&self.0) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error.into()),
        }
    }

    /// Its number in this process, for a map of sockets.
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
