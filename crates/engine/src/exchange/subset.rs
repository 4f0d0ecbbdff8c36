//! Some of the packets of a source, at the times of all, to test the law of the exchange with. A
//! producer over a source of its own takes all packets.

use crate::clock::Clock;
use crate::counters::Ledger;
use crate::feed::{Step, Times};
use weir_packet::bits::Bits;
use weir_packet::source::FrameBatch;

/// Which packets of a source a producer gets.
pub struct Subset<'a> {
    /// Its packets of a batch; `None`: all.
    pub choose: Option<&'a mut dyn FnMut(&FrameBatch) -> Bits>,
    /// Whether it reports what the source reports of all packets: losses, and what was filtered.
    pub is_first: bool,
}

impl Subset<'_> {
    /// All packets.
    pub(super) fn all() -> Subset<'static> {
        Subset { choose: None, is_first: true }
    }

    /// Turns counts of all packets into those of a producer that got so many. The counts of all
    /// producers together are those of one that got all packets.
    pub(super) fn count(&self, packets: u64, ledger: &mut Ledger) {
        let others = ledger.processed - packets;
        ledger.processed = packets;
        if self.is_first {
            ledger.received -= others;
        } else {
            (ledger.received, ledger.filtered) = (packets, 0);
            (ledger.wild, ledger.disordered) = (0, 0);
            (ledger.untimed, ledger.overlong) = (0, 0);
            ledger.lost = weir_packet::source::Lost::default();
        }
    }
}

/// The packets of a batch that one producer gets.
#[derive(Default)]
pub(super) struct SubsetBatch {
    /// In which steps they are pushed.
    pub(super) steps: Vec<Step>,
    /// As [`Times::clock`] has it.
    pub(super) clock: Vec<i64>,
    /// The order of each packet of the batch among those of other probes, where that matters.
    places: Vec<i64>,
}

impl SubsetBatch {
    /// Moves a clock over the packets, and notes where each stands among those of other probes.
    /// Packets of one source that several producers share stand in the order of that source: by
    /// the watermark, which never falls.
    pub(super) fn observe(&mut self, clock: &mut Clock, frames: &FrameBatch, is_shared: bool) {
        let place = |&ts: &i64| match (clock.observe(ts), is_shared) {
            (watermark, true) => watermark,
            (_, false) => clock.place(ts),
        };
        self.places.clear();
        self.places.extend(frames.ts().iter().map(place));
        frames.reached().into_iter().for_each(|ts| _ = clock.reach(ts));
    }

    /// Leaves the packets in the batch that a producer gets.
    pub(super) fn choose(
        &mut self,
        frames: &mut FrameBatch,
        times: &Times,
        subset: &mut Subset<'_>,
    ) {
        let all = Bits::first(frames.len());
        let mine = subset.choose.as_mut().map_or(all, |choose| choose(frames).and(all));
        let clock = times.clock(frames);
        self.clock.clear();
        self.clock.extend(mine.iter().map(|i| clock[i]));
        let places: Vec<i64> = mine.iter().filter_map(|i| self.places.get(i).copied()).collect();
        let mut at = 0;
        self.steps.clear();
        self.steps.extend(times.steps.iter().map(|step| {
            let from = at;
            at += step.rows.and(mine).count();
            Step { close: step.close, rows: Bits::range(from, at) }
        }));
        if mine != all {
            frames.retain(|_, i| mine.has(i));
        }
        frames.note_times(&places);
    }
}
