//! Instructions as text, as `bpftool prog dump xlated` and LLVM write them.

use super::assembler::Code;
use super::encoding::DecodeError;
use super::instruction::{
    Alu, Atomic, Bits, Cond, EbpfInstruction, Endianness, Helper, Operand, Reg, Size,
};
use std::fmt;

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", *self as u8)
    }
}

/// A register that only 32 bits of are meant.
struct Half(Reg);

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0 as u8)
    }
}

impl Bits {
    fn reg(self, reg: Reg) -> Box<dyn fmt::Display> {
        if self == Bits::B32 { Box::new(Half(reg)) } else { Box::new(reg) }
    }

    fn operand(self, src: Operand) -> Box<dyn fmt::Display> {
        match src {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(imm) => Box::new(imm),
        }
    }

    fn memory(self) -> Size {
        if self == Bits::B32 { Size::W } else { Size::DW }
    }
}

/// Memory that is read or written: `*(u32 *)(r1 + 4)`.
struct Memory(char, Size, Reg, i16);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory(sign, size, base, offset) = *self;
        let (op, by) = if offset < 0 { ('-', offset.unsigned_abs()) } else { ('+', offset as u16) };
        write!(f, "*({sign}{} *)({base} {op} {by})", u32::from(size.bytes()) * 8)
    }
}

fn alu(op: Alu) -> &'static str {
    match op {
        Alu::Add => "+=",
        Alu::Sub => "-=",
        Alu::Mul => "*=",
        Alu::Div => "/=",
        Alu::Sdiv => "s/=",
        Alu::Or => "|=",
        Alu::And => "&=",
        Alu::Lsh => "<<=",
        Alu::Rsh => ">>=",
        Alu::Mod => "%=",
        Alu::Smod => "s%=",
        Alu::Xor => "^=",
        Alu::Mov => "=",
        Alu::Movsx8 => "= (s8)",
        Alu::Movsx16 => "= (s16)",
        Alu::Movsx32 => "= (s32)",
        Alu::Arsh => "s>>=",
    }
}

fn cond(cond: Cond) -> &'static str {
    match cond {
        Cond::Eq => "==",
        Cond::Ne => "!=",
        Cond::Gt => ">",
        Cond::Ge => ">=",
        Cond::Lt => "<",
        Cond::Le => "<=",
        Cond::Set => "&",
        Cond::Sgt => "s>",
        Cond::Sge => "s>=",
        Cond::Slt => "s<",
        Cond::Sle => "s<=",
    }
}

fn atomic(op: Atomic, memory: &Memory, bits: Bits, src: Reg) -> String {
    let src = bits.reg(src);
    let (name, sign) = match op {
        Atomic::Add => ("", "+="),
        Atomic::Or => ("", "|="),
        Atomic::And => ("", "&="),
        Atomic::Xor => ("", "^="),
        Atomic::FetchAdd => ("add", ""),
        Atomic::FetchOr => ("or", ""),
        Atomic::FetchAnd => ("and", ""),
        Atomic::FetchXor => ("xor", ""),
        Atomic::Xchg => return format!("{src} = xchg({memory}, {src})"),
        Atomic::CmpXchg => {
            return format!("{0} = cmpxchg({memory}, {0}, {src})", bits.reg(Reg::R0));
        }
    };
    match name {
        "" => format!("lock {memory} {sign} {src}"),
        name => format!("{src} = atomic_fetch_{name}({memory}, {src})"),
    }
}

impl Helper {
    fn name(self) -> Option<&'static str> {
        Some(match self {
            Helper::MAP_LOOKUP_ELEM => "map_lookup_elem",
            Helper::MAP_UPDATE_ELEM => "map_update_elem",
            Helper::MAP_DELETE_ELEM => "map_delete_elem",
            Helper::KTIME_GET_NS => "ktime_get_ns",
            Helper::GET_PRANDOM_U32 => "get_prandom_u32",
            Helper::GET_SMP_PROCESSOR_ID => "get_smp_processor_id",
            Helper::REDIRECT => "redirect",
            Helper::SKB_LOAD_BYTES => "skb_load_bytes",
            Helper::XDP_ADJUST_HEAD => "xdp_adjust_head",
            Helper::REDIRECT_MAP => "redirect_map",
            Helper::XDP_ADJUST_META => "xdp_adjust_meta",
            Helper::XDP_ADJUST_TAIL => "xdp_adjust_tail",
            Helper::RINGBUF_RESERVE => "ringbuf_reserve",
            Helper::RINGBUF_SUBMIT => "ringbuf_submit",
            Helper::RINGBUF_DISCARD => "ringbuf_discard",
            _ => return None,
        })
    }
}

impl fmt::Display for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}#{}", self.0),
            None => write!(f, "#{}", self.0),
        }
    }
}

/// Jumps read as their target does: a label's name, or slots from the next instruction.
impl<T: fmt::Display> fmt::Display for EbpfInstruction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EbpfInstruction as I;
        match self {
            I::Alu { bits, op, dst, src } => {
                write!(f, "{} {} {}", bits.reg(*dst), alu(*op), bits.operand(*src))
            }
            I::Neg { bits, dst } => write!(f, "{0} = -{0}", bits.reg(*dst)),
            I::Swap { order, size, dst } => {
                let name = match order {
                    Endianness::Le => "le",
                    Endianness::Be => "be",
                    Endianness::Swap => "bswap",
                };
                write!(f, "{dst} = {name}{} {dst}", u32::from(size.bytes()) * 8)
            }
            I::Load { size, dst, base, offset } => {
                write!(f, "{dst} = {}", Memory('u', *size, *base, *offset))
            }
            I::LoadSigned { size, dst, base, offset } => {
                write!(f, "{dst} = {}", Memory('s', *size, *base, *offset))
            }
            I::Store { size, base, offset, src } => {
                write!(f, "{} = {}", Memory('u', *size, *base, *offset), Bits::B64.operand(*src))
            }
            I::Atomic { op, bits, base, offset, src } => {
                let memory = Memory('u', bits.memory(), *base, *offset);
                f.write_str(&atomic(*op, &memory, *bits, *src))
            }
            I::LoadImm64 { dst, value } => write!(f, "{dst} = {value:#x} ll"),
            I::LoadMap { dst, fd } => write!(f, "{dst} = map[fd:{fd}]"),
            I::LoadMapValue { dst, fd, offset } => {
                write!(f, "{dst} = map[fd:{fd}][0] + {offset}")
            }
            I::LoadPacket { size, base, offset } => {
                let bits = u32::from(size.bytes()) * 8;
                match base {
                    Some(base) => write!(f, "r0 = *(u{bits} *)skb[{base} + {offset}]"),
                    None => write!(f, "r0 = *(u{bits} *)skb[{offset}]"),
                }
            }
            I::Jump { target } => write!(f, "goto {target}"),
            I::JumpIf { bits, cond: c, dst, src, target } => {
                let (dst, src) = (bits.reg(*dst), bits.operand(*src));
                write!(f, "if {dst} {} {src} goto {target}", cond(*c))
            }
            I::Call { helper } => write!(f, "call {helper}"),
            I::CallKernel { id } => write!(f, "call kernel#{id}"),
            I::CallLocal { target } => write!(f, "call {target}"),
            I::Exit => f.write_str("exit"),
        }
    }
}

/// A line for each instruction: the number of its slot, as the verifier counts, and its text. Jumps
/// name the slot they go to.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slot = 0;
        for instruction in self.instructions() {
            let next = slot as i64 + 1;
            let text = instruction.with_target(|way| next + i64::from(way));
            writeln!(f, "{slot:4}: {text}")?;
            slot += instruction.slots();
        }
        Ok(())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Opcode(code) => write!(f, "no eBPF instruction has the opcode {code:#x}"),
            DecodeError::Register(n) => write!(f, "there is no register r{n}"),
            DecodeError::Half => f.write_str("half an instruction"),
            DecodeError::Operands(code) => {
                write!(f, "operands that the instruction {code:#x} does not have")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
