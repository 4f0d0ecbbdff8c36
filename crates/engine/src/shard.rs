//! Several workers, each of which reads, processes, and hands over what it has.
//!
//! Workers are equal threads, the calling one among them. Each takes the feed, reads a few batches
//! for itself and says at which packets windows close; then it lets the feed go and processes what
//! it read, while the next one reads. Reading is short (the records' headers and the time), and
//! memory that it brings into a core's cache is used by that core. Who waits for the feed has that
//! memory fetched meanwhile ([`ahead`]).
//!
//! - Where all state merges ([`whole`]), a batch belongs to the worker that read it.
//! - Where rows of a key must stay together in order ([`keyed`]), the worker that read a bundle of
//!   batches also [says](spread) of each packet whose it is, and [deals](bundles) them out, put
//!   together to batches for each worker; where pipelines need different keys, for each of these
//!   ways. All workers go through the same bundles in order.
//! - What closes is handed over window by window ([`closings`]); rows that leave at once wait for
//!   their turn ([`results`]). Both are put out by the calling thread ([`hub`]), since the sink is
//!   its own; the order is that of the packets.
//!
//! Memory is bounded since reading waits: for results that are [`RING`] batches behind, and for
//! closings, [`CLOSES_AHEAD`] of them. While [`LOTS_AHEAD`](crate::limits::LOTS_AHEAD) lots of rows
//! wait to be put out, the only batch that is processed is the next to be put out, which needs
//! nothing but what was read before it. Nobody waits elsewhere with work in hand, and who waits has
//! handed over everything it could: so there is always one who can go on. For a source that
//! has nothing at once only the calling thread waits, and only when everything read before was put
//! out ([`gate`]).

mod ahead;
mod bell;
mod bundles;
mod census;
mod closings;
mod gate;
mod hub;
mod keyed;
mod results;
mod spread;
mod whole;

use crate::counters::Ledger;
use crate::feed::{Feed, Times};
use crate::lanes::Lanes;
use crate::level::machine::MachineLevel;
use crate::level::worker::{WorkerLevel, count_worker};
use crate::level::{Channel, Closed};
use crate::limits::{BUNDLES, CLOSES_AHEAD, RING, TURN};
use crate::outcome::RunError;
use crate::panics::{Panicked, caught};
use crate::progress::Progress;
use crate::rows::{Rows, Sink};
use crate::step::StepOutput;
use ahead::Ahead;
use bell::Bell;
use bundles::{Bundles, bundle_len};
use census::Census;
use closings::{Closings, Which};
use gate::{Gate, Pass, Reader};
use hub::Hub;
use keyed::Keyed;
use results::{Part, Results};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use weir_plan::place::Placement;
use weir_plan::{Program, Stage};
use whole::Whole;

/// What all workers share.
struct Shared<'a> {
    workers: usize,
    gate: Gate<Feed<'a>>,
    ahead: Ahead,
    /// Where packets are spread by key.
    bundles: Option<Bundles>,
    /// Where rows leave the workers at once.
    results: Option<Results>,
    /// Batches of a bundle.
    bundle_len: usize,
    closings: Closings,
    census: Census,
    bell: Bell,
    /// Batches read, or bundles of them where packets are spread by key.
    read: AtomicU64,
    /// Batches whose results were put out.
    done: AtomicU64,
    /// Closings that were found.
    closes: AtomicU64,
    /// Closings that were put out.
    closed: AtomicU64,
    /// Whether no more is to be read.
    ended: AtomicBool,
    /// Whether that is only for what runs to change.
    breaks: AtomicBool,
    /// Whether a worker panicked, and which did first: others do since it did.
    broken: AtomicBool,
    broke: AtomicUsize,
}

/// What of a program runs where.
pub(crate) struct Parts<'a, 'e> {
    pub(crate) lanes: &'a Lanes,
    pub(crate) at_once: AtOnce,
    /// Of each worker one for each of its lanes.
    pub(crate) workers: &'a mut [Vec<WorkerLevel>],
    pub(crate) machine: &'a mut MachineLevel<'e>,
}

/// Runs the workers' part on as many threads as there are workers; gives the feed back.
pub(crate) fn run<'f>(
    parts: Parts<'_, '_>,
    feed: Feed<'f>,
    sink: &mut dyn Sink,
    mut progress: Progress<'_>,
) -> (Option<RunError>, Feed<'f>) {
    let Parts { lanes, at_once, workers, machine } = parts;
    let shared = Shared::new(lanes, feed, at_once);
    let (mine, others) = workers.split_first_mut().expect("there are workers");
    let shared_ref = &shared;
    let hub = thread::scope(|scope| {
        let mut started = Vec::new();
        for (me, levels) in others.iter_mut().enumerate() {
            started.push(scope.spawn(move || {
                caught(|| drop(Worker::new(me + 1, shared_ref, levels, None).run(lanes)))
            }));
        }
        let hub = Hub::new(machine, sink, progress.lend());
        let worker = Worker::new(0, shared_ref, mine, Some(hub));
        let mine = caught(|| worker.run(lanes).expect("the hub comes back"));
        let theirs = started.into_iter().map(|other| other.join().expect("panics are caught"));
        let theirs: Vec<_> = theirs.map(Result::err).collect();
        let hub = match mine {
            Ok(hub) if theirs.iter().all(Option::is_none) => return hub,
            mine => mine.err(),
        };
        let mut panicked: Vec<_> = std::iter::once(hub).chain(theirs).collect();
        let first = shared_ref.broke.load(Ordering::Acquire).min(panicked.len() - 1);
        panicked.swap(0, first);
        let mut panicked: Vec<Panicked> = panicked.into_iter().flatten().collect();
        // Who had a lock is found out before it could tell.
        let own = panicked.iter().position(|p| !p.says(PANICKED)).unwrap_or(0);
        panicked.swap_remove(own).go_on()
    });
    #[cfg(test)]
    MOST_LOTS.set(shared.results.as_ref().map_or(0, |r| r.most.load(Ordering::Acquire)));
    if shared.census.is_open() {
        // Asked again of those that run from here on.
        hub.progress.ask();
    }
    let feed = shared.gate.into_inner();
    let (_, mut closed) = shared.closings.take(Which::Last).expect("all workers have ended");
    if feed.began() && !feed.breaks() {
        hub.machine.finish(&mut closed, hub.sink);
    }
    (hub.error.or(hub.machine.take_error()), feed)
}

/// What workers hold of some pipelines, put together.
pub(crate) fn close(workers: &mut [Vec<WorkerLevel>], pipelines: &[usize]) -> Vec<Closed> {
    let closings = Closings::new(workers.len());
    let mut closed = Vec::new();
    for levels in workers {
        for level in levels {
            pipelines.iter().for_each(|&p| level.finish_one(p, &mut closed));
        }
        closings.hand_over(Which::Last, &mut closed);
    }
    closings.take(Which::Last).map_or_else(Vec::new, |(_, closed)| closed)
}

/// What leaves the workers before windows close.
#[derive(Clone, Copy)]
pub(crate) struct AtOnce {
    /// Whether any rows or frames do.
    any: bool,
    /// Whether a row may become many on them, and each of these many again.
    is_nested: bool,
}

impl AtOnce {
    /// What does of a program.
    pub(crate) fn of(program: &Program, placement: &Placement) -> AtOnce {
        let pipelines = program.pipelines.iter().zip(&placement.pipelines);
        let packets = pipelines.filter(|(p, _)| p.input == weir_plan::Input::Packets);
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

impl<'a> Shared<'a> {
    fn new(lanes: &Lanes, feed: Feed<'a>, at_once: AtOnce) -> Shared<'a> {
        let (workers, keyed) = (lanes.workers, !lanes.are_whole());
        Shared {
            workers,
            gate: Gate::new(feed),
            ahead: Ahead::default(),
            bundles: keyed.then(|| Bundles::new(workers, lanes.lanes.len())),
            results: at_once.any.then(|| Results::new(if keyed { workers } else { 1 })),
            bundle_len: bundle_len(workers, at_once.is_nested),
            closings: Closings::new(workers),
            census: Census::default(),
            bell: Bell::default(),
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
    fn has_room(&self) -> bool {
        let closes = self.closes.load(Ordering::Acquire) - self.closed.load(Ordering::Acquire);
        let behind = self.read.load(Ordering::Acquire) - self.done.load(Ordering::Acquire);
        let room = if self.bundles.is_some() { BUNDLES } else { RING - TURN + 1 };
        closes < CLOSES_AHEAD && (self.results.is_none() || (behind as usize) < room)
    }

    /// Whether batch (or bundle) `number` is not to be processed yet, since many rows wait to be
    /// put out before its own.
    fn is_crowded(&self, number: u64) -> bool {
        self.results.as_ref().is_some_and(Results::are_many)
            && self.done.load(Ordering::Acquire) != number
    }

    /// Whether everything read so far has been put out, as far as it can be.
    fn is_drained(&self) -> bool {
        self.closes.load(Ordering::Acquire) == self.closed.load(Ordering::Acquire)
            && (self.results.is_none()
                || self.read.load(Ordering::Acquire) == self.done.load(Ordering::Acquire))
    }

    /// Opens the closings within a batch just read, with the feed in hand; returns the number of
    /// the first.
    fn open_closings(&self, times: &Times) -> u64 {
        let first = self.closes.load(Ordering::Relaxed);
        let found = times.steps.iter().filter_map(|step| step.close);
        let n = found.map(|watermark| self.closings.open(watermark)).count();
        self.closes.store(first + n as u64, Ordering::Release);
        first
    }

    /// The feed, which is in hand, has no more.
    fn end_of(&self, feed: &Feed<'_>) {
        self.breaks.store(feed.breaks(), Ordering::Release);
        self.end();
    }

    /// Nothing more is to be read.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.bell.ring();
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// What a worker found to do.
#[derive(PartialEq, Eq)]
enum Turn {
    /// Something, and it is done.
    Work,
    /// Nothing for now.
    Wait,
    /// Nothing ever again.
    End,
}

/// One worker.
struct Worker<'a, 'f, 'h, 'e> {
    me: usize,
    shared: &'a Shared<'f>,
    /// One for each of its lanes.
    levels: &'a mut [WorkerLevel],
    /// With the calling thread.
    hub: Option<Hub<'h, 'e>>,
    closer: Closer<'a, 'f>,
    /// The last census that it answered.
    census: u64,
}

impl<'a, 'f, 'h, 'e> Worker<'a, 'f, 'h, 'e> {
    fn new(
        me: usize,
        shared: &'a Shared<'f>,
        levels: &'a mut [WorkerLevel],
        hub: Option<Hub<'h, 'e>>,
    ) -> Worker<'a, 'f, 'h, 'e> {
        let closer = Closer { shared, closes: 0, closed: Vec::new() };
        Worker { me, shared, levels, hub, closer, census: 0 }
    }

    /// Adds what was counted to the ledger.
    fn count(&self, lanes: &Lanes, ledger: &mut Ledger) {
        count_worker(self.levels, &lanes.numbers_of(self.me), self.me, ledger);
    }

    /// Begins a census if somebody asks for one, answers it, and tells what came of it.
    fn census(&mut self, lanes: &Lanes) {
        let shared = self.shared;
        if self.hub.as_ref().is_some_and(|hub| hub.progress.is_asked()) {
            shared.census.begin();
            shared.bell.ring();
        }
        let number = shared.census.number();
        if self.census == number {
            return;
        }
        let Some(hub) = &self.hub else {
            self.census = number;
            shared.census.answer(|ledger| self.count(lanes, ledger));
            return shared.bell.ring();
        };
        // The last to answer, so that it is over with that.
        if let Some(mut ledger) = shared.census.end(shared.workers - 1) {
            hub.machine.count(&mut ledger);
            self.count(lanes, &mut ledger);
            let answer = |feed: &Feed<'_>| hub.progress.answer(ledger, feed, &*hub.sink);
            shared.gate.look(&shared.bell, answer);
            self.census = number;
        }
    }

    /// Works until there is nothing left; gives the hub back.
    fn run(mut self, lanes: &Lanes) -> Option<Hub<'h, 'e>> {
        let shared = self.shared;
        let _alarm = Alarm(shared, self.me);
        if lanes.are_whole() {
            let mut whole = Whole::default();
            self.turns(lanes, |worker| whole.turn(worker));
        } else {
            let mut keyed = Keyed::new(lanes, self.me);
            self.turns(lanes, |worker| keyed.turn(worker));
        }
        if !shared.breaks.load(Ordering::Acquire) {
            self.levels.iter_mut().for_each(|level| level.finish(&mut self.closer.closed));
        }
        shared.closings.hand_over(Which::Last, &mut self.closer.closed);
        shared.bell.ring();
        // The rest is for the hub to put out.
        let hub = self.hub.as_mut()?;
        loop {
            let heard = shared.bell.heard();
            assert!(!shared.broken.load(Ordering::Acquire), "a worker panicked");
            hub.drain(shared);
            if shared.closings.are_over() && shared.is_drained() {
                break;
            }
            shared.bell.wait(heard);
        }
        self.hub
    }

    /// Takes turns until the end.
    fn turns(&mut self, lanes: &Lanes, mut turn: impl FnMut(&mut Self) -> Turn) {
        let shared = self.shared;
        loop {
            let heard = shared.bell.heard();
            assert!(!shared.broken.load(Ordering::Acquire), "a worker panicked");
            self.census(lanes);
            let drained = self.hub.as_mut().is_some_and(|hub| hub.drain(shared));
            match turn(self) {
                Turn::Work => {}
                Turn::Wait if drained => {}
                Turn::Wait => shared.bell.wait(heard),
                Turn::End => return,
            }
        }
    }

    /// Waits until batch `number` may be processed. The calling thread puts out meanwhile.
    fn wait_while_crowded(&mut self, number: u64) {
        let shared = self.shared;
        loop {
            let heard = shared.bell.heard();
            assert!(!shared.broken.load(Ordering::Acquire), "a worker panicked");
            if !shared.is_crowded(number) {
                return;
            }
            if !self.hub.as_mut().is_some_and(|hub| hub.drain(shared)) {
                shared.bell.wait(heard);
            }
        }
    }

    /// The feed, if it is this worker's turn to go to it.
    fn enter(&self) -> Option<Pass<'a, Feed<'f>>> {
        let reader = if self.hub.is_some() { Reader::Caller } else { Reader::Helper };
        self.shared.gate.enter(reader, &self.shared.bell)
    }

    /// Whether this worker may read, which may mean to wait for the source.
    fn may_read(&self, feed: &mut Pass<'_, Feed<'_>>) -> bool {
        self.shared.has_room() && feed.may_read(|| self.shared.is_drained())
    }

    /// Closes this worker's windows up to the closing before number `until`.
    fn close_until(&mut self, until: u64) {
        self.closer.close_until(self.levels, until);
    }
}

/// Closes a worker's windows, and hands their groups over.
struct Closer<'a, 'f> {
    shared: &'a Shared<'f>,
    /// Closings that groups were handed over for.
    closes: u64,
    /// What closed just now.
    closed: Vec<Closed>,
}

impl Closer<'_, '_> {
    fn close_until(&mut self, levels: &mut [WorkerLevel], until: u64) {
        while self.closes < until {
            let closings = &self.shared.closings;
            let which = Which::Number(self.closes);
            let watermark = closings.watermark(which);
            for level in &mut *levels {
                level.watermark(watermark, &mut self.closed);
            }
            for Closed { pipeline, .. } in &self.closed {
                if let Some(level) = levels.iter_mut().find(|level| level.runs(pipeline.0))
                    && let Some(groups) = closings.take_spent(*pipeline)
                {
                    level.recycle(*pipeline, groups);
                }
            }
            let last = closings.hand_over(which, &mut self.closed);
            self.closes += 1;
            if last {
                self.shared.bell.ring();
            }
        }
    }
}

/// Keeps what a worker puts out until its turn.
struct Stored<'w, 'a, 'f> {
    closer: &'w mut Closer<'a, 'f>,
    /// The closing before the next step that has one.
    close: u64,
    /// Takes rows; `None` where none leave at once.
    part: Option<&'w mut Part>,
}

impl StepOutput for Stored<'_, '_, '_> {
    fn close(&mut self, _step: usize, levels: &mut [WorkerLevel]) {
        self.close += 1;
        self.closer.close_until(levels, self.close);
    }

    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64) {
        lane.watermark(watermark, &mut self.closer.closed);
    }

    fn take(&mut self, step: usize, from: Channel, rows: &Rows) {
        let part = self.part.as_mut().expect("rows leave at once");
        part.put(step, from, rows);
    }
}

/// Rings when its worker panics, so that nobody waits for it.
struct Alarm<'a, 'f>(&'a Shared<'f>, usize);

/// What is in the words of those who panic since another did.
const PANICKED: &str = "worker panicked";

/// The number of no worker.
const NOBODY: usize = usize::MAX;

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let (set, order) = (self.1, Ordering::AcqRel);
            let _ = self.0.broke.compare_exchange(NOBODY, set, order, Ordering::Acquire);
            self.0.broken.store(true, Ordering::Release);
            self.0.bell.ring();
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The most lots of rows that waited in the last run that this thread called.
    static MOST_LOTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests;
