//! Alerts that are not reported: a list that may change while a run goes on.
//!
//! A list may be long, so entries are found by hashes: those with values by the values of their
//! columns, those with nothing but networks by the first bits of an address. Entries that are found
//! so are compared exactly then.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_plan::suppress::network_mask;
use weir_plan::{SuppressedIf, Suppression, Value};

/// The list of a run; clones are of the same list.
#[derive(Clone, Default, Debug)]
pub struct SuppressionList {
    shared: Arc<CurrentIndex>,
}

#[derive(Default, Debug)]
struct CurrentIndex {
    /// Larger after each change.
    version: AtomicU64,
    index: Mutex<Arc<Index>>,
}

impl SuppressionList {
    /// A list of these entries.
    pub fn new(entries: Vec<Suppression>) -> SuppressionList {
        let list = SuppressionList::default();
        list.set(entries);
        list
    }

    /// Puts others in place of all entries. Rows that come from then on follow them.
    pub fn set(&self, entries: Vec<Suppression>) {
        let index = Arc::new(Index::new(entries));
        *self.shared.index.lock() = index;
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    fn index(&self) -> Arc<Index> {
        Arc::clone(&self.shared.index.lock())
    }
}

/// Entries, and how they are found.
#[derive(Default, Debug)]
struct Index {
    entries: Vec<Suppression>,
    /// By the name of the rule, `None` for entries of all rules.
    rules: HashMap<Option<String>, Vec<Probe>>,
}

/// Entries of a rule that are found in one way.
#[derive(Debug)]
struct Probe {
    by: By,
    /// By what is looked for, the numbers of the entries.
    found: HashMap<String, Vec<u32>>,
}

/// The part of a row that entries are looked up by.
#[derive(Clone, PartialEq, Eq, Debug)]
enum By {
    /// The values of these columns, none for any row.
    Values(BTreeSet<String>),
    /// So many bits of the address in this column.
    Network(String, u8),
}

impl Index {
    fn new(entries: Vec<Suppression>) -> Index {
        let mut index = Index { entries, rules: HashMap::new() };
        // Where each way of a rule stands among its probes.
        let mut ways: HashMap<(Option<String>, String), usize> = HashMap::new();
        for (entry, number) in index.entries.iter().zip(0..) {
            let (by, what) = way(entry);
            let probes = index.rules.entry(entry.rule.clone()).or_default();
            let at = *ways.entry((entry.rule.clone(), format!("{by:?}"))).or_insert_with(|| {
                probes.push(Probe { by, found: HashMap::new() });
                probes.len() - 1
            });
            probes[at].found.entry(what).or_default().push(number);
        }
        index
    }
}

/// How an entry is found: by what, and what that is.
fn way(entry: &Suppression) -> (By, String) {
    let mut values: Vec<&SuppressedIf> =
        entry.conditions.iter().filter(|c| c.network().is_none()).collect();
    values.sort_by(|a, b| a.column.cmp(&b.column));
    values.dedup_by(|a, b| a.column == b.column);
    let network = entry.conditions.iter().find_map(|c| Some((&c.column, c.network()?)));
    match (&values[..], network) {
        ([], Some((column, (bits, length)))) => {
            (By::Network(column.clone(), length), bits.to_string())
        }
        _ => {
            let columns = values.iter().map(|c| c.column.clone()).collect();
            (By::Values(columns), values.iter().map(|c| part(&c.value)).collect())
        }
    }
}

/// A value as a part of what is looked for: the same for all that compare as equal, and for some
/// that do not.
fn part(text: &str) -> String {
    let plain = match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<IpAddr>()) {
        (Ok(n), ..) => n.to_string(),
        (_, Ok(x), _) => (x + 0.0).to_string(),
        (.., Ok(address)) => Value::ip(address).to_string(),
        _ => text.to_ascii_lowercase(),
    };
    format!("{plain}\u{1f}")
}

/// The entries that an alert looks up, for rows of its columns.
#[derive(Debug)]
pub(crate) struct Suppressor {
    list: SuppressionList,
    version: u64,
    index: Arc<Index>,
    rule: String,
    columns: Vec<String>,
    /// The rule and number of each probe, and where its columns stand.
    probes: Vec<(Option<String>, usize, Vec<usize>)>,
}

impl Suppressor {
    /// The entries of a list for the rows of a rule, which have these columns.
    pub(crate) fn new(list: &SuppressionList, rule: &str, columns: Vec<String>) -> Suppressor {
        let mut new = Suppressor {
            list: list.clone(),
            version: u64::MAX,
            index: Arc::default(),
            rule: rule.to_owned(),
            columns,
            probes: Vec::new(),
        };
        new.refresh();
        new
    }

    /// Takes over what changed in the list.
    pub(crate) fn refresh(&mut self) {
        let version = self.list.version();
        if version == self.version {
            return;
        }
        (self.version, self.index) = (version, self.list.index());
        self.probes.clear();
        let place = |name: &String| self.columns.iter().position(|column| column == name);
        for rule in [Some(self.rule.clone()), None] {
            let probes = self.index.rules.get(&rule).into_iter().flatten().enumerate();
            for (number, probe) in probes {
                let columns: Option<Vec<usize>> = match &probe.by {
                    By::Values(names) => names.iter().map(place).collect(),
                    By::Network(name, _) => place(name).map(|at| vec![at]),
                };
                self.probes.extend(columns.map(|columns| (rule.clone(), number, columns)));
            }
        }
    }

    /// Whether an alert with these values is not reported at this time.
    pub(crate) fn suppresses(&self, cells: &[Value], time: i64) -> bool {
        self.probes.iter().any(|(rule, number, columns)| {
            let probe = &self.index.rules[rule][*number];
            let what: String = match (&probe.by, &columns[..]) {
                (By::Network(_, length), [at]) => match &cells[*at] {
                    Value::Ip(bits) => (bits & network_mask(*length)).to_string(),
                    _ => return false,
                },
                _ => columns.iter().map(|at| cell_part(&cells[*at])).collect(),
            };
            let found = probe.found.get(&what).into_iter().flatten();
            found.map(|at| &self.index.entries[*at as usize]).any(|e| self.holds(e, cells, time))
        })
    }

    /// Whether all that an entry says is so.
    fn holds(&self, entry: &Suppression, cells: &[Value], time: i64) -> bool {
        let holds = |condition: &SuppressedIf| {
            let at = self.columns.iter().position(|column| *column == condition.column);
            at.is_some_and(|at| condition.holds(&cells[at]))
        };
        entry.until.is_none_or(|until| time < until) && entry.conditions.iter().all(holds)
    }
}

/// A cell as a part of what is looked for.
fn cell_part(cell: &Value) -> String {
    match cell {
        Value::Str(text) => part(text),
        cell => part(&cell.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rule: &str, conditions: &[(&str, &str)], until: Option<i64>) -> Suppression {
        let condition = |(column, value): &(&str, &str)| SuppressedIf {
            column: (*column).to_owned(),
            value: (*value).to_owned(),
            quoted: false,
        };
        let rule = (rule != "*").then(|| rule.to_owned());
        Suppression { rule, conditions: conditions.iter().map(condition).collect(), until }
    }

    fn suppressor(list: &SuppressionList) -> Suppressor {
        Suppressor::new(list, "rule", ["server", "port", "name"].map(str::to_owned).to_vec())
    }

    fn row(server: [u8; 4], port: i64, name: &str) -> Vec<Value> {
        vec![Value::ip(server.into()), Value::Int(port), Value::Str(name.into())]
    }

    #[test]
    fn entries_are_found_by_values_and_by_networks() {
        let check = |conditions: &[(&str, &str)], row: Vec<Value>, expected: bool| {
            for rule in ["rule", "*"] {
                let list = SuppressionList::new(vec![entry(rule, conditions, Some(10))]);
                let list = suppressor(&list);
                assert_eq!(list.suppresses(&row, 9), expected, "{conditions:?} {row:?}");
                assert!(!list.suppresses(&row, 10), "until says when it is over");
            }
            let other = SuppressionList::new(vec![entry("other", conditions, None)]);
            assert!(!suppressor(&other).suppresses(&row, 0));
        };
        let one = || row([192, 0, 2, 1], 80, "0x1E");
        check(&[], one(), true);
        check(&[("server", "192.0.2.1")], one(), true);
        check(&[("server", "192.0.2.1"), ("port", "080")], one(), true);
        check(&[("server", "::ffff:192.0.2.1")], one(), false);
        check(&[("server", "192.0.2.1"), ("port", "81")], one(), false);
        check(&[("server", "192.0.2.0/24")], one(), true);
        check(&[("server", "192.0.2.128/25")], one(), false);
        check(&[("port", "80"), ("server", "192.0.0.0/16")], one(), true);
        check(&[("server", "192.0.0.0/16"), ("server", "192.0.2.0/30")], one(), true);
        check(&[("server", "192.0.2.1"), ("server", "192.0.2.2")], one(), false);
        check(&[("name", "0x1E")], one(), true);
        check(&[("name", "0X1e")], one(), false);
        check(&[("client", "192.0.2.1")], one(), false);
        check(&[("name", "1e2")], row([1, 1, 1, 1], 1, "100"), false);
        check(&[("name", "100")], row([1, 1, 1, 1], 1, "100"), true);
    }

    #[test]
    fn a_list_may_change_and_be_long() {
        let list = SuppressionList::default();
        let mut mine = suppressor(&list);
        assert!(!mine.suppresses(&row([10, 0, 0, 1], 1, ""), 0));
        let server = |n: u32| std::net::Ipv4Addr::from(0x0a00_0000 + n);
        let entries = (0..20_000u32).map(|n| {
            let address = server(n).to_string();
            match n % 2 {
                0 => entry("rule", &[("server", &address)], None),
                _ => entry("*", &[("server", &format!("{address}/32"))], None),
            }
        });
        list.set(entries.collect());
        mine.refresh();
        assert_eq!(mine.probes.len(), 2);
        for n in [0, 1, 19_998, 19_999, 20_000] {
            let row = row(server(n).octets(), 1, "");
            assert_eq!(mine.suppresses(&row, 0), n < 20_000, "{n}");
        }
        list.set(Vec::new());
        mine.refresh();
        assert!(!mine.suppresses(&row([10, 0, 0, 1], 1, ""), 0));
    }
}
