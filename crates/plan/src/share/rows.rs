//! Stages that several pipelines begin with over the same rows, run once.
//!
//! Rows that go on to several pipelines are copied for each. So stages are run once only where they
//! hold state, which takes far longer than a copy: groups, scans, keys that were seen, sorted rows.

use crate::program::{Input, Pipeline, Program};
use crate::schema::Schema;
use crate::stage::Stage;

/// Runs the first stages of pipelines that read the same rows once where they are the same.
pub(super) fn share(program: Program) -> Program {
    let source = program.source;
    let mut out = Pipelines::default();
    for pipeline in program.pipelines {
        out.take(pipeline);
    }
    Program { pipelines: out.pipelines, source }
}

#[derive(Default)]
struct Pipelines {
    pipelines: Vec<Pipeline>,
    /// Where the rows of each pipeline of the program come from now.
    places: Vec<usize>,
}

impl Pipelines {
    /// Takes the next pipeline of the program.
    fn take(&mut self, mut pipeline: Pipeline) {
        pipeline.renumber(|i| self.places[i]);
        loop {
            // One that only hands rows on is left out.
            if let (Input::Pipeline(i), [], false) =
                (pipeline.input, &pipeline.stages[..], pipeline.printed)
            {
                return self.places.push(i);
            }
            let others = self.pipelines.iter().map(|other| common(&pipeline, other)).enumerate();
            let Some((at, n)) = others.filter(|(_, n)| *n > 0).max_by_key(|(_, n)| *n) else {
                break;
            };
            self.split(at, n);
            pipeline.stages.drain(..n);
            pipeline.input = Input::Pipeline(at);
        }
        self.places.push(self.pipelines.len());
        self.pipelines.push(pipeline);
    }

    /// Makes the first `n` stages of pipeline `at` a pipeline of its own in that place, which the
    /// rest reads.
    fn split(&mut self, at: usize, n: usize) {
        let pipeline = &mut self.pipelines[at];
        if n == pipeline.stages.len() {
            return;
        }
        let first: Vec<Stage> = pipeline.stages.drain(..n).collect();
        let input = std::mem::replace(&mut pipeline.input, Input::Pipeline(at));
        let before = match input {
            Input::Packets => Schema::default(),
            Input::Pipeline(i) => self.pipelines[i].schema.clone(),
        };
        let schema = first.iter().fold(before, |schema, stage| stage.output(&schema));
        let moved = |i: usize| if i >= at { i + 1 } else { i };
        self.pipelines[at + 1..].iter_mut().for_each(|p| p.renumber(moved));
        self.places.iter_mut().for_each(|place| *place = moved(*place));
        let first = Pipeline { name: None, input, stages: first, schema, printed: false };
        self.pipelines.insert(at, first);
    }
}

/// How many stages two pipelines over the same rows begin with that are worth to be run once.
fn common(a: &Pipeline, b: &Pipeline) -> usize {
    if a.input == Input::Packets || a.input != b.input {
        return 0;
    }
    let both = a.stages.iter().zip(&b.stages);
    let same = both.take_while(|(a, b)| a == b && gives_rows(a)).count();
    // The stages after the last one that holds state are cheaper than a copy.
    a.stages[..same].iter().rposition(Stage::holds_state).map_or(0, |last| last + 1)
}

/// Whether a stage does nothing but make rows of rows, however many read them.
fn gives_rows(stage: &Stage) -> bool {
    use Stage::{Distinct, Extend, Project, Reshape, Scan, Summarize, Top, Where};
    let plain = matches!(stage, Where(_) | Extend { .. } | Project { .. } | Reshape { .. });
    plain || matches!(stage, Summarize(_) | Scan(_) | Distinct(_) | Top { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{BinaryOp, Expr, ExprKind};
    use crate::rows::Distinct;
    use crate::schema::Column;
    use crate::types::Type;
    use crate::value::Value;
    use weir_packet::fields::by_name;

    fn pipeline(input: Input, stages: Vec<Stage>, printed: bool) -> Pipeline {
        let schema = Schema { columns: vec![Column::new("len", &Type::Int)] };
        Pipeline { name: None, input, stages, schema, printed }
    }

    fn packets() -> Pipeline {
        let field = Expr::field(by_name("len").expect("a field"));
        let project = Stage::Project { columns: vec![("len".to_owned(), field)] };
        pipeline(Input::Packets, vec![project], false)
    }

    fn len() -> Expr {
        Expr::column(0, Type::Int)
    }

    fn seen(idle_ns: i64) -> Stage {
        Stage::Distinct(Distinct { keys: vec![len()], windowed: false, idle_ns, max_keys: 9 })
    }

    fn kept() -> Stage {
        let (a, b) = (Box::new(len()), Box::new(Expr::constant(Value::Int(60))));
        Stage::Where(Expr { ty: Type::Bool, kind: ExprKind::Binary(BinaryOp::Gt, a, b) })
    }

    /// Where a pipeline reads, how many stages it has, and whether it is printed.
    type Shown = (Option<usize>, usize, bool);

    fn check(pipelines: Vec<Pipeline>, expected: &[Shown]) {
        let shared = share(Program::of(pipelines)).pipelines;
        let shown = |p: &Pipeline| {
            let input = match p.input {
                Input::Packets => None,
                Input::Pipeline(i) => Some(i),
            };
            (input, p.stages.len(), p.printed)
        };
        assert_eq!(shared.iter().map(shown).collect::<Vec<_>>(), expected);
        for (at, p) in shared.iter().enumerate() {
            assert!(p.sources().all(|i| i < at), "{shared:?}");
        }
    }

    const FIRST: Input = Input::Pipeline(0);

    #[test]
    fn the_stages_that_two_begin_with_become_one_pipeline() {
        check(
            vec![
                packets(),
                pipeline(FIRST, vec![kept(), seen(1), kept(), seen(2)], true),
                pipeline(Input::Pipeline(1), vec![seen(4)], true),
                pipeline(FIRST, vec![kept(), seen(1), kept(), seen(3)], true),
            ],
            &[
                (None, 1, false),
                // The condition after the last state is not worth a copy.
                (Some(0), 2, false),
                (Some(1), 2, true),
                (Some(2), 1, true),
                (Some(1), 2, true),
            ],
        );
    }

    #[test]
    fn one_that_others_begin_like_is_read() {
        check(
            vec![
                packets(),
                pipeline(FIRST, vec![seen(1)], true),
                pipeline(FIRST, vec![seen(1), seen(2)], true),
                pipeline(FIRST, vec![seen(1)], false),
                pipeline(Input::Pipeline(3), vec![seen(2), seen(3)], true),
                pipeline(FIRST, vec![seen(1)], true),
            ],
            &[
                (None, 1, false),
                (Some(0), 1, true),
                (Some(1), 1, true),
                (Some(2), 1, true),
                (Some(1), 0, true),
            ],
        );
    }

    #[test]
    fn what_holds_nothing_or_is_over_packets_or_ends_a_run_is_left_alone() {
        let over = |input, stages: Vec<Stage>| pipeline(input, stages, true);
        check(
            vec![
                packets(),
                over(FIRST, vec![kept()]),
                over(FIRST, vec![kept()]),
                over(FIRST, vec![Stage::Limit(1), seen(1)]),
                over(FIRST, vec![Stage::Limit(1), seen(1)]),
                over(Input::Packets, vec![seen(1)]),
                over(Input::Packets, vec![seen(1)]),
            ],
            &[
                (None, 1, false),
                (Some(0), 1, true),
                (Some(0), 1, true),
                (Some(0), 2, true),
                (Some(0), 2, true),
                (None, 1, true),
                (None, 1, true),
            ],
        );
    }
}
