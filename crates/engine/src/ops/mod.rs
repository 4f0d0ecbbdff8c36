//! Operators: what a stage of a plan does to batches of rows.
//!
//! Operators that pass rows on within a batch implement [`operator::Operator`] and stand in a
//! chain. Those that hold rows back ([`summarize`], [`session`], [`top`]), or make several of one
//! ([`each`]), end a chain. What takes the rows of several pipelines ([`join`], [`union`]) is a
//! node of its own.

pub mod distinct;
pub mod each;
pub mod emit;
pub mod ends;
mod fill;
pub mod filter;
pub(crate) mod gather;
pub mod groups;
pub mod join;
pub mod limit;
pub mod map;
pub(crate) mod merged;
pub mod operator;
mod order;
mod panes;
pub(crate) mod partial;
pub mod sample;
pub mod scan;
pub mod session;
mod session_words;
pub mod summarize;
#[cfg(test)]
pub(crate) mod testing;
pub mod top;
pub mod union;
pub(crate) mod window_time;
mod windows;
mod work;
