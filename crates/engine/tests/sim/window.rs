//! Random windows: one after the other, sliding, open for longer, filled in.

use crate::choices::Choices;
use crate::traffic::START_NS;
use weir_plan::limits::FILL_ROWS_MAX;
use weir_plan::{Fill, TimeZone, Window};

/// Distances of windows, in nanoseconds: from one packet each to everything in one.
const EVERY_NS: [i64; 6] =
    [1_000_000_000, 100_000_000, 250_000_000, 10_000_000_000, 7_000_000, 3_600_000_000_000];

/// A time zone, sometimes: one whose clocks are set forward and back while packets come, by less
/// than a window or by many.
pub(crate) fn zone(c: &mut Choices) -> Option<TimeZone> {
    const MS: i64 = 1_000_000;
    if !c.once_in(3) {
        return None;
    }
    let offset = |c: &mut Choices| *c.pick(&[0, 50, -50, 400, -1000, 3_600_000, -19_800_000]) * MS;
    let first = offset(c);
    let mut at = START_NS;
    let mut changes = Vec::new();
    for _ in 0..c.below(4) {
        at += *c.pick(&[50, 250, 300, 2_000, 60_000]) * MS;
        changes.push((at, offset(c)));
    }
    TimeZone::new("sim", first, &changes)
}

/// Windows over packets, or rows of other windows; their lateness, and whether they are filled in.
/// From the start on only the `first` are, so that answers do not grow from stage to stage.
pub(crate) fn windows(c: &mut Choices, packets: bool, first: bool) -> (Window, i64, Option<Fill>) {
    let every = *c.pick(&EVERY_NS);
    let window = match c.below(3) {
        0 | 1 => Window::Tumbling(every),
        _ => {
            // Whole distances, or some more, so that panes are shorter.
            let more = [0, every / 2, every / 4, every / 7 * 3];
            Window::Sliding { over: every * (1 + c.below(9) as i64) + *c.pick(&more), every }
        }
    };
    let lateness_ns = match c.below(4) {
        0..=2 => 0,
        _ => *c.pick(&[100_000_000, 30_000_000, 2_000_000_000, 1]),
    };
    // Many short windows would only make long answers, and more of them from stage to stage.
    let fills = every >= 100_000_000 && c.once_in(4);
    let ends = !packets || c.below(3) > 0;
    let longest = if packets { 20 * every } else { 1 };
    let idle_ns = *c.pick(&[every, every / 2, longest]);
    let max_rows = *c.pick(&[FILL_ROWS_MAX, FILL_ROWS_MAX, 7, 40]);
    let from_start = first && every >= 250_000_000 && c.once_in(3);
    let idle_ns = (ends && !from_start).then_some(idle_ns);
    // Each of many keys has all windows before it.
    let max_rows = if from_start { *c.pick(&[1000, 7, 40]) } else { max_rows };
    let fill = fills.then_some(Fill { idle_ns, from_start, max_rows });
    (window, lateness_ns, fill)
}
