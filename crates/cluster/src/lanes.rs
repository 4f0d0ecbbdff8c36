//! The lives of probes that are not over, and for which of them the others wait.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use weir_engine::exchange::ProducerId;

/// One life of a probe.
pub(crate) struct Life {
    /// The number of its stream.
    pub(crate) stream: usize,
    pub(crate) epoch: u64,
    pub(crate) state: LifeState,
}

/// How far a life is.
pub(crate) enum LifeState {
    /// Its messages come.
    Running,
    /// Its end has come: this message, which is taken in once it is known whether another life
    /// follows.
    Ended(Vec<u8>),
    /// Its end was taken in, and nothing else is there for now.
    Over,
    /// It did not end, but somebody said that nothing else comes for now.
    Retired,
}

impl Life {
    fn new(stream: usize, epoch: u64) -> Life {
        Life { stream, epoch, state: LifeState::Running }
    }

    /// The message of its end, if it has come and was not taken in; it is over then.
    pub(crate) fn take_end(&mut self) -> Option<Vec<u8>> {
        if !matches!(self.state, LifeState::Ended(_)) {
            return None;
        }
        match mem::replace(&mut self.state, LifeState::Over) {
            LifeState::Ended(message) => Some(message),
            LifeState::Running | LifeState::Over | LifeState::Retired => None,
        }
    }

    /// Whether windows wait for it.
    pub(crate) fn is_waited_for(&self) -> bool {
        matches!(self.state, LifeState::Running | LifeState::Ended(_))
    }
}

/// Of each probe the lives that are not over, the earliest first: the one that is read, and those
/// in other streams that wait for it.
pub(crate) struct Lanes {
    lanes: BTreeMap<u128, VecDeque<Life>>,
}

impl Lanes {
    /// The first lives of streams, in their order.
    pub(crate) fn new(streams: impl Iterator<Item = ProducerId>) -> Lanes {
        let mut lanes = Lanes { lanes: BTreeMap::new() };
        for (stream, ProducerId { probe, epoch }) in streams.enumerate() {
            lanes.insert(probe, Life::new(stream, epoch));
        }
        lanes
    }

    fn insert(&mut self, probe: u128, life: Life) {
        let lane = self.lanes.entry(probe).or_default();
        let at = lane.partition_point(|other| other.epoch <= life.epoch);
        lane.insert(at, life);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The life of a probe that is read.
    pub(crate) fn life(&mut self, probe: u128) -> &mut Life {
        let lane = self.lanes.get_mut(&probe).and_then(VecDeque::front_mut);
        lane.expect("something was taken of a probe that is read")
    }

    /// When the next life of a probe that is known began, after the one that is read.
    pub(crate) fn next_epoch(&self, probe: u128) -> Option<u64> {
        let lane = self.lanes.get(&probe)?;
        let epoch = lane.front()?.epoch;
        // A copy of the life that is read may stand between.
        lane.iter().map(|life| life.epoch).filter(|other| *other > epoch).min()
    }

    /// Whether a later life of a probe is known.
    pub(crate) fn goes_on(&self, probe: u128) -> bool {
        self.next_epoch(probe).is_some()
    }

    /// Another life begins in the stream that is read; the epoch of the one that is read now.
    pub(crate) fn begin(&mut self, probe: u128, epoch: u64) -> u64 {
        let lane = self.lanes.entry(probe).or_default();
        if let Some(life) = lane.pop_front() {
            self.insert(probe, Life::new(life.stream, epoch));
        }
        self.life(probe).epoch
    }

    /// Reads another stream of the probe, if there is one, before it looks at this one again.
    pub(crate) fn take_turns(&mut self, probe: u128) {
        if let Some(lane) = self.lanes.get_mut(&probe) {
            lane.rotate_left(1);
        }
    }

    /// Ends the life that is read, and with it its stream; whether it was the last of its probe.
    pub(crate) fn end(&mut self, probe: u128) -> bool {
        let Some(lane) = self.lanes.get_mut(&probe) else { return false };
        lane.pop_front();
        let is_last = lane.is_empty();
        if is_last {
            self.lanes.remove(&probe);
        }
        is_last
    }

    /// The life of each probe that is read.
    pub(crate) fn read(&self) -> impl Iterator<Item = (u128, &Life)> {
        self.lanes.iter().filter_map(|(probe, lives)| Some((*probe, lives.front()?)))
    }

    /// The probes that all others wait for.
    pub(crate) fn slowest(&self, closed: impl Fn(u128) -> i64) -> Vec<u128> {
        let waited = || self.read().filter(|(_, life)| life.is_waited_for());
        let least = waited().map(|(probe, _)| closed(probe)).min();
        let slowest = waited().filter(|(probe, _)| Some(closed(*probe)) == least);
        slowest.map(|(probe, _)| probe).collect()
    }

    /// The streams to read from, each with its probe: those of the slowest probes, and of such as
    /// may begin again.
    pub(crate) fn wanted(&self, closed: impl Fn(u128) -> i64) -> Vec<(usize, u128)> {
        let slowest = self.slowest(closed);
        let wanted = |(probe, life): &(u128, &Life)| {
            !life.is_waited_for() || slowest.binary_search(probe).is_ok()
        };
        self.read().filter(wanted).map(|(probe, life)| (life.stream, probe)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(all: &[(u128, u64)]) -> impl Iterator<Item = ProducerId> {
        all.iter().map(|&(probe, epoch)| ProducerId { probe, epoch })
    }

    #[test]
    fn lives_are_read_in_the_order_of_their_epochs() {
        let mut lanes = Lanes::new(ids(&[(1, 5), (1, 3), (2, 9)]));
        assert_eq!((lanes.life(1).stream, lanes.goes_on(1), lanes.goes_on(2)), (1, true, false));
        // The next life of stream 1 is later than that of stream 0, which is read first.
        assert_eq!(lanes.begin(1, 7), 5);
        assert_eq!(lanes.life(1).stream, 0);
        assert!(!lanes.end(1));
        assert_eq!((lanes.life(1).stream, lanes.life(1).epoch), (1, 7));
        assert!(lanes.end(1) && lanes.end(2) && lanes.is_empty());
    }

    #[test]
    fn a_copy_of_a_life_does_not_hide_the_one_after_it() {
        let mut lanes = Lanes::new(ids(&[(1, 3), (1, 3), (1, 8)]));
        assert_eq!(lanes.next_epoch(1), Some(8));
        assert!(!lanes.end(1) && lanes.goes_on(1) && !lanes.end(1));
        assert_eq!((lanes.life(1).epoch, lanes.next_epoch(1)), (8, None));
    }

    #[test]
    fn nobody_waits_for_who_rests_but_its_stream_is_read() {
        let mut lanes = Lanes::new(ids(&[(1, 0), (2, 0), (3, 0)]));
        let closed = |probe| if probe == 3 { 5 } else { 0 };
        assert_eq!(lanes.slowest(closed), [1, 2]);
        lanes.life(1).state = LifeState::Over;
        assert_eq!(lanes.slowest(closed), [2]);
        assert_eq!(lanes.wanted(closed), [(0, 1), (1, 2)]);
        lanes.life(2).state = LifeState::Retired;
        assert_eq!(lanes.slowest(closed), [3]);
        assert_eq!(lanes.begin(1, 1), 1);
        assert_eq!(lanes.slowest(closed), [1]);
    }
}
