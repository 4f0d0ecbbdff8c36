//! When the watermark must interrupt the packets.

use weir_plan::{Input, Program, Stage, Window};

/// Where closing windows must interrupt the packets: of all windows over packet time their length
/// (that of panes, where windows slide), and how long they stay open after the watermark has
/// passed. And how often sessions and joins look at the watermark.
pub fn window_lengths(program: &Program) -> Vec<(i64, i64)> {
    // Whether the rows of a pipeline come when packets do.
    let mut as_packets: Vec<bool> = Vec::new();
    let mut all: Vec<(i64, i64)> = Vec::new();
    for p in &program.pipelines {
        let mut so_far = p.input == Input::Packets || p.sources().any(|i| as_packets[i]);
        for s in &p.stages {
            match s {
                Stage::Summarize(s) => {
                    if so_far {
                        all.extend(s.window.pane().map(|d| (d, s.lateness_ns)));
                        if let Window::Session(session) = s.window {
                            all.push((session.tick_ns(), 0));
                        }
                    }
                    so_far = false;
                }
                Stage::Join(join) => {
                    if so_far && join.within.is_some() {
                        all.push((join.tick(), 0));
                    }
                    so_far = false;
                }
                Stage::Top { .. } => so_far = false,
                _ => {}
            }
        }
        as_packets.push(so_far);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Of each pipeline, whether its rows have the watermark of the packets themselves, moved by each.
/// Others have one that moves just where [`window_lengths`] says.
pub(super) fn exact(program: &Program) -> Vec<bool> {
    let mut all = Vec::new();
    let holds = |s: &Stage| matches!(s, Stage::Summarize(_) | Stage::Top { .. } | Stage::Join(_));
    for p in &program.pipelines {
        let sides = p.sources().all(|i| all[i]);
        all.push(sides && !p.stages.iter().any(holds));
    }
    all
}
