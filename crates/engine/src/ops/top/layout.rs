//! How the rows that `top` holds are laid out, and ordered.

use crate::expr::{Class, Ctx, Src, Val};
use crate::rows::{Arena, word_max};
use std::cmp::Ordering;
use weir_plan::{Order, Schema, Type};

/// How a row is held: a few words. First comes the number of what it is among the best of: its key,
/// or 0. Then those by which rows are ordered, each key as a word that says whether it is absent,
/// then its value as unsigned words that ascend as asked for (of a text its handle); then the row's
/// number. The rest is what is emitted: event time and the cells, each as a word that says whether
/// it is there, then its value.
pub(super) struct TopRowLayout {
    pub(super) by: Vec<(Val, By)>,
    pub(super) columns: Vec<Cell>,
    /// Words up to and with the row's number.
    pub(super) key_words: usize,
    /// Words of a row.
    pub(super) words: usize,
}

#[derive(Clone, Copy)]
pub(super) struct By {
    pub(super) class: Class,
    pub(super) descending: bool,
}

impl By {
    /// Words of the value.
    pub(super) fn words(self) -> usize {
        if self.class == Class::Pair { 2 } else { 1 }
    }
}

/// A column to emit.
pub(super) struct Cell {
    pub(super) src: Src,
    /// Its position in the rows that are emitted.
    pub(super) at: usize,
    pub(super) text: bool,
    /// Words of a value.
    pub(super) words: usize,
    /// The largest first word of one.
    pub(super) most: u64,
}

impl TopRowLayout {
    pub(super) fn new(
        by: Vec<(Val, Type, Order)>,
        columns: Vec<(Src, usize)>,
        schema: &Schema,
    ) -> TopRowLayout {
        let by = by.into_iter().map(|(v, ty, order)| {
            (v, By { class: Class::of(&ty), descending: order == Order::Descending })
        });
        let by: Vec<(Val, By)> = by.collect();
        let columns = columns.into_iter().map(|(src, at)| {
            let ty = &schema.columns[at].ty;
            let text = Class::of(ty) == Class::Text;
            Cell { src, at, text, words: ty.repr().words().max(1), most: word_max(ty) }
        });
        let columns: Vec<Cell> = columns.collect();
        let key_words = 1 + by.iter().map(|(_, b)| 1 + b.words()).sum::<usize>() + 1;
        TopRowLayout {
            words: key_words + 2 + columns.iter().map(|c| 1 + c.words).sum::<usize>(),
            key_words,
            columns,
            by,
        }
    }

    /// Writes by what row `i`, of this key, is ordered to `out`. Texts stay where they are.
    pub(super) fn key(
        &self,
        ctx: &Ctx<'_>,
        srcs: &[Src],
        (i, group): (usize, u32),
        order: u64,
        out: &mut Vec<u64>,
    ) {
        out.clear();
        out.push(group.into());
        for (&src, (_, by)) in srcs.iter().zip(&self.by) {
            let column = ctx.column(src);
            if !column.present.has(i) {
                out.push(1);
                out.extend(std::iter::repeat_n(0, by.words()));
                continue;
            }
            out.push(0);
            let raw = column.raw(i);
            let flip = |word: u64| if by.descending { !word } else { word };
            match by.class {
                Class::Text => out.push(raw as u64),
                Class::Pair => out.extend([flip((raw >> 64) as u64), flip(raw as u64)]),
                class => out.push(flip(class.ordered(raw as u64))),
            }
        }
        out.push(order);
    }

    /// Appends what row `i` emits to its key.
    pub(super) fn cells(&self, ctx: &Ctx<'_>, time: Src, i: usize, out: &mut Vec<u64>) {
        for src in std::iter::once(time).chain(self.columns.iter().map(|c| c.src)) {
            let column = ctx.column(src);
            let present = column.present.has(i);
            out.push(present as u64);
            let raw = if present { column.raw(i) } else { 0 };
            out.push(raw as u64);
            if column.repr().words() == 2 {
                out.push((raw >> 64) as u64);
            }
        }
    }

    /// Moves the texts of a whole row from one arena to another.
    pub(super) fn move_texts(&self, row: &mut [u64], from: &Arena, to: &mut Arena) {
        let mut moved = |absent: bool, handle: &mut u64| {
            *handle = if absent { 0 } else { to.put(from.get(*handle)) };
        };
        let mut at = 1;
        for (_, by) in &self.by {
            if by.class == Class::Text {
                moved(row[at] == 1, &mut row[at + 1]);
            }
            at += 1 + by.words();
        }
        at = self.key_words + 2;
        for cell in &self.columns {
            if cell.text {
                moved(row[at] == 0, &mut row[at + 1]);
            }
            at += 1 + cell.words;
        }
    }

    /// Whether the cells of a whole row are values of their types.
    pub(super) fn are_values(&self, row: &[u64]) -> bool {
        let mut at = self.key_words + 2;
        self.columns.iter().all(|cell| {
            let fits = row[at + 1] <= cell.most;
            at += 1 + cell.words;
            fits
        })
    }

    /// Whether rows have a [`TopRowLayout::prefix`].
    pub(super) fn has_prefix(&self) -> bool {
        self.by.first().is_some_and(|(_, by)| by.class != Class::Text)
    }

    /// A word that is never larger for a row which comes before another, among rows of one key.
    pub(super) fn prefix(&self, row: &[u64]) -> u64 {
        // An absent value comes last.
        if row[1] == 0 { row[2] } else { u64::MAX }
    }

    /// Orders two keys, each with the arena of its texts.
    pub(super) fn compare(
        &self,
        (a, texts): (&[u64], &Arena),
        (b, other): (&[u64], &Arena),
    ) -> Ordering {
        if a[0] != b[0] {
            return a[0].cmp(&b[0]);
        }
        let mut at = 1;
        for (_, by) in &self.by {
            let end = at + 1 + by.words();
            let order = match (by.class, a[at], b[at]) {
                (Class::Text, 0, 0) => {
                    let order = texts.get(a[at + 1]).cmp(other.get(b[at + 1]));
                    if by.descending { order.reverse() } else { order }
                }
                _ => a[at..end].cmp(&b[at..end]),
            };
            if order.is_ne() {
                return order;
            }
            at = end;
        }
        a[at].cmp(&b[at])
    }
}
