//! Stages that choose rows and take them apart, one row at a time.

use super::context::StageContext;
use super::row::{Mark, PacketValues, Row, set_cell};
use super::scan::Memory;
use std::collections::BTreeMap;
use weir_packet::limits::EACH_MAX;
use weir_plan::rows::hash_key;
use weir_plan::{Deduplicate, Distinct, Each, Parts, Sample, SampleBy, Value};

impl StageContext<'_> {
    /// Whether a row is the first of its key. Of windowed rows the time is part of the key.
    pub(super) fn is_first(
        &mut self,
        d: &Distinct,
        keys: &mut BTreeMap<Vec<Value>, Memory>,
        watermark: Mark,
        row: &Row,
    ) -> bool {
        self.turn += 1;
        let mut key: Vec<_> = d.keys.iter().map(|k| self.eval.eval(k, row, &[])).collect();
        if d.windowed {
            key.push(row.ts.map_or(Value::Absent, Value::Time));
            // Keys of windows that have closed are not counted.
            let past = |key: &Vec<Value>| match key.last() {
                Some(Value::Time(start)) => Mark::At(*start) < watermark,
                _ => false,
            };
            keys.retain(|key, _| !past(key));
        }
        let now = match (row.ts, watermark) {
            (ts, Mark::At(watermark)) => Some(ts.map_or(watermark, |ts| ts.max(watermark))),
            (ts, Mark::End) => ts,
        };
        let known = keys.get(&key).filter(|m| match (now, m.last) {
            (Some(now), Some(last)) => d.windowed || now.saturating_sub(last) < d.idle_ns,
            _ => true,
        });
        let (first, last) = (known.is_none(), known.map_or(now, |m| m.last.max(now)));
        if !keys.contains_key(&key) && keys.len() as u64 >= d.max_keys {
            // Of a window that has closed no further row comes.
            self.give_up(keys, now, if d.windowed { 1 } else { d.idle_ns });
        }
        keys.insert(key, Memory { states: Vec::new(), last, turn: self.turn });
        first
    }

    /// Whether a packet is a copy of one that was kept; else it is kept.
    pub(super) fn is_copy(
        &mut self,
        d: &Deduplicate,
        packets: &mut BTreeMap<Vec<Value>, Memory>,
        watermark: Mark,
        row: &Row,
    ) -> bool {
        self.turn += 1;
        let packet = row.packet.as_ref().expect("the row is a packet");
        // Packets without a time are compared with none.
        let compared = |_| Value::Bytes(without_what_changes(packet).into());
        let key = vec![row.ts.map_or(Value::Absent, compared)];
        let now = match (row.ts, watermark) {
            (ts, Mark::At(watermark)) => Some(ts.map_or(watermark, |ts| ts.max(watermark))),
            (ts, Mark::End) => ts,
        };
        let known = packets.get(&key).filter(|m| match (now, m.last) {
            (Some(now), Some(last)) => now.saturating_sub(last) < d.idle_ns(),
            _ => true,
        });
        let kept = known.and_then(|m| m.states.first().cloned());
        let last = known.map_or(now, |m| m.last.max(now));
        let is_copy = match (&kept, row.ts) {
            (Some(Value::Time(kept)), Some(ts)) => kept.abs_diff(ts) <= d.within_ns as u64,
            _ => false,
        };
        if !packets.contains_key(&key) && packets.len() as u64 >= d.max_packets {
            self.give_up(packets, now, d.idle_ns());
        }
        let ts = row.ts.map_or(Value::Absent, Value::Time);
        let states = vec![kept.filter(|_| is_copy).unwrap_or(ts)];
        packets.insert(key, Memory { states, last, turn: self.turn });
        self.copies += u64::from(is_copy);
        is_copy
    }

    /// Whether a `sample` keeps a row.
    pub(super) fn is_chosen(&mut self, s: &Sample, seen: &mut u64, row: &Row) -> bool {
        match &s.by {
            SampleBy::Number(number) => match self.eval.eval(number, row, &[]) {
                Value::Int(n) => s.keeps((n - 1) as u64),
                v => unreachable!("{v} is no number of a packet"),
            },
            SampleBy::Order => {
                *seen += 1;
                s.keeps(*seen - 1)
            }
            SampleBy::Key(keys) => {
                let key: Vec<_> = keys.iter().map(|k| self.eval.eval(k, row, &[])).collect();
                hash_key(&key) <= s.hash_max()
            }
        }
    }

    /// The rows that `each` makes of one.
    pub(super) fn rows_of_parts(&mut self, each: &Each, row: &Row) -> Vec<Row> {
        let parts: Vec<Vec<Value>> = match &each.what {
            Parts::Packet(what) => {
                let packet = row.packet.as_ref().expect("the row is a packet");
                let Value::Tuple(there) = &packet.parts[*what as usize] else {
                    unreachable!("there are parts of each kind")
                };
                let (Value::Int(left_out), Value::Tuple(parts)) = (&there[0], &there[1]) else {
                    unreachable!("how many were left out, and those that were not")
                };
                self.evicted += *left_out as u64;
                let values = |part: &Value| match part {
                    Value::Tuple(values) => values.clone(),
                    _ => unreachable!("a part is a tuple"),
                };
                parts.iter().map(values).collect()
            }
            Parts::Split { text, by } => {
                match (self.eval.eval(text, row, &[]), self.eval.eval(by, row, &[])) {
                    (Value::Str(text), Value::Str(by)) if by.is_empty() => {
                        vec![vec![Value::Str(text)]]
                    }
                    (Value::Str(text), Value::Str(by)) => {
                        text.split(&*by).map(|part| vec![Value::Str(part.into())]).collect()
                    }
                    _ => Vec::new(),
                }
            }
        };
        self.evicted += parts.len().saturating_sub(EACH_MAX) as u64;
        let with = |part: Vec<Value>| {
            let mut row = row.clone();
            for ((_, position, _), value) in each.columns.iter().zip(part) {
                set_cell(&mut row.cells, *position, value);
            }
            row
        };
        parts.into_iter().take(EACH_MAX).map(with).collect()
    }
}

/// The bytes that all copies of a packet share: the IP packet, except for the fields that routers
/// change; the headers of one that was cut; the whole frame if it holds no IP packet.
fn without_what_changes(packet: &PacketValues) -> Vec<u8> {
    let (bytes, wire) = (&packet.bytes, packet.bytes.len().max(packet.len as usize));
    let is_there = |(at, _): &(usize, Option<usize>)| {
        let header = if bytes[*at] >> 4 == 4 { 20 } else { 40 };
        at + header <= bytes.len()
    };
    let Some((at, transport)) = packet.ip.filter(is_there) else {
        return [&wire.to_be_bytes()[..], bytes].concat();
    };
    let mut ip = bytes[at..].to_vec();
    let (is_four, room) = (ip[0] >> 4 == 4, wire - at);
    let word = |i: usize| usize::from(ip[i]) << 8 | usize::from(ip[i + 1]);
    let (header, said) = if is_four { (20, word(2)) } else { (40, word(4) + 40) };
    let is_open = said < header || !is_four && said == 40;
    let len = if is_open || said > room { room } else { said };
    let is_cut = len > ip.len();
    ip.truncate(if is_cut { transport.unwrap_or(at + header) - at + 20 } else { len });
    match is_four {
        true => [8, 10, 11].into_iter().for_each(|i| ip[i] = 0),
        false => ip[7] = 0,
    }
    [&[1, is_cut.into()], &len.to_be_bytes()[..], &ip].concat()
}
