//! A plan and a source, to rows. No query text, no files, no clock.

#![deny(unsafe_code)]

mod agg;
mod anonymize;
mod chain;
mod change;
mod checkpoint;
pub mod clock;
mod closing;
mod community;
mod compile;
mod continued;
pub mod discard;
pub mod exchange;
mod expr;
mod feed;
pub mod fragments;
mod hold;
mod inquiry;
pub mod kernel;
mod key;
mod level;
pub mod limits;
mod losses;
mod merge;
mod node;
mod ops;
mod options;
mod outcome;
#[allow(unsafe_code)]
mod pages;
mod panics;
mod partitioning;
mod peers;
mod pipeline;
#[allow(unsafe_code)]
mod processor;
mod progress;
mod radix;
pub mod reading;
pub mod room;
pub mod rows;
pub mod run;
mod shard;
mod step;
mod supply;
pub mod suppress;
mod sync;
pub mod table;
#[cfg(test)]
mod tests;
mod view;

#[cfg(any(test, fuzzing))]
pub use agg::fuzz_partial;
pub use weir_plan::{counters, flow, registered as functions};
