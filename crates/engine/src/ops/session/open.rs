//! The sessions of one layout that take rows: found by key, ended, and their rows used again.
//!
//! The word [`META`] of a session: the low byte holds flags, the rest, while it takes rows, when
//! its latest row came, as the number of that row; after its end, the [`EndReason`].

mod anew;

use super::wheel::Wheel;
use crate::agg::end_reason::SHIFT;
use crate::ops::session_words::{END, LAST, META, ROWS, START};
use crate::pages::LINE_WORDS;
use crate::processor::prefetch;
use crate::table::{HashKey, Index, Keys, Prefetcher, Table};
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::{EndReason, Session};

/// The session is open: neither closed nor ended.
const OPEN: u64 = 1;
/// The row is in the wheel: once, from when it is first used, whichever session it holds.
const IN_WHEEL: u64 = 2;
/// [`END`] says when the session ends: before the time at which its latest row came.
const LAGS: u64 = 4;
/// The session is closed: it takes rows that lag, and those that come while it lingers.
const CLOSED: u64 = 8;
/// As [`IN_WHEEL`], of the wheel of sessions that are closed.
const IN_CLOSING: u64 = 16;
/// A row of the session was counted as lagging.
const COUNTED: u64 = 32;
/// The session before it of its key took rows until this one began.
const FOLLOWS: u64 = 64;
/// A row joined the session that would join none that is closed, or may have done so.
const BEGINS: u64 = 128;

/// Which sessions of a table are open.
pub(super) struct OpenSessions {
    session: Session,
    index: Index,
    /// The row that each key at hand is likely to have.
    likely: Box<[u32; BATCH]>,
    live: usize,
    /// How many are closed.
    closed: usize,
    /// Rows that lagged.
    pub(super) lagging: u64,
    /// Rows that have ended and did not come out, in that order.
    pub(super) ended: Vec<u32>,
    /// The tick at which each of them comes out, where other probes are to know.
    pub(super) dues: Vec<i64>,
    /// That of what ends now.
    pub(super) due: Option<DueTicks>,
    free: Vec<u32>,
    wheel: Wheel,
    closing: Wheel,
}

/// When sessions that end now come out, for other probes.
#[derive(Clone, Copy)]
pub(super) struct DueTicks {
    /// The first tick that had not passed.
    pub(super) first: i64,
    /// The tick at which this probe finds that they have ended.
    pub(super) own: i64,
}

impl DueTicks {
    /// That of a closed session, which had lingered at this tick: the clock of this probe may have
    /// stood still then, and that of a run over the packets of all probes not.
    fn of_closed(self, lingered: i64) -> i64 {
        lingered.max(self.first).min(self.own)
    }
}

/// Keys at hand, and where in the batch their rows stand.
pub(super) struct Coming<'a> {
    pub(super) keys: &'a Keys,
    pub(super) positions: &'a [u16],
}

/// The terms that decide whether a row joins a session.
pub(super) struct Terms<'a> {
    pub(super) session: Session,
    /// Of each row its event time.
    pub(super) times: &'a [u64; BATCH],
    /// As in [`crate::ops::operator::Batch`].
    pub(super) clock: &'a [i64],
    /// Numbers that rise with each row that comes.
    pub(super) turns: &'a [u64],
    pub(super) marked: Marked,
}

/// Rows that are more to their session than its next.
#[derive(Clone, Copy)]
pub(super) struct Marked {
    /// The rows that close it.
    pub(super) until: Bits,
    /// The rows that join none that is closed.
    pub(super) unless: Bits,
    /// All of those, and those that came after the watermark had passed them.
    pub(super) slow: Bits,
}

/// A row that comes.
#[derive(Clone, Copy)]
pub(super) struct Came {
    /// Its event time.
    pub(super) ts: i64,
    /// The later of that and the watermark.
    pub(super) clock: i64,
    /// Its number.
    pub(super) turn: u64,
}

impl Terms<'_> {
    /// Row `i` of the batch.
    pub(super) fn row(&self, i: usize) -> Came {
        Came { ts: self.times[i] as i64, clock: self.clock[i], turn: self.turns[i] }
    }
}

/// The words of a session after its key.
fn head_of(table: &mut Table, row: u32) -> &mut [u64] {
    let key_words = table.key_words();
    &mut table.row_mut(row)[key_words..]
}

/// The number of the latest row of a session, if it is open.
pub(super) fn turn(table: &Table, row: u32) -> Option<u64> {
    let meta = table.row(row)[table.key_words() + META];
    (meta & OPEN != 0).then_some(meta >> SHIFT)
}

/// The hash of a session's key.
fn hash_of(table: &Table, row: u32, key: HashKey) -> u64 {
    key.hash(table.key(row).iter().copied())
}

/// All sessions that take rows: those that are open, and those that are closed.
pub(super) fn taking_rows(table: &Table) -> impl Iterator<Item = u32> {
    let meta = |row| table.row(row)[table.key_words() + META];
    (0..table.len() as u32).filter(move |&row| meta(row) & (OPEN | CLOSED) != 0)
}

/// The greatest time of a session's rows.
fn end_of(head: &[u64]) -> i64 {
    head[if head[META] & LAGS != 0 { END } else { LAST }] as i64
}

/// Why a session ends before a row of this time, if it does, and its greatest time; `begins`:
/// whether the row joins none that is closed.
pub(super) fn ends_before(
    table: &mut Table,
    row: u32,
    (session, begins): (Session, bool),
    ts: i64,
) -> Option<(EndReason, i64)> {
    let head = head_of(table, row);
    let (start, end, is_closed) = (head[START] as i64, end_of(head), head[META] & CLOSED != 0);
    let wait = if is_closed { session.lingers_ns() } else { session.gap_ns };
    let reason = if is_closed && (begins || session.rows.is_some()) {
        EndReason::Detected
    } else if ts.saturating_sub(end) >= wait {
        EndReason::Idle
    } else if session.active_ns.is_some_and(|active| ts.saturating_sub(start) >= active) {
        EndReason::Active
    } else {
        return None;
    };
    Some((reason, end))
}

/// The role of a row in the session that it joins.
#[derive(Clone, Copy)]
pub(super) struct Role {
    /// It closes the session.
    pub(super) closes: bool,
    /// It joins none that is closed.
    pub(super) begins: bool,
    /// There may be such rows.
    pub(super) any_begins: bool,
}

/// Whether in the order of times a row that joins might have come to another session, or, where it
/// closes this one, been its last. Sessions that came out at `tick` or before are not known any
/// more.
pub(super) fn lags(
    table: &mut Table,
    row: u32,
    (session, role): (Session, Role),
    ts: i64,
    tick: i64,
) -> bool {
    let head = head_of(table, row);
    let (start, end) = (head[START] as i64, end_of(head));
    let before = |t: i64| t.saturating_sub(ts);
    let is_first = ts < start;
    let is_long = session.active_ns.is_some_and(|active| before(end) >= active);
    let follows = head[META] & FOLLOWS != 0;
    let apart = follows || ts < tick || before(start) >= session.gap_ns || is_long;
    // One that begins the next session may come after it.
    let begins = head[META] & BEGINS != 0 || role.any_begins && is_first;
    let cuts = begins || before(end) >= session.lingers_ns();
    if role.begins || role.any_begins && is_first {
        head[META] |= BEGINS;
    }
    is_first && apart || role.closes && ts < end && cuts
}

/// Lets a row join a session; returns whether it is the last that may.
pub(super) fn touch(table: &mut Table, row: u32, session: Session, came: Came) -> bool {
    let head = head_of(table, row);
    let (end, last) = (end_of(head).max(came.ts), (head[LAST] as i64).max(came.clock));
    head[START] = (head[START] as i64).min(came.ts) as u64;
    (head[LAST], head[END]) = (last as u64, end as u64);
    let lags = if end < last { LAGS } else { 0 };
    head[META] = came.turn << SHIFT | head[META] & (0xff ^ LAGS) | lags;
    session.rows.is_some_and(|rows| {
        head[ROWS] += 1;
        head[ROWS] >= rows
    })
}

impl OpenSessions {
    pub(super) fn new(session: Session, hash_key: HashKey) -> OpenSessions {
        OpenSessions {
            session,
            index: Index::new(hash_key),
            likely: Box::new([0; BATCH]),
            live: 0,
            closed: 0,
            lagging: 0,
            ended: Vec::new(),
            dues: Vec::new(),
            due: None,
            free: Vec::new(),
            wheel: Wheel::new(session.gap_ns, session.tick_ns()),
            closing: Wheel::new(session.lingers_ns(), session.tick_ns()),
        }
    }

    /// How many sessions are open.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// How many sessions take rows: those that are open, and those that are closed.
    pub(super) fn taking(&self) -> usize {
        self.live + self.closed
    }

    /// How many sessions are closed or have ended, and did not come out.
    pub(super) fn waiting(&self) -> usize {
        self.closed + self.ended.len()
    }

    /// Makes room for so many open sessions.
    pub(super) fn expect(&mut self, sessions: usize) {
        self.index.reserve(sessions);
    }

    /// The hash key of the keys that are looked up here.
    pub(super) fn hash_key(&self) -> HashKey {
        self.index.hash_key()
    }

    /// Finds sessions by a new key from now on, if they crowd by this one. Keys are hashed after
    /// that.
    pub(super) fn relieve(&mut self, table: &Table) {
        if self.index.is_crowded() {
            let key = HashKey::random();
            self.index.rekey(key, taking_rows(table).map(|row| (row, hash_of(table, row, key))));
        }
    }

    /// The prefetcher of the memory that looking up a hash will need first.
    pub(super) fn prefetcher(&self) -> Prefetcher<'_> {
        self.index.prefetcher()
    }

    /// Makes room for the sessions of keys, and asks for those that are likely theirs.
    pub(super) fn prepare(&mut self, table: &Table, coming: &Coming<'_>) {
        let n = coming.keys.len.min(BATCH);
        debug_assert!(coming.keys.hash_key == self.index.hash_key(), "hashed for this index");
        self.index.reserve(n);
        let (rows, stride) = (table.rows(), table.stride());
        self.index.likely(&coming.keys.hashes[..n], &mut self.likely, |row| {
            let at = (row as usize).wrapping_mul(stride);
            prefetch(rows, at);
            if stride > LINE_WORDS {
                prefetch(rows, at.wrapping_add(LINE_WORDS));
            }
        });
    }

    /// Lets rows join open sessions, from number `from` of those at hand on, up to the first that
    /// cannot do so without further ado; returns its number.
    pub(super) fn join(
        &self,
        table: &mut Table,
        coming: &Coming<'_>,
        terms: &Terms<'_>,
        from: usize,
        ids: &mut [u32; BATCH],
    ) -> usize {
        match coming.keys.words.len() {
            1 => self.join_fixed::<1>(table, coming, terms, from, ids),
            2 => self.join_fixed::<2>(table, coming, terms, from, ids),
            5 => self.join_fixed::<5>(table, coming, terms, from, ids),
            words => self.join_by(table, coming, terms, (from, words), ids, |row, j| {
                coming.keys.words.iter().zip(row).all(|(plane, word)| plane[j] == *word)
            }),
        }
    }

    fn join_fixed<const W: usize>(
        &self,
        table: &mut Table,
        coming: &Coming<'_>,
        terms: &Terms<'_>,
        from: usize,
        ids: &mut [u32; BATCH],
    ) -> usize {
        let words: &[[u64; BATCH]; W] = coming.keys.words[..].try_into().expect("so many words");
        self.join_by(
            table,
            coming,
            terms,
            (from, W),
            ids,
            #[inline(always)]
            |row, j| (0..W).fold(0, |differ, w| differ | row[w] ^ words[w][j]) == 0,
        )
    }

    #[inline(always)]
    fn join_by(
        &self,
        table: &mut Table,
        coming: &Coming<'_>,
        terms: &Terms<'_>,
        (from, key_words): (usize, usize),
        ids: &mut [u32; BATCH],
        same: impl Fn(&[u64], usize) -> bool,
    ) -> usize {
        let Terms { session, clock, turns, marked, .. } = *terms;
        let (gap, active) = (session.gap_ns, session.active_ns.unwrap_or(i64::MAX));
        let stride = table.stride();
        let rows = table.rows_mut();
        let n = coming.positions.len().min(BATCH);
        for (j, id) in ids.iter_mut().enumerate().take(n).skip(from) {
            let likely = self.likely[j];
            let at = likely as usize * stride;
            let Some(row) = rows.get_mut(at..at + stride) else { return j };
            let i = coming.positions[j] as usize & (BATCH - 1);
            let now = clock[i];
            let since = |word: u64| now.saturating_sub(word as i64);
            let (key, head) = row.split_at_mut(key_words);
            // Not before the latest row either: that is a negative number, and a large one.
            let joins = same(key, j)
                && head[META] & (OPEN | LAGS) == OPEN
                && (since(head[LAST]) as u64) < gap as u64
                && since(head[START]) < active
                && !marked.slow.has(i);
            if !joins {
                return j;
            }
            if let Some(rows) = session.rows {
                if head[ROWS] + 1 >= rows {
                    return j;
                }
                head[ROWS] += 1;
            }
            head[LAST] = now as u64;
            head[META] = turns[i] << SHIFT | head[META] & 0xff;
            *id = likely;
        }
        n
    }

    /// The session of a key that takes rows.
    pub(super) fn find(&mut self, table: &Table, keys: &Keys, j: usize) -> Option<u32> {
        let same = |row: u32| {
            let key = &table.row(row)[..keys.words.len()];
            keys.words.iter().zip(key).all(|(plane, word)| plane[j] == *word)
        };
        let found = self.index.find(keys.hashes[j], same);
        found.map_err(|place| self.index.note(place)).ok()
    }

    /// Begins the session of a key that has none open.
    pub(super) fn begin(
        &mut self,
        table: &mut Table,
        fresh: &[u64],
        keys: &Keys,
        j: usize,
        (Came { ts, clock, .. }, follows): (Came, bool),
    ) -> u32 {
        let (row, flags) = match self.free.pop() {
            Some(row) => (row, head_of(table, row)[META] & (IN_WHEEL | IN_CLOSING)),
            None => {
                table.push_row();
                (table.len() as u32 - 1, 0)
            }
        };
        let (key, cells) = table.row_mut(row).split_at_mut(keys.words.len());
        key.iter_mut().zip(&keys.words).for_each(|(word, plane)| *word = plane[j]);
        cells[..fresh.len()].copy_from_slice(fresh);
        (cells[START], cells[LAST], cells[END]) = (ts as u64, clock as u64, ts as u64);
        let more = [(ts < clock, LAGS), (follows, FOLLOWS)].map(|(is, flag)| u64::from(is) * flag);
        cells[META] = OPEN | IN_WHEEL | flags | more[0] | more[1];
        let hash = keys.hashes[j];
        let Err(place) = self.index.find(hash, |_| false) else {
            unreachable!("no row is the same")
        };
        self.index.insert(place, hash, row);
        if flags & IN_WHEEL == 0 {
            self.wheel.schedule(row, clock.saturating_add(self.session.gap_ns));
        }
        self.live += 1;
        row
    }

    /// Counts the latest row of a session as lagging.
    pub(super) fn count_lagging(&mut self, table: &mut Table, row: u32) {
        head_of(table, row)[META] |= COUNTED;
        self.lagging += 1;
    }

    /// Closes an open session: it takes rows while it lingers, and no others.
    pub(super) fn close(&mut self, table: &mut Table, row: u32) {
        let lingers = self.session.lingers_ns();
        let head = head_of(table, row);
        if head[META] & OPEN == 0 {
            return;
        }
        if head[META] & IN_CLOSING == 0 {
            self.closing.schedule(row, (head[LAST] as i64).saturating_add(lingers));
        }
        head[META] = head[META] & !OPEN | CLOSED | IN_CLOSING;
        (self.live, self.closed) = (self.live - 1, self.closed + 1);
    }

    /// Ends a session; one that is closed ends since it was. It lags if its latest row does.
    pub(super) fn end(&mut self, table: &mut Table, row: u32, reason: EndReason) {
        self.index.remove(hash_of(table, row, self.index.hash_key()), row);
        let head = head_of(table, row);
        let (last, meta) = (head[LAST] as i64, &mut head[META]);
        let is_closed = *meta & CLOSED != 0;
        let reason = if is_closed { EndReason::Detected } else { reason };
        self.lagging += u64::from(*meta & (LAGS | COUNTED) == LAGS);
        *meta = (reason as u64) << SHIFT | *meta & (IN_WHEEL | IN_CLOSING);
        self.ended.push(row);
        self.dues.extend(self.due.map(|due| match is_closed {
            true => due.of_closed(self.session.lingered_tick(last)),
            false => due.own,
        }));
        let one = if is_closed { &mut self.closed } else { &mut self.live };
        *one -= 1;
    }

    /// Ends the sessions that are idle at this time, or have lingered; `due` is scratch.
    pub(super) fn expire(&mut self, table: &mut Table, now: i64, due: &mut Vec<u32>) {
        due.clear();
        self.wheel.turn(now, due);
        for &row in &*due {
            let head = head_of(table, row);
            let last = head[LAST] as i64;
            if head[META] & OPEN == 0 {
                head[META] &= !IN_WHEEL;
            } else if now.saturating_sub(last) >= self.session.gap_ns {
                head[META] &= !IN_WHEEL;
                self.end(table, row, EndReason::Idle);
            } else {
                self.wheel.schedule(row, last.saturating_add(self.session.gap_ns));
            }
        }
        due.clear();
        self.closing.turn(now, due);
        let lingers = self.session.lingers_ns();
        for &row in &*due {
            let head = head_of(table, row);
            let last = head[LAST] as i64;
            if head[META] & CLOSED == 0 {
                head[META] &= !IN_CLOSING;
            } else if now.saturating_sub(last) >= lingers {
                head[META] &= !IN_CLOSING;
                self.end(table, row, EndReason::Detected);
            } else {
                self.closing.schedule(row, last.saturating_add(lingers));
            }
        }
    }

    /// Lets the rows of sessions that came out be used again.
    pub(super) fn free_ended(&mut self) {
        self.free.append(&mut self.ended);
        self.dues.clear();
    }
}
