//! Short ways to write plans in tests.

use weir_packet::fields::by_name;
use weir_plan::limits::{GROUPS_MAX, SESSIONS_MAX};
use weir_plan::{Agg, AggFunc, BinaryOp, Expr, ExprKind, Stage, Summarize, Type, Value, Window};

pub(crate) fn field(name: &str) -> Expr {
    Expr::field(by_name(name).expect("a field"))
}

pub(crate) fn int(n: i64) -> Expr {
    Expr::constant(Value::Int(n))
}

pub(crate) fn state(i: usize, ty: Type) -> Expr {
    Expr { ty, kind: ExprKind::State(i) }
}

/// An operator whose result has the type of its left side.
pub(crate) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr { ty: a.ty.clone(), kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
}

pub(crate) fn compare(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr { ty: Type::Bool, ..binary(op, a, b) }
}

pub(crate) fn project(fields: &[&str]) -> Stage {
    Stage::Project { columns: fields.iter().map(|f| ((*f).to_owned(), field(f))).collect() }
}

/// An aggregate named after its function.
pub(crate) fn agg(func: AggFunc, arg: Option<Expr>) -> Agg {
    let ty = func.result(arg.as_ref().map(|arg| &arg.ty)).expect("it takes this argument");
    Agg { name: func.name().into(), func, arg, cond: None, ty }
}

pub(crate) fn summarize(keys: &[&str], aggs: Vec<Agg>, window: Window) -> Stage {
    let keys = keys.iter().map(|k| (format!("by {k}"), field(k))).collect();
    let (lateness_ns, fill, until) = (0, None, None);
    let max_groups = match window {
        Window::Session(_) => SESSIONS_MAX,
        _ => GROUPS_MAX,
    };
    Stage::Summarize(Summarize {
        keys,
        aggs,
        window,
        lateness_ns,
        fill,
        until,
        unless: None,
        zone: None,
        max_groups,
    })
}
