//! The fate of alerts.

use serde::{Deserialize, Serialize};

/// The fate of the alerts for a target.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct TargetCounts {
    /// The name of the target.
    pub name: String,
    /// Alerts that it took.
    pub delivered: u64,
    /// Alerts that wait for it.
    pub waiting: u64,
    /// Alerts that found the queue full.
    pub full: u64,
    /// Alerts that it refused for good or answered with errors again and again, and those that came
    /// when it wanted no more.
    pub refused: u64,
    /// Alerts that it was away for, for too long or as the run ended.
    pub away: u64,
    /// Alerts that waited for it when the run ended, and are kept for the next run.
    #[serde(default)]
    pub kept: u64,
    /// Why the latest message that failed did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TargetCounts {
    /// Alerts that it will not get.
    pub fn undelivered(&self) -> u64 {
        self.full + self.refused + self.away
    }
}

/// The fate of the alerts of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeliveryCounts {
    /// Rows of alerts that the run emitted.
    pub alerts: u64,
    /// Alerts that never reached the process that delivers: it did not take them in time, or
    /// has ended.
    pub missed: u64,
    /// Each target.
    pub targets: Vec<TargetCounts>,
    /// Why that process has ended, if it has ended early.
    pub ended: Option<String>,
}

impl DeliveryCounts {
    /// Alerts that were not delivered and will not be, all targets together. One that never reached
    /// the process that delivers counts once.
    pub fn undelivered(&self) -> u64 {
        self.missed + self.targets.iter().map(TargetCounts::undelivered).sum::<u64>()
    }

    /// Alerts that were delivered, all targets together.
    pub fn delivered(&self) -> u64 {
        self.targets.iter().map(|target| target.delivered).sum()
    }

    /// Alerts that wait, all targets together.
    pub fn waiting(&self) -> u64 {
        self.targets.iter().map(|target| target.waiting).sum()
    }
}
