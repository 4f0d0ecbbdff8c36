//! The common parts of producers and consumers: properties, the reports of the client, and the
//! partitions of a topic.

use crate::limits::START;
use crate::order::CarrierOrder;
use crate::{KafkaFault, Say};
use parking_lot::{Condvar, Mutex};
use rdkafka::ClientConfig;
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedMessage;
use rdkafka::producer::{DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weir_base::harmless::is_harmless;

/// Times that a topic is asked for which has no leader yet, since it was made just now.
pub(crate) const LEADER_TRIES: u32 = 20;

/// How long is waited between these.
pub(crate) const LEADER_PAUSE: Duration = Duration::from_millis(250);

/// The properties of a client: those of the order, and `own`, which the order can't change.
pub(crate) fn config(
    order: &CarrierOrder,
    defaults: &[(&str, String)],
    own: &[(&str, &str)],
) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("client.id", "weir").set("log.connection.close", "false");
    // A broker that is back is found soon.
    config.set("reconnect.backoff.max.ms", "2000");
    for (name, value) in defaults {
        config.set(*name, value);
    }
    for (name, value) in order.properties.iter() {
        config.set(name, value);
    }
    for (name, value) in own {
        config.set(*name, *value);
    }
    config.set("bootstrap.servers", order.topic.brokers.join(","));
    config.set_log_level(RDKafkaLogLevel::Warning);
    config
}

/// The reports of the client, from its threads.
pub(crate) struct Watch {
    say: Say,
    /// The message where no broker answers.
    meanwhile: &'static str,
    /// The last error that was heard of brokers.
    last: Mutex<Option<String>>,
    /// The first record that a broker refused, and why.
    refused: Mutex<Option<String>>,
    /// Woken with each delivery.
    delivery: Condvar,
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Records that came back unsent, with their numbers.
    returned: Mutex<Vec<(usize, OwnedMessage)>>,
    /// Bytes of the records that wait.
    pub(crate) waiting_bytes: AtomicU64,
    is_away: AtomicBool,
    is_full: AtomicBool,
    /// Whether a broker has answered once: until then the caller says what is wrong.
    has_begun: AtomicBool,
}

/// Whether brokers take what a producer sends: none has refused a record, and the client goes on.
///
/// # Errors
/// [`KafkaFault::Refused`], which says why.
pub(crate) fn check(client: &ThreadedProducer<Watch>) -> Result<(), KafkaFault> {
    let client = client.client();
    let fatal = || client.fatal_error().map(|(_, why)| plain(&why));
    match client.context().refusal().or_else(fatal) {
        None => Ok(()),
        Some(why) => Err(KafkaFault::Refused { undelivered: 0, on_disk: 0, why }),
    }
}

impl Watch {
    pub(crate) fn new(say: &Say, meanwhile: &'static str) -> Watch {
        Watch {
            say: Say::clone(say),
            meanwhile,
            last: Mutex::default(),
            refused: Mutex::default(),
            delivery: Condvar::new(),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            returned: Mutex::default(),
            waiting_bytes: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
        }
    }

    /// The last error that was heard of brokers, or the words of `error`.
    pub(crate) fn reason(&self, error: &KafkaError) -> String {
        let heard = self.last.lock().clone();
        heard.unwrap_or_else(|| in_words(error))
    }

    /// The same, where nothing is known of an error.
    pub(crate) fn last_reason(&self) -> String {
        self.last.lock().clone().unwrap_or_else(|| "no broker has confirmed them".to_owned())
    }

    /// Why a broker refused a record, if one did.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refused.lock().clone()
    }

    /// The records that came back unsent, in the order in which they were handed over.
    pub(crate) fn take_returned(&self) -> Vec<OwnedMessage> {
        let mut all = std::mem::take(&mut *self.returned.lock());
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, message)| message).collect()
    }

    /// Waits for a delivery, at most so long.
    pub(crate) fn wait_for_delivery(&self, patience: Duration) {
        // The caller looks for the reason of the wake-up.
        self.delivery.wait_for(&mut self.refused.lock(), patience);
    }

    /// Nothing waits on disk any more.
    pub(crate) fn has_room(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// There is no room left for records that wait; says so once until none wait on disk.
    pub(crate) fn is_full(&self, why: Option<String>) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            (self.say)(&format!(
                "no room is left on disk for records that wait{why}: the run waits"
            ));
        }
    }

    /// Something came from a broker.
    pub(crate) fn is_back(&self) {
        if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::Relaxed) {
            (self.say)("a broker answers again");
        }
    }
}

/// A text of the client or of a broker, on one line.
pub(crate) fn plain(text: &str) -> String {
    let short: String = text.chars().take(500).collect();
    short.chars().map(|c| if is_harmless(c) { c } else { ' ' }).collect()
}

/// An error in the words of Kafka.
pub(crate) fn in_words(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(code) => code_in_words(code),
        None => plain(&error.to_string()),
    }
}

/// The words of an error code, without its name in the source of the client.
pub(crate) fn code_in_words(code: RDKafkaErrorCode) -> String {
    let text = plain(&code.to_string());
    let words = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    words.map_or(text.clone(), str::to_owned)
}

impl ClientContext for Watch {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                (self.say)(&plain(message));
            }
            // Most come as errors, too, but not at the start of a producer.
            RDKafkaLogLevel::Error => {
                let of_thread = message.strip_prefix("[thrd:").and_then(|m| m.split_once("]: "));
                *self.last.lock() = Some(plain(of_thread.map_or(message, |(_, rest)| rest)));
            }
            // All other lines of its log are for those who develop the client.
            _ => {}
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let has_begun = self.has_begun.load(Ordering::Relaxed);
                if has_begun && !self.is_away.swap(true, Ordering::Relaxed) {
                    let (why, meanwhile) = (self.reason(&error), self.meanwhile);
                    (self.say)(&format!("no broker answers: {why}; {meanwhile}"));
                }
            }
            _ => *self.last.lock() = Some(plain(reason)),
        }
    }
}

impl ProducerContext for Watch {
    /// The number of a record, from 1 on; 0 of one that is not kept.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let (Ok(message) | Err((_, message))) = result;
        if number > 0 {
            let bytes = record_bytes(message.payload_len());
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        match result {
            Ok(_) => {
                self.delivered.fetch_add(1, Ordering::Relaxed);
                self.is_back();
            }
            // Messages on their way may have arrived; whoever reads them takes each one once.
            Err((error, message)) if number > 0 && is_unsent(error) => {
                self.returned.lock().push((number, message.detach()));
            }
            Err((error, _)) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                self.refused.lock().get_or_insert_with(|| in_words(error));
            }
        }
        self.delivery.notify_all();
    }
}

/// Whether a record was taken from the client before a broker has refused or confirmed it.
fn is_unsent(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{PurgeInflight, PurgeQueue};
    error.rdkafka_error_code().is_some_and(|code| matches!(code, PurgeInflight | PurgeQueue))
}

/// Bytes of a record with a value of so many, and what is said of it, on disk.
pub(crate) fn record_bytes(value: usize) -> u64 {
    value as u64 + 64
}

impl ConsumerContext for Watch {}

/// The number of partitions of the topic. `serve` has the client report what has happened.
///
/// # Errors
/// Where no broker answers, or there is no such topic.
pub(crate) fn partitions(
    client: &Client<Watch>,
    order: &CarrierOrder,
    serve: &dyn Fn(),
) -> Result<i32, KafkaFault> {
    let (watch, topic) = (client.context(), &order.topic.topic);
    for _ in 0..LEADER_TRIES {
        let found = client.fetch_metadata(Some(topic), START);
        serve();
        let found = found.map_err(|e| KafkaFault::Broker(watch.reason(&e)))?;
        let Some(of_topic) = found.topics().iter().find(|of| of.name() == topic) else {
            return Err(KafkaFault::Topic("the broker does not know of the topic".to_owned()));
        };
        match of_topic.error().map(RDKafkaErrorCode::from) {
            None if !of_topic.partitions().is_empty() => {
                watch.has_begun.store(true, Ordering::Relaxed);
                return Ok(i32::try_from(of_topic.partitions().len()).unwrap_or(i32::MAX));
            }
            None | Some(RDKafkaErrorCode::LeaderNotAvailable) => {}
            Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
                return Err(KafkaFault::Topic(format!(
                    "there is no topic `{topic}` (make it: kafka-topics.sh --bootstrap-server {} \
                     --create --topic {topic} --partitions 8)",
                    order.topic.brokers[0]
                )));
            }
            Some(code) => return Err(KafkaFault::Topic(code_in_words(code))),
        }
        watch.wait_for_delivery(LEADER_PAUSE);
    }
    Err(KafkaFault::Topic(format!("topic `{topic}` has no leader")))
}

/// The partition of a log: the one that was named, or that of its name.
///
/// # Errors
/// If there is none of that number.
pub(crate) fn partition_of(log: &crate::order::LogName, count: i32) -> Result<i32, KafkaFault> {
    match log.partition {
        None => Ok(crate::partition::partition_of(log.probe.as_bytes(), count)),
        Some(partition @ 0..) if partition < count => Ok(partition),
        Some(partition) => Err(KafkaFault::Partition { partition, count }),
    }
}
