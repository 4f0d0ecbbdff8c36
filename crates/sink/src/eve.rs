//! EVE records, as Suricata writes them: one JSON object per line.
//!
//! Rows of `alert` are records of the type `alert`. Rows with columns of DNS, TLS or HTTP, and
//! rows that count what a flow sent, are records of these types. All others are records
//! of the type `weir`, which programs that do not know it pass over; all have their columns in an
//! object of that name.

mod event;
mod members;

use crate::format::{Format, Holds};
use crate::json::string;
use crate::lines::{LineFormat, Lines};
use event::Event;
use members::{Members, Row, timestamp};
use std::io::{self, Write};
use weir_base::alert::AlertSeverity;
use weir_engine::rows::{Output, Rows};
use weir_plan::alert::Endpoints;
use weir_plan::{Alert, Schema, Type, Value};

/// EVE records.
pub static FORMAT: Format = Format {
    name: "eve",
    title: "EVE",
    about: "One record per line, as Suricata writes alerts",
    ending: "eve.json",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, _| Box::new(EveRecords::new(out)),
};

/// Writes rows as EVE records.
pub type EveRecords<W> = Lines<W, Records>;

/// The first signature id of those that are for local use, and how many there are.
const LOCAL_IDS: u32 = 1_000_000;

/// The lines of EVE.
#[derive(Debug)]
pub struct Records {
    outputs: Vec<Record>,
}

/// The form of the records of one output.
#[derive(Debug)]
struct Record {
    /// The name of the output, or its number.
    name: String,
    schema: Schema,
    is_alert: bool,
    event: Option<Event>,
    ts: Option<usize>,
    /// The columns of the ends and the protocol, each with its key.
    ends: Vec<(&'static str, usize)>,
    protocol: Option<usize>,
}

impl<W: Write> EveRecords<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> EveRecords<W> {
        Lines::of_format(out, Records { outputs: Vec::new() })
    }
}

impl LineFormat for Records {
    fn open(&mut self, outputs: &[Output], _out: &mut Vec<u8>) -> io::Result<()> {
        self.outputs = outputs.iter().enumerate().map(|(i, o)| Record::new(o, i)).collect();
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize) {
        self.outputs[output].row(out, &Row { rows, i, schema: &self.outputs[output].schema });
    }
}

impl Record {
    fn new(output: &Output, number: usize) -> Record {
        let schema = &output.schema;
        let of = |names: &[&str], ty: Type| {
            let found = names.iter().filter_map(|name| schema.position(name));
            found.into_iter().find(|at| schema.columns[*at].ty == ty)
        };
        let found = Endpoints::of(schema);
        let ends = [
            ("src_ip", found.source),
            ("src_port", found.source_port),
            ("dest_ip", found.destination),
            ("dest_port", found.destination_port),
        ];
        Record {
            name: output.name.clone().unwrap_or_else(|| (number + 1).to_string()),
            is_alert: Alert::is_of(schema),
            event: Event::of(schema).filter(|_| !Alert::is_of(schema)),
            ts: of(&["ts", "first", "end"], Type::Time),
            ends: ends.into_iter().filter_map(|(key, at)| Some((key, at?))).collect(),
            protocol: found.protocol,
            schema: schema.clone(),
        }
    }

    fn row(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let mut record = Members::open(out);
        if let Some(Value::Time(ts)) = self.ts.map(|at| row.value(at)) {
            record.text("timestamp", &timestamp(ts));
        }
        let kind = self.event.as_ref().map_or("weir", |event| event.kind);
        record.text("event_type", if self.is_alert { "alert" } else { kind });
        for &(key, at) in &self.ends {
            if row.value(at).exists() {
                row.cell(record.key(key), at);
            }
        }
        if let Some(Value::Int(number)) = self.protocol.map(|at| row.value(at)) {
            record.text("proto", &protocol(number));
        }
        if !self.is_alert {
            if let Some(event) = &self.event {
                event.write(record.key(event.kind), row);
            }
            let mut inner = Members::open(record.key("weir"));
            inner.text("output", &self.name);
            row.object(inner.key("row"), 0..self.schema.columns.len());
            inner.close();
            return record.end();
        }
        let of_alert = row.named("alert.community_id");
        if let Some(Value::Str(id)) = of_alert.or_else(|| row.named("community_id")) {
            record.text("community_id", &id);
        }
        self.alert(record.key("alert"), row);
        record.end();
    }

    /// Appends the object `alert`.
    fn alert(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let (rule, severity) = (row.text("alert.rule"), row.text("alert.severity"));
        let mut alert = Members::open(out);
        alert.text("action", "allowed");
        alert.number("gid", 1);
        alert.number("signature_id", signature_id(&rule));
        alert.number("rev", 1);
        alert.text("signature", &row.text("alert.message"));
        alert.text("category", &row.text("alert.category"));
        alert.number("severity", number_of(&severity));
        let metadata = alert.key("metadata");
        let mut inner = Members::open(metadata);
        let technique = row.text("alert.technique");
        let said = [("rule", &rule), ("severity", &severity), ("mitre_technique_id", &technique)];
        for (key, text) in said.into_iter().filter(|(_, text)| !text.is_empty()) {
            let list = inner.key(key);
            list.push(b'[');
            string(list, text);
            list.push(b']');
        }
        inner.close();
        self.context(alert.key("context"), row);
        alert.close();
    }

    /// Appends what Weir knows besides.
    fn context(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        const TOLD: [&str; 6] =
            ["rule", "severity", "message", "community_id", "category", "technique"];
        let mut context = Members::open(out);
        for (at, column) in self.schema.columns.iter().enumerate() {
            let Some(key) = column.name.strip_prefix("alert.") else { continue };
            if !TOLD.contains(&key) && row.value(at).exists() {
                row.cell(context.key(key), at);
            }
        }
        let evidence = |at: &usize| {
            let name = &self.schema.columns[*at].name;
            name != "ts" && !name.starts_with("alert.")
        };
        row.object(context.key("evidence"), (0..self.schema.columns.len()).filter(evidence));
        context.close();
    }
}

/// The name of a protocol as Suricata writes it.
fn protocol(number: i64) -> String {
    match number {
        1 => "ICMP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        58 => "IPv6-ICMP".to_owned(),
        132 => "SCTP".to_owned(),
        n => format!("{n:03}"),
    }
}

/// 1 is the most severe.
fn number_of(severity: &str) -> u32 {
    match AlertSeverity::of_name(severity) {
        Some(AlertSeverity::Critical | AlertSeverity::High) => 1,
        Some(AlertSeverity::Medium) | None => 2,
        Some(AlertSeverity::Low) => 3,
        Some(AlertSeverity::Info) => 4,
    }
}

/// The signature id of a rule, always the same: FNV-1a of its name, in the range for local use.
fn signature_id(rule: &str) -> u32 {
    let hash = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    LOCAL_IDS + rule.bytes().fold(0x811c_9dc5, hash) % LOCAL_IDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output, rows};
    use insta::assert_snapshot;
    use weir_engine::rows::Sink as _;

    fn written(output: &Output, cells: Vec<Value>) -> String {
        let mut sink = EveRecords::new(Vec::new());
        sink.open(std::slice::from_ref(output)).expect("opens");
        sink.rows(0, &rows(output, &[cells])).expect("writes");
        sink.finish().expect("finishes");
        String::from_utf8(sink.into_inner()).expect("JSON is UTF-8")
    }

    /// The columns of an alert over some evidence, and a row of them.
    fn alert(evidence: &[(&str, Type, Value)]) -> (Output, Vec<Value>) {
        let text = |text: &str| Value::Str(text.into());
        let (time, float) = (Value::Time(1_714_564_800_250_000_999), Value::Float);
        let own = [
            time.clone(),
            text("flood"),
            text("start"),
            text("high"),
            text("a \"flood\"\n"),
            text("server=10.0.0.1"),
            text("n"),
            float(7.0),
            float(3.5),
            float(7.0),
            time.clone(),
            time,
            Value::Int(1),
            Value::Duration(10_000_000_000),
            Value::Absent,
            text("1:x="),
            text("Attempted Denial of Service"),
            text("T1498.001"),
            text("see"),
            text("flood server=10.0.0.1"),
        ];
        let mut columns: Vec<(&str, Type)> = Alert::columns().collect();
        columns.extend(evidence.iter().map(|(name, ty, _)| (*name, ty.clone())));
        let cells = own.into_iter().chain(evidence.iter().map(|(.., value)| value.clone()));
        (output(Some("flood"), &columns), cells.collect())
    }

    #[test]
    fn an_alert_is_a_record_of_suricata() {
        let ip = |text: &str| Value::ip(text.parse().expect("an address"));
        let (output, cells) = alert(&[
            ("server", Type::Ip, ip("10.0.0.1")),
            ("dport", Type::Int, Value::Int(80)),
            ("ip.proto", Type::Int, Value::Int(6)),
            ("sport", Type::Int, Value::Absent),
            ("n", Type::Int, Value::Int(7)),
        ]);
        let line = written(&output, cells);
        assert!(line.ends_with("}\n") && line.lines().count() == 1);
        let record: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_snapshot!(format!("{record:#}"));
    }

    #[test]
    fn other_rows_are_of_a_type_of_their_own() {
        let output = output(None, &[("ip.src", Type::Ip), ("n", Type::Int)]);
        let cells = vec![Value::ip([10, 0, 0, 1].into()), Value::Absent];
        assert_snapshot!(written(&output, cells), @r#"{"event_type":"weir","src_ip":"10.0.0.1","weir":{"output":"1","row":{"ip.src":"10.0.0.1","n":null}}}"#);
    }

    #[test]
    fn rows_of_protocols_and_flows_are_nested() {
        let ip = |text: &str| Value::ip(text.parse().expect("an address"));
        let ends = [("ip.src", Type::Ip), ("sport", Type::Int), ("ip.dst", Type::Ip)];
        let ends = ends.into_iter().chain([("dport", Type::Int), ("ip.proto", Type::Int)]);
        let ends: Vec<(&str, Type)> = [("ts", Type::Time)].into_iter().chain(ends).collect();
        let values =
            [ip("10.0.0.1"), Value::Int(999), ip("10.0.0.2"), Value::Int(53), Value::Int(17)];
        let values: Vec<Value> = [Value::Time(1_000_000_000)].into_iter().chain(values).collect();
        let check = |more: &[(&str, Type, Value)], kind: &str, object: &str| {
            let columns = more.iter().map(|(name, ty, _)| (*name, ty.clone()));
            let output =
                output(Some("x"), &ends.iter().cloned().chain(columns).collect::<Vec<_>>());
            let cells =
                values.iter().chain(more.iter().map(|(.., value)| value)).cloned().collect();
            let record: serde_json::Value =
                serde_json::from_str(&written(&output, cells)).expect("JSON");
            assert_eq!(record["event_type"], kind);
            if kind != "weir" {
                let expected: serde_json::Value = serde_json::from_str(object).expect("JSON");
                assert_eq!(record[kind], expected);
            }
            assert_eq!(
                record["weir"]["row"].as_object().map(serde_json::Map::len),
                Some(6 + more.len())
            );
        };
        let (text, int) = (|text: &str| Value::Str(text.into()), Value::Int);
        check(
            &[
                ("dns.qname", Type::Str, text("a.test")),
                ("dns.qr", Type::Bool, Value::Bool(true)),
                ("dns.qtype", Type::Int, int(28)),
                ("dns.rcode", Type::Int, int(3)),
                ("took", Type::Int, int(1)),
            ],
            "dns",
            r#"{"rrname":"a.test","type":"answer","rrtype":"AAAA","rcode":"NXDOMAIN"}"#,
        );
        check(
            &[
                ("hello.sni", Type::Str, text("a.test")),
                ("hello.alpn", Type::Str, text("h2,http/1.1")),
                ("hello.version", Type::Int, int(0x0304)),
                ("hello.ja4", Type::Str, Value::Absent),
            ],
            "tls",
            r#"{"sni":"a.test","client_alpns":["h2","http/1.1"],"version":"TLS 1.3"}"#,
        );
        let http = [("http.host", Type::Str, text("a")), ("http.status", Type::Int, int(200))];
        check(&http, "http", r#"{"hostname":"a","status":200}"#);
        check(
            &[
                ("packets", Type::Int, int(3)),
                ("bytes", Type::Int, int(300)),
                ("reverse_bytes", Type::Int, int(60)),
                ("last", Type::Time, Value::Time(2_000_000_000)),
                ("duration", Type::Duration, Value::Duration(1_900_000_000)),
            ],
            "flow",
            r#"{"pkts_toserver":3,"bytes_toserver":300,"bytes_toclient":60,"end":"1970-01-01T00:00:02.000000+0000","age":1,"start":"1970-01-01T00:00:01.000000+0000"}"#,
        );
        check(&[("n", Type::Int, int(3))], "weir", "");
    }

    #[test]
    fn numbers_stay_what_they_are() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000000+0000");
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999999+0000");
        assert_eq!(signature_id("flood"), signature_id("flood"));
        assert_ne!(signature_id("flood"), signature_id("scan"));
        for rule in ["", "flood", "a.b", "é"] {
            assert!((LOCAL_IDS..2 * LOCAL_IDS).contains(&signature_id(rule)));
        }
        let severities = AlertSeverity::ALL.map(|s| number_of(s.name()));
        assert_eq!(severities, [4, 3, 2, 1, 1]);
        assert_eq!([6, 17, 2, 255].map(protocol), ["TCP", "UDP", "002", "255"]);
    }
}
