//! Random programs over random traffic: whatever the number of workers and the cut into batches,
//! the engine gives the rows and the counts of the naive model.

mod alert;
mod apart;
mod changes;
mod choices;
mod expr;
mod hellos;
#[path = "../law/mod.rs"]
mod law;
mod machines;
mod messages;
mod metric;
mod plan;
mod rows;
mod sides;
mod traffic;
mod window;

use choices::Choices;
use law::Spreading;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt;
use traffic::{Traffic, cuts, traffic};
use weir_engine::counters::Ledger;
use weir_engine::rows::Collect;
use weir_engine::run::{self, Options};
use weir_engine::table::HashKey;
use weir_model::egress::{Collected, Frame, by_outlet};
use weir_model::{HASH_SECRETS, TimeRules};
use weir_plan::physical::{Physical, Unwritable};
use weir_plan::together::join;
use weir_plan::{Program, Stage, Value, print};

/// Choices that a program is made from.
const TAPE_MAX: usize = 1200;

/// A program that shows itself as `weir explain` would.
struct Query(Program);

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", print::explain(&self.0, 1))
    }
}

/// The length comes first, so that shrinking cuts the tape before it looks at single choices.
fn query() -> impl Strategy<Value = Query> {
    (0..TAPE_MAX, vec(any::<u16>(), TAPE_MAX)).prop_map(|(n, mut tape)| {
        tape.truncate(n);
        Query(plan::program(&mut Choices::new(tape)))
    })
}

/// A program whose workers mostly hand over groups.
fn groups() -> impl Strategy<Value = Query> {
    (0..TAPE_MAX, vec(any::<u16>(), TAPE_MAX)).prop_map(|(n, mut tape)| {
        tape.truncate(n);
        Query(plan::groups(&mut Choices::new(tape)))
    })
}

/// A program that holds much above the groups of workers.
fn above() -> impl Strategy<Value = Query> {
    (0..TAPE_MAX, vec(any::<u16>(), TAPE_MAX)).prop_map(|(n, mut tape)| {
        tape.truncate(n);
        Query(plan::above(&mut Choices::new(tape)))
    })
}

fn time_rules() -> impl Strategy<Value = TimeRules> {
    let lateness = prop_oneof![Just(0), Just(50_000_000), Just(1_000_000_000)];
    let jump = prop_oneof![3 => Just(60_000_000_000), 1 => Just(30_000_000)];
    (lateness, jump).prop_map(|(lateness_ns, jump_ns)| TimeRules { lateness_ns, jump_ns })
}

/// Rows, counts and frames of a run.
type Answer = (Vec<(usize, Vec<Value>)>, Ledger, Vec<Frame>);

fn model(program: &Program, traffic: &Traffic, time: &TimeRules, cuts: &[usize]) -> Answer {
    let mut source = traffic.source(cuts);
    let answer = weir_model::run(program, &plan::functions(), &mut source, time);
    assert!(answer.error.is_none());
    (answer.rows, answer.ledger, by_outlet(answer.frames))
}

/// The key that a run hashes with: one of several by how packets are cut, the same each time.
fn hash_key(cuts: &[usize], workers: usize) -> HashKey {
    let (a, b) = HASH_SECRETS[(cuts.iter().sum::<usize>() + workers) % HASH_SECRETS.len()];
    HashKey::new(a, b)
}

fn engine(
    program: &Program,
    traffic: &Traffic,
    time: &TimeRules,
    cuts: &[usize],
    workers: usize,
) -> Answer {
    let TimeRules { lateness_ns, jump_ns } = *time;
    let hash_key = hash_key(cuts, workers);
    let options = Options { workers, lateness_ns, jump_ns, hash_key, ..Options::default() };
    let (mut sink, mut egress) = (Collect::default(), Collected::default());
    let mut source = traffic.source(cuts);
    let functions = plan::functions();
    let ends = (&mut sink as _, &mut egress as _);
    let outcome = run::run_to(program, &functions, &mut source, ends, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    (sink.rows, outcome.ledger, by_outlet(egress.frames))
}

/// The same where programs may change, and no `limit` ends the run.
fn whole_model(program: &Program, traffic: &Traffic, time: &TimeRules) -> Answer {
    let mut source = traffic.source(&[256]);
    let answer = weir_model::run_whole(program, &plan::functions(), &mut source, time);
    (answer.rows, answer.ledger, by_outlet(answer.frames))
}

/// Lets every stage hold at most `max`, of keys, groups, sessions or rows.
fn bound(program: &mut Program, max: u64) {
    for stage in program.pipelines.iter_mut().flat_map(|p| &mut p.stages) {
        let held = match stage {
            Stage::Summarize(s) => &mut s.max_groups,
            Stage::Scan(s) => &mut s.max_keys,
            Stage::Distinct(d) => &mut d.max_keys,
            Stage::Deduplicate(d) => &mut d.max_packets,
            Stage::AnalyzeTcp(a) => &mut a.max_keys,
            Stage::Hello(h) => &mut h.max_flows,
            Stage::Top { per: Some(per), .. } => &mut per.max_keys,
            Stage::Join(join) => &mut join.max_rows,
            Stage::Alert(alert) => &mut alert.max_keys,
            _ => continue,
        };
        *held = max;
    }
}

/// Fails at the first row that is not the model's, and where counts differ.
fn same(got: &Answer, expected: &Answer, how: &str) -> Result<(), TestCaseError> {
    let rows = got.0.len().max(expected.0.len());
    for i in 0..rows {
        prop_assert_eq!(got.0.get(i), expected.0.get(i), "row {} of {} with {}", i, rows, how);
    }
    // It equals 0.0, so the rows would not tell.
    let signed = |v: &Value| matches!(v, Value::Float(f) if f.to_bits() == 1 << 63);
    let sound = got.0.iter().chain(&expected.0).all(|(_, row)| !row.iter().any(signed));
    prop_assert!(sound, "a zero with a sign with {}", how);
    prop_assert_eq!(got.2.len(), expected.2.len(), "frames with {}", how);
    for (i, (got, expected)) in got.2.iter().zip(&expected.2).enumerate() {
        prop_assert_eq!(got, expected, "frame {} with {}", i, how);
    }
    prop_assert_eq!(&got.1, &expected.1, "counts with {}", how);
    same_ways(got, how)
}

/// Fails where the counts of the ways in which packets were spread, or all counts, do not add up.
fn same_ways(got: &Answer, how: &str) -> Result<(), TestCaseError> {
    prop_assert!(got.1.adds_up(), "counts with {}", how);
    // There is always one way of spreading packets, and others while programs need them.
    let (ways, all) = (got.1.shares.of_ways(), got.1.processed);
    let first = ways.first().is_none_or(|n| *n == all);
    prop_assert!(first && ways.iter().all(|n| *n <= all), "{:?} with {}", ways, how);
    Ok(())
}

/// How many programs each test makes: so many as take a minute, unless `PROPTEST_CASES` says.
fn cases() -> u32 {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => 64,
    }
}

/// The physical plan of a program, after it was written as JSON and read back.
fn read_back(program: &Program) -> Physical {
    let functions = plan::functions();
    let physical = Physical::new(program, &[]);
    let json = match physical.to_json(functions.signatures()) {
        Err(Unwritable::Key) => return physical,
        json => json.expect("it can be written"),
    };
    let read = Physical::from_json(&json, functions.signatures());
    let read = read.unwrap_or_else(|e| panic!("{e}\n{json}"));
    assert_eq!(read, physical, "{json}");
    read
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        max_shrink_iters: 20_000,
        max_shrink_time: 120_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_model_does_not_depend_on_batches(
        traffic in traffic(), time in time_rules(), cuts in cuts(), query in query(),
    ) {
        let whole = model(&query.0, &traffic, &time, &[256]);
        prop_assert!(whole.1.adds_up());
        let mut other = model(&query.0, &traffic, &time, &cuts);
        if other.1.processed != whole.1.processed {
            // A `limit` ended the run, with another batch.
            other.1 = whole.1.clone();
        }
        same(&other, &whole, "other batches")?;
    }

    #[test]
    fn the_engine_gives_the_answer_of_the_model(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3), query in query(),
    ) {
        // The engine runs what came by JSON; the model does not.
        let read = read_back(&query.0).program();
        prop_assert_eq!(&read, &query.0);
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            // Of a run that a `limit` ends, the batch with which it does counts as a whole.
            let expected = model(&query.0, &traffic, &time, cuts);
            let how = format!("{workers} workers and batches of {cuts:?}");
            same(&engine(&read, &traffic, &time, cuts, workers), &expected, &how)?;
        }
    }

    /// Partial results of several machines, each of which has some of the packets, however their
    /// messages come.
    #[test]
    fn several_machines_give_the_answer_of_one(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 2),
        query in groups(), producers in 1u128..5, seed: u64,
    ) {
        let expected = model(&query.0, &traffic, &time, &[256]);
        for (cuts, more) in cuts.iter().zip(0..) {
            let spreading = Spreading { producers, seed: seed.wrapping_add(more) };
            machines::check(&query.0, &traffic, &time, cuts, &expected, spreading)?;
        }
    }

    /// The same of programs that hold much above the groups: a receiver that is lost goes on from
    /// what it saved.
    #[test]
    fn a_receiver_that_is_lost_goes_on_from_what_it_saved(
        traffic in traffic(), time in time_rules(), cuts in cuts(),
        query in above(), producers in 1u128..4, seed: u64,
    ) {
        let expected = model(&query.0, &traffic, &time, &[256]);
        let spreading = Spreading { producers, seed };
        machines::check(&query.0, &traffic, &time, &cuts, &expected, spreading)?;
    }

    /// The same where machines have clocks of their own, and are apart in time.
    #[test]
    fn machines_apart_in_time_give_the_answer_of_one(
        traffic in traffic(), time in time_rules(), cuts in cuts(),
        query in groups(), producers in 1u128..5, seed: u64,
    ) {
        let spreading = Spreading { producers, seed };
        apart::check(&query.0, &traffic, time.lateness_ns, &cuts, spreading)?;
    }

    /// Messages that do not arrive are counted, and windows say that they lack something.
    #[test]
    fn windows_say_that_messages_are_missing(
        traffic in traffic(), time in time_rules(), cuts in cuts(),
        tape in vec(any::<u16>(), 100), producers in 1u128..4, seed: u64,
    ) {
        let query = Query(plan::completeness(&mut Choices::new(tape)));
        let spreading = Spreading { producers, seed };
        apart::check_dropped(&query.0, &traffic, time.lateness_ns, &cuts, spreading)?;
    }

    /// The same of any programs, of which most are refused.
    #[test]
    fn programs_for_one_machine_are_refused_by_name(
        traffic in traffic(), time in time_rules(), query in query(),
        producers in 2u128..4, seed: u64,
    ) {
        let expected = model(&query.0, &traffic, &time, &[256]);
        let spreading = Spreading { producers, seed };
        machines::check(&query.0, &traffic, &time, &[256], &expected, spreading)?;
    }

    /// The same of programs each of whose pipelines a `limit` ends.
    #[test]
    fn a_run_that_a_limit_ends_counts_the_same_with_any_number_of_workers(
        traffic in traffic(), time in time_rules(), cuts in cuts(), query in query(), n in 0u64..40,
    ) {
        let mut query = query;
        for pipeline in &mut query.0.pipelines {
            if !matches!(pipeline.stages.last(), Some(Stage::Ends(ends)) if !ends.goes_on()) {
                pipeline.stages.push(Stage::Limit(n));
            }
        }
        let expected = model(&query.0, &traffic, &time, &cuts);
        for workers in [1, 2, 4] {
            let how = format!("{workers} workers and batches of {cuts:?}");
            same(&engine(&query.0, &traffic, &time, &cuts, workers), &expected, &how)?;
        }
    }

    /// The same of programs that do nothing else.
    #[test]
    fn windows_say_what_they_lack(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3),
        tape in vec(any::<u16>(), 100),
    ) {
        let query = Query(plan::completeness(&mut Choices::new(tape)));
        let expected = model(&query.0, &traffic, &time, &[256]);
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            let how = format!("{workers} workers and batches of {cuts:?}");
            same(&engine(&query.0, &traffic, &time, cuts, workers), &expected, &how)?;
        }
        let spreading = Spreading { producers: 3, seed: cuts.len() as u64 + cuts[0][0] as u64 };
        machines::check(&query.0, &traffic, &time, &cuts[0], &expected, spreading)?;
    }

    /// Each worker kept to the bound of a `scan`, `session` or `distinct` by itself; and which key
    /// a full `scan` or `distinct` gave up depended on how rows came in batches.
    #[test]
    fn a_bound_that_is_named_holds_for_all_workers_together(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3), query in query(),
        max in prop_oneof![3 => 1u64..9, 1 => 9u64..100],
    ) {
        let mut query = query;
        bound(&mut query.0, max);
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            let expected = model(&query.0, &traffic, &time, cuts);
            let how = format!("{workers} workers, at most {max} and batches of {cuts:?}");
            same(&engine(&query.0, &traffic, &time, cuts, workers), &expected, &how)?;
        }
    }

    /// Of all rows that are the first of their key none is missing, and for each key given up one
    /// more may come.
    #[test]
    fn a_full_distinct_lets_no_first_row_go(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3), max in 1u64..40,
        tape in vec(any::<u16>(), 60),
    ) {
        let distinct = |max| plan::distinct_numbers(&mut Choices::new(tape.clone()), max);
        let all = model(&distinct(1 << 20), &traffic, &time, &[256]);
        let bounded = distinct(max);
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            let (rows, ledger, _) = engine(&bounded, &traffic, &time, cuts, workers);
            let how = format!("{workers} workers and batches of {cuts:?}");
            prop_assert!(all.0.iter().all(|row| rows.contains(row)), "{how}");
            let more = (rows.len() - all.0.len()) as u64;
            prop_assert!(more <= ledger.evicted, "{more} more, {} evicted, {how}", ledger.evicted);
            prop_assert!(rows.is_sorted_by(|a, b| a.1.cmp(&b.1).is_lt()), "{how}");
            let is_full = all.0.len() as u64 > max;
            prop_assert!(!is_full || ledger.evicted > 0, "nothing evicted, {how}");
        }
    }

    #[test]
    fn programs_together_give_what_each_gives_alone(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3),
        first in query(), second in query(),
    ) {
        // Twice the same, so that they begin with the same groups if there are any, and once
        // with other aggregates of these.
        let more = plan::aggregating_more(&first.0);
        let programs = [&first.0, &second.0, &first.0, &more];
        let named = programs.iter().enumerate().map(|(i, p)| (format!("p{i}"), Program::clone(p)));
        let joined = join(named.collect()).expect("few pipelines");
        let expected = model(&joined, &traffic, &time, &[256]);
        let mut before = 0;
        for (i, program) in programs.into_iter().enumerate() {
            let alone = model(program, &traffic, &time, &[256]).0;
            let printed = program.pipelines.iter().filter(|p| p.printed).count();
            let mine = expected.0.iter().filter(|(o, _)| (before..before + printed).contains(o));
            let mine: Vec<_> = mine.map(|(o, row)| (o - before, row.clone())).collect();
            prop_assert_eq!(mine, alone, "program {}", i);
            before += printed;
        }
        prop_assert_eq!(&read_back(&joined).program(), &joined);
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            let expected = model(&joined, &traffic, &time, cuts);
            let how = format!("{workers} workers and batches of {cuts:?}");
            same(&engine(&joined, &traffic, &time, cuts, workers), &expected, &how)?;
        }
    }

    /// One program comes and goes twice, while another one is replaced by itself and by one that
    /// does the same in one stage more: nothing of that one may show it.
    #[test]
    fn programs_come_and_go_and_others_go_on(
        traffic in traffic(), time in time_rules(), cuts in vec(cuts(), 3),
        query in query(), other in query(), mut at in vec(0usize..40, 6),
    ) {
        let named = |all: &[(&str, &Program)]| -> changes::Named {
            all.iter().map(|(name, p)| ((*name).to_owned(), Program::clone(p))).collect()
        };
        let longer = changes::lengthened(&query.0);
        let steps = [
            named(&[("q", &query.0), ("other", &other.0)]),
            named(&[("q", &longer), ("other", &other.0)]),
            named(&[("q", &longer)]),
            named(&[("q", &query.0)]),
            named(&[("q", &query.0), ("other", &other.0)]),
            named(&[("q", &query.0)]),
        ];
        at.sort_unstable();
        let plan: Vec<_> = at.into_iter().zip(steps).collect();
        let expected = whole_model(&query.0, &traffic, &time);
        let mine = query.0.pipelines.iter().filter(|p| p.printed).count();
        for (workers, cuts) in [1, 2, 4].into_iter().zip(&cuts) {
            let how = format!("{workers} workers and batches of {cuts:?}");
            let run = (&time, &cuts[..], workers);
            let first = named(&[("q", &query.0)]);
            let mut answer = changes::engine(&first, plan.clone(), &traffic, run);
            prop_assert!(answer.1.adds_up(), "counts with {}", how);
            answer.0.retain(|(output, _)| *output < mine);
            if !other.0.outlets().is_empty() {
                answer.2.clone_from(&expected.2);
            }
            let own = (answer.0, expected.1.clone(), answer.2);
            same(&own, &expected, &how)?;
            // And without the other.
            let alone = |step: &(usize, changes::Named)| (step.0, step.1[..1].to_vec());
            let plan = plan.iter().map(alone).collect();
            let answer = changes::engine(&first, plan, &traffic, run);
            same(&answer, &expected, &format!("{how}, alone"))?;
        }
    }
}
