//! Programs on several machines: partial results as messages.

use crate::choices::Choices;
use crate::law::{Spreading, exchange};
use crate::traffic::Traffic;
use crate::{Answer, plan, same};
use proptest::prelude::*;
use weir_engine::exchange::needs;
use weir_engine::run::Options;
use weir_model::TimeRules;
use weir_plan::keys::largest_common;
use weir_plan::physical::{Needs, Payload, Physical, Work};
use weir_plan::place::place;
use weir_plan::{AggFunc, Program, Stage};

/// Whether partial results of a program merge between machines: what the plan says, asked in
/// another way.
fn merges(program: &Program, plan: &Physical) -> bool {
    let stages = || program.pipelines.iter().flat_map(|p| &p.stages);
    let leaves = stages().any(|s| matches!(s, Stage::Ends(_) | Stage::Capture(_)));
    let up: Vec<_> =
        plan.exchanges.iter().filter(|e| !matches!(e.payload, Payload::Packets(_))).collect();
    let groups = up.iter().all(|e| matches!(e.payload, Payload::Groups { .. }));
    let alone = up.iter().any(|e| e.needs == Needs::OneProducer);
    let keys: Vec<_> = up
        .iter()
        .filter_map(|e| match &e.needs {
            Needs::Key(key) => Some(key.clone()),
            _ => None,
        })
        .collect();
    let common = keys.is_empty() || !largest_common(&keys).is_empty();
    !leaves && groups && !alone && common && !asks_of_rows(plan)
}

/// Whether a `summarize` over rows asks what was lost.
fn asks_of_rows(plan: &Physical) -> bool {
    let nodes = plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes);
    nodes.into_iter().any(|node| match &node.work {
        Work::Stage(Stage::Summarize(s)) => {
            s.aggs.iter().any(|agg| agg.func == AggFunc::Completeness)
        }
        _ => false,
    })
}

/// Fails unless the program gives the rows and counts of one run on several machines, or is refused
/// with a reason. Says whether it ran.
pub(crate) fn check(
    program: &Program,
    traffic: &Traffic,
    time: &TimeRules,
    cuts: &[usize],
    expected: &Answer,
    spreading: Spreading,
) -> Result<bool, TestCaseError> {
    let plan = Physical::new(program, &[]);
    let allowed = needs(&plan);
    prop_assert_eq!(allowed.is_ok(), merges(program, &plan), "{:?}", allowed);
    let TimeRules { lateness_ns, jump_ns } = *time;
    let options = Options { lateness_ns, jump_ns, ..Options::default() };
    let source = || traffic.source(cuts);
    let got = match exchange(&plan, &plan::functions(), source, &options, spreading) {
        Ok(got) => got,
        Err(e) => {
            prop_assert!(allowed.is_err() || e.to_string().contains("anonymize"), "{}", e);
            return Ok(false);
        }
    };
    let mut answer = (got.rows, got.ledger, Vec::new());
    if place(program).ends_early {
        // Producers do not know that the rows are enough, and read on.
        answer.1 = expected.1.clone();
    }
    same(&answer, expected, &format!("{spreading:?} and batches of {cuts:?}"))?;
    Ok(true)
}

/// The law is not tested by programs that are refused.
#[test]
fn a_fair_share_of_programs_runs_on_several_machines() {
    let mut state = 7u64;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 48) as u16
    };
    let (mut travel, mut by_key) = (0, 0);
    for _ in 0..300 {
        let tape: Vec<u16> = (0..1000).map(|_| word()).collect();
        match needs(&Physical::new(&plan::groups(&mut Choices::new(tape)), &[])) {
            Ok(Needs::Key(_)) => by_key += 1,
            Ok(_) => travel += 1,
            Err(_) => {}
        }
    }
    assert!(travel > 40 && by_key > 40, "{travel} anyhow, {by_key} by key");
}
