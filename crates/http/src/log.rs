//! The rows of a run for its clients: one log, in which each client has a cursor. One that reads
//! slowly loses rows, and the run never waits.

use crate::block::{BlockBody, Written, without};
use crate::form::{RowForm, ShownOutput};
use crate::history::{Forgotten, Found, History};
use crate::limits::{
    HISTORY_BYTES_MAX, LEAVING, STREAM_PACES, STREAMS_BYTES_PER_SECOND, STREAMS_MAX,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use weir_engine::rows::{Output, Rows};

/// Keeps rows for the clients that ask for them. Clones are of the same.
#[derive(Clone)]
pub struct RowLog(Arc<SharedLog>);

struct SharedLog {
    form: RowForm,
    /// Whether rows are kept for clients that come later.
    keeps: bool,
    /// How many clients get rows as they come, looked at for every batch of rows, ...
    streams: AtomicUsize,
    /// ... and how many those that are kept, too.
    followers: AtomicUsize,
    /// Rows that streams lost.
    lost: AtomicU64,
    state: Mutex<LogState>,
    /// Notified when a stream leaves.
    left: Condvar,
}

#[derive(Default)]
struct LogState {
    programs: BTreeMap<String, History>,
    /// Of each output of the run, its program and its number there.
    outputs: Vec<(String, usize)>,
    bytes: usize,
    /// The number of the first row of a program that begins: greater than those of all programs
    /// that are gone, of which clients may still have numbers.
    begin: u64,
    /// Programs that are opened next do not go on with earlier rows.
    anew: bool,
    /// There will be no more rows.
    closed: bool,
    streams: Vec<StreamCursor>,
    /// The threads of clients that wait for rows, and of which programs.
    waiting: Vec<(Thread, Vec<String>)>,
}

/// A client that gets rows as they come.
struct StreamCursor {
    id: u64,
    program: String,
    /// The number of the row that it gets next.
    next: u64,
    /// Rows of its program that is gone, before any of those from `next` on.
    rest: Vec<Found>,
    /// Its program has no more rows, ...
    ended: bool,
    /// ... and those that are kept by its name are of another.
    gone: bool,
    /// Since when it takes what it got.
    taking_since: Option<Instant>,
}

/// Rows of a program that a client has not seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unseen {
    /// The outputs, for a client that saw none of these rows before.
    pub(crate) outputs: Option<Vec<ShownOutput>>,
    /// Rows between these and those that it has seen, which are not kept.
    pub(crate) skipped: u64,
    /// Blocks of lines of JSON, which all clients share.
    pub(crate) blocks: Vec<Arc<[u8]>>,
    /// The number of the row after these.
    pub(crate) next: u64,
}

/// The next event of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RowEvent {
    /// So many rows were not kept for it, and then came these.
    Rows(u64, Vec<Arc<[u8]>>),
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

impl LogState {
    /// Wakes the clients that wait for rows of a program, or all.
    fn wake(&self, program: Option<&str>) {
        for (thread, programs) in &self.waiting {
            if program.is_none_or(|program| programs.iter().any(|one| one == program)) {
                thread.unpark();
            }
        }
    }

    /// Counts rows that are kept no more; gives how many streams lost.
    fn forget(&mut self, program: &str, forgotten: &Forgotten) -> u64 {
        self.bytes -= forgotten.bytes;
        let of_program = self.streams.iter().filter(|s| s.program == program && !s.gone);
        let rows = &forgotten.rows;
        of_program.map(|s| rows.end.saturating_sub(s.next.max(rows.start))).sum()
    }

    /// Changes the rows of a program, and forgets the oldest rows beyond the bounds; gives how many
    /// streams lost.
    fn change(&mut self, program: &str, change: impl FnOnce(&mut History)) -> u64 {
        let Some(history) = self.programs.get_mut(program) else { return 0 };
        let before = history.bytes();
        change(history);
        self.bytes = self.bytes - before + history.bytes();
        let mut lost = 0;
        while let Some(gone) = self.programs.get_mut(program).and_then(History::shrink) {
            lost += self.forget(program, &gone);
        }
        while self.bytes > HISTORY_BYTES_MAX {
            let largest = self.programs.iter_mut().max_by_key(|(_, history)| history.bytes());
            let Some((name, history)) = largest else { break };
            let (name, Some(gone)) = (name.clone(), history.forget()) else { break };
            lost += self.forget(&name, &gone);
        }
        lost
    }

    /// Forgets the rows of a program that no stream is of.
    fn forget_unfollowed(&mut self, program: &str) {
        if self.streams.iter().any(|stream| stream.program == program) {
            return;
        }
        while let Some(gone) = self.programs.get_mut(program).and_then(History::forget) {
            self.forget(program, &gone);
        }
    }

    fn stream(&mut self, id: u64) -> Option<&mut StreamCursor> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// No program has rows any more.
    fn end_streams(&mut self) {
        self.outputs.clear();
        self.streams.iter_mut().for_each(|stream| stream.ended = true);
        self.wake(None);
    }
}

impl RowLog {
    /// A log; `keeps`: also of rows that nobody asked for yet.
    pub fn new(form: RowForm, keeps: bool) -> RowLog {
        RowLog(Arc::new(SharedLog {
            form,
            keeps,
            streams: AtomicUsize::default(),
            followers: AtomicUsize::default(),
            lost: AtomicU64::default(),
            state: Mutex::default(),
            left: Condvar::default(),
        }))
    }

    /// How the rows look.
    pub fn form(&self) -> &RowForm {
        &self.0.form
    }

    /// Whether rows are kept for clients that come later.
    pub fn keeps(&self) -> bool {
        self.0.keeps
    }

    /// Rows will be of these outputs. Clients of other programs get what is on its way, and no
    /// more.
    pub fn open(&self, outputs: &[Output]) {
        let mut state = self.0.state.lock();
        let anew = std::mem::take(&mut state.anew);
        let mut before = std::mem::take(&mut state.programs);
        state.outputs.clear();
        let writers = self.0.form.writers(outputs);
        for (shown, writer) in self.0.form.shown(outputs).into_iter().zip(writers) {
            let (program, begin) = (shown.program.clone(), state.begin);
            let history = state.programs.entry(program.clone());
            let number = history.or_insert_with(|| History::new(begin)).add_output(shown, writer);
            state.outputs.push((program, number));
        }
        let LogState { programs, streams, begin, .. } = &mut *state;
        for (name, old) in &mut before {
            let history = programs.get_mut(name);
            if let Some(history) = history {
                if old.is_like(history) && !anew {
                    std::mem::swap(history, old);
                    continue;
                }
                // No client's cursor is right any more, so each is told of the outputs.
                history.begin_at(old.next() + 1);
            }
            *begin = (*begin).max(old.next() + 1);
            for stream in streams.iter_mut().filter(|stream| stream.program == *name) {
                stream.leave(old, programs.get(name).map(History::begin));
            }
        }
        state.bytes = state.programs.values().map(History::bytes).sum();
        state.wake(None);
    }

    /// Keeps rows of an output for the clients that want them.
    pub fn add(&self, output: usize, rows: &Rows) {
        let log = &*self.0;
        if !log.keeps && log.streams.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut state = log.state.lock();
        let Some((program, at)) = state.outputs.get(output).cloned() else { return };
        let is_read = state.streams.iter().any(|stream| stream.program == program);
        if !log.keeps && !is_read {
            return;
        }
        let is_read = is_read || log.followers.load(Ordering::Relaxed) > 0;
        let lost = state.change(&program, |history| history.append(at, rows, is_read));
        log.lost.fetch_add(lost, Ordering::Relaxed);
        state.wake(Some(&program));
    }

    /// The input has ended. Packets may be read again; then rows begin anew.
    pub fn rest(&self) {
        let mut state = self.0.state.lock();
        state.anew = true;
        state.end_streams();
    }

    /// Ends all streams, as the run ends. Clients have a moment to take the rows that wait, unless
    /// they have taken nothing for as long already.
    #[expect(clippy::disallowed_methods, reason = "how long a client has taken nothing")]
    pub fn close(&self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        state.end_streams();
        let now = Instant::now();
        let stays = |state: &mut LogState| state.streams.iter().any(|s| !s.is_stuck(now));
        self.0.left.wait_while_for(&mut state, stays, LEAVING);
    }

    /// How many clients get rows.
    pub fn clients(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed) + self.0.followers.load(Ordering::Relaxed)
    }

    /// Rows that streams did not take in time, all clients.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// One more client that gets kept rows, until the result is dropped; `None` if there are as
    /// many as may be.
    pub(crate) fn follow(&self) -> Option<Follower> {
        let before = self.0.followers.fetch_add(1, Ordering::Relaxed);
        let follower = Follower(self.clone());
        (before < STREAMS_MAX).then_some(follower)
    }

    /// The rows of programs that a client has not seen, by its cursors, which are moved; waits at
    /// most so long for a change if there are none. `None`: there will be no more.
    pub(crate) fn unseen(
        &self,
        cursors: &mut [(String, Option<u64>)],
        patience: Duration,
    ) -> Option<Vec<(String, Unseen)>> {
        let programs: Vec<String> = cursors.iter().map(|(program, _)| program.clone()).collect();
        let mut found = Vec::new();
        let closed = self.wait(&programs, patience, |state| {
            for (program, cursor) in &mut *cursors {
                if let Some(rows) = state.programs.get_mut(program).and_then(|h| h.since(*cursor)) {
                    *cursor = Some(rows.next);
                    found.push((program.clone(), rows));
                }
            }
            !found.is_empty() || state.closed
        });
        let is_end = found.is_empty() && closed.closed;
        drop(closed);
        let write = |(program, rows): (String, Found)| {
            let unseen = self.written(&program, rows);
            (program, unseen)
        };
        (!is_end).then(|| found.into_iter().map(write).collect())
    }

    /// The lines of rows, written by the first client that wants them.
    fn written(&self, program: &str, found: Found) -> Unseen {
        let Found { outputs, skipped, blocks, next } = found;
        let one = |(first, seen, body): (u64, u64, Arc<BlockBody>)| {
            let Written { lines, is_new } = body.written();
            if is_new {
                self.weigh(program, first, lines.len());
            }
            without(lines, seen)
        };
        Unseen { outputs, skipped, blocks: blocks.into_iter().map(one).collect(), next }
    }

    fn weigh(&self, program: &str, first: u64, bytes: usize) {
        let lost = self.0.state.lock().change(program, |history| history.weigh(first, bytes));
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Waits until this holds, at most so long, and looks anew when there are rows of these
    /// programs.
    #[expect(clippy::disallowed_methods, reason = "how long a client waits")]
    fn wait(
        &self,
        programs: &[String],
        patience: Duration,
        mut holds: impl FnMut(&mut LogState) -> bool,
    ) -> MutexGuard<'_, LogState> {
        let until = Instant::now() + patience;
        loop {
            let mut state = self.0.state.lock();
            let left = until.saturating_duration_since(Instant::now());
            if holds(&mut state) || left.is_zero() {
                return state;
            }
            let own = thread::current();
            state.waiting.push((own.clone(), programs.to_vec()));
            drop(state);
            thread::park_timeout(left);
            self.0.state.lock().waiting.retain(|(thread, _)| thread.id() != own.id());
        }
    }

    /// The rows of a program from now on.
    pub(crate) fn subscribe(&self, program: &str) -> Result<RowStream, NoRows> {
        let mut state = self.0.state.lock();
        if !state.outputs.iter().any(|(known, _)| known == program) {
            return Err(NoRows::Unknown);
        }
        if state.streams.len() >= STREAMS_MAX {
            return Err(NoRows::Full);
        }
        let next = state.programs.get_mut(program).map_or(0, History::next);
        let id = state.streams.iter().map(|stream| stream.id + 1).max().unwrap_or(0);
        state.streams.push(StreamCursor {
            id,
            program: program.to_owned(),
            next,
            rest: Vec::new(),
            ended: false,
            gone: false,
            taking_since: None,
        });
        self.0.streams.store(state.streams.len(), Ordering::Relaxed);
        Ok(RowStream { log: self.clone(), id, program: program.to_owned() })
    }
}

impl StreamCursor {
    /// Takes along what is left of its program, which goes on at another number or not at all.
    fn leave(&mut self, old: &mut History, begin: Option<u64>) {
        while !self.gone
            && let Some(found) = old.since(Some(self.next))
        {
            self.next = found.next;
            self.rest.push(found);
        }
        match begin {
            Some(begin) if !self.ended => self.next = begin,
            _ => (self.ended, self.gone) = (true, true),
        }
    }

    /// Whether the client has taken nothing for so long that the end of a run does not wait for it.
    fn is_stuck(&self, now: Instant) -> bool {
        self.taking_since.is_some_and(|since| now.saturating_duration_since(since) > LEAVING)
    }
}

/// The rows of a program for a client, until this is dropped.
pub(crate) struct RowStream {
    log: RowLog,
    id: u64,
    program: String,
}

impl RowStream {
    /// Waits at most this long for what comes next.
    #[expect(clippy::disallowed_methods, reason = "how long a client takes nothing")]
    pub(crate) fn next(&self, patience: Duration) -> RowEvent {
        let mut found = None;
        let mut state = self.log.wait(std::slice::from_ref(&self.program), patience, |state| {
            let LogState { programs, streams, .. } = state;
            let Some(stream) = streams.iter_mut().find(|stream| stream.id == self.id) else {
                return true;
            };
            if !stream.rest.is_empty() {
                found = Some(stream.rest.remove(0));
            } else if !stream.gone
                && let Some(history) = programs.get_mut(&self.program)
            {
                found = history.since(Some(stream.next));
                stream.next = found.as_ref().map_or(stream.next, |found| found.next);
            }
            found.is_some() || stream.ended
        });
        let Some(found) = found else {
            let ended = state.stream(self.id).is_none_or(|stream| stream.ended);
            return if ended { RowEvent::End } else { RowEvent::Quiet };
        };
        if let Some(stream) = state.stream(self.id) {
            stream.taking_since = Some(Instant::now());
        }
        drop(state);
        let Unseen { skipped, blocks, .. } = self.log.written(&self.program, found);
        RowEvent::Rows(skipped, blocks)
    }

    /// Leaves the client alone after it took so many bytes, but for the end: all clients together
    /// get [`STREAMS_BYTES_PER_SECOND`], and each gets what comes meanwhile in one go.
    pub(crate) fn rest(&self, bytes: usize) {
        let share = STREAMS_BYTES_PER_SECOND / self.log.clients().max(1) as f64;
        let pause = Duration::from_secs_f64(bytes as f64 / share);
        let pause = pause.clamp(*STREAM_PACES.start(), *STREAM_PACES.end());
        drop(self.log.wait(&[], pause, |state| {
            let stream = state.stream(self.id);
            stream.is_none_or(|stream| {
                stream.taking_since = None;
                stream.ended
            })
        }));
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        let mut state = self.log.0.state.lock();
        state.streams.retain(|stream| stream.id != self.id);
        if !self.log.0.keeps {
            state.forget_unfollowed(&self.program);
        }
        self.log.0.streams.store(state.streams.len(), Ordering::Relaxed);
        self.log.0.left.notify_all();
    }
}

/// A client that gets kept rows.
pub(crate) struct Follower(RowLog);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
