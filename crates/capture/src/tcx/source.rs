//! The source over the hooks of all interfaces.

use super::program::{BYTES, CAPLEN, LEN, NUMBER, TIME};
use super::ring::{Reader, RingRecord};
use crate::ebpf::{Link, ReadCounts, SharedMemory, add_finished, wait_for_programs};
use crate::limits::{TCX_BEHIND_NS, TCX_CLOCK_SLACK_NS, TCX_DRAIN_MS, TCX_GATHER_NS};
use crate::live::clock::{pause_ms, pause_ns, steady, system};
use crate::live::driver::{Links, LiveDevice};
use crate::live::{Handover, LinkState, LiveOptions};
use crate::sys::bpf::RecordRing;
use crate::sys::packet::PacketSocket;
use crate::xdp::link::{Interfaces, LinkInfo, MissedFrames};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_packet::interface::{CapturePoint, InterfaceNames};
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, FrameBatch, LinkType, Lost, SourceError};

/// An interface that is captured.
pub(super) struct HookedPort {
    index: u32,
    link: LinkType,
    /// The programs at its hook; none once the capture ends.
    links: Vec<Link>,
    _promiscuous: Option<PacketSocket>,
    counts: Option<ReadCounts>,
    delivered: u64,
    missed: MissedFrames,
}

impl HookedPort {
    pub(super) fn new(
        interface: &LinkInfo,
        link: LinkType,
        links: Vec<Link>,
        promiscuous: Option<PacketSocket>,
        counts: Option<ReadCounts>,
    ) -> HookedPort {
        HookedPort {
            index: interface.index,
            link,
            links,
            _promiscuous: promiscuous,
            counts,
            delivered: 0,
            missed: MissedFrames::from(interface),
        }
    }
}

/// The ring, and the interfaces whose hooks write to it.
pub(super) struct TcxHooks {
    ring: Reader<RecordRing>,
    ports: Vec<HookedPort>,
    /// By the numbers of records.
    points: Vec<CapturePoint>,
    /// The points of the batch that is being filled.
    of_batch: Vec<CapturePoint>,
    /// The counts of packets that found no room, by interface.
    lost: SharedMemory,
    known: Interfaces,
    names: InterfaceNames,
    clock: Offset,
    snaplen: u32,
    gather_ns: u64,
    delivered: u64,
    /// How many that were when packets were waited for.
    waited_at: u64,
}

/// The nanoseconds by which the system's clock is ahead of the one whose times records bear.
#[derive(Clone, Copy)]
struct Offset(i64);

impl Offset {
    /// Reads both clocks. They take the same steps of frequency, so that a small difference is that
    /// of the reading.
    fn look(&mut self) {
        let (before, now) = (steady(), system());
        let between = before + (steady() - before) / 2;
        let offset = now.saturating_sub(between);
        if offset.abs_diff(self.0) > TCX_CLOCK_SLACK_NS {
            self.0 = offset;
        }
    }
}

/// The fields of the head of a record.
struct Head {
    ts: i64,
    len: u32,
    caplen: u32,
    number: usize,
}

impl Head {
    /// Reads it. The length that a record says is not believed beyond the record.
    #[inline(always)]
    fn read(bytes: &[u8], record: RingRecord) -> Option<Head> {
        let head = bytes.get(record.start..)?.first_chunk::<BYTES>()?;
        let u32_at = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| head[at + i]));
        let ts = i64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| head[TIME + i]));
        let room = record.len.checked_sub(BYTES)? as u32;
        let (len, caplen, number) = (u32_at(LEN), u32_at(CAPLEN), u32_at(NUMBER) as usize);
        Some(Head { ts, len, caplen: caplen.min(room), number })
    }
}

impl TcxHooks {
    pub(super) fn new(
        ring: RecordRing,
        lost: SharedMemory,
        (ports, points): (Vec<HookedPort>, Vec<CapturePoint>),
        known: Interfaces,
        options: &LiveOptions,
    ) -> TcxHooks {
        TcxHooks {
            ring: Reader::new(Arc::new(ring)),
            ports,
            points,
            of_batch: Vec::with_capacity(BATCH),
            lost,
            known,
            names: options.interfaces.clone(),
            clock: Offset(i64::MIN),
            snaplen: options.snaplen,
            gather_ns: match options.handover {
                Handover::Blocks => TCX_GATHER_NS,
                Handover::AtOnce => 0,
            },
            delivered: 0,
            waited_at: 0,
        }
    }

    /// While packets come, waits for more of them than one. The room of those that were read is
    /// not given back meanwhile: the kernel wakes a reader that has given back all.
    fn gather(&mut self) -> bool {
        let came = std::mem::replace(&mut self.waited_at, self.delivered) != self.delivered;
        if !came || self.gather_ns == 0 {
            return false;
        }
        pause_ns(self.gather_ns);
        self.ring.peek().is_some()
    }

    fn lost_of(&self, at: usize) -> Lost {
        let ring = self.lost.words().get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        Lost { interface: self.ports[at].missed.get(), kernel: 0, ring }
    }
}

impl LiveDevice for TcxHooks {
    const LOSSES_EVERY_MS: u32 = crate::limits::LOSSES_EVERY_MS;

    /// After the end, the ring holds what came before.
    fn look(&mut self, _until: i64, _links: &mut Links) -> Result<bool, SourceError> {
        let short = self.ring.held() > self.ring.size() / 4 || !self.ring.can_lend();
        if short {
            self.ring.give_back();
        }
        Ok(self.ring.can_lend() && self.ring.peek().is_some())
    }

    fn is_fresh(&self) -> bool {
        true
    }

    fn lend(&mut self, batch: &mut FrameBatch, seq: u64) {
        self.clock.look();
        let TcxHooks { ring, ports, points, of_batch, clock, snaplen, .. } = self;
        of_batch.clear();
        ring.lend(|ring, chunk| {
            let bytes = (**chunk).as_ref();
            let mut link = None;
            while of_batch.len() < BATCH {
                let Some(record) = ring.peek() else { break };
                let head = Head::read(bytes, record).filter(|head| head.number < points.len());
                let Some(head) = head else {
                    // No program writes such a record.
                    ring.pass(record);
                    continue;
                };
                let port = &mut ports[head.number / 2];
                if *link.get_or_insert_with(|| {
                    batch.restart(chunk, 0, port.link);
                    port.link
                }) != port.link
                {
                    break;
                }
                let (start, seq) = (record.start + BYTES, seq + of_batch.len() as u64);
                let ts = head.ts.saturating_add(clock.0);
                batch.push(ts, seq, start as u32, head.caplen.min(*snaplen), head.len);
                of_batch.push(points[head.number]);
                port.delivered += 1;
                ring.pass(record);
            }
        });
        self.delivered += self.of_batch.len() as u64;
        batch.set_capture_points(self.of_batch.iter().copied(), &self.names);
    }

    fn wait(&mut self, most_ms: u32, _links: &mut Links) -> Result<(), SourceError> {
        if self.gather() {
            return Ok(());
        }
        for waited_ms in 0..most_ms {
            if self.ring.give_back() {
                // The kernel wakes nobody who has not given back what he read.
                pause_ms(1);
            } else {
                let ms = most_ms - waited_ms;
                let time = Timespec {
                    tv_sec: (ms / 1000).into(),
                    tv_nsec: i64::from(ms % 1000) * 1_000_000,
                };
                // A signal ends it too.
                let _ = poll(&mut [PollFd::new(self.ring.memory(), PollFlags::IN)], Some(&time));
                return Ok(());
            }
            if self.ring.peek().is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A packet whose time was read may not be in the ring yet.
    fn reached(&self, now: Option<i64>) -> Option<i64> {
        Some(now?.saturating_sub(TCX_BEHIND_NS))
    }

    /// The hook of an interface that is gone says nothing.
    fn check(&mut self, links: &mut Links) -> Result<(), SourceError> {
        self.watch(links);
        Ok(())
    }

    fn watch(&mut self, links: &mut Links) {
        for (number, port) in self.ports.iter().enumerate() {
            let state = match self.known.by_index(port.index) {
                Ok(None) => LinkState::Gone,
                Ok(Some(now)) => {
                    port.missed.look(&now);
                    if now.up { LinkState::Up } else { LinkState::Down }
                }
                Err(_) => continue,
            };
            links.turn(number, state);
        }
    }

    fn count_drops(&self) {
        self.ports.iter().for_each(|port| port.missed.ask(&self.known, port.index));
    }

    fn lost(&self) -> Lost {
        let mut lost = Lost::default();
        (0..self.ports.len()).for_each(|at| lost.merge(self.lost_of(at)));
        lost
    }

    /// Takes the programs away: nothing more comes.
    fn close(&mut self, _now: Option<i64>, _links: &Links) -> Result<i64, SourceError> {
        self.ports.iter_mut().for_each(|port| port.links.clear());
        // Where there is no way to wait for programs that run, it takes a while longer.
        let _ = wait_for_programs();
        Ok(i64::MAX)
    }

    /// A program that was running has ended long after so many milliseconds.
    fn is_drained(&self, ending_ms: u32) -> bool {
        ending_ms >= TCX_DRAIN_MS && self.ring.is_empty()
    }

    fn is_held_up(&mut self) -> bool {
        self.ring.peek().is_some()
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |(at, port): (usize, &HookedPort)| {
            let lost = self.lost_of(at);
            let mut account = Account { received: port.delivered, lost, ..Account::default() };
            add_finished(port.counts.as_ref(), &mut account);
            account
        };
        self.ports.iter().enumerate().map(account).collect()
    }
}
