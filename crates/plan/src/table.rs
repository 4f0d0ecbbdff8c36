//! Tables from keys to texts: what `lookup` asks.

use crate::address;
use crate::types::Type;
use crate::value::Value;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One column of a file, by the keys of its rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The file as the query names it.
    pub file: String,
    /// The column as the query names it.
    pub column: String,
    /// Each key once, with the number of its text. Keys of one type; of addresses, some may be
    /// networks ([`Value::Net`]).
    pub entries: Vec<(Value, u32)>,
    /// The different texts.
    pub texts: Vec<Box<str>>,
}

/// The type that finds an entry of a table: a network is found by its addresses.
pub(crate) fn key_type(entry: &Value) -> Option<Type> {
    if matches!(entry, Value::Net(..)) { Some(Type::Ip) } else { entry.ty() }
}

impl Table {
    /// Whether all keys are of one type, and all texts are there.
    pub(crate) fn is_sound(&self) -> bool {
        let ty = self.entries.first().and_then(|(key, _)| key_type(key));
        let fits = |(key, text): &(Value, u32)| {
            ty.is_some() && key_type(key) == ty && (*text as usize) < self.texts.len()
        };
        self.entries.iter().all(fits)
    }

    /// The text of the entry that a key finds; of several networks that hold an address, the
    /// smallest, and the address itself before any of them. Looks at all entries: the engine has
    /// its own ways.
    pub fn find(&self, key: &Value) -> Option<&str> {
        let bits = |entry: &Value| match (entry, key) {
            (Value::Net(net, len), Value::Ip(a)) => {
                address::contains((*net, *len), *a).then_some(*len)
            }
            (entry, key) => (entry == key).then_some(u8::MAX),
        };
        let found = self.entries.iter().filter_map(|(e, text)| Some((bits(e)?, *text)));
        found.max_by_key(|(len, _)| *len).map(|(_, text)| &*self.texts[text as usize])
    }
}

/// A table that several plans may share.
#[derive(Clone, Debug)]
pub struct SharedTable(pub Arc<Table>);

impl PartialEq for SharedTable {
    fn eq(&self, other: &SharedTable) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for SharedTable {}

impl Hash for SharedTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.file, &self.0.column).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Value {
        Value::ip(text.parse().expect("an address"))
    }

    #[test]
    fn the_smallest_network_counts() {
        let net = |text: &str, len: u8| match ip(text) {
            Value::Ip(bits) => Value::Net(bits, 96 + len),
            other => unreachable!("{other}"),
        };
        let table = Table {
            file: "nets.csv".into(),
            column: "name".into(),
            entries: vec![(net("10.0.0.0", 8), 0), (ip("10.1.2.3"), 2), (net("10.1.0.0", 16), 1)],
            texts: vec!["all".into(), "site".into(), "host".into()],
        };
        assert_eq!(table.find(&ip("10.9.9.9")), Some("all"));
        assert_eq!(table.find(&ip("10.1.9.9")), Some("site"));
        assert_eq!(table.find(&ip("10.1.2.3")), Some("host"));
        assert_eq!(table.find(&ip("11.0.0.1")), None);
    }
}
