//! Packets made while they are taken: any number of them, from no file.
//!
//! All are Ethernet frames of 64 bytes with an IPv4 header and a UDP header, a microsecond apart. A
//! buffer holds a batch of frames that differ in addresses and ports only, so that making one is
//! a handful of stores. Buffers are used again once no batch refers to them.

use crate::measure::rss_kib;
use crate::timing::{Stopwatch, Whole};
use std::sync::Arc;
use std::time::Duration;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};

/// Bytes of a frame.
const FRAME: usize = 64;

/// Where a frame's addresses and ports are.
const ADDRESSES: usize = 26;

/// Nanoseconds since 1970 of the first packet, and between two of them.
const START_NS: i64 = 1_700_000_000_000_000_000;
const GAP_NS: i64 = 1_000;

/// A batch that took longer is counted.
const SLOW: Duration = Duration::from_millis(1);

/// Which flow each packet belongs to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Traffic {
    /// One of so many, at random.
    Mixed(u64),
    /// A new one.
    New,
    /// First so many new ones, which then are idle; then one of so many others, at random.
    Idle { idle: u64, active: u64 },
}

impl Traffic {
    /// The flow of packet `i`.
    #[inline(always)]
    fn flow(self, i: u64) -> u64 {
        match self {
            Traffic::Mixed(flows) => draw(i, flows),
            Traffic::New => i,
            Traffic::Idle { idle, .. } if i < idle => i,
            Traffic::Idle { idle, active } => idle + draw(i, active),
        }
    }

    /// Distinct flows among the first `n` packets.
    pub(crate) fn flows(self, n: u64) -> u64 {
        match self {
            Traffic::New => n,
            Traffic::Mixed(flows) => distinct((0..n).map(|i| draw(i, flows)), flows),
            Traffic::Idle { idle, active } => {
                idle.min(n) + distinct((idle..n).map(|i| draw(i, active)), active)
            }
        }
    }
}

/// A number below `n` that depends on `i` alone.
#[inline(always)]
fn draw(i: u64, n: u64) -> u64 {
    let z = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(z) * u128::from(n)) >> 64) as u64
}

/// How many different numbers below `n` there are; stops looking when there can be no more.
fn distinct(numbers: impl Iterator<Item = u64>, n: u64) -> u64 {
    let (mut seen, mut count) = (vec![false; n as usize], 0);
    for number in numbers {
        count += u64::from(!std::mem::replace(&mut seen[number as usize], true));
        if count == n {
            break;
        }
    }
    count
}

/// Frames of one batch.
struct Frames(Box<[u8; BATCH * FRAME]>);

impl AsRef<[u8]> for Frames {
    fn as_ref(&self) -> &[u8] {
        &self.0[..]
    }
}

impl Frames {
    fn new() -> Frames {
        let mut frame = [0; FRAME];
        (frame[0], frame[6], frame[11]) = (2, 2, 1);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        // Version and length, total length; no fragment, TTL 63, UDP.
        frame[14..26].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 63, 17, 0, 0]);
        frame[38..40].copy_from_slice(&[0, 30]);
        let mut all = Box::new([0; BATCH * FRAME]);
        all.chunks_exact_mut(FRAME).for_each(|f| f.copy_from_slice(&frame));
        Frames(all)
    }

    /// Gives frame `i` the addresses and ports of a flow; different flows have different ones.
    #[inline(always)]
    fn set(&mut self, i: usize, flow: u64) {
        let src = 0x0a00_0000 | flow as u32 & 0x00ff_ffff;
        let dst = 0xc000_0000 | (flow >> 24) as u32 & 0x1fff_ffff;
        let ports = (1024 + (flow as u32 & 0x7fff)) << 16 | 443;
        let words = u128::from(src) << 64 | u128::from(dst) << 32 | u128::from(ports);
        let frame = &mut self.0[i * FRAME..][..FRAME];
        frame[ADDRESSES..ADDRESSES + 12].copy_from_slice(&words.to_be_bytes()[4..]);
    }
}

/// What the source saw of those who took its batches.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Seen {
    /// The longest that one batch took, by each clock; making it is not counted.
    pub(crate) longest: Whole,
    /// Batches that took more than a millisecond of CPU time.
    pub(crate) slow: u64,
    /// What all batches of the active flows took together, see [`Traffic::Idle`].
    pub(crate) active: Whole,
    /// Memory of the process in KiB before the first batch and after the last one, while all state
    /// is still held.
    pub(crate) rss_kib: (u64, u64),
}

/// The source.
pub(crate) struct Synthetic {
    traffic: Traffic,
    packets: u64,
    next: u64,
    buffers: Vec<Arc<Frames>>,
    /// Since the last batch was handed out, and whether it was of active flows.
    out: Option<(Stopwatch, bool)>,
    seen: Seen,
}

impl Synthetic {
    /// So many packets.
    pub(crate) fn new(traffic: Traffic, packets: u64) -> Synthetic {
        let (buffers, seen) = (Vec::new(), Seen::default());
        Synthetic { traffic, packets, next: 0, buffers, out: None, seen }
    }

    /// What it saw, once all packets were taken.
    pub(crate) fn seen(&self) -> Seen {
        self.seen
    }

    /// Notes how long the batch took that was handed out last.
    fn note(&mut self) {
        let Some((watch, active)) = self.out.take() else { return };
        let took = watch.read();
        let longest = &mut self.seen.longest;
        longest.cpu = longest.cpu.max(took.cpu);
        longest.wall = longest.wall.max(took.wall);
        self.seen.slow += u64::from(took.cpu > SLOW);
        if active {
            self.seen.active.cpu += took.cpu;
            self.seen.active.wall += took.wall;
        }
    }

    /// A buffer that nothing else refers to.
    fn buffer(&mut self) -> Arc<Frames> {
        match self.buffers.iter_mut().position(|b| Arc::get_mut(b).is_some()) {
            Some(i) => self.buffers.swap_remove(i),
            None => Arc::new(Frames::new()),
        }
    }
}

impl Source for Synthetic {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.note();
        let memory = || rss_kib().unwrap_or(0);
        if self.next == 0 {
            self.seen.rss_kib.0 = memory();
        }
        if self.next == self.packets {
            self.seen.rss_kib.1 = memory();
            batch.clear();
            return Ok(false);
        }
        batch.clear();
        let mut buffer = self.buffer();
        let from = self.next;
        // Batches of idle and of active flows are kept apart.
        let end = match self.traffic {
            Traffic::Idle { idle, .. } if from < idle => idle.min(self.packets),
            _ => self.packets,
        };
        let n = (end - from).min(BATCH as u64);
        let frames = Arc::get_mut(&mut buffer).expect("nothing else refers to the buffer");
        (0..n).for_each(|i| frames.set(i as usize, self.traffic.flow(from + i)));
        let chunk: Chunk = Arc::<Frames>::clone(&buffer);
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        for i in 0..n {
            let (number, offset) = (from + i, i as u32 * FRAME as u32);
            let ts = START_NS + number as i64 * GAP_NS;
            batch.push(ts, number, offset, FRAME as u32, FRAME as u32);
        }
        self.buffers.push(buffer);
        self.next += n;
        let active = matches!(self.traffic, Traffic::Idle { idle, .. } if from >= idle);
        self.out = Some((Stopwatch::start(), active));
        Ok(true)
    }

    fn account(&self) -> Account {
        Account { received: self.next, filtered: 0, bytes_read: self.next * FRAME as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use weir_packet::walk::{self, Layers};

    fn check(traffic: Traffic, packets: u64) {
        let mut source = Synthetic::new(traffic, packets);
        let (mut batch, mut layers) = (FrameBatch::new(), Layers::new());
        let (mut keys, mut next) = (HashSet::new(), 0);
        while source.fill(&mut batch).expect("never fails") {
            walk::classify(&batch, &mut layers);
            for i in 0..batch.len() {
                assert_eq!((batch.seq()[i], batch.lens()[i]), (next, 64));
                keys.insert(batch.frame(i)[ADDRESSES..ADDRESSES + 12].to_vec());
                next += 1;
            }
        }
        assert_eq!((layers.cut, layers.malformed.iter().sum::<u64>()), (0, 0));
        assert_eq!(next, packets);
        assert_eq!(keys.len() as u64, traffic.flows(packets), "{traffic:?}");
        assert_eq!(source.account().received, packets);
        let buffers = source.buffers.len();
        assert!(buffers <= 2, "{buffers} buffers for one batch at a time");
    }

    #[test]
    fn there_are_as_many_packets_and_flows_as_said() {
        check(Traffic::Mixed(100), 5_000);
        check(Traffic::Mixed(5_000), 1_000);
        check(Traffic::New, 2_000);
        check(Traffic::Idle { idle: 300, active: 10 }, 1_000);
        check(Traffic::Idle { idle: 300, active: 10 }, 200);
        check(Traffic::New, 0);
    }

    #[test]
    fn a_buffer_in_use_is_left_alone() {
        let mut source = Synthetic::new(Traffic::New, 1_000);
        let (mut first, mut second) = (FrameBatch::new(), FrameBatch::new());
        assert!(source.fill(&mut first).expect("never fails"));
        let before = first.frame(0).to_vec();
        assert!(source.fill(&mut second).expect("never fails"));
        assert_eq!(first.frame(0), before);
        assert_ne!(second.frame(0), before);
    }

    #[test]
    fn what_batches_take_is_seen() {
        let mut source = Synthetic::new(Traffic::Idle { idle: 256, active: 1 }, 512);
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).expect("never fails") {
            let watch = Stopwatch::start();
            while watch.read().cpu < SLOW * 2 {}
        }
        let seen = source.seen();
        assert_eq!(seen.slow, 2);
        assert!(seen.longest.cpu >= SLOW * 2 && seen.active.cpu >= SLOW * 2);
        assert!(seen.active.cpu < SLOW * 2 + seen.longest.cpu);
        assert!(seen.rss_kib.0 > 0 && seen.rss_kib.1 > 0);
    }
}
