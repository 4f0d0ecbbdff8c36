//! Holds what was compiled against the physical plan; only builds with debug assertions do.

use super::running::Running;
use crate::lanes::Way;
use std::collections::BTreeSet;
use weir_packet::fields::{FieldId, Item, by_item};
use weir_plan::physical::{
    Fragment, Inlet, LevelKind, Payload, Physical, PipelineId, Target, Work,
};
use weir_plan::place::Partition;

/// What runs of a pipeline on one level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Outline {
    /// How many stages, halves among them.
    pub(crate) stages: usize,
    /// Whether one half of a `summarize` runs there, and the other half on another level.
    pub(crate) half: bool,
}

impl Outline {
    fn of_fragment(fragment: &Fragment) -> Outline {
        let is_half = |work: &Work| matches!(work, Work::Partial(_) | Work::Final(_));
        let half = fragment.nodes.iter().any(|node| is_half(&node.work));
        Outline { stages: fragment.nodes.len(), half }
    }
}

/// Panics unless the workers and the machine were compiled as the physical plan says.
pub(super) fn check(running: &Running<'_>) {
    let plan = Physical::placed(&running.program, &running.placement);
    let fragment = |kind, p| {
        let found = plan.fragments(PipelineId(p)).find(|(k, _)| *k == kind);
        found.map(|(_, fragment)| fragment)
    };
    let outline = |kind, p| fragment(kind, p).map(Outline::of_fragment).unwrap_or_default();
    for upper in running.uppers.iter().flatten() {
        let mut known = BTreeSet::from([by_item(Item::Ts)]);
        for (p, compiled) in upper.outlines() {
            assert_eq!(compiled, outline(LevelKind::Worker, p), "pipeline {p} on the workers");
            let fragment = fragment(LevelKind::Worker, p).expect("the workers have a part of it");
            known.extend(fragment.nodes.iter().flat_map(|node| &node.reads));
            known.extend(&fragment.carries.fields);
        }
        let decoded: BTreeSet<FieldId> = upper.fields().collect();
        assert!(decoded.is_subset(&known), "{decoded:?} are decoded, {known:?} are read");
    }
    for (p, compiled) in running.lower.outlines().enumerate() {
        assert_eq!(compiled, outline(LevelKind::Machine, p), "pipeline {p} on the machine");
        let targets = fragment(LevelKind::Machine, p).map_or(&[][..], |f| &f.to);
        let has = |which: fn(&Target) -> bool| targets.iter().any(which);
        let [output, read] = running.lower.targets(p);
        assert_eq!(output, has(|to| matches!(to, Target::Output(_))), "pipeline {p} is printed");
        assert_eq!(read, has(|to| matches!(to, Target::Pipeline(_))), "pipeline {p} is read");
    }
    if running.lanes.workers > 1 {
        let worker = plan.level(LevelKind::Worker).map_or(&[][..], |level| &level.fragments);
        worker.iter().for_each(|fragment| spread_as(running, &plan, fragment));
    }
}

/// Panics unless packets are spread for a fragment as its exchange says.
fn spread_as(running: &Running<'_>, plan: &Physical, fragment: &Fragment) {
    let Inlet::Exchange(id) = fragment.from else { panic!("workers take packets") };
    let Payload::Packets(partition) = &plan.exchanges[id.0].payload else {
        panic!("workers take packets")
    };
    let lane = running.lanes.lanes.iter().find(|l| l.pipelines.contains(&fragment.pipeline.0));
    let way = &lane.expect("a lane for each pipeline over packets").way;
    let agrees = match (partition, way) {
        (Partition::Batches, Way::Batches) | (Partition::None, Way::Worker(_)) => true,
        (Partition::Key(key), Way::Key(fields)) => key.iter().eq(fields),
        _ => false,
    };
    assert!(agrees, "pipeline {} is not spread by {partition:?}", fragment.pipeline.0);
}
