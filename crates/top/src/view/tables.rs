//! The tables: their names, columns, rows, and what is in none of the rows.

use super::canvas::{Canvas, columns};
use super::query;
use crate::app::App;
use crate::measure::Rates;
use crate::number::{percent, short};
use crate::snapshot::Row;
use crate::table::{Column, Table};
use ratatui::style::{Modifier, Style};

/// The widths from which the names of tables have four letters, and all.
const TABS_OF_FOUR: u16 = 47;
const TABS_OF_WORDS: u16 = 75;

/// Draws the table from one line up to another.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &mut App, top: u16, bottom: u16) {
    tabs(canvas, app, top);
    if app.table == Table::Query {
        return query::draw(canvas, app, top + 1, bottom);
    }
    let columns = fitting(app.table, canvas.area.width);
    header(canvas, app, &columns, top + 1);
    let first = top + 2;
    let room = bottom.saturating_sub(first + 2);
    let rows = app.scroll(room.into());
    for (row, y) in app.shown.rows[rows.clone()].iter().zip(first..) {
        draw_row(canvas, app, row, &columns, y);
        if app.chosen.as_ref() == Some(&row.key) {
            canvas.style_line(y, canvas.look.chosen());
        }
    }
    let y = first + rows.len() as u16;
    if y < bottom {
        let (sent, received) = app.shown.other;
        let other = nameless("other", sent, received);
        draw_row(canvas, app, &other, &columns, y);
    }
    if y + 1 < bottom {
        let total = app.shown.total;
        let is_both = app.table.data().has_directions();
        let received = if is_both { total } else { Rates::default() };
        draw_row(canvas, app, &nameless("total", total, received), &columns, y + 1);
        canvas.style_line(y + 1, Style::new().add_modifier(Modifier::BOLD));
    }
}

fn nameless(label: &str, sent: Rates, received: Rates) -> Row {
    Row { key: Vec::new(), label: label.to_owned(), name: None, sent, received, of_query: None }
}

fn tabs(canvas: &mut Canvas<'_>, app: &App, y: u16) {
    let (width, mut x) = (canvas.area.width, 0);
    let letters = match width {
        ..TABS_OF_FOUR => Some(3),
        TABS_OF_FOUR..TABS_OF_WORDS => Some(4),
        _ => None,
    };
    for (n, one) in Table::ALL.into_iter().enumerate() {
        let text = match letters {
            None => format!("{} {}", n + 1, one.title()),
            Some(letters) => format!("{}{}", n + 1, &one.title()[..letters]),
        };
        let look = canvas.look;
        let style = if one == app.table { look.chosen() } else { look.faint() };
        x = canvas.text(x, y, width, &text, style) + if letters.is_none() { 2 } else { 1 };
    }
}

/// The columns that there is room for beside the keys, in the order of their importance.
fn fitting(table: Table, width: u16) -> Vec<Column> {
    let least = (width / 2).min(30);
    let (room, mut taken) = (width.saturating_sub(least), 0);
    let fits = |column: &&Column| {
        taken += column.width();
        taken <= room
    };
    table.columns().iter().take_while(fits).copied().collect()
}

fn header(canvas: &mut Canvas<'_>, app: &App, columns: &[Column], y: u16) {
    let look = canvas.look;
    let taken: u16 = columns.iter().map(|column| column.width()).sum();
    let title = match app.table {
        // The keys as they were typed.
        Table::Keys => crate::clean(&app.setup().keys),
        table => table.key_title().to_owned(),
    };
    let title = canvas.fit(&title, canvas.area.width.saturating_sub(taken));
    canvas.text(0, y, canvas.area.width, &title, look.title());
    let has_directions = app.table.data().has_directions();
    each_column(canvas.area.width, columns, |column, end| {
        let title = column.title(has_directions);
        let (title, style) = match (column == app.column, app.descending) {
            (true, true) => (format!("{title}v"), look.title().add_modifier(Modifier::UNDERLINED)),
            (true, false) => (format!("{title}^"), look.title().add_modifier(Modifier::UNDERLINED)),
            (false, _) => (title.to_owned(), look.title()),
        };
        canvas.right(end, y, column.width(), &title, style);
    });
}

/// Calls for each column with the place where it ends.
fn each_column(width: u16, columns: &[Column], mut call: impl FnMut(Column, u16)) {
    let mut end = width - columns.iter().map(|column| column.width()).sum::<u16>();
    for &column in columns {
        end += column.width();
        call(column, end);
    }
}

fn draw_row(canvas: &mut Canvas<'_>, app: &App, row: &Row, shown: &[Column], y: u16) {
    let look = canvas.look;
    let taken: u16 = shown.iter().map(|column| column.width()).sum();
    let width = canvas.area.width.saturating_sub(taken);
    let label = canvas.fit(&row.label, width);
    let is_nameless = row.key.is_empty();
    let style = if is_nameless { look.faint() } else { Style::new() };
    let x = canvas.text(0, y, width, &label, style);
    if let Some(name) = row.name.as_ref().filter(|name| x + 4 < width && columns(name) > 0) {
        let name = canvas.fit(name, width - x - 2);
        canvas.text(x + 2, y, width - x - 2, &name, look.faint());
    }
    let all = app.shown.total.bytes as f64;
    each_column(canvas.area.width, shown, |column, end| {
        let value = row.value(column);
        let text = match column {
            Column::Share => percent(value, all),
            _ => short(value),
        };
        canvas.right(end, y, column.width() - 1, &text, Style::new());
    });
}
