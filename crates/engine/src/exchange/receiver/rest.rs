//! A receiver that goes on after all of its probes have ended.

use super::Receiver;
use super::held::HeldNode;
use crate::rows::Sink;

impl Receiver {
    /// Whether windows wait for any probe.
    pub fn waits(&self) -> bool {
        self.streams.waits()
    }

    /// Whether windows wait for this probe.
    pub fn waits_for(&self, probe: u128) -> bool {
        self.streams.waits_for(probe)
    }

    /// Says how long windows of probes wait for packets that come out of order, if they read
    /// packets in another way than before.
    pub fn set_lateness(&mut self, lateness_ns: i64) {
        self.streams.set_lateness(lateness_ns);
    }

    /// Closes all windows that groups have come of, those of further stages too, where no probe is
    /// waited for: otherwise they stay open until a probe sends again. Groups of these windows that
    /// come afterwards are late.
    pub fn rest(&mut self, sink: &mut dyn Sink) {
        if self.streams.waits() {
            return;
        }
        let applied = self.streams.applied();
        let held = self.nodes.iter().filter_map(HeldNode::last_closing).max();
        let last = held.map_or(applied, |held| held.max(applied));
        if last == self.rested || last == i64::MIN {
            return;
        }
        // The windows of probes close at their own ends first, as in a run that goes on.
        self.above.know_until(Some(self.streams.known_until()));
        for watermark in [last, last.saturating_add(self.held_above_ns)] {
            self.close_at(watermark, sink);
        }
        self.above.know_until(None);
        self.rested = last.saturating_add(self.held_above_ns);
        self.streams.rest_at(self.rested);
        self.look_for_errors();
    }
}

impl HeldNode {
    /// The watermark at which all windows close that are held; none for those that close at the end
    /// of the input alone.
    fn last_closing(&self) -> Option<i64> {
        let (start, _) = self.windows.last_key_value()?;
        self.spec.closes_at(*start)
    }
}
