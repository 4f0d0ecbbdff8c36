//! Final aggregation: groups of all producers become rows.

use super::emit::Emitter;
use super::groups::{Groups, Spec};
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::hold::{Hold, known};
use crate::losses::LossRecord;
use crate::node::{Next, Node, NodeInput};
use std::sync::Arc;

/// The final half of a `summarize`.
pub(crate) struct Final {
    spec: Arc<Spec>,
    emitter: Emitter,
    /// Groups of windows that have closed, by time, until the watermark follows.
    closed: Vec<(i64, Groups)>,
    /// Groups that were emitted.
    spent: Vec<Groups>,
    /// Whether another one took over what it held.
    moved: bool,
    undefined: u64,
}

impl Final {
    /// That of groups of `spec`.
    pub(crate) fn new(spec: &Arc<Spec>) -> Final {
        Final {
            spec: Arc::clone(spec),
            emitter: Emitter::new(spec),
            closed: Vec::new(),
            spent: Vec::new(),
            moved: false,
            undefined: 0,
        }
    }

    /// Emits what can be at this watermark; `None` is the end of the input.
    fn emit(&mut self, watermark: Option<i64>, next: &mut Next<'_>) {
        let closed = std::mem::take(&mut self.closed);
        let Final { emitter, spent, undefined, .. } = self;
        let spent = &mut |groups| spent.push(groups);
        emitter.close(closed, watermark, undefined, spent, &mut |rows| next.rows(rows));
    }
}

impl Hold for Final {
    /// Returns `false`: the partial half holds the groups, and says whether there were any.
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        if let Some(old) = known::<Final>(old) {
            self.emitter.resume(&mut old.emitter);
            old.moved = true;
        }
        false
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.undefined)?;
        self.emitter.pass_state(at)
    }

    fn reclaim(&mut self, out: &mut dyn FnMut(Groups)) {
        self.spent.drain(..).for_each(out);
    }
}

impl Node for Final {
    fn push(&mut self, input: NodeInput<'_>, _next: &mut Next<'_>) {
        let NodeInput::Groups { start, groups } = input else {
            unreachable!("a final half has groups")
        };
        self.closed.push((start, groups));
    }

    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        self.emit(Some(watermark), next);
        self.spec.downstream(watermark)
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        if self.closed.is_empty() && !self.moved {
            self.closed.extend(self.emitter.lone().map(|groups| (0, groups)));
        }
        self.emit(None, next);
    }

    fn spec(&self) -> Option<&Arc<Spec>> {
        Some(&self.spec)
    }

    fn look_up_losses(&mut self, record: &LossRecord) {
        self.emitter.look_up_losses(record);
    }

    fn holds_rows(&self) -> bool {
        true
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.undefined += self.undefined;
        self.emitter.count(ledger);
    }
}
