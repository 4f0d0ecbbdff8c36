//! The pcapng file format as bytes, both ways (draft-ietf-opsawg-pcapng).
//!
//! A file is a list of blocks that each say their length twice. A section header block sets the
//! byte order for what follows and forgets all interfaces; an interface description block adds one,
//! with its link type and its clock; packet blocks name the interface they were captured on. All
//! other blocks are stepped over. [`PcapngReader::fill`] walks the blocks of whatever part of a
//! file is in memory and copies nothing.

mod run;
mod write;

pub use write::Writer;

use crate::interface::{InterfaceNames, Via, Way};
use crate::limits::{BLOCK_MAX, CAPLEN_MAX, INTERFACES_MAX};
use crate::pcap::{ByteOrder, Step, link_from_file};
use crate::source::{Chunk, FrameBatch, LinkType};
use crate::walk::is_tagged;
use run::Run;
use std::fmt;

/// The first four bytes of a file: the type of a section header block, alike in both byte orders.
pub const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET_OBSOLETE: u32 = 2;
const PACKET_SIMPLE: u32 = 3;
const PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Block type and length, and the length once more at the end.
const BLOCK_HEADER: usize = 8;
const BLOCK_FRAME: usize = 12;

const OPTION_END: u16 = 0;
/// Of interfaces (`if_name`), and of packets (`epb_flags`).
const OPTION_NAME: u16 = 2;
const OPTION_FLAGS: u16 = 2;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// What is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PcapngFault {
    /// The first block is not a section header.
    NoSection,
    /// A section header without the byte-order magic.
    ByteOrder,
    /// A section of an unknown major version.
    Version(u16, u16),
    /// A block length under 12, not a multiple of 4, or above [`BLOCK_MAX`].
    BlockLength(u32),
    /// The two lengths of a block differ.
    BlockTrailer(u32, u32),
    /// A block of this type is too short for its fixed fields.
    BlockShort(u32),
    /// An option of an interface reaches beyond its block or has a wrong length.
    Option(u16),
    /// More interfaces in a section than [`INTERFACES_MAX`].
    Interfaces,
    /// A packet names an interface that was not declared.
    Interface(u32),
    /// A packet claims more captured bytes than its block holds, or more than [`CAPLEN_MAX`].
    CapturedLength(u32),
}

impl fmt::Display for PcapngFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PcapngFault::NoSection => f.write_str("the file does not begin with a section header"),
            PcapngFault::ByteOrder => f.write_str("a section header without the byte-order magic"),
            PcapngFault::Version(major, minor) => {
                write!(f, "a section of pcapng version {major}.{minor}, which is not known")
            }
            PcapngFault::BlockLength(n) => write!(
                f,
                "a block length of {n}, which is not a multiple of 4 between 12 and {BLOCK_MAX}"
            ),
            PcapngFault::BlockTrailer(head, tail) => {
                write!(f, "a block that says {head} bytes at its start and {tail} at its end")
            }
            PcapngFault::BlockShort(kind) => {
                write!(f, "a block of type {kind} too short for its fields")
            }
            PcapngFault::Option(code) => write!(f, "an interface with a broken option {code}"),
            PcapngFault::Interfaces => {
                write!(f, "a section of more than {INTERFACES_MAX} interfaces")
            }
            PcapngFault::Interface(id) => {
                write!(f, "a packet of interface {id}, which is not declared")
            }
            PcapngFault::CapturedLength(n) => {
                write!(f, "a packet claims {n} captured bytes, more than its block can hold")
            }
        }
    }
}

/// What an interface description block says that matters for reading its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// Link type of its packets.
    pub link: LinkType,
    /// Most bytes captured of a frame; 0 for no limit.
    pub snaplen: u32,
    /// Units of its timestamps (`if_tsresol`): 10^-n seconds, or 2^-(n - 128) from 128 on.
    pub resolution: u8,
    /// Seconds to add to its timestamps (`if_tsoffset`).
    pub offset_s: i64,
    /// Its name (`if_name`); empty where it has none.
    pub name: &'a [u8],
}

impl<'a> Interface<'a> {
    /// An interface with the default clock: microseconds since 1970.
    pub fn new(link: LinkType) -> Interface<'a> {
        Interface { link, snaplen: 0, resolution: 6, offset_s: 0, name: &[] }
    }

    fn parse(order: ByteOrder, body: &'a [u8]) -> Result<Interface<'a>, PcapngFault> {
        let (fixed, mut options) =
            body.split_first_chunk::<8>().ok_or(PcapngFault::BlockShort(INTERFACE))?;
        let mut out = Interface::new(link_from_file(order.u16([fixed[0], fixed[1]])));
        out.snaplen = order.u32([fixed[4], fixed[5], fixed[6], fixed[7]]);
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let code = order.u16([head[0], head[1]]);
            let len = usize::from(order.u16([head[2], head[3]]));
            let value = rest.get(..len).ok_or(PcapngFault::Option(code))?;
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_NAME, name) => {
                    // Some writers end it as C does.
                    out.name = name.split(|&b| b == 0).next().unwrap_or(&[]);
                }
                (OPTION_TSRESOL, &[resolution]) => out.resolution = resolution,
                (OPTION_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    out.offset_s = match order {
                        ByteOrder::Little => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
                        ByteOrder::Big => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                    };
                }
                (OPTION_TSRESOL | OPTION_TSOFFSET, _) => return Err(PcapngFault::Option(code)),
                _ => {}
            }
            options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(out)
    }
}

/// From an interface's ticks to nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clock {
    unit: Unit,
    offset_s: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// So many nanoseconds.
    Nanos(u64),
    /// So many in a nanosecond.
    PerNano(u128),
    /// 2^-n seconds.
    Binary(u32),
}

impl Clock {
    fn new(interface: &Interface<'_>) -> Clock {
        let n = u32::from(interface.resolution);
        let unit = match n {
            0..=9 => Unit::Nanos(10u64.pow(9 - n)),
            10..128 => Unit::PerNano(10u128.checked_pow(n - 9).unwrap_or(u128::MAX)),
            _ => Unit::Binary(n - 128),
        };
        Clock { unit, offset_s: interface.offset_s }
    }

    /// Times that 64 bits can't say become the nearest one they can.
    #[inline(always)]
    fn ns(self, ticks: u64) -> i64 {
        if let (Unit::Nanos(unit), 0) = (self.unit, self.offset_s) {
            return ticks.saturating_mul(unit).min(i64::MAX as u64) as i64;
        }
        self.ns_wide(ticks)
    }

    fn ns_wide(self, ticks: u64) -> i64 {
        let ticks = u128::from(ticks);
        let ns = match self.unit {
            Unit::Nanos(unit) => ticks * u128::from(unit),
            Unit::PerNano(per) => ticks / per,
            Unit::Binary(n) => (ticks * 1_000_000_000) >> n,
        };
        // At most 94 bits, so the sum can't overflow.
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// Reads the packets of a file, a batch at a time.
#[derive(Clone, Debug, Default)]
pub struct PcapngReader {
    /// Byte order of the current section; none before the first.
    order: Option<ByteOrder>,
    interfaces: Vec<Declared>,
    names: InterfaceNames,
    /// Time of the packet before: simple packet blocks have none of their own.
    ts: i64,
    seq: u64,
    /// Bytes that the last batch took.
    span: usize,
}

/// An interface of the current section.
#[derive(Clone, Copy, Debug)]
struct Declared {
    link: LinkType,
    snaplen: u32,
    clock: Clock,
    via: Via,
}

/// A packet inside a block that starts at position 0.
struct Packet {
    link: LinkType,
    via: Via,
    ts: i64,
    start: usize,
    caplen: u32,
    len: u32,
}

impl PcapngReader {
    /// A reader at the start of a file.
    pub fn new() -> PcapngReader {
        PcapngReader::default()
    }

    /// The same, which puts the names of interfaces into a table that others have, too.
    pub fn naming(names: &InterfaceNames) -> PcapngReader {
        PcapngReader { names: names.clone(), ..PcapngReader::default() }
    }

    /// Replaces the contents of `batch` with the next whole packets of `chunk` from `at` on, up to
    /// a change of link type, and moves `at` behind them.
    ///
    /// # Errors
    /// When the block at `at` is corrupt and no frame stands before it: frames before a fault are
    /// delivered first, and the next call meets the fault again.
    pub fn fill(
        &mut self,
        chunk: &Chunk,
        at: &mut usize,
        batch: &mut FrameBatch,
    ) -> Result<Step, PcapngFault> {
        batch.clear();
        let bytes = (**chunk).as_ref();
        let (mut base, mut looks) = (*at, false);
        while !batch.is_full() {
            let block = match whole_block(bytes.get(*at..).unwrap_or(&[]), self.order) {
                Ok(Whole::Block(block)) => block,
                _ if !batch.is_empty() => break,
                Ok(Whole::More(need)) => return Ok(Step::More(need)),
                Err(fault) => return Err(fault),
            };
            match self.read(&block) {
                Ok(Some(p)) => {
                    if batch.is_empty() {
                        base = *at;
                        batch.restart(chunk, base, p.link);
                        // Frames with a tag are classified by themselves.
                        let frame = bytes.get(*at + p.start..).unwrap_or(&[]);
                        looks = p.link == LinkType::ETHERNET && !is_tagged(frame);
                        if looks {
                            batch.look_at_all();
                        }
                    }
                    if block.kind == PACKET {
                        let (bytes, before) = (bytes.get(base..).unwrap_or(&[]), batch.len());
                        let mut run = Run { reader: self, bytes, at: *at - base, batch };
                        match block.order {
                            ByteOrder::Little => run.take::<false>(looks),
                            ByteOrder::Big => run.take::<true>(looks),
                        }
                        *at = base + run.at;
                        if batch.len() > before {
                            continue;
                        }
                    }
                    let offset = u32::try_from(*at - base + p.start);
                    let (true, Ok(offset)) = (p.link == batch.link, offset) else { break };
                    batch.push(p.ts, self.seq, offset, p.caplen, p.len);
                    batch.set_via(batch.len() - 1, p.via, &self.names);
                    self.ts = p.ts;
                    self.seq += 1;
                }
                Ok(None) => {}
                Err(_) if !batch.is_empty() => break,
                Err(fault) => return Err(fault),
            }
            *at += block.len;
        }
        self.span = *at - base;
        Ok(Step::Frames)
    }

    /// Takes in a block; the packet it holds, if it is of a kind that holds one.
    fn read(&mut self, block: &Block<'_>) -> Result<Option<Packet>, PcapngFault> {
        let (order, body) = (block.order, block.body);
        match block.kind {
            SECTION => {
                let v = body.get(4..8).ok_or(PcapngFault::BlockShort(SECTION))?;
                let version = (order.u16([v[0], v[1]]), order.u16([v[2], v[3]]));
                if version.0 != 1 {
                    return Err(PcapngFault::Version(version.0, version.1));
                }
                self.order = Some(order);
                self.interfaces.clear();
                Ok(None)
            }
            INTERFACE => {
                let interface = Interface::parse(order, body)?;
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(PcapngFault::Interfaces);
                }
                let Interface { link, snaplen, name, .. } = interface;
                let (clock, via) =
                    (Clock::new(&interface), Via::new(self.names.number(name), None));
                self.interfaces.push(Declared { link, snaplen, clock, via });
                Ok(None)
            }
            PACKET => self.packet(block, |h| order.u32([h[0], h[1], h[2], h[3]])).map(Some),
            PACKET_OBSOLETE => self.packet(block, |h| u32::from(order.u16([h[0], h[1]]))).map(Some),
            PACKET_SIMPLE => self.simple_packet(block).map(Some),
            _ => Ok(None),
        }
    }

    /// Enhanced and obsolete packet blocks differ only in how they name the interface.
    fn packet(
        &self,
        block: &Block<'_>,
        id: impl Fn(&[u8; 20]) -> u32,
    ) -> Result<Packet, PcapngFault> {
        let h = block.body.first_chunk::<20>().ok_or(PcapngFault::BlockShort(block.kind))?;
        let word = |i: usize| block.order.u32([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let id = id(h);
        let interface = self.interfaces.get(id as usize).ok_or(PcapngFault::Interface(id))?;
        let (caplen, len) = (word(12), word(16));
        if caplen > CAPLEN_MAX || caplen as usize > block.body.len() - h.len() {
            return Err(PcapngFault::CapturedLength(caplen));
        }
        let options = (h.len() + caplen as usize).next_multiple_of(4);
        let options = block.body.get(options..).unwrap_or(&[]);
        Ok(Packet {
            link: interface.link,
            via: interface.via.going(way(block.order, options)),
            ts: interface.clock.ns(u64::from(word(4)) << 32 | u64::from(word(8))),
            start: BLOCK_HEADER + h.len(),
            caplen,
            len,
        })
    }

    fn simple_packet(&self, block: &Block<'_>) -> Result<Packet, PcapngFault> {
        let h = block.body.first_chunk::<4>().ok_or(PcapngFault::BlockShort(PACKET_SIMPLE))?;
        let interface = self.interfaces.first().ok_or(PcapngFault::Interface(0))?;
        let len = block.order.u32(*h);
        let caplen = match interface.snaplen {
            0 => len,
            snaplen => len.min(snaplen),
        };
        if caplen > CAPLEN_MAX || caplen as usize > block.body.len() - h.len() {
            return Err(PcapngFault::CapturedLength(caplen));
        }
        let start = BLOCK_HEADER + h.len();
        Ok(Packet { link: interface.link, via: interface.via, ts: self.ts, start, caplen, len })
    }
}

/// Which way the options of a packet say it went (`epb_flags`, the lowest two bits). Options that
/// are broken say nothing.
fn way(order: ByteOrder, mut options: &[u8]) -> Option<Way> {
    while let Some((head, rest)) = options.split_first_chunk::<4>() {
        let code = order.u16([head[0], head[1]]);
        let len = usize::from(order.u16([head[2], head[3]]));
        match (code, rest.get(..len)?) {
            (OPTION_END, _) => break,
            (OPTION_FLAGS, &[a, b, c, d]) => {
                return match order.u32([a, b, c, d]) & 3 {
                    1 => Some(Way::In),
                    2 => Some(Way::Out),
                    _ => None,
                };
            }
            _ => options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]),
        }
    }
    None
}

/// What stands at the start of some bytes.
enum Whole<'a> {
    Block(Block<'a>),
    /// Part of a block that takes this many bytes, as far as can be told.
    More(usize),
}

struct Block<'a> {
    kind: u32,
    order: ByteOrder,
    len: usize,
    body: &'a [u8],
}

fn whole_block(bytes: &[u8], order: Option<ByteOrder>) -> Result<Whole<'_>, PcapngFault> {
    let Some(head) = bytes.first_chunk::<BLOCK_FRAME>() else {
        return Ok(Whole::More(BLOCK_FRAME));
    };
    let word = |i: usize| [head[i], head[i + 1], head[i + 2], head[i + 3]];
    let order = if word(0) == MAGIC {
        match u32::from_le_bytes(word(8)) {
            BYTE_ORDER_MAGIC => ByteOrder::Little,
            m if m == BYTE_ORDER_MAGIC.swap_bytes() => ByteOrder::Big,
            _ => return Err(PcapngFault::ByteOrder),
        }
    } else {
        order.ok_or(PcapngFault::NoSection)?
    };
    let total = order.u32(word(4));
    if total < BLOCK_FRAME as u32 || total % 4 != 0 || total > BLOCK_MAX {
        return Err(PcapngFault::BlockLength(total));
    }
    let len = total as usize;
    let Some((rest, tail)) = bytes.get(..len).and_then(<[u8]>::split_last_chunk::<4>) else {
        return Ok(Whole::More(len));
    };
    if order.u32(*tail) != total {
        return Err(PcapngFault::BlockTrailer(total, order.u32(*tail)));
    }
    let (kind, body) = (order.u32(word(0)), &rest[BLOCK_HEADER..]);
    Ok(Whole::Block(Block { kind, order, len, body }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    const LE: Writer = Writer { order: ByteOrder::Little };
    const BE: Writer = Writer { order: ByteOrder::Big };

    /// Bytes before the frame in an enhanced packet block.
    const HEAD: usize = BLOCK_HEADER + 20;

    type Record = (LinkType, i64, u32, Vec<u8>);

    /// Reads all packets of a file in memory, and what the reader said at the end and where.
    fn read(file: &[u8]) -> (Vec<Record>, Result<Step, PcapngFault>, usize) {
        let (mut reader, chunk) = (PcapngReader::new(), Arc::new(file.to_vec()) as Chunk);
        let (mut at, mut batch, mut out) = (0, FrameBatch::new(), Vec::new());
        loop {
            match reader.fill(&chunk, &mut at, &mut batch) {
                Ok(Step::Frames) => {
                    for i in 0..batch.len() {
                        assert_eq!(batch.seq()[i], out.len() as u64);
                        let (ts, len) = (batch.ts()[i], batch.lens()[i]);
                        out.push((batch.link, ts, len, batch.frame(i).to_vec()));
                    }
                }
                end => return (out, end, at),
            }
        }
    }

    /// By which interface each packet came, and which way it went, as far as the file says.
    fn came(file: &[u8]) -> Vec<(Option<Vec<u8>>, Option<Way>)> {
        let (mut reader, chunk) = (PcapngReader::new(), Arc::new(file.to_vec()) as Chunk);
        let (mut at, mut batch, mut out) = (0, FrameBatch::new(), Vec::new());
        while reader.fill(&chunk, &mut at, &mut batch) == Ok(Step::Frames) && !batch.is_empty() {
            for via in (0..batch.len()).map(|i| batch.via(i)) {
                let name = via.interface().and_then(|n| batch.interface_names()?.name(n));
                out.push((name.map(|name| name.raw.into_vec()), via.way()));
            }
        }
        out
    }

    fn file(w: Writer, interfaces: &[Interface<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        w.section(&mut out);
        interfaces.iter().for_each(|i| w.interface(&mut out, i));
        out
    }

    #[test]
    fn a_section_byte_by_byte() {
        let mut out = Vec::new();
        BE.section(&mut out);
        let expected = [
            0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, //
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn sections_each_have_their_order_and_interfaces() {
        let ether = Interface::new(LinkType::ETHERNET);
        let raw = Interface { resolution: 9, snaplen: 2, ..Interface::new(LinkType::RAW) };
        let mut bytes = file(LE, &[ether, raw]);
        LE.packet(&mut bytes, 0, 5, 60, &[1, 2, 3]);
        LE.packet(&mut bytes, 1, 7, 61, &[4]);
        LE.block(&mut bytes, 0x0bad, &[&[9; 5]]);
        LE.packet(&mut bytes, 1, 8, 62, &[]);
        bytes.extend(file(BE, &[raw]));
        BE.simple_packet(&mut bytes, 63, &[6, 7]);
        let (packets, end, at) = read(&bytes);
        let expected: [Record; 4] = [
            (LinkType::ETHERNET, 5000, 60, vec![1, 2, 3]),
            (LinkType::RAW, 7, 61, vec![4]),
            (LinkType::RAW, 8, 62, vec![]),
            (LinkType::RAW, 8, 63, vec![6, 7]),
        ];
        assert_eq!(packets, expected);
        assert_eq!((end, at), (Ok(Step::More(12)), bytes.len()));
        // Interface 1 was the first section's.
        BE.packet(&mut bytes, 1, 0, 0, &[]);
        assert_eq!(read(&bytes).1, Err(PcapngFault::Interface(1)));
    }

    /// Packets of Ethernet frames are gathered some at a time, with a look ahead: wherever the file
    /// ends, and wherever a block is odd, they end as if they were read one by one.
    #[test]
    fn packets_that_are_looked_at_end_where_those_read_one_by_one_do() {
        let frame = crate::craft::Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(1, 2);
        let frame = frame.payload(&[7; 5]).bytes();
        let nanos = Interface { resolution: 9, ..Interface::new(LinkType::ETHERNET) };
        let micros = Interface::new(LinkType::ETHERNET);
        let whole = (HEAD + frame.len()).next_multiple_of(4) + 4;
        for w in [LE, BE] {
            let start = file(w, &[nanos, micros]).len();
            for n in [1u64, 31, 32, 33, 64, 255, 256, 257, 300] {
                let mut bytes = file(w, &[nanos, micros]);
                let mut want: Vec<Record> = Vec::new();
                for i in 0..n {
                    // Of two interfaces in turn, some of the time.
                    let id = (i % 50 > 40 && i % 2 == 0) as u32;
                    w.packet(&mut bytes, id, i * 1_000_000_007, 60 + i as u32, &frame);
                    let ts = i as i64 * 1_000_000_007 * if id == 0 { 1 } else { 1000 };
                    want.push((LinkType::ETHERNET, ts, 60 + i as u32, frame.clone()));
                }
                for cut in 0..2400.min(bytes.len() - start) {
                    let (packets, end, at) = read(&bytes[..bytes.len() - cut]);
                    let left = (bytes.len() - cut - start) / whole;
                    assert!(packets == want[..left], "{} of {n}", bytes.len() - cut);
                    assert_eq!(at, start + left * whole);
                    assert!(matches!(end, Ok(Step::More(_))), "{end:?}");
                }
            }
            for k in [0, 1, 31, 32, 33, 200] {
                let mut bytes = file(w, &[nanos]);
                (0..300).for_each(|i| w.packet(&mut bytes, 0, i, 60, &frame));
                let at = file(w, &[nanos]).len() + k * whole;
                // The captured length, the interface, the length at the end, the type of block.
                let caplen = (at + 20, CAPLEN_MAX + 1, PcapngFault::CapturedLength(CAPLEN_MAX + 1));
                let interface = (at + 8, 1, PcapngFault::Interface(1));
                let absurd = (at + 8, u32::MAX, PcapngFault::Interface(u32::MAX));
                let tail = (at + whole - 4, 12, PcapngFault::BlockTrailer(whole as u32, 12));
                for (place, word, fault) in [caplen, interface, absurd, tail] {
                    let mut bytes = bytes.clone();
                    bytes[place..place + 4].copy_from_slice(&w.order.put32(word));
                    let (packets, end, stopped) = read(&bytes);
                    assert_eq!((packets.len(), end, stopped), (k, Err(fault), at));
                }
                bytes[at..at + 4].copy_from_slice(&w.order.put32(0x0bad));
                assert_eq!(read(&bytes).0.len(), 299);
            }
        }
    }

    /// A frame of each shape, looked at in a file and not: all is found in the same places.
    #[test]
    fn frames_that_were_looked_at_are_classified_alike() {
        let samples = crate::walk::samples::samples();
        let ethernet = samples.iter().filter(|(_, frame)| frame.link() == LinkType::ETHERNET);
        for (name, frame) in ethernet {
            let plain = crate::craft::Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
            let frames = [plain.udp(1, 2).bytes(), frame.bytes()];
            let mut bytes = file(LE, &[Interface::new(LinkType::ETHERNET)]);
            let mut apart = Vec::new();
            for frame in frames.iter().cycle().take(90) {
                LE.packet(&mut bytes, 0, 0, frame.len() as u32, frame);
                apart.push((frame.clone(), frame.len() as u32));
            }
            // What follows the last frame lets it be looked at, too.
            bytes.resize(bytes.len() + 4096, 0);
            let (mut reader, chunk) = (PcapngReader::new(), Arc::new(bytes) as Chunk);
            let mut looked = FrameBatch::new();
            assert_eq!(reader.fill(&chunk, &mut 0, &mut looked), Ok(Step::Frames));
            assert!(looked.looks().is_some());
            apart.extend(vec![(vec![0; 200], 200); 2]);
            let apart = crate::craft::batch(LinkType::ETHERNET, &apart);
            let layers = [&looked, &apart].map(|frames| {
                let mut layers = crate::walk::Layers::new();
                crate::walk::classify(frames, &mut layers);
                let places = |i: usize| (layers.l3[i], layers.l4[i], layers.proto[i]);
                let has = |i: usize| layers.has.map(|rows| rows.has(i));
                (0..90).map(|i| (places(i), has(i))).collect::<Vec<_>>()
            });
            assert!(layers[0] == layers[1], "{name}");
        }
    }

    #[test]
    fn the_obsolete_packet_block() {
        let mut bytes = file(LE, &[Interface::new(LinkType::RAW)]);
        let mut body = vec![0; 20];
        body[2] = 7; // drops, which are not part of the interface number
        body[8] = 3;
        body[12] = 1;
        LE.block(&mut bytes, PACKET_OBSOLETE, &[&body, &[0xee]]);
        assert_eq!(read(&bytes).0, [(LinkType::RAW, 3000, 0, vec![0xee])]);
    }

    #[test]
    fn clocks() {
        let ns = |resolution, offset_s, ticks| {
            let i = Interface { resolution, offset_s, ..Interface::new(LinkType::RAW) };
            Clock::new(&i).ns(ticks)
        };
        assert_eq!(ns(0, 0, 3), 3_000_000_000);
        assert_eq!(ns(3, 0, 1500), 1_500_000_000);
        assert_eq!(ns(9, -1, 1_000_000_005), 5);
        assert_eq!(ns(12, 0, 5999), 5);
        assert_eq!(ns(127, 0, u64::MAX), 0);
        assert_eq!(ns(128, 0, 2), 2_000_000_000);
        assert_eq!(ns(128 + 10, 0, 512), 500_000_000);
        assert_eq!(ns(255, 0, u64::MAX), 0);
        assert_eq!(ns(6, 0, u64::MAX), i64::MAX);
        assert_eq!(ns(6, i64::MAX, u64::MAX), i64::MAX);
        assert_eq!(ns(9, i64::MIN, 0), i64::MIN);
    }

    #[test]
    fn faults_come_after_the_good_packets() {
        let check = |damage: &dyn Fn(&mut Vec<u8>), expected: PcapngFault| {
            let mut bytes = file(LE, &[Interface::new(LinkType::RAW)]);
            LE.packet(&mut bytes, 0, 1, 4, &[1, 2, 3, 4]);
            let good = bytes.len();
            LE.packet(&mut bytes, 0, 2, 4, &[1, 2, 3, 4]);
            let mut last = bytes.split_off(good);
            damage(&mut last);
            bytes.extend(last);
            let (packets, end, at) = read(&bytes);
            assert_eq!((packets.len(), end, at), (1, Err(expected), good));
        };
        check(&|b| b[4] = 8, PcapngFault::BlockLength(8));
        check(&|b| b[4] = 37, PcapngFault::BlockLength(37));
        check(&|b| b[7] = 0xff, PcapngFault::BlockLength(0xff00_0024));
        check(&|b| b[32] = 40, PcapngFault::BlockTrailer(36, 40));
        check(&|b| b[8] = 1, PcapngFault::Interface(1));
        check(&|b| b[20] = 5, PcapngFault::CapturedLength(5));
        check(&|b| *b = [3, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0].into(), PcapngFault::BlockShort(3));
        check(&|b| b[..4].copy_from_slice(&MAGIC), PcapngFault::ByteOrder);
        check(&|b| *b = [LE_SECTION_2, b].concat(), PcapngFault::Version(2, 0));
        assert_eq!(read(&[0; 12]).1, Err(PcapngFault::NoSection));
    }

    const LE_SECTION_2: &[u8] =
        &[0x0a, 0x0d, 0x0d, 0x0a, 20, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 2, 0, 0, 0, 20, 0, 0, 0];

    #[test]
    fn broken_options_are_a_fault() {
        let check = |options: &[u8], expected| {
            let fixed = [1, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(
                Interface::parse(ByteOrder::Little, &[&fixed, options].concat()).map(|_| ()),
                expected
            );
        };
        check(&[], Ok(()));
        check(&[2, 0, 3, 0, b'e', b't', b'h', 0, 0, 0, 0, 0], Ok(()));
        check(&[9, 0, 1, 0, 9, 0, 0, 0], Ok(()));
        check(&[9, 0, 2, 0, 9, 0, 0, 0], Err(PcapngFault::Option(9)));
        check(&[14, 0, 4, 0, 9, 0, 0, 0], Err(PcapngFault::Option(14)));
        check(&[2, 0, 9, 0, b'e', b't', b'h', 0], Err(PcapngFault::Option(2)));
    }

    #[test]
    fn options_of_packets_may_be_anything() {
        let said = |options: &[u8]| way(ByteOrder::Little, options);
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[2, 0, 4, 0, 1, 0, 0, 0]), Some(Way::In));
        assert_eq!(said(&[2, 0, 4, 0, 0x0e, 0, 0, 9, 0, 0, 0, 0]), Some(Way::Out));
        assert_eq!(said(&[2, 0, 4, 0, 0, 0, 0, 0]), None);
        // Behind a comment of five bytes; behind the end; broken off; too long.
        let comment = [1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
        assert_eq!(said(&[&comment[..], &[2, 0, 4, 0, 2, 0, 0, 0]].concat()), Some(Way::Out));
        assert_eq!(said(&[0, 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0]), None);
        assert_eq!(said(&[2, 0, 4, 0, 2, 0, 0]), None);
        assert_eq!(said(&[2, 0, 5, 0, 2, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    /// Sections each number their interfaces, and one name is one interface.
    #[test]
    fn a_name_is_the_same_interface_in_every_section() {
        let named = |name| Interface { name, ..Interface::new(LinkType::ETHERNET) };
        let mut bytes = file(LE, &[named(b"a"), named(b"b\0c")]);
        LE.packet(&mut bytes, 1, 0, 60, &[0; 60]);
        bytes.extend(file(BE, &[named(b"b"), named(b"")]));
        BE.packet_going(&mut bytes, (0, Some(Way::Out)), 0, 60, &[0; 60]);
        BE.packet(&mut bytes, 1, 0, 60, &[0; 60]);
        BE.simple_packet(&mut bytes, 60, &[0; 60]);
        let b = || Some(b"b".to_vec());
        let want = [(b(), None), (b(), Some(Way::Out)), (None, None), (b(), None)];
        assert_eq!(came(&bytes), want);
        let names = InterfaceNames::default();
        let mut reader = PcapngReader::naming(&names);
        let (chunk, mut batch) = (Arc::new(bytes) as Chunk, FrameBatch::new());
        assert_eq!(reader.fill(&chunk, &mut 0, &mut batch), Ok(Step::Frames));
        let known =
            names.read(|names| names.iter().map(|name| name.text.clone()).collect::<Vec<_>>());
        assert_eq!(known, ["a".into(), "b".into()]);
    }

    #[test]
    fn too_many_interfaces_are_a_fault() {
        let bytes = file(LE, &vec![Interface::new(LinkType::RAW); INTERFACES_MAX + 1]);
        assert_eq!(read(&bytes).1, Err(PcapngFault::Interfaces));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            big in any::<bool>(),
            interfaces in proptest::collection::vec((0u16..3, any::<u8>(), -9i64..9), 1..4),
            packets in proptest::collection::vec(
                (any::<u32>(), any::<u64>(), any::<u32>(),
                 proptest::collection::vec(any::<u8>(), 0..30), any::<bool>()), 0..600),
        ) {
            let w = if big { BE } else { LE };
            let interfaces: Vec<Interface<'_>> = interfaces.into_iter().map(|(link, r, offset_s)| {
                Interface { resolution: r, offset_s, ..Interface::new(LinkType(link)) }
            }).collect();
            let mut bytes = file(w, &interfaces);
            let mut expected = Vec::new();
            for (id, ticks, len, frame, noise) in packets {
                if noise {
                    w.block(&mut bytes, 5, &[&frame]);
                }
                let id = id as usize % interfaces.len();
                let i = &interfaces[id];
                w.packet(&mut bytes, id as u32, ticks, len, &frame);
                expected.push((i.link, Clock::new(i).ns(ticks), len, frame));
            }
            let (packets, end, at) = read(&bytes);
            prop_assert_eq!(packets, expected);
            prop_assert_eq!((end, at), (Ok(Step::More(12)), bytes.len()));
        }

        /// However packets of several interfaces and ways follow one another.
        #[test]
        fn who_brought_a_packet_is_known(
            big in any::<bool>(), ethernet in any::<bool>(),
            names in proptest::collection::vec("[ab]{0,2}", 1..4),
            runs in proptest::collection::vec((any::<u8>(), 0u8..3, 1usize..90, any::<bool>()), 0..40),
        ) {
            let w = if big { BE } else { LE };
            let link = if ethernet { LinkType::ETHERNET } else { LinkType::RAW };
            let named = |name| Interface { name, ..Interface::new(link) };
            let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
            let interfaces: Vec<_> = names.iter().map(|name| named(name)).collect();
            let (mut bytes, mut want) = (file(w, &interfaces), Vec::new());
            for (id, way, n, noise) in runs {
                let id = usize::from(id) % names.len();
                let way = [None, Some(Way::In), Some(Way::Out)][usize::from(way)];
                if noise {
                    w.block(&mut bytes, 5, &[&[0; 8]]);
                }
                for i in 0..n {
                    w.packet_going(&mut bytes, (id as u32, way), 0, 70, &vec![0; 54 + i % 9]);
                    want.push((Some(names[id].to_vec()).filter(|name| !name.is_empty()), way));
                }
            }
            prop_assert_eq!(came(&bytes), want);
        }
    }
}
