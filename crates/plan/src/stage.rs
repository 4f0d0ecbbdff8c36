//! Stages.

use crate::aggregates::Agg;
use crate::alert::Alert;
use crate::analyze::AnalyzeTcp;
use crate::capture::{CAPTURE, Capture};
use crate::ends::Ends;
use crate::expr::Expr;
use crate::hello::Hello;
use crate::join::{Join, Union};
use crate::metric::Metric;
use crate::rows::{Deduplicate, Distinct, Each, Per, Reshaping, Sample, SampleBy};
use crate::types::Type;
use crate::window::Fill;
use crate::zone::TimeZone;

pub use crate::schema::{Column, Schema};
pub use crate::window::{Session, Window};

/// A stage. Every expression refers to the stage's input: to the columns that the stage before it
/// put out and, up to the first `project` or `summarize` of a pipeline over packets, to packet
/// fields.
///
/// Event time of a row is the time of its packet; after a windowed `summarize` it is the start of
/// the window, in the first column, `ts`, after one of sessions that of the session's latest row;
/// after a `summarize` over the whole input there is none.
/// Rows that a stage holds to the end of input are never late downstream of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Stage {
    /// Keeps the rows for which the condition holds.
    Where(Expr),
    /// Adds or replaces columns; packet fields stay. `outputs` are the positions in the new schema
    /// (the old one plus what is new), one per expression; all expressions see the old columns.
    Extend {
        /// Name, position in the output schema, expression.
        columns: Vec<(String, usize, Expr)>,
    },
    /// Keeps just these columns. Packet fields are gone afterwards; event time stays.
    Project {
        /// Name and expression of each output column.
        columns: Vec<(String, Expr)>,
    },
    /// [`Stage::Project`] for a query that says which columns go or get another name, and not
    /// which stay. Each expression is a column of the input.
    Reshape {
        /// Name and column of each output column, in the order of the input.
        columns: Vec<(String, Expr)>,
        /// The word of the query.
        word: Reshaping,
    },
    /// Groups rows.
    Summarize(Summarize),
    /// Folds rows of equal key in order.
    Scan(Scan),
    /// Says of each TCP segment what it is among the others of its connection. Packet fields stay.
    AnalyzeTcp(AnalyzeTcp),
    /// Keeps the first `n` of all rows, or of each key, in the given order. Within a windowed
    /// pipeline (event time from a windowed summarize): of each window. Else: of the whole input,
    /// at its end. Ties are broken by the order in which rows came.
    Top {
        /// How many.
        n: u64,
        /// By what, most significant first.
        by: Vec<SortKey>,
        /// Whether the input's rows come in windows, each sorted by itself.
        windowed: bool,
        /// The keys, of each of which the first `n` are kept.
        per: Option<Per>,
    },
    /// Keeps the first `n` rows.
    Limit(u64),
    /// Lets rows meet those of another pipeline. Only first in a pipeline over another one.
    Join(Join),
    /// Adds the rows of other pipelines. Only first in a pipeline over another one.
    Union(Union),
    /// Keeps the first row of each key.
    Distinct(Distinct),
    /// Keeps one of packets that are copies of each other. Rows are packets that are still at hand.
    Deduplicate(Deduplicate),
    /// Keeps a share of the rows.
    Sample(Sample),
    /// Makes several rows of one. Packet fields stay, and so do event time and number.
    Each(Each),
    /// Hands packets out.
    Ends(Ends),
    /// Asks for packets around each row.
    Capture(Box<Capture>),
    /// Tells of keys for which rows come.
    Alert(Box<Alert>),
    /// Exports a column as a metric.
    Metric(Box<Metric>),
    /// Puts ClientHellos together. Rows are packets that are still at hand.
    Hello(Hello),
}

impl Stage {
    /// Whether it remembers rows that came before.
    pub fn holds_state(&self) -> bool {
        match self {
            Stage::Where(_) | Stage::Extend { .. } => false,
            Stage::Project { .. } | Stage::Reshape { .. } => false,
            Stage::Each(_) | Stage::Ends(_) | Stage::Capture(_) | Stage::Metric(_) => false,
            Stage::Sample(sample) => sample.by == SampleBy::Order,
            Stage::Summarize(_) | Stage::Scan(_) | Stage::Top { .. } | Stage::Limit(_) => true,
            Stage::Join(_) | Stage::Union(_) | Stage::Distinct(_) | Stage::AnalyzeTcp(_) => true,
            Stage::Alert(_) => true,
            Stage::Hello(_) | Stage::Deduplicate(_) => true,
        }
    }

    /// The columns that leave the stage when these come in.
    #[must_use]
    pub fn output(&self, input: &Schema) -> Schema {
        let mut out = input.clone();
        match self {
            Stage::Where(_) | Stage::Top { .. } | Stage::Limit(_) => {}
            Stage::Distinct(_) | Stage::Sample(_) | Stage::Ends(_) | Stage::Metric(_) => {}
            Stage::Deduplicate(_) => {}
            Stage::Each(each) => each.put(&mut out),
            Stage::AnalyzeTcp(analyze) => analyze.put(&mut out),
            Stage::Capture(_) => _ = out.put(CAPTURE, Type::Str),
            Stage::Alert(alert) => out = alert.output(input),
            Stage::Hello(_) => _ = Hello::put(&mut out),
            Stage::Extend { columns } => {
                for (name, _, e) in columns {
                    out.put(name, e.ty.clone());
                }
            }
            Stage::Scan(s) => {
                for state in &s.states {
                    out.put(&state.name, state.init.ty.clone());
                }
            }
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                let column = |(name, e): &(String, Expr)| Column::new(name, &e.ty);
                out.columns = columns.iter().map(column).collect();
            }
            Stage::Join(join) => out = join.output(input),
            Stage::Union(union) => out = union.output(),
            Stage::Summarize(s) => {
                let window = (s.window != Window::All).then(|| Column::new("ts", &Type::Time));
                let keys = s.keys.iter().map(|(name, e)| Column::new(name, &e.ty));
                let aggs = s.aggs.iter().map(|a| Column::new(&a.name, &a.ty));
                out.columns = window.into_iter().chain(keys).chain(aggs).collect();
            }
        }
        out
    }
}

/// A sort key.
#[derive(Clone, PartialEq, Debug)]
pub struct SortKey {
    /// The expression to sort by.
    pub expr: Expr,
    /// Which way. Absent values come last in either order.
    pub order: Order,
}

/// Which way to sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Largest first: what `top` does unless told otherwise.
    Descending,
    /// Smallest first.
    Ascending,
}

/// Groups rows by key and window and aggregates each group.
///
/// Output columns: `ts` (the window's start) if there is a window, then the keys, then the
/// aggregates. Rows come in the order of window, then key. Of a late row nothing is evaluated; of
/// any other, also where its group finds no room, an argument only where the condition holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Summarize {
    /// Column name and expression of each key part. None: one group, which exists even when no row
    /// came (whole input) and for each window that had a row. An absent part is a key value of its
    /// own.
    pub keys: Vec<(String, Expr)>,
    /// The aggregates.
    pub aggs: Vec<Agg>,
    /// Which rows belong together.
    pub window: Window,
    /// By whose clock windows are as long as they say, if it is not UTC: times become those of the
    /// clock as rows come in, and what it shows at the start of a window becomes a time again. Not
    /// for sessions.
    pub zone: Option<TimeZone>,
    /// How long windows stay open after the watermark has passed their end, in nanoseconds.
    pub lateness_ns: i64,
    /// Whether windows come out in which no row was.
    pub fill: Option<Fill>,
    /// Of sessions: a row for which this holds is the last one of its session.
    pub until: Option<Expr>,
    /// Of sessions: a row for which this holds joins none that `until` has closed, however long
    /// that one lingers.
    pub unless: Option<Expr>,
    /// Groups of one window, or of one pane where windows slide, and keys that are filled in; rows
    /// of further groups are counted as evicted. A bound below
    /// [`crate::limits::GROUPS_MAX`] is exact; that one each worker keeps for itself. Of sessions:
    /// how many may be open, see [`Session`].
    pub max_groups: u64,
}

impl Summarize {
    /// Whether its rows have a time. Windows that are filled in from the start come out in no order
    /// of time.
    pub fn is_timed(&self) -> bool {
        self.window != Window::All && !self.fill.is_some_and(|fill| fill.from_start)
    }

    /// How long a window may last that is so long by its clock, in nanoseconds.
    pub fn longest(&self, over: i64) -> i64 {
        self.zone.map_or(over, |zone| zone.longest(over))
    }

    /// Whether windows come out as they are, rather than put together from panes or filled in.
    pub fn is_plain(&self) -> bool {
        self.fill.is_none() && !matches!(self.window, Window::Sliding { .. })
    }
}

/// Why a session ended: the numbers of IPFIX's `flowEndReason`
/// ([RFC 5102](https://www.rfc-editor.org/rfc/rfc5102#section-5.11.3)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// No row came for as long as the gap.
    Idle = 1,
    /// It had lasted as long as it may.
    Active = 2,
    /// The condition of its last row, or the number of its rows.
    Detected = 3,
    /// The input ended.
    Forced = 4,
    /// Another one needed its place.
    Resources = 5,
}

/// Folds the rows of each key, in order, into named states; every row passes on with the states
/// after it as columns.
///
/// A key's first row, and its first row after `idle_ns` or longer without one, starts from `init`.
/// Idle time is counted between the later of a row's time and the watermark, and the largest such
/// time of the key's rows before; rows without event time end no key. All updates see the states
/// before the row ([`crate::ExprKind::State`]) and the row. An absent key part is a value, too.
#[derive(Clone, PartialEq, Debug)]
pub struct Scan {
    /// The states.
    pub states: Vec<ScanState>,
    /// Key parts; none: one state for all rows.
    pub keys: Vec<Expr>,
    /// Idle time after which a key's states are forgotten.
    pub idle_ns: i64,
    /// Keys held at once; beyond it a key is evicted and counted.
    pub max_keys: u64,
}

/// One state of a scan.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanState {
    /// Name, of the state and of its output column.
    pub name: String,
    /// Position of its column in the output schema.
    pub output: usize,
    /// The value before a key's first row; sees that row, no states.
    pub init: Expr,
    /// The value after a row; sees the row and all states before it.
    pub update: Expr,
}
