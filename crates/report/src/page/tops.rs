//! The hosts that talk most: hosts, pairs, connections, services, protocols and names.

use super::cells::{Cell, TableView};
use super::whole::Whole;
use crate::labels::{address, connection, kind, pair, service};
use crate::markup::Markup;
use crate::rows::{KeptRow, KeptRows};

/// The bytes and packets of the whole capture.
fn totals(whole: &Whole<'_>) -> [i64; 2] {
    let totals = whole.rows.table("traffic.totals");
    [totals.sum("bytes"), totals.sum("packets")]
}

/// A table of bytes and packets by key, with what is left of the total.
fn by_bytes(
    whole: &Whole<'_>,
    rows: &KeptRows,
    mut table: TableView,
    label: impl Fn(KeptRow<'_>) -> String,
) -> Markup {
    let mut m = Markup::default();
    let all = totals(whole);
    for row in rows.rows() {
        let bytes = row.count("bytes");
        table.row(vec![
            Cell::Text(label(row)),
            Cell::Count(bytes),
            Cell::Count(row.count("packets")),
            Cell::Share(bytes, all[0]),
        ]);
    }
    if !table.rows.is_empty() {
        let shown = [rows.sum("bytes"), rows.sum("packets")];
        table.rest("other", &all, &shown, Some(all[0]));
        table.write(&mut m);
    }
    m
}

pub(super) fn hosts(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let rows = whole.rows.table("tops");
    let [bytes, packets] = totals(whole);
    let columns = &[
        "Host",
        "Bytes sent",
        "Bytes received",
        "Packets sent",
        "Packets received",
        "Share of sent",
    ];
    let mut table = TableView::new("Hosts with the most bytes, sent and received", columns);
    let counts = ["bytes_out", "bytes_in", "packets_out", "packets_in"];
    for row in rows.rows() {
        let mut cells = vec![Cell::Text(address(row, "host"))];
        cells.extend(counts.map(|name| Cell::Count(row.count(name))));
        cells.push(Cell::Share(row.count("bytes_out"), bytes));
        table.row(cells);
    }
    if !table.rows.is_empty() {
        let shown = counts.map(|name| rows.sum(name));
        table.rest("other", &[bytes, bytes, packets, packets], &shown, Some(bytes));
        table.write(&mut m);
    }
    m
}

pub(super) fn pairs(whole: &Whole<'_>) -> Markup {
    let columns = &["Pair", "Bytes", "Packets", "Share"];
    let table = TableView::new("Pairs of hosts with the most bytes, in both directions", columns);
    by_bytes(whole, &whole.rows.table("tops.pairs"), table, pair)
}

pub(super) fn flows(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let rows = whole.rows.table("tops.flows");
    let [bytes, packets] = totals(whole);
    let columns = &["Connection", "Bytes", "Packets", "Share", "Duration"];
    let mut table = TableView::new("Connections with the most bytes, in both directions", columns);
    for row in rows.rows() {
        let own = row.count("bytes");
        let ends = row.ns("first").zip(row.ns("last"));
        table.row(vec![
            Cell::Text(connection(row)),
            Cell::Count(own),
            Cell::Count(row.count("packets")),
            Cell::Share(own, bytes),
            Cell::Length(ends.map(|(first, last)| last.saturating_sub(first))),
        ]);
    }
    if !table.rows.is_empty() {
        let shown = [rows.sum("bytes"), rows.sum("packets")];
        table.rest("other", &[bytes, packets], &shown, Some(bytes));
        table.write(&mut m);
    }
    m
}

pub(super) fn services(whole: &Whole<'_>) -> Markup {
    let columns = &["Service", "Bytes", "Packets", "Share"];
    let table = TableView::new("Services by protocol and the smaller port", columns);
    by_bytes(whole, &whole.rows.table("tops.services"), table, service)
}

pub(super) fn protocols(whole: &Whole<'_>) -> Markup {
    let columns = &["Protocol", "Bytes", "Packets", "Share"];
    let table = TableView::new("Protocols of IP, and other types of frames", columns);
    by_bytes(whole, &whole.rows.table("tops.protocols"), table, kind)
}

pub(super) fn names(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let rows = whole.rows.table("names.names");
    let columns =
        &["Name", "DNS questions", "TLS hellos", "QUIC hellos", "HTTP requests", "Clients"];
    let mut table = TableView::new("Names that hosts ask for, in DNS, TLS, QUIC and HTTP", columns);
    let counts = ["questions", "tls", "quic", "http"];
    for row in rows.rows() {
        let mut cells = vec![Cell::Text(row.shown("name"))];
        cells.extend(counts.map(|name| Cell::Count(row.count(name))));
        cells.push(Cell::Count(row.count("clients")));
        table.row(cells);
    }
    if !table.rows.is_empty() {
        let totals = whole.rows.table("names.totals");
        let all = counts.map(|name| totals.sum(name));
        table.rest("other", &all, &counts.map(|name| rows.sum(name)), None);
        table.write(&mut m);
    }
    m
}
