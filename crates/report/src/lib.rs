//! Rows as pictures and pages: a report about a capture, and time series as SVG.
//!
//! A report is made of ordinary queries: [`programs`] gives them, a run puts their rows and those
//! of detectors into a [`Collector`], [`page`] writes what it kept as one HTML file, and
//! [`summary`](fn@summary) the most of it as text. A [`Plot`] does for the rows of any query that
//! have a time what the page does, as one SVG picture.
//!
//! This crate does no I/O: rows come in, text goes out. The same rows give the same bytes. All
//! texts go through one function that escapes them.

#![forbid(unsafe_code)]

mod collector;
mod findings;
mod grid;
mod labels;
pub mod limits;
mod markup;
mod number;
mod page;
mod plot;
mod programs;
mod rows;
mod series;
mod text;
mod timeline;

pub use collector::Collector;
pub use page::{About, Ended, RuleTitle, page};
pub use programs::{Step, programs};
pub use series::{NoPlot, Plot};
pub use text::{PAGE, summary};
