//! The pcap file format as bytes, both ways (draft-ietf-opsawg-pcap).
//!
//! A file header of 24 bytes, then records: a header of 16 bytes each (24 in files with the
//! modified magic) and the captured bytes. [`PcapReader::fill`] walks the records of whatever part
//! of a file is in memory and copies nothing. The walk is compiled once per byte order, so that its
//! loop holds only loads, two comparisons and the stores into the batch.

use crate::limits::{BATCH, CAPLEN_MAX};
use crate::prefetch::{Ahead, FAR, LINE, NEAR, ask_far, prefetch};
use crate::source::{Chunk, FrameBatch, LinkType};
use crate::walk::{HEADS, Heads, WINDOW, is_tagged};
use std::fmt;

/// Bytes of the file header.
pub const FILE_HEADER: usize = 24;

const RECORD_HEADER: usize = 16;
const RECORD_HEADER_MODIFIED: usize = 24;

const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// In which order the bytes of a file's numbers stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    pub(crate) fn u16(self, b: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(b),
            ByteOrder::Big => u16::from_be_bytes(b),
        }
    }

    pub(crate) fn u32(self, b: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(b),
            ByteOrder::Big => u32::from_be_bytes(b),
        }
    }

    pub(crate) fn put16(self, v: u16) -> [u8; 2] {
        match self {
            ByteOrder::Little => v.to_le_bytes(),
            ByteOrder::Big => v.to_be_bytes(),
        }
    }

    pub(crate) fn put32(self, v: u32) -> [u8; 4] {
        match self {
            ByteOrder::Little => v.to_le_bytes(),
            ByteOrder::Big => v.to_be_bytes(),
        }
    }
}

/// The file header: how the records after it are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// Byte order of every number in the file.
    pub order: ByteOrder,
    /// Fractions of a second are nanoseconds, not microseconds.
    pub nanos: bool,
    /// Record headers have 24 bytes (the modified format of A. Kuznetsov's patches).
    pub modified: bool,
    /// Major and minor version, 2.4 since 1998. Before 2.3 the two lengths of a record stand
    /// the other way round; in 2.3 some writers did one and some the other.
    pub version: (u16, u16),
    /// Most bytes captured of a frame, as the writer promised; 0 for no limit. Not relied on.
    pub snaplen: u32,
    /// Link type of every frame.
    pub link: LinkType,
}

/// Why the first bytes of a file are not a pcap header that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderError {
    /// The first four bytes are no pcap magic number.
    Magic,
    /// Fewer than [`FILE_HEADER`] bytes.
    Short,
    /// A version that was never in use.
    Version(u16, u16),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Magic => f.write_str("not a pcap file"),
            HeaderError::Short => f.write_str("the pcap file header is cut short"),
            HeaderError::Version(major, minor) => {
                write!(f, "pcap version {major}.{minor} is not known")
            }
        }
    }
}

/// A fault in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PcapFault {
    /// The record claims more captured bytes than [`CAPLEN_MAX`].
    CapturedLength(u32),
}

impl fmt::Display for PcapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PcapFault::CapturedLength(n) => {
                write!(f, "a record claims {n} captured bytes, more than {CAPLEN_MAX}")
            }
        }
    }
}

/// The result of filling a batch from the bytes at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The batch holds at least one frame.
    Frames,
    /// The batch is empty: no record is whole. The next one takes this many bytes, as far as can
    /// be told from what is there.
    More(usize),
}

/// The link type that a number in a file means: raw IP has two more numbers there.
pub(crate) fn link_from_file(number: u16) -> LinkType {
    match number {
        12 | 14 => LinkType::RAW,
        n => LinkType(n),
    }
}

impl FileHeader {
    /// A header as we write it: little-endian, nanoseconds, version 2.4.
    pub fn new(link: LinkType) -> FileHeader {
        FileHeader {
            order: ByteOrder::Little,
            nanos: true,
            modified: false,
            version: (2, 4),
            snaplen: CAPLEN_MAX,
            link,
        }
    }

    /// Reads the header at the start of a file. Of the link type the low 16 bits count; the others
    /// tell about frame check sequences.
    ///
    /// # Errors
    /// When the bytes are no header, or one of a version that can't be read.
    pub fn parse(bytes: &[u8]) -> Result<FileHeader, HeaderError> {
        let magic = bytes.first_chunk::<4>().ok_or(HeaderError::Magic)?;
        let (order, magic) = match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
            (m @ (MAGIC_MICROS | MAGIC_NANOS | MAGIC_MODIFIED), _) => (ByteOrder::Little, m),
            (_, m @ (MAGIC_MICROS | MAGIC_NANOS | MAGIC_MODIFIED)) => (ByteOrder::Big, m),
            _ => return Err(HeaderError::Magic),
        };
        let h = bytes.first_chunk::<FILE_HEADER>().ok_or(HeaderError::Short)?;
        let version = (order.u16([h[4], h[5]]), order.u16([h[6], h[7]]));
        if !matches!(version, (2, _) | (543, 0)) {
            return Err(HeaderError::Version(version.0, version.1));
        }
        let link = order.u32([h[20], h[21], h[22], h[23]]);
        Ok(FileHeader {
            order,
            nanos: magic == MAGIC_NANOS,
            modified: magic == MAGIC_MODIFIED,
            version,
            snaplen: order.u32([h[16], h[17], h[18], h[19]]),
            link: link_from_file((link & 0xffff) as u16),
        })
    }

    /// The header as it stands at the start of a file.
    pub fn to_bytes(&self) -> [u8; FILE_HEADER] {
        let magic = match (self.nanos, self.modified) {
            (_, true) => MAGIC_MODIFIED,
            (true, false) => MAGIC_NANOS,
            (false, false) => MAGIC_MICROS,
        };
        let mut out = [0; FILE_HEADER];
        out[0..4].copy_from_slice(&self.order.put32(magic));
        out[4..6].copy_from_slice(&self.order.put16(self.version.0));
        out[6..8].copy_from_slice(&self.order.put16(self.version.1));
        out[16..20].copy_from_slice(&self.order.put32(self.snaplen));
        out[20..24].copy_from_slice(&self.order.put32(u32::from(self.link.0)));
        out
    }

    /// Appends a record: `ts` in nanoseconds since 1970 (clamped to what 32 bits of seconds can
    /// say), `len` the length on the wire, `frame` the captured bytes.
    pub fn put_record(&self, out: &mut Vec<u8>, ts: i64, len: u32, frame: &[u8]) {
        const SECOND: i64 = 1_000_000_000;
        let ts = ts.clamp(0, i64::from(u32::MAX) * SECOND + (SECOND - 1));
        let fraction = ts % SECOND / self.fraction_ns();
        let caplen = frame.len() as u32;
        let lengths = match self.lengths() {
            Lengths::Swapped => [len, caplen],
            Lengths::Plain | Lengths::Either => [caplen, len],
        };
        for word in [(ts / SECOND) as u32, fraction as u32].into_iter().chain(lengths) {
            out.extend_from_slice(&self.order.put32(word));
        }
        if self.modified {
            out.extend_from_slice(&[0; RECORD_HEADER_MODIFIED - RECORD_HEADER]);
        }
        out.extend_from_slice(frame);
    }

    fn fraction_ns(&self) -> i64 {
        // The modified format says microseconds whatever else it says.
        if self.nanos && !self.modified { 1 } else { 1000 }
    }

    fn lengths(&self) -> Lengths {
        match self.version {
            (2, 0..=2) | (543, _) => Lengths::Swapped,
            (2, 3) => Lengths::Either,
            _ => Lengths::Plain,
        }
    }
}

/// In which order the two lengths of a record stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    /// Captured, then on the wire.
    Plain,
    /// On the wire, then captured.
    Swapped,
    /// The smaller is the captured one.
    Either,
}

/// Reads the records of a file, a batch at a time.
#[derive(Clone, Debug)]
pub struct PcapReader {
    order: ByteOrder,
    link: LinkType,
    shape: Shape,
    seq: u64,
    /// Bytes that the last batch took.
    span: usize,
}

/// The shape of records, as the walk must know it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    header: usize,
    fraction_ns: i64,
    lengths: Lengths,
}

/// Why the walk stopped; positions count from where it started.
enum Stop {
    Full,
    More(usize),
    Fault(PcapFault),
}

impl PcapReader {
    /// A reader of the records that follow `header`.
    pub fn new(header: &FileHeader) -> PcapReader {
        PcapReader {
            order: header.order,
            link: header.link,
            shape: Shape {
                header: if header.modified { RECORD_HEADER_MODIFIED } else { RECORD_HEADER },
                fraction_ns: header.fraction_ns(),
                lengths: header.lengths(),
            },
            seq: 0,
            span: 0,
        }
    }

    /// Replaces the contents of `batch` with the next whole records of `chunk` from `at` on, and
    /// moves `at` behind them.
    ///
    /// # Errors
    /// When the record at `at` is corrupt and no frame stands before it: frames before a fault are
    /// delivered first, and the next call meets the fault again.
    pub fn fill(
        &mut self,
        chunk: &Chunk,
        at: &mut usize,
        batch: &mut FrameBatch,
    ) -> Result<Step, PcapFault> {
        batch.restart(chunk, *at, self.link);
        let bytes = (**chunk).as_ref().get(*at..).unwrap_or(&[]);
        let usual = self.shape.header == RECORD_HEADER && self.shape.lengths == Lengths::Plain;
        let walk = match (self.order, usual) {
            (ByteOrder::Little, true) => walk::<false, true>,
            (ByteOrder::Little, false) => walk::<false, false>,
            (ByteOrder::Big, true) => walk::<true, true>,
            (ByteOrder::Big, false) => walk::<true, false>,
        };
        let (used, stop) = walk(bytes, self.shape, self.seq, self.span, batch);
        *at += used;
        self.span = used;
        self.seq += batch.len() as u64;
        match stop {
            _ if !batch.is_empty() => Ok(Step::Frames),
            Stop::Full => Ok(Step::Frames),
            Stop::More(need) => Ok(Step::More(need)),
            Stop::Fault(fault) => Err(fault),
        }
    }
}

/// Pushes the whole records of `bytes` into `batch`, which is empty and whose base is the start of
/// `bytes`, until it is full. The last batch took `span` bytes. `USUAL`: 16-byte headers with the
/// captured length first.
fn walk<const BIG: bool, const USUAL: bool>(
    bytes: &[u8],
    shape: Shape,
    seq: u64,
    span: usize,
    batch: &mut FrameBatch,
) -> (usize, Stop) {
    let mut at = 0;
    // Frames with a tag are classified by themselves.
    let tagged = bytes.get(RECORD_HEADER..).is_some_and(is_tagged);
    if USUAL && batch.link == LinkType::ETHERNET && !tagged {
        at = walk_looking::<BIG>(bytes, shape, seq, batch);
    }
    let ahead = Ahead::walk(span);
    let header = if USUAL { RECORD_HEADER } else { shape.header };
    let mut stop = Stop::Full;
    batch.push_all(BATCH, seq, |_| {
        prefetch(bytes, at + NEAR);
        ahead.ask(bytes, at);
        let Some(h) = bytes.get(at..).and_then(<[u8]>::first_chunk::<RECORD_HEADER>) else {
            stop = Stop::More(header);
            return None;
        };
        let (mut caplen, mut len) = (word::<BIG>(h, 8), word::<BIG>(h, 12));
        if !USUAL && shape.lengths.swap(caplen, len) {
            (caplen, len) = (len, caplen);
        }
        if caplen > CAPLEN_MAX {
            stop = Stop::Fault(PcapFault::CapturedLength(caplen));
            return None;
        }
        let start = at + header;
        let end = start + caplen as usize;
        if end > bytes.len() {
            stop = Stop::More(end - at);
            return None;
        }
        at = end;
        Some((time::<BIG>(h, shape.fraction_ns), start as u32, caplen, len))
    });
    (at, stop)
}

/// The same of usual records of Ethernet frames, and looks at each frame for the classifier:
/// gathers what that takes while the walk waits for memory, and looks at some frames at a time.
/// Ends early, near the end of `bytes` or before a fault. Returns how many bytes it took.
fn walk_looking<const BIG: bool>(
    bytes: &[u8],
    shape: Shape,
    seq: u64,
    batch: &mut FrameBatch,
) -> usize {
    let mut at = 0;
    let mut heads = Heads::new();
    batch.look_at_all();
    while !batch.is_full() {
        let from = batch.len();
        // Where much is at hand, some of it is asked for.
        look_at_some::<BIG, { FAR + LINE + 1 }>(bytes, shape, seq, &mut at, batch, &mut heads);
        if batch.len() == from {
            look_at_some::<BIG, HEADED>(bytes, shape, seq, &mut at, batch, &mut heads);
        }
        if batch.len() == from {
            break;
        }
    }
    at
}

/// Bytes of a record that are looked at.
const HEADED: usize = RECORD_HEADER + WINDOW;

/// Walks the next records, a few at a time, as long as `AHEAD` bytes are there from the start of
/// each.
#[inline(always)]
fn look_at_some<const BIG: bool, const AHEAD: usize>(
    bytes: &[u8],
    shape: Shape,
    seq: u64,
    at: &mut usize,
    batch: &mut FrameBatch,
    heads: &mut Heads,
) {
    // A batch is far shorter than 4 GiB.
    let (from, mut start, mut end) = (batch.len(), *at as u32, *at as u32);
    batch.push_all(HEADS, seq, |i| {
        let ahead: &[u8; AHEAD] = bytes.get(end as usize..end as usize + AHEAD)?.first_chunk()?;
        if let Some(far) = ahead.first_chunk() {
            ask_far(far);
        }
        let (h, frame) = ahead.split_first_chunk::<RECORD_HEADER>()?;
        let (caplen, len) = (word::<BIG>(h, 8), word::<BIG>(h, 12));
        if caplen > CAPLEN_MAX {
            return None;
        }
        heads.put_ethernet(i, frame.first_chunk()?);
        start = end;
        let frame = start + RECORD_HEADER as u32;
        end = frame + caplen;
        Some((time::<BIG>(h, shape.fraction_ns), frame, caplen, len))
    });
    let (start, mut end) = (start as usize, end as usize);
    // That a record is whole shows when the next one is met: the last may not be.
    if end > bytes.len() {
        batch.pop();
        end = start;
    }
    *at = end;
    let looked = batch.len() - from;
    if looked > 0 {
        heads.look_ethernet(&batch.caplens()[from..], &batch.lens()[from..]);
        batch.set_looks(from, &heads.looks[..looked]);
    }
}

/// A record's time in nanoseconds since 1970.
#[inline(always)]
fn time<const BIG: bool>(h: &[u8; RECORD_HEADER], fraction_ns: i64) -> i64 {
    i64::from(word::<BIG>(h, 0)) * 1_000_000_000 + i64::from(word::<BIG>(h, 4)) * fraction_ns
}

/// The number at `h[i..i + 4]`.
#[inline(always)]
pub(crate) fn word<const BIG: bool>(h: &[u8], i: usize) -> u32 {
    let b = [h[i], h[i + 1], h[i + 2], h[i + 3]];
    if BIG { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
}

impl Lengths {
    fn swap(self, first: u32, second: u32) -> bool {
        match self {
            Lengths::Plain => false,
            Lengths::Swapped => true,
            Lengths::Either => first > second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    type Record = (i64, u32, Vec<u8>);

    fn write(header: &FileHeader, records: &[Record]) -> Vec<u8> {
        let mut out = header.to_bytes().to_vec();
        for (ts, len, frame) in records {
            header.put_record(&mut out, *ts, *len, frame);
        }
        out
    }

    /// Reads all records of a file in memory, and what the reader said at the end.
    fn read(file: &[u8]) -> (Vec<Record>, Result<Step, PcapFault>, usize) {
        let header = FileHeader::parse(file).unwrap();
        let mut reader = PcapReader::new(&header);
        let chunk: Chunk = Arc::new(file.to_vec());
        let (mut at, mut batch, mut out) = (FILE_HEADER, FrameBatch::new(), Vec::new());
        loop {
            match reader.fill(&chunk, &mut at, &mut batch) {
                Ok(Step::Frames) => {
                    assert_eq!(batch.link, header.link);
                    for i in 0..batch.len() {
                        assert_eq!(batch.seq()[i], out.len() as u64);
                        out.push((batch.ts()[i], batch.lens()[i], batch.frame(i).to_vec()));
                    }
                }
                end => return (out, end, at),
            }
        }
    }

    #[test]
    fn one_record_byte_by_byte() {
        let header = FileHeader { nanos: false, ..FileHeader::new(LinkType::ETHERNET) };
        let file = write(&header, &[(2_000_003_000, 60, vec![0xaa, 0xbb])]);
        let expected = [
            0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0,
            0, //
            2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 60, 0, 0, 0, 0xaa, 0xbb,
        ];
        assert_eq!(file, expected);
        let (records, end, at) = read(&file);
        assert_eq!(records, [(2_000_003_000, 60, vec![0xaa, 0xbb])]);
        assert_eq!((end, at), (Ok(Step::More(16)), file.len()));
    }

    /// The result of a loop without any tricks, after the file header: the records, how reading
    /// ends and where.
    fn one_by_one(file: &[u8], order: ByteOrder) -> (Vec<Record>, Result<Step, PcapFault>, usize) {
        let (mut at, mut records) = (FILE_HEADER, Vec::new());
        loop {
            let rest = &file[at..];
            let Some(h) = rest.first_chunk::<RECORD_HEADER>() else {
                return (records, Ok(Step::More(RECORD_HEADER)), at);
            };
            let word = |i: usize| order.u32([h[i], h[i + 1], h[i + 2], h[i + 3]]);
            let (caplen, len) = (word(8), word(12));
            if caplen > CAPLEN_MAX {
                return (records, Err(PcapFault::CapturedLength(caplen)), at);
            }
            let whole = RECORD_HEADER + caplen as usize;
            let Some(frame) = rest.get(RECORD_HEADER..whole) else {
                return (records, Ok(Step::More(whole)), at);
            };
            let ts = i64::from(word(0)) * 1_000_000_000 + i64::from(word(4));
            records.push((ts, len, frame.to_vec()));
            at += whole;
        }
    }

    /// Records of Ethernet frames are gathered some at a time, with a look ahead: wherever the file
    /// ends, and wherever a length is absurd, they end as if they were read one by one.
    #[test]
    fn records_that_are_looked_at_end_where_those_read_one_by_one_do() {
        let frame = crate::craft::Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(1, 2);
        let frame = frame.payload(&[7; 6]).bytes();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let header = FileHeader { order, ..FileHeader::new(LinkType::ETHERNET) };
            let file_of = |n: i64| {
                let record = |i| (i * 1_000_000_007, 60, frame.clone());
                write(&header, &(0..n).map(record).collect::<Vec<_>>())
            };
            for n in [1, 31, 32, 33, 64, 255, 256, 257, 300] {
                let file = file_of(n);
                for cut in 0..2300.min(file.len() - FILE_HEADER) {
                    let cut = &file[..file.len() - cut];
                    assert!(read(cut) == one_by_one(cut, order), "{} of {n}", cut.len());
                }
            }
            for k in [0, 1, 31, 32, 33, 200] {
                for caplen in [CAPLEN_MAX + 1, CAPLEN_MAX, u32::MAX] {
                    let mut file = file_of(300);
                    let at = FILE_HEADER + k * (RECORD_HEADER + frame.len()) + 8;
                    file[at..at + 4].copy_from_slice(&order.put32(caplen));
                    assert!(read(&file) == one_by_one(&file, order), "{caplen} in {k}");
                }
            }
        }
    }

    #[test]
    fn link_type_is_the_low_half_and_raw_has_three_numbers() {
        let mut file = FileHeader::new(LinkType::ETHERNET).to_bytes();
        file[20..24].copy_from_slice(&0x3000_0084u32.to_le_bytes());
        assert_eq!(FileHeader::parse(&file).unwrap().link, LinkType(132));
        for raw in [12, 14, 101] {
            file[20..24].copy_from_slice(&u32::to_le_bytes(raw));
            assert_eq!(FileHeader::parse(&file).unwrap().link, LinkType::RAW);
        }
    }

    #[test]
    fn not_a_header() {
        let good = FileHeader::new(LinkType::ETHERNET).to_bytes();
        assert_eq!(FileHeader::parse(&[]), Err(HeaderError::Magic));
        assert_eq!(FileHeader::parse(b"GIF89a"), Err(HeaderError::Magic));
        assert_eq!(FileHeader::parse(&good[..23]), Err(HeaderError::Short));
        let mut old = good;
        old[4] = 1;
        assert_eq!(FileHeader::parse(&old), Err(HeaderError::Version(1, 4)));
    }

    #[test]
    fn a_torn_record_and_an_absurd_one_come_after_the_good_ones() {
        let header = FileHeader::new(LinkType::RAW);
        let mut file = write(&header, &[(1, 4, vec![1; 4]), (2, 9, vec![2; 9])]);
        let (records, end, at) = read(&file[..file.len() - 1]);
        assert_eq!((records.len(), end, at), (1, Ok(Step::More(25)), FILE_HEADER + 20));
        file[FILE_HEADER + 20 + 8..][..4].copy_from_slice(&(CAPLEN_MAX + 1).to_le_bytes());
        let (records, end, at) = read(&file);
        assert_eq!((records.len(), at), (1, FILE_HEADER + 20));
        assert_eq!(end, Err(PcapFault::CapturedLength(CAPLEN_MAX + 1)));
    }

    #[test]
    fn version_2_3_takes_the_smaller_length_as_the_captured_one() {
        let new = FileHeader::new(LinkType::RAW);
        let old = FileHeader { version: (2, 3), ..new };
        for first in [[4u32, 60], [60, 4]] {
            let mut file = write(&old, &[(0, 60, vec![7; 4])]);
            file[FILE_HEADER + 8..][..4].copy_from_slice(&first[0].to_le_bytes());
            file[FILE_HEADER + 12..][..4].copy_from_slice(&first[1].to_le_bytes());
            assert_eq!(read(&file).0, [(0, 60, vec![7; 4])]);
        }
    }

    #[test]
    fn a_wild_fraction_counts_as_time() {
        let header = FileHeader { nanos: false, ..FileHeader::new(LinkType::RAW) };
        let mut file = write(&header, &[(0, 0, vec![])]);
        file[FILE_HEADER..][..8].copy_from_slice(&[0xff; 8]);
        let ns = i64::from(u32::MAX);
        assert_eq!(read(&file).0[0].0, ns * 1_000_000_000 + ns * 1000);
    }

    fn headers() -> impl Strategy<Value = FileHeader> {
        let orders = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
        let versions = prop_oneof![Just((2u16, 4u16)), Just((2, 1)), Just((2, 2)), Just((543, 0))];
        let links = prop_oneof![Just(LinkType::RAW), Just(LinkType::ETHERNET)];
        (orders, any::<(bool, bool, u32)>(), versions, links).prop_map(
            |(order, (nanos, modified, snaplen), version, link)| FileHeader {
                order,
                nanos: nanos && !modified,
                modified,
                version,
                snaplen,
                link,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            header in headers(),
            records in proptest::collection::vec(
                (0i64..4_000_000_000_000_000_000, any::<u32>(),
                 proptest::collection::vec(any::<u8>(), 0..40)), 0..600),
        ) {
            prop_assert_eq!(FileHeader::parse(&header.to_bytes()), Ok(header));
            let unit = header.fraction_ns();
            let expected: Vec<Record> =
                records.iter().map(|(ts, len, f)| (ts / unit * unit, *len, f.clone())).collect();
            prop_assert_eq!(read(&write(&header, &records)).0, expected);
        }
    }
}
