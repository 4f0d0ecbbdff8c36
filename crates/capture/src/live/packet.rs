//! AF_PACKET with rings (packet(7)).
//!
//! The kernel writes frames into a ring that it shares with this process, several rings of an
//! interface if it should write them on several processors at once. A batch refers to the memory
//! its frames lie in, and the kernel gets that back once no batch does: no byte is copied, nothing
//! is allocated and no call is made per batch while frames come.
//!
//! A ring consists of blocks of many frames (TPACKET_V3), or of a slot for each frame
//! (TPACKET_V2), see [`Handover`](super::Handover). The kernel hands a block over when it is full
//! or too old, and before that no other may read what is in it; milliseconds are the least that can
//! be asked for, and a peer that waits for an answer waits that long with every packet.
//!
//! A block is used up when it is handed over, however few frames are in it. So where nothing is
//! read for a while, blocks hold some time and not their bytes. Frames that come then overflow into
//! a ring of slots, which all rings of blocks of an interface share (PACKET_FANOUT_FLAG_ROLLOVER).
//!
//! Every frame that an interface hands to the capture is delivered, filtered, or counted as lost.
//! Rings are read in the order of their oldest frames; the order of frames on different rings is
//! that of their times to within the time of a block, far less than windows wait for.

use super::bound::BoundInterface;
use super::clock::{Stopwatch, pause_ns, system};
use super::driver::{Driver, Driving, Links, LiveDevice};
use super::error::error;
use super::event::LinkState;
use super::indices::Indices;
use super::open;
use super::options::{ANY, LiveOptions, Stamps};
use super::ring::{Part, SocketRing};
use super::watch::Watch;
use crate::limits::{OVERFLOW_WAIT_NS, REACHED_BEHIND_NS, RING_PAUSE_NS};
use crate::sys::bpf::wait_for_programs;
use crate::sys::packet::Poll;
use crate::xdp::link::{Interfaces, LinkInfo};
use weir_packet::source::{Account, FrameBatch, Lost, Source, SourceError};

/// Captures from interfaces of the network namespace of the calling thread, by their names;
/// [`ANY`](super::ANY) means all, as cooked frames. It ends when [`LiveOptions::stop`] is set, or
/// when the last of them is removed.
///
/// # Errors
/// When there is no such interface, the process may not, or the kernel refuses what the options
/// ask for.
pub fn open_live(names: &[String], options: LiveOptions) -> Result<Box<dyn Source>, SourceError> {
    // Before the sockets are, so that nothing happens between. Where the kernel does not say, what
    // the sockets find is reported.
    let watch = options.events.as_ref().and_then(|_| Watch::new(names).ok());
    let (interfaces, rings) = open::open(names, &options)?;
    let poll = Poll::new(rings.iter().map(|ring| &ring.socket));
    let indices = match interfaces.iter().any(|interface| interface.index == 0) {
        true => Indices::of_all(&options.interfaces),
        false => {
            let indices = interfaces.iter().map(|interface| interface.index);
            Indices::of(&options.interfaces, indices.zip(names.iter().cloned()))
        }
    };
    // Opened now: once the run has begun, it makes no sockets.
    let known = Interfaces::open().map_err(|e| error(ANY, e))?;
    let waits = options.stamps != Stamps::AdapterUnsynced;
    let (oldest, next_head) = (0, i64::MAX);
    let device =
        PacketSockets { interfaces, known, rings, poll, indices, oldest, next_head, waits };
    let links = Links::new(names.iter().cloned(), options.events).watched(watch);
    let driving = Driving { stamps: options.stamps, stop: options.stop, ..Driving::default() };
    Ok(Box::new(Driver::new(device, links, driving)))
}

/// The rings of some interfaces.
struct PacketSockets {
    interfaces: Vec<BoundInterface>,
    /// Asks how they are.
    known: Interfaces,
    rings: Vec<SocketRing>,
    /// Waits for the rings, by the same numbers.
    poll: Poll,
    indices: Indices,
    /// The ring whose next frame is the oldest, as far as there are frames.
    oldest: usize,
    /// The time of the oldest frame at hand of the others; `i64::MAX` where there is none.
    next_head: i64,
    /// Whether the age of a frame is known, so that one that overflowed can wait for older ones.
    waits: bool,
}

impl LiveDevice for PacketSockets {
    const LOSSES_EVERY_MS: u32 = crate::limits::LOSSES_EVERY_MS;

    fn look(&mut self, _until: i64, _links: &mut Links) -> Result<bool, SourceError> {
        Ok(self.find_oldest())
    }

    fn is_fresh(&self) -> bool {
        self.rings[self.oldest].is_fresh()
    }

    fn lend(&mut self, batch: &mut FrameBatch, seq: u64) {
        let ring = &mut self.rings[self.oldest];
        let link = self.interfaces[ring.interface].link;
        ring.fill(batch, (link, self.next_head), seq, &mut self.indices);
    }

    fn wait(&mut self, most_ms: u32, links: &mut Links) -> Result<(), SourceError> {
        let began = Stopwatch::start();
        self.poll.wait(most_ms);
        self.learn(links)?;
        if !self.find_oldest() && began.elapsed_ms() < most_ms {
            // A ring is ready for the kernel while its last block or slot is not given back.
            pause_ns(RING_PAUSE_NS.into());
        }
        Ok(())
    }

    fn reached(&self, now: Option<i64>) -> Option<i64> {
        // Frames that came shortly before may lie in a block that was not handed over yet.
        Some(now?.saturating_sub(REACHED_BEHIND_NS))
    }

    fn check(&mut self, links: &mut Links) -> Result<(), SourceError> {
        self.poll.wait(0);
        self.learn(links)
    }

    fn watch(&mut self, links: &mut Links) {
        let Ok(known) = self.known.all() else { return };
        self.count(&known);
        for (number, interface) in self.interfaces.iter().enumerate() {
            if links.state(number) == LinkState::Down && interface.is_up(&known) {
                links.turn(number, LinkState::Up);
            }
        }
    }

    fn count_drops(&self) {
        self.count(&self.known.all().unwrap_or_default());
    }

    fn lost(&self) -> Lost {
        let mut lost = Lost::default();
        self.accounts().iter().for_each(|account| lost.merge(account.lost));
        lost
    }

    /// Lets no more frames in.
    fn close(&mut self, _now: Option<i64>, links: &Links) -> Result<i64, SourceError> {
        for ring in &self.rings {
            ring.mute().map_err(|e| error(links.name(ring.interface), e))?;
        }
        if self.interfaces.iter().any(|interface| interface.part.is_some()) {
            // Programs that still run may count a frame that is not in the ring yet. Where there is
            // no way to wait for them, that takes a while longer in any case.
            let _ = wait_for_programs();
        }
        Ok(i64::MAX)
    }

    fn is_drained(&self, _ending_ms: u32) -> bool {
        self.rings.iter().all(SocketRing::is_drained)
    }

    fn is_held_up(&mut self) -> bool {
        false
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |(number, interface): (usize, &BoundInterface)| {
            let mut account = Account::default();
            account.lost.interface = interface.drops();
            if let Some(part) = &interface.part {
                account.kernel = (part.counts)();
                account.received = account.kernel.finished();
            }
            for ring in self.rings.iter().filter(|ring| ring.interface == number) {
                let counts = ring.counts();
                account.received += counts.delivered + counts.refused;
                account.filtered += counts.refused;
                let (kernel, ring) = (counts.unread, ring.kernel_counts().dropped);
                account.lost.merge(Lost { interface: 0, kernel, ring });
            }
            account
        };
        self.interfaces.iter().enumerate().map(account).collect()
    }
}

impl PacketSockets {
    /// Finds the ring whose next frame is the oldest; whether any has one.
    fn find_oldest(&mut self) -> bool {
        let (mut oldest, mut next) = (None, i64::MAX);
        for (number, ring) in self.rings.iter_mut().enumerate() {
            ring.load();
            let Some(ts) = ring.head() else { continue };
            match oldest {
                Some((before, _)) if before <= ts => next = next.min(ts),
                before => {
                    next = before.map_or(next, |(before, _)| next.min(before));
                    oldest = Some((ts, number));
                }
            }
        }
        let Some((ts, number)) = oldest else { return false };
        (self.oldest, self.next_head) = (number, next);
        let alone = self.rings[number].part == Part::Overflow && next == i64::MAX;
        !(alone && self.waits && (0..OVERFLOW_WAIT_NS).contains(&system().saturating_sub(ts)))
    }

    /// Learns what became of interfaces whose sockets failed.
    fn learn(&mut self, links: &mut Links) -> Result<(), SourceError> {
        for number in 0..self.rings.len() {
            let ring = &mut self.rings[number];
            if !self.poll.failed(number) && !ring.has_failed() {
                continue;
            }
            match ring.take_error().map_err(|e| error(links.name(ring.interface), e))? {
                Some(e) if e.raw_os_error() == Some(libc::ENETDOWN) => {
                    links.turn(ring.interface, LinkState::Down);
                }
                Some(e) => return Err(error(links.name(ring.interface), e)),
                None => {}
            }
        }
        self.look_for_gone(links);
        Ok(())
    }

    /// Finds out which of the interfaces that are down are there no more.
    fn look_for_gone(&mut self, links: &mut Links) {
        for (number, ring) in self.rings.iter().enumerate() {
            let gone = || matches!(ring.socket.interface(), Ok(None));
            if links.state(ring.interface) == LinkState::Down && gone() {
                links.turn(ring.interface, LinkState::Gone);
            }
            if links.state(ring.interface) == LinkState::Gone {
                self.poll.forget(number);
            }
        }
    }

    fn count(&self, known: &[LinkInfo]) {
        self.interfaces.iter().for_each(|interface| interface.count_drops(known));
    }
}
