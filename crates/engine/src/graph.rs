//! What happens after the workers ([`Upper`](crate::upper::Upper)) to their merged rows and groups.
//!
//! Order of output. Packets are processed in steps. Between two steps the watermark may pass the
//! end of a window; every step lies between two such moments. Within a step the rows of several
//! printed pipelines are interleaved by packet number, then by pipeline; when windows close, by
//! pipeline. So the order depends neither on batches nor on workers.

pub(crate) mod exits;
mod head;
mod pass;
mod pending;
mod wants;

use crate::chain;
use crate::counters::Ledger;
use crate::functions::BuildContext;
use crate::limits::SPARE_ROWS;
use crate::ops::groups::Groups;
use crate::rows::{Output, Rows, Sink};
use crate::run::RunError;
use crate::run::panicked::at;
use crate::segment::{Segment, schema_after, span};
use exits::Exits;
use head::Head;
use pass::{Chain, Mode, Out, Pass};
use pending::Pending;
use std::io;
use weir_plan::place::Placement;
use weir_plan::{Input, Program, Schema, Stage};

/// The groups of a window that has closed: pipeline, start, groups.
pub type Closed = (usize, i64, Groups);

/// What happens after the workers.
pub struct Lower<'e> {
    pipes: Vec<Pipe>,
    printed: usize,
    /// Printed rows of this step, where several outputs print.
    pending: Pending,
    /// Groups that were put out: pipeline and memory, for the workers to use again.
    pub spent: Vec<(usize, Groups)>,
    written: Written,
    pub(crate) exits: Exits<'e>,
    /// Whether more may come, whatever comes of what runs now.
    pub(crate) stays: bool,
}

/// What the sink took, and what went wrong with it. Once something has, nothing more is written.
#[derive(Default)]
struct Written {
    /// Rows that there were for the sink, and those of them that came after it had failed.
    rows: u64,
    late: u64,
    failed: bool,
    error: Option<io::Error>,
}

impl Written {
    /// Calls the sink unless it failed before.
    fn guard(&mut self, call: impl FnOnce() -> io::Result<()>) {
        if !self.failed
            && let Err(e) = call()
        {
            self.failed = true;
            self.error = Some(e);
        }
    }

    fn write(&mut self, sink: &mut dyn Sink, output: usize, rows: &Rows) {
        self.rows += rows.len as u64;
        if self.failed {
            self.late += rows.len as u64;
        }
        self.guard(|| sink.rows(output, rows));
    }
}

/// A pipeline after the workers' part.
struct Pipe {
    input: Input,
    /// What puts the rows of several pipelines together, before the first segment.
    head: Option<Head>,
    /// The worker's segment again, for its emitter: where the workers end in a summarize.
    emitter: Option<Segment>,
    segments: Vec<Segment>,
    /// The number of their first stage, and how many stages the workers have.
    first: usize,
    sharded: usize,
    /// Its number among the printed ones.
    output: Option<usize>,
    /// Whether another pipeline reads it.
    read: bool,
    /// Whether its first segment holds all rows back, so that they need not wait for its turn.
    absorbs: bool,
    /// Rows that came in and wait for this pipeline's turn.
    incoming: Vec<Rows>,
    /// Memory of rows that came in before.
    spare: Vec<Rows>,
    /// The watermark of the rows that come out.
    watermark: i64,
    /// Whether it hands out frames, ...
    has_ends: bool,
    /// ... those of the workers among them.
    ends_above: bool,
}

impl<'e> Lower<'e> {
    /// The part of a program after the workers; frames go through `exits`.
    pub(crate) fn new(
        program: &Program,
        placement: &Placement,
        with: BuildContext<'_>,
        exits: Exits<'e>,
    ) -> Lower<'e> {
        let mut outputs = 0..;
        let pipes: Vec<Pipe> = (0..program.pipelines.len())
            .map(|p| {
                let sharded = placement.pipelines[p].sharded;
                let output = program.pipelines[p].printed.then(|| outputs.next().expect("endless"));
                Pipe::new(program, p, sharded, with, output)
            })
            .collect();
        let printed = pipes.iter().filter(|p| p.output.is_some()).count();
        Lower {
            pipes,
            printed,
            pending: Pending::default(),
            spent: Vec::new(),
            written: Written::default(),
            exits,
            stays: false,
        }
    }

    /// The printed pipelines, for [`Sink::open`].
    pub fn outputs(program: &Program) -> Vec<Output> {
        program
            .pipelines
            .iter()
            .filter(|p| p.printed)
            .map(|p| Output {
                name: p.name.clone(),
                schema: p.schema.clone(),
                capture: p.capture().cloned(),
            })
            .collect()
    }

    /// Takes rows that a worker's part of pipeline `p` put out in this step, in the order of their
    /// packets.
    pub fn take(&mut self, p: usize, rows: &Rows, sink: &mut dyn Sink) {
        if let Some(exit) = p.checked_sub(self.pipes.len()) {
            return self.exits.take(exit, rows);
        }
        if self.printed > 1 {
            let pipe = &mut self.pipes[p];
            match pipe.output {
                // They need not wait for a turn only to wait for their place in the output.
                Some(output) if pipe.is_end() => self.pending.hold(output, rows),
                _ => pipe.hold(rows),
            }
            return;
        }
        // There is nobody whose rows could have to come first.
        let mut pass = self.pass(p, sink);
        pass.out.mode = Mode::Step;
        pass.chain.push(0, rows, &mut pass.out);
        at(None);
    }

    /// Ends a step: rows that were taken go on, in the order of their packets.
    pub fn step(&mut self, sink: &mut dyn Sink) {
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Step, sink);
        }
        at(None);
        self.pending.write(&mut self.written, sink);
        self.exits.step();
    }

    /// Moves the watermark. `closed` holds the groups that close, by pipeline, then by time, and
    /// is left empty.
    pub fn watermark(&mut self, watermark: i64, closed: &mut Vec<Closed>, sink: &mut dyn Sink) {
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Close, sink);
            let mine = take_pipeline(closed, p);
            let of = |i: usize| self.pipes[i].watermark;
            let own = match (&self.pipes[p].head, self.pipes[p].input) {
                (Some(head), _) => head.sources().map(of).min().unwrap_or(watermark),
                (None, Input::Packets) => watermark,
                (None, Input::Pipeline(i)) => of(i),
            };
            let mut pass = self.pass(p, sink);
            let w = pass.emit(mine, Some(own));
            let w = pass.head_watermark(w);
            let w = pass.chain.watermark(w, &mut pass.out);
            self.pipes[p].watermark = w;
        }
        at(None);
        self.exits.close();
    }

    /// Ends the input: everything is put out. `closed` as in [`Lower::watermark`].
    pub fn finish(&mut self, closed: &mut Vec<Closed>, sink: &mut dyn Sink) {
        self.finish_some(&|_| true, closed, sink);
    }

    /// The same for some pipelines, with all that read them.
    pub(crate) fn finish_some(
        &mut self,
        which: &dyn Fn(usize) -> bool,
        closed: &mut Vec<Closed>,
        sink: &mut dyn Sink,
    ) {
        for p in (0..self.pipes.len()).filter(|&p| which(p)) {
            self.run_incoming(p, Mode::Close, sink);
            let mut mine = take_pipeline(closed, p);
            let mut pass = self.pass(p, sink);
            if mine.is_empty()
                && let Some(emitter) = &pass.emitter
            {
                mine.extend(emitter.lone().map(|groups| (0, groups)));
            }
            pass.emit(mine, None);
            pass.head_finish();
            pass.chain.finish(&mut pass.out);
        }
        at(None);
        self.exits.close();
    }

    /// Lets pipeline `p` take over what pipeline `q` of `old` holds in its first `same` stages, the
    /// workers' aside; says which of them had something to take over.
    pub(crate) fn resume(
        &mut self,
        p: usize,
        old: &mut Lower<'_>,
        q: usize,
        same: usize,
    ) -> Vec<usize> {
        let (mine, theirs) = (&mut self.pipes[p], &mut old.pipes[q]);
        let mut kept = Vec::new();
        if let (Some(head), Some(before)) = (&mut mine.head, &mut theirs.head)
            && same > 0
        {
            head.resume(before);
            kept.push(0);
        }
        if let (Some(emitter), Some(before)) = (&mut mine.emitter, &mut theirs.emitter)
            && same >= mine.sharded
        {
            emitter.resume_emitter(before);
        }
        let (segments, before) = (mine.segments.iter_mut(), theirs.segments.iter_mut());
        kept.extend(chain::resume(segments, before, mine.first, same));
        mine.watermark = theirs.watermark;
        kept
    }

    /// Whether no further packet can change what is printed or handed out: each pipeline that does
    /// either ends in a `limit` that has let its rows pass, with nothing behind it that holds rows
    /// back, and no ends before it.
    pub fn is_done(&self) -> bool {
        if self.stays {
            return false;
        }
        let mut ends = self.pipes.iter().filter(|p| p.output.is_some() || p.has_ends).peekable();
        ends.peek().is_some() && ends.all(Pipe::is_done)
    }

    /// What went wrong with the sink or the egress, if anything did; asked for once a step.
    pub fn take_error(&mut self) -> Option<RunError> {
        let egress = self.exits.take_error().map(RunError::Egress);
        self.written.error.take().map(RunError::Sink).or(egress)
    }

    /// Ends the run: closes the outlets; what went wrong last.
    pub(crate) fn end(&mut self) -> Option<RunError> {
        let closed = self.exits.finish().err();
        self.take_error().or(closed.map(RunError::Egress))
    }

    /// Takes the outlets of `old`, which counts them for the last time, and what went wrong there.
    pub(crate) fn follow(&mut self, old: &mut Lower<'e>, past: &mut Ledger) {
        self.exits.follow(&mut old.exits, past);
        (self.written.failed, self.written.error) = (old.written.failed, old.written.error.take());
    }

    /// Opens the outlets and the sink again, unless they failed before.
    pub(crate) fn open(&mut self, program: &Program, sink: &mut dyn Sink) {
        self.exits.reopen();
        self.written.guard(|| sink.open(&Lower::outputs(program)));
    }

    /// Lets the sink show what it has.
    pub fn flush(&mut self, sink: &mut dyn Sink) {
        self.written.guard(|| sink.flush());
        self.exits.flush();
    }

    /// Adds what was counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        ledger.rows += self.written.rows - self.written.late;
        ledger.unwritten += self.written.late;
        self.exits.count(ledger);
        for pipe in &self.pipes {
            pipe.emitter.iter().chain(&pipe.segments).for_each(|s| s.count(ledger));
            pipe.head.iter().for_each(|head| head.count(ledger));
        }
    }

    /// What runs here of each pipeline.
    #[cfg(debug_assertions)]
    pub(crate) fn outlines(&self) -> impl Iterator<Item = crate::run::agreement::Outline> {
        self.pipes.iter().map(|pipe| {
            let whole: usize = pipe.segments.iter().map(Segment::stages).sum();
            let half = pipe.emitter.is_some();
            let stages = whole + usize::from(half) + usize::from(pipe.head.is_some());
            crate::run::agreement::Outline { stages, half }
        })
    }

    /// Whether pipeline `p` is printed, and whether another one reads it.
    #[cfg(debug_assertions)]
    pub(crate) fn targets(&self, p: usize) -> [bool; 2] {
        [self.pipes[p].output.is_some(), self.pipes[p].read]
    }

    fn run_incoming(&mut self, p: usize, mode: Mode, sink: &mut dyn Sink) {
        if self.pipes[p].head.is_some() {
            let mut pass = self.pass(p, sink);
            pass.out.mode = mode;
            return pass.head_put_out();
        }
        if self.pipes[p].incoming.is_empty() {
            return;
        }
        let mut incoming = std::mem::take(&mut self.pipes[p].incoming);
        let mut pass = self.pass(p, sink);
        pass.out.mode = mode;
        for rows in &incoming {
            pass.chain.push(0, rows, &mut pass.out);
        }
        let pipe = &mut self.pipes[p];
        pipe.spare.append(&mut incoming);
        pipe.spare.truncate(SPARE_ROWS);
        pipe.incoming = incoming;
    }

    /// Takes the parts of pipeline `p` and of what follows it apart.
    fn pass<'a>(&'a mut self, p: usize, sink: &'a mut dyn Sink) -> Pass<'a, 'e> {
        at(Some(p));
        let (before, after) = self.pipes.split_at_mut(p + 1);
        let pipe = &mut before[p];
        Pass {
            emitter: pipe.emitter.as_mut(),
            head: pipe.head.as_mut(),
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
                exits: &mut self.exits,
                sink,
            },
        }
    }
}

impl Pipe {
    fn new(
        program: &Program,
        p: usize,
        sharded: usize,
        with: BuildContext<'_>,
        output: Option<usize>,
    ) -> Pipe {
        let pipeline = &program.pipelines[p];
        let (mine, rest) = pipeline.stages.split_at(sharded);
        let head = Head::new(program, p, with.hash_key);
        let schema = match pipeline.input {
            Input::Packets => schema_after(mine, &Schema::default()),
            Input::Pipeline(i) => program.pipelines[i].schema.clone(),
        };
        let (at, schema) = match head {
            Some(_) => (1, schema_after(&pipeline.stages[..1], &schema)),
            None => (sharded, schema),
        };
        // Those of the workers come first.
        let exit = program.ends().filter(|&(q, at, _)| (q, at) < (p, sharded)).count();
        let last = pipeline.stages.len();
        let mut segments = chain::over_rows(pipeline, at..last, schema, with, exit);
        if head::shares_numbers(program, p) {
            segments.iter_mut().for_each(Segment::number_rows);
        }
        let groups = matches!(mine.last(), Some(Stage::Summarize(_)));
        let holds = |s: &Stage| matches!(s, Stage::Summarize(_) | Stage::Top { .. });
        let ends = |s: &Stage| matches!(s, Stage::Ends(_));
        Pipe {
            input: pipeline.input,
            emitter: groups
                .then(|| chain::on_workers(pipeline, sharded, with, &mut Vec::new(), 0).pop())
                .flatten(),
            segments,
            first: at,
            sharded,
            head,
            output,
            read: program.pipelines.iter().any(|q| q.sources().any(|i| i == p)),
            absorbs: rest[..span(rest)].last().is_some_and(holds),
            incoming: Vec::new(),
            spare: Vec::new(),
            watermark: i64::MIN,
            has_ends: pipeline.stages.iter().any(ends),
            ends_above: mine.iter().any(ends),
        }
    }

    /// Whether rows of the workers' part are printed as they are, and nothing else.
    fn is_end(&self) -> bool {
        self.segments.is_empty() && !self.read
    }

    /// Whether no further row or frame can come of it: a `limit` has let its rows pass, nothing
    /// behind it holds rows back, and nothing before it hands out frames.
    fn is_done(&self) -> bool {
        let passing = self.segments.iter().rev().take_while(|s| s.passes_on());
        let Some(behind) = passing.enumerate().find(|(_, s)| s.is_done()).map(|(n, _)| n) else {
            return false;
        };
        let before = &self.segments[..self.segments.len() - behind - 1];
        !self.ends_above && before.iter().all(|s| !s.has_ends())
    }

    /// Takes rows of an earlier pipeline, if it reads that one.
    fn accept(&mut self, from: usize, rows: &Rows) {
        match &mut self.head {
            Some(head) => head.push(from, rows),
            None if self.input != Input::Pipeline(from) => {}
            None if self.absorbs => {
                let out = &mut |_: &Rows| unreachable!("a segment that holds rows back");
                self.segments[0].push_rows(rows, None, out);
            }
            None => self.hold(rows),
        }
    }

    /// Keeps a copy of rows for this pipeline's turn.
    fn hold(&mut self, rows: &Rows) {
        let mut copy = self.spare.pop().unwrap_or_else(|| rows.empty());
        copy.clear();
        copy.append(rows, 0..rows.len);
        self.incoming.push(copy);
    }
}

fn take_pipeline(closed: &mut Vec<Closed>, p: usize) -> Vec<(i64, Groups)> {
    let n = closed.partition_point(|(q, ..)| *q <= p);
    closed.drain(..n).map(|(_, start, groups)| (start, groups)).collect()
}
