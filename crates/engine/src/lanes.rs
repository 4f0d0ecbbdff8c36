//! Which packets go to which worker: a lane for each way of spreading them.
//!
//! Every lane gets all packets and hands each to one worker; its pipelines see them there. The
//! frames stay where they are: what a lane adds is a selection. A lane is what one cluster of
//! pipelines is for several workers; clusters that need one worker share the lane of theirs.

use crate::table::HashKey;
use weir_packet::fields::FieldId;
use weir_plan::place::{Partition, Placement};
use weir_plan::{Input, Program};

/// One way of spreading packets, and whose packets are spread so.
pub(crate) struct Lane {
    pub(crate) way: Way,
    /// Pipelines over packets, by number, rising.
    pub(crate) pipelines: Vec<usize>,
}

/// How packets are spread.
pub(crate) enum Way {
    /// Batch by batch, to any worker.
    Batches,
    /// By the values of these fields.
    Key(Vec<FieldId>),
    /// All to this worker.
    Worker(usize),
}

/// All lanes of a run.
pub(crate) struct Lanes {
    pub(crate) workers: usize,
    pub(crate) lanes: Vec<Lane>,
    /// What keys are hashed with that packets are spread by: the same for all workers, and as long
    /// as the run goes on.
    pub(crate) hash_key: HashKey,
}

impl Lanes {
    /// The lanes of a program for so many workers, or as many as have something to do.
    pub(crate) fn new(
        program: &Program,
        placement: &Placement,
        workers: usize,
        hash_key: HashKey,
    ) -> Lanes {
        let workers = placement.workers(workers);
        if workers == 1 {
            // Whoever gets everything needs each packet once.
            let over_packets = |p: &usize| program.pipelines[*p].input == Input::Packets;
            let pipelines = (0..program.pipelines.len()).filter(over_packets).collect();
            let lanes = vec![Lane { way: Way::Batches, pipelines }];
            return Lanes { workers, lanes, hash_key };
        }
        let (mut lanes, mut singles) = (Vec::<Lane>::new(), 0);
        for cluster in &placement.clusters {
            let way = match &cluster.partition {
                Partition::Batches => Way::Batches,
                Partition::Key(key) => Way::Key(key.iter().copied().collect()),
                Partition::None => {
                    singles += 1;
                    Way::Worker((singles - 1) % workers)
                }
            };
            let shared = lanes.iter_mut().find(|lane| match (&lane.way, &way) {
                (Way::Worker(a), Way::Worker(b)) => a == b,
                _ => false,
            });
            match shared {
                Some(lane) => lane.pipelines.extend(&cluster.pipelines),
                None => lanes.push(Lane { way, pipelines: cluster.pipelines.clone() }),
            }
        }
        Lanes { workers, lanes, hash_key }
    }

    /// The lanes by which a worker gets packets.
    pub(crate) fn of(&self, worker: usize) -> impl Iterator<Item = (usize, &Lane)> {
        let mine = move |(_, lane): &(usize, &Lane)| match lane.way {
            Way::Worker(only) => only == worker,
            Way::Batches | Way::Key(_) => true,
        };
        self.lanes.iter().enumerate().filter(mine)
    }

    /// The numbers of these lanes.
    pub(crate) fn numbers_of(&self, worker: usize) -> Vec<usize> {
        self.of(worker).map(|(lane, _)| lane).collect()
    }

    /// Whether a batch belongs, as a whole, to whoever reads it.
    pub(crate) fn are_whole(&self) -> bool {
        matches!(&self.lanes[..], [Lane { way: Way::Batches, .. }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::program;
    use crate::ops::testing::{field, summarize};
    use weir_plan::limits::SCAN_KEYS_MAX;
    use weir_plan::place::place;
    use weir_plan::{Scan, Stage, Window};

    fn scan(key: &str) -> Stage {
        let keys = vec![field(key)];
        Stage::Scan(Scan { states: Vec::new(), keys, idle_ns: 1, max_keys: SCAN_KEYS_MAX })
    }

    fn bounded() -> Stage {
        let Stage::Summarize(mut s) = summarize(&["ip.dst"], Vec::new(), Window::All) else {
            unreachable!("a summarize")
        };
        s.max_groups = 3;
        Stage::Summarize(s)
    }

    /// Pipelines of one stage each, and what the lanes of so many workers are.
    fn check(stages: &[Stage], workers: usize, expected: &[(&str, &[usize])]) {
        let pipelines = stages.iter().flat_map(|s| program(vec![s.clone()]).pipelines).collect();
        let program = Program { pipelines };
        let lanes = Lanes::new(&program, &place(&program), workers, HashKey::random());
        let name = |way: &Way| match way {
            Way::Batches => "batches".to_owned(),
            Way::Key(key) => key[0].info().name.to_owned(),
            Way::Worker(worker) => worker.to_string(),
        };
        let found: Vec<_> =
            lanes.lanes.iter().map(|l| (name(&l.way), l.pipelines.clone())).collect();
        let expected: Vec<_> =
            expected.iter().map(|(way, all)| ((*way).to_owned(), all.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_cluster_has_a_lane() {
        let stages = [scan("ip.src"), scan("ip.dst"), scan("ip.src")];
        check(&stages, 4, &[("ip.src", &[0, 2]), ("ip.dst", &[1])]);
        check(&stages, 1, &[("batches", &[0, 1, 2])]);
    }

    #[test]
    fn what_needs_one_worker_goes_round() {
        let stages = [bounded(), scan("ip.src"), bounded(), bounded()];
        check(&stages, 2, &[("0", &[0, 3]), ("ip.src", &[1]), ("1", &[2])]);
        check(&[bounded(), bounded()], 4, &[("0", &[0]), ("1", &[1])]);
        check(&[bounded()], 4, &[("batches", &[0])]);
    }
}
