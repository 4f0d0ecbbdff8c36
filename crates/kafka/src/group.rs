//! A member of a group of hosts that share the partitions of a topic. It reads no record: it only
//! learns which partitions are for this host.

use crate::client::{Watch, config, in_words, partitions, plain};
use crate::limits::SESSION;
use crate::look::{consumer, is_lasting, serve};
use crate::order::{CarrierOrder, GroupEvent, GroupOrder, LogEnd, write_framed};
use crate::position::Position;
use crate::{KafkaFault, ParentOfGroup, Say};
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long is waited for an event at a time.
const PATIENCE: Duration = Duration::from_millis(100);

/// Events between two looks at whether all is over.
const LOOK_EVERY: u32 = 5;

/// How long a broker is asked for what a group has committed.
const ASK: Duration = Duration::from_secs(2);

/// Joins a group, and says which partitions are for this host, until `stop` is set.
///
/// # Errors
/// Where no broker answers at the start, or the topic or the group can't be used.
pub fn join(
    order: &CarrierOrder,
    task: &GroupOrder,
    parent: ParentOfGroup<'_>,
    stop: &AtomicBool,
    say: &Say,
) -> Result<(), KafkaFault> {
    let group = [("group.id", task.group.as_str())];
    let observer = consumer(order, &group, say)?;
    let count = partitions(observer.client(), order, &|| serve(&observer))?;
    (parent.ready)(count)?;
    let session = SESSION.as_millis().to_string();
    let heartbeat = (SESSION / 4).as_millis().to_string();
    let defaults = [
        ("group.id", task.group.clone()),
        ("session.timeout.ms", session),
        ("heartbeat.interval.ms", heartbeat),
        // So that partitions are found soon that are added.
        ("topic.metadata.refresh.interval.ms", "10000".to_owned()),
    ];
    let own = [
        ("group.id", task.group.as_str()),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("allow.auto.create.topics", "false"),
        // A host that joins takes some partitions, and the others go on.
        ("partition.assignment.strategy", "cooperative-sticky"),
        // Nothing is to be fetched before a partition is paused.
        ("queued.min.messages", "1"),
        ("queued.max.messages.kbytes", "64"),
    ];
    let watch = Watch::new(say, "partitions stay where they are");
    let events = Mutex::new(parent.events);
    let member = Member { watch, events, acks: Mutex::new(parent.acks) };
    let client = config(order, &defaults, &own).create_with_context(member);
    let client: BaseConsumer<Member<'_>> =
        client.map_err(|e: KafkaError| KafkaFault::Properties(plain(&e.to_string())))?;
    let failed = |e: KafkaError| KafkaFault::Broker(in_words(&e));
    client.subscribe(&[&order.topic.topic]).map_err(failed)?;
    let (mut events, mut is_over) = (0_u32, false);
    while !stop.load(Ordering::Relaxed) {
        match client.poll(PATIENCE) {
            Some(Err(e)) if is_lasting(&e) => return Err(KafkaFault::Group(in_words(&e))),
            // Its partitions are paused: what was on its way is read again.
            _ => events += 1,
        }
        if events.is_multiple_of(LOOK_EVERY) && task.until == LogEnd::OfRun && !is_over {
            serve(&observer);
            is_over = has_ended(&observer, &order.topic.topic);
            if is_over {
                client.context().tell(&GroupEvent::Over);
            }
        }
    }
    Ok(())
}

/// Whether the log of each partition ends with the end of a run, and all is processed. Partitions
/// may have been added since; one that never had a record has nothing to wait for.
fn has_ended(observer: &BaseConsumer<Watch>, topic: &str) -> bool {
    let Ok(found) = observer.fetch_metadata(Some(topic), ASK) else { return false };
    let of_topic = found.topics().iter().find(|of| of.name() == topic);
    let count = of_topic.map_or(0, |of| i32::try_from(of.partitions().len()).unwrap_or(i32::MAX));
    if count == 0 {
        return false;
    }
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, count - 1);
    let Ok(committed) = observer.committed_offsets(list, ASK) else { return false };
    let state = |partition: i32| {
        let (_, high) = observer.fetch_watermarks(topic, partition, ASK).ok()?;
        if high == 0 {
            return Some(LogState::Empty);
        }
        let element = committed.find_partition(topic, partition)?;
        let Offset::Offset(offset) = element.offset() else { return None };
        let position = Position::read(offset, element.metadata()).filter(|at| at.has_ended)?;
        (position.offset >= high).then_some(LogState::Ended)
    };
    let states: Option<Vec<LogState>> = (0..count).map(state).collect();
    states.is_some_and(|states| states.contains(&LogState::Ended))
}

/// A log that nothing is waited for of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogState {
    /// It never had a record.
    Empty,
    /// It ends with the end of a run, and all is processed.
    Ended,
}

/// The context that the client of a member calls.
struct Member<'a> {
    watch: Watch,
    events: Mutex<&'a mut (dyn Write + Send)>,
    acks: Mutex<Receiver<()>>,
}

impl Member<'_> {
    fn tell(&self, event: &GroupEvent) {
        let mut events = self.events.lock();
        // The process that reads it has gone: then this process ends, too.
        let _ = write_framed(event, &mut **events);
    }

    fn wait_for_ack(&self) {
        let acks = self.acks.lock();
        // Where nobody answers any more, nobody processes either.
        let _ = acks.recv();
    }
}

fn numbers(list: &TopicPartitionList) -> Vec<i32> {
    list.elements().iter().map(|element| element.partition()).collect()
}

impl ClientContext for Member<'_> {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.watch.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }
}

impl ConsumerContext for Member<'_> {
    fn pre_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance
            && list.count() > 0
        {
            self.tell(&GroupEvent::Revoked(numbers(list)));
            self.wait_for_ack();
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.watch.is_back();
        if let Rebalance::Assign(list) = rebalance {
            // The process that takes them reads them; this one would only fetch them in vain.
            let _ = consumer.pause(list);
            self.tell(&GroupEvent::Assigned(numbers(list)));
        }
    }
}
