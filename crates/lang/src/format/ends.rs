//! Ends and branches as layouts.

use super::doc::{Doc, align, group, text};
use super::pieces::Pieces;
use crate::diagnostic::Span;
use crate::tree::{Act, BranchArm, Spanned};

impl Pieces<'_> {
    pub(super) fn act(&self, act: &Act) -> Doc {
        let with = |word: &str, e| Doc::All(vec![text(word), align(self.expr(e))]);
        match act {
            Act::Pass => text("pass"),
            Act::Drop => text("drop"),
            Act::Next => text("next"),
            Act::Forward(to) => with("forward ", to),
            Act::Mirror(to) => with("mirror ", to),
            Act::Broadcast(to) => with("broadcast to ", to),
            Act::Steer { keys, to } => {
                let keys = keys.iter().map(|k| (k.span, self.expr(k))).collect();
                Doc::All(vec![text("steer by "), self.filled(keys), with(" to ", to)])
            }
            Act::Trim(n) => with("trim ", n),
            Act::Tag(id) => with("tag ", id),
            Act::Anonymize { fields, key } => {
                let fields = fields.iter().map(|f| (f.span, self.expr(f))).collect();
                Doc::All(vec![text("anonymize "), self.filled(fields), with(" with ", key)])
            }
        }
    }

    /// Arms below each other if they do not fit beside each other.
    pub(super) fn branch(&self, arms: &[Spanned<BranchArm>]) -> Doc {
        let spans: Vec<Span> = arms.iter().map(|arm| arm.span).collect();
        let mut list = Vec::new();
        for arm in arms {
            if !list.is_empty() {
                list.push(Doc::Break(" "));
            }
            list.extend([Doc::Mark(arm.span.start), self.branch_arm(&arm.node)]);
        }
        let doc = Doc::All(vec![text("branch "), align(Doc::All(list))]);
        group(doc, self.comment_between(&spans))
    }

    fn branch_arm(&self, arm: &BranchArm) -> Doc {
        let mut parts = match &arm.when {
            Some(when) => vec![text("when "), align(self.expr(when))],
            None => vec![text("else")],
        };
        for (i, act) in arm.acts.iter().enumerate() {
            parts.push(text(if i == 0 { " -> " } else { " | " }));
            parts.push(self.act(&act.node));
        }
        Doc::All(parts)
    }
}
