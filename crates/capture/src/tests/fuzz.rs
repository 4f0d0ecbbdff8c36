//! Assertions that hold for any bytes that are read as a capture file, and for any records that are
//! written to one.

use crate::compress::Compression;
use crate::open::{open_bytes, open_reader};
use crate::options::Options;
use crate::write::Format;
use weir_packet::egress::Sent;
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};
use weir_packet::time::NO_TIME;

/// A record: link type, time, length on the wire, bytes; and how it came, as far as the file says:
/// the name of the interface, and which way it went.
pub(crate) type Record = (u16, i64, u32, Vec<u8>, Came);
type Came = (Option<Box<[u8]>>, Option<Direction>);

/// Reads any bytes as a capture file, in memory and as a stream that arrives in pieces, and checks
/// what holds for all of them: no panic, an end, frames that lie within the bytes and are numbered
/// from 0, an account that adds up, the same frames and the same error both ways, and the same
/// frames again from a file that they are written to.
pub fn fuzz_file(data: &[u8]) {
    // Compressed input would exercise the decompressors, and a small one can mean hours.
    if Compression::of(data).is_some() {
        return;
    }
    let options = Options { any_link: data.len().is_multiple_of(2), ..Options::default() };
    let piece = data.len() % 61 + 1;
    let trickle = Trickle { data: data.to_vec(), at: 0, piece };
    let resident = fuzz_source(open_bytes("x", data.to_vec(), &options), data.len());
    let stream = fuzz_source(open_reader("x", trickle, &options), data.len());
    assert_eq!(resident, stream, "the same file in memory and as a stream");
    fuzz_rewrite(&resident.0);
}

/// Writes records in both formats and checks that they read back as they were; times before 1970,
/// and in pcap those after 2106, are the nearest that the format can say. A record without a time
/// keeps none where a simple packet block can hold it.
pub(crate) fn fuzz_rewrite(records: &[Record]) {
    const PCAP_TS_MAX: i64 = u32::MAX as i64 * 1_000_000_000 + 999_999_999;
    let first = records.first().map(|r| r.0);
    let same: Vec<Record> = records.iter().filter(|r| Some(r.0) == first).cloned().collect();
    for (mut format, records, ts_max) in [
        (Format::of("x.pcapng"), records, i64::MAX),
        (Format::of("x.pcap"), &same[..], PCAP_TS_MAX),
    ] {
        let (mut file, names) = (Vec::new(), InterfaceNames::default());
        let says = matches!(format, Format::Pcapng(_));
        for (link, ts, len, bytes, (name, direction)) in records {
            let (link, ts, len, caplen) = (LinkType(*link), *ts, *len, bytes.len() as u32);
            let capture_point =
                CapturePoint::new(name.as_ref().and_then(|name| names.number(name)), *direction);
            let frame =
                Sent { outlet: 0, link, ts, len, start: 0, caplen, trimmed: false, capture_point };
            format.put(&mut file, &frame, bytes, Some(&names)).expect("one link type, or pcapng");
        }
        format.end(&mut file);
        let clamp = |(link, ts, len, bytes, came): &Record| {
            // A simple packet block is of the first interface, and says nothing but its bytes.
            let (first, whole) = (&records[0], bytes.len() == *len as usize);
            let simple = (first.0, &first.4.0, None, true) == (*link, &came.0, came.1, whole);
            let ts = match *ts {
                NO_TIME if says && simple => NO_TIME,
                ts => ts.clamp(0, ts_max),
            };
            let came = if says { came.clone() } else { Came::default() };
            (*link, ts, *len, bytes.clone(), came)
        };
        let want: Vec<Record> = records.iter().map(clamp).collect();
        assert_eq!(records_of(file), want, "what was written, read again");
    }
}

/// All records of a file in memory, which must be sound.
pub(crate) fn records_of(file: Vec<u8>) -> Vec<Record> {
    let options = Options { any_link: true, ..Options::default() };
    let size = file.len();
    let (records, error) = fuzz_source(open_bytes("x", file, &options), size);
    assert_eq!(error, None);
    records
}

/// Reads a source to its end, and checks what holds for all of them.
pub(crate) fn fuzz_source(
    source: Result<Box<dyn Source>, SourceError>,
    size: usize,
) -> (Vec<Record>, Option<String>) {
    let mut source = match source {
        Ok(source) => source,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let (mut records, mut batch) = (Vec::new(), FrameBatch::new());
    let error = loop {
        match source.fill(&mut batch) {
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
            Ok(true) => assert!(!batch.is_empty(), "Ok(true) promises a frame"),
        }
        for i in 0..batch.len() {
            let (frame, caplen) = (batch.frame(i), batch.caplens()[i]);
            assert_eq!(frame.len(), caplen as usize, "a frame beyond the bytes");
            assert_eq!(batch.seq()[i], records.len() as u64);
            let (point, names) = (batch.capture_point(i), batch.interface_names());
            let name = point.interface().and_then(|number| names?.name(number));
            let came = (name.map(|name| name.raw), point.direction());
            records.push((batch.link.0, batch.ts()[i], batch.lens()[i], frame.to_vec(), came));
        }
    };
    assert!(batch.is_empty(), "no frames with an error or at the end");
    assert!(matches!(source.fill(&mut batch), Ok(false)), "the end is final");
    let account = source.account();
    assert_eq!((account.received, account.filtered), (records.len() as u64, 0));
    assert!(account.bytes_read <= size as u64);
    (records, error)
}

/// Bytes that arrive a few at a time.
struct Trickle {
    data: Vec<u8>,
    at: usize,
    piece: usize,
}

impl std::io::Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.data[self.at..];
        let n = rest.len().min(self.piece).min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        Ok(n)
    }
}
