//! Stages, but for `summarize`, `scan` and ends.

use super::anonymize::field_here;
use super::ends::until_last_end;
use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::limits::KEY_VALUE_WORDS_MAX;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Item, Spanned, Stage};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::limits::COLUMNS_MAX;
use weir_plan::{Expr, Pipeline, Schema, Value};

/// The plan of a pipeline. `numbers` are those that pipelines have in the program.
pub(super) fn finish(built: Built, printed: bool, numbers: &[usize]) -> Pipeline {
    let (mut stages, mut schema) = (built.stages, built.scope.schema.clone());
    if built.scope.packets && !printed {
        // Only what goes out on the way is of interest.
        stages.truncate(until_last_end(&stages));
        schema = Schema::default();
    } else if built.scope.packets {
        let column = |name: &String| {
            let field = || built.scope.field(name).expect("in the catalogue");
            let e = match schema.position(name) {
                Some(i) => Expr::column(i, schema.columns[i].ty.clone()),
                None => field_here(&built.scope, field()),
            };
            (name.clone(), e)
        };
        let columns: Vec<(String, Expr)> = built.scope.listed.iter().map(column).collect();
        schema.columns.clear();
        columns.iter().for_each(|(name, e)| {
            schema.put(name, e.ty.clone());
        });
        stages.push(weir_plan::Stage::Project { columns });
    }
    let Built { name, input, .. } = built;
    let mut pipeline = Pipeline { name, input, stages, schema, printed };
    pipeline.renumber(|i| numbers[i]);
    pipeline
}

/// A column that a stage puts out: its name and place, and its expression unless that is wrong.
pub(super) type NewColumn = (String, Span, Option<Expr>);

/// The columns of some items.
pub(super) struct NewColumns {
    pub(super) columns: Vec<NewColumn>,
    /// Whether there are more, for which rows have no room.
    pub(super) beyond: bool,
}

impl<'t> Checker<'t> {
    pub(super) fn stage(&mut self, built: &mut Built, stage: &Spanned<Stage>) {
        let plan = match &stage.node {
            Stage::Where(e) => {
                self.condition(&built.scope, e, "`where`").map(weir_plan::Stage::Where)
            }
            Stage::Extend(items) => self.extend(&mut built.scope, items),
            Stage::Project(items) => {
                self.project(&mut built.scope, items, word_span(stage, "project"))
            }
            Stage::ProjectAway(items) => {
                self.project_away(&mut built.scope, items, word_span(stage, "project-away"))
            }
            Stage::Rename(items) => self.rename(&mut built.scope, items),
            Stage::Summarize(s) => {
                self.summarize(&mut built.scope, s, word_span(stage, "summarize"))
            }
            Stage::Scan(scan) => self.scan(&mut built.scope, scan),
            Stage::AnalyzeTcp(a) => {
                self.analyze_tcp(&mut built.scope, a, word_span(stage, "analyze"))
            }
            Stage::Top(top) => self.top(&built.scope, top),
            Stage::Distinct(d) => self.distinct(&built.scope, d),
            Stage::Deduplicate(d) => self.deduplicate(built, d, word_span(stage, "deduplicate")),
            Stage::Hello(h) => self.hello(built, h, word_span(stage, "hello")),
            Stage::Sample(sample) => self.sample(&built.scope, sample),
            Stage::Each(item) => self.each(built, item),
            Stage::Capture(c) => self.capture(built, c, word_span(stage, "capture")),
            Stage::Metric(m) => self.metric(built, m, word_span(stage, "metric")),
            Stage::Alert(alert) => self.alert(built, alert, word_span(stage, "alert")),
            Stage::Limit(n) => {
                self.positive(&built.scope, n, "`limit`").map(weir_plan::Stage::Limit)
            }
            Stage::Join(join) => self.join(built, join, word_span(stage, "join")),
            Stage::Union(names) => self.union(built, names, word_span(stage, "union")),
            Stage::Act(act) => self.act_stage(built, act, stage.span),
            Stage::Branch(arms) => self.branch(built, arms, stage.span),
            Stage::Print | Stage::Broken { harmless: true } => None,
            Stage::Unsupported(_) | Stage::Broken { .. } => {
                built.scope.lenient = true;
                None
            }
        };
        let exactness = match &plan {
            Some(weir_plan::Stage::Summarize(s)) => {
                self.exactness(&mut built.scope, s, word_span(stage, "summarize"))
            }
            _ => None,
        };
        built.stages.extend(plan.into_iter().chain(exactness));
        if built.scope.schema.columns.len() > COLUMNS_MAX {
            self.too_many_columns(stage.span);
            built.scope.schema.columns.truncate(COLUMNS_MAX);
            built.scope.lenient = true;
        }
    }

    /// A whole number above zero.
    pub(super) fn positive(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<u64> {
        match self.constant(scope, e, &format!("the number of {whose}"))? {
            Value::Int(n) if n > 0 => Some(n as u64),
            Value::Int(_) => {
                let message = format!("the number of {whose} must be more than 0");
                self.report(Diagnostic::new(Code::BadConstant, e.span, message));
                None
            }
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                let message = format!("{whose} takes a whole number, and this is {found}");
                self.report(Diagnostic::new(Code::BadConstant, e.span, message));
                None
            }
        }
    }

    /// The `max` of a stage, or its default.
    pub(super) fn max_or(
        &mut self,
        scope: &Scope,
        e: Option<&TreeExpr>,
        default: u64,
    ) -> Option<u64> {
        e.map_or(Some(default), |e| self.positive(scope, e, "`max`"))
    }

    /// A duration above zero, or the default, in nanoseconds.
    pub(super) fn span_or(
        &mut self,
        scope: &Scope,
        e: Option<&TreeExpr>,
        whose: &str,
        default: i64,
    ) -> Option<i64> {
        e.map_or(Some(default), |e| self.span_of_time(scope, e, whose))
    }

    /// A duration above zero where one is given, in nanoseconds.
    pub(super) fn span_if_given(
        &mut self,
        scope: &Scope,
        e: Option<&TreeExpr>,
        whose: &str,
    ) -> Option<Option<i64>> {
        e.map_or(Some(None), |e| self.span_of_time(scope, e, whose).map(Some))
    }

    /// A duration above zero, in nanoseconds.
    pub(super) fn span_of_time(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<i64> {
        match self.constant(scope, e, &format!("the duration of {whose}"))? {
            Value::Duration(ns) if ns > 0 => Some(ns),
            Value::Duration(_) => {
                let message = format!("the duration of {whose} must be more than 0");
                self.report(Diagnostic::new(Code::BadConstant, e.span, message));
                None
            }
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                let message = format!("{whose} takes a duration, and this is {found}");
                let d = Diagnostic::new(Code::BadConstant, e.span, message);
                self.report(match v {
                    Value::Int(n) if n > 0 && whose == "`every`" => {
                        d.help(format!("say the unit: `{n}s`, or `{n} rows`"))
                    }
                    Value::Int(n) if n > 0 => d.help(format!("say the unit: `{n}s`")),
                    _ => d.help("durations are written `10s`, `250ms`, `1.5h`"),
                });
                None
            }
        }
    }

    /// Reports a column for which rows have no room.
    pub(super) fn too_many_columns(&mut self, span: Span) {
        let message = format!("rows have at most {COLUMNS_MAX} columns");
        self.report(Diagnostic::new(Code::TooLarge, span, message));
    }

    /// The items whose columns have room in rows with the columns `before`. Reports the first that
    /// has none: from there on they are not checked, which would compare each with all before it.
    pub(super) fn with_room<'i>(&mut self, before: &Schema, items: &'i [Item]) -> &'i [Item] {
        let mut names: BTreeSet<&str> = before.columns.iter().map(|c| c.name.as_str()).collect();
        for (i, item) in items.iter().enumerate() {
            names.extend(item.name.as_ref().map(|name| name.node.as_str()));
            // More items than columns have a name twice, which is wrong as well.
            if names.len() > COLUMNS_MAX || i >= COLUMNS_MAX {
                self.too_many_columns(item.span());
                return &items[..i];
            }
        }
        items
    }

    /// Reports two columns of one name.
    pub(super) fn distinct_names(&mut self, columns: &[NewColumn]) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for (name, span, _) in columns {
            if let Some(first) = seen.insert(name, *span) {
                let d = Diagnostic::new(
                    Code::ColumnClash,
                    *span,
                    format!("two columns are called `{name}`"),
                );
                self.report(
                    d.note_at(first, "the first").help("give one another name: `NAME = …`"),
                );
            }
        }
    }

    fn extend(&mut self, scope: &mut Scope, items: &[Item]) -> Option<weir_plan::Stage> {
        let mut columns = Vec::new();
        let (given, items) = (items.len(), self.with_room(&scope.schema, items));
        scope.pending = names_of(items.iter());
        for item in items {
            let e = self.scalar(scope, &item.expr);
            if let Some(name) = &item.name {
                if let Some(e) = &e {
                    self.warn_of_whole_share(scope, &name.node, (e, &item.expr));
                }
                columns.push((name.node.clone(), name.span, e));
            }
        }
        scope.pending.clear();
        self.distinct_names(&columns);
        let mut out = Vec::new();
        for (name, span, e) in columns {
            scope.replaces(&name, span);
            let position = scope.put(&name, e.as_ref().map(|e| e.ty.clone()));
            out.extend(e.map(|e| (name, position, e)));
        }
        scope.lenient |= items.len() < given;
        Some(weir_plan::Stage::Extend { columns: out })
    }

    fn project(
        &mut self,
        scope: &mut Scope,
        items: &[Item],
        span: Span,
    ) -> Option<weir_plan::Stage> {
        scope.pending = names_of(items.iter());
        let NewColumns { columns, beyond } = self.all_columns(scope, items, "project", 0);
        self.distinct_names(&columns);
        let mut after = scope.reduced("project", span, scope.time);
        after.lenient |= beyond;
        for item in items.iter().take(COLUMNS_MAX) {
            if let Some((name, e)) = item.name.as_ref().and_then(|name| {
                let column = columns.iter().find(|(found, ..)| *found == name.node);
                Some((name, column?.2.as_ref()?))
            }) {
                self.warn_of_whole_share(&mut after, &name.node, (e, &item.expr));
            }
        }
        let mut out = Vec::new();
        for (name, _, e) in columns {
            after.put(&name, e.as_ref().map(|e| e.ty.clone()));
            out.extend(e.map(|e| (name, e)));
        }
        *scope = after;
        Some(weir_plan::Stage::Project { columns: out })
    }

    /// The columns of the items of `project` or `by`, beside `others`, up to the first for which
    /// rows have no room, which is reported.
    pub(super) fn all_columns(
        &mut self,
        scope: &Scope,
        items: &[Item],
        word: &str,
        others: usize,
    ) -> NewColumns {
        let (mut columns, most) = (Vec::new(), COLUMNS_MAX - others);
        for item in items {
            columns.extend(self.columns(scope, item, word));
            if let Some((_, span, _)) = columns.get(most) {
                self.too_many_columns(*span);
                columns.truncate(most);
                return NewColumns { columns, beyond: true };
            }
        }
        NewColumns { columns, beyond: false }
    }

    /// The columns of one item of `project` or `by`: named, named by itself, or a key that spreads
    /// into its fields.
    fn columns(&mut self, scope: &Scope, item: &Item, word: &str) -> Vec<NewColumn> {
        if let Some(name) = &item.name {
            let e = self.scalar(scope, &item.expr);
            return vec![(name.node.clone(), name.span, e)];
        }
        let span = item.expr.span;
        let Tree::Name(name) = &item.expr.node else {
            if self.scalar(scope, &item.expr).is_some() {
                let message = "this column needs a name";
                let text = crate::excerpt::one_line(span.of(self.text));
                let d = Diagnostic::new(Code::NeedsName, span, message);
                self.report(d.help(format!("write `{word} NAME = {text}`")));
            }
            return Vec::new();
        };
        let plain = scope.position(name).is_some() || scope.poisoned.contains(name);
        match self.key_fields(scope, name).filter(|_| !plain) {
            Some(key) => key
                .into_iter()
                .map(|part| {
                    let field = part.info().name;
                    (field.to_owned(), span, self.name(scope, field, span))
                })
                .collect(),
            None => vec![(name.clone(), span, self.scalar(scope, &item.expr))],
        }
    }

    /// Reports a key that is too wide.
    pub(super) fn key_fits(&mut self, keys: &[Expr], span: Span) {
        let words: usize = keys.iter().map(|e| e.ty.repr().words().max(1)).sum();
        if words > KEY_VALUE_WORDS_MAX {
            let message = format!(
                "this key takes {words} words of 64 bits, of at most {KEY_VALUE_WORDS_MAX}"
            );
            let d = Diagnostic::new(Code::TooLarge, span, message);
            self.report(d.note("an ip takes two words, anything else one"));
        }
    }
}

/// The names that items give, as many as there can be columns.
pub(super) fn names_of<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let names = items.filter_map(|item| Some(item.name.as_ref()?.node.clone()));
    names.take(COLUMNS_MAX).collect()
}

/// Where the word of a stage stands.
fn word_span(stage: &Spanned<Stage>, word: &str) -> Span {
    Span::new(stage.span.start, stage.span.start + word.len())
}
