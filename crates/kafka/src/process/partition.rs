//! A partition of a topic, and its clients.

use crate::client::{Watch, config, in_words, partitions, plain};
use crate::limits::{START, TRANSACTION, TRANSACTION_STEP};
use crate::look::{consumer, serve};
use crate::order::{CarrierOrder, PartitionOrder, RowsTo};
use crate::partition::partition_of;
use crate::position::Position;
use crate::{KafkaFault, Say};
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::producer::{Producer as _, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Calls that wait for what makes way by itself, before the partition is begun again.
pub(super) const TRIES: u32 = 20;

/// A partition, and the clients that read it and commit what was made of it.
pub(super) struct Partition<'a> {
    pub(super) order: &'a CarrierOrder,
    pub(super) task: &'a PartitionOrder,
    pub(super) reader: BaseConsumer<Watch>,
    pub(super) writer: ThreadedProducer<Watch>,
    /// The partition that partial results go to.
    pub(super) log: i32,
    pub(super) group: ConsumerGroupMetadata,
    pub(super) say: &'a Say,
}

impl<'a> Partition<'a> {
    /// Makes the clients, and ends what an earlier process has begun.
    pub(super) fn open(
        order: &'a CarrierOrder,
        task: &'a PartitionOrder,
        stop: &AtomicBool,
        say: &'a Say,
    ) -> Result<Partition<'a>, KafkaFault> {
        let own = [
            ("group.id", task.group.as_str()),
            // Positions of transactions that are open are waited for.
            ("isolation.level", "read_committed"),
            ("auto.offset.reset", "error"),
        ];
        let reader = consumer(order, &own, say)?;
        let count = partitions(reader.client(), order, &|| serve(&reader))?;
        if !(0..count).contains(&task.partition) {
            return Err(KafkaFault::Partition { partition: task.partition, count });
        }
        let id = format!("weir/{}/{}/{}", task.group, order.topic.topic, task.partition);
        let lasts = TRANSACTION.as_millis().to_string();
        let own = [
            ("transactional.id", id.as_str()),
            ("transaction.timeout.ms", lasts.as_str()),
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("partitioner", "murmur2_random"),
        ];
        let defaults = [("compression.type", "lz4".to_owned()), ("linger.ms", "5".to_owned())];
        let watch = Watch::new(say, "the partition waits");
        let writer = config(order, &defaults, &own).create_with_context(watch);
        let writer: ThreadedProducer<Watch> =
            writer.map_err(|e: KafkaError| KafkaFault::Properties(plain(&e.to_string())))?;
        let mut log = 0;
        if let RowsTo::Topic(rows) | RowsTo::Partials(rows) = &task.rows {
            let mut of_rows = order.clone();
            rows.clone_into(&mut of_rows.topic.topic);
            let count = partitions(writer.client(), &of_rows, &|| writer.poll(Duration::ZERO))?;
            log = partition_of(task.probe.as_bytes(), count);
        }
        init(&writer, stop)?;
        let group = reader.group_metadata();
        let group = group.ok_or_else(|| KafkaFault::Group("it has no name".to_owned()))?;
        Ok(Partition { order, task, reader, writer, log, group, say })
    }

    pub(super) fn list(&self, offset: Offset) -> Result<TopicPartitionList, KafkaFault> {
        let mut list = TopicPartitionList::new();
        let added = list.add_partition_offset(&self.order.topic.topic, self.task.partition, offset);
        added.map_err(|e| KafkaFault::Broker(in_words(&e)))?;
        Ok(list)
    }

    /// How far the group is.
    pub(super) fn position(&self) -> Result<Position, KafkaFault> {
        let (topic, partition) = (&self.order.topic.topic, self.task.partition);
        let failed = |e: KafkaError| KafkaFault::Broker(in_words(&e));
        let ends = self.reader.fetch_watermarks(topic, partition, START);
        let (low, high) = ends.map_err(failed)?;
        let list = self.list(Offset::Invalid)?;
        let committed = self.reader.committed_offsets(list, START).map_err(failed)?;
        let found = committed.find_partition(topic, partition);
        let position = match found.as_ref().map(|found| (found.offset(), found.metadata())) {
            Some((Offset::Offset(offset), metadata)) => Position::read(offset, metadata),
            _ => Some(Position::fresh(low)),
        };
        let group = &self.task.group;
        let Some(position) = position else {
            return Err(KafkaFault::Group(format!(
                "group {group} has a position of partition {partition} that another program has \
                 written: choose another --group"
            )));
        };
        if position.from < low || position.offset > high {
            return Err(KafkaFault::Group(format!(
                "group {group} needs the records of partition {partition} from offset {} on, and \
                 there are those from {low} to {high}: keep them longer (retention.ms, \
                 retention.bytes), choose another --group, or set its offsets \
                 (kafka-consumer-groups.sh --reset-offsets)",
                position.from
            )));
        }
        Ok(position)
    }

    pub(super) fn assign(&self, from: i64) -> Result<(), KafkaFault> {
        let list = self.list(Offset::Offset(from))?;
        self.reader.assign(&list).map_err(|e| KafkaFault::Broker(in_words(&e)))
    }
}

/// Ends what an earlier process of this partition has begun, and keeps it from going on.
fn init(writer: &ThreadedProducer<Watch>, stop: &AtomicBool) -> Result<(), KafkaFault> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match writer.init_transactions(TRANSACTION_STEP) {
            Ok(()) => return Ok(()),
            Err(e) if is_retriable(&e) && !stop.load(Ordering::Relaxed) => last = in_words(&e),
            Err(e) => return Err(KafkaFault::Broker(in_words(&e))),
        }
    }
    Err(KafkaFault::Broker(last))
}

pub(super) fn is_retriable(error: &KafkaError) -> bool {
    match error {
        KafkaError::Transaction(e) => e.is_retriable(),
        _ => false,
    }
}
