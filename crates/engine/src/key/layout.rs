//! Where the parts of a key stand in its words.

use super::part::KeyPart;
use super::pool::Pool;
use crate::expr::Class;
use std::cmp::Ordering;
use weir_plan::Expr;
use weir_plan::limits::KEY_WORDS_MAX;

/// Words of the widest packed key: the query's own, presence bits, and the group of a `distinct`.
pub(crate) const PACKED_WORDS_MAX: usize = KEY_WORDS_MAX + 2;

/// The 96 bits above an IPv4 address, low half.
pub(crate) const MAPPED: u64 = 0xffff;

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
pub(crate) struct Layout {
    pub(super) places: Vec<Place>,
    pub(super) classes: Vec<Class>,
    /// Words of a key.
    pub words: usize,
    pub(super) narrow: bool,
}

/// Words of a key, addresses being IPv6.
pub(crate) fn key_words<'a>(keys: impl IntoIterator<Item = &'a Expr>) -> usize {
    let parts: Vec<KeyPart> = keys.into_iter().map(KeyPart::of).collect();
    let (narrow, wide) = Layout::both(&parts);
    wide.unwrap_or(narrow).words
}

impl Layout {
    /// The narrow and the wide layout of a key. Without addresses the narrow one is all there is.
    pub(crate) fn both(parts: &[KeyPart]) -> (Layout, Option<Layout>) {
        let narrow = Layout::new(parts, true);
        let wide = parts.iter().any(|p| p.class == Class::Pair).then(|| Layout::new(parts, false));
        (narrow, wide)
    }

    fn new(parts: &[KeyPart], narrow: bool) -> Layout {
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

    /// Part `p` of a packed key, `None` where it is absent. Quantiles read every value by it.
    #[inline(always)]
    pub(crate) fn part(&self, key: &[u64], p: usize) -> Option<u128> {
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
    pub(crate) fn compare(
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
    pub(crate) fn text_parts(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&p| self.classes[p] == Class::Text)
    }

    /// Replaces part `p` of a packed key, a part of at most 64 bits that is present.
    pub(crate) fn replace(&self, key: &mut [u64], p: usize, value: u64) {
        let place = &self.places[p];
        let mask = if place.bits == 64 { u64::MAX } else { (1 << place.bits) - 1 };
        // Of an IPv4 address the low half stands for all of it.
        let fits = value <= mask || self.classes[p] == Class::Pair;
        debug_assert!(fits, "{value} in {} bits", place.bits);
        let word = &mut key[place.word];
        *word = *word & !(mask << place.shift) | (value & mask) << place.shift;
    }

    /// Replaces the texts of a packed key by the handles they have in another pool.
    pub(crate) fn move_texts(&self, key: &mut [u64], from: &Pool, to: &mut Pool) {
        for p in self.text_parts() {
            if let Some(handle) = self.part(key, p) {
                let handle = to.intern(from.get(handle as u64));
                self.replace(key, p, handle);
            }
        }
    }
}
