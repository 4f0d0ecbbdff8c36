//! What happens after the workers ([`Upper`](crate::upper::Upper)) to their merged rows and groups.
//!
//! Order of output. Packets are processed in steps. Between two steps the watermark may pass the
//! end of a window; every step lies between two such moments. Within a step the rows of several
//! printed pipelines are interleaved by packet number, then by pipeline; when windows close, by
//! pipeline. So the order depends neither on batches nor on workers.

use crate::counters::Ledger;
use crate::functions::Functions;
use crate::ops::groups::Groups;
use crate::rows::{Output, Rows, Sink};
use crate::segment::{From, Segment, fields_read, schema_after, span};
use std::io;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_plan::place::Placement;
use weir_plan::{Input, Pipeline, Program, Schema, Stage, Window};

/// The groups of a window that has closed: pipeline, start, groups.
pub type Closed = (usize, i64, Groups);

/// The packet fields that the stages from `at` on still read.
pub(crate) fn carried(stages: &[Stage], at: usize) -> Vec<FieldId> {
    let drops = |s: &Stage| matches!(s, Stage::Project { .. } | Stage::Summarize(_));
    let (mine, rest) = stages.split_at(at);
    if mine.iter().any(drops) {
        return Vec::new();
    }
    let until = rest.iter().position(drops).map_or(rest.len(), |i| i + 1);
    fields_read(&rest[..until])
}

/// Where closing windows must interrupt the packets: the lengths of all windows over packet time.
pub fn window_lengths(program: &Program) -> Vec<i64> {
    // Whether the rows of a pipeline still have the time of packets, and come when packets do.
    let mut as_packets: Vec<bool> = Vec::new();
    let mut all: Vec<i64> = Vec::new();
    for p in &program.pipelines {
        let mut so_far = match p.input {
            Input::Packets => true,
            Input::Pipeline(i) => as_packets[i],
        };
        for s in &p.stages {
            match s {
                Stage::Summarize(s) => {
                    if let (true, Window::Tumbling(d)) = (so_far, s.window) {
                        all.push(d);
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

/// What happens after the workers.
pub struct Lower {
    pipes: Vec<Pipe>,
    printed: usize,
    /// Printed rows of this step, where several outputs print.
    pending: Vec<(usize, Rows)>,
    /// Groups that were put out: pipeline and memory, for the workers to use again.
    pub spent: Vec<(usize, Groups)>,
    written: u64,
    failure: Failure,
}

/// What went wrong with the sink. Once something has, nothing more is written.
#[derive(Default)]
struct Failure {
    failed: bool,
    error: Option<io::Error>,
}

impl Failure {
    /// Calls the sink unless it failed before; says whether it took the call.
    fn guard(&mut self, call: impl FnOnce() -> io::Result<()>) -> bool {
        if !self.failed
            && let Err(e) = call()
        {
            self.failed = true;
            self.error = Some(e);
        }
        !self.failed
    }
}

/// A pipeline after the workers' part.
struct Pipe {
    input: Input,
    /// The worker's segment again, for its emitter: where the workers end in a summarize.
    emitter: Option<Segment>,
    segments: Vec<Segment>,
    /// Its number among the printed ones.
    output: Option<usize>,
    /// Whether another pipeline reads it.
    read: bool,
    /// Rows that came in and wait for this pipeline's turn.
    incoming: Vec<Rows>,
    /// The watermark of the rows that come out.
    watermark: i64,
}

impl Lower {
    /// The part of a program after the workers.
    pub fn new(program: &Program, placement: &Placement, functions: &Functions) -> Lower {
        let mut outputs = 0..;
        let pipes: Vec<Pipe> = program
            .pipelines
            .iter()
            .enumerate()
            .map(|(p, pipeline)| {
                let sharded = placement.pipelines[p].sharded;
                let mine = &pipeline.stages[..sharded];
                let schema = match pipeline.input {
                    Input::Packets => schema_after(mine, &Schema::default()),
                    Input::Pipeline(i) => program.pipelines[i].schema.clone(),
                };
                let groups = matches!(mine.last(), Some(Stage::Summarize(_)));
                Pipe {
                    input: pipeline.input,
                    emitter: groups.then(|| {
                        Segment::new(mine, From::Packets, functions, &mut Vec::new(), &[])
                    }),
                    segments: segments(pipeline, sharded, schema, functions),
                    output: pipeline.printed.then(|| outputs.next().expect("endless")),
                    read: program.pipelines.iter().any(|q| q.input == Input::Pipeline(p)),
                    incoming: Vec::new(),
                    watermark: i64::MIN,
                }
            })
            .collect();
        let printed = pipes.iter().filter(|p| p.output.is_some()).count();
        Lower {
            pipes,
            printed,
            pending: Vec::new(),
            spent: Vec::new(),
            written: 0,
            failure: Failure::default(),
        }
    }

    /// The printed pipelines, for [`Sink::open`].
    pub fn outputs(program: &Program) -> Vec<Output> {
        program
            .pipelines
            .iter()
            .filter(|p| p.printed)
            .map(|p| Output { name: p.name.clone(), schema: p.schema.clone() })
            .collect()
    }

    /// Takes rows that a worker's part of pipeline `p` put out.
    pub fn take(&mut self, p: usize, rows: &Rows) {
        self.pipes[p].incoming.push(rows.clone());
    }

    /// Takes the rows of one step from several workers, and puts them in the order of packets.
    pub fn take_unordered(&mut self, rows: Vec<(usize, Rows)>) {
        for p in 0..self.pipes.len() {
            let mine: Vec<&Rows> = rows.iter().filter(|(q, _)| *q == p).map(|(_, r)| r).collect();
            let mut order: Vec<(u64, usize, usize)> = Vec::new();
            for (b, rows) in mine.iter().enumerate() {
                order.extend((0..rows.len).map(|i| (rows.order[i], b, i)));
            }
            order.sort_unstable();
            for run in order.chunks(BATCH) {
                let mut rows = mine[run[0].1].empty();
                run.iter().for_each(|&(_, b, i)| rows.push(mine[b], i));
                self.pipes[p].incoming.push(rows);
            }
        }
    }

    /// Ends a step: rows that were taken go on, in the order of their packets.
    pub fn step(&mut self, sink: &mut dyn Sink) {
        if self.pipes.iter().all(|p| p.incoming.is_empty()) {
            return;
        }
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Step, sink);
        }
        self.flush_pending(sink);
    }

    /// Moves the watermark. `closed` holds the groups of all workers, each worker's windows by
    /// time.
    pub fn watermark(&mut self, watermark: i64, closed: Vec<Closed>, sink: &mut dyn Sink) {
        let mut closed = merge(closed);
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Close, sink);
            let mine = take_pipeline(&mut closed, p);
            let own = match self.pipes[p].input {
                Input::Packets => watermark,
                Input::Pipeline(i) => self.pipes[i].watermark,
            };
            let mut pass = self.pass(p, sink);
            let w = pass.emit(mine, own);
            let w = pass.chain.watermark(w, &mut pass.out);
            self.pipes[p].watermark = w;
        }
    }

    /// Ends the input: everything is put out.
    pub fn finish(&mut self, closed: Vec<Closed>, sink: &mut dyn Sink) {
        let mut closed = merge(closed);
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Close, sink);
            let mut mine = take_pipeline(&mut closed, p);
            let mut pass = self.pass(p, sink);
            if mine.is_empty()
                && let Some(emitter) = &pass.emitter
            {
                mine.extend(emitter.lone().map(|groups| (0, groups)));
            }
            pass.emit(mine, i64::MAX);
            pass.chain.finish(&mut pass.out);
        }
    }

    /// Whether no further packet can change what is printed: each printed pipeline ends in a
    /// `limit` that has let its rows pass, with nothing behind it that holds rows back.
    pub fn is_done(&self) -> bool {
        let mut printed = self.pipes.iter().filter(|p| p.output.is_some());
        self.printed > 0 && printed.all(|p| p.segments.last().is_some_and(Segment::is_done))
    }

    /// What went wrong with the sink, if anything did; asked for once a step.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.failure.error.take()
    }

    /// Lets the sink show what it has.
    pub fn flush(&mut self, sink: &mut dyn Sink) {
        self.failure.guard(|| sink.flush());
    }

    /// Adds what was counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        ledger.rows += self.written;
        for pipe in &self.pipes {
            pipe.emitter.iter().chain(&pipe.segments).for_each(|s| s.count(ledger));
        }
    }

    fn run_incoming(&mut self, p: usize, mode: Mode, sink: &mut dyn Sink) {
        let incoming = std::mem::take(&mut self.pipes[p].incoming);
        let mut pass = self.pass(p, sink);
        pass.out.mode = mode;
        for rows in &incoming {
            pass.chain.push(0, rows, &mut pass.out);
        }
    }

    /// Takes the parts of pipeline `p` and of what follows it apart.
    fn pass<'a>(&'a mut self, p: usize, sink: &'a mut dyn Sink) -> Pass<'a> {
        let (before, after) = self.pipes.split_at_mut(p + 1);
        let pipe = &mut before[p];
        Pass {
            emitter: pipe.emitter.as_mut(),
            spent: &mut self.spent,
            chain: Chain(&mut pipe.segments),
            out: Out {
                number: p,
                output: pipe.output,
                read: pipe.read,
                after,
                alone: self.printed == 1,
                mode: Mode::Close,
                pending: &mut self.pending,
                written: &mut self.written,
                failure: &mut self.failure,
                sink,
            },
        }
    }

    /// Writes the rows of several outputs in the order of their packets, in runs as long as that
    /// order allows.
    fn flush_pending(&mut self, sink: &mut dyn Sink) {
        let mut order: Vec<(u64, usize, usize, usize)> = Vec::new();
        for (b, (output, rows)) in self.pending.iter().enumerate() {
            order.extend((0..rows.len).map(|i| (rows.order[i], *output, b, i)));
        }
        order.sort_unstable();
        for run in order.chunk_by(|x, y| x.1 == y.1) {
            for run in run.chunks(BATCH) {
                let (_, output, b, _) = run[0];
                let mut rows = self.pending[b].1.empty();
                run.iter().for_each(|&(_, _, b, i)| rows.push(&self.pending[b].1, i));
                write(sink, output, &rows, &mut self.written, &mut self.failure);
            }
        }
        self.pending.clear();
    }
}

/// Whether rows may wait for those of other pipelines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Step,
    Close,
}

/// One pipeline at work.
struct Pass<'a> {
    emitter: Option<&'a mut Segment>,
    spent: &'a mut Vec<(usize, Groups)>,
    chain: Chain<'a>,
    out: Out<'a>,
}

impl Pass<'_> {
    /// Puts out the groups of windows that closed at `watermark`; returns the watermark of the
    /// rows.
    fn emit(&mut self, closed: Vec<(i64, Groups)>, watermark: i64) -> i64 {
        let Some(emitter) = &mut self.emitter else { return watermark };
        for (start, mut groups) in closed {
            emitter.emit_window(start, &mut groups, &mut |rows| {
                self.chain.push(0, rows, &mut self.out);
            });
            self.spent.push((self.out.number, groups));
        }
        emitter.spec().map_or(watermark, |s| s.downstream(watermark))
    }
}

/// The segments of a pipeline after the workers.
struct Chain<'a>(&'a mut [Segment]);

impl Chain<'_> {
    /// Pushes rows into segment `at` and what comes out into the next.
    fn push(&mut self, at: usize, rows: &Rows, out: &mut Out<'_>) {
        push_chain(&mut self.0[at..], rows, out);
    }

    /// Moves the watermark through all segments; returns that of what comes out.
    fn watermark(&mut self, watermark: i64, out: &mut Out<'_>) -> i64 {
        (0..self.0.len()).fold(watermark, |w, at| {
            let (segment, rest) = self.0[at..].split_first_mut().expect("at is in range");
            segment.watermark(w, &mut |rows| push_chain(rest, rows, out))
        })
    }

    /// Ends the input of all segments.
    fn finish(&mut self, out: &mut Out<'_>) {
        for at in 0..self.0.len() {
            let (segment, rest) = self.0[at..].split_first_mut().expect("at is in range");
            segment.finish(&mut |rows| push_chain(rest, rows, out));
        }
    }
}

fn push_chain(segments: &mut [Segment], rows: &Rows, out: &mut Out<'_>) {
    match segments.split_first_mut() {
        None => out.rows(rows),
        Some((segment, rest)) => segment.push_rows(rows, &mut |rows| push_chain(rest, rows, out)),
    }
}

/// Where the rows of a pipeline go.
struct Out<'a> {
    number: usize,
    output: Option<usize>,
    read: bool,
    after: &'a mut [Pipe],
    /// Whether only one pipeline prints, so that its rows need not wait for others.
    alone: bool,
    mode: Mode,
    pending: &'a mut Vec<(usize, Rows)>,
    written: &'a mut u64,
    failure: &'a mut Failure,
    sink: &'a mut dyn Sink,
}

impl Out<'_> {
    fn rows(&mut self, rows: &Rows) {
        if self.read {
            let me = Input::Pipeline(self.number);
            for pipe in self.after.iter_mut().filter(|p| p.input == me) {
                pipe.incoming.push(rows.clone());
            }
        }
        let Some(output) = self.output else { return };
        if self.alone || self.mode == Mode::Close {
            write(self.sink, output, rows, self.written, self.failure);
        } else {
            self.pending.push((output, rows.clone()));
        }
    }
}

fn write(
    sink: &mut dyn Sink,
    output: usize,
    rows: &Rows,
    written: &mut u64,
    failure: &mut Failure,
) {
    if failure.guard(|| sink.rows(output, rows)) {
        *written += rows.len as u64;
    }
}

/// The segments of a pipeline from stage `at` on, over rows of this schema.
fn segments(pipeline: &Pipeline, at: usize, schema: Schema, functions: &Functions) -> Vec<Segment> {
    let stages = &pipeline.stages;
    let carry = |at| match pipeline.input {
        Input::Packets => carried(stages, at),
        Input::Pipeline(_) => Vec::new(),
    };
    let (mut segments, mut at, mut schema) = (Vec::new(), at, schema);
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

/// Merges groups of the same pipeline and window; the result is sorted by both.
fn merge(mut closed: Vec<Closed>) -> Vec<Closed> {
    closed.sort_by_key(|(p, start, _)| (*p, *start));
    let mut merged: Vec<Closed> = Vec::with_capacity(closed.len());
    for (p, start, groups) in closed {
        match merged.last_mut() {
            Some((q, s, into)) if (*q, *s) == (p, start) => into.merge(&groups),
            _ => merged.push((p, start, groups)),
        }
    }
    merged
}

fn take_pipeline(closed: &mut Vec<Closed>, p: usize) -> Vec<(i64, Groups)> {
    let n = closed.partition_point(|(q, ..)| *q <= p);
    closed.drain(..n).map(|(_, start, groups)| (start, groups)).collect()
}
