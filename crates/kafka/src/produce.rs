//! The stream of a probe, to records.

use crate::client::{Watch, check, config, in_words, partition_of, partitions, plain};
use crate::limits::{DRAIN, HEAD_EVERY_MESSAGES, WAITING_KIB, WAITING_RECORDS};
use crate::order::{CarrierOrder, ProduceOrder};
use crate::record::{CUT, EPOCH_HEADER, parts};
use crate::spill::{Kept, OutHeader, OutRecord, Spill};
use crate::{KafkaFault, PipeOfProbe, Produced, Say};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use weir_cluster::{ProbeHead, ProbeReader, StreamItem};
use weir_engine::exchange::{Body, EndOf, Message, end_message};

/// How long is waited at a time for room among the records that wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long is waited at a time, at the end, for all that waits.
const STEP: Duration = Duration::from_secs(1);

/// What delivery in order, of all records and of each one once depends on.
const OWN: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // However long a broker is away.
    ("message.timeout.ms", "0"),
];

/// Produces the stream of a probe that comes from a pipe. `ready` is called once the topic is found
/// and before anything is read.
///
/// # Errors
/// Where the client can't be made, no broker answers at the start, the topic can't be used, a
/// broker refuses a record, or records are left when nothing was delivered for [`DRAIN`] after the
/// end of the pipe. What could be delivered was delivered.
pub fn produce(
    order: &CarrierOrder,
    task: &ProduceOrder,
    from: PipeOfProbe<'_>,
    ready: &mut dyn FnMut() -> io::Result<()>,
    say: &Say,
) -> Result<Produced, KafkaFault> {
    let defaults = [
        ("queue.buffering.max.kbytes", WAITING_KIB.to_string()),
        ("queue.buffering.max.messages", WAITING_RECORDS.to_string()),
        ("compression.type", "lz4".to_owned()),
    ];
    let meanwhile = match task.spill {
        None => "records wait in memory, and then the probe waits",
        Some(_) => "records wait in memory, then on disk, and then the probe waits",
    };
    let watch = Watch::new(say, meanwhile);
    let client = config(order, &defaults, OWN).create_with_context(watch);
    let client: ThreadedProducer<Watch> =
        client.map_err(|e| KafkaFault::Properties(plain(&e.to_string())))?;
    let count = partitions(client.client(), order, &|| client.poll(Duration::ZERO))?;
    let partition = partition_of(&task.log, count)?;
    let spill = match &task.spill {
        None => None,
        Some(spill) => Some(Spill::of(spill, &order.topic, &task.log).map_err(KafkaFault::Spill)?),
    };
    if let Some(waiting) = spill.as_ref().map(Spill::bytes).filter(|bytes| *bytes > 0) {
        say(&format!("{waiting} bytes wait on disk that an earlier run has left"));
    }
    ready()?;
    let records = Records {
        client,
        order,
        task,
        partition,
        route: Mutex::new(spill),
        disk_failed: AtomicBool::new(false),
        has_gone: from.has_gone,
        say,
    };
    records.carry(from.stream)
}

/// The records of a probe.
struct Records<'a> {
    client: ThreadedProducer<Watch>,
    order: &'a CarrierOrder,
    task: &'a ProduceOrder,
    partition: i32,
    /// What waits on disk, if anything may. Who holds it may hand records to the client, so that
    /// they stay in order.
    route: Mutex<Option<Spill>>,
    /// Whether what waits on disk can't be sent any more.
    disk_failed: AtomicBool,
    has_gone: &'a (dyn Fn() -> bool + Sync),
    say: &'a Say,
}

impl Records<'_> {
    /// Reads the stream to its end, and waits until all is delivered.
    fn carry(self, from: &mut dyn Read) -> Result<Produced, KafkaFault> {
        let is_over = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            let from_disk = scope.spawn(|| {
                let sent = self.send_from_disk(&is_over);
                self.disk_failed.store(sent.is_err(), Ordering::Relaxed);
                sent
            });
            let read = self.all(from);
            if !matches!(read, Err(KafkaFault::Undelivered { .. })) {
                self.drain();
            }
            is_over.store(true, Ordering::Relaxed);
            let sent = from_disk.join().unwrap_or_else(|_| Err(KafkaFault::panicked()));
            sent.and(read)
        });
        let watch = self.client.client().context();
        let waiting = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let undelivered = waiting.saturating_add(watch.failed.load(Ordering::Relaxed));
        if let Some(why) = watch.refusal() {
            return Err(KafkaFault::Refused { undelivered, why });
        }
        read?;
        let on_disk = self.route().as_ref().map_or(0, Spill::bytes);
        if waiting > 0 || on_disk > 0 {
            let why = watch.last_reason();
            return Err(KafkaFault::Undelivered { records: waiting, on_disk, why });
        }
        let torn = self.route().as_ref().map_or(0, Spill::torn);
        if torn > 0 {
            return Err(KafkaFault::Torn(torn));
        }
        let delivered = watch.delivered.load(Ordering::Relaxed);
        Ok(Produced { partition: self.partition, delivered })
    }

    fn route(&self) -> MutexGuard<'_, Option<Spill>> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is delivered, as long as something is from time to time.
    fn drain(&self) {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        while idle < DRAIN
            && check(&self.client).is_ok()
            && !self.disk_failed.load(Ordering::Relaxed)
        {
            let done = self.client.flush(STEP).is_ok();
            if done && self.route().as_ref().is_none_or(Spill::is_empty) {
                return;
            }
            let now = watch.delivered.load(Ordering::Relaxed);
            match before.replace(now) == Some(now) {
                false => idle = Duration::ZERO,
                true => {
                    if idle.is_zero() {
                        let n = self.client.in_flight_count();
                        (self.say)(&format!(
                            "{n} records wait; they are given up {} s after the last delivery",
                            DRAIN.as_secs()
                        ));
                    }
                    idle += STEP;
                    if done {
                        watch.wait_for_delivery(STEP);
                    }
                }
            }
        }
    }

    /// Reads the stream to its end.
    fn all(&self, from: &mut dyn Read) -> Result<(), KafkaFault> {
        // Where there is no head, the run ended before it began to publish, and says why.
        let Ok((mut reader, mut head)) = ProbeReader::new(from) else { return Ok(()) };
        self.begin(&head)?;
        let mut message = Vec::new();
        let (mut next, mut since, mut has_ended) = (0, 0, false);
        loop {
            match reader.next(&mut message) {
                Ok(StreamItem::Message) => {
                    if let Ok(read) = Message::read(&message) {
                        next = read.number.saturating_add(1);
                        has_ended = matches!(read.body, Body::End(_));
                    }
                    if since >= HEAD_EVERY_MESSAGES {
                        since = 0;
                        self.begin(&head)?;
                    }
                    since += 1;
                    for (part, bytes) in parts(&message) {
                        let header = part.map(|part| (OutHeader::Part, part));
                        self.send(OutRecord { epoch: head.epoch, header, value: bytes.to_vec() })?;
                    }
                }
                Ok(StreamItem::Head(other)) => {
                    head = other;
                    (next, since, has_ended) = (0, 0, false);
                    self.begin(&head)?;
                }
                Ok(StreamItem::Pause) => {}
                Ok(StreamItem::End) | Err(_) if !has_ended => return self.cut(&head, next),
                Ok(StreamItem::End) => return Ok(()),
                Err(fault) => return Err(KafkaFault::Stream(fault.to_string())),
            }
        }
    }

    /// Begins a life, or says again which it is.
    fn begin(&self, head: &ProbeHead) -> Result<(), KafkaFault> {
        self.send(OutRecord { epoch: head.epoch, header: None, value: head.bytes()? })
    }

    /// Ends a life whose run was killed: readers need not wait for it.
    fn cut(&self, head: &ProbeHead, number: u64) -> Result<(), KafkaFault> {
        let print = u128::from_str_radix(&head.fingerprint, 16).unwrap_or(0);
        let value = end_message(print, head.id(), number, EndOf::Source);
        let header = Some((OutHeader::End, CUT.to_owned()));
        self.send(OutRecord { epoch: head.epoch, header, value })
    }

    /// Hands a record to the client, or keeps it on disk, as soon as there is room. Once the probe
    /// has gone, it is given up when nothing was delivered for [`DRAIN`].
    fn send(&self, record: OutRecord) -> Result<(), KafkaFault> {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            if self.disk_failed.load(Ordering::Relaxed) {
                let why = io::Error::other("what waits there can't be read");
                return Err(KafkaFault::Spill(why));
            }
            let mut route = self.route();
            if route.as_ref().is_none_or(Spill::is_empty) && self.offer(&record)? {
                watch.has_room();
                return Ok(());
            }
            if let Some(spill) = route.as_mut() {
                match spill.push(&record).map_err(KafkaFault::Spill)? {
                    Kept::Kept => return Ok(()),
                    Kept::Full(why) => watch.is_full(why.map(|e| e.to_string())),
                }
            }
            drop(route);
            watch.wait_for_delivery(PATIENCE);
            let now = watch.delivered.load(Ordering::Relaxed);
            let moves = before.replace(now) != Some(now);
            idle = if moves || !(self.has_gone)() { Duration::ZERO } else { idle + PATIENCE };
            if idle >= DRAIN {
                let records = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
                let on_disk = self.route().as_ref().map_or(0, Spill::bytes);
                return Err(KafkaFault::Undelivered { records, on_disk, why: watch.last_reason() });
            }
        }
    }

    /// Hands over what waits on disk, whenever the client has room.
    fn send_from_disk(&self, is_over: &AtomicBool) -> Result<(), KafkaFault> {
        if self.task.spill.is_none() {
            return Ok(());
        }
        while !is_over.load(Ordering::Relaxed) {
            check(&self.client)?;
            let mut route = self.route();
            let Some(spill) = route.as_mut() else { return Ok(()) };
            let is_sent = match spill.front().map_err(KafkaFault::Spill)? {
                Some(record) => self.offer(record)?,
                None => false,
            };
            if is_sent {
                spill.pop();
            }
            drop(route);
            if !is_sent {
                self.client.client().context().wait_for_delivery(PATIENCE);
            }
        }
        Ok(())
    }

    /// Hands a record to the client; whether it has room.
    fn offer(&self, out: &OutRecord) -> Result<bool, KafkaFault> {
        let epoch = out.epoch.to_string();
        let mut headers =
            OwnedHeaders::new().insert(Header { key: EPOCH_HEADER, value: Some(&epoch) });
        if let Some((header, value)) = &out.header {
            headers = headers.insert(Header { key: header.name(), value: Some(value) });
        }
        let record = BaseRecord::to(&self.order.topic.topic).key(&self.task.log.probe);
        let record = record.payload(&out.value).partition(self.partition).headers(headers);
        match self.client.send(record) {
            Ok(()) => Ok(true),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => Ok(false),
            Err((error, _)) => Err(KafkaFault::Refused { undelivered: 1, why: in_words(&error) }),
        }
    }
}
