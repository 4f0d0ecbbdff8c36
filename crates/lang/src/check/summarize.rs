//! `summarize`: keys, aggregates, windows.

use super::Checker;
use super::stage::{NewColumn, NewColumns, names_of};
use super::words::say;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::names::{EventTime, Scope};
use crate::suggest;
use crate::tree::{AggItem, Expr as TreeExpr, ExprKind as Tree, Name, Summarize};
use weir_plan::aggregates::{AGGREGATES, BuiltinAggregate, by_name};
use weir_plan::limits::{COLUMNS_MAX, GROUPS_MAX, SESSIONS_MAX};
use weir_plan::{Agg, AggFunc, Expr, Type, Window};

impl<'t> Checker<'t> {
    pub(super) fn summarize(
        &mut self,
        scope: &mut Scope,
        s: &Summarize,
        word: Span,
    ) -> Option<weir_plan::Stage> {
        let window = self.windows(scope, s, word);
        let lateness_ns = self.lateness(scope, s, window);
        let fill = self.fill(scope, s);
        let until = self.session_condition(scope, s.sessions.until.as_ref(), "`until`");
        let unless = self.session_condition(scope, s.sessions.unless.as_ref(), "`unless`");
        scope.pending = names_of(s.keys.iter().chain(s.aggs.iter().map(|a| &a.item)));
        let time = [&s.sessions.gap, &s.every, &s.over].into_iter().flatten().next();
        let times = usize::from(time.is_some());
        let NewColumns { columns: keys, beyond } = self.all_columns(scope, &s.keys, "by", times);
        let room = COLUMNS_MAX - times - keys.len();
        let aggs = s.aggs.iter().take(room).map(|item| self.agg_column(scope, item, window));
        let aggs: Vec<_> = aggs.collect();
        if let Some(agg) = s.aggs.get(room).filter(|_| !beyond) {
            self.too_many_columns(agg.item.span());
        }
        let default = if s.has_sessions() { SESSIONS_MAX } else { GROUPS_MAX };
        let max = self.max_or(scope, s.max.as_ref(), default);
        let found: Vec<Expr> = keys.iter().filter_map(|(.., e)| e.clone()).collect();
        self.key_fits(&found, s.keys.first().map_or(word, |k| k.span()));

        let mut columns = Vec::new();
        if let Some(e) = time {
            columns.push(("ts".to_owned(), e.span, Some(Type::Time)));
        }
        let typed =
            |(name, span, e): &NewColumn| (name.clone(), *span, e.as_ref().map(|e| e.ty.clone()));
        columns.extend(keys.iter().map(typed));
        columns.extend(
            aggs.iter()
                .flatten()
                .map(|(name, span, agg)| (name.clone(), *span, agg.as_ref().map(|a| a.ty.clone()))),
        );
        let named: Vec<NewColumn> = columns.iter().map(|(n, s, _)| (n.clone(), *s, None)).collect();
        self.distinct_names(&named);
        let windowed = s.every.is_some() || s.over.is_some();
        let time = match windowed {
            _ if s.has_sessions() => EventTime::Session,
            // Rows of a window come out as long as further keys come: none is over before the end.
            true if s.fill.as_ref().is_some_and(|fill| fill.from_start) => EventTime::None(word),
            true => EventTime::Window,
            false => EventTime::None(word),
        };
        let mut after = scope.reduced("summarize", word, time);
        after.lenient |= aggs.iter().any(Option::is_none) || beyond || room < s.aggs.len();
        for (name, _, ty) in columns {
            after.put(&name, ty);
        }
        *scope = after;

        let keys = keys.into_iter().map(|(name, _, e)| Some((name, e?))).collect::<Option<_>>()?;
        let aggs = aggs.into_iter().map(|agg| agg?.2).collect::<Option<_>>()?;
        Some(weir_plan::Stage::Summarize(weir_plan::Summarize {
            keys,
            aggs,
            zone: window.and_then(|window| self.zone_of(window)),
            window: window?,
            lateness_ns: lateness_ns?,
            fill: fill?,
            until: until?,
            unless: unless?,
            max_groups: max?,
        }))
    }

    /// Name and place of the column of an aggregate, and the aggregate unless it is wrong. `None`
    /// if not even its name is known.
    fn agg_column(
        &mut self,
        scope: &Scope,
        item: &AggItem,
        window: Option<Window>,
    ) -> Option<(String, Span, Option<Agg>)> {
        let expr = &item.item.expr;
        let call = match &expr.node {
            Tree::Call { func, args } => self.agg_func(func).map(|f| (f, func, args)),
            _ => None,
        };
        let Some((f, func, args)) = call else {
            self.not_an_aggregate(scope, item);
            return item.item.name.as_ref().map(|name| (name.node.clone(), name.span, None));
        };
        let (name, span) = match &item.item.name {
            Some(name) => (name.node.clone(), name.span),
            None => (self.default_name(func, args, expr.span)?, expr.span),
        };
        let f = self.of_window(f, window, expr.span);
        let f = f.filter(|f| *f != AggFunc::Completeness || self.is_whole(scope, item));
        let agg = f.and_then(|f| self.agg(scope, &name, (f, func), args, item));
        Some((name, span, agg))
    }

    fn agg_func(&self, func: &Name) -> Option<AggFunc> {
        let built_in = by_name(&func.node).next().map(|row| row.func);
        let users = &self.signatures.aggregates;
        built_in.or(users.iter().position(|f| f.name == func.node).map(AggFunc::User))
    }

    /// `count`, `sum_len`, `distinct_ip_src`.
    fn default_name(&mut self, func: &Name, args: &[TreeExpr], span: Span) -> Option<String> {
        match args {
            [] => Some(func.node.clone()),
            [TreeExpr { node: Tree::Name(arg), .. }] => {
                Some(format!("{}_{}", func.node, arg.replace('.', "_")))
            }
            _ => {
                let text = one_line(span.of(self.text));
                let d = Diagnostic::new(Code::NeedsName, span, "this aggregate needs a name");
                self.report(d.help(format!("write `NAME = {text}`")));
                None
            }
        }
    }

    fn not_an_aggregate(&mut self, scope: &Scope, item: &AggItem) {
        let expr = &item.item.expr;
        if let Tree::Call { func, .. } = &expr.node
            && self.work_of_another(func)
        {
            return;
        }
        let d = Diagnostic::new(
            Code::NotAnAggregate,
            expr.span,
            format!("{} is not an aggregate", say(self.text, expr.span)),
        );
        let d = match &expr.node {
            Tree::Error => return,
            Tree::Name(name) if self.is_aggregate(name) => {
                d.help(format!("an aggregate is called: `{name}(…)`"))
            }
            Tree::Name(name) => d.help(format!(
                "a value to group by stands after `by`; of a group, take `first({name})`"
            )),
            Tree::Call { func, .. } if !self.calls_aggregate(expr) => {
                let known = AGGREGATES.iter().map(|row| row.name());
                let near = suggest::function(&func.node).or(suggest::closest(&func.node, known));
                let help = near.map(|near| format!("did you mean `{near}`?"));
                d.maybe_help(help.or_else(|| {
                    let mut all: Vec<_> = AGGREGATES.iter().map(BuiltinAggregate::name).collect();
                    all.dedup();
                    Some(format!("aggregates: {}", all.join(" ")))
                }))
            }
            _ if self.calls_aggregate(expr) => d.help(
                "give each aggregate a name, and compute with the names in an `extend` after it",
            ),
            _ => {
                // A mistake within it is the better message.
                let reported = self.diagnostics.len();
                if self.root(scope, expr).is_none() && self.diagnostics.len() > reported {
                    return;
                }
                d.help("a column of its own is made by `extend`, in a stage before or after")
            }
        };
        self.report(d);
    }
}
