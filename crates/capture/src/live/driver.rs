//! The one driver of live sources: it waits, ends, keeps time, counts losses and
//! reports what happens to interfaces. Frames come from a [`LiveDevice`], which lends them a batch
//! at a time.
//!
//! A capture ends when its stop flag is set, when all its interfaces are removed, or when the
//! device fails. Frames that came before that are delivered, and what was lost until then is said.

use super::clock::{Clock, Stopwatch};
use super::event::{LinkState, ReportEvent};
use super::losses::Losses;
use super::options::Stamps;
#[cfg(target_os = "linux")]
use super::watch::Watch;
use crate::limits::{BATCHES_UNWATCHED, DRAIN_MS, DRAIN_STEP_MS, WAIT_MS};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::source::{Account, FrameBatch, Lost, Source, SourceError};

/// Frames of some interfaces, as they come: rings of the kernel, of an adapter, or of a library.
///
/// Calls are made per batch and per wait, never per frame. There are no defaults, so that a device
/// around another can't forget one.
pub trait LiveDevice: Send {
    /// Milliseconds after which counters are asked anew while frames come.
    const LOSSES_EVERY_MS: u32;

    /// Looks for frames, unless some are at hand; whether there are some now. Frames later than
    /// `until` are left out, as far as their times tell; at `i64::MIN` those that were not there
    /// when it was first asked so are.
    fn look(&mut self, until: i64, links: &mut Links) -> Result<bool, SourceError>;

    /// Whether the frames at hand begin what the kernel handed over last.
    fn is_fresh(&self) -> bool;

    /// Fills a batch with frames at hand, of which there are some, numbered from `seq` on.
    fn lend(&mut self, batch: &mut FrameBatch, seq: u64);

    /// Waits for frames, so long at most.
    fn wait(&mut self, most_ms: u32, links: &mut Links) -> Result<(), SourceError>;

    /// The time that all frames to come are later than, where none was found after it was `now`.
    fn reached(&self, now: Option<i64>) -> Option<i64>;

    /// Learns at once what failed, without waiting.
    fn check(&mut self, links: &mut Links) -> Result<(), SourceError>;

    /// Asks interfaces how they are and what they dropped.
    fn watch(&mut self, links: &mut Links);

    /// Asks interfaces what they dropped.
    fn count_drops(&self);

    /// The frames lost so far, with those that interfaces had dropped when they were last asked.
    fn lost(&self) -> Lost;

    /// The capture ends now, if that is known by the clock whose times frames bear. Returns the
    /// last moment whose frames still count, `i64::MAX` where times don't say.
    fn close(&mut self, now: Option<i64>, links: &Links) -> Result<i64, SourceError>;

    /// Whether everything that came before the end, so long ago, was delivered.
    fn is_drained(&self, ending_ms: u32) -> bool;

    /// Whether there are frames to take, though none is at hand: batches hold all the memory.
    fn is_held_up(&mut self) -> bool;

    /// The frames received, filtered and lost on each interface, by the interfaces' numbers.
    fn accounts(&self) -> Vec<Account>;
}

/// The interfaces of a capture by their numbers, and how each was last found.
pub struct Links {
    all: Vec<Link>,
    report: Option<ReportEvent>,
    /// Reports what becomes of them, which then nothing else does.
    #[cfg(target_os = "linux")]
    watch: Option<Watch>,
}

struct Link {
    name: String,
    state: LinkState,
}

impl Links {
    /// Interfaces of these names, all up. Changes of them that a device notices are reported.
    pub fn new(names: impl IntoIterator<Item = String>, report: Option<ReportEvent>) -> Links {
        let all = names.into_iter().map(|name| Link { name, state: LinkState::Up }).collect();
        Links {
            all,
            report,
            #[cfg(target_os = "linux")]
            watch: None,
        }
    }

    /// Reports what the kernel says of them, and not what a device notices.
    #[cfg(target_os = "linux")]
    pub(crate) fn watched(self, watch: Option<Watch>) -> Links {
        Links { watch, ..self }
    }

    /// The name of an interface.
    pub fn name(&self, number: usize) -> &str {
        &self.all[number].name
    }

    /// How an interface was last found.
    pub fn state(&self, number: usize) -> LinkState {
        self.all[number].state
    }

    /// Notes the state of an interface, and reports it if it changed. One that is gone stays gone.
    pub fn turn(&mut self, number: usize, state: LinkState) {
        let link = &mut self.all[number];
        if link.state == state || link.state == LinkState::Gone {
            return;
        }
        link.state = state;
        #[cfg(target_os = "linux")]
        if self.watch.is_some() {
            return;
        }
        if let Some(report) = &self.report {
            report(&state.event(link.name.clone()));
        }
    }

    /// Reports what the kernel said, now and then, and in any case where the capture is over.
    #[inline]
    fn look(&mut self, over: bool) {
        #[cfg(target_os = "linux")]
        if let (Some(watch), Some(report)) = (&mut self.watch, &self.report) {
            watch.look_at_times(over, report);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = over;
    }

    fn are_gone(&self) -> bool {
        self.all.iter().all(|link| link.state == LinkState::Gone)
    }
}

/// How a capture comes to its end.
#[derive(Clone, Copy)]
struct Ending {
    since: Stopwatch,
    /// The last moment whose frames still count.
    until: i64,
}

/// How a device is driven.
#[derive(Default)]
pub struct Driving {
    /// The clock that says when a frame came.
    pub stamps: Stamps,
    /// Whether frames may have been lost before the driver was made, since devices were opened.
    pub began_before: bool,
    /// Ends the capture.
    pub stop: Option<Arc<AtomicBool>>,
}

/// A live source: a device, and what drives it.
pub struct Driver<D> {
    device: D,
    links: Links,
    clock: Clock,
    losses: Losses,
    stop: Option<Arc<AtomicBool>>,
    /// The number of the next frame.
    seq: u64,
    /// Batches since the device was checked.
    unchecked: u32,
    /// Since when interfaces were not asked for their counts.
    watched: Cell<Stopwatch>,
    ending: Option<Ending>,
    /// Why the device can't go on, found while the caller only asked whether frames are there.
    failed: Option<SourceError>,
    ended: bool,
}

impl<D: LiveDevice> Driver<D> {
    /// Drives a device with these interfaces, from now on.
    pub fn new(device: D, links: Links, driving: Driving) -> Driver<D> {
        let mut clock = Clock::new(driving.stamps);
        let since = clock.time().filter(|_| !driving.began_before).unwrap_or(i64::MIN);
        let losses = Losses::since(since, clock.is_foreign());
        Driver {
            device,
            links,
            clock,
            losses,
            stop: driving.stop,
            seq: 0,
            unchecked: 0,
            watched: Cell::new(Stopwatch::start()),
            ending: None,
            failed: None,
            ended: false,
        }
    }

    /// Ends the capture once `stop` is set.
    pub fn end_by(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(Arc::clone(stop));
    }

    /// Replaces the links, which must be of the same interfaces.
    pub(crate) fn set_links(&mut self, links: Links) {
        self.links = links;
    }

    /// The device that is driven.
    pub fn device(&self) -> &D {
        &self.device
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.end_if_asked()?;
        if self.look()? {
            self.unchecked += 1;
            if self.unchecked >= BATCHES_UNWATCHED {
                self.unchecked = 0;
                self.device.check(&mut self.links)?;
            }
            self.deliver(batch);
            return Ok(true);
        }
        self.wait(batch)
    }

    /// Waits for frames; where none come, says with an empty batch what time is reached.
    fn wait(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let waited = Stopwatch::start();
        loop {
            self.end_if_asked()?;
            // Frames that came until this moment are there, or on their way.
            let now = self.clock.time();
            if self.look()? {
                self.deliver(batch);
                return Ok(true);
            }
            self.losses.empty();
            if self.is_over() {
                return Ok(false);
            }
            let elapsed = waited.elapsed_ms();
            if elapsed >= WAIT_MS {
                if let Some(ts) = self.device.reached(now) {
                    batch.set_reached(ts);
                }
                self.watch();
                self.look_for_losses();
                self.losses.report(batch);
                self.device.check(&mut self.links)?;
                return Ok(true);
            }
            let most = if self.ending.is_none() { WAIT_MS } else { DRAIN_STEP_MS };
            self.device.wait(most.min(WAIT_MS - elapsed), &mut self.links)?;
        }
    }

    /// Whether frames are at hand.
    #[inline]
    fn look(&mut self) -> Result<bool, SourceError> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let until = match self.ending {
            None => i64::MAX,
            // Where times don't say when to stop, frames that keep coming would never end it: what
            // is there by now is still taken.
            Some(ending) if ending.until == i64::MAX && ending.is_late() => i64::MIN,
            Some(ending) => ending.until,
        };
        self.device.look(until, &mut self.links)
    }

    fn deliver(&mut self, batch: &mut FrameBatch) {
        if self.device.is_fresh() && self.losses.are_due(D::LOSSES_EVERY_MS) {
            self.look_for_losses();
        }
        self.device.lend(batch, self.seq);
        self.seq += batch.len() as u64;
        if let Some(&ts) = batch.ts().last() {
            self.clock.saw(ts);
        }
        if let Some(&ts) = batch.ts().first() {
            self.losses.saw(ts);
        }
        self.losses.report(batch);
    }

    /// Asks what was lost until now.
    fn look_for_losses(&mut self) {
        if self.watched.get().elapsed_ms() >= WAIT_MS {
            self.watch();
        }
        let time = self.clock.time();
        // Frames of another clock that are still to come may be older than the latest.
        let before = if self.clock.is_foreign() { self.device.reached(time) } else { time };
        let lost = self.device.lost();
        self.losses.take_all(lost, (before, self.clock.time()));
    }

    fn watch(&mut self) {
        self.device.watch(&mut self.links);
        self.watched.set(Stopwatch::start());
    }

    /// Ends the capture once that is asked for: what came until then is still taken.
    #[inline]
    fn end_if_asked(&mut self) -> Result<(), SourceError> {
        let asked = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if !asked || self.ending.is_some() {
            return Ok(());
        }
        let since = Stopwatch::start();
        // It is ending even where it can't be closed.
        self.ending = Some(Ending { since, until: i64::MAX });
        let now = self.clock.time().filter(|_| !self.clock.is_foreign());
        let until = self.device.close(now, &self.links)?;
        self.ending = Some(Ending { since, until });
        Ok(())
    }

    /// Whether nothing will come any more.
    fn is_over(&mut self) -> bool {
        if self.ending.is_none() && self.links.are_gone() {
            self.ending = Some(Ending { since: Stopwatch::start(), until: i64::MAX });
        }
        let Some(ending) = self.ending else { return false };
        if self.device.is_held_up() {
            return false;
        }
        ending.is_late() || self.device.is_drained(ending.since.elapsed_ms())
    }
}

impl Ending {
    /// Whether it was waited for long enough.
    fn is_late(self) -> bool {
        self.since.elapsed_ms() >= DRAIN_MS
    }
}

impl<D: LiveDevice> Source for Driver<D> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        // Lets go of its memory, which the kernel may be waiting for.
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        let more = self.next(batch);
        if !matches!(more, Ok(true)) {
            self.ended = true;
            batch.clear();
            self.watch();
            self.look_for_losses();
            self.links.look(true);
            if let (Ok(false), Some(gap)) = (&more, self.losses.gap.take()) {
                batch.set_gap(gap);
                return Ok(true);
            }
        } else {
            self.links.look(false);
        }
        more
    }

    fn is_ready(&mut self) -> bool {
        if self.ended {
            return true;
        }
        self.look().unwrap_or_else(|e| {
            self.failed = Some(e);
            true
        })
    }

    fn account(&self) -> Account {
        Account::of_all(self.interfaces())
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        if self.watched.get().elapsed_ms() >= WAIT_MS && !self.ended {
            self.device.count_drops();
            self.watched.set(Stopwatch::start());
        }
        let mut accounts = self.device.accounts();
        // It is not known of which interface that was.
        if let Some(first) = accounts.first_mut() {
            first.unread = self.losses.unread;
        }
        let accounts = accounts.into_iter().enumerate();
        accounts.map(|(number, account)| (self.links.name(number).to_owned(), account)).collect()
    }
}
