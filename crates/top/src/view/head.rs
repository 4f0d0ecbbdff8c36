//! The lines above the tables: where packets come from, rates, time lines, losses, interfaces.

use super::canvas::{Canvas, columns};
use super::spark;
use crate::app::App;
use crate::number::{grouped, length, percent, short};
use crate::query::Pace;
use crate::series::{Point, Series};
use crate::state::{Phase, RunState};
use ratatui::style::Style;
use weir_engine::counters::Ledger;

/// The width from which texts are written out.
const WIDE: u16 = 60;

/// Draws them; gives the number of the line after.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App, state: &RunState) -> u16 {
    title(canvas, app, state);
    let height = match canvas.area.height {
        ..30 => 1,
        30..45 => 3,
        _ => 4,
    };
    let total = app.shown.of_filter;
    let series = &app.shown.series;
    let mut y = 1;
    let packets = RateLine { title: "packets/s", rate: total.packets_per_s, of: |p| p.packets };
    y += packets.draw(canvas, series, y, height, canvas.look.packets());
    let bits = RateLine { title: "bits/s", rate: total.bits_per_s, of: |p| p.bytes };
    y += bits.draw(canvas, series, y, height, canvas.look.bits());
    if canvas.area.height >= 16 {
        y += axis(canvas, app, y);
    }
    y += losses(canvas, &state.ledger, y);
    if canvas.area.height >= 20 {
        y += interfaces(canvas, app, state, y);
    }
    if !app.filter.is_empty() {
        let x = canvas.text(0, y, 8, "filter ", canvas.look.title());
        let width = canvas.area.width - x;
        let filter = canvas.fit(&crate::clean(&app.filter), width);
        canvas.text(x, y, width, &filter, canvas.look.notice());
        y += 1;
    }
    y
}

fn title(canvas: &mut Canvas<'_>, app: &App, state: &RunState) {
    let (width, look) = (canvas.area.width, canvas.look);
    let ended = matches!(state.phase, Phase::Ended { .. });
    let (word, style) = match (&state.phase, app.paused) {
        (_, true) if width >= WIDE => ("PAUSED, counting goes on: Space".to_owned(), look.notice()),
        (_, true) => ("PAUSED".to_owned(), look.notice()),
        (Phase::Ended { error: Some(_) }, _) => ("failed".to_owned(), look.loss()),
        (Phase::Ended { error: None }, _) => ("ended".to_owned(), look.notice()),
        (Phase::Running { read: Some(read) }, _) => {
            (format!("reading {:.0} %", read * 100.0), look.notice())
        }
        (Phase::Running { read: None }, _) => ("live".to_owned(), look.packets()),
    };
    let right = match app.shown.now.filter(|_| app.shown.pace != Pace::Whole || !ended) {
        Some(now) => format!("{word}  {}", app.times().to_second(now)),
        None => word,
    };
    let x = canvas.text(0, 0, 10, "weir top  ", look.title());
    let left = width.saturating_sub(x + columns(&right) + 1);
    let source = canvas.fit(&app.source, left);
    canvas.text(x, 0, left, &source, Style::new());
    canvas.right(width, 0, width - x, &right, style);
}

/// A rate, and how it was over time.
struct RateLine {
    title: &'static str,
    rate: f64,
    of: fn(Point) -> u64,
}

impl RateLine {
    /// Draws it; gives its height.
    fn draw(
        &self,
        canvas: &mut Canvas<'_>,
        series: &Series,
        y: u16,
        height: u16,
        style: Style,
    ) -> u16 {
        canvas.text(0, y, 9, self.title, canvas.look.title());
        canvas.right(17, y, 7, &short(self.rate), Style::new());
        let from = LINE_FROM.min(canvas.area.width);
        let values = usize::from(canvas.area.width - from) * canvas.look.glyphs.per_column();
        let values = series.fitted(values, self.of);
        let lines = spark::lines(&values, height.into(), canvas.look.glyphs);
        for (line, y) in lines.iter().zip(y..) {
            canvas.text(from, y, canvas.area.width, line, style);
        }
        height
    }
}

/// The column where time lines begin.
const LINE_FROM: u16 = 19;

/// The times at which the lines begin and end; gives the height.
fn axis(canvas: &mut Canvas<'_>, app: &App, y: u16) -> u16 {
    let look = canvas.look;
    let Some((start, end)) = app.shown.series.span() else { return 1 };
    let width = i64::from(canvas.area.width.saturating_sub(LINE_FROM));
    let (from, to) = match app.shown.pace {
        Pace::Whole => {
            let (times, lasts) = (app.times(), length(end - start));
            let to = format!("{} {}, {lasts}", times.to_second(end), times.zone());
            (times.to_second(start), to)
        }
        _ => {
            let seconds = width * look.glyphs.per_column() as i64;
            (format!("-{}", length(seconds.saturating_mul(app.shown.series.step()))), "now".into())
        }
    };
    canvas.text(LINE_FROM, y, canvas.area.width, &from, look.faint());
    canvas.right(canvas.area.width, y, canvas.area.width - LINE_FROM, &to, look.faint());
    1
}

/// A count of the ledger.
struct Count {
    name: &'static str,
    short: &'static str,
    n: u64,
    /// Whether it is shown although it is 0.
    always: bool,
    is_loss: bool,
}

fn counts(ledger: &Ledger) -> Vec<Count> {
    let count = |name, short, n, always, is_loss| Count { name, short, n, always, is_loss };
    vec![
        count("received", "rcvd", ledger.received, true, false),
        count("lost", "lost", ledger.lost.total(), true, true),
        count("malformed", "malf", ledger.malformed_total(), true, false),
        count("late", "late", ledger.late, true, true),
        count("cut", "cut", ledger.cut, false, false),
        count("filtered", "filt", ledger.filtered, false, false),
        count("lagging", "lag", ledger.lagging, false, true),
        count("evicted", "evic", ledger.evicted, false, true),
        count("wild", "wild", ledger.wild, false, true),
        count("abandoned", "aban", ledger.abandoned, false, true),
    ]
}

/// The fate of packets, in one unit; gives the height.
fn losses(canvas: &mut Canvas<'_>, ledger: &Ledger, y: u16) -> u16 {
    let (width, look) = (canvas.area.width, canvas.look);
    let wide = width >= WIDE;
    let mut x = if wide { canvas.text(0, y, 9, "packets  ", look.title()) } else { 0 };
    for Count { name, short: brief, n, always, is_loss } in counts(ledger) {
        if n == 0 && !always {
            continue;
        }
        let style = if is_loss && n > 0 { look.loss() } else { Style::new() };
        let share = match (name, wide && n > 0) {
            ("lost", true) => {
                let all = ledger.received.saturating_add(n);
                format!(" ({} %)", percent(n as f64, all as f64))
            }
            _ => String::new(),
        };
        let text = match wide {
            true => format!("{name} {}{share}", grouped(n)),
            false => format!("{brief} {}", short(n as f64)),
        };
        if x > 0 && x + columns(&text) > width {
            break;
        }
        x = canvas.text(x, y, width, &text, style) + if wide { 2 } else { 1 };
    }
    1
}

/// A line for each interface, if there are several; gives the height.
fn interfaces(canvas: &mut Canvas<'_>, app: &App, state: &RunState, y: u16) -> u16 {
    let all = &app.shown.interfaces;
    if all.len() < 2 {
        return 0;
    }
    let (width, look) = (canvas.area.width, canvas.look);
    let most = usize::from(canvas.area.height / 6);
    for (interface, y) in all.iter().take(most).zip(y..) {
        let name = canvas.fit(&interface.name, 16);
        canvas.text(0, y, 16, &name, look.title());
        canvas.right(25, y, 8, &short(interface.rates.packets_per_s), Style::new());
        let mut x = canvas.text(26, y, 6, "pkt/s", look.faint());
        canvas.right(x + 8, y, 7, &short(interface.rates.bits_per_s), Style::new());
        x = canvas.text(x + 9, y, 6, "bit/s", look.faint());
        let account = state.interfaces.iter().find(|(name, _)| *name == interface.name);
        if let Some(lost) = account.map(|(_, account)| account.lost.total()).filter(|n| *n > 0) {
            x = canvas.text(x + 2, y, width, &format!("lost {}", grouped(lost)), look.loss());
        }
        let from = x + 2;
        if width > from + 8 {
            let values = usize::from(width - from) * look.glyphs.per_column();
            let values = interface.series.fitted(values, |p| p.bytes);
            let lines = spark::lines(&values, 1, look.glyphs);
            canvas.text(from, y, width, &lines[0], look.bits());
        }
    }
    let more = all.len().saturating_sub(most);
    let shown = all.len().min(most) as u16;
    if more > 0 {
        let text = format!("and {more} more interfaces");
        canvas.text(0, y + shown, width, &text, look.faint());
    }
    shown + u16::from(more > 0)
}
