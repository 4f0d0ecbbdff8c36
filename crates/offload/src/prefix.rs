//! Which stages of each pipeline the kernel can run.

use crate::lower::{Columns, lower, lower_test};
use crate::options::NotOffloaded;
use crate::value::{Lowered, Test};
use weir_packet::fields::FieldId;
use weir_plan::physical::{
    Fragment, Inlet, LevelKind, Node, Payload, Physical, PipelineId, Prefix, Work,
};
use weir_plan::stage::{Schema, Stage};
use weir_plan::{BinaryOp, Expr, ExprKind, Func};

/// What the kernel runs of a pipeline over packets.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) prefix: Prefix,
    /// It wants only frames for which all of these hold.
    pub(crate) tests: Vec<Test>,
    /// What the columns are after the prefix.
    pub(crate) columns: Columns,
}

/// The prefix of each pipeline over packets.
///
/// # Errors
/// Where one of them wants every frame, or reads what changes if frames don't come up.
pub(crate) fn pipelines(plan: &Physical) -> Result<Vec<Pipeline>, NotOffloaded> {
    whole_plan(plan)?;
    let none = || NotOffloaded::Plan("no pipeline is over packets".to_owned());
    let level = plan.level(LevelKind::Worker).ok_or_else(none)?;
    let over_packets = |f: &&Fragment| match f.from {
        Inlet::Exchange(id) => plan
            .exchanges
            .get(id.0)
            .is_some_and(|exchange| matches!(exchange.payload, Payload::Packets(_))),
        Inlet::Pipelines(_) => false,
    };
    let found: Vec<Pipeline> =
        level.fragments.iter().filter(over_packets).map(|f| prefix(f.pipeline, &f.nodes)).collect();
    if found.is_empty() {
        return Err(none());
    }
    match found.iter().find(|pipeline| pipeline.tests.is_empty()) {
        Some(Pipeline { prefix, .. }) => {
            let why = prefix.stopped_by.clone();
            let why = why.unwrap_or_else(|| "it has no condition".to_owned());
            Err(NotOffloaded::Pipeline(prefix.pipeline, why))
        }
        None => Ok(found),
    }
}

/// Whether anything in the plan depends on frames that no pipeline wants.
fn whole_plan(plan: &Physical) -> Result<(), NotOffloaded> {
    const NUMBER: FieldId = FieldId::named("number");
    for node in plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes) {
        if node.reads.contains(&NUMBER) {
            let why = "it reads `number`, which counts frames that no pipeline wants, too";
            return Err(NotOffloaded::Pipeline(node.id.pipeline, why.to_owned()));
        }
        if matches!(node.work, Work::Stage(Stage::Capture(_))) {
            let why = "`capture` keeps frames that no pipeline wants, too";
            return Err(NotOffloaded::Pipeline(node.id.pipeline, why.to_owned()));
        }
    }
    Ok(())
}

/// What the kernel runs of these nodes.
fn prefix(pipeline: PipelineId, nodes: &[Node]) -> Pipeline {
    let mut found = Pipeline {
        prefix: Prefix { pipeline, stages: 0, counts: false, stopped_by: None },
        tests: Vec::new(),
        columns: Columns::default(),
    };
    for node in nodes {
        if let Err(why) = found.add(node) {
            found.prefix.stopped_by = Some(why);
            break;
        }
        found.prefix.stages += 1;
    }
    found
}

impl Pipeline {
    /// Adds a stage, or says why the kernel does not run it.
    fn add(&mut self, node: &Node) -> Result<(), String> {
        match &node.work {
            Work::Stage(Stage::Where(condition)) => self.add_where(condition),
            Work::Stage(Stage::Extend { columns }) => {
                let exprs = columns.iter().map(|(_, at, e)| (*at, e));
                self.add_columns(exprs, node.schema.clone(), true)
            }
            Work::Stage(Stage::Project { columns } | Stage::Reshape { columns, .. }) => {
                let exprs = columns.iter().enumerate().map(|(at, (_, e))| (at, e));
                self.add_columns(exprs, node.schema.clone(), false)
            }
            Work::Stage(stage) => {
                let text = weir_plan::print::stage(stage, &self.columns.schema);
                let word = text.split_whitespace().next().unwrap_or_default();
                Err(format!("the kernel does not run `{word}`"))
            }
            Work::Partial(_) | Work::Final(_) => {
                Err("the kernel does not aggregate yet".to_owned())
            }
        }
    }

    /// Adds a condition. Of one that can't be evaluated, the parts that can be are used all the
    /// same, as far as no fault is left uncounted.
    fn add_where(&mut self, condition: &Expr) -> Result<(), String> {
        let mut why = None;
        for part in conjuncts(condition) {
            match lower_test(part, &self.columns) {
                Ok(test) => self.tests.push(test),
                Err(reason) => {
                    let faults = can_fault(part);
                    why.get_or_insert(reason);
                    if faults {
                        break;
                    }
                }
            }
        }
        why.map_or(Ok(()), Err)
    }

    /// Notes what columns are. `keeps`: the others stay as they are.
    fn add_columns<'e>(
        &mut self,
        exprs: impl Iterator<Item = (usize, &'e Expr)>,
        schema: Schema,
        keeps: bool,
    ) -> Result<(), String> {
        let lost = || Err("it reads a column that the kernel level does not have".to_owned());
        let mut values = if keeps { self.columns.values.clone() } else { Vec::new() };
        values.resize_with(schema.columns.len(), lost);
        for (at, e) in exprs {
            let value: Result<Lowered, String> = lower(e, &self.columns);
            if let (Err(why), true) = (&value, can_fault(e)) {
                return Err(why.clone());
            }
            if let Some(column) = values.get_mut(at) {
                *column = value;
            }
        }
        self.columns = Columns { schema, values };
        Ok(())
    }
}

/// The parts of a condition that must all hold, in the order in which they are evaluated.
fn conjuncts(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Binary(BinaryOp::And, a, b) => {
            let mut parts = conjuncts(a);
            parts.extend(conjuncts(b));
            parts
        }
        _ => vec![e],
    }
}

/// Whether evaluating an expression could have a fault that is counted.
fn can_fault(e: &Expr) -> bool {
    let mut can = false;
    e.visit(&mut |e| {
        can |= match &e.kind {
            ExprKind::Binary(op, ..) => {
                !op.is_comparison() && !matches!(op, BinaryOp::And | BinaryOp::Or)
            }
            ExprKind::Unary(op, _) => *op == weir_plan::UnaryOp::Neg,
            ExprKind::Call(f, _) => !matches!(
                f,
                Func::Exists
                    | Func::Coalesce
                    | Func::Contains
                    | Func::StartsWith
                    | Func::EndsWith
                    | Func::Matches
                    | Func::Lower
                    | Func::Upper
                    | Func::StrLen
                    | Func::BytesLen
                    | Func::IsIpv4
                    | Func::IsIpv6
                    | Func::IsIn(_)
                    | Func::Prefix { .. }
            ),
            _ => false,
        };
    });
    can
}
