//! The receiving side of a port, its memory, and its buffers.

use super::on::{On, Raw};
use super::{checked, lock};
use crate::copies::Copies;
use crate::counts::Counts;
use crate::limits::COPIES_MIN;
use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use weir_capture::loans::Loans;
use weir_packet::limits::BATCH;
use weir_packet::source::{Chunk, FrameBatch, LinkType};

/// Of a frame that is in several pieces, or not in the memory of its port.
const APART: u32 = u32::MAX;

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

const _: () = assert!(size_of::<Frame>() == 24, "as in the C");
const _: () = assert!(size_of::<Counts>() == 32, "as in the C");

unsafe extern "C" {
    fn weir_dpdk_counts(port: u16, counts: *mut Counts) -> c_int;
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

/// A port that frames are received from.
pub(crate) struct Port {
    on: Arc<On>,
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

impl Port {
    /// The receiving side of a port that was switched on with queues to receive by, of which there
    /// is one. Copies take as much memory as this.
    pub(crate) fn new(on: Arc<On>, memory: usize) -> Port {
        let raw = on.raw();
        let lent_max = raw.buffers.saturating_sub(raw.in_rings) as usize;
        let (at, bytes) = (raw.memory.cast_const(), raw.bytes);
        let loans = Loans::new(lent_max, || -> Chunk { Arc::new(View(at, bytes)) });
        let (taken, copies) =
            (Box::new([Frame::default(); BATCH]), Copies::new(memory.max(COPIES_MIN)));
        let (rest, next, empty, unread) = (0..0, 0, false, 0);
        Port { on, loans, lent_max, taken, rest, next, empty, copies, unread }
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
        let raw = self.on.as_ptr();
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
        let (mut n, mut idle, queues) = (0, 0, self.on.raw().queues);
        // Until all queues have been found empty, one after the other.
        while idle < queues && n < most {
            let queue = self.next % queues;
            self.next = (queue + 1) % queues;
            let part = &mut self.taken[n..most];
            let (raw, room) = (self.on.as_ptr(), part.len() as u16);
            // SAFETY: a port that is open and one of its queues, which nobody else asks meanwhile;
            // room for so many frames, which are written to.
            let came = unsafe {
                weir_dpdk_receive(raw, queue, part.as_mut_ptr(), room, &raw mut self.unread)
            };
            let came_now = &self.taken[n..n + usize::from(came)];
            n += came_now.len();
            // Frames in pieces take many buffers, which copying gives back.
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
        let raw = self.on.as_ptr();
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

    /// The counts of the port.
    pub(crate) fn counts(&self) -> io::Result<Counts> {
        let mut counts = Counts::default();
        let _alone = lock();
        // SAFETY: a structure that lives through the call and is written to.
        checked(unsafe { weir_dpdk_counts(self.on.raw().number, &raw mut counts) })?;
        Ok(counts)
    }

    /// The port.
    pub(crate) fn on(&self) -> &On {
        &self.on
    }

    /// The time of the device's own clock, in ticks of its own.
    pub(crate) fn ticks(&self) -> io::Result<u64> {
        let mut ticks = 0;
        // SAFETY: a number that lives through the call and is written to.
        checked(unsafe { weir_dpdk_clock(self.on.raw().number, &raw mut ticks) })?;
        Ok(ticks)
    }
}

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        safe fn weir_dpdk_tag_type(flags: u64, packet_type: u32, type_left: u16) -> u16;
    }

    /// `RTE_MBUF_F_RX_VLAN_STRIPPED`, `RTE_MBUF_F_RX_QINQ_STRIPPED`.
    const ONE: u64 = 1 << 6;
    const TWO: u64 = ONE | 1 << 15;
    /// `RTE_PTYPE_L2_ETHER`, `..._VLAN`, `..._QINQ`, and one of those with IPv4 behind it.
    const PLAIN: u32 = 1;
    const VLAN: u32 = 6;
    const QINQ: u32 = 7;
    const QINQ_IPV4: u32 = QINQ | 0x10;

    #[test]
    fn a_tag_gets_back_the_protocol_that_can_be_known() {
        for (flags, packet_type, left, want) in [
            (ONE, 0, 0x0800, 0x8100),
            (ONE, PLAIN, 0x0800, 0x8100),
            (ONE, VLAN, 0x8100, 0x8100),
            (ONE, QINQ, 0x8100, 0x88a8),
            (ONE, QINQ_IPV4, 0x0800, 0x88a8),
            // That one is still there: another was before it.
            (ONE, QINQ, 0x88a8, 0x8100),
            (TWO, 0, 0x0800, 0x88a8),
            (TWO, QINQ, 0x0800, 0x88a8),
        ] {
            let got = weir_dpdk_tag_type(flags, packet_type, left);
            assert_eq!(got, want, "{flags:x} {packet_type:x} {left:04x}");
        }
    }
}
