//! Rows that wait, in time buckets: all rows of a bucket are freed at the same time, and with them
//! its memory.

use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::key::rows_at;
use crate::limits::{POOL_MAX, SPARE_BUCKETS};
use crate::processor::prefetch;
use crate::rows::{Arena, Rows, word_max};
use std::collections::BTreeMap;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;
use weir_plan::{Schema, Type};

/// How a row is held: some words of the join's own, of which the first is its time;
/// then which of its values are there, a bit each, the lowest for its time; then the values.
pub(super) struct RowLayout {
    head: usize,
    cells: Vec<Cell>,
    /// Words of a row.
    stride: usize,
}

/// A column that is held.
struct Cell {
    /// Its position in the rows that come.
    from: usize,
    /// Where its value stands in a row.
    at: usize,
    text: bool,
    /// The largest first word of a value.
    most: u64,
}

/// The first bit of a row that is not that of its time.
const FIRST_BIT: usize = 1;

impl RowLayout {
    /// Rows of these columns of a schema, with `head` words before them.
    fn new(head: usize, schema: &Schema, columns: impl Iterator<Item = usize>) -> RowLayout {
        let columns: Vec<usize> = columns.collect();
        let mut at = head + (columns.len() + FIRST_BIT).div_ceil(64);
        let mut cells = Vec::new();
        for from in columns {
            let ty = &schema.columns[from].ty;
            let text = matches!(ty, Type::Str | Type::Bytes);
            cells.push(Cell { from, at, text, most: word_max(ty) });
            at += ty.repr().words().max(1);
        }
        RowLayout { head, cells, stride: at }
    }

    /// Where the bit of value `b` stands, the time being value 0.
    fn bit(&self, b: usize) -> (usize, u32) {
        (self.head + b / 64, (b % 64) as u32)
    }

    /// Writes rows of a batch one after the other.
    fn write(&self, to: &mut [u64], texts: &mut Arena, rows: &Rows, chosen: &[u16]) {
        let set = rows_at(chosen);
        let times = rows.time.word();
        for (to, &i) in to.chunks_exact_mut(self.stride).zip(chosen) {
            to[0] = time(rows.time.present, times, i as usize) as u64;
        }
        self.write_presence(to, rows, chosen, set);
        for (cell, column) in self.cells.iter().zip(self.columns(rows)) {
            let to = to.chunks_exact_mut(self.stride).zip(chosen);
            match column.repr() {
                Repr::Bit => to.for_each(|(to, &i)| {
                    to[cell.at] = u64::from(column.truth.has(i as usize));
                }),
                Repr::Word if cell.text => to.for_each(|(to, &i)| {
                    if column.present.has(i as usize) {
                        let text = rows.arena.get(column.word()[i as usize & (BATCH - 1)]);
                        to[cell.at] = texts.put(text);
                    }
                }),
                Repr::Word => {
                    let word = column.word();
                    to.for_each(|(to, &i)| to[cell.at] = word[i as usize & (BATCH - 1)]);
                }
                Repr::Pair => {
                    let (hi, lo) = column.pair();
                    to.for_each(|(to, &i)| {
                        let i = i as usize & (BATCH - 1);
                        (to[cell.at], to[cell.at + 1]) = (hi[i], lo[i]);
                    });
                }
            }
        }
    }

    /// Writes which values are there. Values that all rows have are written together.
    fn write_presence(&self, to: &mut [u64], rows: &Rows, chosen: &[u16], set: Bits) {
        let (mut at, mut everywhere) = (self.head, 0);
        let values = || std::iter::once(&rows.time).chain(self.columns(rows)).enumerate();
        let mut put = |word: usize, bits: u64| {
            if bits != 0 {
                to.chunks_exact_mut(self.stride).for_each(|to| to[word] |= bits);
            }
        };
        for (b, column) in values() {
            let (word, shift) = self.bit(b);
            if word != at {
                put(at, everywhere);
                (at, everywhere) = (word, 0);
            }
            everywhere |= u64::from(column.present.covers(set)) << shift;
        }
        put(at, everywhere);
        for (b, column) in values().filter(|(_, column)| !column.present.covers(set)) {
            let (word, shift) = self.bit(b);
            for (to, &i) in to.chunks_exact_mut(self.stride).zip(chosen) {
                to[word] |= u64::from(column.present.has(i as usize)) << shift;
            }
        }
    }

    /// Whether the values of a row are of their types.
    fn are_values(&self, row: &[u64]) -> bool {
        self.cells.iter().enumerate().all(|(c, cell)| {
            let (word, shift) = self.bit(c + FIRST_BIT);
            row[word] >> shift & 1 == 0 || row[cell.at] <= cell.most
        })
    }

    fn columns<'a>(&self, rows: &'a Rows) -> impl Iterator<Item = &'a Column> {
        self.cells.iter().map(|cell| &rows.columns[cell.from])
    }

    /// Bytes of the texts of some rows.
    fn text_bytes(&self, rows: &Rows, chosen: &[u16]) -> usize {
        let bytes = |cell: &Cell| {
            let column = &rows.columns[cell.from];
            let there = chosen.iter().map(|&i| i as usize).filter(|&i| column.present.has(i));
            there.map(|i| Arena::len_of(column.word()[i])).sum::<usize>()
        };
        self.cells.iter().filter(|cell| cell.text).map(bytes).sum()
    }

    /// Whether a row has its time.
    pub(super) fn has_time(&self, row: &[u64]) -> bool {
        row[self.head] & 1 == 1
    }

    /// Puts value `c` of a row in row `j` of a column whose rows have no values yet.
    #[inline(always)]
    pub(super) fn get(
        &self,
        row: &[u64],
        c: usize,
        texts: &Arena,
        (column, arena): (&mut Column, &mut Arena),
        j: usize,
    ) {
        let (word, shift) = self.bit(c + FIRST_BIT);
        if row[word] >> shift & 1 == 0 {
            return;
        }
        let cell = &self.cells[c];
        let value = row[cell.at];
        column.present.set(j);
        match column.repr() {
            Repr::Bit => column.truth.put(j, value != 0),
            Repr::Word if cell.text => column.word_mut()[j] = arena.put(texts.get(value)),
            Repr::Word => column.word_mut()[j] = value,
            Repr::Pair => {
                let (hi, lo) = column.pair_mut();
                (hi[j], lo[j]) = (value, row[cell.at + 1]);
            }
        }
    }
}

/// The time of a row, 0 where it has none.
#[inline(always)]
pub(super) fn time(present: Bits, times: &[u64; BATCH], i: usize) -> i64 {
    if present.has(i) { times[i & (BATCH - 1)] as i64 } else { 0 }
}

/// A row that is held: its bucket, then its number there.
pub(super) fn address(bucket: u32, row: usize) -> u64 {
    u64::from(bucket) << 32 | row as u64
}

/// The bucket of a row by its address.
#[inline(always)]
pub(super) fn bucket_of(address: u64) -> u32 {
    (address >> 32) as u32
}

/// When the rows of a bucket are complete, and when they are let go. Both grow with their times, so
/// that buckets in the order of these are in the order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Due {
    /// When more than this has been reached, no further row comes.
    pub(super) complete: i64,
    /// When more than this has been reached, they are let go; no earlier than they are complete.
    pub(super) gone: i64,
}

/// The rows of one side.
pub(super) struct SideRows {
    pub(super) layout: RowLayout,
    buckets: Vec<TimeBucket>,
    /// Buckets in use, in the order of time.
    due: BTreeMap<Due, u32>,
    free: Vec<u32>,
    len: usize,
    /// How often the time of one of them was looked at.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<u64>,
}

/// Rows that are let go together.
#[derive(Default)]
pub(super) struct TimeBucket {
    words: Vec<u64>,
    pub(super) texts: Arena,
}

impl TimeBucket {
    /// How many rows there are.
    pub(super) fn len(&self, layout: &RowLayout) -> usize {
        self.words.len() / layout.stride
    }

    /// Its rows in the order of time, then as they came: time and number of each.
    pub(super) fn by_time(&self, layout: &RowLayout, order: &mut Vec<(i64, u32)>) {
        order.clear();
        order.extend((0..self.len(layout)).map(|i| (self.row(layout, i)[0] as i64, i as u32)));
        if !order.is_sorted() {
            order.sort_unstable();
        }
    }

    /// The words of a row.
    #[inline(always)]
    pub(super) fn row(&self, layout: &RowLayout, row: usize) -> &[u64] {
        &self.words[row * layout.stride..][..layout.stride]
    }
}

impl SideRows {
    /// No rows. Of those that come these columns are held, after `head` words.
    pub(super) fn new(
        head: usize,
        schema: &Schema,
        columns: impl Iterator<Item = usize>,
    ) -> SideRows {
        let layout = RowLayout::new(head, schema, columns);
        SideRows {
            layout,
            buckets: Vec::new(),
            due: BTreeMap::new(),
            free: Vec::new(),
            len: 0,
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds rows of a batch to the bucket of `due`. Gives the bucket and the number of the first;
    /// `None` if their texts find no room.
    pub(super) fn add(&mut self, due: Due, rows: &Rows, chosen: &[u16]) -> Option<(u32, usize)> {
        let SideRows { layout, buckets, free, .. } = self;
        let bucket = *self.due.entry(due).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                buckets.push(TimeBucket::default());
                buckets.len() as u32 - 1
            })
        });
        let TimeBucket { words, texts } = &mut buckets[bucket as usize];
        if texts.len() + layout.text_bytes(rows, chosen) > POOL_MAX {
            return None;
        }
        let start = words.len();
        words.resize(start + chosen.len() * layout.stride, 0);
        layout.write(&mut words[start..], texts, rows, chosen);
        self.len += chosen.len();
        Some((bucket, start / layout.stride))
    }

    /// Saves all rows, or restores them; `due_of` says when one of this time is let go.
    pub(super) fn pass_state(
        &mut self,
        at: &mut Checkpoint<'_>,
        due_of: impl Fn(i64) -> Due,
    ) -> Passed {
        let SideRows { layout, buckets, due, len, .. } = self;
        let n = at.len(due.len())?;
        if !at.restores() {
            return due.values().try_for_each(|&bucket| {
                let TimeBucket { words, texts } = &mut buckets[bucket as usize];
                at.pass(words)?;
                at.pass(texts)
            });
        }
        for bucket in 0..n as u32 {
            let mut rows = TimeBucket::default();
            at.pass(&mut rows.words)?;
            at.pass(&mut rows.texts)?;
            let all = rows.words.chunks(layout.stride);
            let when = rows.words.first().map(|time| due_of(*time as i64));
            let fits = |row: &[u64]| {
                row.len() == layout.stride
                    && layout.are_values(row)
                    && Some(due_of(row[0] as i64)) == when
            };
            let Some(when) =
                when.filter(|when| all.into_iter().all(fits) && !due.contains_key(when))
            else {
                return Err(BadState("rows of a join are none of one time"));
            };
            *len += rows.len(layout);
            due.insert(when, bucket);
            buckets.push(rows);
        }
        Ok(())
    }

    /// The first bucket, if it is let go when `reached` is; it stays as it is until
    /// [`SideRows::recycle`].
    pub(super) fn next_due(&mut self, reached: Option<i64>) -> Option<u32> {
        let first = self.due.first_entry()?;
        if reached.is_some_and(|reached| first.key().gone >= reached) {
            return None;
        }
        let bucket = first.remove();
        self.len -= self.buckets[bucket as usize].len(&self.layout);
        Some(bucket)
    }

    /// The buckets, in the order of time, that were not complete when `before` was reached and are
    /// now that `reached` is.
    pub(super) fn completed(&self, before: i64, reached: Option<i64>) -> impl Iterator<Item = u32> {
        let from = Due { complete: before, gone: i64::MIN };
        let open = move |due: &Due| reached.is_some_and(|reached| due.complete >= reached);
        self.due.range(from..).take_while(move |(due, _)| !open(due)).map(|(_, &bucket)| bucket)
    }

    /// Lets the rows of a bucket go.
    pub(super) fn recycle(&mut self, bucket: u32) {
        let TimeBucket { words, texts } = &mut self.buckets[bucket as usize];
        words.clear();
        texts.truncate(0);
        if self.free.len() >= SPARE_BUCKETS {
            self.buckets[bucket as usize] = TimeBucket::default();
        }
        self.free.push(bucket);
    }

    /// A bucket by number.
    #[inline(always)]
    pub(super) fn bucket(&self, bucket: u32) -> &TimeBucket {
        &self.buckets[bucket as usize]
    }

    /// The words of a row by its address.
    #[inline(always)]
    pub(super) fn row(&self, address: u64) -> &[u64] {
        self.buckets[bucket_of(address) as usize].row(&self.layout, address as u32 as usize)
    }

    /// The same, to be written.
    #[inline(always)]
    pub(super) fn row_mut(&mut self, address: u64) -> &mut [u64] {
        let stride = self.layout.stride;
        let words = &mut self.buckets[bucket_of(address) as usize].words;
        &mut words[address as u32 as usize * stride..][..stride]
    }

    /// Asks for a row.
    #[inline(always)]
    pub(super) fn prefetch(&self, address: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(address) as usize) {
            prefetch(&bucket.words, address as u32 as usize * self.layout.stride);
        }
    }

    /// Hands out word `at` of every row.
    pub(super) fn each_word(&mut self, at: usize, f: &mut dyn FnMut(&mut u64)) {
        for &bucket in self.due.values() {
            let rows = self.buckets[bucket as usize].words.chunks_exact_mut(self.layout.stride);
            rows.for_each(|row| f(&mut row[at]));
        }
    }
}
