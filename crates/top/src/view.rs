//! The screen as cells of a terminal.

mod boxes;
mod canvas;
mod head;
mod packets;
mod query;
mod spark;
mod tables;

use crate::app::{App, Mode};
use crate::state::RunState;
use canvas::Canvas;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// The smallest screen that is drawn on.
const SMALLEST: (u16, u16) = (20, 6);

/// Draws everything; says where the cursor is, if it is seen.
pub(crate) fn draw(
    app: &mut App,
    state: &RunState,
    area: Rect,
    out: &mut Buffer,
) -> Option<Position> {
    let mut canvas = Canvas::new(out, area, app.look);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        canvas.text(0, 0, area.width, "too small", app.look.notice());
        return None;
    }
    if app.mode == Mode::Help {
        boxes::help(&mut canvas);
        return None;
    }
    if let Mode::Packets(list) = &mut app.mode {
        packets::draw(&mut canvas, list);
        return None;
    }
    if let Mode::Columns(row) = &mut app.mode {
        query::columns_of_row(&mut canvas, row);
        return None;
    }
    if let Mode::Library(list) = &mut app.mode {
        return Some(query::library(&mut canvas, list, &app.library));
    }
    let top = head::draw(&mut canvas, app, state);
    let below = boxes::height(app, area.height);
    tables::draw(&mut canvas, app, top, area.height.saturating_sub(below));
    boxes::draw(&mut canvas, app, state, area.height - below)
}

#[cfg(test)]
mod tests;
