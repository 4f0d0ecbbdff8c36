//! The rows of a `top` in a checkpoint.

use super::{PerKey, Top, TopRowLayout, WindowRows};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::table::NO_ROW;

impl Top {
    /// Saves the rows of all windows that are open, or restores them.
    pub(super) fn pass_windows(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.emitted)?;
        at.count(&mut self.evicted)?;
        let Top { n, layout, per, held, .. } = self;
        at.map(held, WindowRows::default, |rows, at| rows.pass_state(*n, layout, per.as_ref(), at))
    }
}

impl WindowRows {
    fn pass_state(
        &mut self,
        n: usize,
        layout: &TopRowLayout,
        per: Option<&PerKey>,
        at: &mut Checkpoint<'_>,
    ) -> Passed {
        at.pass(&mut self.words)?;
        at.pass(&mut self.texts)?;
        at.pass(&mut self.crammed)?;
        at.pass(&mut self.worst)?;
        let most = WindowRows::room(n, self.len(layout));
        at.pass_if(&mut self.room, "too many rows may be held", |room| *room <= most)?;
        if let Some(per) = per {
            per.pass_keys(self.keys.get_or_insert_with(|| per.keys()), at)?;
        }
        let keys = self.keys.as_ref().map_or(1, |keys| keys.len() as u64);
        let len = self.len(layout) as u32;
        let rows = self.words.chunks(layout.words);
        let is_row = |row: &u32| *row == NO_ROW || *row < len;
        match rows
            .into_iter()
            .all(|row| row.len() == layout.words && row[0] < keys && layout.are_values(row))
            && self.worst.iter().all(is_row)
        {
            true => Ok(()),
            false => Err(BadState("rows of a `top` are none")),
        }
    }
}
