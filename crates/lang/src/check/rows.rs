//! Stages that choose rows and take them apart: `top`, `distinct`, `sample`, `each`.

use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::names::{EventTime, Scope};
use crate::suggest;
use crate::tree::{Deduplicate, Distinct, Expr as TreeExpr, ExprKind as Tree, Item, Sample, Top};
use weir_packet::fields;
use weir_packet::repeated::{self, REPEATED};
use weir_plan::limits::{DISTINCT_KEYS_MAX, TOP_KEYS_MAX};
use weir_plan::place::is_local;
use weir_plan::{Each, Expr, ExprKind, Order, Parts, Per, SampleBy, Stage, Type, Value};

/// Parts of a percent that a share may name.
const PERCENT_STEPS: f64 = 1e9;

impl<'t> Checker<'t> {
    pub(super) fn top(&mut self, scope: &Scope, top: &Top) -> Option<Stage> {
        let n = self.positive(scope, &top.n, "`top`");
        let mut by = Vec::new();
        let mut sound = true;
        for key in &top.by {
            let Some(e) = self.root(scope, &key.expr) else {
                sound = false;
                continue;
            };
            if !e.ty.is_ordered() {
                let message = format!("rows cannot be sorted by {}: it has no order", a(&e.ty));
                let d = Diagnostic::new(Code::NotOrdered, key.expr.span, message);
                let bool = e.ty == Type::Bool;
                self.report(if bool { d.help("`int(x)` is 1 for true, 0 for false") } else { d });
                sound = false;
                continue;
            }
            let ascending = key.ascending == Some(true);
            let order = if ascending { Order::Ascending } else { Order::Descending };
            let parts = match e.kind {
                ExprKind::Tuple(parts) => parts,
                kind => vec![Expr { ty: e.ty, kind }],
            };
            by.extend(parts.into_iter().map(|expr| weir_plan::SortKey { expr, order }));
        }
        let per = self.per(scope, top);
        let windowed = scope.time == EventTime::Window;
        let (n, per) = (n?, per?);
        sound.then_some(Stage::Top { n, by, windowed, per })
    }

    /// The keys of a `top … per`; `None` after a mistake.
    fn per(&mut self, scope: &Scope, top: &Top) -> Option<Option<Per>> {
        let keys = self.key_parts(scope, &top.per)?;
        let max_keys = self.max_or(scope, top.max.as_ref(), TOP_KEYS_MAX)?;
        Some((!keys.is_empty()).then_some(Per { keys, max_keys }))
    }

    pub(super) fn distinct(&mut self, scope: &Scope, d: &Distinct) -> Option<Stage> {
        let keys = self.key_parts(scope, &d.keys);
        let idle = match &d.idle {
            Some(e) => self.idle_of_rows(scope, e),
            None => Some(i64::MAX),
        };
        let max = self.max_or(scope, d.max.as_ref(), DISTINCT_KEYS_MAX);
        let windowed = scope.time == EventTime::Window;
        if windowed && d.idle.is_none() {
            self.warn_of_windows(d);
        }
        let (keys, idle_ns, max_keys) = (keys?, idle?, max?);
        Some(Stage::Distinct(weir_plan::Distinct { keys, windowed, idle_ns, max_keys }))
    }

    /// Warns that a key comes once in each window, unless the time of the window is part of it.
    fn warn_of_windows(&mut self, d: &Distinct) {
        let name = |e: &TreeExpr| matches!(&e.node, Tree::Name(name) if name == "ts");
        let (Some(first), Some(last)) = (d.keys.first(), d.keys.last()) else { return };
        if d.keys.iter().any(name) {
            return;
        }
        let message = "these rows are of windows, and `distinct` starts anew with each of them";
        let span = first.span.to(last.span);
        let keys = one_line(span.of(self.text));
        let d = Diagnostic::new(Code::DistinctPerWindow, span, message);
        self.report(d.help(format!(
            "write `distinct ts, {keys}` where that is meant; for one row in the whole run put \
             `distinct` before the windows, or leave the windows out"
        )));
    }

    pub(super) fn deduplicate(
        &mut self,
        built: &mut Built,
        d: &Deduplicate,
        span: Span,
    ) -> Option<Stage> {
        let within = self.span_of_time(&built.scope, &d.within, "`within`");
        let max = self.max_or(&built.scope, d.max.as_ref(), DISTINCT_KEYS_MAX);
        let word = "deduplicate";
        self.packets_at_hand(built, (word, word, "compares packets"), span)?;
        if built.stages.iter().any(|stage| matches!(stage, Stage::Each(_))) {
            let message = "`deduplicate` stands after `each`, whose rows are all of one packet";
            let d = Diagnostic::new(Code::FieldGone, span, message)
                .label("would drop all but the first of them")
                .help("put `deduplicate` before `each`");
            self.report(d);
            return None;
        }
        let (keys, within_ns, max_packets) = (weir_plan::Deduplicate::fields(), within?, max?);
        Some(Stage::Deduplicate(weir_plan::Deduplicate { keys, within_ns, max_packets }))
    }

    /// An `idle` of rows whose time passes.
    fn idle_of_rows(&mut self, scope: &Scope, e: &TreeExpr) -> Option<i64> {
        let (message, help) = match scope.time {
            EventTime::Packet | EventTime::Session => {
                return self.span_of_time(scope, e, "`idle`");
            }
            EventTime::Window => (
                "`idle` says nothing here: each window is looked at by itself",
                "leave it out, or put `distinct` before the windows",
            ),
            EventTime::None(_) => {
                ("`idle` needs rows with a time, and these have none", "leave it out")
            }
        };
        let d = Diagnostic::new(Code::NoEventTime, e.span, message).help(help);
        self.report(match scope.time {
            EventTime::None(taken) => d.note_at(taken, "this took the whole input together"),
            _ => d,
        });
        None
    }

    pub(super) fn sample(&mut self, scope: &Scope, s: &Sample) -> Option<Stage> {
        let keys = self.key_parts(scope, &s.keys);
        let (take, of) = match &s.of {
            Some(of) => {
                let take = self.positive(scope, &s.take, "`sample`");
                let of = self.positive(scope, of, "`sample`");
                (take?, of?)
            }
            None => self.percent(scope, &s.take)?,
        };
        if take > of {
            let span = s.of.as_ref().map_or(s.take.span, |of| s.take.span.to(of.span));
            let d = Diagnostic::new(Code::BadConstant, span, "a sample is not more than all rows");
            let swapped = s.of.is_some().then(|| format!("did you mean `sample {of} in {take}`?"));
            self.report(d.maybe_help(swapped));
            return None;
        }
        let keys = keys?;
        let by = if !keys.is_empty() {
            SampleBy::Key(keys)
        } else if scope.packets {
            SampleBy::Number(Expr::field(fields::FieldId::named("number")))
        } else {
            SampleBy::Order
        };
        Some(Stage::Sample(weir_plan::Sample { take, of, by }))
    }

    /// A share in hundredths, as two whole numbers.
    fn percent(&mut self, scope: &Scope, e: &TreeExpr) -> Option<(u64, u64)> {
        let share = match self.constant(scope, e, "the share of `sample`")? {
            Value::Int(n) => n as f64,
            Value::Float(x) => x,
            v => {
                let found = v.ty().map_or_else(String::new, |ty| a(&ty));
                let message = format!("`sample` takes a number before `%`, and this is {found}");
                self.report(Diagnostic::new(Code::BadConstant, e.span, message));
                return None;
            }
        };
        let take = (share * PERCENT_STEPS).round();
        if !(1.0..=100.0 * PERCENT_STEPS).contains(&take) {
            let message = "a share is more than 0% and at most 100%";
            self.report(Diagnostic::new(Code::BadConstant, e.span, message));
            return None;
        }
        let (take, of) = (take as u64, 100 * PERCENT_STEPS as u64);
        let common = greatest_common(take, of);
        Some((take / common, of / common))
    }

    pub(super) fn each(&mut self, built: &mut Built, item: &Item) -> Option<Stage> {
        let scope = &built.scope;
        let (what, columns) = match item.expr.node.unbracketed() {
            Tree::Name(name) if repeated::by_name(name).is_some() => {
                let info = repeated::by_name(name)?;
                let stage = format!("each {name}");
                self.packets_at_hand(built, (name, &stage, "a part of packets"), item.expr.span)?;
                let prefix = item.name.as_ref().map_or(info.prefix(), |n| n.node.as_str());
                let columns: Vec<(String, Type)> = info
                    .parts
                    .iter()
                    .map(|part| (format!("{prefix}.{}", part.name), part.ty.into()))
                    .collect();
                (Parts::Packet(info.what), columns)
            }
            Tree::Call { func, args } if func.node == "split" && args.len() == 2 => {
                let text = self.text_of_split(scope, &args[0]);
                let by = self.text_of_split(scope, &args[1]);
                let (text, by, name) = (text?, by?, item.name.as_ref()?);
                (Parts::Split { text, by }, vec![(name.node.clone(), Type::Str)])
            }
            _ => {
                self.no_parts(scope, item);
                built.scope.lenient = true;
                return None;
            }
        };
        let span = item.span();
        let put = |(name, ty): (String, Type)| {
            built.scope.replaces(&name, span);
            let position = built.scope.put(&name, Some(ty.clone()));
            (name, position, ty)
        };
        Some(Stage::Each(Each { what, columns: columns.into_iter().map(put).collect() }))
    }

    /// Whether rows are packets whose bytes can still be read; reports that they are not, with what
    /// is read of them, the stage that does so, and what that is.
    pub(super) fn packets_at_hand(
        &mut self,
        built: &mut Built,
        (name, reads, label): (&str, &str, &str),
        span: Span,
    ) -> Option<()> {
        let scope = &built.scope;
        if scope.lenient && !scope.packets {
            return None;
        }
        if scope.of_records() {
            self.only_packets(name, span);
            built.scope.lenient = true;
            return None;
        }
        let d = if let Some((stage, dropped)) = scope.dropped {
            let message = format!("`{name}` is gone: after `{stage}` rows are not packets");
            Diagnostic::new(Code::FieldGone, span, message)
                .label(label)
                .note_at(dropped, "from here on, rows are not packets")
                .help(format!("put `{reads}` before it"))
        } else if let Some(stage) = built.stages.iter().find(|s| !is_local(s)) {
            let word = match stage {
                Stage::Top { .. } => "top",
                Stage::Limit(_) => "limit",
                _ => "that stage",
            };
            let message = format!("after `{word}` the bytes of packets are not available");
            Diagnostic::new(Code::FieldGone, span, message)
                .label(label)
                .help(format!("put `{reads}` before `{word}`"))
        } else {
            return Some(());
        };
        self.report(d);
        built.scope.lenient = true;
        None
    }

    /// Reports something that takes packets, in a query that reads flow records.
    pub(super) fn only_packets(&mut self, name: &str, span: Span) {
        let message = format!("`{name}` takes packets, and this query reads flow records");
        let d = Diagnostic::new(Code::NotPackets, span, message);
        self.report(d.note("a flow record has fields, and no bytes of packets"));
    }

    fn text_of_split(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Expr> {
        let value = self.scalar(scope, e)?;
        if value.ty == Type::Str {
            return Some(value);
        }
        let message = format!("`split` takes a string here, and this is {}", a(&value.ty));
        let d = Diagnostic::new(Code::WrongArgument, e.span, message);
        let text = one_line(e.span.of(self.text));
        self.report(d.help(format!("`string({text})` makes one of it")));
        None
    }

    /// Reports something that has no parts.
    fn no_parts(&mut self, scope: &Scope, item: &Item) {
        let span = item.expr.span;
        let names = || REPEATED.iter().map(|info| info.name);
        let all = names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        match item.expr.node.unbracketed() {
            Tree::Name(name) => {
                let near = suggest::closest(name, names()).or_else(|| family(name));
                if let Some(near) = near {
                    let message = format!("packets have no parts called `{name}`");
                    let d = Diagnostic::new(Code::UnknownName, span, message);
                    return self.report(d.help(format!("did you mean `{near}`?")));
                }
                let Some(value) = self.root(scope, &item.expr) else { return };
                let message =
                    format!("`{name}` is one value, of which there is nothing to take apart");
                let d = Diagnostic::new(Code::WrongArgument, span, message);
                self.report(match value.ty {
                    Type::Str => d.help(format!("cut a text: `each part = split({name}, \",\")`")),
                    _ => d.note(format!("packets have these parts: {all}")),
                });
            }
            Tree::Call { func, .. } if func.node == "split" => {
                let message = "in an `each`, `split` takes a text and a separator";
                let d = Diagnostic::new(Code::WrongArity, span, message);
                self.report(d.help("each part becomes a row: `each part = split(x, \",\")`"));
            }
            _ => {
                let message = "`each` takes parts of packets, or `split(TEXT, SEPARATOR)`";
                let d = Diagnostic::new(Code::WrongArgument, span, message);
                self.report(d.note(format!("packets have these parts: {all}")));
            }
        }
    }
}

/// The parts that packets of the same protocol have.
fn family(name: &str) -> Option<&'static str> {
    let protocol = name.split('.').next()?;
    let of = |info: &&repeated::Info| info.name.split('.').next() == Some(protocol);
    let known = fields::by_name(name).is_some();
    REPEATED.iter().find(of).filter(|_| !known || name == protocol).map(|info| info.name)
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}
