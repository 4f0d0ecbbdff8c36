//! Keys of a value and the group that it is in: what aggregates are kept by that hold the values of
//! all groups in one table. The group is the last part of a key.

use super::Input;
use super::states::read_values;
use crate::key::{KeyPart, Layout, PACKED_WORDS_MAX, Pool, read_parts, rows_at};
use crate::limits::PARTS_MAX;
use crate::table::NO_ROW;
use weir_packet::bits::Bits;
use weir_packet::column::Column;

/// The parts of such keys for values of these parts, and how they are laid out: narrow, and wide
/// where there are addresses.
pub(super) fn parts_and_layouts(
    parts: Vec<KeyPart>,
) -> (Vec<KeyPart>, impl Iterator<Item = Layout>) {
    // A single value is there in every row that counts; of a tuple some part is.
    let mut parts = match <[KeyPart; 1]>::try_from(parts) {
        Ok([one]) => vec![one.present()],
        Err(parts) => parts,
    };
    parts.push(KeyPart::row_number());
    assert!(parts.len() <= PARTS_MAX, "a tuple has at most {} parts", PARTS_MAX - 1);
    let (narrow, wide) = Layout::both(&parts);
    (parts, [Some(narrow), wide].into_iter().flatten())
}

/// Where the group stands in a key: the word, and how far from its low end.
pub(super) fn group_place(layout: &Layout) -> (usize, u32) {
    let (place, _) = layout.place(layout.parts() - 1);
    (place.word, place.shift)
}

/// The rows that count.
pub(super) fn counted_rows(input: &Input<'_>) -> Bits {
    let rows = rows_at(input.rows);
    input.counted.map_or(rows, |counted| rows.and(counted))
}

/// The columns of the keys: those of the values, then `group`, which is filled.
pub(super) fn columns<'a>(input: &Input<'a>, group: &'a mut Column) -> [&'a Column; PARTS_MAX] {
    for (&i, &g) in input.rows.iter().zip(input.groups) {
        group.word_mut()[i as usize] = g as u64;
    }
    group.present = Bits::ALL;
    let mut columns = [&*group; PARTS_MAX];
    columns[..input.columns.len()].copy_from_slice(input.columns);
    columns
}

/// Puts rows of the same group together: a counting sort by the group of each.
pub(super) fn gather(
    groups: impl Iterator<Item = u32> + Clone,
    order: &mut Vec<u32>,
    starts: &mut Vec<u32>,
) {
    starts.clear();
    starts.push(0);
    for group in groups.clone() {
        let group = group as usize;
        if starts.len() < group + 2 {
            starts.resize(group + 2, 0);
        }
        starts[group + 1] += 1;
    }
    let mut end = 0;
    for start in starts.iter_mut() {
        end += *start;
        *start = end;
    }
    order.clear();
    order.resize(end as usize, 0);
    // Filled from the start of each group, which moves to its end; then all move back.
    for (row, group) in (0..).zip(groups) {
        let at = &mut starts[group as usize];
        order[*at as usize] = row;
        *at += 1;
    }
    starts.rotate_right(1);
    starts[0] = 0;
}

/// Moves keys from one table to another: groups have new numbers there, and texts new handles.
pub(super) struct Moving<'a> {
    layout: &'a Layout,
    group: (usize, u32),
    has_texts: bool,
    map: &'a [u32],
    texts: (&'a Pool, &'a mut Pool),
}

impl<'a> Moving<'a> {
    /// `map` has the new number of each group, or [`NO_ROW`]; `texts` are those there and those
    /// here.
    pub(super) fn new(
        layout: &'a Layout,
        map: &'a [u32],
        texts: (&'a Pool, &'a mut Pool),
    ) -> Moving<'a> {
        let has_texts = layout.text_parts().next().is_some();
        Moving { layout, group: group_place(layout), has_texts, map, texts }
    }

    /// Whether the group of a key is one that moves.
    #[inline(always)]
    pub(super) fn takes(&self, key: &[u64]) -> bool {
        let (word, shift) = self.group;
        self.map[(key[word] >> shift) as u32 as usize] != NO_ROW
    }

    /// A key as it is in the other table; `moved` is memory for it.
    pub(super) fn key<'k>(
        &mut self,
        key: &[u64],
        moved: &'k mut [u64; PACKED_WORDS_MAX],
    ) -> &'k [u64] {
        let (word, shift) = self.group;
        let moved = &mut moved[..key.len()];
        moved.copy_from_slice(key);
        let group = (key[word] >> shift) as u32;
        moved[word] ^= ((group ^ self.map[group as usize]) as u64) << shift;
        if self.has_texts {
            self.layout.move_texts(moved, self.texts.0, self.texts.1);
        }
        moved
    }
}

/// Reads values of one group as keys, and sorts them by the layout that holds them.
pub(super) struct ReadKeys<'a> {
    /// The parts of the values, without the group.
    parts: &'a [KeyPart],
    layouts: Vec<&'a Layout>,
    group: u32,
    /// By layout the words of the keys, one after the other, and how often each came.
    keys: [(Vec<u64>, Vec<u64>); 2],
}

impl<'a> ReadKeys<'a> {
    /// Reads values of a group; `parts` are those of a key, the group last.
    pub(super) fn new(parts: &'a [KeyPart], layouts: Vec<&'a Layout>, group: u32) -> ReadKeys<'a> {
        ReadKeys { parts: &parts[..parts.len() - 1], layouts, group, keys: Default::default() }
    }

    /// Reads all values; `None` if the bytes are none that are written so. Values that were read by
    /// then have left their texts in the pool, and nothing else.
    pub(super) fn read(&mut self, texts: &mut Pool, from: &mut &[u8], counted: bool) -> Option<()> {
        let ReadKeys { parts, layouts, group, keys } = self;
        let read = |from: &mut &[u8]| {
            let (mut raws, mut key) = (Vec::new(), [0; PACKED_WORDS_MAX]);
            let layout = usize::from(!read_parts(parts, texts, from, &mut raws)?);
            let key = &mut key[..layouts[layout].words];
            layouts[layout].pack_one(&raws, key);
            layouts[layout].replace(key, parts.len(), u64::from(*group));
            keys[layout].0.extend_from_slice(key);
            Some(layout)
        };
        let mut of_layout: Vec<(usize, u64)> = Vec::new();
        read_values(from, counted, read, |layout, times| of_layout.push((layout, times)))?;
        for (layout, times) in of_layout {
            self.keys[layout].1.push(times);
        }
        Some(())
    }

    /// The values of one part, as words.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.layouts.iter().zip(&self.keys).flat_map(|(layout, (keys, _))| {
            let keys = keys.chunks_exact(layout.words);
            keys.filter_map(|key| layout.part(key, 0)).map(|raw| raw as u64)
        })
    }

    /// By layout the words of the keys, and how often each came.
    pub(super) fn into_keys(self) -> [(Vec<u64>, Vec<u64>); 2] {
        self.keys
    }
}
