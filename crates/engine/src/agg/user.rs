//! Registered aggregates: a Rust type behind [`crate::functions::UserState`].
//!
//! | | |
//! |---|---|
//! | Syntax | `name(x)`, the name it was registered by; also with `where condition` |
//! | Takes | the registered type |
//! | Over nothing | what a new state finishes to |
//! | State | one boxed state a group |
//! | Merge | the state's own `merge` |
//! | Exact? | the state's own matter |

use super::bytes::{read_bytes, write_bytes};
use super::{Aggregate, Cells, CellsRef, Finish, Input, StateKind, States};
use crate::functions::{UserAggregate, UserState};
use crate::rows::{cell, set_cell};
use std::any::Any;
use weir_plan::Type;

/// One cell: one more than the state's number, 0 while the group has none.
pub(super) struct User {
    new: UserAggregate,
    arg: Type,
    ret: Type,
    states: Vec<Box<dyn UserState>>,
}

impl User {
    pub(super) fn new(new: UserAggregate, arg: Type, ret: Type) -> User {
        User { new, arg, ret, states: Vec::new() }
    }

    fn state(&mut self, cell: &mut u64) -> &mut Box<dyn UserState> {
        if *cell == 0 {
            self.states.push((self.new)());
            *cell = self.states.len() as u64;
        }
        &mut self.states[*cell as usize - 1]
    }
}

impl Aggregate for User {
    fn cells(&self) -> usize {
        1
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells[0] = 0;
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let arg = self.arg.clone();
        input.each(|group, i| {
            let value = cell(input.columns[0], i, &arg, input.arena);
            self.state(&mut cells.of::<1>(group)[0]).update(&value);
        });
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    ) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        for (there, &here) in map.iter().enumerate() {
            let number = theirs.of::<1>(there as u32)[0];
            if number > 0 {
                let from = &other.states[number as usize - 1];
                self.state(&mut cells.of::<1>(here)[0]).merge(&**from);
            }
        }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        for (i, &group) in groups.iter().enumerate() {
            let value = match cells.of::<1>(group)[0] {
                0 => (self.new)().finish(),
                n => self.states[n as usize - 1].finish(),
            };
            if value.ty().as_ref() == Some(&self.ret) {
                set_cell(out.column, i, &value, out.arena);
            }
        }
    }

    fn kind(&self) -> StateKind {
        StateKind::User
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            let state = match cells.of::<1>(group)[0] {
                0 => (self.new)().encode(),
                n => self.states[n as usize - 1].encode(),
            };
            out.put(|out| write_bytes(&state, out));
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let Some(bytes) = read_bytes(&mut rest) else { return false };
        let mut state = (self.new)();
        if !state.decode(bytes) {
            return false;
        }
        *from = rest;
        self.state(&mut cells.of::<1>(group)[0]).merge(&*state);
        true
    }

    fn clear(&mut self) {
        self.states.clear();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
