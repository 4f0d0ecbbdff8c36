//! A line for each alert, for people who watch: when, how bad, which rule, and its message. Rows of
//! other queries are a line each, too, with the name of their output and their columns by name.

use crate::format::{Format, Holds};
use crate::grid;
use crate::limits::RULE_WIDTH_MAX;
use crate::lines::{LineFormat, Lines};
use crate::options::RowOptions;
use crate::text;
use std::io::{self, Write};
use weir_base::alert::AlertSeverity;
use weir_engine::rows::{Output, Rows};
use weir_plan::{Alert, Schema, Type, Value};

/// Lines of alerts.
pub static FORMAT: Format = Format {
    name: "alerts",
    title: "Lines of alerts",
    about: "One line an alert, for people: time, severity, rule, message",
    ending: "alerts.txt",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(AlertLines::new(out, options)),
};

/// Writes rows as lines of alerts.
pub type AlertLines<W> = Lines<W, AlertText>;

/// Characters that a severity takes.
const SEVERITY: usize = 8;

/// The lines of alerts, and of other rows.
#[derive(Debug)]
pub struct AlertText {
    options: RowOptions,
    outputs: Vec<Shown>,
    /// Characters that the longest name of a rule takes, as far as names are lined up.
    width: usize,
}

/// An output, and the columns of an alert in it.
#[derive(Debug)]
struct Shown {
    name: String,
    schema: Schema,
    ts: Option<usize>,
    alert: Option<[usize; 4]>,
    /// The first and the last packet of the alert.
    span: Option<[usize; 2]>,
}

impl<W: Write> AlertLines<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W, options: RowOptions) -> AlertLines<W> {
        Lines::of_format(out, AlertText { options, outputs: Vec::new(), width: 0 })
    }
}

impl LineFormat for AlertText {
    fn open(&mut self, outputs: &[Output], _out: &mut Vec<u8>) -> io::Result<()> {
        self.outputs = outputs.iter().enumerate().map(|(i, o)| Shown::new(o, i)).collect();
        let names = self.outputs.iter().map(|output| output.name.chars().count());
        self.width = names.filter(|n| *n <= RULE_WIDTH_MAX).max().unwrap_or(0);
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize) {
        let shown = &self.outputs[output];
        if let Some(ts) = shown.ts.filter(|ts| rows.columns[*ts].present.has(i)) {
            shown.cell(out, rows, i, ts, self.options);
            out.extend_from_slice(b"  ");
        }
        match &shown.alert {
            Some(columns) => self.alert(out, shown, columns, rows, i),
            None => shown.other(out, rows, i, self.options),
        }
        out.push(b'\n');
    }
}

impl AlertText {
    /// The rest of a line of an alert.
    fn alert(
        &self,
        out: &mut Vec<u8>,
        shown: &Shown,
        &[state, severity, rule, message]: &[usize; 4],
        rows: &Rows,
        i: usize,
    ) {
        let text = |column: usize| match rows.value(i, column, &Type::Str) {
            Value::Str(text) => text.to_string(),
            _ => String::new(),
        };
        let severity = text(severity);
        let (color, plain) = match AlertSeverity::of_name(&severity) {
            Some(worst) if self.options.color => (color(worst), "\x1b[0m"),
            _ => ("", ""),
        };
        out.extend_from_slice(format!("{color}{severity:<SEVERITY$}{plain}  ").as_bytes());
        let rule = text(rule);
        grid::harmless(out, &rule);
        let gap = self.width.saturating_sub(rule.chars().count()) + 2;
        out.resize(out.len() + gap, b' ');
        let word = match text(state).as_str() {
            "start" => "",
            "end" => "ended",
            "open" => "goes on at the end of the input",
            _ => "goes on",
        };
        if !word.is_empty() {
            out.extend_from_slice(word.as_bytes());
            if let Some(ns) = shown.lasted(rows, i) {
                out.extend_from_slice(b" after ");
                text::duration_short(out, ns);
            }
            out.extend_from_slice(b": ");
        }
        grid::harmless(out, &text(message));
    }
}

/// The color of a severity.
fn color(severity: AlertSeverity) -> &'static str {
    match severity {
        AlertSeverity::Critical | AlertSeverity::High => "\x1b[1;31m",
        AlertSeverity::Medium => "\x1b[1;33m",
        AlertSeverity::Low | AlertSeverity::Info => "\x1b[2m",
    }
}

impl Shown {
    fn new(output: &Output, number: usize) -> Shown {
        let schema = &output.schema;
        let is = |at: &usize, ty: &Type| schema.columns[*at].ty == *ty;
        let of = |name: &str, ty: Type| schema.position(name).filter(|at| is(at, &ty));
        let words = ["alert.state", "alert.severity", "alert.rule", "alert.message"];
        let [state, severity, rule, message] = words.map(|name| of(name, Type::Str));
        let alert = || Some([state?, severity?, rule?, message?]);
        let [first, last] = Alert::PACKETS.map(|name| of(name, Type::Time));
        Shown {
            name: output.name.clone().unwrap_or_else(|| (number + 1).to_string()),
            ts: of("ts", Type::Time),
            alert: alert(),
            span: first.zip(last).map(|(first, last)| [first, last]),
            schema: schema.clone(),
        }
    }

    /// How long an alert has lasted by now.
    fn lasted(&self, rows: &Rows, i: usize) -> Option<i64> {
        let [first, last] = self.span?.map(|column| match rows.value(i, column, &Type::Time) {
            Value::Time(ns) => Some(ns),
            _ => None,
        });
        Some(last?.saturating_sub(first?))
    }

    /// A row that is no alert: the name of its output, and its columns.
    fn other(&self, out: &mut Vec<u8>, rows: &Rows, i: usize, options: RowOptions) {
        grid::harmless(out, &self.name);
        for (column, info) in self.schema.columns.iter().enumerate() {
            if Some(column) == self.ts || !rows.columns[column].present.has(i) {
                continue;
            }
            out.extend_from_slice(b"  ");
            grid::harmless(out, &info.name);
            out.push(b'=');
            self.cell(out, rows, i, column, options);
        }
    }

    fn cell(&self, out: &mut Vec<u8>, rows: &Rows, i: usize, column: usize, options: RowOptions) {
        let ty = &self.schema.columns[column].ty;
        grid::value::<crate::table::Plain>(
            out,
            rows.columns[column].raw(i),
            ty,
            &rows.arena,
            options.time,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output, rows};

    const COLUMNS: &[(&str, Type)] = &[
        ("ts", Type::Time),
        ("alert.rule", Type::Str),
        ("alert.state", Type::Str),
        ("alert.severity", Type::Str),
        ("alert.message", Type::Str),
        ("alert.first", Type::Time),
        ("alert.last", Type::Time),
    ];

    fn written(options: RowOptions) -> String {
        let second = 1_000_000_000;
        let (alerts, others) =
            (output(Some("port_scan"), COLUMNS), output(Some("flows"), &[("n", Type::Int)]));
        let text = |text: &str| Value::Str(text.into());
        let row = |ts: i64, state: &str, severity: &str, message: &str| {
            let times = [Value::Time(0), Value::Time(ts * second)];
            let words = ["port_scan", state, severity, message].map(text);
            [Value::Time(ts * second)].into_iter().chain(words).chain(times).collect::<Vec<_>>()
        };
        let batch = [
            row(0, "start", "medium", "a scans b"),
            row(20, "ongoing", "high", "a scans c"),
            row(34, "end", "low", "a\x1b[31m scans c"),
            row(40, "open", "info", "a scans c"),
        ];
        let mut sink = AlertLines::new(Vec::new(), options);
        use weir_engine::rows::Sink as _;
        sink.open(&[alerts.clone(), others.clone()]).expect("opens");
        sink.rows(0, &rows(&alerts, &batch)).expect("writes");
        sink.rows(1, &rows(&others, &[vec![Value::Int(7)], vec![Value::Absent]])).expect("writes");
        sink.finish().expect("finishes");
        String::from_utf8(sink.into_inner()).expect("UTF-8")
    }

    #[test]
    fn an_alert_is_a_line_and_says_how_long_it_lasts() {
        let expected = "\
1970-01-01T00:00:00Z  medium    port_scan  a scans b
1970-01-01T00:00:20Z  high      port_scan  goes on after 20s: a scans c
1970-01-01T00:00:34Z  low       port_scan  ended after 34s: a\\u{1b}[31m scans c
1970-01-01T00:00:40Z  info      port_scan  goes on at the end of the input after 40s: a scans c
flows  n=7
flows
";
        assert_eq!(written(RowOptions::default()), expected);
    }

    #[test]
    fn severities_have_colors() {
        let text = written(RowOptions { color: true, ..RowOptions::default() });
        assert!(text.contains("\x1b[1;33mmedium  \x1b[0m  port_scan"), "{text:?}");
        assert!(text.contains("\x1b[1;31mhigh    \x1b[0m") && text.contains("\x1b[2minfo"));
        assert_eq!(text.matches('\x1b').count(), 8);
    }
}
