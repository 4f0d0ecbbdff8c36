//! Programs in the kernel's eBPF machine: loading them, their maps, and where they are attached.
//!
//! `weir-ebpf` writes the programs; [`Program::load`] hands one to the kernel, whose verifier has
//! the last word.

mod offloaded;
#[cfg(test)]
mod tests;

pub(crate) use offloaded::add_finished;
pub use offloaded::{KernelOutputs, Offloaded, OutputMemory, ReadCounts, TO_HOST};

pub use crate::sys::bpf::{
    Attach, Link, LoadError, Map, MapKind, Program, ProgramInfo, ProgramKind, SharedMemory,
    TestRun, can_wait_for_programs, cpu_numbers, wait_for_programs,
};
