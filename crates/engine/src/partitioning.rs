//! Which packets go to which worker: a partitioning for each way of spreading them.
//!
//! Every partitioning gives each packet to one worker, where its pipelines see it; a worker's slice
//! of a partitioning is a *lane*. The frames stay where they are: what a lane adds is a selection.
//! Each cluster of pipelines has a partitioning; clusters that need one worker share that of
//! theirs.

use crate::table::HashKey;
use weir_plan::keys::KeyField;
use weir_plan::place::{Partition, Placement};
use weir_plan::{Input, Program};

/// One way of spreading packets, and whose packets are spread so.
pub(crate) struct Partitioning {
    pub(crate) by: SpreadBy,
    /// Pipelines over packets, by number, rising.
    pub(crate) pipelines: Vec<usize>,
}

/// How packets are spread.
pub(crate) enum SpreadBy {
    /// Batch by batch, to any worker.
    Batches,
    /// By the values of these fields, or the networks that they are in.
    Key(Vec<KeyField>),
    /// All to this worker.
    Worker(usize),
}

/// All partitionings of a run.
pub(crate) struct Partitionings {
    pub(crate) workers: usize,
    pub(crate) all: Vec<Partitioning>,
    /// The hash key of the keys that packets are spread by: the same for all workers, and as long
    /// as the run goes on.
    pub(crate) hash_key: HashKey,
}

impl Partitionings {
    /// The partitionings of a program for so many workers, or as many as have something to do.
    pub(crate) fn new(
        program: &Program,
        placement: &Placement,
        workers: usize,
        hash_key: HashKey,
    ) -> Partitionings {
        let workers = placement.workers(workers);
        if workers == 1 {
            // The only worker needs each packet once.
            let over_packets = |p: &usize| program.pipelines[*p].input == Input::Packets;
            let pipelines = (0..program.pipelines.len()).filter(over_packets).collect();
            let all = vec![Partitioning { by: SpreadBy::Batches, pipelines }];
            return Partitionings { workers, all, hash_key };
        }
        let (mut all, mut singles) = (Vec::<Partitioning>::new(), 0);
        for cluster in &placement.clusters {
            let by = match &cluster.partition {
                Partition::Batches => SpreadBy::Batches,
                Partition::Key(key) => SpreadBy::Key(key.iter().copied().collect()),
                Partition::None => {
                    singles += 1;
                    SpreadBy::Worker((singles - 1) % workers)
                }
            };
            let shared = all.iter_mut().find(|one| match (&one.by, &by) {
                (SpreadBy::Worker(a), SpreadBy::Worker(b)) => a == b,
                _ => false,
            });
            match shared {
                Some(one) => one.pipelines.extend(&cluster.pipelines),
                None => all.push(Partitioning { by, pipelines: cluster.pipelines.clone() }),
            }
        }
        Partitionings { workers, all, hash_key }
    }

    /// The partitionings by which a worker gets packets: its lanes.
    pub(crate) fn of_worker(&self, worker: usize) -> impl Iterator<Item = (usize, &Partitioning)> {
        let mine = move |(_, one): &(usize, &Partitioning)| match one.by {
            SpreadBy::Worker(only) => only == worker,
            SpreadBy::Batches | SpreadBy::Key(_) => true,
        };
        self.all.iter().enumerate().filter(mine)
    }

    /// The numbers of these.
    pub(crate) fn numbers_of(&self, worker: usize) -> Vec<usize> {
        self.of_worker(worker).map(|(lane, _)| lane).collect()
    }

    /// Whether a batch belongs, as a whole, to the worker that reads it.
    pub(crate) fn are_whole(&self) -> bool {
        matches!(&self.all[..], [Partitioning { by: SpreadBy::Batches, .. }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{field, summarize};
    use crate::tests::program;
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

    /// Pipelines of one stage each, and what the partitionings for so many workers are.
    fn check(stages: &[Stage], workers: usize, expected: &[(&str, &[usize])]) {
        let pipelines = stages.iter().flat_map(|s| program(vec![s.clone()]).pipelines).collect();
        let program = Program::of(pipelines);
        let partitionings =
            Partitionings::new(&program, &place(&program), workers, HashKey::random());
        let name = |by: &SpreadBy| match by {
            SpreadBy::Batches => "batches".to_owned(),
            SpreadBy::Key(key) => key[0].to_string(),
            SpreadBy::Worker(worker) => worker.to_string(),
        };
        let found: Vec<_> =
            partitionings.all.iter().map(|l| (name(&l.by), l.pipelines.clone())).collect();
        let expected: Vec<_> =
            expected.iter().map(|(way, all)| ((*way).to_owned(), all.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_cluster_has_a_partitioning() {
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
