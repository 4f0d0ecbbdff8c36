//! A summary of a capture as text: what it is, what was found, who talks, and what to ask next.

use crate::collector::Collector;
use crate::labels::{address, kind, service};
use crate::number::{length, moment, percent, with_unit, zone_name};
use crate::page::{About, Ended};
use crate::rows::{KeptRow, KeptRows};
use std::fmt::Write as _;
use weir_base::harmless::escaped;

/// The name of a page in the lines to go on with.
pub const PAGE: &str = "report.html";

/// Steps of the time line.
const STEPS: usize = 60;

/// Packets from which on a time line says more than their number.
const DRAWN_FROM: i64 = 50;

/// Rows of a table.
const ROWS: usize = 5;

/// Findings of all rules together, and characters of one.
const FINDINGS: usize = 10;
const MESSAGE: usize = 100;

/// The levels of a step of the time line.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes the summary. The same rows give the same text. `line` makes a command line, for a person
/// to copy, of the words that stand before the captures.
pub fn summary(
    rows: &Collector,
    about: &About,
    ended: &Ended,
    line: &dyn Fn(&[&str]) -> String,
) -> String {
    let mut out = format!("{}\n\n", one_line(&about.captures.join(", ")));
    whole(&mut out, rows, about, ended);
    let totals = rows.table("traffic.totals");
    let all = totals.sum("bytes");
    findings(&mut out, rows, about);
    hosts(&mut out, rows, all);
    shares(&mut out, "Services", &rows.table("tops.services"), all, service);
    shares(&mut out, "Protocols", &rows.table("tops.protocols"), all, kind);
    names(&mut out, &rows.table("names.names"));
    tcp(&mut out, &rows.table("tcp.totals"));
    dns(&mut out, &rows.table("dns.totals"), &rows.table("dns.speed"));
    next(&mut out, rows, line);
    escaped(&out, true)
}

/// A text without ends of lines, and what else a terminal would obey.
fn one_line(text: &str) -> String {
    escaped(text, false)
}

/// A line of a fact.
fn fact(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<9} {}", one_line(value));
}

/// Packets, bytes, times, and losses.
fn whole(out: &mut String, rows: &Collector, about: &About, ended: &Ended) {
    if let Some(why) = &ended.cut_short {
        fact(out, "cut short", why);
    }
    if !about.filter.is_empty() {
        fact(out, "filter", &about.filter);
    }
    let totals = rows.table("traffic.totals");
    let Some(row) = totals.first() else { return fact(out, "packets", "0") };
    let (packets, bytes) = (row.count("packets"), row.count("bytes"));
    fact(out, "packets", &packets.to_string());
    let ends = row.ns("first").zip(row.ns("last"));
    let ns = ends.map_or(0, |(first, last)| last.saturating_sub(first));
    let mean = bytes as f64 / packets.max(1) as f64;
    let rate = match ns > 0 {
        true => format!(", {}", with_unit(bytes as f64 * 8e9 / ns as f64, "bit/s")),
        false => String::new(),
    };
    fact(out, "bytes", &format!("{bytes} ({mean:.0} a packet{rate})"));
    if let Some((first, last)) = ends {
        let (first, last) = (moment(first, about.zone), moment(last, about.zone));
        let zone = zone_name(about.zone);
        fact(out, "time", &format!("{first} to {} {zone}, {}", after(&first, &last), length(ns)));
    }
    if packets >= DRAWN_FROM {
        time_line(out, rows);
    }
    let ledger = &ended.ledger;
    let trouble = [
        ("lost", ledger.lost.total(), "packets, before they were read"),
        ("malformed", ledger.malformed_total(), "packets"),
        ("cut", ledger.cut, "packets end in a header: they were not captured whole"),
    ];
    for (name, n, what) in trouble.into_iter().filter(|(_, n, _)| *n > 0) {
        fact(out, name, &format!("{n} {what}"));
    }
}

/// The end of a span, without the day that it began on.
fn after<'t>(first: &str, last: &'t str) -> &'t str {
    match (first.split_once(' '), last.split_once(' ')) {
        (Some((day, _)), Some((other, clock))) if day == other => clock,
        _ => last,
    }
}

/// Bits by second over time: a blank where nothing came.
fn time_line(out: &mut String, rows: &Collector) {
    let Some(drawn) = rows.time_line.drawn(STEPS) else { return };
    let steps: Vec<u64> = (0..drawn.steps()).map(|step| drawn.of_step(step).bytes).collect();
    let most = steps.iter().copied().max().unwrap_or(0);
    if steps.len() < 2 || most == 0 {
        return;
    }
    let level = |bytes: &u64| match *bytes {
        0 => ' ',
        n => LEVELS[(n as f64 / most as f64 * 8.0).ceil() as usize - 1],
    };
    let line: String = steps.iter().map(level).collect();
    fact(out, "over time", line.trim_end());
    let (peak, step) = (drawn.by_second(most) * 8.0, length(drawn.step_ns));
    fact(out, "", &format!("{step} a step, at most {}", with_unit(peak, "bit/s")));
    if let Some(outside) = drawn.outside {
        let far = format!("without {} packets that are far from all others", outside.packets);
        fact(out, "", &far);
    }
}

/// The findings of the detectors, the worst first.
fn findings(out: &mut String, rows: &Collector, about: &About) {
    let rules = rows.findings.rules();
    let detectors = about.rules.len();
    if rules.is_empty() {
        let _ = writeln!(out, "\n{detectors} detectors found nothing.");
        return;
    }
    let width = rules.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "\nFindings of {detectors} detectors");
    for (name, rule) in rules.iter().take(FINDINGS) {
        let begun = rule.findings().map(|finding| finding.begun).sum::<u64>() + rule.further;
        let message = rule.findings().next().map_or("", |finding| &finding.message);
        let more = match begun {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let severity = rule.severity.name();
        let _ = writeln!(
            out,
            "  {severity:<8} {name:<width$}  {}{more}",
            one_line(&cut(message, MESSAGE))
        );
    }
    if rules.len() > FINDINGS {
        let _ = writeln!(out, "  and of {} rules more", rules.len() - FINDINGS);
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn hosts(out: &mut String, rows: &Collector, all: i64) {
    let hosts = rows.table("tops");
    if hosts.first().is_none() {
        return;
    }
    let label = |row| address(row, "host");
    let width = hosts.rows().take(ROWS).map(|row| label(row).len()).max().unwrap_or(0).max(12);
    let title = "Hosts";
    let _ =
        writeln!(out, "\n{title:<width$}  {:>12} {:>14} {:>9}", "bytes sent", "received", "sent");
    for row in hosts.rows().take(ROWS) {
        let [sent, received] = ["bytes_out", "bytes_in"].map(|name| row.count(name));
        let share = percent(sent as f64, all as f64);
        let _ = writeln!(out, "  {:<width$}{sent:>12} {received:>14} {share:>9}", label(row));
    }
}

/// A table of shares of all bytes.
fn shares(
    out: &mut String,
    title: &str,
    rows: &KeptRows,
    all: i64,
    label: impl Fn(KeptRow<'_>) -> String,
) {
    let part = |row: KeptRow<'_>| {
        let share = percent(row.count("bytes") as f64, all as f64);
        format!("{} {share}", label(row))
    };
    let parts: Vec<String> = rows.rows().take(ROWS).map(part).collect();
    if !parts.is_empty() {
        let _ = writeln!(out, "\n{title}, by bytes\n  {}", parts.join(", "));
    }
}

fn names(out: &mut String, rows: &KeptRows) {
    let part = |row: KeptRow<'_>| {
        format!("{} ({})", one_line(&cut(&row.shown("name"), 64)), row.count("all"))
    };
    let parts: Vec<String> = rows.rows().take(ROWS).map(part).collect();
    if !parts.is_empty() {
        let _ =
            writeln!(out, "\nNames asked for, by DNS, TLS, QUIC and HTTP\n  {}", parts.join(", "));
    }
}

fn tcp(out: &mut String, totals: &KeptRows) {
    let Some(row) = totals.first().filter(|row| row.count("segments") > 0) else { return };
    let (data, again) = (row.count("data"), row.count("again"));
    let share = percent(again as f64, data as f64);
    let (connections, resets) = (row.count("connections"), row.count("resets"));
    let _ = writeln!(out, "\nTCP\n  {connections} new connections, {resets} resets");
    let _ = writeln!(out, "  {again} of {data} segments with data retransmitted ({share})");
    let times = [
        ("handshake to servers", row.ns("to_server")),
        ("to clients", row.ns("to_client")),
        ("round trip", row.ns("half")),
    ];
    let known = times.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", length(ns?))));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        let _ = writeln!(out, "  {} (medians)", known.join(", "));
    }
}

fn dns(out: &mut String, totals: &KeptRows, speed: &KeptRows) {
    let Some(row) = totals.first().filter(|row| row.count("messages") > 0) else { return };
    let failures = [
        ("no such name", row.count("no_name")),
        ("server failures", row.count("failed")),
        ("refused", row.count("refused")),
    ];
    let mut parts = vec![
        format!("{} questions", row.count("questions")),
        format!("{} answers", row.count("answers")),
    ];
    parts.extend(failures.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{n} {name}")));
    let _ = writeln!(out, "\nDNS\n  {}", parts.join(", "));
    let Some(row) = speed.first().filter(|row| row.count("questions") > 0) else { return };
    let unanswered = row.count("unanswered");
    let time =
        row.ns("half").map_or(String::new(), |ns| format!(", answered in {} (median)", length(ns)));
    let _ = writeln!(
        out,
        "  {unanswered} of {} over UDP without an answer{time}",
        row.count("questions")
    );
}

/// Command lines to go on with.
fn next(out: &mut String, rows: &Collector, line: &dyn Fn(&[&str]) -> String) {
    let has = |table: &str, column: &str| rows.table(table).sum(column) > 0;
    let mut lines = vec![(line(&["top"]), "a screen, on a terminal")];
    if rows.findings.count() > 0 {
        lines.push((line(&["watch", "-o", "json"]), "each alert with its evidence"));
    }
    if has("tcp.totals", "again") {
        lines.push((line(&["tcp-health"]), "retransmissions and round trips over time"));
    }
    if has("dns.speed", "unanswered") {
        lines.push((line(&["unanswered-dns"]), "questions without an answer"));
    }
    if has("traffic.totals", "packets") {
        lines.push((line(&["flows"]), "each flow"));
        lines.push((line(&["report", "-o", PAGE]), "all of this and more, as a page"));
    }
    // Some names can't be shown as they are: their lines would not run.
    lines.retain(|(line, _)| one_line(line) == *line);
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let _ = writeln!(out, "\nNext");
    for (line, why) in lines {
        let _ = writeln!(out, "  {line:<width$}  # {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Step;
    use weir_engine::counters::Ledger;

    #[test]
    fn a_summary_of_nothing_says_so_and_texts_steer_no_terminal() {
        let about = About {
            captures: vec!["\x1b[31mx.pcap".to_owned()],
            filter: "tcp".to_owned(),
            version: "1".to_owned(),
            zone: None,
            rules: Vec::new(),
        };
        let ended = Ended {
            ledger: Ledger::default(),
            text: String::new(),
            interfaces: Vec::new(),
            cut_short: Some("it is torn".to_owned()),
        };
        let line = |words: &[&str]| format!("weir {}", words.join(" "));
        let text = summary(&Collector::new(Step::Millisecond), &about, &ended, &line);
        let expected = "\\u{1b}[31mx.pcap\n\n  cut short it is torn\n  filter    tcp\n  packets   0\n\n\
                        0 detectors found nothing.\n\nNext\n  weir top  # a screen, on a terminal\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_day_is_said_once() {
        assert_eq!(after("2026-01-01 10:00:00", "2026-01-01 10:00:01"), "10:00:01");
        assert_eq!(after("2026-01-01 10:00:00", "2026-01-02 10:00:01"), "2026-01-02 10:00:01");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
