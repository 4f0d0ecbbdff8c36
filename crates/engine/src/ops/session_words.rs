//! The words that each session has after its key.

use weir_plan::Session;

/// Words of a session after its key. When it started, ...
pub(super) const START: usize = 0;
/// ...when its latest row came, ...
pub(super) const LAST: usize = 1;
/// ...how it stands: see [`open`]; ...
pub(super) const META: usize = 2;
/// ...and, where that matters, how many rows it has.
pub(super) const ROWS: usize = 3;

/// How many of these words there are.
pub(super) fn head(session: Session) -> usize {
    ROWS + usize::from(session.rows.is_some())
}
