//! The keys of the rows that a join holds: each has a number, and of its right rows the first and
//! the last.

use crate::checkpoint::{Checkpoint, Passed};
use crate::key::{Chosen, KeyPart, Layout, Pool, narrow_rows, pack, pass_keys};
use crate::limits::JOIN_KEYS_SLACK;
use crate::processor::prefetch;
use crate::rows::Arena;
use crate::table::{HashKey, Keys, NO_ROW, Table};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::{Expr, Type};

/// No row.
pub(super) const NONE: u64 = u64::MAX;

/// Cells of a key: its first right row and its last.
const CELLS: usize = 2;

/// A key's number: the row of its table, then which table, narrow or wide.
fn number(table: usize, row: u32) -> u64 {
    u64::from(row) << 1 | table as u64
}

/// Table and row of a number.
fn split(number: u64) -> (usize, usize) {
    ((number & 1) as usize, (number >> 1) as usize)
}

/// Keys by number. Keys without rows go when they are more than those with rows, all at once.
pub(super) struct KeyTable {
    parts: Vec<KeyPart>,
    texts: Pool,
    kinds: Vec<Kind>,
    /// Texts that found no room in pools that are no more.
    refused: u64,
    positions: [u16; BATCH],
    found: [u32; BATCH],
}

/// Narrow keys, or wide ones.
struct Kind {
    layout: Layout,
    table: Table,
    /// The table that this one takes turns with.
    other: Table,
    keys: Keys,
    /// While keys go: the new row of each old one, and the old rows in new order.
    new: Vec<u32>,
    old: Vec<u32>,
}

impl Kind {
    fn new(layout: Layout, hash_key: HashKey) -> Kind {
        let table = || Table::new(layout.words, CELLS, u64::MAX, hash_key);
        let (table, other) = (table(), table());
        let keys = Keys::new(layout.words);
        Kind { layout, table, other, keys, new: Vec::new(), old: Vec::new() }
    }
}

impl KeyTable {
    /// No keys of parts of these types.
    pub(super) fn new(types: &[Type], hash_key: HashKey) -> KeyTable {
        let part = |(i, ty): (usize, &Type)| KeyPart::of(&Expr::column(i, ty.clone()));
        let parts: Vec<KeyPart> = types.iter().enumerate().map(part).collect();
        let (narrow, wide) = Layout::both(&parts);
        let kinds = [Some(narrow), wide].into_iter().flatten();
        KeyTable {
            kinds: kinds.map(|layout| Kind::new(layout, hash_key)).collect(),
            parts,
            texts: Pool::default(),
            refused: 0,
            positions: [0; BATCH],
            found: [0; BATCH],
        }
    }

    /// How many keys there are, with those that have no rows.
    pub(super) fn len(&self) -> usize {
        self.kinds.iter().map(|kind| kind.table.len()).sum()
    }

    /// Texts that found no room, and were taken as the empty one.
    pub(super) fn refused(&self) -> u64 {
        self.refused + self.texts.refused()
    }

    /// The numbers of the keys of some rows, at the rows' places in `out`.
    pub(super) fn find(
        &mut self,
        columns: &[&Column],
        rows: Bits,
        arena: &Arena,
        out: &mut [u64; BATCH],
    ) {
        let narrow = narrow_rows(&self.parts, columns, rows);
        for (k, set) in [narrow, rows.minus(narrow)].into_iter().enumerate() {
            if set.is_empty() {
                continue;
            }
            let KeyTable { kinds, positions, found, texts, .. } = self;
            let mut n = 0;
            set.each(|i| {
                positions[n & (BATCH - 1)] = i as u16;
                n += 1;
            });
            let Kind { layout, table, keys, .. } = &mut kinds[k];
            let positions = &positions[..n];
            pack(layout, columns, Chosen { set, positions }, texts, arena, keys);
            table.hash_keys(keys);
            table.lookup(keys, &[NONE; CELLS], found);
            for (&i, &row) in positions.iter().zip(&found[..]) {
                out[i as usize & (BATCH - 1)] = number(k, row);
            }
        }
    }

    /// Where the cells of a key stand among the words of its table's rows.
    fn at(&self, key: u64) -> (usize, usize) {
        let (k, row) = split(key);
        let table = &self.kinds[k].table;
        (k, row * table.stride() + table.key_words())
    }

    /// Asks for the cells of a key.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: u64) {
        let (k, at) = self.at(key);
        prefetch(self.kinds[k].table.rows(), at);
    }

    /// The first right row of a key, or [`NONE`].
    #[inline(always)]
    pub(super) fn first(&self, key: u64) -> u64 {
        let (k, at) = self.at(key);
        self.kinds[k].table.rows()[at]
    }

    /// The first and the last right row of a key.
    #[inline(always)]
    pub(super) fn ends(&mut self, key: u64) -> &mut [u64; CELLS] {
        let (k, at) = self.at(key);
        let cells = &mut self.kinds[k].table.rows_mut()[at..];
        cells.first_chunk_mut().expect("a key has its cells")
    }

    /// Saves all keys, or restores them, without right rows.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let KeyTable { parts, texts, kinds, .. } = self;
        kinds.iter_mut().try_for_each(|Kind { layout, table, .. }| {
            pass_keys(at, (table, &[NONE; CELLS]), (layout, parts), texts)
        })
    }

    /// Whether there is a key of this number.
    pub(super) fn has(&self, key: u64) -> bool {
        let (k, row) = split(key);
        self.kinds.get(k).is_some_and(|kind| row < kind.table.len())
    }

    /// Lets keys without rows go, if they are many. `each` hands out the key of every row held, to
    /// be replaced by its new number.
    pub(super) fn sweep(&mut self, held: usize, each: impl FnOnce(&mut dyn FnMut(&mut u64))) {
        if self.len() <= held.saturating_mul(2).saturating_add(JOIN_KEYS_SLACK) {
            return;
        }
        for kind in &mut self.kinds {
            kind.new.clear();
            kind.new.resize(kind.table.len(), NO_ROW);
            kind.old.clear();
        }
        let kinds = &mut self.kinds;
        each(&mut |key| {
            let (k, row) = split(*key);
            let Kind { new, old, .. } = &mut kinds[k];
            if new[row] == NO_ROW {
                new[row] = old.len() as u32;
                old.push(row as u32);
            }
            *key = number(k, new[row]);
        });
        let texts = std::mem::take(&mut self.texts);
        for k in 0..self.kinds.len() {
            self.move_keys(k, &texts);
        }
        self.refused += texts.refused();
    }

    /// Moves the keys that stay to the other table, whose rows are numbered as they come.
    fn move_keys(&mut self, k: usize, texts: &Pool) {
        let Kind { layout, table, other, keys, old, .. } = &mut self.kinds[k];
        std::mem::swap(table, other);
        table.clear();
        let mut key = Vec::with_capacity(layout.words);
        for rows in old.chunks(BATCH) {
            for (j, &row) in rows.iter().enumerate() {
                key.clear();
                key.extend_from_slice(other.key(row));
                layout.move_texts(&mut key, texts, &mut self.texts);
                keys.words.iter_mut().zip(&key).for_each(|(plane, word)| plane[j] = *word);
            }
            keys.len = rows.len();
            table.hash_keys(keys);
            table.lookup(keys, &[NONE; CELLS], &mut self.found);
            let (stride, words) = (table.stride(), table.key_words());
            for (&from, &to) in rows.iter().zip(&self.found[..]) {
                let cells = &other.row(from)[words..][..CELLS];
                table.rows_mut()[to as usize * stride + words..][..CELLS].copy_from_slice(cells);
            }
        }
        other.clear();
    }
}
