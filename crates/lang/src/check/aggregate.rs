//! One aggregate of a `summarize`: its arguments, and the type of its result.

use super::Checker;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{AggItem, Expr as TreeExpr, Name};
use weir_plan::limits::FREQUENT_MAX;
use weir_plan::{Agg, AggFunc, BinaryOp, Expr, ExprKind, Func, Type, Value, Window};

/// The built-in aggregates by name. What a call says beside its argument, or the window does, is
/// filled in where it is known.
pub(crate) const AGGREGATES: &[(&str, AggFunc)] = &[
    ("count", AggFunc::Count),
    ("late", AggFunc::Late),
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
    ("end_reason", AggFunc::EndReason),
    ("completeness", AggFunc::Completeness),
    ("quantile", AggFunc::Quantile(0)),
    ("percentile", AggFunc::Quantile(0)),
    ("median", AggFunc::Quantile(500_000)),
    ("entropy", AggFunc::Entropy),
    ("frequent", AggFunc::Frequent(1)),
    ("histogram", AggFunc::Histogram),
];

/// The least and the largest number of arguments.
fn arity(f: AggFunc, name: &str) -> (usize, usize) {
    match f {
        AggFunc::Quantile(_) if name != "median" => (2, 2),
        AggFunc::Frequent(_) | AggFunc::Histogram => (2, 2),
        AggFunc::Distinct => (1, 2),
        AggFunc::Count | AggFunc::Rate(_) => (0, 1),
        AggFunc::Late | AggFunc::EndReason | AggFunc::Completeness => (0, 0),
        _ => (1, 1),
    }
}

impl<'t> Checker<'t> {
    /// The columns that say which rows a `distinct` with a limit counted exactly. It gives more
    /// than its limit where it did not.
    pub(super) fn exactness(
        &mut self,
        scope: &mut Scope,
        s: &weir_plan::Summarize,
        word: Span,
    ) -> Option<weir_plan::Stage> {
        let mut columns = Vec::new();
        for agg in &s.aggs {
            let AggFunc::DistinctUpTo(limit) = agg.func else { continue };
            let name = format!("{}_exact", agg.name);
            if scope.position(&name).is_some() {
                let message = format!("two columns are called `{name}`");
                let d = Diagnostic::new(Code::ColumnClash, word, message);
                self.report(d.note(format!(
                    "`distinct` with a limit makes one, which says whether `{}` is exact",
                    agg.name
                )));
                return None;
            }
            let count = Expr::column(scope.position(&agg.name)?, Type::Int);
            let limit = Expr::constant(Value::Int(limit as i64));
            let within = lower::binary(BinaryOp::Le, Type::Bool, count, limit);
            scope.put(&name, Some(Type::Bool));
            columns.push((name.clone(), scope.position(&name)?, within));
        }
        (!columns.is_empty()).then_some(weir_plan::Stage::Extend { columns })
    }

    /// The aggregate over windows of this kind; `None` as the window means that it was wrong.
    pub(super) fn of_window(
        &mut self,
        f: AggFunc,
        window: Option<Window>,
        span: Span,
    ) -> Option<AggFunc> {
        match (f, window) {
            (AggFunc::Rate(_), Some(window)) if window.over().is_some() => {
                window.over().map(AggFunc::Rate)
            }
            (AggFunc::Late, Some(Window::All | Window::Session(_))) => {
                let message = "without windows no row is late";
                let d = Diagnostic::new(Code::NoEventTime, span, message);
                self.report(d.help("add windows at the end of the stage: `every 10s lateness 5s`"));
                None
            }
            (AggFunc::Rate(_), Some(Window::All)) => {
                let message = "a rate is so much in each second of a window, and there are none";
                let d = Diagnostic::new(Code::NoEventTime, span, message);
                self.report(d.help("add `every 1s`, or another length, at the end of the stage"));
                None
            }
            (AggFunc::Rate(_) | AggFunc::EndReason, Some(window)) => {
                self.of_sessions(f, window, span).then_some(f)
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
        let (least, most) = arity(f, &func.node);
        if !(least..=most).contains(&args.len()) {
            self.miscounted(f, &func.node, (most, args.len()), item.item.expr.span);
            return None;
        }
        let ty = match f {
            AggFunc::Rate(_) | AggFunc::Completeness => Type::Float,
            _ => Type::Int,
        };
        let mut agg = Agg { name: name.to_owned(), func: f, arg: None, cond, ty };
        let Some(tree) = args.first() else { return Some(agg) };
        let mut checked = checked.into_iter();
        let arg = checked.next().flatten()?;
        if let (Some(second), Some(tree)) = (checked.next(), args.get(1)) {
            let second = (second?, tree);
            return self.agg_of_two(agg, func, (arg, &args[0]), second);
        }
        if matches!(f, AggFunc::Count | AggFunc::Rate(_)) && arg.ty == Type::Bool {
            agg.cond = lower::both(agg.cond, Some(arg));
            return Some(agg);
        }
        let (arg, ty) = self.agg_arg(f, func, arg, tree)?;
        (agg.arg, agg.ty) = (Some(arg), ty);
        Some(agg)
    }

    /// Reports a wrong number of arguments.
    fn miscounted(&mut self, f: AggFunc, name: &str, (most, found): (usize, usize), span: Span) {
        let example = match (f, name) {
            (AggFunc::Frequent(_), _) => "frequent(dport, 5)",
            (AggFunc::Histogram, _) => "histogram(len, 100)",
            (AggFunc::Quantile(_), "quantile") => "quantile(len, 0.95)",
            (AggFunc::Quantile(_), "percentile") => "percentile(len, 95)",
            _ => return self.wrong_arity(name, most, found, span),
        };
        let message = format!("`{name}` takes {most} arguments, not {found}");
        let d = Diagnostic::new(Code::WrongArity, span, message);
        self.report(d.help(format!("its second argument is a constant: `{example}`")));
    }

    /// An aggregate that is told a constant beside its argument.
    fn agg_of_two(
        &mut self,
        mut agg: Agg,
        func: &Name,
        (arg, tree): (Expr, &TreeExpr),
        (second, second_tree): (Expr, &TreeExpr),
    ) -> Option<Agg> {
        let whose = format!("the second argument of `{}`", func.node);
        let constant = self.constant_value(&second, second_tree.span, &whose);
        if agg.func == AggFunc::Histogram {
            let (step, constant) = ((second, second_tree), constant?);
            agg.arg = Some(self.steps(func, (arg, tree), step, &constant)?);
            agg.ty = Type::Str;
            return Some(agg);
        }
        agg.func = match agg.func {
            AggFunc::Quantile(_) => AggFunc::Quantile(self.share(func, &constant?, second_tree)?),
            AggFunc::Distinct => AggFunc::DistinctUpTo(self.limit(&constant?, second_tree)?),
            _ => AggFunc::Frequent(self.how_many(&constant?, second_tree)?),
        };
        let (arg, ty) = self.agg_arg(agg.func, func, arg, tree)?;
        (agg.arg, agg.ty) = (Some(arg), ty);
        Some(agg)
    }

    /// The share that a quantile is of, in millionths.
    fn share(&mut self, func: &Name, constant: &Value, tree: &TreeExpr) -> Option<u32> {
        let percent = func.node == "percentile";
        let most = if percent { 100.0 } else { 1.0 };
        let share = match constant {
            Value::Int(n) => *n as f64,
            Value::Float(f) => *f,
            _ => f64::NAN,
        };
        if (0.0..=most).contains(&share) {
            return Some((share / most * 1e6).round() as u32);
        }
        let message = format!("`{}` takes a share from 0 to {most}", func.node);
        let d = Diagnostic::new(Code::BadConstant, tree.span, message);
        self.report(match share {
            p if !percent && p > 1.0 && p <= 100.0 => {
                d.help(format!("write `{}`, or `percentile(…, {p})`", Value::Float(p / 100.0)))
            }
            _ => d,
        });
        None
    }

    /// Up to how many values a `distinct` is exact.
    fn limit(&mut self, constant: &Value, tree: &TreeExpr) -> Option<u64> {
        if let Value::Int(n @ 1..) = constant {
            return Some(*n as u64);
        }
        let message = "the limit up to which `distinct` is exact is a number above 0";
        let d = Diagnostic::new(Code::BadConstant, tree.span, message);
        self.report(d.help("write `distinct(x, 10k)`"));
        None
    }

    /// How many values a `frequent` shows.
    fn how_many(&mut self, constant: &Value, tree: &TreeExpr) -> Option<u32> {
        match constant {
            Value::Int(n) if (1..=FREQUENT_MAX as i64).contains(n) => Some(*n as u32),
            _ => {
                let message = format!("`frequent` shows from 1 to {FREQUENT_MAX} values");
                let d = Diagnostic::new(Code::BadConstant, tree.span, message);
                self.report(d.help(
                    "for longer lists `summarize` by the value, and take the `top` by count",
                ));
                None
            }
        }
    }

    /// The start of the step that each value of a histogram falls in.
    fn steps(
        &mut self,
        func: &Name,
        (arg, tree): (Expr, &TreeExpr),
        (step, step_tree): (Expr, &TreeExpr),
        constant: &Value,
    ) -> Option<Expr> {
        let arg = self.one_value(arg, tree.span)?;
        if !matches!(arg.ty, Type::Int | Type::Duration) {
            self.wrong_argument(&func.node, "an int or a duration", &arg, tree);
            return None;
        }
        if step.ty != arg.ty {
            self.wrong_argument(
                &func.node,
                &format!("{} as its step", a(&arg.ty)),
                &step,
                step_tree,
            );
            return None;
        }
        if let Value::Int(..=0) | Value::Duration(..=0) = constant {
            let message = "the steps of a histogram are more than 0";
            self.report(Diagnostic::new(Code::BadConstant, step_tree.span, message));
            return None;
        }
        let ty = arg.ty.clone();
        Some(Expr { ty, kind: ExprKind::Call(Func::Bin, vec![arg, step]) })
    }

    /// The argument as the aggregate wants it, and the type of the result.
    fn agg_arg(
        &mut self,
        f: AggFunc,
        func: &Name,
        arg: Expr,
        tree: &TreeExpr,
    ) -> Option<(Expr, Type)> {
        let of_tuples = match f {
            AggFunc::Distinct | AggFunc::DistinctUpTo(_) | AggFunc::ApproxDistinct => {
                Some(Type::Int)
            }
            AggFunc::Entropy => Some(Type::Float),
            _ => None,
        };
        if let (Some(ty), ExprKind::Tuple(parts)) = (of_tuples, &arg.kind) {
            self.key_fits(parts, tree.span);
            return Some((arg, ty));
        }
        let arg = self.one_value(arg, tree.span)?;
        let ty = arg.ty.clone();
        let (fits, wanted, result) = match f {
            AggFunc::Count
            | AggFunc::Late
            | AggFunc::Distinct
            | AggFunc::DistinctUpTo(_)
            | AggFunc::ApproxDistinct
            | AggFunc::EndReason
            | AggFunc::Completeness => (true, "", Type::Int),
            AggFunc::Entropy => (true, "", Type::Float),
            AggFunc::Frequent(_) | AggFunc::Histogram => (true, "", Type::Str),
            AggFunc::Quantile(_) => (ty.is_numeric(), "an int, a float or a duration", ty),
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
