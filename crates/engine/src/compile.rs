//! Compiles the fragments of a physical plan into pipelines of nodes.
//!
//! Stages that pass rows on become operators of one chain, over one set of registers, up to the
//! first that holds rows back or makes several rows of one: it ends the chain. A whole `summarize`
//! becomes both of its halves.

mod chain;
mod ends;
mod placed;
mod rows;
mod shares;
mod summarize;

use crate::node::Node;
use crate::ops::groups::Spec;
use crate::ops::join::Join;
use crate::ops::merged::Final;
use crate::ops::union::Union;
use crate::pipeline::Pipeline;
use chain::{ChainBuilder, ChainInput};
pub(crate) use placed::{Placed, PlacedProgram};
#[cfg(test)]
pub(crate) use rows::top_over_rows;
use weir_packet::fields::FieldId;
use weir_plan::physical::{self, Fragment, Inlet, Payload, Work, exact};
use weir_plan::{Expr, Program, Schema, Stage};

impl Placed<'_> {
    /// Compiles a fragment. `tested`: conditions of its first stages that hold for all packets
    /// that come. `fields` collects what the view of its packets must decode.
    pub(crate) fn pipeline(
        self,
        fragment: &Fragment,
        tested: &[Expr],
        fields: &mut Vec<FieldId>,
    ) -> Pipeline {
        let (p, from_packets) = (fragment.pipeline.0, self.takes_packets(fragment));
        let (mut schema, mut carries) = (self.schema_before(fragment), &fragment.carries);
        let mut nodes: Vec<(usize, Box<dyn Node>)> = Vec::new();
        let mut rest = &fragment.nodes[..];
        if let [first, others @ ..] = rest
            && let Some(node) = self.first(first, &schema)
        {
            nodes.push((first.id.stage, node));
            (rest, schema, carries) = (others, first.schema.clone(), &first.carries);
        }
        let mut is_first = from_packets;
        while is_first || !rest.is_empty() {
            let from =
                if is_first { ChainInput::Packets } else { ChainInput::Rows(&schema, carries) };
            let mut build = ChainBuilder::new(self, from, fields);
            build.tested = if is_first { tested } else { &[] };
            let (mut taken, mut ending) = (0, None);
            while ending.is_none() && taken < rest.len() {
                ending = build.node(&rest[taken], &rest[taken + 1..]);
                taken += 1;
            }
            let (mine, others) = rest.split_at(taken);
            if let Some(last) = mine.last() {
                (schema, carries) = (last.schema.clone(), &last.carries);
            }
            let ending = ending.unwrap_or_else(|| build.gather(carries));
            let first = mine.first().map_or(0, |node| node.id.stage);
            nodes.push((first, build.close(ending, shares_numbers(self.program, p))));
            if let Some((last, Work::Stage(Stage::Summarize(s)))) =
                mine.last().map(|last| (last, &last.work))
            {
                let spec = Spec::new(s, self.with, schema.clone());
                nodes.push((last.id.stage, Box::new(Final::new(&spec))));
            }
            (rest, is_first) = (others, false);
        }
        Pipeline::new(fragment.pipeline, nodes)
    }

    /// Whether a fragment takes packets of the source.
    fn takes_packets(self, fragment: &Fragment) -> bool {
        match fragment.from {
            Inlet::Exchange(id) => {
                matches!(self.plan.exchanges[id.0].payload, Payload::Packets(_))
            }
            Inlet::Pipelines(_) => false,
        }
    }

    /// The columns of the rows that a fragment takes.
    fn schema_before(self, fragment: &Fragment) -> Schema {
        match &fragment.from {
            Inlet::Pipelines(sides) => self.plan.rows_of(sides[0]),
            Inlet::Exchange(_) => {
                let below = self.plan.fragments(fragment.pipeline).map(|(_, below)| below);
                let below = below.take_while(|below| !std::ptr::eq(*below, fragment)).last();
                let last = below.and_then(|below| below.nodes.last());
                last.map_or_else(Schema::default, |node| node.schema.clone())
            }
        }
    }

    /// The first node of a fragment, where that takes groups, or the rows of several pipelines.
    fn first(self, node: &physical::Node, left: &Schema) -> Option<Box<dyn Node>> {
        match &node.work {
            Work::Final(s) => {
                let spec = Spec::new(s, self.with, node.schema.clone());
                Some(Box::new(Final::new(&spec)))
            }
            Work::Stage(Stage::Join(join)) => {
                let share = self.with.join_share(join, left);
                Some(Box::new(Join::new(join, left, &share, self.with.hash_key)))
            }
            Work::Stage(Stage::Union(union)) => {
                let exact = exact(self.program);
                let mut sides = self.program.pipelines[node.id.pipeline.0].sources();
                let exact = sides.all(|side| exact[side]);
                Some(Box::new(Union::new(union, &node.schema, exact)))
            }
            Work::Stage(_) | Work::Partial(_) => None,
        }
    }
}

/// Whether rows of pipeline `p` may have the number of another: each side of a union numbers its
/// own.
fn shares_numbers(program: &Program, p: usize) -> bool {
    let mut shared: Vec<bool> = Vec::new();
    for pipeline in &program.pipelines[..=p] {
        let union = matches!(pipeline.stages.first(), Some(Stage::Union(_)));
        shared.push(union || pipeline.sources().any(|i| shared[i]));
    }
    shared[p]
}
