//! Changes to a run while it goes on: programs come and go, and others miss no packet.

use crate::panics::caught;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_plan::Program;
use weir_plan::change::Continued;

/// Takes the result of a change: the pipelines and stages of the new program that went on with what
/// they held, or why everything stayed as it was.
pub type ReportChange = Box<dyn FnOnce(io::Result<Vec<(usize, usize)>>) + Send>;

/// A change of the program that is to run from now on.
pub struct Change {
    /// The program: [side by side](weir_plan::together::side_by_side), all that run together.
    pub program: Program,
    /// Where each of its pipelines goes on, by the numbers of the program that runs until then.
    pub continued: Vec<Option<Continued>>,
    /// Called with the result of the change. Dropped where the run ends before.
    pub report: ReportChange,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Change");
        out.field("continued", &self.continued).finish_non_exhaustive()
    }
}

/// The program of a change, compiled. Only the run knows its type: what programs are made of knows
/// the options of a run, among which changes are.
pub(crate) type Compiled = Box<dyn Any + Send>;

/// Compiles what a change says, for the program that is at work.
pub(crate) type Compile = Arc<dyn Fn(&Change) -> Compiled + Send + Sync>;

/// Changes on their way to a run, sent from any thread. They are made one after the other, each
/// between two batches of packets. The client that sends a change compiles it, while the run goes
/// on.
///
/// A run that may change does not end because nothing more can come of its program. The state of
/// its stages goes on where [`Change::continued`] says so; all other state comes out as at the end
/// of the input. Before that, [`Egress::prepare`](weir_packet::egress::Egress::prepare) may refuse
/// the change; after it, the egress and the sink are opened again, with the outlets and outputs
/// from then on.
#[derive(Debug, Default)]
pub struct Changes {
    waiting: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Changes, what was compiled of them, and by what.
    changes: VecDeque<(Change, Option<(Compiled, Compile)>)>,
    /// Set by the run whenever its program has changed.
    compile: Option<Compile>,
    closed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("changes", &self.changes.len()).finish_non_exhaustive()
    }
}

impl Changes {
    /// Sends one. After the end of the run it is dropped.
    pub fn send(&self, change: Change) {
        let compile = self.queue.lock().compile.clone();
        // A fault of this is one of the run, which compiles the change itself then.
        let compile = compile.and_then(|by| caught(|| ((*by)(&change), by)).ok());
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.changes.push_back((change, compile));
            self.waiting.store(true, Ordering::Release);
        }
    }

    /// From now on compiles changes so.
    pub(crate) fn compile_by(&self, compile: Compile) {
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.compile = Some(compile);
        }
    }

    /// The run has ended: nothing changes any more.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        self.waiting.store(false, Ordering::Release);
        let dropped = (std::mem::take(&mut queue.changes), queue.compile.take());
        drop(queue);
        drop(dropped);
    }

    /// Whether there are any. Looked at for every batch.
    pub(crate) fn are_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// The next one, compiled unless another change came between.
    pub(crate) fn take(&self) -> Option<(Change, Option<Compiled>)> {
        let mut queue = self.queue.lock();
        let change = queue.changes.pop_front();
        self.waiting.store(!queue.changes.is_empty(), Ordering::Release);
        let (change, compiled) = change?;
        let now = queue.compile.as_ref();
        let compiled = compiled.filter(|(_, by)| now.is_some_and(|now| Arc::ptr_eq(now, by)));
        Some((change, compiled.map(|(program, _)| program)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, summarize};
    use crate::rows::Collect;
    use crate::run::{Options, run_to};
    use crate::tests::{Frames, program};
    use std::slice::from_ref;
    use weir_packet::egress::{Egress, Outlet, Sent};
    use weir_packet::source::{Account, FrameBatch, Source, SourceError};
    use weir_plan::change::continued;
    use weir_plan::ends::{Act, Arm, Ends, To};
    use weir_plan::together::side_by_side;
    use weir_plan::{AggFunc, Order, SortKey, Stage, Value, Window};

    /// The result of a change.
    type Answer = io::Result<Vec<(usize, usize)>>;

    type Answers = Arc<Mutex<Vec<Answer>>>;

    /// Sends changes before batches of these numbers.
    struct Sender {
        frames: Frames,
        batches: usize,
        plan: Vec<(usize, Vec<(String, Program)>)>,
        now: Vec<(String, Program)>,
        changes: Arc<Changes>,
        answers: Answers,
    }

    impl Source for Sender {
        fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
            if let Some((_, next)) = self.plan.pop_if(|(at, _)| *at == self.batches + 1) {
                let answers = Arc::clone(&self.answers);
                self.changes.send(Change {
                    program: side_by_side(next.clone()).expect("few pipelines"),
                    continued: continued(&self.now, &next),
                    report: Box::new(move |result| answers.lock().push(result)),
                });
                self.now = next;
            }
            self.batches += 1;
            self.frames.fill(batch)
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn account(&self) -> Account {
            self.frames.account()
        }
    }

    /// Refuses an outlet of this name.
    struct Picky(&'static str);

    impl Egress for Picky {
        fn open(&mut self, _: &[Outlet]) -> io::Result<()> {
            Ok(())
        }

        fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
            let refused = outlets.contains(&Outlet::Named(self.0.to_owned()));
            if refused { Err(io::Error::other("not this one")) } else { Ok(()) }
        }

        fn send(&mut self, _: &[u8], _: &[Sent]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn named(all: &[(&str, Vec<Stage>)]) -> Vec<(String, Program)> {
        let one =
            |(name, stages): &(&str, Vec<Stage>)| ((*name).to_owned(), program(stages.clone()));
        all.iter().map(one).collect()
    }

    fn count() -> Stage {
        summarize(&[], vec![agg(AggFunc::Count, None)], Window::All)
    }

    /// Rows of each output, and answers, of a run over 41 packets in batches of one. The programs
    /// of a step run from before the packet of its number on.
    fn rows(
        workers: usize,
        steps: &[(usize, Vec<(String, Program)>)],
    ) -> (Vec<(usize, Vec<Value>)>, Vec<Answer>) {
        let changes = Arc::new(Changes::default());
        let answers = Answers::default();
        let ((_, first), rest) = steps.split_first().expect("something to run");
        let mut source = Sender {
            frames: Frames::sample().cut(&[1]),
            batches: 0,
            plan: rest.iter().rev().cloned().collect(),
            now: first.clone(),
            changes: Arc::clone(&changes),
            answers: Arc::clone(&answers),
        };
        let options = Options { workers, changes: Some(changes), ..Options::default() };
        let program = side_by_side(first.clone()).expect("few pipelines");
        let (mut sink, mut egress) = (Collect::default(), Picky("eth9"));
        let ends = (&mut sink as _, &mut egress as _);
        let functions = Functions::default();
        let outcome = run_to(&program, &functions, &mut source, ends, &options, &mut |_| {});
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!((outcome.ledger.received, outcome.ledger.processed), (41, 41));
        let answers = std::mem::take(&mut *answers.lock());
        (sink.rows, answers)
    }

    fn kept(answers: &[Answer]) -> Vec<Vec<(usize, usize)>> {
        answers.iter().map(|a| a.as_ref().expect("changed").clone()).collect()
    }

    /// The run compiled what changes, and read no packet meanwhile.
    #[test]
    fn who_sends_a_change_compiles_it() {
        let changes = Changes::default();
        let send = || {
            let report: ReportChange = Box::new(|_| ());
            changes.send(Change { program: program(vec![count()]), continued: vec![None], report });
        };
        let taken =
            || changes.take().expect("a change").1.map(|compiled| compiled.downcast::<u8>());
        let by = |number: u8| {
            changes.compile_by(Arc::new(move |_: &Change| Box::new(number) as Compiled));
        };
        send();
        assert!(taken().is_none(), "no program is at work");
        by(1);
        send();
        assert!(changes.are_waiting());
        assert_eq!(*taken().expect("compiled").expect("a number"), 1);
        // The second is of a program that is not at work any more once the first is made.
        send();
        send();
        assert_eq!(*taken().expect("compiled").expect("a number"), 1);
        by(2);
        assert!(taken().is_none());
        changes.close();
        send();
        assert!(changes.take().is_none());
    }

    #[test]
    fn what_goes_puts_out_what_it_has() {
        for workers in [1, 3] {
            let (a, b) = (("a", vec![count()]), ("b", vec![count()]));
            let steps = [
                (0, named(from_ref(&a))),
                (5, named(&[a.clone(), b.clone()])),
                (15, named(from_ref(&a))),
                (20, named(&[])),
                (30, named(&[b])),
            ];
            let (rows, answers) = rows(workers, &steps);
            let n = |n| vec![Value::Int(n)];
            assert_eq!(rows, [(1, n(10)), (0, n(20)), (0, n(11))], "{workers} workers");
            let first = vec![(0, 0)];
            assert_eq!(kept(&answers), [first.clone(), first, vec![], vec![]]);
        }
    }

    #[test]
    fn stages_after_one_that_changed_begin_anew() {
        let top = |n| Stage::Top {
            n,
            by: vec![SortKey {
                expr: weir_plan::Expr::column(1, weir_plan::Type::Int),
                order: Order::Descending,
            }],
            windowed: false,
            per: None,
        };
        let by = |key| summarize(&[key], vec![agg(AggFunc::Count, None)], Window::All);
        for workers in [1, 2] {
            let steps = [
                (0, named(&[("a", vec![by("ip.src"), top(5)])])),
                (10, named(&[("a", vec![by("ip.src"), top(1)])])),
                (20, named(&[("a", vec![by("sport"), top(1)])])),
            ];
            let (rows, answers) = rows(workers, &steps);
            // Two of three come from there.
            let host = |n| Value::Ip(std::net::Ipv4Addr::new(10, 0, 0, n).to_ipv6_mapped().into());
            let expected =
                [(0, vec![host(1), Value::Int(14)]), (0, vec![Value::Int(40_000), Value::Int(13)])];
            assert_eq!(rows, expected, "{workers} workers");
            assert_eq!(kept(&answers), [vec![(0, 0)], vec![]]);
        }
    }

    #[test]
    fn an_outlet_that_cannot_be_opened_changes_nothing() {
        let to = |name: &str| {
            let act = Act { edits: Vec::new(), to: To::Forward(name.to_owned()) };
            let arm = Arm { when: None, acts: vec![act], next: false };
            vec![Stage::Ends(Ends { arms: vec![arm] })]
        };
        let limited = |n| ("a", vec![Stage::Where(field("tcp")), Stage::Limit(n), count()]);
        let steps = [
            (0, named(&[limited(8)])),
            (3, named(&[limited(8), ("b", to("eth9"))])),
            (6, named(&[limited(8), ("b", to("eth8"))])),
        ];
        let (rows, answers) = rows(1, &steps);
        assert_eq!(rows, [(0, vec![Value::Int(8)])]);
        let told = answers[0].as_ref().expect_err("refused").to_string();
        assert_eq!(told, "not this one");
        assert_eq!(*answers[1].as_ref().expect("changed"), [(0, 1), (0, 2)]);
    }

    /// Can be opened once.
    #[derive(Default)]
    struct Once(Collect, bool);

    impl crate::rows::Sink for Once {
        fn open(&mut self, outputs: &[crate::rows::Output]) -> io::Result<()> {
            if std::mem::replace(&mut self.1, true) {
                return Err(io::Error::other("once is enough"));
            }
            self.0.open(outputs)
        }

        fn rows(&mut self, output: usize, rows: &crate::rows::Rows) -> io::Result<()> {
            assert!(output < self.0.outputs.len(), "an output that was never opened");
            self.0.rows(output, rows)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_cannot_be_opened_again_gets_nothing_more() {
        let changes = Arc::new(Changes::default());
        let first = named(&[("a", vec![count()])]);
        let both = named(&[("b", vec![count()]), ("c", vec![count()]), ("a", vec![count()])]);
        let mut source = Sender {
            frames: Frames::sample().cut(&[1]),
            batches: 0,
            plan: vec![(9, both)],
            now: first.clone(),
            changes: Arc::clone(&changes),
            answers: Answers::default(),
        };
        let options = Options { changes: Some(changes), ..Options::default() };
        let program = side_by_side(first).expect("few pipelines");
        let (mut sink, mut egress) = (Once::default(), Picky("eth9"));
        let ends = (&mut sink as _, &mut egress as _);
        let functions = Functions::default();
        let outcome = run_to(&program, &functions, &mut source, ends, &options, &mut |_| {});
        assert_eq!(outcome.error.expect("it ends").to_string(), "writing rows: once is enough");
        assert!(sink.0.rows.is_empty() && outcome.ledger.adds_up(), "{:?}", sink.0.rows);
    }
}
