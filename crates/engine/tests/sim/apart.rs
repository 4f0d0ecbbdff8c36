//! Programs on several machines that are apart in time: each has packets and a clock of its own,
//! begins and ends when it will, is silent for seconds or hours, and may begin again.

use crate::law::{Exchanged, Spreading, owners};
use crate::traffic::{START_NS, Traffic, TrafficSource};
use crate::{Answer, plan};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use weir_engine::exchange::{Producer, ProducerId, Receipt, Receiver, Refused, needs};
use weir_engine::functions::Functions;
use weir_engine::limits::CORROBORATE;
use weir_engine::rows::{Collect, Sink as _};
use weir_engine::run::Options;
use weir_model::TimeRules;
use weir_packet::fields::FieldId;
use weir_packet::source::Source;
use weir_plan::keys::FieldSet;
use weir_plan::physical::{Needs, Physical};
use weir_plan::place::place;
use weir_plan::{Program, Stage, Value, Window, print};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// The jump that clocks believe, and silences that are just shorter and longer.
const JUMP: i64 = 60 * SECOND;

/// A life of a probe, which has packets and a clock of its own.
struct ProbeLife<S> {
    /// The probe and the life.
    id: ProducerId,
    /// Its packets.
    source: S,
}

/// Runs the worker level of a plan over the packets of each life, and the machine level over their
/// messages: each life's in their order, and those of the lives of one probe one after the other.
/// `is_dropped` says of the life of this number and of its message of this number whether that does
/// not arrive. Returns also how many messages are missing, as the receiver counts.
///
/// # Errors
/// Where the plan can't be spread so.
///
/// # Panics
/// Where a producer fails, or a message is not taken.
fn exchange_lives<S: Source>(
    plan: &Physical,
    functions: &Functions,
    lives: Vec<ProbeLife<S>>,
    options: &Options,
    seed: u64,
    is_dropped: &dyn Fn(usize, usize) -> bool,
) -> Result<(Exchanged, u64), Refused> {
    let mut ids: Vec<ProducerId> = lives.iter().map(|life| life.id).collect();
    let mut lanes = Lanes::new();
    for (n, ProbeLife { id, mut source }) in lives.into_iter().enumerate() {
        let (mut at, lane) = (0, lanes.entry(id.probe).or_default());
        let producer = Producer::new(plan, functions, options, id)?;
        let outcome = producer.run(&mut source, &mut |message| {
            if !is_dropped(n, at) {
                lane.push_back((id.epoch, message.to_vec()));
            }
            at += 1;
            Ok(())
        });
        assert!(outcome.error.is_none(), "{id:?}: {:?}", outcome.error);
    }
    let mut missing = 0;
    if !hash((seed, "merges")).is_multiple_of(3) {
        // Some probes have a merge that passes on what it has of them.
        let passes = |probe: &u128| hash((seed, "passes", probe)).is_multiple_of(2);
        let (mut own, others): (Lanes, Lanes) =
            lanes.into_iter().partition(|(probe, _)| passes(probe));
        lanes = others;
        let id = ProducerId { probe: u128::MAX, epoch: 1 };
        let out = Rc::<RefCell<VecDeque<(u64, Vec<u8>)>>>::default();
        let to = Rc::clone(&out);
        let send = move |message: &[u8]| {
            to.borrow_mut().push_back((id.epoch, message.to_vec()));
            Ok(())
        };
        let probes: Vec<u128> = own.keys().copied().collect();
        let send = Box::new(send);
        let mut merge = Receiver::passing_on(plan, functions, options, &probes, id, send)?;
        let (here, rest) = ids.into_iter().partition(|id| passes(&id.probe));
        ids = rest;
        ids.push(id);
        let mut sink = Collect::default();
        missing += take_all(&mut merge, &here, &mut own, &mut sink, seed ^ 1);
        let outcome = merge.finish(&mut sink);
        assert!(outcome.error.is_none() && sink.rows.is_empty(), "{:?}", outcome.error);
        lanes.insert(id.probe, out.take());
    }
    let probes: Vec<u128> = lanes.keys().copied().collect();
    let mut receiver = Receiver::new(plan, functions, options, &probes)?;
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    missing += take_all(&mut receiver, &ids, &mut lanes, &mut sink, seed);
    let outcome = receiver.finish(&mut sink);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    Ok((Exchanged { rows: sink.rows, ledger: outcome.ledger }, missing))
}

/// The messages of each probe in their order, each with its life.
type Lanes = BTreeMap<u128, VecDeque<(u64, Vec<u8>)>>;

/// Takes all messages, by turns that the seed draws; says how many are missing.
fn take_all(
    receiver: &mut Receiver,
    ids: &[ProducerId],
    lanes: &mut Lanes,
    sink: &mut Collect,
    seed: u64,
) -> u64 {
    let mut missing = 0;
    ids.iter().for_each(|id| receiver.begin_life(id.probe, id.epoch));
    for turn in 0u64.. {
        let ready: Vec<u128> = lanes.keys().copied().collect();
        let Some(chosen) = hash((seed, turn)).checked_rem(ready.len() as u64) else { break };
        let probe = ready[chosen as usize];
        let Some((epoch, message)) = lanes.get_mut(&probe).and_then(VecDeque::pop_front) else {
            lanes.remove(&probe);
            receiver.set_idle(probe, sink);
            continue;
        };
        match receiver.take(&message, sink) {
            Ok(Receipt::Taken) => {}
            other => panic!("probe {probe}, life {epoch}: {other:?}"),
        }
        missing += receiver.skip_missing(probe, epoch, sink);
    }
    missing
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A packet at a probe.
#[derive(Clone, Copy)]
struct Seen {
    ts: i64,
    /// Its number in the life of its probe.
    number: usize,
    probe: u128,
    life: u64,
    /// Its number in the traffic.
    packet: usize,
}

/// From one packet to the next.
fn silence(drawn: u64) -> i64 {
    let more = (drawn >> 8) as i64;
    match drawn % 100 {
        0..60 => more % (5 * MS),
        60..85 => more % (80 * MS),
        85..90 => 0,
        90..95 => more % (4 * SECOND),
        95 | 96 => 59 * SECOND,
        97 | 98 => 61 * SECOND,
        _ => more % (3 * 3600 * SECOND),
    }
}

/// How much later than the first a probe begins.
fn begins(drawn: u64) -> i64 {
    [0, 0, 10 * MS, 59 * SECOND, 61 * SECOND, 3600 * SECOND][drawn as usize % 6]
}

/// The packets that each probe sees, in the order of one run over the packets of all: by time, then
/// by the number at the probe, then by the probe. Lives follow each other only where no key asks
/// for one producer.
fn spread(
    plan: &Physical,
    traffic: &Traffic,
    spreading: Spreading,
) -> Result<Vec<Seen>, weir_engine::exchange::Refused> {
    let may_begin_again = !matches!(needs(plan)?, Needs::Key(_));
    let owners = owners(plan, &mut traffic.source(&[256]), spreading)?;
    let (seed, mut now) = (spreading.seed, START_NS);
    let mut all: Vec<Seen> = Vec::new();
    for (packet, probe) in owners.into_iter().enumerate() {
        now += silence(hash((seed, packet)));
        let ts = now + begins(hash((seed, probe, "begins")));
        let before = all.iter().rev().find(|seen| seen.probe == probe);
        let (life, number) = match before {
            None => (1, 0),
            Some(before) => {
                let begins = may_begin_again
                    && before.ts < ts
                    && before.life < 5
                    && hash((seed, packet, "life")).is_multiple_of(20);
                match begins {
                    true => (before.life + 1, 0),
                    false => (before.life, before.number + 1),
                }
            }
        };
        all.push(Seen { ts, number, probe, life, packet });
    }
    all.sort_by_key(|seen| (seen.ts, seen.number, seen.probe));
    Ok(all)
}

/// The lives of all probes, each with its packets.
fn lives(all: &[Seen], source: &TrafficSource) -> Vec<ProbeLife<TrafficSource>> {
    let mut ids: Vec<(u128, u64)> = all.iter().map(|seen| (seen.probe, seen.life)).collect();
    ids.sort_unstable();
    ids.dedup();
    let life = |(probe, epoch)| {
        let mine = all.iter().filter(|seen| (seen.probe, seen.life) == (probe, epoch));
        let source = source.pick(mine.map(|seen| (seen.packet, seen.ts)));
        ProbeLife { id: ProducerId { probe, epoch }, source }
    };
    ids.into_iter().map(life).collect()
}

/// Rows of each output; of programs with sessions, unions or alerts in any order: which come out
/// together depends on the steps of a clock.
fn by_output(program: &Program, rows: &[(usize, Vec<Value>)]) -> Vec<(usize, Vec<Value>)> {
    let mut rows = rows.to_vec();
    let mut stages = program.pipelines.iter().flat_map(|pipeline| &pipeline.stages);
    let is_of_steps = |stage: &Stage| match stage {
        Stage::Summarize(s) => matches!(s.window, Window::Session(_)),
        stage => matches!(stage, Stage::Union(_) | Stage::Alert(_)),
    };
    match stages.any(is_of_steps) {
        true => rows.sort(),
        false => rows.sort_by_key(|(output, _)| *output),
    }
    rows
}

/// Whether a life, or all of them together, ends with a silence so shortly before that a clock holds
/// it for wild: one that sees the packets of all may then come further than that of any life.
fn ends_after_silence(all: &[Seen]) -> bool {
    let mut ends = BTreeMap::<Option<(u128, u64)>, Vec<i64>>::new();
    for seen in all.iter().rev() {
        for whose in [None, Some((seen.probe, seen.life))] {
            let last = ends.entry(whose).or_default();
            if last.len() <= CORROBORATE {
                last.push(seen.ts);
            }
        }
    }
    ends.values().any(|last| last.windows(2).any(|pair| pair[0] - pair[1] > JUMP))
}

/// The answer of one run over the packets of all probes, and that of several.
fn both(
    program: &Program,
    traffic: &Traffic,
    lateness_ns: i64,
    cuts: &[usize],
    spreading: Spreading,
    is_dropped: &dyn Fn(usize, usize) -> bool,
) -> Option<(Answer, Exchanged, u64)> {
    let plan = Physical::new(program, &[]);
    // Packets are spread before they get their times here.
    let is_of_times = |key: &FieldSet| key.contains(&FieldId::named("ts").into());
    if matches!(needs(&plan), Ok(Needs::Key(key)) if is_of_times(&key)) {
        return None;
    }
    let all = spread(&plan, traffic, spreading).ok()?;
    // How far windows are filled in goes by the end of the clock.
    if has(program, &["fill"]) && ends_after_silence(&all) {
        return None;
    }
    let source = traffic.source(cuts);
    let options = Options { lateness_ns, jump_ns: JUMP, ..Options::default() };
    let functions = plan::functions();
    let lives = lives(&all, &source);
    let seed = spreading.seed;
    let got = exchange_lives(&plan, &functions, lives, &options, seed, is_dropped);
    let (got, missing) = got.ok()?;
    let mut merged = source.pick(all.iter().map(|seen| (seen.packet, seen.ts)));
    let rules = TimeRules { lateness_ns, jump_ns: JUMP };
    let want = weir_model::run(program, &functions, &mut merged, &rules);
    Some(((want.rows, want.ledger, Vec::new()), got, missing))
}

/// Whether a program is written with one of these words.
fn has(program: &Program, words: &[&str]) -> bool {
    let text = print::explain(program, 1);
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| words.contains(&word))
}

/// Whether a program reads the numbers of packets, which each life counts by itself, or has stages
/// that go by an order of rows which the steps of a clock decide: that of sessions and of the sides
/// of a union, and when keys of rows that were filled in are forgotten.
fn is_left_out(program: &Program) -> bool {
    let stages = || program.pipelines.iter().flat_map(|pipeline| &pipeline.stages);
    let is_of_steps = |stage: &Stage| match stage {
        Stage::Summarize(s) => s.fill.is_some() || matches!(s.window, Window::Session(_)),
        stage => matches!(stage, Stage::Union(_)),
    };
    let goes_by_order = |stage: &Stage| match stage {
        Stage::Summarize(s) => matches!(s.window, Window::Session(s) if s.rows.is_some()),
        // Of rows alike, a `top` takes those that came first.
        stage => matches!(stage, Stage::Scan(_) | Stage::Distinct(_) | Stage::Top { .. }),
    };
    has(program, &["number"]) || stages().any(is_of_steps) && stages().any(goes_by_order)
}

/// Fails unless machines that are apart in time give the rows and counts of one run over the
/// packets of all.
pub(crate) fn check(
    program: &Program,
    traffic: &Traffic,
    lateness_ns: i64,
    cuts: &[usize],
    spreading: Spreading,
) -> Result<(), TestCaseError> {
    if place(program).ends_early || is_left_out(program) {
        return Ok(());
    }
    let never = &|_, _| false;
    let Some((want, got, missing)) = both(program, traffic, lateness_ns, cuts, spreading, never)
    else {
        return Ok(());
    };
    prop_assert_eq!(missing, 0);
    // Rows find room, or not, by the steps of the clock.
    if want.1.evicted + got.ledger.evicted > 0 {
        return Ok(());
    }
    let mut answer = (by_output(program, &got.rows), got.ledger, Vec::new());
    let want = (by_output(program, &want.0), want.1, want.2);
    let stages = program.pipelines.iter().flat_map(|pipeline| &pipeline.stages);
    let is_session = |stage: &&Stage| match stage {
        Stage::Summarize(s) => matches!(s.window, Window::Session(_)),
        _ => false,
    };
    if stages.filter(is_session).count() > 1 {
        // The order of sessions that come out together, in which one may lag a further session.
        answer.1.lagging = want.1.lagging;
    }
    crate::same(&answer, &want, &format!("{spreading:?}, apart, batches of {cuts:?}"))
}

/// Fails where messages do not arrive, and neither the count of missing ones nor `completeness()`
/// says so. Rows of `program` end with that and with a count.
pub(crate) fn check_dropped(
    program: &Program,
    traffic: &Traffic,
    lateness_ns: i64,
    cuts: &[usize],
    spreading: Spreading,
) -> Result<(), TestCaseError> {
    // The rows filled in depend on the windows before, which may lack something.
    if is_left_out(program) || has(program, &["fill"]) {
        return Ok(());
    }
    let lives = RefCell::new(BTreeMap::<usize, Vec<bool>>::new());
    let is_dropped = |life: usize, message: usize| {
        let drawn = hash((spreading.seed, life, message, "dropped"));
        let is_dropped = drawn.is_multiple_of(6);
        lives.borrow_mut().entry(life).or_default().push(is_dropped);
        is_dropped
    };
    let answers = both(program, traffic, lateness_ns, cuts, spreading, &is_dropped);
    let Some((want, got, missing)) = answers else { return Ok(()) };
    // After the last that arrives of a life, nobody knows that there are more.
    let between = |all: &Vec<bool>| {
        let known = all.iter().rposition(|is_dropped| !is_dropped).map_or(0, |last| last + 1);
        all[..known].iter().filter(|is_dropped| **is_dropped).count() as u64
    };
    prop_assert_eq!(missing, lives.borrow().values().map(between).sum::<u64>());
    let keyed = |(_, row): &(usize, Vec<Value>)| {
        let (key, last) = row.split_at(row.len() - 2);
        (key.to_vec(), last[1].clone())
    };
    // Sessions of a key that end at a packet may begin at one time.
    let mut all = BTreeMap::<Vec<Value>, Vec<Value>>::new();
    want.0.iter().map(keyed).for_each(|(key, n)| all.entry(key).or_default().push(n));
    for row in &got.rows {
        let (key, n) = keyed(row);
        let share = &row.1[row.1.len() - 2];
        let is_less = matches!(share, Value::Float(share) if *share < 1.0);
        let want = all.get(&key);
        let how = || format!("{row:?}, not {want:?}, of\n{}", print::explain(program, 1));
        prop_assert!(is_less || want.is_some_and(|want| want.contains(&n)), "{}", how());
    }
    Ok(())
}
