//! Why a job does not start, or does not go on.

use std::fmt;
use weir_engine::exchange::NotRestored;

/// Why a tier does not start, or does not go on.
#[derive(Debug)]
pub struct TierFault(String);

impl TierFault {
    pub(crate) fn new(why: impl fmt::Display) -> TierFault {
        TierFault(why.to_string())
    }

    pub(crate) fn not_restored(why: NotRestored) -> TierFault {
        match why {
            NotRestored::Plan(why) => TierFault::new(why),
            NotRestored::State(why) => TierFault::new(why),
        }
    }
}

impl fmt::Display for TierFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TierFault {}
