//! Packets and rows, to records: what comes by a pipe goes to brokers as it is.

use crate::client::{Watch, check, config, in_words, partitions, plain};
use crate::limits::{DRAIN, FRAME_MAX, WAITING_KIB, WAITING_RECORDS};
use crate::order::{CarrierOrder, PacketsOrder};
use crate::packets::{PacketHead, PacketKind, PacketRecordBuilder, packets_of, read_head};
use crate::spill::{Kept, OutRecord, Spill};
use crate::worker::FromWorker;
use crate::{KafkaFault, PipeOfProbe, Say};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long is waited at a time for room among the records that wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long is waited at a time, at the end, for all that waits.
const STEP: Duration = Duration::from_secs(1);

/// Bytes that are read from the pipe at once.
const READ_BYTES: usize = 1 << 20;

/// What delivery in order, of all records and of each one once depends on.
const OWN: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // However long a broker is away.
    ("message.timeout.ms", "0"),
    // The partition of a key is that which Kafka's own clients choose.
    ("partitioner", "murmur2_random"),
];

/// Produces records of packets from a pipe, each after its partition and its length (u32 each,
/// little-endian). `ready` gets the number of partitions before anything is read. If the pipe ends
/// without the end of the run, each partition is told that it was cut.
///
/// # Errors
/// As [`crate::produce`]. What could be delivered was delivered.
pub fn send_packets(
    order: &CarrierOrder,
    task: &PacketsOrder,
    from: PipeOfProbe<'_>,
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    say: &Say,
) -> Result<u64, KafkaFault> {
    let meanwhile = match task.spill {
        None => "packets wait in memory, and then the capture waits",
        Some(_) => "packets wait in memory, then on disk, and then the capture waits",
    };
    let spill = match &task.spill {
        None => None,
        Some(spill) => Some(Spill::of_packets(spill, &order.topic).map_err(KafkaFault::Spill)?),
    };
    if let Some(waiting) = spill.as_ref().map(Spill::bytes).filter(|bytes| *bytes > 0) {
        say(&format!("{waiting} bytes wait on disk that an earlier run has left"));
    }
    let telling = Telling { say, meanwhile };
    send(order, (from, spill), ready, telling, |sender, pipe, count| sender.packets(pipe, count))
}

/// Produces rows from a pipe, as [`FromWorker::write_row`] writes them.
///
/// # Errors
/// As [`crate::produce`], without a disk. What could be delivered was delivered.
pub fn send_rows(
    order: &CarrierOrder,
    from: PipeOfProbe<'_>,
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    say: &Say,
) -> Result<u64, KafkaFault> {
    let meanwhile = "rows wait in memory, and then the run waits";
    let telling = Telling { say, meanwhile };
    send(order, (from, None), ready, telling, |sender, pipe, _| sender.rows(pipe))
}

/// The bytes of a pipe on their way to a topic.
type Pipe<'a> = BufReader<&'a mut dyn Read>;

/// How a person hears of what happens, and what becomes of records while no broker answers.
#[derive(Clone, Copy)]
struct Telling<'a> {
    say: &'a Say,
    meanwhile: &'static str,
}

/// Starts a client, and sends what `read` reads from the pipe for a topic of so many partitions,
/// after what waits on disk.
fn send<'a>(
    order: &CarrierOrder,
    (from, spill): (PipeOfProbe<'a>, Option<Spill>),
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    telling: Telling<'_>,
    read: impl FnOnce(&Sender<'_>, &mut Pipe<'a>, i32) -> Result<(), KafkaFault>,
) -> Result<u64, KafkaFault> {
    let PipeOfProbe { stream, has_gone } = from;
    let (sender, count) = Sender::start(order, has_gone, spill, telling)?;
    ready(count)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let from_disk = scope.spawn(|| {
            let sent = sender.send_from_disk(&is_over);
            sender.disk_failed.store(sent.is_err(), Ordering::Relaxed);
            sent
        });
        let read = read(&sender, &mut BufReader::with_capacity(READ_BYTES, stream), count);
        if !matches!(read, Err(KafkaFault::Undelivered { .. })) {
            sender.drain();
        }
        is_over.store(true, Ordering::Relaxed);
        let sent = from_disk.join().unwrap_or_else(|_| Err(KafkaFault::panicked()));
        sender.end(sent.and(read))
    })
}

/// Sends records in order, and each one once.
struct Sender<'a> {
    client: ThreadedProducer<Watch>,
    topic: &'a str,
    has_gone: &'a (dyn Fn() -> bool + Sync),
    /// What waits on disk, if anything may. Who holds it may hand records to the client, so that
    /// they stay in order.
    route: Mutex<Option<Spill>>,
    /// Whether what waits on disk can't be sent any more.
    disk_failed: AtomicBool,
    say: &'a Say,
}

impl<'a> Sender<'a> {
    /// A sender, and the number of partitions of its topic.
    fn start(
        order: &'a CarrierOrder,
        has_gone: &'a (dyn Fn() -> bool + Sync),
        spill: Option<Spill>,
        Telling { say, meanwhile }: Telling<'a>,
    ) -> Result<(Sender<'a>, i32), KafkaFault> {
        let defaults = [
            ("queue.buffering.max.kbytes", WAITING_KIB.to_string()),
            ("queue.buffering.max.messages", WAITING_RECORDS.to_string()),
            ("compression.type", "lz4".to_owned()),
        ];
        let watch = Watch::new(say, meanwhile);
        let client = config(order, &defaults, OWN).create_with_context(watch);
        let client: ThreadedProducer<Watch> =
            client.map_err(|e| KafkaFault::Properties(plain(&e.to_string())))?;
        let count = partitions(client.client(), order, &|| client.poll(Duration::ZERO))?;
        let topic = &order.topic.topic;
        let (route, disk_failed) = (Mutex::new(spill), AtomicBool::new(false));
        Ok((Sender { client, topic, has_gone, route, disk_failed, say }, count))
    }

    /// Reads records of packets to the end of the pipe.
    fn packets(&self, pipe: &mut impl Read, count: i32) -> Result<(), KafkaFault> {
        let mut lives: Vec<Option<PacketHead>> = vec![None; usize::try_from(count).unwrap_or(0)];
        let (mut front, mut value) = ([0; 8], Vec::new());
        while read_whole(pipe, &mut front)? {
            let word = |at: usize| {
                u32::from_le_bytes([front[at], front[at + 1], front[at + 2], front[at + 3]])
            };
            let (partition, len) = (word(0) as usize, word(4) as usize);
            let Some(life) = lives.get_mut(partition).filter(|_| len <= FRAME_MAX) else {
                return Err(KafkaFault::Stream("the pipe of packets is damaged".to_owned()));
            };
            value.resize(len, 0);
            if !read_whole(pipe, &mut value)? {
                break;
            }
            let head = read_head(&value).map_err(|e| KafkaFault::Stream(e.to_string()))?;
            let before = head.before + u64::from(packets_of(&value));
            *life = (head.kind == PacketKind::Packets).then_some(PacketHead {
                number: head.number + 1,
                before,
                ..head
            });
            self.send_packets(head.epoch, partition as u32, &value)?;
        }
        let cut = lives.iter().enumerate().filter_map(|(n, life)| Some((n as u32, (*life)?)));
        for (partition, head) in cut {
            value.clear();
            let head = PacketHead { kind: PacketKind::Cut, reached: None, ..head };
            PacketRecordBuilder::default().finish(&head, &mut value);
            self.send_packets(head.epoch, partition, &value)?;
        }
        Ok(())
    }

    fn route(&self) -> MutexGuard<'_, Option<Spill>> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a record of packets to the client, or keeps it on disk, as soon as there is room. Once
    /// the other end of the pipe has gone, it is given up when nothing was delivered for [`DRAIN`].
    fn send_packets(&self, epoch: u64, partition: u32, value: &[u8]) -> Result<(), KafkaFault> {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            if self.disk_failed.load(Ordering::Relaxed) {
                let why = io::Error::other("what waits there can't be read");
                return Err(KafkaFault::Spill(why));
            }
            let mut route = self.route();
            if route.as_ref().is_none_or(Spill::is_empty) && self.offer(partition, value)? {
                watch.has_room();
                return Ok(());
            }
            if let Some(spill) = route.as_mut() {
                let value = [&partition.to_le_bytes()[..], value].concat();
                let record = OutRecord { epoch, header: None, value };
                match spill.push(&record).map_err(KafkaFault::Spill)? {
                    Kept::Kept => return Ok(()),
                    Kept::Full(why) => watch.is_full(why.map(|e| e.to_string())),
                }
            }
            drop(route);
            self.wait(&mut idle, &mut before)?;
        }
    }

    /// Waits a while for room; how long none came, and how much was delivered then.
    fn wait(&self, idle: &mut Duration, before: &mut Option<u64>) -> Result<(), KafkaFault> {
        let watch = self.client.client().context();
        watch.wait_for_delivery(PATIENCE);
        let now = watch.delivered.load(Ordering::Relaxed);
        let moves = before.replace(now) != Some(now);
        *idle = if moves || !(self.has_gone)() { Duration::ZERO } else { *idle + PATIENCE };
        match *idle >= DRAIN {
            true => Err(self.undelivered()),
            false => Ok(()),
        }
    }

    /// Hands a record of packets to the client; whether it has room.
    fn offer(&self, partition: u32, value: &[u8]) -> Result<bool, KafkaFault> {
        let record: BaseRecord<'_, (), [u8]> = BaseRecord::to(self.topic).payload(value);
        match self.client.send(record.partition(partition.cast_signed())) {
            Ok(()) => Ok(true),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => Ok(false),
            Err((error, _)) => Err(KafkaFault::Refused { undelivered: 1, why: in_words(&error) }),
        }
    }

    /// Hands over what waits on disk, whenever the client has room.
    fn send_from_disk(&self, is_over: &AtomicBool) -> Result<(), KafkaFault> {
        while !is_over.load(Ordering::Relaxed) {
            check(&self.client)?;
            let mut route = self.route();
            let Some(spill) = route.as_mut() else { return Ok(()) };
            let is_sent = match spill.front().map_err(KafkaFault::Spill)? {
                Some(record) => match record.value.split_first_chunk() {
                    Some((partition, value)) => {
                        self.offer(u32::from_le_bytes(*partition), value)?
                    }
                    None => true,
                },
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

    /// Reads rows to the end of the pipe.
    fn rows(&self, pipe: &mut impl Read) -> Result<(), KafkaFault> {
        loop {
            let (key, value) = match FromWorker::read(pipe) {
                Ok(Some(FromWorker::Row { key, value })) => (key, value),
                // A row that is not whole was never out.
                Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e.into()),
                Ok(_) | Err(_) => return Ok(()),
            };
            let record = BaseRecord::to(self.topic).payload(&value);
            match &key {
                Some(key) => self.send(record.key(key))?,
                None => self.send(record)?,
            }
        }
    }

    /// Hands a record to the client, as soon as there is room. Once the other end of the pipe has
    /// gone, it is given up when nothing was delivered for [`DRAIN`].
    fn send(&self, mut record: BaseRecord<'_, Vec<u8>, Vec<u8>>) -> Result<(), KafkaFault> {
        let (mut idle, mut before) = (Duration::ZERO, None);
        loop {
            check(&self.client)?;
            record = match self.client.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => back,
                Err((error, _)) => {
                    return Err(KafkaFault::Refused { undelivered: 1, why: in_words(&error) });
                }
            };
            self.wait(&mut idle, &mut before)?;
        }
    }

    fn undelivered(&self) -> KafkaFault {
        let records = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let why = self.client.client().context().last_reason();
        let on_disk = self.route().as_ref().map_or(0, Spill::bytes);
        KafkaFault::Undelivered { records, on_disk, why }
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
            if before.replace(now) != Some(now) {
                idle = Duration::ZERO;
                continue;
            }
            if idle.is_zero() {
                (self.say)(&format!(
                    "{} records wait; they are given up {} s after the last delivery",
                    self.client.in_flight_count(),
                    DRAIN.as_secs()
                ));
            }
            idle += STEP;
            if done {
                watch.wait_for_delivery(STEP);
            }
        }
    }

    /// How many records were delivered, if all were.
    fn end(&self, read: Result<(), KafkaFault>) -> Result<u64, KafkaFault> {
        let watch = self.client.client().context();
        let waiting = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        if let Some(why) = watch.refusal() {
            let undelivered = waiting.saturating_add(watch.failed.load(Ordering::Relaxed));
            return Err(KafkaFault::Refused { undelivered, why });
        }
        read?;
        let (is_empty, torn) =
            self.route().as_ref().map_or((true, 0), |spill| (spill.is_empty(), spill.torn()));
        match (waiting, is_empty, torn) {
            (0, true, 0) => Ok(watch.delivered.load(Ordering::Relaxed)),
            (0, true, torn) => Err(KafkaFault::Torn(torn)),
            _ => Err(self.undelivered()),
        }
    }
}

/// Fills `bytes`; `false` if the pipe ends before, as when its writer was killed.
fn read_whole(pipe: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match pipe.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}
