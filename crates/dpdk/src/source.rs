//! The source over all ports.

use crate::clock::{Times, pause, steady, system};
use crate::counts::Tally;
use crate::device::unfit;
use crate::limits::{COUNTS_AGE_NS, LINK_SECONDS, LOOK_EVERY_MS, MESSAGES_MAX};
use crate::limits::{PAUSE_NS, POLL_NS, WAIT_MS};
use crate::sys;
use crate::sys::port::Port;
use crate::{DpdkOptions, Tell};
use std::cell::Cell;
use weir_capture::live::Event;
use weir_packet::interface::{InterfaceNames, Via, Way};
use weir_packet::source::{Account, FrameBatch, Gap, Lost, Source, SourceError};

const NS_PER_MS: i64 = 1_000_000;

/// What is known of the end of a gap, where frames bear the times of a file: frames in the rings
/// may be older than what was lost, so that it ends with one that comes once these were empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Open {
    /// There is none.
    No,
    /// Frames in the rings may be older than it.
    Full,
    /// The rings were empty: what comes now is later.
    Empty,
}

impl Open {
    /// So many frames were taken of the rings, or they were found empty; whether that ends the gap.
    fn ends(&mut self, n: u64, empty: bool) -> bool {
        match *self {
            Open::Full if n == 0 && empty => *self = Open::Empty,
            Open::Empty if n > 0 => {
                *self = Open::No;
                return true;
            }
            _ => {}
        }
        false
    }
}

/// A port that is captured from.
pub(crate) struct Wire {
    name: String,
    via: Via,
    names: InterfaceNames,
    port: Port,
    times: Times,
    /// Whether its link is up, where it says so.
    up: Option<bool>,
    /// When it was switched on.
    since: i64,
    /// What its counters said, and when they were last asked.
    tally: Cell<Tally>,
    counted: Cell<i64>,
    received: u64,
    /// The time behind which none of its frames is to come, where frames bear other times than the
    /// system's.
    reached: Option<i64>,
    /// Frames lost that batches have said, ...
    told: u64,
    /// ... whether it is known until when, and when the last were lost at the latest.
    open: Open,
    until: i64,
}

impl Wire {
    /// A port that receives from now on.
    pub(crate) fn new(
        name: &str,
        port: Port,
        times: Times,
        names: &InterfaceNames,
    ) -> Result<Wire, SourceError> {
        let counts = port.counts().map_err(|e| unfit(name, format!("asking its counters: {e}")))?;
        // Some do not know at once: they are taken to be up until they were.
        let up = port.on().is_up().filter(|up| *up);
        let (name, since, tally) = (name.to_owned(), steady(), Cell::new(Tally::new(counts)));
        let via = Via::new(names.number(&name), Some(Way::In));
        Ok(Wire {
            name,
            via,
            names: names.clone(),
            port,
            times,
            up,
            since,
            tally,
            counted: Cell::new(since),
            received: 0,
            reached: None,
            told: 0,
            open: Open::No,
            until: i64::MIN,
        })
    }

    /// What it has lost, asked anew if that is longer ago than this.
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

    /// What it received and lost.
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
        if self.open.ends(n, port.is_empty()) {
            self.until = self.until.max(batch.ts()[0]);
        }
        self.received += n;
        if n > 0 {
            batch.set_via(0, self.via, &self.names);
        }
        n
    }

    /// How many it has lost that batches have not said.
    fn more_lost(&mut self) -> u64 {
        let lost = self.lost(0).total();
        let more = lost.saturating_sub(self.told);
        self.told += more;
        if more > 0 && self.is_foreign() {
            self.open = Open::Full;
        }
        more
    }

    /// Whether its frames bear times that have nothing to do with the system's.
    fn is_foreign(&self) -> bool {
        matches!(self.times, Times::File(_))
    }

    /// The time behind which none of its frames is to come.
    fn reached(&self, now: i64) -> Option<i64> {
        match self.times {
            Times::System => Some(now),
            _ => self.reached,
        }
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
    /// What time had been reached then, where that is not the system's.
    reached: i64,
    /// Whether batches have said of a gap, and not until when.
    open: bool,
    /// What ends the capture, when what came before it has been said.
    failed: Option<SourceError>,
    /// Frames that were there when somebody asked whether any were.
    ahead: Option<FrameBatch>,
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
            reached: i64::MIN,
            open: false,
            failed: None,
            ahead: None,
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
            // Frames that come meanwhile are as late as those that were there.
            let n = self.wires[at].fill(batch, (self.seq, self.snap), self.now);
            if n > 0 {
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

    /// The time behind which no frame is to come: ports that say different things of time have all
    /// reached the earliest of it.
    fn all_reached(&self) -> Option<i64> {
        self.wires.iter().map(|wire| wire.reached(self.now)).min().flatten()
    }

    /// Says until when frames were lost, once all ports know.
    fn close_gap(&mut self, batch: &mut FrameBatch) {
        if self.open && self.wires.iter().all(|wire| wire.open == Open::No) {
            self.open = false;
            let until = self.wires.iter().map(|wire| wire.until).max().unwrap_or(i64::MIN);
            batch.set_gap(Gap { frames: 0, since: until, until });
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
        let foreign = self.wires.iter().any(Wire::is_foreign);
        let frames = self.wires.iter_mut().map(Wire::more_lost).sum();
        if frames > 0 {
            self.open = foreign;
            batch.set_gap(match foreign {
                true => Gap { frames, since: self.reached, until: Gap::OPEN },
                false => Gap { frames, since, until: self.now },
            });
        }
        self.reached = self.all_reached().unwrap_or(i64::MIN);
        let mut events = Vec::new();
        for wire in &mut self.wires {
            let (port, now) = (&wire.port, self.now);
            wire.times.compare(|| port.ticks().ok(), now);
            let up = port.on().is_up();
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
        match self.wires.iter().find(|wire| wire.port.on().is_removed()) {
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
        if let Some(error) = self.failed.take() {
            self.ended = true;
            return Err(error);
        }
        self.tick();
        let quiet = match &mut self.ahead {
            Some(ahead) if !ahead.is_empty() => {
                std::mem::swap(batch, ahead);
                false
            }
            _ => !self.wait(batch),
        };
        self.close_gap(batch);
        if quiet || steady() - self.looked > i64::from(LOOK_EVERY_MS) * NS_PER_MS {
            // First what was taken and is to be said besides.
            self.failed = self.look_after(batch).err();
        }
        if let Some(reached) = self.all_reached() {
            batch.set_reached(reached);
        }
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        let mut ahead = self.ahead.take().unwrap_or_default();
        let ready = !ahead.is_empty() || self.take(&mut ahead);
        self.ahead = Some(ahead);
        ready || self.ended || self.failed.is_some()
    }

    fn account(&self) -> Account {
        let mut lost = Lost::default();
        self.wires.iter().for_each(|wire| lost.merge(wire.lost(COUNTS_AGE_NS)));
        Account { received: self.seq, lost, ..Account::default() }
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.wires.iter().map(|wire| (wire.name.clone(), wire.account())).collect()
    }
}

impl Drop for DpdkSource {
    fn drop(&mut self) {
        // What drivers say of the end is of no use.
        self.wires.clear();
        sys::said();
    }
}

#[cfg(test)]
mod tests {
    use super::Open;

    #[test]
    fn a_gap_ends_with_a_frame_behind_empty_rings() {
        let mut open = Open::No;
        assert!(!open.ends(0, true) && !open.ends(5, false), "there is none");
        open = Open::Full;
        assert!(!open.ends(5, false), "they may be older");
        assert!(!open.ends(0, false), "there was no buffer");
        assert!(!open.ends(0, true) && !open.ends(0, true));
        assert!(open.ends(1, false));
        assert!(!open.ends(1, false), "once");
    }
}
