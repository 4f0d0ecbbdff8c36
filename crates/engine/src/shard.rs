//! Several workers, each of which reads, processes, and hands over what it has.
//!
//! Workers are equal threads, the calling one among them; the others stay when the program changes
//! ([`threads`]). Each takes the feed, reads a few batches for itself and notes at which packets
//! windows close; then it lets the feed go and processes what it read, while the next one reads.
//! Reading is short (the records' headers and the time), and memory that it brings into a core's
//! cache is used by that core. A worker that waits for the feed has that memory fetched meanwhile
//! ([`ahead`]).
//!
//! - Where all state merges ([`whole`]), a batch belongs to the worker that read it.
//! - Where rows of a key must stay together in order ([`keyed`]), the worker that read a block of
//!   batches also [finds](spread) the worker of each packet, and [repartitions](exchange) them into
//!   batches for each worker; where pipelines need different keys, once for each of these ways. All
//!   workers go through the same blocks in order.
//! - Groups of windows that close are handed over window by window ([`closings`]); rows that leave
//!   at once wait for their turn ([`results`]). The calling thread, which owns the sink, emits both
//!   ([`coordinator`]); the order is that of the packets.
//!
//! Memory is bounded since reading waits: for results of the [`RING`](crate::limits::RING) batches
//! before, and for closings, of which at most [`CLOSES_AHEAD`](crate::limits::CLOSES_AHEAD) wait.
//! While [`ROW_BATCHES_AHEAD`](crate::limits::ROW_BATCHES_AHEAD) batches of rows wait to be
//! emitted, the only unit that is processed is the next to be emitted, which needs nothing but what
//! was read before it. No worker waits elsewhere with work in hand, and a worker that waits has
//! handed over everything it could: so there is always one that can go on. For a source that has
//! nothing at once only the calling thread waits, and only when everything read before was emitted
//! ([`gate`]).

mod ahead;
mod closings;
mod coordinator;
mod event_count;
mod exchange;
mod gate;
mod keyed;
mod results;
mod shared;
mod spread;
mod stats_request;
mod threads;
mod waiters;
mod whole;
mod worker;

use crate::feed::Feed;
use crate::level::Closed;
use crate::level::machine::MachineLevel;
use crate::level::worker::WorkerLevel;
use crate::outcome::RunError;
use crate::panics::{Panicked, caught};
use crate::partitioning::Partitionings;
use crate::progress::Progress;
use crate::rows::Sink;
use closings::{ClosingId, Closings};
use coordinator::Coordinator;
use keyed::KeyedTurns;
pub(crate) use shared::AtOnce;
use shared::{Alarm, PANICKED, SharedByWorkers};
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::Ordering;
use std::sync::mpsc;
pub(crate) use threads::WorkerThreads;
use whole::WholeTurns;
use worker::Worker;

/// The parts of a program, by where they run.
pub(crate) struct Parts<'a, 'e> {
    pub(crate) partitionings: &'a Arc<Partitionings>,
    pub(crate) at_once: AtOnce,
    /// Of each worker one for each of its lanes.
    pub(crate) workers: &'a mut [Vec<WorkerLevel>],
    pub(crate) machine: &'a mut MachineLevel<'e>,
}

/// Runs the workers' part, one worker on the calling thread and the others on `threads`; gives the
/// feed back.
pub(crate) fn run<'scope, 'f: 'scope>(
    parts: Parts<'_, '_>,
    feed: Feed<'f>,
    sink: &mut dyn Sink,
    mut progress: Progress<'_>,
    threads: &mut WorkerThreads<'scope, '_>,
) -> (Option<RunError>, Feed<'f>) {
    let Parts { partitionings, at_once, workers, machine } = parts;
    let shared = Arc::new(SharedByWorkers::new(partitionings, feed, at_once));
    let (mine, others) = workers.split_first_mut().expect("there are workers");
    let ended = start_others(others, &shared, partitionings, threads);
    let coordinator = Coordinator::new(machine, sink, progress.lend());
    let worker = Worker::new(0, &shared, mine, Some(coordinator));
    let mine = caught(|| work(worker, partitionings).expect("the coordinator comes back"));
    let mut theirs: Vec<_> = others.iter().map(|_| None).collect();
    for EndedWorker { number, levels, panicked } in ended {
        (others[number], theirs[number]) = (levels, panicked);
    }
    let coordinator = match mine {
        Ok(coordinator) if theirs.iter().all(Option::is_none) => coordinator,
        mine => {
            let all = std::iter::once(mine.err()).chain(theirs).collect();
            first_panic(all, &shared).go_on()
        }
    };
    let shared = Arc::into_inner(shared).expect("the workers have dropped theirs");
    #[cfg(test)]
    MOST_WAITING.set(shared.results.as_ref().map_or(0, |r| r.most.load(Ordering::Acquire)));
    if shared.stats.is_open() {
        // Asked again of those that run from here on.
        coordinator.progress.ask();
    }
    let feed = shared.gate.into_inner();
    let (_, mut closed) =
        shared.closings.take_closed(ClosingId::Last).expect("all workers have ended");
    if feed.began() && !feed.breaks() {
        coordinator.machine.know_until(Some(feed.clock().stands_at().0));
        coordinator.machine.finish(&mut closed, coordinator.sink);
    }
    (coordinator.error.or(coordinator.machine.take_error()), feed)
}

/// A worker of another thread, at its end.
struct EndedWorker {
    /// Its number among those of other threads.
    number: usize,
    levels: Vec<WorkerLevel>,
    panicked: Option<Panicked>,
}

/// Starts the workers of other threads; each comes back when it has ended.
fn start_others<'scope, 'f: 'scope>(
    others: &mut [Vec<WorkerLevel>],
    shared: &Arc<SharedByWorkers<'f>>,
    partitionings: &Arc<Partitionings>,
    threads: &mut WorkerThreads<'scope, '_>,
) -> mpsc::Receiver<EndedWorker> {
    let (sender, ended) = mpsc::channel();
    for (number, levels) in others.iter_mut().enumerate() {
        let (shared, partitionings) = (Arc::clone(shared), Arc::clone(partitionings));
        let (mut levels, sender) = (std::mem::take(levels), sender.clone());
        threads.start(number, move || {
            let worker = Worker::new(number + 1, &shared, &mut levels, None);
            let panicked = caught(|| drop(work(worker, &partitionings))).err();
            // The calling thread takes the feed out of it once all have come back.
            drop(shared);
            // It waits for all of them, unless it panicked.
            drop(sender.send(EndedWorker { number, levels, panicked }));
        });
    }
    ended
}

/// Works until there is nothing left; gives the coordinator back.
fn work<'c, 'e>(
    mut worker: Worker<'_, '_, 'c, 'e>,
    partitionings: &Partitionings,
) -> Option<Coordinator<'c, 'e>> {
    let _alarm = Alarm { shared: worker.shared, worker: worker.me };
    if partitionings.are_whole() {
        let mut whole = WholeTurns::default();
        worker.turns(partitionings, |worker| whole.turn(worker));
    } else {
        let mut keyed = KeyedTurns::new(partitionings, worker.me);
        worker.turns(partitionings, |worker| keyed.turn(worker));
    }
    worker.end()
}

/// The panic to report, of those of all workers. One that panics while it holds a lock poisons it,
/// so that others may panic before the first has said that it did: prefer one of its own making.
fn first_panic(mut panicked: Vec<Option<Panicked>>, shared: &SharedByWorkers<'_>) -> Panicked {
    let first = shared.first_broken().min(panicked.len() - 1);
    panicked.swap(0, first);
    let mut panicked: Vec<Panicked> = panicked.into_iter().flatten().collect();
    let own = panicked.iter().position(|p| !p.says(PANICKED)).unwrap_or(0);
    panicked.swap_remove(own)
}

/// The groups that workers hold of some pipelines, put together.
pub(crate) fn close(workers: &mut [Vec<WorkerLevel>], pipelines: &[usize]) -> Vec<Closed> {
    let closings = Closings::new(workers.len());
    let mut closed = Vec::new();
    for levels in workers {
        for level in levels {
            pipelines.iter().for_each(|&p| level.finish_one(p, &mut closed));
        }
        closings.hand_over(ClosingId::Last, &mut closed);
    }
    closings.take_closed(ClosingId::Last).map_or_else(Vec::new, |(_, closed)| closed)
}

#[cfg(test)]
thread_local! {
    /// The most batches of rows that waited in the last run that this thread called.
    static MOST_WAITING: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests;
