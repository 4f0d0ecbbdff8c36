//! The code that wakes workers, run through many schedules by a model checker (shuttle): the event
//! count, its waiters and the gate are the engine's own files, compiled with the model's locks
//! and atomics. Workers, their results and the wire are models.
//!
//! The wire is the peer of a network function: it sends no more before its packets were emitted.
//! It has no time-out, so that a wake-up that is lost is a deadlock, which the checker finds. With
//! time-outs, as in a real source, it would only be slow.

#![allow(dead_code, reason = "the engine uses all of these files")]

mod sync {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, TryLockError, atomic};
}

mod limits {
    /// To look once more is as good as to look often.
    pub(crate) const SPINS: usize = 1;

    /// So few that workers come to sit on the bench.
    pub(crate) const SEATS: usize = 1;
}

#[path = "../src/shard/event_count.rs"]
mod event_count;
#[path = "../src/shard/gate.rs"]
mod gate;
#[path = "../src/supply.rs"]
mod supply;
#[path = "../src/shard/waiters.rs"]
mod waiters;

use gate::{Gate, Reader};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;
use shuttle::{Config, Runner};
use supply::Supply;
use waiters::Waiters;

/// Schedules of each case: many more than it takes to find what was wrong.
const SCHEDULES: usize = 3000;

/// Batches that a worker reads at a time.
const TURN: u64 = 2;

/// The other end of the wire: it has sent some batches and waits for answers.
struct Peer {
    /// Batches that were put out.
    answered: Mutex<u64>,
    answer: Condvar,
    /// Batches that it sends without an answer, and all in all.
    window: u64,
    all: u64,
}

/// The source.
struct Wire {
    peer: Arc<Peer>,
    /// Batches that were read.
    read: u64,
}

impl Wire {
    /// Reads the next batch, as soon as the peer sends it; `None` at the end.
    fn fill(&mut self) -> Option<u64> {
        let number = self.read;
        if number == self.peer.all {
            return None;
        }
        let mut answered = self.peer.answered.lock().expect("no panic");
        while number >= *answered + self.peer.window {
            answered = self.peer.answer.wait(answered).expect("no panic");
        }
        self.read += 1;
        Some(number)
    }
}

impl Supply for Wire {
    fn is_ready(&mut self) -> bool {
        let answered = *self.peer.answered.lock().expect("no panic");
        self.read == self.peer.all || self.read < answered + self.peer.window
    }
}

/// When a worker reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// As the gate says.
    Gate,
    /// As it was: the calling thread held back only after a batch that was not full, and nobody
    /// asked within a turn. Here all batches are full.
    FullBatches,
    /// The gate's, but nobody wakes those who were turned away.
    Silent,
    /// The gate's, but the end is told to those with a seat only.
    QuietEnd,
}

struct Shared {
    rule: Rule,
    gate: Gate<Wire>,
    waiters: Waiters,
    /// Notified instead where a rule is silent.
    unheard: Waiters,
    peer: Arc<Peer>,
    /// Of each batch, whether its result is there.
    results: Vec<AtomicBool>,
    read: AtomicU64,
    done: AtomicU64,
    ended: AtomicBool,
}

impl Shared {
    fn is_drained(&self) -> bool {
        self.read.load(Ordering::SeqCst) == self.done.load(Ordering::SeqCst)
    }

    /// Emits what is ready; returns whether there was anything.
    fn drain(&self) -> bool {
        let mut any = false;
        loop {
            let number = self.done.load(Ordering::SeqCst);
            let Some(result) = self.results.get(number as usize) else { break };
            if !result.load(Ordering::SeqCst) {
                break;
            }
            self.done.store(number + 1, Ordering::SeqCst);
            *self.peer.answered.lock().expect("no panic") += 1;
            self.peer.answer.notify_all();
            any = true;
        }
        if any {
            self.waiters.notify();
        }
        any
    }

    /// Reads some batches; `None` where this worker has to wait.
    fn read(&self, reader: Reader) -> Option<Vec<u64>> {
        let waiters = if self.rule == Rule::Silent { &self.unheard } else { &self.waiters };
        let mut feed = self.gate.enter(reader, waiters)?;
        let may_read = self.rule == Rule::FullBatches || feed.may_read(|| self.is_drained());
        if !may_read {
            return None;
        }
        let mut batches = Vec::new();
        while (batches.len() as u64) < TURN {
            let Some(number) = feed.fill() else {
                self.ended.store(true, Ordering::SeqCst);
                match self.rule {
                    Rule::QuietEnd => self.waiters.notify(),
                    _ => self.waiters.notify_all(),
                }
                break;
            };
            batches.push(number);
            self.read.fetch_add(1, Ordering::SeqCst);
            if !feed.has_read() && self.rule != Rule::FullBatches {
                break;
            }
        }
        Some(batches)
    }

    /// The work of a worker until the end.
    fn work(&self, reader: Reader) {
        loop {
            let seen = self.waiters.current();
            let drained = reader == Reader::Caller && self.drain();
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            match self.read(reader) {
                Some(batches) => {
                    for number in batches {
                        self.results[number as usize].store(true, Ordering::SeqCst);
                        self.waiters.notify();
                    }
                }
                None if drained => {}
                None if reader == Reader::Helper => {
                    if !self.waiters.wait_for_feed(seen) {
                        self.waiters.sleep(seen);
                    }
                }
                None => self.waiters.wait(seen),
            }
        }
    }
}

/// One run: so many workers, and a wire that brings `all` batches, `window` of them without an
/// answer.
fn run(rule: Rule, workers: usize, window: u64, all: u64) {
    let answered = Mutex::new(0);
    let peer = Arc::new(Peer { answered, answer: Condvar::new(), window, all });
    let shared = Arc::new(Shared {
        rule,
        gate: Gate::new(Wire { peer: Arc::clone(&peer), read: 0 }),
        waiters: Waiters::default(),
        unheard: Waiters::default(),
        peer,
        results: (0..all).map(|_| AtomicBool::new(false)).collect(),
        read: AtomicU64::new(0),
        done: AtomicU64::new(0),
        ended: AtomicBool::new(false),
    });
    let helpers: Vec<_> = (1..workers)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(Reader::Helper))
        })
        .collect();
    shared.work(Reader::Caller);
    while !shared.is_drained() {
        let seen = shared.waiters.current();
        if !shared.drain() {
            shared.waiters.wait(seen);
        }
    }
    helpers.into_iter().for_each(|helper| helper.join().expect("no panic"));
    assert_eq!(shared.done.load(Ordering::SeqCst), all);
}

/// Draws the same schedules each time, so that a failure comes again.
const SEED: u64 = 7;

/// Runs a case through so many schedules: random ones, and those with few changes of thread, by
/// which some wake-ups are lost more often.
fn check(rule: Rule, workers: usize, window: u64, schedules: usize) {
    let all = 6;
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    Runner::new(random, Config::default()).run(move || run(rule, workers, window, all));
    if workers > 1 {
        let few_changes = PctScheduler::new_from_seed(SEED, 4, schedules);
        Runner::new(few_changes, Config::default()).run(move || run(rule, workers, window, all));
    }
}

#[test]
fn no_packet_waits_for_a_source_that_waits_for_it() {
    for workers in [1, 2, 3, 4] {
        for window in [1, 2, 3, 5] {
            check(Rule::Gate, workers, window, SCHEDULES);
        }
    }
}

/// Whether some schedule of a case fails. The checker says which on standard error.
fn fails(rule: Rule, workers: usize, window: u64) -> bool {
    std::panic::catch_unwind(|| check(rule, workers, window, 10 * SCHEDULES)).is_err()
}

#[test]
fn the_model_finds_what_was_wrong() {
    // A worker alone asked for a second batch with the first in hand.
    assert!(fails(Rule::FullBatches, 1, 1));
    // The calling thread waited for the source with another's result to emit.
    assert!(fails(Rule::FullBatches, 2, 3));
    // The calling thread sleeps since another had the gate, and nobody tells it to come.
    assert!(fails(Rule::Silent, 2, 1));
    // A worker sleeps on the bench, and nobody tells it that the run has ended.
    assert!(fails(Rule::QuietEnd, 3, 5));
}
