//! A port that receives, its memory, and its buffers.

use super::{checked, lock};
use crate::copies::Copies;
use crate::counts::Counts;
use crate::limits::COPIES_MIN;
use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use weir_capture::loans::Loans;
use weir_packet::limits::BATCH;
use weir_packet::source::{Chunk, FrameBatch, LinkType};

/// Of a frame that is in several pieces, or not in the memory of its port.
const APART: u32 = u32::MAX;

/// What a port is to be like.
#[repr(C)]
pub(crate) struct Wish {
    /// Bytes of memory for buffers.
    pub(crate) memory: usize,
    /// Buffers that batches may hold at least.
    pub(crate) lent_min: u32,
    /// Frames that the ring of a queue holds.
    pub(crate) descriptors: u32,
    pub(crate) mtu: u32,
    pub(crate) queues: u16,
    pub(crate) promiscuous: bool,
    /// Whether the device says when frames came.
    pub(crate) stamps: bool,
    /// Whether its driver switches flags of an interface of the kernel, which would stay so.
    pub(crate) of_kernel: bool,
}

/// `struct weir_dpdk_port`.
#[repr(C)]
struct Raw {
    memory: *mut u8,
    bytes: usize,
    pool: *mut u8,
    buffers: u32,
    in_rings: u32,
    not_promiscuous: c_int,
    mtu: u32,
    number: u16,
    queues: u16,
    descriptors: u16,
    stamp_at: c_int,
    socket: c_int,
    stamp_flag: u64,
}

/// `struct weir_dpdk_frame`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Frame {
    stamp: u64,
    buffer: u32,
    bytes: u32,
    len: u32,
    has_stamp: bool,
}

const _: () = assert!(size_of::<Wish>() == 32, "as in the C");
const _: () = assert!(size_of::<Raw>() == 64, "as in the C");
const _: () = assert!(size_of::<Frame>() == 24, "as in the C");
const _: () = assert!(size_of::<Counts>() == 32, "as in the C");

unsafe extern "C" {
    fn weir_dpdk_open(port: u16, wish: *const Wish, it: *mut Raw, step: *mut c_int) -> c_int;
    fn weir_dpdk_close(it: *mut Raw);
    fn weir_dpdk_is_removed(port: u16) -> bool;
    fn weir_dpdk_counts(port: u16, counts: *mut Counts) -> c_int;
    fn weir_dpdk_link(port: u16) -> c_int;
    fn weir_dpdk_clock(port: u16, ticks: *mut u64) -> c_int;
    fn weir_dpdk_receive(
        it: *const Raw,
        queue: u16,
        frames: *mut Frame,
        most: u16,
        unread: *mut u64,
    ) -> u16;
    fn weir_dpdk_copy(it: *const Raw, buffer: u32, to: *mut u8, len: u32) -> u32;
    fn weir_dpdk_release(it: *const Raw, buffers: *const u32, n: usize);
}

/// All memory of a port, with a count of its own.
struct View(*const u8, usize);

// SAFETY: memory of the process that is there for good; it is only read.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: memory that stays mapped as long as the process lives, initialised by the system;
        // what may be written to it meanwhile is said at the top of `sys.rs`.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }
    }
}

/// Which step of opening a port failed, and why.
pub(crate) struct NotOpened {
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
}

/// A port that frames are received from. Dropping it switches it off.
pub(crate) struct Port {
    raw: Raw,
    loans: Loans,
    /// Buffers that batches may hold.
    lent_max: usize,
    /// Frames that were taken, and which of them were not delivered yet.
    taken: Box<[Frame; BATCH]>,
    rest: Range<usize>,
    /// The queue to ask first.
    next: u16,
    /// Whether all queues were found empty when they were last to be asked.
    empty: bool,
    /// Memory for copies of frames that are in pieces.
    copies: Copies,
    /// Frames in buffers of others, which can't be read, and such whose tags can't be put back.
    unread: u64,
}

// SAFETY: DPDK lets a port be used by any thread, one at a time; all that the pointers refer to is
// there for good.
unsafe impl Send for Port {}

impl Port {
    /// Switches a port on.
    pub(crate) fn open(port: u16, wish: &Wish) -> Result<Port, NotOpened> {
        let _alone = lock();
        let mut raw = Raw {
            memory: ptr::null_mut(),
            bytes: 0,
            pool: ptr::null_mut(),
            buffers: 0,
            in_rings: 0,
            not_promiscuous: 0,
            mtu: 0,
            number: port,
            queues: 0,
            descriptors: 0,
            stamp_at: -1,
            socket: -1,
            stamp_flag: 0,
        };
        let mut step = 0;
        // SAFETY: structures that live through the call, the last two of which are written to.
        let opened = checked(unsafe { weir_dpdk_open(port, wish, &raw mut raw, &raw mut step) });
        opened.map_err(|error| {
            let doing = match step {
                0 => "asking the device what it can",
                1 => "setting the device up",
                2 => "reserving memory for frames",
                3 => "setting up its queues",
                _ => "switching it on",
            };
            NotOpened { doing, error }
        })?;
        let lent_max = raw.buffers.saturating_sub(raw.in_rings) as usize;
        let (memory, bytes) = (raw.memory.cast_const(), raw.bytes);
        let loans = Loans::new(lent_max, || -> Chunk { Arc::new(View(memory, bytes)) });
        let (taken, copies) =
            (Box::new([Frame::default(); BATCH]), Copies::new(wish.memory.max(COPIES_MIN)));
        let (rest, next, empty, unread) = (0..0, 0, false, 0);
        Ok(Port { raw, loans, lent_max, taken, rest, next, empty, copies, unread })
    }

    /// Queues that it has.
    pub(crate) fn queues(&self) -> u16 {
        self.raw.queues
    }

    /// Frames that the ring of a queue holds.
    pub(crate) fn descriptors(&self) -> u16 {
        self.raw.descriptors
    }

    /// Buffers that it has.
    pub(crate) fn buffers(&self) -> u32 {
        self.raw.buffers
    }

    /// Longest frame behind its Ethernet header that it takes.
    pub(crate) fn mtu(&self) -> u32 {
        self.raw.mtu
    }

    /// Why it does not take, or leave, frames that are meant for others.
    pub(crate) fn not_promiscuous(&self) -> Option<io::Error> {
        checked(self.raw.not_promiscuous).err()
    }

    /// Frames that came and can't be read.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    /// Whether [`Port::fill`] found that no frames are waiting, when it was last called.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Whether batches hold so much that frames can't be taken.
    pub(crate) fn is_short(&self) -> bool {
        !self.loans.can_lend() || self.room() == 0 || self.copies.full
    }

    fn room(&self) -> usize {
        self.lent_max.saturating_sub(self.loans.frames_out() + self.rest.len())
    }

    /// Gives buffers back that no batch refers to any more: those that are easily found, or all.
    pub(crate) fn collect(&mut self, thorough: bool) {
        let thorough = thorough || self.loans.frames_out() > self.lent_max / 4 * 3;
        let raw = &raw const self.raw;
        // SAFETY: buffers of this port that were received and lent, which nobody refers to now, and
        // which are not among the loans any more.
        self.loans.collect(thorough, |all| unsafe {
            weir_dpdk_release(raw, all.as_ptr(), all.len());
        });
    }

    /// Takes frames that have come, if none are left from before; whether there are any.
    fn receive(&mut self) -> bool {
        if !self.rest.is_empty() {
            return true;
        }
        let most = BATCH.min(self.room());
        let (mut n, mut idle, queues) = (0, 0, self.raw.queues);
        // Until all queues have been found empty, one after the other.
        while idle < queues && n < most {
            let queue = self.next % queues;
            self.next = (queue + 1) % queues;
            let part = &mut self.taken[n..most];
            let (raw, room) = (&raw const self.raw, part.len() as u16);
            // SAFETY: a port that is open and one of its queues, which nobody else asks meanwhile;
            // room for so many frames, which are written to.
            let came = unsafe {
                weir_dpdk_receive(raw, queue, part.as_mut_ptr(), room, &raw mut self.unread)
            };
            let came_now = &self.taken[n..n + usize::from(came)];
            n += came_now.len();
            // Those in pieces take many buffers, which copying gives back.
            if came_now.iter().any(|frame| frame.bytes == APART) {
                break;
            }
            idle = if came == 0 { idle + 1 } else { 0 };
        }
        self.rest = 0..n;
        self.empty = n == 0 && idle == queues;
        n > 0
    }

    /// Fills a batch with frames that have come, up to `snap` bytes of each, numbered from `seq`
    /// on; `time` makes their times of what the device says. How many there were.
    pub(crate) fn fill(
        &mut self,
        batch: &mut FrameBatch,
        (seq, snap): (u64, u32),
        mut time: impl FnMut(Option<u64>) -> i64,
    ) -> u64 {
        self.empty = false;
        if !self.loans.can_lend() || !self.receive() {
            return 0;
        }
        let mut n = 0;
        let mut time = |frame: &Frame| time(frame.has_stamp.then_some(frame.stamp));
        let whole = |frame: &&Frame| frame.bytes != APART;
        let frames = &self.taken[self.rest.clone()];
        if frames.first().is_some_and(|frame| !whole(&frame)) {
            return self.copy(batch, (seq, snap), time);
        }
        self.loans.lend(|chunk, buffers| {
            batch.restart(chunk, 0, LinkType::ETHERNET);
            for frame in frames.iter().take_while(whole) {
                let ts = time(frame);
                batch.push(ts, seq + n, frame.bytes, frame.len.min(snap), frame.len);
                buffers.push(frame.buffer);
                n += 1;
            }
        });
        self.rest.start += n as usize;
        n
    }

    /// Fills a batch with all frames that were taken, copied, if there is memory; how many.
    fn copy(
        &mut self,
        batch: &mut FrameBatch,
        (seq, snap): (u64, u32),
        mut time: impl FnMut(&Frame) -> i64,
    ) -> u64 {
        let frames = &self.taken[self.rest.clone()];
        let need = frames.iter().map(|frame| frame.len.min(snap) as usize).sum();
        let Some(mut bytes) = self.copies.take(need) else { return 0 };
        self.rest = 0..0;
        let raw = &raw const self.raw;
        let mut places = Vec::with_capacity(frames.len());
        for frame in frames {
            let (start, len) = (bytes.len(), frame.len.min(snap));
            bytes.resize(start + len as usize, 0);
            // SAFETY: a buffer that was received and not given back, and room for so many bytes.
            let got =
                unsafe { weir_dpdk_copy(raw, frame.buffer, bytes[start..].as_mut_ptr(), len) };
            places.push((time(frame), start as u32, got, frame.len));
        }
        let buffers: Vec<u32> = frames.iter().map(|frame| frame.buffer).collect();
        // SAFETY: buffers that were received, and that no list of ours has any more.
        unsafe { weir_dpdk_release(raw, buffers.as_ptr(), buffers.len()) };
        let chunk: Chunk = self.copies.lend(bytes);
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        for (i, (ts, start, caplen, len)) in places.into_iter().enumerate() {
            batch.push(ts, seq + i as u64, start, caplen, len);
        }
        batch.len() as u64
    }

    /// What it has counted.
    pub(crate) fn counts(&self) -> io::Result<Counts> {
        let mut counts = Counts::default();
        // SAFETY: a structure that lives through the call and is written to.
        checked(unsafe { weir_dpdk_counts(self.raw.number, &raw mut counts) })?;
        Ok(counts)
    }

    /// Whether its link is up, where it says so.
    pub(crate) fn is_up(&self) -> Option<bool> {
        // SAFETY: asks a port that is open.
        checked(unsafe { weir_dpdk_link(self.raw.number) }).ok().map(|up| up > 0)
    }

    /// Whether the device was taken away.
    pub(crate) fn is_removed(&self) -> bool {
        // SAFETY: reads a flag.
        unsafe { weir_dpdk_is_removed(self.raw.number) }
    }

    /// The time of the device's own clock, in ticks of its own.
    pub(crate) fn ticks(&self) -> io::Result<u64> {
        let mut ticks = 0;
        // SAFETY: a number that lives through the call and is written to.
        checked(unsafe { weir_dpdk_clock(self.raw.number, &raw mut ticks) })?;
        Ok(ticks)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _alone = lock();
        // SAFETY: a port that was opened, once. Its memory, which batches may refer to, stays.
        unsafe { weir_dpdk_close(&raw mut self.raw) };
    }
}
