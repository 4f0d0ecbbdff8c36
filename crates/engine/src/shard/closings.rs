//! Windows that close: each worker hands its groups over, and they are merged in pairs.
//!
//! A worker that hands groups over and finds others of the same window there takes these away and
//! merges the two, until none are left to merge with. So merging runs on as many workers as there
//! are pairs, nobody waits for anybody, and when the last worker is through, the groups of each
//! window are in one place.

use crate::level::Closed;
use crate::ops::groups::Groups;
use std::collections::VecDeque;
use std::sync::Mutex;
use weir_plan::physical::PipelineId;

/// Names a closing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClosingId {
    /// The one of this number.
    Number(u64),
    /// The end of the input.
    Last,
}

/// The closings that were not emitted yet.
pub(super) struct Closings {
    workers: usize,
    board: Mutex<Board>,
}

struct Board {
    /// Number of the first in `open`.
    first: u64,
    open: VecDeque<Closing>,
    last: Closing,
    /// Groups whose content went elsewhere.
    spent: Vec<(PipelineId, Groups)>,
}

struct Closing {
    watermark: i64,
    /// Workers that have not handed their groups over.
    left: usize,
    closed: Vec<Closed>,
}

impl Closings {
    pub(super) fn new(workers: usize) -> Closings {
        let last = Closing { watermark: i64::MAX, left: workers, closed: Vec::new() };
        let board = Board { first: 0, open: VecDeque::new(), last, spent: Vec::new() };
        Closings { workers, board: Mutex::new(board) }
    }

    /// Opens the next closing.
    pub(super) fn open(&self, watermark: i64) {
        let closing = Closing { watermark, left: self.workers, closed: Vec::new() };
        self.lock().open.push_back(closing);
    }

    /// The watermark of a closing that this worker has not handed groups over for.
    pub(super) fn watermark(&self, id: ClosingId) -> i64 {
        self.lock().at(id).watermark
    }

    /// Takes a worker's groups; returns whether it was the last worker.
    pub(super) fn hand_over(&self, id: ClosingId, closed: &mut Vec<Closed>) -> bool {
        for Closed { pipeline, start, mut groups } in closed.drain(..) {
            loop {
                let mut board = self.lock();
                let there = &mut board.at(id).closed;
                let same = |c: &Closed| (c.pipeline, c.start) == (pipeline, start);
                let Some(i) = there.iter().position(same) else {
                    there.push(Closed { pipeline, start, groups });
                    break;
                };
                let other = there.swap_remove(i);
                drop(board);
                let spent = groups.absorb(other.groups);
                self.give_back([(pipeline, spent)]);
            }
        }
        let mut board = self.lock();
        let closing = board.at(id);
        closing.left -= 1;
        closing.left == 0
    }

    /// Whether all workers have come to the end.
    pub(super) fn are_over(&self) -> bool {
        self.lock().last.left == 0
    }

    /// The groups of a closing that all workers have come to, by pipeline, then by time, and its
    /// watermark; `None` before. Closings are taken in order.
    pub(super) fn take_closed(&self, id: ClosingId) -> Option<(i64, Vec<Closed>)> {
        let mut board = self.lock();
        let closing = board.at(id);
        if closing.left > 0 {
            return None;
        }
        let (watermark, mut closed) = (closing.watermark, std::mem::take(&mut closing.closed));
        if let ClosingId::Number(n) = id {
            debug_assert_eq!(n, board.first, "closings are taken in order");
            board.open.pop_front();
            board.first += 1;
        }
        drop(board);
        closed.sort_unstable_by_key(|c| (c.pipeline, c.start));
        Some((watermark, closed))
    }

    /// Takes groups whose content went elsewhere.
    pub(super) fn give_back(&self, spent: impl IntoIterator<Item = (PipelineId, Groups)>) {
        let mut board = self.lock();
        board.spent.extend(spent);
        // This is as much as all workers can have open in a few windows.
        let enough = 64.max(4 * self.workers);
        let more = board.spent.len().saturating_sub(enough);
        let freed: Vec<_> = board.spent.drain(..more).collect();
        drop(board);
        drop(freed);
    }

    /// Memory for the next window of pipeline `p`.
    pub(super) fn take_spent(&self, p: PipelineId) -> Option<Groups> {
        let mut board = self.lock();
        let at = board.spent.iter().rposition(|(q, _)| *q == p)?;
        Some(board.spent.swap_remove(at).1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Board> {
        self.board.lock().expect("no worker panicked while groups were handed over")
    }
}

impl Board {
    fn at(&mut self, id: ClosingId) -> &mut Closing {
        match id {
            ClosingId::Number(n) => &mut self.open[(n - self.first) as usize],
            ClosingId::Last => &mut self.last,
        }
    }
}
