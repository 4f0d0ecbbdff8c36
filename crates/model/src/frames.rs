//! Frames and programs for tests.

use std::net::Ipv4Addr;
use std::sync::Arc;
use weir_packet::craft::Frame;
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
use weir_plan::{Input, Pipeline, Program, Schema, Stage};

/// Frames in memory, handed out in batches of chosen sizes. They came by two interfaces in turn, a
/// few by none that is known.
#[derive(Clone)]
pub struct Frames {
    link: LinkType,
    chunk: Chunk,
    /// Time, offset and length of each.
    frames: Vec<(i64, u32, u32)>,
    /// Sizes of the batches, over and over.
    cuts: Vec<usize>,
    batches: usize,
    at: usize,
    interfaces: InterfaceNames,
}

impl Frames {
    /// Frames with their times, in nanoseconds since 1970.
    pub fn new(link: LinkType, frames: &[(i64, Vec<u8>)]) -> Frames {
        let mut bytes = Vec::new();
        let placed = frames
            .iter()
            .map(|(ts, frame)| {
                let at = bytes.len() as u32;
                bytes.extend_from_slice(frame);
                (*ts, at, frame.len() as u32)
            })
            .collect();
        let chunk: Chunk = Arc::new(bytes);
        let interfaces = InterfaceNames::default();
        for name in ["eth0", "eth1"] {
            interfaces.number(name);
        }
        Frames { link, chunk, frames: placed, cuts: vec![BATCH], batches: 0, at: 0, interfaces }
    }

    /// The same frames from the start, in batches of these sizes, over and over.
    #[must_use]
    pub fn cut(&self, sizes: &[usize]) -> Frames {
        let cuts = sizes.iter().map(|&n| n.clamp(1, BATCH)).collect();
        Frames { cuts, batches: 0, at: 0, ..self.clone() }
    }

    /// A conversation of two hosts over TCP: 40 packets in 4 s, a third of them answers, and
    /// something that is not IP. Header fields go through the least and the largest values that
    /// they may have.
    pub fn sample() -> Frames {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let frames: Vec<(i64, Vec<u8>)> = (0..40)
            .map(|i| {
                let (words, shorts) = (edges(u32::MAX), edges(u16::MAX.into()).map(|n| n as u16));
                let edge = |by: usize| (i as usize / by) % words.len();
                let ip = |from, to| {
                    let ttl = edges(u8::MAX.into()).map(|n| n as u8)[edge(3)];
                    Frame::ethernet().ipv4(from, to).ttl(ttl).id(shorts[edge(2)])
                };
                let frame =
                    if i % 3 == 2 { ip(b, a).tcp(80, 40_000) } else { ip(a, b).tcp(40_000, 80) };
                let frame = frame.seq(words[edge(1)]).ackno(words[edge(5)]).window(shorts[edge(1)]);
                (i * 100_000_000, frame.payload(&vec![0; i as usize]).bytes())
            })
            .chain([(4_000_000_000, vec![0; 60])])
            .collect();
        Frames::new(LinkType::ETHERNET, &frames)
    }
}

impl Source for Frames {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.restart(&self.chunk, 0, self.link);
        let size = self.cuts[self.batches % self.cuts.len()];
        self.batches += 1;
        for &(ts, offset, len) in self.frames[self.at..].iter().take(size) {
            batch.push(ts, self.at as u64, offset, len, len);
            self.at += 1;
        }
        batch.set_capture_points((self.at - batch.len()..self.at).map(point), &self.interfaces);
        Ok(!batch.is_empty())
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account { received: self.at as u64, ..Account::default() }
    }
}

/// The least and the largest values up to `most`.
fn edges(most: u32) -> [u32; 4] {
    [0, 1, most - 1, most]
}

/// How frame `i` came.
fn point(i: usize) -> CapturePoint {
    let interface = u16::try_from(i / 5 % 3).ok().filter(|number| *number < 2);
    let directions = [None, Some(Direction::In), Some(Direction::Out), Some(Direction::In)];
    CapturePoint::new(interface, directions[i / 2 % 4])
}

/// Secrets of a table's hash, which change nothing. The first two are the worst there are: one
/// makes a hash of the words themselves, the other the same of almost all words.
pub const HASH_SECRETS: [(u64, u64); 4] = [
    (0, 1),
    (u64::MAX, u64::MAX),
    (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345),
    (0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89),
];

/// The columns after some stages.
pub fn schema_after(stages: &[Stage], before: &Schema) -> Schema {
    stages.iter().fold(before.clone(), |schema, stage| stage.output(&schema))
}

/// A program of one printed pipeline over packets. The stages must end in a project or summarize.
pub fn program(stages: Vec<Stage>) -> Program {
    let schema = schema_after(&stages, &Schema::default());
    let input = Input::Packets;
    Program::of(vec![Pipeline { name: None, input, stages, schema, printed: true }])
}
