//! The law of the exchange: however the packets of a source are spread over producers, as the plan
//! allows, and whichever way their messages come, some of them twice, the rows and counts are those
//! of one run. Tests call this with programs and sources of any kind.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use weir_engine::counters::Ledger;
use weir_engine::exchange::{
    Message, Producer, ProducerId, Receipt, Receiver, Refused, Subset, needs,
};
use weir_engine::functions::Functions;
use weir_engine::rows::{Collect, Sink};
use weir_engine::run::Options;
use weir_model::TimeRules;
use weir_packet::bits::Bits;
use weir_packet::source::{FrameBatch, Source};
use weir_plan::keys::KeyField;
use weir_plan::physical::{Needs, Physical};
use weir_plan::{Stage, Value};

/// With one message in so many the receiver is lost, and goes on from what it saved before it. Of
/// many messages with about [`SAVED`] of all, since each time takes as long as all that it holds.
const SAVED_ONE_IN: u64 = 8;
const SAVED: u64 = 4;

/// How packets are spread, and how messages come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spreading {
    /// How many producers there are.
    pub(crate) producers: u128,
    /// Draws the producer of each packet, or each key, and the order of messages.
    pub(crate) seed: u64,
}

/// The rows and counts that came out.
pub(crate) struct Exchanged {
    /// Output number and cells of each row.
    pub(crate) rows: Vec<(usize, Vec<Value>)>,
    /// All counts.
    pub(crate) ledger: Ledger,
}

/// Runs the worker level of a plan in several producers over packets of one source each, and the
/// machine level over their messages. `source` gives the same packets each time.
///
/// # Errors
/// Where the plan can't be spread so.
///
/// # Panics
/// Where a producer fails, or a message is not taken.
pub(crate) fn exchange<S: Source>(
    plan: &Physical,
    functions: &Functions,
    source: impl Fn() -> S,
    options: &Options,
    spreading: Spreading,
) -> Result<Exchanged, Refused> {
    let owners = owners(plan, &mut source(), spreading)?;
    let mut messages = Vec::new();
    for probe in 0..spreading.producers {
        let producer = Producer::new(plan, functions, options, ProducerId { probe, epoch: 1 })?;
        let mut owners = owners.iter();
        let mut choose = |frames: &FrameBatch| -> Bits {
            let drawn = owners.by_ref().take(frames.len()).enumerate();
            drawn.filter(|(_, owner)| **owner == probe).map(|(i, _)| i).collect()
        };
        let mut subset = Subset { choose: Some(&mut choose), is_first: probe == 0 };
        let outcome = producer.run_subset(&mut source(), &mut subset, &mut |message| {
            messages.push(message.to_vec());
            Ok(())
        });
        assert!(outcome.error.is_none(), "producer {probe}: {:?}", outcome.error);
    }
    let (messages, probes) = passed_on(plan, functions, options, messages, spreading)?;
    // Each ends by one.
    let count = messages.len();
    assert!(count >= probes.len(), "{count} messages");
    let mut receiver = Receiver::new(plan, functions, options, &probes)?;
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    let saved_one_in = SAVED_ONE_IN.max(count as u64 / SAVED);
    for (n, message) in (0u64..).zip(arrivals(messages, spreading.seed)) {
        let drawn = hash((spreading.seed, "lost", n));
        if drawn.is_multiple_of(saved_one_in) {
            let saved = receiver.save();
            receiver = Receiver::restore(plan, functions, options, &saved).expect("its own state");
            let changed = changed(saved, drawn / saved_one_in);
            if let Ok(mut other) = Receiver::restore(plan, functions, options, &changed) {
                // It may say anything, but does not panic.
                let mut sink = Collect::default();
                sink.open(other.outputs()).expect("memory opens");
                let _ = other.take(&message, &mut sink);
                other.finish(&mut sink);
            }
        }
        match receiver.take(&message, &mut sink) {
            Ok(Receipt::Taken | Receipt::Seen) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(receiver.open_probes().count(), 0, "all have ended");
    let outcome = receiver.finish(&mut sink);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    Ok(Exchanged { rows: sink.rows, ledger: outcome.ledger })
}

/// How the messages of all producers come to the last receiver, and which producers it has: some of
/// them, as the seed draws, go through one merge, or two beside each other, or two of which the one
/// takes what the other passes on.
fn passed_on(
    plan: &Physical,
    functions: &Functions,
    options: &Options,
    mut messages: Vec<Vec<u8>>,
    spreading: Spreading,
) -> Result<(Vec<Vec<u8>>, Vec<u128>), Refused> {
    let mut probes: Vec<u128> = (0..spreading.producers).collect();
    for merge in 0..hash((spreading.seed, "merges")) % 3 {
        let (own, rest): (Vec<u128>, Vec<u128>) = (probes.iter())
            .partition(|probe| hash((spreading.seed, merge, "passes", probe)).is_multiple_of(2));
        let (passed, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|bytes| own.contains(&probe_of(bytes)));
        let id = ProducerId { probe: u128::MAX - u128::from(merge), epoch: u64::MAX };
        let out = Rc::<RefCell<Vec<Vec<u8>>>>::default();
        let to = Rc::clone(&out);
        let send = move |message: &[u8]| {
            to.borrow_mut().push(message.to_vec());
            Ok(())
        };
        let send = Box::new(send);
        let mut receiver = Receiver::passing_on(plan, functions, options, &own, id, send)?;
        let mut sink = Collect::default();
        for message in arrivals(passed, spreading.seed ^ merge) {
            match receiver.take(&message, &mut sink) {
                Ok(Receipt::Taken | Receipt::Seen) => {}
                other => panic!("{other:?}"),
            }
        }
        let outcome = receiver.finish(&mut sink);
        assert!(outcome.error.is_none() && sink.rows.is_empty(), "{:?}", outcome.error);
        messages = others;
        messages.append(&mut out.take());
        probes = rest;
        probes.push(id.probe);
    }
    Ok((messages, probes))
}

fn probe_of(message: &[u8]) -> u128 {
    Message::read(message).map_or(0, |message| message.probe)
}

/// The producer of each packet of a source, as the plan allows and a spreading draws.
///
/// # Errors
/// Where the plan can't be spread so.
pub(crate) fn owners(
    plan: &Physical,
    source: &mut dyn Source,
    spreading: Spreading,
) -> Result<Vec<u128>, Refused> {
    let mut drawn = Vec::new();
    match needs(plan)? {
        Needs::Key(key) => {
            let keys = values(&key.iter().copied().collect::<Vec<_>>(), source);
            drawn.extend(keys.iter().map(|key| hash((spreading.seed, key))));
        }
        _ => {
            let mut frames = FrameBatch::new();
            while source.fill(&mut frames).is_ok_and(|more| more) {
                drawn.extend(frames.seq().iter().map(|number| hash((spreading.seed, number))));
            }
        }
    }
    Ok(drawn.into_iter().map(|drawn| u128::from(drawn) % spreading.producers).collect())
}

/// The values of these parts of a key, of each packet of a source, as the naive model reads them.
fn values(parts: &[KeyField], source: &mut dyn Source) -> Vec<String> {
    let columns = parts.iter().enumerate();
    let columns = columns.map(|(i, part)| (i.to_string(), part.expr())).collect();
    let program = weir_model::program(vec![Stage::Project { columns }]);
    let rules = TimeRules { lateness_ns: 0, jump_ns: i64::MAX };
    let answer = weir_model::run_whole(&program, &Functions::default(), source, &rules);
    answer.rows.iter().map(|(_, cells)| format!("{cells:?}")).collect()
}

/// A state of which some bytes are changed, or the end is missing.
fn changed(mut state: Vec<u8>, drawn: u64) -> Vec<u8> {
    let at = (drawn >> 8) as usize % state.len();
    let width = [1, 1, 8, 8][drawn as usize % 4].min(state.len() - at);
    let byte = |old: u8| match drawn >> 2 & 7 {
        0 => 0,
        1 => 1,
        2 => u8::MAX,
        3 => old ^ 0x80,
        4 => old ^ 1,
        5 => old.wrapping_add(1),
        _ => old.wrapping_sub(1),
    };
    state[at..at + width].iter_mut().for_each(|old| *old = byte(*old));
    if drawn >> 5 & 7 == 7 {
        state.truncate(at);
    }
    state
}

/// The messages in the order they come: with an even seed any, with an odd one almost as they were
/// sent. A third of them comes twice.
fn arrivals(messages: Vec<Vec<u8>>, seed: u64) -> Vec<Vec<u8>> {
    let near = messages.len() as u64 / 10 + 2;
    let most = if seed.is_multiple_of(2) { u64::MAX } else { near };
    let mut order = Vec::new();
    for (n, message) in (0u64..).zip(messages) {
        for copy in 0..1 + u64::from(hash((seed, n)).is_multiple_of(3)) {
            let delay = hash((seed, n, copy)) % most;
            let place = if most == near { n + delay } else { delay };
            order.push((place, message.clone()));
        }
    }
    order.sort_by_key(|(place, _)| *place);
    order.into_iter().map(|(_, message)| message).collect()
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
