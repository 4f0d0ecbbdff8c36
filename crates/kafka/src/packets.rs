//! Packets in a record: what a capturing host writes into the partitions of a topic.
//! docs/records.md has the format.

use crate::limits::{AHEAD_NS, GAPS_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a record of packets begins: its format, and the version of that.
pub const MAGIC: &[u8; 4] = b"WPK1";

/// Bytes before the names of interfaces.
pub const FRONT_BYTES: usize = 48;

/// Bytes that say where and what a packet is.
const ENTRY_BYTES: usize = 20;

/// Bytes of a gap.
const GAP_BYTES: usize = 24;

/// The direction of a packet, as a byte.
const DIRECTIONS: u8 = 3;

/// By which key packets are spread over partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SpreadKey {
    /// Both endpoints of a connection and the protocol, the same in both directions.
    Conn,
    /// Both addresses, the same in both directions.
    Hosts,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
}

impl SpreadKey {
    /// All of them, in the order of their numbers.
    pub const ALL: [SpreadKey; 4] =
        [SpreadKey::Conn, SpreadKey::Hosts, SpreadKey::Source, SpreadKey::Destination];

    /// As queries and options name it.
    pub fn name(self) -> &'static str {
        match self {
            SpreadKey::Conn => "conn",
            SpreadKey::Hosts => "hosts",
            SpreadKey::Source => "ip.src",
            SpreadKey::Destination => "ip.dst",
        }
    }
}

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Packets, or only word of how far the capturing host is.
    Packets,
    /// The last one of a run whose input ended.
    End,
    /// The last one of a run that failed or was killed.
    Cut,
}

/// The head of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHead {
    /// The kind of the record.
    pub kind: PacketKind,
    /// By what packets are spread.
    pub spread: SpreadKey,
    /// The link type of its packets, as pcap numbers it.
    pub link: u16,
    /// The run that captured them: the time at which it started, in nanoseconds since 1970.
    pub epoch: u64,
    /// The number of the record in its partition and run, from 0.
    pub number: u64,
    /// Packets in the records of its partition and run before it.
    pub before: u64,
    /// The time up to which everything has come, in nanoseconds since 1970, if that is known.
    pub reached: Option<i64>,
}

impl PacketHead {
    /// Whether it is of a run or a time so far in the future that it can't be true. One such record
    /// would make all runs to come older than its own, or close windows that are to come.
    pub fn is_ahead(&self, now_ns: i64) -> bool {
        let most = now_ns.saturating_add(AHEAD_NS);
        i64::try_from(self.epoch).map_or(true, |epoch| epoch > most)
            || self.reached.is_some_and(|reached| reached > most)
    }
}

/// Frames that were lost before they were captured, between two times in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostFrames {
    /// None before.
    pub since: i64,
    /// None after; `i64::MAX` if that is not known yet.
    pub until: i64,
    /// How many.
    pub frames: u64,
}

/// One packet of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEntry {
    /// When it was captured, in nanoseconds since 1970.
    pub ts: i64,
    /// Its length on the wire.
    pub len: u32,
    /// Where its bytes begin in the record, ...
    pub start: u32,
    /// ... and how many there are.
    pub caplen: u32,
    /// The place of its interface among those of the record, if it is known.
    pub interface: Option<u16>,
    /// 0: not known, 1: received, 2: sent.
    pub direction: u8,
}

/// Why bytes are no record of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFault {
    /// It does not begin with [`MAGIC`].
    Foreign,
    /// It is of another version.
    Version(u8),
    /// It ends before it is whole, or goes on after it.
    Length,
    /// It has a kind, key, interface or direction that there is not.
    Value,
}

impl fmt::Display for PacketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketFault::Foreign => {
                f.write_str("it is no record of packets: it does not begin with `WPK1`")
            }
            PacketFault::Version(version) => write!(
                f,
                "its format has version `{}`; this Weir reads version 1",
                version.escape_ascii()
            ),
            PacketFault::Length => f.write_str("it has another length than it says"),
            PacketFault::Value => {
                f.write_str("it has a kind, key, interface or direction that there is not")
            }
        }
    }
}

impl std::error::Error for PacketFault {}

/// A record of packets, read.
#[derive(Clone, Debug)]
pub struct PacketRecord<'a> {
    /// Its head.
    pub head: PacketHead,
    /// How many packets there are.
    pub packets: u32,
    interfaces: Vec<&'a [u8]>,
    gaps: &'a [u8],
    table: &'a [u8],
    /// Where the bytes of packets begin.
    bytes_at: usize,
}

impl<'a> PacketRecord<'a> {
    /// Reads the value of a record, and checks all of it but the bytes of packets.
    ///
    /// # Errors
    /// Says why it is none.
    pub fn read(value: &'a [u8]) -> Result<PacketRecord<'a>, PacketFault> {
        let (head, [interfaces, gaps, packets]) = read_front(value)?;
        let mut rest = &value[FRONT_BYTES..];
        let mut take = |len: usize| {
            let (taken, left) = rest.split_at_checked(len).ok_or(PacketFault::Length)?;
            rest = left;
            Ok::<_, PacketFault>(taken)
        };
        let mut names = Vec::with_capacity(interfaces as usize);
        for _ in 0..interfaces {
            let len = take(1)?[0];
            names.push(take(len.into())?);
        }
        let gaps = take(gaps as usize * GAP_BYTES)?;
        let table = take((packets as usize).checked_mul(ENTRY_BYTES).ok_or(PacketFault::Length)?)?;
        let bytes_at = value.len() - rest.len();
        let record = PacketRecord { head, packets, interfaces: names, gaps, table, bytes_at };
        let mut end = bytes_at as u64;
        for entry in record.table.chunks_exact(ENTRY_BYTES) {
            let (caplen, interface, direction) = (le32(entry, 12), le16(entry, 16), entry[18]);
            end += u64::from(caplen);
            if interface as usize > record.interfaces.len() || direction >= DIRECTIONS {
                return Err(PacketFault::Value);
            }
        }
        match end == value.len() as u64 {
            true => Ok(record),
            false => Err(PacketFault::Length),
        }
    }

    /// The names of interfaces, by their place.
    pub fn interfaces(&self) -> &[&'a [u8]] {
        &self.interfaces
    }

    /// The frames that the capturing host lost since the record before.
    pub fn gaps(&self) -> impl Iterator<Item = LostFrames> + use<'a> {
        self.gaps.chunks_exact(GAP_BYTES).map(|gap| LostFrames {
            since: le64(gap, 0).cast_signed(),
            until: le64(gap, 8).cast_signed(),
            frames: le64(gap, 16),
        })
    }

    /// The packets, in the order in which they were captured.
    pub fn entries(&self) -> impl Iterator<Item = PacketEntry> + use<'a> {
        let mut start = self.bytes_at as u32;
        self.table.chunks_exact(ENTRY_BYTES).map(move |entry| {
            let (caplen, interface) = (le32(entry, 12), le16(entry, 16));
            let at = start;
            start += caplen;
            PacketEntry {
                ts: le64(entry, 0).cast_signed(),
                len: le32(entry, 8),
                start: at,
                caplen,
                interface: interface.checked_sub(1),
                direction: entry[18],
            }
        })
    }
}

/// Reads what stands at the beginning alone.
///
/// # Errors
/// If the bytes are too few, or say something that there is not.
pub fn read_head(value: &[u8]) -> Result<PacketHead, PacketFault> {
    read_front(value).map(|(head, _)| head)
}

/// The number of packets that the front of a record names; 0 if there is none.
pub fn packets_of(value: &[u8]) -> u32 {
    read_front(value).map_or(0, |(_, [_, _, packets])| packets)
}

/// The head, and the numbers of interfaces, of gaps and of packets.
fn read_front(value: &[u8]) -> Result<(PacketHead, [u32; 3]), PacketFault> {
    match value.first_chunk::<4>() {
        Some(magic) if magic == MAGIC => {}
        Some([b'W', b'P', b'K', version]) => return Err(PacketFault::Version(*version)),
        _ => return Err(PacketFault::Foreign),
    }
    let front = value.get(..FRONT_BYTES).ok_or(PacketFault::Length)?;
    let kind = match front[4] {
        0 => PacketKind::Packets,
        1 => PacketKind::End,
        2 => PacketKind::Cut,
        _ => return Err(PacketFault::Value),
    };
    let spread = *SpreadKey::ALL.get(usize::from(front[5])).ok_or(PacketFault::Value)?;
    let reached = le64(front, 32).cast_signed();
    let head = PacketHead {
        kind,
        spread,
        link: le16(front, 6),
        epoch: le64(front, 8),
        number: le64(front, 16),
        before: le64(front, 24),
        reached: (reached != i64::MIN).then_some(reached),
    };
    let packets = le32(front, 44);
    // No capture comes to so many.
    head.before.checked_add(packets.into()).ok_or(PacketFault::Value)?;
    Ok((head, [le16(front, 40).into(), le16(front, 42).into(), packets]))
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}

impl LostFrames {
    /// Adds what was lost to a list of [`GAPS_MAX`] at most: what comes beyond is put together with
    /// the last.
    pub fn add(all: &mut Vec<LostFrames>, lost: LostFrames) {
        let is_full = all.len() >= GAPS_MAX;
        match all.last_mut().filter(|_| is_full) {
            None => all.push(lost),
            Some(last) => {
                last.frames = last.frames.saturating_add(lost.frames);
                (last.since, last.until) = (last.since.min(lost.since), last.until.max(lost.until));
            }
        }
    }
}

/// Gathers the packets of a record.
#[derive(Default, Debug)]
pub struct PacketRecordBuilder {
    /// Numbers and names of interfaces, in the order of their places.
    interfaces: Vec<(u16, Box<[u8]>)>,
    gaps: Vec<LostFrames>,
    table: Vec<u8>,
    bytes: Vec<u8>,
    packets: u32,
}

impl PacketRecordBuilder {
    /// How many packets there are.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Whether there is neither a packet nor a gap.
    pub fn is_empty(&self) -> bool {
        self.packets == 0 && self.gaps.is_empty()
    }

    /// Bytes that the record would have, without the names of interfaces.
    pub fn bytes(&self) -> usize {
        FRONT_BYTES + self.gaps.len() * GAP_BYTES + self.table.len() + self.bytes.len()
    }

    /// The place of an interface, from 1, whose name `name` gives; 0 if there is no room for it.
    pub fn interface(&mut self, number: u16, name: impl FnOnce() -> Box<[u8]>) -> u16 {
        let known = self.interfaces.iter().position(|(known, _)| *known == number);
        let place = known.unwrap_or_else(|| {
            self.interfaces.push((number, name()));
            self.interfaces.len() - 1
        });
        u16::try_from(place + 1).unwrap_or(0)
    }

    /// Adds what was lost. Neighbours are put together where there are very many.
    pub fn lose(&mut self, lost: LostFrames) {
        LostFrames::add(&mut self.gaps, lost);
    }

    /// Adds a packet; `interface` is what [`PacketRecordBuilder::interface`] gave, or 0.
    pub fn push(&mut self, ts: i64, len: u32, bytes: &[u8], interface: u16, direction: u8) {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&ts.to_le_bytes());
        entry[8..12].copy_from_slice(&len.to_le_bytes());
        entry[12..16].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        entry[16..18].copy_from_slice(&interface.to_le_bytes());
        entry[18] = direction;
        self.table.extend_from_slice(&entry);
        self.bytes.extend_from_slice(bytes);
        self.packets += 1;
    }

    /// Appends the record to `to`, and is empty then.
    pub fn finish(&mut self, head: &PacketHead, to: &mut Vec<u8>) {
        self.front(head, to);
        self.rest().into_iter().for_each(|part| to.extend_from_slice(part));
        self.clear();
    }

    /// Appends to `to` what a record has before its packets.
    pub fn front(&self, head: &PacketHead, to: &mut Vec<u8>) {
        let kind = match head.kind {
            PacketKind::Packets => 0,
            PacketKind::End => 1,
            PacketKind::Cut => 2,
        };
        let spread = SpreadKey::ALL.iter().position(|key| *key == head.spread).unwrap_or(0);
        to.extend_from_slice(MAGIC);
        to.extend_from_slice(&[kind, spread as u8]);
        to.extend_from_slice(&head.link.to_le_bytes());
        for word in [head.epoch, head.number, head.before] {
            to.extend_from_slice(&word.to_le_bytes());
        }
        to.extend_from_slice(&head.reached.unwrap_or(i64::MIN).to_le_bytes());
        to.extend_from_slice(&(self.interfaces.len() as u16).to_le_bytes());
        to.extend_from_slice(&(self.gaps.len() as u16).to_le_bytes());
        to.extend_from_slice(&self.packets.to_le_bytes());
        for (_, name) in &self.interfaces {
            let name = &name[..name.len().min(255)];
            to.push(name.len() as u8);
            to.extend_from_slice(name);
        }
        for gap in &self.gaps {
            to.extend_from_slice(&gap.since.to_le_bytes());
            to.extend_from_slice(&gap.until.to_le_bytes());
            to.extend_from_slice(&gap.frames.to_le_bytes());
        }
    }

    /// The times and lengths of packets, and their bytes: both come after the
    /// [front](PacketRecordBuilder::front).
    pub fn rest(&self) -> [&[u8]; 2] {
        [&self.table, &self.bytes]
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.interfaces.clear();
        self.gaps.clear();
        self.table.clear();
        self.bytes.clear();
        self.packets = 0;
    }
}

/// Takes bytes as a record of packets: for fuzzing.
#[cfg(any(test, fuzzing))]
pub fn fuzz_packets(bytes: &[u8]) {
    let Ok(record) = PacketRecord::read(bytes) else { return };
    let mut builder = PacketRecordBuilder::default();
    for (number, name) in (0..).zip(record.interfaces()) {
        builder.interface(number, || Box::from(*name));
    }
    record.gaps().for_each(|gap| builder.lose(gap));
    for entry in record.entries() {
        let packet = &bytes[entry.start as usize..][..entry.caplen as usize];
        let interface = entry.interface.map_or(0, |place| place + 1);
        builder.push(entry.ts, entry.len, packet, interface, entry.direction);
    }
    let mut again = Vec::new();
    builder.finish(&record.head, &mut again);
    let mut expected = bytes.to_vec();
    // The last byte of each entry is for later versions.
    let table = record.bytes_at - record.table.len();
    (0..record.packets as usize).for_each(|n| expected[table + n * ENTRY_BYTES + 19] = 0);
    assert_eq!(again, expected);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(reached: Option<i64>) -> PacketHead {
        PacketHead {
            kind: PacketKind::Packets,
            spread: SpreadKey::Hosts,
            link: 1,
            epoch: u64::MAX,
            number: 7,
            before: 3,
            reached,
        }
    }

    fn record() -> Vec<u8> {
        let (mut builder, mut bytes) = (PacketRecordBuilder::default(), Vec::new());
        let eth0 = builder.interface(4, || Box::from(&b"eth0"[..]));
        assert_eq!((eth0, builder.interface(4, || unreachable!("it is known"))), (1, 1));
        builder.lose(LostFrames { since: -1, until: i64::MAX, frames: 9 });
        builder.push(i64::MIN, 1500, b"abc", eth0, 2);
        builder.push(i64::MAX, 0, b"", 0, 0);
        builder.finish(&head(Some(5)), &mut bytes);
        assert!(builder.is_empty());
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = record();
        let read = PacketRecord::read(&bytes).expect("a record");
        assert_eq!((read.head, read.packets), (head(Some(5)), 2));
        assert_eq!(read.interfaces(), [b"eth0"]);
        let gap = LostFrames { since: -1, until: i64::MAX, frames: 9 };
        assert_eq!(read.gaps().collect::<Vec<_>>(), [gap]);
        let all: Vec<_> = read.entries().collect();
        assert_eq!((all[0].ts, all[0].len, all[0].interface), (i64::MIN, 1500, Some(0)));
        assert_eq!(&bytes[all[0].start as usize..][..3], b"abc");
        assert_eq!((all[1].ts, all[1].caplen, all[1].interface), (i64::MAX, 0, None));
        assert_eq!(read_head(&bytes), Ok(head(Some(5))));
        let mut empty = Vec::new();
        PacketRecordBuilder::default().finish(&head(None), &mut empty);
        assert_eq!(empty.len(), FRONT_BYTES);
        assert_eq!(PacketRecord::read(&empty).expect("a record").head, head(None));
    }

    #[test]
    fn runs_and_times_of_the_future_are_told() {
        let is_ahead = |epoch: u64, reached: Option<i64>, now: i64| {
            PacketHead { epoch, ..head(reached) }.is_ahead(now)
        };
        let now = 1_800_000_000_000_000_000;
        let most = now + AHEAD_NS;
        assert!(!is_ahead(0, None, now) && !is_ahead(most as u64, Some(most), now));
        assert!(!is_ahead(now as u64, Some(i64::MIN + 1), now));
        for epoch in [most as u64 + 1, i64::MAX as u64, 1 << 63, u64::MAX] {
            assert!(is_ahead(epoch, None, now), "{epoch}");
        }
        assert!(is_ahead(0, Some(most + 1), now) && is_ahead(0, Some(i64::MAX), now));
        assert!(!is_ahead(i64::MAX as u64, Some(i64::MAX), i64::MAX));
    }

    #[test]
    fn losses_beyond_a_list_are_put_together() {
        let mut builder = PacketRecordBuilder::default();
        for i in 0..GAPS_MAX as i64 + 3 {
            builder.lose(LostFrames { since: i, until: i + 1, frames: u64::MAX / 400 });
        }
        let mut bytes = Vec::new();
        builder.finish(&head(None), &mut bytes);
        let gaps: Vec<_> = PacketRecord::read(&bytes).expect("a record").gaps().collect();
        let (count, last) = (gaps.len(), gaps[GAPS_MAX - 1]);
        assert_eq!((count, last.since, last.until), (GAPS_MAX, 255, 259));
        assert_eq!(last.frames, 4 * (u64::MAX / 400));
    }

    #[test]
    fn numbers_that_no_capture_comes_to_are_a_fault() {
        let (mut builder, mut bytes) = (PacketRecordBuilder::default(), Vec::new());
        builder.push(0, 0, b"", 0, 0);
        builder.finish(&PacketHead { before: u64::MAX, ..head(None) }, &mut bytes);
        assert_eq!(PacketRecord::read(&bytes).expect_err("a fault"), PacketFault::Value);
    }

    #[test]
    fn what_is_no_record_is_named() {
        let bytes = record();
        let fault = |bytes: &[u8]| PacketRecord::read(bytes).expect_err("a fault");
        assert_eq!([fault(b""), fault(b"WPS1")], [PacketFault::Foreign; 2]);
        assert_eq!(fault(b"WPK2"), PacketFault::Version(b'2'));
        assert!((4..bytes.len()).all(|at| fault(&bytes[..at]) == PacketFault::Length));
        assert_eq!(fault(&[&bytes[..], b"x"].concat()), PacketFault::Length);
        // The kind, the key, an interface that there is not, a direction.
        let table = FRONT_BYTES + 5 + GAP_BYTES;
        for (at, value) in [(4, 3), (5, 4), (table + 16, 2), (table + 18, 3)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(fault(&wrong), PacketFault::Value, "{at}");
        }
        // More packets than memory holds.
        let mut wrong = bytes;
        wrong[44..48].fill(0xff);
        assert_eq!(fault(&wrong), PacketFault::Length);
    }

    proptest! {
        #[test]
        fn damaged_records_are_read_without_harm(at in 0usize..200, bit in 0u8..8, cut in 0usize..9) {
            let mut bytes = record();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            bytes.truncate(bytes.len() - cut % 3);
            fuzz_packets(&bytes);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            fuzz_packets(&bytes);
            fuzz_packets(&[&MAGIC[..], &bytes].concat());
        }
    }
}
