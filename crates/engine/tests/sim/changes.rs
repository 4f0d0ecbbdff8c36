//! Programs that come, go and are replaced while a random program runs.

use super::traffic::{Traffic, TrafficSource};
use super::{Answer, hash_key, plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_engine::rows::Collect;
use weir_engine::run::{self, Change, Changes, Options};
use weir_model::TimeRules;
use weir_model::egress::{Collected, by_outlet};
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_plan::change::continued;
use weir_plan::together::side_by_side;
use weir_plan::{Expr, Program, Stage, Value};

/// Programs by name.
pub(crate) type Named = Vec<(String, Program)>;

/// A source that changes what runs before it hands out its batches of these numbers.
struct Changing {
    source: TrafficSource,
    /// The last one first.
    plan: Vec<(usize, Named)>,
    now: Named,
    batches: usize,
    /// Changes that are to be made.
    sent: u64,
    changes: Arc<Changes>,
    made: Arc<AtomicU64>,
}

impl Source for Changing {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        // Made before the batch after this one.
        let mut sent = 0;
        while let Some((_, next)) = self.plan.pop_if(|(at, _)| *at <= self.batches) {
            sent += 1;
            let program = side_by_side(next.clone()).expect("few pipelines");
            let continued = continued(&self.now, &next);
            let made = Arc::clone(&self.made);
            let report = Box::new(move |kept: std::io::Result<_>| {
                made.fetch_add(u64::from(kept.is_ok()), Ordering::Relaxed);
            });
            self.changes.send(Change { program, continued, report });
            self.now = next;
        }
        self.batches += 1;
        let more = self.source.fill(batch)?;
        // After the last batch there is nothing to change.
        self.sent += if more { sent } else { 0 };
        Ok(more)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        self.source.account()
    }
}

/// Runs programs that change before the batches after those of these numbers, rising. Gives what
/// they put out, each row with the number of its output at that time.
pub(crate) fn engine(
    first: &Named,
    mut plan: Vec<(usize, Named)>,
    traffic: &Traffic,
    (time, cuts, workers): (&TimeRules, &[usize], usize),
) -> Answer {
    let TimeRules { lateness_ns, jump_ns } = *time;
    let changes = Arc::new(Changes::default());
    let options = Options {
        workers,
        lateness_ns,
        jump_ns,
        hash_key: hash_key(cuts, workers),
        changes: Some(Arc::clone(&changes)),
        ..Options::default()
    };
    plan.reverse();
    let made = Arc::new(AtomicU64::new(0));
    let mut source = Changing {
        source: traffic.source(cuts),
        plan,
        now: first.clone(),
        batches: 0,
        sent: 0,
        changes,
        made: Arc::clone(&made),
    };
    let program = side_by_side(first.clone()).expect("few pipelines");
    let (mut sink, mut egress) = (Collect::default(), Collected::default());
    let functions = plan::functions();
    let ends = (&mut sink as _, &mut egress as _);
    let outcome = run::run_to(&program, &functions, &mut source, ends, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(made.load(Ordering::Relaxed), source.sent, "changes made and changes sent");
    (sink.rows, outcome.ledger, by_outlet(egress.frames))
}

/// The same with a stage that lets everything pass after each pipeline that nobody reads.
pub(crate) fn lengthened(program: &Program) -> Program {
    let mut longer = program.clone();
    for (p, pipeline) in longer.pipelines.iter_mut().enumerate() {
        let read = program.pipelines.iter().any(|q| q.sources().any(|i| i == p));
        let over = matches!(pipeline.stages.last(), Some(Stage::Ends(ends)) if !ends.goes_on());
        if !read && !over {
            pipeline.stages.push(Stage::Where(Expr::constant(Value::Bool(true))));
        }
    }
    longer
}
