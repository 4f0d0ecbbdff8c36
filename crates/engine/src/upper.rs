//! What a worker does with packets: the first stages of each pipeline over packets.

use crate::chain::{self, Leaving, on_workers};
use crate::counters::Ledger;
use crate::functions::BuildContext;
use crate::graph::Closed;
use crate::ops::ends::Wanted;
use crate::ops::groups::Groups;
use crate::rows::Rows;
#[cfg(debug_assertions)]
use crate::run::agreement::Outline;
use crate::run::panicked::at;
use crate::segment::Segment;
use crate::view::{Origin, View};
use weir_packet::bits::Bits;
#[cfg(debug_assertions)]
use weir_packet::fields::FieldId;
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layers, classify};
use weir_plan::Program;
use weir_plan::place::Placement;

/// What one worker does with the packets that it gets in one way.
pub struct Upper {
    /// Of the batch that this worker classified itself.
    layers: Layers,
    view: View,
    /// The segments of each pipeline over packets, with the pipeline's number.
    chains: Vec<(usize, Chain)>,
    /// The number that frames of the first stage with ends come out with: there are so many
    /// pipelines.
    exits: usize,
    /// Packets so far.
    packets: u64,
}

/// Segments one after the other.
struct Chain {
    first: Segment,
    rest: Vec<Segment>,
}

impl Chain {
    fn last(&mut self) -> &mut Segment {
        self.rest.last_mut().unwrap_or(&mut self.first)
    }

    fn each_mut(&mut self, f: impl FnMut(&mut Segment)) {
        std::iter::once(&mut self.first).chain(&mut self.rest).for_each(f);
    }
}

/// What leaves the chain of a pipeline.
struct Out<'a> {
    pipeline: usize,
    exits: usize,
    out: &'a mut dyn FnMut(usize, &Rows),
}

impl Leaving for Out<'_> {
    fn rows(&mut self, rows: &Rows) {
        (self.out)(self.pipeline, rows);
    }

    fn frames(&mut self, exit: usize, rows: &Rows) {
        (self.out)(self.exits + exit, rows);
    }
}

impl Upper {
    /// The workers' part of some pipelines over packets of a program, by their numbers.
    pub fn new(
        program: &Program,
        placement: &Placement,
        with: BuildContext<'_>,
        pipelines: &[usize],
    ) -> Upper {
        let (mut fields, mut chains) = (Vec::new(), Vec::new());
        for &p in pipelines {
            let sharded = placement.pipelines[p].sharded;
            let exit = program.ends().filter(|(q, ..)| *q < p).count();
            let pipeline = &program.pipelines[p];
            let mut first = on_workers(pipeline, sharded, with, &mut fields, exit);
            let rest = first.split_off(1);
            let first = first.pop().expect("a chain has a segment at least");
            chains.push((p, Chain { first, rest }));
        }
        let exits = program.pipelines.len();
        let (layers, view) = (Layers::new(), View::new(&fields));
        Upper { layers, view, chains, exits, packets: 0 }
    }

    /// What runs of each pipeline.
    #[cfg(debug_assertions)]
    pub(crate) fn outlines(&self) -> impl Iterator<Item = (usize, Outline)> {
        self.chains.iter().map(|(p, Chain { first, rest })| {
            let stages = first.stages() + rest.iter().map(Segment::stages).sum::<usize>();
            let half = rest.last().unwrap_or(first).spec().is_some();
            (*p, Outline { stages, half })
        })
    }

    /// The fields that its view decodes.
    #[cfg(debug_assertions)]
    pub(crate) fn fields(&self) -> impl Iterator<Item = FieldId> {
        self.view.fields()
    }

    /// Says who wants frames.
    pub fn want(&mut self, wanted: Wanted) {
        self.chains.iter_mut().for_each(|(_, chain)| chain.each_mut(|s| s.want(wanted)));
    }

    /// Makes new tables with room for about so many groups.
    pub fn expect_groups(&mut self, groups: usize) {
        self.chains.iter_mut().for_each(|(_, chain)| chain.last().expect_groups(groups));
    }

    /// Says where the layers of the next batch's packets start, for [`Upper::push`].
    pub fn classify(&mut self, frames: &FrameBatch) {
        classify(frames, &mut self.layers);
        self.packets += frames.len() as u64;
        self.view.next_batch();
    }

    /// Pushes the packets `rows` of the batch last classified; `clock` as in
    /// [`crate::ops::Batch`]. `out` takes what comes out at once: rows with their pipeline, and
    /// frames ([`crate::ops::ends`]) under the numbers behind those of pipelines.
    pub fn push(
        &mut self,
        frames: &FrameBatch,
        rows: Bits,
        clock: &[i64],
        out: &mut dyn FnMut(usize, &Rows),
    ) {
        let Upper { layers, view, chains, exits, .. } = self;
        for (p, Chain { first, rest }) in chains {
            at(Some(*p));
            let packets = view.packets(frames, layers);
            let mut out = Out { pipeline: *p, exits: *exits, out };
            first.push_packets(packets, frames.seq(), clock, rows, &mut |rows| {
                chain::push(rest, rows, Some(Origin { frames, layers }), &mut out);
            });
            first.frames(&mut |exit, rows| out.frames(exit, rows));
        }
        at(None);
    }

    /// Lets pipeline `p` take over what pipeline `q` of `old` holds in its first `same` stages;
    /// says which of them had something to take over.
    pub fn resume(&mut self, p: usize, old: &mut Upper, q: usize, same: usize) -> Vec<usize> {
        let mine = self.chains.iter_mut().find(|(number, _)| *number == p);
        let theirs = old.chains.iter_mut().find(|(number, _)| *number == q);
        let (Some((_, mine)), Some((_, theirs))) = (mine, theirs) else { return Vec::new() };
        let mine = std::iter::once(&mut mine.first).chain(&mut mine.rest);
        let theirs = std::iter::once(&mut theirs.first).chain(&mut theirs.rest);
        chain::resume(mine, theirs, 0, same)
    }

    /// Closes what one pipeline holds.
    pub fn finish_one(&mut self, p: usize, closed: &mut Vec<Closed>) {
        let mut groups = Vec::new();
        if let Some((_, chain)) = self.chains.iter_mut().find(|(q, _)| *q == p) {
            chain.each_mut(|segment| segment.close_all(&mut groups));
        }
        closed.extend(groups.into_iter().map(|(start, groups)| (p, start, groups)));
    }

    /// Whether it runs pipeline `p`.
    pub fn runs(&self, p: usize) -> bool {
        self.chains.iter().any(|(q, _)| *q == p)
    }

    /// Takes groups back that were put out, to use their memory again.
    pub fn recycle(&mut self, p: usize, groups: Groups) {
        if let Some((_, chain)) = self.chains.iter_mut().find(|(q, _)| *q == p) {
            chain.last().recycle(groups);
        }
    }

    /// Moves the watermark; what closes is added to `closed` with its pipeline.
    pub fn watermark(&mut self, watermark: i64, closed: &mut Vec<Closed>) {
        let mut groups = Vec::new();
        for (p, chain) in &mut self.chains {
            at(Some(*p));
            chain.each_mut(|segment| segment.close(watermark, &mut groups));
            closed.extend(groups.drain(..).map(|(start, groups)| (*p, start, groups)));
        }
        at(None);
    }

    /// Closes everything.
    pub fn finish(&mut self, closed: &mut Vec<Closed>) {
        let mut groups = Vec::new();
        for (p, chain) in &mut self.chains {
            at(Some(*p));
            chain.each_mut(|segment| segment.close_all(&mut groups));
            closed.extend(groups.drain(..).map(|(start, groups)| (*p, start, groups)));
        }
        at(None);
    }

    /// Adds what its stages counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        for (_, Chain { first, rest }) in &self.chains {
            std::iter::once(first).chain(rest).for_each(|s| s.count(ledger));
        }
    }

    /// Packets that it got.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Adds how the packets were that it got to the ledger.
    pub fn count_packets(&self, ledger: &mut Ledger) {
        ledger.cut += self.layers.cut;
        for (sum, n) in ledger.malformed.iter_mut().zip(self.layers.malformed) {
            *sum += n;
        }
    }
}
