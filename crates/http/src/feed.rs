//! Rows on their way to clients, in bounded buffers: a client that reads slowly loses rows, and the
//! run never waits.

use crate::history::{FeedOutput, History, Unseen};
use crate::limits::{KEPT_PER_SECOND, LEAVING, STREAM_BYTES_MAX, STREAMS_MAX};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Hands the rows of programs to the clients that asked for them. Clones are of the same.
#[derive(Clone, Default)]
pub struct RowFeed(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// How many clients there are: looked at for every batch of rows.
    streams: AtomicUsize,
    lost: AtomicU64,
    state: Mutex<FeedState>,
    /// Notified when a client leaves.
    left: Condvar,
    keeping: Keeping,
    kept: Mutex<KeptRows>,
    /// Notified when there are more of them.
    grew: Condvar,
    /// How many clients follow them.
    followers: AtomicUsize,
}

#[derive(Default)]
struct FeedState {
    programs: Vec<String>,
    clients: Vec<Arc<ClientBuffer>>,
}

/// Which rows are kept for clients that come later.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Keeping {
    /// None.
    #[default]
    Nothing,
    /// The latest, and of each second so many at most: packets do not wait.
    Some,
    /// The latest.
    Latest,
}

/// The rows that are kept.
#[derive(Default)]
struct KeptRows {
    history: History,
    /// Grows with every change.
    changes: u64,
    /// Of each program: when the current second began, and how many rows it kept since.
    rates: Vec<(String, Instant, u64)>,
    /// Programs that are opened next do not go on with earlier rows.
    anew: bool,
    /// There will be no more.
    closed: bool,
}

/// The rows that wait for a client.
struct ClientBuffer {
    program: String,
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    blocks: Vec<Arc<[u8]>>,
    bytes: usize,
    /// The client waits for more.
    idle: bool,
    /// Rows that found no room since the last that did.
    lost: u64,
    ended: bool,
}

/// What a client gets next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RowEvent {
    /// Rows, a line of JSON each: blocks of lines, which all clients share.
    Rows(Vec<Arc<[u8]>>),
    /// So many rows found no room.
    Lost(u64),
    /// None came for a while.
    Quiet,
    /// The program or the run has ended.
    End,
}

/// Why a client gets no rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoRows {
    /// No program has this name.
    Unknown,
    /// There are as many clients as may be.
    Full,
}

/// The rows of a block, a line each.
pub(crate) fn rows(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.split(|b| *b == b'\n').filter(|line| !line.is_empty())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RowFeed {
    /// A feed that keeps rows.
    pub fn keeping(keeping: Keeping) -> RowFeed {
        RowFeed(Arc::new(Shared { keeping, ..Shared::default() }))
    }

    /// These outputs are there from now on. Clients of other programs get no more rows.
    pub fn open(&self, outputs: &[FeedOutput]) {
        if self.0.keeping != Keeping::Nothing {
            let mut kept = lock(&self.0.kept);
            let anew = std::mem::take(&mut kept.anew);
            kept.history.open(outputs, anew);
            kept.rates.clear();
            self.notify(kept);
        }
        self.run(outputs.iter().map(|output| output.program.clone()).collect());
    }

    fn run(&self, programs: Vec<String>) {
        let mut state = lock(&self.0.state);
        state.clients.iter().filter(|c| !programs.contains(&c.program)).for_each(|c| c.end());
        state.programs = programs;
    }

    /// Whether somebody wants the rows of a program.
    pub fn is_wanted(&self, program: &str) -> bool {
        self.0.streams.load(Ordering::Relaxed) > 0
            && lock(&self.0.state).clients.iter().any(|c| c.program == program)
    }

    /// Whether rows of a program are to be kept; if some can't be, they are counted.
    #[expect(clippy::disallowed_methods, reason = "a limit per second")]
    pub fn has_room(&self, program: &str, rows: u64) -> bool {
        match self.0.keeping {
            Keeping::Nothing => return false,
            Keeping::Latest => return true,
            Keeping::Some => {}
        }
        let (now, mut kept) = (Instant::now(), lock(&self.0.kept));
        let kept_rows = &mut *kept;
        let at = kept_rows.rates.iter().position(|(name, ..)| name == program);
        let at = at.unwrap_or_else(|| {
            kept_rows.rates.push((program.to_owned(), now, 0));
            kept_rows.rates.len() - 1
        });
        let (_, begin, n) = &mut kept_rows.rates[at];
        if now.duration_since(*begin) >= Duration::from_secs(1) {
            (*begin, *n) = (now, 0);
        }
        *n += rows;
        if *n <= KEPT_PER_SECOND {
            return true;
        }
        kept_rows.history.skip(program, rows);
        false
    }

    /// Keeps rows of a program, a line each.
    pub fn keep(&self, program: &str, lines: &[u8]) {
        let mut kept = lock(&self.0.kept);
        kept.history.add(program, lines);
        self.notify(kept);
    }

    fn notify(&self, mut kept: MutexGuard<'_, KeptRows>) {
        kept.changes += 1;
        drop(kept);
        self.0.grew.notify_all();
    }

    /// One more client that gets kept rows, until the result is dropped; `None` if there are as
    /// many as may be.
    pub(crate) fn follow(&self) -> Option<Follower> {
        let before = self.0.followers.fetch_add(1, Ordering::Relaxed);
        let follower = Follower(self.clone());
        (before < STREAMS_MAX).then_some(follower)
    }

    /// Whether rows are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.0.keeping != Keeping::Nothing
    }

    /// The rows of programs that a client has not seen, by its cursors, which are moved; waits at
    /// most so long for a change if there are none. `None`: there will be no more.
    pub(crate) fn unseen(
        &self,
        cursors: &mut [(String, Option<u64>)],
        patience: Duration,
    ) -> Option<Vec<(String, Unseen)>> {
        let mut kept = lock(&self.0.kept);
        for waits in [true, false] {
            let mut all = Vec::new();
            for (program, cursor) in &mut *cursors {
                if let Some(unseen) = kept.history.since(program, *cursor) {
                    *cursor = Some(unseen.next);
                    all.push((program.clone(), unseen));
                }
            }
            if !all.is_empty() || !waits {
                return Some(all);
            }
            if kept.closed {
                return None;
            }
            let before = kept.changes;
            let same = |kept: &mut KeptRows| kept.changes == before;
            let waited = self.0.grew.wait_timeout_while(kept, patience, same);
            kept = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// The input has ended. Packets may be read again; then rows begin anew.
    pub fn rest(&self) {
        lock(&self.0.kept).anew = true;
        self.run(Vec::new());
    }

    /// Hands out rows of a program, a line each.
    pub fn publish(&self, program: &str, lines: &[u8]) {
        let clients: Vec<_> = {
            let state = lock(&self.0.state);
            state.clients.iter().filter(|c| c.program == program).cloned().collect()
        };
        let rows = rows(lines).count() as u64;
        if clients.is_empty() || rows == 0 {
            return;
        }
        // One copy for all, however many there are: the run waits for this.
        let block = Arc::from(lines);
        for client in clients {
            let lost = client.give(&block, rows);
            self.0.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// How many clients get rows.
    pub fn streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed) + self.0.followers.load(Ordering::Relaxed)
    }

    /// Rows that clients did not take in time, all clients.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Ends all streams, as the run ends. Clients have a moment to take the rows that wait.
    pub fn close(&self) {
        let mut kept = lock(&self.0.kept);
        kept.closed = true;
        self.notify(kept);
        self.run(Vec::new());
        let state = lock(&self.0.state);
        let stay = |state: &mut FeedState| !state.clients.is_empty();
        drop(self.0.left.wait_timeout_while(state, LEAVING, stay));
    }

    /// The rows of a program from now on.
    pub(crate) fn subscribe(&self, program: &str) -> Result<RowStream, NoRows> {
        let mut state = lock(&self.0.state);
        if !state.programs.iter().any(|known| known == program) {
            return Err(NoRows::Unknown);
        }
        if state.clients.len() >= STREAMS_MAX {
            return Err(NoRows::Full);
        }
        let client = Arc::new(ClientBuffer {
            program: program.to_owned(),
            waiting: Mutex::default(),
            came: Condvar::new(),
        });
        state.clients.push(Arc::clone(&client));
        self.0.streams.store(state.clients.len(), Ordering::Relaxed);
        Ok(RowStream { feed: self.clone(), client })
    }
}

impl ClientBuffer {
    /// Adds a block of rows if there is room for all of it; says how many found none. A client
    /// that has nothing takes a block of any size.
    fn give(&self, block: &Arc<[u8]>, rows: u64) -> u64 {
        let mut waiting = lock(&self.waiting);
        let is_full = waiting.bytes + block.len() > STREAM_BYTES_MAX && !waiting.blocks.is_empty();
        // The report of a loss comes before the rows that follow it.
        let lost = if waiting.lost > 0 || is_full { rows } else { 0 };
        waiting.lost += lost;
        if lost == 0 {
            waiting.bytes += block.len();
            waiting.blocks.push(Arc::clone(block));
        }
        self.wake(waiting);
        lost
    }

    fn end(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.ended = true;
        self.wake(waiting);
    }

    /// Wakes the client if it waits: each time is a call of the system.
    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let idle = std::mem::take(&mut waiting.idle);
        drop(waiting);
        if idle {
            self.came.notify_one();
        }
    }
}

/// The rows of a program for a client, until this is dropped.
pub(crate) struct RowStream {
    feed: RowFeed,
    client: Arc<ClientBuffer>,
}

impl RowStream {
    /// Waits at most this long for what comes next.
    pub(crate) fn next(&self, patience: Duration) -> RowEvent {
        let waiting = lock(&self.client.waiting);
        let idle = |w: &mut Waiting| {
            w.idle = w.blocks.is_empty() && w.lost == 0 && !w.ended;
            w.idle
        };
        let waited = self.client.came.wait_timeout_while(waiting, patience, idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.idle = false;
        if !waiting.blocks.is_empty() {
            waiting.bytes = 0;
            return RowEvent::Rows(std::mem::take(&mut waiting.blocks));
        }
        match (std::mem::take(&mut waiting.lost), waiting.ended) {
            (0, true) => RowEvent::End,
            (0, false) => RowEvent::Quiet,
            (lost, _) => RowEvent::Lost(lost),
        }
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        let mut state = lock(&self.feed.0.state);
        state.clients.retain(|client| !Arc::ptr_eq(client, &self.client));
        self.feed.0.streams.store(state.clients.len(), Ordering::Relaxed);
        self.feed.0.left.notify_all();
    }
}

/// A client that gets kept rows.
pub(crate) struct Follower(RowFeed);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn open(feed: &RowFeed, programs: &[&str]) {
        let output = |name: &&str| FeedOutput {
            program: (*name).to_owned(),
            output: (*name).to_owned(),
            columns: Vec::new(),
        };
        feed.open(&programs.iter().map(output).collect::<Vec<_>>());
    }

    #[test]
    fn kept_rows_come_by_cursors() {
        let feed = RowFeed::keeping(Keeping::Some);
        open(&feed, &["a", "b"]);
        let mut cursors = vec![("a".to_owned(), None), ("none".to_owned(), None)];
        assert_eq!(feed.unseen(&mut cursors, NOW).expect("goes on").len(), 1);
        assert!(feed.has_room("a", 1));
        feed.keep("a", b"{1}\n");
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert_eq!((more.len(), more[0].1.lines.len()), (1, 1));
        assert_eq!(feed.unseen(&mut cursors, NOW).expect("goes on").len(), 0);
        // Beyond so many in a second, rows are counted only.
        assert!(!feed.has_room("a", KEPT_PER_SECOND));
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert_eq!((more[0].1.lines.len(), more[0].1.skipped), (0, KEPT_PER_SECOND));
        // The input is read again.
        feed.rest();
        open(&feed, &["a"]);
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert!(more[0].1.outputs.is_some());
        feed.close();
        assert_eq!(feed.unseen(&mut cursors, NOW), None);
        assert!(!RowFeed::default().has_room("a", 1));
        let all: Vec<_> = (0..STREAMS_MAX).map(|_| feed.follow().expect("room")).collect();
        assert!(feed.follow().is_none());
        drop(all);
        assert!(feed.follow().is_some() && feed.streams() == 0);
    }

    fn blocks(blocks: &[&str]) -> RowEvent {
        RowEvent::Rows(blocks.iter().map(|block| block.as_bytes().into()).collect())
    }

    #[test]
    fn clients_get_the_rows_of_their_program() {
        let feed = RowFeed::default();
        assert_eq!(feed.subscribe("a").err(), Some(NoRows::Unknown));
        open(&feed, &["a", "b"]);
        assert!(!feed.is_wanted("a"));
        let (a, b) = (feed.subscribe("a").expect("runs"), feed.subscribe("b").expect("runs"));
        assert!(feed.is_wanted("a") && !feed.is_wanted("c"));
        feed.publish("a", b"{1}\n{2}\n");
        assert_eq!(a.next(NOW), blocks(&["{1}\n{2}\n"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::Quiet));
        feed.publish("b", b"{3}\n");
        open(&feed, &["a"]);
        assert_eq!(b.next(NOW), blocks(&["{3}\n"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::End));
        open(&feed, &[]);
        assert_eq!(a.next(NOW), RowEvent::End);
        drop((a, b));
        assert_eq!(feed.streams(), 0);
    }

    #[test]
    fn who_does_not_read_loses_rows_and_is_told() {
        let feed = RowFeed::default();
        open(&feed, &["a"]);
        let client = feed.subscribe("a").expect("runs");
        let line = [vec![b'x'; STREAM_BYTES_MAX / 2 - 1], vec![b'\n']].concat();
        (0..5).for_each(|_| feed.publish("a", &line));
        feed.publish("a", b"{}\n");
        assert_eq!(feed.lost(), 4);
        let RowEvent::Rows(taken) = client.next(NOW) else { panic!("no rows") };
        assert_eq!(taken.len(), 2);
        // The next row comes after the report of the loss, never before.
        feed.publish("a", b"{}\n");
        assert_eq!(client.next(NOW), RowEvent::Lost(5));
        feed.publish("a", b"{}\n");
        assert_eq!(client.next(NOW), blocks(&["{}\n"]));
        // A block goes as a whole, or not at all; who has nothing takes one of any size.
        let all = b"{}\n".repeat(STREAM_BYTES_MAX / 2);
        (0..2).for_each(|_| feed.publish("a", &all));
        let RowEvent::Rows(taken) = client.next(NOW) else { panic!("no rows") };
        assert_eq!((taken.len(), taken[0].len()), (1, all.len()));
        let rows = STREAM_BYTES_MAX as u64 / 2;
        assert_eq!((client.next(NOW), client.next(NOW)), (RowEvent::Lost(rows), RowEvent::Quiet));
        feed.publish("a", b"");
        assert_eq!(client.next(NOW), RowEvent::Quiet);
        assert_eq!(feed.lost(), 5 + rows);
    }

    #[test]
    fn there_are_only_so_many_clients() {
        let feed = RowFeed::default();
        open(&feed, &["a"]);
        let all: Vec<_> = (0..STREAMS_MAX).map(|_| feed.subscribe("a").expect("room")).collect();
        assert_eq!(feed.subscribe("a").err(), Some(NoRows::Full));
        drop(all);
        assert!(feed.subscribe("a").is_ok());
    }
}
