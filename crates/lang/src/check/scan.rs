//! `scan`: states, how they start and how they go on.

use super::Checker;
use super::stage::NewColumn;
use super::words::a;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, Scan};
use weir_plan::limits::{SCAN_IDLE_NS, SCAN_KEYS_MAX, SCAN_STATES_MAX};
use weir_plan::stage::ScanState;
use weir_plan::{Expr, ExprKind, Type};

impl<'t> Checker<'t> {
    pub(super) fn scan(&mut self, scope: &mut Scope, scan: &Scan) -> Option<weir_plan::Stage> {
        if let Some(beyond) = scan.states.get(SCAN_STATES_MAX) {
            let n = scan.states.len();
            let message = format!("this scan has {n} states, of at most {SCAN_STATES_MAX}");
            self.report(Diagnostic::new(Code::TooLarge, beyond.expr.span, message));
            scope.lenient = true;
            return None;
        }
        let states = self.with_room(&scope.schema, &scan.states);
        if states.len() < scan.states.len() {
            scope.lenient = true;
            return None;
        }
        let inits: Vec<NewColumn> = states
            .iter()
            .filter_map(|s| {
                let name = s.name.as_ref()?;
                Some((name.node.clone(), name.span, self.scalar(scope, &s.expr)))
            })
            .collect();
        self.distinct_names(&inits);
        let keys = self.key_parts(scope, &scan.keys);
        let idle = self.span_or(scope, scan.idle.as_ref(), "`idle`", SCAN_IDLE_NS);
        let max = self.max_or(scope, scan.max.as_ref(), SCAN_KEYS_MAX);
        let complete = inits.len() == scan.states.len() && inits.iter().all(|(.., e)| e.is_some());
        let states = if complete { self.updates(scope, &inits, &scan.update) } else { None };
        let mut out = Vec::new();
        for (i, (name, span, _)) in inits.iter().enumerate() {
            scope.replaces(name, *span);
            let state = states.as_ref().map(|s| s[i].clone());
            let output = scope.put(name, state.as_ref().map(|(init, _)| init.ty.clone()));
            out.extend(state.map(|(init, update)| ScanState {
                name: name.clone(),
                output,
                init,
                update,
            }));
        }
        let (keys, idle_ns, max_keys) = (keys?, idle?, max?);
        states?;
        Some(weir_plan::Stage::Scan(weir_plan::Scan { states: out, keys, idle_ns, max_keys }))
    }

    /// The parts of a key, named keys taken apart.
    pub(super) fn key_parts(&mut self, scope: &Scope, keys: &[TreeExpr]) -> Option<Vec<Expr>> {
        let mut out = Vec::new();
        let mut sound = true;
        for key in keys {
            match self.root(scope, key) {
                Some(Expr { kind: ExprKind::Tuple(parts), .. }) => out.extend(parts),
                Some(e) => match self.one_value(e, key.span) {
                    Some(e) => out.push(e),
                    None => sound = false,
                },
                None => sound = false,
            }
        }
        if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
            self.key_fits(&out, first.span.to(last.span));
        }
        sound.then_some(out)
    }

    /// Init and update of each state. A state that starts as an int and goes on as a float is a
    /// float.
    fn updates(
        &mut self,
        scope: &Scope,
        inits: &[NewColumn],
        update: &TreeExpr,
    ) -> Option<Vec<(Expr, Expr)>> {
        let mut inits: Vec<(&str, Expr)> = inits
            .iter()
            .map(|(name, _, e)| (name.as_str(), e.clone().expect("checked by the caller")))
            .collect();
        loop {
            let mut inner = scope.clone();
            for (name, e) in &inits {
                inner.states.put(name, e.ty.clone());
            }
            let reported = self.diagnostics.len();
            let out = self.root(&inner, update)?;
            let parts = match &out.ty {
                Type::Tuple(types) => {
                    let types = types.clone();
                    lower::parts(out, &types)
                }
                _ => vec![out],
            };
            if parts.len() != inits.len() {
                return self.wrong_count(update.span, inits.len(), parts.len());
            }
            let mut again = false;
            for ((_, init), part) in inits.iter_mut().zip(&parts) {
                if (&init.ty, &part.ty) == (&Type::Int, &Type::Float) {
                    *init = lower::cast(init.clone(), &Type::Float);
                    again = true;
                }
            }
            if again {
                self.diagnostics.truncate(reported);
                continue;
            }
            return self.fitting(inits, parts, update.span);
        }
    }

    fn wrong_count(
        &mut self,
        span: Span,
        states: usize,
        parts: usize,
    ) -> Option<Vec<(Expr, Expr)>> {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let message = format!(
            "a scan of {} needs as many values after each row, and this gives {}",
            count(states, "state"),
            count(parts, "value")
        );
        let d = Diagnostic::new(Code::StateCount, span, message);
        self.report(if states > 1 {
            d.help("write them in brackets, in the order of the states: `=> (…, …)`")
        } else {
            d
        });
        None
    }

    fn fitting(
        &mut self,
        inits: Vec<(&str, Expr)>,
        parts: Vec<Expr>,
        span: Span,
    ) -> Option<Vec<(Expr, Expr)>> {
        let mut out = Vec::new();
        for ((name, init), part) in inits.into_iter().zip(parts) {
            if !lower::fits(&part.ty, &init.ty) {
                let message = format!(
                    "the state `{name}` starts as {} and would go on as {}",
                    a(&init.ty),
                    a(&part.ty)
                );
                self.report(Diagnostic::new(Code::TypeMismatch, span, message));
                return None;
            }
            let update = lower::cast(part, &init.ty);
            out.push((init, update));
        }
        Some(out)
    }
}
