//! Cuts a program into fragments, by its placement.

use super::{
    Carry, Combine, Exchange, ExchangeId, Fragment, Half, Inlet, Level, LevelKind, Needs, Node,
    NodeId, OutputId, Payload, Physical, PipelineId, PipelineInfo, Target, Work, carried,
    fields_read, ticks,
};
use crate::cluster::Need;
use crate::keys::{FieldSet, largest_common};
use crate::place::{Placement, need, place_with};
use crate::program::{Input, Pipeline, Program};
use crate::stage::{Schema, Stage, Window};
use std::ops::Range;

impl Physical {
    /// The plan of a program that goes on with pipelines whose packets are spread by a key: those
    /// in `fixed`, by number, go on being spread by it if they still need one.
    pub fn new(program: &Program, fixed: &[(usize, FieldSet)]) -> Physical {
        Physical::placed(program, &place_with(program, fixed))
    }

    /// The plan of a program with this placement.
    pub fn placed(program: &Program, placement: &Placement) -> Physical {
        let printed = (0..program.pipelines.len()).filter(|&p| program.pipelines[p].printed);
        let mut cut = Cut {
            program,
            placement,
            exchanges: Vec::new(),
            outputs: printed.map(PipelineId).collect(),
            worker: Vec::new(),
            machine: Vec::new(),
        };
        cut.packets();
        (0..program.pipelines.len()).for_each(|p| cut.pipeline(p));
        let worker =
            Level { kind: LevelKind::Worker, fragments: cut.worker, ticks: ticks(program) };
        let machine = Level { kind: LevelKind::Machine, fragments: cut.machine, ticks: Vec::new() };
        let info = |p: &Pipeline| PipelineInfo { name: p.name.clone() };
        Physical {
            source: program.source,
            pipelines: program.pipelines.iter().map(info).collect(),
            levels: vec![worker, machine],
            exchanges: cut.exchanges,
            outputs: cut.outputs,
        }
    }
}

/// A program that is being cut.
struct Cut<'a> {
    program: &'a Program,
    placement: &'a Placement,
    exchanges: Vec<Exchange>,
    outputs: Vec<PipelineId>,
    /// The fragments of the worker level so far, ...
    worker: Vec<Fragment>,
    /// ... and those of the machine level.
    machine: Vec<Fragment>,
}

impl Cut<'_> {
    /// An exchange for each way in which packets are spread.
    fn packets(&mut self) {
        for cluster in &self.placement.clusters {
            let needs = cluster.pipelines.iter().map(|&p| self.needs(p));
            self.exchanges.push(Exchange {
                needs: needs.fold(Needs::Nothing, Needs::and),
                payload: Payload::Packets(cluster.partition.clone()),
                why: cluster.reason.clone(),
            });
        }
    }

    /// The needs of the workers' stages of a pipeline.
    fn needs(&self, p: usize) -> Needs {
        let sharded = self.placement.pipelines[p].sharded;
        Needs::of_stages(&self.program.pipelines[p].stages[..sharded])
    }

    /// Cuts pipeline `p`.
    fn pipeline(&mut self, p: usize) {
        let pipeline = &self.program.pipelines[p];
        let placed = &self.placement.pipelines[p];
        let from = match pipeline.input {
            Input::Packets => match self.on_workers(p) {
                Some(exchange) => Inlet::Exchange(exchange),
                None => return,
            },
            Input::Pipeline(_) => Inlet::Pipelines(pipeline.sources().map(PipelineId).collect()),
        };
        let sharded = &pipeline.stages[..placed.sharded];
        let merges = matches!(sharded.last(), Some(Stage::Summarize(_)));
        let first = placed.sharded - usize::from(merges);
        let mut nodes = self.nodes(p, first..pipeline.stages.len());
        if merges && let Some(node) = nodes.first_mut() {
            node.become_half(Half::Final);
        }
        let (to, why) = (self.targets(p, &nodes), placed.reason.clone());
        let carries = pipeline.carries(first);
        self.machine.push(Fragment { pipeline: PipelineId(p), from, carries, nodes, to, why });
    }

    /// Cuts off what the workers do of pipeline `p`; the exchange that hands the rest over, unless
    /// there is no more to do.
    fn on_workers(&mut self, p: usize) -> Option<ExchangeId> {
        let (pipeline, placed) = (&self.program.pipelines[p], &self.placement.pipelines[p]);
        let needs = self.needs(p);
        let mut nodes = self.nodes(p, 0..placed.sharded);
        let mut payload = Payload::Rows(PipelineId(p));
        if let Some((node, Stage::Summarize(s))) =
            nodes.last_mut().zip(pipeline.stages[..placed.sharded].last())
        {
            node.become_half(Half::Partial);
            let sessions = matches!(s.window, Window::Session(_));
            let combine = if sessions { Combine::Append } else { Combine::Merge };
            payload = Payload::Groups { node: node.id, combine };
        }
        let mut to = Vec::new();
        for node in nodes.iter().filter(|node| node.sends_frames()) {
            let why = "frames of all workers go out by packet number".to_owned();
            let payload = Payload::Frames(node.id);
            to.push(self.exchange(Exchange { payload, needs: needs.clone(), why }));
        }
        let is_read = self.program.pipelines.iter().any(|q| q.sources().any(|i| i == p));
        let goes_on = placed.sharded < pipeline.stages.len() || pipeline.printed || is_read;
        let up = goes_on.then(|| {
            let why = placed.reason.clone();
            self.exchange(Exchange { payload, needs: needs.clone(), why })
        });
        to.extend(up);
        let cluster = self.placement.clusters.iter().position(|c| c.pipelines.contains(&p));
        let from = ExchangeId(cluster.expect("a pipeline over packets is in a cluster"));
        self.worker.push(Fragment {
            pipeline: PipelineId(p),
            from: Inlet::Exchange(from),
            carries: pipeline.carries(0),
            nodes,
            to: to.into_iter().map(Target::Exchange).collect(),
            why: match needs {
                Needs::Nothing => "any packet may be on any worker",
                Needs::Key(_) => "all packets of a key are on one worker",
                Needs::OneProducer => "one worker has all packets",
            }
            .to_owned(),
        });
        up
    }

    fn exchange(&mut self, exchange: Exchange) -> ExchangeId {
        self.exchanges.push(exchange);
        ExchangeId(self.exchanges.len() - 1)
    }

    /// Where the results of pipeline `p` go, whose last nodes are these, on the machine level.
    fn targets(&self, p: usize, nodes: &[Node]) -> Vec<Target> {
        let frames = nodes.iter().filter(|node| node.sends_frames());
        let reads = |q: &usize| self.program.pipelines[*q].sources().any(|i| i == p);
        let readers = (0..self.program.pipelines.len()).filter(reads).map(PipelineId);
        let output = self.outputs.iter().position(|output| output.0 == p).map(OutputId);
        frames
            .map(|node| Target::Outlets(node.id))
            .chain(readers.map(Target::Pipeline))
            .chain(output.map(Target::Output))
            .collect()
    }

    /// Some stages of pipeline `p` as whole nodes.
    fn nodes(&self, p: usize, range: Range<usize>) -> Vec<Node> {
        let pipeline = &self.program.pipelines[p];
        let mut schema = match pipeline.input {
            Input::Packets => Schema::default(),
            Input::Pipeline(i) => self.program.pipelines[i].schema.clone(),
        };
        let mut nodes = Vec::new();
        for (s, stage) in pipeline.stages[..range.end].iter().enumerate() {
            schema = stage.output(&schema);
            if s < range.start {
                continue;
            }
            nodes.push(Node {
                id: NodeId { pipeline: PipelineId(p), stage: s, half: Half::Whole },
                schema: schema.clone(),
                reads: fields_read(std::slice::from_ref(stage)),
                carries: pipeline.carries(s + 1),
                work: Work::Stage(stage.clone()),
            });
        }
        nodes
    }
}

impl Pipeline {
    /// The parts of packets that its rows carry beside their columns after so many stages.
    pub(super) fn carries(&self, stages: usize) -> Carry {
        match self.input {
            Input::Packets => carried(&self.stages, stages),
            Input::Pipeline(_) => Carry::default(),
        }
    }
}

impl Node {
    /// Makes half of a whole `summarize`. The final half reads groups, no packets.
    fn become_half(&mut self, half: Half) {
        let Work::Stage(Stage::Summarize(s)) = &self.work else { return };
        let s = s.clone();
        self.id.half = half;
        self.work = match half {
            Half::Whole => return,
            Half::Partial => Work::Partial(s),
            Half::Final => Work::Final(s),
        };
        if half == Half::Final {
            self.reads.clear();
        }
    }

    /// Whether it sends frames on.
    pub fn sends_frames(&self) -> bool {
        matches!(self.work, Work::Stage(Stage::Ends(_)))
    }
}

impl Needs {
    /// The needs of these stages over packets.
    pub(super) fn of_stages(stages: &[Stage]) -> Needs {
        match need(stages, &mut Vec::new()) {
            Need::Any => Needs::Nothing,
            Need::Key(key) => Needs::Key(key),
            Need::One(_) => Needs::OneProducer,
        }
    }

    /// Whether `other` holds wherever this does.
    pub(super) fn covers(&self, other: &Needs) -> bool {
        match (self, other) {
            (_, Needs::Nothing) | (Needs::OneProducer, _) => true,
            (Needs::Key(a), Needs::Key(b)) => {
                !a.is_empty() && largest_common(&[a.clone(), b.clone()]) == *a
            }
            (Needs::Nothing | Needs::Key(_), _) => false,
        }
    }

    /// The needs that cover both.
    #[must_use]
    fn and(self, other: Needs) -> Needs {
        match (self, other) {
            (Needs::Nothing, needs) | (needs, Needs::Nothing) => needs,
            (Needs::Key(a), Needs::Key(b)) => match largest_common(&[a, b]) {
                key if key.is_empty() => Needs::OneProducer,
                key => Needs::Key(key),
            },
            (Needs::OneProducer, _) | (_, Needs::OneProducer) => Needs::OneProducer,
        }
    }
}
