//! Wrappers around a source: one stops after a number of packets, and one can be ended by Ctrl-C.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// The number of batches that the thread may read ahead.
const AHEAD: usize = 4;

/// How long to wait for a stream at a time.
const QUIET: Duration = Duration::from_millis(100);

/// Ends after a number of packets (those that pass the filter), as `-c` asks.
pub struct Take {
    inner: Box<dyn Source>,
    left: u64,
    taken: u64,
    /// Packets in the capture up to the last one taken; what was read beyond counts as not
    /// received.
    reached: u64,
    /// How many the filter had refused before the batch that may be the last. On wires the numbers
    /// of packets do not tell: those that it refuses have none.
    refused: u64,
}

impl Take {
    /// The first `n` packets of `inner`.
    pub fn new(inner: Box<dyn Source>, n: u64) -> Take {
        Take { inner, left: n, taken: 0, reached: 0, refused: 0 }
    }
}

impl Source for Take {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.left == 0 {
            return Ok(false);
        }
        if self.left <= BATCH as u64 {
            self.refused = self.inner.account().filtered;
        }
        if !self.inner.fill(batch)? {
            return Ok(false);
        }
        let keep = usize::try_from(self.left).unwrap_or(usize::MAX);
        if batch.len() > keep {
            batch.retain(|_, i| i < keep);
        }
        let n = batch.len() as u64;
        (self.left, self.taken) = (self.left - n, self.taken + n);
        self.reached = batch.seq().last().map_or(self.reached, |seq| seq + 1);
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        self.left == 0 || self.inner.is_ready()
    }

    fn account(&self) -> Account {
        let inner = self.inner.account();
        if self.left > 0 {
            return inner;
        }
        let filtered = (self.reached - self.taken).max(self.refused);
        Account { received: self.taken + filtered + inner.kernel.finished(), filtered, ..inner }
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.inner.interfaces()
    }
}

/// Reads another source in a thread of its own, so that the run can end while a pipe is silent.
pub struct StoppableSource {
    events: Receiver<Event>,
    /// Batches go back to be filled again.
    empty: Sender<FrameBatch>,
    account: Account,
    ended: bool,
    /// An event that was seen before it was asked for.
    next: Option<Event>,
}

/// Ends a [`StoppableSource`] from another thread.
pub struct StreamEnd(SyncSender<Event>);

enum Event {
    /// It is a capture.
    Begun,
    Batch(FrameBatch, Account),
    End(Account, Result<(), SourceError>),
    Stop,
}

impl StoppableSource {
    /// Starts a thread that opens the source and reads it; opening a pipe may wait, too.
    pub fn start(
        open: impl FnOnce() -> Result<Box<dyn Source>, SourceError> + Send + 'static,
    ) -> std::io::Result<(StoppableSource, StreamEnd)> {
        let (events_in, events) = mpsc::sync_channel(AHEAD);
        let (empty, empty_out) = mpsc::channel();
        let end = StreamEnd(events_in.clone());
        std::thread::Builder::new().name("stream".to_owned()).spawn(move || match open() {
            Ok(source) => {
                if events_in.send(Event::Begun).is_ok() {
                    read(source, &events_in, &empty_out);
                }
            }
            // A stream that was ended early takes no further events.
            Err(e) => drop(events_in.send(Event::End(Account::default(), Err(e)))),
        })?;
        let account = Account::default();
        Ok((StoppableSource { events, empty, account, ended: false, next: None }, end))
    }

    /// Waits until it begins; `false` if it was ended before that.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn begin(&mut self) -> Result<bool, SourceError> {
        match self.events.recv() {
            Ok(Event::End(_, Err(e))) => Err(e),
            Ok(Event::Begun) => Ok(true),
            // Nothing else comes before.
            Ok(Event::Stop | Event::Batch(..) | Event::End(..)) | Err(_) => {
                self.ended = true;
                Ok(false)
            }
        }
    }
}

impl StreamEnd {
    /// Ends the stream after the batches read so far.
    pub fn end(&self) {
        drop(self.0.send(Event::Stop));
    }
}

/// Passes on what `source` reads, until its end or the receiver's.
fn read(mut source: Box<dyn Source>, events: &SyncSender<Event>, empty: &Receiver<FrameBatch>) {
    loop {
        let mut batch = empty.try_recv().unwrap_or_default();
        let event = match source.fill(&mut batch) {
            Ok(true) => Event::Batch(batch, source.account()),
            Ok(false) => Event::End(source.account(), Ok(())),
            Err(e) => Event::End(source.account(), Err(e)),
        };
        let last = matches!(event, Event::End(..));
        if events.send(event).is_err() || last {
            return;
        }
    }
}

impl Source for StoppableSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        let next = self.next.take();
        match next.map_or_else(|| self.events.recv_timeout(QUIET), Ok) {
            // An empty batch lets the run do something else than wait.
            Err(RecvTimeoutError::Timeout) | Ok(Event::Begun) => Ok(true),
            Ok(Event::Batch(full, account)) => {
                self.account = account;
                // The thread may have ended and need no more batches.
                drop(self.empty.send(std::mem::replace(batch, full)));
                Ok(true)
            }
            Ok(Event::End(account, result)) => {
                (self.account, self.ended) = (account, true);
                result.map(|()| false)
            }
            Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Ok(false)
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.events.try_recv().ok();
        }
        self.ended || self.next.is_some()
    }

    fn account(&self) -> Account {
        self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::source::{Chunk, LinkType};

    /// Delivers batches of these sizes, then an error if it has one.
    struct Counted {
        sizes: Vec<usize>,
        delivered: u64,
        error: Option<SourceError>,
    }

    impl Source for Counted {
        fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
            batch.clear();
            if self.sizes.is_empty() {
                return self.error.take().map_or(Ok(false), Err);
            }
            let chunk: Chunk = std::sync::Arc::new(vec![0u8; 64]);
            batch.restart(&chunk, 0, LinkType::ETHERNET);
            for _ in 0..self.sizes.remove(0) {
                batch.push(0, self.delivered, 0, 60, 60);
                self.delivered += 1;
            }
            Ok(true)
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn account(&self) -> Account {
            Account { received: self.delivered, ..Account::default() }
        }
    }

    fn counted(sizes: &[usize]) -> Box<dyn Source> {
        Box::new(Counted { sizes: sizes.to_vec(), delivered: 0, error: None })
    }

    fn drain(source: &mut dyn Source) -> Vec<u64> {
        let (mut batch, mut seen) = (FrameBatch::new(), Vec::new());
        while source.fill(&mut batch).expect("no error") {
            seen.extend_from_slice(batch.seq());
        }
        seen
    }

    #[test]
    fn takes_exactly_so_many() {
        for (n, expected) in [(0, 0), (1, 1), (5, 5), (7, 7), (9, 8)] {
            let mut take = Take::new(counted(&[5, 3]), n);
            assert_eq!(drain(&mut take), (0..expected).collect::<Vec<_>>(), "-c {n}");
            assert_eq!(take.account().received, expected, "-c {n}");
            assert!(!take.fill(&mut FrameBatch::new()).expect("no error"));
        }
    }

    #[test]
    fn what_the_filter_refused_counts_up_to_the_last_packet_taken() {
        /// A batch of every third packet of 30, and an account of all.
        struct Thirds(bool);
        impl Source for Thirds {
            fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
                batch.clear();
                let chunk: Chunk = std::sync::Arc::new(vec![0u8; 64]);
                batch.restart(&chunk, 0, LinkType::ETHERNET);
                (0..10).for_each(|i| batch.push(0, 3 * i + 2, 0, 60, 60));
                Ok(!std::mem::replace(&mut self.0, true))
            }

            fn is_ready(&mut self) -> bool {
                true
            }

            fn account(&self) -> Account {
                let read = u64::from(self.0);
                Account { received: 30 * read, filtered: 20 * read, ..Account::default() }
            }
        }
        for (n, received, filtered) in [(0, 0, 0), (1, 3, 2), (4, 12, 8), (10, 30, 20)] {
            let mut take = Take::new(Box::new(Thirds(false)), n);
            take.fill(&mut FrameBatch::new()).expect("no error");
            let account = take.account();
            assert_eq!((account.received, account.filtered), (received, filtered), "-c {n}");
        }
    }

    /// On wires only packets that passed the filter are numbered: at the end nothing seemed to have
    /// been refused, and the counts that a probe had told shrank.
    #[test]
    fn what_the_filter_refused_of_a_wire_stays_counted() {
        struct Wire(u64);
        impl Source for Wire {
            fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
                batch.clear();
                let chunk: Chunk = std::sync::Arc::new(vec![0u8; 64]);
                batch.restart(&chunk, 0, LinkType::ETHERNET);
                (0..10).for_each(|i| batch.push(0, self.0 + i, 0, 60, 60));
                self.0 += 10;
                Ok(true)
            }

            fn is_ready(&mut self) -> bool {
                true
            }

            fn account(&self) -> Account {
                Account { received: 3 * self.0, filtered: 2 * self.0, ..Account::default() }
            }
        }
        for (n, filtered) in [(5, 0), (10, 0), (25, 40), (1000, 1980)] {
            let (mut take, mut before) = (Take::new(Box::new(Wire(0)), n), Account::default());
            while take.fill(&mut FrameBatch::new()).expect("no error") {
                let account = take.account();
                let is_less = account.filtered < before.filtered;
                assert!(!is_less && account.received == account.filtered + take.taken, "-c {n}");
                before = account;
            }
            assert_eq!(before.filtered, filtered, "-c {n}");
        }
    }

    #[test]
    fn a_stream_passes_everything_on() {
        let sizes = [3; 20];
        let (mut stream, _end) =
            StoppableSource::start(move || Ok(counted(&sizes))).expect("starts");
        assert_eq!(drain(&mut stream), (0..60).collect::<Vec<_>>());
        assert_eq!(stream.account().received, 60);
    }

    #[test]
    fn a_stream_passes_errors_on() {
        let torn = || SourceError::Format { name: "-".to_owned(), reason: "torn".to_owned() };
        let open = move || {
            let error = Some(torn());
            Ok(Box::new(Counted { sizes: vec![2], delivered: 0, error }) as Box<dyn Source>)
        };
        let (mut stream, _end) = StoppableSource::start(open).expect("starts");
        assert!(stream.begin().expect("no error"));
        let mut batch = FrameBatch::new();
        assert!(stream.fill(&mut batch).expect("a batch"));
        assert!(stream.fill(&mut batch).is_err());
        assert!(!stream.fill(&mut batch).expect("the end"));
        assert_eq!(stream.account().received, 2);

        let (mut stream, _end) = StoppableSource::start(move || Err(torn())).expect("starts");
        assert!(stream.fill(&mut batch).is_err());
        let (mut stream, _end) = StoppableSource::start(move || Err(torn())).expect("starts");
        assert!(stream.begin().is_err());
    }

    #[test]
    fn a_silent_stream_can_be_ended() {
        let (_silence, wait) = mpsc::channel::<()>();
        let open = move || {
            let _ = wait.recv();
            Ok(counted(&[]))
        };
        let (mut stream, end) = StoppableSource::start(open).expect("starts");
        end.end();
        assert!(!stream.begin().expect("no error"));
        assert!(!stream.fill(&mut FrameBatch::new()).expect("the end"));
    }
}
