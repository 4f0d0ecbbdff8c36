//! The boxes below the tables, and the help.

use super::canvas::{Canvas, columns};
use crate::app::{App, Mode};
use crate::input::Input;
use crate::state::{Phase, RunState};
use crate::table::Table;
use ratatui::layout::Position;
use ratatui::style::{Modifier, Style};

/// The keys and what they do.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("q, Ctrl-C", "end; the ledger is printed"),
    ("1-8, Tab", "another table"),
    ("Up, Down", "choose a row; rows keep still"),
    ("PgUp, PgDn", "ten rows further"),
    ("Enter", "filter by the row, or see all of it"),
    ("p", "show the packets of the row"),
    ("Esc", "no row; sort again"),
    ("/", "type a filter; Tab completes"),
    ("Backspace", "the filter before"),
    ("b", "count by keys that you type"),
    ("l", "run a query of the library"),
    ("o", "the next output of the query"),
    ("Left, Right", "sort by another column"),
    ("r", "the other way round"),
    ("Space", "stop the picture; counts go on"),
    ("g", "other characters for time lines"),
    ("?", "this help"),
];

/// The lines that are needed below the tables.
pub(super) fn height(app: &App, height: u16) -> u16 {
    match &app.mode {
        Mode::Filter(_) | Mode::Keys(_) => {
            if height >= 12 {
                4
            } else {
                3
            }
        }
        _ => 1,
    }
}

/// Draws them from this line on; says where the cursor is.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    app: &App,
    state: &RunState,
    y: u16,
) -> Option<Position> {
    match &app.mode {
        Mode::Filter(input) => return Some(typing(canvas, "filter> ", input, y)),
        Mode::Keys(input) => return Some(typing(canvas, "count by> ", input, y)),
        _ => {}
    }
    let (width, look) = (canvas.area.width, canvas.look);
    let failed = match &state.phase {
        Phase::Ended { error } => error.as_deref(),
        Phase::Running { .. } => None,
    };
    match (app.message.as_deref().or(failed), app.chosen_row()) {
        (Some(text), _) => {
            let text = canvas.fit(&crate::clean(text), width);
            canvas.text(0, y, width, &text, look.loss());
        }
        (None, Some(row)) => {
            let name = row.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let text = canvas.fit(&format!("{}{name}", app.shown.label(row, app.times())), width);
            canvas.text(0, y, width, &text, look.notice());
        }
        (None, None) => hints(canvas, app, y),
    }
    None
}

/// The most useful keys, as far as there is room.
fn hints(canvas: &mut Canvas<'_>, app: &App, y: u16) {
    let (width, look, mut x) = (canvas.area.width, canvas.look, 0);
    let all = [
        ("?", "help"),
        ("q", "quit"),
        ("/", "filter"),
        ("b", "by"),
        ("l", "library"),
        ("Tab", "table"),
        ("Enter", if app.table == Table::Query { "all columns" } else { "filter by row" }),
        ("< >", "sort"),
        ("Space", "pause"),
    ];
    for (key, what) in all {
        if x + columns(key) + columns(what) + 1 > width {
            break;
        }
        x = canvas.text(x, y, width, key, look.title());
        x = canvas.text(x + 1, y, width, what, look.faint()) + 2;
    }
}

/// The box for a filter or keys; gives the place of the cursor.
fn typing(canvas: &mut Canvas<'_>, title: &str, input: &Input, y: u16) -> Position {
    let (width, look) = (canvas.area.width, canvas.look);
    let x = canvas.text(0, y, width, title, look.title());
    let text: Vec<char> = crate::clean(&input.text()).chars().collect();
    // The part around the cursor.
    let room = usize::from(width.saturating_sub(x + 1)).max(1);
    let from = input.cursor().saturating_sub(room);
    let seen = |range: std::ops::Range<usize>| -> String {
        let range = range.start.min(text.len())..range.end.min(text.len());
        text.get(range).unwrap_or_default().iter().collect()
    };
    canvas.text(x, y, width, &seen(from..from + room), Style::new());
    let cursor = x + columns(&seen(from..input.cursor()));
    if let Some(fault) = input.fault() {
        let start = x + columns(&seen(from..fault.from.max(from)));
        let marked = fault.to.saturating_sub(fault.from.max(from)).max(1);
        let marks = "^".repeat(marked.min(room));
        canvas.text(start, y + 1, width, &marks, look.loss());
        let message = canvas.fit(&crate::clean(&fault.message), width);
        canvas.text(0, y + 2, width, &message, look.loss());
    }
    let (words, chosen) = input.suggestions();
    let help = input.fault().and_then(|fault| fault.help.as_deref()).unwrap_or_default();
    let line = if input.fault().is_none() { y + 2 } else { y + 3 };
    match words.is_empty() {
        false => suggestions(canvas, &words, chosen, line),
        true => drop(canvas.text(0, line, width, &crate::clean(help), look.notice())),
    }
    if input.fault().is_none() {
        canvas.text(0, y + 1, width, "Enter applies, Esc cancels, Tab completes", look.faint());
    }
    Position { x: canvas.area.x + cursor.min(width - 1), y: canvas.area.y + y }
}

/// The words that may be meant, the chosen one first.
fn suggestions(canvas: &mut Canvas<'_>, words: &[&str], chosen: Option<usize>, y: u16) {
    let (width, look, mut x) = (canvas.area.width, canvas.look, 0);
    for (n, word) in words.iter().enumerate().skip(chosen.unwrap_or(0)) {
        if x > 0 && x + columns(word) > width {
            break;
        }
        let style = if chosen == Some(n) { look.chosen() } else { look.faint() };
        x = canvas.text(x, y, width, word, style) + 1;
    }
}

/// All keys.
pub(super) fn help(canvas: &mut Canvas<'_>) {
    const MORE: [&str; 5] = [
        "Rates are means of the last five seconds; of a file, of its whole time.",
        "Hosts: a packet is sent by its source, and received by its destination.",
        "Ports: by protocol and the smaller port. Names: from DNS, TLS and QUIC.",
        "other + rows = total; lost packets are in none of them.",
        "A filter is a condition of the query language: tcp and dport == 443",
    ];
    let (width, height, look) = (canvas.area.width, canvas.area.height, canvas.look);
    let keys = KEYS.iter().map(|(key, _)| columns(key)).max().unwrap_or(0);
    for ((key, what), y) in KEYS.iter().zip(0..) {
        canvas.text(0, y, width, key, look.title());
        canvas.text(keys + 2, y, width, what, Style::new());
    }
    let after = KEYS.len() as u16 + 1;
    if usize::from(height) < KEYS.len() + MORE.len() + 2 {
        return;
    }
    for (line, y) in MORE.into_iter().zip(after..) {
        let line = canvas.fit(line, width);
        canvas.text(0, y, width, &line, look.faint());
    }
    let back = look.faint().add_modifier(Modifier::BOLD);
    canvas.text(0, height - 1, width, "any key goes back", back);
}
