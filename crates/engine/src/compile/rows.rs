//! How stages that choose rows and take them apart are compiled.

use super::chain::{ChainBuilder, Ending};
use crate::expr::Src;
use crate::ops::alert::{AlertInput, Alerts};
use crate::ops::deduplicate::{self, Digest, DropCopies, MADE, STATES};
use crate::ops::distinct;
use crate::ops::each::{Each, What};
use crate::ops::filter::Filter;
use crate::ops::hello::Hello;
use crate::ops::sample::{Rule, Sample};
use crate::ops::top::{PerKey, Top};
use crate::rows::Rows;
use weir_plan::limits::DISTINCT_KEYS_MAX;
use weir_plan::physical::Carry;
use weir_plan::{Expr, HELLO_COLUMNS, Parts, Per, SampleBy, Schema, SortKey, Type};

impl ChainBuilder<'_> {
    pub(super) fn top(
        &mut self,
        n: u64,
        windowed: bool,
        by: &[SortKey],
        per: Option<&Per>,
        after: Schema,
        carry: &Carry,
    ) -> Ending {
        let by = by
            .iter()
            .map(|k| {
                let value = self.compiler.value(&k.expr, &self.scope);
                (value, k.expr.ty.clone(), k.order)
            })
            .collect();
        let per = per.map(|per| {
            let keys = per.keys.iter().map(|k| self.compiler.value(k, &self.scope)).collect();
            let with = self.placed.with;
            PerKey::new(per, keys, with.top_share(n, per, &self.schema), with.hash_key)
        });
        // Columns that nobody reads are not held.
        let columns = self.scope.columns.iter().copied().enumerate();
        let mut columns: Vec<(Src, usize)> =
            columns.filter(|(at, _)| self.is_read(*at)).map(|(at, src)| (src, at)).collect();
        let mut out = after;
        for (src, column) in self.carried(carry) {
            columns.push((src, out.columns.len()));
            out.columns.push(column);
        }
        Ending::Top(Top::new(n, by, windowed, per, columns, out))
    }

    pub(super) fn distinct(&mut self, plan: &weir_plan::Distinct) {
        let columns = self.scope.columns.clone();
        // After the columns, for the keys and the condition to see: the time of rows and the
        // state.
        let (time, state) = (columns.len(), columns.len() + 1);
        self.scope.columns.push(self.time);
        let window = plan.windowed.then(|| Expr::column(time, Type::Time));
        let (scan, first) = distinct::scan(plan, window, state);
        let share = self.placed.with.scan_share(&scan, DISTINCT_KEYS_MAX);
        self.scan((&scan, share), state + 1, None);
        let condition = self.compiler.condition(&first, &self.scope);
        self.ops.push(Box::new(Filter::new(condition)));
        self.scope.columns = columns;
    }

    pub(super) fn deduplicate(&mut self, plan: &weir_plan::Deduplicate) {
        let columns = self.scope.columns.clone();
        // After the columns, for the scan to see: what the digest makes, and its states.
        let (made, state) = (columns.len(), columns.len() + MADE);
        let slots = std::array::from_fn(|at| {
            self.compiler.slot(if at < 2 { &Type::Int } else { &Type::Time })
        });
        self.ops.push(Box::new(Digest::new(slots, plan.within_ns)));
        self.scope.columns.extend(slots.map(Src::Slot));
        let scan = deduplicate::scan(plan, made, state);
        let share = self.placed.with.scan_share(&scan, DISTINCT_KEYS_MAX);
        self.scan((&scan, share), state + STATES, None);
        self.ops.push(Box::new(DropCopies::new(self.scope.columns[state])));
        self.scope.columns = columns;
    }

    pub(super) fn hello(&mut self, plan: &weir_plan::Hello, columns: usize) {
        let keys = plan.keys.iter().map(|k| self.compiler.value(k, &self.scope)).collect();
        let slots = HELLO_COLUMNS.map(|(_, ty)| self.compiler.slot(&ty));
        self.scope.columns.resize(columns, Src::Slot(0));
        plan.columns.iter().zip(slots).for_each(|(&at, to)| self.scope.columns[at] = Src::Slot(to));
        let with = self.placed.with;
        let share = with.hello_share(plan);
        self.ops.push(Box::new(Hello::new(plan, keys, slots, (share, with.hash_key))));
    }

    pub(super) fn sample(&mut self, plan: &weir_plan::Sample) {
        let mut value = |e: &Expr| self.compiler.value(e, &self.scope);
        let rule = match &plan.by {
            SampleBy::Number(number) => Rule::Number(value(number)),
            SampleBy::Order => Rule::Order(0),
            SampleBy::Key(keys) => {
                Rule::Key(keys.iter().map(|k| (value(k), k.ty.clone())).collect())
            }
        };
        self.ops.push(Box::new(Sample::new(plan.clone(), rule)));
    }

    pub(super) fn alert(&mut self, plan: &weir_plan::Alert, after: Schema) -> Ending {
        let (message, next_step, compared) =
            (plan.message(), plan.next_step(), plan.compared.iter());
        let compared = compared.flat_map(|c| [&c.value, &c.threshold]);
        let all =
            std::iter::once(&message).chain(compared).chain(&plan.community).chain(&next_step);
        let mut made = self.compute(all).into_iter();
        let mut next = || made.next().expect("each has a place");
        let message = next();
        let compared = plan.compared.is_some().then(|| [next(), next()]);
        let community = plan.community.is_some().then(&mut next);
        let next_step = next_step.is_some().then(next);
        let columns = &self.scope.columns;
        let column = |at: usize| (columns[at], self.schema.columns[at].ty.clone());
        let input = AlertInput {
            ts: columns[plan.ts],
            packets: [plan.first, plan.last].map(|at| at.map(|at| columns[at])),
            message,
            compared,
            completeness: plan.completeness.map(|at| columns[at]),
            community,
            next_step,
            evidence: plan.evidence(&self.schema).map(column).collect(),
        };
        let share = self.placed.with.alert_share(plan, &self.schema);
        Ending::Alerts(Alerts::new(plan, input, share, (&self.schema, after)))
    }

    pub(super) fn each(&mut self, plan: &weir_plan::Each, after: &Schema, carry: &Carry) -> Ending {
        let what = match &plan.what {
            Parts::Packet(what) if self.packets => What::Packet(*what),
            Parts::Packet(what) => What::Origin(*what),
            Parts::Split { text, by } => {
                let [text, by] = [text, by].map(|e| self.compiler.value(e, &self.scope));
                What::Split(text, by)
            }
        };
        let parts: Vec<usize> = plan.columns.iter().map(|(_, at, _)| *at).collect();
        let before = self.scope.columns.iter().copied().enumerate();
        let mut along: Vec<(Src, usize)> =
            before.filter(|(at, _)| !parts.contains(at)).map(|(at, src)| (src, at)).collect();
        let mut out = after.clone();
        for (src, column) in self.carried(carry) {
            along.push((src, out.columns.len()));
            out.columns.push(column);
        }
        Ending::Parts(Each::new(what, along, parts, Rows::new(&out)))
    }
}

/// A chain that ends in this `top`, over rows of these columns, for its own tests.
#[cfg(test)]
pub(crate) fn top_over_rows(
    stage: &weir_plan::Stage,
    schema: &Schema,
    with: crate::peers::BuildContext<'_>,
) -> crate::node::Chained<Top> {
    use super::chain::ChainInput;
    use super::placed::Placed;
    use weir_plan::physical::{Half, Node, NodeId, Physical, PipelineId, Work};
    let program = weir_plan::Program::default();
    let plan = &Physical::new(&program, &[]);
    let placed = Placed { program: &program, plan, with, may_change: false, kernel: None };
    let (carry, mut fields) = (Carry::default(), Vec::new());
    let mut build = ChainBuilder::new(placed, ChainInput::Rows(schema, &carry), &mut fields);
    let node = Node {
        id: NodeId { pipeline: PipelineId(0), stage: 0, half: Half::Whole },
        work: Work::Stage(stage.clone()),
        schema: schema.clone(),
        reads: Vec::new(),
        carries: Carry::default(),
    };
    let Some(Ending::Top(end)) = build.node(&node, &[]) else { panic!("a top") };
    crate::node::Chained { chain: build.chain(), end }
}
