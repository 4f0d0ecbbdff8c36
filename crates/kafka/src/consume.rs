//! The log of a probe, to a stream.

use crate::client::{Watch, in_words, partition_of, partitions};
use crate::limits::FAULTS_NAMED;
use crate::log::{LogCounts, NotTaken, ProbeLog};
use crate::look::{consumer, is_lasting, serve, watermarks};
use crate::order::{CarrierOrder, Detail, LogEnd, LogOrder, LogStart};
use crate::record::{END_HEADER, EPOCH_HEADER, PART_HEADER, RETIRE_HEADER, RecordView};
use crate::{KafkaFault, Say};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long is waited for a record at a time.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reads the log of a probe and writes it as a stream, until `stop` is set or, if that is wanted,
/// the log ends with the end of a run.
///
/// # Errors
/// Where no broker answers at the start, the log can't be read, records can't be used, or the
/// stream can't be written.
pub fn consume(
    order: &CarrierOrder,
    log: &LogOrder,
    to: &mut dyn Write,
    stop: &AtomicBool,
    say: &Say,
) -> Result<LogCounts, KafkaFault> {
    let reset = match log.from {
        LogStart::Earliest => "earliest",
        LogStart::Latest => "latest",
        LogStart::Offset(_) => "error",
    };
    let client = consumer(order, &[("auto.offset.reset", reset)], say)?;
    let count = partitions(client.client(), order, &|| serve(&client))?;
    let partition = partition_of(&log.log, count)?;
    let reading = Reading { client, order, log, partition, say, faults: Cell::new(0) };
    reading.assign()?;
    let mut stream = ProbeLog::new(&log.log.probe, log.is_retired, to);
    reading.all(&mut stream, stop)?;
    let counts = stream.counts();
    reading.tell(counts);
    match counts.damaged {
        0 => Ok(counts),
        damaged => Err(KafkaFault::Damaged(damaged)),
    }
}

struct Reading<'a> {
    client: BaseConsumer<Watch>,
    order: &'a CarrierOrder,
    log: &'a LogOrder,
    partition: i32,
    say: &'a Say,
    /// Records that could not be used.
    faults: Cell<u64>,
}

impl Reading<'_> {
    fn assign(&self) -> Result<(), KafkaFault> {
        let failed = |e: KafkaError| KafkaFault::Broker(in_words(&e));
        let topic = &self.order.topic.topic;
        let offset = match self.log.from {
            LogStart::Earliest => Offset::Beginning,
            LogStart::Latest => Offset::End,
            LogStart::Offset(offset) => {
                let ends = watermarks(&self.client, topic, self.partition);
                let (low, high) = ends.map_err(failed)?;
                if !(low..=high).contains(&offset) {
                    return Err(KafkaFault::Log(format!(
                        "partition {} has no record of offset {offset}: it has those from {low} \
                         to {high}",
                        self.partition
                    )));
                }
                Offset::Offset(offset)
            }
        };
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, self.partition, offset).map_err(failed)?;
        self.client.assign(&list).map_err(failed)
    }

    /// Reads until it is stopped, or the log ends.
    fn all(
        &self,
        stream: &mut ProbeLog<&mut dyn Write>,
        stop: &AtomicBool,
    ) -> Result<(), KafkaFault> {
        let mut has_told = false;
        while !stop.load(Ordering::Relaxed) {
            let polled = self.client.poll(Duration::ZERO);
            let polled = match polled {
                Some(polled) => Some(polled),
                None => {
                    stream.flush()?;
                    self.client.poll(PATIENCE)
                }
            };
            match polled {
                None => {}
                Some(Ok(record)) => {
                    self.client.client().context().is_back();
                    if record.key() == Some(self.log.log.probe.as_bytes()) {
                        let taken = take(&record, stream);
                        self.fault(&record, taken)?;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    self.client.client().context().is_back();
                    let rests = stream.at_end()?;
                    stream.flush()?;
                    if rests && self.log.until == LogEnd::OfRun {
                        return Ok(());
                    }
                    if !stream.has_begun() && !has_told {
                        has_told = true;
                        self.nothing_yet()?;
                    }
                }
                Some(Err(e)) if is_lasting(&e) => {
                    let (partition, why) = (self.partition, in_words(&e));
                    return Err(KafkaFault::Log(format!("partition {partition}: {why}")));
                }
                // The client tries again.
                Some(Err(_)) => {}
            }
        }
        Ok(())
    }

    /// Names a record that can't be used.
    fn fault(
        &self,
        record: &BorrowedMessage<'_>,
        taken: Result<(), NotTaken>,
    ) -> Result<(), KafkaFault> {
        match taken {
            Ok(()) => Ok(()),
            Err(NotTaken::Io(e)) => Err(e.into()),
            Err(NotTaken::Fault(fault)) => {
                self.faults.set(self.faults.get() + 1);
                if self.faults.get() > FAULTS_NAMED {
                    return Ok(());
                }
                let (partition, offset) = (record.partition(), record.offset());
                (self.say)(&format!("partition {partition}, offset {offset}: {fault}"));
                Ok(())
            }
        }
    }

    /// The log has no record of the probe that a merge could begin with.
    fn nothing_yet(&self) -> Result<(), KafkaFault> {
        let (partition, probe) = (self.partition, &self.log.log.probe);
        if self.log.is_retired {
            return Err(KafkaFault::Log(format!(
                "partition {partition} has no records of probe {probe}, which is retired: leave it \
                 out of --probes"
            )));
        }
        if self.order.detail != Detail::Quiet {
            (self.say)(&format!(
                "partition {partition} has no records of probe {probe} yet, and the merge waits \
                 for it (one that runs with --kafka-partition N is named {probe}@N)"
            ));
        }
        Ok(())
    }

    fn tell(&self, counts: LogCounts) {
        let LogCounts { messages, before_head, .. } = counts;
        if before_head > 0 && self.order.detail != Detail::Quiet {
            (self.say)(&format!(
                "{before_head} messages were left out, which came before the first head"
            ));
        }
        if self.order.detail == Detail::Verbose {
            (self.say)(&format!("{messages} messages from partition {}", self.partition));
        }
    }
}

/// Hands a record on.
fn take(
    record: &BorrowedMessage<'_>,
    stream: &mut ProbeLog<&mut dyn Write>,
) -> Result<(), NotTaken> {
    let mut view = RecordView {
        key: record.key().unwrap_or_default(),
        value: record.payload().unwrap_or_default(),
        ..RecordView::default()
    };
    for header in record.headers().into_iter().flat_map(|headers| headers.iter()) {
        match header.key {
            EPOCH_HEADER => view.epoch = header.value,
            PART_HEADER => view.part = header.value,
            END_HEADER => view.end = header.value,
            RETIRE_HEADER => {
                stream.retire();
                return Ok(());
            }
            _ => {}
        }
    }
    stream.take(&view)
}
