//! The stream of a probe, to records.

use crate::client::partition_of;
use crate::limits::HEAD_EVERY_MESSAGES;
use crate::order::{CarrierOrder, ProduceOrder};
use crate::outbound::{OnDisk, Outbound, Telling};
use crate::record::{CUT, EPOCH_HEADER, parts};
use crate::spill::{self, OutHeader, OutRecord};
use crate::{KafkaFault, PipeOfProbe, Produced, Say};
use rdkafka::message::{Header, Headers as _, Message as _, OwnedHeaders, OwnedMessage};
use std::io::{self, Read};
use weir_cluster::{ProbeHead, ProbeReader, StreamItem};
use weir_engine::exchange::{Body, EndOf, Message, end_message};

/// Properties that delivery in order, of all records and of each one once depends on.
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
/// broker refuses a record, or records are left when nothing was delivered for
/// [`DRAIN`](crate::limits::DRAIN) after the end of the pipe. All records that could be delivered
/// were.
pub fn produce(
    order: &CarrierOrder,
    task: &ProduceOrder,
    from: PipeOfProbe<'_>,
    ready: &mut dyn FnMut() -> io::Result<()>,
    say: &Say,
) -> Result<Produced, KafkaFault> {
    let meanwhile = match task.spill {
        None => "records wait in memory, and then the probe waits",
        Some(_) => "records wait in memory, then on disk, and then the probe waits",
    };
    let telling = Telling { say, meanwhile };
    let (out, count) = Outbound::start(order, OWN, from.has_gone, telling)?;
    let partition = partition_of(&task.log, count)?;
    let spill = match &task.spill {
        None => None,
        Some(spill) => {
            let spool = spill::of_probe(spill, &order.topic, &task.log);
            Some(spool.map_err(KafkaFault::Spill)?)
        }
    };
    let records = Records { out: out.over(spill), order, task, partition };
    ready()?;
    let disk = OnDisk { offer: &|kept| records.offer(kept), restore };
    let delivered = records.out.carry(&disk, || records.all(from.stream))?;
    Ok(Produced { partition, delivered })
}

/// A record as it was handed to the client.
fn restore(sent: &OwnedMessage) -> Option<OutRecord> {
    let (mut epoch, mut further) = (None, None);
    for header in sent.headers()?.iter() {
        let text = std::str::from_utf8(header.value?).ok()?;
        let known = [OutHeader::Part, OutHeader::End].into_iter().find(|h| h.name() == header.key);
        match known {
            Some(known) => further = Some((known, text.to_owned())),
            None => epoch = text.parse().ok(),
        }
    }
    Some(OutRecord { epoch: epoch?, header: further, value: sent.payload()?.to_vec() })
}

/// The records of a probe.
struct Records<'a> {
    out: Outbound<'a>,
    order: &'a CarrierOrder,
    task: &'a ProduceOrder,
    partition: i32,
}

impl Records<'_> {
    /// Reads the stream to its end.
    fn all(&self, from: &mut dyn Read) -> Result<(), KafkaFault> {
        // Where there is no head, the run ended before it began to publish, and says why.
        let Ok((mut reader, mut head)) = ProbeReader::new(from) else {
            self.out.is_cut();
            return Ok(());
        };
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
                        self.send(&OutRecord { epoch: head.epoch, header, value: bytes.to_vec() })?;
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
        self.send(&OutRecord { epoch: head.epoch, header: None, value: head.bytes()? })
    }

    /// Ends a life whose run was killed: readers need not wait for it.
    fn cut(&self, head: &ProbeHead, number: u64) -> Result<(), KafkaFault> {
        self.out.is_cut();
        let print = u128::from_str_radix(&head.fingerprint, 16).unwrap_or(0);
        let value = end_message(print, head.id(), number, EndOf::Source);
        let header = Some((OutHeader::End, CUT.to_owned()));
        self.send(&OutRecord { epoch: head.epoch, header, value })
    }

    /// Hands a record to the client, or keeps it on disk, as soon as there is room.
    fn send(&self, record: &OutRecord) -> Result<(), KafkaFault> {
        self.out.send_or_keep(|| self.offer(record), |spool| spool.push(&record.to_bytes()))
    }

    /// Hands a record to the client; whether it has room.
    fn offer(&self, out: &OutRecord) -> Result<bool, KafkaFault> {
        let epoch = out.epoch.to_string();
        let mut headers =
            OwnedHeaders::new().insert(Header { key: EPOCH_HEADER, value: Some(&epoch) });
        if let Some((header, value)) = &out.header {
            headers = headers.insert(Header { key: header.name(), value: Some(value) });
        }
        let record = self.out.record(&self.order.topic.topic).key(&self.task.log.probe);
        let record = record.payload(&out.value).partition(self.partition).headers(headers);
        Ok(self.out.offer(record)?.is_none())
    }
}
