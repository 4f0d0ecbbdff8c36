//! Reads the frames that are kept, while others come: a source over the ring, in the order of the
//! capture, for whoever looks at packets that have passed.
//!
//! The thread that reads a wire waits for a reader only as long as it takes to copy some frames: a
//! lock goes to the first that comes, which may be a reader again, so readers let that thread pass.

use super::ring::{FrameRing, KeptFrame, RingCursor};
use crate::limits::LOOKBACK_READ_BYTES;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_packet::interface::{CapturePoint, InterfaceNames};
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
use weir_packet::walk::Headers;

/// The frames that a [`Lookback`](super::Lookback) keeps. Clones are of the same.
#[derive(Clone)]
pub struct HeldFrames(Arc<HeldRing>);

struct HeldRing {
    held: Mutex<HeldState>,
    /// Whether the thread that reads the wire waits for the lock.
    is_wanted: AtomicBool,
}

/// Frames, and how they are read.
pub(super) struct HeldState {
    pub(super) ring: FrameRing,
    pub(super) headers: Headers,
    /// The names of interfaces.
    pub(super) names: InterfaceNames,
}

/// The time of which frames are kept, in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HeldSpan {
    /// The times of the oldest frame that is kept and of the latest; `None` if there is none.
    pub kept: Option<(i64, i64)>,
    /// The latest time of a frame that came and is kept no more.
    pub forgotten: Option<i64>,
}

impl HeldFrames {
    pub(super) fn new(bytes: usize) -> HeldFrames {
        let (headers, names) = (Headers::OUTER, InterfaceNames::default());
        let held = Mutex::new(HeldState { ring: FrameRing::new(bytes), headers, names });
        HeldFrames(Arc::new(HeldRing { held, is_wanted: AtomicBool::new(false) }))
    }

    /// The frames, for a reader.
    pub(super) fn lock(&self) -> MutexGuard<'_, HeldState> {
        while self.0.is_wanted.load(Ordering::Acquire) {
            thread::yield_now();
        }
        self.0.held.lock()
    }

    /// The frames, for the thread that reads the wire, before all readers.
    pub(super) fn lock_first(&self) -> MutexGuard<'_, HeldState> {
        self.0.is_wanted.store(true, Ordering::Release);
        let held = self.0.held.lock();
        self.0.is_wanted.store(false, Ordering::Release);
        held
    }

    /// The time of which frames are kept now.
    pub fn span(&self) -> HeldSpan {
        let held = self.lock();
        HeldSpan { kept: held.ring.span(), forgotten: held.ring.forgotten() }
    }

    /// The names of interfaces.
    pub fn names(&self) -> InterfaceNames {
        self.lock().names.clone()
    }

    /// Which packet of each frame fields mean.
    pub fn headers(&self) -> Headers {
        self.lock().headers
    }

    /// The frames of these times, the first and the last included, that are kept now and still are
    /// when they are read.
    pub fn read(&self, from: i64, to: i64) -> RingReader {
        let (held, cursor) = (self.clone(), self.lock().ring.cursor());
        RingReader { held, cursor, from, to, frames: 0 }
    }
}

/// Reads frames that are kept.
pub struct RingReader {
    held: HeldFrames,
    cursor: RingCursor,
    from: i64,
    to: i64,
    /// Frames that were read.
    frames: u64,
}

/// Frames of one link type that were copied out of the ring: batches refer to memory that stays as
/// it is, and that of the ring does not.
pub(super) struct Copied {
    link: LinkType,
    bytes: Vec<u8>,
    frames: Vec<CopiedFrame>,
}

/// One of them.
struct CopiedFrame {
    at: u32,
    caplen: u32,
    ts: i64,
    len: u32,
    ports: Option<[u16; 2]>,
    point: CapturePoint,
}

impl Copied {
    /// None yet.
    pub(super) fn new(link: LinkType) -> Copied {
        Copied { link, bytes: Vec::new(), frames: Vec::with_capacity(BATCH) }
    }

    /// Whether a batch of them has room for one more, which is of their link type.
    pub(super) fn takes(&self, frame: &KeptFrame<'_>) -> bool {
        frame.link == self.link && self.frames.len() < BATCH
    }

    /// Copies a frame.
    pub(super) fn push(&mut self, frame: &KeptFrame<'_>) {
        let KeptFrame { ts, len, ports, point, bytes, .. } = *frame;
        let (at, caplen) = (self.bytes.len() as u32, bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
        self.frames.push(CopiedFrame { at, caplen, ts, len, ports, point });
    }

    /// Makes a batch of them.
    pub(super) fn fill(self, batch: &mut FrameBatch, held: &HeldState) {
        let chunk: Chunk = Arc::new(self.bytes);
        batch.restart(&chunk, 0, self.link);
        batch.headers = held.headers;
        for (i, frame) in self.frames.iter().enumerate() {
            batch.push(frame.ts, i as u64, frame.at, frame.caplen, frame.len);
            frame.ports.iter().for_each(|ports| batch.set_ports(i, *ports));
        }
        batch.set_capture_points(self.frames.iter().map(|frame| frame.point), &held.names);
    }
}

impl Source for RingReader {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        loop {
            let RingReader { held, cursor, from, to, frames } = self;
            let held = held.lock();
            let (mut some, mut looked): (Option<Copied>, usize) = (None, 0);
            held.ring.read_on(cursor, |frame| {
                if looked >= LOOKBACK_READ_BYTES {
                    return false;
                }
                if (*from..=*to).contains(&frame.ts) {
                    let some = some.get_or_insert_with(|| Copied::new(frame.link));
                    if !some.takes(&frame) {
                        return false;
                    }
                    some.push(&frame);
                }
                looked += frame.bytes.len().max(64);
                true
            });
            if let Some(some) = some {
                *frames += some.frames.len() as u64;
                some.fill(batch, &held);
                batch.renumber(*frames - batch.len() as u64);
                return Ok(true);
            }
            if looked == 0 {
                batch.clear();
                return Ok(false);
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account { received: self.frames, ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_let_the_thread_of_the_wire_pass() {
        let frames = HeldFrames::new(1000);
        let has_read = AtomicBool::new(false);
        // As if that thread waited for the lock.
        frames.0.is_wanted.store(true, Ordering::Release);
        thread::scope(|scope| {
            scope.spawn(|| {
                frames.span();
                has_read.store(true, Ordering::Release);
            });
            for _ in 0..1000 {
                thread::yield_now();
                assert!(!has_read.load(Ordering::Acquire), "a reader was faster");
            }
            drop(frames.lock_first());
        });
        assert!(has_read.into_inner());
    }
}
