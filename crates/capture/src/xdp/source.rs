//! The source over all queues.

use super::XdpOptions;
use super::error::{Refused, refused};
use super::link::{Interface, Interfaces};
use super::mode::Mode;
use super::program::Redirect;
use super::queue::Queue;
use crate::ebpf::Link;
use crate::limits::{
    WAIT_MS, XDP_COUNTS_EVERY_MS, XDP_GATHER_FRAMES_MIN, XDP_GATHER_FROM, XDP_GATHER_NS,
};
use rustix::event::{Timespec, epoll, poll};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use weir_packet::interface::{InterfaceNames, Via};
use weir_packet::source::{Account, FrameBatch, Gap, Lost, Source, SourceError};

const NS_PER_MS: i64 = 1_000_000;

/// An interface that is captured. Dropping it takes the program away.
pub(super) struct Port {
    name: String,
    pub(super) index: u32,
    via: Via,
    _link: Link,
    redirect: Redirect,
    /// What was counted before the capture began.
    passed_before: u64,
    missed_before: u64,
    missed: Cell<u64>,
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
/// What is lost is asked of the kernel every
/// [some milliseconds](crate::limits::XDP_COUNTS_EVERY_MS) while frames come, and whenever none
/// does; [`Source::interfaces`] asks anew.
pub struct XdpSource {
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
    /// The queue to look at first.
    next: usize,
    seq: u64,
    /// Where `seq` was when frames were waited for.
    waited_at: u64,
    /// The latest time stamp.
    now: i64,
    ended: bool,
    lost: Cell<Lost>,
    /// When that was asked for.
    lost_at: i64,
    /// Frames of it that batches have said.
    told: u64,
}

impl Port {
    /// An interface whose program redirects from now on.
    pub(super) fn new(
        interface: &Interface,
        redirect: Redirect,
        link: Link,
        via: Via,
    ) -> Result<Port, SourceError> {
        let passed_before = redirect.passed().map_err(|e| {
            let doing = "reading the counters of the XDP program";
            refused(&interface.name, None, doing, Refused::Other(e))
        })?;
        Ok(Port {
            name: interface.name.clone(),
            index: interface.index,
            via,
            _link: link,
            redirect,
            passed_before,
            missed_before: interface.missed,
            missed: Cell::new(0),
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
        let gathers = queues.iter().all(|queue| queue.frames >= XDP_GATHER_FRAMES_MIN);
        Ok(XdpSource {
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
            seq: 0,
            waited_at: 0,
            now: 0,
            ended: false,
            lost: Cell::default(),
            lost_at: 0,
            told: 0,
        })
    }

    /// In which mode each interface is captured.
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// What became of the frames of each queue.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn queues(&self) -> io::Result<Vec<QueueCounts>> {
        let counts = |queue: &Queue| {
            let port = &self.ports[queue.port];
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
        self.queues.iter().map(counts).collect()
    }

    /// Fills a batch from the first queue, in turn, that has frames; whether one had.
    fn take(&mut self, batch: &mut FrameBatch) -> bool {
        for i in 0..self.queues.len() {
            let at = (self.next + i) % self.queues.len();
            let queue = &mut self.queues[at];
            if !queue.has_frames() {
                continue;
            }
            queue.collect(false);
            let n = queue.receive(batch, self.now, self.seq, self.snap);
            if n > 0 {
                batch.set_via(0, self.ports[queue.port].via, &self.names);
                self.seq += n;
                self.next = at + 1;
                return true;
            }
        }
        false
    }

    /// Waits for frames, for a while.
    fn wait(&mut self) -> Result<(), SourceError> {
        if self.busy_poll {
            self.queues.iter().for_each(|queue| queue.socket.wake());
            if self.queues.iter_mut().any(Queue::has_frames) {
                return Ok(());
            }
        } else if self.gather() {
            return Ok(());
        }
        let mut waited_ms = 0;
        loop {
            self.queues.iter_mut().for_each(|queue| queue.collect(true));
            // Batches that are let go wake nobody: where memory is short, it is looked after.
            let short = self.queues.iter().any(Queue::is_short);
            let turn_ms = if short { 1 } else { WAIT_MS };
            if self.queues.iter_mut().any(|queue| queue.has_frames() && !queue.can_lend()) {
                // Frames wait for a batch; the sockets would say so again and again.
                nap(turn_ms);
            } else if self.sockets_ready(turn_ms)? {
                return Ok(());
            }
            waited_ms += turn_ms;
            let ready = |queue: &mut Queue| queue.has_frames() && queue.can_lend();
            if waited_ms >= WAIT_MS || self.queues.iter_mut().any(ready) {
                return Ok(());
            }
        }
    }

    /// While frames come fast, waits for more of them than the kernel brings at a time: to be woken
    /// for each few, and to work on a batch that is nearly empty, takes longer than they themselves
    /// do. Whether some have come.
    fn gather(&mut self) -> bool {
        let fast = self.seq - self.waited_at >= XDP_GATHER_FROM;
        self.waited_at = self.seq;
        if !fast || !self.gathers {
            return false;
        }
        sleep(Timespec { tv_sec: 0, tv_nsec: XDP_GATHER_NS });
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

    /// Whether all sockets are well. One whose interface is gone does not say so by itself.
    fn check(&self) -> Result<(), SourceError> {
        for queue in &self.queues {
            if let Some(error) = queue.socket.error() {
                let name = &self.ports[queue.port].name;
                let doing = "receiving frames; is the interface gone?";
                return Err(refused(name, Some(queue.number), doing, Refused::Other(error)));
            }
        }
        Ok(())
    }

    /// Moves the clock, which never runs backwards.
    fn tick(&mut self) {
        let time = clock_gettime(ClockId::Realtime);
        let now = time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec);
        self.now = self.now.max(now);
    }

    /// What one interface has lost.
    fn lost_of(&self, at: usize) -> Lost {
        let port = &self.ports[at];
        // An interface that is gone counts no more, and a counter that can't be read stays.
        if let Ok(Some(now)) = self.known.by_index(port.index) {
            port.missed.set(now.missed.saturating_sub(port.missed_before));
        }
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

    fn count(&mut self) {
        self.lost_at = self.now;
        let mut lost = Lost::default();
        (0..self.ports.len()).for_each(|at| lost.merge(self.lost_of(at)));
        self.lost.set(lost);
    }

    /// Asks what was lost since it was last asked, and says it with a batch.
    fn tell_losses(&mut self, batch: &mut FrameBatch) {
        // A first time there is not: frames may have been lost since the program was attached.
        let since = if self.lost_at == 0 { i64::MIN } else { self.lost_at };
        self.count();
        // Some may have been lost while it was counted.
        self.tick();
        let lost = self.lost.get().total();
        let (frames, until) = (lost.saturating_sub(self.told), self.now);
        if frames > 0 {
            self.told = lost;
            batch.set_gap(Gap { frames, since, until });
        }
    }
}

impl Source for XdpSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        self.tick();
        if !self.take(batch) {
            let waited = self.wait();
            self.tick();
            if !self.take(batch) {
                self.tell_losses(batch);
                if let Err(error) = waited.and_then(|()| self.check()) {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        if self.now - self.lost_at > i64::from(XDP_COUNTS_EVERY_MS) * NS_PER_MS {
            self.tell_losses(batch);
        }
        batch.set_reached(self.now);
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        self.ended || self.queues.iter_mut().any(|queue| queue.has_frames() && queue.can_lend())
    }

    fn account(&self) -> Account {
        Account { received: self.seq, lost: self.lost.get(), ..Account::default() }
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        let mut all = Lost::default();
        let accounts = self.ports.iter().enumerate().map(|(at, port)| {
            let lost = self.lost_of(at);
            all.merge(lost);
            let own = self.queues.iter().filter(|queue| queue.port == at);
            let received = own.map(|queue| queue.delivered).sum();
            (port.name.clone(), Account { received, lost, ..Account::default() })
        });
        let accounts = accounts.collect();
        self.lost.set(all);
        accounts
    }
}

fn timespec(ms: u32) -> Timespec {
    Timespec { tv_sec: (ms / 1000).into(), tv_nsec: i64::from(ms % 1000) * NS_PER_MS }
}

/// Does nothing for a while, or until a signal comes.
pub(super) fn nap(ms: u32) {
    sleep(timespec(ms));
}

fn sleep(time: Timespec) {
    let _ = poll(&mut [], Some(&time));
}
