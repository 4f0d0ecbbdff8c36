//! The source over all queues.

use super::error::{Refused, refused};
use super::link::{Interfaces, LinkInfo, MissedFrames};
use super::mode::Mode;
use super::options::XdpOptions;
use super::outputs::Outputs;
use super::program::Redirect;
use super::queue::Queue;
use crate::ebpf::{Link, ReadCounts, add_finished};
use crate::limits::{WAIT_MS, XDP_GATHER_FRAMES_MIN, XDP_GATHER_FROM, XDP_GATHER_NS};
use crate::live::ReportEvent;
use crate::live::clock::{pause_ms, pause_ns, system};
use crate::live::driver::{Driver, Driving, Links, LiveDevice};
use crate::live::watch::Watch;
use rustix::event::{Timespec, epoll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::interface::{CapturePoint, InterfaceNames};
use weir_packet::source::{Account, FrameBatch, Lost, Source, SourceError};

const NS_PER_MS: i64 = 1_000_000;

/// An interface that is captured. Dropping it takes the program away.
pub(super) struct Port {
    name: String,
    pub(super) index: u32,
    point: CapturePoint,
    _link: Link,
    redirect: Redirect,
    query: PortQuery,
    /// The frames passed on before the capture began.
    passed_before: u64,
    missed: MissedFrames,
}

/// The counts of a query's program, and where it hands frames.
pub(super) struct PortQuery {
    pub(super) counts: Option<ReadCounts>,
    pub(super) outputs: Option<Outputs>,
}

/// Frames of one receive queue since the capture began, by what became of them:
/// `redirected = delivered + waiting + ring_full + dropped`, where `waiting` are those that lie in
/// the ring still.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueCounts {
    /// The interface.
    pub interface: String,
    /// The number of the queue.
    pub queue: u32,
    /// Frames that the program redirected to the queue's socket.
    pub redirected: u64,
    /// Frames that the source handed out.
    pub delivered: u64,
    /// Frames for which the ring to this process had no room.
    pub ring_full: u64,
    /// Frames that the socket dropped otherwise: for want of memory, or since they were too long.
    pub dropped: u64,
    /// How often the kernel found no free memory for a frame; where the driver fills our memory
    /// itself, this need not be one for each frame.
    pub out_of_memory: u64,
}

/// A capture by AF_XDP; see [`open_xdp`](super::open_xdp).
///
/// [`Source::account`] counts frames that batches brought as received, and as lost
/// - by the interface: those it had no buffer for (`rx_missed_errors`),
/// - by the kernel: those too long for our memory, and those of queues that were added meanwhile,
///   which the program passed on to the stack,
/// - by the ring: those that came while the ring was full or all memory was in use.
///
/// The losses are asked of the kernel every [some milliseconds](crate::limits::XDP_COUNTS_EVERY_MS)
/// while frames come, and whenever none does; [`Source::interfaces`] asks anew.
pub struct XdpSource(Driver<XdpQueues>);

/// All queues of a capture.
struct XdpQueues {
    // Before the queues, so that no frame goes to a socket that is closed.
    ports: Vec<Port>,
    queues: Vec<Queue>,
    modes: Vec<Mode>,
    known: Interfaces,
    sockets: OwnedFd,
    snap: u32,
    names: InterfaceNames,
    busy_poll: bool,
    /// Whether there is memory for what comes while more of it is waited for.
    gathers: bool,
    /// The queue to look at first; it has frames at hand where there are some.
    next: usize,
    /// Frames handed out.
    delivered: u64,
    /// How many that were when frames were waited for.
    waited_at: u64,
    /// The latest time stamp.
    now: i64,
}

impl Port {
    /// An interface whose program redirects from now on.
    pub(super) fn new(
        interface: &LinkInfo,
        (redirect, query): (Redirect, PortQuery),
        link: Link,
        point: CapturePoint,
    ) -> Result<Port, SourceError> {
        let passed_before = redirect.passed().map_err(|e| {
            let doing = "reading the counters of the XDP program";
            refused(&interface.name, None, doing, Refused::Other(e))
        })?;
        Ok(Port {
            name: interface.name.clone(),
            index: interface.index,
            point,
            _link: link,
            redirect,
            query,
            passed_before,
            missed: MissedFrames::from(interface),
        })
    }
}

impl XdpSource {
    pub(super) fn new(
        known: Interfaces,
        ports: Vec<Port>,
        queues: Vec<Queue>,
        modes: Vec<Mode>,
        options: &XdpOptions,
    ) -> Result<XdpSource, SourceError> {
        let failed = |e: rustix::io::Errno| {
            refused("AF_XDP", None, "waiting for its sockets", Refused::Other(e.into()))
        };
        let sockets = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for (i, queue) in queues.iter().enumerate() {
            let data = epoll::EventData::new_u64(i as u64);
            epoll::add(&sockets, &queue.socket, data, epoll::EventFlags::IN).map_err(failed)?;
        }
        let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
        let gathers = queues.iter().all(|queue| queue.frames >= XDP_GATHER_FRAMES_MIN);
        let device = XdpQueues {
            ports,
            queues,
            gathers,
            busy_poll: modes.iter().any(|mode| mode.busy_poll),
            modes,
            known,
            sockets,
            snap: options.snap,
            names: options.interfaces.clone(),
            next: 0,
            delivered: 0,
            waited_at: 0,
            now: 0,
        };
        let driving = Driving { began_before: true, ..Driving::default() };
        Ok(XdpSource(Driver::new(device, Links::new(names, None), driving)))
    }

    /// Ends it once `stop` is set: what has come is delivered.
    #[must_use]
    pub fn ending_by(mut self, stop: &Arc<AtomicBool>) -> XdpSource {
        self.0.end_by(stop);
        self
    }

    /// Reports what happens to its interfaces, on the thread that reads.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn reporting(mut self, report: ReportEvent) -> Result<XdpSource, SourceError> {
        let names: Vec<String> = self.0.device().ports.iter().map(|p| p.name.clone()).collect();
        let watch = Watch::new(&names)
            .map_err(|source| SourceError::Io { name: names.join(", "), source })?;
        self.0.set_links(Links::new(names, Some(report)).watched(Some(watch)));
        Ok(self)
    }

    /// In which mode each interface is captured.
    pub fn modes(&self) -> &[Mode] {
        &self.0.device().modes
    }

    /// The fate of the frames of each queue.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn queues(&self) -> io::Result<Vec<QueueCounts>> {
        let queues = self.0.device();
        let counts = |queue: &Queue| {
            let port = &queues.ports[queue.port];
            let socket = queue.socket.statistics()?;
            Ok(QueueCounts {
                interface: port.name.clone(),
                queue: queue.number,
                redirected: port.redirect.seen(queue.number)?.redirected,
                delivered: queue.delivered,
                ring_full: socket.rx_ring_full.unwrap_or(0),
                dropped: socket.rx_dropped,
                out_of_memory: socket.rx_fill_ring_empty_descs.unwrap_or(0),
            })
        };
        queues.queues.iter().map(counts).collect()
    }
}

impl Source for XdpSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.0.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        self.0.is_ready()
    }

    fn account(&self) -> Account {
        self.0.account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.0.interfaces()
    }
}

impl LiveDevice for XdpQueues {
    const LOSSES_EVERY_MS: u32 = crate::limits::XDP_COUNTS_EVERY_MS;

    /// Goes to the first queue, in turn, that has frames.
    fn look(&mut self, until: i64, _links: &mut Links) -> Result<bool, SourceError> {
        if until == i64::MIN {
            self.queues.iter_mut().for_each(Queue::take_no_more);
        }
        for i in 0..self.queues.len() {
            let at = (self.next + i) % self.queues.len();
            let queue = &mut self.queues[at];
            if !queue.has_frames() {
                continue;
            }
            queue.collect(false);
            if queue.can_lend() {
                self.next = at;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn lend(&mut self, batch: &mut FrameBatch, seq: u64) {
        self.tick();
        let queue = &mut self.queues[self.next];
        let mark = self.ports[queue.port].redirect.mark;
        self.delivered += queue.receive(batch, (self.now, seq), self.snap, mark);
        batch.set_capture_point(0, self.ports[queue.port].point, &self.names);
        batch.set_reached(self.now);
        self.next = (self.next + 1) % self.queues.len();
    }

    fn wait(&mut self, most_ms: u32, links: &mut Links) -> Result<(), SourceError> {
        if self.busy_poll {
            self.queues.iter().for_each(|queue| queue.socket.wake());
            if self.queues.iter_mut().any(|queue| queue.has_frames() && queue.can_lend()) {
                return Ok(());
            }
        } else if self.gather() {
            return Ok(());
        }
        let mut waited_ms = 0;
        loop {
            self.queues.iter_mut().for_each(|queue| queue.collect(true));
            // A batch that is let go wakes no thread: where memory is short, it is polled.
            let short = self.queues.iter().any(Queue::is_short);
            let turn_ms = if short { 1 } else { most_ms };
            if self.queues.iter_mut().any(|queue| queue.has_frames() && !queue.can_lend()) {
                // Frames wait for a batch; the sockets would say so again and again.
                pause_ms(turn_ms);
            } else if self.sockets_ready(turn_ms)? {
                // A socket that has failed says so at once, again and again.
                return if self.queues.iter_mut().any(Queue::has_frames) {
                    Ok(())
                } else {
                    self.check(links)
                };
            }
            waited_ms += turn_ms;
            let ready = |queue: &mut Queue| queue.has_frames() && queue.can_lend();
            if waited_ms >= most_ms || self.queues.iter_mut().any(ready) {
                return Ok(());
            }
        }
    }

    /// Frames get the time at which they are taken.
    fn reached(&self, now: Option<i64>) -> Option<i64> {
        Some(now?.max(self.now))
    }

    /// Asks all sockets: one whose interface is gone does not say so by itself.
    fn check(&mut self, _links: &mut Links) -> Result<(), SourceError> {
        for queue in &self.queues {
            if let Some(error) = queue.socket.error() {
                let name = &self.ports[queue.port].name;
                let doing = "receiving frames; is the interface gone?";
                return Err(refused(name, Some(queue.number), doing, Refused::Other(error)));
            }
        }
        Ok(())
    }

    /// The kernel says by itself how interfaces are.
    fn watch(&mut self, _links: &mut Links) {
        self.count_drops();
    }

    fn count_drops(&self) {
        for port in &self.ports {
            port.missed.ask(&self.known, port.index);
            port.query.outputs.iter().for_each(|outputs| outputs.refresh(&self.known));
        }
    }

    fn lost(&self) -> Lost {
        let mut lost = Lost::default();
        (0..self.ports.len()).for_each(|at| lost.merge(self.lost_of(at)));
        lost
    }

    /// The program stays: frames that it would pass on would reach the stack.
    fn close(&mut self, _now: Option<i64>, _links: &Links) -> Result<i64, SourceError> {
        self.count_drops();
        Ok(i64::MAX)
    }

    /// Where nothing came for a while, nothing is on its way.
    fn is_drained(&self, ending_ms: u32) -> bool {
        ending_ms >= WAIT_MS
    }

    fn is_held_up(&mut self) -> bool {
        self.queues.iter_mut().any(Queue::has_frames)
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |at: usize| {
            let own = self.queues.iter().filter(|queue| queue.port == at);
            let received = own.map(|queue| queue.delivered).sum();
            let lost = self.lost_of(at);
            let mut account = Account { received, lost, ..Account::default() };
            add_finished(self.ports[at].query.counts.as_ref(), &mut account);
            account
        };
        (0..self.ports.len()).map(account).collect()
    }
}

impl XdpQueues {
    /// While frames come fast, waits for more of them than the kernel brings at a time: to be woken
    /// for each few, and to work on a batch that is nearly empty, takes longer than they themselves
    /// do. Whether some have come.
    fn gather(&mut self) -> bool {
        let fast = self.delivered - self.waited_at >= XDP_GATHER_FROM;
        self.waited_at = self.delivered;
        if !fast || !self.gathers {
            return false;
        }
        pause_ns(XDP_GATHER_NS.into());
        self.queues.iter_mut().any(Queue::has_frames)
    }

    /// Waits for the sockets; whether one has something to say, or a signal came.
    fn sockets_ready(&mut self, wait_ms: u32) -> Result<bool, SourceError> {
        let mut events = [const { MaybeUninit::uninit() }; 8];
        match epoll::wait(&self.sockets, &mut events[..], Some(&timespec(wait_ms))) {
            Ok((ready, _)) => Ok(!ready.is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(e) => {
                let doing = "waiting for frames";
                Err(refused("AF_XDP", None, doing, Refused::Other(e.into())))
            }
        }
    }

    /// Moves the clock, which never runs backwards.
    fn tick(&mut self) {
        self.now = self.now.max(system());
    }

    /// The losses of one interface.
    fn lost_of(&self, at: usize) -> Lost {
        let port = &self.ports[at];
        let passed = port.redirect.passed().unwrap_or(port.passed_before);
        let mut lost = Lost {
            interface: port.missed.get(),
            kernel: passed.saturating_sub(port.passed_before),
            ring: 0,
        };
        for queue in self.queues.iter().filter(|queue| queue.port == at) {
            let Some(socket) = queue.statistics() else { continue };
            let no_memory = socket.rx_fill_ring_empty_descs.unwrap_or(0).min(socket.rx_dropped);
            lost.ring += socket.rx_ring_full.unwrap_or(0) + no_memory;
            lost.kernel += socket.rx_dropped - no_memory;
        }
        lost
    }
}

fn timespec(ms: u32) -> Timespec {
    Timespec { tv_sec: (ms / 1000).into(), tv_nsec: i64::from(ms % 1000) * NS_PER_MS }
}
