//! Writing code in pieces that end in jumps: what would never run is left out, which the kernel's
//! verifier demands, and so are jumps to the next instruction.

use crate::facts::Facts;
use std::collections::BTreeSet;
use weir_ebpf::{
    Alu, AssembleError, Assembler, Bits, Code, Cond, EbpfInstruction, Endianness, Helper, Label,
    Operand, Reg, Size,
};

/// A place in a program; see [`Writer::label`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(usize);

/// A program that is being written. Labels are bound after all jumps to them: programs have no
/// loops.
pub(crate) struct Writer {
    assembler: Assembler,
    labels: Vec<Label>,
    /// The labels that something jumps to.
    reached: BTreeSet<Place>,
    /// Whether the next instruction can run.
    runs: bool,
    /// A jump that ends the code so far, and is not written yet.
    pending: Option<Place>,
    /// The facts that the program asks of frames.
    asked: Facts,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer {
            assembler: Assembler::new(),
            labels: Vec::new(),
            reached: BTreeSet::new(),
            runs: true,
            pending: None,
            asked: Facts::NONE,
        }
    }

    /// Notes that the program asks whether any of these facts holds.
    pub(crate) fn asks(&mut self, facts: Facts) {
        if self.runs {
            self.asked = self.asked.and(facts);
        }
    }

    /// The facts that the program asks of frames so far.
    pub(crate) fn asked(&self) -> Facts {
        self.asked
    }

    /// Makes a label; the name is for listings.
    pub(crate) fn label(&mut self, name: &str) -> Place {
        self.labels.push(self.assembler.label(name));
        Place(self.labels.len() - 1)
    }

    /// Puts a label before the instruction that comes next.
    pub(crate) fn bind(&mut self, place: Place) {
        let falls = self.pending == Some(place);
        if falls {
            self.pending = None;
        }
        self.settle();
        self.runs |= falls || self.reached.contains(&place);
        // A label that nothing leads to stands nowhere.
        if self.runs {
            self.assembler.bind(self.labels[place.0]);
        }
    }

    /// Writes the jump that waits.
    fn settle(&mut self) {
        if let Some(place) = self.pending.take() {
            self.reached.insert(place);
            self.assembler.jump(self.labels[place.0]);
        }
    }

    /// Appends any instruction that jumps nowhere.
    pub(crate) fn push(&mut self, instruction: EbpfInstruction<Label>) -> &mut Writer {
        if self.runs {
            self.assembler.push(instruction);
        }
        self
    }

    /// Goes on at `place`.
    pub(crate) fn jump(&mut self, place: Place) {
        if self.runs {
            self.pending = Some(place);
            self.runs = false;
        }
    }

    /// Goes on at `place` if `dst cond src`.
    pub(crate) fn jump_if(
        &mut self,
        cond: Cond,
        dst: Reg,
        src: impl Into<Operand>,
        place: Place,
    ) -> &mut Writer {
        if self.runs {
            self.reached.insert(place);
            self.assembler.jump_if(cond, dst, src, self.labels[place.0]);
        }
        self
    }

    /// Returns `R0`.
    pub(crate) fn exit(&mut self) {
        self.push(EbpfInstruction::Exit);
        self.runs = false;
    }

    /// `dst = dst op src`.
    pub(crate) fn alu(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) -> &mut Writer {
        self.push(EbpfInstruction::Alu { bits: Bits::B64, op, dst, src: src.into() })
    }

    /// Leaves `dst` as it is, and has the verifier forget all that it knows of it: it knows nothing
    /// of `unknown`, and so not what remains when that is added and taken off again.
    pub(crate) fn forget(&mut self, dst: Reg, unknown: Reg) -> &mut Writer {
        self.alu(Alu::Add, dst, unknown).alu(Alu::Sub, dst, unknown)
    }

    /// `dst = src`.
    pub(crate) fn mov(&mut self, dst: Reg, src: impl Into<Operand>) -> &mut Writer {
        self.alu(Alu::Mov, dst, src)
    }

    /// `dst = value`, in as few slots as it takes.
    pub(crate) fn constant(&mut self, dst: Reg, value: i64) -> &mut Writer {
        match i32::try_from(value) {
            Ok(imm) => self.mov(dst, imm),
            Err(_) => self.push(EbpfInstruction::LoadImm64 { dst, value: value as u64 }),
        }
    }

    /// Brings the low bytes of `dst` from network to host order; one byte has none.
    pub(crate) fn be(&mut self, size: Size, dst: Reg) -> &mut Writer {
        match size {
            Size::B => self,
            size => self.push(EbpfInstruction::Swap { order: Endianness::Be, size, dst }),
        }
    }

    /// `dst = *(size *)(base + offset)`.
    pub(crate) fn load(&mut self, size: Size, dst: Reg, base: Reg, offset: i16) -> &mut Writer {
        self.push(EbpfInstruction::Load { size, dst, base, offset })
    }

    /// `*(size *)(base + offset) = src`.
    pub(crate) fn store(
        &mut self,
        size: Size,
        base: Reg,
        offset: i16,
        src: impl Into<Operand>,
    ) -> &mut Writer {
        self.push(EbpfInstruction::Store { size, base, offset, src: src.into() })
    }

    /// `R0 = helper(R1, …)`; what is in `R1` to `R5` is lost.
    pub(crate) fn call(&mut self, helper: Helper) -> &mut Writer {
        self.push(EbpfInstruction::Call { helper })
    }

    /// Lets `write` append code of its own, which runs from its first instruction on, goes on after
    /// its last one, and jumps only to its own labels and those that it is given: the labels of
    /// `to`.
    pub(crate) fn embed(&mut self, to: &[Place], write: impl FnOnce(&mut Assembler, &[Label])) {
        if !self.runs {
            return;
        }
        let labels: Vec<Label> = to.iter().map(|place| self.labels[place.0]).collect();
        self.reached.extend(to);
        write(&mut self.assembler, &labels);
    }

    /// The program.
    pub(crate) fn finish(mut self) -> Result<Code, AssembleError> {
        self.settle();
        self.assembler.finish()
    }
}
