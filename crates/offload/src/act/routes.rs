//! The ways on which the kernel sends a frame: to nobody, by one interface, to the host, or by
//! several interfaces at once.
//!
//! The kernel copies a frame to all interfaces of a map (`BPF_F_BROADCAST`), so each set of
//! interfaces that may get a frame together has a map of its own. These sets follow from the plan.

use super::acting::Acting;
use super::deed::{Edits, OUTLETS_MAX};
use crate::limits::{LENGTHS_MAX, SETS_MAX};
use crate::options::{HandOut, OutletPlace};
use crate::program::{TO_HOST, redirect_to};
use std::collections::BTreeSet;

/// Combinations of outlets that are looked at, at most.
const COMBINATIONS_MAX: usize = 1 << 10;

/// The routes of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Routes {
    /// Outlets that may get frames, ...
    handed: u64,
    /// ...and those of them to which the kernel sends: interfaces and the host.
    pub(crate) sends: u64,
    /// Interfaces that may get a frame together.
    sets: Vec<u64>,
    /// The bit of the host, and the number after that of the last outlet.
    host: u64,
    outlets: usize,
    /// Whether frames may go to more sets.
    lacks_sets: bool,
    /// The edits that may be done to frames before.
    edits: BTreeSet<Edits>,
    /// To how many bytes they may be shortened, tags included, before they are sent.
    lengths: BTreeSet<u16>,
}

impl Routes {
    /// Of these stages, which may all do something with one frame.
    pub(crate) fn of<'a>(
        stages: impl Iterator<Item = &'a Acting>,
        HandOut { outlets, copies, .. }: HandOut<'_>,
    ) -> Routes {
        let bits = |is: fn(&OutletPlace) -> bool| {
            let of = outlets.iter().take(OUTLETS_MAX).enumerate();
            of.filter(|(_, known)| is(&known.place)).fold(0, |all, (n, _)| all | 1 << n)
        };
        let host = bits(|place| *place == OutletPlace::Host);
        let sends = host | bits(|place| *place == OutletPlace::Interface);
        let (mut handed, mut all) = (0, BTreeSet::from([0]));
        let (mut edits, mut lengths) = (BTreeSet::new(), BTreeSet::new());
        let mut lacks_sets = false;
        for stage in stages {
            edits.extend(stage.edits());
            lengths.extend(stage.lengths(sends));
            handed |= stage.outlets();
            let choices: BTreeSet<u64> = stage.choices().map(|choice| choice & sends).collect();
            // No outlet gets a frame twice: such frames go up.
            let both = |before: u64| choices.iter().filter(move |c| *c & before == 0);
            let next: BTreeSet<u64> =
                all.iter().flat_map(|&before| both(before).map(move |c| before | c)).collect();
            all.extend(next.into_iter().take(COMBINATIONS_MAX));
            lacks_sets |= all.len() > COMBINATIONS_MAX;
        }
        let mut sets: Vec<u64> = all.into_iter().filter(|set| set.count_ones() > 1).collect();
        sets.retain(|set| copies && set & host == 0);
        sets.sort_by_key(|set| set.count_ones());
        lacks_sets |= sets.len() > SETS_MAX;
        sets.truncate(SETS_MAX);
        Routes {
            handed,
            sends: sends & handed,
            sets,
            host,
            outlets: outlets.len(),
            lacks_sets,
            edits,
            lengths,
        }
    }

    /// The bits of the outlets on each route, and what the program returns.
    pub(crate) fn all(&self) -> Vec<(u64, i32)> {
        let one = |n: usize| match 1 << n {
            bit if bit == self.host => (bit, TO_HOST),
            bit => (bit, redirect_to(n)),
        };
        let single = numbers(self.sends).map(one);
        let sets = self.sets.iter().enumerate();
        let sets = sets.map(|(n, set)| (*set, redirect_to(self.outlets + n)));
        [(0, 0)].into_iter().chain(single).chain(sets).collect()
    }

    /// Whether something may be done to frames before they go out.
    pub(crate) fn edits(&self) -> bool {
        self.edits.iter().any(|edits| *edits != Edits::NONE)
    }

    /// Whether frames may get tags.
    pub(crate) fn tags(&self) -> bool {
        self.edits.iter().any(|edits| edits.tag.is_some())
    }

    /// To how many bytes the program shortens frames, tags included.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u16> {
        self.lengths.iter().copied().take(LENGTHS_MAX)
    }

    /// Whether the program has room for what is done to a frame before this outlet gets it.
    pub(crate) fn may(&self, outlet: usize, edits: Edits) -> bool {
        let is_sent = self.sends >> outlet & 1 != 0;
        edits.most.is_none_or(|most| !is_sent || self.lengths().any(|length| length == most))
    }

    /// Why some packets go up for which the program has no room, if so.
    pub(crate) fn lacks(&self) -> Option<String> {
        if self.lacks_sets {
            return Some("packets go to more sets of outputs than the kernel has room for".into());
        }
        let lacks = self.lengths.len() > LENGTHS_MAX;
        lacks.then(|| format!("the kernel shortens packets to {LENGTHS_MAX} lengths, no more"))
    }

    /// The numbers of outlets that may get frames.
    pub(crate) fn handed_to(&self) -> impl Iterator<Item = usize> {
        numbers(self.handed)
    }

    /// The numbers of the outlets of each set.
    pub(crate) fn sets(&self) -> Vec<Vec<usize>> {
        self.sets.iter().map(|set| numbers(*set).collect()).collect()
    }
}

/// The numbers of outlets with these bits.
fn numbers(bits: u64) -> impl Iterator<Item = usize> {
    (0..OUTLETS_MAX).filter(move |n| bits >> n & 1 != 0)
}
