//! A program at work: what workers do of it, and what comes after them.

use super::ready::ReadyProgram;
use super::single;
use crate::change::{Change, Compiled};
use crate::compile::PlacedProgram;
use crate::continued::{ContinuedFeed, summarize_of};
use crate::counters::Ledger;
use crate::feed::Feed;
use crate::functions::Functions;
use crate::kernel::KernelFeed;
use crate::level::machine::egress::EgressWriter;
use crate::level::machine::{MachineLevel, MachinePipes};
use crate::level::worker::{WorkerLevel, count_worker};
use crate::limits::WORKERS_MAX;
use crate::options::Options;
use crate::outcome::RunError;
use crate::partitioning::{Partitioning, Partitionings, SpreadBy};
use crate::peers::{BuildContext, Peers};
use crate::progress::Progress;
use crate::rows::Sink;
use crate::shard::{self, AtOnce, Parts, WorkerThreads};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use weir_plan::change::Continued;
use weir_plan::cluster::Cluster;
use weir_plan::keys::FieldSet;
use weir_plan::physical::{Tick, ticks};
use weir_plan::place::{Partition, Placement, merges, place_with};
use weir_plan::{Input, Pipeline, Program};

/// Keys and the kernel level, which a program takes over from the one that it replaces.
struct TakenOver {
    /// Packets of these pipelines go on being spread by these keys.
    fixed: Vec<(usize, FieldSet)>,
    /// The kernel level, by the numbers that pipelines have in it.
    kernel: Option<ContinuedFeed>,
}

impl TakenOver {
    /// The keys and the kernel level that go on of a program whose packets are spread so.
    fn of(
        clusters: &[Cluster],
        kernel: Option<&ContinuedFeed>,
        continued: &[Option<Continued>],
    ) -> TakenOver {
        let kernel = kernel.map(|kernel| kernel.after(continued));
        TakenOver { fixed: fixed(clusters, continued), kernel }
    }
}

/// A program at work.
pub(crate) struct ActiveProgram<'e> {
    pub(crate) program: Program,
    pub(crate) placement: Placement,
    pub(crate) partitionings: Arc<Partitionings>,
    /// Of each worker one for each of its lanes.
    pub(crate) workers: Vec<Vec<WorkerLevel>>,
    pub(crate) machine: MachineLevel<'e>,
    /// The kernel level, if there is one.
    kernel: Option<ContinuedFeed>,
}

impl<'e> ActiveProgram<'e> {
    /// Makes the program ready that a run begins with.
    pub(super) fn first(
        program: Program,
        functions: &Functions,
        options: &Options,
        egress: EgressWriter<'e>,
    ) -> ActiveProgram<'e> {
        let kernel = options.kernel.clone().map(|feed| ContinuedFeed::new(feed, &program));
        let taken = TakenOver { fixed: Vec::new(), kernel };
        let ready = compile(program, functions, options, taken);
        let mut first = ActiveProgram::new(ready, options, egress);
        first.take_from_kernel(&|_| true);
        first.compile_changes(functions, options);
        first
    }

    /// Puts a program to work, which takes nothing of the kernel yet.
    fn new(ready: ReadyProgram, options: &Options, egress: EgressWriter<'e>) -> ActiveProgram<'e> {
        let ReadyProgram { program, placement, partitionings, workers, pipes, kernel } = ready;
        let mut machine = MachineLevel::new(pipes, egress);
        machine.keep_alive = options.changes.is_some();
        machine.suppress(&options.suppressions);
        ActiveProgram { program, placement, partitionings, workers, machine, kernel }
    }

    /// Has changes of this program compiled by who sends them.
    fn compile_changes(&self, functions: &Functions, options: &Options) {
        let Some(changes) = &options.changes else { return };
        // The changes are not to hold themselves.
        let options = Options { changes: Some(Arc::default()), ..options.clone() };
        let (functions, kernel) = (functions.clone(), self.kernel.clone());
        let clusters = self.placement.clusters.clone();
        changes.compile_by(Arc::new(move |change: &Change| {
            let taken = TakenOver::of(&clusters, kernel.as_ref(), &change.continued);
            Box::new(compile(change.program.clone(), &functions, &options, taken)) as Compiled
        }));
    }

    /// Takes groups of the kernel for these of its pipelines.
    fn take_from_kernel(&mut self, which: &dyn Fn(usize) -> bool) {
        if let Some(kernel) = &self.kernel {
            self.machine.take_from(Arc::new(kernel.clone()), &|p| which(p.0));
        }
    }

    /// Asks the egress, which is open, which frames are wanted.
    pub(super) fn want(&mut self) {
        let wanted = self.machine.want();
        self.workers.iter_mut().flatten().for_each(|level| level.want(wanted));
    }

    /// Runs until the feed ends or breaks. At its end everything is emitted.
    pub(super) fn run<'scope, 'f: 'scope>(
        &mut self,
        feed: Feed<'f>,
        sink: &mut dyn Sink,
        progress: Progress<'_>,
        threads: &mut WorkerThreads<'scope, '_>,
    ) -> (Option<RunError>, Feed<'f>) {
        let ActiveProgram { program, placement, partitionings, workers, machine, .. } = self;
        if let [levels] = &mut workers[..] {
            debug_assert_eq!(levels.len(), 1, "one worker has one lane");
            return single::run(&mut levels[0], machine, feed, sink, progress);
        }
        let at_once = AtOnce::of(program, placement);
        let parts = Parts { partitionings, at_once, workers, machine };
        shard::run(parts, feed, sink, progress, threads)
    }

    /// Adds what was counted to the ledger.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        for (worker, levels) in self.workers.iter().enumerate() {
            count_worker(levels, &self.partitionings.numbers_of(worker), worker, ledger);
        }
        self.machine.count(ledger);
    }

    /// Emits what is left of some pipelines, and of those that read them. It is known what came up
    /// to this time.
    pub(super) fn finish(
        &mut self,
        which: &dyn Fn(usize) -> bool,
        known_until: i64,
        sink: &mut dyn Sink,
    ) {
        let packets = self.program.pipelines.iter().map(|p| p.input == Input::Packets);
        let mine: Vec<usize> =
            packets.enumerate().filter(|&(p, over)| over && which(p)).map(|(p, _)| p).collect();
        let mut closed = shard::close(&mut self.workers, &mine);
        self.machine.know_until(Some(known_until));
        self.machine.finish_some(which, &mut closed, sink);
        self.machine.know_until(None);
    }

    /// Counts for the last time, and lets another program take its place.
    fn give_way(&mut self, mut new: ActiveProgram<'e>, past: &mut Ledger) {
        new.machine.follow(&mut self.machine, past);
        self.count(past);
        // Pipelines have other numbers from here on.
        past.flows.begin(&new.program);
        let old = std::mem::replace(self, new);
        drop_beside(old.workers);
    }

    /// Becomes what a change says, and reports the result. The counts of pipelines that end are
    /// added to `past`.
    ///
    /// # Errors
    /// When it can't be undone any more: the outlets or the sink can't be opened, or failed as what
    /// goes was emitted. Nothing more is written to what failed.
    pub(super) fn change(
        &mut self,
        (change, compiled): (Change, Option<Compiled>),
        functions: &Functions,
        options: &Options,
        past: &mut Ledger,
        known_until: i64,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Tick>, RunError> {
        let Change { program, continued, report } = change;
        if let Err(e) = self.machine.egress.prepare(&program.outlets()) {
            report(Err(e));
            return Ok(ticks(&self.program));
        }
        // Before anything else is to see all packets.
        self.kernel.iter().for_each(|kernel| kernel.hand_up(true));
        let egress = EgressWriter::new(&program, None);
        let ready = compiled.and_then(|compiled| compiled.downcast().ok()).map(|ready| *ready);
        let ready: ReadyProgram = ready.unwrap_or_else(|| {
            let (clusters, kernel) = (&self.placement.clusters, self.kernel.as_ref());
            compile(program, functions, options, TakenOver::of(clusters, kernel, &continued))
        });
        let mut new = ActiveProgram::new(ready, options, egress);
        let kept = new.resume(self, &continued);
        let pipelines = new.program.pipelines.iter().enumerate();
        let goes_on = |(p, pipeline): (usize, &Pipeline)| {
            summarize_of(&pipeline.stages).is_some_and(|s| kept.contains(&(p, s)))
        };
        let goes_on: Vec<bool> = pipelines.map(goes_on).collect();
        new.take_from_kernel(&|p| goes_on[p]);
        // Pipelines that went on as a whole have nothing left.
        let is_kept = |p: usize| {
            let stages = new.program.pipelines[p].stages.iter().enumerate();
            stages.filter(|(_, stage)| stage.holds_state()).all(|(s, _)| kept.contains(&(p, s)))
        };
        // Where a pipeline goes on, and with how many of its first stages.
        let followed = |q: usize| {
            let goes_on = move |(p, c): (usize, &Option<Continued>)| {
                c.filter(|c| c.pipeline == q).map(|c| (p, c.stages))
            };
            continued.iter().enumerate().filter_map(goes_on)
        };
        let whole = |q: usize| {
            let all = self.program.pipelines[q].stages.len();
            followed(q).any(|(p, stages)| stages == all && is_kept(p))
        };
        let whole: Vec<bool> = (0..self.program.pipelines.len()).map(whole).collect();
        // A window of which the kernel holds a part goes on only where that does.
        let stays = |q: usize| followed(q).any(|(p, _)| new.machine.takes_from_kernel(p));
        let left = |q: usize| self.machine.takes_from_kernel(q) && !stays(q);
        let left: Vec<bool> = (0..whole.len()).map(left).collect();
        self.machine.leave_to_others(&|q| left[q]);
        self.finish(&|q| left[q] || !whole[q], known_until, sink);
        self.machine.leave_kernel();
        self.give_way(new, past);
        self.compile_changes(functions, options);
        self.machine.open(&self.program, sink);
        if let Some(e) = self.machine.take_error() {
            return Err(e);
        }
        self.want();
        let is_whole = |kernel: &&ContinuedFeed| kernel.is_whole(&self.program);
        self.kernel.iter().filter(is_whole).for_each(|kernel| kernel.hand_up(false));
        report(Ok(kept));
        Ok(ticks(&self.program))
    }

    /// How packets of a pipeline are spread, if it is one over packets.
    fn partition(&self, p: usize) -> Option<&Partition> {
        partition(&self.placement.clusters, p)
    }

    /// Takes over what goes on; says which stages of which pipelines had something to take over.
    fn resume(
        &mut self,
        old: &mut ActiveProgram<'_>,
        continued: &[Option<Continued>],
    ) -> Vec<(usize, usize)> {
        let mut kept = BTreeSet::new();
        for (p, c) in continued.iter().enumerate() {
            let Some(before) = *c else { continue };
            if self.finds(old, p, before) {
                for worker in 0..self.partitionings.workers {
                    let found = self.resume_worker(old, worker, p, before);
                    kept.extend(found.into_iter().map(|stage| (p, stage)));
                }
            }
            let Continued { pipeline, stages } = before;
            let found = self.machine.take_over(p, &mut old.machine, pipeline, stages);
            kept.extend(found.into_iter().map(|stage| (p, stage)));
        }
        kept.into_iter().collect()
    }

    /// Whether what workers hold of the stages that go on is where pipeline `p` will look for it.
    fn finds(&self, old: &ActiveProgram<'_>, p: usize, before: Continued) -> bool {
        let on_workers = before.stages.min(self.placement.pipelines[p].sharded);
        self.partition(p) == old.partition(before.pipeline)
            || merges(&self.program.pipelines[p].stages[..on_workers])
            || self.partitionings.workers == 1 && old.partitionings.workers == 1
    }

    fn resume_worker(
        &mut self,
        old: &mut ActiveProgram<'_>,
        worker: usize,
        p: usize,
        before: Continued,
    ) -> Vec<usize> {
        let Continued { pipeline: q, stages } = before;
        // The worker that had it, and by which of its lanes.
        let spread = old.partitionings.all.iter().find(|one| one.pipelines.contains(&q));
        let owner = match spread.map(|one| &one.by) {
            Some(SpreadBy::Worker(only)) => *only,
            _ if old.partitionings.workers == 1 => 0,
            _ => worker,
        };
        let theirs = old.workers.get_mut(owner).into_iter().flatten().find(|level| level.runs(q));
        let mine = self.workers[worker].iter_mut().find(|level| level.runs(p));
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => mine.take_over(p, theirs, q, stages),
            _ => Vec::new(),
        }
    }
}

/// How packets of a pipeline are spread, if it is one over packets.
fn partition(clusters: &[Cluster], p: usize) -> Option<&Partition> {
    let cluster = clusters.iter().find(|c| c.pipelines.contains(&p));
    cluster.map(|c| &c.partition)
}

/// By which keys packets of pipelines to come are spread already.
fn fixed(clusters: &[Cluster], continued: &[Option<Continued>]) -> Vec<(usize, FieldSet)> {
    let key = |c: &Option<Continued>| match partition(clusters, c.as_ref()?.pipeline) {
        Some(Partition::Key(key)) => Some(key.clone()),
        _ => None,
    };
    continued.iter().enumerate().filter_map(|(p, c)| Some((p, key(c)?))).collect()
}

/// Compiles a program of a run.
fn compile(
    program: Program,
    functions: &Functions,
    options: &Options,
    taken: TakenOver,
) -> ReadyProgram {
    let TakenOver { fixed, kernel } = taken;
    let mut placement = place_with(&program, &fixed);
    // A run whose programs change ends when it is stopped.
    placement.ends_early &= options.changes.is_none();
    let workers = options.workers.clamp(1, WORKERS_MAX);
    let partitionings = Partitionings::new(&program, &placement, workers, options.hash_key);
    let peers = match kernel.as_ref().is_some_and(KernelFeed::orders_by_time) {
        true => Peers::Kernel,
        false => Peers::None,
    };
    let room = options.memory.as_ref();
    let with = BuildContext { functions, hash_key: options.hash_key, peers, room };
    let feed = kernel.clone().map(|kernel| Arc::new(kernel) as Arc<dyn KernelFeed>);
    let planned = PlacedProgram::new(&program, &placement, options, feed, with);
    let placed = planned.placed();
    let pipes = MachinePipes::new(placed);
    let level = |partitioning: &Partitioning| {
        let mut level = WorkerLevel::new(placed, &partitioning.pipelines);
        level.expect_groups(options.groups_hint);
        level
    };
    let levels = |worker| partitionings.of_worker(worker).map(|(_, one)| level(one)).collect();
    let workers = (0..partitionings.workers).map(levels).collect();
    let partitionings = Arc::new(partitionings);
    ReadyProgram { program, placement, partitionings, workers, pipes, kernel }
}

/// Frees the tables of a program that is not at work any more, while the run goes on. Where there
/// is no thread for that, they are freed here.
fn drop_beside(workers: Vec<Vec<WorkerLevel>>) {
    let free = move || drop(workers);
    let _ = thread::Builder::new().name("change".to_owned()).spawn(free);
}
