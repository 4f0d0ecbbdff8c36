//! Random programs that hold much above the groups of workers.

use super::{GROUPS_MAX, Rows, SPANS_NS, agg, alert, choose, feeds, keys, scan, sides, summarize};
use crate::choices::Choices;
use crate::window::zone;
use weir_plan::{Input, Pipeline, Program, Schema, Stage, Summarize, Window};

/// A program of short windows over packets, with stages after them that hold rows or keys: most of
/// what it holds stands above the groups of producers.
pub(crate) fn above(c: &mut Choices) -> Program {
    let mut program = Program::default();
    let mut ends: Vec<Rows> = Vec::new();
    for _ in 0..1 + c.below(2) {
        let mut rows = Rows::packets();
        let every = *c.pick(&[SPANS_NS[4], SPANS_NS[1], SPANS_NS[0]]);
        let keys: Vec<_> = keys(c, &rows).into_iter().map(|k| (rows.fresh(), k)).collect();
        let scope = rows.scope();
        let aggs: Vec<_> = (0..1 + c.below(3)).map(|_| agg(c, &scope, rows.fresh())).collect();
        let zone = zone(c);
        let stage = Stage::Summarize(Summarize {
            keys,
            aggs,
            window: Window::Tumbling(every),
            zone,
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            max_groups: GROUPS_MAX,
        });
        rows.schema = stage.output(&Schema::default());
        (rows.fields, rows.at_hand, rows.windowed) = (false, false, true);
        let (input, schema) = (Input::Packets, rows.schema.clone());
        let stages = vec![stage];
        program.pipelines.push(Pipeline { name: None, input, stages, schema, printed: true });
        ends.push(rows);
    }
    for _ in 0..1 + c.below(2) {
        let source = c.below(ends.len());
        feeds(c, &mut program, source);
        let mut rows = ends[source].clone();
        let mut stages: Vec<Stage> = sides::stage(c, &mut rows, &ends).into_iter().collect();
        stages.extend((0..1 + c.below(3)).map(|_| holding(c, &mut rows)));
        let (input, schema) = (Input::Pipeline(source), rows.schema.clone());
        let one = Pipeline { name: None, input, stages, schema, printed: true };
        one.sources().for_each(|n| feeds(c, &mut program, n));
        program.pipelines.push(one);
        ends.push(rows);
    }
    program
}

/// A stage over rows that mostly holds something from window to window.
fn holding(c: &mut Choices, rows: &mut Rows) -> Stage {
    match c.below(9) {
        0..=2 => scan(c, rows),
        3 | 4 if rows.timed => alert(c, rows),
        5 => {
            // Rows without windows wait for the end of the input.
            rows.windowed &= c.once_in(4);
            choose::top(c, rows)
        }
        6 => choose::distinct(c, rows),
        7 => choose::sample(c, rows),
        _ => summarize(c, rows),
    }
}
