//! `end_reason()`: why a session ended.
//!
//! | | |
//! |---|---|
//! | Syntax | `end_reason()`, in a `summarize … session …` |
//! | Type | int: 1 idle, 2 as long as it may be, 3 its `until` held, 4 the input ended, 5 its place was needed |
//! | State | none of its own: the session knows |
//! | Exact? | exact |
//!
//! The numbers are those of `flowEndReason` of IPFIX (RFC 5102, section 5.11.3).

use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use std::any::Any;
use weir_packet::bits::Bits;
use weir_plan::EndReason as Reason;

/// The word of a session that says how it stands lies where the cells of this would; see
/// [`crate::ops::session`].
pub(super) struct EndReason;

/// Where in that word the reason is.
pub(crate) const SHIFT: u32 = 8;

impl Aggregate for EndReason {
    fn cells(&self) -> usize {
        0
    }

    fn fresh(&self, _: &mut [u64]) {}

    fn update(&mut self, _: &Input<'_>, _: &mut Cells<'_>) {}

    fn merge(&mut self, _: &mut Cells<'_>, _: &dyn Aggregate, _: CellsRef<'_>, _: &[u32]) {}

    fn hints(&self) -> Hints {
        Hints::CELLS
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let reasons = out.column.word_mut();
        for (reason, &group) in reasons.iter_mut().zip(groups) {
            *reason = cells.of::<1>(group)[0] >> SHIFT;
        }
        out.column.present = out.column.present.or(Bits::first(groups.len()));
    }

    fn kind(&self) -> StateKind {
        StateKind::EndReason
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            out.put(|out| out.push((cells.of::<1>(group)[0] >> SHIFT) as u8));
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let known = Reason::Idle as u8..=Reason::Resources as u8;
        let Some((&reason, rest)) = from.split_first().filter(|(r, _)| known.contains(r)) else {
            return false;
        };
        *from = rest;
        cells.of::<1>(group)[0] = u64::from(reason) << SHIFT;
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
