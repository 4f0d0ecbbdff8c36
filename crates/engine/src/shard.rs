//! Several workers: the calling thread reads, spreads packets and merges; workers do the rest.
//!
//! Every message to a worker is answered by one result. The calling thread never waits to send: it
//! takes results first when a worker has [`RING`] messages unanswered, so nobody waits in a circle.
//! Results are taken in the order of the steps they belong to, so rows come out as from one worker.

use crate::counters::Ledger;
use crate::functions::Functions;
use crate::graph::{Closed, Lower};
use crate::limits::RING;
use crate::ops::groups::Groups;
use crate::rows::{Rows, Sink};
use crate::run::{Feed, RunError};
use crate::table::hash;
use crate::upper::Upper;
use crate::view::View;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use weir_packet::bits::Bits;
use weir_packet::source::FrameBatch;
use weir_plan::Program;
use weir_plan::place::{Partition, Placement};

/// To a worker.
enum Work {
    /// Push these packets; `clock` as in [`Upper::push`].
    Frames(Box<FrameBatch>, Option<Vec<i64>>),
    /// Close windows; groups put out earlier come back for reuse.
    Close(i64, Vec<(usize, Groups)>),
    /// No packets are left before this time: forget what is idle.
    Idle(i64),
    /// Close everything and end.
    Finish,
}

/// From a worker: the answer to one [`Work`].
#[derive(Default)]
struct Done {
    /// The batch, to be filled again.
    frames: Option<Box<FrameBatch>>,
    /// Rows that came out, with their pipeline.
    rows: Vec<(usize, Rows)>,
    closed: Vec<Closed>,
    /// At the end.
    ledger: Option<Ledger>,
}

struct Worker {
    work: SyncSender<Work>,
    done: Receiver<Done>,
    /// Messages unanswered.
    open: usize,
}

/// What the results of the next messages mean, in order.
enum Expect {
    /// The result of one worker belongs to a step of its own.
    One(usize),
    /// The results of all workers belong to one step.
    All,
    /// The results of all workers are groups that close at this watermark.
    Close(i64),
    /// Nothing follows from the results of all workers.
    Nothing,
}

/// Runs the workers' part on `workers` threads.
pub(crate) fn run(
    program: &Program,
    placement: &Placement,
    functions: &Functions,
    workers: usize,
    feed: &mut Feed<'_>,
    lower: Lower,
    sink: &mut dyn Sink,
) -> (Ledger, Option<RunError>) {
    thread::scope(|scope| {
        let pool = (0..workers)
            .map(|_| {
                let upper = Upper::new(program, placement, functions);
                let (work, todo) = sync_channel(RING);
                let (answer, done) = sync_channel(RING);
                scope.spawn(move || worker(upper, &todo, &answer));
                Worker { work, done, open: 0 }
            })
            .collect();
        let spread = match &placement.partition {
            Partition::Key(key) => {
                let fields: Vec<_> = key.iter().copied().collect();
                Spread::Key { view: Box::new(View::new(&fields)), fields: fields.len() }
            }
            Partition::Batches | Partition::None => Spread::Batches { next: 0 },
        };
        let mut hub = Hub {
            pool,
            expect: VecDeque::new(),
            spare: Vec::new(),
            lower,
            sink,
            error: None,
            ledger: Ledger::default(),
        };
        hub.feed(feed, spread);
        hub.finish(feed.began())
    })
}

/// The life of a worker.
fn worker(mut upper: Upper, todo: &Receiver<Work>, answer: &SyncSender<Done>) {
    while let Ok(work) = todo.recv() {
        let mut done = Done::default();
        match work {
            Work::Frames(mut frames, clock) => {
                std::mem::swap(&mut upper.view.frames, &mut *frames);
                upper.view.classify();
                let rows = Bits::first(upper.view.frames.len());
                let out = &mut done.rows;
                upper.push(rows, clock.as_deref(), &mut |p, rows| out.push((p, rows.clone())));
                done.frames = Some(frames);
            }
            Work::Close(w, spent) => {
                spent.into_iter().for_each(|(p, groups)| upper.recycle(p, groups));
                upper.watermark(w, &mut done.closed);
            }
            Work::Idle(w) => {
                upper.watermark(w, &mut done.closed);
                debug_assert!(done.closed.is_empty(), "steps end where windows do");
            }
            Work::Finish => {
                upper.finish(&mut done.closed);
                let mut ledger = Ledger::default();
                upper.count(&mut ledger);
                done.ledger = Some(ledger);
            }
        }
        if answer.send(done).is_err() {
            return;
        }
    }
}

/// How packets are spread.
enum Spread {
    /// Whole batches in turn.
    Batches { next: usize },
    /// Each packet by the hash of its key.
    Key { view: Box<View>, fields: usize },
}

/// The calling thread's side.
struct Hub<'a> {
    pool: Vec<Worker>,
    expect: VecDeque<Expect>,
    #[expect(clippy::vec_box, reason = "the boxes travel to workers and back")]
    spare: Vec<Box<FrameBatch>>,
    lower: Lower,
    sink: &'a mut dyn Sink,
    error: Option<std::io::Error>,
    ledger: Ledger,
}

impl Hub<'_> {
    fn feed(&mut self, feed: &mut Feed<'_>, mut spread: Spread) {
        let mut frames = FrameBatch::new();
        while self.error.is_none() && !self.lower.is_done() && feed.fill(&mut frames) {
            let full = frames.is_full();
            let times = feed.times(&frames);
            for step in &times.steps {
                if let Some(w) = step.close {
                    self.close(w);
                }
                match &mut spread {
                    Spread::Batches { next } => {
                        let w = *next;
                        *next = (w + 1) % self.pool.len();
                        if times.steps.len() == 1 {
                            // The whole batch: it goes as it is.
                            let mut batch = self.spare.pop().unwrap_or_default();
                            std::mem::swap(&mut *batch, &mut frames);
                            self.send(w, Work::Frames(batch, times.clock.clone()));
                        } else {
                            self.send_rows(w, &frames, step.rows, times.clock.as_deref());
                        }
                        self.expect.push_back(Expect::One(w));
                    }
                    Spread::Key { view, fields } => {
                        std::mem::swap(&mut view.frames, &mut frames);
                        let parts = by_key(view, *fields, step.rows, self.pool.len());
                        std::mem::swap(&mut view.frames, &mut frames);
                        for (w, rows) in parts.into_iter().enumerate() {
                            self.send_rows(w, &frames, rows, times.clock.as_deref());
                        }
                        self.expect.push_back(Expect::All);
                    }
                }
            }
            if let Spread::Key { .. } = spread {
                self.idle(feed.clock.watermark());
            }
            if !full {
                // The source may have to wait for more: what there is can be shown.
                self.take_all();
                self.lower.flush(self.sink);
            }
        }
    }

    /// Sends some packets of a batch to worker `w`.
    fn send_rows(&mut self, w: usize, frames: &FrameBatch, rows: Bits, clock: Option<&[i64]>) {
        let mut batch = self.spare.pop().unwrap_or_default();
        let (chunk, base) = frames.chunk();
        batch.restart(chunk, base, frames.link);
        rows.each(|i| {
            let (ts, seq) = (frames.ts()[i], frames.seq()[i]);
            batch.push(ts, seq, frames.offsets()[i], frames.caplens()[i], frames.lens()[i]);
        });
        let clock = clock.map(|c| rows.iter().map(|i| c[i]).collect());
        self.send(w, Work::Frames(batch, clock));
    }

    fn close(&mut self, watermark: i64) {
        for w in 0..self.pool.len() {
            // Memory goes back to whoever is at hand; all workers hold the same tables.
            let share = self.lower.spent.len().div_ceil(self.pool.len() - w);
            let spent = self.lower.spent.drain(..share).collect();
            self.send(w, Work::Close(watermark, spent));
        }
        self.expect.push_back(Expect::Close(watermark));
    }

    fn idle(&mut self, watermark: i64) {
        for w in 0..self.pool.len() {
            self.send(w, Work::Idle(watermark));
        }
        self.expect.push_back(Expect::Nothing);
    }

    fn send(&mut self, w: usize, work: Work) {
        while self.pool[w].open >= RING {
            self.take_next();
        }
        self.pool[w].open += 1;
        self.pool[w].work.send(work).expect("a worker lives as long as the hub");
    }

    fn receive(&mut self, w: usize) -> Done {
        self.pool[w].open -= 1;
        let mut done = self.pool[w].done.recv().expect("a worker answers every message");
        if let Some(mut frames) = done.frames.take() {
            // Lets go of the memory that the frames stood in.
            frames.clear();
            self.spare.push(frames);
        }
        done
    }

    /// Takes the results of the oldest step.
    fn take_next(&mut self) {
        match self.expect.pop_front().expect("a message unanswered is expected") {
            Expect::One(w) => {
                let done = self.receive(w);
                done.rows.iter().for_each(|(p, rows)| self.lower.take(*p, rows));
                self.lower.step(self.sink);
            }
            Expect::All => {
                let mut rows = Vec::new();
                for w in 0..self.pool.len() {
                    rows.extend(self.receive(w).rows);
                }
                self.lower.take_unordered(rows);
                self.lower.step(self.sink);
            }
            Expect::Close(watermark) => {
                let mut closed = Vec::new();
                for w in 0..self.pool.len() {
                    closed.extend(self.receive(w).closed);
                }
                self.lower.watermark(watermark, closed, self.sink);
                self.lower.flush(self.sink);
            }
            Expect::Nothing => {
                for w in 0..self.pool.len() {
                    self.receive(w);
                }
            }
        }
        self.error = self.error.take().or(self.lower.take_error());
    }

    fn take_all(&mut self) {
        while !self.expect.is_empty() {
            self.take_next();
        }
    }

    fn finish(mut self, began: bool) -> (Ledger, Option<RunError>) {
        self.take_all();
        let mut closed = Vec::new();
        for w in 0..self.pool.len() {
            self.send(w, Work::Finish);
        }
        for w in 0..self.pool.len() {
            let done = self.receive(w);
            closed.extend(done.closed);
            self.ledger.add(&done.ledger.expect("a finished worker counts up"));
        }
        if began {
            self.lower.finish(closed, self.sink);
        }
        self.error = self.error.take().or(self.lower.take_error());
        self.lower.count(&mut self.ledger);
        (self.ledger, self.error.map(RunError::Sink))
    }
}

/// Which of the packets `rows` go to which worker.
fn by_key(view: &mut View, fields: usize, rows: Bits, workers: usize) -> Vec<Bits> {
    view.classify();
    let (mut packets, frames) = view.packets();
    (0..fields).for_each(|f| packets.ensure(f, rows));
    let mut parts = vec![Bits::NONE; workers];
    debug_assert!(rows.count() <= frames.len());
    rows.each(|i| {
        let words = (0..fields).flat_map(|f| {
            let column = packets.column(f);
            let there = column.present.has(i);
            let raw = if there { column.raw(i) } else { 0 };
            [there as u64, raw as u64, (raw >> 64) as u64]
        });
        // The low half picks the worker; a worker's tables use the high half.
        let h = hash(words) as u32 as u64;
        parts[((h * workers as u64) >> 32) as usize].set(i);
    });
    parts
}
