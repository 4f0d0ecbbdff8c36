//! `join` and `union` as layouts.

use super::doc::{Doc, group, indent, text};
use super::pieces::{Pieces, STEP, joined};
use crate::tree::{Item, Join, JoinKey, Name};

impl Pieces<'_> {
    pub(super) fn join(&self, join: &Join) -> Doc {
        let kind = join.kind.map_or_else(String::new, |kind| format!("{} ", kind.name()));
        let keys = join.keys.iter().map(|k| (k.span(), key(k))).collect();
        let mut clauses = vec![Doc::All(vec![text("by "), self.filled(keys)])];
        if let Some(within) = &join.within {
            clauses.push(Doc::All(vec![text("within "), self.member(within)]));
        }
        if !join.defaults.is_empty() {
            let items = join.defaults.iter().map(|i| (i.span(), self.item(i, 0))).collect();
            clauses.push(Doc::All(vec![text("default "), self.filled(items)]));
        }
        clauses.extend(join.max.iter().map(|e| Doc::All(vec![text("max "), self.expr(e)])));
        let starts = join.keys.iter().map(JoinKey::span);
        let starts = starts.chain(join.within.as_ref().map(|m| m.span()));
        let starts = starts.chain(join.defaults.iter().map(Item::span));
        let starts = starts.chain(join.max.as_ref().map(|e| e.span));
        let start = starts.min().unwrap_or(join.right.span);
        let mut line = vec![Doc::Break(" "), Doc::Mark(start.start)];
        line.extend(joined(clauses, " "));
        let head = text(format!("join {kind}{}", join.right.node));
        let forced = self.comment_between(&[join.right.span, start]);
        group(Doc::All(vec![head, indent(STEP, Doc::All(line))]), forced)
    }

    pub(super) fn union(&self, names: &[Name]) -> Doc {
        let names = names.iter().map(|n| (n.span, text(n.node.clone()))).collect();
        Doc::All(vec![text("union "), self.filled(names)])
    }
}

fn key(key: &JoinKey) -> Doc {
    text(match &key.right {
        Some(right) => format!("{} == {}", key.left.node, right.node),
        None => key.left.node.clone(),
    })
}
