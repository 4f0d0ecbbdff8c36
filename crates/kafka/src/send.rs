//! Packets and rows, to records: what comes by a pipe goes to brokers as it is.

use crate::client::{Watch, check, config, in_words, partitions, plain};
use crate::limits::{DRAIN, FRAME_MAX, WAITING_KIB, WAITING_RECORDS};
use crate::order::CarrierOrder;
use crate::packets::{PacketHead, PacketKind, PacketRecordBuilder, packets_of, read_head};
use crate::worker::FromWorker;
use crate::{KafkaFault, PipeOfProbe, Say};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use std::io::{self, BufReader, Read};
use std::sync::atomic::Ordering;
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
/// As [`crate::produce`], without a disk. What could be delivered was delivered.
pub fn send_packets(
    order: &CarrierOrder,
    from: PipeOfProbe<'_>,
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    say: &Say,
) -> Result<u64, KafkaFault> {
    let meanwhile = "packets wait in memory, and then the capture waits";
    send(order, from, ready, (say, meanwhile), |sender, pipe, count| sender.packets(pipe, count))
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
    send(order, from, ready, (say, meanwhile), |sender, pipe, _| sender.rows(pipe))
}

/// The bytes of a pipe on their way to a topic.
type Pipe<'a> = BufReader<&'a mut dyn Read>;

/// Starts a client, and sends what `read` reads from the pipe for a topic of so many partitions.
fn send<'a>(
    order: &CarrierOrder,
    from: PipeOfProbe<'a>,
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    (say, meanwhile): (&Say, &'static str),
    read: impl FnOnce(&Sender<'_>, &mut Pipe<'a>, i32) -> Result<(), KafkaFault>,
) -> Result<u64, KafkaFault> {
    let PipeOfProbe { stream, has_gone } = from;
    let (sender, count) = Sender::start(order, has_gone, meanwhile, say)?;
    ready(count)?;
    let read = read(&sender, &mut BufReader::with_capacity(READ_BYTES, stream), count);
    sender.end(read)
}

/// Sends records in order, and each one once.
struct Sender<'a> {
    client: ThreadedProducer<Watch>,
    topic: &'a str,
    has_gone: &'a (dyn Fn() -> bool + Sync),
    say: &'a Say,
}

impl<'a> Sender<'a> {
    /// A sender, and the number of partitions of its topic.
    fn start(
        order: &'a CarrierOrder,
        has_gone: &'a (dyn Fn() -> bool + Sync),
        meanwhile: &'static str,
        say: &'a Say,
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
        Ok((Sender { client, topic: &order.topic.topic, has_gone, say }, count))
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
            self.send(BaseRecord::to(self.topic).partition(partition as i32).payload(&value))?;
        }
        let cut = lives.iter().enumerate().filter_map(|(n, life)| Some((n as i32, (*life)?)));
        for (partition, head) in cut {
            value.clear();
            let head = PacketHead { kind: PacketKind::Cut, reached: None, ..head };
            PacketRecordBuilder::default().finish(&head, &mut value);
            self.send(BaseRecord::to(self.topic).partition(partition).payload(&value))?;
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
        let watch = self.client.client().context();
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
            watch.wait_for_delivery(PATIENCE);
            let now = watch.delivered.load(Ordering::Relaxed);
            let moves = before.replace(now) != Some(now);
            idle = if moves || !(self.has_gone)() { Duration::ZERO } else { idle + PATIENCE };
            if idle >= DRAIN {
                return Err(self.undelivered());
            }
        }
    }

    fn undelivered(&self) -> KafkaFault {
        let records = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        let why = self.client.client().context().last_reason();
        KafkaFault::Undelivered { records, on_disk: 0, why }
    }

    /// Waits until all is delivered, as long as something is from time to time; how many were.
    fn end(&self, read: Result<(), KafkaFault>) -> Result<u64, KafkaFault> {
        let watch = self.client.client().context();
        let (mut idle, mut before) = (Duration::ZERO, None);
        while idle < DRAIN && check(&self.client).is_ok() && self.client.flush(STEP).is_err() {
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
        }
        let waiting = u64::try_from(self.client.in_flight_count()).unwrap_or(0);
        if let Some(why) = watch.refusal() {
            let undelivered = waiting.saturating_add(watch.failed.load(Ordering::Relaxed));
            return Err(KafkaFault::Refused { undelivered, why });
        }
        read?;
        match waiting {
            0 => Ok(watch.delivered.load(Ordering::Relaxed)),
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
