//! Packets that pass, to records: each goes to the partition of its key, and a record has those of
//! some time.

use super::fields_of;
use super::reported::SourceReport;
use std::io::{self, Write};
use std::sync::Arc;
use weir_kafka::limits::{HEARTBEAT_NS, LINGER_NS, PACKETS_BYTES, PACKETS_BYTES_MAX};
use weir_kafka::packets::{LostFrames, PacketHead, PacketKind, PacketRecordBuilder, SpreadKey};
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::egress::{Refusal, Refused, Sent};
use weir_packet::fields::FieldId;
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::limits::BATCH;
use weir_packet::read::read_field;
use weir_packet::source::{Chunk, FrameBatch, LinkType};
use weir_packet::walk::{Layers, classify};
use weir_plan::rows::hash_step;

/// The hash of a key without parts.
const START: u64 = 0x5745_4952;

/// Computes the keys of packets, as queries see their fields.
struct Keys {
    fields: Vec<(FieldId, Column)>,
    layers: Layers,
    frames: FrameBatch,
    /// The bytes of the packets, as a batch refers to them.
    memory: Arc<Vec<u8>>,
    hashes: Vec<u64>,
}

impl Keys {
    fn new(key: SpreadKey) -> Keys {
        let column = |id: FieldId| (id, Column::new(id.info().ty.repr()));
        Keys {
            fields: fields_of(key).into_iter().map(|part| column(part.field)).collect(),
            layers: Layers::new(),
            frames: FrameBatch::new(),
            memory: Arc::default(),
            hashes: Vec::new(),
        }
    }

    /// Hashes the keys of at most [`BATCH`] packets of one link type.
    fn hash(&mut self, link: LinkType, memory: &[u8], sent: &[Sent]) -> &[u64] {
        self.frames.clear();
        let bytes = Arc::make_mut(&mut self.memory);
        bytes.clear();
        sent.iter().for_each(|frame| bytes.extend_from_slice(frame.bytes(memory)));
        let chunk: Chunk = Arc::<Vec<u8>>::clone(&self.memory);
        self.frames.restart(&chunk, 0, link);
        let mut at = 0;
        for (number, frame) in (0..).zip(sent) {
            let caplen = frame.bytes(memory).len() as u32;
            self.frames.push(frame.ts, number, at, caplen, frame.len);
            at += caplen;
        }
        classify(&self.frames, &mut self.layers);
        self.hashes.clear();
        self.hashes.resize(sent.len(), START);
        for (id, column) in &mut self.fields {
            read_field(*id, &self.frames, &self.layers, Bits::first(sent.len()), column);
            for (i, hash) in self.hashes.iter_mut().enumerate() {
                *hash = match (column.present.has(i), column.repr()) {
                    (false, _) => hash_step(*hash, 0),
                    (true, Repr::Bit) => hash_step(*hash, 1 + u64::from(column.truth.has(i))),
                    (true, Repr::Word) => hash_step(hash_step(*hash, 1), column.word()[i]),
                    (true, Repr::Pair) => {
                        let (high, low) = column.pair();
                        hash_step(hash_step(hash_step(*hash, 1), high[i]), low[i])
                    }
                };
            }
        }
        &self.hashes
    }
}

/// A partition, and the record that is being filled for it.
struct FilledRecord {
    record: PacketRecordBuilder,
    link: LinkType,
    /// The number of its next record, and packets in those before.
    number: u64,
    before: u64,
    /// When the first packet of the record was captured.
    first: i64,
    /// The time up to which a record last said that everything has come.
    reached: i64,
}

/// Spreads packets over partitions.
pub struct Spreader {
    /// Where packets go, as it was given.
    name: String,
    key: SpreadKey,
    epoch: u64,
    keys: Keys,
    parts: Vec<FilledRecord>,
    names: InterfaceNames,
    report: SourceReport,
    to: Box<dyn Write>,
    /// When packets were looked at last that wait for others.
    ticked: i64,
    refused: Refused,
    scratch: Vec<u8>,
    has_finished: bool,
}

/// The name of a run that spreads packets, and how it spreads them.
pub struct SpreadBy {
    /// Where packets go, as it was given.
    pub name: String,
    /// By which key.
    pub key: SpreadKey,
    /// Over how many partitions.
    pub partitions: usize,
    /// When the run started, in nanoseconds since 1970.
    pub epoch: u64,
}

impl Spreader {
    /// Writes records to `to`, as the process takes them that carries them.
    pub fn new(
        by: SpreadBy,
        names: &InterfaceNames,
        report: &SourceReport,
        to: Box<dyn Write>,
    ) -> Spreader {
        let part = |_| FilledRecord {
            record: PacketRecordBuilder::default(),
            link: LinkType::ETHERNET,
            number: 0,
            before: 0,
            first: 0,
            reached: i64::MIN,
        };
        Spreader {
            name: by.name,
            key: by.key,
            epoch: by.epoch,
            keys: Keys::new(by.key),
            parts: (0..by.partitions).map(part).collect(),
            names: names.clone(),
            report: report.clone(),
            to,
            ticked: i64::MIN,
            refused: Refused::default(),
            scratch: Vec::new(),
            has_finished: false,
        }
    }

    /// Packets that were not taken.
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// Takes packets, in order.
    pub fn take(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        self.take_gaps();
        for same in frames.chunk_by(|a, b| a.link == b.link) {
            for some in same.chunks(BATCH) {
                self.spread(some[0].link, memory, some)?;
            }
        }
        match frames.last() {
            Some(last) => self.tick(last.ts),
            None => Ok(()),
        }
    }

    fn spread(&mut self, link: LinkType, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        let partitions = self.parts.len() as u128;
        self.keys.hash(link, memory, frames);
        for (i, frame) in frames.iter().enumerate() {
            let partition = ((u128::from(self.keys.hashes[i]) * partitions) >> 64) as usize;
            let bytes = frame.bytes(memory);
            if bytes.len() > PACKETS_BYTES_MAX {
                self.refused.add(Refusal::Long, frame.len);
                continue;
            }
            let part = &self.parts[partition];
            let is_full = part.record.bytes() + bytes.len() > PACKETS_BYTES;
            if part.record.packets() > 0 && (is_full || part.link != link) {
                self.cut(partition, PacketKind::Packets)?;
            }
            let part = &mut self.parts[partition];
            if part.record.packets() == 0 {
                (part.link, part.first) = (link, frame.ts);
            }
            let place = place_of(frame.capture_point, &self.names, &mut part.record);
            let direction = match frame.capture_point.direction() {
                None => 0,
                Some(Direction::In) => 1,
                Some(Direction::Out) => 2,
            };
            part.record.push(frame.ts, frame.len, bytes, place, direction);
        }
        Ok(())
    }

    /// Frames that were lost may have been for any partition.
    fn take_gaps(&mut self) {
        let gaps: Vec<LostFrames> = std::mem::take(&mut self.report.state().gaps);
        for gap in gaps {
            self.parts.iter_mut().for_each(|part| part.record.lose(gap));
        }
    }

    /// Sends what has waited long enough for more.
    fn tick(&mut self, now: i64) -> io::Result<()> {
        if now.abs_diff(self.ticked) < LINGER_NS.unsigned_abs() / 2 {
            return Ok(());
        }
        self.ticked = now;
        let reached = self.report.state().reached;
        for partition in 0..self.parts.len() {
            let part = &self.parts[partition];
            let is_old = now.abs_diff(part.first) >= LINGER_NS.unsigned_abs();
            let is_news = reached.is_some_and(|to| to.saturating_sub(part.reached) >= HEARTBEAT_NS);
            if !part.record.is_empty() && is_old || is_news {
                self.cut(partition, PacketKind::Packets)?;
            }
        }
        Ok(())
    }

    /// Windows have closed, or the source may have to wait.
    pub fn flush(&mut self) -> io::Result<()> {
        self.take_gaps();
        let reached = self.report.state().reached;
        if let Some(reached) = reached {
            self.tick(reached)?;
        }
        self.to.flush().map_err(|e| self.failed(&e))
    }

    /// Ends all partitions.
    pub fn finish(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_finished, true) {
            return Ok(());
        }
        self.take_gaps();
        let kind = match self.report.state().has_failed {
            true => PacketKind::Cut,
            false => PacketKind::End,
        };
        (0..self.parts.len()).try_for_each(|partition| self.cut(partition, kind))?;
        self.to.flush().map_err(|e| self.failed(&e))
    }

    fn failed(&self, e: &io::Error) -> io::Error {
        // No kind of error that says that nobody reads them: all of them are needed.
        io::Error::other(format!("{}: packets: {e}", self.name))
    }

    /// Sends the record of a partition.
    fn cut(&mut self, partition: usize, kind: PacketKind) -> io::Result<()> {
        let reached = self.report.state().reached;
        let part = &mut self.parts[partition];
        let head = PacketHead {
            kind,
            spread: self.key,
            link: part.link.0,
            epoch: self.epoch,
            number: part.number,
            before: part.before,
            reached,
        };
        part.number += 1;
        part.before += u64::from(part.record.packets());
        part.reached = reached.unwrap_or(part.reached);
        self.scratch.clear();
        self.scratch.extend_from_slice(&(partition as u32).to_le_bytes());
        self.scratch.extend_from_slice(&[0; 4]);
        part.record.front(&head, &mut self.scratch);
        let [table, bytes] = part.record.rest();
        let len = (self.scratch.len() - 8 + table.len() + bytes.len()) as u32;
        self.scratch[4..8].copy_from_slice(&len.to_le_bytes());
        let written =
            [&self.scratch, table, bytes].into_iter().try_for_each(|part| self.to.write_all(part));
        part.record.clear();
        written.map_err(|e| self.failed(&e))
    }
}

/// The place of an interface in a record.
fn place_of(point: CapturePoint, names: &InterfaceNames, record: &mut PacketRecordBuilder) -> u16 {
    point.interface().map_or(0, |number| {
        record.interface(number, || names.name(number).map_or(Box::from(&b""[..]), |n| n.raw))
    })
}

#[cfg(test)]
mod tests;
