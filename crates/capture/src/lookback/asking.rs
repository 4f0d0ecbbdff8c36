//! How frames are asked for.

use crate::limits::LOOKBACK_ASKED_MAX;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::fields::FieldId;

/// A request for frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The name of the file: letters, digits, `.`, `_`, `-` and `+`.
    pub name: String,
    /// Frames from this time on, in nanoseconds since 1970, ...
    pub from: i64,
    /// ... and to this time.
    pub to: i64,
    /// The fields that say which frames, of fixed width; none of them for all frames.
    pub by: Arc<[FieldId]>,
    /// The values of these fields as [`Column::raw`](weir_packet::column::Column::raw) has them,
    /// where they are there.
    pub key: Vec<Option<u128>>,
}

/// Asks a [`Lookback`](super::Lookback) for frames, from any thread.
#[derive(Clone, Default)]
pub struct Asking(Arc<Requests>);

#[derive(Default)]
struct Requests {
    asked: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// The requests that wait, and how many others were refused.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) wanted: Vec<Wanted>,
    pub(super) refused: u64,
}

impl Asking {
    /// Asks. Beyond [`LOOKBACK_ASKED_MAX`] requests that wait for an answer, it counts as refused.
    pub fn ask(&self, wanted: Wanted) {
        let mut waiting = self.0.waiting.lock();
        if waiting.wanted.len() >= LOOKBACK_ASKED_MAX {
            waiting.refused += 1;
            return;
        }
        waiting.wanted.push(wanted);
        self.0.asked.store(true, Ordering::Release);
    }

    /// The requests since this was last called.
    pub(super) fn take(&self) -> Waiting {
        if !self.0.asked.load(Ordering::Relaxed) {
            // A plain load most of the time: it is looked at for every batch.
            return Waiting::default();
        }
        self.0.asked.store(false, Ordering::Release);
        std::mem::take(&mut *self.0.waiting.lock())
    }
}
