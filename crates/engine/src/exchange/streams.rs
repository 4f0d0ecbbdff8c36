//! The messages of each producer so far: which numbers have come, and how far its time is.

mod saved;

use super::message::{EndOf, MessageId};
use crate::checkpoint::COUNT_MAX;
use crate::clock::Clock;
use crate::limits::{
    EXCHANGE_AHEAD_MAX, EXCHANGE_CLOSINGS_MAX, EXCHANGE_MACHINES_MAX, EXCHANGE_PROBES_MAX,
};
use crate::losses::LossNews;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use weir_packet::source::Gap;

/// The lives of a probe that are remembered. Messages of earlier ones count as seen.
const LIVES: usize = 16;

/// Stands for the frames that passed between a life that broke off and the next one: nobody knows
/// how many. A link of 100 Gbit/s takes weeks for so many, and yet tens of thousands of lives fit
/// into a sum.
const UNSEEN_FRAMES: u64 = 1 << 48;

/// The messages of one probe count less than this in all: the counts of dozens of probes fit into
/// one.
const CLAIMED_MAX: u64 = COUNT_MAX << 4;

/// Takes what is lost: of this node, or of all; by this machine.
pub(super) type Lost<'a> = &'a mut dyn FnMut(Option<usize>, usize, &LossNews);

/// All producers.
#[derive(Default)]
pub(super) struct Streams {
    /// How times of packets move the watermark.
    lateness_ns: i64,
    jump_ns: i64,
    probes: BTreeMap<u128, ProbeLives>,
    /// Watermarks of producers that no window was closed at yet.
    closings: BTreeSet<i64>,
    /// The last watermark that was handed out.
    applied: i64,
    /// How many machines have sent something, or lost it.
    machines: usize,
    /// Up to which time it is known what came: the latest watermark by the word of probes, or time
    /// that the clock of one had come to when all had ended.
    known_until: i64,
    /// The time that the clocks of probes that have ended had come to, and times that were not
    /// believed yet, once any has ended.
    stood: Option<(i64, Vec<i64>)>,
}

/// A probe: each start begins a life, whose messages are numbered from 0.
#[derive(Default)]
struct ProbeLives {
    lives: BTreeMap<u64, LifeMessages>,
    idle: bool,
    /// Whether each life does again what the one before it left undone.
    resumes: bool,
    /// Its number among all machines, from 1; 0 before it has one.
    machine: usize,
    /// The numbers of machines whose losses it passes on, by the numbers that it has for them.
    passed: BTreeMap<u32, usize>,
    /// Since when nobody knows what it saw, if that is so.
    unseen: Option<UnseenSpan>,
    /// The largest counts of its messages, added up.
    claimed: u64,
}

/// A span of which nobody knows what a probe saw: messages are missing, or a life broke off.
#[derive(Clone, Copy, Default)]
struct UnseenSpan {
    since: i64,
    /// Whether it was reported, without an end.
    is_told: bool,
}

/// The messages of one life.
struct LifeMessages {
    /// All messages with smaller numbers have come.
    next: u64,
    /// Messages that came before one with a smaller number.
    ahead: BTreeMap<u64, Consequence>,
    closed: i64,
    ended: Option<EndOf>,
    /// The time that its clock had come to at its end, and times that it did not believe yet.
    last: Option<(i64, Vec<i64>)>,
}

/// The effect of a message once all before it have come.
pub(super) enum Consequence {
    Nothing,
    /// Something was lost that this node is to know of.
    /// By this machine of the probe.
    Losses(usize, u32, LossNews),
    Closed(i64),
    Clock(i64, Vec<i64>),
    End(EndOf),
}

/// The fate of a message.
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

    /// Does not wait for a probe until it sends again. If its life has not ended, nobody knows what
    /// it sees until then.
    pub(super) fn set_idle(&mut self, probe: u128, lost: Lost<'_>) {
        self.probes.entry(probe).or_default().idle = true;
        self.tell_unseen(probe, lost);
    }

    /// Reports what nobody knows of a probe from some time on, unless it is known or was reported.
    fn tell_unseen(&mut self, probe: u128, lost: Lost<'_>) {
        let machine = self.machine(probe);
        let Some(found) = self.probes.get_mut(&probe) else { return };
        let Some(last) = found.lives.last_entry() else { return };
        let (epoch, ended) = (*last.key(), last.get().ended);
        if ended != Some(EndOf::Input) && !found.resumes {
            found.begin_unseen(epoch);
        }
        if let Some(span) = found.unseen.as_mut().filter(|span| !span.is_told) {
            span.is_told = true;
            lost(None, machine, &unseen(span.since, Gap::OPEN, UNSEEN_FRAMES));
        }
    }

    /// Whether there is room for another machine of a probe, or it is known.
    pub(super) fn has_room_for(&self, probe: u128, machine: u32) -> bool {
        let is_known = |found: &ProbeLives| found.passed.contains_key(&machine);
        // Each probe may still come that has not.
        let most = EXCHANGE_MACHINES_MAX - EXCHANGE_PROBES_MAX;
        machine == 0 || self.machines < most || self.probes.get(&probe).is_some_and(is_known)
    }

    /// The number of a probe among all machines, from 0.
    fn machine(&mut self, probe: u128) -> usize {
        let found = self.probes.entry(probe).or_default();
        if found.machine == 0 {
            self.machines += 1;
            found.machine = self.machines;
        }
        found.machine - 1
    }

    /// Whether a probe may have counted so many more: what one claims is bounded by itself, so that
    /// it refuses nothing of another.
    pub(super) fn claim(&mut self, probe: u128, more: u64) -> bool {
        let claimed = &mut self.probes.entry(probe).or_default().claimed;
        let sum = claimed.saturating_add(more);
        let may = sum < CLAIMED_MAX;
        if may {
            *claimed = sum;
        }
        may
    }

    /// The fate of a message.
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

    /// Adds a new message.
    pub(super) fn add(&mut self, id: MessageId, what: Consequence, lost: Lost<'_>) {
        let MessageId { probe, epoch, number } = id;
        self.machine(probe);
        let found = self.probes.entry(probe).or_default();
        found.idle = false;
        let life = found.lives.entry(epoch).or_insert_with(LifeMessages::new);
        life.ahead.insert(number, what);
        self.advance(probe, epoch, lost);
        if let Some(found) = self.probes.get_mut(&probe).filter(|found| found.lives.len() > LIVES) {
            found.lives.pop_first();
        }
    }

    /// Goes on without the messages of a life that are missing before others: they will not come.
    /// Returns how many they are.
    pub(super) fn skip_missing(&mut self, probe: u128, epoch: u64, lost: Lost<'_>) -> u64 {
        let mut missing = 0u64;
        while let Some(found) = self.probes.get_mut(&probe)
            && let Some(life) = found.lives.get_mut(&epoch)
            && let Some((&first, _)) = life.ahead.first_key_value()
        {
            let skipped = first.saturating_sub(life.next);
            missing = missing.saturating_add(skipped);
            // The last number there is has no next one, and is taken once.
            life.next = first;
            if skipped > 0 {
                found.begin_unseen(epoch);
            }
            self.advance(probe, epoch, lost);
        }
        missing
    }

    /// Goes on without all messages that are missing, and reports of which probes nobody knows what
    /// they see from some time on. Returns how many are missing.
    pub(super) fn finish(&mut self, lost: Lost<'_>) -> u64 {
        let mut missing = 0u64;
        let lives = |(probe, found): (&u128, &ProbeLives)| {
            let probe = *probe;
            found.lives.keys().map(move |epoch| (probe, *epoch)).collect::<Vec<_>>()
        };
        let all: Vec<(u128, u64)> = self.probes.iter().flat_map(lives).collect();
        for (probe, epoch) in all {
            missing = missing.saturating_add(self.skip_missing(probe, epoch, lost));
        }
        let probes: Vec<u128> = self.probes.keys().copied().collect();
        probes.into_iter().for_each(|probe| self.tell_unseen(probe, lost));
        missing
    }

    /// Does what the messages of a life say for which no earlier one is waited.
    fn advance(&mut self, probe: u128, epoch: u64, lost: Lost<'_>) {
        let Streams { probes, closings, applied, lateness_ns, machines, .. } = self;
        let Some(found) = probes.get_mut(&probe) else { return };
        found.begin_life_unseen(epoch);
        let ProbeLives { lives, unseen: span, machine, passed, .. } = found;
        let (mut ends, is_last) = (false, lives.last_key_value().is_some_and(|(e, _)| *e == epoch));
        let Some(life) = lives.get_mut(&epoch) else { return };
        while let Some(what) = life.ahead.remove(&life.next) {
            life.next = life.next.saturating_add(1);
            match what {
                Consequence::Nothing => {}
                Consequence::Losses(node, 0, news) => lost(Some(node), *machine - 1, &news),
                Consequence::Losses(node, of, news) => {
                    let machine = *passed.entry(of).or_insert_with(|| {
                        *machines += 1;
                        *machines
                    });
                    lost(Some(node), machine - 1, &news);
                }
                Consequence::Clock(reached, ahead) => life.last = Some((reached, ahead)),
                Consequence::End(why) => {
                    life.ended = Some(why);
                    ends = is_last;
                }
                Consequence::Closed(w) => {
                    let until = match life.closed {
                        // Of a life, as far as its first packets.
                        i64::MIN => w.saturating_add(*lateness_ns).saturating_sub(1),
                        _ => w.saturating_sub(1),
                    };
                    match span.take() {
                        // One that has no end yet gets it.
                        Some(UnseenSpan { since, is_told: true }) => {
                            lost(None, *machine - 1, &unseen(since, until, 0));
                        }
                        Some(UnseenSpan { since, .. }) if since <= until => {
                            lost(None, *machine - 1, &unseen(since, until, UNSEEN_FRAMES));
                        }
                        _ => {}
                    }
                    life.closed = life.closed.max(w);
                    if w > *applied {
                        if closings.len() >= EXCHANGE_CLOSINGS_MAX {
                            // Windows close at fewer watermarks then. The latest of a faster probe
                            // stays, so that none stays open.
                            let latest = closings.pop_last();
                            closings.pop_last();
                            closings.extend(latest);
                        }
                        closings.insert(w);
                    }
                }
            }
        }
        if ends {
            self.tell_unseen(probe, lost);
        }
    }

    /// How far a probe is: all windows that end at or before this watermark have come from it.
    pub(super) fn closed_by(&self, probe: u128) -> i64 {
        self.probes.get(&probe).map_or(i64::MIN, ProbeLives::closed)
    }

    /// The next watermark at which windows close: every probe that is waited for has come to it.
    pub(super) fn next_closing(&mut self) -> Option<i64> {
        if self.closings.is_empty() && !self.waits() {
            self.follow_ends();
        }
        let next = *self.closings.first()?;
        let waited = self.probes.values().filter(|probe| probe.is_waited_for());
        let least = waited.map(ProbeLives::closed).min();
        if least.is_some_and(|least| least < next) {
            return None;
        }
        self.closings.pop_first();
        self.applied = next;
        self.known_until = self.known_until.max(next);
        Some(next)
    }

    /// Moves the watermark by the last packets of probes that have ended, as a clock does that sees
    /// those of all: no window of a probe closed at the packets that its clock began with, and the
    /// clocks of probes did not believe some, which were far from their others.
    fn follow_ends(&mut self) {
        let lives = self.probes.values_mut().flat_map(|probe| probe.lives.values_mut());
        let ends: Vec<(i64, Vec<i64>)> = lives.filter_map(|life| life.last.take()).collect();
        let Some(reached) = ends.iter().map(|(reached, _)| *reached).max() else { return };
        let mut times: Vec<i64> = ends.into_iter().flat_map(|(_, ahead)| ahead).collect();
        times.sort_unstable();
        let mut clock = Clock::resumed(self.lateness_ns, self.jump_ns, reached);
        let began = clock.watermark();
        let all = iter::once(began).chain(times.into_iter().map(|ts| clock.observe(ts)));
        self.closings.extend(all.filter(|watermark| *watermark > self.applied));
        let (reached, ahead) = clock.stands_at();
        self.known_until = self.known_until.max(reached);
        if self.stood.as_ref().is_none_or(|(before, _)| *before <= reached) {
            self.stood = Some((reached, ahead.to_vec()));
        }
    }

    /// The time that the clocks of all probes have come to that have ended, and times that were not
    /// believed yet; none before any has ended.
    pub(super) fn stands_at(&mut self) -> Option<(i64, Vec<i64>)> {
        self.follow_ends();
        self.stood.clone()
    }

    /// Up to which time it is known what came.
    pub(super) fn known_until(&self) -> i64 {
        self.known_until
    }

    /// Whether any probe is waited for.
    pub(super) fn waits(&self) -> bool {
        self.probes.values().any(ProbeLives::is_waited_for)
    }

    /// Whether this probe is waited for.
    pub(super) fn waits_for(&self, probe: u128) -> bool {
        self.probes.get(&probe).is_some_and(ProbeLives::is_waited_for)
    }

    /// How long windows wait for packets that come out of order, from now on.
    pub(super) fn set_lateness(&mut self, lateness_ns: i64) {
        self.lateness_ns = lateness_ns;
    }

    /// Windows have closed up to this watermark without a word of a probe.
    pub(super) fn rest_at(&mut self, watermark: i64) {
        self.applied = watermark;
    }

    /// The last watermark that was handed out.
    pub(super) fn applied(&self) -> i64 {
        self.applied
    }

    /// The probes that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = u128> {
        self.probes.iter().filter(|(_, probe)| !probe.has_ended()).map(|(id, _)| *id)
    }

    /// No probes yet.
    pub(super) fn new(lateness_ns: i64, jump_ns: i64) -> Streams {
        let (applied, known_until) = (i64::MIN, i64::MIN);
        Streams { lateness_ns, jump_ns, applied, known_until, ..Streams::default() }
    }
}

impl LifeMessages {
    /// Nothing has come yet.
    fn new() -> LifeMessages {
        let (ahead, closed) = (BTreeMap::new(), i64::MIN);
        LifeMessages { next: 0, ahead, closed, ended: None, last: None }
    }
}

impl ProbeLives {
    fn has_ended(&self) -> bool {
        self.lives.last_key_value().is_some_and(|(_, life)| life.ended.is_some())
    }

    /// It is not known what it saw, from the last time on by which all had come up to this life.
    fn begin_unseen(&mut self, epoch: u64) {
        let mut before = self.lives.range(..=epoch).rev().map(|(_, life)| life.closed);
        let since = before.find(|closed| *closed > i64::MIN).unwrap_or(i64::MIN);
        self.unseen.get_or_insert(UnseenSpan { since, is_told: false });
    }

    /// The same where the life before this one broke off, and this one has not closed anything.
    fn begin_life_unseen(&mut self, epoch: u64) {
        let begins = self.lives.get(&epoch).is_some_and(|life| life.closed == i64::MIN);
        let before = self.lives.range(..epoch).next_back().filter(|_| begins && !self.resumes);
        if let Some((&before, life)) = before
            && life.ended != Some(EndOf::Input)
        {
            self.begin_unseen(before);
        }
    }

    fn is_waited_for(&self) -> bool {
        !self.idle && !self.has_ended()
    }

    fn closed(&self) -> i64 {
        self.lives.last_key_value().map_or(i64::MIN, |(_, life)| life.closed)
    }
}

/// The losses that are reported of a span that nobody saw.
fn unseen(since: i64, until: i64, frames: u64) -> LossNews {
    LossNews { gaps: vec![(since, Gap { frames, since, until })], ..LossNews::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [i64; 0] = [];

    fn streams() -> Streams {
        Streams::new(0, 60)
    }

    fn id((probe, epoch, number): (u128, u64, u64)) -> MessageId {
        MessageId { probe, epoch, number }
    }

    fn take(streams: &mut Streams, of: (u128, u64, u64), what: Consequence) {
        assert_eq!(streams.standing(id(of)), Standing::New, "{of:?}");
        streams.add(id(of), what, &mut |_, _, _| {});
        assert_eq!(streams.standing(id(of)), Standing::Seen, "{of:?}");
    }

    fn closings(streams: &mut Streams) -> Vec<i64> {
        std::iter::from_fn(|| streams.next_closing()).collect()
    }

    #[test]
    fn the_latest_watermark_of_a_faster_probe_stays() {
        let mut streams = streams();
        (1..=2).for_each(|probe| streams.expect(probe));
        let most = EXCHANGE_CLOSINGS_MAX as i64 + 5;
        (0..most).for_each(|n| {
            take(&mut streams, (1, 0, n as u64), Consequence::Closed(10 * (n + 1)));
        });
        for (n, w) in [(0, 5), (1, 7)] {
            take(&mut streams, (2, 0, n), Consequence::Closed(w));
        }
        take(&mut streams, (2, 0, 2), Consequence::End(EndOf::Input));
        take(&mut streams, (1, 0, most as u64), Consequence::End(EndOf::Input));
        let all = closings(&mut streams);
        assert_eq!((&all[..3], all.last()), (&[5, 7, 10][..], Some(&(10 * most))));
        assert_eq!(all.len(), EXCHANGE_CLOSINGS_MAX);
    }

    #[test]
    fn windows_close_when_the_slowest_probe_says_so() {
        let mut streams = streams();
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
        let mut streams = streams();
        streams.expect(1);
        take(&mut streams, (1, 0, 2), Consequence::Closed(10));
        take(&mut streams, (1, 0, 1), Consequence::Nothing);
        assert_eq!(closings(&mut streams), NONE);
        take(&mut streams, (1, 0, 0), Consequence::Nothing);
        assert_eq!(closings(&mut streams), [10]);
    }

    #[test]
    fn nobody_waits_for_an_idle_probe_until_it_sends() {
        let mut streams = streams();
        (1..=2).for_each(|probe| streams.expect(probe));
        take(&mut streams, (1, 0, 0), Consequence::Closed(10));
        streams.set_idle(2, &mut |_, _, _| {});
        assert_eq!(closings(&mut streams), [10]);
        take(&mut streams, (2, 0, 0), Consequence::Closed(5));
        take(&mut streams, (1, 0, 1), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), NONE, "it is back, and behind");
        take(&mut streams, (2, 0, 1), Consequence::Closed(20));
        assert_eq!(closings(&mut streams), [20]);
    }

    #[test]
    fn a_probe_that_starts_again_counts_from_0() {
        let mut streams = streams();
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
            let mut streams = streams();
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
                streams.add(id((1, 8, number)), what, &mut |node, machine, news| {
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
    fn nobody_knows_what_missing_messages_held() {
        let mut streams = streams();
        let mut told = Vec::new();
        let mut lost = |_: Option<usize>, _: usize, news: &LossNews| {
            told.extend(news.gaps.iter().map(|(_, gap)| (gap.since, gap.until, gap.frames)));
        };
        streams.expect(1);
        streams.add(id((1, 7, 0)), Consequence::Closed(10), &mut lost);
        streams.add(id((1, 7, 2)), Consequence::Nothing, &mut lost);
        assert_eq!(streams.skip_missing(1, 7, &mut lost), 1);
        streams.add(id((1, 7, 3)), Consequence::Closed(20), &mut lost);
        // Nothing waits for it, and it goes on.
        streams.set_idle(1, &mut lost);
        streams.set_idle(1, &mut lost);
        streams.add(id((1, 7, 4)), Consequence::Closed(40), &mut lost);
        // The message before its end is missing.
        streams.add(id((1, 7, 6)), Consequence::End(EndOf::Input), &mut lost);
        assert_eq!(streams.skip_missing(1, 7, &mut lost), 1);
        streams.set_idle(1, &mut lost);
        assert_eq!(streams.finish(&mut lost), 0);
        let all = UNSEEN_FRAMES;
        assert_eq!(told, [(10, 19, all), (20, Gap::OPEN, all), (20, 39, 0), (40, Gap::OPEN, all)]);
    }

    #[test]
    fn the_last_packets_of_all_move_the_watermark() {
        let ends = |ends: &[(i64, &[i64])]| {
            let mut streams = streams();
            (0..ends.len()).for_each(|probe| streams.expect(probe as u128));
            for (probe, (reached, ahead)) in ends.iter().enumerate() {
                let clock = Consequence::Clock(*reached, ahead.to_vec());
                take(&mut streams, (probe as u128, 1, 0), clock);
                assert_eq!(closings(&mut streams), NONE);
                take(&mut streams, (probe as u128, 1, 1), Consequence::End(EndOf::Input));
            }
            closings(&mut streams)
        };
        assert_eq!(ends(&[(i64::MIN, &[0]), (i64::MIN, &[50])]), [50]);
        assert_eq!(ends(&[(i64::MIN, &[0]), (i64::MIN, &[61])]), NONE);
        assert_eq!(ends(&[(10, &[]), (40, &[])]), [40]);
        assert_eq!(ends(&[(10, &[90]), (40, &[])]), [40, 90]);
        assert_eq!(ends(&[(10, &[900, 901]), (40, &[902])]), [40]);
        assert_eq!(ends(&[(10, &[900, 901, 905]), (40, &[902])]), [40, 900]);
        assert_eq!(ends(&[(i64::MAX, &[i64::MIN, i64::MAX]), (i64::MIN, &[])]), [i64::MAX]);
    }

    #[test]
    fn a_life_that_begins_is_waited_for() {
        let mut streams = streams();
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
        let mut streams = streams();
        for number in 1..=EXCHANGE_AHEAD_MAX as u64 {
            streams.add(id((1, 0, number)), Consequence::Nothing, &mut |_, _, _| {});
        }
        assert!(matches!(streams.standing(id((1, 0, u64::MAX))), Standing::Full(_)));
        assert_eq!(streams.standing(id((1, 0, 0))), Standing::New, "the one that is waited for");
        take(&mut streams, (1, 0, 0), Consequence::Nothing);
        assert_eq!(streams.standing(id((1, 0, u64::MAX))), Standing::New);
    }

    #[test]
    fn what_is_missing_is_gone_on_without_once_it_will_not_come() {
        let mut streams = streams();
        take(&mut streams, (1, 0, 0), Consequence::Closed(5));
        let news = || Consequence::Losses(3, 0, LossNews::default());
        take(&mut streams, (1, 0, 2), news());
        take(&mut streams, (1, 0, 5), Consequence::Closed(10));
        take(&mut streams, (1, 0, 6), Consequence::End(EndOf::Input));
        assert_eq!(closings(&mut streams), [5]);
        let mut lost = Vec::new();
        let missing =
            streams.skip_missing(1, 0, &mut |node, machine, _| lost.push((node, machine)));
        assert_eq!((missing, lost), (3, vec![(Some(3), 0), (None, 0)]), "1, 3 and 4");
        assert_eq!((closings(&mut streams), streams.closed_by(1)), (vec![10], 10));
        assert_eq!(streams.open().count(), 0);
        assert_eq!(streams.standing(id((1, 0, 3))), Standing::Seen, "it comes too late");
        assert_eq!(streams.skip_missing(1, 0, &mut |_, _, _| unreachable!("nothing is left")), 0);
        assert_eq!(streams.skip_missing(2, 0, &mut |_, _, _| unreachable!("nobody has come")), 0);
    }

    #[test]
    fn every_life_of_every_probe_is_gone_on_with_at_the_end() {
        let mut streams = streams();
        for of in [(1, 0, 3), (1, 1, u64::MAX), (2, 0, 1)] {
            take(&mut streams, of, Consequence::Losses(0, 0, LossNews::default()));
        }
        let mut lost = 0;
        let missing = streams.finish(&mut |node, _, _| lost += usize::from(node.is_some()));
        assert_eq!((missing, lost), (u64::MAX, 3));
    }

    #[test]
    fn the_last_number_there_is_does_not_wrap() {
        let mut streams = streams();
        streams.add(id((1, u64::MAX, u64::MAX)), Consequence::End(EndOf::Input), &mut |_, _, _| {});
        assert_eq!(streams.standing(id((1, u64::MAX, u64::MAX))), Standing::Seen);
        assert_eq!(closings(&mut streams), NONE);
    }
}
