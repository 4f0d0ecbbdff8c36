//! The open windows of a stream, each with its values by key.

use crate::key::Key;
use crate::limits::{SPARE_WINDOWS, WINDOWS_MAX};
use crate::table::KeyMap;
use crate::time::Time;
use std::collections::BTreeMap;
use weir_engine::table::HashKey;

/// Values by key, in windows or over the whole input.
///
/// Almost all items belong to the same window as the one before. That one is at hand; the others
/// wait aside.
pub(super) struct Windows<K: Key, V> {
    every_ns: Option<i64>,
    max_keys: usize,
    hash_key: HashKey,
    /// Values of the window at hand, and its start: none at first.
    hand: KeyMap<K, V>,
    start: Option<i64>,
    /// Times that belong to the window at hand and are known not to be late: from `low`, `span`
    /// nanoseconds.
    low: i64,
    span: u64,
    aside: BTreeMap<i64, KeyMap<K, V>>,
    spare: Vec<KeyMap<K, V>>,
    watermark: i64,
    pub(super) late: u64,
    pub(super) evicted: u64,
}

impl<K: Key, V> Windows<K, V> {
    /// Windows of a length, or one for all times.
    pub(super) fn new(every_ns: Option<i64>, max_keys: usize, hash_key: HashKey) -> Windows<K, V> {
        Windows {
            every_ns,
            max_keys,
            hash_key,
            hand: KeyMap::new(max_keys, hash_key),
            start: if every_ns.is_some() { None } else { Some(0) },
            low: i64::MIN,
            span: if every_ns.is_some() { 0 } else { u64::MAX },
            aside: BTreeMap::new(),
            spare: Vec::new(),
            watermark: i64::MIN,
            late: 0,
            evicted: 0,
        }
    }

    /// The values of the window at hand.
    #[inline(always)]
    pub(super) fn hand(&mut self) -> &mut KeyMap<K, V> {
        &mut self.hand
    }

    /// Start of the window at hand, which must have been taken to hand.
    #[inline(always)]
    pub(super) fn start(&self) -> i64 {
        self.start.unwrap_or(0)
    }

    /// The values of a window that was at hand once in this batch.
    #[inline(always)]
    pub(super) fn of(&mut self, start: i64) -> &mut KeyMap<K, V> {
        if self.start == Some(start) {
            return &mut self.hand;
        }
        self.aside.get_mut(&start).unwrap_or(&mut self.hand)
    }

    /// Makes all times ask for their window, until the next one is taken to hand.
    pub(super) fn let_go(&mut self) {
        self.span = 0;
    }

    /// Whether the time is known to belong to the window at hand. If not, see
    /// [`Windows::take_to_hand`].
    #[inline(always)]
    pub(super) fn at_hand(&self, t: Time<'_>) -> bool {
        (t.ts().wrapping_sub(self.low) as u64) < self.span
    }

    /// Takes the window of a time to hand. Returns `false`, having counted why, if the time is late
    /// or one window too many.
    #[inline(never)]
    pub(super) fn take_to_hand(&mut self, t: Time<'_>) -> bool {
        let Some(every) = self.every_ns else { return true };
        let start = t.ts().checked_sub(t.ts().rem_euclid(every));
        let end = start.unwrap_or(i64::MIN).saturating_add(every);
        let watermark = self.watermark.max(t.horizon());
        let far = end > watermark;
        if !far && end <= self.watermark.max(t.watermark()) {
            self.late += 1;
            return false;
        }
        let low = start.unwrap_or(i64::MIN);
        if self.start != Some(low) && !self.switch(low, self.watermark.max(t.watermark())) {
            self.evicted += 1;
            return false;
        }
        // A time within one length of the start is in the window, unless that is cut off by the
        // beginning or the end of time.
        let whole = far && start.is_some() && low.checked_add(every).is_some();
        (self.low, self.span) = (low, if whole { every as u64 } else { 0 });
        true
    }

    /// Makes the window that starts there the one at hand, if there may be another.
    fn switch(&mut self, start: i64, watermark: i64) -> bool {
        let other = match self.aside.remove(&start) {
            Some(map) => map,
            None if self.is_full(watermark) => return false,
            None => self.spare.pop().unwrap_or_else(|| KeyMap::new(self.max_keys, self.hash_key)),
        };
        let before = std::mem::replace(&mut self.hand, other);
        match self.start.replace(start) {
            Some(old) => _ = self.aside.insert(old, before),
            None => self.keep(before),
        }
        true
    }

    /// Whether as many windows as may be are open. Sessions that the watermark has passed are not,
    /// even where their groups come out only after the batch.
    fn is_full(&self, watermark: i64) -> bool {
        let every = self.every_ns.unwrap_or(0);
        let open = |start: &i64| start.saturating_add(every) > watermark;
        self.aside.len() + 1 >= WINDOWS_MAX
            && self.start.iter().chain(self.aside.keys()).filter(|s| open(s)).count() >= WINDOWS_MAX
    }

    /// Keeps the memory of a closed window for another.
    fn keep(&mut self, map: KeyMap<K, V>) {
        if self.spare.len() < SPARE_WINDOWS {
            self.spare.push(map);
        }
    }

    /// Hands out the groups of all windows that end at or below the watermark after a batch, and
    /// returns the watermark downstream.
    pub(super) fn close(&mut self, watermark: i64, mut f: impl FnMut(i64, K, V)) -> i64 {
        let Some(every) = self.every_ns else { return i64::MIN };
        self.watermark = self.watermark.max(watermark);
        // Until the first item of the next batch has asked, nobody knows how far time will come.
        self.span = 0;
        let passed = |start: i64| start.saturating_add(every) <= watermark;
        if self.start.is_some_and(passed) {
            self.put_aside();
        }
        while self.aside.first_key_value().is_some_and(|(&start, _)| passed(start)) {
            self.close_first(&mut f);
        }
        watermark.checked_sub(watermark.rem_euclid(every)).unwrap_or(i64::MIN)
    }

    /// Hands out all that is left.
    pub(super) fn finish(&mut self, mut f: impl FnMut(i64, K, V)) {
        self.put_aside();
        while !self.aside.is_empty() {
            self.close_first(&mut f);
        }
    }

    /// Puts the window at hand, if there is one, to the others.
    fn put_aside(&mut self) {
        if let Some(start) = self.start.take() {
            let empty =
                self.spare.pop().unwrap_or_else(|| KeyMap::new(self.max_keys, self.hash_key));
            self.aside.insert(start, std::mem::replace(&mut self.hand, empty));
        }
    }

    fn close_first(&mut self, f: &mut impl FnMut(i64, K, V)) {
        if let Some((start, mut map)) = self.aside.pop_first() {
            map.drain(|key, value| f(start, key, value));
            self.keep(map);
        }
    }
}
