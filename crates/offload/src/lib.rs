//! The kernel level of a plan: which part of each pipeline eBPF can run, and the program for it.
//!
//! Each frame is processed by exactly one level. The program in the kernel finishes a frame if no
//! pipeline wants it (the frame is *filtered*), if every pipeline that wants it aggregates
//! in kernel maps (it is *counted*), or if they drop it or hand it to one output (it is *acted*
//! on). Every other frame goes *up*, and the workers process it for
//! all pipelines, as if there were no kernel level. So frames that the program does not understand
//! for certain, and frames for whose group a map has no room, lose nothing: they go up.
//!
//! The states of a key of a `scan` are held by one level, and go up with a frame: see
//! [`StateTable`].
//!
//! [`compile`] works in passes: `prefix` finds the stages that the kernel can run, `lower`
//! makes their expressions ones of fields at fixed places that can't fault, `walk` writes the
//! code that finds the headers of a frame, and `emit` that of expressions.
//!
//! Nothing here makes a system call: `weir-capture` makes the maps, loads the program and attaches
//! it.

#![deny(unsafe_code)]

mod act;
mod compile;
mod count;
mod emit;
mod facts;
mod field;
mod frame;
mod hook;
mod key;
pub mod limits;
mod lower;
mod options;
mod prefix;
mod program;
mod range;
mod read;
mod scan;
mod states;
mod table;
mod trim;
mod value;
mod walk;
mod writer;

pub use compile::compile;
pub use hook::{Hook, STACK_BYTES};
pub use options::{
    KernelOutlet, NO_OUTLETS, NotOffloaded, OffloadOptions, OutletPlace, Refuse, SNAPLEN_MIN,
};
pub use program::{
    ActionMemory, Actions, FrameCount, KernelProgram, MapSpec, TO_HOST, WHOLE, redirect_to,
};
pub use states::{StateTable, TakenStates};
pub use table::{
    CellValue, Control, KeyCode, KeyLayout, Table, TableCode, TableExits, TableGroups,
    TableOptions, TablePlaces, ValueShape,
};
pub use weir_plan::physical::Prefix;
