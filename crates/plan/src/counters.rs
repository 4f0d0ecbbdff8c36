//! The ledger: what happened to everything received. It adds up.

use crate::Program;
use crate::flow::StageFlows;
use std::collections::BTreeMap;
use weir_packet::egress::{Outlet, Refused};
use weir_packet::source::{Account, KernelCounts, Lost};
use weir_packet::unread::Unread;
use weir_packet::walk::{REASONS, Reason};

/// Counts of one run.
///
/// `received = filtered + kernel.finished() + processed + abandoned`, and every processed packet is
/// whole, cut or malformed. Malformed and cut packets are processed too: their readable layers are
/// in the rows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ledger {
    /// Packets read from the source.
    pub received: u64,
    /// Packets that the capture filter refused.
    pub filtered: u64,
    /// The fate of the packets that a program of the query met in the kernel.
    pub kernel: KernelCounts,
    /// Packets that were on a wire and never received; not among those.
    pub lost: Lost,
    /// Packets that went through the query.
    pub processed: u64,
    /// Packets that did not, since the run ended by an error before: they were on their way to a
    /// worker when a stage panicked, or waited to be read.
    pub abandoned: u64,
    /// Processed packets cut by the snap length inside a header.
    pub cut: u64,
    /// Processed packets whose headers contradict themselves, by [`Reason`] (`Reason as usize`).
    pub malformed: [u64; REASONS],
    /// Rows that came after their window had closed, over all windows.
    pub late: u64,
    /// Rows that came so late to sessions that in the order of times they might have come to
    /// others, or ended them elsewhere, and sessions that ended with a row that the watermark had
    /// passed.
    pub lagging: u64,
    /// Packets whose time is before that of a packet that came earlier.
    pub disordered: u64,
    /// Packets whose timestamp was too far ahead to be believed by itself, and never confirmed.
    pub wild: u64,
    /// Packets without a time: of which the capture does not say when they were captured.
    pub untimed: u64,
    /// Packets whose record claims more bytes than a frame can have, and whose length was taken to
    /// be what was captured.
    pub overlong: u64,
    /// The lateness with which no packet would have been late.
    pub behind: BehindClock,
    /// Rows whose group found no room, and scan keys evicted for room.
    pub evicted: u64,
    /// Results outside their type (overflow, division by zero), made absent.
    pub undefined: u64,
    /// Windows that `fill` left out, or could not complete, since windows or rows were too many.
    pub unfilled: u64,
    /// Rows that `join left` and `join anti` left out, since the input ended before it was known
    /// whether they would meet any.
    pub undecided: u64,
    /// Packets that `deduplicate` left out, being copies of others.
    pub copies: u64,
    /// ClientHellos that `hello` found the start of and that did not complete.
    pub unfinished: u64,
    /// The content that fields of the program did not show, since they read a packet at a time: by
    /// protocol and reason.
    pub unread: Unread,
    /// Alerts whose begin was not reported, since a list says so.
    pub suppressed: u64,
    /// Rows that left through the sink.
    pub rows: u64,
    /// Rows that the sink could not take in time; not among those.
    pub refused: u64,
    /// Rows that could not be written, since that failed: a disk was full, or the reader of a pipe
    /// had gone. Not among those either.
    pub unwritten: u64,
    /// The fate of packets that the program handed out.
    pub ends: EndCounts,
    /// Which worker processed how many packets.
    pub shares: Shares,
    /// The counts of each stage.
    pub flows: StageFlows,
}

/// How many packets each worker processed. Where packets are spread in several ways, for pipelines
/// that need different keys, each packet counts once in each of them.
///
/// Any two compare equal: which worker processed a packet is no part of what happened, and differs
/// from run to run.
#[derive(Clone, Default, Debug)]
pub struct Shares {
    /// By worker, then by way.
    of: Vec<Vec<u64>>,
}

impl PartialEq for Shares {
    fn eq(&self, _: &Shares) -> bool {
        true
    }
}

impl Eq for Shares {}

/// The lateness with which no packet would have been late.
///
/// Any two compare equal: it is advice and counts nothing, and probes do not hand it to a merge.
#[derive(Clone, Copy, Default, Debug)]
pub struct BehindClock {
    /// Nanoseconds.
    pub ns: u64,
}

impl PartialEq for BehindClock {
    fn eq(&self, _: &BehindClock) -> bool {
        true
    }
}

impl Eq for BehindClock {}

impl Shares {
    /// Adds packets that a worker processed in one of the ways.
    pub fn add(&mut self, worker: usize, way: usize, packets: u64) {
        if self.of.len() <= worker {
            self.of.resize(worker + 1, Vec::new());
        }
        let ways = &mut self.of[worker];
        if ways.len() <= way {
            ways.resize(way + 1, 0);
        }
        ways[way] += packets;
    }

    /// Of each worker the packets that it processed, by way; of the last ways it may have none.
    pub fn of_workers(&self) -> &[Vec<u64>] {
        &self.of
    }

    /// The packets of each way.
    pub fn of_ways(&self) -> Vec<u64> {
        let ways = self.of.iter().map(Vec::len).max().unwrap_or(0);
        let sum = |way| self.of.iter().filter_map(|worker| worker.get(way)).sum();
        (0..ways).map(sum).collect()
    }

    fn merge(&mut self, other: &Shares) {
        for (worker, ways) in other.of.iter().enumerate() {
            ways.iter().enumerate().for_each(|(way, n)| self.add(worker, way, *n));
        }
    }
}

/// Frames, and their bytes as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Their lengths on the wire, tags put in included.
    pub bytes: u64,
}

impl Traffic {
    /// One more frame, of this length.
    #[inline(always)]
    pub fn add(&mut self, len: u32) {
        self.frames += 1;
        self.bytes += u64::from(len);
    }

    /// More of the same.
    pub fn merge(&mut self, other: Traffic) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// The fate of packets that a program handed out. A packet counts once for each end it came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EndCounts {
    /// Packets that went nowhere.
    pub dropped: Traffic,
    /// Packets that were handed to each outlet of the program: sent or refused.
    pub outlets: BTreeMap<Outlet, Traffic>,
    /// Packets that the outlet did not take, of outlets that refused any.
    pub refused: BTreeMap<Outlet, Refused>,
    /// Packets among the sent that the driver of the outlet may have dropped, at most, since it
    /// went down when the kernel handed them to it; of outlets where there are any.
    pub doubtful: BTreeMap<Outlet, Traffic>,
    /// Packets that were steered to another output, since the one of their key was away.
    pub moved: u64,
    /// Packets that were to be tagged and have no place for a tag.
    pub untagged: u64,
    /// Packets that `anonymize` could not rewrite, and that therefore went nowhere.
    pub withheld: u64,
}

impl EndCounts {
    /// Nothing yet, of all outlets of a program.
    pub fn of(program: &Program) -> EndCounts {
        let outlets = program.outlets().into_iter().map(|o| (o, Traffic::default())).collect();
        EndCounts { outlets, ..EndCounts::default() }
    }

    /// Adds what went to an outlet.
    pub fn add(&mut self, outlet: &Outlet, traffic: Traffic) {
        match self.outlets.get_mut(outlet) {
            Some(sum) => sum.merge(traffic),
            None => drop(self.outlets.insert(outlet.clone(), traffic)),
        }
    }

    /// Adds what an outlet did not take of what went to it.
    pub fn refuse(&mut self, outlet: &Outlet, refused: &Refused) {
        if *refused != Refused::default() {
            self.refused.entry(outlet.clone()).or_default().merge(refused);
        }
    }

    /// Adds what an outlet may have dropped of what it took.
    pub fn doubt(&mut self, outlet: &Outlet, traffic: Traffic) {
        if traffic != Traffic::default() {
            self.doubtful.entry(outlet.clone()).or_default().merge(traffic);
        }
    }

    /// The frames and bytes that an outlet took.
    pub fn sent(&self, outlet: &Outlet) -> Traffic {
        let handed = self.outlets.get(outlet).copied().unwrap_or_default();
        let (frames, bytes) = self.refused.get(outlet).map_or((0, 0), Refused::total);
        Traffic {
            frames: handed.frames.saturating_sub(frames),
            bytes: handed.bytes.saturating_sub(bytes),
        }
    }

    /// Adds the counts of another part of the same run.
    fn merge(&mut self, other: &EndCounts) {
        self.dropped.merge(other.dropped);
        self.untagged += other.untagged;
        self.withheld += other.withheld;
        self.moved += other.moved;
        other.refused.iter().for_each(|(outlet, refused)| self.refuse(outlet, refused));
        other.outlets.iter().for_each(|(outlet, traffic)| self.add(outlet, *traffic));
        other.doubtful.iter().for_each(|(outlet, traffic)| self.doubt(outlet, *traffic));
    }
}

impl Ledger {
    /// Processed packets without a fault.
    pub fn whole(&self) -> u64 {
        self.processed - self.cut - self.malformed_total()
    }

    /// Malformed packets, all reasons.
    pub fn malformed_total(&self) -> u64 {
        self.malformed.iter().sum()
    }

    /// The reasons that occurred, with their counts.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().map(|r| (r, self.malformed[r as usize])).filter(|(_, n)| *n > 0)
    }

    /// Adds the counts of another part of the same run.
    pub fn add(&mut self, other: &Ledger) {
        self.received += other.received;
        self.filtered += other.filtered;
        self.kernel.merge(other.kernel);
        self.lost.merge(other.lost);
        self.processed += other.processed;
        self.abandoned += other.abandoned;
        self.cut += other.cut;
        self.malformed.iter_mut().zip(other.malformed).for_each(|(sum, n)| *sum += n);
        self.late += other.late;
        self.lagging += other.lagging;
        self.disordered += other.disordered;
        self.wild += other.wild;
        self.untimed += other.untimed;
        self.overlong += other.overlong;
        self.behind.ns = self.behind.ns.max(other.behind.ns);
        self.evicted += other.evicted;
        self.undefined += other.undefined;
        self.unfilled += other.unfilled;
        self.undecided += other.undecided;
        self.copies += other.copies;
        self.unfinished += other.unfinished;
        self.unread.merge(other.unread);
        self.suppressed += other.suppressed;
        self.rows += other.rows;
        self.refused += other.refused;
        self.unwritten += other.unwritten;
        self.ends.merge(&other.ends);
        self.shares.merge(&other.shares);
        self.flows.merge(&other.flows);
    }

    /// Takes rows out that were given to the sink and did not leave through it.
    pub fn settle_rows(&mut self, refused: u64, unwritten: u64) {
        (self.refused, self.unwritten) = (refused, self.unwritten + unwritten);
        self.rows = self.rows.saturating_sub(refused + unwritten);
    }

    /// Counts packets as abandoned that were received and not processed, after an error.
    pub fn abandon_rest(&mut self, account: Account, processed: u64) {
        let Account { received, filtered, kernel, lost, .. } = account;
        (self.received, self.filtered, self.lost) = (received, filtered, lost);
        (self.kernel, self.processed) = (kernel, processed);
        self.abandoned = received.saturating_sub(filtered + kernel.finished() + processed);
    }

    /// Whether the sums hold.
    pub fn adds_up(&self) -> bool {
        let handed = |outlet| self.ends.outlets.get(outlet).map_or(0, |n| n.frames);
        let finished = self.filtered + self.kernel.finished() + self.processed;
        self.received == finished + self.abandoned
            && self.ends.refused.iter().all(|(outlet, r)| r.total().0 <= handed(outlet))
            && self.cut + self.malformed_total() <= self.processed
    }
}
