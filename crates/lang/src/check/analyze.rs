//! `analyze tcp`: the columns that say what a segment is.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::Scope;
use crate::tree;
use weir_packet::fields::FieldId;
use weir_plan::analyze::{TCP_COLUMNS, TCP_PREFIX};
use weir_plan::limits::{SCAN_IDLE_NS, SCAN_KEYS_MAX};
use weir_plan::{AnalyzeTcp, Expr, Stage};

impl<'t> Checker<'t> {
    pub(super) fn analyze_tcp(
        &mut self,
        scope: &mut Scope,
        analyze: &tree::KeyBounds,
        span: Span,
    ) -> Option<Stage> {
        if scope.of_records() {
            self.only_packets("analyze tcp", span);
            scope.lenient = true;
            return None;
        }
        if !scope.packets {
            self.no_segments(scope, span);
            scope.lenient = true;
            return None;
        }
        let idle = self.span_or(scope, analyze.idle.as_ref(), "`idle`", SCAN_IDLE_NS);
        let max = self.max_or(scope, analyze.max.as_ref(), SCAN_KEYS_MAX);
        let flow_key = self.rules.flow_key;
        let mut field = |id: FieldId| self.field(scope, id, span);
        let keys: Option<Vec<Expr>> =
            AnalyzeTcp::key_fields(flow_key).into_iter().map(&mut field).collect();
        let inputs: Option<Vec<Expr>> =
            keys.as_ref().and_then(|_| AnalyzeTcp::input_fields().map(&mut field).collect());
        let column = |column: &weir_plan::analyze::TcpColumn| {
            let name = format!("{TCP_PREFIX}{}", column.name);
            let position = scope.put(&name, Some(column.ty.clone()));
            (name, position, column.ty.clone())
        };
        let columns = TCP_COLUMNS.iter().map(column).collect();
        let (keys, inputs, idle_ns, max_keys) = (keys?, inputs?, idle?, max?);
        Some(Stage::AnalyzeTcp(AnalyzeTcp { keys, inputs, columns, idle_ns, max_keys }))
    }

    /// Reports that rows are no packets.
    fn no_segments(&mut self, scope: &Scope, span: Span) {
        if scope.lenient {
            return;
        }
        let d = match scope.dropped {
            Some((stage, dropped)) => {
                let message =
                    format!("`analyze tcp` reads packets, which are gone after `{stage}`");
                Diagnostic::new(Code::FieldGone, span, message)
                    .note_at(dropped, "from here on, rows are not packets")
            }
            None => {
                let message = "`analyze tcp` reads packets, and these rows are none";
                Diagnostic::new(Code::FieldGone, span, message)
            }
        };
        self.report(d.help("put `analyze tcp` first: `packets | analyze tcp | …`"));
    }
}
