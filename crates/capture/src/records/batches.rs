//! Records that wait to be handed out, and the batches that they go into.

use super::report::RecordReport;
use crate::buffers::Buffers;
use crate::limits::{RECORD_AHEAD_NS, RECORDS_AT_ONCE};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use weir_flows::Datagram;
use weir_packet::limits::BATCH;
use weir_packet::record::{FlowRecord, RECORD_BYTES};
use weir_packet::source::{Chunk, FrameBatch, Gap, LinkType};

/// The steps of time in which datagrams move the clock. All of one step see the same watermark, so
/// that rows depend neither on how datagrams are read together nor on batches.
const STEP_NS: i64 = 100_000_000;

/// Records that were handed out before memory of them is let go.
const GIVEN_KEPT: usize = 16 * BATCH;

/// The flow records of datagrams, until batches take them.
pub(super) struct RecordBatches {
    report: RecordReport,
    /// How long after its end a record may come.
    lateness_ns: i64,
    /// Records as frames, one after the other, and the time of each; some may be handed out.
    bytes: Vec<u8>,
    times: Vec<i64>,
    given: usize,
    /// Before which records a time was reached.
    marks: VecDeque<Mark>,
    buffers: Buffers,
    /// The number of the next record.
    seq: u64,
    /// The latest step of time that datagrams have come up to.
    reached: i64,
    /// The records that a batch has reported as lost, and the time up to which it did.
    lost: u64,
    lost_until: i64,
}

/// A step of time.
struct Mark {
    /// Records before it.
    at: usize,
    reached: i64,
}

impl RecordBatches {
    pub(super) fn new(report: RecordReport, lateness_ns: i64) -> RecordBatches {
        RecordBatches {
            report,
            lateness_ns,
            bytes: Vec::new(),
            times: Vec::new(),
            given: 0,
            marks: VecDeque::new(),
            buffers: Buffers::new(BATCH * RECORD_BYTES),
            seq: 0,
            reached: i64::MIN,
            lost: 0,
            lost_until: i64::MIN,
        }
    }

    /// Reads a datagram that came from there at this time.
    pub(super) fn take(&mut self, from: (IpAddr, u16), received: i64, payload: &[u8]) {
        self.reach(received);
        let (bytes, times) = (&mut self.bytes, &mut self.times);
        let (address, port) = from;
        let datagram = Datagram { address, port, received, payload };
        let (mut ahead, mut taken) = (0, 0);
        self.report.read(&datagram, &mut |record: &FlowRecord, ts| {
            taken += 1;
            if taken > RECORDS_AT_ONCE {
                return;
            }
            let is_ahead = ts.saturating_sub(received) > RECORD_AHEAD_NS;
            ahead += u64::from(is_ahead);
            record.write(bytes);
            times.push(if is_ahead { received } else { ts });
        });
        self.report.add_ahead(ahead);
        self.report.add_crowded(taken.saturating_sub(RECORDS_AT_ONCE) as u64);
    }

    /// All datagrams until `now` have come.
    pub(super) fn reach(&mut self, now: i64) {
        let step = now.saturating_sub(now.rem_euclid(STEP_NS));
        if step > self.reached {
            self.reached = step;
            self.marks.push_back(Mark { at: self.times.len(), reached: step });
        }
    }

    /// Records that wait.
    pub(super) fn len(&self) -> usize {
        self.times.len() - self.given
    }

    /// Whether neither records nor a step of time are to be handed out.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0 && self.marks.is_empty()
    }

    /// Records that were handed out.
    pub(super) fn received(&self) -> u64 {
        self.seq
    }

    /// Fills a batch with records that wait, up to the next step of time. If it ends there, it says
    /// what time is reached, and what was lost.
    pub(super) fn lend(&mut self, batch: &mut FrameBatch) {
        let until = self.marks.front().map_or(self.times.len(), |mark| mark.at);
        let n = until.saturating_sub(self.given).min(BATCH);
        if n > 0 {
            self.fill(batch, n);
        }
        if self.given == until
            && let Some(mark) = self.marks.pop_front()
        {
            self.say_reached(batch, mark.reached);
        }
        // Under load there is always something that waits.
        if self.given == self.times.len() || self.given >= GIVEN_KEPT {
            self.let_go();
        }
    }

    /// Lets go of records that were handed out.
    fn let_go(&mut self) {
        self.bytes.drain(..self.given * RECORD_BYTES);
        self.times.drain(..self.given);
        // The memory that a flood of records needed is given back.
        if self.times.capacity() > 2 * GIVEN_KEPT && self.times.len() <= GIVEN_KEPT {
            self.bytes.shrink_to(GIVEN_KEPT * RECORD_BYTES);
            self.times.shrink_to(GIVEN_KEPT);
        }
        self.marks.iter_mut().for_each(|mark| mark.at -= self.given);
        self.given = 0;
    }

    /// Fills a batch with so many records.
    fn fill(&mut self, batch: &mut FrameBatch, n: usize) {
        let start = self.given * RECORD_BYTES;
        let mut buffer = self.buffers.take(n * RECORD_BYTES, 0);
        Arc::get_mut(&mut buffer)
            .expect("a buffer that was taken is nobody else's")
            .extend(&self.bytes[start..][..n * RECORD_BYTES]);
        let chunk: Chunk = buffer.clone();
        batch.restart(&chunk, 0, LinkType::FLOW_RECORDS);
        self.buffers.put(buffer);
        let len = RECORD_BYTES as u32;
        for (i, &ts) in self.times[self.given..][..n].iter().enumerate() {
            batch.push(ts, self.seq, i as u32 * len, len, len);
            self.seq += 1;
        }
        self.given += n;
    }

    fn say_reached(&mut self, batch: &mut FrameBatch, reached: i64) {
        batch.set_reached(reached.saturating_sub(self.lateness_ns));
        let lost = self.report.lost();
        if lost > self.lost {
            // Records of any time in between may be missing.
            let since = self.lost_until.saturating_sub(self.lateness_ns);
            batch.set_gap(Gap { frames: lost - self.lost, since, until: reached });
        }
        (self.lost, self.lost_until) = (lost, reached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A NetFlow 5 datagram of so many flows, the first of which has this number.
    fn netflow5(count: u16, sequence: u32) -> Vec<u8> {
        let mut datagram = vec![0; 24 + 48 * usize::from(count)];
        datagram[1] = 5;
        datagram[2..4].copy_from_slice(&count.to_be_bytes());
        datagram[16..20].copy_from_slice(&sequence.to_be_bytes());
        datagram
    }

    fn take(batches: &mut RecordBatches, ms: i64, count: u16, sequence: u32) {
        batches.take(([192, 0, 2, 1].into(), 9), ms * 1_000_000, &netflow5(count, sequence));
    }

    /// Sizes of batches, and the milliseconds that they have reached.
    fn lent(batches: &mut RecordBatches) -> Vec<(usize, Option<i64>)> {
        let (mut all, mut batch) = (Vec::new(), FrameBatch::new());
        while !batches.is_empty() {
            batch.clear();
            batches.lend(&mut batch);
            all.push((batch.len(), batch.reached().map(|ns| ns / 1_000_000)));
        }
        all
    }

    #[test]
    fn steps_of_time_stand_before_their_records() {
        let mut batches = RecordBatches::new(RecordReport::default(), 5_000_000_000);
        take(&mut batches, 10_050, 3, 0);
        take(&mut batches, 10_090, 2, 3);
        take(&mut batches, 10_230, 1, 5);
        let expected = [(0, Some(5000)), (5, Some(5200)), (1, None)];
        assert_eq!(lent(&mut batches), expected);
        // A clock that steps back moves nothing; a quiet wire does.
        take(&mut batches, 9_000, 1, 6);
        batches.reach(10_399 * 1_000_000);
        assert_eq!(lent(&mut batches), [(1, Some(5300))]);
        assert_eq!(batches.received(), 7);
    }

    #[test]
    fn records_from_the_future_count_for_the_time_at_which_they_came() {
        let second = 1_000_000_000;
        for (sent, time) in [(70u32, 70), (71, 10), (u32::MAX, 10)] {
            let report = RecordReport::default();
            let mut batches = RecordBatches::new(report.clone(), 0);
            let mut datagram = netflow5(2, 0);
            datagram[8..12].copy_from_slice(&sent.to_be_bytes());
            batches.take(([192, 0, 2, 1].into(), 9), 10 * second, &datagram);
            let (mut times, mut batch) = (Vec::new(), FrameBatch::new());
            while !batches.is_empty() {
                batch.clear();
                batches.lend(&mut batch);
                times.extend_from_slice(batch.ts());
            }
            assert_eq!(times, [time * second; 2], "{sent}");
            assert_eq!(report.summary().ahead, if sent > 70 { 2 } else { 0 });
        }
    }

    #[test]
    fn a_template_releases_so_many_records_at_most() {
        let report = RecordReport::default();
        let mut batches = RecordBatches::new(report.clone(), 0);
        let mut send = |id: u16, body: &[u8]| {
            let len = 20 + body.len() as u16;
            let header = [&10u16.to_be_bytes()[..], &len.to_be_bytes(), &[0; 12]].concat();
            let set = [id.to_be_bytes(), (len - 16).to_be_bytes()].concat();
            batches.take(([192, 0, 2, 1].into(), 9), 0, &[&header[..], &set, body].concat());
        };
        send(256, &[6; 60_000]);
        send(256, &[6; 60_000]);
        send(2, &[1, 0, 0, 1, 0, 4, 0, 1]);
        assert_eq!(batches.len(), RECORDS_AT_ONCE);
        let (crowded, lost) = (report.summary().crowded, report.lost());
        assert_eq!(crowded, 120_000 - RECORDS_AT_ONCE as u64);
        assert!(lost >= crowded);
    }

    /// A datagram of NetFlow 9 with a template and so many records of a byte.
    fn netflow9(sequence: u32, records: u16) -> Vec<u8> {
        let header = [9u32 << 16 | 1, 5000, 1000, sequence, 7].map(u32::to_be_bytes).concat();
        let template = [0u16, 12, 256, 1, 4, 1].map(u16::to_be_bytes).concat();
        let data = [256u16, 4 + records].map(u16::to_be_bytes).concat();
        [header, template, data, vec![6; records.into()]].concat()
    }

    /// The frames of all gaps so far.
    fn missed(batches: &mut RecordBatches, ms: i64) -> u64 {
        let (mut all, mut batch) = (0, FrameBatch::new());
        batches.reach(ms * 1_000_000);
        while !batches.is_empty() {
            batch.clear();
            batches.lend(&mut batch);
            all += batch.gap().map_or(0, |gap| gap.frames);
        }
        all
    }

    #[test]
    fn losses_are_records_whatever_sequence_numbers_count() {
        let report = RecordReport::default();
        let mut batches = RecordBatches::new(report.clone(), 0);
        let from = |last: u8| ([192, 0, 2, last].into(), 9);
        // Of 20 records a datagram, 3 datagrams are missing; of flows 30.
        batches.take(from(1), 0, &netflow9(1, 20));
        batches.take(from(1), 0, &netflow9(5, 20));
        batches.take(from(2), 0, &netflow5(2, 0));
        batches.take(from(2), 0, &netflow5(2, 32));
        assert_eq!((missed(&mut batches, 1000), report.lost()), (90, 90));
    }

    #[test]
    fn drops_that_sequence_numbers_miss_count_once() {
        let report = RecordReport::default();
        let mut batches = RecordBatches::new(report.clone(), 0);
        take(&mut batches, 1000, 30, 0);
        take(&mut batches, 1000, 30, 30);
        // The kernel drops two datagrams, and then their numbers are missing.
        report.set_dropped(2);
        assert_eq!((missed(&mut batches, 2000), report.losses().kernel), (60, 60));
        take(&mut batches, 2500, 30, 120);
        assert_eq!((missed(&mut batches, 3000), report.lost()), (0, 60));
        // Another one is lost on the way, ...
        take(&mut batches, 3500, 30, 180);
        assert_eq!((missed(&mut batches, 4000), report.losses().interface), (30, 30));
        // ... and the kernel drops more than numbers can say yet.
        report.set_dropped(5);
        assert_eq!((missed(&mut batches, 5000), report.lost()), (60, 150));
        assert_eq!(report.losses().kernel, 120);
    }

    /// Memory that a flood took is given back after it.
    #[test]
    fn memory_of_a_flood_is_given_back() {
        let mut batches = RecordBatches::new(RecordReport::default(), 0);
        for i in 0..4000 {
            take(&mut batches, 1000, 30, i * 30);
        }
        assert!(batches.bytes.capacity() >= 4000 * 30 * RECORD_BYTES);
        missed(&mut batches, 2000);
        assert!(batches.bytes.capacity() <= 2 * GIVEN_KEPT * RECORD_BYTES);
        assert!(batches.times.capacity() <= 2 * GIVEN_KEPT);
    }

    #[test]
    fn however_datagrams_are_read_the_batches_say_the_same() {
        let all: Vec<(i64, u16, u32)> = (0..400).map(|i| (i64::from(i) * 37, 30, i * 30)).collect();
        let mut expected = Vec::new();
        for at_once in [1, 7, 400] {
            let mut batches = RecordBatches::new(RecordReport::default(), 0);
            let mut rows = Vec::new();
            let mut batch = FrameBatch::new();
            let mut reached = None;
            for some in all.chunks(at_once) {
                some.iter().for_each(|(ms, count, seq)| take(&mut batches, *ms, *count, *seq));
                while !batches.is_empty() {
                    batch.clear();
                    batches.lend(&mut batch);
                    rows.extend(batch.seq().iter().map(|seq| (*seq, reached)));
                    reached = batch.reached().or(reached);
                }
            }
            assert_eq!(rows.len(), 400 * 30);
            expected = if expected.is_empty() { rows.clone() } else { expected };
            assert_eq!(rows, expected, "{at_once} at once");
        }
    }

    /// Where records always wait, memory of those that were handed out is let go all the same.
    #[test]
    fn memory_is_let_go_under_load() {
        let mut batches = RecordBatches::new(RecordReport::default(), 0);
        let mut batch = FrameBatch::new();
        for i in 0..2000u32 {
            (0..9).for_each(|k| take(&mut batches, i64::from(i), 30, (i * 9 + k) * 30));
            while batches.len() > BATCH {
                batch.clear();
                batches.lend(&mut batch);
            }
            assert!(batches.times.len() <= GIVEN_KEPT + 4 * BATCH);
        }
    }
}
