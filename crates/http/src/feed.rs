//! Rows on their way to clients, in bounded buffers: a client that reads slowly loses rows, and the
//! run never waits.

use crate::history::{FeedOutput, History, KeptRate, Unseen};
use crate::limits::{
    LEAVING, STREAM_BYTES_MAX, STREAM_PACES, STREAMS_BYTES_PER_SECOND, STREAMS_MAX,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Hands the rows of programs to the clients that asked for them. Clones are of the same.
#[derive(Clone, Default)]
pub struct RowFeed(Arc<SharedFeed>);

#[derive(Default)]
struct SharedFeed {
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
    /// Called when a client begins to.
    followed: Mutex<Option<Arc<Followed>>>,
}

/// The function that is called when a client begins to follow the rows that are kept.
type Followed = dyn Fn() + Send + Sync;

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
    rates: Vec<KeptRate>,
    /// Programs that are opened next do not go on with earlier rows.
    anew: bool,
    /// There will be no more.
    closed: bool,
}

/// Which clients rows are written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownTo {
    /// None: nobody has room for them.
    Nobody,
    /// Those that follow the program now.
    Streams,
    /// Those that follow it now, and those that ask later for rows that are kept.
    All,
    /// Those that ask later for rows that are kept.
    Later,
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
    /// Since when the client takes what it got.
    taking_since: Option<Instant>,
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
    pub fn that_keeps(keeping: Keeping) -> RowFeed {
        RowFeed(Arc::new(SharedFeed { keeping, ..SharedFeed::default() }))
    }

    /// These outputs are there from now on. Clients of programs that are neither among them nor
    /// expected get no more rows.
    pub fn open(&self, outputs: &[FeedOutput]) {
        if self.0.keeping != Keeping::Nothing {
            let mut kept = lock(&self.0.kept);
            let anew = std::mem::take(&mut kept.anew);
            kept.history.open(outputs, anew);
            kept.rates.clear();
            self.notify(kept);
        }
        let state = lock(&self.0.state);
        let is_left = |client: &&Arc<ClientBuffer>| {
            let is_of = |output: &FeedOutput| output.program == client.program;
            !outputs.iter().any(is_of) && !state.programs.contains(&client.program)
        };
        state.clients.iter().filter(is_left).for_each(|client| client.end());
    }

    /// Rows of these outputs are about to come: clients may ask for them already. Those of other
    /// programs still get the rows that are on their way.
    pub fn expect(&self, outputs: &[FeedOutput]) {
        let programs = outputs.iter().map(|output| output.program.clone());
        lock(&self.0.state).programs = programs.collect();
    }

    /// No program has rows any more.
    fn end_streams(&self) {
        let mut state = lock(&self.0.state);
        state.clients.iter().for_each(|client| client.end());
        state.programs.clear();
    }

    /// Which clients so many rows of an output are to be written for. The run asks before it copies
    /// them: rows that nobody has room for cost it no more than being counted.
    pub fn shown_to(&self, output: &FeedOutput, rows: u64) -> ShownTo {
        match self.has_room(output, rows) {
            true => ShownTo::All,
            false => self.streamed_to(&output.program, rows),
        }
    }

    /// The same of the clients that follow the program now, whatever is kept for others.
    pub fn streamed_to(&self, program: &str, rows: u64) -> ShownTo {
        if self.0.streams.load(Ordering::Relaxed) == 0 {
            return ShownTo::Nobody;
        }
        let state = lock(&self.0.state);
        let clients = || state.clients.iter().filter(|c| c.program == program);
        if clients().any(|client| client.has_room()) {
            return ShownTo::Streams;
        }
        let lost = clients().map(|client| client.lose(rows)).sum();
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
        ShownTo::Nobody
    }

    /// Counts rows that were to be shown, and found no room on their way.
    pub fn leave_out(&self, program: &str, rows: u64, to: ShownTo) {
        if matches!(to, ShownTo::All | ShownTo::Later) {
            lock(&self.0.kept).history.skip(program, rows);
        }
        if to == ShownTo::Later {
            return;
        }
        let state = lock(&self.0.state);
        let clients = state.clients.iter().filter(|c| c.program == program);
        let lost = clients.map(|client| client.lose(rows)).sum();
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Whether rows of an output are to be kept; if some can't be, they are counted.
    #[expect(clippy::disallowed_methods, reason = "a limit per second")]
    fn has_room(&self, output: &FeedOutput, rows: u64) -> bool {
        match self.0.keeping {
            Keeping::Nothing => return false,
            Keeping::Latest => return true,
            Keeping::Some => {}
        }
        let (program, now) = (&output.program, Instant::now());
        let mut kept = lock(&self.0.kept);
        let rates = &mut kept.rates;
        let at = rates.iter().position(|rate| rate.program() == program).unwrap_or_else(|| {
            rates.push(KeptRate::new(program, now));
            rates.len() - 1
        });
        let has_room = rates[at].has_room(&output.output, rows, now);
        if !has_room {
            kept.history.skip(program, rows);
        }
        has_room
    }

    /// Hands out a block of so many rows of an output, a line each. All who get it share it.
    pub fn show(&self, output: &FeedOutput, block: &Arc<[u8]>, rows: u64, to: ShownTo) {
        if matches!(to, ShownTo::All | ShownTo::Later) {
            let mut kept = lock(&self.0.kept);
            kept.history.add(output, block, rows);
            self.notify(kept);
        }
        if to == ShownTo::Later || self.0.streams.load(Ordering::Relaxed) == 0 {
            return;
        }
        let clients: Vec<_> = {
            let state = lock(&self.0.state);
            state.clients.iter().filter(|c| c.program == output.program).cloned().collect()
        };
        let lost = clients.iter().map(|client| client.give(block, rows)).sum();
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
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
        let followed = lock(&self.0.followed).clone();
        followed.iter().for_each(|followed| followed());
        (before < STREAMS_MAX).then_some(follower)
    }

    /// Whether a client follows the rows that are kept.
    pub fn is_followed(&self) -> bool {
        self.0.followers.load(Ordering::Relaxed) > 0
    }

    /// Does this whenever a client begins to follow the rows that are kept, in place of what was
    /// done so far: rows may wait until then to be written.
    pub fn when_followed(&self, followed: impl Fn() + Send + Sync + 'static) {
        *lock(&self.0.followed) = Some(Arc::new(followed));
    }

    /// Which rows are kept.
    pub fn keeping(&self) -> Keeping {
        self.0.keeping
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
        self.end_streams();
    }

    /// How many clients get rows.
    pub fn streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed) + self.0.followers.load(Ordering::Relaxed)
    }

    /// Rows that clients did not take in time, all clients.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Counts rows that no client was shown, whichever they were of.
    pub fn count_lost(&self, rows: u64) {
        self.0.lost.fetch_add(rows, Ordering::Relaxed);
    }

    /// Ends all streams, as the run ends. Clients have a moment to take the rows that wait, unless
    /// they have taken nothing for as long already.
    #[expect(clippy::disallowed_methods, reason = "how long a client has taken nothing")]
    pub fn close(&self) {
        let mut kept = lock(&self.0.kept);
        kept.closed = true;
        self.notify(kept);
        self.end_streams();
        let now = Instant::now();
        let state = lock(&self.0.state);
        let stay = |state: &mut FeedState| state.clients.iter().any(|c| !c.is_stuck(now));
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
    /// Whether rows find room, as far as is known before they are written.
    fn has_room(&self) -> bool {
        let waiting = lock(&self.waiting);
        waiting.lost == 0 && waiting.bytes < STREAM_BYTES_MAX
    }

    /// Counts rows that found no room; gives their number.
    fn lose(&self, rows: u64) -> u64 {
        let mut waiting = lock(&self.waiting);
        waiting.lost += rows;
        self.wake(waiting);
        rows
    }

    /// Whether the client has taken nothing for so long that the end of a run does not wait for it.
    fn is_stuck(&self, now: Instant) -> bool {
        let since = lock(&self.waiting).taking_since;
        since.is_some_and(|since| now.saturating_duration_since(since) > LEAVING)
    }

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
        lock(&self.waiting).ended = true;
        // It may rest, too.
        self.came.notify_one();
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
    #[expect(clippy::disallowed_methods, reason = "how long a client takes nothing")]
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
            waiting.taking_since = Some(Instant::now());
            return RowEvent::Rows(std::mem::take(&mut waiting.blocks));
        }
        match (std::mem::take(&mut waiting.lost), waiting.ended) {
            (0, true) => RowEvent::End,
            (0, false) => RowEvent::Quiet,
            (lost, _) => RowEvent::Lost(lost),
        }
    }

    /// Leaves the client alone after it took so many bytes, but for the end: all clients together
    /// get [`STREAMS_BYTES_PER_SECOND`], and each gets what comes meanwhile in one go.
    pub(crate) fn rest(&self, bytes: usize) {
        let share = STREAMS_BYTES_PER_SECOND / self.feed.streams().max(1) as f64;
        let pause = Duration::from_secs_f64(bytes as f64 / share);
        let mut waiting = lock(&self.client.waiting);
        waiting.taking_since = None;
        let goes_on = |waiting: &mut Waiting| !waiting.ended;
        let pause = pause.clamp(*STREAM_PACES.start(), *STREAM_PACES.end());
        drop(self.client.came.wait_timeout_while(waiting, pause, goes_on));
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
    use crate::limits::KEPT_PER_SECOND;

    const NOW: Duration = Duration::ZERO;

    fn show(feed: &RowFeed, program: &str, lines: &[u8], to: ShownTo) {
        feed.show(&output(program), &Arc::from(lines), rows(lines).count() as u64, to);
    }

    fn publish(feed: &RowFeed, program: &str, lines: &[u8]) {
        show(feed, program, lines, ShownTo::Streams);
    }

    /// The output of a program that has one, or the second of another, whose name has a dot.
    fn output(name: &str) -> FeedOutput {
        let program = name.split('.').next().unwrap_or_default().to_owned();
        FeedOutput { program, output: name.to_owned(), columns: Vec::new() }
    }

    fn open(feed: &RowFeed, outputs: &[&str]) {
        let outputs: Vec<_> = outputs.iter().map(|name| output(name)).collect();
        feed.expect(&outputs);
        feed.open(&outputs);
    }

    #[test]
    fn kept_rows_come_by_cursors() {
        let feed = RowFeed::that_keeps(Keeping::Some);
        open(&feed, &["a", "b"]);
        let mut cursors = vec![("a".to_owned(), None), ("none".to_owned(), None)];
        assert_eq!(feed.unseen(&mut cursors, NOW).expect("goes on").len(), 1);
        assert_eq!(feed.shown_to(&output("a"), 1), ShownTo::All);
        show(&feed, "a", b"{1}\n", ShownTo::All);
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert_eq!((more.len(), more[0].1.blocks.len()), (1, 1));
        assert_eq!(feed.unseen(&mut cursors, NOW).expect("goes on").len(), 0);
        // Beyond so many in a second, rows are counted only.
        assert_eq!(feed.shown_to(&output("a"), KEPT_PER_SECOND), ShownTo::Nobody);
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert_eq!((more[0].1.blocks.len(), more[0].1.skipped), (0, KEPT_PER_SECOND));
        // Another output of the program has its share.
        open(&feed, &["a", "a.alerts", "b"]);
        assert_eq!(feed.shown_to(&output("a"), KEPT_PER_SECOND), ShownTo::All);
        assert_eq!(feed.shown_to(&output("a"), 1), ShownTo::Nobody);
        let alerts = output("a.alerts");
        assert_eq!(feed.shown_to(&alerts, KEPT_PER_SECOND / 2), ShownTo::All);
        assert_eq!(feed.shown_to(&alerts, 1), ShownTo::Nobody);
        assert_eq!(feed.shown_to(&output("b"), 1), ShownTo::All);
        // The input is read again.
        feed.rest();
        open(&feed, &["a"]);
        let more = feed.unseen(&mut cursors, NOW).expect("goes on");
        assert!(more[0].1.outputs.is_some());
        feed.close();
        assert_eq!(feed.unseen(&mut cursors, NOW), None);
        assert_eq!(RowFeed::default().shown_to(&output("a"), 1), ShownTo::Nobody);
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
        assert_eq!(feed.shown_to(&output("a"), 1), ShownTo::Nobody);
        let (a, b) = (feed.subscribe("a").expect("runs"), feed.subscribe("b").expect("runs"));
        assert_eq!(feed.shown_to(&output("a"), 1), ShownTo::Streams);
        assert_eq!((feed.shown_to(&output("c"), 1), feed.lost()), (ShownTo::Nobody, 0));
        publish(&feed, "a", b"{1}\n{2}\n");
        assert_eq!(a.next(NOW), blocks(&["{1}\n{2}\n"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::Quiet));
        publish(&feed, "b", b"{3}\n");
        open(&feed, &["a"]);
        assert_eq!(b.next(NOW), blocks(&["{3}\n"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::End));
        open(&feed, &[]);
        assert_eq!(a.next(NOW), RowEvent::End);
        drop((a, b));
        assert_eq!(feed.streams(), 0);
    }

    #[test]
    fn a_program_that_ends_hands_out_what_is_on_its_way() {
        let feed = RowFeed::default();
        open(&feed, &["a", "b"]);
        let a = feed.subscribe("a").expect("runs");
        feed.expect(&[output("b"), output("c")]);
        assert_eq!(feed.subscribe("a").err(), Some(NoRows::Unknown));
        let c = feed.subscribe("c").expect("it is about to come");
        publish(&feed, "a", b"{1}\n");
        // An earlier change that took longer does not end it.
        feed.open(&[]);
        assert_eq!((a.next(NOW), a.next(NOW)), (blocks(&["{1}\n"]), RowEvent::End));
        assert_eq!(c.next(NOW), RowEvent::Quiet);
    }

    #[test]
    fn who_has_no_room_costs_no_writing() {
        let feed = RowFeed::default();
        open(&feed, &["a"]);
        let client = feed.subscribe("a").expect("runs");
        publish(&feed, "a", &[vec![b'x'; STREAM_BYTES_MAX], vec![b'\n']].concat());
        assert_eq!((feed.shown_to(&output("a"), 7), feed.lost()), (ShownTo::Nobody, 7));
        feed.leave_out("a", 2, ShownTo::Streams);
        assert!(matches!(client.next(NOW), RowEvent::Rows(_)));
        assert_eq!((client.next(NOW), feed.lost()), (RowEvent::Lost(9), 9));
        assert_eq!(feed.shown_to(&output("a"), 1), ShownTo::Streams);
    }

    #[test]
    fn the_end_comes_during_a_rest_and_waits_for_no_client_that_is_stuck() {
        let feed = RowFeed::default();
        open(&feed, &["a"]);
        let client = feed.subscribe("a").expect("runs");
        publish(&feed, "a", b"{}\n");
        assert!(matches!(client.next(NOW), RowEvent::Rows(_)));
        let since = lock(&client.client.waiting).taking_since.expect("it takes a row");
        let stuck = |after| client.client.is_stuck(since + after);
        assert!(stuck(LEAVING * 2) && !stuck(LEAVING / 2));
        std::thread::scope(|scope| {
            let rests = scope.spawn(|| client.rest(usize::MAX));
            feed.end_streams();
            rests.join().expect("no panic");
        });
        assert!(!stuck(LEAVING * 2));
        assert_eq!(client.next(NOW), RowEvent::End);
    }

    #[test]
    fn who_does_not_read_loses_rows_and_is_told() {
        let feed = RowFeed::default();
        open(&feed, &["a"]);
        let client = feed.subscribe("a").expect("runs");
        let line = [vec![b'x'; STREAM_BYTES_MAX / 2 - 1], vec![b'\n']].concat();
        (0..5).for_each(|_| publish(&feed, "a", &line));
        publish(&feed, "a", b"{}\n");
        assert_eq!(feed.lost(), 4);
        let RowEvent::Rows(taken) = client.next(NOW) else { panic!("no rows") };
        assert_eq!(taken.len(), 2);
        // The next row comes after the report of the loss, never before.
        publish(&feed, "a", b"{}\n");
        assert_eq!(client.next(NOW), RowEvent::Lost(5));
        publish(&feed, "a", b"{}\n");
        assert_eq!(client.next(NOW), blocks(&["{}\n"]));
        // A block goes as a whole, or not at all; who has nothing takes one of any size.
        let all = b"{}\n".repeat(STREAM_BYTES_MAX / 2);
        (0..2).for_each(|_| publish(&feed, "a", &all));
        let RowEvent::Rows(taken) = client.next(NOW) else { panic!("no rows") };
        assert_eq!((taken.len(), taken[0].len()), (1, all.len()));
        let rows = STREAM_BYTES_MAX as u64 / 2;
        assert_eq!((client.next(NOW), client.next(NOW)), (RowEvent::Lost(rows), RowEvent::Quiet));
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
