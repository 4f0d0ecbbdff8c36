//! The state of a scan: rows of fixed width, found by key, that leave when they are idle or when
//! room is needed.
//!
//! A row: the words of the key, the time of its last row, a word that says which row that was and
//! has a byte for the mode of the scan, then the mode's own words. Rows begin at multiples of their
//! width, so that one of up to eight words lies in one cache line.

mod compact;
mod saved;

use crate::key::{Chosen, Direct, Layout, Pool, pack};
use crate::limits::{ROWS_START, SWEEP};
use crate::pages::{LINE_WORDS, Words, row_words};
use crate::processor::prefetch;
use crate::rows::Arena;
use crate::table::{HashKey, Index, Keys};
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_packet::read::Plain;

/// Where the time of the last row stands, after the key.
const LAST: usize = 0;
/// Where the number of the last row stands, and the mode's byte below it, after the key.
pub(super) const META: usize = 1;
/// Words after the key and before the mode's own.
pub(super) const HEAD: usize = 2;
/// Bits of [`META`] below the number of the last row: the mode's own.
pub(super) const MODE_BITS: u32 = 8;
/// A bit of [`META`]: the key was given up.
const GONE: u64 = 1 << 63;

/// Rows ahead of the one at hand whose further lines are fetched: there can be several of each, and
/// memory takes only so many requests at a time.
const ROWS_AHEAD: usize = 6;

/// The keys of one layout and their rows.
pub(super) struct Store {
    layout: Layout,
    /// The rows of the batch that are taken here, and their positions.
    pub(super) taken: Bits,
    positions: Box<[u16; BATCH]>,
    /// Their keys, and the table row that each is likely to have.
    keys: Keys,
    likely: Box<[u32; BATCH]>,
    index: Index,
    words: Words,
    stride: usize,
    /// Rows, free ones too.
    rows: usize,
    /// Words of as many rows as there may be.
    limit: usize,
    free: Vec<u32>,
    /// Rows that were evicted since the batch began: what they hold may still be read.
    evicted: Vec<u32>,
    /// Rows that were added with a time up to this one, ...
    lag_until: i64,
    /// ...unless there were too many.
    lagging: Option<Vec<u32>>,
    sweep: Sweep,
}

/// Where the search for expired keys stands.
struct Sweep {
    hand: usize,
    /// Keys that came since the last one.
    added: usize,
    /// No row is older.
    oldest: i64,
    /// No row that was added or looked at since the hand started over is older.
    oldest_of_turn: i64,
}

/// When the last row of a key came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Age {
    /// Its time: the largest of the key's rows.
    pub(super) last: i64,
    /// Its number among the rows of the scan.
    pub(super) turn: u64,
}

/// A row of the table as the row of a batch finds it.
pub(super) struct FoundRow<'a> {
    /// Its number.
    pub(super) row: u32,
    /// Its words after the key.
    pub(super) cells: &'a mut [u64],
    /// Whether it starts anew: it was added, or it was idle.
    pub(super) fresh: bool,
}

/// The terms on which a store takes rows.
#[derive(Clone, Copy)]
pub(super) struct TakeTerms<'a> {
    /// As in [`crate::ops::operator::Batch`].
    pub(super) clock: &'a [i64],
    pub(super) idle_ns: i64,
    /// The number of the first row of the batch: those of further ones follow.
    pub(super) first: u64,
    /// Whether keys keep the numbers of their last rows.
    pub(super) numbers: bool,
    /// Keys that may be added.
    pub(super) room: usize,
}

impl Store {
    /// Keys that it holds.
    pub(super) fn held(&self) -> u64 {
        self.rows.saturating_sub(self.free.len()) as u64
    }

    /// A store for keys of a layout with `cells` words of state.
    pub(super) fn new(layout: Layout, cells: usize, max_keys: usize, hash_key: HashKey) -> Store {
        let stride = row_words(layout.words + HEAD + cells);
        Store {
            taken: Bits::NONE,
            positions: Box::new([0; BATCH]),
            keys: Keys::new(layout.words),
            likely: Box::new([0; BATCH]),
            index: Index::new(hash_key),
            words: Words::new(),
            stride,
            rows: 0,
            limit: max_keys.saturating_add(BATCH).saturating_mul(stride),
            free: Vec::new(),
            evicted: Vec::new(),
            lag_until: i64::MIN,
            lagging: Some(Vec::new()),
            sweep: Sweep { hand: 0, added: 0, oldest: i64::MAX, oldest_of_turn: i64::MAX },
            layout,
        }
    }

    /// How many keys there are.
    pub(super) fn live(&self) -> usize {
        self.rows - self.free.len() - self.evicted.len()
    }

    /// The rows from the first on, each of [`Store::stride`] words.
    #[inline(always)]
    pub(super) fn words(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Words per row.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Where [`META`] stands in a row.
    pub(super) fn meta(&self) -> usize {
        self.layout.words + META
    }

    /// Takes rows of a batch: packs their keys and asks for where they stand in the index. The row
    /// of each is to be had from [`Store::find_or_add`], best after something else was done.
    pub(super) fn take_keys(
        &mut self,
        rows: Bits,
        columns: &[&Column],
        texts: &mut Pool,
        arena: &Arena,
    ) {
        let n = self.list(rows);
        if n > 0 {
            let chosen = Chosen { set: rows, positions: &self.positions[..n] };
            pack(&self.layout, columns, chosen, texts, arena, &mut self.keys);
            self.keys.hash(self.index.hash_key());
            self.keys.hashes[..n].iter().for_each(|&h| self.index.prefetch(h));
        }
    }

    /// The same, of plain packets. `false`, having taken none, if their keys cannot be made so.
    pub(super) fn take_plain(&mut self, rows: Bits, direct: &Direct, plain: &Plain<'_>) -> bool {
        let n = self.list(rows);
        let chosen = Chosen { set: rows, positions: &self.positions[..n] };
        let ask = self.index.prefetcher();
        let hash_key = self.index.hash_key();
        let made = direct.pack(plain, chosen, &mut self.keys, hash_key, move |h| ask.prefetch(h));
        if !made {
            self.list(Bits::NONE);
        }
        made
    }

    /// Lists the positions of the rows that are taken; returns how many. Their keys are hashed
    /// after that.
    fn list(&mut self, rows: Bits) -> usize {
        if self.index.is_crowded() {
            self.rekey();
        }
        self.taken = rows;
        let mut n = 0;
        rows.each(|i| {
            self.positions[n & (BATCH - 1)] = i as u16;
            n += 1;
        });
        self.keys.len = n;
        self.index.reserve(n);
        n
    }

    /// Finds or makes the row of each of the keys that were taken, in order, and hands it to `f`
    /// with the position of its row in the batch; `f` writes [`META`]. Stops at a key that would be
    /// one more than there is room for; returns its number among those taken.
    pub(super) fn find_or_add(
        &mut self,
        terms: TakeTerms<'_>,
        these: Range<usize>,
        f: impl FnMut(usize, FoundRow<'_>),
    ) -> usize {
        match self.layout.words {
            1 => self.find_or_add_fixed::<1>(terms, these, f),
            2 => self.find_or_add_fixed::<2>(terms, these, f),
            5 => self.find_or_add_fixed::<5>(terms, these, f),
            _ => self.find_or_add_by(terms, these, f, |row, words, j| {
                words.iter().zip(row).all(|(w, k)| w[j] == *k)
            }),
        }
    }

    fn find_or_add_fixed<const W: usize>(
        &mut self,
        terms: TakeTerms<'_>,
        these: Range<usize>,
        f: impl FnMut(usize, FoundRow<'_>),
    ) -> usize {
        self.find_or_add_by(
            terms,
            these,
            f,
            #[inline(always)]
            |row, words, j| {
                let words: &[[u64; BATCH]; W] = words.try_into().expect("so many words");
                let mut differ = 0;
                for w in 0..W {
                    differ |= row[w] ^ words[w][j];
                }
                differ == 0
            },
        )
    }

    #[inline(always)]
    fn find_or_add_by(
        &mut self,
        terms: TakeTerms<'_>,
        these: Range<usize>,
        mut f: impl FnMut(usize, FoundRow<'_>),
        same: impl Fn(&[u64], &[[u64; BATCH]], usize) -> bool,
    ) -> usize {
        let (stride, key_words) = (self.stride, self.layout.words);
        let (mut room, end) = (terms.room, these.end.min(self.keys.len).min(BATCH));
        for j in these.start..end {
            let i = self.positions[j] as usize & (BATCH - 1);
            if stride > LINE_WORDS {
                self.prefetch_rest(j + ROWS_AHEAD);
            }
            let likely = self.likely[j];
            let at = likely as usize * stride;
            let hit = self.words.get(at..at + stride).is_some_and(|row| {
                same(row, &self.keys.words, j) && row[key_words + META] & GONE == 0
            });
            let (row, added) = if hit {
                (likely, false)
            } else {
                let (words, keys) = (&self.words[..], &self.keys);
                let found = self.index.find(keys.hashes[j], |row| {
                    same(&words[row as usize * stride..][..stride], &keys.words, j)
                });
                match found {
                    Ok(row) => (row, false),
                    Err(_) if room == 0 => return j,
                    Err(_) => {
                        room -= 1;
                        (self.add(j, terms.clock[i]), true)
                    }
                }
            };
            let start = row as usize * stride;
            let cells = &mut self.words[start + key_words..start + stride];
            let (clock, last) = (terms.clock[i], cells[LAST] as i64);
            let fresh = added || clock.saturating_sub(last) >= terms.idle_ns;
            cells[LAST] = last.max(clock) as u64;
            f(i, FoundRow { row, cells, fresh });
        }
        end
    }

    /// The number among those taken of the key of the row at `i` of the batch.
    fn taken_at(&self, i: usize) -> usize {
        let n = self.keys.len.min(BATCH);
        self.positions[..n].partition_point(|&position| usize::from(position) < i)
    }

    /// The row of the key that was taken of the row at `i` of the batch, if it has one.
    fn row_of(&self, i: usize) -> Option<u32> {
        let j = self.taken_at(i);
        let found = self.index.find(self.keys.hashes[j], |row| {
            let row = &self.words[row as usize * self.stride..][..self.layout.words];
            self.keys.words.iter().zip(row).all(|(plane, word)| plane[j] == *word)
        });
        found.ok()
    }

    /// Whether there is a row of the key that was taken of the row at `i` of the batch.
    pub(super) fn knows(&self, i: usize) -> bool {
        self.row_of(i).is_some()
    }

    /// Has the row of the key that was taken of the row at `i` of the batch hold what `write`
    /// writes after the key, as if its last row had come at the time `last`.
    pub(super) fn put(&mut self, i: usize, last: i64, write: impl FnOnce(&mut [u64])) {
        let row = match self.row_of(i) {
            Some(row) => row,
            None => self.add(self.taken_at(i), last),
        };
        let start = row as usize * self.stride;
        let cells = &mut self.words[start + self.layout.words..start + self.stride];
        cells[META..].fill(0);
        cells[LAST] = last as u64;
        write(cells);
    }

    /// Fetches the rows that the keys which were taken are likely to have: to be called before
    /// [`Store::find_or_add`].
    pub(super) fn prefetch(&mut self) {
        let n = self.keys.len.min(BATCH);
        let (words, stride) = (&self.words[..], self.stride);
        self.index.likely(&self.keys.hashes[..n], &mut self.likely, |row| {
            prefetch(words, (row as usize).wrapping_mul(stride));
        });
    }

    /// Fetches what of a row is not in its first line, which [`Store::prefetch`] has fetched.
    #[inline(always)]
    fn prefetch_rest(&self, j: usize) {
        let Some(&row) = self.likely.get(j) else { return };
        let at = (row as usize).wrapping_mul(self.stride);
        for line in (LINE_WORDS..self.stride).step_by(LINE_WORDS) {
            prefetch(&self.words, at.wrapping_add(line));
        }
    }

    #[inline(never)]
    fn add(&mut self, j: usize, clock: i64) -> u32 {
        self.sweep.added += 1;
        self.sweep.oldest = self.sweep.oldest.min(clock);
        self.sweep.oldest_of_turn = self.sweep.oldest_of_turn.min(clock);
        let row = self.free.pop().unwrap_or_else(|| {
            if self.rows == 0 {
                self.words.reserve(ROWS_START * self.stride, self.limit);
            }
            self.words.extend(self.stride, self.limit);
            self.rows += 1;
            self.rows as u32 - 1
        });
        let start = row as usize * self.stride;
        let words = &mut self.words[start..start + self.stride];
        let key = self.layout.words;
        words.iter_mut().zip(&self.keys.words).for_each(|(w, plane)| *w = plane[j]);
        words[key + LAST] = clock as u64;
        words[key + META..].fill(0);
        let h = self.keys.hashes[j];
        let Err(place) = self.index.find(h, |_| false) else { unreachable!("no row is the same") };
        self.index.insert(place, h, row);
        if clock <= self.lag_until {
            self.lags(row);
        }
        row
    }

    /// Notes a row that was added with an early time.
    #[cold]
    fn lags(&mut self, row: u32) {
        let is_full = self.lagging.as_ref().is_some_and(|l| l.len() > self.rows);
        match &mut self.lagging {
            Some(lagging) if !is_full => lagging.push(row),
            _ => self.lagging = None,
        }
    }

    /// The rows that were added since the last call, with a time up to the one then given; `None`
    /// where there were too many to remember.
    pub(super) fn take_lagging(&mut self) -> Option<Vec<u32>> {
        self.lagging.replace(Vec::new())
    }

    /// Notes rows from now on that are added with a time up to this one.
    pub(super) fn note_lagging(&mut self, until: i64) {
        (self.lag_until, self.lagging) = (until, Some(Vec::new()));
    }

    /// Gives up a key that is not idle long enough; what its row holds stays until
    /// [`Store::free_evicted`].
    pub(super) fn evict(&mut self, row: u32) {
        self.give_up(row);
        self.evicted.push(row);
    }

    /// Lets the rows of keys that were evicted be used again.
    pub(super) fn free_evicted(&mut self) {
        self.free.append(&mut self.evicted);
    }

    fn remove(&mut self, row: u32) {
        self.give_up(row);
        self.free.push(row);
    }

    fn give_up(&mut self, row: u32) {
        let start = row as usize * self.stride;
        self.index.remove(self.hash_of(row), row);
        self.words[start + self.layout.words + META] |= GONE;
    }

    /// When the last row of a key came; `None` if the key was given up.
    #[inline]
    pub(super) fn age(&self, row: usize) -> Option<Age> {
        let start = row * self.stride + self.layout.words;
        let (last, meta) = (self.words[start + LAST], self.words[start + META]);
        (meta & GONE == 0).then_some(Age { last: last as i64, turn: meta >> MODE_BITS })
    }

    /// How many rows of the batch were taken.
    pub(super) fn taken_rows(&self) -> usize {
        if self.taken.is_empty() { 0 } else { self.keys.len }
    }

    /// Where a key that was taken has its row in the batch.
    pub(super) fn position(&self, j: usize) -> usize {
        usize::from(self.positions[j])
    }

    /// Fetches a row.
    pub(super) fn prefetch_row(&self, row: u32) {
        prefetch(&self.words, row as usize * self.stride);
    }

    /// Fetches the slot of the index that has a row.
    pub(super) fn prefetch_slot(&self, row: u32) {
        self.index.prefetch(self.hash_of(row));
    }

    /// How many rows there are, those of keys that were given up too.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The hash of the key of a row.
    fn hash_of(&self, row: u32) -> u64 {
        let start = row as usize * self.stride;
        self.index.hash_key().hash(self.words[start..start + self.layout.words].iter().copied())
    }

    /// Finds all rows by a new key from now on.
    #[cold]
    fn rekey(&mut self) {
        let Store { words, index, stride, rows, layout, .. } = self;
        let key = HashKey::random();
        let rows = (0..).zip(words.chunks_exact(*stride).take(*rows));
        let live = rows.filter(|(_, row)| row[layout.words + META] & GONE == 0);
        let hash = |row: &[u64]| key.hash(row[..layout.words].iter().copied());
        index.rekey(key, live.map(|(n, row)| (n, hash(row))));
    }

    /// Removes keys whose last row is not after `old`, among the next few under the hand; looks at
    /// none while none can be that old.
    pub(super) fn sweep(&mut self, old: i64) {
        let added = std::mem::take(&mut self.sweep.added);
        if old < self.sweep.oldest {
            return;
        }
        for _ in 0..(SWEEP * (1 + added)).min(self.rows) {
            let row = self.sweep.hand;
            match self.age(row) {
                Some(age) if age.last <= old => self.remove(row as u32),
                Some(age) => {
                    self.sweep.oldest_of_turn = self.sweep.oldest_of_turn.min(age.last);
                }
                None => {}
            }
            self.sweep.hand += 1;
            if self.sweep.hand >= self.rows {
                self.sweep.hand = 0;
                self.sweep.oldest = std::mem::replace(&mut self.sweep.oldest_of_turn, i64::MAX);
            }
        }
    }
}
