//! The ways on which the kernel sends a frame: to nobody, by one interface, to the host, or by
//! several interfaces at once.
//!
//! The kernel copies a frame to all interfaces of a map (`BPF_F_BROADCAST`), so each set of
//! interfaces that may get a frame together has a map of its own. These sets follow from the plan.

use super::{Acting, Edits};
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
    /// What may be done to frames before.
    edits: BTreeSet<Edits>,
}

impl Routes {
    /// Of these stages, which may all do something with one frame.
    pub(crate) fn of<'a>(
        stages: impl Iterator<Item = &'a Acting>,
        HandOut { outlets, copies, .. }: HandOut<'_>,
    ) -> Routes {
        let bits = |is: fn(&OutletPlace) -> bool| {
            let of = outlets.iter().take(super::OUTLETS_MAX).enumerate();
            of.filter(|(_, known)| is(&known.place)).fold(0, |all, (n, _)| all | 1 << n)
        };
        let host = bits(|place| *place == OutletPlace::Host);
        let sends = host | bits(|place| *place == OutletPlace::Interface);
        let (mut handed, mut all) = (0, BTreeSet::from([0]));
        let (mut lacks_sets, mut edits) = (false, BTreeSet::new());
        for stage in stages {
            edits.extend(stage.edits());
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
    pub(crate) fn lengths(&self) -> BTreeSet<u16> {
        let all: BTreeSet<u16> = self.edits.iter().filter_map(|edits| edits.most).collect();
        all.into_iter().take(LENGTHS_MAX).collect()
    }

    /// Whether the program has room for what is done to a frame.
    pub(crate) fn may(&self, edits: Edits) -> bool {
        edits.most.is_none_or(|most| self.lengths().contains(&most))
    }

    /// Why some packets go up for which the program has no room, if so.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        if self.lacks_sets {
            return Some("packets go to more sets of outputs than the kernel has room for");
        }
        let short = self.edits.iter().any(|edits| !self.may(*edits));
        short.then_some("the kernel shortens packets to four lengths, no more")
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
    (0..super::OUTLETS_MAX).filter(move |n| bits >> n & 1 != 0)
}
