//! The source over all ports.

use crate::clock::{Times, pause};
use crate::counts::Tally;
use crate::error::DpdkError;
use crate::limits::{COUNTS_AGE_NS, LINK_SECONDS, LOOK_EVERY_MS, MESSAGES_MAX, PAUSE_NS, POLL_NS};
use crate::options::{DpdkOptions, Report};
use crate::sys;
use crate::sys::port::Port;
use std::cell::Cell;
use std::mem;
use weir_capture::limits::WAIT_MS;
use weir_capture::live::clock::{steady, system};
use weir_capture::live::driver::{Driver, Driving, Links, LiveDevice};
use weir_capture::live::{Event, LinkState, Stamps};
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::source::{Account, FrameBatch, Lost, SourceError};

const NS_PER_MS: i64 = 1_000_000;

/// A port that is captured from.
pub(crate) struct Wire {
    name: String,
    point: CapturePoint,
    names: InterfaceNames,
    port: Port,
    times: Times,
    /// Whether its link was up at some time.
    was_up: bool,
    /// When it was switched on.
    since: i64,
    /// The values of its counters, and when they were last asked.
    tally: Cell<Tally>,
    counted: Cell<i64>,
    received: u64,
    /// The time that all its frames to come are later than, where frames bear other times than the
    /// system's.
    reached: Option<i64>,
}

impl Wire {
    /// A port that receives from now on.
    pub(crate) fn new(
        name: &str,
        port: Port,
        times: Times,
        names: &InterfaceNames,
    ) -> Result<Wire, SourceError> {
        let counts = port.counts().map_err(|e| DpdkError::Counters(e).on(name))?;
        let was_up = port.on().is_up() == Some(true);
        let (name, since, tally) = (name.to_owned(), steady(), Cell::new(Tally::new(counts)));
        let point = CapturePoint::new(names.number(&name), Some(Direction::In));
        Ok(Wire {
            name,
            point,
            names: names.clone(),
            port,
            times,
            was_up,
            since,
            tally,
            counted: Cell::new(since),
            received: 0,
            reached: None,
        })
    }

    /// The frames that it has lost, asked anew if that is longer ago than this.
    fn lost(&self, age_ns: i64) -> Lost {
        let (now, mut tally) = (steady(), self.tally.get());
        // Counters that can't be read stay.
        if now - self.counted.get() >= age_ns
            && let Ok(counts) = self.port.counts()
        {
            tally.add(counts);
            self.tally.set(tally);
            self.counted.set(now);
        }
        tally.lost(self.port.unread())
    }

    /// The frames that it received and lost.
    fn account(&self) -> Account {
        let (received, lost) = (self.received, self.lost(COUNTS_AGE_NS));
        Account { received, lost, ..Account::default() }
    }

    /// Fills a batch with frames that have come by now; how many.
    fn fill(&mut self, batch: &mut FrameBatch, (seq, snap): (u64, u32), now: i64) -> u64 {
        let Wire { port, times, .. } = self;
        port.collect(false);
        let n = port.fill(batch, (seq, snap), |stamp| times.of(stamp, now));
        if n > 0 || port.is_empty() {
            self.reached = self.reached.max(times.reached(now, n == 0));
        }
        self.received += n;
        if n > 0 {
            batch.set_capture_point(0, self.point, &self.names);
        }
        n
    }

    /// Whether its frames bear times that have nothing to do with the system's.
    fn is_foreign(&self) -> bool {
        matches!(self.times, Times::File(_))
    }

    /// The time that all its frames to come are later than.
    fn reached(&self, now: i64) -> Option<i64> {
        match self.times {
            Times::System => Some(now),
            _ => self.reached,
        }
    }
}

/// A capture by DPDK; see [`open_dpdk`](crate::open_dpdk).
///
/// [`Source::account`](weir_packet::source::Source::account) counts frames that batches brought as
/// received, and as lost
/// - by the interface: those that it found faulty (`ierrors`),
/// - by the ring: those for which the device's rings had no room (`imissed`), or no buffer
///   (`rx_nombuf`).
pub(crate) fn source(wires: Vec<Wire>, options: DpdkOptions) -> Driver<DpdkPorts> {
    let names: Vec<String> = wires.iter().map(|wire| wire.name.clone()).collect();
    let foreign = wires.iter().any(Wire::is_foreign);
    let stamps = if foreign { Stamps::AdapterUnsynced } else { Stamps::Host };
    let report = options.report.clone();
    let events =
        report.map(|report| Box::new(move |event: &Event| report(&event.to_string())) as _);
    let ports = DpdkPorts {
        wires,
        snap: options.snap,
        busy_poll: options.busy_poll,
        report: options.report,
        messages: 0,
        next: 0,
        seq: 0,
        now: 0,
        left: None,
        ahead: FrameBatch::new(),
    };
    let driving = Driving { stamps, began_before: true, stop: options.stop };
    Driver::new(ports, Links::new(names, events), driving)
}

/// All ports of a capture.
pub(crate) struct DpdkPorts {
    wires: Vec<Wire>,
    snap: u32,
    busy_poll: bool,
    report: Option<Report>,
    messages: u32,
    /// The port to look at first.
    next: usize,
    /// The number of the next frame.
    seq: u64,
    /// The latest time of the system.
    now: i64,
    /// Frames that are still taken, where those that come now are not.
    left: Option<u64>,
    /// Frames at hand: a port has none to show before they are taken.
    ahead: FrameBatch,
}

impl LiveDevice for DpdkPorts {
    const LOSSES_EVERY_MS: u32 = LOOK_EVERY_MS;

    fn look(&mut self, until: i64, _links: &mut Links) -> Result<bool, SourceError> {
        if until == i64::MIN {
            let rings = self.wires.iter().map(|wire| {
                let on = wire.port.on();
                u64::from(on.queues()) * u64::from(on.descriptors())
            });
            // Nothing tells how many frames a ring holds: as many are taken as it has room for.
            self.left.get_or_insert(rings.sum());
        }
        Ok(!self.ahead.is_empty() || self.take())
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn lend(&mut self, batch: &mut FrameBatch, _seq: u64) {
        mem::swap(batch, &mut self.ahead);
        if let Some(reached) = self.all_reached() {
            batch.set_reached(reached);
        }
    }

    /// Asks ports again and again, at first without a pause.
    fn wait(&mut self, most_ms: u32, _links: &mut Links) -> Result<(), SourceError> {
        let since = steady();
        loop {
            if self.take() {
                return Ok(());
            }
            let waited = steady() - since;
            if waited > i64::from(most_ms) * NS_PER_MS {
                return Ok(());
            }
            // A batch that is let go wakes no thread.
            let short = self.wires.iter().any(|wire| wire.port.is_short());
            if short {
                self.wires.iter_mut().for_each(|wire| wire.port.collect(true));
            }
            if short || !self.busy_poll && waited > POLL_NS {
                pause(PAUSE_NS);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn reached(&self, _now: Option<i64>) -> Option<i64> {
        self.all_reached()
    }

    fn check(&mut self, _links: &mut Links) -> Result<(), SourceError> {
        match self.wires.iter().find(|wire| wire.port.on().is_removed()) {
            Some(wire) => Err(DpdkError::Removed.on(&wire.name)),
            None => Ok(()),
        }
    }

    /// Looks after clocks, links, and what DPDK says.
    fn watch(&mut self, links: &mut Links) {
        self.now = self.now.max(system());
        let steady = steady();
        for (number, wire) in self.wires.iter_mut().enumerate() {
            let (port, now) = (&wire.port, self.now);
            wire.times.compare(|| port.ticks().ok(), now);
            // Some links do not know at once: they are taken to be up until they were.
            let late = steady - wire.since > i64::from(LINK_SECONDS) * 1000 * NS_PER_MS;
            match port.on().is_up() {
                Some(true) => {
                    wire.was_up = true;
                    links.turn(number, LinkState::Up);
                }
                Some(false) if wire.was_up || late => links.turn(number, LinkState::Down),
                Some(false) | None => {}
            }
        }
        self.pass_on(&sys::said());
    }

    /// They are read whenever the driver asks what was lost.
    fn count_drops(&self) {}

    fn lost(&self) -> Lost {
        let mut lost = Lost::default();
        self.wires.iter().for_each(|wire| lost.merge(wire.lost(COUNTS_AGE_NS)));
        lost
    }

    fn close(&mut self, _now: Option<i64>, _links: &Links) -> Result<i64, SourceError> {
        Ok(i64::MAX)
    }

    /// Where nothing came for a while, nothing is on its way.
    fn is_drained(&self, ending_ms: u32) -> bool {
        ending_ms >= WAIT_MS
    }

    fn is_held_up(&mut self) -> bool {
        self.left != Some(0) && self.wires.iter().any(|wire| wire.port.is_short())
    }

    fn accounts(&self) -> Vec<Account> {
        self.wires.iter().map(Wire::account).collect()
    }
}

impl DpdkPorts {
    /// Takes frames from the first port, in turn, that has some; whether one had.
    fn take(&mut self) -> bool {
        if self.left == Some(0) {
            return false;
        }
        // The clock never runs backwards. Frames that come meanwhile are as late as those that
        // were there.
        self.now = self.now.max(system());
        for i in 0..self.wires.len() {
            let at = (self.next + i) % self.wires.len();
            let n = self.wires[at].fill(&mut self.ahead, (self.seq, self.snap), self.now);
            if n > 0 {
                self.seq += n;
                self.left = self.left.map(|left| left.saturating_sub(n));
                self.next = at + 1;
                return true;
            }
        }
        false
    }

    /// The time after which all frames are to come: ports that say different things of time have
    /// all reached the earliest of it.
    fn all_reached(&self) -> Option<i64> {
        self.wires.iter().map(|wire| wire.reached(self.now)).min().flatten()
    }

    fn say(&self, text: &str) {
        if let Some(report) = &self.report {
            report(text);
        }
    }

    /// Passes on what DPDK says.
    fn pass_on(&mut self, said: &str) {
        for line in said.lines().filter(|line| !line.trim().is_empty()) {
            self.messages = self.messages.saturating_add(1);
            if self.messages <= MESSAGES_MAX {
                self.say(&format!("DPDK: {line}"));
            } else if self.messages == MESSAGES_MAX + 1 {
                self.say("DPDK: further messages are not passed on");
            }
        }
    }
}

impl Drop for DpdkPorts {
    fn drop(&mut self) {
        // The messages of drivers about the end are of no use.
        self.wires.clear();
        sys::said();
    }
}
