//! The pcapng file format as bytes, both ways (draft-ietf-opsawg-pcapng).
//!
//! A file is a list of blocks that each say their length twice. A section header block sets the
//! byte order for what follows and forgets all interfaces; an interface description block adds one,
//! with its link type and its clock; packet blocks name the interface they were captured on. All
//! other blocks are stepped over. [`PcapngReader::fill`] walks the blocks of whatever part of a
//! file is in memory and copies nothing.

mod block;
mod interface;
mod run;
mod section;
mod write;

pub use block::{MAGIC, PcapngFault};
pub use interface::Interface;
pub use write::Writer;

use crate::interface::InterfaceNames;
use crate::pcap::{ByteOrder, Step};
use crate::source::{Chunk, FrameBatch, LinkType};
use crate::walk::is_tagged;
use block::{PACKET, Whole, whole_block};
use run::Run;
use section::Section;

/// Reads the packets of a file, a batch at a time.
#[derive(Clone, Debug, Default)]
pub struct PcapngReader {
    section: Section,
}

impl PcapngReader {
    /// A reader at the start of a file.
    pub fn new() -> PcapngReader {
        PcapngReader::default()
    }

    /// The same, which puts the names of interfaces into a table that others have, too.
    pub fn naming(names: &InterfaceNames) -> PcapngReader {
        PcapngReader { section: Section { names: names.clone(), ..Section::default() } }
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
        let section = &mut self.section;
        batch.clear();
        let bytes = (**chunk).as_ref();
        let (mut base, mut looks) = (*at, false);
        while !batch.is_full() {
            let block = match whole_block(bytes.get(*at..).unwrap_or(&[]), section.order) {
                Ok(Whole::Block(block)) => block,
                _ if !batch.is_empty() => break,
                Ok(Whole::More(need)) => return Ok(Step::More(need)),
                Err(fault) => return Err(fault),
            };
            match section.read(&block) {
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
                        let mut run = Run { section, bytes, at: *at - base, batch };
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
                    batch.push(p.ts, section.seq, offset, p.caplen, p.len);
                    batch.set_capture_point(batch.len() - 1, p.point, &section.names);
                    section.seq += 1;
                }
                Ok(None) => {}
                Err(_) if !batch.is_empty() => break,
                Err(fault) => return Err(fault),
            }
            *at += block.len;
        }
        section.span = *at - base;
        Ok(Step::Frames)
    }
}

#[cfg(test)]
mod tests {
    use super::block::{BLOCK_HEADER, PACKET_OBSOLETE};
    use super::interface::Clock;
    use super::section::direction;
    use super::*;
    use crate::interface::Direction;
    use crate::limits::{CAPLEN_MAX, INTERFACES_MAX};
    use crate::time::{LAST_TIME, NO_TIME};
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

    /// By which interface each packet came, and which direction it went, as far as the file says.
    fn came(file: &[u8]) -> Vec<(Option<Vec<u8>>, Option<Direction>)> {
        let (mut reader, chunk) = (PcapngReader::new(), Arc::new(file.to_vec()) as Chunk);
        let (mut at, mut batch, mut out) = (0, FrameBatch::new(), Vec::new());
        while reader.fill(&chunk, &mut at, &mut batch) == Ok(Step::Frames) && !batch.is_empty() {
            for point in (0..batch.len()).map(|i| batch.capture_point(i)) {
                let name = point.interface().and_then(|n| batch.interface_names()?.name(n));
                out.push((name.map(|name| name.raw.into_vec()), point.direction()));
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
            (LinkType::RAW, NO_TIME, 63, vec![6, 7]),
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
            // The bytes after the last frame let it be looked at, too.
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
        assert_eq!(ns(6, 0, u64::MAX), LAST_TIME);
        assert_eq!(ns(6, i64::MAX, u64::MAX), LAST_TIME);
        assert_eq!(ns(9, i64::MIN, 0), NO_TIME + 1, "a time, though far off");
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
        let said = |options: &[u8]| direction(ByteOrder::Little, options);
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[2, 0, 4, 0, 1, 0, 0, 0]), Some(Direction::In));
        assert_eq!(said(&[2, 0, 4, 0, 0x0e, 0, 0, 9, 0, 0, 0, 0]), Some(Direction::Out));
        assert_eq!(said(&[2, 0, 4, 0, 0, 0, 0, 0]), None);
        // Behind a comment of five bytes; behind the end; broken off; too long.
        let comment = [1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
        assert_eq!(said(&[&comment[..], &[2, 0, 4, 0, 2, 0, 0, 0]].concat()), Some(Direction::Out));
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
        BE.packet_with_direction(&mut bytes, (0, Some(Direction::Out)), 0, 60, &[0; 60]);
        BE.packet(&mut bytes, 1, 0, 60, &[0; 60]);
        BE.simple_packet(&mut bytes, 60, &[0; 60]);
        let b = || Some(b"b".to_vec());
        let want = [(b(), None), (b(), Some(Direction::Out)), (None, None), (b(), None)];
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
            for (id, direction, n, noise) in runs {
                let id = usize::from(id) % names.len();
                let direction = [None, Some(Direction::In), Some(Direction::Out)][usize::from(direction)];
                if noise {
                    w.block(&mut bytes, 5, &[&[0; 8]]);
                }
                for i in 0..n {
                    w.packet_with_direction(&mut bytes, (id as u32, direction), 0, 70, &vec![0; 54 + i % 9]);
                    want.push((Some(names[id].to_vec()).filter(|name| !name.is_empty()), direction));
                }
            }
            prop_assert_eq!(came(&bytes), want);
        }
    }
}
