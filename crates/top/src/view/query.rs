//! The rows of a query of the library, the columns of one of them, and the list of queries.

use super::canvas::{Canvas, columns};
use crate::app::App;
use crate::library::{QueryList, RowColumns};
use crate::number::grouped;
use crate::queried::{LibraryQuery, cell_text, is_number};
use ratatui::layout::Position;
use ratatui::style::{Modifier, Style};

/// The widest column, if another is to be seen beside it.
const COLUMN_MAX: u16 = 40;

/// The least part of a text that is shown, where it is cut.
const CUT_MIN: u16 = 8;

/// A column that is shown.
struct ShownColumn {
    title: String,
    /// Its width, with two blanks after it.
    width: u16,
    is_number: bool,
}

/// Draws the rows from one line up to another.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &mut App, top: u16, bottom: u16) {
    let (width, look) = (canvas.area.width, canvas.look);
    let room = bottom.saturating_sub(top + 2);
    let rows = app.scroll(room.into());
    let (output, times) = (&app.shown.output, app.times());
    // The values of a row, in the order in which columns are shown.
    let cells = |row: &crate::snapshot::Row| -> Vec<(String, bool)> {
        let Some(row) = &row.of_query else { return Vec::new() };
        let values = output.order.iter().filter_map(|at| row.values.get(*at));
        values.map(|value| (cell_text(value, times), is_number(value))).collect()
    };
    let seen: Vec<Vec<(String, bool)>> = app.shown.rows[rows.clone()].iter().map(cells).collect();
    let mut shown = Vec::new();
    for (place, at) in output.order.iter().enumerate() {
        let name = crate::clean(&output.columns[*at]);
        let title = match (app.query_column == Some(place), app.descending) {
            (true, true) => format!("{name}v"),
            (true, false) => format!("{name}^"),
            (false, _) => name,
        };
        let cells = seen.iter().filter_map(|row| row.get(place));
        let widest = cells.clone().map(|(text, _)| columns(text)).max().unwrap_or(0);
        let width = widest.max(columns(&title)).min(COLUMN_MAX) + 2;
        shown.push(ShownColumn { title, width, is_number: cells.clone().any(|(_, is)| *is) });
    }
    let first = first_seen(&shown, app.query_column, width);
    let titles: Vec<&str> = shown.iter().map(|column| column.title.as_str()).collect();
    line(canvas, top, &shown, &titles, first, look.title());
    for (row, y) in seen.iter().zip(top + 1..) {
        let texts: Vec<&str> = row.iter().map(|(text, _)| text.as_str()).collect();
        line(canvas, y, &shown, &texts, first, Style::new());
    }
    for (row, y) in app.shown.rows[rows].iter().zip(top + 1..) {
        if app.chosen.as_ref() == Some(&row.key) {
            canvas.style_line(y, look.chosen());
        }
    }
    if bottom > top + 1 {
        let text = canvas.fit(&about(app), width);
        canvas.text(0, bottom - 1, width, &text, look.faint());
    }
}

/// The first column to be seen, so that the one by which rows are sorted is.
fn first_seen(shown: &[ShownColumn], sorted: Option<usize>, width: u16) -> usize {
    let Some(sorted) = sorted.filter(|at| *at < shown.len()) else { return 0 };
    let taken = |from: usize| -> u32 {
        shown[from..=sorted].iter().map(|column| u32::from(column.width)).sum()
    };
    (0..sorted).find(|from| taken(*from) <= u32::from(width) + 2).unwrap_or(sorted)
}

/// A line of cells, from a column on. A text at the end may be cut, but no number, which would be
/// another one then.
fn line(
    canvas: &mut Canvas<'_>,
    y: u16,
    shown: &[ShownColumn],
    texts: &[&str],
    first: usize,
    style: Style,
) {
    let (width, mut x) = (canvas.area.width, 0);
    for (column, text) in shown.iter().zip(texts).skip(first) {
        let (own, left) = (column.width - 2, width.saturating_sub(x));
        if own > left && x > 0 && (column.is_number || left < CUT_MIN) {
            break;
        }
        let room = own.min(left);
        let text = canvas.fit(text, room);
        match column.is_number {
            true => canvas.right(x + room, y, room, &text, style),
            false => drop(canvas.text(x, y, room, &text, style)),
        }
        x += column.width;
    }
}

/// Which rows these are, and how many.
fn about(app: &App) -> String {
    let output = &app.shown.output;
    let name = app.setup().query.as_ref().map_or("", |query| query.name.as_str());
    if app.shown.changes != Some(app.counted) {
        return format!("{}: starting", crate::clean(name));
    }
    let rows = match (output.taken, app.shown.rows.len()) {
        (1, 1) => "1 row".to_owned(),
        (taken, kept) if taken == kept as u64 => format!("{} rows", grouped(taken)),
        (taken, kept) => format!("the latest {kept} of {} rows", grouped(taken)),
    };
    let several = match &output.outputs[..] {
        [_, _, ..] => {
            let name = output.outputs[output.at].as_deref().unwrap_or("the last");
            format!(", output {} of {}: {name} (o: the next)", output.at + 1, output.outputs.len())
        }
        _ => String::new(),
    };
    format!("{}: {rows}{several}", crate::clean(name))
}

/// All columns of a row.
pub(super) fn columns_of_row(canvas: &mut Canvas<'_>, row: &mut RowColumns) {
    let (width, height, look) = (canvas.area.width, canvas.area.height, canvas.look);
    let room = usize::from(height - 1);
    row.offset = row.offset.min(row.columns.len().saturating_sub(room));
    canvas.name_values(&row.columns, row.offset, (0, room));
    let keys = canvas.fit("p packets of the row  Esc rows  Up, Down more columns  q quit", width);
    canvas.text(0, height - 1, width, &keys, look.faint().add_modifier(Modifier::BOLD));
}

/// The queries of the library; gives the place of the cursor.
pub(super) fn library(
    canvas: &mut Canvas<'_>,
    list: &mut QueryList,
    all: &[LibraryQuery],
) -> Position {
    let (width, height, look) = (canvas.area.width, canvas.area.height, canvas.look);
    let x = canvas.text(0, 0, width, "run> ", look.title());
    let typed = canvas.fit(&crate::clean(&list.text), width - x - 1);
    let cursor = canvas.text(x, 0, width, &typed, Style::new());
    let listed = list.listed(all);
    let room = usize::from(height - 2);
    list.chosen = list.chosen.min(listed.len().saturating_sub(1));
    list.offset = list.offset.clamp((list.chosen + 1).saturating_sub(room), list.chosen);
    let names = all.iter().map(|query| columns(&query.name)).max().unwrap_or(0);
    for ((n, query), y) in listed.iter().enumerate().skip(list.offset).take(room).zip(1..) {
        canvas.text(0, y, width, &query.name, look.title());
        let title = canvas.fit(&query.title, width.saturating_sub(names + 2));
        canvas.text(names + 2, y, width, &title, Style::new());
        if n == list.chosen {
            canvas.style_line(y, look.chosen());
        }
    }
    if listed.is_empty() {
        canvas.text(0, 1, width, "no query has these words", look.notice());
    }
    let keys = canvas.fit("Enter runs  type to narrow  Up, Down choose  Esc tables", width);
    canvas.text(0, height - 1, width, &keys, look.faint().add_modifier(Modifier::BOLD));
    Position { x: canvas.area.x + cursor.min(width - 1), y: canvas.area.y }
}
