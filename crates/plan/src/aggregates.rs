//! The aggregates of the language.

mod builtins;
mod func;

pub use builtins::{AGGREGATES, BuiltinAggregate, OverNothing, ResultType, RowOrder, by_name};
pub use func::{Agg, AggFunc};
