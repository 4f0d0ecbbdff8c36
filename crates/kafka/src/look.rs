//! Whether a topic is there, and which probes have written to it.

use crate::client::{
    LEADER_PAUSE, LEADER_TRIES, Watch, config, in_words, partition_of, partitions, plain,
};
use crate::limits::{PROBES_MAX, START};
use crate::order::{CarrierOrder, LogName, Roster};
use crate::record::EPOCH_HEADER;
use crate::{KafkaFault, Say};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_cluster::ProbeHead;

/// How long is waited for a record at a time.
const PATIENCE: Duration = Duration::from_millis(100);

/// Events that are served before something else is looked at.
const EVENTS_MAX: u32 = 100;

/// Properties that a consumer depends on.
pub(crate) const OWN: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    ("allow.auto.create.topics", "false"),
];

/// A consumer that is given its partitions, and is in no group.
pub(crate) fn consumer(
    order: &CarrierOrder,
    own: &[(&str, &str)],
    say: &Say,
) -> Result<BaseConsumer<Watch>, KafkaFault> {
    let defaults = [
        // The client asks for a name; nobody joins.
        ("group.id", "weir-merge".to_owned()),
        ("fetch.wait.max.ms", "100".to_owned()),
        ("queued.max.messages.kbytes", "8192".to_owned()),
    ];
    let own: Vec<_> = OWN.iter().chain(own).copied().collect();
    let watch = Watch::new(say, "the merge waits");
    let client = config(order, &defaults, &own).create_with_context(watch);
    client.map_err(|e: KafkaError| KafkaFault::Properties(plain(&e.to_string())))
}

/// Has a consumer that has no partitions yet report what has happened.
pub(crate) fn serve(client: &BaseConsumer<Watch>) {
    for _ in 0..EVENTS_MAX {
        if client.poll(Duration::ZERO).is_none() {
            return;
        }
    }
}

/// Looks whether the topic is there, and the partitions of the probes that are named. With
/// [`Roster::Found`] it reads all records that there are, for the names of those that wrote them.
///
/// # Errors
/// Where no broker answers, or the topic or a partition is not there, or a probe has written into
/// several.
pub fn look(
    order: &CarrierOrder,
    roster: &Roster,
    stop: &AtomicBool,
    say: &Say,
) -> Result<Vec<LogName>, KafkaFault> {
    let client = consumer(order, &[("auto.offset.reset", "earliest")], say)?;
    let count = partitions(client.client(), order, &|| serve(&client))?;
    match roster {
        Roster::Named(logs) => {
            for log in logs {
                partition_of(log, count)?;
            }
            Ok(logs.clone())
        }
        Roster::Found => {
            let found = one_partition_each(scan(&client, order, 0..count, &|_| false, stop)?)?;
            if found.is_empty() && !stop.load(Ordering::Relaxed) {
                return Err(KafkaFault::Topic(
                    "no probe has written into the topic yet; name those to wait for: --probes \
                     NAME,NAME"
                        .to_owned(),
                ));
            }
            Ok(found)
        }
    }
}

/// The message about a name that no probe has written under into its partition: it names those that
/// have.
///
/// # Errors
/// Where records can't be read.
pub(crate) fn unseen(
    order: &CarrierOrder,
    (log, partition): (&LogName, i32),
    count: i32,
    say: &Say,
) -> Result<Option<String>, KafkaFault> {
    let client = consumer(order, &[("auto.offset.reset", "earliest")], say)?;
    let never = AtomicBool::new(false);
    let is_meant = |name: &str| name == log.probe;
    let here = scan(&client, order, partition..partition + 1, &is_meant, &never)?;
    if here.iter().any(|(name, _)| is_meant(name)) {
        return Ok(None);
    }
    let all = scan(&client, order, 0..count, &|_| false, &never)?;
    let names: Vec<String> = all.iter().map(|(name, at)| format!("{name}@{at}")).collect();
    let others = match names.is_empty() {
        true => "nor has another".to_owned(),
        false => format!("these have: {}", names.join(", ")),
    };
    let name = &log.probe;
    Ok(Some(format!("no probe `{name}` has written into partition {partition}; {others}")))
}

/// The probes that have written into partitions, and where: reads all records up to where these end
/// now, or until one of such a name is found.
fn scan(
    client: &BaseConsumer<Watch>,
    order: &CarrierOrder,
    partitions: Range<i32>,
    is_enough: &dyn Fn(&str) -> bool,
    stop: &AtomicBool,
) -> Result<BTreeSet<(String, i32)>, KafkaFault> {
    let topic = &order.topic.topic;
    let failed = |e: KafkaError| KafkaFault::Broker(in_words(&e));
    let (mut ends, mut list) = (BTreeMap::new(), TopicPartitionList::new());
    for partition in partitions {
        let (low, high) = watermarks(client, topic, partition).map_err(failed)?;
        if low < high {
            ends.insert(partition, high);
            list.add_partition_offset(topic, partition, Offset::Beginning).map_err(failed)?;
        }
    }
    client.assign(&list).map_err(failed)?;
    let mut found = BTreeSet::new();
    while !ends.is_empty() && !stop.load(Ordering::Relaxed) {
        match client.poll(PATIENCE) {
            None => {}
            Some(Ok(record)) => {
                let name = record.key().and_then(|key| std::str::from_utf8(key).ok());
                let name = name.filter(|_| is_of_a_probe(&record));
                if let Some(name) = name.filter(|name| ProbeHead::name_fault(name).is_none()) {
                    found.insert((name.to_owned(), record.partition()));
                    if is_enough(name) {
                        break;
                    }
                }
                if found.len() > PROBES_MAX {
                    return Err(KafkaFault::Topic(format!(
                        "the topic has records of more than {PROBES_MAX} probes"
                    )));
                }
                let partition = record.partition();
                if ends.get(&partition).is_some_and(|end| record.offset() + 1 >= *end) {
                    ends.remove(&partition);
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => _ = ends.remove(&partition),
            Some(Err(e)) if is_lasting(&e) => return Err(failed(e)),
            Some(Err(_)) => {}
        }
    }
    Ok(found)
}

/// Where the log of a partition begins and ends. One whose broker has just come back has no leader
/// for a moment.
pub(crate) fn watermarks(
    client: &BaseConsumer<Watch>,
    topic: &str,
    partition: i32,
) -> Result<(i64, i64), KafkaError> {
    use rdkafka::error::RDKafkaErrorCode as Code;
    for _ in 1..LEADER_TRIES {
        let found = client.fetch_watermarks(topic, partition, START);
        let code = found.as_ref().err().and_then(KafkaError::rdkafka_error_code);
        match code {
            Some(Code::NotLeaderForPartition | Code::LeaderNotAvailable) => {
                // It has no partitions yet, and serves what has happened meanwhile.
                client.poll(LEADER_PAUSE);
            }
            _ => return found,
        }
    }
    client.fetch_watermarks(topic, partition, START)
}

/// Whether a record says that it is of a probe: others may write into the topic, too.
fn is_of_a_probe(record: &BorrowedMessage<'_>) -> bool {
    record.headers().is_some_and(|all| all.iter().any(|header| header.key == EPOCH_HEADER))
}

/// Refuses a probe that has written into several partitions.
fn one_partition_each(found: BTreeSet<(String, i32)>) -> Result<Vec<LogName>, KafkaFault> {
    let mut all: Vec<LogName> = Vec::new();
    for (probe, partition) in found {
        if let Some(other) = all.last().filter(|log| log.probe == probe) {
            let first = other.partition.unwrap_or(0);
            return Err(KafkaFault::Topic(format!(
                "probe {probe} has written into the partitions {first} and {partition}; name the \
                 one to read: --probes {probe}@{partition}"
            )));
        }
        all.push(LogName { probe, partition: Some(partition) });
    }
    Ok(all)
}

/// Whether an error of a consumer does not go by itself.
pub(crate) fn is_lasting(error: &KafkaError) -> bool {
    use rdkafka::error::RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::AutoOffsetReset
                | Code::Fatal
                | Code::GroupAuthorizationFailed
                | Code::OffsetOutOfRange
                | Code::TopicAuthorizationFailed
                | Code::UnknownPartition
                | Code::UnknownTopic
                | Code::UnknownTopicOrPartition
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_has_one_partition() {
        let found = |all: &[(&str, i32)]| {
            one_partition_each(all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect())
        };
        let names = found(&[("b", 1), ("a", 3), ("c", 1)]).expect("one each");
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a@3", "b@1", "c@1"]);
        let fault = found(&[("a", 3), ("a", 1)]).expect_err("two").to_string();
        assert!(fault.contains("partitions 1 and 3") && fault.contains("a@3"), "{fault}");
    }
}
