//! `capture`: packets around each row, in a file that the row names.

use super::words::a;
use super::{Built, Checker};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{EventTime, Scope};
use crate::tree::{Capture, ExprKind as Tree, Item};
use weir_packet::fields::{self, FieldId};
use weir_plan::capture::CAPTURE;
use weir_plan::{Expr, ExprKind, Func, Input, Stage, Type, Value};

/// The start of the names of files where the pipeline has no name.
const UNNAMED: &str = "alert";

/// The text for a part of a key that a row does not have.
const NO_VALUE: &str = "none";

impl<'t> Checker<'t> {
    pub(super) fn capture(&mut self, built: &mut Built, c: &Capture, word: Span) -> Option<Stage> {
        if let Some(at) = self.anonymizes {
            let message = "`capture` writes packets as they were captured";
            let d = Diagnostic::new(Code::Unsupported, word, message);
            let d =
                d.note_at(at, "this rewrites packets that leave by `pass`, `forward`, `mirror`");
            self.report(d.help("capture in a query of its own, or `forward` what is rewritten"));
        }
        if built.scope.of_records() {
            self.only_packets("capture", word);
            built.scope.lenient = true;
            return None;
        }
        let scope = &built.scope;
        let around = self.span_if_given(scope, c.around.as_ref(), "`capture`");
        let before = self.span_if_given(scope, c.before.as_ref(), "`before`");
        let after = self.span_if_given(scope, c.after.as_ref(), "`after`");
        let start = self.start_of_rows(scope, word);
        let keys: Option<Vec<_>> = match scope.packets {
            // Reported; and columns of that name are not there.
            true => None,
            false => c.keys.iter().map(|item| self.key_columns(scope, item)).collect(),
        };
        if scope.position(CAPTURE).is_some() {
            let message = format!("two columns are called `{CAPTURE}`");
            let d = Diagnostic::new(Code::ColumnClash, word, message);
            self.report(d.note("`capture` makes one, which says what file the packets are in"));
        }
        let over_ns = self.window_before(built);
        let output = built.scope.put(CAPTURE, Some(Type::Str));
        let (around, start) = (around?, start?);
        let (before, after) = (before?.or(around), after?.or(around));
        let keys: Vec<(FieldId, usize)> = keys?.concat();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let stem = built.name.as_deref().unwrap_or(UNNAMED).chars().map(plain).collect::<String>();
        let name = file_name(&stem, start, &keys);
        let (before_ns, after_ns) = (before.unwrap_or(0), after.unwrap_or(0));
        Some(Stage::Capture(Box::new(weir_plan::Capture {
            output,
            name,
            start,
            over_ns,
            before_ns,
            after_ns,
            keys,
        })))
    }

    /// The column that says when a row was; reports it where there is none.
    fn start_of_rows(&mut self, scope: &Scope, word: Span) -> Option<usize> {
        let at = scope.position("ts").filter(|&at| scope.schema.columns[at].ty == Type::Time);
        let d = |message| Diagnostic::new(Code::NeedsColumns, word, message);
        let d = match scope.time {
            _ if scope.packets => d("`capture` names a file for each row, and these are packets")
                .help("choose columns before it: `| project ts, ip.src | capture 30s by ip.src`"),
            EventTime::None(taken) => {
                let message = "these rows have no time, and so no packets are around them";
                Diagnostic::new(Code::NoEventTime, word, message)
                    .note_at(taken, "this takes the whole input together")
                    .help("give that `summarize` an `every`")
            }
            _ if at.is_none() => {
                d("`capture` needs the column `ts`: it stands in the name of the file")
                    .help("keep `ts` in the `project` before it")
            }
            _ => return at,
        };
        self.report(d);
        None
    }

    /// Fields of packets, and the columns that hold them.
    fn key_columns(&mut self, scope: &Scope, item: &Item) -> Option<Vec<(FieldId, usize)>> {
        let Tree::Name(column) = &item.expr.node else {
            let message = "the key of `capture` is a column that holds a field of packets";
            let d = Diagnostic::new(Code::NotAColumn, item.span(), message);
            self.report(d.help("as in `by ip.src`, or `by ip.src = attacker`"));
            return None;
        };
        let span = item.expr.span;
        if let Some(name) = &item.name {
            return Some(vec![self.key_column(scope, (&name.node, name.span), (column, span))?]);
        }
        match self.key_fields(scope, column) {
            Some(key) => {
                let names = key.into_iter().map(|part| part.info().name);
                names.map(|name| self.key_column(scope, (name, span), (name, span))).collect()
            }
            None => Some(vec![self.key_column(scope, (column, span), (column, span))?]),
        }
    }

    fn key_column(
        &mut self,
        scope: &Scope,
        (field, at): (&str, Span),
        (column, span): (&str, Span),
    ) -> Option<(FieldId, usize)> {
        let Some(id) = fields::by_name(field) else {
            let message = format!("`{field}` is not a field of packets");
            let d = Diagnostic::new(Code::UnknownName, at, message);
            self.report(d.help(format!("say which field it is: `by ip.src = {column}`")));
            return None;
        };
        let e = self.name(scope, column, span)?;
        let ExprKind::Column(position) = e.kind else {
            let message = format!("rows have no column `{column}`");
            self.report(Diagnostic::new(Code::UnknownName, span, message));
            return None;
        };
        let ty = Type::from(id.info().ty);
        if id.info().ty.is_text() {
            let message = format!("packets are not looked for by a text such as `{field}`");
            let d = Diagnostic::new(Code::NotAColumn, at, message);
            self.report(d.help("take addresses, ports or numbers, such as `conn`"));
            return None;
        }
        if e.ty != ty {
            let message =
                format!("`{field}` is {}, and the column `{column}` is {}", a(&ty), a(&e.ty));
            self.report(Diagnostic::new(Code::TypeMismatch, span, message));
            return None;
        }
        Some((id, position))
    }

    /// How long the windows are that rows came from; 0 where they came from none.
    pub(super) fn window_before(&self, built: &Built) -> i64 {
        let (mut stages, mut input) = (&built.stages, built.input);
        loop {
            let last = stages.iter().rev().find_map(|stage| match stage {
                Stage::Summarize(s) => Some(s.window.over().map_or(0, |over| s.longest(over))),
                _ => None,
            });
            match (last, input) {
                (Some(longest), _) => return longest,
                (None, Input::Packets) => return 0,
                (None, Input::Pipeline(n)) => {
                    (stages, input) = (&self.built[n].stages, self.built[n].input);
                }
            }
        }
    }
}

/// `stem-2026-11-21T055053Z-192.0.2.1.pcapng`: nothing in it but letters, digits, `.`, `_`, `-`
/// and `+`.
fn file_name(stem: &str, start: usize, keys: &[(FieldId, usize)]) -> Expr {
    let text = |text: &str| Expr::constant(Value::Str(text.into()));
    let call = |func, args| Expr { ty: Type::Str, kind: ExprKind::Call(func, args) };
    let plain = |column, ty, to| {
        let shown = call(Func::ToStr, vec![Expr::column(column, ty)]);
        let known = call(Func::Coalesce, vec![shown, text(NO_VALUE)]);
        call(Func::Replace, vec![known, text(":"), text(to)])
    };
    let time = plain(start, Type::Time, "");
    let keys = keys.iter().map(|(id, column)| plain(*column, Type::from(id.info().ty), "_"));
    let parts = [time].into_iter().chain(keys);
    let joined = |name, part| {
        let dash = call(Func::Concat, vec![name, text("-")]);
        call(Func::Concat, vec![dash, part])
    };
    let name = parts.fold(text(stem), joined);
    call(Func::Concat, vec![name, text(".pcapng")])
}
