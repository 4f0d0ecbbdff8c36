//! The parts of packets that stages read, and those that rows carry for stages to come.

use crate::expr::{Expr, ExprKind};
use crate::rows::{Parts, SampleBy};
use crate::stage::{Stage, Summarize};
use std::collections::BTreeSet;
use weir_packet::fields::FieldId;
use weir_packet::repeated::Repeated;

/// The parts of packets that rows carry beside their columns, for stages to come.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Carry {
    /// Packet fields.
    pub fields: Vec<FieldId>,
    /// Whether the frame comes along: its bytes, its length on the wire, its link type and
    /// interface.
    pub frame: bool,
}

/// The packet fields that stages read, in the order that they name them first.
pub fn fields_read(stages: &[Stage]) -> Vec<FieldId> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for stage in stages {
        stage.for_each_expr(&mut |e| {
            e.visit(&mut |e| match e.kind {
                ExprKind::Field(id) if seen.insert(id) => found.push(id),
                _ => {}
            });
        });
    }
    found
}

/// The kinds of repeated parts of packets that stages read.
pub fn parts_read(stages: &[Stage]) -> impl Iterator<Item = Repeated> + '_ {
    stages.iter().filter_map(|stage| match stage {
        Stage::Each(each) => match each.what {
            Parts::Packet(what) => Some(what),
            _ => None,
        },
        _ => None,
    })
}

/// The parts of packets that the stages of a pipeline over packets from `at` on still read: what
/// rows carry that leave the batch of packets there.
pub fn carried(stages: &[Stage], at: usize) -> Carry {
    let drops = |s: &Stage| s.drops_packets();
    let (mine, rest) = stages.split_at(at);
    if mine.iter().any(drops) {
        return Carry::default();
    }
    let until = rest.iter().position(drops).map_or(rest.len(), |i| i + 1);
    let frame = rest[..until].iter().any(|s| matches!(s, Stage::Ends(_)));
    Carry { fields: fields_read(&rest[..until]), frame }
}

impl Summarize {
    /// Calls `f` on each expression of it.
    pub(super) fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        self.keys.iter().for_each(|(_, e)| f(e));
        self.until.iter().chain(&self.unless).for_each(&mut *f);
        self.aggs.iter().for_each(|a| {
            a.arg.iter().for_each(&mut *f);
            a.cond.iter().for_each(&mut *f);
        });
    }
}

impl Stage {
    /// Whether rows are no packets after it.
    pub fn drops_packets(&self) -> bool {
        matches!(self, Stage::Project { .. } | Stage::Reshape { .. } | Stage::Summarize(_))
    }

    /// Calls `f` on each expression of the stage.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            Stage::Where(e) => f(e),
            Stage::Extend { columns } => columns.iter().for_each(|(_, _, e)| f(e)),
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                columns.iter().for_each(|(_, e)| f(e));
            }
            Stage::Summarize(s) => s.for_each_expr(f),
            Stage::Scan(s) => {
                s.keys.iter().for_each(&mut *f);
                s.states.iter().for_each(|s| {
                    f(&s.init);
                    f(&s.update);
                });
            }
            Stage::AnalyzeTcp(a) => a.keys.iter().chain(&a.inputs).for_each(f),
            Stage::Top { by, per, .. } => {
                by.iter().for_each(|k| f(&k.expr));
                per.iter().flat_map(|per| &per.keys).for_each(f);
            }
            Stage::Distinct(d) => d.keys.iter().for_each(f),
            Stage::Deduplicate(d) => d.keys.iter().for_each(f),
            Stage::Hello(h) => h.keys.iter().for_each(f),
            Stage::Sample(s) => match &s.by {
                SampleBy::Number(number) => f(number),
                SampleBy::Key(keys) => keys.iter().for_each(f),
                SampleBy::Order => {}
            },
            Stage::Each(each) => {
                if let Parts::Split { text, by } = &each.what {
                    [text, by].into_iter().for_each(f);
                }
            }
            Stage::Capture(c) => f(&c.name),
            Stage::Alert(alert) => alert.for_each_expr(f),
            Stage::Limit(_) | Stage::Join(_) | Stage::Union(_) | Stage::Metric(_) => {}
            Stage::Ends(ends) => ends.for_each_expr(f),
        }
    }
}
