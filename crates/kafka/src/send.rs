//! Packets and rows, to records: what comes by a pipe goes to brokers as it is.

use crate::limits::FRAME_MAX;
use crate::order::{CarrierOrder, PacketsOrder};
use crate::outbound::{Numbered, OnDisk, Outbound, Telling};
use crate::packets::{PacketHead, PacketKind, PacketRecordBuilder, packets_of, read_head};
use crate::spill::{self, OutRecord};
use crate::worker::FromWorker;
use crate::{KafkaFault, PipeOfProbe, Say};
use rdkafka::message::{Message as _, OwnedMessage};
use std::io::{self, BufReader, Read};
use weir_base::spool::Spool;

/// Bytes that are read from the pipe at once; longer records are read where they are wanted.
const READ_BYTES: usize = 16 << 10;

/// Properties that delivery in order, of all records and of each one once depends on.
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
/// As [`crate::produce`]. All records that could be delivered were delivered.
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
        Some(spill) => Some(spill::of_packets(spill, &order.topic).map_err(KafkaFault::Spill)?),
    };
    let telling = Telling { say, meanwhile };
    send(order, (from, spill), ready, telling, |sender, pipe, count| sender.packets(pipe, count))
}

/// Produces rows from a pipe, as [`FromWorker::write_row`] writes them.
///
/// # Errors
/// As [`crate::produce`], without a disk. All rows that could be delivered were delivered.
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

/// Starts a client, and sends what `read` reads from the pipe for a topic of so many partitions,
/// after what waits on disk.
fn send<'a>(
    order: &CarrierOrder,
    (from, spill): (PipeOfProbe<'a>, Option<Spool>),
    ready: &mut dyn FnMut(i32) -> io::Result<()>,
    telling: Telling<'_>,
    read: impl FnOnce(&Sender<'_>, &mut Pipe<'a>, i32) -> Result<(), KafkaFault>,
) -> Result<u64, KafkaFault> {
    let PipeOfProbe { stream, has_gone } = from;
    let (out, count) = Outbound::start(order, OWN, has_gone, telling)?;
    let sender = Sender { out: out.over(spill), topic: &order.topic.topic };
    ready(count)?;
    let disk = OnDisk { offer: &|kept| sender.offer_kept(kept), restore };
    sender
        .out
        .carry(&disk, || read(&sender, &mut BufReader::with_capacity(READ_BYTES, stream), count))
}

/// A record of packets as it waits on disk: its partition stands before it.
fn kept(epoch: u64, partition: u32, value: &[u8]) -> OutRecord {
    let value = [&partition.to_le_bytes()[..], value].concat();
    OutRecord { epoch, header: None, value }
}

/// The same of one that the client has given back.
fn restore(sent: &OwnedMessage) -> Option<OutRecord> {
    let value = sent.payload()?;
    let epoch = read_head(value).ok()?.epoch;
    Some(kept(epoch, u32::try_from(sent.partition()).ok()?, value))
}

/// The way of records and rows to a topic.
struct Sender<'a> {
    out: Outbound<'a>,
    topic: &'a str,
}

impl Sender<'_> {
    /// Reads records of packets to the end of the pipe.
    fn packets(&self, pipe: &mut impl Read, count: i32) -> Result<(), KafkaFault> {
        let mut lives: Vec<Option<PacketHead>> = vec![None; usize::try_from(count).unwrap_or(0)];
        let (mut front, mut value, mut has_ended) = ([0; 8], Vec::new(), false);
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
            has_ended |= head.kind == PacketKind::End;
            let before = head.before + u64::from(packets_of(&value));
            *life = (head.kind == PacketKind::Packets).then_some(PacketHead {
                number: head.number + 1,
                before,
                ..head
            });
            self.send_packets(head.epoch, partition as u32, &value)?;
        }
        if !has_ended {
            self.out.is_cut();
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

    /// Hands a record of packets to the client, or keeps it on disk, as soon as there is room.
    fn send_packets(&self, epoch: u64, partition: u32, value: &[u8]) -> Result<(), KafkaFault> {
        self.out.send_or_keep(
            || self.offer(partition, value),
            |spool| spool.push(&kept(epoch, partition, value).to_bytes()),
        )
    }

    /// Hands a record of packets to the client; whether it has room.
    fn offer(&self, partition: u32, value: &[u8]) -> Result<bool, KafkaFault> {
        let record: Numbered<'_, (), [u8]> = self.out.record(self.topic).payload(value);
        Ok(self.out.offer(record.partition(partition.cast_signed()))?.is_none())
    }

    /// The same of a record that waited on disk, where its partition stands before it.
    fn offer_kept(&self, kept: &OutRecord) -> Result<bool, KafkaFault> {
        match kept.value.split_first_chunk() {
            Some((partition, value)) => self.offer(u32::from_le_bytes(*partition), value),
            None => Ok(true),
        }
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
            let record = self.out.record(self.topic).payload(&value);
            match &key {
                Some(key) => self.out.send(record.key(key))?,
                None => self.out.send(record)?,
            }
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
