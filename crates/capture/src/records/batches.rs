//! Records that wait to be handed out, and the batches that they go into.

use super::report::RecordReport;
use crate::buffers::Buffers;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use weir_flows::Datagram;
use weir_packet::limits::BATCH;
use weir_packet::record::{RECORD_BYTES, Record};
use weir_packet::source::{Chunk, FrameBatch, Gap, LinkType};

/// The steps of time in which datagrams move the clock. All of one step see the same watermark, so
/// that rows depend neither on how datagrams are read together nor on batches.
const STEP_NS: i64 = 100_000_000;

/// What comes out of datagrams.
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
    /// What was lost when that was last said, and until when.
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
        self.report.read(&datagram, &mut |record: &Record, ts| {
            record.write(bytes);
            times.push(ts);
        });
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
        if self.is_empty() {
            self.bytes.clear();
            self.times.clear();
            self.given = 0;
        }
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
