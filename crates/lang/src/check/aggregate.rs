//! One aggregate of a `summarize`: its arguments, and the type of its result.

use super::Checker;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{AggItem, Expr as TreeExpr, Name};
use weir_plan::aggregates::{BuiltinAggregate, by_name};
use weir_plan::functions::Role;
use weir_plan::limits::FREQUENT_MAX;
use weir_plan::{Agg, AggFunc, BinaryOp, Expr, ExprKind, Func, Type, Value, Window};

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
                self.is_even(window, span).then_some(window.over().map(AggFunc::Rate)?)
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
        let mut agg = Agg { name: name.to_owned(), func: f, arg: None, cond, ty: Type::Int };
        if let AggFunc::User(i) = f {
            return self.registered(agg, i, checked, args, item.item.expr.span);
        }
        let Some(row) = by_name(&func.node).find(|row| row.takes.len() == args.len()) else {
            self.miscounted(&func.node, args.len(), item.item.expr.span);
            return None;
        };
        let mut checked = checked.into_iter().collect::<Option<Vec<Expr>>>()?;
        if row.condition && checked[0].ty == Type::Bool {
            agg.cond = lower::both(agg.cond, checked.pop());
            agg.ty = f.result(None).expect("it takes no argument");
            return Some(agg);
        }
        if row.takes.last().is_some_and(|parameter| parameter.role == Role::Constant) {
            let constant = checked.pop()?;
            (agg.func, agg.arg) = self.with_constant(row, checked, constant, args)?;
        } else if !checked.is_empty() {
            agg.arg = Some(self.agg_arg(row, checked, args)?);
        }
        let ty = agg.arg.as_ref().map(|arg| &arg.ty);
        agg.ty = row.result(ty).expect("all that the table asks was checked");
        Some(agg)
    }

    /// An aggregate that a program registered.
    fn registered(
        &mut self,
        mut agg: Agg,
        number: usize,
        checked: Vec<Option<Expr>>,
        trees: &[TreeExpr],
        span: Span,
    ) -> Option<Agg> {
        let signature = &self.signatures.aggregates[number];
        let (Ok([arg]), [tree]) = (<[_; 1]>::try_from(checked), trees) else {
            self.wrong_arity(&signature.name, 1, trees.len(), span);
            return None;
        };
        let arg = self.one_value(arg?, tree.span)?;
        if !lower::fits(&arg.ty, &signature.arg) {
            self.wrong_argument(&signature.name, &a(&signature.arg), &arg, tree);
            return None;
        }
        agg.arg = Some(lower::cast(arg, &signature.arg));
        agg.ty = signature.ret.clone();
        Some(agg)
    }

    /// Reports a wrong number of arguments.
    fn miscounted(&mut self, name: &str, found: usize, span: Span) {
        let most = by_name(name).map(|row| row.takes.len()).max().unwrap_or(0);
        let Some(example) = by_name(name).find_map(|row| row.example) else {
            return self.wrong_arity(name, most, found, span);
        };
        let message = format!("`{name}` takes {most} arguments, not {found}");
        let d = Diagnostic::new(Code::WrongArity, span, message);
        self.report(d.help(format!("its second argument is a constant: `{example}`")));
    }

    /// The function of an aggregate that takes a constant as its second argument, and its first.
    fn with_constant(
        &mut self,
        row: &BuiltinAggregate,
        args: Vec<Expr>,
        second: Expr,
        trees: &[TreeExpr],
    ) -> Option<(AggFunc, Option<Expr>)> {
        let tree = trees.last()?;
        let whose = format!("the second argument of `{}`", row.name());
        let constant = self.constant_value(&second, tree.span, &whose)?;
        let func = match row.func {
            AggFunc::Quantile(_) => AggFunc::Quantile(self.share(row.name(), &constant, tree)?),
            AggFunc::DistinctUpTo(_) => AggFunc::DistinctUpTo(self.limit(&constant, tree)?),
            AggFunc::Frequent(_) => AggFunc::Frequent(self.how_many(&constant, tree)?),
            func => func,
        };
        let mut arg = self.agg_arg(row, args, trees)?;
        if func == AggFunc::Histogram {
            arg = self.steps(row.name(), arg, (second, tree), &constant)?;
        }
        Some((func, Some(arg)))
    }

    /// The share that a quantile is of, in millionths.
    fn share(&mut self, name: &str, constant: &Value, tree: &TreeExpr) -> Option<u32> {
        let percent = name == "percentile";
        let most = if percent { 100.0 } else { 1.0 };
        let share = match constant {
            Value::Int(n) => *n as f64,
            Value::Float(f) => *f,
            _ => f64::NAN,
        };
        if (0.0..=most).contains(&share) {
            if percent && share > 0.0 && share < 1.0 {
                self.share_for_percent(share, tree);
            }
            return Some((share / most * 1e6).round() as u32);
        }
        let message = format!("`{name}` takes a share from 0 to {most}");
        let d = Diagnostic::new(Code::BadConstant, tree.span, message);
        self.report(match share {
            p if !percent && p > 1.0 && p <= 100.0 => {
                d.help(format!("write `{}`, or `percentile(…, {p})`", Value::Float(p / 100.0)))
            }
            _ => d,
        });
        None
    }

    /// Warns of a share where `percentile` takes percent.
    fn share_for_percent(&mut self, share: f64, tree: &TreeExpr) {
        let shown = tree.span.of(self.text);
        let message = format!("`percentile` takes percent, and {shown} is less than one");
        let d = Diagnostic::new(Code::OddConstant, tree.span, message);
        let percent = Value::Float((share * 1e6).round() / 1e4);
        let percent = percent.to_string();
        let percent = percent.strip_suffix(".0").unwrap_or(&percent);
        self.report(d.help(format!("for the share {shown} write `percentile(…, {percent})`")));
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
        name: &str,
        arg: Expr,
        (step, step_tree): (Expr, &TreeExpr),
        constant: &Value,
    ) -> Option<Expr> {
        if step.ty != arg.ty {
            self.wrong_argument(name, &format!("{} as its step", a(&arg.ty)), &step, step_tree);
            return None;
        }
        if let Value::Int(..=0) | Value::Duration(..=0) = constant {
            let message = "the steps of a histogram are more than 0";
            self.report(Diagnostic::new(Code::BadConstant, step_tree.span, message));
            return None;
        }
        let ty = arg.ty.clone();
        let bin = if ty == Type::Time { self.bin_of_time(&step) } else { Func::Bin };
        Some(Expr { ty, kind: ExprKind::Call(bin, vec![arg, step]) })
    }

    /// The arguments that are evaluated for each row, as the aggregate wants them.
    fn agg_arg(
        &mut self,
        row: &BuiltinAggregate,
        args: Vec<Expr>,
        trees: &[TreeExpr],
    ) -> Option<Expr> {
        if let (true, [Expr { kind: ExprKind::Tuple(parts), .. }]) = (row.tuples, &args[..]) {
            self.key_fits(parts, trees[0].span);
            return args.into_iter().next();
        }
        let mut values = Vec::new();
        for ((arg, tree), parameter) in args.into_iter().zip(trees).zip(row.values()) {
            let arg = self.one_value(arg, tree.span)?;
            if !parameter.types.contains(&arg.ty) {
                self.wrong_argument(row.name(), parameter.words, &arg, tree);
                return None;
            }
            values.push(arg);
        }
        if values.len() == 1 {
            return values.pop();
        }
        let types = values.iter().map(|value| value.ty.clone()).collect();
        Some(Expr { ty: Type::Tuple(types), kind: ExprKind::Tuple(values) })
    }
}
