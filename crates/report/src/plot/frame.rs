//! The common parts of all pictures: their size, axes, title and description.

use super::axis::{TimeAxis, ValueAxis};
use crate::markup::Markup;
use crate::number::{length, short};
use weir_plan::TimeZone;

/// The width of a picture; how large it is shown is up to the page.
pub(crate) const WIDTH: f64 = 800.0;
/// Where the area of the values begins and ends.
pub(crate) const LEFT: f64 = 68.0;
pub(crate) const RIGHT: f64 = WIDTH - 14.0;
/// The height of the area of the values.
pub(crate) const HEIGHT: f64 = 190.0;

/// How numbers of an axis are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Numbers, with the letters of the thousands.
    Plain,
    /// Lengths of time; the numbers are nanoseconds.
    Duration,
}

impl Unit {
    /// A number of the axis.
    pub(crate) fn text(self, n: f64) -> String {
        match self {
            Unit::Plain => short(n),
            Unit::Duration => length(n as i64),
        }
    }
}

/// The axes of a picture, and where its area begins.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    pub(crate) times: TimeAxis,
    pub(crate) values: ValueAxis,
    pub(crate) unit: Unit,
    /// The upper end of the area.
    pub(crate) top: f64,
}

impl Axes {
    /// Where a time is.
    pub(crate) fn x(&self, ts: i64) -> f64 {
        LEFT + self.times.share(ts) * (RIGHT - LEFT)
    }

    /// Where a number is.
    pub(crate) fn y(&self, n: f64) -> f64 {
        self.top + (1.0 - self.values.share(n)) * HEIGHT
    }

    /// Draws lines at round numbers, and the marks of both axes.
    pub(crate) fn draw(&self, m: &mut Markup) {
        for n in self.values.marks() {
            let y = self.y(n);
            m.raw("<path class=\"grid\" d=\"M").number(LEFT).raw(" ").number(y);
            m.raw("H").number(RIGHT).raw("\"/>");
            m.raw("<text text-anchor=\"end\" x=\"").number(LEFT - 6.0);
            m.raw("\" y=\"").number(y + 4.0).raw("\">").text(&self.unit.text(n)).raw("</text>");
        }
        let bottom = self.top + HEIGHT;
        m.raw("<path class=\"axis\" d=\"M").number(LEFT).raw(" ").number(bottom);
        m.raw("H").number(RIGHT).raw("\"/>");
        for (i, (at, label)) in self.times.marks().iter().enumerate() {
            let x = self.x(*at);
            m.raw("<path class=\"axis\" d=\"M").number(x).raw(" ").number(bottom).raw("v4\"/>");
            // Every other label goes where there is little room.
            m.raw(if i % 2 == 1 { "<text class=\"odd\"" } else { "<text" });
            m.raw(match x {
                x if x < LEFT + 40.0 => " text-anchor=\"start\" x=\"",
                x if x > RIGHT - 40.0 => " text-anchor=\"end\" x=\"",
                _ => " text-anchor=\"middle\" x=\"",
            });
            let x = if x < LEFT + 40.0 { (x - 4.0).max(LEFT - 8.0) } else { x };
            m.number(x).raw("\" y=\"").number(bottom + 18.0).raw("\">").text(label).raw("</text>");
        }
    }
}

/// The name of a picture and what it shows, in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caption<'a> {
    pub(crate) title: &'a str,
    pub(crate) about: &'a str,
    /// The time zone of the marks of time, if it is not UTC.
    pub(crate) zone: Option<TimeZone>,
    /// The number of the picture in its document.
    pub(crate) number: usize,
}

impl Caption<'_> {
    /// Begins a picture of this height.
    pub(crate) fn open(&self, m: &mut Markup, height: f64) {
        let number = self.number as f64;
        m.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 ");
        m.number(WIDTH).raw(" ").number(height).raw("\" role=\"img\" aria-labelledby=\"title");
        m.number(number).raw(" about").number(number).raw("\"><title id=\"title").number(number);
        m.raw("\">").text(self.title).raw("</title><desc id=\"about").number(number).raw("\">");
        m.text(self.about).raw("</desc>\n");
    }
}
