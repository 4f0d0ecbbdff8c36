//! Alerts: rows that say that something is wrong, and for how long it was.

use crate::expr::{Expr, ExprKind};
use crate::functions::Func;
use crate::limits::{ALERT_TICK_MIN_NS, ALERT_TICK_NS};
use crate::schema::{Column, Schema};
use crate::types::Type;
use crate::value::Value;
use weir_base::alert::AlertSeverity;

/// Puts out a row when a key begins to fire, and one when it has ended.
///
/// Each row that comes asserts the alert for its key, at the time that it came: the later of its
/// event time and the watermark, as in a [`crate::Scan`]. A key that does not fire begins to, with
/// a row of state [`AlertState::Start`]. One that fires goes on, without a row; with `repeat_ns`
/// there is a row of state [`AlertState::Ongoing`] if that much time or more has passed since the
/// last row of the key. A key fires [until](Alert::until) the hold is over, and the length of a
/// window, after the latest time that it was asserted: a later row ends it and begins anew, and so
/// does a [tick](Alert::tick) of the watermark that has passed that time. Then there is a row of
/// state [`AlertState::End`], whose event time is when it ended. At the end of the input there is a
/// row of state [`AlertState::Open`] for each key that still fires.
///
/// In each minute of 60 s from 1970 on, by the time that rows came, at most `storm_keys` keys are
/// reported with a row of state start. A further key is reported with others: as long as it
/// fires there is no row of it, and it asserts the *storm* of the rule with each of its
/// rows. The storm begins, goes on and ends as a key does. Its rows say [`STORM_KEY`] for the key,
/// count keys instead of rows, and put how many before the message; what they say of packets is the
/// first and the last of all, and the rest is as of a key whose rows are those that its keys began
/// with. Where it ends with keys, it comes after them.
///
/// Where `max_keys` fire, a further key ends the one whose latest assertion has the earliest time,
/// of several the one that came first: its event time is that of the row, and it is counted as
/// evicted. Keys that end at once come by the time that they ended, then by key.
///
/// The values of a row are those of the row that came, but for what is said of the whole time that
/// the key fired. The values of an end are of the row with the peak: the first of the rows whose
/// compared value is the largest (the smallest, where it had to be below the threshold), or just
/// the first where nothing is compared.
///
/// [`AlertState::Start`]: weir_base::alert::AlertState::Start
/// [`AlertState::Ongoing`]: weir_base::alert::AlertState::Ongoing
/// [`AlertState::End`]: weir_base::alert::AlertState::End
/// [`AlertState::Open`]: weir_base::alert::AlertState::Open
#[derive(Clone, PartialEq, Debug)]
pub struct Alert {
    /// The name of the rule: the output's name among those of several programs.
    pub rule: String,
    /// How bad it is.
    pub severity: AlertSeverity,
    /// Its message.
    pub text: Vec<TextPart>,
    /// The class of the alert, in a few words, such as those of Suricata; `None` if it has none.
    pub category: Option<String>,
    /// The technique of MITRE ATT&CK that it is a sign of, as [`is_technique`] has it.
    pub technique: Option<String>,
    /// The advice on what to look at next; empty if there is none.
    pub next: Vec<TextPart>,
    /// The comparison that rows passed before it.
    pub compared: Option<Compared>,
    /// The columns that tell one alert of the rule from another, with their positions; none: there
    /// is one.
    pub keys: Vec<(String, usize)>,
    /// Position of the column that says when a row was.
    pub ts: usize,
    /// Position of the column that says when the first packet was that counts for a row; where
    /// there is none, or a row has no value, it is the time of the row.
    pub first: Option<usize>,
    /// The same of the last packet; where there is no such column, it is the end of the window.
    pub last: Option<usize>,
    /// How long the windows are that rows come from; 0 where they come from none.
    pub over_ns: i64,
    /// Position of the column that says which share of a window was seen.
    pub completeness: Option<usize>,
    /// The community id of the connection that a row is about.
    pub community: Option<Expr>,
    /// How long a key goes on firing without a row.
    pub hold_ns: i64,
    /// How long until a key that fires is told of again.
    pub repeat_ns: Option<i64>,
    /// Keys that may begin within a minute and are reported one by one.
    pub storm_keys: u64,
    /// Keys that fire at once.
    pub max_keys: u64,
}

/// The key of an alert that stands for many keys.
pub const STORM_KEY: &str = "storm";

/// The message of an alert that stands for so many keys, of which one has this message.
pub fn storm_text(keys: i64, message: &str) -> String {
    format!("and {keys} more: {message}")
}

/// A piece of what an alert says.
#[derive(Clone, PartialEq, Debug)]
pub enum TextPart {
    /// As it stands.
    Text(String),
    /// A value, as `short(…)` shows it; `absent` where there is none.
    Value(Expr),
}

/// A comparison that rows passed.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// The name of what was compared.
    pub field: String,
    /// Its value, a float; of a duration in seconds.
    pub value: Expr,
    /// The threshold that it was compared with, likewise.
    pub threshold: Expr,
    /// Which values are further from the threshold.
    pub peak: Peak,
}

/// Which of several values is the most extreme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peak {
    /// The largest.
    Most,
    /// The smallest.
    Least,
}

/// The columns that come out before those of the input, and their types.
const COLUMNS: [(&str, Type); 20] = [
    ("ts", Type::Time),
    ("alert.rule", Type::Str),
    ("alert.state", Type::Str),
    ("alert.severity", Type::Str),
    ("alert.message", Type::Str),
    ("alert.key", Type::Str),
    ("alert.field", Type::Str),
    ("alert.value", Type::Float),
    ("alert.threshold", Type::Float),
    ("alert.peak", Type::Float),
    ("alert.first", Type::Time),
    ("alert.last", Type::Time),
    ("alert.rows", Type::Int),
    ("alert.window", Type::Duration),
    ("alert.completeness", Type::Float),
    ("alert.community_id", Type::Str),
    ("alert.category", Type::Str),
    ("alert.technique", Type::Str),
    ("alert.next", Type::Str),
    ("alert.suppress", Type::Str),
];

impl Alert {
    /// How many columns come out before those of the input.
    pub const COLUMNS: usize = COLUMNS.len();

    /// The columns that come out before those of the input: their names and types.
    pub fn columns() -> impl Iterator<Item = (&'static str, Type)> {
        COLUMNS.into_iter()
    }

    /// Whether rows of these columns are alerts: they say of what rule, how bad, and what.
    pub fn is_of(schema: &Schema) -> bool {
        let has =
            |name: &str| schema.position(name).is_some_and(|at| schema.columns[at].ty == Type::Str);
        ["alert.rule", "alert.severity", "alert.message"].into_iter().all(has)
    }

    /// Whether an alert puts out a column of this name itself, beside the time.
    pub fn makes(name: &str) -> bool {
        COLUMNS[1..].iter().any(|(own, _)| *own == name)
    }

    /// The columns that say when the first and the last packet was: of the input, where it has
    /// them, and of the alert.
    pub const PACKETS: [&str; 2] = ["alert.first", "alert.last"];

    /// The columns that come out.
    pub(crate) fn output(&self, input: &Schema) -> Schema {
        let own = COLUMNS.iter().map(|(name, ty)| Column::new(name, ty));
        let rest = self.evidence(input).map(|i| input.columns[i].clone());
        Schema { columns: own.chain(rest).collect() }
    }

    /// Positions of the input's columns that come out after those of the alert: all but those that
    /// say when.
    pub fn evidence(&self, input: &Schema) -> impl Iterator<Item = usize> + use<> {
        let times = [Some(self.ts), self.first, self.last];
        (0..input.columns.len()).filter(move |i| !times.contains(&Some(*i)))
    }

    /// The message of the alert, as an expression: a string.
    pub fn message(&self) -> Expr {
        text(&self.text)
    }

    /// The advice on what to look at next, as an expression: a string.
    pub fn next_step(&self) -> Option<Expr> {
        (!self.next.is_empty()).then(|| text(&self.next))
    }

    /// The last time at which a key still fires that was asserted at `t`.
    pub fn until(&self, t: i64) -> i64 {
        t.saturating_add(self.hold_ns).saturating_add(self.over_ns)
    }

    /// How often keys that have ended come out.
    pub fn tick_ns(&self) -> i64 {
        self.hold_ns.saturating_add(self.over_ns).clamp(ALERT_TICK_MIN_NS, ALERT_TICK_NS)
    }

    /// The latest tick that is not after `t`, which is also the watermark of what comes out when
    /// that has been reached; the least time where there is none.
    pub fn tick(&self, t: i64) -> i64 {
        t.checked_sub(t.rem_euclid(self.tick_ns())).unwrap_or(i64::MIN)
    }

    /// Calls `f` on each expression.
    pub(crate) fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        for part in self.text.iter().chain(&self.next) {
            if let TextPart::Value(e) = part {
                f(e);
            }
        }
        if let Some(compared) = &self.compared {
            f(&compared.value);
            f(&compared.threshold);
        }
        self.community.iter().for_each(f);
    }
}

/// Columns that say between whom it was, as far as rows have them: the first that is there of these
/// names and of the type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Endpoints {
    /// The address of the source, or of a client.
    pub source: Option<usize>,
    /// Its port.
    pub source_port: Option<usize>,
    /// The address of the destination, or of a server.
    pub destination: Option<usize>,
    /// Its port.
    pub destination_port: Option<usize>,
    /// The number of the IP protocol.
    pub protocol: Option<usize>,
}

const SOURCES: &[&str] =
    &["ip.src", "src_ip", "conn.a_ip", "client", "attacker", "source", "host", "address", "router"];
const DESTINATIONS: &[&str] =
    &["ip.dst", "dest_ip", "conn.b_ip", "server", "victim", "target", "peer", "host"];
const SOURCE_PORTS: &[&str] = &["sport", "src_port", "conn.a_port", "tcp.sport", "udp.sport"];
const DESTINATION_PORTS: &[&str] =
    &["dport", "dest_port", "conn.b_port", "tcp.dport", "udp.dport", "port"];
const PROTOCOLS: &[&str] = &["ip.proto", "proto"];

impl Endpoints {
    /// The endpoints that rows with these columns have.
    pub fn of(schema: &Schema) -> Endpoints {
        let find = |names: &[&str], ty: Type| {
            let found = names.iter().filter_map(|name| schema.position(name));
            found.into_iter().find(|at| schema.columns[*at].ty == ty)
        };
        let source = find(SOURCES, Type::Ip);
        Endpoints {
            source,
            source_port: find(SOURCE_PORTS, Type::Int),
            destination: find(DESTINATIONS, Type::Ip).filter(|at| Some(*at) != source),
            destination_port: find(DESTINATION_PORTS, Type::Int),
            protocol: find(PROTOCOLS, Type::Int),
        }
    }

    /// The positions of all that a community id is made of.
    pub fn connection(&self) -> Option<[usize; 5]> {
        let (source, destination) = (self.source?, self.destination?);
        Some([source, self.source_port?, destination, self.destination_port?, self.protocol?])
    }
}

/// A text with its values, as an expression.
fn text(parts: &[TextPart]) -> Expr {
    let constant = |text: &str| Expr::constant(Value::Str(text.into()));
    let call = |func, args| Expr { ty: Type::Str, kind: ExprKind::Call(func, args) };
    let piece = |part: &TextPart| match part {
        TextPart::Text(text) => constant(text),
        TextPart::Value(e) => {
            let shown = call(Func::Short, vec![e.clone()]);
            call(Func::Coalesce, vec![shown, constant("absent")])
        }
    };
    let joined = |a, b| call(Func::Concat, vec![a, b]);
    parts.iter().map(piece).reduce(joined).unwrap_or_else(|| constant(""))
}

/// Whether a text is the number of a technique of MITRE ATT&CK: `T1046`, or `T1498.001`.
pub fn is_technique(text: &str) -> bool {
    let digits = |text: &str, n| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    let Some(number) = text.strip_prefix('T') else { return false };
    match number.split_once('.') {
        Some((technique, sub)) => digits(technique, 4) && digits(sub, 3),
        None => digits(number, 4),
    }
}

/// Writes a text as a key or a suppression list has it: as it is, or in quotes where it is empty,
/// reads as `absent`, or has white space, control characters, quotes, backslashes or `#` in it.
/// Within quotes a backslash stands before quotes and backslashes; `\n`, `\r`, `\t` and `\u{…}` are
/// other control characters.
pub fn quote(text: &str, out: &mut String) {
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\' | '#');
    if !text.is_empty() && text != "absent" && !text.contains(odd) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The key of an alert as text, `server=192.0.2.1 port=80`: one form for each key.
pub fn key_text<'a>(parts: impl IntoIterator<Item = (&'a str, &'a Value)>) -> String {
    let mut out = String::new();
    for (name, value) in parts {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(name);
        out.push('=');
        match value {
            Value::Str(text) => quote(text, &mut out),
            value => out.push_str(&value.to_string()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn techniques_have_numbers() {
        let all = ["T1046", "T1498.001", "", "T", "T104", "T10466", "t1046", "T1498.", "T1498.01"];
        let found: Vec<&str> = all.into_iter().filter(|text| is_technique(text)).collect();
        assert_eq!(found, ["T1046", "T1498.001"]);
        assert!(!is_technique("T1498.001.1") && !is_technique("T٤٤٤٤"));
    }

    #[test]
    fn a_key_has_one_text() {
        let check = |value: Value, expected: &str| {
            assert_eq!(key_text([("a", &value)]), format!("a={expected}"));
        };
        let text = |text: &str| Value::Str(text.into());
        check(Value::ip([192, 0, 2, 1].into()), "192.0.2.1");
        check(Value::Absent, "absent");
        check(text("absent"), "\"absent\"");
        check(text("example.org"), "example.org");
        check(text("a=b"), "a=b");
        check(text(""), "\"\"");
        check(text("a b"), "\"a b\"");
        check(text("a\"\\\n\u{1}é#"), r#""a\"\\\n\u{1}é#""#);
        check(Value::Time(0), "1970-01-01T00:00:00Z");
        let (server, port) = (Value::ip([10, 0, 0, 1].into()), Value::Int(80));
        assert_eq!(key_text([("server", &server), ("port", &port)]), "server=10.0.0.1 port=80");
        assert_eq!(key_text([]), "");
    }

    #[test]
    fn times_stay_in_their_range() {
        let alert = Alert {
            rule: "x".into(),
            severity: AlertSeverity::Low,
            text: Vec::new(),
            category: None,
            technique: None,
            next: Vec::new(),
            compared: None,
            keys: Vec::new(),
            ts: 0,
            first: None,
            last: None,
            over_ns: i64::MAX,
            completeness: None,
            community: None,
            hold_ns: i64::MAX,
            repeat_ns: None,
            storm_keys: 1,
            max_keys: 1,
        };
        assert_eq!(alert.until(0), i64::MAX);
        assert_eq!(alert.until(i64::MIN), i64::MAX - 1);
        assert_eq!(alert.tick_ns(), ALERT_TICK_NS);
        assert_eq!(alert.tick(i64::MIN), i64::MIN);
        assert_eq!(alert.tick(-1), -ALERT_TICK_NS);
        let short = Alert { hold_ns: 1, over_ns: 0, ..alert };
        assert_eq!((short.tick_ns(), short.until(7)), (ALERT_TICK_MIN_NS, 8));
    }
}
