//! Which fields a key determines, and the largest common flow key of several keys.
//!
//! Rows with equal keys have equal values in every field that the key determines. So packets may
//! be spread over workers by any set of fields that is determined by each key whose rows must stay
//! together, in order, in one place: the finest such set is the largest common flow key.

use crate::address;
use crate::expr::{Expr, ExprKind};
use crate::functions::Func;
use crate::stage::{Stage, Window};
use std::collections::BTreeSet;
use std::fmt;
use weir_packet::fields::{FieldId, FieldType, KEYS};

/// A part of a flow key: a packet field, or the network that an address field is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyField {
    /// The field.
    pub field: FieldId,
    /// How much of it counts; `None`: all of it.
    pub network: Option<PrefixBits>,
}

/// How many leading bits of an address count, as `prefix` keeps them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PrefixBits {
    /// Of an IPv4 address, at most 32.
    pub v4: u8,
    /// Of an IPv6 address, at most 128.
    pub v6: u8,
}

/// A set of packet fields, and of networks.
pub type FieldSet = BTreeSet<KeyField>;

impl PrefixBits {
    /// The whole address.
    const WHOLE: PrefixBits = PrefixBits { v4: 32, v6: 128 };

    /// The network that an address is in, as in [`crate::Value::Ip`].
    pub fn of(self, address: u128) -> u128 {
        address::prefix(address, self.v4, self.v6)
    }

    /// The bits that both keep.
    fn meet(self, other: PrefixBits) -> PrefixBits {
        PrefixBits { v4: self.v4.min(other.v4), v6: self.v6.min(other.v6) }
    }

    /// The bits that one of them keeps.
    fn join(self, other: PrefixBits) -> PrefixBits {
        PrefixBits { v4: self.v4.max(other.v4), v6: self.v6.max(other.v6) }
    }
}

impl From<FieldId> for KeyField {
    fn from(field: FieldId) -> KeyField {
        KeyField { field, network: None }
    }
}

impl KeyField {
    /// The part that says so much of a field. `None` if that is nothing, or there is no such part.
    pub(crate) fn with(field: FieldId, bits: PrefixBits) -> Option<KeyField> {
        let fits =
            field.info().ty == FieldType::Ip && bits.join(PrefixBits::WHOLE) == PrefixBits::WHOLE;
        match bits {
            PrefixBits::WHOLE => Some(field.into()),
            PrefixBits { v4: 0, v6: 0 } => None,
            network => fits.then_some(KeyField { field, network: Some(network) }),
        }
    }

    fn bits(&self) -> PrefixBits {
        self.network.unwrap_or(PrefixBits::WHOLE)
    }

    /// The value of a part as an expression of the language says it.
    pub fn expr(&self) -> Expr {
        let field = Expr::field(self.field);
        match self.network {
            None => field,
            Some(PrefixBits { v4, v6 }) => {
                let ty = field.ty.clone();
                Expr { kind: ExprKind::Call(Func::Prefix { v4, v6 }, vec![field]), ty }
            }
        }
    }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.field.name();
        match self.network {
            None => write!(f, "{name}"),
            Some(PrefixBits { v4, v6 }) if v4 == v6.min(32) => write!(f, "prefix({name}, {v6})"),
            Some(PrefixBits { v4, v6 }) => write!(f, "prefix({name}, {v4}, {v6})"),
        }
    }
}

const fn named(name: &str) -> FieldId {
    FieldId::named(name)
}

/// The rules by which fields follow from others: fields on the left together determine those on the
/// right.
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
fn determined(key: &FieldSet) -> FieldSet {
    let mut all = key.clone();
    loop {
        let before = all.len();
        for (from, to) in RULES {
            if from.iter().all(|&f| all.contains(&f.into())) {
                all.extend(to.iter().map(|&f| KeyField::from(f)));
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// So much of a field as these parts say.
fn known(all: &FieldSet, field: FieldId) -> PrefixBits {
    let parts = all.iter().filter(|part| part.field == field).map(KeyField::bits);
    parts.fold(PrefixBits { v4: 0, v6: 0 }, PrefixBits::join)
}

/// Whether packets with an equal `key` have equal values of all `parts`.
pub fn determines(key: &FieldSet, parts: &FieldSet) -> bool {
    let all = determined(key);
    parts.iter().all(|part| part.bits().join(known(&all, part.field)) == known(&all, part.field))
}

/// The largest common flow key: the fewest fields that say as much as can be said by fields which
/// every one of `keys` determines. Empty where they have nothing in common, or `keys` is empty.
pub fn largest_common(keys: &[FieldSet]) -> FieldSet {
    let all: Vec<FieldSet> = keys.iter().map(determined).collect();
    let Some((first, rest)) = all.split_first() else { return FieldSet::new() };
    let fields: BTreeSet<FieldId> = first.iter().map(|part| part.field).collect();
    let common = fields.into_iter().filter_map(|field| {
        let bits = |key| known(key, field);
        KeyField::with(field, rest.iter().map(bits).fold(bits(first), PrefixBits::meet))
    });
    minimal(common.collect())
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
    let derived_first = DERIVED_FIRST.iter().chain(FLAGS).map(|&field| KeyField::from(field));
    for part in derived_first.chain(set.clone()) {
        if set.remove(&part) && !determines(&set, &FieldSet::from([part])) {
            set.insert(part);
        }
    }
    set
}

/// A key as a reader would name it: `flow`, `hosts`, or its fields.
pub fn describe(set: &FieldSet) -> String {
    let named = |k: &&weir_packet::fields::Key| {
        let fields: FieldSet = k.fields.iter().map(|&field| field.into()).collect();
        fields == *set || minimal(determined(&fields)) == *set
    };
    if let Some(key) = KEYS.iter().find(named) {
        return key.name.to_owned();
    }
    set.iter().map(KeyField::to_string).collect::<Vec<_>>().join(", ")
}

/// Of each column of rows, the part of a flow key whose value it holds, if it holds one unchanged.
#[derive(Clone, Default)]
pub(crate) struct KeyColumns(Vec<Option<KeyField>>);

impl KeyColumns {
    /// The parts of flow keys among the parts of a key. Other parts only make a key finer.
    pub(crate) fn fields_of<'a>(&self, parts: impl IntoIterator<Item = &'a Expr>) -> FieldSet {
        parts.into_iter().filter_map(|part| self.field_of(part)).collect()
    }

    fn field_of(&self, part: &Expr) -> Option<KeyField> {
        match &part.kind {
            ExprKind::Field(field) => Some((*field).into()),
            ExprKind::Column(at) => self.0.get(*at).copied().flatten(),
            ExprKind::Call(Func::Prefix { v4, v6 }, of) => {
                let of = self.field_of(of.first()?)?;
                let kept = PrefixBits { v4: (*v4).min(32), v6: *v6 };
                KeyField::with(of.field, of.bits().meet(kept))
            }
            _ => None,
        }
    }

    /// The columns after a stage.
    #[must_use]
    pub(crate) fn after(&self, stage: &Stage) -> KeyColumns {
        let mut after = self.clone();
        let mut set = |at: usize, field: Option<KeyField>| {
            if after.0.len() <= at {
                after.0.resize(at + 1, None);
            }
            after.0[at] = field;
        };
        match stage {
            Stage::Where(_) | Stage::Top { .. } | Stage::Limit(_) | Stage::Distinct(_) => {}
            Stage::Sample(_) | Stage::Metric(_) | Stage::Ends(_) | Stage::Capture(_) => {}
            Stage::Deduplicate(_) => {}
            Stage::Extend { columns } => {
                columns.iter().for_each(|(_, at, e)| set(*at, self.field_of(e)));
            }
            Stage::Scan(scan) => scan.states.iter().for_each(|state| set(state.output, None)),
            Stage::AnalyzeTcp(tcp) => tcp.columns.iter().for_each(|(_, at, _)| set(*at, None)),
            Stage::Hello(hello) => hello.columns.iter().for_each(|at| set(*at, None)),
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                after.0 = columns.iter().map(|(_, e)| self.field_of(e)).collect();
            }
            Stage::Summarize(s) => {
                let window = (s.window != Window::All).then_some(None);
                let keys = s.keys.iter().map(|(_, e)| self.field_of(e));
                after.0 = window.into_iter().chain(keys).collect();
            }
            // The columns that they leave are not followed.
            Stage::Each(_) | Stage::Join(_) | Stage::Union(_) | Stage::Alert(_) => {
                after.0 = Vec::new();
            }
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Type;
    use weir_packet::fields::{by_name, key_by_name};

    fn key(names: &[&str]) -> FieldSet {
        names
            .iter()
            .flat_map(|n| match key_by_name(n) {
                Some(k) => k.fields.to_vec(),
                None => vec![by_name(n).expect("a field")],
            })
            .map(KeyField::from)
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

    /// `prefix(field, v4, v6)`.
    fn network(field: &str, v4: u8, v6: u8) -> FieldSet {
        KeyField::with(by_name(field).expect("a field"), PrefixBits { v4, v6 })
            .into_iter()
            .collect()
    }

    #[test]
    fn networks_are_part_of_addresses_and_of_narrower_networks() {
        let both = |a: &FieldSet, b: &FieldSet| describe(&largest_common(&[a.clone(), b.clone()]));
        let (flow, eight) = (key(&["flow"]), network("ip.src", 8, 8));
        let mixed = network("ip.src", 16, 64);
        for (other, expected) in [
            (&flow, "prefix(ip.src, 16, 64)"),
            (&eight, "prefix(ip.src, 8)"),
            (&network("ip.src", 24, 48), "prefix(ip.src, 16, 48)"),
            (&network("ip.src", 0, 48), "prefix(ip.src, 0, 48)"),
            (&network("ip.src", 32, 0), "prefix(ip.src, 16, 0)"),
            (&network("ip.dst", 16, 64), ""),
        ] {
            assert_eq!(both(&mixed, other), expected);
            assert_eq!(both(other, &mixed), expected);
        }
        assert!(determines(&flow, &mixed) && determines(&mixed, &eight));
        assert!(!determines(&eight, &mixed) && !determines(&mixed, &key(&["ip.src"])));
        // No packet tells the network of a conversation's first host from that of its source.
        assert_eq!(both(&key(&["hosts"]), &mixed), "");
        assert!(network("ip.src", 0, 0).is_empty() && network("dport", 8, 8).is_empty());
        assert_eq!(network("ip.src", 32, 128), key(&["ip.src"]));
    }

    #[test]
    fn columns_are_followed_to_fields() {
        let field = |name| Expr::field(by_name(name).expect("a field"));
        let prefix = |of: Expr, v4, v6| {
            let ty = of.ty.clone();
            Expr { kind: ExprKind::Call(Func::Prefix { v4, v6 }, vec![of]), ty }
        };
        let column = |at| Expr::column(at, Type::Ip);
        let extend = Stage::Extend {
            columns: vec![
                ("a".to_owned(), 0, field("ip.src")),
                ("b".to_owned(), 1, prefix(field("ip.src"), 24, 24)),
            ],
        };
        let columns = KeyColumns::default().after(&extend);
        let of = |e: Expr| describe(&columns.fields_of([&e]));
        assert_eq!(of(column(0)), "ip.src");
        assert_eq!(of(column(1)), "prefix(ip.src, 24)");
        assert_eq!(of(prefix(column(1), 32, 8)), "prefix(ip.src, 24, 8)");
        assert_eq!(of(prefix(column(0), 40, 40)), "prefix(ip.src, 40)");
        assert_eq!(of(column(2)), "");
        let swapped = Stage::Project {
            columns: vec![("b".to_owned(), column(1)), ("a".to_owned(), column(0))],
        };
        let columns = columns.after(&swapped);
        assert_eq!(describe(&columns.fields_of([&column(1)])), "ip.src");
    }
}
