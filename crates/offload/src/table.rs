//! Groups of a partial `summarize` in memory that a program shares with the process.
//!
//! A table is the one value of a map: two *halves* of a *region* for each CPU, each an open
//! addressing hash table of *slots*. The program writes to the half that the [`Control`] memory
//! names, and there to the region of its own CPU: programs of network hooks run with bottom halves
//! disabled, so nobody else writes there, and plain additions do. A slot holds how many frames it
//! counted (0: it is free), the key, and the cells of the aggregates. A key is looked for in a few
//! slots after its own; if neither the key nor a free slot is there, the frame goes up.
//!
//! To close a window the process names the other half, waits until all programs have ended that
//! still write to the one before, [reads](Table::take) it as plain memory, and clears it. None of
//! this takes bpf(2).
//!
//! Counting is all or nothing over the pipelines of a program: first [each table finds a
//! slot](TableCode::find), then all are [counted](TableCode::count). A slot that was only found
//! stays free, since it has counted no frame, and its cells are still zero.

mod cells;
mod code;
mod keys;
mod layout;
mod read;
mod shape;
#[cfg(test)]
mod tests;

pub use code::{TableCode, TableExits, TablePlaces};
pub(crate) use keys::offset;
pub use keys::{KeyCode, KeyLayout};
pub use layout::{Control, Table, TableOptions};
pub use read::{CellValue, TableGroups};
pub use shape::ValueShape;
