//! The state that all workers share.

use super::ahead::Ahead;
use super::closings::Closings;
use super::exchange::{Exchange, block_len};
use super::gate::Gate;
use super::results::Results;
use super::stats_request::StatsRequest;
use super::waiters::Waiters;
use crate::feed::{Feed, Times};
use crate::limits::{BLOCKS, CLOSES_AHEAD, RING, TURN};
use crate::partitioning::Partitionings;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use weir_plan::place::Placement;
use weir_plan::{Input, Program, Stage};

/// The state that all workers share.
pub(super) struct SharedByWorkers<'a> {
    pub(super) workers: usize,
    pub(super) gate: Gate<Feed<'a>>,
    pub(super) ahead: Ahead,
    /// Where packets are spread by key.
    pub(super) exchange: Option<Exchange>,
    /// Where rows leave the workers at once.
    pub(super) results: Option<Results>,
    /// Batches of a block.
    pub(super) block_len: usize,
    pub(super) closings: Closings,
    pub(super) stats: StatsRequest,
    pub(super) waiters: Waiters,
    /// Units that were read: batches, or blocks of them where packets are spread by key.
    pub(super) read: AtomicU64,
    /// Units whose results were emitted.
    pub(super) done: AtomicU64,
    /// Closings that were found.
    pub(super) closes: AtomicU64,
    /// Closings that were emitted.
    pub(super) closed: AtomicU64,
    /// Whether no more is to be read.
    ended: AtomicBool,
    /// Whether that is only for the program to change.
    breaks: AtomicBool,
    /// Whether a worker panicked, and which did first: others do since it did.
    broken: AtomicBool,
    broke: AtomicUsize,
}

/// The rows and frames that leave the workers before windows close.
#[derive(Clone, Copy)]
pub(crate) struct AtOnce {
    /// Whether any rows or frames do.
    any: bool,
    /// Whether a row may become many on them, and each of these many again.
    is_nested: bool,
}

impl AtOnce {
    /// The rows and frames of a program that do.
    pub(crate) fn of(program: &Program, placement: &Placement) -> AtOnce {
        let pipelines = program.pipelines.iter().zip(&placement.pipelines);
        let packets = pipelines.filter(|(p, _)| p.input == Input::Packets);
        let mine = packets.map(|(p, placed)| &p.stages[..placed.sharded]);
        let at_once = |mine: &&[Stage]| {
            !matches!(mine.last(), Some(Stage::Summarize(_)))
                || mine.iter().any(|s| matches!(s, Stage::Ends(_)))
        };
        let many = |mine: &[Stage]| mine.iter().filter(|s| matches!(s, Stage::Each(_))).count();
        let mut mine = mine.filter(at_once).peekable();
        AtOnce { any: mine.peek().is_some(), is_nested: mine.any(|mine| many(mine) > 1) }
    }
}

impl<'a> SharedByWorkers<'a> {
    pub(super) fn new(
        partitionings: &Partitionings,
        feed: Feed<'a>,
        at_once: AtOnce,
    ) -> SharedByWorkers<'a> {
        let (workers, keyed) = (partitionings.workers, !partitionings.are_whole());
        SharedByWorkers {
            workers,
            gate: Gate::new(feed),
            ahead: Ahead::default(),
            exchange: keyed.then(|| Exchange::new(workers, partitionings.all.len())),
            results: at_once.any.then(|| Results::new(if keyed { workers } else { 1 })),
            block_len: block_len(workers, at_once.is_nested),
            closings: Closings::new(workers),
            stats: StatsRequest::default(),
            waiters: Waiters::default(),
            read: AtomicU64::new(0),
            done: AtomicU64::new(0),
            closes: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            breaks: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            broke: AtomicUsize::new(NOBODY),
        }
    }

    /// Whether there is room for what a turn reads. Asked with the feed in hand.
    pub(super) fn has_room(&self) -> bool {
        let closes = self.closes.load(Ordering::Acquire) - self.closed.load(Ordering::Acquire);
        let waiting = self.read.load(Ordering::Acquire) - self.done.load(Ordering::Acquire);
        let room = if self.exchange.is_some() { BLOCKS } else { RING - TURN + 1 };
        closes < CLOSES_AHEAD && (self.results.is_none() || (waiting as usize) < room)
    }

    /// Whether unit `number` is not to be processed yet, since many rows wait to be emitted before
    /// its own.
    pub(super) fn is_crowded(&self, number: u64) -> bool {
        self.results.as_ref().is_some_and(Results::are_many)
            && self.done.load(Ordering::Acquire) != number
    }

    /// Whether everything read so far has been emitted, as far as it can be.
    pub(super) fn is_drained(&self) -> bool {
        self.closes.load(Ordering::Acquire) == self.closed.load(Ordering::Acquire)
            && (self.results.is_none()
                || self.read.load(Ordering::Acquire) == self.done.load(Ordering::Acquire))
    }

    /// Opens the closings within a batch just read, with the feed in hand; returns the number of
    /// the first.
    pub(super) fn open_closings(&self, times: &Times) -> u64 {
        let first = self.closes.load(Ordering::Relaxed);
        let found = times.steps.iter().filter_map(|step| step.close);
        let n = found.map(|watermark| self.closings.open(watermark)).count();
        self.closes.store(first + n as u64, Ordering::Release);
        first
    }

    /// The feed, which is in hand, has no more.
    pub(super) fn end_of(&self, feed: &Feed<'_>) {
        self.breaks.store(feed.breaks(), Ordering::Release);
        self.end();
    }

    /// Nothing more is to be read.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waiters.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether the end is only for the program to change.
    pub(super) fn breaks(&self) -> bool {
        self.breaks.load(Ordering::Acquire)
    }

    /// Panics if a worker has: nothing that it had in hand will come.
    pub(super) fn assert_whole(&self) {
        assert!(!self.broken.load(Ordering::Acquire), "a {PANICKED}");
    }

    /// The worker that panicked first, if any did.
    pub(super) fn first_broken(&self) -> usize {
        self.broke.load(Ordering::Acquire)
    }
}

/// Words in the message of a worker that panics since another did.
pub(super) const PANICKED: &str = "worker panicked";

/// The number of no worker.
const NOBODY: usize = usize::MAX;

/// Wakes all others when its worker panics, so that none waits for that one.
pub(super) struct Alarm<'a, 'f> {
    pub(super) shared: &'a SharedByWorkers<'f>,
    pub(super) worker: usize,
}

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let (shared, set, order) = (self.shared, self.worker, Ordering::AcqRel);
            let _ = shared.broke.compare_exchange(NOBODY, set, order, Ordering::Acquire);
            shared.broken.store(true, Ordering::Release);
            shared.waiters.notify_all();
        }
    }
}
