//! One aggregate of a `summarize`: its arguments, and the type of its result.

use super::Checker;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{AggItem, Expr as TreeExpr, Name};
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type, Window};

/// The built-in aggregates by name. What a call says beside its argument, or the window does, is
/// filled in where it is known.
pub(crate) const AGGREGATES: &[(&str, AggFunc)] = &[
    ("count", AggFunc::Count),
    ("sum", AggFunc::Sum),
    ("min", AggFunc::Min),
    ("max", AggFunc::Max),
    ("avg", AggFunc::Avg),
    ("first", AggFunc::First),
    ("last", AggFunc::Last),
    ("any", AggFunc::Any),
    ("all", AggFunc::All),
    ("distinct", AggFunc::Distinct),
    ("approx_distinct", AggFunc::ApproxDistinct),
    ("bit_or", AggFunc::BitOr),
    ("variance", AggFunc::Variance),
    ("stddev", AggFunc::Stddev),
    ("rate", AggFunc::Rate(1)),
];

/// The least and the largest number of arguments.
fn arity(f: AggFunc) -> (usize, usize) {
    match f {
        AggFunc::Count | AggFunc::Rate(_) => (0, 1),
        _ => (1, 1),
    }
}

impl<'t> Checker<'t> {
    /// The aggregate over windows of this kind; `None` as the window means that it was wrong.
    pub(super) fn of_window(
        &mut self,
        f: AggFunc,
        window: Option<Window>,
        span: Span,
    ) -> Option<AggFunc> {
        match (f, window) {
            (AggFunc::Rate(_), Some(Window::Tumbling(ns))) => Some(AggFunc::Rate(ns)),
            (AggFunc::Rate(_), Some(Window::All)) => {
                let message = "a rate is so much in each second of a window, and there are none";
                let d = Diagnostic::new(Code::NoEventTime, span, message);
                self.report(d.help("add `every 1s`, or another length, at the end of the stage"));
                None
            }
            (f, _) => Some(f),
        }
    }

    pub(super) fn agg(
        &mut self,
        scope: &Scope,
        name: &str,
        (f, func): (AggFunc, &Name),
        args: &[TreeExpr],
        item: &AggItem,
    ) -> Option<Agg> {
        let checked: Vec<_> = args.iter().map(|e| self.root(scope, e)).collect();
        let cond = match &item.cond {
            Some(e) => Some(self.condition(scope, e, "`where`")?),
            None => None,
        };
        let (least, most) = arity(f);
        if !(least..=most).contains(&args.len()) {
            self.wrong_arity(&func.node, most, args.len(), item.item.expr.span);
            return None;
        }
        let ty = if matches!(f, AggFunc::Rate(_)) { Type::Float } else { Type::Int };
        let mut agg = Agg { name: name.to_owned(), func: f, arg: None, cond, ty };
        let Some(tree) = args.first() else { return Some(agg) };
        let arg = checked.into_iter().next().flatten()?;
        if matches!(f, AggFunc::Count | AggFunc::Rate(_)) && arg.ty == Type::Bool {
            agg.cond = lower::both(agg.cond, Some(arg));
            return Some(agg);
        }
        let (arg, ty) = self.agg_arg(f, func, arg, tree)?;
        (agg.arg, agg.ty) = (Some(arg), ty);
        Some(agg)
    }

    /// The argument as the aggregate wants it, and the type of the result.
    fn agg_arg(
        &mut self,
        f: AggFunc,
        func: &Name,
        arg: Expr,
        tree: &TreeExpr,
    ) -> Option<(Expr, Type)> {
        if let (AggFunc::Distinct | AggFunc::ApproxDistinct, ExprKind::Tuple(parts)) =
            (f, &arg.kind)
        {
            self.key_fits(parts, tree.span);
            return Some((arg, Type::Int));
        }
        let arg = self.one_value(arg, tree.span)?;
        let ty = arg.ty.clone();
        let (fits, wanted, result) = match f {
            AggFunc::Count | AggFunc::Distinct | AggFunc::ApproxDistinct => (true, "", Type::Int),
            AggFunc::First | AggFunc::Last => (true, "", ty),
            AggFunc::Sum => (ty.is_numeric(), "an int, a float or a duration", ty),
            AggFunc::Avg | AggFunc::Stddev => {
                let result = if ty == Type::Duration { Type::Duration } else { Type::Float };
                (ty.is_numeric(), "an int, a float or a duration", result)
            }
            AggFunc::Variance => {
                (matches!(ty, Type::Int | Type::Float), "an int or a float", Type::Float)
            }
            AggFunc::Rate(_) => (ty == Type::Int, "an int or a condition", Type::Float),
            AggFunc::Min | AggFunc::Max => (ty.is_ordered(), "a value that has an order", ty),
            AggFunc::Any | AggFunc::All => (ty == Type::Bool, "a condition", Type::Bool),
            AggFunc::BitOr => (ty == Type::Int, "an int", Type::Int),
            AggFunc::User(i) => {
                let signature = &self.signatures.aggregates[i];
                let (wanted, ret) = (signature.arg.clone(), signature.ret.clone());
                if lower::fits(&arg.ty, &wanted) {
                    return Some((lower::cast(arg, &wanted), ret));
                }
                self.wrong_argument(&func.node, &a(&wanted), &arg, tree);
                return None;
            }
        };
        if !fits {
            self.wrong_argument(&func.node, wanted, &arg, tree);
        }
        fits.then_some((arg, result))
    }
}
