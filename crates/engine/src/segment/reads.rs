//! What stages read.

use weir_packet::fields::FieldId;
use weir_plan::{ExprKind, Stage};

/// The packet fields that stages read.
pub fn fields_read(stages: &[Stage]) -> Vec<FieldId> {
    let mut found = Vec::new();
    for stage in stages {
        for_each_expr(stage, &mut |e| {
            e.visit(&mut |e| match e.kind {
                ExprKind::Field(id) if !found.contains(&id) => found.push(id),
                _ => {}
            });
        });
    }
    found
}

fn for_each_expr(stage: &Stage, f: &mut dyn FnMut(&weir_plan::Expr)) {
    match stage {
        Stage::Where(e) => f(e),
        Stage::Extend { columns } => columns.iter().for_each(|(_, _, e)| f(e)),
        Stage::Project { columns } => columns.iter().for_each(|(_, e)| f(e)),
        Stage::Summarize(s) => {
            s.keys.iter().for_each(|(_, e)| f(e));
            s.until.iter().for_each(&mut *f);
            s.aggs.iter().for_each(|a| {
                a.arg.iter().for_each(&mut *f);
                a.cond.iter().for_each(&mut *f);
            });
        }
        Stage::Scan(s) => {
            s.keys.iter().for_each(&mut *f);
            s.states.iter().for_each(|s| {
                f(&s.init);
                f(&s.update);
            });
        }
        Stage::Top { by, per, .. } => {
            by.iter().for_each(|k| f(&k.expr));
            per.iter().flat_map(|per| &per.keys).for_each(f);
        }
        Stage::Distinct(_) | Stage::Sample(_) | Stage::Each(_) => {
            super::rows::for_each_expr(stage, f);
        }
        Stage::Capture(c) => f(&c.name),
        Stage::Limit(_) | Stage::Join(_) | Stage::Union(_) => {}
        Stage::Ends(ends) => ends.for_each_expr(f),
    }
}
