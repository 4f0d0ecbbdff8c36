//! A plan and a source, to rows. No query text, no files, no clock. Also the Rust API.

#![deny(unsafe_code)]

pub mod agg;
pub mod anonymize;
pub mod api;
pub(crate) mod chain;
pub mod clock;
pub mod community;
pub mod conform;
pub mod counters;
pub mod egress;
pub mod expr;
pub mod fragments;
pub mod functions;
pub mod graph;
pub mod key;
mod lanes;
pub mod limits;
mod losses;
mod merge;
pub mod naive;
pub mod ops;
#[allow(unsafe_code)]
mod pages;
#[allow(unsafe_code)]
pub mod processor;
mod radix;
pub mod reading;
pub mod room;
pub mod rows;
pub mod run;
pub mod segment;
mod shard;
mod sync;
pub mod table;
pub mod upper;
pub mod view;
