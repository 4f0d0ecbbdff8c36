//! How a detector judged a background, and the attacks mixed into it.

use super::alert::Alert;
use super::detector::Detector;

/// How one detector judged one background.
pub(super) struct Verdicts {
    pub(super) detector: Detector,
    /// Alerts on the background alone.
    pub(super) quiet: Vec<Alert>,
    /// The attacks whose kind it claims.
    pub(super) found: Vec<Found>,
}

/// Whether an attack was found.
pub(super) struct Found {
    /// The place of the attack in the list.
    pub(super) attack: usize,
    /// From its first packet to the first alert about it, in nanoseconds; nothing where there was
    /// none.
    pub(super) delay_ns: Option<i64>,
}
