use super::Side;
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::limits::{JUMP_NS, LATENESS_NS};
use crate::node::Node as _;
use crate::node::testing::last;
use crate::ops::testing::{agg, compare, field, int, project, summarize};
use crate::room::RoomShare;
use crate::rows::Rows;
use crate::table::HashKey;
use crate::tests::schema_after;
use crate::tests::{Frames, check};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use weir_model::TimeRules;
use weir_packet::craft::Frame;
use weir_packet::limits::BATCH;
use weir_packet::source::LinkType;
use weir_plan::{
    AggFunc, BinaryOp, Expr, Input, Join, JoinColumn, JoinKind, Pipeline, Program, Schema, Stage,
    Type, Union, UnionColumn, Value, Window, Within,
};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// A join by a plan, without other stages.
fn join_of(plan: &Join, left: &Schema) -> super::Join {
    super::Join::new(plan, left, &RoomShare::of_all(plan.max_rows), HashKey::random())
}

/// A question, by the port it is from, or the answer to it.
#[derive(Clone, Debug)]
enum Packet {
    Asks(u16),
    Answers(u16),
    /// Neither; moves the clock.
    Else,
}
use Packet::{Answers, Asks, Else};

/// Packets at these times, in milliseconds.
fn frames(packets: &[(i64, Packet)]) -> Frames {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let frame = |packet: &Packet| match *packet {
        Asks(port) => Frame::ethernet().ipv4(a, b).udp(port, 53).bytes(),
        Answers(port) => Frame::ethernet().ipv4(b, a).udp(53, port).bytes(),
        Else => vec![0; 60],
    };
    let frames: Vec<_> = packets.iter().map(|(ms, p)| (ms * MS, frame(p))).collect();
    Frames::new(LinkType::ETHERNET, &frames)
}

/// Adds a pipeline; gives its number.
fn add(program: &mut Program, input: Input, stages: Vec<Stage>, printed: bool) -> usize {
    let before = match input {
        Input::Packets => Schema::default(),
        Input::Pipeline(i) => program.pipelines[i].schema.clone(),
    };
    let schema = schema_after(&stages, &before);
    program.pipelines.push(Pipeline { name: None, input, stages, schema, printed });
    program.pipelines.len() - 1
}

/// Questions with their number and port, and answers.
fn sides() -> Program {
    let mut program = Program::default();
    let of = |port| Stage::Where(compare(BinaryOp::Eq, field(port), int(53)));
    let questions = vec![of("dport"), project(&["number", "sport"])];
    add(&mut program, Input::Packets, questions, false);
    let answers = vec![of("sport"), project(&["number", "dport"])];
    add(&mut program, Input::Packets, answers, false);
    program
}

fn join(program: &Program, kind: JoinKind, within: Option<(i64, i64)>) -> Join {
    let column = JoinColumn { from: 0, default: None };
    Join {
        kind,
        right: 1,
        schema: program.pipelines[1].schema.clone(),
        keys: vec![(1, 1)],
        columns: if kind == JoinKind::Anti { Vec::new() } else { vec![column] },
        within: within.map(|(from, to)| Within { from_ns: from * MS, to_ns: to * MS }),
        max_rows: 1000,
    }
}

fn text(rows: &[(usize, Vec<Value>)]) -> Vec<String> {
    let line = |cells: &[Value]| cells.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(|(output, cells)| format!("{output}: {}", line(cells))).collect()
}

/// The rows of a join of questions and answers, a line each: the question's number and port, then
/// the answer's number.
fn joined(kind: JoinKind, within: (i64, i64), packets: &[(i64, Packet)]) -> Vec<String> {
    let mut program = sides();
    let stage = Stage::Join(join(&program, kind, Some(within)));
    add(&mut program, Input::Pipeline(0), vec![stage], true);
    text(&check(&program, &Functions::default(), &frames(packets)))
}

fn ledger(program: &Program, packets: &[(i64, Packet)]) -> Ledger {
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
    weir_model::run(program, &Functions::default(), &mut frames(packets), &rules).ledger
}

#[test]
fn questions_and_their_answers() {
    let packets =
        || [(0, Asks(7)), (100, Asks(8)), (200, Answers(7)), (300, Answers(7)), (2000, Answers(8))];
    let rows = |kind| joined(kind, (0, 1000), &packets());
    assert_eq!(rows(JoinKind::Inner), ["0: 1 7 3", "0: 1 7 4"]);
    assert_eq!(rows(JoinKind::Left), ["0: 1 7 3", "0: 1 7 4", "0: 2 8 absent"]);
    assert_eq!(rows(JoinKind::Anti), ["0: 2 8"]);
}

#[test]
fn both_ends_belong_to_the_interval() {
    let packets = || [(1000, Answers(7)), (3000, Asks(7)), (4000, Answers(7)), (5000, Else)];
    let rows = |within| joined(JoinKind::Inner, within, &packets());
    assert_eq!(rows((0, 1000)), ["0: 2 7 3"]);
    assert_eq!(rows((0, 999)).len(), 0);
    assert_eq!(rows((-2000, 1000)), ["0: 2 7 1", "0: 2 7 3"]);
    assert_eq!(rows((-1999, -1)).len(), 0);
    assert_eq!(rows((-2000, -1)), ["0: 2 7 1"]);
    assert_eq!(rows((1, 1000)), ["0: 2 7 3"]);
}

/// The end of the input is no silence: a row whose interval goes on after the last packet may have
/// met one that the input does not hold.
#[test]
fn the_end_of_the_input_is_no_silence() {
    let packets = |end: i64| {
        vec![(0, Asks(7)), (100, Asks(8)), (200, Asks(9)), (250, Answers(9)), (end, Else)]
    };
    let rows = |kind, end: i64| joined(kind, (0, 1000), &packets(end));
    assert_eq!(rows(JoinKind::Anti, 999).len(), 0);
    assert_eq!(rows(JoinKind::Anti, 1000), ["0: 1 7"], "it ends with the interval");
    assert_eq!(rows(JoinKind::Anti, 1100), ["0: 1 7", "0: 2 8"]);
    assert_eq!(rows(JoinKind::Left, 1099), ["0: 1 7 absent", "0: 3 9 4"]);
    assert_eq!(rows(JoinKind::Inner, 250), ["0: 3 9 4"]);
    // An interval that ends with the row itself is over when the row comes.
    assert_eq!(joined(JoinKind::Anti, (-1000, 0), &packets(250)).len(), 3);
    for (kind, undecided) in [(JoinKind::Anti, 1), (JoinKind::Left, 1), (JoinKind::Inner, 0)] {
        let mut program = sides();
        let stage = Stage::Join(join(&program, kind, Some((0, 1000))));
        add(&mut program, Input::Pipeline(0), vec![stage], true);
        assert_eq!(ledger(&program, &packets(1099)).undecided, undecided, "{kind:?}");
    }
}

#[test]
fn what_came_in_disorder_leaves_in_order() {
    let packets = [
        (500, Asks(7)),
        (400, Asks(7)),
        (900, Answers(7)),
        (600, Answers(7)),
        (600, Answers(7)),
        (400, Asks(9)),
        (1500, Else),
    ];
    let expected = ["2 7 4", "2 7 5", "2 7 3", "6 9 absent", "1 7 4", "1 7 5", "1 7 3"];
    let expected = expected.map(|row| format!("0: {row}"));
    assert_eq!(joined(JoinKind::Left, (0, 1000), &packets), expected);
}

#[test]
fn nothing_comes_of_nothing() {
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Anti] {
        assert_eq!(joined(kind, (0, 10), &[]).len(), 0);
        assert_eq!(joined(kind, (0, 10), &[(0, Answers(7)), (1, Else)]).len(), 0);
    }
}

#[test]
fn late_rows_are_counted() {
    // The watermark is a second behind: at 20 s it is at 19 s. A question from before 18 s is late,
    // and so is an answer from before 18 s: it would meet none but such questions.
    let clock = || (0..4).map(|i| (i, Else));
    let rest = [
        (20_000, Else),
        (17_999, Answers(7)),
        (18_500, Asks(7)),
        (17_000, Asks(7)),
        (19_000, Answers(7)),
    ];
    let packets: Vec<_> = clock().chain(rest).collect();
    assert_eq!(joined(JoinKind::Inner, (0, 1000), &packets), ["0: 7 7 9"]);
    let mut program = sides();
    let stage = Stage::Join(join(&program, JoinKind::Inner, Some((0, 1000))));
    add(&mut program, Input::Pipeline(0), vec![stage], true);
    assert_eq!(ledger(&program, &packets).late, 2);
}

/// Answers that lag the clock as their questions do were refused as late while the questions
/// waited.
#[test]
fn answered_questions_that_lag_the_clock_are_not_called_unanswered() {
    let packets = || {
        let clock = [(0, Else), (0, Else), (0, Else), (0, Else), (20_000, Else)];
        let lagging = [
            (17_900, Asks(1)),
            (18_000, Asks(2)),
            (18_000, Answers(2)),
            (18_600, Answers(3)),
            (18_400, Asks(3)),
            (18_300, Answers(3)),
            (18_300, Asks(4)),
            (18_500, Answers(3)),
            (18_900, Asks(5)),
            (19_900, Answers(5)),
            (19_500, Answers(5)),
            (18_900, Answers(5)),
        ];
        clock.into_iter().chain(lagging).collect::<Vec<_>>()
    };
    assert_eq!(joined(JoinKind::Anti, (0, 1000), &packets()), ["0: 12 4"]);
    let pairs = joined(JoinKind::Left, (0, 1000), &packets());
    let expected = ["7 2 8", "12 4 absent", "10 3 13", "10 3 9", "14 5 17", "14 5 16", "14 5 15"];
    assert_eq!(pairs, expected.map(|row| format!("0: {row}")));
}

/// Packets that lag the clock by as much as it waits, by more and by less.
fn lagging() -> impl Strategy<Value = Vec<(i64, Packet)>> {
    let lag = prop_oneof![
        4 => Just(0), 2 => 0i64..400, 2 => 900i64..1100, 2 => 1000i64..3000,
        1 => proptest::sample::select(vec![999i64, 1000, 1001, 1999, 2000, 2001, 4000]),
    ];
    let packet = (0i64..300, lag, 0..5u8, 1..4u16);
    proptest::collection::vec(packet, 0..120).prop_map(|all| {
        let mut now = 10_000;
        let packet = |(gap, lag, kind, port)| {
            now += gap;
            let packet = match kind {
                0 | 1 => Asks(port),
                2 | 3 => Answers(port),
                _ => Else,
            };
            (now - lag, packet)
        };
        all.into_iter().map(packet).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.min(64),
        ..ProptestConfig::default()
    })]

    #[test]
    fn rows_meet_by_one_rule_however_much_they_lag(
        packets in lagging(),
        kind in proptest::sample::select(vec![JoinKind::Inner, JoinKind::Left, JoinKind::Anti]),
        within in proptest::sample::select(vec![
            (0, 1000), (-1000, 0), (-500, 700), (100, 2000), (-2000, -100), (0, 0), (0, 5000),
        ]),
    ) {
        joined(kind, within, &packets);
    }
}

#[test]
fn a_full_side_takes_no_more() {
    let mut program = sides();
    let mut plan = join(&program, JoinKind::Left, Some((0, 1000)));
    plan.max_rows = 2;
    add(&mut program, Input::Pipeline(0), vec![Stage::Join(plan)], true);
    let packets: Vec<_> = (0..4)
        .map(|i| (i, Asks(7)))
        .chain((10..13).map(|i| (i, Answers(7))))
        .chain([(9000, Else), (9001, Asks(9)), (9002, Answers(9))])
        .collect();
    let rows = text(&check(&program, &Functions::default(), &frames(&packets)));
    assert_eq!(rows, ["0: 1 7 5", "0: 1 7 6", "0: 2 7 5", "0: 2 7 6", "0: 9 9 10"]);
    assert_eq!(ledger(&program, &packets).evicted, 3);
}

/// A hundred questions and as many answers, all within the interval of each other.
#[test]
fn one_tick_makes_only_so_many_pairs() {
    let mut program = sides();
    let mut plan = join(&program, JoinKind::Left, Some((0, 60_000)));
    plan.max_rows = 100;
    add(&mut program, Input::Pipeline(0), vec![Stage::Join(plan)], true);
    let packets: Vec<_> = (0..100)
        .map(|i| (i, Asks(7)))
        .chain([(100, Asks(8))])
        .chain((200..300).map(|i| (i, Answers(7))))
        .collect();
    let rows = check(&program, &Functions::default(), &frames(&packets));
    // The first 101 questions and answers were asked to be held, 100 were. The bound is 100 pairs
    // and 32 for each question before: every question in three makes a hundred.
    let made = ledger(&program, &packets);
    assert_eq!((rows.len(), made.evicted), (3300, 1 + 67));
    let of_one = |n: usize| rows.iter().filter(|(_, row)| row[0] == Value::Int(n as i64)).count();
    assert!((1..=100).all(|n| [0, 100].contains(&of_one(n))), "a row comes with all its pairs");
}

/// Many rows of one key, each of which meets one: what is looked at is some rows for each, whether
/// they come in order or not, and however far the interval is away.
#[test]
fn a_hot_key_costs_what_its_rows_meet() {
    const ROWS: usize = 20_000;
    for (within, backwards) in
        [((0, 1), false), ((0, 1), true), ((-1, 0), true), ((9_000, 9_001), false)]
    {
        let program = sides();
        let mut plan = join(&program, JoinKind::Inner, Some(within));
        plan.max_rows = 1 << 20;
        let mut join = join_of(&plan, &program.pipelines[0].schema);
        let (mut rows, mut pairs) = (Rows::new(&program.pipelines[0].schema), 0);
        let shift = within.0 * MS;
        for (side, shift) in [(Side::Left, 0), (Side::Right, shift + MS / 2)] {
            for from in (0..ROWS).step_by(BATCH) {
                rows.clear();
                rows.len = BATCH.min(ROWS - from);
                for j in 0..rows.len {
                    let i = if backwards { ROWS - 1 - from - j } else { from + j };
                    // The one column is the number, the other the key, the same in all.
                    rows.columns[0].set_raw(j, i as u128);
                    rows.columns[1].set_raw(j, 7);
                    rows.time.set_raw(j, (i as i64 * 2 * MS + shift) as u128);
                    rows.order.push(i as u64);
                    rows.clock.push(0);
                }
                join.take(side, &rows);
            }
        }
        for ms in (0..100_000).step_by(100) {
            last(&mut |rows| pairs += rows.len, |next| {
                join.watermark(ms * MS, next);
            });
        }
        last(&mut |rows| pairs += rows.len, |next| join.finish(next));
        assert_eq!(pairs, ROWS, "{within:?}");
        let looks = join.right.looks.get();
        assert!(looks <= 4 * ROWS as u64, "{looks} looks for {ROWS} rows, {within:?}");
    }
}

/// Right rows of one key that all lag the watermark, the latest ones first: each belongs before
/// those that came earlier. A row is passed a few times in each tick at most, of which there are
/// some ten while it is held.
#[test]
fn rows_of_a_hot_key_that_lag_cost_no_more_than_a_few_looks_each() {
    const ROWS: usize = 20_000;
    let program = sides();
    let mut plan = join(&program, JoinKind::Inner, Some((0, 80_000)));
    plan.max_rows = 1 << 20;
    let mut join = join_of(&plan, &program.pipelines[0].schema);
    let mut rows = Rows::new(&program.pipelines[0].schema);
    last(&mut |_| {}, |next| {
        join.watermark(100_000 * MS, next);
    });
    for from in (0..ROWS).step_by(BATCH) {
        rows.clear();
        rows.len = BATCH.min(ROWS - from);
        for j in 0..rows.len {
            rows.columns[0].set_raw(j, (from + j) as u128);
            rows.columns[1].set_raw(j, 7);
            rows.time.set_raw(j, (90_000 * MS - (from + j) as i64 * MS) as u128);
            rows.order.push((from + j) as u64);
            rows.clock.push(0);
        }
        join.take(Side::Right, &rows);
        last(&mut |_| {}, |next| {
            join.watermark((100_000 + from as i64) * MS, next);
        });
    }
    last(&mut |_| {}, |next| join.finish(next));
    let looks = join.right.looks.get();
    assert!(looks <= 12 * ROWS as u64, "{looks} looks for {ROWS} rows");
}

#[test]
fn keys_without_rows_make_room() {
    let packets: Vec<_> = (0..8000)
        .map(|i| {
            let port = 1000 + (i / 2) as u16;
            (i, if i % 2 == 0 { Asks(port) } else { Answers(port + (i % 3 == 0) as u16) })
        })
        .collect();
    let rows = joined(JoinKind::Anti, (-1, 5), &packets);
    assert_eq!(rows.len(), 1333);
}

#[test]
fn windows_meet_windows_and_the_whole_the_whole() {
    for window in [Window::Tumbling(SECOND), Window::All] {
        let mut program = sides();
        for side in [0, 1] {
            let stage = summarize(&[], vec![agg(AggFunc::Count, None)], window);
            let Stage::Summarize(mut s) = stage else { unreachable!("a summarize") };
            s.keys = vec![("port".into(), Expr::column(1, Type::Int))];
            add(&mut program, Input::Pipeline(side), vec![Stage::Summarize(s)], false);
        }
        let mut plan = join(&program, JoinKind::Left, None);
        let (key, count) = if window == Window::All { (0, 1) } else { (1, 2) };
        plan.right = 3;
        plan.keys = vec![(key, key)];
        plan.schema = program.pipelines[3].schema.clone();
        plan.columns = vec![JoinColumn { from: count, default: Some(Value::Int(0)) }];
        add(&mut program, Input::Pipeline(2), vec![Stage::Join(plan)], true);
        let packets = [
            (0, Asks(7)),
            (1, Asks(7)),
            (2, Asks(8)),
            (3, Answers(7)),
            (1500, Asks(8)),
            (4000, Answers(8)),
            (5000, Answers(8)),
        ];
        let rows = text(&check(&program, &Functions::default(), &frames(&packets)));
        let expected = match window {
            Window::All => vec!["0: 7 2 1", "0: 8 2 2"],
            _ => vec![
                "0: 1970-01-01T00:00:00Z 7 2 1",
                "0: 1970-01-01T00:00:00Z 8 1 0",
                "0: 1970-01-01T00:00:01Z 8 1 0",
            ],
        };
        assert_eq!(rows, expected);
    }
}

fn union(others: &[usize], columns: &[(&str, &[Option<usize>])]) -> Stage {
    let column = |(name, from): &(&str, &[Option<usize>])| UnionColumn {
        name: (*name).to_owned(),
        ty: Type::Int,
        from: from.to_vec(),
    };
    let columns = columns.iter().map(column).collect();
    Stage::Union(Union { others: others.to_vec(), columns, timed: true })
}

#[test]
fn a_union_keeps_the_order_of_packets() {
    let mut program = sides();
    let columns: [(&str, &[_]); 3] =
        [("number", &[Some(0), Some(0)]), ("asked", &[None, Some(1)]), ("to", &[Some(1), None])];
    let all = add(&mut program, Input::Pipeline(1), vec![union(&[0], &columns)], true);
    let count = summarize(&[], vec![agg(AggFunc::Count, None)], Window::Tumbling(SECOND));
    add(&mut program, Input::Pipeline(all), vec![count], true);
    let packets =
        [(0, Asks(7)), (1, Answers(7)), (2, Else), (3, Answers(9)), (4, Asks(8)), (1500, Asks(8))];
    let rows = text(&check(&program, &Functions::default(), &frames(&packets)));
    assert_eq!(
        rows,
        [
            "0: 1 7 absent",
            "0: 2 absent 7",
            "0: 4 absent 9",
            "0: 5 8 absent",
            "0: 6 8 absent",
            "1: 1970-01-01T00:00:00Z 4",
            "1: 1970-01-01T00:00:01Z 1",
        ]
    );
}

/// One pipeline is read by two summaries of different windows, by both sides of a join, by a union
/// with itself, and is printed.
#[test]
fn one_pipeline_feeds_several() {
    let mut program = sides();
    program.pipelines[0].printed = true;
    let count = |d| summarize(&[], vec![agg(AggFunc::Count, None)], Window::Tumbling(d));
    add(&mut program, Input::Pipeline(0), vec![count(SECOND)], true);
    add(&mut program, Input::Pipeline(0), vec![count(400 * MS)], true);
    let mut plan = join(&program, JoinKind::Inner, Some((1, 1000)));
    plan.right = 0;
    plan.schema = program.pipelines[0].schema.clone();
    add(&mut program, Input::Pipeline(0), vec![Stage::Join(plan)], true);
    let twice: [(&str, &[_]); 1] = [("number", &[Some(0), Some(0)])];
    add(&mut program, Input::Pipeline(0), vec![union(&[0], &twice)], true);
    let packets = [(0, Asks(7)), (300, Asks(7)), (500, Answers(7)), (600, Asks(8)), (900, Asks(7))];
    let rows = text(&check(&program, &Functions::default(), &frames(&packets)));
    let of = |output: usize| {
        let start = format!("{output}: ");
        rows.iter().filter_map(|r| r.strip_prefix(&start)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), ["1 7", "2 7", "4 8", "5 7"]);
    assert_eq!(of(1), ["1970-01-01T00:00:00Z 4"]);
    let parts =
        ["1970-01-01T00:00:00Z 2", "1970-01-01T00:00:00.400Z 1", "1970-01-01T00:00:00.800Z 1"];
    assert_eq!(of(2), parts);
    assert_eq!(of(3), ["1 7 2", "1 7 5", "2 7 5"]);
    assert_eq!(of(4), ["1", "1", "2", "2", "4", "4", "5", "5"]);
}

/// Windows over the rows of a join close when no left row can come any more.
#[test]
fn windows_of_joined_rows() {
    let mut program = sides();
    let stage = Stage::Join(join(&program, JoinKind::Anti, Some((0, 1000))));
    let count = summarize(&[], vec![agg(AggFunc::Count, None)], Window::Tumbling(SECOND));
    add(&mut program, Input::Pipeline(0), vec![stage, count], true);
    let asks = (0..40).map(|i| (i * 250, Asks(i as u16)));
    let both = |(ms, p)| [(ms, p), (ms + 10, Answers((ms / 250) as u16 * 2))];
    let packets: Vec<_> = asks.flat_map(both).chain([(11_000, Else)]).collect();
    let rows = text(&check(&program, &Functions::default(), &frames(&packets)));
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[0], "0: 1970-01-01T00:00:00Z 3");
}
