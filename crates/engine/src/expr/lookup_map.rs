//! Tables from files, made ready for look-ups.

use super::regs::Regs;
use weir_plan::address;
use weir_plan::table::Table;
use weir_plan::{Type, Value};

/// A table, ready to be asked. Its texts are constants of the chain: what is found is a handle,
/// and nothing is copied.
pub(crate) struct LookupMap {
    pub(super) keys: LookupKeys,
    /// The handle of the text of each key.
    handles: Vec<u64>,
}

/// Keys in ascending order.
pub(super) enum LookupKeys {
    /// Disjoint ranges of addresses: each first and last one.
    Ranges(Vec<u128>, Vec<u128>),
    Words(Vec<u64>),
    Texts(Vec<Box<[u8]>>),
}

impl LookupMap {
    /// The table of keys of a type.
    pub(super) fn new(table: &Table, ty: &Type, regs: &mut Regs) -> LookupMap {
        let text = |n: u32| Value::Str(table.texts[n as usize].clone());
        let mut handle = |n: u32| match regs.constant(&text(n), &Type::Str) {
            Some(raw) => raw as u64,
            None => unreachable!("a text is there"),
        };
        let (keys, numbers): (LookupKeys, Vec<u32>) = match ty {
            Type::Ip => {
                let ranges = ranges(&table.entries);
                let numbers = ranges.iter().map(|r| r.text).collect();
                let firsts = ranges.iter().map(|r| r.first).collect();
                (LookupKeys::Ranges(firsts, ranges.iter().map(|r| r.last).collect()), numbers)
            }
            Type::Str => {
                let bytes = |v: &Value| match v {
                    Value::Str(s) => s.as_bytes().into(),
                    other => unreachable!("{other} as a key of texts"),
                };
                let (keys, numbers) = sorted(&table.entries, bytes);
                (LookupKeys::Texts(keys), numbers)
            }
            _ => {
                let word = |v: &Value| match v {
                    Value::Int(n) => *n as u64,
                    Value::Mac(m) => *m,
                    other => unreachable!("{other} as a key of words"),
                };
                let (keys, numbers) = sorted(&table.entries, word);
                (LookupKeys::Words(keys), numbers)
            }
        };
        LookupMap { keys, handles: numbers.into_iter().map(&mut handle).collect() }
    }

    /// The handle of the text of a key, by its place among the keys.
    pub(super) fn handle(&self, at: Option<usize>) -> Option<u64> {
        at.map(|at| self.handles[at])
    }
}

/// Keys in order, each with the number of its text.
fn sorted<K: Ord>(entries: &[(Value, u32)], key: impl Fn(&Value) -> K) -> (Vec<K>, Vec<u32>) {
    let mut all: Vec<(K, u32)> = entries.iter().map(|(v, n)| (key(v), *n)).collect();
    all.sort_unstable();
    all.into_iter().unzip()
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Range {
    first: u128,
    last: u128,
    text: u32,
}

/// The texts of addresses where the smallest network counts, as disjoint ranges.
fn ranges(entries: &[(Value, u32)]) -> Vec<Range> {
    let mut nets: Vec<Range> = entries
        .iter()
        .flat_map(|(key, text)| {
            let network = match key {
                Value::Net(net, len) => (*net, *len),
                Value::Ip(a) => (*a, 128),
                other => unreachable!("{other} as a key of addresses"),
            };
            let range = |(first, last)| Range { first, last, text: *text };
            address::ranges(network).map(range)
        })
        .collect();
    // Larger networks before those within them. A host's own /32 means the same as its address.
    nets.sort_by(|a, b| a.first.cmp(&b.first).then(b.last.cmp(&a.last)));
    let mut out: Vec<Range> = Vec::new();
    // Networks around the place that was reached; none but the first address of all is not behind.
    let (mut open, mut at): (Vec<Range>, Option<u128>) = (Vec::new(), Some(0));
    let mut put = |first: u128, last: u128, text: u32| match out.last_mut() {
        Some(r) if r.text == text && r.last.checked_add(1) == Some(first) => r.last = last,
        _ => out.push(Range { first, last, text }),
    };
    let mut close = |net: Range, at: &mut Option<u128>| {
        if let Some(first) = at.filter(|first| *first <= net.last) {
            put(first, net.last, net.text);
            *at = net.last.checked_add(1);
        }
    };
    for net in nets {
        while let Some(inner) = open.pop_if(|inner| inner.last < net.first) {
            close(inner, &mut at);
        }
        if let (Some(outer), Some(first)) = (open.last(), at)
            && first < net.first
        {
            close(Range { last: net.first - 1, ..*outer }, &mut at);
        }
        at = Some(net.first);
        open.push(net);
    }
    while let Some(inner) = open.pop() {
        close(inner, &mut at);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_plan::address::mask;

    proptest! {
        #[test]
        fn ranges_say_what_the_smallest_network_says(
            nets in proptest::collection::btree_map((0u128..16, 122u8..129), 0u32..3, 0..12),
            high: bool,
        ) {
            let top = |a: u128| if high { a | !63 } else { a };
            let mut entries = std::collections::BTreeMap::new();
            for ((a, len), text) in nets {
                // Networks within the last 64 addresses, or the first.
                let net = top(a << 2) & mask(len);
                let key = if len == 128 { Value::Ip(net) } else { Value::Net(net, len) };
                entries.insert(key, text);
            }
            let entries: Vec<_> = entries.into_iter().collect();
            let found = ranges(&entries);
            let texts = ["0", "1", "2"].map(Box::from).to_vec();
            let table = Table { file: "f".into(), column: "c".into(), entries, texts };
            for a in (0..64).map(top) {
                let at = found.iter().find(|r| (r.first..=r.last).contains(&a));
                let text = at.map(|r| r.text.to_string());
                prop_assert_eq!(text.as_deref(), table.find(&Value::Ip(a)), "{:x}", a);
            }
            prop_assert!(found.windows(2).all(|w| w[0].last < w[1].first), "{:?}", found);
        }
    }
}
