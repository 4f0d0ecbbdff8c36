//! Programs for the kernel's eBPF machine, written as Rust values.
//!
//! An [`Assembler`] takes [instructions](EbpfInstruction) and labels and gives a [`Code`], whose
//! jumps and operands are checked; [`Program::load`] hands that to the kernel, whose verifier has
//! the last word. No compiler, no object files. The instruction set is that of RFC 9669; what
//! prints reads as `bpftool prog dump xlated` does.
//!
//! ```
//! use weir_capture::ebpf::{Assembler, Cond, Reg::*, Size};
//! // An XDP program: drops frames of receive queue 3, passes the others (see `struct xdp_md`).
//! let mut a = Assembler::new();
//! let drop = a.label("drop");
//! a.load(Size::W, R2, R1, 16);
//! a.jump_if(Cond::Eq, R2, 3, drop);
//! a.mov(R0, 2).exit();
//! a.bind(drop);
//! a.mov(R0, 1).exit();
//! let code = a.finish()?;
//! assert_eq!(code.to_string().lines().nth(1), Some("   1: if r2 == 3 goto 4"));
//! # Ok::<(), weir_capture::ebpf::AssembleError>(())
//! ```

mod assembler;
mod encoding;
mod instruction;
mod print;
#[cfg(test)]
mod tests;

pub use crate::sys::bpf::{
    Attach, Link, LoadError, Map, MapKind, Program, ProgramInfo, ProgramKind, TestRun,
};
pub use assembler::{AssembleError, Assembler, Code, Fault, Label};
pub use encoding::{DecodeError, Slot};
pub use instruction::{
    Alu, Atomic, Bits, Cond, EbpfInstruction, Endianness, Helper, Operand, Reg, Size,
};
