//! Layouts of stages that choose rows and take them apart.

use super::doc::{Doc, text};
use super::pieces::Pieces;
use crate::tree::{Capture, Deduplicate, Distinct, Expr, KeyBounds, Sample, Top};

impl Pieces<'_> {
    pub(super) fn top(&self, top: &Top) -> Doc {
        let by = top.by.iter().map(|k| (k.expr.span, self.sort_key(k))).collect();
        let mut parts = vec![text("top "), self.expr(&top.n), text(" by "), self.filled(by)];
        parts.extend(self.clause(" per ", &top.per));
        parts.extend(self.bound(" max ", &top.max));
        Doc::All(parts)
    }

    pub(super) fn distinct(&self, d: &Distinct) -> Doc {
        let mut parts: Vec<Doc> = self.clause("distinct ", &d.keys).into_iter().collect();
        parts.extend(self.bound(" idle ", &d.idle));
        parts.extend(self.bound(" max ", &d.max));
        Doc::All(parts)
    }

    pub(super) fn deduplicate(&self, d: &Deduplicate) -> Doc {
        let mut parts = vec![text("deduplicate within "), self.expr(&d.within)];
        parts.extend(self.bound(" max ", &d.max));
        Doc::All(parts)
    }

    /// A stage that says no more than how many keys it holds, and for how long.
    pub(super) fn bounded(&self, words: &'static str, bounds: &KeyBounds) -> Doc {
        let mut parts = vec![text(words)];
        parts.extend(self.bound(" idle ", &bounds.idle));
        parts.extend(self.bound(" max ", &bounds.max));
        Doc::All(parts)
    }

    pub(super) fn sample(&self, s: &Sample) -> Doc {
        let mut parts = vec![text("sample "), self.expr(&s.take)];
        match &s.of {
            None => parts.push(text("%")),
            Some(of) => parts.extend([text(" in "), self.expr(of)]),
        }
        parts.extend(self.clause(" by ", &s.keys));
        Doc::All(parts)
    }

    pub(super) fn capture(&self, c: &Capture) -> Doc {
        let mut parts = vec![text("capture")];
        parts.extend(self.bound(" ", &c.around));
        parts.extend(self.bound(" before ", &c.before));
        parts.extend(self.bound(" after ", &c.after));
        if !c.keys.is_empty() {
            let keys = c.keys.iter().map(|k| (k.span(), self.item(k, 0))).collect();
            parts.extend([text(" by "), self.filled(keys)]);
        }
        Doc::All(parts)
    }

    /// A word and a list after it, if there is anything in it.
    fn clause(&self, word: &str, exprs: &[Expr]) -> Option<Doc> {
        let list = exprs.iter().map(|e| (e.span, self.expr(e))).collect();
        (!exprs.is_empty()).then(|| Doc::All(vec![text(word), self.filled(list)]))
    }

    fn bound(&self, word: &str, e: &Option<Expr>) -> Option<Doc> {
        e.as_ref().map(|e| Doc::All(vec![text(word), self.expr(e)]))
    }
}
