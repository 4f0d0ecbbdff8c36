//! The programs that queries become in the kernel: how long it takes to make one, and what it takes
//! for a frame beside one that was written by hand in C.

mod load;
mod loaded;
mod program;

pub(crate) use load::{LoadOptions, run as run_load};
pub(crate) use program::{ProgramOptions, run as run_program};
