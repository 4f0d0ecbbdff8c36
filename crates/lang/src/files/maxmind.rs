//! Tables of networks in MaxMind's format: countries, places, autonomous systems.
//!
//! Format: <https://maxmind.github.io/MaxMind-DB/>.

use super::fault::{Fault, shown};
use crate::limits::{CELL_MAX, NETWORKS_MAX};
use crate::suggest;
use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader, WithinOptions};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use weir_plan::table::Table;
use weir_plan::{Type, Value};

/// The first bytes of the part of a file that says what the file is.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// It begins in so many last bytes.
const MARKED: usize = 128 << 10;

/// Names of columns in a message.
const SHOWN: usize = 20;

/// Whether a file is of this format.
pub(super) fn is_database(bytes: &[u8]) -> bool {
    let end = &bytes[bytes.len().saturating_sub(MARKED)..];
    end.windows(MARKER.len()).any(|window| window == MARKER)
}

/// The values that the networks of a database have at `path`: names and numbers, joined by dots.
pub(super) fn table((file, bytes): (&str, &[u8]), path: &str, key: &Type) -> Result<Table, Fault> {
    if *key != Type::Ip {
        return Err(Fault::whole(format!("it is a table of addresses, and the key is {key}")));
    }
    let reader = Reader::from_source(bytes).map_err(|e| broken(&e))?;
    let steps: Vec<PathElement<'_>> = path
        .split('.')
        .map(|step| match step.parse::<usize>() {
            Ok(n) => PathElement::Index(n),
            Err(_) => PathElement::Key(step),
        })
        .collect();
    let mut out = Texts::default();
    let mut entries = Vec::new();
    for found in reader.networks(WithinOptions::default()).map_err(|e| broken(&e))? {
        let found = found.map_err(|e| broken(&e))?;
        if entries.len() >= NETWORKS_MAX {
            return Err(Fault::whole(format!("a file has at most {NETWORKS_MAX} networks")));
        }
        if let Some(number) = out.number(&found, &steps, path)? {
            let network = found.network().map_err(|e| broken(&e))?;
            entries.push((value(network.network(), network.prefix()), number));
        }
    }
    if entries.is_empty() {
        return Err(out.without(path));
    }
    let texts = out.texts;
    Ok(Table { file: file.to_owned(), column: path.to_owned(), entries, texts })
}

/// A network as keys have it.
fn value(ip: std::net::IpAddr, prefix: u8) -> Value {
    let (Value::Ip(bits), v4) = (Value::ip(ip), ip.is_ipv4()) else {
        unreachable!("an address is one")
    };
    match if v4 { prefix + 96 } else { prefix } {
        128 => Value::Ip(bits),
        len => Value::Net(bits, len),
    }
}

fn broken(e: &MaxMindDbError) -> Fault {
    Fault::whole(format!("it cannot be read as a MaxMind database: {e}"))
}

/// The texts met so far. Many networks share a record.
#[derive(Default)]
struct Texts {
    /// By the record's place in the file, `None` where it has nothing at the path.
    records: BTreeMap<usize, Option<u32>>,
    numbers: BTreeMap<String, u32>,
    texts: Vec<Box<str>>,
    /// The paths that the first record has.
    paths: Vec<String>,
}

impl Texts {
    /// The number of what a record has at the path.
    fn number(
        &mut self,
        found: &LookupResult<'_, &[u8]>,
        steps: &[PathElement<'_>],
        path: &str,
    ) -> Result<Option<u32>, Fault> {
        let Some(place) = found.offset() else { return Ok(None) };
        if let Some(known) = self.records.get(&place) {
            return Ok(*known);
        }
        if self.records.is_empty()
            && let Some(record) = found.decode::<Node>().map_err(|e| broken(&e))?
        {
            record.paths("", &mut self.paths);
        }
        let number = match found.decode_path::<Node>(steps) {
            Ok(None) => None,
            Ok(Some(Node::Leaf(text))) if text.len() > CELL_MAX => {
                return Err(Fault::whole(format!("a cell has at most {CELL_MAX} bytes")));
            }
            Ok(Some(Node::Leaf(text))) => {
                let next = self.texts.len() as u32;
                let number = *self.numbers.entry(text.clone()).or_insert(next);
                if number == next {
                    self.texts.push(text.into());
                }
                Some(number)
            }
            Ok(Some(node)) => {
                let mut paths = Vec::new();
                node.paths(path, &mut paths);
                let cause = format!("`{}` has parts", shown(path));
                return Err(Fault { line: None, cause, help: Some(choice(&paths)) });
            }
            // A path may fit the records of some networks only: a name where a list stands.
            Err(MaxMindDbError::Decoding { .. }) => None,
            Err(e) => return Err(broken(&e)),
        };
        self.records.insert(place, number);
        Ok(number)
    }

    /// Nothing has the path.
    fn without(&self, path: &str) -> Fault {
        let near = suggest::did_you_mean(path, self.paths.iter().map(String::as_str));
        let help = near.unwrap_or_else(|| choice(&self.paths));
        let cause = format!("no network in it has `{}`", shown(path));
        Fault { line: None, cause, help: Some(help) }
    }
}

fn choice(paths: &[String]) -> String {
    let more = if paths.len() > SHOWN { ", …" } else { "" };
    let names: Vec<_> = paths.iter().take(SHOWN).map(|path| shown(path)).collect();
    format!("such as {}{more}", names.join(", "))
}

/// Any value of a database.
enum Node {
    Leaf(String),
    Several(Vec<(String, Node)>),
}

impl Node {
    /// The paths of all leaves.
    fn paths(&self, prefix: &str, out: &mut Vec<String>) {
        match self {
            Node::Leaf(_) => out.push(prefix.to_owned()),
            Node::Several(parts) => parts.iter().for_each(|(name, node)| {
                let dot = if prefix.is_empty() { "" } else { "." };
                node.paths(&format!("{prefix}{dot}{name}"), out);
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Node, D::Error> {
        d.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_string()))
    }

    fn visit_u128<E>(self, v: u128) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Node, E> {
        Ok(Node::Leaf(v.to_owned()))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Node, E> {
        Ok(Node::Leaf(v.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = map.next_entry()? {
            parts.push(part);
        }
        Ok(Node::Several(parts))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push((parts.len().to_string(), part));
        }
        Ok(Node::Several(parts))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::files;
    use std::net::IpAddr;

    /// Values as the format writes them.
    pub(crate) fn text(s: &str) -> Vec<u8> {
        assert!(s.len() < 29);
        [&[2 << 5 | s.len() as u8], s.as_bytes()].concat()
    }

    fn uint(n: u32) -> Vec<u8> {
        [&[6 << 5 | 4][..], &n.to_be_bytes()].concat()
    }

    fn map(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let parts: Vec<u8> =
            parts.iter().flat_map(|(k, v)| [text(k), v.clone()].concat()).collect();
        [&[7 << 5][..], &parts].concat()
    }

    fn sized(kind: u8, n: usize, parts: &[Vec<u8>]) -> Vec<u8> {
        [&[n as u8, kind - 7][..], &parts.concat()].concat()
    }

    /// A database of these networks, IPv6 with IPv4 in `::/96`, records of 24 bits.
    pub(crate) fn database(networks: &[(&str, u8, Vec<u8>)]) -> Vec<u8> {
        let (mut data, mut nodes) = (Vec::<u8>::new(), vec![[None::<Result<usize, usize>>; 2]]);
        for (ip, len, record) in networks {
            let (bits, len) = match ip.parse::<IpAddr>().expect("an address") {
                IpAddr::V4(ip) => (u128::from(ip.to_bits()), *len + 96),
                IpAddr::V6(ip) => (ip.to_bits(), *len),
            };
            let mut node = 0;
            for depth in 0..len {
                let side = (bits >> (127 - depth) & 1) as usize;
                if depth + 1 == len {
                    nodes[node][side] = Some(Err(data.len()));
                    continue;
                }
                node = match nodes[node][side] {
                    Some(Ok(next)) => next,
                    Some(Err(_)) => panic!("networks do not overlap"),
                    None => {
                        nodes.push([None; 2]);
                        let next = nodes.len() - 1;
                        nodes[node][side] = Some(Ok(next));
                        next
                    }
                };
            }
            data.extend(record);
        }
        let n = nodes.len();
        let mut out = Vec::new();
        for side in nodes.iter().flatten() {
            let word = match side {
                None => n,
                Some(Ok(next)) => *next,
                Some(Err(at)) => n + 16 + at,
            };
            out.extend(&(word as u32).to_be_bytes()[1..]);
        }
        out.extend([0; 16]);
        out.extend(data);
        out.extend(MARKER);
        out.extend(map_of(&[
            ("node_count", uint(n as u32)),
            ("record_size", [&[5 << 5 | 2][..], &[0, 24]].concat()),
            ("ip_version", [&[5 << 5 | 2][..], &[0, 6]].concat()),
            ("database_type", text("Weir-Test")),
            ("languages", sized(11, 0, &[])),
            ("binary_format_major_version", [&[5 << 5 | 2][..], &[0, 2]].concat()),
            ("binary_format_minor_version", [&[5 << 5 | 2][..], &[0, 0]].concat()),
            ("build_epoch", sized(9, 1, &[vec![1]])),
            ("description", map(&[])),
        ]));
        out
    }

    pub(crate) fn map_of(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut out = map(parts);
        out[0] |= parts.len() as u8;
        out
    }

    fn places() -> Vec<u8> {
        let place = |code: &str, asn: u32| {
            let names = sized(11, 2, &[text("one"), text("two")]);
            let country = map_of(&[("iso_code", text(code))]);
            map_of(&[("country", country), ("asn", uint(asn)), ("names", names)])
        };
        database(&[
            ("10.0.0.0", 8, place("AA", 65001)),
            ("192.0.2.0", 24, place("BB", 65002)),
            ("192.0.3.7", 32, place("AA", 65003)),
            ("2001:db8::", 32, place("CC", 65001)),
            ("2001:db9::", 32, map_of(&[("country", text("no map"))])),
        ])
    }

    fn read(bytes: &[u8], path: &str) -> Result<Table, String> {
        files::table(("geo.mmdb", bytes), path, &Type::Ip)
            .map_err(|f| format!("{} {}", f.cause, f.help.unwrap_or_default()))
    }

    #[test]
    fn the_smallest_network_tells() {
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        let bytes = places();
        assert!(is_database(&bytes));
        let country = read(&bytes, "country.iso_code").expect("a table");
        for (address, expected) in [
            ("10.9.9.9", Some("AA")),
            ("192.0.2.200", Some("BB")),
            ("192.0.3.7", Some("AA")),
            ("192.0.3.8", None),
            ("2001:db8::1", Some("CC")),
            ("2001:db9::1", None),
        ] {
            assert_eq!(country.find(&ip(address)), expected, "{address}");
        }
        // Each text once.
        assert_eq!(country.texts.len(), 3);
        let asn = read(&bytes, "asn").expect("a table");
        assert_eq!(asn.find(&ip("2001:db8::1")), Some("65001"));
        let second = read(&bytes, "names.1").expect("a table");
        assert_eq!(second.find(&ip("10.0.0.1")), Some("two"));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let bytes = places();
        let told = |path: &str| read(&bytes, path).expect_err("it is wrong");
        assert_eq!(told("country"), "`country` has parts such as country.iso_code");
        assert_eq!(
            told("country.isocode"),
            "no network in it has `country.isocode` did you mean `country.iso_code`?"
        );
        assert_eq!(
            told("city"),
            "no network in it has `city` such as country.iso_code, asn, names.0, names.1"
        );
        let int = files::table(("geo.mmdb", &bytes), "asn", &Type::Int);
        assert_eq!(int.unwrap_err().cause, "it is a table of addresses, and the key is int");
        let cut = &bytes[bytes.len() - 60..];
        assert!(read(cut, "asn").is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let bytes = places();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                files::fuzz_file(&bytes);
            }
        }
    }
}
