//! The law of the exchange: however the packets of a source are spread over producers, as the plan
//! allows, and whichever way their messages come, some of them twice, the rows and counts are those
//! of one run. Tests call this with programs and sources of any kind.

use super::producer::Producer;
use super::receiver::{Receipt, Receiver};
use super::refused::{Refused, needs};
use super::subset::Subset;
use super::writer::ProducerId;
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::rows::{Collect, Sink};
use crate::run::Options;
use crate::view::View;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::source::{FrameBatch, Source};
use weir_packet::walk::{Layers, classify};
use weir_plan::Value;
use weir_plan::keys::{KeyField, Network};
use weir_plan::physical::{Needs, Physical};

/// With one message in so many the receiver is lost, and goes on from what it saved before it. Of
/// many messages with about [`SAVED`] of all, since each time takes as long as all that it holds.
const SAVED_ONE_IN: u64 = 8;
const SAVED: u64 = 4;

/// How packets are spread, and how messages come.
#[derive(Clone, Copy, Debug)]
pub struct Spreading {
    /// How many producers there are.
    pub producers: u128,
    /// Draws the producer of each packet, or each key, and the order of messages.
    pub seed: u64,
}

/// What came out.
pub struct Exchanged {
    /// Output number and cells of each row.
    pub rows: Vec<(usize, Vec<Value>)>,
    /// All counts.
    pub ledger: Ledger,
    /// Messages there were, each counted once.
    pub messages: usize,
}

/// Runs the worker level of a plan in several producers over packets of one source each, and the
/// machine level over their messages. `source` gives the same packets each time.
///
/// # Errors
/// Where the plan can't be spread so.
///
/// # Panics
/// Where a producer fails, or a message is not taken.
pub fn exchange<S: Source>(
    plan: &Physical,
    functions: &Functions,
    source: impl Fn() -> S,
    options: &Options,
    spreading: Spreading,
) -> Result<Exchanged, Refused> {
    let needs = needs(plan)?;
    let mut messages = Vec::new();
    for probe in 0..spreading.producers {
        let producer = Producer::new(plan, functions, options, ProducerId { probe, epoch: 1 })?;
        let mut owners = Owners::new(&needs, spreading);
        let mut choose = |frames: &FrameBatch| owners.packets_of(probe, frames);
        let mut subset = Subset { choose: Some(&mut choose), is_first: probe == 0 };
        let outcome = producer.run_subset(&mut source(), &mut subset, &mut |message| {
            messages.push(message.to_vec());
            Ok(())
        });
        assert!(outcome.error.is_none(), "producer {probe}: {:?}", outcome.error);
    }
    let count = messages.len();
    let probes: Vec<u128> = (0..spreading.producers).collect();
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
    Ok(Exchanged { rows: sink.rows, ledger: outcome.ledger, messages: count })
}

/// The producer of each packet of a source, as the plan allows and a spreading draws.
///
/// # Errors
/// Where the plan can't be spread so.
pub fn owners(
    plan: &Physical,
    source: &mut dyn Source,
    spreading: Spreading,
) -> Result<Vec<u128>, Refused> {
    let mut owners = Owners::new(&needs(plan)?, spreading);
    let (mut frames, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut frames).is_ok_and(|more| more) {
        let drawn = owners.drawn(&frames);
        all.extend(drawn.into_iter().map(|drawn| u128::from(drawn) % spreading.producers));
    }
    Ok(all)
}

/// A life of a probe, which has packets and a clock of its own.
pub struct ProbeLife<S> {
    /// The probe and the life.
    pub id: ProducerId,
    /// Its packets.
    pub source: S,
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
pub fn exchange_lives<S: Source>(
    plan: &Physical,
    functions: &Functions,
    lives: Vec<ProbeLife<S>>,
    options: &Options,
    seed: u64,
    is_dropped: &dyn Fn(usize, usize) -> bool,
) -> Result<(Exchanged, u64), Refused> {
    let ids: Vec<ProducerId> = lives.iter().map(|life| life.id).collect();
    let mut lanes = BTreeMap::<u128, VecDeque<(u64, Vec<u8>)>>::new();
    let mut count = 0;
    for (n, ProbeLife { id, mut source }) in lives.into_iter().enumerate() {
        let (mut at, lane) = (0, lanes.entry(id.probe).or_default());
        let producer = Producer::new(plan, functions, options, id)?;
        let outcome = producer.run(&mut source, &mut |message| {
            if !is_dropped(n, at) {
                lane.push_back((id.epoch, message.to_vec()));
            }
            (at, count) = (at + 1, count + 1);
            Ok(())
        });
        assert!(outcome.error.is_none(), "{id:?}: {:?}", outcome.error);
    }
    let probes: Vec<u128> = lanes.keys().copied().collect();
    let mut receiver = Receiver::new(plan, functions, options, &probes)?;
    ids.iter().for_each(|id| receiver.begin_life(id.probe, id.epoch));
    let mut sink = Collect::default();
    sink.open(receiver.outputs()).expect("memory opens");
    let mut missing = 0;
    for turn in 0u64.. {
        let ready: Vec<u128> = lanes.keys().copied().collect();
        let Some(chosen) = hash((seed, turn)).checked_rem(ready.len() as u64) else { break };
        let probe = ready[chosen as usize];
        let Some((epoch, message)) = lanes.get_mut(&probe).and_then(VecDeque::pop_front) else {
            lanes.remove(&probe);
            receiver.set_idle(probe, &mut sink);
            continue;
        };
        match receiver.take(&message, &mut sink) {
            Ok(Receipt::Taken) => {}
            other => panic!("probe {probe}, life {epoch}: {other:?}"),
        }
        missing += receiver.skip_missing(probe, epoch, &mut sink);
    }
    let outcome = receiver.finish(&mut sink);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    Ok((Exchanged { rows: sink.rows, ledger: outcome.ledger, messages: count }, missing))
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

/// Finds which packets a producer gets.
struct Owners {
    spreading: Spreading,
    /// Fields of equal values in which packets are at one producer; `None`: any packet anywhere.
    key: Option<Vec<KeyField>>,
    layers: Layers,
    view: View,
}

impl Owners {
    fn new(needs: &Needs, spreading: Spreading) -> Owners {
        let key: Option<Vec<KeyField>> = match needs {
            Needs::Key(key) => Some(key.iter().copied().collect()),
            _ => None,
        };
        let fields: Vec<FieldId> = key.iter().flatten().map(|part| part.field).collect();
        let view = View::new(&fields);
        Owners { spreading, key, layers: Layers::new(), view }
    }

    fn packets_of(&mut self, probe: u128, frames: &FrameBatch) -> Bits {
        let (drawn, producers) = (self.drawn(frames), self.spreading.producers);
        let owner = |i: usize| u128::from(drawn[i]) % producers;
        (0..frames.len()).filter(|i| owner(*i) == probe).collect()
    }

    /// A number of each packet, which is that of its key.
    fn drawn(&mut self, frames: &FrameBatch) -> Vec<u64> {
        let seed = self.spreading.seed;
        let mut drawn: Vec<u64> = frames.seq().iter().map(|number| hash((seed, number))).collect();
        if let Some(key) = &self.key {
            classify(frames, &mut self.layers);
            self.view.next_batch();
            drawn = vec![seed; frames.len()];
            let mut packets = self.view.packets(frames, &self.layers);
            let all = Bits::first(frames.len());
            for (f, KeyField { field: id, network }) in key.iter().enumerate() {
                if id.info().ty.is_text() {
                    let mut column = Column::new(id.info().ty.repr());
                    packets.texts(*id, all, &mut column, |text| hash(text));
                    mix(&mut drawn, &column, *network);
                } else {
                    packets.ensure(f, all);
                    mix(&mut drawn, packets.column(f), *network);
                }
            }
        }
        drawn
    }
}

/// Takes the values of a column into hashes, or the networks that they are in.
fn mix(drawn: &mut [u64], column: &Column, network: Option<Network>) {
    for (i, drawn) in drawn.iter_mut().enumerate() {
        let value = column.present.has(i).then(|| column.raw(i));
        let value = value.map(|v| network.map_or(v, |network| network.of(v)));
        *drawn = hash((*drawn, value));
    }
}
