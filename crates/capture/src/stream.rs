//! Captures that arrive: standard input, pipes, compressed files.
//!
//! One read fills one buffer, and its whole records are delivered before the next read, so that a
//! slow writer's frames come through as it writes them. Batches refer to the buffer; a record
//! that the read cut in two is carried over to the next buffer. Compressed input is read so by a
//! thread of its own.

use crate::ahead::Ahead;
use crate::buffers::{Buffer, Buffers};
use crate::compress::{Compression, Input};
use crate::decode::{Decoder, HEAD};
use crate::limits::STREAM_BUFFER;
use crate::options::Options;
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
    feed: Feed,
    /// The input has ended; no more bytes will come.
    ended: bool,
    buffer: Arc<Buffer>,
    /// Where the buffer starts in the uncompressed capture.
    offset: u64,
}

/// The reader that fills the buffers.
enum Feed {
    Direct(Input, Buffers),
    Ahead(Ahead),
}

impl Stream {
    pub(crate) fn new(
        name: &str,
        raw: Box<dyn Read + Send>,
        options: &Options,
    ) -> Result<Stream, SourceError> {
        let feed = Input::new(raw).and_then(|input| match input.compression {
            Some(_) => Ahead::start(input).map(Feed::Ahead),
            None => Ok(Feed::direct(input)),
        });
        let feed = feed.map_err(|source| SourceError::Io { name: name.to_owned(), source })?;
        Stream::fed(name, feed, options)
    }

    fn fed(name: &str, mut feed: Feed, options: &Options) -> Result<Stream, SourceError> {
        let mut ended = false;
        let (buffer, result) = feed.refill(&[], HEAD, &mut ended);
        if let Err(error) = result {
            let name = name.to_owned();
            return Err(match feed.damage(&error) {
                Some(reason) => SourceError::Format { name, reason },
                None => SourceError::Io { name, source: error },
            });
        }
        let head = (*buffer).as_ref();
        let (decoder, at) = Decoder::new(name, &head[..HEAD.min(head.len())], options)?;
        let window = Window { name: name.to_owned(), feed, ended, buffer, offset: 0 };
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
        let Window { name, feed, offset, .. } = &self.window;
        match feed.damage(&error) {
            Some(reason) => self.decoder.corrupt(offset + self.at as u64, reason),
            None => SourceError::Io { name: name.clone(), source: error },
        }
    }
}

impl Window {
    /// Moves on to a buffer that starts with what stood from `at` on, and reads until it holds
    /// `need` bytes or the input ends. Whatever one read brings beyond that is welcome.
    fn refill(&mut self, at: &mut usize, need: usize) -> io::Result<()> {
        let rest = &(*self.buffer).as_ref()[*at..];
        let (next, result) = self.feed.refill(rest, need, &mut self.ended);
        self.offset += *at as u64;
        *at = 0;
        self.feed.put(std::mem::replace(&mut self.buffer, next));
        result
    }
}

impl Feed {
    fn direct(input: Input) -> Feed {
        Feed::Direct(input, Buffers::new(STREAM_BUFFER))
    }

    /// A buffer that goes on from `rest` and holds `need` bytes, fewer if the input ends or fails.
    fn refill(
        &mut self,
        rest: &[u8],
        need: usize,
        ended: &mut bool,
    ) -> (Arc<Buffer>, io::Result<()>) {
        let (input, buffers) = match self {
            Feed::Direct(input, buffers) => (input, buffers),
            Feed::Ahead(ahead) => {
                let (buffer, result) = ahead.refill(rest, need);
                return (buffer, result.map(|end| *ended |= end));
            }
        };
        let mut next = buffers.take(need, 0);
        let buffer = Arc::get_mut(&mut next).expect("a buffer just taken has one owner");
        buffer.append(rest);
        let mut result = Ok(());
        while result.is_ok() && !*ended && buffer.len() < need {
            match input.read(buffer.room()) {
                Ok(0) => *ended = true,
                Ok(n) => buffer.advance(n),
                Err(error) => result = Err(error),
            }
        }
        (next, result)
    }

    /// Gives a buffer back, to which batches may still refer.
    fn put(&self, buffer: Arc<Buffer>) {
        match self {
            Feed::Direct(_, buffers) => buffers.put(buffer),
            Feed::Ahead(ahead) => ahead.put(buffer),
        }
    }

    /// The words of an error about compressed data; `None` where it is the system's.
    fn damage(&self, error: &io::Error) -> Option<String> {
        let compression = self.compression().filter(|_| error.raw_os_error().is_none());
        compression.map(|c| c.describe(error))
    }

    fn compression(&self) -> Option<Compression> {
        match self {
            Feed::Direct(input, _) => input.compression,
            Feed::Ahead(ahead) => ahead.compression(),
        }
    }

    fn raw_bytes(&self) -> u64 {
        match self {
            Feed::Direct(input, _) => input.raw_bytes(),
            Feed::Ahead(ahead) => ahead.raw_bytes(),
        }
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

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let bytes_read = self.window.feed.raw_bytes();
        Account { received: self.decoder.received(), filtered: 0, bytes_read, ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{AHEAD, PIECE};
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
        let expected =
            Account { received: n as u64, filtered: 0, bytes_read: size, ..Account::default() };
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

    /// A pipe whose writer is in the test's hands, and what was not read of its last write.
    struct Pipe(mpsc::Receiver<Vec<u8>>, Cursor<Vec<u8>>);

    impl Read for Pipe {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.1.position() == self.1.get_ref().len() as u64 {
                let Ok(bytes) = self.0.recv() else { return Ok(0) };
                self.1 = Cursor::new(bytes);
            }
            self.1.read(into)
        }
    }

    fn pipe() -> (mpsc::Sender<Vec<u8>>, Pipe) {
        let (writer, pipe) = mpsc::channel();
        (writer, Pipe(pipe, Cursor::default()))
    }

    #[test]
    fn a_slow_writer_is_not_waited_for() {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut record = Vec::new();
        header.put_record(&mut record, 1, 60, b"abcd");
        let (writer, pipe) = pipe();
        let magic = header.to_bytes();
        writer.send(magic[..4].to_vec()).unwrap();
        writer.send(magic[4..].to_vec()).unwrap();
        let mut source = open(pipe);
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
        assert!(error.to_string().contains("trailing bytes after the gzip data"), "{error}");
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

    /// The results of a source until it ends: frames, how they end, the account after every batch.
    type ReadResult = (Vec<Vec<u8>>, Option<String>, Account);

    fn read_to_end(source: Result<Stream, SourceError>) -> ReadResult {
        let mut source = match source {
            Ok(source) => source,
            Err(error) => return (Vec::new(), Some(error.to_string()), Account::default()),
        };
        let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
        let error = loop {
            match source.fill(&mut batch) {
                Ok(true) => frames.extend((0..batch.len()).map(|i| batch.frame(i).to_vec())),
                Ok(false) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        assert!(!source.fill(&mut batch).unwrap() && batch.is_empty(), "the end is final");
        (frames, error, source.account())
    }

    /// A reader that gives `piece` bytes at a time.
    fn slow(raw: &[u8], piece: usize) -> Box<dyn Read + Send> {
        let (writer, pipe) = pipe();
        raw.chunks(piece).for_each(|bytes| writer.send(bytes.to_vec()).unwrap());
        Box::new(pipe)
    }

    /// The same as in the reader's own thread, whatever becomes of the input.
    fn check_ahead(raw: &[u8], piece: usize, what: &str) -> ReadResult {
        let options = Options::default();
        let input = Input::new(slow(raw, piece)).unwrap();
        let expected = read_to_end(Stream::fed("-", Feed::direct(input), &options));
        let ahead = read_to_end(Stream::new("-", slow(raw, piece), &options));
        assert!(ahead == expected, "{what}: {:?} for {:?}", ahead.1, expected.1);
        ahead
    }

    fn packed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 2] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, bytes).unwrap();
        [("gzip", gzip.finish().unwrap()), ("zstd", zstd::encode_all(bytes, 1).unwrap())]
    }

    #[test]
    fn a_thread_ahead_changes_nothing() {
        let (file, frames) = capture(4 * STREAM_BUFFER);
        for (name, raw) in packed(&file) {
            for piece in [1 << 30, 1000, 17] {
                let (read, error, account) = check_ahead(&raw, piece, name);
                assert!(read == frames && error.is_none(), "{name} by {piece}: {error:?}");
                let n = frames.len() as u64;
                let bytes_read = raw.len() as u64;
                assert_eq!(
                    account,
                    Account { received: n, filtered: 0, bytes_read, ..Account::default() }
                );
            }
        }
    }

    #[test]
    fn members_may_end_anywhere_in_a_record() {
        // Whole records within a member, records of many members, and anything between.
        let (file, frames) = capture(STREAM_BUFFER);
        for size in [400, 5_000, 70_000, 200_000] {
            let members = |i: usize| {
                let raws = file.chunks(size).map(|part| packed(part)[i].1.clone());
                raws.collect::<Vec<_>>().concat()
            };
            for raw in [members(0), members(1)] {
                let (read, error, _) = check_ahead(&raw, 1 << 30, "members");
                assert!(read == frames && error.is_none(), "members of {size}: {error:?}");
            }
        }
    }

    #[test]
    fn a_thread_ahead_tells_the_same_of_damaged_data() {
        let (file, frames) = capture(2 * STREAM_BUFFER);
        for (name, raw) in packed(&file) {
            for k in 1..40 {
                let at = raw.len() * k / 40;
                let (read, error, _) = check_ahead(&raw[..at], 3000, name);
                assert!(read.len() < frames.len(), "{name} cut at {at}");
                assert!(error.is_some_and(|e| e.contains("data break off")), "{name} cut at {at}");
                let mut wrong = raw.clone();
                wrong[at] ^= 0x55;
                check_ahead(&wrong, 1 << 30, name);
            }
        }
    }

    #[test]
    fn captures_that_break_off_within_whole_compressed_data_are_torn() {
        let (file, _) = capture(STREAM_BUFFER);
        for cut in [0, 1, 23, 24, 30, 41, 1000, STREAM_BUFFER - 1] {
            for (name, raw) in packed(&file[..cut]) {
                check_ahead(&raw, 1 << 30, name);
            }
        }
    }

    #[test]
    fn what_a_paused_writer_compressed_comes_at_once() {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut record = Vec::new();
        header.put_record(&mut record, 1, 60, b"abcd");
        let (writer, pipe) = pipe();
        let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
        let mut send = |bytes: &[u8]| {
            io::Write::write_all(&mut zstd, bytes).unwrap();
            io::Write::flush(&mut zstd).unwrap();
            writer.send(std::mem::take(zstd.get_mut())).unwrap();
        };
        send(&header.to_bytes());
        let mut source = open(pipe);
        let mut batch = FrameBatch::new();
        for i in 0..20 {
            // One and a half records: the whole one comes, or this would wait for ever.
            send(&[&record[..], &record[..10]].concat());
            assert!(source.fill(&mut batch).unwrap());
            assert_eq!((batch.len(), batch.frame(0)), (1, &b"abcd"[..]));
            send(&record[10..]);
            assert!(source.fill(&mut batch).unwrap());
            assert_eq!((batch.len(), batch.seq()[0]), (1, 2 * i + 1));
        }
    }

    #[test]
    fn buffers_are_used_again_by_the_thread_ahead() {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut file = header.to_bytes().to_vec();
        while file.len() < 100 * PIECE {
            header.put_record(&mut file, 1, 1500, &[0; 1500]);
        }
        let mut source = open(Cursor::new(packed(&file)[1].1.clone()));
        let (mut batch, mut buffers, mut size) = (FrameBatch::new(), BTreeSet::new(), 0);
        while source.fill(&mut batch).unwrap() {
            buffers.insert(Arc::as_ptr(batch.chunk().0).cast::<u8>() as usize);
            size += batch.len() * 1516;
        }
        assert_eq!(size + 24, file.len());
        // The buffers that are queued, one that is filled, and the reader's last and next and its
        // batch's.
        assert!(buffers.len() <= AHEAD + 4, "{} buffers", buffers.len());
    }

    /// Says when it is dropped.
    struct Dropped<R>(R, mpsc::Sender<()>);

    impl<R> Drop for Dropped<R> {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
        }
    }

    impl<R: Read> Read for Dropped<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    #[test]
    fn a_source_dropped_early_ends_its_thread() {
        let (file, frames) = capture(20 * STREAM_BUFFER);
        for (_, raw) in packed(&file) {
            let (sender, dropped) = mpsc::channel();
            let mut source = open(Dropped(Cursor::new(raw), sender));
            let mut batch = FrameBatch::new();
            assert!(source.fill(&mut batch).unwrap());
            drop(source);
            dropped.recv().unwrap();
            let read = (0..batch.len()).map(|i| batch.frame(i));
            assert!(read.eq(&frames[..batch.len()]), "batches outlive the source");
        }
    }

    #[test]
    #[should_panic(expected = "a reader's own fault")]
    fn a_panic_in_the_thread_goes_on_in_the_reader() {
        struct Faulty(Cursor<Vec<u8>>);
        impl Read for Faulty {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let n = into.len().min(100);
                match self.0.read(&mut into[..n])? {
                    0 => panic!("a reader's own fault"),
                    n => Ok(n),
                }
            }
        }
        let (file, _) = capture(STREAM_BUFFER);
        let raw = packed(&file)[1].1.clone();
        let mut source = open(Faulty(Cursor::new(raw[..raw.len() / 2].to_vec())));
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).unwrap() {}
    }
}
