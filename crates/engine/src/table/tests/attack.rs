//! Attacks on the hash: keys are solved for that collide under a known key, as a sender could who
//! knows it, and fed to every structure that strangers' bytes index. Their cost is counted in looks
//! at slots, never in time.

use super::probes::during;
use super::{HashKey, Index, Keys, NO_ROW, Table};
use crate::functions::Functions;
use crate::key::{Chosen, KeyPart, Layout, Pool, pack};
use crate::limits::RUN_MAX;
use crate::ops::testing::{agg, binary, field, int, project, state, summarize};
use crate::rows::{Arena, Collect};
use crate::run::{Options, run};
use crate::tests::schema_after;
use crate::tests::{Frames, hash_key, program};
use std::net::Ipv4Addr;
use std::sync::OnceLock;
use weir_model::TimeRules;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::craft::{Frame, batch};
use weir_packet::fields::{FieldId, key_by_name};
use weir_packet::limits::BATCH;
use weir_packet::read::read_field;
use weir_packet::source::LinkType;
use weir_packet::walk::{Layers, classify};
use weir_plan::stage::ScanState;
use weir_plan::{
    AggFunc, BinaryOp, Expr, ExprKind, Input, Join, JoinColumn, JoinKind, Order, Per, Pipeline,
    Program, Scan, Session, SortKey, Stage, Type, Window, Within,
};

/// Keys of an attack.
const KEYS: usize = 2048;

/// High bits of the hash that all of them share: more than an index of so many keys looks at.
const BITS: u32 = 12;

/// The cost that the bound allows an attacker who knows the key, in looks at four slots: one run
/// that grows to the bound and another batch of keys, each of which walks it to its end; moved
/// once.
const BOUND: usize = 2 * (RUN_MAX + BATCH) * (RUN_MAX + BATCH) / 4;

/// Ports of one pair of hosts.
type Ports = (u16, u16);

fn frame((sport, dport): Ports) -> Frame {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    Frame::ethernet().ipv4(a, b).udp(sport, dport)
}

/// The words of the key `flow` of a packet, as the engine packs them.
fn flow_words(ports: Ports) -> [u64; 2] {
    let fields = key_by_name("flow").expect("a key").fields;
    let part = |&id: &FieldId| KeyPart::of(&Expr::field(id));
    let (layout, _) = Layout::both(&fields.iter().map(part).collect::<Vec<_>>());
    let bytes = frame(ports).bytes();
    let frames = batch(LinkType::ETHERNET, &[(bytes.clone(), bytes.len() as u32)]);
    let mut layers = Layers::new();
    classify(&frames, &mut layers);
    let columns: Vec<Column> = fields
        .iter()
        .map(|&id| {
            let mut column = Column::new(id.info().ty.repr());
            read_field(id, &frames, &layers, Bits::ALL, &mut column);
            column
        })
        .collect();
    let columns: Vec<&Column> = columns.iter().collect();
    let rows = Chosen { set: Bits::first(1), positions: &[0] };
    let mut keys = Keys::new(layout.words);
    pack(&layout, &columns, rows, &mut Pool::default(), &Arena::default(), &mut keys);
    [keys.words[0][0], keys.words[1][0]]
}

/// Solves for ports whose flows have one place under a key: where the high bits of the hash are
/// these.
fn solve(key: HashKey, place: u64) -> Vec<Ports> {
    let [hosts, ends] = flow_words((0, 0));
    let ports = |p: u32| ((p >> 16) as u16, p as u16);
    let words = |p: u32| [hosts, ends | u64::from(p) << 32];
    assert_eq!(words(0x1234_5678), flow_words(ports(0x1234_5678)), "ports stand there");
    let collides = |p: &u32| key.hash(words(*p)) >> (64 - BITS) == place;
    (1..u32::MAX).filter(collides).take(KEYS).map(ports).collect()
}

/// An attack on [`HashKey::KNOWN`].
fn attack() -> &'static [Ports] {
    static ATTACK: OnceLock<Vec<Ports>> = OnceLock::new();
    ATTACK.get_or_init(|| solve(HashKey::KNOWN, 0x5a5))
}

/// As many ports that nobody chose.
fn random() -> Vec<Ports> {
    let ports = |n: u64| HashKey::new(5, 0x9e37_79b9_7f4a_7c15).hash([n]);
    (0..KEYS as u64).map(ports).map(|h| (h as u16, (h >> 16) as u16)).collect()
}

/// Two packets of each flow, all of the first ones before the second ones.
fn traffic(flows: &[Ports]) -> Frames {
    let twice = flows.iter().chain(flows).enumerate();
    let frames = twice.map(|(n, &ports)| (n as i64 * 1_000, frame(ports).bytes()));
    Frames::new(LinkType::ETHERNET, &frames.collect::<Vec<_>>())
}

/// The cost of a run. Panics where its rows are not the naive model's.
fn cost(program: &Program, flows: &[Ports], hash_key: HashKey) -> usize {
    let (functions, mut sink) = (Functions::default(), Collect::default());
    let (mut source, options) = (traffic(flows), Options { hash_key, ..Options::default() });
    let probes = during(|| {
        let outcome = run(program, &functions, &mut source, &mut sink, &options, &mut |_| {});
        assert!(outcome.error.is_none());
    });
    let Options { lateness_ns, jump_ns, .. } = options;
    let rules = TimeRules { lateness_ns, jump_ns };
    let model = weir_model::run(program, &functions, &mut traffic(flows), &rules);
    assert!(sink.rows == model.rows && !model.rows.is_empty(), "rows under attack");
    probes
}

/// Checks that knowing a key costs a bounded amount, and not knowing it nothing.
fn withstands(name: &str, stages: Vec<Stage>) {
    let program = program(stages);
    let usual = cost(&program, &random(), hash_key(2));
    assert!(usual >= KEYS, "{name}: {usual} looks at slots are not all there are");
    let known = cost(&program, attack(), HashKey::KNOWN);
    assert!(known > usual + RUN_MAX * RUN_MAX / 16, "{name}: no attack, {known} to {usual}");
    assert!(known <= 3 * usual + BOUND, "{name}: {known} under a known key, else {usual}");
    for key in [hash_key(2), hash_key(3), HashKey::random(), HashKey::random()] {
        let unknown = cost(&program, attack(), key);
        assert!(unknown <= 3 * usual, "{name}: {unknown} under an unknown key, else {usual}");
    }
}

#[test]
fn each_run_has_a_secret_that_is_not_shown() {
    let [one, other] = [Options::default(), Options::default()];
    assert!(one.hash_key != other.hash_key);
    assert_eq!(format!("{:?}", one.hash_key), "HashKey(..)");
    let hash = |options: &Options| options.hash_key.hash([1, 2]);
    assert!(hash(&one) != hash(&other) && hash(&one) == hash(&one.clone()));
}

const FLOW: [&str; 5] = ["ip.src", "ip.dst", "sport", "dport", "ip.proto"];

fn count_by_flow(window: Window) -> Stage {
    summarize(&FLOW, vec![agg(AggFunc::Count, None)], window)
}

#[test]
fn groups_of_colliding_flows_do_not_crowd() {
    withstands("groups", vec![count_by_flow(Window::All)]);
    withstands("groups of windows", vec![count_by_flow(Window::Tumbling(1_000_000))]);
}

#[test]
fn sessions_of_colliding_flows_do_not_crowd() {
    let forever = Session { gap_ns: 1 << 60, active_ns: None, rows: None, linger_ns: None };
    withstands("sessions", vec![count_by_flow(Window::Session(forever))]);
    // Each ends at its second row, so that it leaves the index too.
    let short = Session { rows: Some(2), ..forever };
    withstands("sessions that end", vec![count_by_flow(Window::Session(short))]);
}

fn scan(idle_ns: i64) -> Vec<Stage> {
    let update = binary(BinaryOp::Add, state(0, Type::Int), int(1));
    let states = vec![ScanState { name: "n".into(), output: 0, init: int(0), update }];
    let keys = FLOW.iter().map(|k| field(k)).collect();
    let columns =
        vec![("number".into(), field("number")), ("position".into(), Expr::column(0, Type::Int))];
    let scan = Scan { states, keys, idle_ns, max_keys: 1 << 20 };
    vec![Stage::Scan(scan), Stage::Project { columns }]
}

#[test]
fn scans_of_colliding_flows_do_not_crowd() {
    withstands("scan", scan(1 << 60));
}

#[test]
fn the_first_of_colliding_flows_do_not_crowd() {
    let keys = FLOW.iter().map(|k| field(k)).collect();
    let distinct =
        weir_plan::Distinct { keys, windowed: false, idle_ns: i64::MAX, max_keys: 1 << 20 };
    withstands("distinct", vec![Stage::Distinct(distinct), project(&["number"])]);
}

#[test]
fn the_best_of_colliding_flows_do_not_crowd() {
    let keys = FLOW.iter().map(|k| field(k)).collect();
    let per = Some(Per { keys, max_keys: 1 << 20 });
    let by = vec![SortKey { expr: field("number"), order: Order::Ascending }];
    let top = Stage::Top { n: 1, by, windowed: false, per };
    withstands_sequence("top per", &program(vec![top, project(&["number"])]));
}

/// Flows whose keys differ in the last port only: under a key of no seed and a multiplier of one,
/// their hashes differ in no bit that an index looks at, whatever else is in the key.
fn in_sequence() -> Vec<Ports> {
    (0..KEYS as u16).map(|dport| (0x5a5a, dport)).collect()
}

/// As [`withstands`], of keys of other layouts, under a key that needs no solving.
fn withstands_sequence(name: &str, program: &Program) {
    let usual = cost(program, &random(), hash_key(2));
    let known = cost(program, &in_sequence(), hash_key(0));
    assert!(known > usual + RUN_MAX * RUN_MAX / 16, "{name}: no attack, {known} to {usual}");
    assert!(known <= 3 * usual + 2 * BOUND, "{name}: {known} under a known key, else {usual}");
    for key in [hash_key(2), hash_key(3), HashKey::random(), HashKey::random()] {
        let unknown = cost(program, &in_sequence(), key);
        assert!(unknown <= 3 * usual, "{name}: {unknown} under an unknown key, else {usual}");
    }
}

#[test]
fn values_that_collide_do_not_crowd() {
    let ends = || {
        let ty = Type::Tuple(vec![Type::Ip, Type::Int, Type::Int]);
        let parts = ["ip.src", "sport", "dport"].map(field).to_vec();
        Some(Expr { ty, kind: ExprKind::Tuple(parts) })
    };
    for func in [AggFunc::Distinct, AggFunc::DistinctUpTo(1 << 20), AggFunc::Entropy] {
        let stage = summarize(&[], vec![agg(func, ends())], Window::All);
        withstands_sequence(func.name(), &program(vec![stage]));
    }
}

#[test]
fn keys_of_joins_that_collide_do_not_crowd() {
    let side = || Pipeline {
        printed: false,
        ..program(vec![project(&["number", "sport", "dport"])]).pipelines.remove(0)
    };
    let schema = side().schema.clone();
    // The same packet on both sides.
    let join = Join {
        kind: JoinKind::Inner,
        right: 1,
        schema: schema.clone(),
        keys: vec![(1, 1), (2, 2)],
        columns: vec![JoinColumn { from: 0, default: None }],
        within: Some(Within { from_ns: 0, to_ns: 0 }),
        max_rows: 1 << 20,
    };
    let stages = vec![Stage::Join(join)];
    let schema = schema_after(&stages, &schema);
    let joined = Pipeline { name: None, input: Input::Pipeline(0), stages, schema, printed: true };
    let program = Program::of(vec![side(), side(), joined]);
    withstands_sequence("join", &program);
}

#[test]
fn workers_share_what_a_sender_meant_for_one() {
    // Solved under the hash that packets were spread by: its low half says which worker.
    let [hosts, ends] = flow_words((0, 0));
    let worker = |key: HashKey, p: u32| {
        let hash = key.hash([hosts, ends | u64::from(p) << 32]);
        (u64::from(hash as u32) * 4) >> 32
    };
    let chosen: Vec<u32> = (0..).filter(|&p| worker(HashKey::KNOWN, p) == 0).take(KEYS).collect();
    for key in [hash_key(2), hash_key(3), HashKey::random()] {
        let mut workers = [0; 4];
        chosen.iter().for_each(|&p| workers[worker(key, p) as usize] += 1);
        // Within six standard deviations of a quarter.
        let [least, most] = [KEYS / 4 - 118, KEYS / 4 + 118];
        assert!(workers.iter().all(|n| (least..=most).contains(n)), "{workers:?}");
    }
}

#[test]
fn a_full_table_that_is_asked_for_colliding_keys_draws_another_key() {
    // One long run of slots in which every key is at home, so that none is far from its home: but
    // a key that finds no room walks all of it.
    let mut table = Table::new(1, 0, KEYS as u64, HashKey::new(0, 1));
    let mut keys = Keys::new(1);
    let mut find = |table: &mut Table, words: &mut dyn Iterator<Item = u64>| {
        let n = keys.words[0].iter_mut().zip(words).map(|(slot, word)| *slot = word).count();
        keys.len = n;
        let mut out = [NO_ROW; BATCH];
        table.lookup_words(&mut keys, &[], &mut out);
        out
    };
    for batch in 0..KEYS / BATCH {
        // The hash is the word: 4096 slots, half of them side by side.
        find(&mut table, &mut (0..BATCH).map(|n| ((batch * BATCH + n) as u64) << 52));
    }
    assert!(table.hash_key() == HashKey::new(0, 1) && table.len() == KEYS);
    assert!(find(&mut table, &mut [1].into_iter())[0] == NO_ROW);
    assert!(table.hash_key() != HashKey::new(0, 1), "the run was too long");
    for batch in 0..KEYS / BATCH {
        let found = find(&mut table, &mut (0..BATCH).map(|n| ((batch * BATCH + n) as u64) << 52));
        let rows = (batch * BATCH) as u32..;
        assert!(found.iter().copied().eq(rows.take(BATCH)), "rows stay where they are");
    }
}

/// Hashes that ignore the key, as an application's may, cannot be helped: rows are found all the
/// same, and a new key is drawn a few times only.
#[test]
fn hashes_that_no_key_changes_are_rehashed_a_few_times_only() {
    let (mut index, mut drawn) = (Index::new(HashKey::KNOWN), 0);
    for row in 0..3 * RUN_MAX as u32 {
        if index.is_crowded() {
            drawn += 1;
            index.rekey(HashKey::random(), (0..row).map(|row| (row, 7)));
        }
        index.reserve(1);
        let Err(place) = index.find(7, |found| found == row) else { panic!("it is new") };
        index.insert(place, 7, row);
    }
    assert!((1..=3).contains(&drawn), "{drawn} keys");
    assert!(
        (0..3 * RUN_MAX as u32).all(|row| index.find(7, |found| found == row).ok() == Some(row))
    );
}
