//! The layout of `metric`.

use super::doc::{Doc, group, indent, text};
use super::pieces::{Pieces, STEP, joined};
use crate::diagnostic::Span;
use crate::tree::{Metric, Name};

impl Pieces<'_> {
    pub(super) fn metric(&self, metric: &Metric) -> Doc {
        let kind = text(format!("metric {} ", metric.kind.node));
        let mut parts = vec![kind, self.expr(&metric.name)];
        let mut clauses = Vec::new();
        clauses.extend(metric.of.iter().map(|name| text(format!("of {}", name.node))));
        if !metric.keys.is_empty() {
            let key = |name: &Name| (name.span, text(name.node.clone()));
            let keys = self.filled(metric.keys.iter().map(key).collect());
            clauses.push(Doc::All(vec![text("by "), keys]));
        }
        for (word, e) in [("max ", &metric.max), ("help ", &metric.help)] {
            clauses.extend(e.iter().map(|e| Doc::All(vec![text(word), self.expr(e)])));
        }
        let exprs = [&metric.max, &metric.help].into_iter().filter_map(|e| Some(e.as_ref()?.span));
        let names = metric.of.iter().chain(&metric.keys).map(|name| name.span);
        let start: Option<Span> = names.chain(exprs).min();
        let Some(start) = start else { return Doc::All(parts) };
        let mut line = vec![Doc::Break(" "), Doc::Mark(start.start)];
        line.extend(joined(clauses, " "));
        parts.push(indent(STEP, Doc::All(line)));
        group(Doc::All(parts), self.comment_between(&[metric.name.span, start]))
    }
}
