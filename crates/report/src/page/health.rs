//! How TCP and DNS do.

use super::cells::{Cell, Fact, TableView, facts};
use super::whole::Whole;
use crate::labels::{connection, server};
use crate::markup::Markup;
use crate::number::{grouped, length, percent};
use crate::rows::KeptRow;
use weir_packet::known;

/// A length of time that may not be known.
fn time(row: KeptRow<'_>, name: &str) -> String {
    row.ns(name).map_or("–".to_owned(), length)
}

/// Facts that are counts of a row.
fn counts(row: KeptRow<'_>, names: &[(&'static str, &str)]) -> Vec<Fact> {
    names.iter().map(|(title, name)| Fact::new(title, grouped(row.count(name)))).collect()
}

pub(super) fn tcp(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let totals = whole.rows.table("tcp.totals");
    let Some(row) = totals.first().filter(|row| row.count("segments") > 0) else { return m };
    let (data, again) = (row.count("data"), row.count("again"));
    let mut all = counts(
        row,
        &[
            ("Segments", "segments"),
            ("Connections", "connections"),
            ("SYN", "syns"),
            ("SYN-ACK", "syn_acks"),
            ("Resets", "resets"),
            ("Segments with data", "data"),
        ],
    );
    let share = percent(again as f64, data as f64);
    all.push(Fact::new("Data retransmitted", format!("{} ({share} of it)", grouped(again))));
    all.extend(counts(
        row,
        &[
            ("of these fast", "fast"),
            ("of these spurious", "spurious"),
            ("SYN and FIN retransmitted", "syn_fin"),
            ("Out of order", "out_of_order"),
            ("Not captured", "not_captured"),
            ("Duplicate ACKs", "duplicates"),
            ("Zero windows", "zero_windows"),
            ("Full windows", "full_windows"),
            ("Keep-alives", "keep_alives"),
        ],
    ));
    for (title, name) in [
        ("Handshake to servers, median", "to_server"),
        ("Handshake to clients, median", "to_client"),
        ("Round trip, median", "half"),
        ("Round trip, 95th percentile", "p95"),
    ] {
        all.push(Fact::new(title, time(row, name)));
    }
    facts(&mut m, &all);
    servers(&mut m, whole);
    connections(&mut m, whole);
    m
}

fn servers(m: &mut Markup, whole: &Whole<'_>) {
    let rows = whole.rows.table("tcp.servers");
    let columns = &[
        "Server",
        "Connections",
        "Data",
        "Retransmitted",
        "SYN, FIN again",
        "Out of order",
        "Zero windows",
        "Resets",
        "Handshake",
        "Round trip",
        "95 %",
    ];
    let caption = "Servers with the most retransmissions, with segments in both directions";
    let mut table = TableView::new(caption, columns);
    for row in rows.rows() {
        let mut cells = vec![Cell::Text(server(row))];
        let names =
            ["connections", "data", "again", "syn_fin", "out_of_order", "zero_windows", "resets"];
        cells.extend(names.map(|name| Cell::Count(row.count(name))));
        cells.extend(["to_server", "half", "p95"].map(|name| Cell::Length(row.ns(name))));
        table.row(cells);
    }
    table.write(m);
}

fn connections(m: &mut Markup, whole: &Whole<'_>) {
    let rows = whole.rows.table("tcp.worst");
    let columns = &[
        "Connection",
        "Data",
        "Retransmitted",
        "SYN, FIN again",
        "Out of order",
        "Duplicate ACKs",
        "Zero windows",
        "Resets",
        "Round trip",
    ];
    let mut table = TableView::new("Connections in most trouble", columns);
    for row in rows.rows() {
        let mut cells = vec![Cell::Text(connection(row))];
        let names =
            ["data", "again", "syn_fin", "out_of_order", "duplicates", "zero_windows", "resets"];
        cells.extend(names.map(|name| Cell::Count(row.count(name))));
        cells.push(Cell::Length(row.ns("half")));
        table.row(cells);
    }
    if table.rows.is_empty() {
        m.raw("<p class=\"note\">No connection has segments that were retransmitted, out of ");
        m.raw("order, or with a zero window.</p>\n");
    } else {
        table.write(m);
    }
}

pub(super) fn dns(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let (totals, speed) = (whole.rows.table("dns.totals"), whole.rows.table("dns.speed"));
    let Some(row) = totals.first().filter(|row| row.count("messages") > 0) else { return m };
    let mut all = counts(
        row,
        &[
            ("Questions", "questions"),
            ("Answers", "answers"),
            ("No such name", "no_name"),
            ("Server failures", "failed"),
            ("Refused", "refused"),
            ("Truncated answers", "truncated"),
            ("Messages over TCP", "over_tcp"),
        ],
    );
    if let Some(row) = speed.first().filter(|row| row.count("questions") > 0) {
        let unanswered = row.count("unanswered");
        let asked = row.count("questions");
        let share = percent(unanswered as f64, asked as f64);
        all.push(Fact::new("Unanswered (UDP, 10 s)", format!("{} ({share})", grouped(unanswered))));
        all.push(Fact::new("Answer time, median", time(row, "half")));
        all.push(Fact::new("Answer time, 95th percentile", time(row, "p95")));
        all.push(Fact::new("Slowest answer", time(row, "slowest")));
    }
    facts(&mut m, &all);
    let columns = &["Server", "Questions", "Unanswered", "Median", "95 %", "Slowest"];
    let mut table = TableView::new("Servers that were asked over UDP", columns);
    for row in whole.rows.table("dns.servers").rows() {
        table.row(vec![
            Cell::Text(row.shown("server")),
            Cell::Count(row.count("questions")),
            Cell::Count(row.count("unanswered")),
            Cell::Length(row.ns("half")),
            Cell::Length(row.ns("p95")),
            Cell::Length(row.ns("slowest")),
        ]);
    }
    if !table.rows.is_empty() {
        table.write(&mut m);
    }
    let types = TableView::new("Questions by type", &["Type", "Questions", "Share"]);
    numbers(&mut m, whole, types, ["dns.types", "type", "questions"], known::dns_type);
    let codes = TableView::new("Answers by code", &["Code", "Answers", "Share"]);
    numbers(&mut m, whole, codes, ["dns.codes", "code", "answers"], known::dns_code);
    m
}

/// A table of counts by a number that has a name. `names`: its output, the column of the number,
/// and that of the count.
fn numbers(
    m: &mut Markup,
    whole: &Whole<'_>,
    mut table: TableView,
    names: [&str; 3],
    known: fn(i64) -> Option<&'static str>,
) {
    let [output, number, count] = names;
    let rows = whole.rows.table(output);
    let all = whole.rows.table("dns.totals").sum(count);
    for row in rows.rows() {
        let label = match row.int(number) {
            None => "none".to_owned(),
            Some(n) => known(n).map_or(n.to_string(), |name| format!("{n} {name}")),
        };
        let own = row.count(count);
        table.row(vec![Cell::Text(label), Cell::Count(own), Cell::Share(own, all)]);
    }
    if !table.rows.is_empty() {
        table.rest("other", &[all], &[rows.sum(count)], Some(all));
        table.write(m);
    }
}
