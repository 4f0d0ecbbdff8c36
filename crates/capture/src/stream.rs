//! Captures that arrive: standard input, pipes, compressed files.
//!
//! One read fills one buffer, and its whole records are delivered before the next read, so that a
//! slow writer's frames come through as it writes them. Batches refer to the buffer; a record
//! that the read cut in two is carried over to the next buffer.

use crate::Options;
use crate::buffers::{Buffer, Buffers};
use crate::compress::Input;
use crate::decode::{Decoder, HEAD};
use std::io::{self, Read};
use std::sync::Arc;
use weir_packet::pcap::Step;
use weir_packet::source::{Account, Chunk, FrameBatch, Source, SourceError};

/// A capture read from a stream.
pub(crate) struct Stream {
    window: Window,
    decoder: Decoder,
    /// Where the next record starts in the window's buffer.
    at: usize,
    done: bool,
}

/// The part of a stream that is in memory.
struct Window {
    name: String,
    input: Input,
    /// The input has ended; no more bytes will come.
    ended: bool,
    buffers: Buffers,
    buffer: Arc<Buffer>,
    /// Where the buffer starts in the uncompressed capture.
    offset: u64,
}

impl Stream {
    pub(crate) fn new(
        name: &str,
        raw: Box<dyn Read + Send>,
        options: &Options,
    ) -> Result<Stream, SourceError> {
        let io_error = |source| SourceError::Io { name: name.to_owned(), source };
        let input = Input::new(raw).map_err(io_error)?;
        let mut buffers = Buffers::default();
        let buffer = buffers.take(HEAD);
        let name_owned = name.to_owned();
        let mut window =
            Window { name: name_owned, input, ended: false, buffers, buffer, offset: 0 };
        let mut at = 0;
        if let Err(error) = window.refill(&mut at, HEAD) {
            return Err(match window.input.compression {
                Some(c) if error.raw_os_error().is_none() => {
                    SourceError::Format { name: name.to_owned(), reason: c.describe(&error) }
                }
                _ => io_error(error),
            });
        }
        let head = (*window.buffer).as_ref();
        let (decoder, at) = Decoder::new(name, &head[..HEAD.min(head.len())], options)?;
        Ok(Stream { window, decoder, at, done: false })
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        loop {
            let chunk = Arc::clone(&self.window.buffer) as Chunk;
            let offset = self.window.offset;
            match self.decoder.fill(&chunk, &mut self.at, offset, batch)? {
                Step::Frames => return Ok(true),
                Step::More(need) if self.window.ended => {
                    return match self.window.buffer.len() - self.at {
                        0 => Ok(false),
                        have => Err(self.decoder.torn(offset + self.at as u64, have, need)),
                    };
                }
                Step::More(need) => {
                    self.window.refill(&mut self.at, need).map_err(|e| self.read_error(e))?;
                }
            }
        }
    }

    /// The error for a read that failed: the system's fault, or the compressed data's.
    fn read_error(&self, error: io::Error) -> SourceError {
        let Window { name, input, offset, .. } = &self.window;
        match input.compression {
            Some(c) if error.raw_os_error().is_none() => {
                self.decoder.corrupt(offset + self.at as u64, c.describe(&error))
            }
            _ => SourceError::Io { name: name.clone(), source: error },
        }
    }
}

impl Window {
    /// Moves on to a buffer that starts with what stood from `at` on, and reads until it holds
    /// `need` bytes or the input ends. Whatever one read brings beyond that is welcome.
    fn refill(&mut self, at: &mut usize, need: usize) -> io::Result<()> {
        let mut next = self.buffers.take(need);
        let buffer = Arc::get_mut(&mut next).expect("a buffer just taken has one owner");
        buffer.append(&(*self.buffer).as_ref()[*at..]);
        let mut result = Ok(());
        while !self.ended && buffer.len() < need {
            match self.input.read(buffer.room()) {
                Ok(0) => self.ended = true,
                Ok(n) => buffer.advance(n),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.offset += *at as u64;
        *at = 0;
        self.buffers.put(std::mem::replace(&mut self.buffer, next));
        result
    }
}

impl Source for Stream {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let next = if self.done { Ok(false) } else { self.next(batch) };
        if !matches!(next, Ok(true)) {
            self.done = true;
            batch.clear();
        }
        next
    }

    fn account(&self) -> Account {
        let bytes_read = self.window.input.raw_bytes();
        Account { received: self.decoder.received(), filtered: 0, bytes_read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::STREAM_BUFFER;
    use std::collections::BTreeSet;
    use std::io::Cursor;
    use std::sync::mpsc;
    use weir_packet::limits::CAPLEN_MAX;
    use weir_packet::pcap::FileHeader;
    use weir_packet::source::LinkType;

    /// A file of so many bytes at least, and its frames.
    fn capture(bytes: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let header = FileHeader::new(LinkType::ETHERNET);
        let (mut file, mut frames) = (header.to_bytes().to_vec(), Vec::new());
        while file.len() < bytes {
            let i = frames.len();
            let len = if i % 100 == 99 { CAPLEN_MAX as usize } else { i * 7919 % 1500 };
            frames.push(vec![i as u8; len]);
            header.put_record(&mut file, i as i64, len as u32, &frames[i]);
        }
        (file, frames)
    }

    fn open(input: impl Read + Send + 'static) -> Stream {
        Stream::new("-", Box::new(input), &Options::default()).unwrap()
    }

    #[test]
    fn records_come_whole_across_buffers_that_are_used_again() {
        let (file, frames) = capture(12 * STREAM_BUFFER);
        let size = file.len() as u64;
        let mut source = open(Cursor::new(file));
        let (mut batch, mut n, mut buffers) = (FrameBatch::new(), 0, BTreeSet::new());
        while source.fill(&mut batch).unwrap() {
            buffers.insert(Arc::as_ptr(batch.chunk().0).cast::<u8>() as usize);
            for i in 0..batch.len() {
                assert_eq!(batch.frame(i), frames[n]);
                n += 1;
            }
        }
        assert_eq!(n, frames.len());
        assert_eq!(buffers.len(), 2);
        let expected = Account { received: n as u64, filtered: 0, bytes_read: size };
        assert_eq!(source.account(), expected);
    }

    #[test]
    fn batches_in_flight_keep_their_bytes() {
        let (file, frames) = capture(4 * STREAM_BUFFER);
        let mut source = open(Cursor::new(file));
        let mut batches = Vec::new();
        loop {
            let mut batch = FrameBatch::new();
            if !source.fill(&mut batch).unwrap() {
                break;
            }
            batches.push(batch);
        }
        let read = batches.iter().flat_map(|b| (0..b.len()).map(|i| b.frame(i).to_vec()));
        assert!(read.eq(frames));
    }

    /// A pipe whose writer is in the test's hands.
    struct Pipe(mpsc::Receiver<Vec<u8>>);

    impl Read for Pipe {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Ok(bytes) = self.0.recv() else { return Ok(0) };
            into[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn a_slow_writer_is_not_waited_for() {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut record = Vec::new();
        header.put_record(&mut record, 1, 60, b"abcd");
        let (writer, pipe) = mpsc::channel();
        let magic = header.to_bytes();
        writer.send(magic[..4].to_vec()).unwrap();
        writer.send(magic[4..].to_vec()).unwrap();
        let mut source = open(Pipe(pipe));
        let mut batch = FrameBatch::new();
        // One and a half records: the whole one comes at once, or this would wait for ever.
        writer.send([&record[..], &record[..10]].concat()).unwrap();
        assert!(source.fill(&mut batch).unwrap());
        assert_eq!((batch.len(), batch.frame(0)), (1, &b"abcd"[..]));
        writer.send(record[10..].to_vec()).unwrap();
        assert!(source.fill(&mut batch).unwrap());
        assert_eq!((batch.len(), batch.seq()[0]), (1, 1));
        drop(writer);
        assert!(!source.fill(&mut batch).unwrap());
    }

    #[test]
    fn compressed_data_that_break_off_are_reported_after_what_they_gave() {
        let (file, frames) = capture(STREAM_BUFFER);
        let zstd = zstd::encode_all(&file[..], 1).unwrap();
        let mut source = open(Cursor::new(zstd[..zstd.len() - 4].to_vec()));
        let (mut batch, mut n) = (FrameBatch::new(), 0);
        let error = loop {
            match source.fill(&mut batch) {
                Ok(more) => assert!(more, "a cut file reads as a whole one"),
                Err(error) => break error,
            }
            n += batch.len();
        };
        assert!(n <= frames.len() && source.account().received == n as u64);
        assert!(error.to_string().contains("the zstd data break off, at byte"), "{error}");
        assert!(!source.fill(&mut batch).unwrap());
    }

    #[test]
    fn all_frames_before_trailing_bytes_are_delivered() {
        let (file, frames) = capture(STREAM_BUFFER);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &file).unwrap();
        let mut source = open(Cursor::new([gzip.finish().unwrap(), b"junk".to_vec()].concat()));
        let (mut batch, mut n) = (FrameBatch::new(), 0);
        let error = loop {
            match source.fill(&mut batch) {
                Ok(more) => assert!(more, "trailing bytes are passed over in silence"),
                Err(error) => break error,
            }
            n += batch.len();
        };
        assert_eq!(n, frames.len());
        assert!(error.to_string().contains("trailing bytes behind the gzip data"), "{error}");
    }

    #[test]
    fn a_failing_pipe_is_named() {
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::from_raw_os_error(5));
                }
                into[..4].copy_from_slice(&FileHeader::new(LinkType::RAW).to_bytes()[..4]);
                Ok(4)
            }
        }
        let Err(error) = Stream::new("pipe", Box::new(Failing(false)), &Options::default()) else {
            panic!("a pipe that failed was opened");
        };
        assert!(matches!(error, SourceError::Io { ref name, .. } if name == "pipe"), "{error}");
    }
}
