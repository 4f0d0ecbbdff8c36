//! Tables and lists of facts.

use crate::markup::Markup;
use crate::number::{grouped, length, percent};

/// A cell of a table.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// A text, such as the key of a row.
    Text(String),
    /// A count; nothing where there is none.
    Count(i64),
    /// A length of time, in nanoseconds, if it is known.
    Length(Option<i64>),
    /// A part of a whole, in percent and as a bar.
    Share(i64, i64),
}

/// How a row stands among the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    /// One of many.
    Plain,
    /// The rest of the total.
    Rest,
}

/// A table: the first cell of each row says what it is about.
#[derive(Debug)]
pub(super) struct TableView {
    pub(super) caption: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) rows: Vec<(Weight, Vec<Cell>)>,
    pub(super) total: Option<Vec<Cell>>,
}

impl TableView {
    /// A table without rows.
    pub(super) fn new(caption: &'static str, columns: &'static [&'static str]) -> TableView {
        TableView { caption, columns, rows: Vec::new(), total: None }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push((Weight::Plain, cells));
    }

    /// Adds a row for what the others leave of a total, where they leave something, and the total.
    /// Both are of the counts of each column.
    pub(super) fn rest(&mut self, label: &str, totals: &[i64], shown: &[i64], of: Option<i64>) {
        let cells = |label: &str, counts: Vec<i64>| {
            let share = of.map(|of| Cell::Share(counts.first().copied().unwrap_or(0), of));
            let counts = counts.iter().map(|n| Cell::Count(*n)).collect::<Vec<_>>();
            [Cell::Text(label.to_owned())].into_iter().chain(counts).chain(share).collect()
        };
        let left: Vec<i64> =
            totals.iter().zip(shown).map(|(total, shown)| total.saturating_sub(*shown)).collect();
        if left.iter().any(|n| *n > 0) {
            self.rows.push((Weight::Rest, cells(label, left)));
        }
        self.total = Some(cells("total", totals.to_vec()));
    }

    /// Writes it. A table that is wider than the page scrolls by itself.
    pub(super) fn write(&self, m: &mut Markup) {
        m.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
        m.raw(self.caption).raw("\"><table><caption>").raw(self.caption);
        m.raw("</caption>\n<thead><tr>");
        let sample = self.rows.first().map(|(_, cells)| &cells[..]).unwrap_or_default();
        for (i, column) in self.columns.iter().enumerate() {
            let is_number = matches!(sample.get(i), Some(Cell::Count(_) | Cell::Length(_)));
            m.raw(if is_number { "<th scope=\"col\" class=\"n\">" } else { "<th scope=\"col\">" });
            m.raw(column).raw("</th>");
        }
        m.raw("</tr></thead>\n<tbody>\n");
        for (weight, cells) in &self.rows {
            m.raw(if *weight == Weight::Rest { "<tr class=\"rest\">" } else { "<tr>" });
            row(m, cells);
        }
        m.raw("</tbody>\n");
        if let Some(cells) = &self.total {
            m.raw("<tfoot><tr>");
            row(m, cells);
            m.raw("</tfoot>");
        }
        m.raw("</table></div>\n");
    }
}

/// Writes the cells of a row.
fn row(m: &mut Markup, cells: &[Cell]) {
    for (i, cell) in cells.iter().enumerate() {
        match cell {
            Cell::Text(text) if i == 0 => drop(m.raw("<th scope=\"row\">").text(text).raw("</th>")),
            Cell::Text(text) => drop(m.raw("<td>").text(text).raw("</td>")),
            Cell::Count(n) => drop(m.raw("<td class=\"n\">").text(&grouped(*n)).raw("</td>")),
            Cell::Length(ns) => {
                let text = ns.map_or("–".to_owned(), length);
                m.raw("<td class=\"n\">").text(&text).raw("</td>");
            }
            Cell::Share(part, whole) => {
                let (part, whole) = (*part as f64, *whole as f64);
                let width = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
                m.raw("<td>").text(&percent(part, whole));
                m.raw("<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" ");
                m.raw("aria-hidden=\"true\"><rect height=\"8\" width=\"");
                m.number(width.clamp(0.0, 100.0)).raw("\"/></svg></td>");
            }
        }
    }
    m.raw("</tr>\n");
}

/// A fact: what it is about, and how it is.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Whether it should not be so.
    pub(super) is_bad: bool,
}

impl Fact {
    /// A fact as it should be.
    pub(super) fn new(name: &'static str, value: String) -> Fact {
        Fact { name, value, is_bad: false }
    }

    /// A count that should be zero.
    pub(super) fn trouble(name: &'static str, n: i64) -> Fact {
        Fact { name, value: grouped(n), is_bad: n > 0 }
    }
}

/// Writes facts.
pub(super) fn facts(m: &mut Markup, all: &[Fact]) {
    m.raw("<dl class=\"facts\">\n");
    for fact in all {
        m.raw(if fact.is_bad { "<div class=\"bad\">" } else { "<div>" });
        m.element("dt", fact.name).element("dd", &fact.value).raw("</div>\n");
    }
    m.raw("</dl>\n");
}
