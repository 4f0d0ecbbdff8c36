//! What the row of an alert says.

use weir_plan::Value;
use weir_plan::alert::Peak;

/// What a row says.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) ts: Value,
    pub(super) message: Value,
    pub(super) value: Option<f64>,
    pub(super) threshold: Option<f64>,
    /// The share of its window that was seen.
    pub(super) completeness: Option<f64>,
    pub(super) community: Value,
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
