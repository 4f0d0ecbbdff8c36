//! Groups as bytes that leave the process, and back: what docs/partials.md says of a window.

use super::{Groups, Spec, Variant, group_id};
use crate::agg::{Cells, StateKind, States};
use crate::key::{PACKED_WORDS_MAX, read_parts};
use crate::ops::order::Sorter;
use crate::ops::session_words::{LAST, START};
use crate::table::{Keys, NO_ROW};
use std::fmt;
use std::sync::Arc;
use weir_packet::limits::BATCH;

/// Groups in the order of their keys: the key of each, and by aggregate the state of each.
#[derive(Default, Debug)]
pub(crate) struct WrittenGroups {
    pub(crate) keys: States,
    pub(crate) columns: Vec<(StateKind, States)>,
}

/// Groups as they came: how many, where the bytes of each key end, those bytes, and the columns.
pub(crate) struct GroupBytes<'a> {
    pub(crate) ends: Vec<usize>,
    pub(crate) keys: &'a [u8],
    pub(crate) columns: Vec<(u8, &'a [u8])>,
}

/// In which order keys come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyOrder {
    /// Each is above the one before, unless they are of sessions.
    Rising,
    /// In any, but each comes once, unless they are of sessions.
    Any,
}

/// Why bytes are no groups of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GroupFault {
    /// There are other columns than the node has: so many, or one of this number.
    Columns { has: usize, needs: usize },
    /// A column is of another kind than the aggregate of its number.
    Kind { column: usize, has: u8, needs: StateKind },
    /// The key of this group is none of the node's.
    Key { group: usize },
    /// Keys do not rise from this group to the next.
    Order { group: usize },
    /// The state of a group is none of its aggregate's.
    State { column: usize, group: usize },
    /// Bytes are left over at the end of a column.
    Rest { column: usize },
}

impl fmt::Display for GroupFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupFault::Columns { has, needs } => {
                write!(f, "there are {has} columns of states, and the node has {needs}")
            }
            GroupFault::Kind { column, has, needs } => write!(
                f,
                "column {column} is of kind {has}, and the node has {needs:?} ({}) there",
                *needs as u8
            ),
            GroupFault::Key { group } => {
                write!(f, "the key of group {group} is none of the node's")
            }
            GroupFault::Order { group } => {
                write!(f, "the key of group {group} is not above that of the group before")
            }
            GroupFault::State { column, group } => {
                write!(f, "the state of group {group} in column {column} is none of its kind")
            }
            GroupFault::Rest { column } => {
                write!(f, "column {column} goes on after the last group")
            }
        }
    }
}

impl Groups {
    /// Writes all groups, those of each layout by themselves: they are parts of one window, and
    /// merge with the others as those of another worker do.
    pub(crate) fn written(&self) -> Vec<WrittenGroups> {
        let (mut sorter, mut order) = (Sorter::default(), Vec::new());
        self.sorted(&mut sorter, &mut order);
        let mut of_layout = vec![Vec::new(); self.variants.len()];
        for (v, row) in order.into_iter().map(group_id) {
            of_layout[v].push(row);
        }
        let all = of_layout.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        all.map(|(v, rows)| self.written_layout(v, rows)).collect()
    }

    pub(super) fn written_layout(&self, v: usize, rows: &[u32]) -> WrittenGroups {
        let (layout, variant) = (&self.spec.layouts[v], &self.variants[v]);
        let mut written = WrittenGroups::default();
        for &row in rows {
            let key = variant.table.key(row);
            let parts = &self.spec.parts;
            written.keys.put(|out| layout.write_parts(parts, key, &self.texts, out));
        }
        if self.spec.session().is_some() {
            let mut times = States::default();
            for &row in rows {
                let both = [variant.start(row), variant.last(row)];
                times.put(|out| both.iter().for_each(|t| out.extend_from_slice(&t.to_le_bytes())));
            }
            written.columns.push((StateKind::Session, times));
        }
        for (a, agg) in variant.aggs.iter().enumerate() {
            let mut states = States::default();
            agg.encode(variant.cells(a), rows, &mut states);
            written.columns.push((agg.kind(), states));
        }
        written
    }

    /// Groups from bytes.
    pub(crate) fn read(spec: &Arc<Spec>, bytes: &GroupBytes<'_>) -> Result<Groups, GroupFault> {
        Groups::read_in(KeyOrder::Rising, spec, bytes)
    }

    /// Groups from bytes, whose keys come in some order: that of the rows which they get.
    pub(super) fn read_in(
        order: KeyOrder,
        spec: &Arc<Spec>,
        bytes: &GroupBytes<'_>,
    ) -> Result<Groups, GroupFault> {
        let sessions = usize::from(spec.session().is_some());
        let needs = sessions + spec.states.len();
        if bytes.columns.len() != needs {
            return Err(GroupFault::Columns { has: bytes.columns.len(), needs });
        }
        let mut groups = Groups::new(spec);
        let places = groups.read_keys(order, bytes)?;
        if let Some(&column) = bytes.columns.first().filter(|_| sessions == 1) {
            groups.read_times(&places, column)?;
        }
        for a in 0..spec.states.len() {
            groups.read_states(&places, a, a + sessions, bytes.columns[a + sessions])?;
        }
        Ok(groups)
    }

    /// Makes a row for each key; returns the layout and the row of each.
    fn read_keys(
        &mut self,
        order: KeyOrder,
        bytes: &GroupBytes<'_>,
    ) -> Result<Vec<(usize, u32)>, GroupFault> {
        let Groups { spec, variants, texts, .. } = self;
        let sessions = spec.session().is_some();
        let rises = order == KeyOrder::Rising && !sessions;
        let mut coming: Vec<Keys> = spec.layouts.iter().map(|l| Keys::new(l.words)).collect();
        let (mut places, mut raws) = (Vec::new(), Vec::new());
        variants.iter_mut().for_each(|variant| variant.table.set_max(u64::MAX));
        let (mut start, mut before) = (0, None);
        for (group, &end) in bytes.ends.iter().enumerate() {
            let fault = GroupFault::Key { group };
            let Some(own) = bytes.keys.get(start..end) else { return Err(fault) };
            if rises && before.replace(own).is_some_and(|before| before >= own) {
                return Err(GroupFault::Order { group });
            }
            start = end;
            let mut rest = own;
            let Some(narrow) = read_parts(&spec.parts, texts, &mut rest, &mut raws) else {
                return Err(fault);
            };
            if !rest.is_empty() {
                return Err(fault);
            }
            let v = usize::from(!narrow);
            let mut key = [0; PACKED_WORDS_MAX];
            let key = &mut key[..spec.layouts[v].words];
            spec.layouts[v].pack_one(&raws, key);
            places.push((v, variants[v].bring(key, sessions, &mut coming[v])));
        }
        if start != bytes.keys.len() {
            return Err(GroupFault::Key { group: bytes.ends.len() });
        }
        let both = variants.iter_mut().zip(&mut coming);
        both.for_each(|(variant, coming)| variant.look_up(coming));
        match self.len() == places.len() {
            true => Ok(places),
            // One of them came twice.
            false => Err(GroupFault::Key { group: places.len() }),
        }
    }

    /// Reads when sessions started, and when their latest rows came.
    fn read_times(
        &mut self,
        places: &[(usize, u32)],
        (kind, bytes): (u8, &[u8]),
    ) -> Result<(), GroupFault> {
        if kind != StateKind::Session as u8 {
            let needs = StateKind::Session;
            return Err(GroupFault::Kind { column: 0, has: kind, needs });
        }
        let (times, rest) = bytes.as_chunks::<8>();
        if times.len() != 2 * places.len() || !rest.is_empty() {
            return Err(GroupFault::Rest { column: 0 });
        }
        for (&(v, row), both) in places.iter().zip(times.chunks_exact(2)) {
            let table = &mut self.variants[v].table;
            let words = table.key_words();
            let row = table.row_mut(row);
            row[words + START] = u64::from_le_bytes(both[0]);
            row[words + LAST] = u64::from_le_bytes(both[1]);
        }
        Ok(())
    }

    /// Reads the states of aggregate `a`, which are in a column.
    fn read_states(
        &mut self,
        places: &[(usize, u32)],
        a: usize,
        column: usize,
        (has, bytes): (u8, &[u8]),
    ) -> Result<(), GroupFault> {
        let needs = self.variants[0].aggs[a].kind();
        if has != needs as u8 {
            return Err(GroupFault::Kind { column, has, needs });
        }
        let mut rest = bytes;
        for (group, &(v, row)) in places.iter().enumerate() {
            let Variant { table, aggs, at, .. } = &mut self.variants[v];
            let stride = table.stride();
            let mut cells = Cells { rows: table.rows_mut(), stride, at: at[a] };
            if !aggs[a].decode(&mut cells, row, &mut rest) {
                return Err(GroupFault::State { column, group });
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(GroupFault::Rest { column }) }
    }
}

impl Variant {
    /// Takes a key, which comes once; returns the row that it will have. Keys that are looked up
    /// gather in `coming` first.
    fn bring(&mut self, key: &[u64], session: bool, coming: &mut Keys) -> u32 {
        let row = self.table.len() + coming.len;
        if session {
            let new = self.table.push_row();
            new[..key.len()].copy_from_slice(key);
            new[key.len()..key.len() + self.fresh.len()].copy_from_slice(&self.fresh);
            return row as u32;
        }
        let at = coming.len;
        coming.words.iter_mut().zip(key).for_each(|(plane, word)| plane[at] = *word);
        coming.len += 1;
        if coming.len == BATCH {
            self.look_up(coming);
        }
        row as u32
    }

    /// Makes rows for the keys that gathered.
    fn look_up(&mut self, coming: &mut Keys) {
        self.table.lookup_words(coming, &self.fresh, &mut [NO_ROW; BATCH]);
        coming.len = 0;
    }
}
