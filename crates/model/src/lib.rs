//! The executable specification: runs any program over packets in the most obvious way.
//!
//! One packet at a time, one row at a time, over `Vec`s and `BTreeMap`s of [`Value`]s; nothing here
//! knows the engine's batches, tables or threads. The answer of this module *is* the meaning of a
//! program; the engine must give the same rows in the same order and the same counts, for any
//! number of workers and any cut into batches.
//!
//! # Time
//!
//! - The clock follows the largest timestamp it believes. The watermark is that time minus the
//!   lateness; before the clock starts it is `i64::MIN`. All sums saturate.
//! - Start: packets are only remembered until two of them are at most the jump apart, or until
//!   there are four. Then the clock starts at the smallest of their times, and all of them are
//!   observed in the order they came.
//! - A packet more than the jump ahead of the clock is not believed by itself. With the fourth of
//!   four such packets directly after one another the clock moves to the smallest of the four. Any
//!   other packet ends such a run, and those in it are counted as wild.
//! - Where a source says what time it has reached, as one of a wire does, the watermark is not
//!   below that from then on, nor is the clock; a clock that has not started starts there, and the
//!   packets that were only remembered are then observed.
//! - Times of flow records move no clock: only what the source has reached does.
//! - A row is late for the window `[start, end)` if `end` is at or below the watermark after its
//!   packet was observed, less the `lateness` of the `summarize`. A late row is counted by each
//!   `summarize` that drops it, and nothing of it is evaluated there. Where windows slide, a row is
//!   judged once, as if its pane were its window.
//!
//! # Losses
//!
//! A frame that came counts for the pane that its time lies in, unless it is late for it. A gap
//! that the source told begins at the time that it said, or at the watermark before the batch that
//! told it, if that is later; and no gap begins or ends before those told earlier did. It counts
//! for every window that a time of it lies in, with all its frames. One that is open ends where the
//! next says that is not, which may be of no frames, or at the watermark then, if that is later.
//!
//! # Order
//!
//! A packet makes two steps: the watermark it moves, then its row. In each step, pipelines go in
//! program order, and within a pipeline stages in order; each stage takes all rows of the step, and
//! then the watermark. So windows that a packet closes come out before the packet goes in. At the
//! end of input one last step closes everything. A row of `join left` or `join anti` that has met
//! none by then is left out if its interval goes on after the time that the clock has come to: it
//! is counted as undecided.
//!
//! A `join` and a `union` take the rows and the watermark of several pipelines of the step; what
//! they make of them is said in [`weir_plan::join`].
//!
//! Downstream of windows the watermark is the start of the first window that may still come out: of
//! windows of length D, one after the other, it is rounded down to a multiple of D. Sessions come
//! out when the watermark passes a tick; downstream of them it is the last tick less the gap.
//! Downstream of an `alert` it is the last tick that has passed.
//! Downstream of a stage that holds its rows to the end of input (`summarize` without a window,
//! `top` of the whole input) there is no watermark until the end.
//!
//! # The end
//!
//! A run ends early, with the batch that the source handed out last, where each pipeline that
//! prints or hands out packets ends in a `limit` that has let its rows pass. All packets of that
//! batch count.
//!
//! # Bounds
//!
//! Only those that a program states are kept, of all rows together. A full `scan` or `distinct`
//! gives up the key whose latest row has the earliest time, judged as its idle time is, and of
//! several the one whose row came first; a key that is idle already does not count as evicted.
//!
//! # What it shares with the engine
//!
//! No arithmetic: each aggregate, hash and cipher is stated here once more, in the plainest way.
//! The shared parts are compared by other means, or are no computation:
//!
//! - the readers of fields of `packet`, which tests compare with tshark, and its
//!   [rewriting](weir_packet::rewrite) of addresses, tested against frames that are made with the
//!   other names;
//! - what `plan` says a stage means: when sessions end and joins are due, the hashes of `sample`
//!   and `steer` that are part of the language, special-purpose addresses. Tests there compare
//!   these with published values;
//! - [registered functions](weir_plan::registered), named limits, and the types of results.

mod aggregate;
mod alert;
mod call;
mod clock;
mod community;
mod context;
mod crypto_pan;
mod decode;
mod done;
pub mod egress;
mod ends;
mod eval;
mod frames;
mod hello;
mod join;
mod losses;
mod paper;
mod quantile;
mod row;
mod rows;
mod scan;
mod session;
pub mod short;
mod sketch;
mod spread;
mod steps;
mod summarize;
mod tcp;
mod top;
mod transport;
mod value;
mod zones;

pub use clock::TimeRules;
pub use frames::{Frames, HASH_SECRETS, program, schema_after};

use crate::egress::Frame;
use clock::PlainClock;
use decode::Decoder;
use eval::Eval;
use row::Mark;
use steps::ModelSteps;
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};
use weir_plan::counters::{BehindClock, Ledger, Shares};
use weir_plan::flow::StageFlows;
use weir_plan::registered::Functions;
use weir_plan::{Agg, Program, Suppression, Value};

/// The results of a run.
#[derive(Debug)]
pub struct Answer {
    /// Output number (printed pipelines, counted in program order) and cells of each row.
    pub rows: Vec<(usize, Vec<Value>)>,
    /// The frames that were handed out, in order.
    pub frames: Vec<Frame>,
    /// The counts.
    pub ledger: Ledger,
    /// Why the source ended early, if it did. Everything before that was processed.
    pub error: Option<SourceError>,
}

/// The result of an aggregate over the values of a group.
pub fn aggregate(agg: &Agg, functions: &Functions, values: &[Value]) -> Value {
    Eval::new(functions).aggregate(agg, values)
}

/// Runs `program` over `source`, to its end or to the end of the batch with which a `limit` ends
/// the run.
pub fn run(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    time: &TimeRules,
) -> Answer {
    run_until((program, &[]), functions, source, time, |steps| steps.is_done())
}

/// Runs `program` over everything in `source`, as a run does whose programs may change.
pub fn run_whole(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    time: &TimeRules,
) -> Answer {
    run_until((program, &[]), functions, source, time, |_| false)
}

/// Runs `program` over everything in `source`; alerts that these entries name are not reported.
pub fn run_suppressing(
    (program, suppressions): (&Program, &[Suppression]),
    functions: &Functions,
    source: &mut dyn Source,
    time: &TimeRules,
) -> Answer {
    run_until((program, suppressions), functions, source, time, |steps| steps.is_done())
}

fn run_until(
    (program, suppressions): (&Program, &[Suppression]),
    functions: &Functions,
    source: &mut dyn Source,
    time: &TimeRules,
    is_done: fn(&ModelSteps<'_>) -> bool,
) -> Answer {
    let mut clock = PlainClock::new(*time);
    let mut decoder = Decoder::new(program);
    let mut steps = ModelSteps::new(program, functions);
    steps.context.suppressions = suppressions.to_vec();
    let (mut batch, mut processed, mut overlong) = (FrameBatch::new(), 0, 0);
    let error = loop {
        if is_done(&steps) {
            break None;
        }
        match source.fill(&mut batch) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(e) => break Some(e),
        }
        steps.context.losses.lost(batch.gap(), clock.watermark());
        overlong += batch.doubt_lengths();
        for i in 0..batch.len() {
            let watermark = match batch.link {
                LinkType::FLOW_RECORDS => clock.watermark(),
                _ => clock.observe(batch.ts()[i]),
            };
            steps.context.losses.came(batch.ts()[i], watermark);
            let watermark = Mark::At(watermark);
            steps.step(None, watermark);
            steps.step(Some(decoder.row(&batch, i)), watermark);
            processed += 1;
        }
        if let Some(ts) = batch.reached() {
            steps.step(None, Mark::At(clock.reach(ts)));
        }
    };
    steps.ended_at = clock.stands_at();
    steps.step(None, Mark::End);
    clock.end();
    let ledger = ledger((processed, overlong), source, &clock, &decoder, &steps);
    Answer { rows: steps.out, frames: steps.outgoing.frames, ledger, error }
}

/// The counts at the end.
fn ledger(
    (processed, overlong): (u64, u64),
    source: &dyn Source,
    clock: &PlainClock,
    decoder: &Decoder,
    steps: &ModelSteps<'_>,
) -> Ledger {
    let account = source.account();
    Ledger {
        received: account.received,
        filtered: account.filtered,
        kernel: account.kernel,
        lost: account.lost,
        processed,
        abandoned: 0,
        cut: decoder.layers.cut,
        malformed: decoder.layers.malformed,
        wild: clock.wild,
        untimed: clock.untimed,
        overlong,
        late: steps.context.late,
        lagging: steps.context.lagging,
        disordered: clock.disordered,
        evicted: steps.context.evicted,
        undefined: steps.context.eval.undefined,
        unfilled: steps.context.unfilled,
        undecided: steps.context.undecided,
        copies: steps.context.copies,
        unfinished: steps.context.unfinished,
        unread: decoder.unread.so_far(),
        suppressed: steps.context.suppressed,
        rows: steps.out.len() as u64,
        refused: 0,
        unwritten: 0,
        ends: steps.outgoing.ends.clone(),
        behind: BehindClock::default(),
        shares: Shares::default(),
        flows: StageFlows::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_packet::fields::by_name;
    use weir_packet::source::{Account, Chunk};
    use weir_plan::stage::ScanState;
    use weir_plan::{Agg, AggFunc, BinaryOp, Expr, ExprKind, Input, Order, Pipeline, Scan, Schema};
    use weir_plan::{SortKey, Stage, Summarize, Type, Window};

    /// Packets of given time and length, their bytes all zero. One batch.
    struct Packets(Vec<(i64, u32)>);

    impl Source for Packets {
        fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
            let chunk: Chunk = Arc::new(vec![0; 2000]);
            batch.restart(&chunk, 0, LinkType::ETHERNET);
            for (i, (ts, len)) in self.0.drain(..).enumerate() {
                batch.push(ts, i as u64, 0, len, len);
            }
            Ok(!batch.is_empty())
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn account(&self) -> Account {
            Account::default()
        }
    }

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn int(n: i64) -> Expr {
        Expr::constant(Value::Int(n))
    }

    fn column(i: usize) -> Expr {
        Expr::column(i, Type::Int)
    }

    fn binary(op: BinaryOp, ty: Type, a: Expr, b: Expr) -> Expr {
        Expr { ty, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
    }

    fn count() -> Agg {
        Agg { name: "n".into(), func: AggFunc::Count, arg: None, cond: None, ty: Type::Int }
    }

    fn sum(arg: Expr) -> Agg {
        Agg { name: "sum".into(), func: AggFunc::Sum, arg: Some(arg), ..count() }
    }

    fn summarize(aggs: Vec<Agg>, keys: Vec<Expr>, window: Window) -> Stage {
        let keys = keys.into_iter().map(|k| ("key".into(), k)).collect();
        let (lateness_ns, fill, until, max_groups) = (0, None, None, 100);
        Stage::Summarize(Summarize {
            keys,
            aggs,
            window,
            lateness_ns,
            fill,
            until,
            unless: None,
            zone: None,
            max_groups,
        })
    }

    fn project(e: Expr) -> Stage {
        Stage::Project { columns: vec![("x".into(), e)] }
    }

    fn pipeline(input: Input, stages: Vec<Stage>) -> Pipeline {
        // The model does not look at schemas.
        Pipeline { name: None, input, stages, schema: Schema::default(), printed: true }
    }

    /// Rows as `output: cells`, in order. Lateness 0, jump 1000.
    fn rows(pipelines: Vec<Pipeline>, packets: &[(i64, u32)]) -> (Vec<String>, Ledger) {
        let time = TimeRules { lateness_ns: 0, jump_ns: 1000 };
        let mut source = Packets(packets.to_vec());
        let program = Program::of(pipelines);
        let answer = run(&program, &Functions::default(), &mut source, &time);
        let text = |v: &Value| match v {
            Value::Time(ns) => format!("@{ns}"),
            v => v.to_string(),
        };
        let row = |(output, cells): &(usize, Vec<Value>)| {
            format!("{output}: {}", cells.iter().map(text).collect::<Vec<_>>().join(" "))
        };
        (answer.rows.iter().map(row).collect(), answer.ledger)
    }

    fn check(stages: Vec<Stage>, packets: &[(i64, u32)], expected: &[&str]) -> Ledger {
        let (got, ledger) = rows(vec![pipeline(Input::Packets, stages)], packets);
        assert_eq!(got, expected);
        ledger
    }

    #[test]
    fn windows_close_before_the_packet_that_closes_them_goes_in() {
        let per_window =
            summarize(vec![count(), sum(field("len"))], vec![field("len")], Window::Tumbling(10));
        let pipelines = vec![
            pipeline(Input::Packets, vec![per_window]),
            pipeline(Input::Packets, vec![project(field("number"))]),
        ];
        let packets = [(1, 70), (2, 60), (3, 70), (4, 60), (12, 60), (13, 60)];
        let (got, _) = rows(pipelines, &packets);
        let expected = [
            "1: 1",
            "1: 2",
            "1: 3",
            "1: 4",
            "0: @0 60 2 120",
            "0: @0 70 2 140",
            "1: 5",
            "1: 6",
            "0: @10 60 2 120",
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn late_rows_are_counted_and_dropped() {
        let packets = [(1, 60), (2, 60), (3, 60), (4, 60), (12, 60), (9, 60), (10, 60)];
        let stage = summarize(vec![count()], vec![], Window::Tumbling(10));
        let ledger = check(vec![stage], &packets, &["0: @0 4", "0: @10 2"]);
        assert_eq!((ledger.late, ledger.processed, ledger.rows), (1, 7, 2));
    }

    #[test]
    fn the_second_packet_can_be_late() {
        let packets = [(90, 60), (1, 60), (2, 60)];
        let stage = summarize(vec![count()], vec![], Window::Tumbling(10));
        assert_eq!(check(vec![stage], &packets, &["0: @90 1"]).late, 2);
    }

    #[test]
    fn a_wild_first_packet_makes_no_other_late() {
        let packets = [(9000, 60), (1, 60), (2, 60)];
        let stage = summarize(vec![count()], vec![], Window::Tumbling(10));
        let ledger = check(vec![stage], &packets, &["0: @0 2", "0: @9000 1"]);
        assert_eq!((ledger.late, ledger.wild), (0, 1));
    }

    #[test]
    fn without_rows_only_the_one_group_of_everything_is_there() {
        let aggs = || vec![count(), sum(field("len"))];
        check(vec![summarize(aggs(), vec![], Window::All)], &[], &["0: 0 absent"]);
        check(vec![summarize(aggs(), vec![field("len")], Window::All)], &[], &[]);
        check(vec![summarize(aggs(), vec![], Window::Tumbling(10))], &[], &[]);
    }

    #[test]
    fn an_absent_key_part_is_a_group_and_comes_first() {
        // Shorter frames have no Ethernet header.
        let stages = vec![summarize(vec![count()], vec![field("eth.src")], Window::All)];
        let packets = [(1, 60), (2, 4), (3, 60)];
        check(stages, &packets, &["0: absent 1", "0: 00:00:00:00:00:00 2"]);
    }

    #[test]
    fn groups_beyond_the_limit_are_evicted() {
        let stage = Stage::Summarize(Summarize {
            keys: vec![("key".into(), field("len"))],
            aggs: vec![count()],
            window: Window::All,
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            zone: None,
            max_groups: 1,
        });
        let ledger = check(vec![stage], &[(1, 60), (2, 70), (3, 60)], &["0: 60 2"]);
        assert_eq!(ledger.evicted, 1);
    }

    #[test]
    fn a_late_row_does_not_bring_an_expired_key_back() {
        let state = Expr { ty: Type::Int, kind: ExprKind::State(0) };
        let update = binary(BinaryOp::Add, Type::Int, state, int(1));
        let states = vec![ScanState { name: "n".into(), output: 0, init: int(0), update }];
        let scan = Scan { states, keys: vec![field("len")], idle_ns: 10, max_keys: 100 };
        let packets = [(1, 60), (1, 70), (1, 70), (1, 70), (30, 70), (2, 60)];
        let expected = ["0: 1", "0: 1", "0: 2", "0: 3", "0: 1", "0: 1"];
        check(vec![Stage::Scan(scan)], &packets, &expected);
    }

    #[test]
    fn scans_see_the_states_before_the_row_and_forget_when_idle() {
        let state = |i| Expr { ty: Type::Int, kind: ExprKind::State(i) };
        let add = |a, b| binary(BinaryOp::Add, Type::Int, a, b);
        let scan = Scan {
            states: vec![
                ScanState {
                    name: "n".into(),
                    output: 0,
                    init: int(0),
                    update: add(state(0), int(1)),
                },
                ScanState { name: "before".into(), output: 1, init: int(-1), update: state(0) },
            ],
            keys: vec![field("len")],
            idle_ns: 10,
            max_keys: 100,
        };
        // The third packet of 60 bytes is older than the second, so the fourth comes 9 later; the
        // fifth comes 10 later.
        let packets = [(1, 60), (1, 70), (8, 60), (5, 60), (17, 60), (27, 60)];
        let expected = ["0: 1 0", "0: 1 0", "0: 2 1", "0: 3 2", "0: 4 3", "0: 1 0"];
        check(vec![Stage::Scan(scan)], &packets, &expected);
    }

    #[test]
    fn a_full_scan_evicts_the_key_that_had_no_row_for_longest() {
        let state = Expr { ty: Type::Int, kind: ExprKind::State(0) };
        let update = binary(BinaryOp::Add, Type::Int, state, int(1));
        let states = vec![ScanState { name: "n".into(), output: 0, init: int(0), update }];
        let scan = Scan { states, keys: vec![field("len")], idle_ns: 100, max_keys: 2 };
        let packets = [(1, 60), (2, 70), (3, 60), (4, 80), (5, 60), (6, 70)];
        let expected = ["0: 1", "0: 1", "0: 2", "0: 1", "0: 3", "0: 1"];
        assert_eq!(check(vec![Stage::Scan(scan)], &packets, &expected).evicted, 2);
    }

    #[test]
    fn top_keeps_the_order_of_ties_and_puts_absent_last() {
        let extend = Stage::Extend {
            columns: vec![
                ("number".into(), 0, field("number")),
                ("rest".into(), 1, binary(BinaryOp::Div, Type::Int, int(240), field("len"))),
            ],
        };
        let top = |n, order| Stage::Top {
            n,
            by: vec![SortKey { expr: column(1), order }],
            windowed: false,
            per: None,
        };
        let packets = [(1, 60), (2, 0), (3, 80), (4, 60)];
        let all = ["0: 1 4", "0: 4 4", "0: 3 3", "0: 2 absent"];
        let ledger = check(vec![extend.clone(), top(9, Order::Descending)], &packets, &all);
        assert_eq!(ledger.undefined, 1);
        let least = ["0: 3 3", "0: 1 4", "0: 4 4", "0: 2 absent"];
        check(vec![extend.clone(), top(9, Order::Ascending)], &packets, &least);
        check(vec![extend, top(1, Order::Descending)], &packets, &all[..1]);
    }

    #[test]
    fn top_of_windows_sorts_each_when_it_closes() {
        let stages = vec![
            summarize(vec![count()], vec![field("len")], Window::Tumbling(10)),
            Stage::Top {
                n: 1,
                by: vec![SortKey { expr: column(2), order: Order::Descending }],
                windowed: true,
                per: None,
            },
        ];
        let pipelines = vec![
            pipeline(Input::Packets, stages),
            pipeline(Input::Packets, vec![project(field("number"))]),
        ];
        let packets = [(1, 60), (2, 70), (3, 70), (4, 80), (12, 60)];
        let (got, _) = rows(pipelines, &packets);
        assert_eq!(got, ["1: 1", "1: 2", "1: 3", "1: 4", "0: @0 70 2", "1: 5", "0: @10 60 1"]);
    }

    #[test]
    fn limit_counts_over_the_whole_run() {
        let stages = vec![project(field("number")), Stage::Limit(2)];
        check(stages, &[(1, 60), (2, 60), (3, 60)], &["0: 1", "0: 2"]);
    }

    #[test]
    fn derived_windows_close_when_no_row_for_them_can_come() {
        let pipelines = vec![
            pipeline(Input::Packets, vec![summarize(vec![count()], vec![], Window::Tumbling(10))]),
            pipeline(
                Input::Pipeline(0),
                vec![summarize(vec![sum(column(1))], vec![], Window::Tumbling(20))],
            ),
            pipeline(Input::Packets, vec![project(field("number"))]),
        ];
        // At 29 the windows at 0 and 10 are closed, and with them the one of 20 that holds both.
        let packets = [(1, 60), (2, 60), (3, 60), (4, 60), (15, 60), (29, 60)];
        let (got, ledger) = rows(pipelines, &packets);
        let expected = [
            "2: 1", "2: 2", "2: 3", "2: 4", "0: @0 4", "2: 5", "0: @10 1", "1: @0 5", "2: 6",
            "0: @20 1", "1: @20 1",
        ];
        assert_eq!((got, ledger.late), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn rows_held_to_the_end_are_not_late_downstream() {
        let top = Stage::Top {
            n: 5,
            by: vec![SortKey { expr: field("len"), order: Order::Descending }],
            windowed: false,
            per: None,
        };
        let stages = vec![top, summarize(vec![count()], vec![], Window::Tumbling(10))];
        let packets = [(1, 60), (2, 70), (3, 60), (4, 60), (25, 60)];
        assert_eq!(check(stages, &packets, &["0: @0 4", "0: @20 1"]).late, 0);
    }
}
