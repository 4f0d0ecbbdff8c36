//! States of a `scan` in memory that programs and process share.
//!
//! A table is the one value of a map: *buckets* of a few *slots*, each with a key, the time of its
//! last frame, and its states. A bucket has a lock, which programs try for a few times only, since
//! they must end, and the process until it has it.
//!
//! Each key's states are held by one level. While a program holds them, it folds frames in. A frame
//! that goes up takes the states of its key along: the program marks the slot, further frames of
//! the key go up too, and the workers [take](StateTable::take) the states out when they meet the
//! first of them. When the key had no frame for as long as the query says, it is forgotten on both
//! levels, and a program may hold it anew.
//!
//! A key that finds no room is held by the workers; so its bucket is marked as crowded, and while
//! it is, all frames go up whose keys are not in it. Nothing is evicted.
//!
//! Programs decide about a frame as a whole before any state changes: until then the bucket stays
//! locked. So a frame that goes up after all has changed nothing.

mod code;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use code::{StateCode, StateExits, StatePlaces};
pub use table::{StateTable, TakenStates};
