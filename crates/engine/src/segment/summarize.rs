//! A segment that ends in groups.

use super::{Build, End};
use crate::expr::{Cond, Val, flat};
use crate::functions::BuildContext;
use crate::ops::Grouping;
use crate::ops::emit::Emitter;
use crate::ops::groups::Spec;
use crate::ops::session::Sessions;
use crate::ops::summarize::Summarize;
use weir_plan::{ExprKind, Schema};

impl Build<'_> {
    pub(super) fn summarize(&mut self, s: &weir_plan::Summarize, after: Schema) -> End {
        let functions = self.compiler.functions();
        let with = BuildContext { functions, hash_key: self.hash_key };
        let spec = Spec::new(s, with, after);
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
        let emitter = Box::new(Emitter::new(&spec));
        let grouping: Box<dyn Grouping> = match spec.session() {
            None => Box::new(Summarize::new(spec, keys, aggs)),
            Some(session) => {
                let until = s.until.as_ref().map(|e| self.compiler.condition(e, &self.scope));
                Box::new(Sessions::new(spec, session, keys, aggs, until))
            }
        };
        End::Summarize(grouping, emitter)
    }
}
