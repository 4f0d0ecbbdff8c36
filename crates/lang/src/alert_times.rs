//! Times of alerts: the `summarize` that the rows of an `alert` come from also says when the first
//! and the last packet of each row was.
//!
//! A query that names [these columns](Alert::PACKETS) itself is left as it is, and so is one whose
//! rows are not those of a `summarize` over packets any more, or that are put out by another
//! pipeline as well. The alert takes the columns, so that its rows do not have them.

use crate::diagnostic::Span;
use crate::tree::{
    AggItem, Expr, ExprKind, Item, LetBody, Name, Pipeline, Spanned, Stage, Statement, Tree,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::Alert;
use weir_plan::limits::PIPELINES_MAX;

/// The aggregates of the two columns.
const EXTREMES: [&str; 2] = ["min", "max"];

/// The source of the times of a row's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// The rows are packets, which have a time.
    Packets,
    /// The two columns.
    Columns,
}

/// Stages that get the columns, by statement and number: what the rows before each have, and the
/// alert that it is for.
type Edits = BTreeMap<(usize, usize), (Times, Span)>;

/// The result of the search back from one alert.
struct Found {
    /// Where the alert is.
    span: Span,
    edits: Edits,
    /// The source of times in the rows that come out of each statement so far.
    known: BTreeMap<usize, Option<Times>>,
}

/// Lets the rows of alerts say when their packets were.
pub(crate) fn add(tree: &mut Tree) {
    // One pipeline after another is followed; a query with more of them is refused.
    if tree.statements.iter().filter_map(|s| pipeline_of(&s.node)).count() > PIPELINES_MAX {
        return;
    }
    let search = Search::new(tree);
    let mut edits = Edits::new();
    for (at, statement) in tree.statements.iter().enumerate() {
        let Some(pipeline) = pipeline_of(&statement.node) else { continue };
        if let Some(end) = alert_of(pipeline) {
            let span = pipeline.stages[end].span;
            let mut found = Found { span, edits: Edits::new(), known: BTreeMap::new() };
            if search.before((at, end), &mut found) == Some(Times::Columns) {
                edits.extend(found.edits);
            }
        }
    }
    for ((statement, stage), (before, span)) in edits {
        let (Statement::Let { body: LetBody::Pipeline(pipeline), .. }
        | Statement::Pipeline(pipeline)) = &mut tree.statements[statement].node
        else {
            continue;
        };
        put(&mut pipeline.stages[stage].node, before, span);
    }
}

struct Search<'a> {
    tree: &'a Tree,
    /// Of each statement, whether no output has columns of its rows but those that are named, and
    /// no `join` puts them beside those of other rows.
    hidden: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(tree: &'a Tree) -> Search<'a> {
        let mut readers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let joined: BTreeSet<&str> = tree.statements.iter().flat_map(joined_by).collect();
        for (at, statement) in tree.statements.iter().enumerate() {
            let names = pipeline_of(&statement.node).into_iter().flat_map(read_by);
            names.for_each(|name| readers.entry(name).or_default().push(at));
        }
        // Whatever reads a statement is below it.
        let mut hidden = vec![true; tree.statements.len()];
        for (at, statement) in tree.statements.iter().enumerate().rev() {
            let Statement::Let { name, .. } = &statement.node else { continue };
            let below = readers.get(&*name.node).into_iter().flatten().filter(|&&by| by > at);
            let hides = |by: usize| match &tree.statements[by].node {
                statement if pipeline_of(statement).is_some_and(makes_anew) => true,
                Statement::Let { .. } => hidden[by],
                _ => false,
            };
            let is_read = below.clone().next().is_some() && !joined.contains(&*name.node);
            let found = is_read && below.copied().all(hides);
            hidden[at] = found;
        }
        Search { tree, hidden }
    }

    /// The source of the times of packets in the rows before a stage of a statement, once the
    /// stages in `edits` have the columns; `None` if it can't be known.
    fn before(&self, place: (usize, usize), found: &mut Found) -> Option<Times> {
        let (statement, end) = place;
        let pipeline = pipeline_of(&self.tree.statements[statement].node)?;
        for (at, stage) in pipeline.stages[..end].iter().enumerate().rev() {
            let is_open = match &stage.node {
                Stage::Summarize(s) => {
                    let items = s.keys.iter().chain(s.aggs.iter().map(|agg| &agg.item));
                    let windows = [&s.every, &s.over, &s.sessions.gap];
                    windows.iter().any(|w| w.is_some()) && !items.clone().any(says_when)
                }
                Stage::Project(items) => {
                    !items.iter().any(says_when) && items.iter().any(|item| is_called(item, "ts"))
                }
                Stage::Extend(items) | Stage::ProjectAway(items) => {
                    !items.iter().any(|item| says_when(item) || is_called(item, "ts"))
                }
                Stage::Rename(items) => {
                    let is_time = |e: &Expr| matches!(&e.node, ExprKind::Name(n) if n == "ts");
                    !items.iter().any(|item| says_when(item) || is_time(&item.expr))
                }
                Stage::Scan(scan) => !scan.states.iter().any(says_when),
                Stage::Union(names) => {
                    let mut times = |name: &Name| self.rows(statement, &name.node, found);
                    let columns = Some(Times::Columns);
                    names.iter().all(|name| times(name) == columns)
                        && self.before((statement, at), found) == columns
                }
                Stage::Where(_)
                | Stage::Each(_)
                | Stage::AnalyzeTcp(_)
                | Stage::Top(_)
                | Stage::Limit(_)
                | Stage::Join(_)
                | Stage::Distinct(_)
                | Stage::Deduplicate(_)
                | Stage::Sample(_)
                | Stage::Capture(_)
                | Stage::Metric(_)
                | Stage::Hello(_) => true,
                _ => false,
            };
            if !is_open {
                return None;
            }
            if let Stage::Union(_) = stage.node {
                return Some(Times::Columns);
            }
            if let Stage::Summarize(_) | Stage::Project(_) = stage.node {
                let before = self.before((statement, at), found)?;
                found.edits.insert((statement, at), (before, found.span));
                let is_group = matches!(stage.node, Stage::Summarize(_));
                return Some(if is_group { Times::Columns } else { before });
            }
        }
        self.rows(statement, &pipeline.source.node, found)
    }

    /// The same of the rows of a name that a statement reads.
    fn rows(&self, statement: usize, source: &str, found: &mut Found) -> Option<Times> {
        if source == "packets" {
            return Some(Times::Packets);
        }
        let is_it = |s: &Spanned<Statement>| match &s.node {
            Statement::Let { name, .. } => name.node == source,
            _ => false,
        };
        let at = self.tree.statements[..statement].iter().position(is_it)?;
        if let Some(known) = found.known.get(&at) {
            return *known;
        }
        let end = pipeline_of(&self.tree.statements[at].node)?.stages.len();
        let times = self.before((at, end), found);
        let times = times.filter(|times| *times == Times::Packets || self.hidden[at]);
        found.known.insert(at, times);
        times
    }
}

/// The names whose rows a pipeline reads.
fn read_by(pipeline: &Pipeline) -> impl Iterator<Item = &str> {
    let named = pipeline.stages.iter().flat_map(|stage| match &stage.node {
        Stage::Join(join) => std::slice::from_ref(&join.right),
        Stage::Union(names) => names,
        _ => &[],
    });
    std::iter::once(&pipeline.source).chain(named).map(|name| &*name.node)
}

/// The names whose rows come to the right of a `join` of a statement.
fn joined_by(statement: &Spanned<Statement>) -> impl Iterator<Item = &str> {
    let stages = pipeline_of(&statement.node).into_iter().flat_map(|pipeline| &pipeline.stages);
    stages.filter_map(|stage| match &stage.node {
        Stage::Join(join) => Some(&*join.right.node),
        _ => None,
    })
}

/// Gives a stage the columns.
fn put(stage: &mut Stage, before: Times, span: Span) {
    let column = |name: &str| Spanned::new(ExprKind::Name(name.to_owned()), span);
    match stage {
        Stage::Summarize(s) => {
            for (out, func) in Alert::PACKETS.into_iter().zip(EXTREMES) {
                let from = if before == Times::Packets { "ts" } else { out };
                let func = Spanned::new(func.to_owned(), span);
                let call = ExprKind::Call { func, args: vec![column(from)] };
                let name = Some(Spanned::new(out.to_owned(), span));
                let item = Item { name, expr: Spanned::new(call, span) };
                s.aggs.push(AggItem { item, cond: None });
            }
        }
        Stage::Project(items) if before == Times::Columns => {
            items.extend(Alert::PACKETS.map(|name| Item { name: None, expr: column(name) }));
        }
        _ => {}
    }
}

fn pipeline_of(statement: &Statement) -> Option<&Pipeline> {
    match statement {
        Statement::Let { body: LetBody::Pipeline(pipeline), .. }
        | Statement::Pipeline(pipeline) => Some(pipeline),
        _ => None,
    }
}

/// Whether a pipeline puts out only columns that it makes, or names.
fn makes_anew(pipeline: &Pipeline) -> bool {
    let anew = |s: &Stage| matches!(s, Stage::Summarize(_) | Stage::Project(_) | Stage::Alert(_));
    pipeline.stages.iter().any(|stage| anew(&stage.node))
}

/// The number of the first stage that makes alerts.
fn alert_of(pipeline: &Pipeline) -> Option<usize> {
    pipeline.stages.iter().position(|stage| matches!(stage.node, Stage::Alert(_)))
}

/// Whether an item makes a column that says when, or is one.
fn says_when(item: &Item) -> bool {
    Alert::PACKETS.iter().any(|name| is_called(item, name))
}

fn is_called(item: &Item, wanted: &str) -> bool {
    match (&item.name, &item.expr.node) {
        (Some(name), _) => name.node == wanted,
        (None, ExprKind::Name(name)) => name == wanted,
        _ => false,
    }
}
