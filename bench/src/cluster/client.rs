//! The bare client of Kafka: librdkafka with the settings that Weir gives it, and nothing else.

use super::record::{IsEnough, KafkaRecord, SendRecord, Topic};
use crate::timing::{Alarm, pause_ms};
use anyhow::{Context as _, Result, bail, ensure};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::ThreadedProducer;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long a broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a look for what is new in a topic takes at most.
const FOLLOWED: Duration = Duration::from_millis(100);

/// How long what was handed over may take to be delivered.
const DRAIN: Duration = Duration::from_secs(120);

/// The settings with which Weir sends (see the crate `kafka`): records arrive in order, each of
/// them once, and so many may wait. Batches are those of the client.
const SENDING: [(&str, &str); 6] = [
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("message.timeout.ms", "0"),
    ("compression.type", "lz4"),
    ("queue.buffering.max.kbytes", "65536"),
    ("queue.buffering.max.messages", "100000"),
];

/// A consumer that is in no group. It may hold as much as the client holds by itself.
const READING: [(&str, &str); 5] = [
    ("group.id", "weir-bench"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    ("fetch.wait.max.ms", "100"),
];

fn config(topic: Topic<'_>, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", topic.brokers).set_log_level(RDKafkaLogLevel::Error);
    for (name, value) in settings {
        config.set(*name, *value);
    }
    config
}

/// A consumer of all partitions of a topic, and how many there are.
fn consumer(topic: Topic<'_>, from: Offset) -> Result<(BaseConsumer, usize)> {
    let client: BaseConsumer = config(topic, &READING).create().context("a consumer")?;
    let found = client.fetch_metadata(Some(topic.name), PATIENCE).context("asking a broker")?;
    let of_topic = found.topics().iter().find(|of| of.name() == topic.name);
    let count = of_topic.map_or(0, |of| of.partitions().len());
    ensure!(count > 0, "there is no topic {}", topic.name);
    let mut list = TopicPartitionList::new();
    for partition in 0..count {
        let partition = i32::try_from(partition).context("a partition")?;
        list.add_partition_offset(topic.name, partition, from).context("a partition")?;
    }
    client.assign(&list).context("taking partitions")?;
    Ok((client, count))
}

fn owned(record: &BorrowedMessage<'_>) -> KafkaRecord {
    let headers = record.headers().into_iter().flat_map(|headers| headers.iter());
    KafkaRecord {
        partition: record.partition(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.payload().unwrap_or_default().to_vec(),
        headers: headers
            .map(|h| (h.key.to_owned(), h.value.unwrap_or_default().to_vec()))
            .collect(),
    }
}

/// Reads a topic up to its end; how many records it has, and the bytes that they bring.
pub(super) fn read_to_end(
    topic: Topic<'_>,
    mut keep: Option<&mut Vec<KafkaRecord>>,
) -> Result<(u64, u64)> {
    let (client, count) = consumer(topic, Offset::Beginning)?;
    let (mut ended, mut records, mut bytes) = (0, 0, 0);
    while ended < count {
        match client.poll(PATIENCE) {
            None => bail!("nothing came from {} within ten seconds", topic.name),
            Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(e)) => return Err(e).context("reading a topic"),
            Some(Ok(record)) => {
                records += 1;
                let headers = record.headers().into_iter().flat_map(|all| all.iter());
                let headers = headers.map(|h| h.key.len() + h.value.map_or(0, <[u8]>::len));
                let key = record.key().map_or(0, <[u8]>::len);
                let value = record.payload().map_or(0, <[u8]>::len);
                bytes += (key + value + headers.sum::<usize>()) as u64;
                if let Some(kept) = keep.as_deref_mut() {
                    kept.push(owned(&record));
                }
            }
        }
    }
    Ok((records, bytes))
}

/// Hands on what is committed in a topic, as it comes, until that is enough.
///
/// # Errors
/// Where nothing came for so long, and those of `take`.
pub(super) fn follow(
    topic: Topic<'_>,
    patience: Duration,
    take: &mut dyn FnMut(&[u8]) -> Result<IsEnough>,
) -> Result<()> {
    let (client, _) = consumer(topic, Offset::Beginning)?;
    let mut end = Alarm::after(patience);
    loop {
        match client.poll(FOLLOWED) {
            Some(Ok(record)) => {
                end = Alarm::after(patience);
                if take(record.payload().unwrap_or_default())? == IsEnough(true) {
                    return Ok(());
                }
            }
            None | Some(Err(KafkaError::PartitionEOF(_))) => {
                ensure!(!end.is_over(), "nothing came from {} for {patience:?}", topic.name);
            }
            Some(Err(e)) => return Err(e).context("reading a topic"),
        }
    }
}

/// Counts deliveries.
#[derive(Default)]
struct Deliveries {
    delivered: AtomicU64,
    failed: AtomicU64,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let count = if result.is_ok() { &self.delivered } else { &self.failed };
        count.fetch_add(1, Relaxed);
    }
}

fn offer(
    client: &ThreadedProducer<Deliveries>,
    topic: Topic<'_>,
    record: &KafkaRecord,
) -> Result<()> {
    let mut base: BaseRecord<'_, [u8], [u8]> =
        BaseRecord::to(topic.name).partition(record.partition).payload(&record.value);
    if let Some(key) = &record.key {
        base = base.key(key);
    }
    if !record.headers.is_empty() {
        let headers = record.headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| {
            all.insert(Header { key, value: Some(value) })
        });
        base = base.headers(headers);
    }
    loop {
        base = match client.send(base) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => back,
            Err((error, _)) => return Err(error).context("sending a record"),
        };
        pause_ms(1);
    }
}

/// Sends all that `load` hands over; returns once everything is delivered.
pub(super) fn send_all(
    topic: Topic<'_>,
    load: &mut dyn FnMut(SendRecord<'_>) -> Result<()>,
) -> Result<()> {
    let config = config(topic, &SENDING);
    let client = config.create_with_context(Deliveries::default());
    let client: ThreadedProducer<Deliveries> = client.context("a producer")?;
    let mut sent = 0;
    load(&mut |record| {
        sent += 1;
        offer(&client, topic, record)
    })?;
    client.flush(DRAIN).context("waiting for deliveries")?;
    let Deliveries { delivered, failed } = &**client.context();
    let (delivered, failed) = (delivered.load(Relaxed), failed.load(Relaxed));
    ensure!(delivered == sent, "{delivered} of {sent} records came, and {failed} did not");
    Ok(())
}
