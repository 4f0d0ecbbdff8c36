//! The program that a physical plan was made of.

use super::{Fragment, Half, Inlet, Node, Physical, PipelineId, Work};
use crate::program::{Input, Pipeline, Program};
use crate::stage::Stage;

impl Physical {
    /// The program, as it was before it was placed. Needs a plan that [`Physical::check`] lets
    /// pass.
    pub fn program(&self) -> Program {
        let mut program = Program { pipelines: Vec::new(), source: self.source };
        for (p, info) in self.pipelines.iter().enumerate() {
            let id = PipelineId(p);
            let first = self.fragments(id).next().map(|(_, fragment)| fragment);
            let input = first.map_or(Input::Packets, Fragment::input);
            let pipeline = Pipeline {
                name: info.name.clone(),
                input,
                stages: {
                    let first_halves = self.nodes(id).filter(|node| node.id.half != Half::Final);
                    first_halves.map(Node::whole_stage).collect()
                },
                schema: self.rows_of(id),
                printed: self.outputs.contains(&id),
            };
            program.pipelines.push(pipeline);
        }
        program
    }
}

impl Fragment {
    /// Where the rows of its pipeline come from, if this is its first fragment.
    fn input(&self) -> Input {
        match &self.from {
            Inlet::Exchange(_) => Input::Packets,
            Inlet::Pipelines(sides) => {
                sides.first().map_or(Input::Packets, |p| Input::Pipeline(p.0))
            }
        }
    }
}

impl Node {
    /// The stage that it is, or is half of.
    pub fn whole_stage(&self) -> Stage {
        match &self.work {
            Work::Stage(stage) => stage.clone(),
            Work::Partial(s) | Work::Final(s) => Stage::Summarize(s.clone()),
        }
    }
}
