//! Programs for the kernel's eBPF machine, written as Rust values.
//!
//! An [`Assembler`] takes [instructions](EbpfInstruction) and labels and gives a [`Code`], whose
//! jumps and operands are checked; the kernel, to which `weir-capture` hands it, has the last word.
//! No compiler, no object files, and no system calls here. The instruction set is that of RFC 9669;
//! what prints reads as `bpftool prog dump xlated` does.
//!
//! ```
//! use weir_ebpf::{Assembler, Cond, Reg::*, Size};
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
//! # Ok::<(), weir_ebpf::AssembleError>(())
//! ```

#![deny(unsafe_code)]

mod assembler;
mod encoding;
mod instruction;
pub mod limits;
mod print;
#[cfg(test)]
mod tests;

pub use assembler::{AssembleError, Assembler, Code, Fault, Label};
pub use encoding::{DecodeError, Slot};
pub use instruction::{
    Alu, Atomic, Bits, Cond, EbpfInstruction, Endianness, Helper, Operand, Reg, Size,
};
