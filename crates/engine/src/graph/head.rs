//! What stands before the segments of a pipeline that takes the rows of several others.

use crate::counters::Ledger;
use crate::ops::join::{Join, Side};
use crate::ops::union::Union;
use crate::rows::Rows;
use crate::segment::schema_after;
use crate::table::HashKey;
use weir_plan::physical::exact;
use weir_plan::{Input, Program, Stage};

/// A join or a union, and the pipelines on its sides.
pub(super) struct Head {
    sides: Vec<usize>,
    kind: Kind,
}

enum Kind {
    Join(Box<Join>),
    Union(Box<Union>),
}

/// Whether rows of pipeline `p` may have the number of another: each side of a union numbers its
/// own.
pub(super) fn shares_numbers(program: &Program, p: usize) -> bool {
    let mut shared: Vec<bool> = Vec::new();
    for pipeline in &program.pipelines[..=p] {
        let union = matches!(pipeline.stages.first(), Some(Stage::Union(_)));
        shared.push(union || pipeline.sources().any(|i| shared[i]));
    }
    shared[p]
}

impl Head {
    /// That of pipeline `p`, if it takes the rows of several.
    pub(super) fn new(program: &Program, p: usize, hash_key: HashKey) -> Option<Head> {
        let pipeline = &program.pipelines[p];
        let (Input::Pipeline(left), Some(first)) = (pipeline.input, pipeline.stages.first()) else {
            return None;
        };
        let left = &program.pipelines[left].schema;
        let kind = match first {
            Stage::Join(join) => Kind::Join(Box::new(Join::new(join, left, hash_key))),
            Stage::Union(union) => {
                let schema = schema_after(&pipeline.stages[..1], left);
                let exact = exact(program);
                let exact = pipeline.sources().all(|i| exact[i]);
                Kind::Union(Box::new(Union::new(union, &schema, exact)))
            }
            _ => return None,
        };
        Some(Head { sides: pipeline.sources().collect(), kind })
    }

    /// The pipelines on its sides.
    pub(super) fn sources(&self) -> impl Iterator<Item = usize> {
        self.sides.iter().copied()
    }

    /// Takes rows of a pipeline, for each side that it is on.
    pub(super) fn push(&mut self, from: usize, rows: &Rows) {
        for (side, _) in self.sides.iter().enumerate().filter(|(_, pipeline)| **pipeline == from) {
            match &mut self.kind {
                Kind::Join(join) if side == 0 => join.push(Side::Left, rows),
                Kind::Join(join) => join.push(Side::Right, rows),
                Kind::Union(union) => union.push(side, rows),
            }
        }
    }

    /// Puts out what need not wait for the watermark, now that all rows of the step are there.
    pub(super) fn put_out(&mut self, by_packet: bool, out: &mut dyn FnMut(&Rows)) {
        if let Kind::Union(union) = &mut self.kind {
            union.put_out(by_packet, out);
        }
    }

    /// Moves the watermark, the smallest one of all sides; returns that of what comes out.
    pub(super) fn watermark(&mut self, watermark: i64, out: &mut dyn FnMut(&Rows)) -> i64 {
        match &mut self.kind {
            Kind::Join(join) => join.watermark(watermark, out),
            Kind::Union(union) => {
                union.watermark(watermark);
                watermark
            }
        }
    }

    /// Puts everything out.
    pub(super) fn finish(&mut self, out: &mut dyn FnMut(&Rows)) {
        if let Kind::Join(join) = &mut self.kind {
            join.finish(out);
        }
    }

    /// Takes over what the same stage holds over the same pipelines.
    pub(super) fn resume(&mut self, old: &mut Head) {
        match (&mut self.kind, &mut old.kind) {
            (Kind::Join(mine), Kind::Join(theirs)) => mine.resume(theirs),
            (Kind::Union(mine), Kind::Union(theirs)) => mine.resume(theirs),
            _ => {}
        }
    }

    /// Adds what was counted to the ledger.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        if let Kind::Join(join) = &self.kind {
            join.count(ledger);
        }
    }
}
