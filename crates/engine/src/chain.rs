//! Segments one after the other: what one puts out, the next takes in.

use crate::functions::Functions;
use crate::graph::carried;
use crate::rows::Rows;
use crate::segment::{From, Segment, schema_after, span};
use crate::view::Origin;
use weir_packet::fields::FieldId;
use weir_plan::{Pipeline, Schema};

/// The workers' part of a pipeline over packets: its first `sharded` stages. `fields` collects what
/// the view must decode. One segment, and a further one behind each stage that makes several rows
/// of one.
pub(crate) fn on_workers(
    pipeline: &Pipeline,
    sharded: usize,
    functions: &Functions,
    fields: &mut Vec<FieldId>,
) -> Vec<Segment> {
    let mine = &pipeline.stages[..sharded];
    let at = span(mine);
    let goes = carried(&pipeline.stages, at);
    let mut chain = vec![Segment::new(mine, From::Packets, functions, fields, &goes)];
    let schema = schema_after(&mine[..at], &Schema::default());
    chain.extend(over_rows(pipeline, at..sharded, schema, functions));
    chain
}

/// Segments of the stages `range` of a pipeline, over rows of this schema that come with the packet
/// fields which those stages read.
pub(crate) fn over_rows(
    pipeline: &Pipeline,
    range: std::ops::Range<usize>,
    schema: Schema,
    functions: &Functions,
) -> Vec<Segment> {
    let carry = |at| match pipeline.input {
        weir_plan::Input::Packets => carried(&pipeline.stages, at),
        weir_plan::Input::Pipeline(_) => Vec::new(),
    };
    let stages = &pipeline.stages[..range.end];
    let (mut segments, mut at, mut schema) = (Vec::new(), range.start, schema);
    while at < stages.len() {
        let next = at + span(&stages[at..]);
        let (came, goes) = (carry(at), carry(next));
        let from = From::Rows(&schema, &came);
        segments.push(Segment::new(&stages[at..], from, functions, &mut Vec::new(), &goes));
        schema = schema_after(&stages[at..next], &schema);
        at = next;
    }
    segments
}

/// Pushes rows into the first segment and what comes out into the next; `out` takes what the last
/// puts out. `origin`: the batch that they were made of, on the workers.
pub(crate) fn push(
    segments: &mut [Segment],
    rows: &Rows,
    origin: Option<Origin<'_>>,
    out: &mut dyn FnMut(&Rows),
) {
    match segments.split_first_mut() {
        None => out(rows),
        Some((segment, rest)) => {
            segment.push_rows(rows, origin, &mut |rows| push(rest, rows, origin, out));
        }
    }
}
