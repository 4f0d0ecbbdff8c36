//! The source over all ports.

use crate::clock::{Times, pause, steady, system};
use crate::counts::Counts;
use crate::device::unfit;
use crate::limits::{LINK_SECONDS, LOOK_EVERY_MS, MESSAGES_MAX, PAUSE_NS, POLL_NS, WAIT_MS};
use crate::sys;
use crate::sys::port::Port;
use crate::{DpdkOptions, Tell};
use std::cell::Cell;
use weir_capture::live::Event;
use weir_packet::source::{Account, FrameBatch, Gap, Lost, Source, SourceError};

const NS_PER_MS: i64 = 1_000_000;

/// A port that is captured from.
pub(crate) struct Wire {
    name: String,
    port: Port,
    times: Times,
    /// Whether its link is up, where it says so.
    up: Option<bool>,
    /// When it was switched on.
    since: i64,
    /// What it had counted before.
    before: Counts,
    lost: Cell<Lost>,
    received: u64,
}

impl Wire {
    /// A port that receives from now on.
    pub(crate) fn new(name: &str, port: Port, times: Times) -> Result<Wire, SourceError> {
        let before = port.counts().map_err(|e| unfit(name, format!("asking its counters: {e}")))?;
        // Some do not know at once: they are taken to be up until they were.
        let up = port.is_up().filter(|up| *up);
        let (name, lost, since) = (name.to_owned(), Cell::default(), steady());
        Ok(Wire { name, port, times, up, since, before, lost, received: 0 })
    }

    /// What it has lost, asked anew.
    fn lost(&self) -> Lost {
        // Counters that can't be read stay.
        if let Ok(now) = self.port.counts() {
            self.lost.set(now.lost_since(self.before, self.port.foreign()));
        }
        self.lost.get()
    }
}

/// A capture by DPDK; see [`open_dpdk`](crate::open_dpdk).
///
/// [`Source::account`] counts frames that batches brought as received, and as lost
/// - by the interface: those that it found faulty (`ierrors`),
/// - by the ring: those for which the device's rings had no room (`imissed`), or no buffer
///   (`rx_nombuf`).
pub(crate) struct DpdkSource {
    wires: Vec<Wire>,
    snap: u32,
    busy_poll: bool,
    tell: Option<Tell>,
    messages: u32,
    /// The port to look at first.
    next: usize,
    seq: u64,
    /// The latest time of the system.
    now: i64,
    ended: bool,
    /// When was last looked after what happens besides frames, by the system's clock, and by one
    /// that nobody sets.
    looked_at: i64,
    looked: i64,
    /// Frames lost that batches have said.
    told: u64,
}

impl DpdkSource {
    pub(crate) fn new(wires: Vec<Wire>, options: DpdkOptions) -> DpdkSource {
        DpdkSource {
            wires,
            snap: options.snap,
            busy_poll: options.busy_poll,
            tell: options.tell,
            messages: 0,
            next: 0,
            seq: 0,
            now: 0,
            ended: false,
            looked_at: 0,
            looked: 0,
            told: 0,
        }
    }

    /// Moves the clock, which never runs backwards.
    fn tick(&mut self) {
        self.now = self.now.max(system());
    }

    /// Fills a batch from the first port, in turn, that has frames; whether one had.
    fn take(&mut self, batch: &mut FrameBatch) -> bool {
        for i in 0..self.wires.len() {
            let at = (self.next + i) % self.wires.len();
            let Wire { port, times, received, .. } = &mut self.wires[at];
            port.collect(false);
            // Frames that come meanwhile are as late as those that were there.
            let now = self.now;
            let n = port.fill(batch, (self.seq, self.snap), |stamp| times.of(stamp, now));
            if n > 0 {
                *received += n;
                self.seq += n;
                self.next = at + 1;
                return true;
            }
        }
        false
    }

    /// Fills a batch as soon as frames come; whether some came in time.
    fn wait(&mut self, batch: &mut FrameBatch) -> bool {
        let since = steady();
        loop {
            if self.take(batch) {
                return true;
            }
            self.tick();
            let waited = steady() - since;
            if waited > i64::from(WAIT_MS) * NS_PER_MS {
                return false;
            }
            // Batches that are let go tell nobody.
            let short = self.wires.iter().any(|wire| wire.port.is_short());
            if short {
                self.wires.iter_mut().for_each(|wire| wire.port.collect(true));
            }
            if short || !self.busy_poll && waited > POLL_NS {
                pause(PAUSE_NS);
                self.tick();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn say(&self, text: &str) {
        if let Some(tell) = &self.tell {
            tell(text);
        }
    }

    /// Looks after what happens besides frames: what was lost, links, clocks, messages.
    fn look_after(&mut self, batch: &mut FrameBatch) -> Result<(), SourceError> {
        // A first time there is not: frames may have been lost since ports were switched on.
        let since = if self.looked_at == 0 { i64::MIN } else { self.looked_at };
        (self.looked_at, self.looked) = (self.now, steady());
        let mut lost = Lost::default();
        self.wires.iter().for_each(|wire| lost.merge(wire.lost()));
        let frames = lost.total().saturating_sub(self.told);
        if frames > 0 {
            self.told = lost.total();
            batch.set_gap(Gap { frames, since, until: self.now });
        }
        let mut events = Vec::new();
        for wire in &mut self.wires {
            let (port, now) = (&wire.port, self.now);
            wire.times.compare(|| port.ticks().ok(), now);
            let up = port.is_up();
            let late = self.looked - wire.since > i64::from(LINK_SECONDS) * 1000 * NS_PER_MS;
            match (wire.up, up) {
                (Some(true), Some(false)) => events.push(Event::Down(wire.name.clone())),
                (None, Some(false)) if late => events.push(Event::Down(wire.name.clone())),
                (Some(false), Some(true)) => events.push(Event::Up(wire.name.clone())),
                (None, Some(true)) => {}
                _ => continue,
            }
            wire.up = up;
        }
        events.iter().for_each(|event| self.say(&event.to_string()));
        self.pass_on(&sys::said());
        match self.wires.iter().find(|wire| wire.port.is_removed()) {
            Some(wire) => Err(unfit(&wire.name, "the device was removed")),
            None => Ok(()),
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

impl Source for DpdkSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        self.tick();
        let quiet = !self.wait(batch);
        if quiet || steady() - self.looked > i64::from(LOOK_EVERY_MS) * NS_PER_MS {
            let well = self.look_after(batch);
            // First what is to be said besides; it will be found again.
            if let Err(error) = well
                && batch.is_empty()
                && batch.gap().is_none()
            {
                self.ended = true;
                return Err(error);
            }
        }
        // Ports that say different things of time have all reached the earliest of it.
        let all = self.wires.iter().map(|wire| wire.times.reached(self.now));
        if let Some(reached) = all.min().flatten() {
            batch.set_reached(reached);
        }
        Ok(true)
    }

    fn account(&self) -> Account {
        let mut lost = Lost::default();
        self.wires.iter().for_each(|wire| lost.merge(wire.lost.get()));
        Account { received: self.seq, lost, ..Account::default() }
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        let account = |wire: &Wire| {
            let (received, lost) = (wire.received, wire.lost());
            (wire.name.clone(), Account { received, lost, ..Account::default() })
        };
        self.wires.iter().map(account).collect()
    }
}

impl Drop for DpdkSource {
    fn drop(&mut self) {
        // What drivers say of the end is of no use.
        self.wires.clear();
        sys::said();
    }
}
