//! A loop over the ring of an AF_PACKET socket (TPACKET_V3, packet(7)) that receives frames and
//! drops them, by hand: what a capture is measured against.
//!
//! It is sound: blocks lie within the mapping, whose size is that of the ring. The status
//! word of a block is read and written as an atomic; headers are read only between its coming and
//! its being given back, and only where all of a header lies within the block.

use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where things stand in the header of a block (`struct tpacket_block_desc`).
const STATUS: usize = 8;
const FRAMES: usize = 12;
const FIRST: usize = 16;

/// In the header of a frame (`struct tpacket3_hdr`): where the next is, and bytes on the wire.
const NEXT: usize = 0;
const LENGTH: usize = 16;
const HEADER: usize = 48;

/// Bytes of a frame's place, which rings of this version still ask for.
const FRAME: u32 = 2048;

/// A socket and its ring.
pub(crate) struct Ring {
    socket: OwnedFd,
    map: MmapRaw,
    block: usize,
    blocks: usize,
    next: usize,
    /// Frames that the kernel said were for the ring, and those that found no room.
    passed: u64,
    dropped: u64,
}

impl Ring {
    /// Receives the frames of an interface into so many blocks of this size, a power of two; one
    /// that is not full is handed over after so many milliseconds.
    pub(crate) fn open(
        ifindex: u32,
        (blocks, block): (usize, usize),
        retire_ms: u32,
    ) -> io::Result<Ring> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: plain numbers. Protocol 0: no frame comes before the socket is bound.
        let fd = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: a descriptor just made, owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        let (block_size, block_nr) = (block as u32, blocks as u32);
        let request = libc::tpacket_req3 {
            tp_block_size: block_size,
            tp_block_nr: block_nr,
            tp_frame_size: FRAME,
            tp_frame_nr: block_size / FRAME * block_nr,
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let map = MmapOptions::new().len(block * blocks).populate().map_raw(&socket)?;
        // SAFETY: plain data, of which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = ifindex as libc::c_int;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: an address of its own length.
        checked(unsafe { libc::bind(fd, (&raw const address).cast(), len) })?;
        Ok(Ring { socket, map, block, blocks, next: 0, passed: 0, dropped: 0 })
    }

    /// Takes all blocks that the kernel has handed over, walks their frames, and gives them back;
    /// how many frames, and their bytes.
    #[inline(always)]
    pub(crate) fn turn(&mut self) -> (usize, u64) {
        let (mut frames, mut bytes) = (0, 0);
        loop {
            // SAFETY: a block within the mapping.
            let block = unsafe { self.map.as_mut_ptr().add(self.next * self.block) };
            // SAFETY: blocks begin at pages, so that it is aligned; an atomic on either side.
            let status = unsafe { AtomicU32::from_ptr(block.add(STATUS).cast()) };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return (frames, bytes);
            }
            // SAFETY: a block is longer than its header, and ours until its status is written.
            let word = |at: usize| unsafe { block.add(at).cast::<u32>().read_unaligned() };
            let (n, mut at) = (word(FRAMES), word(FIRST) as usize);
            for _ in 0..n {
                if at + HEADER > self.block {
                    break;
                }
                bytes += u64::from(word(at + LENGTH));
                frames += 1;
                at += word(at + NEXT) as usize;
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.blocks;
        }
    }

    /// Frames that the kernel said were for the ring so far, and those of them that found no room.
    pub(crate) fn counts(&mut self) -> io::Result<(u64, u64)> {
        // SAFETY: plain data, of which zero is a value.
        let mut counts: libc::tpacket_stats_v3 = unsafe { mem::zeroed() };
        let mut len = size_of_val(&counts) as libc::socklen_t;
        let (fd, level) = (self.socket.as_raw_fd(), libc::SOL_PACKET);
        let to = (&raw mut counts).cast();
        // SAFETY: room for the counts, and its size.
        checked(unsafe { libc::getsockopt(fd, level, libc::PACKET_STATISTICS, to, &mut len) })?;
        // They begin anew with each call.
        self.passed += u64::from(counts.tp_packets);
        self.dropped += u64::from(counts.tp_drops);
        Ok((self.passed, self.dropped))
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn set<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let (at, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: a value and its size, read while the call lasts.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, at, len) };
    checked(set).map(drop)
}
