//! Expressions over columns, a batch at a time.
//!
//! [`Compiler`] turns a typed expression into a small tree whose nodes own a column each for their
//! result; [`Ctx`] walks that tree once per batch, and each node is one loop over the rows of the
//! selection. Conditions never build a column: they give the set of rows for which they hold.

mod address;
mod automaton;
mod call;
mod class;
mod compare;
mod compile;
mod ctx;
mod domain;
mod eval;
mod fold;
mod kernels;
mod lookup;
mod lookup_map;
mod range;
mod regs;
mod set;
mod short;
mod text;
mod tree;

pub(crate) use automaton::Automaton;
pub(crate) use automaton::{AUTOMATON_STATES, START};
pub(crate) use class::Class;
pub(crate) use compile::flat;
pub(crate) use compile::{Compiler, Scope};
pub(crate) use ctx::Ctx;
pub(crate) use eval::copy_rows;
pub(crate) use regs::{Regs, Src};
pub(crate) use tree::{Arith, Branch, Cond, Convert, Parse, TextFn, TextTest, Val};
