//! The layout of `alert`.

use super::doc::{Doc, group, indent, text};
use super::pieces::{Pieces, STEP, joined};
use crate::diagnostic::Span;
use crate::tree::{Alert, Name};

impl Pieces<'_> {
    pub(super) fn alert(&self, alert: &Alert) -> Doc {
        let mut parts = vec![text("alert "), self.expr(&alert.text)];
        let mut clauses = Vec::new();
        let severity = alert.severity.iter();
        clauses.extend(severity.map(|name| text(format!("severity {}", name.node))));
        if !alert.keys.is_empty() {
            let key = |name: &Name| (name.span, text(name.node.clone()));
            let keys = self.filled(alert.keys.iter().map(key).collect());
            clauses.push(Doc::All(vec![text("key "), keys]));
        }
        let bounds = [("hold ", &alert.hold), ("repeat ", &alert.repeat), ("max ", &alert.max)];
        for (word, e) in bounds {
            clauses.extend(e.iter().map(|e| Doc::All(vec![text(word), self.expr(e)])));
        }
        let bounds = bounds.into_iter().filter_map(|(_, e)| e.as_ref().map(|e| e.span));
        let names = alert.severity.iter().chain(&alert.keys).map(|name| name.span);
        let start: Option<Span> = names.chain(bounds).min();
        let Some(start) = start else { return Doc::All(parts) };
        let mut line = vec![Doc::Break(" "), Doc::Mark(start.start)];
        line.extend(joined(clauses, " "));
        parts.push(indent(STEP, Doc::All(line)));
        group(Doc::All(parts), self.comment_between(&[alert.text.span, start]))
    }
}
