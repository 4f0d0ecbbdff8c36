//! The faults of wrong programs, how programs print, and what their slots mean.

use super::*;
use Reg::*;
use proptest::prelude::*;

/// Offsets of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// An XDP program around some instructions, with operands from the packet in `R2` and `R3`.
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

fn fault(body: impl FnOnce(&mut Assembler)) -> Fault {
    let mut a = Assembler::new();
    body(&mut a);
    a.finish().expect_err("a mistake").fault
}

#[test]
fn mistakes_are_told_before_the_kernel_sees_them() {
    assert_eq!(fault(|_| ()), Fault::RunsOff);
    assert_eq!(
        fault(|a| {
            a.mov(R0, 0);
        }),
        Fault::RunsOff
    );
    assert_eq!(
        fault(|a| {
            let on = a.label("on");
            a.jump(on).exit();
        }),
        Fault::Unbound("on".to_owned())
    );
    assert_eq!(
        fault(|a| {
            let on = a.label("on");
            a.bind(on).mov(R0, 0).bind(on).exit();
        }),
        Fault::BoundTwice("on".to_owned())
    );
    assert_eq!(
        fault(|a| {
            let end = a.label("end");
            a.jump(end).exit().bind(end);
        }),
        Fault::BoundBehind("end".to_owned())
    );
    let wrong: [(EbpfInstruction<Label>, Fault); 6] = [
        (
            EbpfInstruction::Alu { bits: Bits::B64, op: Alu::Add, dst: R10, src: 1.into() },
            Fault::FramePointer,
        ),
        (
            EbpfInstruction::Alu { bits: Bits::B32, op: Alu::Lsh, dst: R1, src: 32.into() },
            Fault::Shift(32),
        ),
        (
            EbpfInstruction::Alu { bits: Bits::B64, op: Alu::Mod, dst: R1, src: 0.into() },
            Fault::Zero,
        ),
        (
            EbpfInstruction::Swap { order: Endianness::Be, size: Size::B, dst: R1 },
            Fault::Operands("one byte has no order"),
        ),
        (
            EbpfInstruction::LoadSigned { size: Size::DW, dst: R1, base: R10, offset: -8 },
            Fault::Operands("8 bytes have no sign to extend"),
        ),
        (
            EbpfInstruction::Alu { bits: Bits::B64, op: Alu::Movsx8, dst: R1, src: 1.into() },
            Fault::Operands("only of registers is the sign extended"),
        ),
    ];
    for (instruction, expected) in wrong {
        let got = fault(|a| {
            a.push(instruction).exit();
        });
        assert_eq!(got, expected);
    }
}

#[test]
fn maps_get_their_descriptors_when_they_are_made() {
    let code = |first, second| {
        around(|a| {
            a.load_map(R1, first).load_map(R2, second).load_map(R3, first);
            a.push(EbpfInstruction::LoadMapValue { dst: R4, fd: second, offset: 8 });
        })
    };
    assert_eq!(code(0, 1).with_maps(&[7, 0]), code(7, 0));
}

/// A program that jumps over `n` instructions, if need be or always.
fn jumps_over(n: usize, always: bool) -> Result<Code, AssembleError> {
    let mut a = Assembler::new();
    let on = a.label("on");
    a.mov(R0, 2);
    if always {
        a.jump(on);
    } else {
        a.jump_if(Cond::Ne, R0, 1, on);
    }
    (0..n).for_each(|_| {
        a.mov(R0, 0);
    });
    a.bind(on).exit();
    a.finish()
}

#[test]
fn far_jumps_are_told_or_written_long() {
    assert!(jumps_over(32_767, false).is_ok());
    let error = jumps_over(32_768, false).expect_err("too far");
    assert_eq!((error.at, &error.fault), (1, &Fault::TooFar(32_768)));
    let text = [
        "eBPF instruction 1: a conditional jump reaches 32767 slots, its label is 32768 away",
        "    0: r0 = 2",
        ">   1: if r0 != 1 goto on",
        "    2: r0 = 0",
        "    3: r0 = 0",
        "    4: r0 = 0",
    ];
    assert_eq!(error.to_string().lines().collect::<Vec<_>>(), text);
    let far = jumps_over(40_000, true).expect("a long jump");
    assert_eq!(far.instructions()[1], EbpfInstruction::Jump { target: 40_000 });
    assert_eq!(
        EbpfInstruction::decode(&far.slots()[1..]),
        Ok(EbpfInstruction::Jump { target: 40_000 })
    );
}

#[test]
fn listings_read_as_those_of_bpftool() {
    let text = around(|a| {
        a.load_imm64(R2, 1 << 40).atomic(Atomic::FetchAdd, R10, -8, R3);
        a.alu32(Alu::Sdiv, R2, R3).be(Size::H, R2).call(Helper::KTIME_GET_NS).mov(R2, R0);
    });
    let expected = [
        "   0: r6 = *(u32 *)(r1 + 0)",
        "   1: r4 = *(u32 *)(r1 + 4)",
        "   2: r5 = r6",
        "   3: r5 += 24",
        "   4: if r5 <= r4 goto 7",
        "   5: r0 = 1",
        "   6: exit",
        "   7: r2 = *(u64 *)(r6 + 0)",
        "   8: r3 = *(u64 *)(r6 + 8)",
        "   9: *(u64 *)(r10 - 8) = r2",
        "  10: r2 = 0x10000000000 ll",
        "  12: r3 = atomic_fetch_add(*(u64 *)(r10 - 8), r3)",
        "  13: w2 s/= w3",
        "  14: r2 = be16 r2",
        "  15: call ktime_get_ns#5",
        "  16: r2 = r0",
        "  17: *(u64 *)(r6 + 16) = r2",
        "  18: r0 = 2",
        "  19: exit",
    ];
    assert_eq!(text.to_string().lines().collect::<Vec<_>>(), expected);
}

fn instruction() -> impl Strategy<Value = EbpfInstruction> {
    let reg = || (0_usize..11).prop_map(|i| Reg::ALL[i]);
    let bits = || prop_oneof![Just(Bits::B32), Just(Bits::B64)];
    let size = || (0_usize..4).prop_map(|i| Size::ALL[i]);
    let operand = || prop_oneof![reg().prop_map(Operand::Reg), any::<i32>().prop_map(Operand::Imm)];
    prop_oneof![
        (bits(), 0..Alu::ALL.len(), reg(), operand()).prop_map(|(bits, op, dst, src)| {
            EbpfInstruction::Alu { bits, op: Alu::ALL[op], dst, src }
        }),
        (bits(), reg()).prop_map(|(bits, dst)| EbpfInstruction::Neg { bits, dst }),
        (0_usize..3, 1_usize..4, reg()).prop_map(|(order, size, dst)| {
            let order = [Endianness::Le, Endianness::Be, Endianness::Swap][order];
            EbpfInstruction::Swap { order, size: Size::ALL[size], dst }
        }),
        (size(), reg(), reg(), any::<i16>()).prop_map(|(size, dst, base, offset)| {
            EbpfInstruction::Load { size, dst, base, offset }
        }),
        (0_usize..3, reg(), reg(), any::<i16>()).prop_map(|(size, dst, base, offset)| {
            EbpfInstruction::LoadSigned { size: Size::ALL[size], dst, base, offset }
        }),
        (size(), reg(), any::<i16>(), operand()).prop_map(|(size, base, offset, src)| {
            EbpfInstruction::Store { size, base, offset, src }
        }),
        (0..Atomic::ALL.len(), bits(), reg(), any::<i16>(), reg()).prop_map(
            |(op, bits, base, offset, src)| EbpfInstruction::Atomic {
                op: Atomic::ALL[op],
                bits,
                base,
                offset,
                src
            }
        ),
        (reg(), any::<u64>()).prop_map(|(dst, value)| EbpfInstruction::LoadImm64 { dst, value }),
        (reg(), any::<i32>()).prop_map(|(dst, fd)| EbpfInstruction::LoadMap { dst, fd }),
        (reg(), any::<i32>(), any::<u32>())
            .prop_map(|(dst, fd, offset)| EbpfInstruction::LoadMapValue { dst, fd, offset }),
        (size(), proptest::option::of(reg()), any::<i32>())
            .prop_map(|(size, base, offset)| EbpfInstruction::LoadPacket { size, base, offset }),
        any::<i32>().prop_map(|target| EbpfInstruction::Jump { target }),
        (bits(), 0..Cond::ALL.len(), reg(), operand(), any::<i16>()).prop_map(
            |(bits, cond, dst, src, target)| EbpfInstruction::JumpIf {
                bits,
                cond: Cond::ALL[cond],
                dst,
                src,
                target: target.into()
            }
        ),
        any::<i32>().prop_map(|helper| EbpfInstruction::Call { helper: Helper(helper) }),
        any::<i32>().prop_map(|id| EbpfInstruction::CallKernel { id }),
        any::<i32>().prop_map(|target| EbpfInstruction::CallLocal { target }),
        Just(EbpfInstruction::Exit),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(instruction in instruction()) {
        let mut slots = Vec::new();
        instruction.encode(&mut slots);
        prop_assert_eq!(slots.len(), instruction.slots());
        prop_assert_eq!(EbpfInstruction::decode(&slots), Ok(instruction));
        prop_assert!(!instruction.to_string().is_empty());
    }

    #[test]
    fn any_slots_decode_or_are_refused(words in proptest::collection::vec(any::<u64>(), 0..3)) {
        let slots: Vec<Slot> = words.iter().map(|word| {
            let b = word.to_ne_bytes();
            let imm = i32::from_ne_bytes([b[4], b[5], b[6], b[7]]);
            Slot { opcode: b[0], registers: b[1], offset: i16::from_ne_bytes([b[2], b[3]]), imm }
        }).collect();
        if let Ok(instruction) = EbpfInstruction::decode(&slots) {
            let mut again = Vec::new();
            instruction.encode(&mut again);
            prop_assert_eq!(&again[..], &slots[..again.len()]);
        }
    }
}

/// Jumps of a function keep their targets, over instructions of two slots too.
#[test]
fn a_finished_program_becomes_a_function_of_another() {
    let mut inner = Assembler::new();
    let (end, back) = (inner.label("end"), inner.label("back"));
    inner.bind(back).load_imm64(R0, 7).jump_if(Cond::Eq, R1, 0, end).load_map(R2, 3);
    inner.jump_if(Cond::Gt, R1, 5, back).bind(end).exit();
    let inner = inner.finish().unwrap_or_else(|e| panic!("{e}"));
    let mut outer = Assembler::new();
    let (main, function) = (outer.label("main"), outer.label("function"));
    outer.jump(main).function(&inner, function);
    outer.bind(main).push(EbpfInstruction::CallLocal { target: function }).exit();
    let outer = outer.finish().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(&outer.instructions()[1..=inner.instructions().len()], inner.instructions());
    let calls = outer.instructions().iter().rev().nth(1).copied();
    // From the slot after the call, 1 + 7 slots back.
    assert_eq!(calls, Some(EbpfInstruction::CallLocal { target: -8 }));
}
