//! Registered functions stand for stages that fail.

use crate::functions::Functions;
use crate::ops::testing::{field, project};
use crate::rows::{Output, Rows, Sink};
use crate::run::{Change, Changes, Options, Outcome, RunError, run};
use crate::tests::{Frames, program};
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use weir_packet::craft::Frame;
use weir_packet::source::{Account, FrameBatch, LinkType, Source, SourceError};
use weir_plan::{Expr, ExprKind, Func, Program, Stage, Type, Value};

/// The numbers of rows that came, and whether the sink was closed.
#[derive(Default)]
struct Rest {
    rows: Vec<u64>,
    finished: bool,
}

impl Sink for Rest {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.rows.resize(self.rows.len().max(output + 1), 0);
        self.rows[output] += rows.len as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}

/// Refuses to go on at packet 5000.
fn fails() -> Functions {
    let mut functions = Functions::default();
    functions.scalar("fails", &[Type::Int], Type::Bool, |args| match args {
        [Value::Int(5_000)] => panic!("no more of this"),
        _ => Value::Bool(true),
    });
    functions
}

/// `good` shows all packets; `bad` shows those that the function lets pass.
fn good_and_bad() -> Program {
    let mut good = program(vec![project(&["number"])]);
    let call = ExprKind::Call(Func::User(0), vec![field("number")]);
    let filter = Stage::Where(Expr { kind: call, ty: Type::Bool });
    let mut bad = program(vec![filter, project(&["number"])]);
    good.pipelines[0].name = Some("good".to_owned());
    bad.pipelines[0].name = Some("bad".to_owned());
    good.pipelines.append(&mut bad.pipelines);
    good
}

fn go(program: &Program, workers: usize) -> (Outcome, Rest) {
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).bytes();
    let frames: Vec<_> = (0..50_000).map(|i| (i, frame.clone())).collect();
    let mut source = Frames::new(LinkType::ETHERNET, &frames).cut(&[256]);
    let (mut sink, options) = (Rest::default(), Options { workers, ..Options::default() });
    let source: &mut dyn Source = &mut source;
    let outcome = run(program, &fails(), source, &mut sink, &options, &mut |_| {});
    (outcome, sink)
}

#[test]
fn a_panic_ends_the_run_and_costs_nothing_that_was_put_out() {
    for workers in [1, 2, 4] {
        let (outcome, sink) = go(&good_and_bad(), workers);
        let Some(error @ RunError::Panicked { .. }) = outcome.error else {
            panic!("{:?}", outcome.error)
        };
        let said = error.to_string();
        assert!(said.starts_with("a stage of `bad` failed: no more of this; "), "{said}");
        assert!(sink.finished, "{workers} workers");
        // The rows before it came out: with one worker, of whole batches; with several, of batches
        // that had their turn.
        if workers == 1 {
            assert!(sink.rows.iter().all(|&n| (4_600..=5_000).contains(&n)), "{:?}", sink.rows);
        }
        let ledger = outcome.ledger;
        assert_eq!(ledger.rows, sink.rows.iter().sum::<u64>(), "{workers} workers");
        // With several, others may not have had their batches of those before.
        assert!(workers > 1 || ledger.processed >= 5_000, "{ledger:?}");
        assert!(ledger.adds_up() && ledger.received >= 5_000, "{ledger:?}");
        assert!(workers > 1 || ledger.abandoned == 0, "{ledger:?}");
    }
}

/// Frames, at each tenth batch of which the same program begins anew.
struct Turning {
    frames: Frames,
    batches: usize,
    /// The last batch at which it does.
    last: usize,
    changes: Arc<Changes>,
}

impl Source for Turning {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.batches += 1;
        if self.batches.is_multiple_of(10) && self.batches <= self.last {
            let (program, report) = (good_and_bad(), Box::new(|_| ()));
            let continued = vec![None; program.pipelines.len()];
            self.changes.send(Change { program, continued, report });
        }
        self.frames.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        self.frames.account()
    }
}

/// Packets that were processed, and were malformed, before a change are so after it.
#[test]
fn a_panic_after_a_change_leaves_a_ledger_that_adds_up() {
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).bytes();
    let mut broken = frame.clone();
    // A header of one word.
    broken[14] = 0x41;
    let pick = |i| if i < 3_000 { &broken } else { &frame };
    let frames: Vec<_> = (0..50_000).map(|i| (i, pick(i).clone())).collect();
    for workers in [1, 2, 4] {
        let changes = Arc::<Changes>::default();
        let frames = Frames::new(LinkType::ETHERNET, &frames).cut(&[256]);
        let mut source = Turning { frames, batches: 0, last: 10, changes: Arc::clone(&changes) };
        let options = Options { workers, changes: Some(changes), ..Options::default() };
        let mut sink = Rest::default();
        let source: &mut dyn Source = &mut source;
        let outcome = run(&good_and_bad(), &fails(), source, &mut sink, &options, &mut |_| {});
        assert!(matches!(outcome.error, Some(RunError::Panicked { .. })), "{:?}", outcome.error);
        let ledger = outcome.ledger;
        let malformed = ledger.malformed_total();
        // The packets that came before the change were all processed.
        assert!(malformed >= 2_560 && ledger.processed >= malformed, "{ledger:?}");
        assert!(ledger.adds_up(), "{ledger:?}");
        if workers == 1 {
            assert_eq!((malformed, ledger.whole()), (3_000, ledger.processed - 3_000));
            assert!(ledger.processed >= 5_000, "{ledger:?}");
        }
    }
}

/// An allocator keeps freed memory by thread. Each change started threads, and in time the memory
/// of every thread that there had been was as large as a worker's.
#[test]
fn memory_grew_since_each_change_started_threads() {
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).bytes();
    let frames: Vec<_> = (0..100_000).map(|i| (i, frame.clone())).collect();
    for workers in [1, 2, 4] {
        let changes = Arc::<Changes>::default();
        let frames = Frames::new(LinkType::ETHERNET, &frames).cut(&[256]);
        let last = usize::MAX;
        let mut source = Turning { frames, batches: 0, last, changes: Arc::clone(&changes) };
        let threads = Arc::<Mutex<HashSet<ThreadId>>>::default();
        let seen = Arc::clone(&threads);
        let mut functions = Functions::default();
        functions.scalar("notes", &[Type::Int], Type::Bool, move |_| {
            seen.lock().expect("whole").insert(thread::current().id());
            Value::Bool(true)
        });
        let options = Options { workers, changes: Some(changes), ..Options::default() };
        let (mut sink, source) = (Rest::default(), &mut source as &mut dyn Source);
        let outcome = run(&good_and_bad(), &functions, source, &mut sink, &options, &mut |_| {});
        assert!(outcome.error.is_none() && outcome.ledger.processed == 100_000, "{outcome:?}");
        let threads = threads.lock().expect("whole").len();
        assert!((1..=workers).contains(&threads), "{threads} threads of {workers} workers");
    }
}

/// A pipeline without a name is known by that of its reader.
#[test]
fn who_reads_a_pipeline_gives_it_its_name() {
    let mut program = good_and_bad();
    program.pipelines.remove(0);
    let mut reader = program.pipelines[0].clone();
    program.pipelines[0].name = None;
    program.pipelines[0].printed = false;
    reader.input = weir_plan::Input::Pipeline(0);
    reader.stages = vec![Stage::Limit(1_000_000)];
    program.pipelines.push(reader);
    let (outcome, _) = go(&program, 1);
    let said = outcome.error.expect("it panics").to_string();
    assert!(said.starts_with("a stage of `bad` failed: "), "{said}");
    program.pipelines[1].name = None;
    let said = go(&program, 1).0.error.expect("it panics").to_string();
    assert!(said.starts_with("the run failed: no more of this; "), "{said}");
}
