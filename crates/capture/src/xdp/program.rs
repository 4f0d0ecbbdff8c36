//! The program on an interface: each frame to the socket of its queue, else on to the stack.

use super::error::{Refused, refused};
use super::outputs::OutputMaps;
use crate::ebpf::{LoadError, Map, MapKind, Offloaded, Program, ProgramKind, TO_HOST};
use std::hash::{BuildHasher, RandomState};
use std::io;
use weir_ebpf::{Alu, Assembler, Code, Cond, EbpfInstruction, Helper, Label, Reg::*, Size};
use weir_packet::source::SourceError;

/// The numbers that XDP programs return, from `enum xdp_action`.
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;

/// `BPF_F_BROADCAST`: redirects to all interfaces of a map (Linux 5.13).
const BROADCAST: i32 = 1 << 3;

/// Of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// Bytes that are put before a frame: the mark of the run, and the frame's length on the wire.
const META: i32 = 8;

/// An Ethernet header: the least that a frame can be cut to.
const HEADER: i32 = 14;

/// Bytes of the two counters of a queue, and of one.
const COUNTERS: usize = 16;
const PASSED: i16 = 8;

/// The program and its maps.
pub(super) struct Redirect {
    pub(super) program: Program,
    sockets: Map,
    /// By queue; the last entry is that of all further queues.
    counters: Map,
    /// The interfaces that a query's program hands frames to.
    _outputs: Option<OutputMaps>,
    queues: u32,
    /// The number that marks the length on the wire of each frame, which stands before it.
    pub(super) mark: Option<u32>,
}

/// The program's counts of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Seen {
    /// Frames redirected to the queue's socket.
    pub(super) redirected: u64,
    /// Frames passed on to the stack, since the queue had no socket.
    pub(super) passed: u64,
}

/// The step that the kernel refuses where a card runs no programs.
const LOADING_ON_CARD: &str = "loading the XDP program onto the card";

impl Redirect {
    /// Loads the program for an interface with so many queues, on its card where that has a number.
    /// The offloaded part of a query runs before the redirection. Where the kernel can't cut frames
    /// (before Linux 5.18), they go up whole.
    pub(super) fn load(
        (interface, card): (&str, Option<u32>),
        queues: u32,
        offloaded: Option<&Offloaded>,
    ) -> Result<Redirect, SourceError> {
        let failed = |what| move |e: io::Error| refused(interface, None, what, Refused::Bpf(e));
        let making = failed("making a map for the XDP program");
        let sockets = Map::new(MapKind::Xsk, "weir-sockets", 4, 4, queues).map_err(&making)?;
        let counters = Map::new(MapKind::PerCpuArray, "weir-queues", 4, COUNTERS, queues + 1);
        let counters = counters.map_err(&making)?;
        let outputs = offloaded.and_then(|offloaded| offloaded.outputs.as_ref());
        let outputs = outputs.map(OutputMaps::new).transpose().map_err(&making)?;
        let load = |mark| -> Result<Program, LoadError> {
            let maps = RedirectMaps {
                sockets: sockets.number(),
                counters: counters.number(),
                outputs: outputs.as_ref(),
            };
            let code = code(maps, queues, offloaded, mark)
                .map_err(|e| LoadError { source: io::Error::other(e), log: String::new() })?;
            match card {
                Some(ifindex) => Program::load_on_card(ifindex, "weir-redirect", &code),
                None => Program::load(ProgramKind::Xdp, "weir-redirect", &code),
            }
        };
        // No other program knows it, so that what lies before a frame by chance is not taken for
        // it.
        let random = RandomState::new().hash_one(interface) as u32;
        let mut mark = offloaded.is_some_and(|offloaded| offloaded.trims).then_some(random);
        let mut program = load(mark);
        if program.is_err() && mark.is_some() {
            mark = None;
            program = load(mark);
        }
        let program = program.map_err(|e| match card {
            Some(_) => refused(interface, None, LOADING_ON_CARD, Refused::LoadOnCard(e)),
            None => refused(interface, None, "loading the XDP program", Refused::Load(e)),
        })?;
        Ok(Redirect { program, sockets, counters, _outputs: outputs, queues, mark })
    }

    /// Frames of this queue go to this socket from now on.
    pub(super) fn set(&self, queue: u32, socket: i32) -> io::Result<()> {
        self.sockets.update(&queue.to_ne_bytes(), &socket.to_ne_bytes())
    }

    /// The counts of a queue, by all CPUs.
    pub(super) fn seen(&self, queue: u32) -> io::Result<Seen> {
        let mut seen = Seen::default();
        let values = self.counters.lookup(&queue.to_ne_bytes())?.unwrap_or_default();
        for value in values.chunks_exact(COUNTERS) {
            let number = |at: usize| value[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
            seen.redirected += number(0);
            seen.passed += number(PASSED as usize);
        }
        Ok(seen)
    }

    /// Frames passed on of all queues, those that were added since included.
    pub(super) fn passed(&self) -> io::Result<u64> {
        (0..=self.queues).try_fold(0, |sum, queue| Ok(sum + self.seen(queue)?.passed))
    }
}

/// Whether the kernel redirects a frame to several interfaces. Where it does not, it would drop the
/// frame.
pub fn can_copy_frames() -> bool {
    // The map is empty, and a test run sends nothing.
    let asked = || -> Option<u32> {
        let map = Map::new(MapKind::Interfaces, "weir-outputs", 4, 4, 1).ok()?;
        let a = &mut Assembler::new();
        a.load_map(R1, map.number()).mov(R2, 0).mov(R3, BROADCAST);
        a.call(Helper::REDIRECT_MAP).exit();
        let program = Program::load(ProgramKind::Xdp, "weir-asks", &a.finish().ok()?).ok()?;
        Some(program.test_run(&[0; 60], 1).ok()?.returned)
    };
    asked() == Some(XDP_REDIRECT as u32)
}

/// The maps of the program.
#[derive(Clone, Copy)]
struct RedirectMaps<'a> {
    sockets: i32,
    counters: i32,
    outputs: Option<&'a OutputMaps>,
}

/// In C:
///
/// ```c
/// __u32 queue = ctx->rx_queue_index, entry = queue < queues ? queue : queues;
/// struct { __u64 redirected, passed; } *seen = bpf_map_lookup_elem(&counters, &entry);
/// if (!seen) return XDP_PASS;
/// int action = bpf_redirect_map(&sockets, queue, XDP_PASS);
/// if (action == XDP_REDIRECT) seen->redirected++; else seen->passed++;
/// return action;
/// ```
///
/// The offloaded part of a query is asked before the redirection, if the queue has a socket; `0`
/// drops the frame, and a negative number says where it goes instead: to interfaces, or the host.
fn code(
    maps: RedirectMaps<'_>,
    queues: u32,
    offloaded: Option<&Offloaded>,
    mark: Option<u32>,
) -> Result<Code, weir_ebpf::AssembleError> {
    let RedirectMaps { sockets, counters, outputs } = maps;
    let a = &mut Assembler::new();
    let [known, counted, passed] = ["known", "counted", "passed"].map(|name| a.label(name));
    let query = a.label("query");
    a.mov(R9, R1).load(Size::W, R6, R1, RX_QUEUE_INDEX).mov(R7, R6);
    let queues = i32::try_from(queues).unwrap_or(i32::MAX);
    a.jump_if(Cond::Lt, R7, queues, known).mov(R7, queues);
    a.bind(known);
    a.store(Size::W, R10, -4, R7);
    a.load_map(R1, counters).mov(R2, R10).add(R2, -4).call(Helper::MAP_LOOKUP_ELEM);
    a.jump_if(Cond::Ne, R0, 0, counted).mov(R0, XDP_PASS).exit();
    a.bind(counted);
    a.mov(R8, R0);
    if offloaded.is_some() {
        ask(a, (sockets, outputs), query, passed);
        mark.iter().for_each(|&mark| trim(a, mark));
    }
    a.load_map(R1, sockets).mov(R2, R6).mov(R3, XDP_PASS).call(Helper::REDIRECT_MAP);
    a.jump_if(Cond::Ne, R0, XDP_REDIRECT, passed);
    a.load(Size::DW, R1, R8, 0).add(R1, 1).store(Size::DW, R8, 0, R1).exit();
    a.bind(passed);
    a.load(Size::DW, R1, R8, PASSED).add(R1, 1).store(Size::DW, R8, PASSED, R1);
    a.mov(R0, XDP_PASS).exit();
    if let Some(offloaded) = offloaded {
        a.function(&offloaded.code, query);
    }
    a.finish()
}

/// Asks the query how much of the frame goes up (`R7`), and drops it at 0. A frame whose queue has
/// no socket is the host's, and goes on as it is.
fn ask(
    a: &mut Assembler,
    (sockets, outputs): (i32, Option<&OutputMaps>),
    query: Label,
    passed: Label,
) {
    let (up, away) = (a.label("up"), a.label("away"));
    a.store(Size::W, R10, -4, R6);
    a.load_map(R1, sockets).mov(R2, R10).add(R2, -4).call(Helper::MAP_LOOKUP_ELEM);
    a.jump_if(Cond::Eq, R0, 0, passed);
    a.mov(R1, R9).push(EbpfInstruction::CallLocal { target: query });
    if outputs.is_some() {
        a.jump_if(Cond::Slt, R0, 0, away);
    }
    a.jump_if(Cond::Ne, R0, 0, up).mov(R0, XDP_DROP).exit();
    if let Some(outputs) = outputs {
        let to_output = a.label("to_output");
        a.bind(away).jump_if(Cond::Ne, R0, TO_HOST, to_output).mov(R0, XDP_PASS).exit();
        a.bind(to_output).mov(R2, -1).alu(Alu::Sub, R2, R0);
        for (number, set) in (outputs.count as i32..).zip(&outputs.sets) {
            let other = a.label("other_set");
            a.jump_if(Cond::Ne, R2, number, other);
            a.load_map(R1, set.number()).mov(R2, 0).mov(R3, BROADCAST);
            a.call(Helper::REDIRECT_MAP).exit();
            a.bind(other);
        }
        a.load_map(R1, outputs.single.number()).mov(R3, XDP_DROP);
        a.call(Helper::REDIRECT_MAP).exit();
    }
    a.bind(up).mov(R7, R0);
}

/// Puts the mark and the length of the frame before it, and cuts it to `R7` bytes. Where the driver
/// has no room for these, the frame goes up whole.
fn trim(a: &mut Assembler, mark: u32) {
    let (whole, long) = (a.label("whole"), a.label("long"));
    a.mov(R1, R9).call(Helper::XDP_GET_BUFF_LEN).store(Size::DW, R10, -16, R0);
    a.mov(R1, R9).mov(R2, -META).call(Helper::XDP_ADJUST_META);
    a.jump_if(Cond::Ne, R0, 0, whole);
    a.load(Size::W, R1, R9, DATA_META).load(Size::W, R2, R9, DATA);
    a.mov(R3, R1).add(R3, META).jump_if(Cond::Gt, R3, R2, whole);
    a.load(Size::DW, R2, R10, -16);
    a.store(Size::W, R1, 0, mark.cast_signed()).store(Size::W, R1, 4, R2);
    a.jump_if(Cond::Ge, R7, HEADER, long).mov(R7, HEADER).bind(long);
    a.jump_if(Cond::Ge, R7, R2, whole).alu(Alu::Sub, R7, R2);
    a.mov(R1, R9).mov(R2, R7).call(Helper::XDP_ADJUST_TAIL);
    a.bind(whole);
}

/// The length on the wire of the frame that starts there, if the program marked it.
#[inline(always)]
pub(super) fn wire_length(memory: &[u8], start: u32, mark: u32) -> Option<u32> {
    let start = start as usize;
    let meta = memory.get(start.checked_sub(META as usize)?..start)?;
    let (head, len) = meta.split_first_chunk::<4>()?;
    (*head == mark.to_ne_bytes()).then_some(u32::from_ne_bytes(*len.first_chunk::<4>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testbed;

    #[test]
    fn frames_of_queues_without_a_socket_pass_and_are_counted() {
        if !testbed::may("frames_of_queues_without_a_socket_pass_and_are_counted") {
            return;
        }
        let redirect = Redirect::load(("test", None), 3, None).unwrap_or_else(|e| panic!("{e}"));
        for _ in 0..5 {
            // The kernel runs it as if the frame came by queue 0.
            let run = redirect.program.test_run(&[0; 60], 1).expect("a frame");
            assert_eq!((run.returned, run.data.len()), (XDP_PASS as u32, 60));
        }
        assert_eq!(redirect.seen(0).expect("counters"), Seen { redirected: 0, passed: 5 });
        assert_eq!(redirect.seen(1).expect("counters"), Seen::default());
        assert_eq!(redirect.passed().expect("counters"), 5);
    }
}
