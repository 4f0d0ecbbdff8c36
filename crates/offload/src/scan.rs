//! Pipelines whose `scan` the kernel runs, in front of what hands packets out: their values, and
//! the code that folds frames in.

use crate::emit::{Emit, TooDeep};
use crate::frame::{Access, KEY, KEY_WORDS_MAX, SCANS, STATES, STATES_MAX, WANTED};
use crate::key::{shape, write_key};
use crate::lower::{Columns, lower};
use crate::states::{StateCode, StateExits, StatePlaces, StateTable};
use crate::table::{Control, TableCode, ValueShape};
use crate::value::{Lowered, Num, Range, Test};
use crate::writer::{Place, Writer};
use weir_ebpf::{Cond, Reg::*, Size};
use weir_plan::limits::SCAN_KEYS_MAX;
use weir_plan::physical::NodeId;
use weir_plan::stage::ScanState;
use weir_plan::{Scan, Type};

/// How many `scan`s a program runs, at most.
const SCANS_MAX: usize = 2;

/// The time of the frame on the stack.
const NOW: i16 = SCANS;
/// Of each `scan` the bucket and the slot, from here downwards.
const FOUND: i16 = NOW - 8;
/// The states before the frame, of the `scan` at hand, from here downwards.
const BEFORE: i16 = FOUND - 16 * SCANS_MAX as i16;
/// How often the ranges of states are made wider by what their updates give.
const RANGE_ROUNDS: usize = 4;

/// Ranges that are tried after that.
const WIDE: [Range; 6] = [
    Range { min: 0, max: 0xff },
    Range { min: 0, max: 0xffff },
    Range { min: 0, max: 0xffff_ffff },
    Range { min: -0xffff_ffff, max: 0xffff_ffff },
    Range { min: 0, max: i64::MAX },
    Range::ALL,
];

/// The numbers from which those of a `scan` go on: so many come before it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ScansBefore {
    pub(crate) scans: usize,
    pub(crate) states: usize,
}

/// A state.
#[derive(Clone, PartialEq, Debug)]
struct Transition {
    init: Num,
    update: Num,
}

/// A `scan` in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Scanning {
    pub(crate) table: StateTable,
    keys: Vec<Lowered>,
    states: Vec<Transition>,
    before: ScansBefore,
    /// Whether no other scan of its pipeline comes before it, which has read the clock.
    reads_clock: bool,
}

impl Scanning {
    /// The stage over these columns, and what its states are as columns; or why the kernel can't
    /// run it: one clause.
    pub(crate) fn new(
        id: NodeId,
        plan: &Scan,
        columns: &Columns,
        (before, reads_clock): (ScansBefore, bool),
        secret: [u64; 2],
    ) -> Result<(Scanning, Vec<Lowered>), String> {
        if let Some(why) = refusal(plan, before) {
            return Err(why.to_owned());
        }
        let mut keys = Vec::new();
        let mut shapes: Vec<ValueShape> = Vec::new();
        for key in &plan.keys {
            let lowered = lower(key, columns)?;
            shapes.push(shape(&lowered, key));
            keys.push(lowered);
        }
        let states = transitions(plan, columns)?;
        let id = (id.pipeline, id.stage);
        let table = StateTable::new(id, &shapes, states.len(), plan.idle_ns, secret);
        if table.keys().words() > KEY_WORDS_MAX {
            return Err("its key is too long for the kernel's stack".to_owned());
        }
        let after = |(i, state): (usize, &Transition)| {
            let at = STATES - 8 * (before.states + i) as i16;
            let num = Num::on_stack(at, state.init.range.or(state.update.range));
            of_type(num, &plan.states[i].init.ty)
        };
        let after = states.iter().enumerate().map(after).collect();
        Ok((Scanning { table, keys, states, before, reads_clock }, after))
    }

    /// How many there are, with this one.
    pub(crate) fn before_next(&self) -> ScansBefore {
        let ScansBefore { scans, states } = self.before;
        ScansBefore { scans: scans + 1, states: states + self.states.len() }
    }
}

/// Why the kernel does not run this stage, whatever its expressions are.
fn refusal(plan: &Scan, before: ScansBefore) -> Option<&'static str> {
    if plan.keys.is_empty() {
        return Some("all packets share one state");
    }
    if plan.max_keys < SCAN_KEYS_MAX {
        return Some("`max` is exact, so one worker holds all keys");
    }
    let full = before.scans >= SCANS_MAX || before.states + plan.states.len() > STATES_MAX;
    full.then_some("its `scan`s have more states than the kernel has room for")
}

/// The fate of each state. Their ranges hold whatever frames come.
fn transitions(plan: &Scan, columns: &Columns) -> Result<Vec<Transition>, String> {
    let mut inits = Vec::new();
    for state in &plan.states {
        if !matches!(state.init.ty, Type::Int | Type::Bool | Type::Mac) {
            return Err(format!(
                "`{}` is of a type that the kernel level does not have",
                state.name
            ));
        }
        inits.push(number(lower(&state.init, columns)?, &state.name)?);
    }
    // The narrowest ranges that hold with each other come first, then those that many states have.
    let mut ranges: Vec<Range> = inits.iter().map(|init| init.range).collect();
    let mut wide = WIDE.iter();
    for round in 0.. {
        let updates = updates(plan, columns, &ranges);
        let wider = |updates: &Vec<Num>| -> Vec<Range> {
            ranges.iter().zip(updates).map(|(range, update)| range.or(update.range)).collect()
        };
        let next = updates.as_ref().ok().map(wider);
        match (updates, next) {
            (Ok(updates), Some(next)) if next == ranges => {
                let both = inits.into_iter().zip(updates);
                return Ok(both.map(|(init, update)| Transition { init, update }).collect());
            }
            (_, Some(next)) if round < RANGE_ROUNDS => ranges = next,
            (updates, _) => {
                let Some(range) = wide.next() else {
                    updates?;
                    break;
                };
                ranges = inits.iter().map(|init| init.range.or(*range)).collect();
            }
        }
    }
    Err("its states may take any value".to_owned())
}

/// The states after a frame where those before it are in these ranges.
fn updates(plan: &Scan, columns: &Columns, ranges: &[Range]) -> Result<Vec<Num>, String> {
    let stand = |(i, range): (usize, &Range)| {
        of_type(Num::on_stack(BEFORE - 8 * i as i16, *range), &plan.states[i].init.ty)
    };
    let states = ranges.iter().enumerate().map(stand).collect();
    let inner = Columns { states, ..columns.clone() };
    let update = |state: &ScanState| number(lower(&state.update, &inner)?, &state.name);
    plan.states.iter().map(update).collect()
}

/// A state as a number.
fn number(value: Lowered, name: &str) -> Result<Num, String> {
    match value {
        Lowered::Num(num) => Ok(num),
        Lowered::Test(test) => Ok(Num::truth(test)),
        Lowered::Addr(_) => Err(format!("`{name}` is an address")),
    }
}

/// A number as a value of this type.
fn of_type(num: Num, ty: &Type) -> Lowered {
    match ty {
        Type::Bool => Lowered::Test(Test::NonZero(num)),
        _ => Lowered::Num(num),
    }
}

/// Where frames go on that can't be folded in.
#[derive(Clone, Copy)]
pub(crate) struct ScanEnds {
    /// The table has no room.
    pub(crate) full: Place,
    /// The workers hold the states, or are to see the frame.
    pub(crate) up: Place,
}

/// All `scan`s of a program, in order.
pub(crate) struct ScanAll<'a> {
    pub(crate) all: Vec<&'a Scanning>,
    pub(crate) access: Access,
    /// The number of the map of the first; those of the others follow.
    pub(crate) map: i32,
    /// The map that is the [`Control`], and how many tables of groups that is of.
    pub(crate) control: (i32, Control),
}

impl ScanAll<'_> {
    fn code<'s>(&self, scanning: &'s Scanning) -> StateCode<'s> {
        let ScansBefore { scans, states } = scanning.before;
        let found = FOUND - 16 * scans as i16;
        let after = STATES - 8 * states as i16;
        let places = StatePlaces { key: KEY, now: NOW, bucket: found, slot: found - 8, after };
        StateCode { table: &scanning.table, map: self.map + scans as i32, places }
    }

    /// Begins: no slot was found, and nobody wants to see the frame.
    pub(crate) fn begin(&self, w: &mut Writer) {
        if !self.all.is_empty() {
            w.store(Size::DW, R10, WANTED, 0);
        }
        for scanning in &self.all {
            w.embed(&[], |a, _| self.code(scanning).begin(a));
        }
    }

    /// Folds the frame into the states of its key, which stay as they are in the table until it is
    /// decided what becomes of the frame. Uses `R0` to `R5`.
    pub(crate) fn write(
        &self,
        w: &mut Writer,
        scanning: &Scanning,
        ends: ScanEnds,
    ) -> Result<(), TooDeep> {
        let code = self.code(scanning);
        if scanning.reads_clock {
            let (map, control) = self.control;
            w.embed(&[], |a, _| TableCode::clock(a, control, map, R0));
            w.store(Size::DW, R10, NOW, R0);
        }
        write_key(w, self.access, &scanning.keys, code.key())?;
        w.embed(&[ends.full, ends.up], |a, to| {
            code.find(a, StateExits { full: to[0], up: to[1] });
        });
        let (anew, ready) = (w.label("begins_anew"), w.label("states_before"));
        w.jump_if(Cond::Eq, R0, 0, anew);
        for state in 0..scanning.states.len() {
            w.embed(&[], |a, _| code.load(a, state, R0));
            w.store(Size::DW, R10, BEFORE - 8 * state as i16, R0);
        }
        w.jump(ready);
        w.bind(anew);
        for (i, state) in scanning.states.iter().enumerate() {
            Emit::new(w, self.access).number(&state.init, ends.up)?;
            forget(w);
            w.store(Size::DW, R10, BEFORE - 8 * i as i16, R0);
        }
        w.jump(ready);
        w.bind(ready);
        for (i, state) in scanning.states.iter().enumerate() {
            Emit::new(w, self.access).number(&state.update, ends.up)?;
            forget(w);
            w.store(Size::DW, R10, code.after(i), R0);
        }
        Ok(())
    }

    /// Keeps the states after the frame, which goes no further. Uses `R1` to `R5`.
    pub(crate) fn keep(&self, w: &mut Writer) {
        for scanning in &self.all {
            w.embed(&[], |a, _| self.code(scanning).keep(a));
        }
    }

    /// Hands the states before the frame to the workers, since the frame goes up. Uses `R1` to
    /// `R5`.
    pub(crate) fn hand_up(&self, w: &mut Writer) {
        for scanning in &self.all {
            w.embed(&[], |a, _| self.code(scanning).hand_up(a));
        }
    }
}

/// Has the verifier forget what is in `R0`, which it would follow apart for each value. Uses `R1`.
fn forget(w: &mut Writer) {
    w.load(Size::DW, R1, R10, NOW).forget(R0, R1);
}
