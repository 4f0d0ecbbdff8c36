//! Lines over time: one for each key, in a panel for each column of numbers.

use super::axis::{TimeAxis, ValueAxis};
use super::color::color;
use super::frame::{Axes, Caption, HEIGHT, LEFT, RIGHT, Unit};
use crate::markup::Markup;

/// The height of a line of the legend.
const LEGEND: f64 = 18.0;
/// Entries of the legend side by side.
const BESIDE: usize = 3;

/// Values of a key over time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PlotLine {
    pub(crate) name: String,
    /// Times and values, in order of time.
    pub(crate) points: Vec<(i64, f64)>,
}

/// A picture of a column.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// How far two points are apart at most that a line joins.
    pub(crate) step_ns: i64,
    pub(crate) lines: Vec<PlotLine>,
}

impl Panel {
    fn rows_of_legend(&self) -> usize {
        let is_alone = matches!(&self.lines[..], [line] if line.name.is_empty());
        if is_alone { 0 } else { self.lines.len().div_ceil(BESIDE) }
    }

    fn height(&self) -> f64 {
        28.0 + HEIGHT + 30.0 + self.rows_of_legend() as f64 * LEGEND + 12.0
    }

    /// Draws it below what is above.
    fn draw(&self, m: &mut Markup, times: TimeAxis, top: f64) {
        let values = || self.lines.iter().flat_map(|line| line.points.iter().map(|(_, n)| *n));
        let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        let values = ValueAxis::new(least, most);
        let axes = Axes { times, values, unit: self.unit, top: top + 28.0 };
        m.raw("<text class=\"title\" x=\"").number(LEFT).raw("\" y=\"").number(top + 16.0);
        m.raw("\">").text(&self.title).raw("</text>\n");
        axes.draw(m);
        for (i, line) in self.lines.iter().enumerate() {
            self.line(m, &axes, line, color(i));
        }
        let below = axes.top + HEIGHT + 40.0;
        let width = (RIGHT - LEFT) / BESIDE as f64;
        for (i, line) in self.lines.iter().enumerate().take(self.rows_of_legend() * BESIDE) {
            let x = LEFT + (i % BESIDE) as f64 * width;
            let y = below + (i / BESIDE) as f64 * LEGEND;
            m.raw("<path class=\"line ").raw(color(i)).raw("\" d=\"M").number(x).raw(" ");
            m.number(y - 4.0).raw("h18\"/><text x=\"").number(x + 24.0).raw("\" y=\"").number(y);
            m.raw("\">").text(&shortened(&line.name)).raw("</text>\n");
        }
    }

    /// Draws a line, broken where values are missing, and points that stand alone.
    fn line(&self, m: &mut Markup, axes: &Axes, line: &PlotLine, class: &'static str) {
        let joined = |a: i64, b: i64| b.saturating_sub(a) <= self.step_ns.saturating_mul(3) / 2;
        let mut alone = Vec::new();
        m.raw("<path class=\"line ").raw(class).raw("\" d=\"");
        for (i, &(ts, n)) in line.points.iter().enumerate() {
            let goes_on = i > 0 && joined(line.points[i - 1].0, ts);
            let is_followed = line.points.get(i + 1).is_some_and(|next| joined(ts, next.0));
            if !goes_on && !is_followed {
                alone.push((ts, n));
                continue;
            }
            m.raw(if goes_on { "L" } else { "M" });
            m.number(axes.x(ts)).raw(" ").number(axes.y(n));
        }
        m.raw("\"/>\n");
        for (ts, n) in alone {
            m.raw("<circle class=\"").raw(class).raw("\" r=\"2\" cx=\"").number(axes.x(ts));
            m.raw("\" cy=\"").number(axes.y(n)).raw("\"/>\n");
        }
    }
}

/// A name that fits beside others.
fn shortened(name: &str) -> String {
    match name.chars().count() {
        ..=34 => name.to_owned(),
        _ => name.chars().take(33).chain(['…']).collect(),
    }
}

/// Draws panels below one another, over the same time.
pub(crate) fn panels(caption: Caption<'_>, panels: &[Panel], style: &'static str) -> Markup {
    let points = || panels.iter().flat_map(|p| p.lines.iter().flat_map(|line| line.points.iter()));
    let from = points().map(|(ts, _)| *ts).min().unwrap_or(0);
    let to = points().map(|(ts, _)| *ts).max().unwrap_or(0);
    let times = TimeAxis::new(from, to, caption.zone);
    let mut m = Markup::default();
    let height: f64 = panels.iter().map(Panel::height).sum();
    caption.open(&mut m, height.max(40.0));
    m.raw("<style>").raw(style).raw("</style>\n");
    m.raw("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    if points().next().is_none() {
        m.raw("<text x=\"16\" y=\"24\">No values.</text>\n");
    }
    let mut top = 0.0;
    for panel in panels {
        panel.draw(&mut m, times, top);
        top += panel.height();
    }
    m.raw("</svg>\n");
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_where_values_are_missing() {
        let line = |name: &str, points: &[(i64, f64)]| PlotLine {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let panel = Panel {
            title: "n".to_owned(),
            unit: Unit::Plain,
            step_ns: 10,
            lines: vec![
                line("a", &[(0, 1.0), (10, 2.0), (40, 4.0)]),
                line("<b>", &[(20, 3.0), (30, 3.0)]),
            ],
        };
        let caption = Caption { title: "t", about: "d", number: 1, zone: None };
        let svg = panels(caption, &[panel], "").finish();
        assert!(
            svg.contains("d=\"M68 170.5L247.5 123\"/>\n<circle class=\"c0\" r=\"2\" cx=\"786\"")
        );
        assert!(svg.contains("class=\"line c1\" d=\"M427 75.5L606.5 75.5\""), "{svg}");
        assert!(svg.contains(">&lt;b&gt;</text>") && !svg.contains("<b>"));
        assert!(panels(caption, &[], "").finish().contains("No values"));
    }
}
