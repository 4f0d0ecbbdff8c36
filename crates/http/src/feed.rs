//! Rows on their way to clients, in bounded buffers: a client that reads slowly loses rows, and the
//! run never waits.

use crate::limits::{LEAVING, STREAM_BYTES_MAX, STREAMS_MAX};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
}

#[derive(Default)]
struct FeedState {
    programs: Vec<String>,
    clients: Vec<Arc<ClientBuffer>>,
}

/// The rows that wait for a client.
struct ClientBuffer {
    program: String,
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Rows that found no room since the last that did.
    lost: u64,
    ended: bool,
}

/// What a client gets next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RowEvent {
    /// Rows, a line of JSON each.
    Rows(Vec<Box<[u8]>>),
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RowFeed {
    /// These programs run from now on. Clients of others get no more rows.
    pub fn open(&self, programs: Vec<String>) {
        let mut state = lock(&self.0.state);
        state.clients.iter().filter(|c| !programs.contains(&c.program)).for_each(|c| c.end());
        state.programs = programs;
    }

    /// Whether somebody wants the rows of a program.
    pub fn is_wanted(&self, program: &str) -> bool {
        self.streams() > 0 && lock(&self.0.state).clients.iter().any(|c| c.program == program)
    }

    /// Hands out rows of a program, a line each.
    pub fn publish(&self, program: &str, lines: &[u8]) {
        let clients: Vec<_> = {
            let state = lock(&self.0.state);
            state.clients.iter().filter(|c| c.program == program).cloned().collect()
        };
        for client in clients {
            let lost = client.give(lines);
            self.0.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// How many clients get rows.
    pub fn streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed)
    }

    /// Rows that clients did not take in time, all clients.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Ends all streams, as the run ends. Clients have a moment to take the rows that wait.
    pub fn close(&self) {
        self.open(Vec::new());
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
    /// Adds rows as far as there is room; says how many found none.
    fn give(&self, lines: &[u8]) -> u64 {
        let mut waiting = lock(&self.waiting);
        let mut lost = 0;
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            // The report of a loss comes before the rows that follow it.
            if waiting.lost > 0 || waiting.bytes + line.len() > STREAM_BYTES_MAX {
                waiting.lost += 1;
                lost += 1;
                continue;
            }
            waiting.bytes += line.len();
            waiting.lines.push_back(line.into());
        }
        self.came.notify_one();
        lost
    }

    fn end(&self) {
        lock(&self.waiting).ended = true;
        self.came.notify_one();
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
        let idle = |w: &mut Waiting| w.lines.is_empty() && w.lost == 0 && !w.ended;
        let waited = self.client.came.wait_timeout_while(waiting, patience, idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !waiting.lines.is_empty() {
            waiting.bytes = 0;
            return RowEvent::Rows(std::mem::take(&mut waiting.lines).into());
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn rows(lines: &[&str]) -> RowEvent {
        RowEvent::Rows(lines.iter().map(|line| line.as_bytes().into()).collect())
    }

    #[test]
    fn clients_get_the_rows_of_their_program() {
        let feed = RowFeed::default();
        assert_eq!(feed.subscribe("a").err(), Some(NoRows::Unknown));
        feed.open(vec!["a".to_owned(), "b".to_owned()]);
        assert!(!feed.is_wanted("a"));
        let (a, b) = (feed.subscribe("a").expect("runs"), feed.subscribe("b").expect("runs"));
        assert!(feed.is_wanted("a") && !feed.is_wanted("c"));
        feed.publish("a", b"{1}\n{2}\n");
        assert_eq!(a.next(NOW), rows(&["{1}", "{2}"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::Quiet));
        feed.publish("b", b"{3}\n");
        feed.open(vec!["a".to_owned()]);
        assert_eq!(b.next(NOW), rows(&["{3}"]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::End));
        feed.open(Vec::new());
        assert_eq!(a.next(NOW), RowEvent::End);
        drop((a, b));
        assert_eq!(feed.streams(), 0);
    }

    #[test]
    fn who_does_not_read_loses_rows_and_is_told() {
        let feed = RowFeed::default();
        feed.open(vec!["a".to_owned()]);
        let client = feed.subscribe("a").expect("runs");
        let line = [vec![b'x'; STREAM_BYTES_MAX / 2], vec![b'\n']].concat();
        (0..5).for_each(|_| feed.publish("a", &line));
        feed.publish("a", b"{}\n");
        assert_eq!(feed.lost(), 4);
        let RowEvent::Rows(taken) = client.next(NOW) else { panic!("no rows") };
        assert_eq!(taken.len(), 2);
        // The next row comes after the report of the loss, never before.
        feed.publish("a", b"{}\n");
        assert_eq!(client.next(NOW), RowEvent::Lost(5));
        feed.publish("a", b"{}\n");
        assert_eq!(client.next(NOW), rows(&["{}"]));
        assert_eq!(feed.lost(), 5);
    }

    #[test]
    fn there_are_only_so_many_clients() {
        let feed = RowFeed::default();
        feed.open(vec!["a".to_owned()]);
        let all: Vec<_> = (0..STREAMS_MAX).map(|_| feed.subscribe("a").expect("room")).collect();
        assert_eq!(feed.subscribe("a").err(), Some(NoRows::Full));
        drop(all);
        assert!(feed.subscribe("a").is_ok());
    }
}
