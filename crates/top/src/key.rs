//! The subject of a row of a table: its label, and the filter that picks its packets.

use crate::clean::clean;
use crate::table::Data;
use std::net::IpAddr;
use weir_base::harmless::is_harmless;
use weir_packet::known;
use weir_plan::Value;

/// A part of a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// No value.
    Absent,
    /// A number.
    Int(i64),
    /// An address.
    Ip(IpAddr),
    /// A text, as packets have it.
    Text(String),
    /// A value of another type, as the query language writes it.
    Literal(String),
    /// A value that is only shown: no condition says it.
    Shown(String),
}

/// Bytes of a value of bytes that a condition takes.
const BYTES_MAX: usize = 128;

/// The values that a row is about, in the order of the keys of its query.
pub type RowKey = Vec<Part>;

impl Part {
    /// A value of a row.
    pub(crate) fn from_value(value: &Value) -> Part {
        match value {
            Value::Int(n) => Part::Int(*n),
            Value::Ip(bits) => Part::Ip(Value::to_ip(*bits)),
            Value::Absent => Part::Absent,
            Value::Str(text) => Part::Text(text.to_string()),
            Value::Time(_) => Part::Literal(format!("@{value}")),
            Value::Bytes(bytes) if bytes.len() <= BYTES_MAX => {
                let digits = bytes.iter().map(|byte| format!("\\x{byte:02x}"));
                Part::Literal(format!("b\"{}\"", digits.collect::<String>()))
            }
            Value::Float(x) if !x.is_finite() => Part::Shown(value.to_string()),
            Value::Bytes(_) => Part::Shown(value.to_string()),
            other => Part::Literal(other.to_string()),
        }
    }

    fn int(&self) -> Option<i64> {
        if let Part::Int(n) = self { Some(*n) } else { None }
    }

    /// As people read it.
    fn shown(&self) -> String {
        match self {
            Part::Absent => "-".to_owned(),
            Part::Int(n) => n.to_string(),
            Part::Ip(address) => address.to_string(),
            Part::Text(text) | Part::Literal(text) | Part::Shown(text) => clean(text),
        }
    }

    /// The condition that an expression has this value; `None` if none says it.
    pub(crate) fn condition(&self, expression: &str) -> Option<String> {
        Some(match self {
            Part::Absent => format!("not exists({expression})"),
            Part::Text(text) => format!("{expression} == {}", quoted(text)),
            Part::Literal(text) => format!("{expression} == {text}"),
            Part::Shown(_) => return None,
            Part::Int(_) | Part::Ip(_) => format!("{expression} == {}", self.shown()),
        })
    }
}

/// A text as the query language writes it, in characters that a terminal can show.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_harmless(c) => out.push(c),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Address and port of one end.
fn endpoint(address: &Part, port: &Part) -> String {
    match (address, port) {
        (address, Part::Absent) => address.shown(),
        (Part::Ip(IpAddr::V6(address)), port) => format!("[{address}]:{}", port.shown()),
        (address, port) => format!("{}:{}", address.shown(), port.shown()),
    }
}

/// A protocol by its name or number.
fn protocol(part: &Part) -> String {
    let known = part.int().and_then(known::protocol).map(str::to_owned);
    known.unwrap_or_else(|| match part {
        Part::Absent => "ip".to_owned(),
        part => format!("proto {}", part.shown()),
    })
}

/// The name of a row of such data.
pub(crate) fn label(data: Data, key: &RowKey) -> String {
    if is_not_ip(data, key) {
        return "not IP".to_owned();
    }
    match (data, &key[..]) {
        (Data::Pairs, [a, b]) => format!("{} <> {}", a.shown(), b.shown()),
        (Data::Flows, [src, sport, dst, dport, proto]) => {
            format!("{} > {} {}", endpoint(src, sport), endpoint(dst, dport), protocol(proto))
        }
        (Data::Services, [proto, Part::Absent]) => format!("{}, no port", protocol(proto)),
        (Data::Services, [proto, port]) => {
            let name = port.int().and_then(known::service).map(|name| format!(" {name}"));
            format!("{}/{}{}", protocol(proto), port.shown(), name.unwrap_or_default())
        }
        (Data::Protocols, [version, proto, Part::Int(0)]) if *version != Part::Absent => {
            format!("ipv{} {}", version.shown(), protocol(proto))
        }
        (Data::Protocols, [_, _, Part::Int(number)]) => match known::frame_type(*number) {
            Some(name) => name.to_owned(),
            None => format!("frame type 0x{number:04x}"),
        },
        (Data::Protocols, _) => "no frame type".to_owned(),
        (_, parts) => parts.iter().map(Part::shown).collect::<Vec<_>>().join("  "),
    }
}

/// Whether the row is of packets without IP.
fn is_not_ip(data: Data, key: &RowKey) -> bool {
    match data {
        Data::Hosts | Data::Pairs | Data::Flows => key.first() == Some(&Part::Absent),
        Data::Services => key.iter().all(|part| *part == Part::Absent),
        Data::Protocols | Data::Keys | Data::Query => false,
    }
}

/// The condition that holds for the packets of a row.
pub(crate) fn filter(data: Data, key: &RowKey) -> String {
    if is_not_ip(data, key) {
        return "not ip".to_owned();
    }
    let all = |expressions: &[&str]| {
        let conditions =
            key.iter().zip(expressions).filter_map(|(part, name)| part.condition(name));
        conditions.collect::<Vec<_>>().join(" and ")
    };
    match data {
        Data::Hosts => hosts(key),
        Data::Pairs => all(&["hosts.a", "hosts.b"]),
        Data::Flows => all(&["ip.src", "sport", "ip.dst", "dport", "ip.proto"]),
        Data::Services => all(&["ip.proto", "min_of(sport, dport)"]),
        Data::Protocols => match &key[..] {
            [Part::Absent, _, of_frame] => {
                let of_type = of_frame.condition("eth.type").unwrap_or_default();
                format!("not ip and {of_type}")
            }
            [..] => all(&["ip.version", "ip.proto"]),
        },
        // The first depends on what was typed; what the packets of a row of a query are is asked of
        // its program.
        Data::Keys | Data::Query => String::new(),
    }
}

/// The condition that a packet is from or to one of these addresses.
pub(crate) fn hosts(addresses: &[Part]) -> String {
    match addresses {
        [one] => {
            let side = |field| one.condition(field).unwrap_or_default();
            format!("{} or {}", side("ip.src"), side("ip.dst"))
        }
        several => {
            let all = several.iter().map(Part::shown).collect::<Vec<_>>().join(", ");
            format!("ip.src in {{{all}}} or ip.dst in {{{all}}}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::check;

    fn ip(text: &str) -> Part {
        Part::Ip(text.parse().expect("an address"))
    }

    #[test]
    fn rows_have_labels_and_filters_that_compile() {
        let (a, b, none) = (ip("192.0.2.1"), ip("2001:db8::1"), Part::Absent);
        let n = Part::Int;
        let cases = [
            (
                Data::Hosts,
                vec![a.clone()],
                "192.0.2.1",
                "ip.src == 192.0.2.1 or ip.dst == 192.0.2.1",
            ),
            (Data::Hosts, vec![none.clone()], "not IP", "not ip"),
            (
                Data::Pairs,
                vec![a.clone(), b.clone()],
                "192.0.2.1 <> 2001:db8::1",
                "hosts.a == 192.0.2.1 and hosts.b == 2001:db8::1",
            ),
            (
                Data::Flows,
                vec![b.clone(), n(65535), a.clone(), n(0), n(6)],
                "[2001:db8::1]:65535 > 192.0.2.1:0 tcp",
                "ip.src == 2001:db8::1 and sport == 65535 and ip.dst == 192.0.2.1 and dport == 0 \
                 and ip.proto == 6",
            ),
            (
                Data::Flows,
                vec![a.clone(), none.clone(), a.clone(), none.clone(), n(1)],
                "192.0.2.1 > 192.0.2.1 icmp",
                "ip.src == 192.0.2.1 and not exists(sport) and ip.dst == 192.0.2.1 and \
                 not exists(dport) and ip.proto == 1",
            ),
            (
                Data::Services,
                vec![n(17), n(443)],
                "udp/443 https",
                "ip.proto == 17 and min_of(sport, dport) == 443",
            ),
            (Data::Services, vec![none.clone(), none.clone()], "not IP", "not ip"),
            (
                Data::Protocols,
                vec![n(6), n(255), n(0)],
                "ipv6 proto 255",
                "ip.version == 6 and ip.proto == 255",
            ),
            (
                Data::Protocols,
                vec![none.clone(), none.clone(), n(0x806)],
                "arp",
                "not ip and eth.type == 2054",
            ),
            (
                Data::Protocols,
                vec![none.clone(), none.clone(), none],
                "no frame type",
                "not ip and not exists(eth.type)",
            ),
        ];
        for (data, key, text, condition) in cases {
            assert_eq!(label(data, &key), text);
            assert_eq!(filter(data, &key), condition);
            assert_eq!(check(condition), Ok(()), "{condition}");
        }
        let several = hosts(&[a, b]);
        assert_eq!(check(&several), Ok(()), "{several}");
    }

    #[test]
    fn texts_are_quoted() {
        let text = Part::Text("a\"b\\c".to_owned());
        let condition = text.condition("http.host").expect("a text");
        assert_eq!(check(&condition), Ok(()), "{condition}");
    }
}
