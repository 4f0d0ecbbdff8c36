//! Chains that end in groups.

use super::chain::{ChainBuilder, Ending};
use crate::expr::{Cond, Val, flat};
use crate::ops::groups::Spec;
use crate::ops::session::{ClosingRows, Sessions};
use crate::ops::summarize::Summarize;
use weir_plan::{ExprKind, Schema};

impl ChainBuilder<'_> {
    pub(super) fn summarize(&mut self, s: &weir_plan::Summarize, after: Schema) -> Ending {
        let spec = Spec::new(s, self.placed.with, after);
        let keys = s.keys.iter().map(|(_, e)| self.compiler.value(e, &self.scope)).collect();
        let aggs: Vec<(Vec<Val>, Option<Cond>)> = spec
            .aggs()
            .iter()
            .map(|agg| {
                let cond = agg.cond.as_ref().map(|c| self.compiler.condition(c, &self.scope));
                let args: Vec<&weir_plan::Expr> = match agg.arg.as_ref() {
                    None => Vec::new(),
                    Some(e) => match &e.kind {
                        ExprKind::Tuple(parts) => flat(parts),
                        _ => vec![e],
                    },
                };
                (args.into_iter().map(|a| self.compiler.value(a, &self.scope)).collect(), cond)
            })
            .collect();
        match spec.session() {
            None => Ending::Windows(Summarize::new(spec, keys, aggs)),
            Some(session) => {
                let mut condition =
                    |e: &Option<_>| e.as_ref().map(|e| self.compiler.condition(e, &self.scope));
                let (until, unless) = (condition(&s.until), condition(&s.unless));
                let closing = ClosingRows { until, unless };
                Ending::Sessions(Sessions::new(spec, session, keys, aggs, closing))
            }
        }
    }
}
