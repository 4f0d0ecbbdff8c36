//! The evidence in the row of an alert.

use weir_plan::Value;
use weir_plan::alert::Peak;

/// The evidence in a row.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// When it was: no earlier than the first packet that counts for it.
    pub(super) ts: Option<i64>,
    /// When the first packet was that counts for it, and the last one, if a column says so.
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) message: Value,
    pub(super) value: Option<f64>,
    pub(super) threshold: Option<f64>,
    /// The share of its window that was seen.
    pub(super) completeness: Option<f64>,
    pub(super) community: Value,
    /// The advice on what to look at next.
    pub(super) next_step: Value,
    /// The columns that come out after those of the alert.
    pub(super) rest: Vec<Value>,
}

impl Evidence {
    /// Whether its value is more extreme than that of another row.
    pub(super) fn exceeds(&self, other: &Evidence, peak: Option<Peak>) -> bool {
        match (self.value, other.value, peak) {
            (Some(mine), Some(theirs), Some(Peak::Most)) => mine.total_cmp(&theirs).is_gt(),
            (Some(mine), Some(theirs), Some(Peak::Least)) => mine.total_cmp(&theirs).is_lt(),
            (Some(_), None, Some(_)) => true,
            _ => false,
        }
    }
}
