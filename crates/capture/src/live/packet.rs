//! AF_PACKET with rings (packet(7)).
//!
//! The kernel writes frames into a ring that it shares with this process, several rings of an
//! interface if it should write them on several processors at once. A batch refers to the memory
//! its frames lie in, and the kernel gets that back once no batch does: no byte is copied, nothing
//! is allocated and no call is made per batch while frames come.
//!
//! A ring consists of blocks of many frames (TPACKET_V3), or of a slot for each frame
//! (TPACKET_V2), see [`Handover`](super::Handover). The kernel hands a block over when it is full
//! or too old, and before that nobody may read what is in it; milliseconds are the least that can
//! be asked for, and a peer that waits for an answer waits that long with every packet.
//!
//! Every frame that an interface hands to the capture is delivered, filtered, or counted as lost.
//! Rings are read in the order of their oldest frames; the order of frames on different rings is
//! that of their times to within the time of a block, far less than windows wait for.

use super::clock::{Clock, Stopwatch};
use super::indices::Indices;
use super::losses::Losses;
use super::ring::Ring;
use super::{LiveOptions, State, error, open};
use crate::limits::{BATCHES_UNWATCHED, DRAIN_MS, DRAIN_STEP_MS, RING_PAUSE_NS, WAIT_MS};
use crate::sys;
use crate::sys::packet::{Poll, pause};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use weir_packet::source::{Account, FrameBatch, LinkType, Lost, Source, SourceError};

/// Captures from interfaces of the network namespace of the calling thread, by their names;
/// [`ANY`](super::ANY) means all, as cooked frames. It ends when [`LiveOptions::stop`] is set, or
/// when the last of them is removed.
///
/// # Errors
/// When there is no such interface, the process may not, or the kernel refuses what the options
/// ask for.
pub(super) fn open_live(
    names: &[String],
    options: LiveOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let (wires, rings) = open::open(names, &options)?;
    let poll = Poll::new(rings.iter().map(|ring| &ring.socket));
    let mut clock = Clock::new(options.stamps);
    let indices = match wires.iter().any(|wire| wire.index == 0) {
        true => Indices::of_all(&options.interfaces),
        false => {
            let named = wires.iter().map(|wire| (wire.index, wire.name.clone()));
            Indices::of(&options.interfaces, named)
        }
    };
    let losses = Losses::since(clock.time().unwrap_or(i64::MIN), clock.is_foreign());
    let (seq, unwatched, ending) = (0, 0, None);
    let watched = Cell::new(Stopwatch::start());
    Ok(Box::new(Live {
        wires,
        rings,
        poll,
        clock,
        options,
        seq,
        unwatched,
        watched,
        losses,
        indices,
        ending,
        ended: false,
    }))
}

/// An interface.
pub(super) struct Wire {
    name: String,
    index: u32,
    link: LinkType,
    state: State,
    /// Its count of frames dropped, when last asked, and how much it has grown.
    dropped: Cell<(u32, u64)>,
}

impl Wire {
    pub(super) fn new(name: &str, index: u32, link: LinkType, dropped: u32) -> Wire {
        let (name, state, dropped) = (name.to_owned(), State::Up, Cell::new((dropped, 0)));
        Wire { name, index, link, state, dropped }
    }
}

/// Frames of some interfaces.
struct Live {
    wires: Vec<Wire>,
    rings: Vec<Ring>,
    /// Waits for the rings, by the same numbers.
    poll: Poll,
    clock: Clock,
    options: LiveOptions,
    /// The number of the next frame.
    seq: u64,
    /// Batches since interfaces were looked after.
    unwatched: u32,
    /// Since when they were not asked for their counts.
    watched: Cell<Stopwatch>,
    losses: Losses,
    indices: Indices,
    /// Since when no more frames are let in.
    ending: Option<Stopwatch>,
    ended: bool,
}

impl Source for Live {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        // Lets go of its block, which the kernel may be waiting for.
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
            if let (Ok(false), Some(gap)) = (&more, self.losses.gap.take()) {
                batch.set_gap(gap);
                return Ok(true);
            }
        }
        more
    }

    fn is_ready(&mut self) -> bool {
        self.ended || self.oldest().is_some()
    }

    fn account(&self) -> Account {
        Account::of_all(self.interfaces())
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        if self.watched.get().elapsed_ms() >= WAIT_MS && !self.ended {
            self.count_drops(&sys::interface::list().unwrap_or_default());
        }
        let account = |(number, wire): (usize, &Wire)| {
            let mut account = Account::default();
            account.lost.interface = wire.dropped.get().1;
            for ring in self.rings.iter().filter(|ring| ring.wire == number) {
                let counts = ring.counts();
                account.received += counts.delivered + counts.refused;
                account.filtered += counts.refused;
                let (kernel, ring) = (counts.unread, ring.told().dropped);
                account.lost.merge(Lost { interface: 0, kernel, ring });
            }
            (wire.name.clone(), account)
        };
        self.wires.iter().enumerate().map(account).collect()
    }
}

impl Live {
    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if let Some(ring) = self.oldest() {
            self.unwatched += 1;
            if self.unwatched >= BATCHES_UNWATCHED {
                self.poll.wait(0);
                self.look_after()?;
            }
            self.end_if_asked()?;
            self.deliver(ring, batch);
            return Ok(true);
        }
        self.wait(batch)
    }

    /// The ring whose next frame is the oldest.
    fn oldest(&mut self) -> Option<usize> {
        let heads = self.rings.iter_mut().enumerate().filter_map(|(number, ring)| {
            ring.load();
            ring.head().map(|ts| (ts, number))
        });
        heads.min().map(|(_, number)| number)
    }

    fn deliver(&mut self, ring: usize, batch: &mut FrameBatch) {
        if self.rings[ring].is_fresh() && self.losses.are_due() {
            self.look_for_losses();
        }
        let ring = &mut self.rings[ring];
        ring.fill(batch, self.wires[ring.wire].link, self.seq, &mut self.indices);
        self.seq += batch.len() as u64;
        if let Some(&ts) = batch.ts().last() {
            self.clock.saw(ts);
        }
        if let Some(&ts) = batch.ts().first() {
            self.losses.saw(ts);
        }
        self.losses.tell(batch);
    }

    /// Asks what was lost until now.
    fn look_for_losses(&mut self) {
        if self.watched.get().elapsed_ms() >= WAIT_MS {
            self.count_drops(&sys::interface::list().unwrap_or_default());
        }
        let before = self.clock.time();
        let interface = self.wires.iter().map(|wire| wire.dropped.get().1).sum();
        let mut lost = Lost { interface, ..Lost::default() };
        for ring in &self.rings {
            lost.kernel += ring.counts().unread;
            lost.ring += ring.told().dropped;
        }
        self.losses.take_all(lost, (before, self.clock.time()));
    }

    /// Waits for frames; where none come, says with an empty batch what time is reached.
    fn wait(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let waited = Stopwatch::start();
        loop {
            self.end_if_asked()?;
            // What came until this moment is in the rings, or on its way there.
            let now = self.clock.now();
            if let Some(ring) = self.oldest() {
                self.deliver(ring, batch);
                return Ok(true);
            }
            self.losses.empty();
            if self.is_over() {
                return Ok(false);
            }
            let elapsed = waited.elapsed_ms();
            if elapsed >= WAIT_MS {
                if let Some(ts) = now {
                    batch.set_reached(ts);
                }
                self.watch();
                self.look_for_losses();
                self.losses.tell(batch);
                self.look_after()?;
                return Ok(true);
            }
            let most = if self.ending.is_none() { WAIT_MS } else { DRAIN_STEP_MS };
            self.poll.wait(most.min(WAIT_MS - elapsed));
            self.look_after()?;
            if self.oldest().is_none() && waited.elapsed_ms() < elapsed + most {
                // A ring is ready for the kernel while its last block or slot is not given back.
                pause(RING_PAUSE_NS);
            }
        }
    }

    /// Lets no more frames in, once that is asked for.
    fn end_if_asked(&mut self) -> Result<(), SourceError> {
        let asked = self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if self.ending.is_some() || !asked {
            return Ok(());
        }
        self.ending = Some(Stopwatch::start());
        for ring in &self.rings {
            let name = &self.wires[ring.wire].name;
            ring.mute().map_err(|e| error(name, e))?;
        }
        Ok(())
    }

    /// Whether nothing will come any more.
    fn is_over(&mut self) -> bool {
        if self.ending.is_none() && self.wires.iter().all(|wire| wire.state == State::Gone) {
            self.ending = Some(Stopwatch::start());
        }
        let Some(ending) = self.ending else { return false };
        ending.elapsed_ms() >= DRAIN_MS || self.rings.iter().all(Ring::is_drained)
    }

    /// Learns what became of interfaces whose sockets failed.
    fn look_after(&mut self) -> Result<(), SourceError> {
        self.unwatched = 0;
        for number in 0..self.rings.len() {
            let ring = &mut self.rings[number];
            if !self.poll.failed(number) && !ring.has_failed() {
                continue;
            }
            let wire = ring.wire;
            let name = &self.wires[wire].name;
            match ring.take_error().map_err(|e| error(name, e))? {
                Some(e) if e.raw_os_error() == Some(libc::ENETDOWN) => {
                    self.turn(wire, State::Down);
                }
                Some(e) => return Err(error(name, e)),
                None => {}
            }
        }
        self.look_for_gone();
        Ok(())
    }

    /// Finds out which of the interfaces that are down are there no more.
    fn look_for_gone(&mut self) {
        for number in 0..self.rings.len() {
            let ring = &self.rings[number];
            let gone = || matches!(ring.socket.interface(), Ok(None));
            if self.wires[ring.wire].state == State::Down && gone() {
                self.turn(ring.wire, State::Gone);
            }
            if self.wires[self.rings[number].wire].state == State::Gone {
                self.poll.forget(number);
            }
        }
    }

    /// Asks interfaces how they are.
    fn watch(&mut self) {
        let Ok(known) = sys::interface::list() else { return };
        self.count_drops(&known);
        for number in 0..self.wires.len() {
            let wire = &self.wires[number];
            let up = |f: &&sys::interface::Facts| {
                f.index == wire.index && f.flags & libc::IFF_UP as u32 != 0
            };
            if wire.state == State::Down && known.iter().any(|f| up(&f)) {
                self.turn(number, State::Up);
            }
        }
    }

    fn count_drops(&self, known: &[sys::interface::Facts]) {
        for wire in &self.wires {
            let (last, sum) = wire.dropped.get();
            if let Some(facts) = known.iter().find(|f| f.index == wire.index) {
                let more = facts.dropped.wrapping_sub(last);
                wire.dropped.set((facts.dropped, sum + u64::from(more)));
            }
        }
        self.watched.set(Stopwatch::start());
    }

    /// Moves an interface to a state, and tells of it if that is another.
    fn turn(&mut self, wire: usize, state: State) {
        let wire = &mut self.wires[wire];
        if wire.state == state || wire.state == State::Gone {
            return;
        }
        wire.state = state;
        let name = wire.name.clone();
        self.options.tell(&state.event(name));
    }
}
