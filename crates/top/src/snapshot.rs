//! The content of the screen at one moment.

use crate::key::{self, Part, RowKey};
use crate::limits::{NAMED_MAX, ROWS_SHOWN};
use crate::measure::{Over, Rates};
use crate::model::{Entry, Model};
use crate::number::Times;
use crate::queried::{QueryOutput, QueryRow, cell_text};
use crate::query::Pace;
use crate::series::Series;
use crate::table::{Column, Data, Table};
use crate::typed_keys;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A row of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The key that it is about.
    pub key: RowKey,
    /// The key, as people read it; empty for a row of a query, whose texts are made when it is
    /// drawn.
    pub label: String,
    /// The name of the host, if one was seen.
    pub name: Option<String>,
    /// Sent, or in both directions.
    pub sent: Rates,
    /// Received, where that is counted apart.
    pub received: Rates,
    /// The row itself, of a query of the library.
    pub of_query: Option<Arc<QueryRow>>,
}

/// The output of a query whose rows are shown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ShownOutput {
    /// The names of all outputs.
    pub outputs: Vec<Option<String>>,
    /// The number of this one.
    pub at: usize,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The numbers of the columns in the order in which they are shown.
    pub order: Vec<usize>,
    /// How many rows have come.
    pub taken: u64,
}

/// The traffic of an interface.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceRow {
    /// Its name.
    pub name: String,
    /// Its packets and bytes, so far and by second.
    pub rates: Rates,
    /// Over time.
    pub series: Series,
}

/// The content of the screen at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The table.
    pub table: Table,
    /// How time goes on.
    pub pace: Pace,
    /// When the latest window starts.
    pub now: Option<i64>,
    /// All packets that meet the filter, since the table or the filter changed.
    pub total: Rates,
    /// The same since the filter changed.
    pub of_filter: Rates,
    /// The rows, in the order that was asked for.
    pub rows: Vec<Row>,
    /// The traffic in none of the rows, sent and received.
    pub other: (Rates, Rates),
    /// Traffic over time.
    pub series: Series,
    /// The interfaces that said who they are.
    pub interfaces: Vec<InterfaceRow>,
    /// The output of the rows, where they are those of a query.
    pub output: ShownOutput,
    /// [`crate::Setup::changes`] of what was counted.
    pub changes: Option<u64>,
}

/// How rows are ordered.
#[derive(Clone, Debug)]
pub(crate) enum RowOrder {
    /// By a column, the largest first or last.
    By(Column, bool),
    /// As they were; no others are shown.
    Kept(Vec<RowKey>),
    /// The rows of a query.
    OfQuery(QueryOrder),
    /// The rows of an output of a query that were shown, also where later ones have pushed them
    /// out.
    KeptOfQuery(usize, Vec<Arc<QueryRow>>),
}

/// Which rows of a query are shown, and how they are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueryOrder {
    /// The number of the output.
    pub(crate) output: usize,
    /// The place of the column that they are sorted by, as they are shown; `None`: the latest
    /// first.
    pub(crate) column: Option<usize>,
    /// Whether the largest or latest is the first.
    pub(crate) descending: bool,
}

impl Row {
    /// The value of a column.
    pub(crate) fn value(&self, column: Column) -> f64 {
        value(column, &self.sent, &self.received)
    }
}

/// The value of a column, from what was sent and received.
fn value(column: Column, sent: &Rates, received: &Rates) -> f64 {
    match column {
        Column::Sent => sent.bits_per_s,
        Column::Received => received.bits_per_s,
        Column::PacketsRate => sent.packets_per_s,
        Column::Share | Column::Bytes => sent.bytes as f64,
        Column::BytesReceived => received.bytes as f64,
        Column::Packets => sent.packets as f64,
    }
}

impl Snapshot {
    /// Copies what is to be shown.
    pub(crate) fn of(model: &Model, table: Table, order: &RowOrder) -> Snapshot {
        let over = model.over();
        let mut output = ShownOutput::default();
        let rows: Vec<Row> = match (table, order) {
            (Table::Query, order) => {
                let rows;
                (output, rows) = query_rows(&model.query, order);
                rows
            }
            (_, RowOrder::OfQuery(_) | RowOrder::KeptOfQuery(..)) => Vec::new(),
            (Table::Names, _) => names(model, over, order),
            (table, RowOrder::By(column, descending)) => {
                let mut all: Vec<Group<'_>> = groups(model, table.data(), over).collect();
                all.sort_by(|a, b| a.compare(b, *column, *descending));
                all.truncate(ROWS_SHOWN);
                all.iter().map(|group| group.row(table.data())).collect()
            }
            (table, RowOrder::Kept(keys)) => {
                let entries = model.tables.get(&table.data());
                let group = |key| {
                    let entry = entries.and_then(|entries| entries.0.get(key));
                    Group::new(
                        model,
                        table.data(),
                        (key, &entry.copied().unwrap_or_default()),
                        over,
                    )
                };
                keys.iter().map(|key| group(key).row(table.data())).collect()
            }
        };
        let total = model.total.rates(over);
        let sum =
            |side: fn(&Row) -> Rates| rows.iter().map(side).fold(Rates::default(), Rates::plus);
        let received = match table.data().has_directions() {
            true => total.minus(sum(|row| row.received)),
            false => Rates::default(),
        };
        let interface = |(name, interface): (&String, &crate::model::Interface)| InterfaceRow {
            name: name.clone(),
            rates: interface.measure.rates(model.over_of_filter()),
            series: interface.series.clone(),
        };
        Snapshot {
            table,
            pace: model.pace,
            now: model.latest(),
            total,
            of_filter: model.of_filter.rates(model.over_of_filter()),
            other: (total.minus(sum(|row| row.sent)), received),
            rows,
            series: model.series.clone(),
            interfaces: model.interfaces.iter().map(interface).collect(),
            output,
            changes: model.changes(),
        }
    }

    /// A row on one line.
    pub(crate) fn label(&self, row: &Row, times: Times) -> String {
        let Some(of_query) = &row.of_query else { return row.label.clone() };
        let values = self.output.order.iter().filter_map(|at| of_query.values.get(*at));
        values.map(|value| cell_text(value, times)).collect::<Vec<_>>().join("  ")
    }

    /// The filter that picks the packets of a row; `keys` are those that somebody typed. `None` if
    /// no condition says it.
    pub(crate) fn filter(&self, model: &Model, row: &Row, keys: &str) -> Option<String> {
        match (self.table, &row.key[..]) {
            (Table::Keys, _) => typed_keys::condition(keys, &row.key),
            (Table::Names, [Part::Text(name)]) => {
                let addresses: Vec<Part> =
                    model.names.addresses(name).take(NAMED_MAX).map(Part::Ip).collect();
                Some(key::hosts(&addresses))
            }
            (table, _) => Some(key::filter(table.data(), &row.key)),
        }
    }
}

impl ShownOutput {
    fn of(query: &[QueryOutput], at: usize) -> ShownOutput {
        let outputs = query.iter().map(|output| output.name.clone()).collect();
        let QueryOutput { columns, shown, taken, .. } = &query[at];
        ShownOutput { outputs, at, columns: columns.clone(), order: shown.clone(), taken: *taken }
    }
}

/// The rows of an output of a query, and what they are of. Their keys are the number of the output,
/// and that of the row.
fn query_rows(query: &[QueryOutput], order: &RowOrder) -> (ShownOutput, Vec<Row>) {
    let at = match order {
        RowOrder::OfQuery(order) => order.output,
        RowOrder::KeptOfQuery(at, _) => *at,
        RowOrder::By(..) | RowOrder::Kept(_) => 0,
    };
    let Some(output) = query.get(at) else { return (ShownOutput::default(), Vec::new()) };
    let mut rows: Vec<&Arc<QueryRow>> = output.rows.iter().collect();
    match order {
        RowOrder::KeptOfQuery(_, kept) => rows = kept.iter().collect(),
        RowOrder::OfQuery(QueryOrder { column, descending, .. }) => {
            if *descending {
                rows.reverse();
            }
            if let Some(column) = column.map(|at| output.shown.get(at).copied().unwrap_or(at)) {
                rows.sort_by(|a, b| {
                    let by = a.values.get(column).cmp(&b.values.get(column));
                    if *descending { by.reverse() } else { by }
                });
            }
        }
        RowOrder::By(..) | RowOrder::Kept(_) => {}
    }
    let rows = rows.into_iter().map(|row| query_row(row, at)).collect();
    (ShownOutput::of(query, at), rows)
}

fn query_row(row: &Arc<QueryRow>, at: usize) -> Row {
    Row {
        key: vec![Part::Int(at as i64), Part::Int(row.number as i64)],
        label: String::new(),
        name: None,
        sent: Rates::default(),
        received: Rates::default(),
        of_query: Some(Arc::clone(row)),
    }
}

/// A key and what it has, before it is known whether it is shown.
struct Group<'a> {
    key: &'a RowKey,
    name: Option<&'a str>,
    sent: Rates,
    received: Rates,
}

impl<'a> Group<'a> {
    fn new(model: &'a Model, data: Data, of: (&'a RowKey, &Entry), over: Over) -> Group<'a> {
        let (key, entry) = of;
        let name = match (data, &key[..]) {
            (Data::Hosts, [Part::Ip(address)]) => model.names.get(*address),
            _ => None,
        };
        Group { key, name, sent: entry.sent.rates(over), received: entry.received.rates(over) }
    }

    /// By a column; of equal ones first what had more so far, then by key.
    fn compare(&self, other: &Group<'_>, column: Column, descending: bool) -> Ordering {
        let value = |group: &Group<'_>, column| value(column, &group.sent, &group.received);
        let by = value(other, column).total_cmp(&value(self, column));
        let by = if descending { by } else { by.reverse() };
        by.then_with(|| value(other, Column::Bytes).total_cmp(&value(self, Column::Bytes)))
            .then_with(|| self.key.cmp(other.key))
    }

    fn row(&self, data: Data) -> Row {
        Row {
            key: self.key.clone(),
            label: match (data, &self.key[..]) {
                (_, [Part::Text(name)]) => crate::clean(name),
                (data, _) => key::label(data, self.key),
            },
            name: self.name.map(str::to_owned),
            sent: self.sent,
            received: self.received,
            of_query: None,
        }
    }
}

/// The traffic of each key.
fn groups(model: &Model, data: Data, over: Over) -> impl Iterator<Item = Group<'_>> {
    let entries = model.tables.get(&data).into_iter().flat_map(|entries| &entries.0);
    entries.map(move |of| Group::new(model, data, of, over))
}

/// The hosts whose names are known, by name.
fn names(model: &Model, over: Over, order: &RowOrder) -> Vec<Row> {
    let mut sums: BTreeMap<&str, (Rates, Rates)> = BTreeMap::new();
    for host in groups(model, Data::Hosts, over) {
        let Some(name) = host.name else { continue };
        let (sent, received) = sums.entry(name).or_default();
        (*sent, *received) = (sent.plus(host.sent), received.plus(host.received));
    }
    let key = |name: &str| vec![Part::Text(name.to_owned())];
    let keys: Vec<RowKey> = match order {
        RowOrder::Kept(keys) => keys.clone(),
        _ => sums.keys().map(|name| key(name)).collect(),
    };
    let group = |key| {
        let name: &RowKey = key;
        let sum = match &name[..] {
            [Part::Text(name)] => sums.get(name.as_str()).copied(),
            _ => None,
        };
        let (sent, received) = sum.unwrap_or_default();
        Group { key, name: None, sent, received }
    };
    let mut all: Vec<Group<'_>> = keys.iter().map(group).collect();
    if let RowOrder::By(column, descending) = order {
        all.sort_by(|a, b| a.compare(b, *column, *descending));
    }
    all.truncate(ROWS_SHOWN);
    all.iter().map(|group| group.row(Data::Hosts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::SECOND_NS;
    use crate::model::SharedModel;
    use crate::testing::{output, rows};
    use weir_plan::Value;

    const ORDER: RowOrder = RowOrder::By(Column::Sent, true);

    fn host(n: u32) -> Value {
        Value::ip(std::net::Ipv4Addr::from(n).into())
    }

    fn filled() -> SharedModel {
        let shared = SharedModel::new(Pace::Live);
        let mut model = shared.lock();
        model.open(&[output("totals-0-0"), output("hosts-sent"), output("hosts-received")]);
        let none = Value::Absent;
        let at = 9 * SECOND_NS;
        model.rows(0, &rows("totals-0-0", &[(at, vec![none], 10, 1000)]));
        let sent = [(at, vec![host(1)], 6, 600), (at, vec![host(2)], 3, 300)];
        model.rows(1, &rows("hosts-sent", &sent));
        model.rows(2, &rows("hosts-received", &[(at, vec![host(2)], 7, 700)]));
        model.names.learn("0.0.0.2".parse().expect("an address"), "b.test".to_owned());
        drop(model);
        shared
    }

    #[test]
    fn rows_and_other_are_the_total() {
        let shared = filled();
        let model = shared.lock();
        let shown = Snapshot::of(&model, Table::Hosts, &ORDER);
        let labels: Vec<_> = shown.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["0.0.0.1", "0.0.0.2"]);
        assert_eq!((shown.other.0.bytes, shown.other.1.bytes), (100, 300));
        assert_eq!(shown.total.bits_per_s, 8000.0);
        assert_eq!(shown.rows[1].name.as_deref(), Some("b.test"));
        let named = Snapshot::of(&model, Table::Names, &ORDER);
        assert_eq!(named.rows.len(), 1);
        assert_eq!((named.other.0.bytes, named.other.1.bytes), (700, 300));
        let filter = named.filter(&model, &named.rows[0], "").expect("an address");
        assert_eq!(filter, "ip.src == 0.0.0.2 or ip.dst == 0.0.0.2");
    }

    #[test]
    fn rows_keep_still_in_the_order_that_they_had() {
        let shared = filled();
        let key = |n: u32| vec![Part::from_value(&host(n))];
        let order = RowOrder::Kept(vec![key(2), key(9), key(1)]);
        let shown = Snapshot::of(&shared.lock(), Table::Hosts, &order);
        let labels: Vec<_> = shown.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["0.0.0.2", "0.0.0.9", "0.0.0.1"]);
        // One that came later counts as other.
        let order = RowOrder::Kept(vec![key(1)]);
        let shown = Snapshot::of(&shared.lock(), Table::Hosts, &order);
        assert_eq!(shown.other.0.bytes, 400);
    }

    #[test]
    fn columns_sort_both_ways() {
        let shared = filled();
        let order = RowOrder::By(Column::Received, true);
        let first =
            |order| Snapshot::of(&shared.lock(), Table::Hosts, &order).rows[0].label.clone();
        assert_eq!(first(order), "0.0.0.2");
        assert_eq!(first(RowOrder::By(Column::Received, false)), "0.0.0.1");
    }
}
