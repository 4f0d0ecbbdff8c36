//! The log of a probe, record by record, as a stream for `weir merge`.

use crate::record::{Assembler, Content, RecordFault, RecordView};
use std::collections::BTreeSet;
use std::io::{self, Write};
use weir_cluster::ProbeWriter;
use weir_engine::exchange::{Body, Message};

/// Writes the records of one probe as a stream.
pub struct ProbeLog<W: Write> {
    assembler: Assembler,
    to: ProbeWriter<W>,
    /// The epoch of the life whose head was written last.
    epoch: Option<u64>,
    /// The epochs of all heads: what came before may come again.
    known: BTreeSet<u64>,
    state: LogState,
    is_retired: bool,
    /// Whether the log itself says that the probe is gone, and nothing has come since.
    is_gone: bool,
    counts: LogCounts,
}

/// The state of the life that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogState {
    /// It goes on, or has not begun.
    Open,
    /// It has ended, or was cut.
    Ended,
    /// The reader was told that there is nothing further for now.
    Paused,
}

/// The counts of messages that were handed on, and of those left out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogCounts {
    /// Messages that were handed on.
    pub messages: u64,
    /// Messages of lives whose heads were not read: they were before the place where reading began.
    pub before_head: u64,
    /// Records that could not be used.
    pub damaged: u64,
}

/// Why a record is not handed on.
#[derive(Debug)]
pub enum NotTaken {
    /// It can't be used.
    Fault(RecordFault),
    /// The stream can't be written.
    Io(io::Error),
}

impl<W: Write> ProbeLog<W> {
    /// The log of a probe, which begins with the next record. `is_retired` says that nobody is to
    /// wait where it ends.
    pub fn new(probe: &str, is_retired: bool, to: W) -> ProbeLog<W> {
        ProbeLog {
            assembler: Assembler::new(probe),
            to: ProbeWriter::without_head(to),
            epoch: None,
            known: BTreeSet::new(),
            state: LogState::Open,
            is_retired,
            is_gone: false,
            counts: LogCounts::default(),
        }
    }

    /// The counts of messages that were handed on, and of those left out.
    pub fn counts(&self) -> LogCounts {
        let torn = self.assembler.torn();
        LogCounts { damaged: self.counts.damaged.saturating_add(torn), ..self.counts }
    }

    /// Whether a head has come.
    pub fn has_begun(&self) -> bool {
        self.epoch.is_some()
    }

    /// Takes the word that the probe is gone: nobody is to wait where its log ends, until something
    /// further comes.
    pub fn retire(&mut self) {
        self.is_gone = true;
    }

    /// Whether somebody has said that the probe is gone, of which something has come.
    fn is_over(&self) -> bool {
        (self.is_retired || self.is_gone) && self.has_begun()
    }

    /// Takes the next record of the probe.
    ///
    /// # Errors
    /// If it can't be used, which the next one can be, or can't be written.
    pub fn take(&mut self, record: &RecordView<'_>) -> Result<(), NotTaken> {
        match self.assembler.take(record) {
            Ok(Content::Part) => Ok(()),
            Ok(Content::Head(head)) => {
                let is_new = self.known.insert(head.epoch);
                if is_new && self.epoch.is_some_and(|epoch| epoch > head.epoch) {
                    self.counts.damaged += 1;
                    return Err(NotTaken::Fault(RecordFault::Earlier));
                }
                if self.epoch.is_none_or(|epoch| epoch < head.epoch) {
                    self.is_gone = false;
                    self.epoch = Some(head.epoch);
                    self.state = LogState::Open;
                    self.to.begin_life(&head).map_err(NotTaken::Io)?;
                }
                Ok(())
            }
            Ok(Content::Message { epoch, bytes }) => {
                self.message(epoch, &bytes).map_err(NotTaken::Io)
            }
            Ok(Content::Cut(epoch)) => {
                if self.epoch == Some(epoch) && self.state == LogState::Open {
                    self.state = LogState::Ended;
                }
                Ok(())
            }
            // Parts of which the first ones were before the beginning.
            Err(RecordFault::Torn) if self.epoch.is_none() => {
                self.counts.before_head += 1;
                Ok(())
            }
            Err(fault) => {
                self.counts.damaged += 1;
                Err(NotTaken::Fault(fault))
            }
        }
    }

    fn message(&mut self, epoch: u64, bytes: &[u8]) -> io::Result<()> {
        if self.epoch.is_none_or(|known| epoch > known) {
            self.counts.before_head += 1;
            return Ok(());
        }
        if self.epoch == Some(epoch) {
            let was_gone = std::mem::take(&mut self.is_gone);
            let body = Message::read(bytes).map(|message| message.body);
            match (matches!(body, Ok(Body::End(_))), self.state) {
                (true, LogState::Open) => self.state = LogState::Ended,
                // A probe that was retired goes on.
                (false, LogState::Paused) if self.is_retired || was_gone => {
                    self.state = LogState::Open;
                }
                _ => {}
            }
        }
        self.counts.messages += 1;
        self.to.message(bytes)
    }

    /// All records that there are have come: says so to the reader, if nobody is to wait for more.
    /// Whether it is so.
    ///
    /// # Errors
    /// If the stream can't be written.
    pub fn at_end(&mut self) -> io::Result<bool> {
        let rests = self.state == LogState::Ended || self.is_over();
        if rests && self.state != LogState::Paused {
            self.state = LogState::Paused;
            self.to.pause()?;
        }
        Ok(self.state == LogState::Paused)
    }

    /// Whether the run that is read has ended, so that [`ProbeLog::at_end`] would say so.
    pub fn rests(&self) -> bool {
        self.state != LogState::Open || self.is_over()
    }

    /// Hands over what was written.
    ///
    /// # Errors
    /// If the stream can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{end, head, message};
    use weir_cluster::{ProbeReader, StreamItem};

    /// The items of a stream, in short.
    fn items(bytes: &[u8]) -> Vec<String> {
        let Ok((mut reader, first)) = ProbeReader::new(bytes) else { return Vec::new() };
        let (mut all, mut message) = (vec![format!("head {}", first.epoch)], Vec::new());
        loop {
            all.push(match reader.next(&mut message).expect("a stream") {
                StreamItem::End => return all,
                StreamItem::Pause => "pause".to_owned(),
                StreamItem::Head(head) => format!("head {}", head.epoch),
                StreamItem::Message => {
                    let read = Message::read(&message).expect("a message");
                    format!("{}.{}", read.epoch, read.number)
                }
            });
        }
    }

    struct Test {
        log: ProbeLog<Vec<u8>>,
    }

    impl Test {
        fn new(is_retired: bool) -> Test {
            Test { log: ProbeLog::new("north", is_retired, Vec::new()) }
        }

        fn record(&mut self, epoch: u64, value: &[u8], end: Option<&[u8]>) -> bool {
            let epoch = epoch.to_string();
            let epoch = Some(epoch.as_bytes());
            self.log.take(&RecordView { key: b"north", value, epoch, part: None, end }).is_ok()
        }

        fn head(&mut self, epoch: u64) {
            let bytes = head("north", epoch).bytes().expect("a head");
            assert!(self.record(epoch, &bytes, None));
        }

        fn message(&mut self, epoch: u64, number: u64) {
            assert!(self.record(epoch, &message("north", epoch, number), None));
        }

        fn end(&mut self, epoch: u64, number: u64) {
            assert!(self.record(epoch, &end("north", epoch, number), None));
        }

        fn at_end(&mut self) -> bool {
            self.log.at_end().expect("memory takes it")
        }

        fn items(self) -> Vec<String> {
            items(&self.log.to.into_inner())
        }
    }

    #[test]
    fn lives_follow_each_other_and_rests_are_told_once() {
        let mut test = Test::new(false);
        assert!(!test.at_end(), "nothing has come");
        test.head(1);
        test.message(1, 0);
        assert!(!test.at_end(), "it goes on");
        test.head(1);
        test.end(1, 1);
        assert!(test.log.rests() && test.at_end() && test.at_end());
        test.message(1, 0);
        assert!(test.at_end(), "what comes again changes nothing");
        test.head(2);
        assert!(!test.at_end());
        test.head(1);
        test.message(2, 0);
        test.message(1, 1);
        let all = ["head 1", "1.0", "1.1", "pause", "1.0", "head 2", "2.0", "1.1"];
        assert_eq!(test.items(), all);
    }

    #[test]
    fn a_run_of_a_clock_that_was_set_back_is_told_once() {
        let mut test = Test::new(false);
        test.head(5);
        let earlier = head("north", 3).bytes().expect("a head");
        assert!(!test.record(3, &earlier, None));
        assert!(test.record(3, &earlier, None), "it comes again");
        test.head(5);
        test.message(5, 0);
        assert_eq!(test.log.counts(), LogCounts { messages: 1, before_head: 0, damaged: 1 });
        assert_eq!(test.items(), ["head 5", "5.0"]);
    }

    #[test]
    fn what_comes_before_the_first_head_is_counted() {
        let mut test = Test::new(false);
        test.message(1, 5);
        test.end(1, 6);
        assert!(!test.at_end());
        test.head(2);
        test.message(3, 0);
        let counts = test.log.counts();
        assert_eq!((counts.before_head, counts.messages, counts.damaged), (3, 0, 0));
        assert_eq!(test.items(), ["head 2"]);
    }

    #[test]
    fn a_cut_rests_without_an_end() {
        let mut test = Test::new(false);
        test.head(1);
        test.message(1, 0);
        assert!(test.record(1, &end("north", 1, 1), Some(b"cut")));
        assert!(test.at_end());
        test.head(2);
        // The word of a life that is over comes again.
        assert!(test.record(1, &end("north", 1, 1), Some(b"cut")));
        assert!(!test.at_end());
        assert_eq!(test.items(), ["head 1", "1.0", "pause", "head 2"]);
    }

    /// The word that a probe is gone holds until it sends again.
    #[test]
    fn a_word_in_the_log_retires_until_something_comes() {
        let mut test = Test::new(false);
        test.log.retire();
        assert!(!test.at_end() && !test.log.rests(), "nothing has come that could be rested on");
        test.head(1);
        test.message(1, 0);
        assert!(!test.at_end(), "something came after the word");
        test.log.retire();
        assert!(test.log.rests() && test.at_end() && test.at_end());
        test.message(1, 1);
        assert!(!test.log.rests() && !test.at_end(), "it sends again");
        test.log.retire();
        test.head(2);
        assert!(!test.at_end(), "its next life has begun");
        test.message(2, 0);
        test.log.retire();
        assert!(test.at_end());
        assert_eq!(test.items(), ["head 1", "1.0", "pause", "1.1", "head 2", "2.0", "pause"]);
    }

    #[test]
    fn who_is_retired_rests_where_the_log_ends() {
        let mut test = Test::new(true);
        assert!(!test.at_end());
        test.head(1);
        assert!(test.at_end());
        test.message(1, 0);
        assert!(test.at_end());
        assert_eq!(test.items(), ["head 1", "pause", "1.0", "pause"]);
    }

    #[test]
    fn records_at_fault_are_counted_and_left_out() {
        let mut test = Test::new(false);
        test.head(1);
        assert!(!test.record(1, b"{}", None));
        assert!(!test.record(2, &message("north", 1, 0), None));
        test.message(1, 0);
        assert_eq!(test.log.counts(), LogCounts { messages: 1, before_head: 0, damaged: 2 });
        assert_eq!(test.items(), ["head 1", "1.0"]);
    }
}
