//! Conditions that several pipelines of a worker begin with, evaluated once per batch.

use crate::compile::Placed;
use crate::expr::{Compiler, Cond, Ctx, Regs, Scope};
use crate::view::Packets;
use weir_packet::bits::Bits;
use weir_packet::fields::FieldId;
use weir_plan::physical::Conditions;

/// The conditions, with what is known of the batch at hand.
pub(super) struct SharedConditions {
    all: Vec<Known>,
    /// Of each pipeline those that its packets must meet, by position.
    of: Vec<Vec<usize>>,
    regs: Regs,
}

/// A condition.
struct Known {
    condition: Cond,
    /// The rows of this batch that were asked.
    asked: Bits,
    /// Those of them for which it holds.
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
            Known { condition, asked: Bits::NONE, holds: Bits::NONE }
        };
        let all = conditions.shared.iter().map(&mut known).collect();
        SharedConditions { all, of: conditions.of.clone(), regs: compiler.regs }
    }

    /// Forgets what is known: another batch is at hand.
    pub(super) fn next_batch(&mut self) {
        self.all.iter_mut().for_each(|known| known.asked = Bits::NONE);
    }

    /// Those of `rows` that meet the conditions of the pipeline at this position; `n`: how many
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
