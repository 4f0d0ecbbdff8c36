//! Operators: what a stage of a plan does to batches of rows.
//!
//! Operators that pass rows on within a batch implement [`operator::Operator`] and stand in a
//! chain. The operators that hold rows back ([`summarize`], [`session`], [`top`], [`alert`]), or
//! make several of one ([`each`]), end a chain. An operator that takes the rows of several
//! pipelines ([`join`], [`union`]) is a node of its own.

pub(crate) mod alert;
pub(crate) mod analyze_tcp;
pub(crate) mod deduplicate;
pub(crate) mod distinct;
pub(crate) mod each;
pub(crate) mod emit;
pub(crate) mod ends;
mod fill;
pub(crate) mod filter;
pub(crate) mod gather;
pub(crate) mod groups;
pub(crate) mod hello;
pub(crate) mod join;
pub(crate) mod limit;
pub(crate) mod map;
pub(crate) mod merged;
pub(crate) mod operator;
mod order;
mod panes;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod session;
mod session_words;
pub(crate) mod summarize;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod top;
pub(crate) mod union;
pub(crate) mod window_time;
mod windows;
mod work;
