//! Classic BPF, the machine that capture filters compile to (McCanne and Jacobson, 1993).
//!
//! A program is checked once, when it is built: every instruction is known, every jump goes
//! forward and lands inside, every path ends in a return. So running one always ends, after at
//! most as many steps as it has instructions, and can't fail: a load beyond the captured bytes or
//! a division by zero rejects the frame, as in libpcap and the kernel.

use crate::limits::FILTER_INSTRUCTIONS_MAX;
use std::fmt;

/// Cells of scratch memory.
const CELLS: usize = 16;

/// From this offset up, the Linux kernel keeps facts that are no bytes of the frame
/// (`SKF_AD_OFF`); a file does not have them.
const ANCILLARY: u32 = 0xffff_f000;

/// An instruction as compilers emit it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Instruction {
    /// Operation, operand size and addressing mode.
    pub code: u16,
    /// Instructions to skip if the test holds.
    pub jt: u8,
    /// Instructions to skip if it does not.
    pub jf: u8,
    /// The constant.
    pub k: u32,
}

impl Instruction {
    /// Ends a program, and refuses the frame.
    pub(crate) const REFUSE: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 0 };
}

/// Why a program is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProgramError {
    /// No instructions, or more than [`FILTER_INSTRUCTIONS_MAX`].
    Length(usize),
    /// An instruction of unknown code.
    Code {
        /// Its position.
        at: usize,
        /// The code.
        code: u16,
    },
    /// A jump beyond the end, or a last instruction that is not a return.
    Jump {
        /// The position of the instruction.
        at: usize,
    },
    /// Scratch memory that does not exist.
    Cell {
        /// The position of the instruction.
        at: usize,
    },
    /// Division by the constant zero.
    Zero {
        /// The position of the instruction.
        at: usize,
    },
    /// A load of what only a live capture knows.
    Ancillary {
        /// The position of the instruction.
        at: usize,
    },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::Length(n) => write!(
                f,
                "a program of {n} instructions, where 1 to {FILTER_INSTRUCTIONS_MAX} can be run"
            ),
            ProgramError::Code { at, code } => write!(f, "unknown instruction {code:#x} at {at}"),
            ProgramError::Jump { at } => write!(f, "the program runs off its end from {at}"),
            ProgramError::Cell { at } => write!(f, "no such scratch memory, at {at}"),
            ProgramError::Zero { at } => write!(f, "division by zero, at {at}"),
            ProgramError::Ancillary { at } => {
                write!(f, "asks for what only a live capture knows, at {at}")
            }
        }
    }
}

impl std::error::Error for ProgramError {}

/// A program that is known to end and to stay within its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassicProgram {
    code: Vec<Op>,
}

/// A checked instruction; jumps hold the position they lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    LoadWord(u32),
    LoadHalf(u32),
    LoadByte(u32),
    LoadWordX(u32),
    LoadHalfX(u32),
    LoadByteX(u32),
    LoadLength,
    LoadConst(u32),
    LoadCell(u8),
    XLength,
    XConst(u32),
    XCell(u8),
    /// Four times the low nibble of a byte: the length of an IPv4 header.
    XHeaderLength(u32),
    Store(u8),
    StoreX(u8),
    Alu(Alu, Operand),
    Negate,
    Goto(u32),
    Test {
        test: Test,
        operand: Operand,
        yes: u32,
        no: u32,
    },
    ReturnConst(u32),
    ReturnA,
    AToX,
    XToA,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operand {
    Const(u32),
    X,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Mod,
    Xor,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    Equal,
    Greater,
    GreaterEqual,
    AnyBit,
}

impl ClassicProgram {
    /// Checks a program.
    ///
    /// # Errors
    /// When it could run off its end, run for ever, or holds an instruction that is not one.
    pub fn new(code: &[Instruction]) -> Result<ClassicProgram, ProgramError> {
        if code.is_empty() || code.len() > FILTER_INSTRUCTIONS_MAX {
            return Err(ProgramError::Length(code.len()));
        }
        let ops = (0..code.len()).map(|at| check(code, at)).collect::<Result<_, _>>()?;
        Ok(ClassicProgram { code: ops })
    }

    /// Runs the program over the captured bytes of a frame of `len` bytes on the wire. 0 rejects
    /// the frame; anything else accepts it.
    pub fn run(&self, frame: &[u8], len: u32) -> u32 {
        self.steps(frame, len).unwrap_or(0)
    }

    /// `None` where the machine rejects on its own.
    fn steps(&self, frame: &[u8], len: u32) -> Option<u32> {
        let (mut a, mut x, mut cells) = (0u32, 0u32, [0u32; CELLS]);
        let mut at = 0;
        loop {
            let op = *self.code.get(at)?;
            at += 1;
            match op {
                Op::LoadWord(k) => a = word(frame, k as usize)?,
                Op::LoadHalf(k) => a = half(frame, k as usize)?,
                Op::LoadByte(k) => a = byte(frame, k as usize)?,
                Op::LoadWordX(k) => a = word(frame, x as usize + k as usize)?,
                Op::LoadHalfX(k) => a = half(frame, x as usize + k as usize)?,
                Op::LoadByteX(k) => a = byte(frame, x as usize + k as usize)?,
                Op::LoadLength => a = len,
                Op::LoadConst(k) => a = k,
                Op::LoadCell(i) => a = cells[usize::from(i) % CELLS],
                Op::XLength => x = len,
                Op::XConst(k) => x = k,
                Op::XCell(i) => x = cells[usize::from(i) % CELLS],
                Op::XHeaderLength(k) => x = (byte(frame, k as usize)? & 0xf) << 2,
                Op::Store(i) => cells[usize::from(i) % CELLS] = a,
                Op::StoreX(i) => cells[usize::from(i) % CELLS] = x,
                Op::Alu(alu, operand) => a = alu.apply(a, operand.value(x))?,
                Op::Negate => a = a.wrapping_neg(),
                Op::Goto(to) => at = to as usize,
                Op::Test { test, operand, yes, no } => {
                    at = if test.holds(a, operand.value(x)) { yes } else { no } as usize;
                }
                Op::ReturnConst(k) => return Some(k),
                Op::ReturnA => return Some(a),
                Op::AToX => x = a,
                Op::XToA => a = x,
            }
        }
    }
}

#[inline(always)]
fn word(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

#[inline(always)]
fn half(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk().map(|b| u32::from(u16::from_be_bytes(*b)))
}

#[inline(always)]
fn byte(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at).map(|b| u32::from(*b))
}

impl Operand {
    #[inline(always)]
    fn value(self, x: u32) -> u32 {
        match self {
            Operand::Const(k) => k,
            Operand::X => x,
        }
    }
}

impl Alu {
    /// Arithmetic wraps; shifts by 32 and more leave nothing.
    #[inline(always)]
    fn apply(self, a: u32, b: u32) -> Option<u32> {
        Some(match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::Div => a.checked_div(b)?,
            Alu::Or => a | b,
            Alu::And => a & b,
            Alu::ShiftLeft => a.checked_shl(b).unwrap_or(0),
            Alu::ShiftRight => a.checked_shr(b).unwrap_or(0),
            Alu::Mod => a.checked_rem(b)?,
            Alu::Xor => a ^ b,
        })
    }
}

impl Test {
    #[inline(always)]
    fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Test::Equal => a == b,
            Test::Greater => a > b,
            Test::GreaterEqual => a >= b,
            Test::AnyBit => a & b != 0,
        }
    }
}

/// The instruction at `at`, checked. Codes are class, size or operation, and mode, as in
/// `linux/bpf_common.h`.
fn check(code: &[Instruction], at: usize) -> Result<Op, ProgramError> {
    let Instruction { code: number, jt, jf, k } = code[at];
    let unknown = ProgramError::Code { at, code: number };
    let inside = |k: u32| {
        if k >= ANCILLARY { Err(ProgramError::Ancillary { at }) } else { Ok(k) }
    };
    let cell = |k: u32| {
        u8::try_from(k).ok().filter(|k| usize::from(*k) < CELLS).ok_or(ProgramError::Cell { at })
    };
    let target = |skip: u32| match at as u64 + 1 + u64::from(skip) {
        to if to < code.len() as u64 => Ok(to as u32),
        _ => Err(ProgramError::Jump { at }),
    };
    let op = match number {
        0x20 => Op::LoadWord(inside(k)?),
        0x28 => Op::LoadHalf(inside(k)?),
        0x30 => Op::LoadByte(inside(k)?),
        0x40 => Op::LoadWordX(k),
        0x48 => Op::LoadHalfX(k),
        0x50 => Op::LoadByteX(k),
        0x80 => Op::LoadLength,
        0x00 => Op::LoadConst(k),
        0x60 => Op::LoadCell(cell(k)?),
        0x81 => Op::XLength,
        0x01 => Op::XConst(k),
        0x61 => Op::XCell(cell(k)?),
        0xb1 => Op::XHeaderLength(inside(k)?),
        0x02 => Op::Store(cell(k)?),
        0x03 => Op::StoreX(cell(k)?),
        0x84 => Op::Negate,
        0x05 => Op::Goto(target(k)?),
        0x06 => Op::ReturnConst(k),
        0x16 => Op::ReturnA,
        0x07 => Op::AToX,
        0x87 => Op::XToA,
        n if n & 7 == 4 => {
            let alu = alu(n & 0xfff0).ok_or(unknown)?;
            let operand = operand(n, k);
            if matches!((alu, operand), (Alu::Div | Alu::Mod, Operand::Const(0))) {
                return Err(ProgramError::Zero { at });
            }
            Op::Alu(alu, operand)
        }
        n if n & 7 == 5 => {
            let test = test(n & 0xfff0).ok_or(unknown)?;
            let (yes, no) = (target(u32::from(jt))?, target(u32::from(jf))?);
            Op::Test { test, operand: operand(n, k), yes, no }
        }
        _ => return Err(unknown),
    };
    // Falling off the end is a jump beyond it.
    if !matches!(op, Op::Goto(_) | Op::Test { .. } | Op::ReturnConst(_) | Op::ReturnA) {
        target(0)?;
    }
    Ok(op)
}

fn operand(code: u16, k: u32) -> Operand {
    if code & 8 == 0 { Operand::Const(k) } else { Operand::X }
}

fn alu(operation: u16) -> Option<Alu> {
    Some(match operation {
        0x00 => Alu::Add,
        0x10 => Alu::Sub,
        0x20 => Alu::Mul,
        0x30 => Alu::Div,
        0x40 => Alu::Or,
        0x50 => Alu::And,
        0x60 => Alu::ShiftLeft,
        0x70 => Alu::ShiftRight,
        0x90 => Alu::Mod,
        0xa0 => Alu::Xor,
        _ => return None,
    })
}

fn test(operation: u16) -> Option<Test> {
    Some(match operation {
        0x10 => Test::Equal,
        0x20 => Test::Greater,
        0x30 => Test::GreaterEqual,
        0x40 => Test::AnyBit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn i(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    fn run(code: &[Instruction], frame: &[u8], len: u32) -> u32 {
        ClassicProgram::new(code).unwrap().run(frame, len)
    }

    #[test]
    fn ip_over_ethernet() {
        // tcpdump -d ip
        let ip = [i(0x28, 0, 0, 12), i(0x15, 0, 1, 0x800), i(6, 0, 0, 262_144), i(6, 0, 0, 0)];
        let mut frame = [0; 14];
        assert_eq!(run(&ip, &frame, 60), 0);
        frame[12] = 8;
        assert_eq!(run(&ip, &frame, 60), 262_144);
        assert_eq!(run(&ip, &frame[..13], 60), 0, "a load beyond the captured bytes rejects");
    }

    #[test]
    fn edges_of_arithmetic() {
        let check = |code, a, x, expected| {
            let program = [i(0, 0, 0, a), i(1, 0, 0, x), i(code, 0, 0, x), i(0x16, 0, 0, 0)];
            assert_eq!(run(&program, &[], 0), expected, "code {code:#x}");
        };
        for mode in [0, 8] {
            check(0x04 | mode, u32::MAX, 2, 1);
            check(0x14 | mode, 1, 2, u32::MAX);
            check(0x64 | mode, 1, 31, 1 << 31);
            check(0x64 | mode, 1, 32, 0);
            check(0x74 | mode, 1, 40, 0);
            check(0x34 | mode, 7, 2, 3);
            check(0x94 | mode, 7, 4, 3);
        }
        check(0x84, 1, 9, u32::MAX);
        // By a zero in X: the frame is rejected, whatever follows.
        let by_x = [i(0, 0, 0, 1), i(0x3c, 0, 0, 0), i(6, 0, 0, 1)];
        assert_eq!(run(&by_x, &[], 0), 0);
    }

    #[test]
    fn loads_at_the_far_end() {
        let check = |load, frame: &[u8], expected| {
            assert_eq!(run(&[i(1, 0, 0, u32::MAX), load, i(0x16, 0, 0, 0)], frame, 9), expected);
        };
        check(i(0x50, 0, 0, u32::MAX), &[1; 99], 0);
        check(i(0x50, 0, 0, 1), &[1; 99], 0);
        check(i(0x20, 0, 0, 1), &[0, 1, 2, 3, 4], 0x0102_0304);
        check(i(0x20, 0, 0, 2), &[0, 1, 2, 3, 4], 0);
        check(i(0x80, 0, 0, 0), &[], 9);
        let header_length = [i(0xb1, 0, 0, 0), i(0x87, 0, 0, 0), i(0x16, 0, 0, 0)];
        assert_eq!(run(&header_length, &[0x46], 0), 24);
    }

    #[test]
    fn what_could_go_wrong_is_refused() {
        let check = |code: &[Instruction], expected| {
            assert_eq!(ClassicProgram::new(code).map(|_| ()), Err(expected));
        };
        check(&[], ProgramError::Length(0));
        check(&[i(0, 0, 0, 0)], ProgramError::Jump { at: 0 });
        check(&[i(5, 0, 0, 0)], ProgramError::Jump { at: 0 });
        check(&[i(5, 0, 0, u32::MAX), i(6, 0, 0, 0)], ProgramError::Jump { at: 0 });
        check(&[i(0x15, 0, 1, 0), i(6, 0, 0, 0)], ProgramError::Jump { at: 0 });
        check(&[i(0x60, 0, 0, 16), i(6, 0, 0, 0)], ProgramError::Cell { at: 0 });
        check(&[i(0x34, 0, 0, 0), i(6, 0, 0, 0)], ProgramError::Zero { at: 0 });
        check(&[i(0x28, 0, 0, 0xffff_f000), i(6, 0, 0, 0)], ProgramError::Ancillary { at: 0 });
        check(&[i(0x99, 0, 0, 0)], ProgramError::Code { at: 0, code: 0x99 });
        check(&[i(0xb4, 0, 0, 0)], ProgramError::Code { at: 0, code: 0xb4 });
    }

    /// The machine as the paper tells it: wide integers, one rule per bit field of the code.
    fn naive(code: &[Instruction], frame: &[u8], len: u32) -> u32 {
        const M: i128 = 1 << 32;
        let load = |at: i128, size: usize| -> Option<i128> {
            let at = usize::try_from(at).ok()?;
            let bytes = frame.get(at..at.checked_add(size)?)?;
            Some(bytes.iter().fold(0, |n, b| n * 256 + i128::from(*b)))
        };
        let (mut a, mut x, mut cells, mut pc) = (0i128, 0i128, [0i128; 16], 0usize);
        loop {
            let Instruction { code, jt, jf, k } = code[pc];
            let k = i128::from(k);
            let b = if code & 8 != 0 { x } else { k };
            let size = [4, 2, 1][usize::from(code >> 3 & 3).min(2)];
            pc += 1;
            match (code & 7, code & 0xe0, code & 0xf0) {
                (class @ (0 | 1), mode, _) => {
                    let value = match mode {
                        0x00 => Some(k),
                        0x20 => load(k, size),
                        0x40 => load(x + k, size),
                        0x60 => Some(cells[k as usize]),
                        0x80 => Some(i128::from(len)),
                        _ => load(k, 1).map(|v| v % 16 * 4),
                    };
                    let Some(value) = value else { return 0 };
                    if class == 0 { a = value } else { x = value }
                }
                (2, ..) => cells[k as usize] = a,
                (3, ..) => cells[k as usize] = x,
                (4, _, op) => {
                    if matches!(op, 0x30 | 0x90) && b == 0 {
                        return 0;
                    }
                    a = match op {
                        0x00 => a + b,
                        0x10 => a - b,
                        0x20 => a * b,
                        0x30 => a / b,
                        0x40 => a | b,
                        0x50 => a & b,
                        0x60 => (0..b.min(32)).fold(a, |a, _| a * 2),
                        0x70 => (0..b.min(32)).fold(a, |a, _| a / 2),
                        0x80 => -a,
                        0x90 => a % b,
                        _ => a ^ b,
                    }
                    .rem_euclid(M);
                }
                (5, _, 0x00) => pc += k as usize,
                (5, _, op) => {
                    let holds = match op {
                        0x10 => a == b,
                        0x20 => a > b,
                        0x30 => a >= b,
                        _ => a & b != 0,
                    };
                    pc += usize::from(if holds { jt } else { jf });
                }
                (6, ..) => return if code & 0x10 == 0 { k as u32 } else { a as u32 },
                _ => {
                    if code & 0x80 == 0 {
                        x = a
                    } else {
                        a = x
                    }
                }
            }
        }
    }

    /// Instructions that are likely, not certain, to be valid at their place.
    fn instructions() -> impl Strategy<Value = Instruction> {
        let codes = vec![
            0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x81, 0x01, 0x61, 0xb1, 0x02,
            0x03, 0x84, 0x05, 0x06, 0x16, 0x07, 0x87, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34,
            0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x94, 0x9c, 0xa4, 0xac, 0x15,
            0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d,
        ];
        let k = prop_oneof![4 => 0u32..20, 1 => any::<u32>(), 1 => u32::MAX - 9..=u32::MAX];
        (proptest::sample::select(codes), 0u8..4, 0u8..4, k).prop_map(|(code, jt, jf, k)| {
            let k = match code {
                0x60 | 0x61 | 0x02 | 0x03 => k % 16,
                0x05 => k % 4,
                _ => k,
            };
            i(code, jt, jf, k)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn agrees_with_the_naive_machine(
            mut code in proptest::collection::vec(instructions(), 0..24),
            frame in proptest::collection::vec(any::<u8>(), 0..32),
            len in any::<u32>(),
        ) {
            // Four returns: every short jump before them lands.
            code.extend([i(0x16, 0, 0, 0); 4]);
            if let Ok(program) = ClassicProgram::new(&code) {
                prop_assert_eq!(program.run(&frame, len), naive(&code, &frame, len));
            }
        }

        #[test]
        fn any_instructions_are_refused_or_run(
            code in proptest::collection::vec(any::<(u8, u8, u8, u32)>(), 0..12),
            frame in proptest::collection::vec(any::<u8>(), 0..32),
        ) {
            let code: Vec<_> =
                code.into_iter().map(|(c, jt, jf, k)| i(c.into(), jt % 4, jf % 4, k)).collect();
            if let Ok(program) = ClassicProgram::new(&code) {
                prop_assert_eq!(program.run(&frame, 60), naive(&code, &frame, 60));
            }
        }
    }
}
