//! Traffic over time, and by size.

use super::cells::{Cell, TableView};
use super::whole::Whole;
use crate::limits::{POINTS_MAX, TIME_ROWS_MAX};
use crate::markup::Markup;
use crate::number::{grouped, length, moment, percent, short, zone_name};
use crate::plot::{Caption, Stack, color, stacked};
use crate::timeline::{DrawnTime, Outside, Traffic};
use weir_plan::TimeZone;

/// The measure that is drawn over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Measure {
    Packets,
    Bits,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Measure::Packets => "Packets per second",
            Measure::Bits => "Bits per second",
        }
    }

    /// So much by second.
    fn of(self, time: &DrawnTime, traffic: Traffic) -> f64 {
        match self {
            Measure::Packets => time.by_second(traffic.packets),
            Measure::Bits => time.by_second(traffic.bytes.saturating_mul(8)),
        }
    }
}

pub(super) fn time_lines(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let Some(time) = whole.rows.time_line.drawn(POINTS_MAX) else { return m };
    let zone = whole.about.zone;
    for (number, measure) in [Measure::Bits, Measure::Packets].into_iter().enumerate() {
        picture(&mut m, &time, (measure, number + 1), zone);
    }
    legend(&mut m, &time);
    if let Some(Outside { packets, first, last }) = time.outside {
        m.raw("<p class=\"note\">Not in these pictures: ").text(&short(packets as f64));
        m.raw(" packets far from all others, from ").text(&moment(first, zone)).raw(" to ");
        m.text(&moment(last, zone)).raw(".</p>\n");
    }
    if whole.ended.ledger.late > 0 {
        m.raw("<p class=\"note\">Packets that came too late for their step are not in these ");
        m.raw("pictures; the ledger below counts them.</p>\n");
    }
    as_table(&mut m, whole);
    m
}

/// Draws a picture with its description.
fn picture(
    m: &mut Markup,
    time: &DrawnTime,
    (measure, number): (Measure, usize),
    zone: Option<TimeZone>,
) {
    let values = time
        .kinds
        .iter()
        .map(|steps| steps.iter().map(|traffic| measure.of(time, *traffic)).collect::<Vec<_>>());
    let of_steps = (0..time.steps()).map(|step| (measure.of(time, time.of_step(step)), step));
    let top = of_steps.fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
    let about = format!(
        "From {} to {} {} in steps of {}: by kind of traffic, on top of one another. The highest \
         step has {} and starts at {}.",
        moment(time.from, zone),
        moment(time.start(time.steps()), zone),
        zone_name(zone),
        length(time.step_ns),
        short(top.0),
        moment(time.start(top.1), zone),
    );
    let caption = Caption { title: measure.title(), about: &about, number, zone };
    let stack = Stack { caption, from: time.from, step_ns: time.step_ns, values: values.collect() };
    m.raw("<figure><figcaption>").raw(measure.title()).raw(" <span class=\"note\">(steps of ");
    m.text(&length(time.step_ns)).raw(", ").text(zone_name(zone));
    m.raw(")</span></figcaption>\n");
    m.piece(&stacked(&stack)).raw("</figure>\n");
}

/// The kinds and their colours.
fn legend(m: &mut Markup, time: &DrawnTime) {
    let bytes = |steps: &[Traffic]| steps.iter().map(|n| n.bytes).sum::<u64>() as f64;
    let all: f64 = time.kinds.iter().map(|steps| bytes(steps)).sum();
    m.raw("<ul class=\"legend\" aria-label=\"Kinds of traffic\">");
    for (kind, (name, steps)) in time.names.iter().zip(&time.kinds).enumerate() {
        m.raw("<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"area ");
        m.raw(color(kind)).raw("\" width=\"10\" height=\"10\"/></svg>").text(name).raw(" ");
        m.text(&percent(bytes(steps), all)).raw("</li>");
    }
    m.raw("</ul>\n");
}

/// The same as a table, in longer steps.
fn as_table(m: &mut Markup, whole: &Whole<'_>) {
    let Some(time) = whole.rows.time_line.drawn(TIME_ROWS_MAX) else { return };
    let zone = whole.about.zone;
    let columns = match zone {
        None => &["Start (UTC)", "Packets", "Bytes", "Bits per second", "Packets per second"],
        Some(_) => {
            &["Start (local time)", "Packets", "Bytes", "Bits per second", "Packets per second"]
        }
    };
    let mut table = TableView::new("Traffic over time", columns);
    for step in 0..time.steps() {
        let traffic = time.of_step(step);
        table.row(vec![
            Cell::Text(moment(time.start(step), zone)),
            Cell::Count(traffic.packets as i64),
            Cell::Count(traffic.bytes as i64),
            Cell::Text(short(Measure::Bits.of(&time, traffic))),
            Cell::Text(short(Measure::Packets.of(&time, traffic))),
        ]);
    }
    m.raw("<details><summary>As a table, in steps of ").text(&length(time.step_ns));
    m.raw("</summary>\n");
    table.write(m);
    m.raw("</details>\n");
}

pub(super) fn sizes(whole: &Whole<'_>) -> Markup {
    let mut m = Markup::default();
    let sizes = whole.rows.table("traffic.sizes");
    let (packets, bytes) = (sizes.sum("packets"), sizes.sum("bytes"));
    let columns =
        &["Bytes on the wire", "Packets", "Bytes", "Smallest", "Largest", "Share of packets"];
    let mut table = TableView::new("Packets by their length", columns);
    for row in sizes.rows() {
        let least = row.count("size");
        let name = match least {
            0 => "below 64".to_owned(),
            1024 => "1024 to 1518".to_owned(),
            1519 => "1519 to 9018".to_owned(),
            9019 => "more".to_owned(),
            n => format!("{n} to {}", 2 * n - 1),
        };
        table.row(vec![
            Cell::Text(name),
            Cell::Count(row.count("packets")),
            Cell::Count(row.count("bytes")),
            Cell::Text(grouped(row.count("least"))),
            Cell::Text(grouped(row.count("most"))),
            Cell::Share(row.count("packets"), packets),
        ]);
    }
    if table.rows.is_empty() {
        return m;
    }
    let none = || Cell::Text(String::new());
    table.total = Some(vec![
        Cell::Text("total".to_owned()),
        Cell::Count(packets),
        Cell::Count(bytes),
        none(),
        none(),
        Cell::Share(packets, packets),
    ]);
    table.write(&mut m);
    m
}
