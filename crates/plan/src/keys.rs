//! Which fields a key determines, and the largest common flow key of several keys.
//!
//! Rows with equal keys have equal values in every field that the key determines. So packets may
//! be spread over workers by any set of fields that is determined by each key whose rows must stay
//! together, in order, in one place: the finest such set is the largest common flow key.

use crate::expr::{Expr, ExprKind};
use std::collections::BTreeSet;
use weir_packet::fields::{FieldId, KEYS};

/// A set of packet fields.
pub type FieldSet = BTreeSet<FieldId>;

const fn named(name: &str) -> FieldId {
    FieldId::named(name)
}

/// What follows from what: fields on the left together determine those on the right.
const RULES: &[(&[FieldId], &[FieldId])] = &[
    (&[named("ip.src"), named("ip.dst")], &[named("hosts.a"), named("hosts.b")]),
    (
        &[named("ip.src"), named("sport"), named("ip.dst"), named("dport")],
        &[
            named("conn.a_ip"),
            named("conn.a_port"),
            named("conn.b_ip"),
            named("conn.b_port"),
            named("conn.forward"),
        ],
    ),
    // Endpoints are ordered by address first.
    (&[named("conn.a_ip")], &[named("hosts.a")]),
    (&[named("conn.b_ip")], &[named("hosts.b")]),
    (&[named("hosts.a")], &[named("conn.a_ip")]),
    (&[named("hosts.b")], &[named("conn.b_ip")]),
    (&[named("eth.src"), named("eth.dst")], &[named("link.a"), named("link.b")]),
    (&[named("tcp.flags")], FLAGS),
    (&[named("ip.version")], &[named("ip"), named("ipv4"), named("ipv6")]),
];

const FLAGS: &[FieldId] = &[
    named("tcp.fin"),
    named("tcp.syn"),
    named("tcp.rst"),
    named("tcp.psh"),
    named("tcp.ack"),
    named("tcp.urg"),
    named("tcp.ece"),
    named("tcp.cwr"),
];

/// All fields that `key` determines, itself included.
pub fn determined(key: &FieldSet) -> FieldSet {
    let mut all = key.clone();
    loop {
        let before = all.len();
        for (from, to) in RULES {
            if from.iter().all(|&f| all.contains(&f)) {
                all.extend(to.iter().copied());
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// The packet fields among the parts of a key. Other parts only make a key finer.
pub fn fields_of<'a>(parts: impl IntoIterator<Item = &'a Expr>) -> FieldSet {
    parts
        .into_iter()
        .filter_map(|e| match e.kind {
            ExprKind::Field(id) => Some(id),
            _ => None,
        })
        .collect()
}

/// The largest common flow key: the fewest fields that say as much as can be said by fields which
/// every one of `keys` determines. Empty where they have nothing in common, or `keys` is empty.
pub fn largest_common(keys: &[FieldSet]) -> FieldSet {
    let Some((first, rest)) = keys.split_first() else { return FieldSet::new() };
    let common = rest.iter().fold(determined(first), |common, key| {
        common.intersection(&determined(key)).copied().collect()
    });
    minimal(common)
}

/// The same knowledge in fewer fields: what others determine is left out, derived fields first.
fn minimal(mut set: FieldSet) -> FieldSet {
    const DERIVED_FIRST: [FieldId; 9] = [
        named("conn.forward"),
        named("conn.a_ip"),
        named("conn.a_port"),
        named("conn.b_ip"),
        named("conn.b_port"),
        named("hosts.a"),
        named("hosts.b"),
        named("link.a"),
        named("link.b"),
    ];
    let derived_first = DERIVED_FIRST.iter().chain(FLAGS).copied();
    for id in derived_first.chain(set.clone()) {
        if set.remove(&id) && !determined(&set).contains(&id) {
            set.insert(id);
        }
    }
    set
}

/// A key as a reader would name it: `flow`, `hosts`, or its fields.
pub fn describe(set: &FieldSet) -> String {
    let named = |k: &&weir_packet::fields::Key| {
        let fields: FieldSet = k.fields.iter().copied().collect();
        fields == *set || minimal(determined(&fields)) == *set
    };
    if let Some(key) = KEYS.iter().find(named) {
        return key.name.to_owned();
    }
    set.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields::{by_name, key_by_name};

    fn key(names: &[&str]) -> FieldSet {
        names
            .iter()
            .flat_map(|n| match key_by_name(n) {
                Some(k) => k.fields.to_vec(),
                None => vec![by_name(n).expect("a field")],
            })
            .collect()
    }

    fn common(keys: &[&[&str]]) -> String {
        describe(&largest_common(&keys.iter().map(|k| key(k)).collect::<Vec<_>>()))
    }

    #[test]
    fn one_key_is_common_to_itself() {
        assert_eq!(common(&[&["flow"]]), "flow");
        assert_eq!(common(&[&["conn"]]), "conn");
        assert_eq!(common(&[&["hosts"]]), "hosts");
    }

    #[test]
    fn the_coarser_key_is_common() {
        assert_eq!(common(&[&["flow"], &["conn"]]), "conn");
        assert_eq!(common(&[&["flow"], &["hosts"]]), "hosts");
        assert_eq!(common(&[&["conn"], &["hosts"]]), "hosts");
        assert_eq!(common(&[&["flow"], &["ip.src", "ip.dst"]]), "ip.src, ip.dst");
        assert_eq!(common(&[&["flow"], &["ip.src", "dport"]]), "ip.src, dport");
        assert_eq!(common(&[&["conn"], &["ip.src", "ip.dst"]]), "hosts");
    }

    #[test]
    fn the_three_applications_of_the_network_function_paper() {
        let (five, three, ports) = (["flow"], ["ip.src", "ip.dst", "ip.proto"], ["sport", "dport"]);
        assert_eq!(common(&[&five, &three]), "ip.src, ip.dst, ip.proto");
        assert_eq!(common(&[&five, &three, &ports]), "");
    }

    #[test]
    fn nothing_in_common() {
        assert_eq!(common(&[&["ip.src"], &["ip.dst"]]), "");
        assert_eq!(common(&[]), "");
    }
}
