//! Instructions as values (RFC 9669, sections 4 and 5).

use EbpfInstruction as I;

/// A register. `R0` holds results, `R1` to `R5` arguments (lost by a call), `R6` to `R9` what is to
/// outlive calls; `R10` points after the stack and can't be written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "their names say all")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

impl Reg {
    /// All of them, by number.
    pub const ALL: [Reg; 11] = {
        use Reg::*;
        [R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10]
    };
}

/// The operand of an instruction, besides its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A number; 64-bit operations extend its sign.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(imm: i32) -> Operand {
        Operand::Imm(imm)
    }
}

/// How wide arithmetic and comparisons are. A 32-bit operation clears the upper half of its
/// destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "their names say all")]
pub enum Bits {
    B32,
    B64,
}

/// Bytes of a load or store: 1, 2, 4 or 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of RFC 9669")]
pub enum Size {
    B,
    H,
    W,
    DW,
}

/// Arithmetic of two operands: `dst = dst op src`, for moves `dst = src`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of RFC 9669")]
pub enum Alu {
    Add,
    Sub,
    Mul,
    /// Unsigned; by zero gives zero.
    Div,
    /// Signed; by zero gives zero.
    Sdiv,
    Or,
    And,
    Lsh,
    Rsh,
    /// Unsigned; by zero leaves the destination.
    Mod,
    /// Signed; by zero leaves the destination.
    Smod,
    Xor,
    Mov,
    /// Moves the low 8 bits of a register and extends their sign.
    Movsx8,
    /// Moves the low 16 bits of a register and extends their sign.
    Movsx16,
    /// Moves the low 32 bits of a register and extends their sign; of 64-bit width only.
    Movsx32,
    /// Shifts right and keeps the sign.
    Arsh,
}

/// The byte order that [`EbpfInstruction::Swap`] converts the low bytes of a register to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endianness {
    /// Between the host's order and little endian.
    Le,
    /// Between the host's order and big endian, that of networks.
    Be,
    /// The other order, whatever the host's is (Linux 6.6).
    Swap,
}

/// When a conditional jump is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of RFC 9669")]
pub enum Cond {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
    /// Some bit of the second operand is set in the first.
    Set,
    /// Signed, like those below.
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// The effect of an atomic operation on memory of 4 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of RFC 9669")]
pub enum Atomic {
    Add,
    Or,
    And,
    Xor,
    /// Like `Add`, and `src` gets what was there. So do those below.
    FetchAdd,
    FetchOr,
    FetchAnd,
    FetchXor,
    /// Exchanges memory and `src`.
    Xchg,
    /// Stores `src` where memory is as `R0`; `R0` gets what was there.
    CmpXchg,
}

impl Alu {
    /// All of them.
    pub const ALL: [Alu; 17] = {
        use Alu::*;
        [
            Add, Sub, Mul, Div, Sdiv, Or, And, Lsh, Rsh, Mod, Smod, Xor, Mov, Movsx8, Movsx16,
            Movsx32, Arsh,
        ]
    };
}

impl Cond {
    /// All of them.
    pub const ALL: [Cond; 11] = {
        use Cond::*;
        [Eq, Ne, Gt, Ge, Lt, Le, Set, Sgt, Sge, Slt, Sle]
    };
}

impl Atomic {
    /// All of them.
    pub const ALL: [Atomic; 10] = {
        use Atomic::*;
        [Add, Or, And, Xor, FetchAdd, FetchOr, FetchAnd, FetchXor, Xchg, CmpXchg]
    };
}

impl Size {
    /// All of them.
    pub const ALL: [Size; 4] = {
        use Size::*;
        [B, H, W, DW]
    };
}

/// A helper function of the kernel, by its number (bpf-helpers(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Helper(pub i32);

impl Helper {
    /// `(map, key) -> value or 0`.
    pub const MAP_LOOKUP_ELEM: Helper = Helper(1);
    /// `(map, key, value, flags) -> error`.
    pub const MAP_UPDATE_ELEM: Helper = Helper(2);
    /// `(map, key) -> error`.
    pub const MAP_DELETE_ELEM: Helper = Helper(3);
    /// `() -> nanoseconds since boot, without sleep`.
    pub const KTIME_GET_NS: Helper = Helper(5);
    /// `() -> random number`.
    pub const GET_PRANDOM_U32: Helper = Helper(7);
    /// `() -> number of this CPU`.
    pub const GET_SMP_PROCESSOR_ID: Helper = Helper(8);
    /// `(interface index, flags) -> action`.
    pub const REDIRECT: Helper = Helper(23);
    /// `(skb, offset, to, len) -> error`.
    pub const SKB_LOAD_BYTES: Helper = Helper(26);
    /// `(xdp_md, bytes) -> error`.
    pub const XDP_ADJUST_HEAD: Helper = Helper(44);
    /// `(map, key, action if there is no such entry) -> action`.
    pub const REDIRECT_MAP: Helper = Helper(51);
    /// `(xdp_md, bytes) -> error`.
    pub const XDP_ADJUST_META: Helper = Helper(54);
    /// `(xdp_md, bytes) -> error`.
    pub const XDP_ADJUST_TAIL: Helper = Helper(65);
    /// `(xdp_md) -> bytes` (Linux 5.18).
    pub const XDP_GET_BUFF_LEN: Helper = Helper(188);
    /// `(ring, bytes, 0) -> record or 0` (Linux 5.8).
    pub const RINGBUF_RESERVE: Helper = Helper(131);
    /// `(record, flags)` (Linux 5.8).
    pub const RINGBUF_SUBMIT: Helper = Helper(132);
    /// `(record, flags)` (Linux 5.8).
    pub const RINGBUF_DISCARD: Helper = Helper(133);
}

/// One instruction. `Target` is where a jump goes: a label while the program is written, then
/// slots from the next instruction. Each takes one slot but those that load 64 bits, which take
/// two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "operands are named as in RFC 9669")]
pub enum EbpfInstruction<Target = i32> {
    /// `dst = dst op src`.
    Alu { bits: Bits, op: Alu, dst: Reg, src: Operand },
    /// `dst = -dst`.
    Neg { bits: Bits, dst: Reg },
    /// Changes the byte order of the low 2, 4 or 8 bytes; the others become zero.
    Swap { order: Endianness, size: Size, dst: Reg },
    /// `dst = *(size *)(base + offset)`, filled with zeros.
    Load { size: Size, dst: Reg, base: Reg, offset: i16 },
    /// The same, filled with the sign (Linux 6.6).
    LoadSigned { size: Size, dst: Reg, base: Reg, offset: i16 },
    /// `*(size *)(base + offset) = src`.
    Store { size: Size, base: Reg, offset: i16, src: Operand },
    /// Reads and writes memory as one.
    Atomic { op: Atomic, bits: Bits, base: Reg, offset: i16, src: Reg },
    /// `dst = value`.
    LoadImm64 { dst: Reg, value: u64 },
    /// `dst =` the map of this file descriptor.
    LoadMap { dst: Reg, fd: i32 },
    /// `dst =` the address within the one value of an array map.
    LoadMapValue { dst: Reg, fd: i32, offset: u32 },
    /// `R0 =` packet bytes in host order, by way of the skb in `R6`: at `offset` from the start,
    /// and from `base` if there is one. Ends the program where there are none. Socket filters
    /// only.
    LoadPacket { size: Size, base: Option<Reg>, offset: i32 },
    /// Goes on elsewhere.
    Jump { target: Target },
    /// Goes on elsewhere if `dst cond src`.
    JumpIf { bits: Bits, cond: Cond, dst: Reg, src: Operand, target: Target },
    /// `R0 = helper(R1, …, R5)`.
    Call { helper: Helper },
    /// Calls a function of the kernel by its BTF id.
    CallKernel { id: i32 },
    /// Calls a function of this program.
    CallLocal { target: Target },
    /// Returns `R0`.
    Exit,
}

impl Size {
    /// How many bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
            Size::DW => 8,
        }
    }
}

impl<T> EbpfInstruction<T> {
    /// How many slots it takes.
    pub fn slots(&self) -> usize {
        match self {
            I::LoadImm64 { .. } | I::LoadMap { .. } | I::LoadMapValue { .. } => 2,
            _ => 1,
        }
    }

    /// Where it may jump to.
    pub fn target(&self) -> Option<&T> {
        match self {
            I::Jump { target } | I::JumpIf { target, .. } | I::CallLocal { target } => Some(target),
            _ => None,
        }
    }

    /// The same instruction with another idea of where jumps go.
    pub fn with_target<U>(self, to: impl FnOnce(T) -> U) -> EbpfInstruction<U> {
        match self {
            I::Jump { target } => I::Jump { target: to(target) },
            I::CallLocal { target } => I::CallLocal { target: to(target) },
            I::JumpIf { bits, cond, dst, src, target } => {
                I::JumpIf { bits, cond, dst, src, target: to(target) }
            }
            I::Alu { bits, op, dst, src } => I::Alu { bits, op, dst, src },
            I::Neg { bits, dst } => I::Neg { bits, dst },
            I::Swap { order, size, dst } => I::Swap { order, size, dst },
            I::Load { size, dst, base, offset } => I::Load { size, dst, base, offset },
            I::LoadSigned { size, dst, base, offset } => I::LoadSigned { size, dst, base, offset },
            I::Store { size, base, offset, src } => I::Store { size, base, offset, src },
            I::Atomic { op, bits, base, offset, src } => I::Atomic { op, bits, base, offset, src },
            I::LoadImm64 { dst, value } => I::LoadImm64 { dst, value },
            I::LoadMap { dst, fd } => I::LoadMap { dst, fd },
            I::LoadMapValue { dst, fd, offset } => I::LoadMapValue { dst, fd, offset },
            I::LoadPacket { size, base, offset } => I::LoadPacket { size, base, offset },
            I::Call { helper } => I::Call { helper },
            I::CallKernel { id } => I::CallKernel { id },
            I::Exit => I::Exit,
        }
    }
}
