//! Whether a plan fits together: what the engine relies on, of plans that come from elsewhere.

mod expr;
mod kernel;
mod stage;

use super::fault::{Fits, PlanFault, require};
use super::{
    ExchangeId, Fragment, Half, Inlet, LevelKind, Needs, Node, OutputId, Payload, Physical,
    PipelineId, Target, Work, fields_read, ticks,
};
use crate::functions::Signatures;
use crate::limits::{JOINED_PIPELINES_MAX, OUTPUTS_MAX, STAGES_MAX, UNION_OTHERS_MAX};
use crate::place::{Partition, is_local};
use crate::program::{Input, Program};
use crate::stage::{Schema, Stage};

impl Physical {
    /// Whether all of it fits together: every id names something, pipelines read earlier ones only,
    /// halves are in pairs, exchanges have two ends, expressions have the types that they say, and
    /// nothing exceeds the [limits](crate::limits). `signatures` are the registered functions.
    ///
    /// # Errors
    /// With the first thing that does not fit.
    pub fn check(&self, signatures: &Signatures) -> Result<(), PlanFault> {
        require(self.pipelines.len() <= JOINED_PIPELINES_MAX, "plan", "it has too many pipelines")?;
        let rising = self.levels.is_sorted_by(|a, b| a.kind < b.kind);
        require(rising, "plan", "levels come from the packets up, each once")?;
        for level in self.levels.iter().filter(|level| level.kind != LevelKind::Kernel) {
            let rising = level.fragments.is_sorted_by(|a, b| a.pipeline < b.pipeline);
            require(rising, "level", "it has each pipeline once, in their order")?;
            for fragment in &level.fragments {
                self.nodes_fit(level.kind, fragment)?;
                self.inlet_fits(level.kind, fragment)?;
                self.targets_fit(level.kind, fragment)?;
            }
        }
        for p in 0..self.pipelines.len() {
            self.pipeline_fits(PipelineId(p))?;
        }
        self.kernel_fits()?;
        self.exchanges_fit()?;
        self.outputs_fit()?;
        let program = self.program();
        stage::check(&program, signatures)?;
        require(program.outlets().len() <= OUTPUTS_MAX, "plan", "it has too many outlets")?;
        self.derived_fits(&program)
    }

    /// Nodes are those of the fragment's pipeline, one after the other.
    fn nodes_fit(&self, kind: LevelKind, fragment: &Fragment) -> Fits {
        let at = fragment.pipeline;
        require(at.0 < self.pipelines.len(), at, "there is no such pipeline")?;
        let few = fragment.nodes.len() <= STAGES_MAX;
        require(few, at, "it has too many stages")?;
        let last = fragment.nodes.len().saturating_sub(1);
        for (i, node) in fragment.nodes.iter().enumerate() {
            let Node { id, work, .. } = node;
            require(id.pipeline == at, at, "it has a node of another pipeline")?;
            require(id.half == work.half(), at, "a node is not the half that it says")?;
            let stage = fragment.nodes[0].id.stage.checked_add(i);
            require(Some(id.stage) == stage, at, "its stages do not follow one another")?;
            match id.half {
                Half::Whole => {
                    let stays = kind >= LevelKind::Machine || is_local(&node.whole_stage());
                    require(stays, at, "a stage that needs all rows is not on the machine level")?;
                }
                Half::Partial => require(i == last, at, "a partial half is followed by nodes")?,
                Half::Final => require(i == 0, at, "a final half comes after other nodes")?,
            }
        }
        Ok(())
    }

    fn inlet_fits(&self, kind: LevelKind, fragment: &Fragment) -> Fits {
        let at = fragment.pipeline;
        match &fragment.from {
            Inlet::Exchange(id) => {
                let exchange = self.exchanges.get(id.0);
                require(exchange.is_some(), at, format!("there is no {id}"))?;
                let before = self.fragments(at).take_while(|(level, _)| *level < kind).last();
                let fits = match (exchange.map(|e| &e.payload), before) {
                    (Some(Payload::Packets(_)), None) => true,
                    (Some(Payload::Rows(_) | Payload::Groups { .. }), Some((_, before))) => {
                        before.to.contains(&Target::Exchange(*id))
                    }
                    _ => false,
                };
                require(fits, at, format!("it does not take what {id} hands over"))
            }
            Inlet::Pipelines(sides) => {
                let few = (1..=1 + UNION_OTHERS_MAX).contains(&sides.len());
                require(few, at, "it takes the rows of none, or of too many pipelines")?;
                let first = self.fragments(at).next().is_some_and(|(level, _)| level == kind);
                require(first, at, "a pipeline over another one starts there")?;
                for side in sides {
                    require(side < &at, at, "a pipeline reads earlier ones only")?;
                    let there = self.fragments(*side).find(|(level, _)| *level == kind);
                    let to = there.map_or(&[][..], |(_, fragment)| &fragment.to);
                    let hands = to.contains(&Target::Pipeline(at));
                    require(hands, at, format!("{side} does not hand it its rows"))?;
                }
                Ok(())
            }
        }
    }

    fn targets_fit(&self, kind: LevelKind, fragment: &Fragment) -> Fits {
        let at = fragment.pipeline;
        let few = fragment.to.len() <= 2 * JOINED_PIPELINES_MAX;
        require(few, at, "it has too many targets")?;
        for (i, target) in fragment.to.iter().enumerate() {
            require(!fragment.to[..i].contains(target), at, "a target stands twice")?;
            let sends = |node: &Node| node.sends_frames();
            let fits = match target {
                Target::Exchange(id) => match self.exchanges.get(id.0).map(|e| &e.payload) {
                    Some(Payload::Rows(of)) => *of == at && !fragment.ends_in_half(),
                    Some(Payload::Groups { node, .. }) => {
                        fragment.ends_in_half()
                            && fragment.nodes.last().is_some_and(|last| last.id == *node)
                    }
                    Some(Payload::Frames(node)) => {
                        fragment.nodes.iter().any(|n| n.id == *node && sends(n))
                    }
                    Some(_) | None => false,
                },
                Target::Pipeline(to) => self.fragments(*to).any(|(level, fragment)| {
                    let reads = matches!(&fragment.from, Inlet::Pipelines(p) if p.contains(&at));
                    level == kind && reads
                }),
                Target::Output(OutputId(output)) => self.outputs.get(*output) == Some(&at),
                Target::Outlets(node) => fragment.nodes.iter().any(|n| n.id == *node && sends(n)),
            };
            require(fits, at, format!("its target {} does not fit", i + 1))?;
        }
        for node in fragment.nodes.iter().filter(|node| node.sends_frames()) {
            let of_node = |target: &&Target| match target {
                Target::Outlets(id) => *id == node.id,
                Target::Exchange(id) => self.exchanges[id.0].payload == Payload::Frames(node.id),
                _ => false,
            };
            let ways = fragment.to.iter().filter(of_node).count();
            require(ways == 1, at, "the frames that a node sends have one way to go")?;
        }
        Ok(())
    }

    /// The fragments of a pipeline make all of its stages, each once.
    fn pipeline_fits(&self, id: PipelineId) -> Fits {
        let fragments: Vec<_> = self.fragments(id).map(|(_, fragment)| fragment).collect();
        require(!fragments.is_empty(), id, "it runs nowhere")?;
        let mut next = 0;
        let mut open: Option<&Node> = None;
        for node in fragments.iter().flat_map(|fragment| &fragment.nodes) {
            match (open.take(), &node.work) {
                (Some(partial), Work::Final(of)) => {
                    let same = matches!(&partial.work, Work::Partial(s) if s == of);
                    let pair = same && partial.id.stage == node.id.stage;
                    require(pair, id, "two halves are not of one stage")?;
                }
                (Some(_), _) | (None, Work::Final(_)) => {
                    require(false, id, "half of a stage is missing")?;
                }
                (None, work) => {
                    require(node.id.stage == next, id, "its stages do not follow one another")?;
                    next += 1;
                    open = matches!(work, Work::Partial(_)).then_some(node);
                }
            }
        }
        require(open.is_none(), id, "half of a stage is missing")?;
        for pair in fragments.windows(2) {
            let linked = matches!(pair[1].from, Inlet::Exchange(_));
            require(linked, id, "its fragments are not linked by exchanges")?;
        }
        Ok(())
    }

    /// Each exchange has one producer and one consumer.
    fn exchanges_fit(&self) -> Fits {
        // Of each exchange how many fragments it comes from, and goes to.
        let mut ends = vec![(0, 0); self.exchanges.len()];
        for fragment in self.levels.iter().flat_map(|level| &level.fragments) {
            if let Inlet::Exchange(id) = fragment.from {
                ends[id.0].1 += 1;
            }
            for target in &fragment.to {
                if let Target::Exchange(id) = target {
                    ends[id.0].0 += 1;
                }
            }
        }
        for (i, &(from, to)) in ends.iter().enumerate() {
            let id = ExchangeId(i);
            let fits = match self.exchanges[i].payload {
                Payload::Packets(_) => from == 0,
                // Each is one of the kernel level, whose fragments are known to fit.
                Payload::Offered => from == 0 && to > 0,
                Payload::Unfinished => from > 0 && to == 0,
                Payload::KernelGroups(_) => from == 1 && to == 0,
                Payload::Frames(_) => from == 1 && to == 0,
                Payload::Groups { .. } | Payload::Rows(_) => from == 1 && to == 1,
            };
            require(fits, id, "it does not link one producer with one consumer")?;
        }
        Ok(())
    }

    /// The exchanges around a fragment below the machine level ask for what its stages need, and
    /// packets are spread so.
    fn needs_fit(&self, kind: LevelKind, fragment: &Fragment, stages: &[Stage]) -> Fits {
        let Inlet::Exchange(from) = fragment.from else { return Ok(()) };
        let Payload::Packets(partition) = &self.exchanges[from.0].payload else { return Ok(()) };
        let mine = if kind < LevelKind::Machine { fragment.nodes.len() } else { 0 };
        let needed = Needs::of_stages(&stages[..mine]);
        let spread = match partition {
            Partition::Batches => Needs::Nothing,
            Partition::Key(key) => Needs::Key(key.clone()),
            Partition::None => Needs::OneProducer,
        };
        let up = fragment.to.iter().filter_map(|target| match target {
            Target::Exchange(id) => Some(&self.exchanges[id.0].needs),
            _ => None,
        });
        let mut all = up.chain([&self.exchanges[from.0].needs, &spread]);
        let why = "its stages need more than the exchanges around it say";
        require(all.all(|needs| needs.covers(&needed)), fragment.pipeline, why)
    }

    fn outputs_fit(&self) -> Fits {
        let few = self.outputs.len() <= self.pipelines.len();
        require(few, "plan", "it has more outputs than pipelines")?;
        for (i, output) in self.outputs.iter().enumerate() {
            let once = !self.outputs[..i].contains(output);
            let last = self.fragments(*output).last();
            let target = Target::Output(OutputId(i));
            let reached = last.is_some_and(|(_, fragment)| fragment.to.contains(&target));
            require(once && reached, output, "an output is not what it prints, or twice")?;
        }
        Ok(())
    }

    /// Schemas, fields and ticks are those that the stages say.
    fn derived_fits(&self, program: &Program) -> Fits {
        for (p, pipeline) in program.pipelines.iter().enumerate() {
            let id = PipelineId(p);
            let mut schema = match pipeline.input {
                Input::Packets => Schema::default(),
                Input::Pipeline(i) => program.pipelines[i].schema.clone(),
            };
            for node in self.nodes(id) {
                let at = format!("{id}, stage {}", node.id.stage + 1);
                let stage = &pipeline.stages[node.id.stage];
                if node.id.half != Half::Final {
                    schema = stage.output(&schema);
                }
                let reads = match node.id.half {
                    Half::Final => Vec::new(),
                    Half::Whole | Half::Partial => fields_read(std::slice::from_ref(stage)),
                };
                require(node.schema == schema, &at, "its columns are not those of the stage")?;
                require(node.reads == reads, &at, "it does not read the fields of the stage")?;
                let carries = node.carries == pipeline.carries(node.id.stage + 1);
                require(carries, &at, "its rows do not carry what later stages read")?;
            }
            for (kind, fragment) in self.fragments(id) {
                if let Inlet::Pipelines(sides) = &fragment.from {
                    let same = sides.iter().map(|side| side.0).eq(pipeline.sources());
                    require(same, id, "its sides are not those of its stages")?;
                }
                self.needs_fit(kind, fragment, &pipeline.stages)?;
                let first = match fragment.nodes.first() {
                    Some(node) => node.id.stage,
                    None if fragment.takes_packets(self) => 0,
                    None => pipeline.stages.len(),
                };
                let carries = fragment.carries == pipeline.carries(first);
                require(carries, id, "its rows do not bring what its stages read")?;
            }
        }
        let there = |tick| self.levels.iter().any(|level| level.ticks.contains(tick));
        require(ticks(program).iter().all(there), "plan", "a tick is missing")
    }
}

impl Fragment {
    /// Whether its last node is the partial half of a stage.
    fn ends_in_half(&self) -> bool {
        self.nodes.last().is_some_and(|node| node.id.half == Half::Partial)
    }

    /// Whether packets come in.
    fn takes_packets(&self, plan: &Physical) -> bool {
        match self.from {
            Inlet::Exchange(id) => matches!(plan.exchanges[id.0].payload, Payload::Packets(_)),
            Inlet::Pipelines(_) => false,
        }
    }
}
