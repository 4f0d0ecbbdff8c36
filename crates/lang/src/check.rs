//! A tree to a plan: names, types, and the rules of stages.
//!
//! The checker goes on after a mistake. An expression with a mistake has no value (`None`), and
//! whatever is computed from it has none either, silently; a column made from it is known by name
//! only. So each mistake is reported once.

mod address;
mod aggregate;
mod alert;
mod analyze;
mod anonymize;
mod bytes;
mod call;
mod capture;
mod checker;
mod choice;
mod compare;
mod compared;
mod ends;
mod expr;
mod file;
mod hello;
mod import;
mod join;
mod meant;
mod metric;
mod name;
mod never;
mod param;
mod query;
mod reshape;
mod rows;
mod scan;
mod session;
mod set;
mod stage;
mod summarize;
mod windows;
mod words;

use checker::{Built, Checker};

pub(crate) use param::fault;
pub(crate) use query::check;
