//! Records of rows that are no alerts: Suricata has types of its own for DNS, TLS, HTTP and flows,
//! each with an object of that name.

use super::members::{Members, Row, timestamp};
use crate::names::{KNOWN, Names};
use weir_packet::known::dns_type;
use weir_plan::alert::Endpoints;
use weir_plan::{Schema, Type, Value};

/// The columns of a record that has a type of its own.
#[derive(Debug)]
pub(super) struct Event {
    /// The type, and the name of the object.
    pub(super) kind: &'static str,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    key: &'static str,
    at: usize,
    form: Form,
}

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Same,
    /// A time as EVE has it.
    Time,
    /// A duration in whole seconds.
    Seconds,
    /// The type of a record of DNS by name.
    RecordType,
    /// A response code of DNS by name.
    ResponseCode,
    /// Whether a message of DNS is an answer.
    IsAnswer,
    /// A version of TLS by name.
    TlsVersion,
    /// Texts with commas between them.
    List,
}

/// Types of records, in the order in which they are looked for.
const KINDS: [&str; 4] = ["dns", "tls", "http", "flow"];

/// Columns whose values EVE writes otherwise, or whose names `--names eve` leaves as they are.
const OTHERWISE: &[(&str, Type, &str, &str, Form)] = &[
    ("dns.qr", Type::Bool, "dns", "type", Form::IsAnswer),
    ("dns.qtype", Type::Int, "dns", "rrtype", Form::RecordType),
    ("dns.rcode", Type::Int, "dns", "rcode", Form::ResponseCode),
    ("tls.version", Type::Int, "tls", "version", Form::TlsVersion),
    ("tls.alpn", Type::Str, "tls", "client_alpns", Form::List),
    ("tls.ja4", Type::Str, "tls", "ja4", Form::Same),
    ("hello.sni", Type::Str, "tls", "sni", Form::Same),
    ("hello.version", Type::Int, "tls", "version", Form::TlsVersion),
    ("hello.alpn", Type::Str, "tls", "client_alpns", Form::List),
    ("hello.ja4", Type::Str, "tls", "ja4", Form::Same),
    ("end", Type::Time, "flow", "end", Form::Time),
    ("ts", Type::Time, "flow", "start", Form::Time),
    ("reverse_packets", Type::Int, "flow", "pkts_toclient", Form::Same),
    ("reverse_bytes", Type::Int, "flow", "bytes_toclient", Form::Same),
];

impl Event {
    /// The event of rows with these columns: of a protocol, if they have columns of it and name
    /// both ends; of a flow, if they count what went between two ports.
    pub(super) fn of(schema: &Schema) -> Option<Event> {
        let ends = Endpoints::of(schema);
        ends.source.zip(ends.destination)?;
        let counts = ["packets", "bytes"].iter().any(|name| schema.position(name).is_some());
        KINDS.into_iter().find_map(|kind| {
            let mut members: Vec<Member> = Vec::new();
            // The time of a row says when a flow began only where nothing else does.
            let (rows, others): (Vec<_>, Vec<_>) =
                schema.columns.iter().enumerate().partition(|(_, column)| column.name == "ts");
            for (at, column) in others.into_iter().chain(rows) {
                let found = member(kind, &column.name, &column.ty, at);
                let is_new = |one: &Member| members.iter().all(|known| known.key != one.key);
                members.extend(found.filter(is_new));
            }
            let fits = match kind {
                "flow" => counts && ends.connection().is_some(),
                _ => !members.is_empty(),
            };
            fits.then_some(Event { kind, members })
        })
    }

    /// Appends the object.
    pub(super) fn write(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let mut object = Members::open(out);
        for &Member { key, at, form } in &self.members {
            let value = row.value(at);
            match (form, &value) {
                (_, Value::Absent) => {}
                (Form::Time, Value::Time(ns)) => object.text(key, &timestamp(*ns)),
                (Form::Seconds, Value::Duration(ns)) => {
                    let seconds = (ns / 1_000_000_000).to_string();
                    object.key(key).extend_from_slice(seconds.as_bytes());
                }
                (Form::RecordType, Value::Int(n)) => {
                    object
                        .text(key, &dns_type(*n).map_or_else(|| format!("TYPE{n}"), str::to_owned));
                }
                (Form::ResponseCode, Value::Int(n)) => object.text(key, &response_code(*n)),
                (Form::IsAnswer, Value::Bool(is_answer)) => {
                    object.text(key, if *is_answer { "answer" } else { "query" });
                }
                (Form::TlsVersion, Value::Int(n)) => object.text(key, &tls_version(*n)),
                (Form::List, Value::Str(text)) => {
                    let list = serde_json::json!(text.split(',').collect::<Vec<_>>());
                    object.key(key).extend_from_slice(list.to_string().as_bytes());
                }
                _ => row.cell(object.key(key), at),
            }
        }
        object.close();
    }
}

/// The member that a column becomes in the object of a kind.
fn member(kind: &str, name: &str, ty: &Type, at: usize) -> Option<Member> {
    let otherwise = OTHERWISE
        .iter()
        .find(|(of, of_ty, of_kind, ..)| (*of, of_ty, *of_kind) == (name, ty, kind));
    if let Some((.., key, form)) = otherwise {
        return Some(Member { key, at, form: *form });
    }
    let known = KNOWN.iter().find(|k| k.native == name && k.ty == *ty)?;
    let key = known.name_in(Names::Eve)?.strip_prefix(kind)?.strip_prefix('.')?;
    let form = match ty {
        Type::Time => Form::Time,
        Type::Duration => Form::Seconds,
        _ => Form::Same,
    };
    Some(Member { key, at, form })
}

/// A response code of DNS (RFC 1035, RFC 2136) as Suricata writes it.
fn response_code(number: i64) -> String {
    const NAMES: [&str; 11] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
        "NXRRSET", "NOTAUTH", "NOTZONE",
    ];
    let name = usize::try_from(number).ok().and_then(|at| NAMES.get(at));
    name.map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

/// A version of TLS as Suricata writes it.
fn tls_version(number: i64) -> String {
    match number {
        0x0300 => "SSLv3".to_owned(),
        0x0301 => "TLSv1".to_owned(),
        0x0302..=0x0304 => format!("TLS 1.{}", number - 0x0301),
        n => format!("0x{n:04x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_numbers() {
        assert_eq!(
            [0, 3, 10, 11, -1].map(response_code),
            ["NOERROR", "NXDOMAIN", "NOTZONE", "11", "-1"]
        );
        let versions = [0x0300, 0x0301, 0x0302, 0x0304, 0x0305].map(tls_version);
        assert_eq!(versions, ["SSLv3", "TLSv1", "TLS 1.1", "TLS 1.3", "0x0305"]);
    }
}
