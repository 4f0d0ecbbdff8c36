//! The program on an interface: each frame to the socket of its queue, else on to the stack.

use super::error::{Refused, refused};
use crate::ebpf::{Map, MapKind, Program, ProgramKind};
use std::io;
use weir_ebpf::{Assembler, Code, Cond, Helper, Reg::*, Size};
use weir_packet::source::SourceError;

/// What XDP programs return, from `enum xdp_action`.
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;

/// Where `rx_queue_index` is in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// Bytes of the two counters of a queue, and of one.
const COUNTERS: usize = 16;
const PASSED: i16 = 8;

/// The program and its maps.
pub(super) struct Redirect {
    pub(super) program: Program,
    sockets: Map,
    /// By queue; the last entry is that of all further queues.
    counters: Map,
    queues: u32,
}

/// What the program counted of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Seen {
    /// Frames redirected to the queue's socket.
    pub(super) redirected: u64,
    /// Frames passed on to the stack, since the queue had no socket.
    pub(super) passed: u64,
}

impl Redirect {
    /// Loads the program for an interface with so many queues.
    pub(super) fn load(interface: &str, queues: u32) -> Result<Redirect, SourceError> {
        let failed = |what| move |e: io::Error| refused(interface, None, what, Refused::Bpf(e));
        let making = failed("making a map for the XDP program");
        let sockets = Map::new(MapKind::Xsk, "weir-sockets", 4, 4, queues).map_err(&making)?;
        let counters = Map::new(MapKind::PerCpuArray, "weir-queues", 4, COUNTERS, queues + 1);
        let counters = counters.map_err(&making)?;
        let code = code(&sockets, &counters, queues)
            .map_err(|e| failed("writing the XDP program")(io::Error::other(e)))?;
        let program = Program::load(ProgramKind::Xdp, "weir-redirect", &code);
        let program = program
            .map_err(|e| refused(interface, None, "loading the XDP program", Refused::Load(e)))?;
        Ok(Redirect { program, sockets, counters, queues })
    }

    /// Frames of this queue go to this socket from now on.
    pub(super) fn set(&self, queue: u32, socket: i32) -> io::Result<()> {
        self.sockets.update(&queue.to_ne_bytes(), &socket.to_ne_bytes())
    }

    /// What was counted of a queue, by all CPUs.
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
fn code(sockets: &Map, counters: &Map, queues: u32) -> Result<Code, weir_ebpf::AssembleError> {
    let mut a = Assembler::new();
    let (known, counted, passed) = (a.label("known"), a.label("counted"), a.label("passed"));
    a.load(Size::W, R6, R1, RX_QUEUE_INDEX).mov(R7, R6);
    let queues = i32::try_from(queues).unwrap_or(i32::MAX);
    a.jump_if(Cond::Lt, R7, queues, known).mov(R7, queues);
    a.bind(known);
    a.store(Size::W, R10, -4, R7);
    a.load_map(R1, counters.number()).mov(R2, R10).add(R2, -4).call(Helper::MAP_LOOKUP_ELEM);
    a.jump_if(Cond::Ne, R0, 0, counted).mov(R0, XDP_PASS).exit();
    a.bind(counted);
    a.mov(R8, R0);
    a.load_map(R1, sockets.number()).mov(R2, R6).mov(R3, XDP_PASS).call(Helper::REDIRECT_MAP);
    a.jump_if(Cond::Ne, R0, XDP_REDIRECT, passed);
    a.load(Size::DW, R1, R8, 0).add(R1, 1).store(Size::DW, R8, 0, R1).exit();
    a.bind(passed);
    a.load(Size::DW, R1, R8, PASSED).add(R1, 1).store(Size::DW, R8, PASSED, R1).exit();
    a.finish()
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
        let redirect = Redirect::load("test", 3).unwrap_or_else(|e| panic!("{e}"));
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
