//! Keyed state: an index from hash to row number, and rows of fixed width that never move in
//! number. Look-ups go a batch at a time, so that one key's cache miss hides behind another's.
//!
//! Keys are hashed with the [`HashKey`] of the table that looks them up: that of the run, until one
//! run of slots grows too long and the table draws another.

#[cfg(all(test, not(miri)))]
#[path = "table/tests/attack.rs"]
mod attack;
#[cfg(any(test, fuzzing))]
#[path = "table/tests/fuzz.rs"]
mod fuzz;
mod hash_key;
mod index;
mod keyed_rows;
mod keys;

#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_collide;
pub use hash_key::HashKey;
pub(crate) use hash_key::{fold, text_words};
#[cfg(test)]
pub(crate) use index::probes;
pub(crate) use index::{Index, NO_ROW, Prefetcher};
pub(crate) use keyed_rows::Table;
pub(crate) use keys::Keys;
