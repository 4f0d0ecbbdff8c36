//! Aggregates: laws first, then code.
//!
//! The state of an aggregate for one group is a few 64-bit cells in the group's row. A fresh state
//! is an identity; `merge` is associative and commutative (sums of floats: up to rounding, which
//! is why the planner keeps all rows of such a group in one place); splitting the rows anywhere and
//! merging gives the whole; decoding what was encoded changes nothing. `laws.rs` tests this for
//! all of them.

mod aggregate;
mod any_all;
mod approx_distinct;
mod avg;
mod bit_or;
mod build;
mod bytes;
mod cells;
mod completeness;
mod count;
mod distinct;
mod distinct_up_to;
pub(crate) mod end_reason;
mod entropy;
mod first_last;
mod fixed;
mod frequent;
mod fused;
#[cfg(any(test, fuzzing))]
#[path = "tests/fuzz.rs"]
mod fuzz;
mod grouped;
mod input;
mod late;
#[cfg(test)]
#[path = "tests/laws.rs"]
mod laws;
mod mad;
mod max_by;
mod min_max;
mod quantile;
mod rate;
mod states;
mod sum;
mod tally;
mod user;
mod variance;

pub(crate) use aggregate::{Aggregate, Finish, Hints};
pub(crate) use build::{build, sharing};
pub(crate) use bytes::write_words;
pub(crate) use cells::{Cells, CellsRef};
pub(crate) use fused::{CellStep, FUSED_MAX, update as update_fused};
#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_partial;
pub(crate) use input::Input;
pub(crate) use states::{StateKind, States};
