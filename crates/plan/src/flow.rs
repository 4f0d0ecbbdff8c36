//! The counts of the stages of a program: rows in and out, and what each stage left out.
//!
//! Stages count a batch at a time, and are asked only when somebody wants to know.

use crate::Program;
use crate::limits::STAGES_REMEMBERED_MAX;
use crate::together::program_places;
use std::collections::BTreeMap;

/// Where a stage runs, or half of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowLevel {
    /// On each worker, over its share of the packets.
    Worker,
    /// Once, over what the workers hand over.
    Machine,
}

impl FlowLevel {
    /// The name of the level in a physical plan.
    pub fn name(self) -> &'static str {
        match self {
            FlowLevel::Worker => "worker",
            FlowLevel::Machine => "machine",
        }
    }
}

/// A stage of a program on a level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowPlace {
    /// The level.
    pub level: FlowLevel,
    /// The number of its pipeline in the program.
    pub pipeline: usize,
    /// Its position in the pipeline.
    pub stage: usize,
}

/// The counts of a stage, since the programs were last changed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StageFlow {
    /// Rows that came; of a final aggregation, groups of all workers.
    pub rows_in: u64,
    /// Rows that left it; of a partial aggregation, groups.
    pub rows_out: u64,
    /// Rows that came after their window had closed.
    pub late: u64,
    /// Rows and keys that found no room.
    pub evicted: u64,
    /// Results outside their type.
    pub undefined: u64,
    /// Keys that it holds now.
    pub held: u64,
}

/// A stage as it is called while programs come and go.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StageName {
    /// The program that it is of.
    pub program: String,
    /// Where it stands there: the pipeline is that of the program.
    pub place: FlowPlace,
}

/// The counts of all stages.
///
/// Any two compare equal: how rows are spread over workers and batches is no part of what happened.
#[derive(Clone, Default, Debug)]
pub struct StageFlows {
    stages: BTreeMap<FlowPlace, Vec<StageFlow>>,
    /// The program of each pipeline, and its number there.
    layout: Vec<(String, usize)>,
    /// The counts of stages before the last change of programs, also of stages that are gone.
    earlier: BTreeMap<StageName, StageFlow>,
    /// The sum of those that found no room there.
    others: StageFlow,
    /// Batches of rows that workers have made and that wait for the machine level, which emits
    /// them in order; `None` where nothing waits there.
    pub waiting: Option<usize>,
}

impl PartialEq for StageFlows {
    fn eq(&self, _: &StageFlows) -> bool {
        true
    }
}

impl Eq for StageFlows {}

impl StageFlows {
    /// One more worker's, or that of the level that there is once.
    pub fn add(&mut self, place: FlowPlace, flow: StageFlow) {
        self.stages.entry(place).or_default().push(flow);
    }

    /// The flows of another part of the run.
    pub(crate) fn merge(&mut self, other: &StageFlows) {
        for (place, flows) in &other.stages {
            self.stages.entry(*place).or_default().extend(flows);
        }
        if self.layout.is_empty() {
            self.layout.clone_from(&other.layout);
        }
        for (name, flow) in &other.earlier {
            self.earlier.entry(name.clone()).or_default().gone_through(flow);
        }
        self.others.gone_through(&other.others);
    }

    /// From now on stages are of this program. Each begins with nothing; what has gone through the
    /// stages so far stays in [`StageFlows::totals`].
    pub fn begin(&mut self, program: &Program) {
        for (place, flows) in std::mem::take(&mut self.stages) {
            let Some(name) = self.name(place) else { continue };
            let has_room = self.earlier.len() < STAGES_REMEMBERED_MAX;
            let earlier = match has_room || self.earlier.contains_key(&name) {
                true => self.earlier.entry(name).or_default(),
                false => &mut self.others,
            };
            earlier.gone_through(&StageFlow::sum(&flows));
        }
        self.layout = program_places(program);
    }

    /// The name of a stage in its program.
    fn name(&self, place: FlowPlace) -> Option<StageName> {
        let (program, pipeline) = self.layout.get(place.pipeline)?;
        Some(StageName {
            program: program.clone(),
            place: FlowPlace { pipeline: *pipeline, ..place },
        })
    }

    /// The counts of each stage since the run began, and what it holds now. A program that was
    /// replaced, or came again, goes on counting. With them, the sum of the stages that are gone
    /// and are beyond the bound.
    pub fn totals(&self) -> (BTreeMap<StageName, StageFlow>, StageFlow) {
        let mut all = self.earlier.clone();
        for (place, flows) in self.iter() {
            let Some(name) = self.name(place) else { continue };
            let (total, now) = (all.entry(name).or_default(), StageFlow::sum(flows));
            total.gone_through(&now);
            total.held += now.held;
        }
        (all, self.others)
    }

    /// Rows and keys that found no room, by program; and those of stages beyond the bound of
    /// [`StageFlows::totals`].
    pub fn evicted(&self) -> (BTreeMap<String, u64>, u64) {
        let (flows, others) = self.totals();
        let mut programs = BTreeMap::new();
        for (name, flow) in flows {
            *programs.entry(name.program).or_default() += flow.evicted;
        }
        (programs, others.evicted)
    }

    /// Each stage, with what has gone through it on each worker.
    pub fn iter(&self) -> impl Iterator<Item = (FlowPlace, &[StageFlow])> {
        self.stages.iter().map(|(place, flows)| (*place, flows.as_slice()))
    }
}

impl StageFlow {
    /// The sum over workers.
    pub fn sum(all: &[StageFlow]) -> StageFlow {
        let mut sum = StageFlow::default();
        for one in all {
            sum.gone_through(one);
            sum.held += one.held;
        }
        sum
    }

    /// Adds what has gone through, not what is held.
    fn gone_through(&mut self, other: &StageFlow) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.late += other.late;
        self.evicted += other.evicted;
        self.undefined += other.undefined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Pipeline, Schema};

    fn program(names: &[Option<&str>]) -> Program {
        let pipeline = |name: &Option<&str>| Pipeline {
            name: name.map(str::to_owned),
            input: Input::Packets,
            stages: Vec::new(),
            schema: Schema::default(),
            printed: name.is_some(),
        };
        Program::of(names.iter().map(pipeline).collect())
    }

    fn of_worker(pipeline: usize) -> FlowPlace {
        FlowPlace { level: FlowLevel::Worker, pipeline, stage: 0 }
    }

    #[test]
    fn totals_go_on_when_programs_change() {
        let flow = |rows_in, held| StageFlow { rows_in, held, ..StageFlow::default() };
        let mut flows = StageFlows::default();
        flows.begin(&program(&[Some("a.x"), Some("a"), None, Some("b")]));
        (0..4).for_each(|p| flows.add(of_worker(p), flow(10 + p as u64, 5)));
        flows.add(of_worker(1), flow(100, 5));
        let totals = |flows: &StageFlows| {
            let (all, others) = flows.totals();
            assert_eq!(others, StageFlow::default());
            let one = |(name, flow): (StageName, StageFlow)| {
                (format!("{} {}", name.program, name.place.pipeline), flow.rows_in, flow.held)
            };
            all.into_iter().map(one).collect::<Vec<_>>()
        };
        let named = |name: &str, rows_in, held| (name.to_owned(), rows_in, held);
        let before =
            [named("a 0", 10, 5), named("a 1", 111, 10), named("b 0", 12, 5), named("b 1", 13, 5)];
        assert_eq!(totals(&flows), before);
        flows.begin(&program(&[Some("b"), Some("c")]));
        assert_eq!(flows.iter().count(), 0);
        let mut now = StageFlows::default();
        now.merge(&flows);
        now.add(of_worker(0), flow(1, 2));
        now.add(of_worker(1), flow(7, 7));
        // A stage that goes on counting reports only the keys that it holds now.
        let after = [
            named("a 0", 10, 0),
            named("a 1", 111, 0),
            named("b 0", 13, 2),
            named("b 1", 13, 0),
            named("c 0", 7, 7),
        ];
        assert_eq!(totals(&now), after);
    }

    #[test]
    fn stages_that_are_gone_are_bounded() {
        let mut flows = StageFlows::default();
        let flow = StageFlow { rows_in: 2, ..StageFlow::default() };
        for n in 0..STAGES_REMEMBERED_MAX + 3 {
            let name = format!("p{n:05}");
            flows.begin(&program(&[Some(&name)]));
            flows.add(of_worker(0), flow);
        }
        flows.begin(&program(&[]));
        let (all, others) = flows.totals();
        assert_eq!((all.len(), others.rows_in), (STAGES_REMEMBERED_MAX, 6));
        // One that is known goes on.
        flows.begin(&program(&[Some("p00001")]));
        flows.add(of_worker(0), flow);
        flows.begin(&program(&[]));
        assert_eq!(flows.totals().1.rows_in, 6);
    }
}
