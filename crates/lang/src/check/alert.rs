//! `alert`: what it says, whose it is, and what was compared before it.

use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{EventTime, Scope};
use crate::suggest;
use crate::tree::{Alert, Expr as TreeExpr, ExprKind as Tree, Name, Spanned};
use weir_base::alert::AlertSeverity;
use weir_plan::alert::{Endpoints, TextPart, is_technique};
use weir_plan::limits::{ALERT_HOLD_NS, ALERT_KEYS_MAX, ALERT_STORM_KEYS, ALERT_TEXT_MAX};
use weir_plan::{Alert as Plan, Column, Expr, ExprKind, Func, Input, Stage, Type, Value};

/// The column that says which share of a window was seen.
const COMPLETENESS: &str = "completeness";

/// The name and position of a column of a key.
type Key = (String, usize);

/// A piece of an alert's text as written: a name and its place, or plain text.
enum Piece {
    Text(String),
    Name(String, Span),
}

impl<'t> Checker<'t> {
    pub(super) fn alert(&mut self, built: &mut Built, alert: &Alert, word: Span) -> Option<Stage> {
        let stage = self.alert_of(built, alert, word);
        let scope = &mut built.scope;
        match &stage {
            Some(stage) => scope.schema = stage.output(&scope.schema),
            None => (scope.lenient, scope.packets) = (true, false),
        }
        // Neither windows nor packets: a row has a time of its own.
        if !matches!(scope.time, EventTime::None(_)) {
            scope.time = EventTime::Session;
        }
        stage
    }

    fn alert_of(&mut self, built: &Built, alert: &Alert, word: Span) -> Option<Stage> {
        let scope = &built.scope;
        let ts = self.time_of_alert(scope, word);
        let clash = self.alert_columns_free(scope, word);
        let text = self.alert_text(scope, &alert.text);
        let severity = self.severity(alert.severity.as_ref());
        let next = match &alert.next {
            Some(next) => self.alert_text(scope, next),
            None => Some(Vec::new()),
        };
        let category = self.plain_text(alert.category.as_ref());
        let technique = self.technique(alert.technique.as_ref());
        let keys = match &alert.keys[..] {
            [] => Some(self.default_keys(built)),
            keys => self.alert_keys(scope, keys),
        };
        let hold = self.span_or(scope, alert.hold.as_ref(), "`hold`", ALERT_HOLD_NS);
        let repeat = self.span_if_given(scope, alert.repeat.as_ref(), "`repeat`");
        let storm = match alert.storm.as_ref() {
            Some(storm) => self.positive(scope, storm, "`storm`"),
            None => Some(ALERT_STORM_KEYS),
        };
        let max = self.max_or(scope, alert.max.as_ref(), ALERT_KEYS_MAX);
        let compared = self.compared(built);
        let completeness = scope.position(COMPLETENESS);
        let is_share = |at: &usize| scope.schema.columns[*at].ty == Type::Float;
        let (ts, ()) = (ts?, clash?);
        let time_of = |name| {
            let at = scope.position(name)?;
            (scope.schema.columns[at].ty == Type::Time).then_some(at)
        };
        let [first, last] = Plan::PACKETS.map(time_of);
        Some(Stage::Alert(Box::new(Plan {
            // The name of the rule is known when the whole query is.
            rule: String::new(),
            severity: severity?,
            text: text?,
            category: category?,
            technique: technique?,
            next: next?,
            compared,
            keys: keys?,
            ts,
            first,
            last,
            over_ns: self.window_before(built),
            completeness: completeness.filter(is_share),
            community: community(scope),
            hold_ns: hold?,
            repeat_ns: repeat?,
            storm_keys: storm?,
            max_keys: max?,
        })))
    }

    /// The column that says when a row was; reports it where there is none.
    fn time_of_alert(&mut self, scope: &Scope, word: Span) -> Option<usize> {
        let at = scope.position("ts").filter(|&at| scope.schema.columns[at].ty == Type::Time);
        let d = |message| Diagnostic::new(Code::NeedsColumns, word, message);
        let d = match scope.time {
            _ if scope.lenient && at.is_none() => return None,
            _ if scope.packets => d("`alert` takes rows of columns, and these are packets").help(
                "choose columns before it: `| project ts, ip.src | alert \"…\" key ip.src`, or \
                 count first: `| summarize …`",
            ),
            EventTime::None(taken) => {
                let message = "these rows have no time, so nothing says when an alert ends";
                Diagnostic::new(Code::NoEventTime, word, message)
                    .note_at(taken, "this takes the whole input together")
                    .help("give that `summarize` an `every`")
            }
            _ if at.is_none() => d("`alert` needs the column `ts`, which says when each row was")
                .help("keep `ts` in the stage before it: `| project ts, …`"),
            _ => return at,
        };
        self.report(d);
        None
    }

    /// Reports a column of the input that the alert would make, too.
    fn alert_columns_free(&mut self, scope: &Scope, word: Span) -> Option<()> {
        let says_when = |c: &Column| Plan::PACKETS.contains(&&*c.name) && c.ty == Type::Time;
        let clash = scope.schema.columns.iter().find(|c| Plan::makes(&c.name) && !says_when(c));
        let Some(column) = clash else { return Some(()) };
        if Plan::PACKETS.contains(&&*column.name) {
            let message = format!("`{}` says when a packet was, and is no time here", column.name);
            let d = Diagnostic::new(Code::ColumnClash, word, message);
            self.report(d.help("give it a time, such as `min(ts)` or `max(ts)`"));
            return None;
        }
        let message = format!("two columns are called `{}`", column.name);
        let d = Diagnostic::new(Code::ColumnClash, word, message);
        self.report(
            d.note("`alert` makes one; the rows of an alert have it already")
                .help("count them first: `| summarize alerts = count() by alert.rule every 1h`"),
        );
        None
    }

    fn severity(&mut self, name: Option<&Name>) -> Option<AlertSeverity> {
        let Some(name) = name else { return Some(AlertSeverity::Medium) };
        let known = AlertSeverity::ALL.into_iter().find(|s| s.name() == name.node);
        if known.is_none() {
            let all = AlertSeverity::ALL.map(AlertSeverity::name);
            let message = format!("there is no severity `{}`", name.node);
            let d = Diagnostic::new(Code::BadConstant, name.span, message);
            let near = suggest::did_you_mean(&name.node, all);
            self.report(d.note(format!("severities: {}", all.join(" "))).maybe_help(near));
        }
        known
    }

    /// A text without values, or none.
    fn plain_text(&mut self, e: Option<&TreeExpr>) -> Option<Option<String>> {
        let Some(e) = e else { return Some(None) };
        let Tree::Literal { value: Value::Str(text), .. } = &e.node else { return None };
        self.fits_alert(text, e.span)?;
        Some(Some(text.to_string()))
    }

    /// The number of a technique.
    fn technique(&mut self, e: Option<&TreeExpr>) -> Option<Option<String>> {
        let text = self.plain_text(e)?;
        match (&text, e) {
            (Some(number), Some(e)) if !is_technique(number) => {
                let message = format!("`{number}` is no technique of MITRE ATT&CK");
                let d = Diagnostic::new(Code::BadConstant, e.span, message);
                self.report(d.help("its techniques have numbers such as `T1046` or `T1498.001`"));
                None
            }
            _ => Some(text),
        }
    }

    /// Reports a text that is too long.
    fn fits_alert(&mut self, text: &str, span: Span) -> Option<()> {
        if text.len() > ALERT_TEXT_MAX {
            let message = format!("a text of an alert has at most {ALERT_TEXT_MAX} bytes");
            self.report(Diagnostic::new(Code::TooLarge, span, message));
            return None;
        }
        Some(())
    }

    /// The text of an alert, in which names in braces stand for values.
    fn alert_text(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Vec<TextPart>> {
        let Tree::Literal { value: Value::Str(text), .. } = &e.node else { return None };
        self.fits_alert(text, e.span)?;
        let mut parts = Vec::new();
        let mut sound = true;
        for piece in self.pieces(text, e.span)? {
            match piece {
                Piece::Text(text) => parts.push(TextPart::Text(text)),
                Piece::Name(name, span) => {
                    match self.scalar(scope, &Spanned::new(Tree::Name(name), span)) {
                        Some(value) => parts.push(TextPart::Value(value)),
                        None => sound = false,
                    }
                }
            }
        }
        sound.then_some(parts)
    }

    /// The pieces of a text that stands at this place.
    fn pieces(&mut self, text: &str, span: Span) -> Option<Vec<Piece>> {
        // Where nothing is escaped, each byte stands where it is seen.
        let plain = span.of(self.text).len() == text.len() + 2;
        let place = |from: usize, to: usize| match plain {
            true => Span::new(span.start + 1 + from, span.start + 1 + to),
            false => span,
        };
        let (mut pieces, mut out, mut at) = (Vec::new(), String::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at + c.len_utf8()..];
            match c {
                '{' | '}' if rest.starts_with(c) => {
                    out.push(c);
                    at += 2;
                    continue;
                }
                '{' => {
                    let Some(len) = rest.find('}') else {
                        self.bad_brace(place(at, at + 1), "this `{` is never closed");
                        return None;
                    };
                    let name = rest[..len].trim();
                    let whole = place(at, at + len + 2);
                    if !is_name(name) {
                        self.bad_brace(whole, "braces hold the name of a column, a param or a let");
                        return None;
                    }
                    if !out.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut out)));
                    }
                    let start = at + 1 + (rest[..len].len() - rest[..len].trim_start().len());
                    pieces.push(Piece::Name(name.to_owned(), place(start, start + name.len())));
                    at += len + 2;
                    continue;
                }
                '}' => {
                    self.bad_brace(place(at, at + 1), "this `}` closes nothing");
                    return None;
                }
                c => out.push(c),
            }
            at += c.len_utf8();
        }
        if !out.is_empty() {
            pieces.push(Piece::Text(out));
        }
        Some(pieces)
    }

    fn bad_brace(&mut self, span: Span, message: &str) {
        let d = Diagnostic::new(Code::BadConstant, span, message);
        self.report(d.help("a brace itself is written twice: `{{` or `}}`"));
    }

    /// Positions of the columns that keys name.
    fn alert_keys(&mut self, scope: &Scope, names: &[Name]) -> Option<Vec<Key>> {
        let mut keys: Vec<Key> = Vec::new();
        let mut sound = true;
        for name in names {
            let parts: Vec<&str> = match self.key_fields(scope, &name.node) {
                Some(key) if scope.position(&name.node).is_none() => {
                    key.into_iter().map(|part| part.info().name).collect()
                }
                _ => vec![&name.node],
            };
            for part in parts {
                match self.alert_key(scope, part, name.span) {
                    Some(at) if keys.iter().any(|(_, known)| *known == at) => {}
                    Some(at) => keys.push((part.to_owned(), at)),
                    None => sound = false,
                }
            }
        }
        let column = |&(_, at): &Key| Expr::column(at, scope.schema.columns[at].ty.clone());
        let columns: Vec<Expr> = keys.iter().map(column).collect();
        let span = names[0].span.to(names[names.len() - 1].span);
        self.key_fits(&columns, span);
        sound.then_some(keys)
    }

    fn alert_key(&mut self, scope: &Scope, name: &str, span: Span) -> Option<usize> {
        let e = self.name(scope, name, span)?;
        let d = match e.kind {
            ExprKind::Column(_) if name == "ts" => {
                let message = "the time of a row tells no alert from another";
                Diagnostic::new(Code::NotAColumn, span, message)
                    .help("leave it out: each row would be an alert of its own")
            }
            ExprKind::Column(at) => return Some(at),
            _ => {
                let message = format!("the key of an alert is a column, and `{name}` is none");
                Diagnostic::new(Code::NotAColumn, span, message)
                    .help(format!("make it one before: `| extend key = {name}`"))
            }
        };
        self.report(d);
        None
    }

    /// The keys of the last `summarize`, as far as they are still columns.
    pub(super) fn default_keys(&self, built: &Built) -> Vec<Key> {
        let keys = self.latest(built, |stage| match stage {
            Stage::Summarize(s) => Some(s.keys.iter().map(|(name, _)| name.clone()).collect()),
            _ => None,
        });
        let keys: Vec<String> = keys.unwrap_or_default();
        keys.into_iter()
            .filter_map(|name| Some((name.clone(), built.scope.position(&name)?)))
            .collect()
    }

    /// The result of `find` for the latest stage before here that has one, along the first sides.
    pub(super) fn latest<T>(&self, built: &Built, find: impl Fn(&Stage) -> Option<T>) -> Option<T> {
        let (mut stages, mut input) = (&built.stages, built.input);
        loop {
            match (stages.iter().rev().find_map(&find), input) {
                (Some(found), _) => return Some(found),
                (None, Input::Packets) => return None,
                (None, Input::Pipeline(n)) => {
                    (stages, input) = (&self.built[n].stages, self.built[n].input);
                }
            }
        }
    }
}

/// The community id of the connection whose ends the columns hold, or of an example of several.
fn community(scope: &Scope) -> Option<Expr> {
    let part = |at: usize| Expr::column(at, scope.schema.columns[at].ty.clone());
    let parts = Endpoints::of(&scope.schema).connection()?.map(part).to_vec();
    let kind = ExprKind::Call(Func::CommunityId { seed: 0 }, parts);
    Some(Expr { ty: Type::Str, kind })
}

/// Whether a query could write this as a name.
fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}
