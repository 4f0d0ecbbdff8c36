//! What has come of the messages of each producer: which numbers, and how far its time is.

use super::message::{EndOf, MessageId};
use crate::limits::{EXCHANGE_AHEAD_MAX, EXCHANGE_CLOSINGS_MAX, EXCHANGE_PROBES_MAX};
use crate::losses::LossNews;
use std::collections::{BTreeMap, BTreeSet};
use weir_packet::source::Gap;

/// The lives of a probe that are remembered. Messages of earlier ones count as seen.
const LIVES: usize = 16;

/// Stands for the frames that passed between a life that broke off and the next one: nobody knows
/// how many. A link of 100 Gbit/s takes weeks for so many, and yet tens of thousands of lives fit
/// into a sum.
const UNSEEN_FRAMES: u64 = 1 << 48;

/// All producers.
#[derive(Default)]
pub(super) struct Streams {
    probes: BTreeMap<u128, ProbeLives>,
    /// Watermarks of producers that no window was closed at yet.
    closings: BTreeSet<i64>,
    /// The last watermark that was handed out.
    applied: i64,
    /// How many probes have sent something.
    machines: usize,
}

/// A probe: each start begins a life, whose messages are numbered from 0.
#[derive(Default)]
struct ProbeLives {
    lives: BTreeMap<u64, LifeMessages>,
    idle: bool,
    /// Whether each life does again what the one before it left undone.
    resumes: bool,
    /// Its number among all probes, from 1; 0 before it has one.
    machine: usize,
}

/// The messages of one life.
struct LifeMessages {
    /// All messages with smaller numbers have come.
    next: u64,
    /// Those that came before one with a smaller number.
    ahead: BTreeMap<u64, Consequence>,
    closed: i64,
    ended: Option<EndOf>,
}

/// What a message does once all before it have come.
pub(super) enum Consequence {
    Nothing,
    /// Something was lost that this node is to know of.
    Losses(usize, LossNews),
    Closed(i64),
    End(EndOf),
}

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    New,
    Seen,
    /// It can't be taken now.
    Full(&'static str),
}

impl Streams {
    /// Waits for a probe from now on.
    pub(super) fn expect(&mut self, probe: u128) {
        self.probes.entry(probe).or_default();
    }

    /// Waits for the next life of a probe, of which nothing has come yet.
    pub(super) fn begin_life(&mut self, probe: u128, epoch: u64) {
        let found = self.probes.entry(probe).or_default();
        found.idle = false;
        found.lives.entry(epoch).or_insert_with(LifeMessages::new);
        if found.lives.len() > LIVES {
            found.lives.pop_first();
        }
    }

    /// Says whether the lives of a probe from now on do again what the one before left undone, so
    /// that nothing is unseen between them.
    pub(super) fn set_resuming(&mut self, probe: u128, resumes: bool) {
        self.probes.entry(probe).or_default().resumes = resumes;
    }

    /// Does not wait for a probe until it sends again.
    pub(super) fn set_idle(&mut self, probe: u128) {
        self.probes.entry(probe).or_default().idle = true;
    }

    /// What becomes of a message.
    pub(super) fn standing(&self, id: MessageId) -> Standing {
        let MessageId { probe, epoch, number } = id;
        let Some(found) = self.probes.get(&probe) else {
            return match self.probes.len() < EXCHANGE_PROBES_MAX {
                true => Standing::New,
                false => Standing::Full("there are too many probes"),
            };
        };
        let Some(life) = found.lives.get(&epoch) else {
            let forgotten = found.lives.len() >= LIVES;
            let is_old = found.lives.first_key_value().is_some_and(|(first, _)| epoch < *first);
            return if forgotten && is_old { Standing::Seen } else { Standing::New };
        };
        if number < life.next || life.ahead.contains_key(&number) {
            Standing::Seen
        } else if number > life.next && life.ahead.len() >= EXCHANGE_AHEAD_MAX {
            Standing::Full("messages before this one have not come yet")
        } else {
            Standing::New
        }
    }

    /// Adds a new message. `lost` takes what is reported of losses: node, if it is not for all,
    /// machine, news.
    pub(super) fn add(
        &mut self,
        id: MessageId,
        what: Consequence,
        lost: impl FnMut(Option<usize>, usize, &LossNews),
    ) {
        let MessageId { probe, epoch, number } = id;
        let found = self.probes.entry(probe).or_default();
        found.idle = false;
        if found.machine == 0 {
            self.machines += 1;
            found.machine = self.machines;
        }
        let life = found.lives.entry(epoch).or_insert_with(LifeMessages::new);
        life.ahead.insert(number, what);
        self.advance(probe, epoch, lost);
        if let Some(found) = self.probes.get_mut(&probe).filter(|found| found.lives.len() > LIVES) {
            found.lives.pop_first();
        }
    }

    /// Goes on without the messages of a life that are missing before others: they will not come.
    /// Returns how many they are.
    pub(super) fn skip_missing(
        &mut self,
        probe: u128,
        epoch: u64,
        mut lost: impl FnMut(Option<usize>, usize, &LossNews),
    ) -> u64 {
        let mut missing = 0u64;
        while let Some(life) = self.life(probe, epoch)
            && let Some((&first, _)) = life.ahead.first_key_value()
        {
            missing = missing.saturating_add(first.saturating_sub(life.next));
            // The last number there is has no next one, and is taken once.
            life.next = first;
            self.advance(probe, epoch, &mut lost);
        }
        missing
    }

    /// The same of all lives of all probes.
    pub(super) fn skip_all_missing(
        &mut self,
        mut lost: impl FnMut(Option<usize>, usize, &LossNews),
    ) {
        let lives = |(probe, found): (&u128, &ProbeLives)| {
            let probe = *probe;
            found.lives.keys().map(move |epoch| (probe, *epoch)).collect::<Vec<_>>()
        };
        let all: Vec<(u128, u64)> = self.probes.iter().flat_map(lives).collect();
        for (probe, epoch) in all {
            self.skip_missing(probe, epoch, &mut lost);
        }
    }

    fn life(&mut self, probe: u128, epoch: u64) -> Option<&mut LifeMessages> {
        self.probes.get_mut(&probe)?.lives.get_mut(&epoch)
    }

    /// Does what the messages of a life say for which no earlier one is waited.
    fn advance(
        &mut self,
        probe: u128,
        epoch: u64,
        mut lost: impl FnMut(Option<usize>, usize, &LossNews),
    ) {
        let Streams { probes, closings, applied, .. } = self;
        let Some(found) = probes.get_mut(&probe) else { return };
        let unseen_since = found.unseen_before(epoch);
        let Some(life) = found.lives.get_mut(&epoch) else { return };
        while let Some(what) = life.ahead.remove(&life.next) {
            life.next = life.next.saturating_add(1);
            match what {
                Consequence::Nothing => {}
                Consequence::Losses(node, news) => lost(Some(node), found.machine - 1, &news),
                Consequence::End(why) => life.ended = Some(why),
                Consequence::Closed(w) => {
                    let is_first = life.closed == i64::MIN;
                    if let Some(since) = unseen_since.filter(|since| is_first && *since < w) {
                        let gap = Gap { frames: UNSEEN_FRAMES, since, until: w - 1 };
                        let news = LossNews { gaps: vec![(since, gap)], ..LossNews::default() };
                        lost(None, found.machine - 1, &news);
                    }
                    life.closed = life.closed.max(w);
                    if w > *applied {
                        // Windows close at fewer watermarks then, and none stays open.
                        while closings.len() >= EXCHANGE_CLOSINGS_MAX {
                            closings.pop_last();
                        }
                        closings.insert(w);
                    }
                }
            }
        }
    }

    /// How far a probe is: all windows that end at or before this watermark have come from it.
    pub(super) fn closed_by(&self, probe: u128) -> i64 {
        self.probes.get(&probe).map_or(i64::MIN, ProbeLives::closed)
    }

    /// The next watermark at which windows close: every probe that is waited for has come to it.
    pub(super) fn next_closing(&mut self) -> Option<i64> {
        let next = *self.closings.first()?;
        let waited = self.probes.values().filter(|probe| probe.is_waited_for());
        let least = waited.map(ProbeLives::closed).min();
        if least.is_some_and(|least| least < next) {
            return None;
        }
        self.closings.pop_first();
        self.applied = next;
        Some(next)
    }

    /// The last watermark that was handed out.
    pub(super) fn applied(&self) -> i64 {
        self.applied
    }

    /// Those that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = u128> {
        self.probes.iter().filter(|(_, probe)| !probe.has_ended()).map(|(id, _)| *id)
    }

    /// Nobody yet.
    pub(super) fn new() -> Streams {
        Streams { applied: i64::MIN, ..Streams::default() }
    }
}

impl LifeMessages {
    /// Nothing has come yet.
    fn new() -> LifeMessages {
        LifeMessages { next: 0, ahead: BTreeMap::new(), closed: i64::MIN, ended: None }
    }
}

impl ProbeLives {
    fn has_ended(&self) -> bool {
        self.lives.last_key_value().is_some_and(|(_, life)| life.ended.is_some())
    }

    /// Where the life before this one broke off, the time from which on nobody has seen anything.
    fn unseen_before(&self, epoch: u64) -> Option<i64> {
        let (_, before) = self.lives.range(..epoch).next_back()?;
        let broke_off = before.ended != Some(EndOf::Input) && !self.resumes;
        broke_off.then_some(before.closed)
    }

    fn is_waited_for(&self) -> bool {
        !self.idle && !self.has_ended()
    }

    fn closed(&self) -> i64 {
        self.lives.last_key_value().map_or(i64::MIN, |(_, life)| life.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [i64; 0] = [];

    fn id((probe, epoch, number): (u128, u64, u64)) -> MessageId {
        MessageId { probe, epoch, number }
    }

    fn take(streams: &mut Streams, of: (u128, u64, u64), what: Consequence) {
        assert_eq!(streams.standing(id(of)), Standing::New, "{of:?}");
        streams.add(id(of), what, |_, _, _| {});
        assert_eq!(streams.standing(id(of)), Standing::Seen, "{of:?}");
    }

    fn closings(streams: &mut Streams) -> Vec<i64> {
        std::iter::from_fn(|| streams.next_closing()).collect()
    }

    #[test]
    fn windows_close_when_the_slowest_probe_says_so() {
        let mut streams = Streams::new();
        (1..=2).for_each(|probe| streams.expect(probe));
        take(&mut streams, (1, 0, 0), Consequence::Closed(10));
        take(&mut streams, (1, 0, 1), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), NONE, "nothing came of the other");
        take(&mut streams, (2, 0, 0), Consequence::Closed(15));
        assert_eq!(closings(&mut streams), [10, 15]);
        take(&mut streams, (2, 0, 1), Consequence::End(EndOf::Input));
        assert_eq!(closings(&mut streams), [20]);
        assert_eq!((streams.applied(), streams.open().collect::<Vec<_>>()), (20, vec![1]));
    }

    #[test]
    fn a_watermark_waits_for_the_messages_before_it() {
        let mut streams = Streams::new();
        streams.expect(1);
        take(&mut streams, (1, 0, 2), Consequence::Closed(10));
        take(&mut streams, (1, 0, 1), Consequence::Nothing);
        assert_eq!(closings(&mut streams), NONE);
        take(&mut streams, (1, 0, 0), Consequence::Nothing);
        assert_eq!(closings(&mut streams), [10]);
    }

    #[test]
    fn nobody_waits_for_an_idle_probe_until_it_sends() {
        let mut streams = Streams::new();
        (1..=2).for_each(|probe| streams.expect(probe));
        take(&mut streams, (1, 0, 0), Consequence::Closed(10));
        streams.set_idle(2);
        assert_eq!(closings(&mut streams), [10]);
        take(&mut streams, (2, 0, 0), Consequence::Closed(5));
        take(&mut streams, (1, 0, 1), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), NONE, "it is back, and behind");
        take(&mut streams, (2, 0, 1), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), [20]);
    }

    #[test]
    fn a_probe_that_starts_again_counts_from_0() {
        let mut streams = Streams::new();
        take(&mut streams, (1, 7, 0), Consequence::Closed(10));
        take(&mut streams, (1, 7, 1), Consequence::Closed(30));
        take(&mut streams, (1, 8, 0), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), [10, 20], "as far as its new life is");
        assert_eq!(streams.standing(id((1, 7, 1))), Standing::Seen);
        assert_eq!(streams.standing(id((1, 7, 2))), Standing::New);
    }

    #[test]
    fn nobody_knows_what_passed_after_a_life_broke_off() {
        let unseen = |before: &[Consequence], resumes: bool, closed: i64| {
            let mut streams = Streams::new();
            for (number, what) in (0..).zip(before) {
                let what = match what {
                    Consequence::Closed(w) => Consequence::Closed(*w),
                    Consequence::End(why) => Consequence::End(*why),
                    _ => Consequence::Nothing,
                };
                take(&mut streams, (1, 7, number), what);
            }
            if resumes {
                streams.set_resuming(1, true);
            }
            let mut told = Vec::new();
            for (number, what) in [
                (0, Consequence::Nothing),
                (1, Consequence::Closed(closed)),
                (2, Consequence::Closed(closed + 10)),
            ] {
                streams.add(id((1, 8, number)), what, |node, machine, news| {
                    assert_eq!((node, machine, news.panes.len()), (None, 0, 0));
                    told.extend(news.gaps.iter().map(|(at, gap)| (*at, gap.since, gap.until)));
                });
            }
            told
        };
        use Consequence::{Closed, End, Nothing};
        assert_eq!(unseen(&[Nothing, Closed(10), Nothing], false, 20), [(10, 10, 19)]);
        assert_eq!(unseen(&[Closed(10), End(EndOf::Source)], false, 20), [(10, 10, 19)]);
        assert_eq!(unseen(&[Nothing], false, 20), [(i64::MIN, i64::MIN, 19)]);
        // It ended, it is done again, it was the first, and time went back.
        assert_eq!(unseen(&[Closed(10), End(EndOf::Input)], false, 20), []);
        assert_eq!(unseen(&[Closed(10)], true, 20), []);
        assert_eq!(unseen(&[], false, 20), []);
        assert_eq!(unseen(&[Closed(10)], false, 10), []);
    }

    #[test]
    fn a_life_that_begins_is_waited_for() {
        let mut streams = Streams::new();
        take(&mut streams, (1, 7, 0), Consequence::Closed(10));
        take(&mut streams, (1, 7, 1), Consequence::End(EndOf::Input));
        take(&mut streams, (2, 0, 0), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), [10, 20], "the first has ended");
        streams.begin_life(1, 8);
        take(&mut streams, (2, 0, 1), Consequence::Closed(30));
        assert_eq!(closings(&mut streams), NONE);
        take(&mut streams, (1, 8, 0), Consequence::Closed(30));
        assert_eq!(closings(&mut streams), [30]);
        // However many begin, few are remembered; what is earlier counts as seen.
        (9..=2000).for_each(|epoch| streams.begin_life(1, epoch));
        assert_eq!(streams.probes[&1].lives.len(), LIVES);
        assert_eq!(streams.standing(id((1, 8, 1))), Standing::Seen);
    }

    #[test]
    fn what_is_too_far_ahead_has_to_wait() {
        let mut streams = Streams::new();
        for number in 1..=EXCHANGE_AHEAD_MAX as u64 {
            streams.add(id((1, 0, number)), Consequence::Nothing, |_, _, _| {});
        }
        assert!(matches!(streams.standing(id((1, 0, u64::MAX))), Standing::Full(_)));
        assert_eq!(streams.standing(id((1, 0, 0))), Standing::New, "the one that is waited for");
        take(&mut streams, (1, 0, 0), Consequence::Nothing);
        assert_eq!(streams.standing(id((1, 0, u64::MAX))), Standing::New);
    }

    #[test]
    fn what_is_missing_is_gone_on_without_once_it_will_not_come() {
        let mut streams = Streams::new();
        take(&mut streams, (1, 0, 0), Consequence::Closed(5));
        let news = || Consequence::Losses(3, LossNews::default());
        take(&mut streams, (1, 0, 2), news());
        take(&mut streams, (1, 0, 5), Consequence::Closed(10));
        take(&mut streams, (1, 0, 6), Consequence::End(EndOf::Input));
        assert_eq!(closings(&mut streams), [5]);
        let mut lost = Vec::new();
        let missing = streams.skip_missing(1, 0, |node, machine, _| lost.push((node, machine)));
        assert_eq!((missing, lost), (3, vec![(Some(3), 0)]), "1, 3 and 4");
        assert_eq!((closings(&mut streams), streams.closed_by(1)), (vec![10], 10));
        assert_eq!(streams.open().count(), 0);
        assert_eq!(streams.standing(id((1, 0, 3))), Standing::Seen, "it comes too late");
        assert_eq!(streams.skip_missing(1, 0, |_, _, _| unreachable!("nothing is left")), 0);
        assert_eq!(streams.skip_missing(2, 0, |_, _, _| unreachable!("nobody has come")), 0);
    }

    #[test]
    fn every_life_of_every_probe_is_gone_on_with_at_the_end() {
        let mut streams = Streams::new();
        for of in [(1, 0, 3), (1, 1, u64::MAX), (2, 0, 1)] {
            take(&mut streams, of, Consequence::Losses(0, LossNews::default()));
        }
        let mut lost = 0;
        streams.skip_all_missing(|_, _, _| lost += 1);
        assert_eq!(lost, 3);
    }

    #[test]
    fn the_last_number_there_is_does_not_wrap() {
        let mut streams = Streams::new();
        streams.add(id((1, u64::MAX, u64::MAX)), Consequence::End(EndOf::Input), |_, _, _| {});
        assert_eq!(streams.standing(id((1, u64::MAX, u64::MAX))), Standing::Seen);
        assert_eq!(closings(&mut streams), NONE);
    }
}
