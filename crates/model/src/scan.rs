//! `scan` of the naive model, and keys that are remembered.

use super::context::StageContext;
use super::row::{Mark, Row, set_cell};
use std::collections::BTreeMap;
use weir_plan::{Scan, Value};

/// The memory that a stage has of a key: of a `scan` the values of its states.
pub(super) struct Memory<S = Vec<Value>> {
    pub(super) states: S,
    /// When its rows came: the largest time so far, see [`StageContext::scan`].
    pub(super) last: Option<i64>,
    /// Larger for the key that had a row later.
    pub(super) turn: u64,
}

impl StageContext<'_> {
    /// Folds a row into the states of its key and adds them to the row. Idle time is judged by the
    /// later of the row's time and the watermark, so that no late row finds an expired key.
    pub(super) fn scan(
        &mut self,
        s: &Scan,
        keys: &mut BTreeMap<Vec<Value>, Memory>,
        watermark: Mark,
        row: &mut Row,
    ) {
        self.turn += 1;
        let key: Vec<_> = s.keys.iter().map(|k| self.eval.eval(k, row, &[])).collect();
        let now = match (row.ts, watermark) {
            (ts, Mark::At(watermark)) => Some(ts.map_or(watermark, |ts| ts.max(watermark))),
            (ts, Mark::End) => ts,
        };
        let known = keys.get(&key).filter(|m| match (now, m.last) {
            (Some(now), Some(last)) => now.saturating_sub(last) < s.idle_ns,
            _ => true,
        });
        let (before, last) = match known {
            Some(memory) => (memory.states.clone(), memory.last.max(now)),
            None => (s.states.iter().map(|x| self.eval.eval(&x.init, row, &[])).collect(), now),
        };
        if !keys.contains_key(&key) && keys.len() as u64 >= s.max_keys {
            self.give_up(keys, now, s.idle_ns);
        }
        let states: Vec<_> =
            s.states.iter().map(|x| self.eval.eval(&x.update, row, &before)).collect();
        for (x, value) in s.states.iter().zip(&states) {
            set_cell(&mut row.cells, x.output, value.clone());
        }
        keys.insert(key, Memory { states, last, turn: self.turn });
    }

    /// Forgets the key whose latest row has the earliest time, of several the one whose row came
    /// first. One that is idle by now is no loss.
    pub(super) fn give_up<S>(
        &mut self,
        keys: &mut BTreeMap<Vec<Value>, Memory<S>>,
        now: Option<i64>,
        idle_ns: i64,
    ) {
        let oldest = keys.iter().min_by_key(|(_, m)| (m.last, m.turn)).map(|(k, _)| k.clone());
        let oldest = keys.remove(&oldest.expect("a stage may hold a key")).expect("it is there");
        let is_idle = match (now, oldest.last) {
            (Some(now), Some(last)) => now.saturating_sub(last) >= idle_ns,
            _ => false,
        };
        self.evicted += u64::from(!is_idle);
    }
}
