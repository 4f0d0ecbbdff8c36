//! The comparison before an `alert`: its value and its threshold.

use super::{Built, Checker};
use crate::lower;
use std::collections::BTreeMap;
use weir_plan::alert::{Compared, Peak};
use weir_plan::{
    BinaryOp, Expr, ExprKind, Func, Input, Schema, Stage, Type, UnaryOp, Value, print,
};

/// Where columns of an earlier stage stand among those that the alert sees, as far as they are
/// still there.
type Places = BTreeMap<usize, usize>;

/// The values that a comparison may be with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    /// A number that is the same for all rows.
    Constant,
    /// That, or another value of the row.
    Anything,
}

impl<'t> Checker<'t> {
    /// The nearest comparison of a number or a duration with a constant in the `where` stages
    /// before, up to the first stage that does more than choose rows and columns; where none is
    /// with a constant, the nearest of any. Of several in one `where`, the first.
    pub(super) fn compared(&self, built: &Built) -> Option<Compared> {
        let schema = &built.scope.schema;
        let mut places: Places = (0..schema.columns.len()).map(|at| (at, at)).collect();
        let mut conditions = Vec::new();
        let (mut stages, mut input) = (&built.stages, built.input);
        'before: loop {
            for stage in stages.iter().rev() {
                match stage {
                    Stage::Where(condition) => conditions.push((condition, places.clone())),
                    stage => match before(stage, &places) {
                        Some(earlier) => places = earlier,
                        None => break 'before,
                    },
                }
            }
            let Input::Pipeline(n) = input else { break };
            (stages, input) = (&self.built[n].stages, self.built[n].input);
        }
        let nearest = |with: With| {
            let one = |(e, places): &(&Expr, Places)| comparison(e, with, places, schema);
            conditions.iter().find_map(one)
        };
        nearest(With::Constant).or_else(|| nearest(With::Anything))
    }
}

/// The places of the columns that come into a stage which chooses or adds columns.
fn before(stage: &Stage, places: &Places) -> Option<Places> {
    match stage {
        Stage::Extend { columns } => {
            let made = |at: &usize| columns.iter().any(|(_, made, _)| made == at);
            Some(places.iter().filter(|(at, _)| !made(at)).map(|(a, b)| (*a, *b)).collect())
        }
        Stage::Project { columns } | Stage::Reshape { columns, .. } => {
            let kept = columns.iter().enumerate().filter_map(|(at, (_, e))| match e.kind {
                ExprKind::Column(from) => Some((from, *places.get(&at)?)),
                _ => None,
            });
            Some(kept.collect())
        }
        _ => None,
    }
}

/// The first comparison among the conditions that must all hold, of columns that are still there.
fn comparison(e: &Expr, with: With, places: &Places, schema: &Schema) -> Option<Compared> {
    use BinaryOp::{And, Ge, Gt, Le, Lt};
    let ExprKind::Binary(op, left, right) = &e.kind else { return None };
    let (value, threshold, above) = match op {
        And => {
            let of = |side: &Expr| comparison(side, with, places, schema);
            return of(left).or_else(|| of(right));
        }
        Gt | Ge if has_column(left) => (left, right, true),
        Lt | Le if has_column(left) => (left, right, false),
        Gt | Ge if has_column(right) => (right, left, false),
        Lt | Le if has_column(right) => (right, left, true),
        _ => return None,
    };
    if with == With::Constant && !matches!(threshold.kind, ExprKind::Const(_)) {
        return None;
    }
    let (value, threshold) = (moved(value, places)?, moved(threshold, places)?);
    Some(Compared {
        field: print::expr(&value, schema, &[]),
        value: float(value)?,
        threshold: float(threshold)?,
        peak: if above { Peak::Most } else { Peak::Least },
    })
}

fn has_column(e: &Expr) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= matches!(e.kind, ExprKind::Column(_)));
    found
}

/// An expression over the columns that the alert sees; `None` if one of its columns is gone.
fn moved(e: &Expr, places: &Places) -> Option<Expr> {
    let one = |e: &Expr| moved(e, places).map(Box::new);
    let all = |list: &[Expr]| list.iter().map(|e| moved(e, places)).collect::<Option<Vec<_>>>();
    let kind = match &e.kind {
        ExprKind::Const(value) => ExprKind::Const(value.clone()),
        ExprKind::Column(at) => ExprKind::Column(*places.get(at)?),
        ExprKind::Field(_) | ExprKind::State(_) => return None,
        ExprKind::Unary(op, a) => ExprKind::Unary(*op, one(a)?),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, one(a)?, one(b)?),
        ExprKind::If(a, b, c) => ExprKind::If(one(a)?, one(b)?, one(c)?),
        ExprKind::In(a, members) => ExprKind::In(one(a)?, members.clone()),
        ExprKind::Call(func, args) => ExprKind::Call(func.clone(), all(args)?),
        ExprKind::Tuple(parts) => ExprKind::Tuple(all(parts)?),
    };
    Some(Expr { ty: e.ty.clone(), kind })
}

/// A number as a float, a duration as seconds.
fn float(e: Expr) -> Option<Expr> {
    match (&e.ty, &e.kind) {
        (Type::Float, _) => Some(e),
        (Type::Int, _) => Some(lower::fold(lower::unary(UnaryOp::ToFloat, Type::Float, e))),
        (Type::Duration, ExprKind::Const(Value::Duration(ns))) => {
            Some(Expr::constant(Value::Float(*ns as f64 / 1e9)))
        }
        (Type::Duration, _) => {
            Some(Expr { ty: Type::Float, kind: ExprKind::Call(Func::ToFloat, vec![e]) })
        }
        _ => None,
    }
}
