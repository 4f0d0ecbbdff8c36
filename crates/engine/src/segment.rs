//! A chain of operators over one set of registers, compiled from a run of stages.

mod ends;
mod gather;
mod resume;
mod rows;
mod summarize;

use crate::counters::Ledger;
use crate::expr::{Automaton, Compiler, Ctx, Regs, Scope, Src, Val};
use crate::functions::BuildContext;
use crate::losses::Book;
use crate::ops::each::Each;
use crate::ops::emit::Emitter;
use crate::ops::ends::FrameSlots;
use crate::ops::filter::Filter;
use crate::ops::groups::{Groups, Spec};
use crate::ops::limit::Limit;
use crate::ops::map::Map;
use crate::ops::scan::{Scan, State};
use crate::ops::top::Top;
use crate::ops::{Batch, Grouping, Operator};
use crate::rows::{Mover, Rows};
use crate::table::HashKey;
use crate::view::{Origin, Packets};
use ends::frame_columns;
use gather::Gather;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::{FieldId, Item, by_item};
use weir_packet::limits::BATCH;
use weir_plan::physical::Carry;
use weir_plan::{Schema, Stage, Type};

/// A chain and its end.
pub struct Segment {
    regs: Regs,
    ops: Vec<Box<dyn Operator>>,
    end: End,
    /// Which of the operators hand out frames, ...
    ends: Vec<usize>,
    /// ... and the number of the first among those of the program.
    first_exit: usize,
    time: Src,
    undefined: u64,
    /// How many of the operators there are up to each stage, and with it.
    stages: Vec<usize>,
    /// Whether another segment took over what the last stage held.
    moved: bool,
    /// Where rows come with numbers that others have too: how many came, and their own numbers.
    numbers: Option<(u64, Vec<u64>)>,
}

/// What happens to the rows that reach the end of a chain.
enum End {
    /// They leave, as rows.
    Rows(Box<Gather>),
    /// They are grouped.
    Summarize(Box<dyn Grouping>, Box<Emitter>),
    /// The best are kept.
    Top(Box<Top>),
    /// They leave as several rows each.
    Each(Box<Each>),
}

/// Where a segment's rows come from.
pub enum From<'a> {
    /// Packets; fields are decoded by the worker's view.
    Packets,
    /// Rows with these columns, and behind them what they carry.
    Rows(&'a Schema, &'a Carry),
}

/// The stages that one segment takes: up to and including the first that holds rows back, or makes
/// several rows of one.
pub fn span(stages: &[Stage]) -> usize {
    let ends = |s: &Stage| matches!(s, Stage::Summarize(_) | Stage::Top { .. } | Stage::Each(_));
    stages.iter().position(ends).map_or(stages.len(), |i| i + 1)
}

/// The columns after some stages.
pub fn schema_after(stages: &[Stage], before: &Schema) -> Schema {
    stages.iter().fold(before.clone(), |schema, stage| stage.output(&schema))
}

impl Segment {
    /// Compiles [`span`] of `stages`. `fields` collects what the view must decode. Packet fields
    /// in `carry` go along behind the columns of the rows that come out.
    pub fn new(
        stages: &[Stage],
        from: From<'_>,
        with: BuildContext<'_>,
        fields: &mut Vec<FieldId>,
        carry: &Carry,
    ) -> Segment {
        let mut build = Build {
            compiler: Compiler::new(with.functions, fields),
            hash_key: with.hash_key,
            scope: Scope::default(),
            schema: Schema::default(),
            ops: Vec::new(),
            time: Src::Slot(0),
            packets: matches!(from, From::Packets),
            ends: Vec::new(),
            frame: None,
        };
        build.time = build.input(&from);
        let (mut end, mut until) = (None, Vec::new());
        for stage in &stages[..span(stages)] {
            end = build.stage(stage, carry);
            until.push(build.ops.len());
        }
        let mut end = end.unwrap_or_else(|| build.gather(carry));
        let regs = build.compiler.regs;
        match &mut end {
            End::Rows(gather) => gather.share(&regs),
            End::Each(each) => each.share(&regs),
            End::Summarize(..) | End::Top(_) => {}
        }
        let (ops, ends, time) = (build.ops, build.ends, build.time);
        Segment {
            regs,
            ops,
            end,
            ends,
            first_exit: 0,
            time,
            undefined: 0,
            stages: until,
            moved: false,
            numbers: None,
        }
    }

    /// Pushes packets of a view.
    pub fn push_packets(
        &mut self,
        packets: Packets<'_>,
        order: &[u64],
        clock: &[i64],
        rows: Bits,
        out: &mut dyn FnMut(&Rows),
    ) {
        self.regs.next_batch();
        self.push((Some(packets), None), order, clock, rows, out);
    }

    /// Pushes rows; `origin` is the batch of packets that they were made of, while it is at hand.
    pub fn push_rows(
        &mut self,
        rows: &Rows,
        origin: Option<Origin<'_>>,
        out: &mut dyn FnMut(&Rows),
    ) {
        self.regs.next_batch();
        let Src::Slot(time) = self.time else { unreachable!("rows have their time in a register") };
        for (to, from) in self.regs.columns.iter_mut().zip(&rows.columns) {
            to.copy_first(from, rows.len);
        }
        self.regs.columns[time].copy_first(&rows.time, rows.len);
        if !rows.texts.is_empty() {
            let Regs { columns, arena, .. } = &mut self.regs;
            let mut mover = Mover::new(&rows.arena, arena);
            rows.texts.iter().for_each(|&c| mover.column(&mut columns[c], 0..rows.len));
        }
        let all = Bits::first(rows.len);
        let Some((count, mut own)) = self.numbers.take() else {
            return self.push((None, origin), &rows.order, &rows.clock, all, out);
        };
        let next = count + rows.len as u64;
        own.clear();
        own.extend(count..next);
        self.push((None, origin), &own, &rows.clock, all, out);
        self.numbers = Some((next, own));
    }

    /// Says that rows may come with the same number, though one after the other. A segment that
    /// holds rows back numbers them itself then.
    pub fn number_rows(&mut self) {
        if !self.passes_on() {
            self.numbers = Some((0, Vec::with_capacity(BATCH)));
        }
    }

    fn push(
        &mut self,
        (view, origin): (Option<Packets<'_>>, Option<Origin<'_>>),
        order: &[u64],
        clock: &[i64],
        rows: Bits,
        out: &mut dyn FnMut(&Rows),
    ) {
        let n = order.len();
        let ctx = Ctx { view, regs: &mut self.regs, n, undefined: &mut self.undefined };
        let mut batch = Batch { ctx, time: self.time, order, clock, origin };
        let mut rows = rows;
        for op in &mut self.ops {
            rows = op.push(&mut batch, rows);
            if rows.is_empty() {
                return;
            }
        }
        match &mut self.end {
            End::Rows(gather) => {
                gather.fill(&mut batch, rows);
                out(&gather.out);
            }
            End::Summarize(op, _) => op.push(&mut batch, rows),
            End::Top(top) => top.push(&mut batch, rows),
            End::Each(each) => each.push(&mut batch, rows, out),
        }
    }

    /// Tells the operators of the chain the watermark, and hands out what a summarize closes.
    pub fn close(&mut self, watermark: i64, closed: &mut Vec<(i64, Groups)>) {
        self.ops.iter_mut().for_each(|op| op.watermark(watermark));
        if let End::Summarize(op, _) = &mut self.end {
            op.watermark(watermark, closed);
        }
    }

    /// Hands out all that a summarize holds.
    pub fn close_all(&mut self, closed: &mut Vec<(i64, Groups)>) {
        if let End::Summarize(op, _) = &mut self.end {
            op.finish(closed);
        }
    }

    /// Moves the watermark and puts out what can now be said; returns the watermark of the rows
    /// that come out.
    pub fn watermark(&mut self, watermark: i64, out: &mut dyn FnMut(&Rows)) -> i64 {
        let mut closed = Vec::new();
        self.close(watermark, &mut closed);
        match &mut self.end {
            End::Rows(_) | End::Each(_) => watermark,
            End::Summarize(..) => {
                self.emit(closed, Some(watermark), out);
                self.spec().map_or(watermark, |s| s.downstream(watermark))
            }
            End::Top(top) => {
                top.watermark(watermark, out);
                if top.is_windowed() { watermark } else { i64::MIN }
            }
        }
    }

    /// Puts everything out.
    pub fn finish(&mut self, out: &mut dyn FnMut(&Rows)) {
        let mut closed = Vec::new();
        self.close_all(&mut closed);
        if closed.is_empty() {
            closed.extend(self.lone().map(|groups| (0, groups)));
        }
        match &mut self.end {
            End::Rows(_) | End::Each(_) => {}
            End::Summarize(..) => self.emit(closed, None, out),
            End::Top(top) => top.finish(out),
        }
    }

    fn emit(
        &mut self,
        closed: Vec<(i64, Groups)>,
        watermark: Option<i64>,
        out: &mut dyn FnMut(&Rows),
    ) {
        if let End::Summarize(op, emitter) = &mut self.end {
            let spent = &mut |groups| op.recycle(groups);
            emitter.close(closed, watermark, &mut self.undefined, spent, out);
        }
    }

    /// Puts out what can be, now that `closed` have closed at this watermark; `None` is the end of
    /// the input. `spent` takes memory that is not needed any more.
    pub fn put_out(
        &mut self,
        closed: Vec<(i64, Groups)>,
        watermark: Option<i64>,
        spent: &mut dyn FnMut(Groups),
        out: &mut dyn FnMut(&Rows),
    ) {
        if let End::Summarize(_, emitter) = &mut self.end {
            emitter.close(closed, watermark, &mut self.undefined, spent, out);
        }
    }

    /// Makes new tables of a summarize with room for about so many groups.
    pub fn expect_groups(&mut self, groups: usize) {
        if let End::Summarize(op, _) = &mut self.end {
            op.expect_groups(groups);
        }
    }

    /// Takes groups back that were put out, to use their memory again.
    pub fn recycle(&mut self, groups: Groups) {
        if let End::Summarize(op, _) = &mut self.end {
            op.recycle(groups);
        }
    }

    /// Lets its summarize look up in this book what was lost, if it asks for that.
    pub(crate) fn look_up(&mut self, book: &Book) {
        if let End::Summarize(_, emitter) = &mut self.end {
            emitter.look_up(book);
        }
    }

    /// The one group of a summary of the whole input to which no row came.
    pub fn lone(&self) -> Option<Groups> {
        match &self.end {
            End::Summarize(_, emitter) if !self.moved => emitter.lone(),
            _ => None,
        }
    }

    /// What its summarize is, if it ends in one.
    pub fn spec(&self) -> Option<&Arc<Spec>> {
        match &self.end {
            End::Summarize(op, _) => Some(op.spec()),
            _ => None,
        }
    }

    /// Whether no further row or frame can come out, and none is held back.
    pub fn is_done(&self) -> bool {
        let until = |n: usize| self.ops[..n].iter().any(|op| op.is_done());
        self.passes_on() && until(self.ops.len()) && self.ends.iter().all(|&at| until(at))
    }

    /// Whether rows leave as they come, and none is held back.
    pub fn passes_on(&self) -> bool {
        matches!(self.end, End::Rows(_) | End::Each(_))
    }

    /// Adds what was counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        ledger.undefined += self.undefined;
        self.ops.iter().for_each(|op| op.count(ledger));
        match &self.end {
            End::Summarize(op, emitter) => {
                op.count(ledger);
                emitter.count(ledger);
            }
            End::Top(top) => top.count(ledger),
            End::Each(each) => each.count(ledger),
            End::Rows(_) => {}
        }
    }
}

/// A segment being compiled.
struct Build<'a> {
    compiler: Compiler<'a>,
    hash_key: HashKey,
    scope: Scope,
    schema: Schema,
    ops: Vec<Box<dyn Operator>>,
    /// Where event time stands.
    time: Src,
    /// Whether the rows that come in are the packets of a view.
    packets: bool,
    ends: Vec<usize>,
    /// Where the frame stands, if it came along.
    frame: Option<FrameSlots>,
}

impl Build<'_> {
    /// Gives registers to the input's columns; says where its time is.
    fn input(&mut self, from: &From<'_>) -> Src {
        match from {
            From::Packets => self.compiler.field(by_item(Item::Ts), &self.scope),
            From::Rows(schema, carried) => {
                self.schema = (*schema).clone();
                for column in &schema.columns {
                    let slot = self.compiler.slot(&column.ty);
                    self.scope.columns.push(Src::Slot(slot));
                }
                for &id in &carried.fields {
                    let slot = self.compiler.slot(&id.info().ty.into());
                    self.scope.carried.push((id, Src::Slot(slot)));
                }
                if carried.frame {
                    let [bytes, len, origin] = self.frame_slots().map(Src::Slot);
                    self.frame = Some(FrameSlots { bytes, len, origin });
                }
                Src::Slot(self.compiler.slot(&Type::Time))
            }
        }
    }

    fn stage(&mut self, stage: &Stage, carry: &Carry) -> Option<End> {
        let after = schema_after(std::slice::from_ref(stage), &self.schema);
        match stage {
            Stage::Where(e) => {
                let condition = self.compiler.condition(e, &self.scope);
                self.ops.push(Box::new(Filter::new(condition)));
            }
            Stage::Extend { columns } => {
                let mut new = self.scope.columns.clone();
                new.resize(after.columns.len(), Src::Slot(0));
                let srcs = self.compute(columns.iter().map(|(_, _, e)| e));
                columns.iter().zip(srcs).for_each(|((_, at, _), src)| new[*at] = src);
                self.scope.columns = new;
            }
            Stage::Capture(c) => {
                let src = self.compute(std::iter::once(&c.name))[0];
                self.scope.columns.resize(after.columns.len(), Src::Slot(0));
                self.scope.columns[c.output] = src;
            }
            Stage::Project { columns } => {
                self.scope.columns = self.compute(columns.iter().map(|(_, e)| e));
            }
            Stage::Scan(scan) => self.scan(scan, after.columns.len()),
            Stage::Limit(n) => self.ops.push(Box::new(Limit::new(*n))),
            Stage::Join(_) | Stage::Union(_) => unreachable!("stands before the first segment"),
            Stage::Ends(ends) => self.send(ends),
            Stage::Summarize(s) => return Some(self.summarize(s, after)),
            Stage::Top { n, by, windowed, per } => {
                return Some(self.top((*n, *windowed), by, per.as_ref(), after, carry));
            }
            Stage::Distinct(d) => self.distinct(d),
            Stage::Sample(sample) => self.sample(sample),
            Stage::Each(each) => return Some(self.each(each, &after, carry)),
        }
        self.schema = after;
        None
    }

    /// Compiles expressions into one map; says where their results stand.
    fn compute<'e>(&mut self, exprs: impl Iterator<Item = &'e weir_plan::Expr>) -> Vec<Src> {
        let (mut srcs, mut values) = (Vec::new(), Vec::new());
        for e in exprs {
            let value = self.compiler.value(e, &self.scope);
            srcs.push(value.out());
            if !matches!(value, Val::Src(_)) {
                values.push(value);
            }
        }
        if !values.is_empty() {
            self.ops.push(Box::new(Map::new(values)));
        }
        srcs
    }

    fn scan(&mut self, scan: &weir_plan::Scan, columns: usize) {
        let keys = scan.keys.iter().map(|k| self.compiler.value(k, &self.scope)).collect();
        let before: Vec<usize> =
            scan.states.iter().map(|s| self.compiler.slot(&s.init.ty)).collect();
        let mut inner = self.scope.clone();
        inner.states = before.iter().map(|&slot| Src::Slot(slot)).collect();
        let mut new = self.scope.columns.clone();
        new.resize(columns, Src::Slot(0));
        let mut states = Vec::new();
        for (state, before) in scan.states.iter().zip(before) {
            let after = self.compiler.slot(&state.init.ty);
            new[state.output] = Src::Slot(after);
            states.push(State {
                init: self.compiler.value(&state.init, &self.scope),
                update: self.compiler.value(&state.update, &inner),
                before,
                after,
                ty: state.init.ty.clone(),
            });
        }
        let automaton = Automaton::of(&scan.states, &mut self.compiler, &self.scope);
        self.ops.push(Box::new(Scan::new(scan, keys, states, automaton, self.hash_key)));
        self.scope.columns = new;
    }

    fn gather(&mut self, carry: &Carry) -> End {
        let mut columns = self.scope.columns.clone();
        let mut out = Rows::new(&self.schema);
        for &id in &carry.fields {
            columns.push(self.compiler.field(id, &self.scope));
            if id.info().ty.is_text() {
                out.texts.push(out.columns.len());
            }
            out.columns.push(Column::new(id.info().ty.repr()));
        }
        for (src, column) in self.frame(carry).into_iter().zip(frame_columns()) {
            columns.push(src);
            if column.ty == Type::Bytes {
                out.texts.push(out.columns.len());
            }
            out.columns.push(Column::new(column.ty.repr()));
        }
        End::Rows(Box::new(Gather { columns, out, shared: 0 }))
    }
}
