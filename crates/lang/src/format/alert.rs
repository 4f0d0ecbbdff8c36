//! The layout of `alert`.

use super::doc::{Doc, group, indent, text};
use super::pieces::{Pieces, STEP};
use crate::diagnostic::Span;
use crate::tree::{Alert, Expr, Name};

impl Pieces<'_> {
    pub(super) fn alert(&self, alert: &Alert) -> Doc {
        let mut parts = vec![text("alert "), self.expr(&alert.text)];
        let mut clauses = Vec::new();
        let severity = alert.severity.iter();
        clauses.extend(severity.map(|name| text(format!("severity {}", name.node))));
        let said = [
            ("category ", &alert.category),
            ("technique ", &alert.technique),
            ("next ", &alert.next),
        ];
        let clause = |(word, e): (&'static str, &Option<Expr>)| {
            e.as_ref().map(|e| Doc::All(vec![text(word), self.expr(e)]))
        };
        if !alert.keys.is_empty() {
            let key = |name: &Name| (name.span, text(name.node.clone()));
            let keys = self.filled(alert.keys.iter().map(key).collect());
            clauses.push(Doc::All(vec![text("key "), keys]));
        }
        let bounds = [
            ("hold ", &alert.hold),
            ("repeat ", &alert.repeat),
            ("storm ", &alert.storm),
            ("max ", &alert.max),
        ];
        clauses.extend(bounds.into_iter().chain(said).filter_map(clause));
        let bounds = bounds.into_iter().chain(said);
        let bounds = bounds.filter_map(|(_, e)| e.as_ref().map(|e| e.span));
        let names = alert.severity.iter().chain(&alert.keys).map(|name| name.span);
        let start: Option<Span> = names.chain(bounds).min();
        let Some(start) = start else { return Doc::All(parts) };
        let mut line = vec![Doc::Break(" "), Doc::Mark(start.start)];
        // As many clauses on a line as fit.
        for (i, clause) in clauses.into_iter().enumerate() {
            line.extend((i > 0).then(|| group(Doc::Break(" "), false)));
            line.push(clause);
        }
        parts.push(indent(STEP, Doc::All(line)));
        group(Doc::All(parts), self.comment_between(&[alert.text.span, start]))
    }
}
