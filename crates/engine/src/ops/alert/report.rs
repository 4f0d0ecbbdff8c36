//! The rows that an alert puts out.

use super::evidence::Evidence;
use super::firing::{Firing, Told};
use crate::node::Next;
use crate::rows::{Rows, set_cell};
use weir_base::alert::AlertState;
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::alert::{STORM_KEY, key_text, quote, storm_text};
use weir_plan::{Alert, Schema, Value};

/// Makes rows of what is known of keys.
pub(super) struct Report {
    pub(super) plan: Alert,
    /// The names of the keys, and where each stands among the evidence.
    pub(super) keys: Vec<(String, usize)>,
    /// The last tick that passed.
    pub(super) tick: i64,
    /// The number of the latest row that came.
    pub(super) order: u64,
    rows: Rows,
}

impl Report {
    /// That of an alert over rows of these columns, which puts out rows of `schema`.
    pub(super) fn new(plan: &Alert, before: &Schema, schema: &Schema) -> Report {
        let positions: Vec<usize> = plan.evidence(before).collect();
        let key = |(name, at): &(String, usize)| {
            let place = positions.iter().position(|i| i == at);
            (name.clone(), place.expect("the time is no key"))
        };
        Report {
            keys: plan.keys.iter().map(key).collect(),
            plan: plan.clone(),
            tick: i64::MIN,
            order: 0,
            rows: Rows::new(schema),
        }
    }

    /// The last time at which a key still fires.
    pub(super) fn until(&self, firing: &Firing) -> i64 {
        self.plan.until(firing.at)
    }

    /// Puts out that a key has ended, or is still open, at this time, if it was reported.
    pub(super) fn end(
        &mut self,
        firing: &Firing,
        state: AlertState,
        time: i64,
        next: &mut Next<'_>,
    ) {
        if !firing.shown {
            return;
        }
        let peak = firing.peak.value;
        self.put(firing, (&firing.peak, peak), state, Some(time), next);
    }

    /// Puts out a row of a key: what a row says that came, and the most extreme value up to it.
    pub(super) fn put(
        &mut self,
        firing: &Firing,
        (seen, peak): (&Evidence, Option<f64>),
        state: AlertState,
        time: Option<i64>,
        next: &mut Next<'_>,
    ) {
        let cells = self.cells(firing, (seen, peak), state);
        let rows = &mut self.rows;
        let at = rows.len;
        rows.len += 1;
        rows.order.push(self.order);
        rows.clock.push(time.unwrap_or(NO_TIME).max(self.tick));
        for (column, value) in rows.columns.iter_mut().zip(cells.iter().chain(&seen.rest)) {
            set_cell(column, at, value, &mut rows.arena);
        }
        let time = time.map_or(Value::Absent, Value::Time);
        set_cell(&mut rows.time, at, &time, &mut rows.arena);
        if rows.len == BATCH {
            self.flush(next);
        }
    }

    /// The cells before those of the evidence.
    fn cells(
        &self,
        firing: &Firing,
        (seen, peak): (&Evidence, Option<f64>),
        state: AlertState,
    ) -> [Value; Alert::COLUMNS] {
        let plan = &self.plan;
        let text = |text: &str| Value::Str(text.into());
        let given = |said: &Option<String>| said.as_deref().map_or(Value::Absent, text);
        let float = |x: Option<f64>| x.map_or(Value::Absent, Value::Float);
        let time = |t: Option<i64>| t.map_or(Value::Absent, Value::Time);
        let (mut key, mut suppress) = self.names(seen);
        let mut message = seen.message.clone();
        if firing.told == Told::AsAll {
            let one = match &seen.message {
                Value::Str(one) => one,
                _ => "",
            };
            message = text(&storm_text(firing.rows, one));
            key = text(STORM_KEY);
            suppress = Value::Str(self.rule_line().into());
        }
        let ts = match state {
            AlertState::Start | AlertState::Ongoing => time(seen.ts),
            AlertState::End | AlertState::Open => time(firing.last),
        };
        let over = (plan.over_ns > 0).then_some(plan.over_ns);
        [
            ts,
            text(&plan.rule),
            text(state.name()),
            text(plan.severity.name()),
            message,
            key,
            plan.compared.as_ref().map_or(Value::Absent, |c| text(&c.field)),
            float(seen.value),
            float(seen.threshold),
            float(peak),
            time(firing.first),
            time(firing.last),
            Value::Int(firing.rows),
            over.map_or(Value::Absent, Value::Duration),
            float(firing.least),
            seen.community.clone(),
            given(&plan.category),
            given(&plan.technique),
            seen.next_step.clone(),
            suppress,
        ]
    }

    /// The line that suppresses the whole rule.
    fn rule_line(&self) -> String {
        let mut line = String::new();
        quote(&self.plan.rule, &mut line);
        line
    }

    /// The key as text, and the line that suppresses it.
    fn names(&self, seen: &Evidence) -> (Value, Value) {
        let mut line = self.rule_line();
        if self.keys.is_empty() {
            return (Value::Absent, Value::Str(line.into()));
        }
        let parts = self.keys.iter().map(|(name, at)| (name.as_str(), &seen.rest[*at]));
        let key = key_text(parts);
        line.push(' ');
        line.push_str(&key);
        (Value::Str(key.into()), Value::Str(line.into()))
    }

    /// Puts keys into the order that they end in: by time, then by key.
    pub(super) fn sort(&self, ended: &mut [Firing]) {
        ended.sort_by_cached_key(|firing| {
            let key = self.keys.iter().map(|(_, at)| firing.peak.rest[*at].clone());
            (self.until(firing), key.collect::<Vec<Value>>())
        });
    }

    /// Hands on the rows put out so far.
    pub(super) fn flush(&mut self, next: &mut Next<'_>) {
        if self.rows.len > 0 {
            next.rows(&self.rows);
            self.rows.clear();
        }
    }
}
