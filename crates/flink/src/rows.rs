//! Rows that stages of a job take and give.

use crate::alert::JobAlert;
use crate::term::ident;
use weir_plan::Schema;

/// Where rows come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// They are those of a node as they are.
    Node(usize),
    /// A view has them.
    View(String),
    /// They are alerts of the rows of a view.
    Alert(Box<JobAlert>),
}

impl Source {
    /// A query for these columns of it.
    pub(crate) fn select(&self, columns: &Schema) -> String {
        if let Source::Alert(alert) = self {
            return alert.sql.clone();
        }
        let names: Vec<String> = columns.columns.iter().map(|c| ident(&c.name)).collect();
        format!("SELECT {} FROM {}", names.join(", "), self.table())
    }

    pub(crate) fn table(&self) -> String {
        match self {
            Source::Node(number) => format!("node{}", number + 1),
            Source::View(name) => name.clone(),
            Source::Alert(_) => unreachable!("no stage comes after an alert"),
        }
    }
}

/// Rows that a stage takes.
#[derive(Clone)]
pub(crate) struct ViewRows {
    pub(crate) source: Source,
    pub(crate) schema: Schema,
    /// Their windows, if they come in some.
    pub(crate) window: Option<WindowTime>,
    /// How long they may wait, after the groups that they are made of.
    pub(crate) closing_ns: i64,
    /// Whether they are those of several pipelines, of which one may be ahead of the others.
    pub(crate) is_union: bool,
}

impl ViewRows {
    /// The table that has them.
    pub(crate) fn table(&self) -> String {
        self.source.table()
    }
}

/// How the windows of rows lie in time.
#[derive(Clone, Copy)]
pub(crate) struct WindowTime {
    pub(crate) every_ns: i64,
    /// Where in its window the time of a row stands.
    pub(crate) at: TimeAt,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeAt {
    /// At its start, as in Weir.
    Start,
    /// In its last millisecond, as after Flink's own windows.
    End,
}
