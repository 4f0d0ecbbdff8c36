//! The clauses of `summarize` that are about time: `over`, `every`, `lateness`, `fill`.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{EventTime, Scope};
use crate::tree::{AggItem, Expr as TreeExpr, ExprKind, Summarize};
use weir_plan::limits::{LATENESS_WINDOWS_MAX, PANES_MAX};
use weir_plan::{Fill, TimeZone, Value, Window};

impl<'t> Checker<'t> {
    /// Which rows belong together; `None` after a mistake.
    pub(super) fn windows(&mut self, scope: &Scope, s: &Summarize, word: Span) -> Option<Window> {
        if let Some(sessions) = self.sessions(scope, s, word)? {
            return Some(sessions);
        }
        let over = s.over.as_ref().map(|e| (e, self.span_of_time(scope, e, "`over`")));
        let every = s.every.as_ref().map(|e| self.span_of_time(scope, e, "`every`"));
        if over.is_none() && every.is_none() {
            return Some(Window::All);
        }
        if !self.has_time(scope, word) {
            return None;
        }
        match (over, every) {
            (None, every) => every?.map(Window::Tumbling),
            (Some((e, over)), None) => {
                let message = "`over` says how long a window is, but not how often one starts";
                let text = e.span.of(self.text);
                let d = Diagnostic::new(Code::Unexpected, e.span, message).help(format!(
                    "add `every`, as in `over {text} every 10s`; for windows one after the other \
                     write just `every {text}`"
                ));
                self.report(d);
                over.and(None)
            }
            (Some((e, over)), Some(every)) => self.sliding(e, over?, every?),
        }
    }

    /// By whose clock these windows are, if not by that of UTC.
    pub(super) fn zone_of(&self, window: Window) -> Option<TimeZone> {
        let every = window.every()?;
        self.rules.zone.filter(|zone| zone.moves(every)).map(|zone| zone.by(every))
    }

    /// Whether all these windows last as long; reports it where not.
    pub(super) fn is_even(&mut self, window: Window, span: Span) -> bool {
        let Some(zone) = self.zone_of(window).filter(|zone| !zone.changes().is_empty()) else {
            return true;
        };
        let name = zone.name();
        let message = format!("windows by the clock of {name} do not all last as long");
        let d = Diagnostic::new(Code::NoEventTime, span, message);
        let d =
            d.note("a day has 23 or 25 hours where clocks change, so a rate has no one divisor");
        self.report(d.help("take a sum, and divide it by the seconds that you mean"));
        false
    }

    /// Windows that overlap.
    fn sliding(&mut self, e: &TreeExpr, over: i64, every: i64) -> Option<Window> {
        let spoken = |ns: i64| Value::Duration(ns).to_string();
        if over < every {
            let message = format!(
                "windows of {} that start every {} leave out what is between them",
                spoken(over),
                spoken(every)
            );
            let d = Diagnostic::new(Code::BadConstant, e.span, message);
            self.report(
                d.help("`over` is the length of a window, and at least as long as `every`"),
            );
            return None;
        }
        if over == every {
            return Some(Window::Tumbling(every));
        }
        let window = Window::Sliding { over, every };
        let panes = over / window.pane()?;
        if panes > PANES_MAX {
            let message =
                format!("a window would be made of {panes} panes, of at most {PANES_MAX}");
            let d = Diagnostic::new(Code::TooLarge, e.span, message)
                .note("a pane is the longest time that divides both `over` and `every`");
            // The next length that is a multiple, if that will do.
            let whole = over / every * every;
            self.report(match whole / every <= PANES_MAX {
                true => {
                    d.help(format!("make `over` a multiple of `every`: `over {}`", spoken(whole)))
                }
                false => d.help("let windows start less often"),
            });
            return None;
        }
        Some(window)
    }

    /// How long windows stay open beyond the watermark; 0 where nothing is said.
    pub(super) fn lateness(
        &mut self,
        scope: &Scope,
        s: &Summarize,
        window: Option<Window>,
    ) -> Option<i64> {
        let Some(e) = &s.lateness else {
            s.aggs.iter().for_each(|agg| self.never_late(agg, window));
            return Some(0);
        };
        let ns = self.span_of_time(scope, e, "`lateness`")?;
        if s.has_sessions() || s.every.is_none() && s.over.is_none() {
            return self.needs_windows("lateness", e.span, "every 10s lateness 5s");
        }
        if scope.time == EventTime::Window {
            let message = "rows of windows are never late";
            let d = Diagnostic::new(Code::AlwaysPresent, e.span, message);
            self.report(d.help("move `lateness` to the first `summarize`, which takes packets"));
        }
        let pane = window?.pane()?;
        let open = ns / pane;
        if open > LATENESS_WINDOWS_MAX {
            let message = format!(
                "this keeps {open} windows of {} open, of at most {LATENESS_WINDOWS_MAX}",
                Value::Duration(pane)
            );
            let d = Diagnostic::new(Code::TooLarge, e.span, message);
            self.report(d.help("shorten it, or make windows longer"));
            return None;
        }
        Some(ns)
    }

    /// Warns of a late count where no late row is taken.
    fn never_late(&mut self, agg: &AggItem, window: Option<Window>) {
        let expr = &agg.item.expr;
        let ExprKind::Call { func, .. } = &expr.node else { return };
        if func.node == "late" && window.is_some_and(|w| w.pane().is_some()) {
            let message = "this is always 0: late rows are dropped";
            let d = Diagnostic::new(Code::AlwaysPresent, expr.span, message);
            self.report(d.help("say how late they may be: `every 10s lateness 5s`"));
        }
    }

    /// Whether an aggregate that is of all packets of a window can be that; reports it where not.
    pub(super) fn is_whole(&mut self, scope: &Scope, agg: &AggItem) -> bool {
        let (message, span, help) = match &agg.cond {
            _ if scope.time != EventTime::Packet => (
                "`completeness` is how many of a window's packets were seen, and these rows are \
                 not of single packets any more",
                agg.item.expr.span,
                "take it in the first `summarize`, and here the least: `min(completeness)`",
            ),
            Some(cond) => (
                "`completeness` is that of all packets of a window: nobody knows which were lost",
                cond.span,
                "leave the condition out",
            ),
            None => return true,
        };
        self.report(Diagnostic::new(Code::NoEventTime, span, message).help(help));
        false
    }

    /// Whether and how windows without rows come out.
    pub(super) fn fill(&mut self, scope: &Scope, s: &Summarize) -> Option<Option<Fill>> {
        let Some(fill) = &s.fill else { return Some(None) };
        let idle_ns = self.span_if_given(scope, fill.idle.as_ref(), "`idle`")?;
        if s.has_sessions() || s.every.is_none() && s.over.is_none() {
            return self.needs_windows("fill", fill.word.span, "every 10s fill");
        }
        if !fill.from_start {
            return Some(Some(Fill::idle(idle_ns)));
        }
        if let Some(idle) = &fill.idle {
            let message = "`fill from start` gives every key all windows, and `idle` ends them";
            let d = Diagnostic::new(Code::BadConstant, idle.span, message);
            self.report(d.help("leave one of the two out"));
            return None;
        }
        Some(Some(Fill::from_start()))
    }

    fn needs_windows<T>(&mut self, clause: &str, span: Span, example: &str) -> Option<T> {
        let message = format!("`{clause}` is about windows, and there are none");
        let d = Diagnostic::new(Code::NoEventTime, span, message);
        self.report(d.help(format!("say how long they are: `{example}`")));
        None
    }
}
