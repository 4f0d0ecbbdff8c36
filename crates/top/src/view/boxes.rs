//! The boxes below the tables, and the help.

use super::canvas::{Canvas, columns};
use crate::app::{App, Mode};
use crate::input::Input;
use crate::state::{Phase, RunState};
use ratatui::layout::Position;
use ratatui::style::{Modifier, Style};

/// The keys and what they do.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("1-6, Tab", "another table"),
    ("Up, Down", "choose a row; rows keep still"),
    ("PgUp, PgDn", "ten rows further"),
    ("Enter", "only packets of the row"),
    ("p", "show the packets of the row"),
    ("/", "type a filter; Tab completes"),
    ("Backspace", "the filter before"),
    ("Left, Right", "sort by another column"),
    ("r", "the other way round"),
    ("Space", "stop the picture; counts go on"),
    ("Esc", "no row; sort again"),
    ("q, Ctrl-C", "end; the ledger is printed"),
    ("g", "other characters for time lines"),
    ("?", "this help"),
];

/// The lines that are needed below the tables.
pub(super) fn height(app: &App, height: u16) -> u16 {
    match &app.mode {
        Mode::Filter(_) => {
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
    if let Mode::Filter(input) = &app.mode {
        return Some(filter(canvas, input, y));
    }
    let (width, look) = (canvas.area.width, canvas.look);
    let failed = match &state.phase {
        Phase::Ended { error } => error.as_deref(),
        Phase::Running { .. } => None,
    };
    let chosen = app.chosen.as_ref();
    let row = chosen.and_then(|key| app.shown.rows.iter().find(|row| row.key == *key));
    match (app.message.as_deref().or(failed), row) {
        (Some(text), _) => {
            let text = canvas.fit(&crate::clean(text), width);
            canvas.text(0, y, width, &text, look.loss());
        }
        (None, Some(row)) => {
            let name = row.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let text = canvas.fit(&format!("{}{name}", row.label), width);
            canvas.text(0, y, width, &text, look.notice());
        }
        (None, None) => hints(canvas, y),
    }
    None
}

/// The most useful keys, as far as there is room.
fn hints(canvas: &mut Canvas<'_>, y: u16) {
    let (width, look, mut x) = (canvas.area.width, canvas.look, 0);
    let all = [
        ("?", "help"),
        ("q", "quit"),
        ("/", "filter"),
        ("Space", "pause"),
        ("Tab", "table"),
        ("Enter", "filter by row"),
        ("< >", "sort"),
    ];
    for (key, what) in all {
        if x + columns(key) + columns(what) + 1 > width {
            break;
        }
        x = canvas.text(x, y, width, key, look.title());
        x = canvas.text(x + 1, y, width, what, look.faint()) + 2;
    }
}

/// The box for a filter; gives the place of the cursor.
fn filter(canvas: &mut Canvas<'_>, input: &Input, y: u16) -> Position {
    const TITLE: &str = "filter> ";
    let (width, look) = (canvas.area.width, canvas.look);
    let x = canvas.text(0, y, width, TITLE, look.title());
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
    let (width, look) = (canvas.area.width, canvas.look);
    let is_wide = width >= 60 && canvas.area.height > KEYS.len() as u16 + 9;
    let mut y = 0;
    if is_wide {
        canvas.text(0, 0, width, "weir top: what is on the wire now", look.title());
        y = 2;
    }
    let keys = KEYS.iter().map(|(key, _)| columns(key)).max().unwrap_or(0);
    for (key, what) in KEYS {
        canvas.text(0, y, width, key, look.title());
        canvas.text(keys + 2, y, width, what, Style::new());
        y += 1;
    }
    if !is_wide {
        return;
    }
    let more = [
        "Rates are means of the last five seconds; of a file, of its whole time.",
        "Hosts: a packet counts as sent by its source, and as received by its destination.",
        "Ports: by protocol and the smaller of the two ports. Names: from DNS, TLS and QUIC.",
        "other + rows = total; lost packets are in none of them.",
        "A filter is a condition of the query language: tcp and dport == 443",
    ];
    for (line, y) in more.into_iter().zip(y + 1..) {
        let line = canvas.fit(line, width);
        canvas.text(0, y, width, &line, look.faint());
    }
    canvas.text(
        0,
        canvas.area.height - 1,
        width,
        "any key goes back",
        look.faint().add_modifier(Modifier::BOLD),
    );
}
