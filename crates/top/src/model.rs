//! The counts of the run, as far as the screen needs them.

use crate::clean::clean;
use crate::key::{Part, RowKey};
use crate::limits::{INTERFACES_MAX, KEYS_KEPT, KEYS_MAX};
use crate::measure::{Measure, Over, SECOND_NS};
use crate::names::Names;
use crate::queried::QueryOutput;
use crate::query::{Pace, Role};
use crate::series::{Point, Series, WhenLong};
use crate::table::Data;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_engine::rows::{Output, Rows, cell};
use weir_plan::Value;

/// The model of a screen, which the run fills and the screen reads.
#[derive(Clone, Debug)]
pub struct SharedModel(Arc<Mutex<Model>>);

impl SharedModel {
    /// Nothing yet.
    pub fn new(pace: Pace) -> SharedModel {
        SharedModel(Arc::new(Mutex::new(Model::new(pace))))
    }

    /// The model, for a short time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Model> {
        self.0.lock()
    }
}

/// The counts since the table or the filter changed, and the time line of the filter.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) pace: Pace,
    /// The role of each output, and the types of its columns.
    outputs: Vec<(Role, Output)>,
    filters: Option<u64>,
    changes: Option<u64>,
    /// All packets that meet the filter, since the table or the filter changed.
    pub(crate) total: Measure,
    /// The same since the filter changed.
    pub(crate) of_filter: Measure,
    pub(crate) series: Series,
    pub(crate) interfaces: BTreeMap<String, Interface>,
    pub(crate) tables: BTreeMap<Data, Entries>,
    pub(crate) names: Names,
    /// The rows of a query of the library, by output.
    pub(crate) query: Vec<QueryOutput>,
    /// When the first window of these counts starts, ...
    first: Option<i64>,
    /// ... the first one of the filter, ...
    first_of_filter: Option<i64>,
    /// ... and the latest.
    latest: Option<i64>,
    /// Of a whole capture: when the first and the last packet came that meets the filter.
    ends: Option<(i64, i64)>,
}

/// The traffic of an interface.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) measure: Measure,
    pub(crate) series: Series,
}

/// The traffic of each key.
#[derive(Default, Debug)]
pub(crate) struct Entries(pub(crate) BTreeMap<RowKey, Entry>);

/// The traffic of a key.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Entry {
    /// Sent, or in both directions.
    pub(crate) sent: Measure,
    pub(crate) received: Measure,
}

impl Model {
    fn new(pace: Pace) -> Model {
        Model {
            pace,
            outputs: Vec::new(),
            filters: None,
            changes: None,
            total: Measure::default(),
            of_filter: Measure::default(),
            series: Model::no_series(pace),
            interfaces: BTreeMap::new(),
            tables: BTreeMap::new(),
            names: Names::default(),
            query: Vec::new(),
            first: None,
            first_of_filter: None,
            latest: None,
            ends: None,
        }
    }

    fn no_series(pace: Pace) -> Series {
        Series::new(if pace == Pace::Whole { WhenLong::Widen } else { WhenLong::Forget })
    }

    /// From now on rows are of these outputs. New counts begin at nothing.
    pub(crate) fn open(&mut self, outputs: &[Output]) {
        let role = |o: &Output| Role::of_output(o.name.as_deref().unwrap_or_default());
        self.outputs = outputs.iter().map(|output| (role(output), output.clone())).collect();
        let roles: Vec<Role> = self.outputs.iter().map(|(role, _)| *role).collect();
        let totals = roles.iter().find_map(|role| match role {
            Role::Totals { filters, changes } => Some((*filters, *changes)),
            _ => None,
        });
        let Some((filters, changes)) = totals else { return };
        let is_changed = self.changes.replace(changes) != Some(changes);
        if is_changed {
            (self.total, self.first) = (Measure::default(), None);
            self.tables.clear();
            let query = self.outputs.iter().filter(|(role, _)| *role == Role::Query);
            self.query = query.map(|(_, output)| QueryOutput::new(output)).collect();
        }
        // Files are read from their beginning whatever has changed.
        let is_read_again = is_changed && self.pace == Pace::Whole;
        if self.filters.replace(filters) != Some(filters) || is_read_again {
            (self.of_filter, self.first_of_filter) = (Measure::default(), None);
            self.ends = None;
            self.series = Model::no_series(self.pace);
            self.interfaces.clear();
        }
        for role in roles {
            if let Role::Sent(data) | Role::Received(data) = role {
                self.tables.entry(data).or_default();
            }
        }
    }

    /// Takes rows of an output.
    pub(crate) fn rows(&mut self, output: usize, rows: &Rows) {
        let at = output;
        let Some((role, output)) = self.outputs.get(at) else { return };
        let (role, columns) = (*role, output.schema.columns.clone());
        // Outputs of the query stand there in the order that they have among all.
        let before = self.outputs[..at].iter().filter(|(role, _)| *role == Role::Query).count();
        let of_query = (role == Role::Query && before < self.query.len()).then_some(before);
        for i in 0..rows.len {
            let value = |c: usize| cell(&rows.columns[c], i, &columns[c].ty, &rows.arena);
            let values: Vec<Value> = (0..columns.len()).map(value).collect();
            if let Some(query) = of_query {
                self.query[query].take(values);
                continue;
            }
            // Windows start with their time; what is of the whole input has none.
            let has_windows = self.pace != Pace::Whole || matches!(role, Role::Totals { .. });
            match &values[..] {
                [Value::Time(ts), rest @ ..] if has_windows => self.row(role, Some(*ts), rest),
                rest => self.row(role, None, rest),
            }
        }
    }

    fn row(&mut self, role: Role, ts: Option<i64>, values: &[Value]) {
        if let Role::Names = role {
            if let [Value::Ip(_), Value::Str(name), ..] = values
                && let Part::Ip(address) = Part::from_value(&values[0])
            {
                self.names.learn(address, clean(name));
            }
            return;
        }
        let [keys @ .., packets, bytes] = values else { return };
        let number = |value: &Value| match value {
            Value::Int(n) => u64::try_from(*n).unwrap_or(0),
            _ => 0,
        };
        let (packets, bytes) = (number(packets), number(bytes));
        let at = ts.unwrap_or(0);
        match role {
            Role::Totals { .. } => self.count(at, keys, Point { packets, bytes }),
            Role::Sent(data) => self.entry(data, keys).sent.add(at, packets, bytes),
            Role::Received(data) => self.entry(data, keys).received.add(at, packets, bytes),
            Role::Names | Role::Query => {}
        }
    }

    /// Counts what came by an interface.
    fn count(&mut self, ts: i64, keys: &[Value], point: Point) {
        self.first.get_or_insert(ts);
        self.first_of_filter.get_or_insert(ts);
        self.latest = Some(self.latest.map_or(ts, |latest| latest.max(ts)));
        self.total.add(ts, point.packets, point.bytes);
        self.of_filter.add(ts, point.packets, point.bytes);
        self.series.add(ts, point);
        if let [_, Value::Time(first), Value::Time(last)] = keys {
            let ends = self.ends.unwrap_or((*first, *last));
            self.ends = Some((ends.0.min(*first), ends.1.max(*last)));
        }
        let name = match keys {
            [Value::Str(name), ..] => clean(name),
            _ => return,
        };
        if self.interfaces.len() >= INTERFACES_MAX && !self.interfaces.contains_key(&name) {
            return;
        }
        let series = || Model::no_series(self.pace);
        let interface = self
            .interfaces
            .entry(name)
            .or_insert_with(|| Interface { measure: Measure::default(), series: series() });
        interface.measure.add(ts, point.packets, point.bytes);
        interface.series.add(ts, point);
    }

    fn entry(&mut self, data: Data, keys: &[Value]) -> &mut Entry {
        let over = self.over();
        let entries = self.tables.entry(data).or_default();
        let key: RowKey = keys.iter().map(Part::from_value).collect();
        if entries.0.len() >= KEYS_MAX && !entries.0.contains_key(&key) {
            entries.forget(over);
        }
        entries.0.entry(key).or_default()
    }

    /// The time that rates in tables are of.
    pub(crate) fn over(&self) -> Over {
        self.over_since(self.first)
    }

    /// The time that the rates of the filter are of, and those of interfaces.
    pub(crate) fn over_of_filter(&self) -> Over {
        self.over_since(self.first_of_filter)
    }

    fn over_since(&self, first: Option<i64>) -> Over {
        if self.pace == Pace::Whole {
            let ns = self.ends.map_or(0, |(first, last)| last.saturating_sub(first));
            return Over::All { ns };
        }
        let second = |ts: Option<i64>| ts.unwrap_or(0).div_euclid(SECOND_NS);
        let (first, latest) = (second(first), second(self.latest));
        Over::Last { second: latest, seconds: latest.saturating_sub(first).saturating_add(1) }
    }

    /// The last change that the run has made.
    pub(crate) fn changes(&self) -> Option<u64> {
        self.changes
    }

    /// When the latest window starts.
    pub(crate) fn latest(&self) -> Option<i64> {
        self.latest
    }
}

impl Entries {
    /// Forgets the keys with the least traffic now, and of those the ones with the least so far.
    fn forget(&mut self, over: Over) {
        let weight = |entry: &Entry| {
            let both = entry.sent.rates(over).plus(entry.received.rates(over));
            (both.bits_per_s, both.bytes)
        };
        let mut weights: Vec<_> = self.0.values().map(weight).collect();
        weights.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let Some(least) = weights.get(KEYS_KEPT).copied() else { return };
        let more = |own: (f64, u64)| own.0 > least.0 || own.0 == least.0 && own.1 > least.1;
        // Of those with as little as that, as many as there is room for.
        let mut left = KEYS_KEPT - weights.iter().filter(|own| more(**own)).count();
        self.0.retain(|_, entry| {
            let own = weight(entry);
            let keeps = more(own) || own == least && left > 0;
            left -= usize::from(keeps && own == least);
            keeps
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output, rows};

    const SECOND: i64 = SECOND_NS;

    fn live() -> Model {
        let mut model = Model::new(Pace::Live);
        model.open(&[output("totals-0-0"), output("hosts-sent"), output("hosts-received")]);
        model
    }

    fn host(n: u32) -> Value {
        Value::ip(std::net::Ipv4Addr::from(n).into())
    }

    #[test]
    fn a_change_of_the_table_keeps_the_time_line_and_counts_anew() {
        let mut model = live();
        let eth0 = Value::Str("eth0\x1b".into());
        model.rows(0, &rows("totals-0-0", &[(5 * SECOND, vec![eth0.clone()], 3, 300)]));
        model.rows(1, &rows("hosts-sent", &[(5 * SECOND, vec![host(1)], 3, 300)]));
        assert_eq!((model.total.packets, model.total.bytes), (3, 300));
        assert_eq!(model.tables[&Data::Hosts].0.len(), 1);
        assert!(model.interfaces.contains_key("eth0\u{fffd}"));
        model.open(&[output("totals-0-1"), output("pairs-sent")]);
        assert_eq!((model.total.packets, model.series.points().len()), (0, 1));
        assert!(!model.tables.contains_key(&Data::Hosts));
        assert!(model.tables[&Data::Pairs].0.is_empty());
        model.rows(0, &rows("totals-0-1", &[(5 * SECOND, vec![eth0], 1, 50)]));
        assert_eq!(model.series.points().next().expect("one").bytes, 350);
        // The rates above the tables go on.
        assert_eq!((model.of_filter.bytes, model.total.bytes), (350, 50));
        assert_eq!(model.interfaces["eth0\u{fffd}"].measure.bytes, 350);
        // A filter begins everything anew.
        model.open(&[output("totals-1-2"), output("pairs-sent")]);
        assert_eq!((model.series.points().len(), model.interfaces.len()), (0, 0));
        assert_eq!(model.of_filter, Measure::default());
    }

    #[test]
    fn files_that_are_read_again_are_counted_once() {
        let mut model = Model::new(Pace::Whole);
        for changes in 0..3 {
            let name = format!("totals-0-{changes}");
            model.open(&[output(&name), output("hosts-sent"), output("hosts-received")]);
            model.rows(0, &rows(&name, &[(SECOND, vec![Value::Absent], 3, 300)]));
            assert_eq!((model.of_filter.bytes, model.total.bytes), (300, 300));
            assert_eq!(model.series.points().map(|point| point.bytes).sum::<u64>(), 300);
        }
    }

    #[test]
    fn rates_of_a_capture_are_of_the_time_between_its_packets() {
        let mut model = Model::new(Pace::Whole);
        let counted = |first: i64, last: i64| {
            [Value::Str("eth0".into()), Value::Time(first), Value::Time(last)]
        };
        // Eleven packets, one each 20 ms, over three windows of 100 ms.
        let ms = SECOND / 1000;
        for (at, first, last, packets) in [(0, 50, 90, 3), (100, 110, 190, 5), (200, 210, 250, 3)] {
            let keys = counted(first * ms, last * ms);
            model.count(at * ms, &keys, Point { packets, bytes: packets * 1000 });
        }
        let rates = model.total.rates(model.over());
        assert_eq!((rates.packets_per_s, rates.bits_per_s), (55.0, 440_000.0));
        // A clock that stepped back.
        model.count(0, &counted(0, 10 * ms), Point { packets: 1, bytes: 1000 });
        assert_eq!(model.over(), Over::All { ns: 250 * ms });
    }

    #[test]
    fn a_time_that_was_typed_is_a_key() {
        let mut model = Model::new(Pace::Whole);
        let mut keys = output("keys-sent");
        let mut minutes = Rows::new(&keys.schema);
        keys.schema.columns[0].name = "minute".to_owned();
        for (i, minute) in [0, 60 * SECOND].into_iter().enumerate() {
            let values = [Value::Time(minute), Value::Int(80), Value::Int(1), Value::Int(60)];
            for (column, value) in minutes.columns.iter_mut().zip(values) {
                weir_engine::rows::set_cell(column, i, &value, &mut minutes.arena);
            }
        }
        minutes.len = 2;
        model.open(&[output("totals-0-0"), keys]);
        model.rows(1, &minutes);
        let keys: Vec<_> = model.tables[&Data::Keys].0.keys().map(Vec::len).collect();
        assert_eq!(keys, [2, 2]);
    }

    #[test]
    fn rows_of_a_query_are_those_of_its_outputs() {
        let text = "let a = packets | project len\n    | print\n\npackets | project sport, dport";
        let query = weir_lang::Query { name: "query", text };
        let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
        let both = weir_plan::together::side_by_side(vec![
            ("totals-0-0".to_owned(), crate::testing::program("totals-0-0")),
            ("query".to_owned(), compiled.expect("compiles").program),
        ]);
        let outputs = Output::of(&both.expect("two"));
        let mut model = Model::new(Pace::Live);
        model.open(&outputs);
        assert_eq!(model.query.len(), 2);
        for (at, output) in outputs.iter().enumerate().skip(1) {
            let mut rows = Rows::new(&output.schema);
            for column in &mut rows.columns {
                weir_engine::rows::set_cell(column, 0, &Value::Int(at as i64), &mut rows.arena);
            }
            rows.len = 1;
            model.rows(at, &rows);
        }
        let all: Vec<_> = model.query.iter().map(|of| of.rows[0].values.clone()).collect();
        assert_eq!(all, [vec![Value::Int(1)], vec![Value::Int(2), Value::Int(2)]]);
        assert_eq!(model.query[0].name.as_deref(), Some("a"));
        // Another query begins with no rows.
        model.open(&[output("totals-0-1"), output("query")]);
        assert_eq!((model.query.len(), model.query[0].taken), (1, 0));
    }

    #[test]
    fn keys_are_bounded_and_the_busy_stay() {
        let mut model = live();
        for n in 0..3 * KEYS_MAX as u32 {
            let bytes = if n.is_multiple_of(1000) { 1_000_000 } else { 1 };
            model.rows(1, &rows("hosts-sent", &[(SECOND, vec![host(n)], 1, bytes)]));
        }
        let entries = &model.tables[&Data::Hosts].0;
        assert!(entries.len() <= KEYS_MAX);
        for n in (0..3 * KEYS_MAX as u32).step_by(1000) {
            assert!(entries.contains_key(&vec![Part::from_value(&host(n))]), "{n}");
        }
    }

    #[test]
    fn interfaces_are_bounded() {
        let mut model = live();
        for n in 0..1000 {
            let name = Value::Str(format!("if{n}").into());
            model.rows(0, &rows("totals-0-0", &[(SECOND, vec![name], 1, 1)]));
        }
        assert_eq!((model.interfaces.len(), model.total.packets), (INTERFACES_MAX, 1000));
    }

    #[test]
    fn outputs_of_nobody_and_odd_rows_are_no_panic() {
        let mut model = live();
        model.rows(9, &rows("hosts-sent", &[(0, vec![host(1)], 1, 1)]));
        model.open(&[output("other")]);
        model.rows(0, &rows("other", &[(0, vec![host(1)], 1, 1)]));
        assert!(model.tables[&Data::Hosts].0.is_empty());
    }
}
