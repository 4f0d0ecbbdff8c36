//! Texts on the cells of a terminal.

use crate::look::{Glyphs, Look};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// A place to draw texts on.
pub(crate) struct Canvas<'a> {
    out: &'a mut Buffer,
    pub(crate) area: Rect,
    pub(crate) look: Look,
}

impl<'a> Canvas<'a> {
    /// The cells of an area.
    pub(crate) fn new(out: &'a mut Buffer, area: Rect, look: Look) -> Canvas<'a> {
        Canvas { out, area, look }
    }

    /// Draws a text within so many columns; says which column comes after it.
    pub(crate) fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let width = width.min(self.area.width.saturating_sub(x));
        if y >= self.area.height || width == 0 {
            return x;
        }
        let (left, top) = (self.area.x, self.area.y);
        let (end, _) = self.out.set_stringn(left + x, top + y, text, width.into(), style);
        end - left
    }

    /// The same, ending before a column.
    pub(crate) fn right(&mut self, end: u16, y: u16, width: u16, text: &str, style: Style) {
        let own = columns(text).min(width);
        self.text(end.saturating_sub(own), y, own, text, style);
    }

    /// Gives the cells of a line a style.
    pub(crate) fn style_line(&mut self, y: u16, style: Style) {
        if y < self.area.height {
            let line = Rect { y: self.area.y + y, height: 1, ..self.area };
            self.out.set_style(line, style);
        }
    }

    /// Draws names and values, a line each: from the first that is to be seen on, as many as there
    /// is room for below `top`.
    pub(crate) fn name_values(
        &mut self,
        all: &[(String, String)],
        first: usize,
        (top, room): (u16, usize),
    ) {
        let (width, look) = (self.area.width, self.look);
        let names = all.iter().map(|(name, _)| columns(name)).max().unwrap_or(0).min(width / 2);
        for ((name, value), y) in all.iter().skip(first).take(room).zip(top..) {
            let name = self.fit(name, names);
            self.text(0, y, names, &name, look.faint());
            let value = self.fit(value, width.saturating_sub(names + 2));
            self.text(names + 2, y, width, &value, Style::new());
        }
    }

    /// A text that fits into so many columns; where it is cut, it says so.
    pub(crate) fn fit(&self, text: &str, width: u16) -> String {
        if columns(text) <= width {
            return text.to_owned();
        }
        let mut out = String::new();
        for c in text.chars() {
            if columns(&out) + columns(c.encode_utf8(&mut [0; 4])) + 1 > width {
                break;
            }
            out.push(c);
        }
        out.push(if self.look.glyphs == Glyphs::Ascii { '~' } else { '…' });
        out
    }
}

/// The columns that a text takes.
pub(crate) fn columns(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}
