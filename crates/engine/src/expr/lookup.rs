//! Looking up the text that a table from a file has for a key.

use super::lookup_map::{LookupKeys, LookupMap};
use super::{Ctx, Src, Val};
use crate::rows::Memo;
use weir_packet::bits::Bits;

impl Ctx<'_> {
    /// The texts that keys have.
    pub(super) fn lookup(&mut self, map: &LookupMap, key: &Val, out: usize, rows: Bits) -> Src {
        let src = self.value(key, rows);
        let mut col = self.take(out);
        col.present = Bits::NONE;
        let from = self.column(src);
        let there = from.present.and(rows);
        let mut found = |i: usize, handle: Option<u64>| {
            if let Some(handle) = handle {
                col.word_mut()[i] = handle;
                col.present.set(i);
            }
        };
        match &map.keys {
            LookupKeys::Ranges(firsts, lasts) => there.each(|i| {
                let a = from.raw(i);
                let at = lasts.partition_point(|last| *last < a);
                let within = firsts.get(at).is_some_and(|first| *first <= a);
                found(i, map.handle(within.then_some(at)));
            }),
            LookupKeys::Words(words) => {
                let w = from.word();
                there.each(|i| found(i, map.handle(words.binary_search(&w[i]).ok())));
            }
            LookupKeys::Texts(texts) => {
                let (w, arena, mut memo) = (from.word(), &self.regs.arena, Memo::new());
                there.each(|i| {
                    let handle = memo.get(w[i], || {
                        let text = arena.get(w[i]);
                        map.handle(texts.binary_search_by(|t| (**t).cmp(text)).ok())
                    });
                    found(i, handle);
                });
            }
        }
        let present = col.present;
        self.put_checked(out, col, present, Bits::NONE)
    }
}
