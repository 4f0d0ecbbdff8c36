//! The receivers: Weir with its flow meter, and loops by hand that drop what they receive.

use super::wire::{self, QUEUES};
use crate::sys::host;
use crate::sys::ring::Ring;
use crate::sys::xsk::{FRAME, Xsk};
use crate::timing::Window;
use crate::work::FLOW_METER;
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_capture::ebpf::{Attach, Link, Map, MapKind, Program, ProgramKind};
use weir_capture::limits::{
    RETIRE_MS, RING_BLOCK, RING_BUFFER, XDP_BIND_EVERY_MS, XDP_BIND_TRIES, XDP_GATHER_FROM,
    XDP_GATHER_NS, XDP_MEMORY,
};
use weir_capture::live::{LiveOptions, open_live};
use weir_capture::xdp::{BusyPoll, XdpOptions, open_xdp};
use weir_ebpf::{Assembler, Helper, Reg::*, Size};
use weir_engine::rows::{Output, Rows, Sink};
use weir_engine::run;
use weir_packet::source::{Account, FrameBatch, Lost, Source, SourceError};

/// Nanoseconds that a loop waits for frames before it looks whether it is to end.
const WAIT_NS: i64 = 100_000_000;

/// Where `rx_queue_index` is in `struct xdp_md`, and what passes a frame on (`enum xdp_action`).
const RX_QUEUE_INDEX: i16 = 16;
const XDP_PASS: i32 = 2;

/// The receiver, and how it receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub(crate) enum Receiver {
    /// A loop by hand over AF_XDP that waits for its sockets.
    BareXdp,
    /// The same, which lets frames gather for a while instead, where they come fast.
    BareXdpPause,
    /// The same, which has the kernel look after its queues when it has nothing to do.
    BareXdpBusy,
    /// Weir by AF_XDP.
    WeirXdp,
    /// The same, with busy-polling.
    WeirXdpBusy,
    /// A loop by hand over the ring of AF_PACKET.
    BarePacket,
    /// Weir by AF_PACKET.
    WeirPacket,
}

impl Receiver {
    /// In the order in which they run.
    pub(super) const ALL: [Receiver; 7] = [
        Receiver::BareXdp,
        Receiver::WeirXdp,
        Receiver::BareXdpPause,
        Receiver::BareXdpBusy,
        Receiver::WeirXdpBusy,
        Receiver::BarePacket,
        Receiver::WeirPacket,
    ];

    /// Its name in a table.
    pub(super) fn title(self) -> &'static str {
        match self {
            Receiver::BareXdp => "loop over AF_XDP",
            Receiver::BareXdpPause => "loop over AF_XDP, pausing",
            Receiver::BareXdpBusy => "loop over AF_XDP, busy-polling",
            Receiver::WeirXdp => "Weir, flow meter, AF_XDP",
            Receiver::WeirXdpBusy => "Weir, flow meter, AF_XDP, busy-polling",
            Receiver::BarePacket => "loop over AF_PACKET",
            Receiver::WeirPacket => "Weir, flow meter, AF_PACKET",
        }
    }

    /// Whether it is ours.
    pub(super) fn is_weir(self) -> bool {
        matches!(self, Receiver::WeirXdp | Receiver::WeirXdpBusy | Receiver::WeirPacket)
    }

    /// Whether frames come by AF_XDP.
    pub(super) fn is_xdp(self) -> bool {
        !matches!(self, Receiver::BarePacket | Receiver::WeirPacket)
    }

    /// Whether the receiver itself has the kernel look after the queues.
    pub(super) fn is_busy(self) -> bool {
        matches!(self, Receiver::BareXdpBusy | Receiver::WeirXdpBusy)
    }
}

/// How to receive.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Receive {
    /// The receiver, and how it receives.
    #[arg(value_enum)]
    pub(crate) way: Receiver,
    /// Milliseconds from the first frame to the window that counts.
    #[arg(long)]
    pub(crate) warm_up_ms: u64,
    /// Milliseconds of that.
    #[arg(long)]
    pub(crate) window_ms: u64,
    /// The processor to run on.
    #[arg(long)]
    pub(crate) cpu: usize,
    /// Run before others.
    #[arg(long)]
    pub(crate) fifo: bool,
}

/// The counts of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// All frames that it got.
    pub(crate) frames: u64,
    /// Frames that the kernel had for it and that found no room, and those dropped otherwise.
    pub(crate) lost: u64,
    /// Frames within the window, and its nanoseconds; zeros where it did not come to its end.
    pub(crate) in_window: u64,
    pub(crate) window_ns: u64,
    /// Flows that were found; 0 where nobody looked.
    pub(crate) flows: u64,
    /// Whether the kernel knows whom to call for a socket that polls; only a loop by hand says so.
    pub(crate) polls: bool,
}

impl Received {
    fn new(window: &Window, lost: u64, flows: u64) -> Received {
        let (in_window, length) = window.read().unwrap_or_default();
        let window_ns = length.as_nanos() as u64;
        Received { frames: window.frames, lost, in_window, window_ns, flows, polls: false }
    }

    /// Reads what [`Received`] prints.
    pub(super) fn parse(line: &str) -> Result<Received> {
        let number = |name| crate::measure::number(line, name);
        Ok(Received {
            frames: number("frames")?,
            lost: number("lost")?,
            in_window: number("in_window")?,
            window_ns: number("window_ns")?,
            flows: number("flows")?,
            polls: number("polls")? > 0,
        })
    }

    /// Frames per second, within the window.
    pub(super) fn rate(&self) -> f64 {
        self.in_window as f64 * 1e9 / self.window_ns as f64
    }
}

impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Received { frames, lost, in_window, window_ns, flows, polls } = self;
        let polls = u8::from(*polls);
        write!(
            f,
            "frames={frames} lost={lost} in_window={in_window} window_ns={window_ns} \
             flows={flows} polls={polls}"
        )
    }
}

impl Receive {
    /// Receives until standard input ends and what is on its way has come. Says on standard output
    /// when it is ready.
    pub(crate) fn run(&self) -> Result<Received> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        // Not pinned and of no priority, so that it gets to hear of the end.
        std::thread::spawn(move || {
            // An error is an end, too.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            asked.store(true, Ordering::Relaxed);
        });
        match self.way {
            Receiver::BareXdp | Receiver::BareXdpPause | Receiver::BareXdpBusy => {
                self.bare_xdp(&stop)
            }
            Receiver::BarePacket => self.bare_packet(&stop),
            Receiver::WeirXdp | Receiver::WeirXdpBusy => {
                let busy_poll = self.way.is_busy().then(BusyPoll::default);
                let options = XdpOptions { busy_poll, ..XdpOptions::default() };
                let source = open_xdp(&[wire::RECEIVER], &options)?;
                let mode = source.modes()[0].to_string();
                self.meter(source, &stop, &mode)
            }
            Receiver::WeirPacket => {
                let options = LiveOptions { stop: Some(Arc::clone(&stop)), ..Default::default() };
                let source = open_live(&[wire::RECEIVER.to_owned()], options)?;
                self.meter(source, &stop, "AF_PACKET")
            }
        }
    }

    fn window(&self) -> Window {
        let ms = Duration::from_millis;
        Window::new(ms(self.warm_up_ms), ms(self.window_ms))
    }

    /// Goes where it is to run, and says that all is set up.
    fn ready(&self, mode: &str) -> Result<()> {
        host::pin(None, self.cpu).context("pinning the receiver")?;
        if self.fifo {
            host::run_first(None, wire::READER_FIRST).context("giving the receiver priority")?;
        }
        let mut out = io::stdout();
        writeln!(out, "{mode}").and_then(|()| out.flush()).context("standard output")
    }

    /// Weir, one worker, rows counted and forgotten.
    fn meter(&self, source: impl Source, stop: &AtomicBool, mode: &str) -> Result<Received> {
        // A capture by AF_PACKET knows itself when all has come.
        let ends = self.way.is_xdp();
        let mut source = Counted { source, stop, ends, window: self.window(), last: 0 };
        let (program, functions) = FLOW_METER.program(None)?;
        let options = run::Options::default();
        let mut sink = Sum::default();
        self.ready(mode)?;
        let outcome = run::run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
        outcome.error.map_or(Ok(()), Err)?;
        let (ledger, Sum { flows, packets, .. }) = (outcome.ledger, sink);
        ensure!(ledger.adds_up(), "the ledger does not add up: {ledger:?}");
        let frames = source.window.frames;
        ensure!(
            ledger.processed == frames && packets == frames,
            "{frames} frames were received, {} processed, and rows tell of {packets}",
            ledger.processed
        );
        let Lost { ring, kernel, .. } = source.account().lost;
        Ok(Received::new(&source.window, ring + kernel, flows))
    }

    fn bare_packet(&self, stop: &AtomicBool) -> Result<Received> {
        let interface = super::netlink::Netlink::open()?.interface(wire::RECEIVER)?.index;
        let size = (RING_BUFFER / RING_BLOCK, RING_BLOCK);
        let mut ring = Ring::open(interface, size, RETIRE_MS).context("opening a packet socket")?;
        let (mut window, mut bytes) = (self.window(), 0);
        self.ready("AF_PACKET")?;
        loop {
            let (n, more) = ring.turn();
            bytes += more;
            if n > 0 {
                window.add(n);
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                let (passed, dropped) = ring.counts()?;
                if window.frames + dropped >= passed {
                    // Or else the compiler might see that nobody looks at the lengths.
                    std::hint::black_box(bytes);
                    return Ok(Received::new(&window, dropped, 0));
                }
            }
            wait(&[&ring])?;
        }
    }

    fn bare_xdp(&self, stop: &AtomicBool) -> Result<Received> {
        let interface = super::netlink::Netlink::open()?.interface(wire::RECEIVER)?.index;
        let frames = XDP_MEMORY / QUEUES as usize / FRAME;
        let busy = self.way.is_busy();
        let sockets = Map::new(MapKind::Xsk, "bare", 4, 4, QUEUES).context("making a map")?;
        let mut queues = Vec::new();
        for queue in 0..QUEUES {
            let xsk = open(interface, queue, frames as u32, busy);
            let xsk = xsk.with_context(|| format!("opening AF_XDP on queue {queue}"))?;
            sockets.update(&queue.to_ne_bytes(), &xsk.number().to_ne_bytes())?;
            queues.push(xsk);
        }
        let _link = redirect(interface, &sockets)?;
        let (mut window, mut waited_at) = (self.window(), 0);
        self.ready("AF_XDP")?;
        loop {
            let n: usize = queues.iter_mut().map(Xsk::turn).sum();
            if n > 0 {
                window.add(n);
                continue;
            }
            if busy {
                queues.iter().for_each(Xsk::wake);
                let n: usize = queues.iter_mut().map(Xsk::turn).sum();
                if n > 0 {
                    window.add(n);
                    continue;
                }
            }
            let fast = window.frames - waited_at >= XDP_GATHER_FROM;
            waited_at = window.frames;
            if self.way == Receiver::BareXdpPause && fast {
                pause(XDP_GATHER_NS.into());
                continue;
            }
            if !wait(&queues.iter().collect::<Vec<_>>())? && stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let (mut lost, mut polls) = (0, false);
        for queue in &queues {
            let counts = queue.statistics()?;
            lost += counts.rx_dropped + counts.rx_ring_full.unwrap_or(0);
            polls |= queue.napi()? > 0;
        }
        Ok(Received { polls, ..Received::new(&window, lost, 0) })
    }
}

/// Opens a socket; one that was closed just now lets go of its queue a little later.
fn open(interface: u32, queue: u32, frames: u32, busy: bool) -> io::Result<Xsk> {
    for _ in 0..XDP_BIND_TRIES {
        match Xsk::open(interface, queue, frames, busy) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                pause(i64::from(XDP_BIND_EVERY_MS) * 1_000_000);
            }
            result => return result,
        }
    }
    Xsk::open(interface, queue, frames, busy)
}

/// Puts the shortest program on an interface that sends each frame to the socket of its queue.
fn redirect(interface: u32, sockets: &Map) -> Result<Link> {
    let mut a = Assembler::new();
    a.load(Size::W, R2, R1, RX_QUEUE_INDEX).load_map(R1, sockets.number()).mov(R3, XDP_PASS);
    a.call(Helper::REDIRECT_MAP).exit();
    let program = Program::load(ProgramKind::Xdp, "bare", &a.finish()?)?;
    Link::xdp(&program, interface, Attach::Native).context("putting a program on an interface")
}

/// Waits until one of these has something, for a while; whether one has.
fn wait(what: &[&impl AsFd]) -> Result<bool> {
    let mut fds: Vec<_> = what.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
    let time = Timespec { tv_sec: 0, tv_nsec: WAIT_NS };
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(e) => Err(anyhow!(e)).context("waiting for frames"),
    }
}

/// Does nothing for a while, or until a signal comes.
fn pause(ns: i64) {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: ns }));
}

/// A source whose frames are counted when they have been processed: when the next are asked for. It
/// ends when it is asked to and no frame comes.
struct Counted<'a, S> {
    source: S,
    stop: &'a AtomicBool,
    /// Whether it would not end by itself.
    ends: bool,
    window: Window,
    last: usize,
}

impl<S: Source> Source for Counted<'_, S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if self.last > 0 {
            self.window.add(self.last);
        }
        let ends = self.stop.load(Ordering::Relaxed);
        let more = self.source.fill(batch)?;
        self.last = batch.len();
        Ok(more && !(self.ends && ends && batch.is_empty()))
    }

    fn is_ready(&mut self) -> bool {
        self.source.is_ready()
    }

    fn account(&self) -> Account {
        self.source.account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.source.interfaces()
    }
}

/// Counts flows and sums up their packets.
#[derive(Default)]
struct Sum {
    /// The column of packets.
    column: usize,
    flows: u64,
    packets: u64,
}

impl Sink for Sum {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let named = |o: &Output| o.schema.columns.iter().position(|c| c.name == "packets");
        self.column = outputs.first().and_then(named).unwrap_or(0);
        Ok(())
    }

    fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
        self.flows += rows.len as u64;
        let column = &rows.columns[self.column];
        self.packets += (0..rows.len).map(|i| column.raw(i) as u64).sum::<u64>();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_between_processes() {
        let received = Received {
            frames: 3_000_000,
            lost: 12,
            in_window: 2_000_000,
            window_ns: 1_000_000_123,
            flows: 1000,
            polls: true,
        };
        assert_eq!(Received::parse(&received.to_string()).expect("whole"), received);
        assert!((received.rate() - 1_999_999.754).abs() < 0.001);
        assert!(Received::parse("frames=1").is_err());
    }
}
