//! Sessions: the clauses of a `summarize` that make them, and the aggregates that only they have.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{EventTime, Scope};
use crate::tree::{Expr as TreeExpr, Sessions, Summarize};
use weir_plan::limits::ROWS_IDLE_NS;
use weir_plan::{AggFunc, Expr, Session, Window};

impl Summarize {
    /// Whether rows are taken together by their key and how they follow one another.
    pub(super) fn has_sessions(&self) -> bool {
        self.sessions.rows || self.sessions.gap.is_some()
    }
}

impl<'t> Checker<'t> {
    /// The sessions that a `summarize` makes, if it makes any; `None` after a mistake.
    pub(super) fn sessions(
        &mut self,
        scope: &Scope,
        s: &Summarize,
        word: Span,
    ) -> Option<Option<Window>> {
        let Sessions { rows, idle, gap, active, until, linger, unless } = &*s.sessions;
        let lengths = if *rows { s.over.as_ref() } else { s.every.as_ref().or(s.over.as_ref()) };
        let sessions = gap.as_ref().or(s.every.as_ref().filter(|_| *rows));
        if let (Some(one), Some(other)) = (sessions, gap.as_ref().and(s.every.as_ref()).or(lengths))
        {
            let message = "rows are taken together by windows or by sessions, not by both";
            let d = Diagnostic::new(Code::Unexpected, one.span, message);
            self.report(d.note_at(other.span, "the other").help("leave one of them out"));
            return None;
        }
        let help = |clause: &str| format!("it says when a session ends: `session 15s {clause}`");
        if gap.is_none() {
            self.misplaced(("active", "session"), active.as_ref(), &help("active 60s"));
            self.misplaced(("until", "session"), until.as_ref(), &help("until tcp.rst"));
        }
        if until.is_none() {
            let help = "it says what becomes of a session after `until` has closed it";
            self.misplaced(("linger", "until"), linger.as_ref(), help);
        }
        if linger.is_none() {
            let help = "it says which rows begin a session where a closed one lingers";
            self.misplaced(("unless", "linger"), unless.as_ref(), help);
        }
        if !rows {
            let help = match gap {
                Some(_) => "the time that a session waits for its next row follows `session`",
                None => "it says how long so many rows are waited for: `every 1000 rows idle 60s`",
            };
            self.misplaced(("idle", "every … rows"), idle.as_ref(), help);
        }
        let session = if let Some(gap) = gap {
            let gap = self.span_of_time(scope, gap, "`session`");
            let active_ns = self.span_if_given(scope, active.as_ref(), "`active`")?;
            let linger_ns = self.span_if_given(scope, linger.as_ref(), "`linger`")?;
            Session { gap_ns: gap?, active_ns, rows: None, linger_ns }
        } else if let Some(every) = s.every.as_ref().filter(|_| *rows) {
            let rows = self.positive(scope, every, "`every … rows`");
            let idle = self.span_or(scope, idle.as_ref(), "`idle`", ROWS_IDLE_NS);
            Session { gap_ns: idle?, active_ns: None, rows: Some(rows?), linger_ns: None }
        } else {
            return Some(None);
        };
        self.has_time(scope, word).then_some(Some(Window::Session(session)))
    }

    /// Whether rows have a time; reports it where they have none.
    pub(super) fn has_time(&mut self, scope: &Scope, word: Span) -> bool {
        let EventTime::None(earlier) = scope.time else { return true };
        let message = "these rows have no time, so there are no windows of it";
        let d = Diagnostic::new(Code::NoEventTime, word.to(word), message)
            .note_at(earlier, "this takes the whole input together")
            .help("give that `summarize` an `every` too");
        self.report(d);
        false
    }

    /// Reports a clause without the one that it says more of.
    fn misplaced(&mut self, (word, of): (&str, &str), clause: Option<&TreeExpr>, help: &str) {
        let Some(e) = clause else { return };
        let message = format!("`{word}` goes with `{of}`, and there is none");
        self.report(Diagnostic::new(Code::Unexpected, e.span, message).help(help));
    }

    /// The condition of `until` or `unless`; `None` if it is wrong.
    pub(super) fn session_condition(
        &mut self,
        scope: &Scope,
        clause: Option<&TreeExpr>,
        word: &str,
    ) -> Option<Option<Expr>> {
        match clause {
            Some(e) => self.condition(scope, e, word).map(Some),
            None => Some(None),
        }
    }

    /// Whether an aggregate that is not of all windows is of this one; reports it where it is not.
    pub(super) fn of_sessions(&mut self, f: AggFunc, window: Window, span: Span) -> bool {
        let (message, help) = match (f, window) {
            (AggFunc::EndReason, Window::Session(Session { rows: None, .. })) => return true,
            (AggFunc::EndReason, _) => (
                "`end_reason` says why a session ended, and there are none",
                "add `session 15s`, or another gap, at the end of the stage",
            ),
            _ => (
                "a rate is so much in each second of a window, and sessions are of any length",
                "divide by how long it lasted: `last = max(ts)`, and in an `extend` after the \
                 stage `n / ((last - ts) / 1s)`",
            ),
        };
        self.report(Diagnostic::new(Code::NoEventTime, span, message).help(help));
        false
    }
}
