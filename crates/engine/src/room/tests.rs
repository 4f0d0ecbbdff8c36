use super::*;
use crate::functions::Functions;
use crate::ops::testing::{agg, binary, compare, field, int, project, state, summarize};
use crate::rows::Collect;
use crate::run::{Options, run};
use crate::tests::{Frames, schema_after};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_packet::craft::Frame;
use weir_packet::limits::BATCH;
use weir_packet::source::LinkType;
use weir_plan::limits::{DISTINCT_KEYS_MAX, SCAN_KEYS_MAX, TOP_KEYS_MAX};
use weir_plan::stage::ScanState;
use weir_plan::{
    AggFunc, BinaryOp, Distinct, Expr, Input, Order, Per, Pipeline, Program, Scan, Schema, Session,
    SortKey, Stage, Type, Value, Window,
};

fn held(room: &Arc<MemoryRoom>, all: &[u64]) -> Vec<(RoomShare, RoomCharge)> {
    let shares = all.iter().map(|_| RoomShare { holder: Some(room.add(1)), most: u64::MAX });
    let mut held: Vec<_> = shares.map(|share| (share.clone(), share.charge())).collect();
    held.iter_mut().zip(all).for_each(|((_, charge), &keys)| charge.set(keys));
    held
}

#[test]
fn a_stage_takes_what_the_others_leave() {
    let room = MemoryRoom::new(1600);
    let stages = held(&room, &[1000, 500, 0]);
    for ((share, _), left) in stages.iter().zip([600, 1100, 1600]) {
        assert_eq!((share.bound(), share.left()), (1600, left));
    }
    assert!(stages[0].0.is_short());
}

#[test]
fn the_largest_gives_up_what_is_above_the_level() {
    let room = MemoryRoom::new(1600);
    let mut stages = held(&room, &[1000, 500]);
    stages[1].1.set(700);
    // 1,500 of 1,600 are left to them: the second, below half of that, keeps all it has.
    assert_eq!((stages[0].0.bound(), stages[0].0.left()), (800, 0));
    assert_eq!((stages[1].0.bound(), stages[1].0.left()), (800, 100));
    stages[0].1.set(800);
    stages[1].1.set(800);
    assert_eq!(stages[1].0.left(), 0);
    // A level that is there goes once there is room.
    stages[0].1.set(500);
    assert_eq!((stages[0].0.bound(), stages[1].0.left()), (1600, 800));
}

#[test]
fn what_is_gone_is_charged_to_nobody() {
    let room = MemoryRoom::new(1600);
    let mut stages = held(&room, &[1500, 500]);
    assert!(stages[0].0.bound() <= 1000);
    drop(stages.remove(0));
    stages[0].1.set(501);
    assert_eq!((room.total.load(Relaxed), stages[0].0.bound()), (501, 1600));
}

#[test]
fn what_a_query_names_is_left_alone() {
    let room = MemoryRoom::new(100);
    let share = |bound| RoomShare::of(Some(&room), (bound, SCAN_KEYS_MAX), 30);
    assert_eq!((share(7).bound(), share(7).left()), (7, u64::MAX));
    let fitted = share(SCAN_KEYS_MAX);
    assert_eq!((fitted.bound(), fitted.left()), (3, 3));
    // One key is there whatever it takes.
    let mut charge = fitted.charge();
    charge.set(7);
    let none = RoomShare::of(Some(&MemoryRoom::new(0)), (SCAN_KEYS_MAX, SCAN_KEYS_MAX), 30);
    assert_eq!((fitted.left(), none.bound()), (0, 1));
}

proptest! {
    #[test]
    fn shares_are_fair_and_fit(
        mut all in prop::collection::vec(prop_oneof![Just(0), 0..5_000u64, Just(1 << 60)], 1..9),
        memory in prop_oneof![Just(0), Just(u64::MAX), 1..20_000u64],
    ) {
        let level = level(&mut all, memory);
        let kept = all.iter().map(|&held| u128::from(held.min(level))).sum::<u128>();
        prop_assert!(kept <= u128::from(memory));
        // No stage gives up more than it must: a level higher by one would not fit.
        let higher = all.iter().map(|&held| u128::from(held.min(level + 1))).sum::<u128>();
        let cut = all.iter().filter(|&&held| held > level).count();
        prop_assert!(cut == 0 || higher + cut as u128 > u128::from(memory));
    }
}

const MS: i64 = 1_000_000;

/// Packets that one of a few hosts sends to port 80 among very many that others send to port 9,
/// each from an address of its own, for a minute.
fn flood() -> Frames {
    let frame = |i: u32| {
        let (a, port) = match i.is_multiple_of(16) {
            true => (0x0a00_0000 + i / 16 % 40, 80),
            false => (0x1400_0000 + i.wrapping_mul(0x9e37_79b1) % 0x0100_0000, 9),
        };
        let frame = Frame::ethernet().ipv4(Ipv4Addr::from(a), Ipv4Addr::new(192, 0, 2, 1));
        (i64::from(i) * 2 * MS, frame.udp(1024 + (i % 50_000) as u16, port).bytes())
    };
    Frames::new(LinkType::ETHERNET, &(0..30_000).map(frame).collect::<Vec<_>>())
}

/// A pipeline that keeps something by key of the packets to one port.
fn pipeline(port: i64, keep: &dyn Fn(&[&str]) -> Vec<Stage>) -> Pipeline {
    let keys: &[&str] = if port == 80 { &["ip.src"] } else { &["ip.src", "sport"] };
    let mut stages = vec![Stage::Where(compare(BinaryOp::Eq, field("dport"), int(port)))];
    stages.extend(keep(keys));
    let schema = schema_after(&stages, &Schema::default());
    let name = Some(format!("port {port}"));
    Pipeline { name, input: Input::Packets, stages, schema, printed: true }
}

fn rows_of(program: &Program, memory: Option<&Arc<MemoryRoom>>, workers: usize) -> (Rows, u64) {
    rows_over(&flood(), program, memory, workers)
}

fn rows_over(
    frames: &Frames,
    program: &Program,
    memory: Option<&Arc<MemoryRoom>>,
    workers: usize,
) -> (Rows, u64) {
    let options = Options { workers, memory: memory.cloned(), ..Options::default() };
    let mut sink = Collect::default();
    let (functions, mut source) = (Functions::default(), frames.cut(&[BATCH, 100]));
    let outcome = run(program, &functions, &mut source, &mut sink, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert!(outcome.ledger.adds_up());
    (sink.rows, outcome.ledger.evicted)
}

type Rows = Vec<(usize, Vec<Value>)>;

/// The stages that keep something by the keys that these fields are.
type StagesByKey = Box<dyn Fn(&[&str]) -> Vec<Stage>>;

/// Stages that keep something by key, each for some time.
fn keeping() -> Vec<(&'static str, StagesByKey)> {
    let aggs = || {
        let columns = [AggFunc::Sum, AggFunc::Distinct, AggFunc::First];
        let of = |&func: &AggFunc| agg(func, Some(field("ip.len")));
        let texts = agg(AggFunc::Max, Some(field("interface")));
        columns.iter().map(of).chain([agg(AggFunc::Count, None), texts]).collect::<Vec<_>>()
    };
    let windows = [
        ("a window", Window::All),
        ("windows", Window::Tumbling(20_000 * MS)),
        ("sliding windows", Window::Sliding { over: 20_000 * MS, every: 5_000 * MS }),
        (
            "sessions",
            Window::Session(Session {
                gap_ns: 30_000 * MS,
                active_ns: None,
                rows: None,
                linger_ns: None,
            }),
        ),
    ];
    let mut all: Vec<(&'static str, StagesByKey)> = Vec::new();
    for (name, window) in windows {
        all.push((name, Box::new(move |keys| vec![summarize(keys, aggs(), window)])));
    }
    all.push((
        "scan",
        Box::new(|keys| {
            let update = binary(BinaryOp::Add, state(0, Type::Int), int(1));
            let states = vec![ScanState { name: "n".into(), output: 0, init: int(0), update }];
            let keys = keys.iter().map(|key| field(key)).collect();
            let scan = Scan { states, keys, idle_ns: 1 << 60, max_keys: SCAN_KEYS_MAX };
            let n = ("n".to_owned(), Expr::column(0, Type::Int));
            let columns = vec![("number".to_owned(), field("number")), n];
            vec![Stage::Scan(scan), Stage::Project { columns }]
        }),
    ));
    all.push((
        "distinct",
        Box::new(|keys| {
            let keys = keys.iter().map(|key| field(key)).collect();
            let (idle_ns, max_keys) = (1 << 60, DISTINCT_KEYS_MAX);
            let distinct = Distinct { keys, windowed: false, idle_ns, max_keys };
            vec![Stage::Distinct(distinct), project(&["number"])]
        }),
    ));
    all.push((
        "top",
        Box::new(|keys| {
            let count = vec![agg(AggFunc::Count, None)];
            let groups = summarize(keys, count, Window::Tumbling(20_000 * MS));
            let columns = groups.output(&Schema::default()).columns;
            let count = Expr::column(columns.len() - 1, Type::Int);
            let by = vec![SortKey { expr: count, order: Order::Descending }];
            let keys = vec![Expr::column(1, columns[1].ty.clone())];
            let per = Some(Per { keys, max_keys: TOP_KEYS_MAX });
            vec![groups, Stage::Top { n: 1, by, windowed: true, per }]
        }),
    ));
    all
}

#[test]
fn a_flood_takes_nothing_from_others() {
    for (name, keep) in keeping() {
        let program = Program::of(vec![pipeline(80, &*keep), pipeline(9, &*keep)]);
        let quiet = |rows: Rows| rows.into_iter().filter(|(output, _)| *output == 0);
        let (all, none) = rows_of(&program, None, 1);
        assert_eq!(none, 0, "{name}");
        for workers in [1, 2] {
            let room = MemoryRoom::new(700 << 10);
            let (some, evicted) = rows_of(&program, Some(&room), workers);
            assert!(evicted > 1000, "{name} by {workers}: {evicted} evicted");
            assert!(quiet(some).eq(quiet(all.clone())), "{name} by {workers}: others lost rows");
            assert_eq!(room.total.load(Relaxed), 0, "{name} by {workers}: all is given back");
            // Where there is room, nothing changes.
            let room = MemoryRoom::new(1 << 30);
            assert_eq!(rows_of(&program, Some(&room), workers), (all.clone(), 0), "{name}");
        }
    }
}

/// Of the stage that is flooded, the keys stay that take more rows than those of the flood, and how
/// much its windows lack is known.
#[test]
fn what_matters_stays_in_a_flooded_window() {
    for window in [Window::All, Window::Tumbling(20_000 * MS)] {
        let aggs = [AggFunc::Count, AggFunc::Completeness].map(|func| agg(func, None));
        let stages = vec![summarize(&["ip.src"], aggs.to_vec(), window)];
        let program = weir_model::program(stages);
        let (all, _) = rows_of(&program, None, 1);
        let room = MemoryRoom::new(700 << 10);
        let (some, evicted) = rows_of(&program, Some(&room), 1);
        assert!(evicted > 1000, "{evicted} evicted");
        let at = all[0].1.len() - 2;
        let hosts = |rows: &Rows| {
            let often = |(_, row): &&(usize, Vec<Value>)| matches!(row[at], Value::Int(n) if n > 9);
            rows.iter().filter(often).map(|(_, row)| row[..=at].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(hosts(&some), hosts(&all));
        assert!(hosts(&some).len() >= 40);
        // Each packet that is in no group is missing in the completeness of its window.
        let lost = |rows: &Rows| {
            let mut windows: BTreeMap<String, (i64, f64)> = BTreeMap::new();
            for (_, row) in rows {
                let key = if at == 1 { String::new() } else { row[0].to_string() };
                let (Value::Int(n), Value::Float(share)) = (&row[at], &row[at + 1]) else {
                    panic!("a count and a share")
                };
                let window = windows.entry(key).or_default();
                *window = (window.0 + n, *share);
            }
            windows.values().map(|(n, share)| *n as f64 * (1.0 / share - 1.0)).sum::<f64>()
        };
        assert_eq!(lost(&all), 0.0);
        assert!((lost(&some) - evicted as f64).abs() < 0.01 * evicted as f64, "{}", lost(&some));
    }
}

/// Packets of forty hosts from one time on, and before it, or all the time, others that send one
/// each.
fn hosts_beside(others: impl Fn(u32) -> Frame, from: u32, beside: bool) -> Frames {
    let frame = |i: u32| {
        let is_host = i >= from && (!beside || i.is_multiple_of(8));
        let host = Ipv4Addr::from(0x0a00_0000 + i / 8 % 40);
        let to = Ipv4Addr::new(192, 0, 2, 1);
        let frame = match is_host {
            true => Frame::ethernet().ipv4(host, to),
            false => others(i),
        };
        (i64::from(i) * 2 * MS, frame.udp(4000, 9).bytes())
    };
    Frames::new(LinkType::ETHERNET, &(0..30_000).map(frame).collect::<Vec<_>>())
}

fn other(i: u32) -> Frame {
    let from = Ipv4Addr::from(0x1400_0000 + i.wrapping_mul(0x9e37_79b1) % 0x0100_0000);
    Frame::ethernet().ipv4(from, Ipv4Addr::new(192, 0, 2, 1))
}

fn six(i: u32) -> Frame {
    let from = Ipv6Addr::from((0x2001_0db8 << 96) + u128::from(i));
    Frame::ethernet().ipv6(from, Ipv6Addr::LOCALHOST)
}

/// The hosts with more than nine packets in a window, and how many these are.
fn often(window: Window, frames: &Frames, memory: Option<u64>, workers: usize) -> (Rows, u64) {
    let program =
        weir_model::program(vec![summarize(&["ip.src"], vec![agg(AggFunc::Count, None)], window)]);
    let room = memory.map(MemoryRoom::new);
    let (mut rows, evicted) = rows_over(frames, &program, room.as_ref(), workers);
    rows.retain(|(_, row)| matches!(row.last(), Some(Value::Int(n)) if *n > 9));
    assert_eq!(room.map_or(0, |room| room.total.load(Relaxed)), 0);
    (rows, evicted)
}

/// A pane that was flooded took all the room of those after it, as long as a window held it.
#[test]
fn a_flood_that_is_over_leaves_room_to_what_follows() {
    let window = Window::Sliding { over: 60_000 * MS, every: 5_000 * MS };
    let frames = hosts_beside(other, 15_000, false);
    // By one worker: what finds room with several depends on how far each of them has come.
    let (some, evicted) = often(window, &frames, Some(300 << 10), 1);
    assert!(evicted > 1000, "{evicted} evicted");
    assert_eq!(some, often(window, &frames, None, 1).0);
}

/// Keys of IPv4 and of IPv6 stand in tables of their own, and each gave up its part.
#[test]
fn a_flood_of_one_family_takes_nothing_from_the_other() {
    let frames = hosts_beside(six, 0, true);
    let (some, evicted) = often(Window::All, &frames, Some(100 << 10), 1);
    assert!(evicted > 10_000, "{evicted} evicted");
    assert_eq!(some, often(Window::All, &frames, None, 1).0);
}

/// Memory that workers hand on to each other stayed charged to the one that had made it.
#[test]
fn windows_stay_bounded_however_their_memory_wanders() {
    let frames = hosts_beside(other, 0, true);
    let window = Window::Tumbling(5_000 * MS);
    let memory = Some(150 << 10);
    let (_, by_one) = often(window, &frames, memory, 1);
    assert!(by_one > 10_000, "{by_one} evicted");
    for workers in [2, 4] {
        let (_, evicted) = often(window, &frames, memory, workers);
        assert!(evicted > by_one / 2, "{evicted} of {by_one} by {workers}");
    }
}
