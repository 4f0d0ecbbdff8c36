//! Pipelines at work: rows on their way through the segments of one, and on to those that read it.

use super::exits::Exits;
use super::head::Head;
use super::pending::Pending;
use super::{Pipe, Written};
use crate::chain::{self, Leaving};
use crate::ops::groups::Groups;
use crate::rows::{Rows, Sink};
use crate::segment::Segment;

/// Whether rows may wait for those of other pipelines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Step,
    Close,
}

/// One pipeline at work.
pub(super) struct Pass<'a, 'e> {
    pub(super) emitter: Option<&'a mut Segment>,
    pub(super) head: Option<&'a mut Head>,
    pub(super) spent: &'a mut Vec<(usize, Groups)>,
    pub(super) chain: Chain<'a>,
    pub(super) out: Out<'a, 'e>,
}

impl Pass<'_, '_> {
    /// Puts out the groups of windows that closed at `watermark`, or at the end of the input;
    /// returns the watermark of the rows.
    pub(super) fn emit(&mut self, closed: Vec<(i64, Groups)>, watermark: Option<i64>) -> i64 {
        let own = watermark.unwrap_or(i64::MAX);
        let Some(emitter) = &mut self.emitter else { return own };
        let (spent, number) = (&mut self.spent, self.out.number);
        let spent = &mut |groups| spent.push((number, groups));
        emitter.put_out(closed, watermark, spent, &mut |rows| {
            self.chain.push(0, rows, &mut self.out);
        });
        emitter.spec().map_or(own, |s| s.downstream(own))
    }

    /// Puts out the rows of this step that came from several pipelines.
    pub(super) fn head_put_out(&mut self) {
        if let Some(head) = &mut self.head {
            let by_packet = self.out.mode == Mode::Step;
            head.put_out(by_packet, &mut |rows| self.chain.push(0, rows, &mut self.out));
        }
    }

    /// Moves the watermark of what puts several pipelines together; returns that of its rows.
    pub(super) fn head_watermark(&mut self, watermark: i64) -> i64 {
        let Some(head) = &mut self.head else { return watermark };
        head.watermark(watermark, &mut |rows| self.chain.push(0, rows, &mut self.out))
    }

    /// Ends the input of what puts several pipelines together.
    pub(super) fn head_finish(&mut self) {
        if let Some(head) = &mut self.head {
            head.finish(&mut |rows| self.chain.push(0, rows, &mut self.out));
        }
    }
}

/// The segments of a pipeline after the workers.
pub(super) struct Chain<'a>(pub(super) &'a mut [Segment]);

impl Chain<'_> {
    /// Pushes rows into segment `at` and what comes out into the next.
    pub(super) fn push(&mut self, at: usize, rows: &Rows, out: &mut Out<'_, '_>) {
        chain::push(&mut self.0[at..], rows, None, out);
    }

    /// Moves the watermark through all segments; returns that of what comes out.
    pub(super) fn watermark(&mut self, watermark: i64, out: &mut Out<'_, '_>) -> i64 {
        (0..self.0.len()).fold(watermark, |w, at| {
            let (segment, rest) = self.0[at..].split_first_mut().expect("at is in range");
            segment.watermark(w, &mut |rows| chain::push(rest, rows, None, out))
        })
    }

    /// Ends the input of all segments.
    pub(super) fn finish(&mut self, out: &mut Out<'_, '_>) {
        for at in 0..self.0.len() {
            let (segment, rest) = self.0[at..].split_first_mut().expect("at is in range");
            segment.finish(&mut |rows| chain::push(rest, rows, None, out));
        }
    }
}

/// Where the rows of a pipeline go.
pub(super) struct Out<'a, 'e> {
    pub(super) number: usize,
    pub(super) output: Option<usize>,
    pub(super) read: bool,
    pub(super) after: &'a mut [Pipe],
    /// Whether only one pipeline prints, so that its rows need not wait for others.
    pub(super) alone: bool,
    pub(super) mode: Mode,
    pub(super) pending: &'a mut Pending,
    pub(super) written: &'a mut Written,
    pub(super) exits: &'a mut Exits<'e>,
    pub(super) sink: &'a mut dyn Sink,
}

impl Leaving for Out<'_, '_> {
    fn frames(&mut self, exit: usize, rows: &Rows) {
        self.exits.take(exit, rows);
    }

    fn rows(&mut self, rows: &Rows) {
        if self.read {
            self.after.iter_mut().for_each(|pipe| pipe.accept(self.number, rows));
        }
        let Some(output) = self.output else { return };
        if self.alone || self.mode == Mode::Close {
            self.written.write(self.sink, output, rows);
        } else {
            self.pending.hold(output, rows);
        }
    }
}
