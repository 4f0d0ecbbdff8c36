//! The interface by which alerts are delivered to a target, whatever its kind.

use crate::alert::Alert;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Delivers alerts to a target.
pub(crate) trait Receiver: Send {
    /// How many alerts a message can have, and how messages follow one another.
    fn batching(&self) -> Batching {
        Batching { alerts_max: 1, gather: Duration::ZERO, apart: Duration::ZERO }
    }

    /// Delivers some alerts as one message, by this time.
    fn send(&mut self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure>;

    /// When something has to be repeated though no alert comes.
    fn repeat_at(&self) -> Option<Instant> {
        None
    }

    /// Repeats it.
    fn repeat(&mut self, _by: Instant) -> Result<(), Failure> {
        Ok(())
    }
}

/// How alerts are put into messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Batching {
    /// Alerts of a message.
    pub(crate) alerts_max: usize,
    /// How long a message waits for further alerts.
    pub(crate) gather: Duration,
    /// The time between two messages.
    pub(crate) apart: Duration,
}

/// The name of this host and process for receivers.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) host: String,
    pub(crate) process: u32,
}
