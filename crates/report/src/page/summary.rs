//! The capture in a few numbers.

use super::cells::{Cell, Fact, TableView, facts};
use super::whole::Whole;
use crate::markup::Markup;
use crate::number::{grouped, length, moment, short, with_unit, zone_name};
use crate::rows::KeptRows;
use weir_packet::known;

pub(super) fn section(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    if let Some(why) = &whole.ended.cut_short {
        m.raw("<p class=\"warning\">This report is not about the whole input: ").text(why);
        m.raw("</p>\n");
    }
    let totals = whole.rows.table("traffic.totals");
    let (ledger, row) = (&whole.ended.ledger, totals.first());
    let count = |name: &str| row.map_or(0, |row| row.count(name));
    let (packets, bytes) = (count("packets"), count("bytes"));
    let ends = row.and_then(|row| Some((row.ns("first")?, row.ns("last")?)));
    let zone = whole.about.zone;
    let [first_name, last_name] = match zone {
        None => ["First packet (UTC)", "Last packet (UTC)"],
        Some(_) => ["First packet (local time)", "Last packet (local time)"],
    };
    let mut all = Vec::new();
    match ends {
        Some((first, last)) => {
            all.push(Fact::new(first_name, moment(first, zone)));
            all.push(Fact::new(last_name, moment(last, zone)));
            if zone.is_some() {
                all.push(Fact::new("Time zone", zone_name(zone).to_owned()));
            }
            let ns = last.saturating_sub(first);
            all.push(Fact::new("Duration", length(ns)));
            all.push(Fact::new("Packets", grouped(packets)));
            all.push(Fact::new("Bytes on the wire", grouped(bytes)));
            if ns > 0 {
                let by_second = |n: i64| n as f64 * 1e9 / ns as f64;
                let bits = with_unit(by_second(bytes) * 8.0, "bit/s");
                all.push(Fact::new("Mean rate", bits));
                let packets = format!("{}/s", short(by_second(packets)));
                all.push(Fact::new("Mean packet rate", packets));
            }
            let mean = bytes as f64 / packets.max(1) as f64;
            all.push(Fact::new("Mean packet size", format!("{mean:.1} bytes")));
            all.push(Fact::new("Bytes captured", grouped(count("captured"))));
        }
        None => all.push(Fact::new("Packets", grouped(packets))),
    }
    all.push(Fact::new("Findings", grouped(signed(whole.rows.findings.count()))));
    all.push(Fact::trouble("Packets lost", signed(ledger.lost.total())));
    all.push(Fact::trouble("Malformed packets", signed(ledger.malformed_total())));
    all.push(Fact::new("Packets cut in a header", grouped(signed(ledger.cut))));
    facts(&mut m, &all);
    links(&mut m, &whole.rows.table("traffic.links"), packets, bytes);
    interfaces(&mut m, whole);
    m
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Link types, if there are several or an unusual one.
fn links(m: &mut Markup, links: &KeptRows, packets: i64, bytes: i64) {
    let mut table = TableView::new("By link type", &["Link type", "Bytes", "Packets", "Share"]);
    for row in links.rows() {
        let number = row.count("linktype");
        let name = known::link_type(number).map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("link type {number}"));
        let (own, packets) = (row.count("bytes"), row.count("packets"));
        table.row(vec![
            Cell::Text(name),
            Cell::Count(own),
            Cell::Count(packets),
            Cell::Share(own, bytes),
        ]);
    }
    if table.rows.is_empty() {
        return;
    }
    let shown = [links.sum("bytes"), links.sum("packets")];
    table.rest("other link types", &[bytes, packets], &shown, Some(bytes));
    table.write(m);
}

/// The packets received and lost by each interface, where the captures name several.
fn interfaces(m: &mut Markup, whole: &Whole<'_>) {
    if whole.ended.interfaces.len() < 2 {
        return;
    }
    let columns = &["Interface", "Packets received", "Packets lost"];
    let mut table = TableView::new("By interface", columns);
    for (name, account) in &whole.ended.interfaces {
        let lost = signed(account.lost.total());
        table.row(vec![
            Cell::Text(name.clone()),
            Cell::Count(signed(account.received)),
            Cell::Count(lost),
        ]);
    }
    table.write(m);
}
