//! Whether the kernel level of a plan fits: it runs beginnings of what workers run.

use crate::physical::fault::{Fits, require};
use crate::physical::{
    Fragment, Half, Inlet, Level, LevelKind, Needs, Node, Payload, Physical, Target,
};
use crate::stage::Stage;

impl Physical {
    /// The kernel level, if there is one, has the beginning of each pipeline over packets; and only
    /// then there are exchanges of it.
    pub(super) fn kernel_fits(&self) -> Fits {
        let Some(level) = self.level(LevelKind::Kernel) else {
            let without = !self.exchanges.iter().any(|e| e.payload.is_of_kernel());
            return require(without, "plan", "it has exchanges of a kernel level, which it lacks");
        };
        let at = "kernel level";
        require(level.ticks.is_empty(), at, "it has ticks, and no watermark reaches it")?;
        let over_packets: Vec<&Fragment> =
            self.fragments_of(LevelKind::Worker).map(|(_, fragment)| fragment).collect();
        let mine = level.fragments.iter().map(|fragment| fragment.pipeline);
        let all = mine.eq(over_packets.iter().map(|fragment| fragment.pipeline));
        require(all, at, "it does not have each pipeline over packets once")?;
        for (fragment, whole) in level.fragments.iter().zip(over_packets) {
            self.beginning_fits(fragment, whole)?;
        }
        self.common_exchanges_fit(level)
    }

    /// A fragment of the kernel is the beginning of that of workers.
    fn beginning_fits(&self, fragment: &Fragment, whole: &Fragment) -> Fits {
        let at = format!("kernel level, {}", fragment.pipeline);
        let same = whole.nodes.starts_with(&fragment.nodes) && whole.carries == fragment.carries;
        require(same, &at, "it is not the beginning of what workers run")?;
        let groups: Vec<_> = fragment.to.iter().filter(|to| self.is_groups(to, fragment)).collect();
        let counts = fragment.nodes.last().is_some_and(|node| node.id.half == Half::Partial);
        let fits = groups.len() == usize::from(counts);
        require(fits, &at, "groups have one way to go, and only where it counts")?;
        let stages: Vec<Stage> = fragment.nodes.iter().map(Node::whole_stage).collect();
        let free = !counts || Needs::of_stages(&stages) == Needs::Nothing;
        require(free, &at, "it counts what needs packets in one place")
    }

    /// Whether a target is the exchange of the groups of a fragment's partial half.
    fn is_groups(&self, target: &Target, fragment: &Fragment) -> bool {
        let Target::Exchange(id) = target else { return false };
        let Some(Payload::KernelGroups(node)) = self.exchanges.get(id.0).map(|e| &e.payload) else {
            return false;
        };
        fragment.nodes.last().is_some_and(|last| last.id == *node)
    }

    /// All fragments take what is offered, and hand over what they don't finish.
    fn common_exchanges_fit(&self, level: &Level) -> Fits {
        let at = "kernel level";
        let position = |payload| self.exchanges.iter().position(|e| e.payload == payload);
        let offered = position(Payload::Offered);
        let unfinished = position(Payload::Unfinished);
        require(offered.is_some() && unfinished.is_some(), at, "it lacks an exchange")?;
        for fragment in &level.fragments {
            let Inlet::Exchange(from) = fragment.from else {
                return require(false, at, "it takes the rows of pipelines");
            };
            require(Some(from.0) == offered, at, "it does not take what is offered")?;
            let is_up =
                |to: &&Target| matches!(to, Target::Exchange(id) if Some(id.0) == unfinished);
            let up = fragment.to.iter().filter(is_up).count();
            let groups = fragment.to.iter().filter(|to| self.is_groups(to, fragment)).count();
            let only = up == 1 && up + groups == fragment.to.len();
            require(only, at, "it hands over something else than frames and groups")?;
        }
        let needs = |e: &&crate::physical::Exchange| e.payload.is_of_kernel();
        let free = self.exchanges.iter().filter(needs).all(|e| e.needs == Needs::Nothing);
        require(free, at, "its exchanges ask for packets in one place")
    }
}
