//! Runs assembled programs in the kernel.

use super::*;
use crate::sys::testbed;
use Reg::*;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_ebpf::*;

/// Offsets of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// Where a test program finds its operands in the packet and puts its result.
const PACKET: usize = 64;

/// An XDP program around some instructions: operands from the packet in `R2` and `R3`, memory of 8
/// bytes with the first of them at `R10 - 8`; the packet's start is in `R6`, what is in `R2` behind
/// goes back to the packet.
fn around(body: impl FnOnce(&mut Assembler)) -> Code {
    let mut a = Assembler::new();
    let whole = a.label("whole");
    a.load(Size::W, R6, R1, DATA).load(Size::W, R4, R1, DATA_END);
    a.mov(R5, R6).add(R5, 24).jump_if(Cond::Le, R5, R4, whole);
    a.mov(R0, 1).exit();
    a.bind(whole);
    a.load(Size::DW, R2, R6, 0).load(Size::DW, R3, R6, 8).store(Size::DW, R10, -8, R2);
    body(&mut a);
    a.store(Size::DW, R6, 16, R2).mov(R0, 2).exit();
    a.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// A program that the kernel runs on two operands.
struct Kernel(Program);

impl Kernel {
    fn new(code: &Code) -> Kernel {
        let program = Program::load(ProgramKind::Xdp, "weir-test", code);
        Kernel(program.unwrap_or_else(|e| panic!("{e}\n{code}")))
    }

    fn run(&self, x: u64, y: u64) -> u64 {
        let mut packet = [0; PACKET];
        packet[..8].copy_from_slice(&x.to_ne_bytes());
        packet[8..16].copy_from_slice(&y.to_ne_bytes());
        let run = self.0.test_run(&packet, 1).expect("a packet that fits");
        assert_eq!(run.returned, 2);
        u64::from_ne_bytes(run.data[16..24].try_into().expect("8 bytes"))
    }
}

const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    7,
    63,
    0x80,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0123_4567_89ab_cdef,
    1 << 63,
    u64::MAX,
];

/// The result of an arithmetic operation, by RFC 9669, section 4.1.
fn expected(bits: Bits, op: Alu, x: u64, y: u64) -> u64 {
    if bits == Bits::B32 {
        let (x, y) = (x as u32, y as u32);
        let (sx, sy) = (x as i32, y as i32);
        return u64::from(match op {
            Alu::Add => x.wrapping_add(y),
            Alu::Sub => x.wrapping_sub(y),
            Alu::Mul => x.wrapping_mul(y),
            Alu::Div => x.checked_div(y).unwrap_or(0),
            Alu::Sdiv => {
                if sy == 0 {
                    0
                } else {
                    sx.wrapping_div(sy) as u32
                }
            }
            Alu::Or => x | y,
            Alu::And => x & y,
            Alu::Lsh => x << (y & 31),
            Alu::Rsh => x >> (y & 31),
            Alu::Mod => x.checked_rem(y).unwrap_or(x),
            Alu::Smod => {
                if sy == 0 {
                    x
                } else {
                    sx.wrapping_rem(sy) as u32
                }
            }
            Alu::Xor => x ^ y,
            Alu::Mov => y,
            Alu::Movsx8 => y as i8 as u32,
            Alu::Movsx16 => y as i16 as u32,
            Alu::Movsx32 => unreachable!("not of 32 bits"),
            Alu::Arsh => (sx >> (y & 31)) as u32,
        });
    }
    let (sx, sy) = (x as i64, y as i64);
    match op {
        Alu::Add => x.wrapping_add(y),
        Alu::Sub => x.wrapping_sub(y),
        Alu::Mul => x.wrapping_mul(y),
        Alu::Div => x.checked_div(y).unwrap_or(0),
        Alu::Sdiv => {
            if sy == 0 {
                0
            } else {
                sx.wrapping_div(sy) as u64
            }
        }
        Alu::Or => x | y,
        Alu::And => x & y,
        Alu::Lsh => x << (y & 63),
        Alu::Rsh => x >> (y & 63),
        Alu::Mod => x.checked_rem(y).unwrap_or(x),
        Alu::Smod => {
            if sy == 0 {
                x
            } else {
                sx.wrapping_rem(sy) as u64
            }
        }
        Alu::Xor => x ^ y,
        Alu::Mov => y,
        Alu::Movsx8 => y as i8 as u64,
        Alu::Movsx16 => y as i16 as u64,
        Alu::Movsx32 => y as i32 as u64,
        Alu::Arsh => (sx >> (y & 63)) as u64,
    }
}

/// Whether a kernel takes this; older ones lack signed division, moves and loads (before 6.6).
fn wide_enough(bits: Bits, op: Alu) -> bool {
    !(bits == Bits::B32 && op == Alu::Movsx32)
}

#[test]
fn arithmetic_is_what_the_rfc_says() {
    if !testbed::may("arithmetic_is_what_the_rfc_says") {
        return;
    }
    let each = Alu::ALL.iter().flat_map(|&op| [(Bits::B32, op), (Bits::B64, op)]);
    for (bits, op) in each.filter(|&(bits, op)| wide_enough(bits, op)) {
        let by_register = around(|a| {
            a.push(EbpfInstruction::Alu { bits, op, dst: R2, src: R3.into() });
        });
        let kernel = Kernel::new(&by_register);
        for (x, y) in NUMBERS.iter().flat_map(|&x| NUMBERS.map(|y| (x, y))) {
            assert_eq!(kernel.run(x, y), expected(bits, op, x, y), "{op:?} {bits:?} {x:#x} {y:#x}");
        }
        if matches!(op, Alu::Movsx8 | Alu::Movsx16 | Alu::Movsx32) {
            continue;
        }
        for imm in [7, 31, if matches!(op, Alu::Lsh | Alu::Rsh | Alu::Arsh) { 1 } else { -3 }] {
            let code = around(|a| {
                a.push(EbpfInstruction::Alu { bits, op, dst: R2, src: imm.into() });
            });
            let kernel = Kernel::new(&code);
            for x in NUMBERS {
                let (got, want) = (kernel.run(x, 0), expected(bits, op, x, imm as i64 as u64));
                assert_eq!(got, want, "{op:?} {bits:?} {x:#x} by {imm}");
            }
        }
    }
}

#[test]
fn negation_and_byte_order_are_what_the_rfc_says() {
    if !testbed::may("negation_and_byte_order_are_what_the_rfc_says") {
        return;
    }
    type Op = (EbpfInstruction<Label>, fn(u64) -> u64);
    let swap = |order, size| EbpfInstruction::Swap { order, size, dst: R2 };
    let ops: [Op; 11] = [
        (EbpfInstruction::Neg { bits: Bits::B32, dst: R2 }, |x| {
            u64::from((x as u32).wrapping_neg())
        }),
        (EbpfInstruction::Neg { bits: Bits::B64, dst: R2 }, |x| x.wrapping_neg()),
        (swap(Endianness::Be, Size::H), |x| (x as u16).to_be().into()),
        (swap(Endianness::Be, Size::W), |x| (x as u32).to_be().into()),
        (swap(Endianness::Be, Size::DW), |x| x.to_be()),
        (swap(Endianness::Le, Size::H), |x| (x as u16).to_le().into()),
        (swap(Endianness::Le, Size::W), |x| (x as u32).to_le().into()),
        (swap(Endianness::Le, Size::DW), |x| x.to_le()),
        (swap(Endianness::Swap, Size::H), |x| (x as u16).swap_bytes().into()),
        (swap(Endianness::Swap, Size::W), |x| (x as u32).swap_bytes().into()),
        (swap(Endianness::Swap, Size::DW), |x| x.swap_bytes()),
    ];
    for (op, want) in ops {
        let kernel = Kernel::new(&around(|a| {
            a.push(op);
        }));
        for x in NUMBERS {
            assert_eq!(kernel.run(x, 0), want(x), "{op:?} {x:#x}");
        }
    }
}

#[test]
fn conditions_are_what_the_rfc_says() {
    if !testbed::may("conditions_are_what_the_rfc_says") {
        return;
    }
    fn holds<U: Ord + Copy + Into<u64>, S: Ord>(cond: Cond, u: (U, U), s: (S, S)) -> bool {
        match cond {
            Cond::Eq => u.0 == u.1,
            Cond::Ne => u.0 != u.1,
            Cond::Gt => u.0 > u.1,
            Cond::Ge => u.0 >= u.1,
            Cond::Lt => u.0 < u.1,
            Cond::Le => u.0 <= u.1,
            Cond::Set => u.0.into() & u.1.into() != 0,
            Cond::Sgt => s.0 > s.1,
            Cond::Sge => s.0 >= s.1,
            Cond::Slt => s.0 < s.1,
            Cond::Sle => s.0 <= s.1,
        }
    }
    let sources = [Operand::Reg(R3), Operand::Imm(7), Operand::Imm(-1)];
    for (cond, bits) in Cond::ALL.iter().flat_map(|&c| [(c, Bits::B32), (c, Bits::B64)]) {
        for src in sources {
            let kernel = Kernel::new(&around(|a| {
                let (yes, on) = (a.label("yes"), a.label("on"));
                a.push(EbpfInstruction::JumpIf { bits, cond, dst: R2, src, target: yes });
                a.mov(R2, 0).jump(on);
                a.bind(yes);
                a.mov(R2, 1);
                a.bind(on);
            }));
            for (x, y) in NUMBERS.iter().flat_map(|&x| NUMBERS.map(|y| (x, y))) {
                let with = if let Operand::Imm(imm) = src { imm as i64 as u64 } else { y };
                let (short, signed) = ((x as u32, with as u32), (x as i32, with as i32));
                let want = match bits {
                    Bits::B32 => holds(cond, short, signed),
                    Bits::B64 => holds(cond, (x, with), (x as i64, with as i64)),
                };
                assert_eq!(kernel.run(x, y), u64::from(want), "{x:#x} {cond:?} {with:#x} {bits:?}");
            }
        }
    }
}

#[test]
fn memory_is_read_and_written_as_the_rfc_says() {
    if !testbed::may("memory_is_read_and_written_as_the_rfc_says") {
        return;
    }
    for size in Size::ALL {
        let n = usize::from(size.bytes());
        let mask = u64::MAX >> (64 - 8 * n);
        let low = |x: u64| if cfg!(target_endian = "big") { x >> (64 - 8 * n) } else { x & mask };
        let load = Kernel::new(&around(|a| {
            a.load(size, R2, R10, -8);
        }));
        let store = Kernel::new(&around(|a| {
            a.store(Size::DW, R10, -8, 0).store(size, R10, -8, R3).load(size, R2, R10, -8);
        }));
        let number = Kernel::new(&around(|a| {
            a.store(size, R10, -8, -2).load(size, R2, R10, -8);
        }));
        for x in NUMBERS {
            assert_eq!(load.run(x, 0), low(x), "load {size:?} {x:#x}");
            assert_eq!(store.run(0, x), x & mask, "store {size:?} {x:#x}");
        }
        assert_eq!(number.run(0, 0), -2_i64 as u64 & mask, "store {size:?}");
        if size != Size::DW {
            let signed = Kernel::new(&around(|a| {
                a.push(EbpfInstruction::LoadSigned { size, dst: R2, base: R10, offset: -8 });
            }));
            for x in NUMBERS {
                let up = 64 - 8 * n;
                let want = ((low(x) << up) as i64 >> up) as u64;
                assert_eq!(signed.run(x, 0), want, "signed {size:?} {x:#x}");
            }
        }
    }
    let wide = Kernel::new(&around(|a| {
        a.load_imm64(R2, 0x0123_4567_89ab_cdef);
    }));
    assert_eq!(wide.run(0, 0), 0x0123_4567_89ab_cdef);
}

#[test]
fn atomics_are_what_the_rfc_says() {
    if !testbed::may("atomics_are_what_the_rfc_says") {
        return;
    }
    for op in Atomic::ALL {
        for bits in [Bits::B32, Bits::B64] {
            // The value in memory, and the value that comes back: in R0 of a compare-and-exchange.
            let code = |back: bool| {
                around(|a| {
                    a.mov(R0, 7);
                    a.push(EbpfInstruction::Atomic { op, bits, base: R10, offset: -8, src: R3 });
                    match (back, op) {
                        (false, _) => a.load(Size::DW, R2, R10, -8),
                        (true, Atomic::CmpXchg) => a.mov(R2, R0),
                        (true, _) => a.mov(R2, R3),
                    };
                })
            };
            let (left, back) = (Kernel::new(&code(false)), Kernel::new(&code(true)));
            for (x, y) in NUMBERS.iter().flat_map(|&x| NUMBERS.map(|y| (x, y))) {
                let mask = if bits == Bits::B32 { 0xffff_ffff } else { u64::MAX };
                let (old, src) = (x & mask, y & mask);
                let (new, returned) = match op {
                    Atomic::Add => (old.wrapping_add(src), y),
                    Atomic::Or => (old | src, y),
                    Atomic::And => (old & src, y),
                    Atomic::Xor => (old ^ src, y),
                    Atomic::FetchAdd => (old.wrapping_add(src), old),
                    Atomic::FetchOr => (old | src, old),
                    Atomic::FetchAnd => (old & src, old),
                    Atomic::FetchXor => (old ^ src, old),
                    Atomic::Xchg => (src, old),
                    Atomic::CmpXchg => (if old == 7 { src } else { old }, old),
                };
                let want = x & !mask | new & mask;
                if cfg!(target_endian = "little") {
                    assert_eq!(left.run(x, y), want, "{op:?} {bits:?} {x:#x} {y:#x}");
                    assert_eq!(back.run(x, y), returned, "{op:?} {bits:?} {x:#x} {y:#x}");
                }
            }
        }
    }
}

#[test]
fn programs_call_share_maps_and_jump_far() {
    if !testbed::may("programs_call_share_maps_and_jump_far") {
        return;
    }
    let map = Map::new(MapKind::Array, "weir-test", 4, 8, 2).expect("an array");
    let hash = Map::new(MapKind::Hash, "weir-test", 8, 8, 4).expect("a hash map");
    hash.update(&5_u64.to_ne_bytes(), &100_u64.to_ne_bytes()).expect("room");
    let kernel = Kernel::new(&around(|a| {
        let (missing, work, far) = (a.label("missing"), a.label("work"), a.label("far"));
        // Counts in the array, asks the hash map for the first operand, and adds 40,000 to what
        // that has.
        a.store(Size::W, R10, -12, 1).mov(R7, R2);
        a.load_map(R1, map.number()).mov(R2, R10).add(R2, -12).call(Helper::MAP_LOOKUP_ELEM);
        a.mov(R2, 0).jump_if(Cond::Eq, R0, 0, missing);
        a.mov(R1, 3).atomic(Atomic::Add, R0, 0, R1);
        a.load_map(R1, hash.number()).mov(R2, R10).add(R2, -8).call(Helper::MAP_LOOKUP_ELEM);
        a.mov(R2, 0).jump_if(Cond::Eq, R0, 0, missing).load(Size::DW, R2, R0, 0);
        a.bind(missing);
        a.jump_if(Cond::Ne, R7, 0, work).jump(far);
        a.bind(work);
        (0..40_000).for_each(|_| {
            a.add(R2, 1);
        });
        a.bind(far);
    }));
    assert_eq!([kernel.run(5, 0), kernel.run(4, 0), kernel.run(0, 0)], [40_100, 40_000, 0]);
    let count = map.lookup(&1_u32.to_ne_bytes()).expect("a key of 4 bytes");
    assert_eq!(count, Some(9_u64.to_ne_bytes().to_vec()));
    assert!(hash.delete(&5_u64.to_ne_bytes()).expect("a key of 8 bytes"));
    assert_eq!(hash.lookup(&5_u64.to_ne_bytes()).expect("a key of 8 bytes"), None);
    assert_eq!(kernel.run(5, 0), 40_000);
    let wrong = map.update(&[0; 3], &[0; 8]).expect_err("a short key");
    assert!(wrong.to_string().contains("a key of 3 bytes"), "{wrong}");
}

#[test]
fn shared_memory_is_seen_by_both() {
    if !testbed::may("shared_memory_is_seen_by_both") {
        return;
    }
    let memory = SharedMemory::new("weir-test", 1000).expect("memory");
    let words = memory.words();
    words[999].store(40, Ordering::Relaxed);
    let kernel = Kernel::new(&around(|a| {
        let offset = 999 * 8;
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: memory.number(), offset });
        a.load(Size::DW, R2, R1, 0).add(R2, 2).store(Size::DW, R1, 0, R2);
    }));
    assert_eq!((kernel.run(0, 0), kernel.run(0, 0)), (42, 44));
    assert!(words[..999].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    assert_eq!(words[999].load(Ordering::Relaxed), 44);
    drop(kernel);
    assert!(SharedMemory::new("weir-test", 0).is_err() && SharedMemory::new("", 1 << 60).is_err());
}

/// Programs that run when the wait begins have ended after it: each of many runs reads a number,
/// works for a while, and writes what it read elsewhere; so after a wait no run writes an older
/// number than that set before it.
#[test]
fn programs_have_ended_after_the_wait() {
    if !testbed::may("programs_have_ended_after_the_wait") || !can_wait_for_programs() {
        return;
    }
    let memory = SharedMemory::new("weir-test", 2).expect("memory");
    let kernel = Kernel::new(&around(|a| {
        let fd = memory.number();
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd, offset: 0 });
        a.load(Size::DW, R3, R1, 0);
        (0..5000).for_each(|_| {
            a.alu(Alu::Mul, R2, 3);
        });
        a.store(Size::DW, R1, 8, R3);
    }));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                kernel.run(1, 0);
            }
        });
        for number in 1..30 {
            memory.words()[0].store(number, Ordering::SeqCst);
            wait_for_programs().expect("it works here");
            // All older runs have written by now; from here on only newer ones write.
            memory.words()[1].store(number, Ordering::SeqCst);
            for _ in 0..2000 {
                assert_eq!(memory.words()[1].load(Ordering::SeqCst), number);
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_verifier_is_quoted() {
    if !testbed::may("the_verifier_is_quoted") {
        return;
    }
    let mut a = Assembler::new();
    a.load(Size::DW, R0, R3, 0).exit();
    let code = a.finish().expect("well formed");
    let error = Program::load(ProgramKind::Xdp, "wrong", &code).expect_err("reads nowhere");
    assert!(error.to_string().contains("R3 !read_ok"), "{error}");
}
