//! Expressions as instructions. A value that is absent is no value in a register but another way
//! to go on.
//!
//! A number ends up in `R0`, an address in `R0` (high) and `R1` (low). `R2` to `R5` are scratch.

mod sample;
mod steer;

use crate::facts::Facts;
use crate::frame::{Access, SPILL, SPILLS, if_fact};
use crate::read::{read_addr, read_num};
use crate::value::{Addr, Cmp, Num, NumKind, NumOp, Test};
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Bits, Cond, EbpfInstruction, Reg, Reg::*, Size};

/// Where a condition goes on.
#[derive(Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) yes: Place,
    pub(crate) no: Place,
    pub(crate) absent: Place,
}

/// Writes expressions.
pub(crate) struct Emit<'a> {
    w: &'a mut Writer,
    access: Access,
    /// How many values are set aside.
    depth: usize,
    /// Whether they were ever more than there is room for: then the code is of no use.
    too_deep: bool,
}

/// An expression sets more values aside than the stack has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooDeep;

impl<'a> Emit<'a> {
    pub(crate) fn new(w: &'a mut Writer, access: Access) -> Emit<'a> {
        Emit { w, access, depth: 0, too_deep: false }
    }

    /// Writes a condition.
    pub(crate) fn condition(mut self, test: &Test, ways: Ways) -> Result<(), TooDeep> {
        self.test(test, ways);
        if self.too_deep { Err(TooDeep) } else { Ok(()) }
    }

    /// Writes a number into `R0`.
    pub(crate) fn number(mut self, num: &Num, absent: Place) -> Result<(), TooDeep> {
        self.num(num, absent);
        if self.too_deep { Err(TooDeep) } else { Ok(()) }
    }

    /// Writes an address into `R0` and `R1`.
    pub(crate) fn address(mut self, addr: &Addr, absent: Place) -> Result<(), TooDeep> {
        self.addr(addr, absent);
        if self.too_deep { Err(TooDeep) } else { Ok(()) }
    }

    /// Sets a register aside.
    fn push(&mut self, reg: Reg) {
        self.too_deep |= self.depth >= SPILLS;
        let at = SPILL - 8 * self.depth.min(SPILLS) as i16;
        self.w.store(Size::DW, R10, at, reg);
        self.depth += 1;
    }

    /// Takes back what was set aside last.
    fn pop(&mut self, reg: Reg) {
        self.depth -= 1;
        self.w.load(Size::DW, reg, R10, SPILL - 8 * self.depth.min(SPILLS) as i16);
    }

    /// Goes on where the condition says.
    fn test(&mut self, test: &Test, ways: Ways) {
        match test {
            Test::Const(value) => self.w.jump(match value {
                Some(true) => ways.yes,
                Some(false) => ways.no,
                None => ways.absent,
            }),
            Test::Fact(fact) => {
                if *fact != Facts::NONE {
                    if_fact(self.w, *fact, ways.yes);
                }
                self.w.jump(ways.no);
            }
            Test::NonZero(num) => {
                self.num(num, ways.absent);
                self.w.jump_if(Cond::Ne, R0, 0, ways.yes);
                self.w.jump(ways.no);
            }
            Test::Not(of) => {
                self.test(of, Ways { yes: ways.no, no: ways.yes, absent: ways.yes });
            }
            Test::And(a, b) => {
                let both = self.w.label("and");
                self.test(a, Ways { yes: both, no: ways.no, absent: ways.no });
                self.w.bind(both);
                self.test(b, Ways { absent: ways.no, ..ways });
            }
            Test::Or(a, b) => {
                let other = self.w.label("or");
                self.test(a, Ways { yes: ways.yes, no: other, absent: other });
                self.w.bind(other);
                self.test(b, Ways { absent: ways.no, ..ways });
            }
            Test::If(condition, a, b) => {
                let other = self.choose(condition);
                self.test(a, ways);
                self.w.bind(other);
                self.test(b, ways);
            }
            Test::Either(a, b) => {
                let other = self.w.label("coalesce");
                self.test(a, Ways { absent: other, ..ways });
                self.w.bind(other);
                self.test(b, ways);
            }
            Test::Whether(of) => {
                self.test(of, Ways { yes: ways.yes, no: ways.yes, absent: ways.no });
            }
            Test::NumExists(num) => {
                self.num(num, ways.no);
                self.w.jump(ways.yes);
            }
            Test::AddrExists(addr) => {
                self.addr(addr, ways.no);
                self.w.jump(ways.yes);
            }
            Test::Compare(cmp, a, b) => self.compare(*cmp, a, b, ways),
            Test::CompareAddr(cmp, a, b) => self.compare_addr(*cmp, a, b, ways),
            Test::Sampled { key, max } => self.sampled(key, *max, ways),
            Test::Within(num, ranges) => {
                self.num(num, ways.no);
                self.within(ranges, ways);
            }
            Test::AddrWithin(addr, ranges) => {
                self.addr(addr, ways.no);
                self.addr_within(ranges, ways);
            }
        }
    }

    /// Goes on here where a condition is true, else at the label returned.
    fn choose(&mut self, condition: &Test) -> Place {
        let (then, other) = (self.w.label("then"), self.w.label("else"));
        self.test(condition, Ways { yes: then, no: other, absent: other });
        self.w.bind(then);
        other
    }

    /// Compares two numbers; absent ones compare as false.
    fn compare(&mut self, cmp: Cmp, a: &Num, b: &Num, ways: Ways) {
        let cond = match cmp {
            Cmp::Eq => Cond::Eq,
            Cmp::Ne => Cond::Ne,
            Cmp::Lt => Cond::Slt,
            Cmp::Le => Cond::Sle,
            Cmp::Gt => Cond::Sgt,
            Cmp::Ge => Cond::Sge,
        };
        match immediate(b) {
            Some(imm) => {
                self.num(a, ways.no);
                self.w.jump_if(cond, R0, imm, ways.yes);
            }
            None => {
                self.both(a, b, ways.no);
                self.w.jump_if(cond, R0, R1, ways.yes);
            }
        }
        self.w.jump(ways.no);
    }

    /// Evaluates two numbers into `R0` and `R1`.
    fn both(&mut self, a: &Num, b: &Num, absent: Place) {
        if let NumKind::Const(value) = b.kind {
            self.num(a, absent);
            self.w.constant(R1, value);
            return;
        }
        self.num(a, absent);
        self.push(R0);
        self.num(b, absent);
        self.w.mov(R1, R0);
        self.pop(R0);
    }

    /// Evaluates a number into `R0`.
    pub(crate) fn num(&mut self, num: &Num, absent: Place) {
        match &num.kind {
            NumKind::Const(value) => {
                self.w.constant(R0, *value);
            }
            NumKind::Read(read) => read_num(self.w, self.access, read, absent),
            NumKind::Stack(at) => {
                self.w.load(Size::DW, R0, R10, *at);
            }
            NumKind::Not(of) => {
                self.num(of, absent);
                self.w.alu(Alu::Xor, R0, -1);
            }
            NumKind::Neg(of) => {
                self.num(of, absent);
                self.w.push(EbpfInstruction::Neg { bits: Bits::B64, dst: R0 });
            }
            NumKind::If(condition, a, b) => {
                let end = self.w.label("end_if");
                let other = self.choose(condition);
                self.num(a, absent);
                self.w.jump(end);
                self.w.bind(other);
                self.num(b, absent);
                self.w.jump(end);
                self.w.bind(end);
            }
            NumKind::Either(a, b) => {
                let (other, end) = (self.w.label("coalesce"), self.w.label("end_coalesce"));
                self.num(a, other);
                self.w.jump(end);
                self.w.bind(other);
                self.num(b, absent);
                self.w.jump(end);
                self.w.bind(end);
            }
            NumKind::Truth(test) => {
                let (yes, no, end) =
                    (self.w.label("yes"), self.w.label("no"), self.w.label("end_truth"));
                self.test(test, Ways { yes, no, absent });
                self.w.bind(yes);
                self.w.mov(R0, 1);
                self.w.jump(end);
                self.w.bind(no);
                self.w.mov(R0, 0);
                self.w.jump(end);
                self.w.bind(end);
            }
            NumKind::Op(op, a, b) => self.op(*op, a, b, absent),
        }
    }

    fn op(&mut self, op: NumOp, a: &Num, b: &Num, absent: Place) {
        let alu = match op {
            NumOp::Add => Alu::Add,
            NumOp::Sub => Alu::Sub,
            NumOp::Mul => Alu::Mul,
            NumOp::Div => Alu::Div,
            NumOp::Rem => Alu::Mod,
            NumOp::And => Alu::And,
            NumOp::Or => Alu::Or,
            NumOp::Xor => Alu::Xor,
            NumOp::Shl => Alu::Lsh,
            NumOp::Shr => Alu::Arsh,
            NumOp::Min | NumOp::Max => {
                let cond = if op == NumOp::Min { Cond::Sle } else { Cond::Sge };
                let end = self.w.label("end_choice");
                self.both(a, b, absent);
                self.w.jump_if(cond, R0, R1, end).mov(R0, R1);
                self.w.jump(end);
                return self.w.bind(end);
            }
        };
        match immediate(b) {
            Some(imm) => {
                self.num(a, absent);
                self.w.alu(alu, R0, imm);
            }
            None => {
                self.both(a, b, absent);
                self.w.alu(alu, R0, R1);
            }
        }
    }

    /// Whether `R0` is in one of the ranges.
    fn within(&mut self, ranges: &[(i64, i64)], ways: Ways) {
        let Some((&(first, last), _)) = ranges.split_first() else {
            return self.w.jump(ways.no);
        };
        if ranges.len() > 1 {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let above = self.w.label("above");
            self.w.constant(R1, high[0].0);
            self.w.jump_if(Cond::Sge, R0, R1, above);
            self.within(low, ways);
            self.w.bind(above);
            return self.within(high, ways);
        }
        if first == last {
            self.w.constant(R1, first);
            self.w.jump_if(Cond::Eq, R0, R1, ways.yes);
        } else {
            self.w.constant(R1, first);
            self.w.jump_if(Cond::Slt, R0, R1, ways.no);
            self.w.constant(R1, last);
            self.w.jump_if(Cond::Sle, R0, R1, ways.yes);
        }
        self.w.jump(ways.no);
    }

    /// Whether the address in `R0` and `R1` is in one of the ranges.
    fn addr_within(&mut self, ranges: &[(u128, u128)], ways: Ways) {
        let Some((&(first, last), _)) = ranges.split_first() else {
            return self.w.jump(ways.no);
        };
        if ranges.len() > 1 {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let (below, above) = (self.w.label("below"), self.w.label("above"));
            self.less(high[0].0, below, above);
            self.w.bind(below);
            self.addr_within(low, ways);
            self.w.bind(above);
            return self.addr_within(high, ways);
        }
        let (high, low) = ((first >> 64) as u64, first as u64);
        if first == last || high == (last >> 64) as u64 {
            self.word(R2, high);
            self.w.jump_if(Cond::Ne, R0, R2, ways.no);
            self.word(R2, low);
            if first == last {
                self.w.jump_if(Cond::Eq, R1, R2, ways.yes);
                return self.w.jump(ways.no);
            }
            self.w.jump_if(Cond::Lt, R1, R2, ways.no);
            self.word(R2, last as u64);
            self.w.jump_if(Cond::Le, R1, R2, ways.yes);
            return self.w.jump(ways.no);
        }
        let above = self.w.label("above");
        self.less(first, ways.no, above);
        self.w.bind(above);
        match last.checked_add(1) {
            Some(end) => self.less(end, ways.yes, ways.no),
            None => self.w.jump(ways.yes),
        }
    }

    /// Whether the address in `R0` and `R1` is less than this one.
    fn less(&mut self, than: u128, yes: Place, no: Place) {
        self.word(R2, (than >> 64) as u64);
        self.w.jump_if(Cond::Lt, R0, R2, yes).jump_if(Cond::Gt, R0, R2, no);
        self.word(R2, than as u64);
        self.w.jump_if(Cond::Lt, R1, R2, yes);
        self.w.jump(no);
    }

    fn word(&mut self, reg: Reg, value: u64) {
        self.w.constant(reg, value as i64);
    }

    /// Compares two addresses as numbers of 128 bits.
    fn compare_addr(&mut self, cmp: Cmp, a: &Addr, b: &Addr, ways: Ways) {
        self.addr(b, ways.no);
        self.push(R0);
        self.push(R1);
        self.addr(a, ways.no);
        self.pop(R3);
        self.pop(R2);
        let (less, equal, greater) = match cmp {
            Cmp::Eq => (false, true, false),
            Cmp::Ne => (true, false, true),
            Cmp::Lt => (true, false, false),
            Cmp::Le => (true, true, false),
            Cmp::Gt => (false, false, true),
            Cmp::Ge => (false, true, true),
        };
        let to = |holds| if holds { ways.yes } else { ways.no };
        if matches!(cmp, Cmp::Eq | Cmp::Ne) {
            self.w.jump_if(Cond::Ne, R0, R2, to(less)).jump_if(Cond::Ne, R1, R3, to(less));
            return self.w.jump(to(equal));
        }
        self.w.jump_if(Cond::Lt, R0, R2, to(less)).jump_if(Cond::Gt, R0, R2, to(greater));
        self.w.jump_if(Cond::Lt, R1, R3, to(less)).jump_if(Cond::Gt, R1, R3, to(greater));
        self.w.jump(to(equal));
    }

    /// Evaluates an address into `R0` and `R1`.
    pub(crate) fn addr(&mut self, addr: &Addr, absent: Place) {
        match addr {
            Addr::Const(value) => {
                self.word(R0, (value >> 64) as u64);
                self.word(R1, *value as u64);
            }
            Addr::Read(read) => read_addr(self.w, self.access, *read, absent),
            Addr::If(condition, a, b) => {
                let end = self.w.label("end_if");
                let other = self.choose(condition);
                self.addr(a, absent);
                self.w.jump(end);
                self.w.bind(other);
                self.addr(b, absent);
                self.w.jump(end);
                self.w.bind(end);
            }
            Addr::Either(a, b) => {
                let (other, end) = (self.w.label("coalesce"), self.w.label("end_coalesce"));
                self.addr(a, other);
                self.w.jump(end);
                self.w.bind(other);
                self.addr(b, absent);
                self.w.jump(end);
                self.w.bind(end);
            }
            Addr::Prefix { of, v4, v6 } => {
                self.addr(of, absent);
                self.prefix(*v4, *v6);
            }
        }
    }

    /// Keeps the first bits of the address in `R0` and `R1`.
    fn prefix(&mut self, v4: u8, v6: u8) {
        let (six, end) = (self.w.label("prefix6"), self.w.label("end_prefix"));
        self.w.jump_if(Cond::Ne, R0, 0, six).mov(R2, R1).alu(Alu::Rsh, R2, 32);
        self.w.jump_if(Cond::Ne, R2, 0xffff, six);
        self.word(R2, mask(96 + u32::from(v4).min(32)) as u64);
        self.w.alu(Alu::And, R1, R2);
        self.w.jump(end);
        self.w.bind(six);
        let kept = mask(v6.into());
        self.word(R2, (kept >> 64) as u64);
        self.w.alu(Alu::And, R0, R2);
        self.word(R2, kept as u64);
        self.w.alu(Alu::And, R1, R2);
        self.w.jump(end);
        self.w.bind(end);
    }
}

/// The first so many of 128 bits.
fn mask(bits: u32) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX << (128 - bits.min(128)),
    }
}

/// A constant that an instruction holds.
fn immediate(num: &Num) -> Option<i32> {
    match num.kind {
        NumKind::Const(value) => i32::try_from(value).ok(),
        _ => None,
    }
}
