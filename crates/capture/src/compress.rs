//! Compressed captures, told by their first bytes.

use crate::limits::{COMPRESSED_BUFFER, PIECE};
use flate2::bufread::GzDecoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a capture is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compression {
    /// gzip (RFC 1952), of one member or several.
    Gzip,
    /// Zstandard (RFC 8878), of one frame or several.
    Zstd,
}

impl Compression {
    /// The compression of a file, by its first bytes.
    pub(crate) fn of(head: &[u8]) -> Option<Compression> {
        match *head {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            // Parallel compressors begin with a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Some(Compression::Zstd)
            }
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }

    /// The fault of the data, in words, by an error of the decompressor.
    pub(crate) fn describe(self, error: &io::Error) -> String {
        let name = self.name();
        match error.kind() {
            ErrorKind::UnexpectedEof => format!("the {name} data break off"),
            _ if error.get_ref().is_some_and(|e| e.is::<TrailingBytes>()) => error.to_string(),
            _ => format!("the {name} data are damaged ({error})"),
        }
    }
}

/// A stream with its compression removed, that counts the bytes it read from outside.
pub(crate) struct Input {
    read: Box<dyn Read + Send>,
    raw_bytes: Arc<AtomicU64>,
    /// How the stream is compressed.
    pub(crate) compression: Option<Compression>,
}

impl Input {
    /// Looks at the first bytes of `raw`.
    pub(crate) fn new(mut raw: Box<dyn Read + Send>) -> io::Result<Input> {
        let mut head = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut head)?;
        let compression = Compression::of(&head);
        let raw_bytes = Arc::new(AtomicU64::new(0));
        let raw = Counted { read: Cursor::new(head).chain(raw), count: Arc::clone(&raw_bytes) };
        let buffered = |raw| BufReader::with_capacity(COMPRESSED_BUFFER, raw);
        let read: Box<dyn Read + Send> = match compression {
            None => Box::new(raw),
            Some(Compression::Gzip) => Box::new(Gzip::new(buffered(raw))),
            Some(Compression::Zstd) => Box::new(zstd::Decoder::with_buffer(buffered(raw))?),
        };
        Ok(Input { read, raw_bytes, compression })
    }

    /// Reads what is there, waiting only if there is nothing; 0 at the end. Of compressed data
    /// comes no more than a [`PIECE`], as a decompressor that fails keeps back what it had
    /// written before in the same call.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = if self.compression.is_some() { into.len().min(PIECE) } else { into.len() };
        let into = &mut into[..n];
        loop {
            match self.read.read(into) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// Bytes read from outside, compressed.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw_bytes.load(Ordering::Relaxed)
    }
}

/// The members of a gzip file, one after the other.
struct Gzip<R> {
    /// `None` once the file has ended or failed.
    member: Option<GzDecoder<R>>,
}

/// The bytes after the last member of a gzip file are neither a member nor padding.
#[derive(Debug)]
struct TrailingBytes;

impl fmt::Display for TrailingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are trailing bytes after the gzip data")
    }
}

impl std::error::Error for TrailingBytes {}

impl<R: BufRead> Gzip<R> {
    fn new(input: R) -> Gzip<R> {
        Gzip { member: Some(GzDecoder::new(input)) }
    }

    /// Goes on after a member. Zeros are padding, as gunzip has it.
    fn next_member(mut input: R) -> io::Result<Option<GzDecoder<R>>> {
        loop {
            let bytes = input.fill_buf()?;
            let zeros = bytes.iter().take_while(|b| **b == 0).count();
            match bytes.get(zeros) {
                Some(0x1f) if zeros == 0 => return Ok(Some(GzDecoder::new(input))),
                Some(_) => return Err(io::Error::new(ErrorKind::InvalidData, TrailingBytes)),
                None if zeros == 0 => return Ok(None),
                None => input.consume(zeros),
            }
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let n = member.read(into)?;
            if n > 0 || into.is_empty() {
                return Ok(n);
            }
            if let Some(member) = self.member.take() {
                self.member = Gzip::next_member(member.into_inner())?;
            }
        }
    }
}

struct Counted<R> {
    read: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.read.read(into)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn check(raw: Vec<u8>, compression: Option<Compression>, expected: &[u8]) {
        let n = raw.len() as u64;
        let mut input = Input::new(Box::new(Cursor::new(raw))).unwrap();
        let (mut out, mut buffer) = (Vec::new(), [0; 7]);
        loop {
            match input.read(&mut buffer).unwrap() {
                0 => break,
                n => out.extend_from_slice(&buffer[..n]),
            }
        }
        assert_eq!((out.as_slice(), input.compression), (expected, compression));
        assert_eq!(input.raw_bytes(), n);
    }

    #[test]
    fn what_is_compressed_is_uncompressed() {
        check(vec![], None, b"");
        check(b"abc".to_vec(), None, b"abc");
        check(b"abcdefgh".to_vec(), None, b"abcdefgh");
        check(gzip(b"abcdefgh"), Some(Compression::Gzip), b"abcdefgh");
        check([gzip(b"abc"), gzip(b"def")].concat(), Some(Compression::Gzip), b"abcdef");
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        check([zstd(b"abc"), zstd(b"def")].concat(), Some(Compression::Zstd), b"abcdef");
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0];
        check([&skippable[..], &zstd(b"abc")].concat(), Some(Compression::Zstd), b"abc");
    }

    /// The words of the first error of reading `raw`, and the bytes read before it.
    fn failure(raw: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let (mut out, mut buffer) = (Vec::new(), [0; 7]);
        let mut input = Input::new(Box::new(Cursor::new(raw))).unwrap();
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return (out, None),
                Ok(n) => out.extend_from_slice(&buffer[..n]),
                Err(e) => return (out, input.compression.map(|c| c.describe(&e))),
            }
        }
    }

    #[test]
    fn trailing_bytes_are_told_after_what_came_before() {
        let trailing = Some("there are trailing bytes after the gzip data".to_owned());
        for junk in [&b"j"[..], b"junk", b"\0\0\0j", &[9; 100]] {
            let raw = [&gzip(b"abcdefghi"), junk].concat();
            assert_eq!(failure(raw), (b"abcdefghi".to_vec(), trailing.clone()), "{junk:?}");
        }
        let padded = [gzip(b"abc"), vec![0; 1000]].concat();
        assert_eq!(failure(padded), (b"abc".to_vec(), None));
    }

    #[test]
    fn data_cut_anywhere_break_off() {
        let zstd = zstd::encode_all(&b"abcdefghi"[..], 1).unwrap();
        for (raw, name) in [(gzip(b"abcdefghi"), "gzip"), (zstd, "zstd")] {
            for n in 4..raw.len() {
                let (_, error) = failure(raw[..n].to_vec());
                assert_eq!(error, Some(format!("the {name} data break off")), "{n} bytes");
            }
        }
    }

    #[test]
    fn cut_data_is_an_error_after_what_came_before() {
        let whole: Vec<u8> =
            (0..100_000u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        for mut raw in [gzip(&whole), zstd::encode_all(&whole[..], 1).unwrap()] {
            raw.truncate(raw.len() / 2);
            let mut input = Input::new(Box::new(Cursor::new(raw))).unwrap();
            let (mut buffer, mut n) = (vec![0; 1000], 0);
            let error = loop {
                match input.read(&mut buffer) {
                    Ok(0) => panic!("a cut file reads as a whole one"),
                    Ok(m) => {
                        assert_eq!(buffer[..m], whole[n..n + m]);
                        n += m;
                    }
                    Err(e) => break e,
                }
            };
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert!(n > 0);
        }
    }
}
