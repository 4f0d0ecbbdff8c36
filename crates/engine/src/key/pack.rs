//! Packing the keys of a batch.

use super::layout::{Layout, MAPPED, PACKED_WORDS_MAX, Place};
use super::part::KeyPart;
use super::pool::Pool;
use crate::expr::Class;
use crate::rows::Arena;
use crate::table::Keys;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;

/// The rows of a batch that are packed together: as a set, and as ascending positions.
#[derive(Clone, Copy)]
pub(crate) struct Chosen<'a> {
    /// The set.
    pub set: Bits,
    /// The same rows, one after the other.
    pub positions: &'a [u16],
}

/// All positions in a batch.
static IDENTITY: [u16; BATCH] = {
    let mut all = [0; BATCH];
    let mut i = 0;
    while i < BATCH {
        all[i] = i as u16;
        i += 1;
    }
    all
};

/// Lists the positions of some rows.
pub(crate) fn choose(rows: Bits, positions: &mut Vec<u16>) {
    positions.clear();
    let n = rows.count();
    if rows == Bits::first(n) {
        positions.extend_from_slice(&IDENTITY[..n]);
    } else {
        rows.each(|i| positions.push(i as u16));
    }
}

/// The rows at some positions, which rise.
pub(crate) fn rows_at(positions: &[u16]) -> Bits {
    let n = positions.len();
    match positions.last() {
        Some(&last) if usize::from(last) + 1 == n => Bits::first(n),
        _ => positions.iter().map(|&i| usize::from(i)).collect(),
    }
}

/// Packs the keys of some rows into `keys`, one after the other.
pub(crate) fn pack(
    layout: &Layout,
    columns: &[&Column],
    rows: Chosen<'_>,
    pool: &mut Pool,
    arena: &Arena,
    keys: &mut Keys,
) {
    let n = rows.positions.len();
    keys.len = n;
    // A part that every row has needs no loop for its presence bit.
    let mut all_there = [0u64; PACKED_WORDS_MAX];
    for (place, col) in layout.places.iter().zip(columns) {
        if let Some((word, shift)) = place.present
            && col.present.covers(rows.set)
        {
            all_there[word] |= 1 << shift;
        }
    }
    keys.words.iter_mut().zip(all_there).for_each(|(w, bits)| w[..n].fill(bits));
    for (p, (place, col)) in layout.places.iter().zip(columns).enumerate() {
        let all = col.present.covers(rows.set);
        if let (Some((word, shift)), false) = (place.present, all) {
            let plane = &mut keys.words[word];
            for (slot, &i) in plane.iter_mut().zip(rows.positions) {
                *slot |= (col.present.has(i as usize) as u64) << shift;
            }
        }
        // A part that is absent leaves zeroes.
        let there = if all { None } else { Some(col.present) };
        let plane = &mut keys.words[place.word];
        match layout.classes[p] {
            Class::Bit => put(plane, *place, rows, there, |i| col.truth.has(i) as u64),
            Class::Text => {
                let w = col.word();
                for (slot, &i) in plane.iter_mut().zip(rows.positions) {
                    if col.present.has(i as usize) {
                        *slot = pool.intern(arena.get(w[i as usize]));
                    }
                }
            }
            Class::Pair if layout.narrow => {
                let lo = col.pair().1;
                put(plane, *place, rows, there, |i| lo[i] & 0xffff_ffff);
            }
            Class::Pair => {
                let (hi, lo) = col.pair();
                put(plane, *place, rows, there, |i| hi[i]);
                put(&mut keys.words[place.word + 1], *place, rows, there, |i| lo[i]);
            }
            _ => {
                let w = col.word();
                put(plane, *place, rows, there, |i| w[i]);
            }
        }
    }
}

/// Adds the values of some rows to a plane of words, each shifted to its place; `there`: of those
/// rows only. A value wider than its place would spill into the part above it, so that tests of
/// debug builds stop here.
#[inline(always)]
fn put(
    plane: &mut [u64; BATCH],
    place: Place,
    rows: Chosen<'_>,
    there: Option<Bits>,
    value: impl Fn(usize) -> u64,
) {
    let n = rows.positions.len().min(BATCH);
    let shift = place.shift;
    let value = |i: usize| {
        let v = value(i);
        debug_assert!(place.bits >= 64 || v >> place.bits == 0, "{v} in {} bits", place.bits);
        v
    };
    match there {
        None if rows.set == Bits::first(n) => {
            for (i, slot) in plane[..n].iter_mut().enumerate() {
                *slot |= value(i) << shift;
            }
        }
        None => {
            for (slot, &i) in plane.iter_mut().zip(rows.positions) {
                *slot |= value(i as usize & (BATCH - 1)) << shift;
            }
        }
        Some(there) => {
            for (slot, &i) in plane.iter_mut().zip(rows.positions) {
                let i = i as usize & (BATCH - 1);
                *slot |= if there.has(i) { value(i) << shift } else { 0 };
            }
        }
    }
}

/// The rows among `rows` whose addresses are all IPv4 or absent.
pub(crate) fn narrow_rows(parts: &[KeyPart], columns: &[&Column], rows: Bits) -> Bits {
    parts.iter().zip(columns).filter(|(p, _)| p.class == Class::Pair).fold(
        rows,
        |left, (_, col)| {
            let (hi, lo) = col.pair();
            // Most batches have nothing else, not even in rows that are not asked for.
            let other = hi.iter().zip(lo).fold(0, |any, (hi, lo)| any | hi | (lo >> 32 ^ MAPPED));
            if other == 0 {
                return left;
            }
            let v4 = Bits::from_fn(BATCH, |i| hi[i] | (lo[i] >> 32 ^ MAPPED) == 0);
            left.minus(col.present.minus(v4))
        },
    )
}
