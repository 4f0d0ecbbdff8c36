//! Rows, and how far the partition was processed: committed together.

use super::partition::{Partition, TRIES, is_retriable};
use crate::client::{code_in_words, in_words, plain};
use crate::limits::{
    COMMIT_EVERY, COMMIT_RECORDS, COMMIT_ROWS, HEAD_EVERY_MESSAGES, TRANSACTION_STEP,
};
use crate::order::{PartitionCounts, PartitionEvent, RowsTo};
use crate::position::Position;
use crate::record::{EPOCH_HEADER, PART_HEADER, parts};
use crate::worker::{FromWorker, Mark};
use parking_lot::Mutex;
use rdkafka::Offset;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use weir_cluster::ProbeHead;
use weir_engine::exchange::renumber;

/// Tells of a partition.
pub(super) type ReportPartition<'a> = &'a (dyn Fn(&PartitionEvent) -> io::Result<()> + Sync);

/// The records that were read, and went to the run.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) unusable: AtomicU64,
    pub(super) repeated: AtomicU64,
    read: Mutex<ReadSoFar>,
}

#[derive(Clone, Copy, Default)]
struct ReadSoFar {
    /// The last record that went to the run, and the run that captured it.
    sent: Option<(i64, u64)>,
    /// The last that was left out after that one.
    left_out: Option<i64>,
}

impl Progress {
    pub(super) fn sent(&self, offset: i64, epoch: u64) {
        *self.read.lock() = ReadSoFar { sent: Some((offset, epoch)), left_out: None };
    }

    pub(super) fn left_out(&self, offset: i64) {
        self.read.lock().left_out = Some(offset);
    }
}

/// Why nothing more is committed.
enum Stopped {
    /// The partition is to be begun again where it was committed last.
    Again(String),
    /// It can't be processed.
    Failed(String),
    /// No one hears of it.
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(e: io::Error) -> Stopped {
        Stopped::Io(e)
    }
}

#[expect(clippy::disallowed_methods, reason = "results do not depend on when they are out")]
fn now() -> Instant {
    Instant::now()
}

/// Commits what a run made of a partition.
pub(super) struct Committer<'a> {
    partition: &'a Partition<'a>,
    progress: &'a Progress,
    report: ReportPartition<'a>,
    /// The position that is committed, ...
    committed: Position,
    /// ... and the one that would be, with the rows that came before.
    next: Position,
    /// Whether a transaction has begun.
    is_open: bool,
    /// When the first result came that is not committed.
    since: Option<Instant>,
    /// The counts that are not committed yet.
    waiting: PartitionCounts,
    counts: PartitionCounts,
    /// Whether rows came after the last mark: they belong to the next one.
    is_within: bool,
    /// Rows for the process that gave the order.
    text: String,
    /// The head of partial results, and how many messages are out.
    head: Option<ProbeHead>,
    messages: u64,
}

impl<'a> Committer<'a> {
    pub(super) fn new(
        partition: &'a Partition<'a>,
        position: Position,
        progress: &'a Progress,
        report: ReportPartition<'a>,
    ) -> Committer<'a> {
        Committer {
            partition,
            progress,
            report,
            committed: position,
            next: position,
            is_open: false,
            since: None,
            waiting: PartitionCounts::default(),
            counts: PartitionCounts::default(),
            is_within: false,
            text: String::new(),
            head: None,
            messages: position.messages,
        }
    }

    /// Commits what the run says, until it says no more; what was committed.
    pub(super) fn run(
        mut self,
        frames: &Receiver<Vec<FromWorker>>,
        stop: &AtomicBool,
    ) -> io::Result<PartitionCounts> {
        let event = match self.all(frames, stop) {
            Ok(event) => event,
            Err(Stopped::Again(why)) => Some(PartitionEvent::Again(why)),
            Err(Stopped::Failed(why)) => Some(PartitionEvent::Failed(why)),
            Err(Stopped::Io(e)) => return Err(e),
        };
        if self.is_open {
            // The transaction that it has begun is undone, or the next process of this partition
            // undoes it.
            let _ = self.partition.writer.abort_transaction(TRANSACTION_STEP);
        }
        if let Some(event) = event {
            (self.report)(&event)?;
        }
        self.counts.unusable = self.progress.unusable.load(Ordering::Relaxed);
        self.counts.repeated = self.progress.repeated.load(Ordering::Relaxed);
        Ok(self.counts)
    }

    fn all(
        &mut self,
        frames: &Receiver<Vec<FromWorker>>,
        stop: &AtomicBool,
    ) -> Result<Option<PartitionEvent>, Stopped> {
        loop {
            match frames.recv_timeout(COMMIT_EVERY / 4) {
                Ok(some) => {
                    for frame in some {
                        if self.take(frame)? {
                            return Ok(Some(PartitionEvent::Ended));
                        }
                        self.commit_if_due()?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.pass_left_out();
                    self.commit_if_due()?;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.pass_left_out();
                    if self.has_news() && !self.is_within {
                        self.commit()?;
                    }
                    let why = "the run that processes it has gone";
                    return match stop.load(Ordering::Relaxed) {
                        true => Ok(None),
                        false => Err(Stopped::Again(why.to_owned())),
                    };
                }
            }
        }
    }

    /// Takes what the run says; whether it has ended.
    fn take(&mut self, frame: FromWorker) -> Result<bool, Stopped> {
        match frame {
            FromWorker::Row { key, value } => self.row(key.as_deref(), &value)?,
            FromWorker::Head(json) => self.head(&json)?,
            FromWorker::Message(message) => self.message(message)?,
            FromWorker::Mark(mark) => self.mark(&mark)?,
            FromWorker::Finished(last) => {
                last.map_or(Ok(()), |mark| self.mark(&mark))?;
                self.finish()?;
                return Ok(true);
            }
            FromWorker::Refused(why) => return Err(Stopped::Failed(why)),
        }
        Ok(false)
    }

    /// Whether something is to be committed.
    fn has_news(&self) -> bool {
        self.next != self.committed
    }

    fn is_due(&self) -> bool {
        let waits = |since: Instant| since.elapsed() >= COMMIT_EVERY;
        let much = self.waiting.rows >= COMMIT_ROWS || self.waiting.records >= COMMIT_RECORDS;
        self.has_news() && !self.is_within && (much || self.since.is_some_and(waits))
    }

    fn commit_if_due(&mut self) -> Result<(), Stopped> {
        match self.is_due() {
            true => self.commit(),
            false => Ok(()),
        }
    }

    fn begin_waiting(&mut self) {
        self.since.get_or_insert_with(now);
    }

    fn row(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<(), Stopped> {
        self.begin_waiting();
        self.is_within = true;
        self.waiting.rows += 1;
        match &self.partition.task.rows {
            RowsTo::Parent => {
                self.text.push_str(&String::from_utf8_lossy(value));
                self.text.push('\n');
                Ok(())
            }
            RowsTo::Topic(topic) | RowsTo::Partials(topic) => {
                self.open()?;
                let record = BaseRecord::with_opaque_to(topic, 0).payload(value);
                match key {
                    Some(key) => self.send(record.key(key)),
                    None => self.send(record),
                }
            }
        }
    }

    fn open(&mut self) -> Result<(), Stopped> {
        if !self.is_open {
            self.partition.writer.begin_transaction().map_err(|e| self.stopped(&e))?;
            self.is_open = true;
        }
        Ok(())
    }

    fn head(&mut self, json: &[u8]) -> Result<(), Stopped> {
        self.head = Some(ProbeHead::read(json).map_err(Stopped::Failed)?);
        Ok(())
    }

    /// Sends a message of partial results, as the next one of its probe. The run that captured is
    /// the life of the probe, whichever processes the partition has had.
    fn message(&mut self, mut message: Vec<u8>) -> Result<(), Stopped> {
        let RowsTo::Partials(topic) = &self.partition.task.rows else { return Ok(()) };
        let Some(head) = &mut self.head else {
            return Err(Stopped::Failed("partial results came without their head".to_owned()));
        };
        self.since.get_or_insert_with(now);
        self.is_within = true;
        let epoch = self.progress.read.lock().sent.map_or(0, |(_, epoch)| epoch);
        head.epoch = epoch;
        if !renumber(&mut message, epoch, self.messages) {
            return Err(Stopped::Failed("a message has no number".to_owned()));
        }
        let (probe, partition) = (head.probe.clone(), self.partition.log);
        let repeated = self.messages.is_multiple_of(HEAD_EVERY_MESSAGES);
        let head = repeated.then(|| head.bytes()).transpose()?;
        self.messages += 1;
        self.waiting.rows += 1;
        self.open()?;
        let epoch = epoch.to_string();
        let of_head = head.iter().map(|bytes| (None, &bytes[..]));
        for (part, value) in of_head.chain(parts(&message)) {
            let mut headers =
                OwnedHeaders::new().insert(Header { key: EPOCH_HEADER, value: Some(&epoch) });
            if let Some(part) = &part {
                headers = headers.insert(Header { key: PART_HEADER, value: Some(part) });
            }
            let record = BaseRecord::with_opaque_to(topic, 0);
            let record = record.key(probe.as_bytes()).payload(value);
            self.send(record.partition(partition).headers(headers))?;
        }
        Ok(())
    }

    /// Hands a record to the client, as soon as it has room.
    fn send(&self, mut record: BaseRecord<'_, [u8], [u8], usize>) -> Result<(), Stopped> {
        let writer = &self.partition.writer;
        loop {
            record = match writer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => back,
                Err((error, _)) => return Err(self.stopped(&error)),
            };
            writer.client().context().wait_for_delivery(Duration::from_millis(100));
        }
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), Stopped> {
        self.is_within = false;
        let read = *self.progress.read.lock();
        let epoch = read.sent.map_or(self.next.epoch, |(_, epoch)| epoch);
        let Mark { offset, from, at, packets, missing } = *mark;
        if offset < self.committed.offset {
            // State was rebuilt: this record is committed already.
            return Ok(());
        }
        self.begin_waiting();
        let messages = self.messages;
        self.next = Position { offset: offset + 1, from, at, epoch, messages, has_ended: false };
        self.waiting.records += 1;
        self.waiting.packets += u64::from(packets);
        self.waiting.missing = self.waiting.missing.saturating_add(missing);
        self.pass_left_out();
        Ok(())
    }

    /// Passes the records that were left out, where the run has processed all others before them.
    fn pass_left_out(&mut self) {
        let read = *self.progress.read.lock();
        let Some(left_out) = read.left_out.filter(|offset| *offset >= self.next.offset) else {
            return;
        };
        if read.sent.is_none_or(|(sent, _)| sent < self.next.offset) {
            let has_state = self.next.from < self.next.offset;
            self.next.offset = left_out + 1;
            if !has_state {
                self.next.from = self.next.offset;
            }
            self.begin_waiting();
        }
    }

    /// Commits the last rows of a run that captured.
    fn finish(&mut self) -> Result<(), Stopped> {
        let offset = self.next.offset;
        self.next = Position { from: offset, at: None, messages: 0, has_ended: true, ..self.next };
        self.commit()
    }

    fn commit(&mut self) -> Result<(), Stopped> {
        self.open()?;
        let partition = self.partition;
        for rows in PartitionEvent::of_rows(&std::mem::take(&mut self.text)) {
            (self.report)(&rows)?;
        }
        let list = partition.list(Offset::Offset(self.next.offset));
        let list = list.map_err(|e| Stopped::Again(e.to_string()))?;
        let topic = &partition.order.topic.topic;
        if let Some(mut element) = list.find_partition(topic, partition.task.partition) {
            element.set_metadata(self.next.to_string());
        }
        let writer = &partition.writer;
        self.until_done(|| {
            writer.send_offsets_to_transaction(&list, &partition.group, TRANSACTION_STEP)
        })?;
        self.until_done(|| writer.commit_transaction(TRANSACTION_STEP))?;
        writer.client().context().is_back();
        self.is_open = false;
        self.committed = self.next;
        self.since = None;
        self.counts.merge(std::mem::take(&mut self.waiting));
        Ok(())
    }

    /// Calls something again while it only waits.
    fn until_done(&self, call: impl Fn() -> Result<(), KafkaError>) -> Result<(), Stopped> {
        for _ in 0..TRIES {
            match call() {
                Err(e) if is_retriable(&e) => {}
                done => return done.map_err(|e| self.stopped(&e)),
            }
        }
        Err(Stopped::Again("a transaction could not be committed in time".to_owned()))
    }

    /// The fate of a transaction that can't be committed.
    fn stopped(&self, error: &KafkaError) -> Stopped {
        let refused = self.partition.writer.client().context().refusal();
        let is_refused = refused.is_some();
        let why = refused.unwrap_or_else(|| in_words(error));
        if is_refused && why == code_in_words(RDKafkaErrorCode::MessageSizeTooLarge) {
            // It would be refused again.
            return Stopped::Failed(format!("a broker refuses a row: {}", plain(&why)));
        }
        let code = match error {
            KafkaError::Transaction(e) => Some(e.code()),
            other => other.rdkafka_error_code(),
        };
        match code {
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
                | RDKafkaErrorCode::MessageSizeTooLarge
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic,
            ) => Stopped::Failed(plain(&why)),
            Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced) => {
                Stopped::Again("another process has taken the partition over".to_owned())
            }
            _ => Stopped::Again(plain(&why)),
        }
    }
}
