//! What a worker does with packets: the first stages of each pipeline over packets.

use crate::counters::Ledger;
use crate::functions::Functions;
use crate::graph::{Closed, carried};
use crate::ops::groups::Groups;
use crate::rows::Rows;
use crate::segment::{From, Segment};
use crate::view::View;
use weir_packet::bits::Bits;
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layers, classify};
use weir_plan::Program;
use weir_plan::place::Placement;

/// What one worker does with the packets that it gets in one way.
pub struct Upper {
    /// Of the batch that this worker classified itself.
    layers: Layers,
    view: View,
    /// The first segment of each pipeline over packets, with the pipeline's number.
    segments: Vec<(usize, Segment)>,
}

impl Upper {
    /// The workers' part of some pipelines over packets of a program, by their numbers.
    pub fn new(
        program: &Program,
        placement: &Placement,
        functions: &Functions,
        pipelines: &[usize],
    ) -> Upper {
        let (mut fields, mut segments) = (Vec::new(), Vec::new());
        for &p in pipelines {
            let pipeline = &program.pipelines[p];
            let sharded = placement.pipelines[p].sharded;
            let mine = &pipeline.stages[..sharded];
            let carry = carried(&pipeline.stages, sharded);
            let segment = Segment::new(mine, From::Packets, functions, &mut fields, &carry);
            segments.push((p, segment));
        }
        Upper { layers: Layers::new(), view: View::new(&fields), segments }
    }

    /// Makes new tables with room for about so many groups.
    pub fn expect_groups(&mut self, groups: usize) {
        self.segments.iter_mut().for_each(|(_, segment)| segment.expect_groups(groups));
    }

    /// Says where the layers of the next batch's packets start, for [`Upper::push`].
    pub fn classify(&mut self, frames: &FrameBatch) {
        classify(frames, &mut self.layers);
        self.view.next_batch();
    }

    /// Pushes the packets `rows` of the batch last classified; `clock` as in
    /// [`crate::ops::Batch`]. `out` takes what comes out at once: per pipeline once at most.
    pub fn push(
        &mut self,
        frames: &FrameBatch,
        rows: Bits,
        clock: &[i64],
        out: &mut dyn FnMut(usize, &Rows),
    ) {
        let Upper { layers, view, segments } = self;
        for (p, segment) in segments {
            let packets = view.packets(frames, layers);
            segment.push_packets(packets, frames.seq(), clock, rows, &mut |rows| out(*p, rows));
        }
    }

    /// Whether it runs pipeline `p`.
    pub fn runs(&self, p: usize) -> bool {
        self.segments.iter().any(|(q, _)| *q == p)
    }

    /// Takes groups back that were put out, to use their memory again.
    pub fn recycle(&mut self, p: usize, groups: Groups) {
        if let Some((_, segment)) = self.segments.iter_mut().find(|(q, _)| *q == p) {
            segment.recycle(groups);
        }
    }

    /// Moves the watermark; what closes is added to `closed` with its pipeline.
    pub fn watermark(&mut self, watermark: i64, closed: &mut Vec<Closed>) {
        let mut groups = Vec::new();
        for (p, segment) in &mut self.segments {
            segment.close(watermark, &mut groups);
            closed.extend(groups.drain(..).map(|(start, groups)| (*p, start, groups)));
        }
    }

    /// Closes everything.
    pub fn finish(&mut self, closed: &mut Vec<Closed>) {
        let mut groups = Vec::new();
        for (p, segment) in &mut self.segments {
            segment.close_all(&mut groups);
            closed.extend(groups.drain(..).map(|(start, groups)| (*p, start, groups)));
        }
    }

    /// Adds what its stages counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        self.segments.iter().for_each(|(_, s)| s.count(ledger));
    }

    /// Adds how the packets were that it got to the ledger.
    pub fn count_packets(&self, ledger: &mut Ledger) {
        ledger.cut += self.layers.cut;
        for (sum, n) in ledger.malformed.iter_mut().zip(self.layers.malformed) {
            *sum += n;
        }
    }
}
