//! Segments one after the other: what one puts out, the next takes in.

use crate::functions::BuildContext;
use crate::rows::Rows;
use crate::segment::{From, Segment, schema_after, span};
use crate::view::Origin;
use weir_packet::fields::FieldId;
use weir_plan::physical::{Carry, carried};
use weir_plan::{Input, Pipeline, Schema};

/// The workers' part of a pipeline over packets: its first `sharded` stages. `fields` collects what
/// the view must decode; `exit` is the number of its first stage that hands out frames. One
/// segment, and a further one behind each stage that makes several rows of one.
pub(crate) fn on_workers(
    pipeline: &Pipeline,
    sharded: usize,
    with: BuildContext<'_>,
    fields: &mut Vec<FieldId>,
    exit: usize,
) -> Vec<Segment> {
    let mine = &pipeline.stages[..sharded];
    let at = span(mine);
    let goes = carried(&pipeline.stages, at);
    let mut first = Segment::new(mine, From::Packets, with, fields, &goes);
    let exit = first.number_exits(exit);
    let schema = schema_after(&mine[..at], &Schema::default());
    let mut chain = vec![first];
    chain.extend(over_rows(pipeline, at..sharded, schema, with, exit));
    chain
}

/// Segments of the stages `range` of a pipeline, over rows of this schema that come with what those
/// stages read of packets. `exit` as in [`on_workers`].
pub(crate) fn over_rows(
    pipeline: &Pipeline,
    range: std::ops::Range<usize>,
    schema: Schema,
    with: BuildContext<'_>,
    exit: usize,
) -> Vec<Segment> {
    let carry = |at| match pipeline.input {
        Input::Packets => carried(&pipeline.stages, at),
        Input::Pipeline(_) => Carry::default(),
    };
    let stages = &pipeline.stages[..range.end];
    let (mut segments, mut at, mut schema, mut exit) = (Vec::new(), range.start, schema, exit);
    while at < stages.len() {
        let next = at + span(&stages[at..]);
        let (came, goes) = (carry(at), carry(next));
        let from = From::Rows(&schema, &came);
        let mut segment = Segment::new(&stages[at..], from, with, &mut Vec::new(), &goes);
        exit = segment.number_exits(exit);
        segments.push(segment);
        schema = schema_after(&stages[at..next], &schema);
        at = next;
    }
    segments
}

/// Lets segments take over what others hold, the first stage of which is number `first` of a
/// pipeline whose first `same` stages are the same in both. Says which stages had something to take
/// over.
pub(crate) fn resume<'a>(
    mine: impl Iterator<Item = &'a mut Segment>,
    theirs: impl Iterator<Item = &'a mut Segment>,
    first: usize,
    same: usize,
) -> Vec<usize> {
    let (mut kept, mut at) = (Vec::new(), first);
    for (segment, old) in mine.zip(theirs) {
        let Some(left) = same.checked_sub(at) else { break };
        kept.extend(segment.resume(old, left).into_iter().map(|stage| at + stage));
        at += segment.stages();
    }
    kept
}

/// What takes the rows and the frames that leave a chain.
pub(crate) trait Leaving {
    /// Rows of its last segment.
    fn rows(&mut self, rows: &Rows);

    /// Frames, with the number of the stage that they come from.
    fn frames(&mut self, exit: usize, rows: &Rows);
}

/// Pushes rows into the first segment and what comes out into the next; `out` takes what leaves.
/// `origin`: the batch that they were made of, on the workers.
pub(crate) fn push(
    segments: &mut [Segment],
    rows: &Rows,
    origin: Option<Origin<'_>>,
    out: &mut dyn Leaving,
) {
    match segments.split_first_mut() {
        None => out.rows(rows),
        Some((segment, rest)) => {
            segment.push_rows(rows, origin, &mut |rows| push(rest, rows, origin, out));
            segment.frames(&mut |exit, rows| out.frames(exit, rows));
        }
    }
}
