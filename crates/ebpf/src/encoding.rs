//! Instructions as the 64-bit words that the kernel reads (RFC 9669, section 3).

use super::instruction::EbpfInstruction::{self, self as I};
use super::instruction::{Alu, Atomic, Bits, Cond, Endianness, Helper, Operand, Reg, Size};

/// A word of code as the kernel reads it: `struct bpf_insn`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Slot {
    /// Class, operation, source kind; or class, size, mode.
    pub opcode: u8,
    /// Destination and source register: the destination is in the low half on little-endian
    /// machines, in the high half on others.
    pub registers: u8,
    /// An offset in memory or code, or a kind of operation.
    pub offset: i16,
    /// A number.
    pub imm: i32,
}

/// Why slots are no instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// No such operation.
    Opcode(u8),
    /// No such register.
    Register(u8),
    /// The second half of a 64-bit number is missing, or is none.
    Half,
    /// Operands that this operation does not have.
    Operands(u8),
}

const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;

/// The operand is a register.
const X: u8 = 0x08;

const ABS: u8 = 0x20;
const IND: u8 = 0x40;
const MEM: u8 = 0x60;
const MEMSX: u8 = 0x80;
const ATOMIC: u8 = 0xc0;

const NEG: u8 = 0x80;
const END: u8 = 0xd0;
const JA: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;

/// `BPF_PSEUDO_MAP_FD` and its like: what the source register of a 64-bit load says.
const MAP_FD: u8 = 1;
const MAP_VALUE: u8 = 2;
const CALL_LOCAL: u8 = 1;
const CALL_BTF: u8 = 2;

/// Operation, code, and the offset that tells those with one code apart.
const ALU_CODES: [(Alu, u8, i16); 17] = [
    (Alu::Add, 0x00, 0),
    (Alu::Sub, 0x10, 0),
    (Alu::Mul, 0x20, 0),
    (Alu::Div, 0x30, 0),
    (Alu::Sdiv, 0x30, 1),
    (Alu::Or, 0x40, 0),
    (Alu::And, 0x50, 0),
    (Alu::Lsh, 0x60, 0),
    (Alu::Rsh, 0x70, 0),
    (Alu::Mod, 0x90, 0),
    (Alu::Smod, 0x90, 1),
    (Alu::Xor, 0xa0, 0),
    (Alu::Mov, 0xb0, 0),
    (Alu::Movsx8, 0xb0, 8),
    (Alu::Movsx16, 0xb0, 16),
    (Alu::Movsx32, 0xb0, 32),
    (Alu::Arsh, 0xc0, 0),
];

const COND_CODES: [(Cond, u8); 11] = [
    (Cond::Eq, 0x10),
    (Cond::Gt, 0x20),
    (Cond::Ge, 0x30),
    (Cond::Set, 0x40),
    (Cond::Ne, 0x50),
    (Cond::Sgt, 0x60),
    (Cond::Sge, 0x70),
    (Cond::Lt, 0xa0),
    (Cond::Le, 0xb0),
    (Cond::Slt, 0xc0),
    (Cond::Sle, 0xd0),
];

const ATOMIC_CODES: [(Atomic, i32); 10] = [
    (Atomic::Add, 0x00),
    (Atomic::Or, 0x40),
    (Atomic::And, 0x50),
    (Atomic::Xor, 0xa0),
    (Atomic::FetchAdd, 0x01),
    (Atomic::FetchOr, 0x41),
    (Atomic::FetchAnd, 0x51),
    (Atomic::FetchXor, 0xa1),
    (Atomic::Xchg, 0xe1),
    (Atomic::CmpXchg, 0xf1),
];

const SIZE_CODES: [(Size, u8); 4] =
    [(Size::W, 0x00), (Size::H, 0x08), (Size::B, 0x10), (Size::DW, 0x18)];

impl Size {
    fn code(self) -> u8 {
        code(&SIZE_CODES, self)
    }
}

impl Bits {
    fn class(self, b32: u8, b64: u8) -> u8 {
        if self == Bits::B32 { b32 } else { b64 }
    }

    fn size(self) -> u8 {
        if self == Bits::B32 { Size::W.code() } else { Size::DW.code() }
    }
}

/// The code of a value; every table lists all values.
fn code<T: PartialEq, C: Copy + Default>(table: &[(T, C)], value: T) -> C {
    table.iter().find(|(v, _)| *v == value).map(|&(_, c)| c).unwrap_or_default()
}

fn value<T: Copy, C: PartialEq>(table: &[(T, C)], code: C) -> Option<T> {
    table.iter().find(|(_, c)| *c == code).map(|&(v, _)| v)
}

impl Slot {
    /// The slot in which registers are in this machine's order.
    fn new(opcode: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Slot {
        let registers = if cfg!(target_endian = "big") { dst << 4 | src } else { src << 4 | dst };
        Slot { opcode, registers, offset, imm }
    }

    fn dst_src(self) -> (u8, u8) {
        let (low, high) = (self.registers & 15, self.registers >> 4);
        if cfg!(target_endian = "big") { (high, low) } else { (low, high) }
    }
}

fn register(number: u8) -> Result<Reg, DecodeError> {
    Reg::ALL.get(usize::from(number)).copied().ok_or(DecodeError::Register(number))
}

/// The source bit, register and number of an operand.
fn operand(src: Operand) -> (u8, u8, i32) {
    match src {
        Operand::Reg(reg) => (X, reg as u8, 0),
        Operand::Imm(imm) => (0, 0, imm),
    }
}

impl EbpfInstruction {
    /// Appends the slots of this instruction. The displacement of a conditional jump must fit 16
    /// bits, as [`Assembler::finish`](super::Assembler::finish) sees to; that of another may have
    /// 32 (Linux 6.6).
    pub fn encode(&self, to: &mut Vec<Slot>) {
        match *self {
            I::Alu { bits, op, dst, src } => {
                let found = ALU_CODES.iter().find(|c| c.0 == op);
                let (code, kind) = found.map_or((0, 0), |&(_, code, kind)| (code, kind));
                let (x, src, imm) = operand(src);
                to.push(Slot::new(bits.class(ALU, ALU64) | code | x, dst as u8, src, kind, imm));
            }
            I::Neg { bits, dst } => {
                to.push(Slot::new(bits.class(ALU, ALU64) | NEG, dst as u8, 0, 0, 0));
            }
            I::Swap { order, size, dst } => {
                let opcode = match order {
                    Endianness::Le => ALU | END,
                    Endianness::Be => ALU | END | X,
                    Endianness::Swap => ALU64 | END,
                };
                to.push(Slot::new(opcode, dst as u8, 0, 0, i32::from(size.bytes()) * 8));
            }
            I::Load { size, dst, base, offset } => {
                to.push(Slot::new(LDX | MEM | size.code(), dst as u8, base as u8, offset, 0));
            }
            I::LoadSigned { size, dst, base, offset } => {
                to.push(Slot::new(LDX | MEMSX | size.code(), dst as u8, base as u8, offset, 0));
            }
            I::Store { size, base, offset, src } => {
                let (x, src, imm) = operand(src);
                let class = if x == X { STX } else { ST };
                to.push(Slot::new(class | MEM | size.code(), base as u8, src, offset, imm));
            }
            I::Atomic { op, bits, base, offset, src } => {
                let opcode = STX | ATOMIC | bits.size();
                let imm = code(&ATOMIC_CODES, op);
                to.push(Slot::new(opcode, base as u8, src as u8, offset, imm));
            }
            I::LoadImm64 { dst, value } => {
                wide(to, dst, 0, value as u32 as i32, (value >> 32) as u32 as i32);
            }
            I::LoadMap { dst, fd } => wide(to, dst, MAP_FD, fd, 0),
            I::LoadMapValue { dst, fd, offset } => wide(to, dst, MAP_VALUE, fd, offset as i32),
            I::LoadPacket { size, base, offset } => {
                let mode = if base.is_some() { IND } else { ABS };
                let src = base.map_or(0, |reg| reg as u8);
                to.push(Slot::new(LD | mode | size.code(), 0, src, 0, offset));
            }
            I::Jump { target } => to.push(match i16::try_from(target) {
                Ok(near) => Slot::new(JMP | JA, 0, 0, near, 0),
                Err(_) => Slot::new(JMP32 | JA, 0, 0, 0, target),
            }),
            I::JumpIf { bits, cond, dst, src, target } => {
                let (x, src, imm) = operand(src);
                let opcode = bits.class(JMP32, JMP) | code(&COND_CODES, cond) | x;
                to.push(Slot::new(opcode, dst as u8, src, target as i16, imm));
            }
            I::Call { helper } => to.push(Slot::new(JMP | CALL, 0, 0, 0, helper.0)),
            I::CallKernel { id } => to.push(Slot::new(JMP | CALL, 0, CALL_BTF, 0, id)),
            I::CallLocal { target } => to.push(Slot::new(JMP | CALL, 0, CALL_LOCAL, 0, target)),
            I::Exit => to.push(Slot::new(JMP | EXIT, 0, 0, 0, 0)),
        }
    }

    /// Reads the first instruction of some slots.
    ///
    /// # Errors
    /// When there is none, or none of RFC 9669 that this module knows.
    pub fn decode(slots: &[Slot]) -> Result<EbpfInstruction, DecodeError> {
        let Some(&slot) = slots.first() else { return Err(DecodeError::Half) };
        let (d, s) = slot.dst_src();
        let found = match slot.opcode & 7 {
            LD => decode_wide(slot, slots.get(1))?,
            LDX | ST | STX => decode_memory(slot)?,
            ALU | ALU64 => decode_alu(slot)?,
            _ => decode_jump(slot)?,
        };
        // Fields that an instruction does not use are zero: then reading and writing are each
        // other's inverse.
        let mut again = Vec::with_capacity(2);
        found.encode(&mut again);
        match slots.get(..again.len()) {
            Some(same) if same == again => Ok(found),
            _ if d > 10 || s > 10 => Err(DecodeError::Register(d.max(s))),
            _ => Err(DecodeError::Operands(slot.opcode)),
        }
    }
}

/// An instruction with 64 bits of number.
fn wide(to: &mut Vec<Slot>, dst: Reg, kind: u8, low: i32, high: i32) {
    to.push(Slot::new(LD | Size::DW.code(), dst as u8, kind, 0, low));
    to.push(Slot::new(0, 0, 0, 0, high));
}

fn decode_wide(slot: Slot, second: Option<&Slot>) -> Result<EbpfInstruction, DecodeError> {
    let (dst, src) = slot.dst_src();
    let size = value(&SIZE_CODES, slot.opcode & 0x18).unwrap_or(Size::B);
    match slot.opcode & 0xe0 {
        ABS => return Ok(I::LoadPacket { size, base: None, offset: slot.imm }),
        IND => return Ok(I::LoadPacket { size, base: Some(register(src)?), offset: slot.imm }),
        0 if size == Size::DW => {}
        _ => return Err(DecodeError::Opcode(slot.opcode)),
    }
    let (dst, high) = (register(dst)?, second.ok_or(DecodeError::Half)?.imm as u32);
    let value = u64::from(high) << 32 | u64::from(slot.imm as u32);
    match src {
        0 => Ok(I::LoadImm64 { dst, value }),
        MAP_FD => Ok(I::LoadMap { dst, fd: slot.imm }),
        MAP_VALUE => Ok(I::LoadMapValue { dst, fd: slot.imm, offset: high }),
        _ => Err(DecodeError::Operands(slot.opcode)),
    }
}

fn decode_memory(slot: Slot) -> Result<EbpfInstruction, DecodeError> {
    let (dst, src) = slot.dst_src();
    let (dst, src, offset) = (register(dst)?, register(src)?, slot.offset);
    let size = value(&SIZE_CODES, slot.opcode & 0x18).unwrap_or(Size::B);
    let unknown = DecodeError::Opcode(slot.opcode);
    Ok(match (slot.opcode & 7, slot.opcode & 0xe0) {
        (LDX, MEM) => I::Load { size, dst, base: src, offset },
        (LDX, MEMSX) if size != Size::DW => I::LoadSigned { size, dst, base: src, offset },
        (ST, MEM) => I::Store { size, base: dst, offset, src: slot.imm.into() },
        (STX, MEM) => I::Store { size, base: dst, offset, src: src.into() },
        (STX, ATOMIC) => {
            let bits = match size {
                Size::W => Bits::B32,
                Size::DW => Bits::B64,
                _ => return Err(unknown),
            };
            let op = value(&ATOMIC_CODES, slot.imm).ok_or(DecodeError::Operands(slot.opcode))?;
            I::Atomic { op, bits, base: dst, offset, src }
        }
        _ => return Err(unknown),
    })
}

fn decode_alu(slot: Slot) -> Result<EbpfInstruction, DecodeError> {
    let (dst, src) = slot.dst_src();
    let (dst, reg) = (register(dst)?, register(src)?);
    let bits = if slot.opcode & 7 == ALU { Bits::B32 } else { Bits::B64 };
    let src = if slot.opcode & X != 0 { reg.into() } else { slot.imm.into() };
    match slot.opcode & 0xf0 {
        NEG => Ok(I::Neg { bits, dst }),
        END => {
            let order = match (bits, slot.opcode & X != 0) {
                (Bits::B32, false) => Endianness::Le,
                (Bits::B32, true) => Endianness::Be,
                (Bits::B64, _) => Endianness::Swap,
            };
            let size = match slot.imm {
                16 => Size::H,
                32 => Size::W,
                64 => Size::DW,
                _ => return Err(DecodeError::Operands(slot.opcode)),
            };
            Ok(I::Swap { order, size, dst })
        }
        code => {
            let found = ALU_CODES.iter().find(|c| (c.1, c.2) == (code, slot.offset));
            let &(op, ..) = found.ok_or(DecodeError::Opcode(slot.opcode))?;
            Ok(I::Alu { bits, op, dst, src })
        }
    }
}

fn decode_jump(slot: Slot) -> Result<EbpfInstruction, DecodeError> {
    let (dst, src) = slot.dst_src();
    let bits = if slot.opcode & 7 == JMP32 { Bits::B32 } else { Bits::B64 };
    Ok(match (slot.opcode & 0xf0, bits) {
        (JA, Bits::B64) => I::Jump { target: slot.offset.into() },
        (JA, Bits::B32) => I::Jump { target: slot.imm },
        (CALL, Bits::B64) => match src {
            0 => I::Call { helper: Helper(slot.imm) },
            CALL_LOCAL => I::CallLocal { target: slot.imm },
            _ => I::CallKernel { id: slot.imm },
        },
        (EXIT, Bits::B64) => I::Exit,
        (code, _) => {
            let cond = value(&COND_CODES, code).ok_or(DecodeError::Opcode(slot.opcode))?;
            let reg = slot.opcode & X != 0;
            let src = if reg { register(src)?.into() } else { slot.imm.into() };
            I::JumpIf { bits, cond, dst: register(dst)?, src, target: slot.offset.into() }
        }
    })
}
