use super::*;
use crate::expr::{Ctx, Regs, Src};
use crate::functions::Functions;
use crate::node::testing::groups_of_last;
use crate::ops::testing::{agg, compare, field, int, summarize};
use crate::peers::{BuildContext, Peers};
use crate::rows::Collect;
use crate::run::{Options, run};
use crate::table::HashKey;
use crate::tests::schema_after;
use crate::tests::{Frames, check, check_stages, program};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_model::TimeRules;
use weir_packet::column::Repr;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::{AggFunc, BinaryOp, Expr, Program, Schema, Stage, Summarize, Type, Window};

const MS: i64 = 1_000_000;

const GAP: Session = Session { gap_ns: 250 * MS, active_ns: None, rows: None, linger_ns: None };

/// Sessions of a key, with their rows and why they ended.
fn sessions(keys: &[&str], session: Session) -> Summarize {
    let aggs = vec![agg(AggFunc::Count, None), agg(AggFunc::EndReason, None)];
    match summarize(keys, aggs, Window::Session(session)) {
        Stage::Summarize(s) => s,
        _ => unreachable!(),
    }
}

/// Length, which is the key, and seconds of packets; first and last columns are left to the checks.
fn packets(packets: &[(usize, f64)]) -> Frames {
    let frame = |&(len, at): &(usize, f64)| ((at * 1e9) as i64, vec![0; len]);
    Frames::new(LinkType::ETHERNET, &packets.iter().map(frame).collect::<Vec<_>>())
}

/// Start in seconds, then the other columns; by all workers and cuts.
fn shown(stages: Vec<Stage>, frames: &Frames) -> Vec<String> {
    let rows = check(&program(stages), &Functions::default(), frames);
    let cell = |v: &weir_plan::Value| match v {
        weir_plan::Value::Time(ns) => (*ns as f64 / 1e9).to_string(),
        v => v.to_string(),
    };
    rows.iter().map(|(_, cells)| cells.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_gap_ends_a_session() {
    // Answers come every 300 ms, all others within 200 ms. The watermark comes to 3 s.
    let rows = check_stages(vec![Stage::Summarize(sessions(&["dport"], GAP))]);
    assert_eq!(rows.len(), 15);
    assert_eq!(rows[0], "1970-01-01T00:00:00.200Z 40000 1 1");
    assert_eq!(
        rows[9..],
        [
            "1970-01-01T00:00:02.900Z 40000 1 1",
            "1970-01-01T00:00:03.200Z 40000 1 1",
            "1970-01-01T00:00:03.500Z 40000 1 1",
            "1970-01-01T00:00:00Z 80 27 4",
            "1970-01-01T00:00:03.800Z 40000 1 4",
            "1970-01-01T00:00:04Z absent 1 4",
        ]
    );
}

#[test]
fn sessions_come_out_at_ticks_with_those_that_ended_together_by_start() {
    let frames = packets(&[
        (60, 0.0),
        (70, 0.1),
        (60, 0.2),
        (80, 0.3),
        (70, 5.0),
        (60, 10.0),
        (60, 14.9),
        (60, 19.9),
    ]);
    let session = Session { gap_ns: 5_000 * MS, active_ns: None, rows: None, linger_ns: None };
    let rows = shown(vec![Stage::Summarize(sessions(&["len"], session))], &frames);
    // The second packet of 70 bytes comes 4.9 s after the first, the last of 60 comes 5 s after.
    let expected = ["0 60 2 1", "0.3 80 1 1", "0.1 70 2 1", "10 60 2 1", "19.9 60 1 4"];
    assert_eq!(rows, expected);
}

#[test]
fn an_active_timeout_cuts_what_goes_on() {
    let frames = packets(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|at| (60, at)));
    let session =
        Session { gap_ns: 2_000 * MS, active_ns: Some(3_000 * MS), rows: None, linger_ns: None };
    let rows = shown(vec![Stage::Summarize(sessions(&["len"], session))], &frames);
    assert_eq!(rows, ["0 60 3 2", "3 60 3 2", "6 60 2 4"]);
}

#[test]
fn until_ends_a_session_with_its_row() {
    let frames = packets(&[0.0, 0.1, 0.2, 0.2, 0.3, 0.4, 9.0].map(|at| (60, at)));
    let mut s = sessions(&["len"], GAP);
    s.until = Some(compare(BinaryOp::Eq, field("number"), int(3)));
    let rows = shown(vec![Stage::Summarize(s)], &frames);
    assert_eq!(rows, ["0 60 3 3", "0.2 60 3 1", "9 60 1 4"]);
}

#[test]
fn so_many_rows_are_a_window() {
    let frames = packets(&[
        (60, 0.0),
        (60, 0.1),
        (70, 0.2),
        (60, 0.3),
        (60, 0.4),
        (60, 0.5),
        (60, 0.6),
        (70, 3.0),
    ]);
    let session = Session { gap_ns: 60_000 * MS, active_ns: None, rows: Some(3), linger_ns: None };
    let rows = shown(vec![Stage::Summarize(sessions(&["len"], session))], &frames);
    assert_eq!(rows, ["0 60 3 3", "0.4 60 3 3", "0.2 70 2 4"]);
    let each = Session { rows: Some(1), ..session };
    let rows = shown(vec![Stage::Summarize(sessions(&[], each))], &frames);
    assert_eq!(rows.len(), 8);
}

#[test]
fn a_late_row_joins_and_is_not_lost() {
    let frames = packets(&[
        (60, 10.0),
        (60, 10.0),
        (60, 10.0),
        (60, 10.0),
        (60, 20.0),
        (60, 12.0),
        (70, 13.0),
        (60, 20.5),
    ]);
    let session = Session { gap_ns: 2_000 * MS, active_ns: None, rows: None, linger_ns: None };
    let rows = shown(vec![Stage::Summarize(sessions(&["len"], session))], &frames);
    // Its own time counts, and not the 19 s of the watermark when it came.
    assert_eq!(rows, ["10 60 4 1", "12 60 3 4", "13 70 1 4"]);
}

#[test]
fn windows_of_sessions_lose_none() {
    let times = (0..400).map(|i| (60 + i % 7 * 10, i as f64 * 0.037 + (i % 5) as f64 * 0.2));
    let frames = packets(&times.collect::<Vec<_>>());
    for active_ns in [None, Some(700 * MS)] {
        let s = Stage::Summarize(sessions(&["len"], Session { active_ns, ..GAP }));
        let count = vec![agg(AggFunc::Count, None), sum_of_column(2)];
        let windows = summarize(&[], count, Window::Tumbling(1_000 * MS));
        let plan = program(vec![s, windows]);
        let rows = check(&plan, &Functions::default(), &frames);
        let packets: i64 = rows.iter().map(|(_, cells)| int_of(&cells[2])).sum();
        assert_eq!(packets, 400);
        let rules = TimeRules { lateness_ns: 1_000 * MS, jump_ns: 60_000 * MS };
        let got = weir_model::run(&plan, &Functions::default(), &mut frames.cut(&[9]), &rules);
        assert_eq!(got.ledger.late, 0);
    }
}

fn sum_of_column(n: usize) -> weir_plan::Agg {
    agg(AggFunc::Sum, Some(Expr::column(n, Type::Int)))
}

fn int_of(v: &weir_plan::Value) -> i64 {
    match v {
        weir_plan::Value::Int(n) => *n,
        v => panic!("{v} is no int"),
    }
}

#[test]
fn every_aggregate_over_every_kind_of_key() {
    use AggFunc::*;
    let text = Expr {
        ty: Type::Str,
        kind: weir_plan::ExprKind::Call(weir_plan::Func::ToStr, vec![field("dport")]),
    };
    let of_len = [
        Count,
        Sum,
        Min,
        Max,
        Avg,
        First,
        Last,
        Distinct,
        DistinctUpTo(2),
        ApproxDistinct,
        BitOr,
        Variance,
        Stddev,
        Mad,
        Entropy,
        Quantile(500_000),
        Frequent(2),
        Histogram,
    ];
    let mut aggs: Vec<_> = of_len.iter().map(|&f| agg(f, Some(field("tcp.payload_len")))).collect();
    aggs.extend([First, Last, Min, Max, Distinct].map(|f| agg(f, Some(text.clone()))));
    aggs.push(agg(EndReason, None));
    let plans = [
        GAP,
        Session { active_ns: Some(500 * MS), ..GAP },
        Session { gap_ns: 10_000 * MS, active_ns: None, rows: Some(3), linger_ns: None },
    ];
    for key in ["ip.src", "dport", "eth.src", "tcp.syn", "conn.forward"] {
        for session in plans {
            check_stages(vec![summarize(&[key], aggs.clone(), Window::Session(session))]);
            let in_rows = vec![aggs[1].clone(), aggs[5].clone(), agg(EndReason, None)];
            check_stages(vec![summarize(&[key], in_rows, Window::Session(session))]);
        }
    }
    let by_text = Summarize { keys: vec![("text".into(), text)], ..sessions(&[], GAP) };
    check_stages(vec![Stage::Summarize(by_text)]);
}

/// Packets of some hundred hosts of both families.
fn hosts() -> Frames {
    let frames = (0..3_000u64).map(|i| {
        let h = HashKey::KNOWN.hash([i]);
        let (a, b) = ((h >> 20) as u32 % 200, (h >> 40) as u32 % 3);
        let frame = match h & 3 {
            0 => Frame::ethernet().ipv6(Ipv6Addr::from(u128::from(a)), Ipv6Addr::from(1)),
            1 => Frame::ethernet().vlan(5).ipv4(Ipv4Addr::from(a), Ipv4Addr::from(b)),
            _ => Frame::ethernet().ipv4(Ipv4Addr::from(a), Ipv4Addr::from(b)),
        };
        (i as i64 * 3 * MS, frame.udp(1, b as u16).bytes())
    });
    Frames::new(LinkType::ETHERNET, &frames.collect::<Vec<_>>())
}

#[test]
fn many_hosts_of_both_families() {
    for keys in [&["ip.src"][..], &["ip.src", "sport", "ip.dst", "dport", "ip.proto"], &["dport"]] {
        for gap_ms in [20, 400, 3_000] {
            let session = Session { gap_ns: gap_ms * MS, ..GAP };
            let plan = program(vec![Stage::Summarize(sessions(keys, session))]);
            check(&plan, &Functions::default(), &hosts());
        }
    }
}

/// Rows and evicted of one worker.
fn alone(plan: &Program, frames: &Frames, cuts: &[usize]) -> (Vec<String>, u64) {
    let mut sink = Collect::default();
    let (functions, options) = (Functions::default(), Options::default());
    let outcome = run(plan, &functions, &mut frames.cut(cuts), &mut sink, &options, &mut |_| {});
    assert!(outcome.ledger.adds_up());
    (sink.rows.iter().map(|row| format!("{row:?}")).collect(), outcome.ledger.evicted)
}

#[test]
fn at_the_bound_one_worker_ends_the_least_recent() {
    for max in [1, 7, 150] {
        for until in [None, Some(compare(BinaryOp::Eq, field("dport"), int(2)))] {
            let session = Session { gap_ns: 1_000 * MS, ..GAP };
            let s = Summarize { max_groups: max, until, ..sessions(&["ip.src"], session) };
            let plan = program(vec![Stage::Summarize(s)]);
            let rules = TimeRules { lateness_ns: 1_000 * MS, jump_ns: 60_000 * MS };
            let model = weir_model::run(&plan, &Functions::default(), &mut hosts(), &rules);
            assert!(model.ledger.evicted > 100);
            let rows: Vec<_> = model.rows.iter().map(|row| format!("{row:?}")).collect();
            for cuts in [&[BATCH][..], &[1], &[100, 3, 255]] {
                let (got, evicted) = alone(&plan, &hosts(), cuts);
                assert_eq!((got, evicted), (rows.clone(), model.ledger.evicted), "max {max}");
            }
        }
    }
}

#[test]
fn sessions_at_the_ends_of_time() {
    let times = (0..40).map(|i| match i % 4 {
        0 => i64::MIN + i,
        1 => i64::MIN + 3 * i,
        2 => i64::MIN + 1_000,
        _ => i64::MAX - i,
    });
    let frames: Vec<_> = times.map(|t| (t, vec![0; 60])).collect();
    let frames = Frames::new(LinkType::ETHERNET, &frames);
    for gap_ns in [1, 7_000, 5_000 * MS, i64::MAX] {
        for active_ns in [None, Some(10), Some(i64::MAX)] {
            let s = sessions(&["len"], Session { gap_ns, active_ns, rows: None, linger_ns: None });
            let plan = program(vec![Stage::Summarize(s)]);
            check(&plan, &Functions::default(), &frames);
        }
    }
}

/// Sessions of a key that stands in a register, pushed by hand.
struct ByHand {
    sessions: Sessions,
    regs: Regs,
    pushed: u64,
}

impl ByHand {
    fn new(session: Session, aggs: Vec<weir_plan::Agg>) -> ByHand {
        let stage = summarize(&["number"], aggs, Window::Session(session));
        let schema = schema_after(std::slice::from_ref(&stage), &Schema::default());
        let Stage::Summarize(plan) = stage else { unreachable!() };
        let functions = &Functions::default();
        let with =
            BuildContext { functions, hash_key: HashKey::random(), peers: Peers::None, room: None };
        let spec = Spec::new(&plan, with, schema);
        let key = |_: &Expr| Val::Src(Src::Slot(0));
        let args = plan.aggs.iter().map(|a| (a.arg.iter().map(key).collect(), None));
        let keys = vec![Val::Src(Src::Slot(0))];
        let closing = ClosingRows { until: None, unless: None };
        let sessions = Sessions::new(spec, session, keys, args.collect(), closing);
        let mut regs = Regs::default();
        regs.columns.extend([Column::new(Repr::Word), Column::new(Repr::Word)]);
        ByHand { sessions, regs, pushed: 0 }
    }

    /// Pushes rows of these keys at a time.
    fn push(&mut self, at: i64, keys: &[u64]) {
        let n = keys.len();
        let column = &mut self.regs.columns[0];
        column.word_mut()[..n].copy_from_slice(keys);
        column.present = Bits::first(n);
        self.regs.columns[1].word_mut()[..n].fill(at as u64);
        self.regs.columns[1].present = Bits::first(n);
        let order: Vec<u64> = (self.pushed..).take(n).collect();
        self.pushed += n as u64;
        let mut undefined = 0;
        let ctx = Ctx { view: None, regs: &mut self.regs, n, undefined: &mut undefined };
        let clock = vec![at; n];
        let (time, origin) = (Src::Slot(1), None);
        let mut batch = Batch { ctx, time, order: &order, clock: &clock, origin };
        groups_of_last(|next| self.sessions.push(&mut batch, Bits::first(n), next));
    }

    /// Moves the watermark; returns how many sessions came out.
    fn watermark(&mut self, at: i64) -> usize {
        let out = groups_of_last(|next| _ = self.sessions.watermark(at, next));
        let count = out.iter().map(Groups::len).sum();
        out.into_iter().for_each(|groups| self.sessions.recycle(groups));
        count
    }

    fn evicted(&self) -> u64 {
        let mut ledger = Ledger::default();
        self.sessions.count(&mut ledger);
        ledger.evicted
    }
}

#[test]
fn none_begins_while_too_many_wait() {
    let session = Session { gap_ns: 1_000 * MS, active_ns: None, rows: Some(2), linger_ns: None };
    let mut by_hand = ByHand::new(session, vec![agg(AggFunc::Count, None)]);
    by_hand.sessions.waiting_max = 3;
    by_hand.push(0, &[1, 1, 2, 2, 3, 4, 4, 5, 6, 3]);
    // The sessions of 3 and 4 had begun; 4 ends, then none begins, and 3 ends too.
    assert_eq!((by_hand.evicted(), by_hand.sessions.waiting()), (2, 4));
    assert_eq!(by_hand.watermark(1_000 * MS), 4);
    by_hand.push(1_000 * MS, &[5, 5]);
    assert_eq!((by_hand.evicted(), by_hand.sessions.waiting()), (2, 1));
}

#[test]
fn rows_of_sessions_that_came_out_are_used_again() {
    let session = Session { gap_ns: 3_000 * MS, active_ns: None, rows: Some(3), linger_ns: None };
    let distinct = agg(AggFunc::Distinct, Some(field("number")));
    for aggs in [vec![agg(AggFunc::Count, None)], vec![distinct]] {
        let mut by_hand = ByHand::new(session, aggs);
        let (mut out, mut most) = (0, 0);
        for second in 0..200 {
            let keys: Vec<u64> = (0..100).map(|i| (second * 37 + i) / 2).collect();
            by_hand.push(second as i64 * 1_000 * MS, &keys);
            out += by_hand.watermark((second as i64 + 1) * 1_000 * MS);
            most = most.max(by_hand.sessions.groups.len());
        }
        let last = groups_of_last(|next| by_hand.sessions.finish(next));
        assert!(last.len() == 1 && most < 600, "{most} rows");
        assert!(out + last[0].len() > 6_000);
        assert!(groups_of_last(|next| by_hand.sessions.finish(next)).is_empty());
    }
}

/// Keys of a batch, each with how far its row is from the time of the batch.
type StepRows = (i64, Vec<(usize, i64)>);

fn steps() -> impl Strategy<Value = Vec<StepRows>> {
    let row = (0usize..6, -40i64..40);
    proptest::collection::vec((0i64..400, proptest::collection::vec(row, 1..12)), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_traffic(
        steps in steps(), gap in 1i64..900, active in proptest::option::of(1i64..2_000),
        rows in proptest::option::of(1u64..5), ends in proptest::option::of(0i64..9),
        linger in proptest::option::of(1i64..500), begins in proptest::option::of(0i64..5),
    ) {
        let (mut now, mut frames) = (0, Vec::new());
        for (step, rows) in steps {
            now += step;
            frames.extend(rows.iter().map(|(key, off)| ((now + off) * MS, vec![0; 60 + key])));
        }
        let linger_ns = linger.map(|ms| ms * MS);
        let session =
            Session { gap_ns: gap * MS, active_ns: active.map(|ms| ms * MS), rows, linger_ns };
        let mut s = sessions(&["len"], session);
        s.aggs.push(agg(AggFunc::Distinct, Some(field("number"))));
        let every = |n, of| {
            let rest = crate::ops::testing::binary(BinaryOp::Rem, field("number"), int(of));
            compare(BinaryOp::Eq, rest, int(n))
        };
        (s.until, s.unless) = (ends.map(|n| every(n, 9)), begins.map(|n| every(n, 5)));
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        check(&program(vec![Stage::Summarize(s)]), &Functions::default(), &frames);
    }
}

/// The sessions, whatever the order in which they come out: all columns of each, sorted.
fn bag(plan: &Program, frames: &[(i64, Vec<u8>)], rules: &TimeRules) -> (Vec<String>, Ledger) {
    let mut source = Frames::new(LinkType::ETHERNET, frames).cut(&[64]);
    let answer = weir_model::run(plan, &Functions::default(), &mut source, rules);
    let mut rows: Vec<_> = answer.rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    (rows, answer.ledger)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The sessions of packets out of order were others, and nothing said so.
    #[test]
    fn sessions_are_those_of_sorted_packets_or_rows_lag(
        steps in steps(), gap in 1i64..300, active in proptest::option::of(1i64..900),
        rows in proptest::option::weighted(0.2, 1u64..5),
        ends in proptest::option::of(0u32..9), begins in proptest::option::of(0u32..5),
        linger in proptest::option::of(1i64..200), lateness in 0i64..100,
    ) {
        let (mut now, mut frames, mut seq) = (0, Vec::new(), 0);
        for (step, rows) in steps {
            now += step;
            for (key, off) in rows {
                seq += 1;
                let ip = Frame::ethernet().ipv4(Ipv4Addr::from(1), Ipv4Addr::from(2));
                frames.push(((now + off) * MS, ip.tcp(1, key as u16).seq(seq).bytes()));
            }
        }
        let session = Session {
            gap_ns: gap * MS,
            active_ns: active.map(|ms| ms * MS),
            rows,
            linger_ns: linger.map(|ms| ms * MS),
        };
        let every = |n: u32, of| {
            let rest = crate::ops::testing::binary(BinaryOp::Rem, field("tcp.seq"), int(of));
            compare(BinaryOp::Eq, rest, int(n.into()))
        };
        let mut s = sessions(&["dport"], session);
        (s.until, s.unless) = (ends.map(|n| every(n, 9)), begins.map(|n| every(n, 5)));
        s.aggs.extend([AggFunc::Sum, AggFunc::Max].map(|f| agg(f, Some(field("tcp.seq")))));
        s.aggs.push(agg(AggFunc::Max, Some(field("ts"))));
        let plan = program(vec![Stage::Summarize(s)]);
        let rules = TimeRules { lateness_ns: lateness * MS, jump_ns: 60_000 * MS };
        let (got, ledger) = bag(&plan, &frames, &rules);
        frames.sort_by_key(|(ts, _)| *ts);
        let (sorted, none) = bag(&plan, &frames, &rules);
        prop_assert_eq!((none.lagging, none.disordered), (0, 0));
        prop_assert!(got == sorted || ledger.lagging > 0, "{:?} {:?}", got, sorted);
    }
}
