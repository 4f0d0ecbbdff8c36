//! Groups that the kernel made.

use super::{Groups, Variant};
use crate::agg::{Cells, StateKind, write_words};
use crate::expr::Class;
use crate::kernel::{KernelCell, KernelGroups};
use crate::key::{KeyPart, PACKED_WORDS_MAX, Pool, is_narrow};
use crate::table::{Keys, NO_ROW};
use weir_packet::limits::BATCH;
use weir_plan::{Agg, AggFunc};

impl Groups {
    /// Takes groups of the kernel in, which may have equal keys.
    pub(crate) fn add_counted(&mut self, counted: &KernelGroups) {
        let parts = self.spec.parts.len();
        assert_eq!(counted.keys.len(), counted.groups * parts, "each group has its key");
        let aggs = self.spec.states.len();
        assert_eq!(counted.cells.len(), counted.groups * aggs, "each group has its cells");
        let of_group = |g: usize| &counted.keys[g * parts..(g + 1) * parts];
        let mut of_layout = vec![Vec::new(); self.variants.len()];
        for group in 0..counted.groups {
            let v = usize::from(!is_narrow(&self.spec.parts, of_group(group)));
            of_layout[v].push(group);
        }
        let Groups { spec, variants, .. } = self;
        let mut bytes = Vec::new();
        for (v, (variant, layout)) in variants.iter_mut().zip(&spec.layouts).enumerate() {
            variant.table.set_max(u64::MAX);
            let mut keys = Keys::new(layout.words);
            for chosen in of_layout[v].chunks(BATCH) {
                for (at, &group) in chosen.iter().enumerate() {
                    let mut key = [0; PACKED_WORDS_MAX];
                    layout.pack_one(of_group(group), &mut key[..layout.words]);
                    keys.words.iter_mut().zip(key).for_each(|(plane, word)| plane[at] = word);
                }
                keys.len = chosen.len();
                let mut rows = [NO_ROW; BATCH];
                variant.table.lookup_words(&mut keys, &variant.fresh, &mut rows);
                for (&group, &row) in chosen.iter().zip(&rows) {
                    let cells = &counted.cells[group * aggs..(group + 1) * aggs];
                    for (a, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.values > 0) {
                        bytes.clear();
                        variant.add_cell(a, &spec.plan.aggs[a], row, *cell, &mut bytes);
                    }
                }
            }
        }
    }
}

impl Variant {
    /// Merges a cell into that of aggregate `a` in a row; `bytes` is scratch.
    fn add_cell(&mut self, a: usize, agg: &Agg, row: u32, cell: KernelCell, bytes: &mut Vec<u8>) {
        let Variant { table, aggs, at, .. } = self;
        write_state(aggs[a].kind(), agg, cell, bytes);
        let stride = table.stride();
        let mut cells = Cells { rows: table.rows_mut(), stride, at: at[a] };
        let read = aggs[a].decode(&mut cells, row, &mut &bytes[..]);
        assert!(read, "`{}` is none of those that the kernel computes", agg.name);
    }
}

/// Appends a cell with values as the state of its aggregate: see docs/partials.md. Of kinds that
/// the kernel does not compute, nothing.
fn write_state(kind: StateKind, agg: &Agg, cell: KernelCell, out: &mut Vec<u8>) {
    let KernelCell { word, values, time, high } = cell;
    if let (StateKind::First | StateKind::Last, Some(arg)) = (kind, &agg.arg) {
        let raw = u128::from(high) << 64 | u128::from(word);
        KeyPart::of(arg).present().write(Some(raw), &Pool::default(), out);
        // It has no number: only of packets of one time would that matter.
        return write_words(&[Class::Signed.ordered(time as u64), 0], out);
    }
    let wide = i128::from(word as i64) as u128;
    let [low, high] = [wide as u64, (wide >> 64) as u64];
    let rank = || {
        let class = agg.arg.as_ref().map_or(Class::Signed, |arg| Class::of(&arg.ty));
        let n = class.ordered(word);
        if agg.func == AggFunc::Max { !n } else { n }
    };
    let words: &[u64] = match kind {
        StateKind::Add | StateKind::Or => &[word],
        StateKind::AddSeen | StateKind::OrSeen => &[word, 1],
        StateKind::Wide => &[low, high],
        StateKind::WideSeen => &[low, high, 1],
        StateKind::WideCount => &[low, high, values],
        StateKind::Least => &[rank()],
        StateKind::LeastSeen => &[rank(), 1],
        _ => &[],
    };
    write_words(words, out);
}
