//! The hosts that talk most: hosts, pairs, connections, services, protocols and names.

use super::cells::{Cell, TableView};
use super::whole::Whole;
use crate::markup::Markup;
use crate::rows::{KeptRow, KeptRows};
use weir_packet::known;
use weir_plan::Value;

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
    by_bytes(whole, &whole.rows.table("tops.pairs"), table, |row| match row.value("hosts.a") {
        Value::Absent => "not IP".to_owned(),
        _ => format!("{} ↔ {}", row.shown("hosts.a"), row.shown("hosts.b")),
    })
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
    by_bytes(whole, &whole.rows.table("tops.services"), table, |row| {
        let protocol = protocol(row);
        match (row.int("ip.proto"), row.int("port")) {
            (None, None) => "not IP".to_owned(),
            (_, None) => format!("{protocol}, no port"),
            (_, Some(port)) => match known::service(port) {
                Some(name) => format!("{protocol}/{port} {name}"),
                None => format!("{protocol}/{port}"),
            },
        }
    })
}

pub(super) fn protocols(whole: &Whole<'_>) -> Markup {
    let columns = &["Protocol", "Bytes", "Packets", "Share"];
    let table = TableView::new("Protocols of IP, and other types of frames", columns);
    by_bytes(whole, &whole.rows.table("tops.protocols"), table, |row| {
        match (row.int("ip.version"), row.int("type")) {
            (Some(version), _) => format!("IPv{version} {}", protocol(row)),
            (None, Some(number)) => match known::frame_type(number) {
                Some(name) => name.to_owned(),
                None => format!("frame type 0x{number:04x}"),
            },
            (None, None) => "no frame type".to_owned(),
        }
    })
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

/// An address; packets without one are not IP.
fn address(row: KeptRow<'_>, name: &str) -> String {
    match row.value(name) {
        Value::Absent => "not IP".to_owned(),
        _ => row.shown(name),
    }
}

/// The protocol of IP, by name if it has one.
fn protocol(row: KeptRow<'_>) -> String {
    let number = row.int("ip.proto");
    match number.and_then(known::protocol) {
        Some(name) => name.to_owned(),
        None => number.map_or("ip".to_owned(), |number| format!("protocol {number}")),
    }
}

/// A connection by its ends.
pub(super) fn connection(row: KeptRow<'_>) -> String {
    let end = |address: &str, port: &str| match (row.value(address), row.int(port)) {
        (Value::Ip(bits), Some(port)) => {
            std::net::SocketAddr::new(Value::to_ip(*bits), port as u16).to_string()
        }
        _ => row.shown(address),
    };
    match row.value("conn.a_ip") {
        Value::Absent => "not IP".to_owned(),
        _ => format!(
            "{} ↔ {} {}{}",
            end("conn.a_ip", "conn.a_port"),
            end("conn.b_ip", "conn.b_port"),
            protocol(row),
            within(row)
        ),
    }
}

/// In which VLAN and tunnel, where that tells flows apart (`--flow-key`).
fn within(row: KeptRow<'_>) -> String {
    let vlan = match (row.int("vlan.id"), row.int("vlan.inner")) {
        (Some(outer), Some(inner)) => format!(", VLAN {outer}.{inner}"),
        (Some(only), None) => format!(", VLAN {only}"),
        (None, _) => String::new(),
    };
    let tunnel = row.int("tunnel.id").map(|id| format!(", tunnel {id}"));
    vlan + &tunnel.unwrap_or_default()
}

/// The end of a connection that serves, by its columns `server` and `port`.
pub(super) fn server(row: KeptRow<'_>) -> String {
    match (row.value("server"), row.int("port")) {
        (Value::Ip(bits), Some(port)) => {
            let end = std::net::SocketAddr::new(Value::to_ip(*bits), port as u16).to_string();
            known::service(port).map_or(end.clone(), |name| format!("{end} {name}"))
        }
        _ => address(row, "server"),
    }
}
