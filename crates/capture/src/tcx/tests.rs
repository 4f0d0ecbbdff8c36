//! Captures at the hooks of virtual wires.

use super::*;
use crate::ebpf::{Offloaded, SharedMemory, cpu_numbers};
use crate::live::{Directions, LiveOptions};
use crate::sys::testbed::{Sender, in_namespace, ip, may, veth};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_ebpf::{Alu, Assembler, Cond, EbpfInstruction, Helper, Reg::*, Size};
use weir_packet::interface::Direction;
use weir_packet::source::{Account, FrameBatch, KernelCounts, Source};

/// A frame as it was captured.
#[derive(Debug)]
struct Got {
    ts: i64,
    bytes: Vec<u8>,
    len: u32,
    direction: Option<Direction>,
}

/// Ends a capture, and reads the rest of it.
fn drain(mut source: Box<dyn Source>, stop: &AtomicBool) -> (Vec<Got>, Account) {
    stop.store(true, Ordering::Relaxed);
    let (mut batch, mut got) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        got.extend((0..batch.len()).map(|i| Got {
            ts: batch.ts()[i],
            bytes: batch.frame(i).to_vec(),
            len: batch.lens()[i],
            direction: batch.capture_point(i).direction(),
        }));
    }
    (got, source.account())
}

fn open(options: LiveOptions, offloaded: Vec<Offloaded>) -> (Box<dyn Source>, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let options = LiveOptions { stop: Some(Arc::clone(&stop)), ..options };
    let source = open_tcx(&["tcxa".to_owned()], options, offloaded);
    (source.unwrap_or_else(|e| panic!("{e}")), stop)
}

/// A frame of this length, whose bytes tell its number.
fn frame(len: usize, number: u16) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].fill(2);
    frame[6] = 4;
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame.iter_mut().enumerate().skip(16).for_each(|(i, byte)| *byte = i as u8);
    frame[14..16].copy_from_slice(&number.to_be_bytes());
    frame
}

#[test]
fn packets_come_as_they_were_and_the_host_gets_them_too() {
    if !may("packets_come_as_they_were_and_the_host_gets_them_too") {
        return;
    }
    in_namespace(|| {
        veth("tcxa", "tcxb", 1);
        ip("link set dev tcxa mtu 9000");
        ip("link set dev tcxb mtu 9000");
        let (source, stop) = open(LiveOptions::default(), Vec::new());
        let (there, back) = (Sender::new("tcxb"), Sender::queued("tcxa"));
        let before = crate::live::clock::system();
        // Every room of a record, and its edges.
        let lengths =
            [16, 17, 60, 92, 93, 220, 221, 476, 477, 988, 989, 1514, 1628, 1629, 4060, 8000];
        let sent: Vec<_> = (0_u16..).zip(lengths).map(|(n, len)| frame(len, n)).collect();
        sent.iter().for_each(|frame| there.send(frame));
        back.send(&frame(60, 99));
        // Tags travel beside frames from the moment when the stack has received them.
        let mut tagged = frame(64, 7);
        tagged[12..18].copy_from_slice(&[0x81, 0x00, 0x20, 0x05, 0x08, 0x00]);
        there.send(&tagged);
        let (got, account) = drain(source, &stop);
        let bytes: Vec<_> = got.iter().map(|got| got.bytes.clone()).collect();
        let want: Vec<_> = sent.into_iter().chain([frame(60, 99), tagged]).collect();
        assert!(bytes == want, "{:?}", bytes.iter().map(Vec::len).collect::<Vec<_>>());
        assert!(got.iter().all(|got| got.len as usize == got.bytes.len()));
        let out: Vec<_> = got.iter().map(|got| got.direction == Some(Direction::Out)).collect();
        assert_eq!(out.iter().position(|&out| out), Some(lengths.len()));
        assert_eq!(out.iter().filter(|&&out| out).count(), 1);
        assert!(got.is_sorted_by_key(|got| got.ts));
        let (first, last) = (got[0].ts, got[got.len() - 1].ts);
        let slack = 1_000_000;
        let after = crate::live::clock::system();
        assert!(
            first >= before - slack && last <= after + slack,
            "{before} {first} {last} {after}"
        );
        assert_eq!((account.received, account.lost.total()), (want.len() as u64, 0));
    });
}

#[test]
fn directions_and_lengths_are_those_asked_for() {
    if !may("directions_and_lengths_are_those_asked_for") {
        return;
    }
    in_namespace(|| {
        veth("tcxa", "tcxb", 1);
        for (direction, wanted) in
            [(Directions::In, vec![1]), (Directions::Out, vec![2]), (Directions::InOut, vec![1, 2])]
        {
            let options = LiveOptions { direction, snaplen: 40, ..LiveOptions::default() };
            let (source, stop) = open(options, Vec::new());
            Sender::new("tcxb").send(&frame(100, 1));
            Sender::queued("tcxa").send(&frame(100, 2));
            let (got, _) = drain(source, &stop);
            let numbers: Vec<_> = got.iter().map(|got| got.bytes[15]).collect();
            assert_eq!(numbers, wanted, "{direction:?}");
            assert!(got.iter().all(|got| (got.bytes.len(), got.len) == (40, 100)));
        }
    });
}

#[test]
fn what_finds_no_room_is_counted() {
    if !may("what_finds_no_room_is_counted") {
        return;
    }
    in_namespace(|| {
        veth("tcxa", "tcxb", 1);
        let options = LiveOptions { buffer: 1 << 20, ..LiveOptions::default() };
        let (source, stop) = open(options, Vec::new());
        let sender = Sender::new("tcxb");
        const SENT: u16 = 2000;
        (0..SENT).for_each(|n| sender.send(&frame(1000, n)));
        let (got, account) = drain(source, &stop);
        assert!(account.lost.ring > 0, "{account:?}");
        assert_eq!(got.len() as u64 + account.lost.total(), SENT.into());
        assert_eq!(account.received, got.len() as u64);
        // The oldest are kept, in order.
        assert!((0..).zip(&got).all(|(n, got)| got.bytes == frame(1000, n)));
    });
}

/// A program that finishes frames whose 16th byte is odd, counts them, and hands up 20 bytes of
/// those that are divisible by four.
pub(crate) fn offloaded(data: i16, data_end: i16) -> Offloaded {
    let cpus = cpu_numbers().expect("a list of CPUs");
    let memory = SharedMemory::new("weir-test", 8 * cpus).expect("memory");
    let mut a = Assembler::new();
    let [whole, even, all] = ["whole", "even", "all"].map(|name| a.label(name));
    a.load(Size::W, R6, R1, data).load(Size::W, R7, R1, data_end);
    a.mov(R2, R6).add(R2, 16).jump_if(Cond::Le, R2, R7, whole).mov(R0, i32::MAX).exit();
    a.bind(whole).load(Size::B, R8, R6, 15);
    a.mov(R2, R8).and(R2, 1).jump_if(Cond::Eq, R2, 0, even);
    a.call(Helper::GET_SMP_PROCESSOR_ID).mov(R1, R0);
    a.push(EbpfInstruction::LoadMapValue { dst: R2, fd: memory.number(), offset: 8 });
    let out = a.label("out");
    a.jump_if(Cond::Ge, R1, cpus as i32, out);
    a.alu(Alu::Lsh, R1, 6).add(R2, R1);
    a.load(Size::DW, R3, R2, 0).add(R3, 1).store(Size::DW, R2, 0, R3);
    a.bind(out).mov(R0, 0).exit();
    a.bind(even).and(R8, 3).jump_if(Cond::Ne, R8, 0, all).mov(R0, 20).exit();
    a.bind(all).mov(R0, i32::MAX).exit();
    let code = a.finish().unwrap_or_else(|e| panic!("{e}"));
    let counts = move || {
        let by_cpu = memory.words().chunks_exact(8);
        let filtered = by_cpu.map(|words| words[1].load(Ordering::Relaxed)).sum();
        KernelCounts { filtered, ..KernelCounts::default() }
    };
    Offloaded { code, trims: true, counts: Box::new(counts), outputs: None }
}

#[test]
fn a_query_decides_what_goes_up_and_what_is_cut() {
    if !may("a_query_decides_what_goes_up_and_what_is_cut") {
        return;
    }
    in_namespace(|| {
        veth("tcxa", "tcxb", 1);
        let (source, stop) = open(LiveOptions::default(), vec![offloaded(76, 80)]);
        let (there, back) = (Sender::new("tcxb"), Sender::queued("tcxa"));
        for n in 0..100_u16 {
            let sender = if n < 50 { &there } else { &back };
            sender.send(&frame(80, n));
        }
        let (got, account) = drain(source, &stop);
        let want: Vec<_> = (0..100_u16)
            .filter(|n| n % 2 == 0)
            .map(|n| (n as u8, if n % 4 == 0 { 20 } else { 80 }, 80))
            .collect();
        let got: Vec<_> = got.iter().map(|g| (g.bytes[15], g.bytes.len(), g.len)).collect();
        assert_eq!(got, want);
        assert_eq!((account.received, account.kernel.filtered, account.lost.total()), (100, 50, 0));
    });
}

#[test]
fn other_programs_stay_and_an_interface_that_goes_ends_it() {
    if !may("other_programs_stay_and_an_interface_that_goes_ends_it") {
        return;
    }
    in_namespace(|| {
        veth("tcxa", "tcxb", 1);
        let (first, stop_first) = open(LiveOptions::default(), Vec::new());
        let (second, stop) = open(LiveOptions::default(), Vec::new());
        let sender = Sender::new("tcxb");
        sender.send(&frame(60, 1));
        assert_eq!(drain(first, &stop_first).0.len(), 1);
        sender.send(&frame(60, 2));
        ip("link set dev tcxa down");
        ip("link set dev tcxa up");
        sender.send(&frame(60, 3));
        ip("link del tcxa");
        // It ends by itself.
        let mut source = second;
        let (mut batch, mut n) = (FrameBatch::new(), 0);
        while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
            n += batch.len();
        }
        assert_eq!((n, source.account().received), (3, 3));
        drop(stop);
    });
}

#[test]
fn what_cannot_be_is_told() {
    if !may("what_cannot_be_is_told") {
        return;
    }
    in_namespace(|| {
        let error = |name: &str| {
            let opened = open_tcx(&[name.to_owned()], LiveOptions::default(), Vec::new());
            opened.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(error("any").contains("--capture packet"), "{}", error("any"));
        assert!(error("none").contains("there is no such interface; there are lo"));
    });
}
