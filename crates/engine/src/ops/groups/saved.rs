//! Groups in a checkpoint: in the order of their rows, which other state may number.

use super::written::{GroupBytes, KeyOrder, WrittenGroups};
use super::{Groups, Spec};
use crate::agg::StateKind;
use crate::checkpoint::{BadState, Checkpoint, Passed};
use std::sync::Arc;
use weir_plan::EndReason;

impl Groups {
    /// Saves all groups, or restores them. Groups and values that were refused for want of room are
    /// not among them.
    pub(crate) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        if at.restores() {
            *self = restored(&self.spec, at)?;
        } else {
            let all = self.as_they_stand();
            let mut ends = all.keys.ends;
            let mut keys = all.keys.bytes;
            at.pass(&mut ends)?;
            at.bytes(&mut keys)?;
            let columns = all.columns.into_iter();
            let mut columns: Vec<_> =
                columns.map(|(kind, states)| (kind as u8, states.bytes)).collect();
            at.list(&mut columns, Default::default, |(kind, bytes), at| {
                at.pass(kind)?;
                at.bytes(bytes)
            })?;
        }
        if self.spec.session().is_none() {
            return Ok(());
        }
        let head = self.spec.head();
        for variant in &mut self.variants {
            let words = variant.table.key_words();
            for row in 0..variant.table.len() as u32 {
                at.words(&mut variant.table.row_mut(row)[words..words + head])?;
            }
        }
        Ok(())
    }

    /// All groups, those of one layout after those of the other, in the order of their rows.
    fn as_they_stand(&self) -> WrittenGroups {
        let mut all: Option<WrittenGroups> = None;
        for (v, variant) in self.variants.iter().enumerate() {
            let rows: Vec<u32> = (0..variant.table.len() as u32).collect();
            let written = self.written_layout(v, &rows);
            let Some(all) = &mut all else {
                all = Some(written);
                continue;
            };
            let before = all.keys.bytes.len();
            all.keys.ends.extend(written.keys.ends.into_iter().map(|end| before + end));
            all.keys.bytes.extend(written.keys.bytes);
            for ((_, to), (_, from)) in all.columns.iter_mut().zip(written.columns) {
                to.bytes.extend(from.bytes);
            }
        }
        let mut all = all.unwrap_or_default();
        // A session that has not ended has no reason yet; the words of all sessions follow.
        let reasons = all.columns.iter_mut().filter(|(kind, _)| *kind == StateKind::EndReason);
        reasons.for_each(|(_, reasons)| reasons.bytes.fill(EndReason::Idle as u8));
        all
    }
}

fn restored(spec: &Arc<Spec>, at: &mut Checkpoint<'_>) -> Result<Groups, BadState> {
    let (mut ends, mut keys) = (Vec::<usize>::new(), Vec::new());
    at.pass(&mut ends)?;
    at.bytes(&mut keys)?;
    let mut columns: Vec<(u8, Vec<u8>)> = Vec::new();
    at.list(&mut columns, Default::default, |(kind, bytes), at| {
        at.pass(kind)?;
        at.bytes(bytes)
    })?;
    let columns = columns.iter().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    let bytes = GroupBytes { ends, keys: &keys, columns };
    Groups::read_in(KeyOrder::Any, spec, &bytes)
        .map_err(|_| BadState("groups are none of the node's"))
}
