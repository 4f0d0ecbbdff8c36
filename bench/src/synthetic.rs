//! Packets made while they are taken: any number of them, from no file.
//!
//! All are Ethernet frames of 64 bytes with an IPv4 header and a UDP or a TCP header, evenly spaced
//! in time. A buffer holds a batch of frames that differ in addresses and ports only, so that
//! making one is a handful of stores. Buffers are used again once no batch refers to them.

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

/// Where the flags of a TCP header are, and what they are.
const FLAGS: usize = 47;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Ports that TCP clients go to, those of the query about port knocking among them.
const PORTS: [u16; 6] = [5123, 6234, 7345, 8456, 22, 443];

/// Servers that they go to.
const SERVERS: u64 = 16;

/// Nanoseconds since 1970 of the first packet, and between two of them unless told otherwise.
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
    /// One of so many TCP flows, at random. A client has one to each of a few ports of a server,
    /// and one packet in eight opens a connection.
    Tcp(u64),
}

impl Traffic {
    /// The flow of packet `i`.
    #[inline(always)]
    fn flow(self, i: u64) -> u64 {
        match self {
            Traffic::Mixed(flows) | Traffic::Tcp(flows) => draw(i, flows),
            Traffic::New => i,
            Traffic::Idle { idle, .. } if i < idle => i,
            Traffic::Idle { idle, active } => idle + draw(i, active),
        }
    }

    /// Distinct flows among the first `n` packets.
    pub(crate) fn flows(self, n: u64) -> u64 {
        match self {
            Traffic::New => n,
            Traffic::Mixed(flows) | Traffic::Tcp(flows) => {
                distinct((0..n).map(|i| draw(i, flows)), flows)
            }
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
    fn new(traffic: Traffic) -> Frames {
        let mut frame = [0; FRAME];
        (frame[0], frame[6], frame[11]) = (2, 2, 1);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        // Version and length, total length; no fragment, TTL 63, UDP.
        frame[14..26].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 63, 17, 0, 0]);
        if let Traffic::Tcp(_) = traffic {
            // TCP, a header of five words.
            (frame[23], frame[46]) = (6, 0x50);
        } else {
            frame[38..40].copy_from_slice(&[0, 30]);
        }
        let mut all = Box::new([0; BATCH * FRAME]);
        all.chunks_exact_mut(FRAME).for_each(|f| f.copy_from_slice(&frame));
        Frames(all)
    }

    /// Gives frame `i` the addresses and ports of a flow; different flows have different ones.
    #[inline(always)]
    fn set(&mut self, i: usize, flow: u64) {
        let src = 0x0a00_0000 | flow as u32 & 0x00ff_ffff;
        let dst = 0xc000_0000 | (flow >> 24) as u32 & 0x1fff_ffff;
        self.address(i, src, dst, 1024 + (flow as u32 & 0x7fff), 443);
    }

    /// Makes frame `i` a segment of a TCP flow; different flows have different addresses or ports.
    #[inline(always)]
    fn set_tcp(&mut self, i: usize, flow: u64, flags: u8) {
        let (client, port) =
            (flow / PORTS.len() as u64, PORTS[(flow % PORTS.len() as u64) as usize]);
        let src = 0x0a00_0000 | client as u32 & 0x00ff_ffff;
        let dst = 0xc000_0000 | (client % SERVERS) as u32;
        self.address(i, src, dst, 1024 + (client as u32 & 0x7fff), u32::from(port));
        self.0[i * FRAME + FLAGS] = flags;
    }

    #[inline(always)]
    fn address(&mut self, i: usize, src: u32, dst: u32, sport: u32, dport: u32) {
        let ports = sport << 16 | dport;
        let words = u128::from(src) << 64 | u128::from(dst) << 32 | u128::from(ports);
        let frame = &mut self.0[i * FRAME..][..FRAME];
        frame[ADDRESSES..ADDRESSES + 12].copy_from_slice(&words.to_be_bytes()[4..]);
    }
}

/// The source's measurements of those who took its batches.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Seen {
    /// The longest that one batch took, by each clock; making it is not counted.
    pub(crate) longest: Whole,
    /// Batches that took more than a millisecond of CPU time.
    pub(crate) slow: u64,
    /// The time that all batches of the active flows took together, see [`Traffic::Idle`].
    pub(crate) active: Whole,
    /// Memory of the process in KiB before the first batch and after the last one, while all state
    /// is still held.
    pub(crate) rss_kib: (u64, u64),
}

/// The source.
pub(crate) struct Synthetic {
    traffic: Traffic,
    packets: u64,
    gap_ns: i64,
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
        Synthetic { traffic, packets, gap_ns: GAP_NS, next: 0, buffers, out: None, seen }
    }

    /// Lets so much time pass between two packets.
    pub(crate) fn spaced(self, gap_ns: i64) -> Synthetic {
        Synthetic { gap_ns, ..self }
    }

    /// Makes so many buffers now: none later, as long as no more are in use at once.
    pub(crate) fn prepared(mut self, buffers: usize) -> Synthetic {
        self.buffers = (0..buffers).map(|_| Arc::new(Frames::new(self.traffic))).collect();
        self
    }

    /// Whether all packets were handed out.
    pub(crate) fn is_done(&self) -> bool {
        self.next == self.packets
    }

    /// Buffers that it made so far.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Its measurements, once all packets were taken.
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
            None => Arc::new(Frames::new(self.traffic)),
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
        if self.is_done() {
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
        match self.traffic {
            Traffic::Tcp(flows) => (from..from + n).enumerate().for_each(|(i, number)| {
                let flags = if draw(!number, 8) == 0 { SYN } else { ACK };
                frames.set_tcp(i, draw(number, flows), flags);
            }),
            traffic => (0..n).for_each(|i| frames.set(i as usize, traffic.flow(from + i))),
        }
        let chunk: Chunk = Arc::<Frames>::clone(&buffer);
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        for i in 0..n {
            let (number, offset) = (from + i, i as u32 * FRAME as u32);
            let ts = START_NS + number as i64 * self.gap_ns;
            batch.push(ts, number, offset, FRAME as u32, FRAME as u32);
        }
        self.buffers.push(buffer);
        self.next += n;
        let active = matches!(self.traffic, Traffic::Idle { idle, .. } if from >= idle);
        self.out = Some((Stopwatch::start(), active));
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account {
            received: self.next,
            filtered: 0,
            bytes_read: self.next * FRAME as u64,
            ..Account::default()
        }
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
        check(Traffic::Tcp(100), 5_000);
        check(Traffic::Tcp(5_000), 1_000);
    }

    #[test]
    fn one_segment_in_eight_opens_a_connection_and_time_passes_as_told() {
        let mut source = Synthetic::new(Traffic::Tcp(100), 8_000).spaced(7).prepared(3);
        let (mut batch, mut opened) = (FrameBatch::new(), 0);
        while source.fill(&mut batch).expect("never fails") {
            let flags = |i: &usize| batch.frame(*i)[FLAGS];
            opened += (0..batch.len()).filter(|i| flags(i) == SYN).count();
            let last = batch.len() - 1;
            assert_eq!(batch.ts()[last], START_NS + batch.seq()[last] as i64 * 7);
        }
        assert!((800..1200).contains(&opened), "{opened} of 8,000");
        assert_eq!(source.buffers(), 3);
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
