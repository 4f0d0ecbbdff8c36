//! Stages that choose rows and take them apart, one row at a time.

use super::{Mark, Memory, Row, State, Steps, put, top};
use std::collections::{BTreeMap, BTreeSet};
use weir_packet::bits::Bits;
use weir_packet::limits::EACH_MAX;
use weir_packet::read::read_parts;
use weir_packet::repeated::{Info, PartType, PartValue, REPEATED};
use weir_packet::source::FrameBatch;
use weir_packet::walk::Layers;
use weir_plan::rows::hash_key;
use weir_plan::{Distinct, Each, Parts, Per, Sample, SampleBy, SortKey, Stage, Value};

/// The parts of each kind that the one frame of a batch has: how many were left out,
/// and a tuple for each.
pub(super) fn parts(one: &FrameBatch, layers: &Layers) -> Vec<Value> {
    let kind = |info: &Info| {
        let mut tuples = Vec::new();
        let left_out = read_parts(info.what, one, layers, Bits::first(1), |_, values| {
            let values = info.parts.iter().zip(values).map(|(part, v)| value(part.ty, v));
            tuples.push(Value::Tuple(values.collect()));
        });
        Value::Tuple(vec![Value::Int(left_out as i64), Value::Tuple(tuples)])
    };
    REPEATED.iter().map(kind).collect()
}

fn value(ty: PartType, v: &PartValue<'_>) -> Value {
    match (ty, *v) {
        (_, PartValue::Absent) => Value::Absent,
        (_, PartValue::Bool(b)) => Value::Bool(b),
        (_, PartValue::Int(n)) => Value::Int(n as i64),
        (_, PartValue::Ip(bits)) => Value::Ip(bits),
        (PartType::Bytes, PartValue::Bytes(b)) => Value::Bytes(b.into()),
        (_, PartValue::Bytes(b)) => Value::Str(String::from_utf8_lossy(b).into()),
    }
}

impl Steps<'_> {
    /// What `distinct`, `sample` and `each` make of a step's rows.
    pub(super) fn choose(
        &mut self,
        stage: &Stage,
        state: &mut State,
        mut rows: Vec<Row>,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        match (stage, state) {
            (Stage::Distinct(d), State::Keys(keys, watermark)) => {
                rows.retain(|row| self.is_first(d, keys, *watermark, row));
                *watermark = mark;
            }
            (Stage::Sample(s), State::Passed(seen)) => {
                rows.retain(|row| self.is_chosen(s, seen, row));
            }
            (Stage::Each(each), _) => {
                rows = rows.iter().flat_map(|row| self.rows_of_parts(each, row)).collect();
            }
            _ => unreachable!("each stage has its own kind of state"),
        }
        (rows, mark)
    }

    /// Whether a row is the first of its key. Of windowed rows the time is part of the key.
    fn is_first(
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
            // Those of windows that have closed are not counted.
            let past = |key: &Vec<Value>| match key.last() {
                Some(Value::Time(start)) => Mark::At(*start) < watermark,
                _ => false,
            };
            keys.retain(|key, _| !past(key));
        }
        let now = match (row.ts, watermark) {
            (Some(ts), Mark::At(watermark)) => Some(ts.max(watermark)),
            (ts, _) => ts,
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

    fn is_chosen(&mut self, s: &Sample, seen: &mut u64, row: &Row) -> bool {
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

    fn rows_of_parts(&mut self, each: &Each, row: &Row) -> Vec<Row> {
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
                put(&mut row.cells, *position, value);
            }
            row
        };
        parts.into_iter().take(EACH_MAX).map(with).collect()
    }

    /// What a `top` sorts a row by, its key first; `None`, and counted, if there is no room for
    /// that key.
    pub(super) fn top_keys(
        &mut self,
        (by, per): (&[SortKey], Option<&Per>),
        windowed: bool,
        held: &[(Vec<Value>, Row)],
        row: &Row,
    ) -> Option<Vec<Value>> {
        let keys = per.iter().flat_map(|per| &per.keys).chain(by.iter().map(|k| &k.expr));
        let keys: Vec<_> = keys.map(|k| self.eval.eval(k, row, &[])).collect();
        if let Some(per) = per {
            let parts = per.keys.len();
            let known: BTreeSet<_> = held
                .iter()
                .filter(|(_, other)| !windowed || other.ts == row.ts)
                .map(|(keys, _)| &keys[..parts])
                .collect();
            if !known.contains(&keys[..parts]) && known.len() as u64 >= per.max_keys {
                self.evicted += 1;
                return None;
            }
        }
        Some(keys)
    }
}

/// The first `n` of each key in the order of the sort keys, by key.
pub(super) fn top_of_keys(
    n: u64,
    by: &[SortKey],
    per: Option<&Per>,
    held: Vec<(Vec<Value>, Row)>,
) -> Vec<Row> {
    let Some(per) = per else { return top(n, by, held) };
    let mut groups: BTreeMap<Vec<Value>, Vec<(Vec<Value>, Row)>> = BTreeMap::new();
    for (mut keys, row) in held {
        let rest = keys.split_off(per.keys.len());
        groups.entry(keys).or_default().push((rest, row));
    }
    groups.into_values().flat_map(|rows| top(n, by, rows)).collect()
}
