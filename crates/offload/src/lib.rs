//! The kernel level of a plan: which part of each pipeline eBPF can run, and the program for it.
//!
//! Each frame is processed by exactly one level. The program in the kernel finishes a frame if no
//! pipeline wants it (the frame is *filtered*), or if every pipeline that wants it aggregates
//! in kernel maps (it is *counted*). Every other frame goes *up*, and the workers process it for
//! all pipelines, as if there were no kernel level. So frames that the program does not understand
//! for certain, and frames for whose group a map has no room, lose nothing: they go up.
//!
//! Nothing here makes a system call: `weir-capture` makes the maps, loads the program and attaches
//! it.

#![deny(unsafe_code)]

pub mod limits;
mod program;
mod table;

pub use program::{FrameCount, Hook, KernelProgram, MapKind, MapSpec, STACK_BYTES, WHOLE};
pub use table::{
    CellValue, Control, Table, TableCode, TableExits, TableGroups, TableOptions, TablePlaces,
    ValueShape,
};
pub use weir_plan::physical::Prefix;
