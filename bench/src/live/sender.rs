//! The sender: UDP datagrams or TCP segments of many flows, as fast as one processor can.
//!
//! The kernel runs an XDP program on frames that it makes itself and sends where the program says
//! (`BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18): several times as fast as any socket. The program
//! writes address and port of the frame's flow. Where that is not to be had, frames leave by an
//! AF_PACKET socket as the outlets of Weir send them.

use super::netlink::Netlink;
use super::wire;
use crate::sys::host;
use crate::timing::Alarm;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use weir_capture::ebpf::{Map, MapKind, Program, ProgramKind};
use weir_capture::outlets::Outlets;
use weir_ebpf::{Alu, AssembleError, Assembler, Code, Cond, Helper, Reg::*, Size};
use weir_packet::craft::Frame;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::interface::CapturePoint;
use weir_packet::source::LinkType;

/// Frames that leave together: as many as the kernel allows, so that it uses their memory again.
const BATCH: u32 = 256;

/// Frames that leave together at a given rate, less than a queue of the wire holds; a power of two.
const BURST: u32 = 32;

/// A part of flow `f`: its address is 10.0.0.0 + f / 1000, its port 10000 + f % 1000.
const FLOWS_EACH: u32 = 1000;
const FIRST_PORT: u32 = 10_000;

/// Of an Ethernet frame with an IPv4 header: the identification, the low half of the source, the
/// port after it.
const IDENTIFICATION: i16 = 18;
const SOURCE_LOW: i16 = 28;
const PORT: i16 = 34;
const HEADERS: i16 = 42;

/// With a TCP header: its flags, and where it ends.
const FLAGS: i16 = 47;
const TCP_HEADERS: i16 = 54;
/// Of sixteen segments, one each has the first two flags, and all others have the last: a SYN, a
/// SYN-ACK, an ACK.
const FLAGS_OF: [i32; 3] = [0x02, 0x12, 0x10];

/// The program that makes a sequence of numbers look random (splitmix64, Steele et al. 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xbf58_476d_1ce4_e5b9;

/// XDP programs return this when they give up (`enum xdp_action`), ...
const XDP_ABORTED: i32 = 0;
/// ... and this for a frame that goes nowhere.
const XDP_DROP: i32 = 1;

/// The frames to send.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Load {
    /// Bytes of a frame, without its check sequence.
    #[arg(long)]
    pub(crate) bytes: usize,
    /// Flows that they are of, in turn as if at random.
    #[arg(long)]
    pub(crate) flows: u32,
    /// Frames at most; at a rate, also those that the program makes and drops while it waits.
    #[arg(long)]
    pub(crate) frames: u32,
    /// Milliseconds at most.
    #[arg(long)]
    pub(crate) ms: u64,
    /// The processor to send from.
    #[arg(long)]
    pub(crate) cpu: usize,
    /// Run before others.
    #[arg(long)]
    pub(crate) fifo: bool,
    /// Send by an AF_PACKET socket.
    #[arg(long)]
    pub(crate) socket: bool,
    /// TCP segments, of which one in sixteen opens a connection and one accepts one. Not by a
    /// socket.
    #[arg(long, conflicts_with = "socket")]
    pub(crate) tcp: bool,
    /// Frames per second at most; without it as many as can be. Not by a socket.
    #[arg(long, conflicts_with = "socket")]
    pub(crate) rate: Option<u32>,
}

/// Whether this kernel sends live frames.
pub(super) fn can_send_live() -> bool {
    let mut a = Assembler::new();
    a.mov(R0, XDP_ABORTED).exit();
    let Ok(code) = a.finish() else { return false };
    let program = Program::load(ProgramKind::Xdp, "weir-probe", &code);
    let lo = Netlink::open().and_then(|netlink| netlink.interface("lo"));
    match (program, lo) {
        (Ok(program), Ok(lo)) => program.run_live(&[0; 64], lo.index, 1, 1).is_ok(),
        _ => false,
    }
}

impl Load {
    /// Sends; how many frames were sent.
    pub(crate) fn send(&self) -> Result<u64> {
        let headers = self.headers();
        ensure!(self.bytes >= headers, "a frame of a flow has {headers} bytes at least");
        ensure!(self.flows > 0 && self.flows.div_ceil(FLOWS_EACH) <= 1 << 16, "1 to 65M flows");
        host::pin(None, self.cpu).context("pinning the sender")?;
        if self.fifo {
            host::run_first(None, wire::SENDER_FIRST).context("giving the sender priority")?;
        }
        if self.socket { self.by_socket() } else { self.by_program() }
    }

    /// Bytes of the headers.
    fn headers(&self) -> usize {
        if self.tcp { TCP_HEADERS as usize } else { HEADERS as usize }
    }

    /// Frame 0 of flow 0; the check sum of its IPv4 header is that of all.
    fn frame(&self) -> Vec<u8> {
        let to = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 0x99]];
        let payload = vec![0x5a; self.bytes - self.headers()];
        let frame = Frame::ethernet().mac(to[0], to[1]).ipv4([10, 0, 0, 0], [192, 0, 2, 1]);
        let frame = match self.tcp {
            true => frame.tcp(FIRST_PORT as u16, 443),
            false => frame.udp(FIRST_PORT as u16, 4789 + 1),
        };
        let mut bytes = frame.payload(&payload).bytes();
        self.mark(&mut bytes, 0, 0);
        bytes
    }

    /// Makes it a frame of flow `f`, as the program does, and one of sixteen kinds.
    fn mark(&self, frame: &mut [u8], f: u32, kind: usize) {
        let (host, port) = (f / FLOWS_EACH, FIRST_PORT + f % FLOWS_EACH);
        let mut set = |at: i16, v: u32| {
            frame[at as usize..at as usize + 2].copy_from_slice(&(v as u16).to_be_bytes());
        };
        set(SOURCE_LOW, host);
        // Their sum stays, and so does the check sum of the header; that of UDP is left out.
        set(IDENTIFICATION, !host);
        set(PORT, port);
        if self.tcp {
            frame[FLAGS as usize] = FLAGS_OF[kind.min(2)] as u8;
        } else {
            frame[HEADERS as usize - 2..HEADERS as usize].fill(0);
        }
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }

    fn by_program(&self) -> Result<u64> {
        let netlink = Netlink::open().context("asking for interfaces")?;
        let sender = netlink.interface(wire::SENDER).context(wire::SENDER)?.index;
        let sent = Map::new(MapKind::Array, "weir-sent", 4, 16, 1).context("making a map")?;
        let code = self.code(&sent, sender)?;
        let program = Program::load(ProgramKind::Xdp, "weir-sender", &code)
            .context("loading the sender's program")?;
        host::interrupt_after(Duration::from_millis(self.ms)).context("setting an alarm")?;
        let sending = program.run_live(&self.frame(), sender, self.frames, BATCH);
        match sending {
            // The time was over.
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            result => result.context("sending live frames")?,
        }
        let count = sent.lookup(&0u32.to_ne_bytes()).context("reading a map")?;
        let count = count.as_deref().and_then(|bytes| bytes.first_chunk().copied());
        Ok(u64::from_ne_bytes(count.context("the count of frames")?))
    }

    fn by_socket(&self) -> Result<u64> {
        let to = Outlet::Named(wire::SENDER.to_owned());
        let mut outlets = Outlets::new(&[], Vec::new(), None, Box::new(|_| {}));
        outlets.open(&[to])?;
        // As many as do for all flows, each once; they go round.
        let (mut memory, mut frames) = (Vec::new(), Vec::new());
        for f in 0..self.flows {
            let mut frame = self.frame();
            self.mark(&mut frame, f, 0);
            let (start, len) = (memory.len() as u32, frame.len() as u32);
            let link = LinkType::ETHERNET;
            let (outlet, ts, caplen, trimmed) = (0, 0, len, false);
            let capture_point = CapturePoint::UNKNOWN;
            frames.push(Sent { outlet, link, ts, len, start, caplen, trimmed, capture_point });
            memory.extend(frame);
        }
        let (alarm, mut given) = (Alarm::after(Duration::from_millis(self.ms)), 0_u64);
        while given < u64::from(self.frames) && !alarm.is_over() {
            for part in frames.chunks(BATCH as usize) {
                let left = u64::from(self.frames) - given;
                let part = &part[..part.len().min(left as usize)];
                outlets.send(&memory, part)?;
                given += part.len() as u64;
                if alarm.is_over() {
                    break;
                }
            }
        }
        let (refused, _) = outlets.refused(0).total();
        outlets.finish()?;
        Ok(given - refused)
    }

    /// In C, of `struct xdp_md *ctx`:
    ///
    /// ```c
    /// char *data = ctx->data, *end = ctx->data_end;
    /// __u64 *sent = bpf_map_lookup_elem(&counts, &(int){0});
    /// if (!sent || data + headers > end) return XDP_ABORTED;
    /// // At a rate; `sent[1]` is when the next burst is due.
    /// __u64 now = bpf_ktime_get_ns();
    /// if (*sent % 32 == 0) {
    ///     if (sent[1] > now) return XDP_DROP;
    ///     sent[1] = now + pause;
    /// }
    /// __u64 z = (*sent)++ * GOLDEN;
    /// z = (z ^ z >> 29) * MIX;
    /// __u32 flow = (z >> 32) % flows, host = flow / 1000;
    /// *(__be16 *)(data + 28) = htons(host);
    /// *(__be16 *)(data + 18) = htons(~host);
    /// *(__be16 *)(data + 34) = htons(10000 + flow % 1000);
    /// // Of TCP.
    /// data[47] = z >> 60 == 0 ? SYN : z >> 60 == 1 ? SYN | ACK : ACK;
    /// return bpf_redirect(interface, 0);
    /// ```
    fn code(&self, sent: &Map, interface: u32) -> Result<Code, AssembleError> {
        let (flows, pause_ns) = (self.flows, self.rate.map(pause_ns));
        let mut a = Assembler::new();
        let (counted, fits) = (a.label("counted"), a.label("fits"));
        let (due, begins) = (a.label("due"), a.label("begins"));
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        a.mov(R6, R1);
        if pause_ns.is_some() {
            a.call(Helper::KTIME_GET_NS).mov(R9, R0);
        }
        a.store(Size::W, R10, -4, 0).load_map(R1, sent.number()).mov(R2, R10).add(R2, -4);
        a.call(Helper::MAP_LOOKUP_ELEM);
        a.jump_if(Cond::Ne, R0, 0, counted).mov(R0, XDP_ABORTED).exit();
        a.bind(counted);
        a.load(Size::W, R7, R6, 0).load(Size::W, R8, R6, 4);
        a.mov(R1, R7).add(R1, self.headers() as i32);
        a.jump_if(Cond::Le, R1, R8, fits).mov(R0, XDP_ABORTED).exit();
        a.bind(fits);
        if let Some(pause_ns) = pause_ns {
            a.load(Size::DW, R1, R0, 0).alu(Alu::And, R1, number(BURST - 1));
            a.jump_if(Cond::Ne, R1, 0, due);
            a.load(Size::DW, R1, R0, 8).jump_if(Cond::Le, R1, R9, begins).mov(R0, XDP_DROP).exit();
            a.bind(begins);
            a.add(R9, pause_ns).store(Size::DW, R0, 8, R9);
        }
        a.bind(due);
        a.load(Size::DW, R1, R0, 0).mov(R2, R1).add(R2, 1).store(Size::DW, R0, 0, R2);
        a.load_imm64(R2, GOLDEN).alu(Alu::Mul, R1, R2);
        a.mov(R2, R1).alu(Alu::Rsh, R2, 29).alu(Alu::Xor, R1, R2);
        a.load_imm64(R2, MIX).alu(Alu::Mul, R1, R2).alu(Alu::Rsh, R1, 32);
        a.mov(R5, R1).alu(Alu::Rsh, R5, 28);
        a.alu(Alu::Mod, R1, number(flows));
        a.mov(R2, R1).alu(Alu::Div, R2, number(FLOWS_EACH));
        a.mov(R3, R2).alu(Alu::Xor, R3, -1);
        a.be(Size::H, R2).store(Size::H, R7, SOURCE_LOW, R2);
        a.be(Size::H, R3).store(Size::H, R7, IDENTIFICATION, R3);
        a.alu(Alu::Mod, R1, number(FLOWS_EACH)).add(R1, number(FIRST_PORT));
        a.be(Size::H, R1).store(Size::H, R7, PORT, R1);
        if self.tcp {
            let [syn, syn_ack, ack] = FLAGS_OF;
            let (other, flags) = (a.label("no SYN"), a.label("flags"));
            a.mov(R1, syn).jump_if(Cond::Eq, R5, 0, flags).mov(R1, syn_ack);
            a.jump_if(Cond::Eq, R5, 1, flags).jump(other);
            a.bind(other);
            a.mov(R1, ack);
            a.bind(flags);
            a.store(Size::B, R7, FLAGS, R1);
        }
        a.mov(R1, number(interface)).mov(R2, 0).call(Helper::REDIRECT).exit();
        a.finish()
    }
}

/// Nanoseconds from one burst to the next at a rate. The program waits for them by itself: a call
/// of the kernel that sends frames takes some 20 ms, however few they are. A burst that is late is
/// not made up for, which would overflow the wire.
fn pause_ns(rate: u32) -> i32 {
    let every_ns = 1_000_000_000 * u64::from(BURST) / u64::from(rate.max(1));
    i32::try_from(every_ns).unwrap_or(i32::MAX)
}

/// The check sum of an IPv4 header (RFC 1071), whatever stands in its place.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).enumerate().filter(|&(i, _)| i != 5);
    let sum: u32 = words.map(|(_, w)| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        let (frames, ms, cpu, fifo, socket, tcp, rate) = (1, 1, 0, false, false, false, None);
        Load { bytes: 60, flows: 100_000, frames, ms, cpu, fifo, socket, tcp, rate }
    }

    #[test]
    fn flows_differ_and_check_sums_are_right() {
        let load = load();
        let mut frame = load.frame();
        let first = frame.clone();
        assert_eq!((frame.len(), &frame[26..30]), (60, &[10, 0, 0, 0][..]));
        let mut seen = std::collections::BTreeSet::new();
        for f in (0..100_000).step_by(77) {
            load.mark(&mut frame, f, 0);
            assert_eq!(frame[24..26], first[24..26], "the check sum stays");
            assert!(seen.insert(frame[26..36].to_vec()));
        }
    }

    /// The program writes what the function above does.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn the_program_makes_frames_of_flows() {
        let Ok(sent) = Map::new(MapKind::Array, "weir-test", 4, 16, 1) else {
            eprintln!("SKIPPED the_program_makes_frames_of_flows: it needs root and bpf(2)");
            return;
        };
        let loads = |load: Load| {
            let code = load.code(&sent, 1).expect("right");
            Program::load(ProgramKind::Xdp, "weir-test", &code).expect("loads")
        };
        // A burst each two seconds.
        let paced = loads(Load { rate: Some(BURST / 2), ..load() });
        let (udp, tcp) = (load(), Load { tcp: true, ..load() });
        let mut kinds = std::collections::BTreeSet::new();
        for (load, numbers) in [(udp, 0..50_u64), (tcp, 50..100)] {
            let program = loads(load);
            for n in numbers {
                let z = n.wrapping_mul(GOLDEN);
                let z = (z ^ z >> 29).wrapping_mul(MIX) >> 32;
                let mut want = load.frame();
                load.mark(&mut want, (z % u64::from(load.flows)) as u32, (z >> 28) as usize);
                let run = program.test_run(&load.frame(), 1).expect("a frame");
                kinds.insert((load.tcp, want[FLAGS as usize]));
                assert_eq!((run.returned, run.data), (4, want), "frame {n}");
            }
            let short = program.test_run(&load.frame()[..load.headers() - 1], 1).expect("a frame");
            assert_eq!(short.returned, XDP_ABORTED as u32);
        }
        assert_eq!(kinds.iter().filter(|(tcp, _)| *tcp).count(), 3, "{kinds:?}");
        let count = sent.lookup(&0u32.to_ne_bytes()).expect("reads").expect("there");
        assert_eq!(count[..8], 100_u64.to_ne_bytes());
        // Of the burst that it is in 28 are left; then one begins, and the next is not due.
        let sends = |_| paced.test_run(&load().frame(), 1).expect("a frame").returned;
        let sends: Vec<u32> = (0..28 + 32 + 2).map(sends).collect();
        assert!(sends[..60].iter().all(|returned| *returned == 4), "{sends:?}");
        assert_eq!(sends[60..], [XDP_DROP as u32; 2]);
    }
}
