//! `metric`: a name that Prometheus takes, and columns that fit its kind.

use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::Scope;
use crate::suggest;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Metric, Name};
use weir_plan::limits::{METRIC_HELP_MAX, METRIC_SERIES, METRIC_SERIES_MAX};
use weir_plan::metric::{is_label_name, is_metric_name, label_name};
use weir_plan::{
    AggFunc, Alert, Expr, ExprKind, Func, Input, Metric as Plan, MetricKind, Schema, Stage, Type,
    Value, Window,
};

/// The words of kinds.
const KINDS: [&str; 3] = ["gauge", "counter", "histogram"];

impl<'t> Checker<'t> {
    pub(super) fn metric(&mut self, built: &mut Built, m: &Metric, word: Span) -> Option<Stage> {
        let scope = &built.scope;
        if scope.packets && !scope.lenient {
            let message = "`metric` takes rows of columns, and these are packets";
            let d = Diagnostic::new(Code::NeedsColumns, word, message);
            self.report(d.help("count first: `| summarize n = count() by … every 10s | metric …`"));
            return None;
        }
        let name = self.metric_name(&m.name);
        let value = match &m.of {
            Some(name) => self.column(scope, name).map(Some),
            None => Some(None),
        };
        let kind = self.metric_kind(built, m, value?);
        let labels = match &m.keys[..] {
            [] => self.labels(scope, &self.default_keys(built), word),
            names => {
                let keys = self.label_columns(scope, names)?;
                self.labels(scope, &keys, names[0].span)
            }
        };
        let max = self.max_or(scope, m.max.as_ref(), METRIC_SERIES);
        let max = max.filter(|max| self.few_series(*max, m.max.as_ref()));
        let help = self.metric_help(m.help.as_ref());
        let ts = scope.position("ts").filter(|at| scope.schema.columns[*at].ty == Type::Time);
        let over_ns = self.window_before(built);
        let (name, value, kind, labels) = (name?, value?, kind?, labels?);
        let (max_series, help) = (max?, help?);
        if matches!(kind, MetricKind::Histogram(_)) && labels.iter().any(|(name, _)| name == "le") {
            let message = "a histogram has a label `le` of its own";
            let d = Diagnostic::new(Code::ColumnClash, word, message);
            self.report(d.help("give the column another name: `| rename bound = le`"));
            return None;
        }
        Some(Stage::Metric(Box::new(Plan {
            name,
            kind,
            value,
            labels,
            max_series,
            help,
            ts,
            over_ns,
        })))
    }

    fn metric_name(&mut self, e: &TreeExpr) -> Option<String> {
        let Tree::Literal { value: Value::Str(name), .. } = &e.node else { return None };
        let name = name.strip_suffix("_total").unwrap_or(name);
        if is_metric_name(name) {
            return Some(name.to_owned());
        }
        let message = "a metric has a name of letters, digits and `_`, and no digit first";
        let d = Diagnostic::new(Code::BadConstant, e.span, message);
        let known = label_name(name);
        let help = is_metric_name(&known).then(|| format!("write it `\"{known}\"`"));
        self.report(d.maybe_help(help));
        None
    }

    fn metric_help(&mut self, e: Option<&TreeExpr>) -> Option<String> {
        let Some(e) = e else { return Some(String::new()) };
        let Tree::Literal { value: Value::Str(text), .. } = &e.node else { return None };
        if text.len() <= METRIC_HELP_MAX {
            return Some(text.to_string());
        }
        let message = format!("the help of a metric has at most {METRIC_HELP_MAX} bytes");
        self.report(Diagnostic::new(Code::TooLarge, e.span, message));
        None
    }

    fn few_series(&mut self, max: u64, e: Option<&TreeExpr>) -> bool {
        let Some(e) = e.filter(|_| max > METRIC_SERIES_MAX) else { return true };
        let message = format!("a metric has at most {METRIC_SERIES_MAX} series");
        let d = Diagnostic::new(Code::BadConstant, e.span, message);
        self.report(d.note("each series costs memory in every server that reads it"));
        false
    }

    /// The kind, if the column of the value fits it.
    fn metric_kind(&mut self, built: &Built, m: &Metric, at: Option<usize>) -> Option<MetricKind> {
        let kind = match m.kind.node.as_str() {
            "gauge" => MetricKind::Gauge,
            "counter" => MetricKind::Counter,
            "histogram" => {
                return self.histogram(built, m, at);
            }
            word => {
                let message = format!("there is no kind of metric `{word}`");
                let d = Diagnostic::new(Code::BadConstant, m.kind.span, message);
                let near = suggest::did_you_mean(word, KINDS);
                self.report(d.note(format!("kinds: {}", KINDS.join(" "))).maybe_help(near));
                return None;
            }
        };
        let (Some(of), Some(at)) = (&m.of, at) else {
            if kind == MetricKind::Counter {
                return Some(kind);
            }
            let message = "a gauge needs to know which column it shows";
            let d = Diagnostic::new(Code::Unexpected, m.kind.span, message);
            self.report(d.help("add `of COLUMN`"));
            return None;
        };
        let ty = &built.scope.schema.columns[at].ty;
        if kind.takes(ty) {
            return Some(kind);
        }
        let message = format!("a {} is of numbers, and `{}` is {}", kind.word(), of.node, a(ty));
        self.report(Diagnostic::new(Code::TypeMismatch, of.span, message));
        None
    }

    /// A histogram, whose column comes from `histogram()` in the latest `summarize`, perhaps under
    /// another name since.
    fn histogram(&mut self, built: &Built, m: &Metric, at: Option<usize>) -> Option<MetricKind> {
        let step = at.and_then(|at| self.histogram_steps(built).into_iter().nth(at).flatten());
        if let Some(step) = step {
            return Some(MetricKind::Histogram(step));
        }
        let (span, message) = match &m.of {
            Some(of) => {
                let message = format!(
                    "`{}` does not come from `histogram()` in the `summarize` before",
                    of.node
                );
                (of.span, message)
            }
            None => (m.kind.span, "a histogram needs to know which column it shows".to_owned()),
        };
        let d = Diagnostic::new(Code::TypeMismatch, span, message);
        self.report(d.help(
            "as in `| summarize h = histogram(len, 100) every 10s | metric histogram \"x\" of h`",
        ));
        None
    }

    /// Of each column, the step of the histogram that it is.
    fn histogram_steps(&self, built: &Built) -> Vec<Option<Value>> {
        let mut chain = vec![&built.stages];
        let mut input = built.input;
        while let Input::Pipeline(n) = input {
            chain.push(&self.built[n].stages);
            input = self.built[n].input;
        }
        let (mut steps, mut schema) = (Vec::new(), Schema::default());
        for stage in chain.into_iter().rev().flatten() {
            steps = steps_after(stage, steps, &schema);
            schema = stage.output(&schema);
            steps.resize(schema.columns.len(), None);
        }
        steps
    }

    /// The columns that the names after `by` mean.
    fn label_columns(&mut self, scope: &Scope, names: &[Name]) -> Option<Vec<(String, usize)>> {
        let mut all: Vec<(String, usize)> = Vec::new();
        let mut sound = true;
        for name in names {
            let parts: Vec<&str> = match self.key_fields(scope, &name.node) {
                Some(key) if scope.position(&name.node).is_none() => {
                    key.into_iter().map(|part| part.info().name).collect()
                }
                _ => vec![&name.node],
            };
            for part in parts {
                let part = Name { node: part.to_owned(), span: name.span };
                match self.column(scope, &part) {
                    Some(at) if all.iter().any(|(_, known)| *known == at) => {}
                    Some(at) => all.push((part.node, at)),
                    None => sound = false,
                }
            }
        }
        sound.then_some(all)
    }

    /// Labels for columns.
    fn labels(
        &mut self,
        scope: &Scope,
        columns: &[(String, usize)],
        span: Span,
    ) -> Option<Vec<(String, usize)>> {
        let mut labels: Vec<(String, usize)> = Vec::new();
        for (name, at) in columns {
            let label = label_name(name);
            let message = match labels.iter().find(|(known, _)| *known == label) {
                Some((_, other)) => {
                    let other = &scope.schema.columns[*other].name;
                    format!("`{other}` and `{name}` would both be the label `{label}`")
                }
                None if !is_label_name(&label) => {
                    format!("Prometheus keeps names such as `{label}` for itself")
                }
                None => {
                    labels.push((label, *at));
                    continue;
                }
            };
            let d = Diagnostic::new(Code::ColumnClash, span, message);
            self.report(d.help(format!("give it another name before: `| rename NAME = {name}`")));
            return None;
        }
        Some(labels)
    }

    /// The position of a column.
    fn column(&mut self, scope: &Scope, name: &Name) -> Option<usize> {
        match self.name(scope, &name.node, name.span)?.kind {
            ExprKind::Column(at) => Some(at),
            _ => {
                let message = format!("a metric is of columns, and `{}` is none", name.node);
                let d = Diagnostic::new(Code::NotAColumn, name.span, message);
                self.report(d.help(format!("make it one before: `| extend x = {}`", name.node)));
                None
            }
        }
    }
}

/// Of each column after a stage, the step of the histogram that it is, as far as columns have one.
fn steps_after(stage: &Stage, mut steps: Vec<Option<Value>>, input: &Schema) -> Vec<Option<Value>> {
    let same = |steps: &[Option<Value>], e: &Expr| match e.kind {
        ExprKind::Column(at) => steps.get(at).cloned().flatten(),
        _ => None,
    };
    match stage {
        Stage::Summarize(s) => {
            let before = usize::from(s.window != Window::All) + s.keys.len();
            let of_aggs = s.aggs.iter().map(|agg| {
                let arg = agg.arg.as_ref().filter(|_| agg.func == AggFunc::Histogram);
                arg.and_then(step_of)
            });
            std::iter::repeat_n(None, before).chain(of_aggs).collect()
        }
        Stage::Project { columns } | Stage::Reshape { columns, .. } => {
            columns.iter().map(|(_, e)| same(&steps, e)).collect()
        }
        Stage::Extend { columns } => {
            let made: Vec<_> = columns.iter().map(|(_, at, e)| (*at, same(&steps, e))).collect();
            let width = made.iter().map(|(at, _)| at + 1).max().unwrap_or(0);
            steps.resize(steps.len().max(width), None);
            made.into_iter().for_each(|(at, step)| steps[at] = step);
            steps
        }
        Stage::Alert(alert) => {
            let evidence = alert.evidence(input).map(|at| steps.get(at).cloned().flatten());
            std::iter::repeat_n(None, Alert::COLUMNS).chain(evidence).collect()
        }
        Stage::Where(_) | Stage::Top { .. } | Stage::Limit(_) | Stage::Distinct(_) => steps,
        Stage::Sample(_) | Stage::Ends(_) | Stage::Capture(_) | Stage::Metric(_) => steps,
        Stage::Deduplicate(_) => steps,
        // Columns may be others than before.
        _ => Vec::new(),
    }
}

/// The step of the argument of a `histogram`.
fn step_of(arg: &Expr) -> Option<Value> {
    let ExprKind::Call(Func::Bin, parts) = &arg.kind else { return None };
    match &parts.get(1)?.kind {
        ExprKind::Const(step @ (Value::Int(_) | Value::Duration(_))) => Some(step.clone()),
        _ => None,
    }
}
