//! When the watermark must interrupt the packets.

use crate::program::{Input, Program};
use crate::stage::{Stage, Summarize, Window};

/// Watermarks that interrupt packets: every multiple of `every_ns`, once the watermark is
/// `lateness_ns` past it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tick {
    /// From one to the next, in nanoseconds.
    pub every_ns: i64,
    /// How long after, in nanoseconds.
    pub lateness_ns: i64,
}

/// Where the groups of a `summarize` over packet time close: at the ends of its windows (of panes,
/// where windows slide), after the time that they stay open; and where it looks for sessions that
/// have ended. `None` without windows.
pub fn tick_of(s: &Summarize) -> Option<Tick> {
    match s.window {
        Window::Session(session) => Some(Tick { every_ns: session.tick_ns(), lateness_ns: 0 }),
        window => {
            let lateness_ns = s.lateness_ns;
            let tick = |pane| s.zone.map_or(pane, |zone| zone.tick(pane));
            window.pane().map(|pane| Tick { every_ns: tick(pane), lateness_ns })
        }
    }
}

/// Where closing windows must interrupt the packets: of all windows over packet time their length
/// (that of panes, where windows slide), and how long they stay open after the watermark has
/// passed. And how often sessions and joins look at the watermark. Sorted, each once.
pub fn ticks(program: &Program) -> Vec<Tick> {
    // Whether the rows of a pipeline come when packets do.
    let mut as_packets: Vec<bool> = Vec::new();
    let mut all: Vec<Tick> = Vec::new();
    let prompt = |every_ns| Tick { every_ns, lateness_ns: 0 };
    for p in &program.pipelines {
        let mut so_far = p.input == Input::Packets || p.sources().any(|i| as_packets[i]);
        for s in &p.stages {
            match s {
                Stage::Summarize(s) => {
                    if so_far {
                        all.extend(tick_of(s));
                    }
                    so_far = false;
                }
                Stage::Join(join) => {
                    if so_far && join.within.is_some() {
                        all.push(prompt(join.tick()));
                    }
                    so_far = false;
                }
                Stage::Alert(alert) => {
                    if so_far {
                        all.push(prompt(alert.tick_ns()));
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
/// Others have one that moves just where [`ticks`] says.
pub fn exact(program: &Program) -> Vec<bool> {
    let mut all = Vec::new();
    let holds = |s: &Stage| {
        matches!(s, Stage::Summarize(_) | Stage::Top { .. } | Stage::Join(_) | Stage::Alert(_))
    };
    for p in &program.pipelines {
        let sides = p.sources().all(|i| all[i]);
        all.push(sides && !p.stages.iter().any(holds));
    }
    all
}
