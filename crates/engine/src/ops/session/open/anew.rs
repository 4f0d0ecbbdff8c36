//! A table of sessions that comes from elsewhere: without those that have ended, or out of a
//! checkpoint.

use super::{CLOSED, IN_CLOSING, IN_WHEEL, OPEN, OpenSessions, hash_of, head_of};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::ops::session_words::{LAST, META};
use crate::table::Table;
use std::ops::Range;

impl OpenSessions {
    /// Takes over a table of nothing but sessions that take rows.
    pub(in crate::ops::session) fn index_anew(&mut self, table: &mut Table) {
        self.index.clear();
        self.wheel.clear();
        self.closing.clear();
        self.ended.clear();
        self.dues.clear();
        self.free.clear();
        debug_assert_eq!(table.len(), self.live + self.closed);
        self.index_rows(table, 0..table.len() as u32);
    }

    /// Finds these sessions, which take rows, by their keys from now on, and ends them in time.
    fn index_rows(&mut self, table: &mut Table, rows: Range<u32>) {
        self.index.reserve(rows.len());
        for row in rows {
            let hash = hash_of(table, row, self.index.hash_key());
            let Err(place) = self.index.find(hash, |_| false) else { unreachable!("none is same") };
            self.index.insert(place, hash, row);
            let head = head_of(table, row);
            let last = head[LAST] as i64;
            if head[META] & CLOSED != 0 {
                head[META] = head[META] & !IN_WHEEL | IN_CLOSING;
                self.closing.schedule(row, last.saturating_add(self.session.lingers_ns()));
            } else {
                head[META] = head[META] & !IN_CLOSING | IN_WHEEL;
                self.wheel.schedule(row, last.saturating_add(self.session.gap_ns));
            }
        }
    }

    /// Saves how many sessions have ended, or restores it over a table of those that take rows and
    /// then of those that have ended, in this order.
    pub(in crate::ops::session) fn pass_state(
        &mut self,
        table: &mut Table,
        at: &mut Checkpoint<'_>,
    ) -> Passed {
        at.count(&mut self.lagging)?;
        at.pass(&mut self.dues)?;
        let (mut ended, len) = (self.ended.len(), table.len());
        at.pass_if(&mut ended, "more sessions have ended than there are", |n| *n <= len)?;
        if !at.restores() {
            return Ok(());
        }
        let taking = (len - ended) as u32;
        for row in 0..len as u32 {
            let meta = &mut head_of(table, row)[META];
            let of = *meta & (OPEN | CLOSED);
            match (row < taking, of) {
                (true, OPEN) => self.live += 1,
                (true, CLOSED) => self.closed += 1,
                (false, 0) => *meta &= !(IN_WHEEL | IN_CLOSING),
                _ => return Err(BadState("a session neither takes rows nor has ended")),
            }
        }
        if !self.dues.is_empty() && self.dues.len() != ended {
            return Err(BadState("a session comes out at no tick"));
        }
        self.index_rows(table, 0..taking);
        self.ended = (taking..len as u32).collect();
        Ok(())
    }
}
