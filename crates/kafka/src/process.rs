//! One partition of packets, and the rows that a run makes of them: its records go to the run, and
//! its rows to a topic, in one transaction with how far the partition was processed.
//!
//! The transactional id is that of the partition and the group, so that brokers refuse what an
//! earlier process of this partition still tries to commit, wherever that ran.

mod commit;
mod partition;

use crate::client::in_words;
use crate::limits::{FAULTS_NAMED, FRAMES_WAITING};
use crate::look::is_lasting;
use crate::order::{CarrierOrder, PartitionCounts, PartitionEvent, PartitionOrder};
use crate::packets::{PacketHead, PacketKind, PacketRecord};
use crate::position::Position;
use crate::worker::{FromWorker, ToWorker, starts_with_frame};
use crate::{KafkaFault, Say};
use commit::{Committer, Progress, ReportPartition};
use partition::Partition;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message as _};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long is waited for a record at a time.
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes for the run that are handed on at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Processes a partition by the run at the other end of a socket, until `stop` is set or the run
/// that captured has ended. `report` tells of it.
///
/// # Errors
/// Where the partition, the group or the topic of rows can't be used; what goes by itself is
/// reported instead.
pub fn process(
    order: &CarrierOrder,
    task: &PartitionOrder,
    worker: File,
    report: ReportPartition<'_>,
    stop: &AtomicBool,
    say: &Say,
) -> Result<(), KafkaFault> {
    let partition = Partition::open(order, task, stop, say)?;
    let position = partition.position()?;
    partition.assign(position.from)?;
    report(&PartitionEvent::Begun { offset: position.offset, from: position.from })?;
    let worker = UnixStream::from(std::os::fd::OwnedFd::from(worker));
    let (progress, over) = (Progress::default(), AtomicBool::new(false));
    let counts = thread::scope(|scope| -> io::Result<PartitionCounts> {
        let (frames, waiting) = sync_channel(FRAMES_WAITING);
        let from = worker.try_clone()?;
        scope.spawn(move || listen(from, &frames));
        let committing = Committer::new(&partition, position, &progress, report);
        let (over, ends) = (&over, worker.try_clone()?);
        let commits = scope.spawn(move || {
            let counts = committing.run(&waiting, stop);
            over.store(true, Ordering::Relaxed);
            // A process that waits for the run, or for this process, waits no more.
            let _ = ends.shutdown(std::net::Shutdown::Both);
            counts
        });
        let mut feed = Feed::new(&partition, position, &progress, &worker);
        let fed = feed.run(|| stop.load(Ordering::Relaxed) || over.load(Ordering::Relaxed));
        let _ = worker.shutdown(std::net::Shutdown::Write);
        let counts = commits.join().unwrap_or_else(|_| Err(io::Error::other("a panic")));
        match fed {
            // The run is gone, which the other thread has reported.
            Err(KafkaFault::Io(_)) | Ok(()) => {}
            Err(fault) => report(&PartitionEvent::Failed(fault.to_string()))?,
        }
        counts
    })?;
    Ok(report(&PartitionEvent::Counts(counts))?)
}

/// Hands on what the run says, as much at a time as has come, until it says no more.
fn listen(from: impl Read, frames: &SyncSender<Vec<FromWorker>>) {
    let mut from = BufReader::with_capacity(BUFFER_BYTES, from);
    let mut some = Vec::new();
    while let Ok(Some(frame)) = FromWorker::read(&mut from) {
        some.push(frame);
        if !starts_with_frame(from.buffer()) && frames.send(std::mem::take(&mut some)).is_err() {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "records of the future are told by the time")]
fn system_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The records on their way to the run.
struct Feed<'a> {
    partition: &'a Partition<'a>,
    position: Position,
    progress: &'a Progress,
    to: BufWriter<&'a UnixStream>,
    /// The run that captured the records now, and the number of its next record.
    life: Option<(u64, u64)>,
}

/// The fate of a record.
enum Fed {
    /// The run has it.
    Sent,
    /// It was left out.
    LeftOut,
    /// It is the last, or the first of another run that captured.
    Last,
}

impl<'a> Feed<'a> {
    fn new(
        partition: &'a Partition<'a>,
        position: Position,
        progress: &'a Progress,
        worker: &'a UnixStream,
    ) -> Feed<'a> {
        let to = BufWriter::with_capacity(BUFFER_BYTES, worker);
        Feed { partition, position, progress, to, life: None }
    }

    fn run(&mut self, ends: impl Fn() -> bool) -> Result<(), KafkaFault> {
        let reader = &self.partition.reader;
        ToWorker::Start(self.position.at).write(&mut self.to)?;
        let mut has_ended = false;
        while !ends() {
            let polled = match reader.poll(Duration::ZERO) {
                Some(polled) => Some(polled),
                None => {
                    self.to.flush()?;
                    reader.poll(PATIENCE)
                }
            };
            match polled {
                Some(Ok(record)) if !has_ended => {
                    reader.client().context().is_back();
                    match self.record(&record)? {
                        Fed::Sent => {}
                        Fed::LeftOut => self.progress.left_out(record.offset()),
                        Fed::Last => has_ended = true,
                    }
                }
                // The run still has to end.
                Some(Ok(_)) | None => {}
                Some(Err(KafkaError::PartitionEOF(_))) => reader.client().context().is_back(),
                Some(Err(e)) if is_lasting(&e) => {
                    let (partition, why) = (self.partition.task.partition, in_words(&e));
                    return Err(KafkaFault::Log(format!("partition {partition}: {why}")));
                }
                // The client tries again.
                Some(Err(_)) => {}
            }
        }
        Ok(())
    }

    /// Counts a record that can't be used, and names the first ones; those that are read again to
    /// rebuild state were counted before.
    fn unusable(&self, offset: i64, why: &dyn Display) {
        if offset < self.position.offset {
            return;
        }
        let before = self.progress.unusable.fetch_add(1, Ordering::Relaxed);
        if before < FAULTS_NAMED {
            let Partition { task, say, .. } = self.partition;
            say(&format!("partition {}, offset {offset}: {why}", task.partition));
        }
    }

    /// Why a record that can be read can't be used, whatever came before it.
    fn fault_of(&self, head: &PacketHead) -> Option<String> {
        if head.is_ahead(system_ns()) {
            return Some("it is of a time that lies more than a day ahead".to_owned());
        }
        // Where all packets are spread by another key, the run says which stage does not fit, and
        // the host ends.
        let has_used = self.life.is_some() || self.position.epoch != 0;
        let fits = self.partition.task.keys.contains(&head.spread);
        (has_used && !fits).then(|| {
            let key = head.spread.name();
            format!("its packets are spread by {key}, by which the query can't be shared")
        })
    }

    /// Whether the first record that is read should be the first of its run.
    fn is_at_start(&self, epoch: u64) -> bool {
        match self.position.epoch {
            // A log that has forgotten its oldest records, or a group that a person has set
            // elsewhere, begins amid a run.
            0 => self.position.offset == 0,
            before => self.position.has_ended && epoch > before,
        }
    }

    fn record(&mut self, record: &BorrowedMessage<'_>) -> Result<Fed, KafkaFault> {
        let (offset, value) = (record.offset(), record.payload().unwrap_or_default());
        let read = match PacketRecord::read(value) {
            Ok(read) => read,
            Err(fault) => {
                self.unusable(offset, &fault);
                return Ok(Fed::LeftOut);
            }
        };
        if let Some(why) = self.fault_of(&read.head) {
            self.unusable(offset, &why);
            return Ok(Fed::LeftOut);
        }
        let (epoch, number) = (read.head.epoch, read.head.number);
        let is_old = match self.life {
            Some((life, next)) => epoch < life || epoch == life && number < next,
            None => self.position.has_ended && epoch <= self.position.epoch,
        };
        if is_old {
            let newest = self.life.map_or(self.position.epoch, |(life, _)| life);
            if epoch < newest {
                self.unusable(
                    offset,
                    &"it is of a run that another one has followed, by the clock of the probe",
                );
            } else if offset >= self.position.offset {
                self.progress.repeated.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(Fed::LeftOut);
        }
        if self.life.is_some_and(|(life, _)| epoch > life) {
            ToWorker::Over.write(&mut self.to)?;
            self.to.flush()?;
            return Ok(Fed::Last);
        }
        if self.life.is_none() && self.is_at_start(epoch) {
            ToWorker::First.write(&mut self.to)?;
        }
        self.life = Some((epoch, number.saturating_add(1)));
        self.progress.sent(offset, epoch);
        let is_live = offset >= self.position.offset;
        ToWorker::Record { offset, is_live, value }.write(&mut self.to)?;
        match read.head.kind {
            PacketKind::Packets => Ok(Fed::Sent),
            PacketKind::End | PacketKind::Cut => {
                self.to.flush()?;
                Ok(Fed::Last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that arrive in pieces, as from a socket.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.first_mut() else { return Ok(0) };
            let n = piece.len().min(to.len());
            to[..n].copy_from_slice(&piece[..n]);
            piece.drain(..n);
            self.0.retain(|piece| !piece.is_empty());
            Ok(n)
        }
    }

    #[test]
    fn what_came_together_is_handed_on_together() {
        let row = |n: u8| FromWorker::Row { key: None, value: vec![n; usize::from(n)] };
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for n in 0..6 {
            row(n).write(&mut bytes).expect("memory takes it");
            ends.push(bytes.len());
        }
        // Two whole ones, one and a part of the next, the rest of that, and one that is cut short.
        let cuts = [0, ends[1], ends[2] + 3, ends[3], ends[4], ends[5] - 1];
        let pieces = cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect();
        let (frames, waiting) = sync_channel(FRAMES_WAITING);
        listen(Pieces(pieces), &frames);
        drop(frames);
        let all: Vec<Vec<FromWorker>> = waiting.iter().collect();
        assert_eq!(all, [vec![row(0), row(1)], vec![row(2)], vec![row(3)], vec![row(4)]]);
    }

    /// Where frames come without a pause, and none ends where a read does, memory stays bounded.
    #[test]
    fn no_more_is_handed_on_together_than_is_read_at_once() {
        let row = FromWorker::Row { key: None, value: vec![7; 90] };
        let mut one = Vec::new();
        row.write(&mut one).expect("memory takes it");
        let (count, most) = (50_000, BUFFER_BYTES / one.len() + 1);
        assert_ne!(BUFFER_BYTES % one.len(), 0);
        let (frames, waiting) = sync_channel(FRAMES_WAITING);
        let reading = thread::spawn(move || listen(&one.repeat(count)[..], &frames));
        let sizes: Vec<usize> = waiting.iter().map(|some| some.len()).collect();
        reading.join().expect("no panic");
        assert_eq!(sizes.iter().sum::<usize>(), count);
        assert!(sizes.iter().all(|size| (1..=most).contains(size)), "{sizes:?}");
    }
}
