//! EVE records, as Suricata writes them: one JSON object per line.
//!
//! Rows of `alert` are records of the type `alert`. Rows of other outputs are records of the type
//! `weir`, with their columns in an object of that name: programs that do not know this type pass
//! them over.

use crate::format::{Format, Holds};
use crate::json::{string, value};
use crate::lines::{LineFormat, Lines};
use crate::options::TimeFormat;
use std::io::{self, Write};
use weir_base::alert::AlertSeverity;
use weir_engine::rows::{Output, Rows};
use weir_packet::time;
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

/// Columns that hold the source of what an alert is about, its destination, and their ports, in the
/// order in which they are looked for.
const SOURCES: &[&str] = &["ip.src", "src_ip", "conn.a_ip", "client", "attacker", "source"];
const DESTINATIONS: &[&str] = &["ip.dst", "dest_ip", "conn.b_ip", "server", "victim", "target"];
const SOURCE_PORTS: &[&str] = &["sport", "src_port", "conn.a_port", "tcp.sport", "udp.sport"];
const DESTINATION_PORTS: &[&str] =
    &["dport", "dest_port", "conn.b_port", "tcp.dport", "udp.dport", "port"];
const PROTOCOLS: &[&str] = &["ip.proto", "proto"];

/// The lines of EVE.
#[derive(Debug)]
pub struct Records {
    outputs: Vec<Record>,
}

/// What the records of one output look like.
#[derive(Debug)]
struct Record {
    /// The name of the output, or its number.
    name: String,
    schema: Schema,
    is_alert: bool,
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

/// A row and its columns.
struct Row<'a> {
    rows: &'a Rows,
    i: usize,
    schema: &'a Schema,
}

impl Row<'_> {
    fn value(&self, at: usize) -> Value {
        self.rows.value(self.i, at, &self.schema.columns[at].ty)
    }

    /// The value of the column of this name, if there is one of both.
    fn named(&self, name: &str) -> Option<Value> {
        self.schema.position(name).map(|at| self.value(at)).filter(Value::exists)
    }

    fn text(&self, name: &str) -> String {
        match self.named(name) {
            Some(Value::Str(text)) => text.into_string(),
            _ => String::new(),
        }
    }

    /// Appends a cell as JSON.
    fn cell(&self, out: &mut Vec<u8>, at: usize) {
        let (column, ty) = (&self.rows.columns[at], &self.schema.columns[at].ty);
        match column.present.has(self.i) {
            true => value(out, column.raw(self.i), ty, &self.rows.arena, TimeFormat::Rfc3339),
            false => out.extend_from_slice(b"null"),
        }
    }

    /// Appends an object of some columns.
    fn object(&self, out: &mut Vec<u8>, columns: impl Iterator<Item = usize>) {
        let mut object = Members::open(out);
        for at in columns {
            self.cell(object.key(&self.schema.columns[at].name), at);
        }
        object.close();
    }
}

/// The members of an object that is being written.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut Vec<u8>) -> Members<'a> {
        out.push(b'{');
        Members { out, is_first: true }
    }

    /// Appends a key; its value follows.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    fn text(&mut self, key: &str, text: &str) {
        string(self.key(key), text);
    }

    fn number(&mut self, key: &str, n: u32) {
        self.key(key).extend_from_slice(n.to_string().as_bytes());
    }

    fn close(self) {
        self.out.push(b'}');
    }

    /// Closes the object of a whole line.
    fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }
}

impl Record {
    fn new(output: &Output, number: usize) -> Record {
        let schema = &output.schema;
        let of = |names: &[&str], ty: Type| {
            let found = names.iter().filter_map(|name| schema.position(name));
            found.into_iter().find(|at| schema.columns[*at].ty == ty)
        };
        let ends = [
            ("src_ip", of(SOURCES, Type::Ip)),
            ("src_port", of(SOURCE_PORTS, Type::Int)),
            ("dest_ip", of(DESTINATIONS, Type::Ip)),
            ("dest_port", of(DESTINATION_PORTS, Type::Int)),
        ];
        Record {
            name: output.name.clone().unwrap_or_else(|| (number + 1).to_string()),
            is_alert: Alert::is_of(schema),
            ts: of(&["ts"], Type::Time),
            ends: ends.into_iter().filter_map(|(key, at)| Some((key, at?))).collect(),
            protocol: of(PROTOCOLS, Type::Int),
            schema: schema.clone(),
        }
    }

    fn row(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let mut record = Members::open(out);
        if let Some(Value::Time(ts)) = self.ts.map(|at| row.value(at)) {
            record.text("timestamp", &timestamp(ts));
        }
        record.text("event_type", if self.is_alert { "alert" } else { "weir" });
        for &(key, at) in &self.ends {
            if row.value(at).exists() {
                row.cell(record.key(key), at);
            }
        }
        if let Some(Value::Int(number)) = self.protocol.map(|at| row.value(at)) {
            record.text("proto", &protocol(number));
        }
        if !self.is_alert {
            let mut inner = Members::open(record.key("weir"));
            inner.text("output", &self.name);
            row.object(inner.key("row"), 0..self.schema.columns.len());
            inner.close();
            return record.end();
        }
        if let Some(Value::Str(id)) = row.named("alert.community_id") {
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
        alert.text("category", "");
        alert.number("severity", number_of(&severity));
        let metadata = alert.key("metadata");
        let mut inner = Members::open(metadata);
        for (key, text) in [("rule", &rule), ("severity", &severity)] {
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
        const TOLD: [&str; 4] = ["rule", "severity", "message", "community_id"];
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

/// A time as Suricata writes it, to the microsecond.
fn timestamp(ns: i64) -> String {
    let seconds = time::rfc3339(ns.div_euclid(1_000_000_000).saturating_mul(1_000_000_000));
    let micros = ns.rem_euclid(1_000_000_000) / 1000;
    format!("{}.{micros:06}+0000", seconds.trim_end_matches('Z'))
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
