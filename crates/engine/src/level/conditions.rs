//! Conditions that several pipelines of a worker begin with, evaluated once per batch.

use crate::compile::Placed;
use crate::expr::{Compiler, Cond, Ctx, Regs, Scope};
use crate::view::Packets;
use weir_packet::bits::Bits;
use weir_packet::fields::FieldId;
use weir_plan::physical::Conditions;

/// The conditions, with what is known of the batch at hand.
pub(super) struct SharedConditions {
    all: Vec<KnownCondition>,
    /// Of each pipeline those that its packets must meet, by position.
    of: Vec<Vec<usize>>,
    regs: Regs,
}

/// A condition.
struct KnownCondition {
    condition: Cond,
    /// The rows of this batch that were asked.
    asked: Bits,
    /// The rows for which it holds.
    holds: Bits,
}

impl SharedConditions {
    /// Compiles conditions; `fields` collects what the view must decode.
    pub(super) fn new(
        placed: Placed<'_>,
        conditions: &Conditions,
        fields: &mut Vec<FieldId>,
    ) -> SharedConditions {
        let mut compiler = Compiler::new(placed.with.functions, fields);
        let mut known = |e| {
            let condition = compiler.condition(e, &Scope::default());
            KnownCondition { condition, asked: Bits::NONE, holds: Bits::NONE }
        };
        let all = conditions.shared.iter().map(&mut known).collect();
        SharedConditions { all, of: conditions.of.clone(), regs: compiler.regs }
    }

    /// Forgets what is known: another batch is at hand.
    pub(super) fn next_batch(&mut self) {
        self.all.iter_mut().for_each(|known| known.asked = Bits::NONE);
    }

    /// The rows of `rows` that meet the conditions of the pipeline at this position; `n`: how many
    /// rows the batch has.
    pub(super) fn rows(
        &mut self,
        pipeline: usize,
        view: Packets<'_>,
        rows: Bits,
        n: usize,
    ) -> Bits {
        // None of them has a result outside its type.
        let mut undefined = 0;
        let SharedConditions { all, of, regs } = self;
        let mut ctx = Ctx { view: Some(view), regs, n, undefined: &mut undefined };
        let mut rows = rows;
        for &at in &of[pipeline] {
            let known = &mut all[at];
            let need = rows.minus(known.asked);
            if !need.is_empty() {
                let holds = ctx.condition(&known.condition, need);
                known.holds = known.holds.and(known.asked).or(holds);
                known.asked = known.asked.or(need);
            }
            rows = rows.and(known.holds);
            if rows.is_empty() {
                break;
            }
        }
        debug_assert_eq!(undefined, 0, "a shared condition counts nothing");
        rows
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, binary, compare, field, int, project, summarize};
    use crate::tests::{Frames, check};
    use weir_plan::{
        AggFunc, BinaryOp, Expr, ExprKind, Input, Pipeline, Program, Schema, Stage, Type, UnaryOp,
        Window,
    };

    fn and(a: Expr, b: Expr) -> Stage {
        let kind = ExprKind::Binary(BinaryOp::And, Box::new(a), Box::new(b));
        Stage::Where(Expr { ty: Type::Bool, kind })
    }

    fn not(e: Expr) -> Expr {
        Expr { ty: Type::Bool, kind: ExprKind::Unary(UnaryOp::Not, Box::new(e)) }
    }

    fn to_server() -> Expr {
        compare(BinaryOp::Eq, field("tcp.dport"), int(80))
    }

    fn short() -> Expr {
        compare(BinaryOp::Lt, field("tcp.window"), int(65_534))
    }

    /// Has no result for some windows, which is counted.
    fn undefined() -> Stage {
        let quotient =
            binary(BinaryOp::Div, int(1), binary(BinaryOp::Sub, field("tcp.window"), int(1)));
        Stage::Where(compare(BinaryOp::Eq, quotient, int(0)))
    }

    /// How many rows each pipeline gives; the same as the naive model, whatever the cut, the number
    /// of workers, and with what is undefined counted for each pipeline.
    fn rows(pipelines: Vec<Vec<Stage>>) -> Vec<usize> {
        let pipeline = |stages: Vec<Stage>| {
            let schema = stages.iter().fold(Schema::default(), |s, stage| stage.output(&s));
            Pipeline { name: None, input: Input::Packets, stages, schema, printed: true }
        };
        let outputs = pipelines.len();
        let program = Program::of(pipelines.into_iter().map(pipeline).collect());
        let rows = check(&program, &Functions::default(), &Frames::sample());
        (0..outputs).map(|o| rows.iter().filter(|(output, _)| *output == o).count()).collect()
    }

    #[test]
    fn pipelines_get_what_meets_their_conditions() {
        let number = || project(&["number"]);
        let counted =
            summarize(&["ip.src"], vec![agg(AggFunc::Count, None)], Window::Tumbling(700_000_000));
        let found = rows(vec![
            vec![and(to_server(), short()), number()],
            vec![Stage::Where(short()), Stage::Where(to_server()), number()],
            vec![Stage::Where(field("tcp")), Stage::Where(to_server()), number()],
            vec![and(not(field("tcp")), short()), number()],
            vec![Stage::Where(not(field("tcp"))), number()],
            vec![Stage::Where(field("tcp")), counted],
        ]);
        assert_eq!(found[..2], [found[0], found[0]]);
        assert_eq!(found[2..5], [27, 0, 1]);
        assert!(found[0] > 0 && found[0] < found[2] && found[5] > 6, "{found:?}");
    }

    #[test]
    fn what_is_undefined_is_counted_where_it_was() {
        let number = || project(&["number"]);
        let found = rows(vec![
            vec![undefined(), Stage::Where(to_server()), number()],
            vec![Stage::Where(to_server()), undefined(), number()],
            vec![Stage::Where(to_server()), number()],
        ]);
        assert_eq!(found[0], found[1]);
    }

    /// No condition of a pipeline is left, or all packets are refused.
    #[test]
    fn a_limit_and_a_silence_are_as_ever() {
        let found = rows(vec![
            vec![Stage::Where(field("tcp")), Stage::Limit(3), project(&["number"])],
            vec![Stage::Where(field("tcp")), project(&["number"])],
            vec![Stage::Where(field("udp")), project(&["number"])],
            vec![Stage::Where(field("udp")), summarize(&[], Vec::new(), Window::All)],
        ]);
        assert_eq!(found[..3], [3, 40, 0]);
    }
}
