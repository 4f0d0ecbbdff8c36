//! How long stages above the merge hold rows.

use weir_plan::{Program, Stage, Summarize, Window};

/// More than the clock of a time zone is ever set by, in nanoseconds.
const ZONE_NS: i64 = 2 * 86_400 * 1_000_000_000;

/// For how long stages above the merge hold rows after the windows of packets have closed.
pub(super) fn held_above_ns(program: &Program) -> i64 {
    // Of each pipeline: the lengths of all windows up to its rows, and how long those before the
    // last one hold rows back.
    let mut all: Vec<(i64, i64)> = Vec::new();
    for p in &program.pipelines {
        let sides = || p.sources().map(|side| all[side]);
        let mut span = sides().map(|(span, _)| span).max().unwrap_or(0);
        let mut held = sides().map(|(_, held)| held).max().unwrap_or(0);
        for stage in &p.stages {
            match stage {
                Stage::Summarize(s) => {
                    let is_first = span == 0;
                    span = span.saturating_add(length(s));
                    held = if is_first { held } else { span };
                }
                Stage::Join(join) => {
                    let wait = join.within.map_or(0, |within| within.to_ns.max(0));
                    span = span.saturating_add(wait).saturating_add(join.tick());
                    held = span;
                }
                Stage::Union(_) => held = span,
                _ => {}
            }
        }
        all.push((span, held));
    }
    all.into_iter().map(|(_, held)| held).max().unwrap_or(0)
}

/// The length of its windows with all that they wait for.
fn length(s: &Summarize) -> i64 {
    let over = match s.window {
        Window::Session(session) => session.gap_ns.saturating_add(session.tick_ns()),
        window => window.over().unwrap_or(0),
    };
    let zone = if s.zone.is_some() { ZONE_NS } else { 0 };
    over.saturating_add(s.lateness_ns).saturating_add(zone)
}
