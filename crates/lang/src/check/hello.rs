//! `hello`: what puts ClientHellos together.

use super::{Built, Checker};
use crate::diagnostic::Span;
use crate::tree::KeyBounds;
use weir_plan::limits::{HELLO_FLOWS_MAX, HELLO_IDLE_NS};
use weir_plan::{HELLO_COLUMNS, Stage};

impl Checker<'_> {
    pub(super) fn hello(&mut self, built: &mut Built, h: &KeyBounds, span: Span) -> Option<Stage> {
        let idle = self.span_or(&built.scope, h.idle.as_ref(), "`idle`", HELLO_IDLE_NS);
        let max = self.max_or(&built.scope, h.max.as_ref(), HELLO_FLOWS_MAX);
        self.packets_at_hand(built, ("hello", "hello", "reads packets"), span)?;
        let put = |(name, ty): (&str, weir_plan::Type)| {
            built.scope.replaces(name, span);
            built.scope.put(name, Some(ty))
        };
        let columns = HELLO_COLUMNS.into_iter().map(put).collect();
        let (idle_ns, max_flows) = (idle?, max?);
        let keys = weir_plan::Hello::flow(self.rules.flow_key);
        Some(Stage::Hello(weir_plan::Hello { keys, idle_ns, max_flows, columns }))
    }
}
