//! Stages that choose rows and take them apart, one row at a time.

use super::context::StageContext;
use super::row::{Mark, Row, set_cell};
use super::scan::Memory;
use std::collections::BTreeMap;
use weir_packet::limits::EACH_MAX;
use weir_plan::rows::hash_key;
use weir_plan::{Distinct, Each, Parts, Sample, SampleBy, Value};

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
            // Those of windows that have closed are not counted.
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
