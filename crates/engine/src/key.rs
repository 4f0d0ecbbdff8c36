//! Keys of groups: packed into few words, unpacked into columns, compared in order.
//!
//! A part that may be absent has one more bit. Addresses are packed in 32 bits as long as all
//! addresses of a key are IPv4, which makes a 5-tuple two words; other keys take 128 bits per
//! address. The two kinds of key live in two tables, so a key has one packed form.

mod bytes;
mod direct;

pub(crate) use bytes::{read_parts, read_text, write_text};
pub use direct::Direct;

use crate::expr::Class;
use crate::limits::POOL_MAX;
use crate::rows::Arena;
use crate::table::Keys;
use std::cmp::Ordering;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::limits::KEY_WORDS_MAX;
use weir_plan::{Expr, ExprKind, Type};

/// Words of the widest packed key: the query's own, presence bits, and the group of a `distinct`.
pub(crate) const PACKED_WORDS_MAX: usize = KEY_WORDS_MAX + 2;

/// The 96 bits above an IPv4 address, low half.
pub(crate) const MAPPED: u64 = 0xffff;

/// What is packed: the shape of one part of a key.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    class: Class,
    /// Bits of the largest value: an integer field's width, else the type's.
    bits: u32,
    nullable: bool,
}

impl Part {
    /// The shape of the values of `e`.
    pub fn of(e: &Expr) -> Part {
        let bits = match (&e.kind, &e.ty) {
            (_, Type::Bool) => 1,
            (_, Type::Mac) => 48,
            (_, Type::Ip) => 128,
            (ExprKind::Field(id), Type::Int) if id.info().bits < 63 => id.info().bits as u32,
            _ => 64,
        };
        Part { class: Class::of(&e.ty), bits, nullable: !e.always_present() }
    }

    /// The same, of rows in which it is present.
    #[must_use]
    pub fn present(self) -> Part {
        Part { nullable: false, ..self }
    }

    /// The same, with a hash in place of a text.
    #[must_use]
    pub fn hashed(self) -> Part {
        match self.class {
            Class::Text => Part { class: Class::Unsigned, bits: 64, ..self },
            _ => self,
        }
    }

    /// The largest word that fits: what is made of a value before it is packed must not exceed it.
    pub(crate) fn largest(&self) -> u64 {
        u64::MAX >> 64u32.saturating_sub(self.bits)
    }

    /// A row number of a table.
    pub fn row_number() -> Part {
        Part { class: Class::Unsigned, bits: 32, nullable: false }
    }
}

/// Where a part stands in a packed key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The word, the first of two for 128 bits.
    pub(crate) word: usize,
    pub(crate) shift: u32,
    pub(crate) bits: u32,
    /// Where the presence bit stands, for a part that may be absent.
    pub(crate) present: Option<(usize, u32)>,
}

/// How keys are packed: narrow (addresses are IPv4) or wide.
#[derive(Clone, Debug)]
pub struct Layout {
    places: Vec<Place>,
    classes: Vec<Class>,
    /// Words of a key.
    pub words: usize,
    narrow: bool,
}

impl Layout {
    /// The narrow and the wide layout of a key. Without addresses the narrow one is all there is.
    pub fn both(parts: &[Part]) -> (Layout, Option<Layout>) {
        let narrow = Layout::new(parts, true);
        let wide = parts.iter().any(|p| p.class == Class::Pair).then(|| Layout::new(parts, false));
        (narrow, wide)
    }

    fn new(parts: &[Part], narrow: bool) -> Layout {
        let mut used: Vec<u32> = Vec::new();
        // First fit: big parts come first, so that small ones and presence bits fill the gaps. From
        // the top down: parts that stand side by side in a packet stand so in a word.
        let mut room = |bits: u32| -> (usize, u32) {
            let word = used.iter().position(|u| u + bits <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            used[word] += bits;
            (word, 64 - used[word])
        };
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&p| std::cmp::Reverse(parts[p].bits));
        let mut places = vec![Place { word: 0, shift: 0, bits: 0, present: None }; parts.len()];
        for p in order {
            let bits = match parts[p].class {
                Class::Pair if narrow => 32,
                _ => parts[p].bits,
            };
            let (word, shift) = if bits == 128 {
                let high = room(64).0;
                room(64);
                (high, 0)
            } else {
                room(bits)
            };
            places[p] = Place { word, shift, bits, present: None };
        }
        for (p, place) in places.iter_mut().enumerate() {
            if parts[p].nullable {
                place.present = Some(room(1));
            }
        }
        Layout {
            classes: parts.iter().map(|p| p.class).collect(),
            places,
            words: used.len(),
            narrow,
        }
    }

    /// Where part `p` stands and how its values compare, for loops over many keys.
    pub(crate) fn place(&self, p: usize) -> (Place, Class) {
        (self.places[p], self.classes[p])
    }

    /// Parts of a key.
    pub(crate) fn parts(&self) -> usize {
        self.places.len()
    }

    /// Part `p` of a packed key, `None` where it is absent.
    #[inline]
    pub fn part(&self, key: &[u64], p: usize) -> Option<u128> {
        let place = &self.places[p];
        if place.present.is_some_and(|(w, s)| key[w] >> s & 1 == 0) {
            return None;
        }
        Some(match place.bits {
            128 => (key[place.word] as u128) << 64 | key[place.word + 1] as u128,
            64 => key[place.word] as u128,
            bits => {
                let v = key[place.word] >> place.shift & ((1 << bits) - 1);
                match self.classes[p] {
                    Class::Pair => (MAPPED << 32 | v) as u128,
                    _ => v as u128,
                }
            }
        })
    }

    /// Compares two packed keys, possibly of different layouts of the same parts.
    pub fn compare(
        &self,
        key: &[u64],
        pool: &Pool,
        other: &Layout,
        other_key: &[u64],
        other_pool: &Pool,
    ) -> Ordering {
        for p in 0..self.places.len() {
            let (a, b) = (self.part(key, p), other.part(other_key, p));
            let order = match (a, b, self.classes[p]) {
                (Some(a), Some(b), Class::Text) => pool.get(a as u64).cmp(other_pool.get(b as u64)),
                (Some(a), Some(b), Class::Pair) => a.cmp(&b),
                (Some(a), Some(b), class) => class.ordered(a as u64).cmp(&class.ordered(b as u64)),
                (a, b, _) => a.is_some().cmp(&b.is_some()),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Which parts are texts.
    pub fn text_parts(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&p| self.classes[p] == Class::Text)
    }

    /// Replaces part `p` of a packed key, a part of at most 64 bits that is present.
    pub fn replace(&self, key: &mut [u64], p: usize, value: u64) {
        let place = &self.places[p];
        let mask = if place.bits == 64 { u64::MAX } else { (1 << place.bits) - 1 };
        // Of an IPv4 address the low half stands for all of it.
        let fits = value <= mask || self.classes[p] == Class::Pair;
        debug_assert!(fits, "{value} in {} bits", place.bits);
        let word = &mut key[place.word];
        *word = *word & !(mask << place.shift) | (value & mask) << place.shift;
    }

    /// The texts of a packed key.
    pub fn texts_of<'a>(&self, key: &[u64], pool: &'a Pool) -> impl Iterator<Item = &'a [u8]> {
        self.text_parts().filter_map(|p| Some(pool.get(self.part(key, p)? as u64)))
    }

    /// Replaces the texts of a packed key by the handles they have in another pool.
    pub fn move_texts(&self, key: &mut [u64], from: &Pool, to: &mut Pool) {
        for p in self.text_parts() {
            if let Some(handle) = self.part(key, p) {
                let handle = to.intern(from.get(handle as u64));
                self.replace(key, p, handle);
            }
        }
    }
}

/// The rows of a batch that are packed together: as a set, and as ascending positions.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
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
pub fn pack(
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
pub fn narrow_rows(parts: &[Part], columns: &[&Column], rows: Bits) -> Bits {
    parts.iter().zip(columns).filter(|(p, _)| p.class == Class::Pair).fold(
        rows,
        |left, (_, col)| {
            let (hi, lo) = col.pair();
            // Most batches have nothing else, not even in rows that are not asked for.
            let other = hi.iter().zip(lo).fold(0, |any, (hi, lo)| any | hi | (lo >> 32 ^ MAPPED));
            if other == 0 {
                return left;
            }
            let v4 = Bits::from_fn(BATCH, |i| hi[i] == 0 && lo[i] >> 32 == MAPPED);
            left.minus(col.present.minus(v4))
        },
    )
}

/// Texts by handle, each stored once: keys and states of strings in a table.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    arena: Arena,
    handles: std::collections::HashMap<Box<[u8]>, u64>,
    refused: u64,
}

impl Pool {
    /// The handle of a text; equal texts have equal handles.
    pub fn intern(&mut self, text: &[u8]) -> u64 {
        if let Some(&h) = self.handles.get(text) {
            return h;
        }
        if self.arena.len() + text.len() > POOL_MAX {
            self.refused += 1;
            return 0;
        }
        let h = self.arena.put(text);
        self.handles.insert(text.into(), h);
        h
    }

    /// The text behind a handle.
    pub fn get(&self, handle: u64) -> &[u8] {
        self.arena.get(handle)
    }

    /// How often a text found no room.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Forgets all texts.
    pub fn clear(&mut self) {
        self.arena.truncate(0);
        self.handles.clear();
    }
}
