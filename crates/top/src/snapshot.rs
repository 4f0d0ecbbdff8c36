//! What the screen shows at one moment.

use crate::key::{self, Part, RowKey};
use crate::limits::{NAMED_MAX, ROWS_SHOWN};
use crate::measure::{Over, Rates};
use crate::model::{Entry, Model};
use crate::query::Pace;
use crate::series::Series;
use crate::table::{Column, Data, Table};
use std::collections::BTreeMap;

/// A row of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// What it is about.
    pub key: RowKey,
    /// The key, as people read it.
    pub label: String,
    /// The name of the host, if one was seen.
    pub name: Option<String>,
    /// Sent, or in both directions.
    pub sent: Rates,
    /// Received, where that is counted apart.
    pub received: Rates,
}

/// The traffic of an interface.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceRow {
    /// Its name.
    pub name: String,
    /// What it comes to.
    pub rates: Rates,
    /// Over time.
    pub series: Series,
}

/// What the screen shows at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The table.
    pub table: Table,
    /// How time goes on.
    pub pace: Pace,
    /// When the latest window starts.
    pub now: Option<i64>,
    /// All packets that meet the filter.
    pub total: Rates,
    /// The rows, in the order that was asked for.
    pub rows: Vec<Row>,
    /// What is in none of the rows, sent and received.
    pub other: (Rates, Rates),
    /// Traffic over time.
    pub series: Series,
    /// The interfaces that said who they are.
    pub interfaces: Vec<InterfaceRow>,
}

/// How rows are ordered.
#[derive(Clone, Debug)]
pub(crate) enum RowOrder {
    /// By a column, the largest first or last.
    By(Column, bool),
    /// As they were; no others are shown.
    Kept(Vec<RowKey>),
}

impl Row {
    /// What a column has.
    pub(crate) fn value(&self, column: Column) -> f64 {
        match column {
            Column::Sent => self.sent.bits_per_s,
            Column::Received => self.received.bits_per_s,
            Column::PacketsRate => self.sent.packets_per_s,
            Column::Share | Column::Bytes => self.sent.bytes as f64,
            Column::BytesReceived => self.received.bytes as f64,
            Column::Packets => self.sent.packets as f64,
        }
    }
}

impl Snapshot {
    /// Copies what is to be shown.
    pub(crate) fn of(model: &Model, table: Table, order: &RowOrder) -> Snapshot {
        let over = model.over();
        let mut rows = match table {
            Table::Names => names(model, over),
            table => entries(model, table.data(), over),
        };
        match order {
            RowOrder::By(column, descending) => sort(&mut rows, *column, *descending),
            RowOrder::Kept(keys) => rows = kept(rows, keys),
        }
        rows.truncate(ROWS_SHOWN);
        if table != Table::Names {
            rows.iter_mut().for_each(|row| row.label = key::label(table.data(), &row.key));
        }
        let total = model.total.rates(over);
        let sum =
            |side: fn(&Row) -> Rates| rows.iter().map(side).fold(Rates::default(), Rates::plus);
        let received = match table.data().has_directions() {
            true => total.minus(sum(|row| row.received)),
            false => Rates::default(),
        };
        let interface = |(name, interface): (&String, &crate::model::Interface)| InterfaceRow {
            name: name.clone(),
            rates: interface.measure.rates(over),
            series: interface.series.clone(),
        };
        Snapshot {
            table,
            pace: model.pace,
            now: model.latest(),
            total,
            other: (total.minus(sum(|row| row.sent)), received),
            rows,
            series: model.series.clone(),
            interfaces: model.interfaces.iter().map(interface).collect(),
        }
    }

    /// The filter that picks the packets of a row.
    pub(crate) fn filter(&self, model: &Model, row: &Row) -> String {
        match (self.table, &row.key[..]) {
            (Table::Names, [Part::Text(name)]) => {
                let addresses: Vec<Part> =
                    model.names.addresses(name).take(NAMED_MAX).map(Part::Ip).collect();
                key::hosts(&addresses)
            }
            (table, _) => key::filter(table.data(), &row.key),
        }
    }
}

fn entries(model: &Model, data: Data, over: Over) -> Vec<Row> {
    let Some(entries) = model.tables.get(&data) else { return Vec::new() };
    let row = |(key, entry): (&RowKey, &Entry)| {
        let name = match (data, &key[..]) {
            (Data::Hosts, [Part::Ip(address)]) => model.names.get(*address).map(str::to_owned),
            _ => None,
        };
        let (sent, received) = (entry.sent.rates(over), entry.received.rates(over));
        Row { key: key.clone(), label: String::new(), name, sent, received }
    };
    entries.0.iter().map(row).collect()
}

/// The hosts whose names are known, by name.
fn names(model: &Model, over: Over) -> Vec<Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for host in entries(model, Data::Hosts, over) {
        let Some(name) = host.name else { continue };
        let none = || Row {
            key: vec![Part::Text(name.clone())],
            label: name.clone(),
            name: None,
            sent: Rates::default(),
            received: Rates::default(),
        };
        let row = rows.entry(name.clone()).or_insert_with(none);
        (row.sent, row.received) = (row.sent.plus(host.sent), row.received.plus(host.received));
    }
    rows.into_values().collect()
}

/// Sorts rows by a column; equal ones by what they had so far, then by key.
fn sort(rows: &mut [Row], column: Column, descending: bool) {
    rows.sort_by(|a, b| {
        let by = b.value(column).total_cmp(&a.value(column));
        let by = if descending { by } else { by.reverse() };
        by.then_with(|| b.value(Column::Bytes).total_cmp(&a.value(Column::Bytes)))
            .then_with(|| a.key.cmp(&b.key))
    });
}

/// The rows of these keys, in their order; one that was forgotten stays, with nothing.
fn kept(rows: Vec<Row>, keys: &[RowKey]) -> Vec<Row> {
    let mut by_key: BTreeMap<RowKey, Row> =
        rows.into_iter().map(|row| (row.key.clone(), row)).collect();
    let nothing = |key: &RowKey| {
        let label = match &key[..] {
            [Part::Text(name)] => name.clone(),
            _ => String::new(),
        };
        let (sent, received) = (Rates::default(), Rates::default());
        Row { key: key.clone(), label, name: None, sent, received }
    };
    keys.iter().map(|key| by_key.remove(key).unwrap_or_else(|| nothing(key))).collect()
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
        let filter = named.filter(&model, &named.rows[0]);
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
