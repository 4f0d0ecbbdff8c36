//! The keys of a `top … per`.

use crate::checkpoint::{Checkpoint, Passed};
use crate::expr::{Ctx, Src, Val};
use crate::key::{Chosen, KeyPart, Layout, Pool, choose, pack, pass_keys};
use crate::limits::PARTS_MAX;
use crate::room::{RoomCharge, RoomShare};
use crate::table::{HashKey, Keys, NO_ROW, Table};
use std::cmp::Ordering;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::Per;

/// The key of a row: its parts, and how they are packed.
pub(crate) struct PerKey {
    keys: Vec<Val>,
    parts: Vec<KeyPart>,
    layout: Layout,
    share: RoomShare,
    hash_key: HashKey,
    packed: Keys,
    /// Where the key columns stand in this batch.
    srcs: Vec<Src>,
    positions: Vec<u16>,
}

/// The keys of one window, numbered as they come.
pub(super) struct TopKeys {
    table: Table,
    pool: Pool,
    charge: RoomCharge,
}

impl PerKey {
    /// The keys of a plan, compiled.
    pub(crate) fn new(plan: &Per, keys: Vec<Val>, share: RoomShare, hash_key: HashKey) -> PerKey {
        assert!(keys.len() <= PARTS_MAX, "a key has at most {PARTS_MAX} parts");
        let parts: Vec<KeyPart> = plan.keys.iter().map(KeyPart::of).collect();
        let (narrow, wide) = Layout::both(&parts);
        let layout = wide.unwrap_or(narrow);
        PerKey {
            packed: Keys::new(layout.words),
            parts,
            layout,
            keys,
            share,
            hash_key,
            srcs: Vec::with_capacity(PARTS_MAX),
            positions: Vec::with_capacity(BATCH),
        }
    }

    /// No keys yet.
    pub(super) fn keys(&self) -> TopKeys {
        let table = Table::new(self.layout.words, 0, self.share.bound(), self.hash_key);
        TopKeys { table, pool: Pool::default(), charge: self.share.charge() }
    }

    /// Saves the keys of a window, or restores them.
    pub(super) fn pass_keys(&self, keys: &mut TopKeys, at: &mut Checkpoint<'_>) -> Passed {
        let TopKeys { table, pool, .. } = keys;
        pass_keys(at, (table, &[]), (&self.layout, &self.parts), pool)
    }

    /// Makes sure that the keys of rows are there.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_>, rows: Bits) {
        self.srcs.clear();
        self.srcs.extend(self.keys.iter().map(|k| ctx.value(k, rows)));
    }

    /// The number of each row's key, in the places of these rows; [`NO_ROW`] where there is no room
    /// for it. Returns how many there was no room for.
    pub(super) fn number(
        &mut self,
        keys: &mut TopKeys,
        ctx: &Ctx<'_>,
        rows: Bits,
        out: &mut [u32; BATCH],
    ) -> u64 {
        let PerKey { layout, packed, srcs, positions, .. } = self;
        let Some(first) = srcs.first() else { return 0 };
        // Unused entries need some column to point at.
        let mut columns: [&Column; PARTS_MAX] = [ctx.column(*first); PARTS_MAX];
        columns.iter_mut().zip(&*srcs).for_each(|(c, &src)| *c = ctx.column(src));
        choose(rows, positions);
        let chosen = Chosen { set: rows, positions };
        let columns = &columns[..srcs.len()];
        pack(layout, columns, chosen, &mut keys.pool, &ctx.regs.arena, packed);
        let most = self.share.bound();
        keys.table.set_max(most.min((keys.table.len() as u64).saturating_add(self.share.left())));
        keys.table.hash_keys(packed);
        let mut numbers = [NO_ROW; BATCH];
        let refused = keys.table.lookup(packed, &[], &mut numbers);
        for (&i, number) in positions.iter().zip(numbers) {
            out[i as usize] = number;
        }
        keys.charge.set(keys.table.len() as u64);
        refused as u64
    }

    /// The place of each key in the order of keys.
    pub(super) fn ranks(&self, keys: &TopKeys, ranks: &mut Vec<u32>, order: &mut Vec<u32>) {
        let n = keys.table.len() as u32;
        order.clear();
        order.extend(0..n);
        let key = |row: u32| keys.table.key(row);
        order.sort_unstable_by(|&a, &b| -> Ordering {
            self.layout.compare(key(a), &keys.pool, &self.layout, key(b), &keys.pool)
        });
        ranks.clear();
        ranks.resize(n as usize, 0);
        for (rank, &row) in order.iter().enumerate() {
            ranks[row as usize] = rank as u32;
        }
    }
}

impl TopKeys {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.pool.clear();
        self.charge.set(0);
    }

    /// Texts of keys that found no room.
    pub(super) fn refused(&self) -> u64 {
        self.pool.refused()
    }
}
