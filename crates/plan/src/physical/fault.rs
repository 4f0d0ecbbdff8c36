//! Faults of plans: parts that do not fit.

use std::fmt;

/// A part of a plan that does not fit, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanFault {
    /// Where: `pipeline 2, stage 3`, counted from 1.
    pub at: String,
    /// The fault there: one clause.
    pub why: String,
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for PlanFault {}

/// Nothing, or what does not fit.
pub(super) type Fits = Result<(), PlanFault>;

/// Fails with `why` unless `holds`.
pub(super) fn require(holds: bool, at: impl fmt::Display, why: impl Into<String>) -> Fits {
    let fault = || PlanFault { at: at.to_string(), why: why.into() };
    if holds { Ok(()) } else { Err(fault()) }
}
