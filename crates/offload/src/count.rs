//! Pipelines whose partial `summarize` the kernel runs: their values, and the code that counts.
//!
//! The program asks all pipelines first. Where none wants the frame, each one that counts it
//! finds its slot; only when all have one, all count.

use crate::emit::{Emit, TooDeep, Ways};
use crate::frame::{Access, KEY, KEY_WORDS_MAX, STACK_USED, STATES};
use crate::key::{shape, word, write_key};
use crate::lower::{Columns, lower, lower_test};
use crate::table::{Control, Table, TableCode, TableExits, TableOptions, TablePlaces, ValueShape};
use crate::value::{Addr, Lowered, Num, Range, Test};
use crate::writer::{Place, Writer};
use weir_ebpf::{Cond, Reg::*, Size};
use weir_packet::fields::FieldId;
use weir_plan::physical::PipelineId;
use weir_plan::{Agg, ExprKind, Summarize, Type};

/// How many pipelines count in the kernel, at most; others want their frames.
pub(crate) const COUNTING_MAX: usize = 4;

/// The number of the map that is the [`Control`]; tables follow.
pub(crate) const CONTROL_MAP: i32 = 1;

/// The number of the CPU on the stack.
const CPU: i16 = STACK_USED - 8;
/// The time of the frame, if any pipeline takes it: reading the clock costs as much as a look-up.
const TIME: i16 = CPU - 8;
/// When it came, by the kernel's monotonic clock.
const ARRIVAL: i16 = TIME - 8;
/// Pointers to slots, from here downwards: 0 for a pipeline that does not count the frame.
const SLOTS: i16 = ARRIVAL - 8;
// All of it is above the states of `scan`s.
const _: () = assert!(SLOTS - 8 * (COUNTING_MAX as i16 - 1) > STATES);

/// A value that an aggregate takes.
#[derive(Clone, Debug)]
enum Argument {
    /// None: it takes frames.
    Frame,
    Num(Num),
    Truth(Test),
    /// An address; of counts only matters whether it is there.
    Addr(Addr),
    /// The time of the frame.
    Time,
}

/// A partial `summarize` in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub(crate) table: Table,
    keys: Vec<Lowered>,
    aggs: Vec<(Option<Test>, Argument)>,
}

/// Times since 1970 that are not negative.
const TIMES: Range = Range { min: 0, max: i64::MAX - 1 };

impl Counting {
    /// The partial half of a stage over these columns, or why the kernel can't run it: one clause.
    pub(crate) fn new(
        pipeline: PipelineId,
        plan: &Summarize,
        columns: &Columns,
        options: TableOptions,
    ) -> Result<Counting, String> {
        let mut keys = Vec::new();
        for (_, key) in &plan.keys {
            keys.push(lower(key, columns)?);
        }
        let mut aggs = Vec::new();
        for agg in &plan.aggs {
            let condition = agg.cond.as_ref().map(|cond| lower_test(cond, columns)).transpose()?;
            aggs.push((condition, argument(agg, columns)?));
        }
        let key_shapes: Vec<ValueShape> =
            keys.iter().zip(&plan.keys).map(|(key, (_, e))| shape(key, e)).collect();
        let arg_shape = |(agg, (_, argument)): (&Agg, &(Option<Test>, Argument))| {
            let e = agg.arg.as_ref()?;
            Some(argument.shape(!e.always_present()))
        };
        let arg_shapes: Vec<_> = plan.aggs.iter().zip(&aggs).map(arg_shape).collect();
        let table = Table::new(pipeline, plan, &key_shapes, &arg_shapes, options)?;
        if table.keys().words() > KEY_WORDS_MAX {
            return Err("its key is too long for the kernel's stack".to_owned());
        }
        Ok(Counting { table, keys, aggs })
    }

    /// Whether what it counts depends on when frames come.
    fn takes_time(&self) -> bool {
        let of = |(_, argument): &(_, Argument)| matches!(argument, Argument::Time);
        self.table.is_ordered() || self.aggs.iter().any(of)
    }

    /// Finds the slot of the frame. Uses `R0` to `R5`.
    fn find(
        &self,
        w: &mut Writer,
        access: Access,
        code: TableCode<'_>,
        ends: CountEnds,
    ) -> Result<(), TooDeep> {
        write_key(w, access, &self.keys, code.key())?;
        let full = if code.may_be_full() { ends.full } else { ends.ended };
        w.embed(&[full, ends.ended], |a, to| {
            code.find(a, TableExits { full: to[0], ended: to[1] });
        });
        Ok(())
    }

    /// Counts the frame in its slot, if it has one. Uses `R0` to `R5`.
    fn count(&self, w: &mut Writer, access: Access, code: TableCode<'_>) -> Result<(), TooDeep> {
        let other = w.label("not_counted");
        w.load(Size::DW, R1, R10, code.places.slot).jump_if(Cond::Eq, R1, 0, other);
        w.embed(&[], |a, _| code.count(a, R1, R0));
        for (c, (condition, argument)) in self.aggs.iter().enumerate() {
            if code.is_frames(c) {
                continue;
            }
            let (absent, holds) = (w.label("no_value"), w.label("holds"));
            if let Some(test) = condition {
                let ways = Ways { yes: holds, no: absent, absent };
                Emit::new(w, access).condition(test, ways)?;
            }
            w.bind(holds);
            argument.write(w, access, absent)?;
            w.embed(&[], |a, _| {
                code.slot(a, R3);
                code.update(a, c, R3, [R0, R1], R2);
            });
            w.bind(absent);
        }
        w.bind(other);
        Ok(())
    }
}

fn argument(agg: &Agg, columns: &Columns) -> Result<Argument, String> {
    const TIME: FieldId = FieldId::named("ts");
    let Some(e) = &agg.arg else { return Ok(Argument::Frame) };
    if e.kind == ExprKind::Field(TIME) {
        return Ok(Argument::Time);
    }
    if !matches!(e.ty, Type::Int | Type::Bool | Type::Ip | Type::Mac) {
        return Err(format!("`{}` is of a type that the kernel level does not have", agg.name));
    }
    Ok(match lower(e, columns)? {
        Lowered::Num(num) => Argument::Num(num),
        Lowered::Test(test) => Argument::Truth(test),
        Lowered::Addr(addr) => Argument::Addr(addr),
    })
}

impl Argument {
    fn shape(&self, is_nullable: bool) -> ValueShape {
        match self {
            Argument::Num(num) => word(num.range, is_nullable),
            Argument::Time => word(TIMES, is_nullable),
            Argument::Frame | Argument::Truth(_) => word(Range { min: 0, max: 1 }, is_nullable),
            Argument::Addr(_) => ValueShape::Address { is_nullable },
        }
    }

    /// `R0 =` the value, of an address `R0` and `R1`. Uses `R0` to `R5`.
    fn write(&self, w: &mut Writer, access: Access, absent: Place) -> Result<(), TooDeep> {
        match self {
            Argument::Frame => {}
            Argument::Num(num) => Emit::new(w, access).number(num, absent)?,
            Argument::Truth(test) => {
                Emit::new(w, access).number(&Num::truth(test.clone()), absent)?;
            }
            Argument::Addr(addr) => Emit::new(w, access).address(addr, absent)?,
            Argument::Time => {
                w.load(Size::DW, R0, R10, TIME);
            }
        }
        Ok(())
    }
}

/// Where frames go on that can't be counted.
#[derive(Clone, Copy)]
pub(crate) struct CountEnds {
    /// A table has no room.
    pub(crate) full: Place,
    /// The run ends.
    pub(crate) ended: Place,
    /// No pipeline counts it.
    pub(crate) none: Place,
}

/// All pipelines that count.
pub(crate) struct CountAll<'a> {
    pub(crate) all: Vec<&'a Counting>,
    pub(crate) access: Access,
}

impl CountAll<'_> {
    fn code(&self, number: usize) -> TableCode<'_> {
        let slot = SLOTS - 8 * number as i16;
        TableCode {
            table: &self.all[number].table,
            map: CONTROL_MAP + 1 + number as i32,
            control: CONTROL_MAP,
            number,
            places: TablePlaces { cpu: CPU, key: KEY, slot, arrival: ARRIVAL },
        }
    }

    /// Begins: no pipeline counts the frame.
    pub(crate) fn begin(&self, w: &mut Writer) {
        for number in 0..self.all.len() {
            w.store(Size::DW, R10, self.code(number).places.slot, 0);
        }
    }

    /// Notes that a pipeline is to count the frame.
    pub(crate) fn note(&self, w: &mut Writer, number: usize) {
        w.store(Size::DW, R10, self.code(number).places.slot, 1);
    }

    /// Counts the frame for all pipelines that were noted, or for none.
    pub(crate) fn write(&self, w: &mut Writer, ends: CountEnds) -> Result<(), TooDeep> {
        let some = w.label("some_count");
        for number in 0..self.all.len() {
            w.load(Size::DW, R0, R10, self.code(number).places.slot);
            w.jump_if(Cond::Ne, R0, 0, some);
        }
        w.jump(ends.none);
        w.bind(some);
        w.embed(&[], |a, _| TableCode::begin(a, CPU));
        for (number, counting) in self.all.iter().enumerate() {
            let (code, next) = (self.code(number), w.label("not_this"));
            w.load(Size::DW, R0, R10, code.places.slot).jump_if(Cond::Eq, R0, 0, next);
            counting.find(w, self.access, code, ends)?;
            w.bind(next);
        }
        if self.all.iter().any(|counting| counting.takes_time()) {
            let control = Control { tables: self.all.len() };
            w.embed(&[], |a, _| TableCode::clock(a, control, CONTROL_MAP, R2));
            w.store(Size::DW, R10, ARRIVAL, R0).store(Size::DW, R10, TIME, R2);
        }
        for (number, counting) in self.all.iter().enumerate() {
            counting.count(w, self.access, self.code(number))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
