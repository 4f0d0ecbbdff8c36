//! The words that each session has after its key.

use weir_plan::Session;

/// Words of a session after its key. The least time of its rows, ...
pub(super) const START: usize = 0;
/// ...when its latest row came: the greatest of their times and of the watermarks then; ...
pub(super) const LAST: usize = 1;
/// ...how it stands: see [`open`]; ...
pub(super) const META: usize = 2;
/// ...the greatest time of its rows, where that is not when the latest came; ...
pub(super) const END: usize = 3;
/// ...and, where that matters, how many rows it has.
pub(super) const ROWS: usize = 4;

/// How many of these words there are.
pub(super) fn head(session: Session) -> usize {
    ROWS + usize::from(session.rows.is_some())
}
