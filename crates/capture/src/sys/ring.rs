//! The rings that the kernel writes frames into, packet(7) and the kernel's
//! Documentation/networking/packet_mmap.rst: of blocks (TPACKET_V3), and of slots for a frame each
//! (TPACKET_V2).
//!
//! The memory of a socket's ring is divided into blocks. The kernel fills one after the other and
//! hands each over by a bit of its status word; we hand it back by clearing the word.
//!
//! It is sound: a [`Block`] shows its bytes only between being taken from the kernel and
//! being given back. It is taken (the status read with acquire, so that what the kernel wrote
//! before is seen) and given back (with release) through `&mut Block`, which there is only while
//! no one else refers to it, by [`Arc::get_mut`]; so no slice of it outlives its time. The kernel
//! writes to no block that is ours. Blocks lie side by side within the mapping, which stays as
//! long as one of them is referred to, even when the socket is closed.
//!
//! A [`Run`] of slots is the same with a status word for each slot: it is a run only while all of
//! its slots are ours, and what it shows are these slots. Runs do not overlap, since slots are
//! taken in the order of the ring, each only if it is not part of a run.

use super::checked;
use super::packet::PacketSocket;
use std::collections::VecDeque;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the status word of a block stands: after a version and an offset.
const STATUS: usize = 8;

/// Bytes of a frame's place in rings before the third version; the kernel still wants to know.
const FRAME: u32 = 2048;

/// How large a ring is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRingSize {
    /// Blocks.
    pub(crate) blocks: usize,
    /// Bytes of each, a power of two of at least a page.
    pub(crate) block: usize,
    /// Milliseconds after which the kernel hands over a block that is not full.
    pub(crate) retire_ms: u32,
    /// Bytes to spare before each frame.
    pub(crate) reserve: usize,
}

/// The ring of a socket.
pub(crate) struct BlockRing {
    blocks: Vec<Arc<Block>>,
    /// The block that the kernel hands over next.
    next: usize,
    /// Blocks before that one that were taken and not given back yet.
    held: usize,
}

/// A block; reads as its bytes while it is ours, as nothing else.
pub(crate) struct Block {
    map: Arc<Map>,
    at: usize,
    len: usize,
    ours: bool,
}

/// The mapping.
struct Map {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a piece of memory that no thread owns; who may touch which part is said at the top.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: what was mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl BlockRing {
    /// Makes the ring of a socket, which must not have one yet.
    ///
    /// # Errors
    /// When the kernel refuses so much memory, or the sizes.
    pub(crate) fn new(socket: &PacketSocket, size: BlockRingSize) -> io::Result<BlockRing> {
        let BlockRingSize { blocks, block, retire_ms, reserve } = size;
        let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let block_size = u32::try_from(block).map_err(invalid)?;
        let block_nr = u32::try_from(blocks).map_err(invalid)?;
        socket.rings(reserve)?;
        socket.ring(&libc::tpacket_req3 {
            tp_block_size: block_size,
            tp_block_nr: block_nr,
            tp_frame_size: FRAME,
            tp_frame_nr: (block_size / FRAME).saturating_mul(block_nr),
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        })?;
        let map = Arc::new(Map::new(socket, block * blocks)?);
        let place = |i| Block { map: Arc::clone(&map), at: i * block, len: block, ours: false };
        Ok(BlockRing {
            blocks: (0..blocks).map(|i| Arc::new(place(i))).collect(),
            next: 0,
            held: 0,
        })
    }

    /// Takes the next block if the kernel has handed it over.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let number = self.next;
        if self.held == self.blocks.len() {
            return None;
        }
        let block = Arc::get_mut(&mut self.blocks[number])?;
        if block.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        block.ours = true;
        self.next = (number + 1) % self.blocks.len();
        self.held += 1;
        Some(number)
    }

    /// The bytes of a block, to be changed; empty unless it was taken and no batch refers to it.
    pub(crate) fn bytes_mut(&mut self, number: usize) -> &mut [u8] {
        match self.blocks.get_mut(number).and_then(Arc::get_mut) {
            Some(block) => block.bytes_mut(),
            None => &mut [],
        }
    }

    /// A block, to be referred to.
    pub(crate) fn block(&self, number: usize) -> &Arc<Block> {
        &self.blocks[number]
    }

    /// Gives back the blocks that no batch refers to, in the order in which they were taken, but
    /// for the `keep` last. Returns how many of the others are left.
    pub(crate) fn give_back(&mut self, keep: usize) -> usize {
        let all = self.blocks.len();
        while self.held > keep {
            let oldest = (self.next + all - self.held) % all;
            let Some(block) = Arc::get_mut(&mut self.blocks[oldest]) else { break };
            block.ours = false;
            block.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.held -= 1;
        }
        self.held.saturating_sub(keep)
    }
}

/// How large a ring of slots is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotSize {
    /// Slots.
    pub(crate) slots: usize,
    /// Bytes of each, a power of two, at most those of a block.
    pub(crate) slot: usize,
    /// Bytes that the kernel allocates at a time.
    pub(crate) block: usize,
    /// Bytes to spare before each frame.
    pub(crate) reserve: usize,
    /// Bytes of frames that are too long for a slot, and wait besides.
    pub(crate) queue: usize,
}

/// A ring of slots.
pub(crate) struct Slots {
    map: Arc<Map>,
    /// Bytes of a slot, and how many there are.
    slot: usize,
    count: usize,
    /// The slot that the kernel fills next.
    next: usize,
    /// Slots that were taken and not given back yet.
    taken: usize,
    /// Runs that were taken, in order; and others, to be used again.
    lent: VecDeque<Arc<Run>>,
    spare: Vec<Arc<Run>>,
}

/// Slots that follow one another and are ours; reads as their bytes.
pub(crate) struct Run {
    map: Arc<Map>,
    /// Its first byte in the mapping, and how many there are; none where it is not in use.
    at: usize,
    len: usize,
}

impl Slots {
    /// Makes the ring of a socket, which must not have one yet.
    ///
    /// # Errors
    /// When the kernel refuses so much memory, or the sizes.
    pub(crate) fn new(socket: &PacketSocket, size: SlotSize) -> io::Result<Slots> {
        let SlotSize { slots, slot, block, reserve, queue } = size;
        let number =
            |n: usize| u32::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let bytes = (slots * slot).next_multiple_of(block);
        let count = bytes / slot;
        let request = libc::tpacket_req {
            tp_block_size: number(block)?,
            tp_block_nr: number(bytes / block)?,
            tp_frame_size: number(slot)?,
            tp_frame_nr: number(count)?,
        };
        socket.slots(reserve, queue, &request)?;
        let map = Arc::new(Map::new(socket, bytes)?);
        let (lent, spare) = (VecDeque::new(), Vec::new());
        Ok(Slots { map, slot, count, next: 0, taken: 0, lent, spare })
    }

    /// Bytes of a slot.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Takes the next slots that the kernel has handed over, at most so many, if there are any. A
    /// slot whose status has one of these bits is taken alone.
    pub(crate) fn take(&mut self, most: usize, alone: u32) -> bool {
        let most = most.min(self.count - self.taken).min(self.count - self.next);
        let mut n = 0;
        while n < most {
            let status = self.status(self.next + n).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 || n > 0 && status & alone != 0 {
                break;
            }
            n += 1;
            if status & alone != 0 {
                break;
            }
        }
        if n == 0 {
            return false;
        }
        let new = || Arc::new(Run { map: Arc::clone(&self.map), at: 0, len: 0 });
        let mut run = self.spare.pop().unwrap_or_else(new);
        let Some(mine) = Arc::get_mut(&mut run) else { return false };
        (mine.at, mine.len) = (self.next * self.slot, n * self.slot);
        self.lent.push_back(run);
        self.taken += n;
        self.next = (self.next + n) % self.count;
        true
    }

    /// The run that was taken last, to be referred to.
    pub(crate) fn latest(&self) -> Option<&Arc<Run>> {
        self.lent.back()
    }

    /// Its bytes, to be changed; empty where a batch refers to it.
    pub(crate) fn latest_mut(&mut self) -> &mut [u8] {
        match self.lent.back_mut().and_then(Arc::get_mut) {
            Some(run) => run.bytes_mut(),
            None => &mut [],
        }
    }

    /// Gives back the runs that no batch refers to, in the order in which they were taken, but for
    /// the `keep` last. Returns how many of the others are left.
    pub(crate) fn give_back(&mut self, keep: usize) -> usize {
        while self.lent.len() > keep {
            let Some(run) = self.lent.front_mut().and_then(Arc::get_mut) else { break };
            let (first, n) = (run.at / self.slot, run.len / self.slot);
            run.len = 0;
            for slot in first..first + n {
                self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            }
            self.taken -= n;
            self.spare.extend(self.lent.pop_front());
        }
        self.lent.len().saturating_sub(keep)
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        debug_assert!(slot < self.count, "a slot of the ring");
        // SAFETY: slots lie within the mapping and begin with this word, aligned, since their size
        // is a power of two; the kernel reads and writes the word at any time, we by this, and as
        // a part of a run that is ours.
        unsafe { AtomicU32::from_ptr(self.map.start.as_ptr().add(slot * self.slot).cast()) }
    }
}

impl Run {
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: slots within the mapping that are ours and, by `&mut self`, nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.map.start.as_ptr().add(self.at), self.len) }
    }
}

impl AsRef<[u8]> for Run {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: slots within the mapping that are ours while anybody refers to the run.
        unsafe { std::slice::from_raw_parts(self.map.start.as_ptr().add(self.at), self.len) }
    }
}

impl Map {
    fn new(socket: &PacketSocket, len: usize) -> io::Result<Map> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the kernel puts it.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, socket.fd(), 0) };
        if start == libc::MAP_FAILED {
            checked(-1)?;
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Map { start, len }),
            None => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        }
    }
}

impl Block {
    fn start(&self) -> *mut u8 {
        // SAFETY: blocks lie within the mapping.
        unsafe { self.map.start.as_ptr().add(self.at) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: within the block, and aligned, since blocks begin at pages; the kernel reads and
        // writes the word at any time, we only by this.
        unsafe { AtomicU32::from_ptr(self.start().add(STATUS).cast()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if !self.ours {
            return &mut [];
        }
        // SAFETY: the block is ours and, by `&mut self`, nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        if !self.ours {
            return &[];
        }
        // SAFETY: the block is ours while anybody refers to it.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}
