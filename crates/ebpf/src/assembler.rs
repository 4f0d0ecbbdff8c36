//! Writing programs: instructions in order, jumps to labels.

use super::encoding::Slot;
use super::instruction::{
    Alu, Atomic, Bits, Cond, EbpfInstruction, Endianness, Helper, Operand, Reg, Size,
};
use crate::limits::EBPF_INSTRUCTIONS_MAX;
use std::fmt;

/// A place in a program, see [`Assembler::label`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(u32);

/// A program that is being written. Mistakes show in [`Assembler::finish`].
///
/// The methods append one instruction each and can be chained; those for what is common are named
/// after it, [`Assembler::push`] takes any. Arithmetic and comparisons without `32` in their
/// name are of 64 bits.
#[derive(Clone, Default, Debug)]
pub struct Assembler {
    code: Vec<EbpfInstruction<Label>>,
    labels: Vec<LabelPlace>,
}

/// The name of a label, and where it stands.
#[derive(Clone, Default, Debug)]
struct LabelPlace {
    name: String,
    /// The instruction it stands before.
    at: Option<usize>,
    twice: bool,
}

/// A program whose jumps and operands are right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    code: Vec<EbpfInstruction>,
    slots: Vec<Slot>,
}

/// A mistake in a program, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssembleError {
    /// The fault itself.
    pub fault: Fault,
    /// Number of the instruction, counted from 0.
    pub at: usize,
    /// The instructions around it, labels by name.
    pub listing: String,
}

/// A fault of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A jump to a label that stands nowhere; its name.
    Unbound(String),
    /// A label that stands in two places; its name.
    BoundTwice(String),
    /// A label after the last instruction; its name.
    BoundBehind(String),
    /// A conditional jump over more than 32,767 slots; how many.
    TooFar(i64),
    /// Instructions go on after the end.
    RunsOff,
    /// More instructions than the kernel's verifier looks at.
    TooLong,
    /// `R10` is written.
    FramePointer,
    /// A shift by a number that is negative or as large as the width.
    Shift(i32),
    /// A division by the number zero.
    Zero,
    /// Operands that this operation does not have.
    Operands(&'static str),
}

impl Assembler {
    /// An empty program.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// Makes a label, to be jumped to from anywhere; [`Assembler::bind`] says where it stands. The
    /// name is for listings.
    pub fn label(&mut self, name: &str) -> Label {
        self.labels.push(LabelPlace { name: name.to_owned(), ..LabelPlace::default() });
        Label(self.labels.len() as u32 - 1)
    }

    /// Puts a label before the instruction that comes next.
    pub fn bind(&mut self, label: Label) -> &mut Assembler {
        let at = self.code.len();
        if let Some(place) = self.labels.get_mut(label.0 as usize) {
            place.twice |= place.at.replace(at).is_some();
        }
        self
    }

    /// Appends any instruction.
    pub fn push(&mut self, instruction: EbpfInstruction<Label>) -> &mut Assembler {
        self.code.push(instruction);
        self
    }

    /// `dst = dst op src`.
    pub fn alu(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) -> &mut Assembler {
        self.push(EbpfInstruction::Alu { bits: Bits::B64, op, dst, src: src.into() })
    }

    /// `dst = dst op src` with 32 bits; the upper half becomes zero.
    pub fn alu32(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) -> &mut Assembler {
        self.push(EbpfInstruction::Alu { bits: Bits::B32, op, dst, src: src.into() })
    }

    /// `dst = src`.
    pub fn mov(&mut self, dst: Reg, src: impl Into<Operand>) -> &mut Assembler {
        self.alu(Alu::Mov, dst, src)
    }

    /// `dst += src`.
    pub fn add(&mut self, dst: Reg, src: impl Into<Operand>) -> &mut Assembler {
        self.alu(Alu::Add, dst, src)
    }

    /// `dst &= src`.
    pub fn and(&mut self, dst: Reg, src: impl Into<Operand>) -> &mut Assembler {
        self.alu(Alu::And, dst, src)
    }

    /// Brings the low bytes of `dst` from network to host order or back; the others become zero.
    pub fn be(&mut self, size: Size, dst: Reg) -> &mut Assembler {
        self.push(EbpfInstruction::Swap { order: Endianness::Be, size, dst })
    }

    /// `dst = *(size *)(base + offset)`.
    pub fn load(&mut self, size: Size, dst: Reg, base: Reg, offset: i16) -> &mut Assembler {
        self.push(EbpfInstruction::Load { size, dst, base, offset })
    }

    /// `*(size *)(base + offset) = src`.
    pub fn store(
        &mut self,
        size: Size,
        base: Reg,
        offset: i16,
        src: impl Into<Operand>,
    ) -> &mut Assembler {
        self.push(EbpfInstruction::Store { size, base, offset, src: src.into() })
    }

    /// Reads and writes 8 bytes of memory as one.
    pub fn atomic(&mut self, op: Atomic, base: Reg, offset: i16, src: Reg) -> &mut Assembler {
        self.push(EbpfInstruction::Atomic { op, bits: Bits::B64, base, offset, src })
    }

    /// `dst = value`.
    pub fn load_imm64(&mut self, dst: Reg, value: u64) -> &mut Assembler {
        self.push(EbpfInstruction::LoadImm64 { dst, value })
    }

    /// `dst =` the map of this file descriptor. The map must live until the program is loaded,
    /// which then keeps it.
    pub fn load_map(&mut self, dst: Reg, fd: i32) -> &mut Assembler {
        self.push(EbpfInstruction::LoadMap { dst, fd })
    }

    /// Goes on at `target`.
    pub fn jump(&mut self, target: Label) -> &mut Assembler {
        self.push(EbpfInstruction::Jump { target })
    }

    /// Goes on at `target` if `dst cond src`.
    pub fn jump_if(
        &mut self,
        cond: Cond,
        dst: Reg,
        src: impl Into<Operand>,
        target: Label,
    ) -> &mut Assembler {
        self.push(EbpfInstruction::JumpIf { bits: Bits::B64, cond, dst, src: src.into(), target })
    }

    /// `R0 = helper(R1, …)`; what is in `R1` to `R5` is lost.
    pub fn call(&mut self, helper: Helper) -> &mut Assembler {
        self.push(EbpfInstruction::Call { helper })
    }

    /// Returns `R0`.
    pub fn exit(&mut self) -> &mut Assembler {
        self.push(EbpfInstruction::Exit)
    }

    /// Appends a finished program as a function that stands at `start`, where
    /// [`EbpfInstruction::CallLocal`] finds it. Nothing may run on into it.
    pub fn function(&mut self, code: &Code, start: Label) -> &mut Assembler {
        let mut starts = Vec::with_capacity(code.code.len());
        let mut n = 0_i64;
        for instruction in &code.code {
            starts.push(n);
            n += instruction.slots() as i64;
        }
        let labels: Vec<Label> =
            (0..starts.len()).map(|at| self.label(&format!("function+{at}"))).collect();
        self.bind(start);
        for (at, instruction) in code.code.iter().enumerate() {
            self.bind(labels[at]);
            let target = |way: i32| {
                let to = starts[at] + instruction.slots() as i64 + i64::from(way);
                // Jumps of a finished program lead to its instructions.
                labels[starts.partition_point(|&start| start < to).min(labels.len() - 1)]
            };
            self.push(instruction.with_target(target));
        }
        self
    }

    /// The program, once all is right with it that can be told without the kernel.
    ///
    /// # Errors
    /// The first mistake, with the instructions around it.
    pub fn finish(&self) -> Result<Code, AssembleError> {
        let last = self.code.len().saturating_sub(1);
        self.labels()?;
        if self.code.len() > EBPF_INSTRUCTIONS_MAX {
            return Err(self.error(last, Fault::TooLong));
        }
        for (at, instruction) in self.code.iter().enumerate() {
            check(instruction).map_err(|fault| self.error(at, fault))?;
        }
        if !matches!(self.code.last(), Some(EbpfInstruction::Exit | EbpfInstruction::Jump { .. })) {
            return Err(self.error(last, Fault::RunsOff));
        }
        self.resolve()
    }

    /// Whether each label stands in one place.
    fn labels(&self) -> Result<(), AssembleError> {
        for place in &self.labels {
            let Some(at) = place.at else { continue };
            let at_most = self.code.len().saturating_sub(1);
            let fault = match () {
                () if place.twice => Fault::BoundTwice(place.name.clone()),
                () if at > at_most => Fault::BoundBehind(place.name.clone()),
                () => continue,
            };
            return Err(self.error(at.min(at_most), fault));
        }
        Ok(())
    }

    /// Puts displacements where labels were.
    fn resolve(&self) -> Result<Code, AssembleError> {
        let mut starts = Vec::with_capacity(self.code.len());
        let mut n = 0_i64;
        for instruction in &self.code {
            starts.push(n);
            n += instruction.slots() as i64;
        }
        let (mut code, mut slots) = (Vec::with_capacity(self.code.len()), Vec::new());
        for (at, instruction) in self.code.iter().enumerate() {
            let mut way = 0;
            if let Some(label) = instruction.target() {
                let place = self.labels.get(label.0 as usize);
                let Some(to) = place.and_then(|p| p.at) else {
                    let name = place.map_or_else(String::new, |p| p.name.clone());
                    return Err(self.error(at, Fault::Unbound(name)));
                };
                way = starts[to] - starts[at] - 1;
                let near = i16::try_from(way).is_ok();
                if !near && matches!(instruction, EbpfInstruction::JumpIf { .. }) {
                    return Err(self.error(at, Fault::TooFar(way)));
                }
            }
            // A program has fewer slots than fill an i32.
            let instruction = instruction.with_target(|_| way as i32);
            instruction.encode(&mut slots);
            code.push(instruction);
        }
        Ok(Code { code, slots })
    }

    fn error(&self, at: usize, fault: Fault) -> AssembleError {
        const AROUND: usize = 3;
        let mut listing = String::new();
        let name = |label: &Label| match self.labels.get(label.0 as usize) {
            Some(place) => place.name.clone(),
            None => "a label of another program".to_owned(),
        };
        let shown = at.saturating_sub(AROUND)..(at + AROUND + 1).min(self.code.len());
        for i in shown {
            for place in self.labels.iter().filter(|p| p.at == Some(i)) {
                listing += &format!("{}:\n", place.name);
            }
            let mark = if i == at { '>' } else { ' ' };
            let text = self.code[i].with_target(|label| name(&label));
            listing += &format!("{mark}{i:4}: {text}\n");
        }
        AssembleError { fault, at, listing }
    }
}

impl Code {
    /// The instructions, jumps in slots from the next one.
    pub fn instructions(&self) -> &[EbpfInstruction] {
        &self.code
    }

    /// The slots that the kernel reads.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The same program where instructions that name a map `i` name the file descriptor `fds[i]`
    /// instead: programs are written before their maps are made.
    ///
    /// # Panics
    /// Where the program names a map that `fds` does not have.
    #[must_use]
    pub fn with_maps(&self, fds: &[i32]) -> Code {
        let mut code = self.code.clone();
        for instruction in &mut code {
            if let EbpfInstruction::LoadMap { fd, .. } | EbpfInstruction::LoadMapValue { fd, .. } =
                instruction
            {
                *fd = fds[*fd as usize];
            }
        }
        let mut slots = Vec::with_capacity(self.slots.len());
        code.iter().for_each(|instruction| instruction.encode(&mut slots));
        Code { code, slots }
    }
}

/// Whether an instruction is one that a verifier can accept.
fn check(instruction: &EbpfInstruction<Label>) -> Result<(), Fault> {
    use EbpfInstruction as I;
    let written = match *instruction {
        I::Alu { dst, .. }
        | I::Neg { dst, .. }
        | I::Swap { dst, .. }
        | I::Load { dst, .. }
        | I::LoadSigned { dst, .. }
        | I::LoadImm64 { dst, .. }
        | I::LoadMap { dst, .. }
        | I::LoadMapValue { dst, .. } => Some(dst),
        I::Atomic { op, src, .. } => {
            let plain = matches!(op, Atomic::Add | Atomic::Or | Atomic::And | Atomic::Xor);
            (!plain && op != Atomic::CmpXchg).then_some(src)
        }
        _ => None,
    };
    if written == Some(Reg::R10) {
        return Err(Fault::FramePointer);
    }
    match *instruction {
        I::Alu { bits, op, src, .. } => check_alu(bits, op, src),
        I::Swap { size: Size::B, .. } => Err(Fault::Operands("one byte has no order")),
        I::LoadSigned { size: Size::DW, .. } => {
            Err(Fault::Operands("8 bytes have no sign to extend"))
        }
        I::LoadPacket { size: Size::DW, .. } => {
            Err(Fault::Operands("packets are read by 1, 2 or 4 bytes"))
        }
        _ => Ok(()),
    }
}

fn check_alu(bits: Bits, op: Alu, src: Operand) -> Result<(), Fault> {
    let width = if bits == Bits::B32 { 32 } else { 64 };
    match (op, src) {
        (Alu::Lsh | Alu::Rsh | Alu::Arsh, Operand::Imm(by)) if !(0..width).contains(&by) => {
            Err(Fault::Shift(by))
        }
        (Alu::Div | Alu::Sdiv | Alu::Mod | Alu::Smod, Operand::Imm(0)) => Err(Fault::Zero),
        (Alu::Movsx8 | Alu::Movsx16 | Alu::Movsx32, Operand::Imm(_)) => {
            Err(Fault::Operands("only of registers is the sign extended"))
        }
        (Alu::Movsx32, _) if bits == Bits::B32 => {
            Err(Fault::Operands("32 bits have no sign to extend to 32"))
        }
        _ => Ok(()),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unbound(name) => write!(f, "label `{name}` stands nowhere"),
            Fault::BoundTwice(name) => write!(f, "label `{name}` stands in two places"),
            Fault::BoundBehind(name) => write!(f, "no instruction follows label `{name}`"),
            Fault::TooFar(way) => {
                write!(f, "a conditional jump reaches 32767 slots, its label is {way} away")
            }
            Fault::RunsOff => f.write_str("the program does not end in an exit or a jump"),
            Fault::TooLong => write!(f, "more than {EBPF_INSTRUCTIONS_MAX} instructions"),
            Fault::FramePointer => f.write_str("r10 can't be written"),
            Fault::Shift(by) => write!(f, "a shift by {by}"),
            Fault::Zero => f.write_str("a division by zero"),
            Fault::Operands(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eBPF instruction {}: {}\n{}", self.at, self.fault, self.listing)
    }
}

impl std::error::Error for AssembleError {}
