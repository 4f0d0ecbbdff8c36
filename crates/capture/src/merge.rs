//! Several captures merged by time into one.
//!
//! The frame that comes next is the earliest of those that begin what is left of each capture;
//! of equal times, that of the capture named first. So each capture keeps its own order, even
//! where its times step back. Of a capture one batch is in memory, or two for a moment, and a
//! file is opened for good when the time of its first frame is reached: files of a rotated
//! capture are open one or two at a time.
//!
//! Frames stay where they are while one capture has many in a row; a batch then refers to that
//! capture's memory. Where captures alternate, frames are gathered into a buffer, since batches of
//! a few frames would cost more than the copy.

use crate::buffers::Buffers;
use crate::limits::{MERGE_BUFFER, MERGE_JUMP_NS, MERGE_LOOK, MERGE_RUN};
use crate::options::Options;
use crate::unread::UnreadCapture;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, Source, SourceError};
use weir_packet::time::NO_TIME;

/// When a capture comes next: the time of its next frame, then its place among the captures.
type Due = (i64, usize);

/// Captures that are read as one, by time. Packets are numbered in that order.
pub(crate) struct MergedCaptures {
    options: Options,
    captures: Vec<MergeInput>,
    /// The captures that have a frame left, without the one in `turn`.
    due: BinaryHeap<Reverse<Due>>,
    /// The capture whose frame comes next.
    turn: Option<usize>,
    buffers: Buffers,
    delivered: u64,
    /// Bytes read of captures that have ended.
    bytes_read: u64,
    /// The errors of captures that broke off. The others are read to their end first.
    errors: Vec<SourceError>,
}

/// How far a capture has come.
enum MergeInput {
    /// Its first frames were looked at; it will be opened again when they are due.
    Waiting(UnreadCapture),
    Reading(Box<MergeReader>),
    Ended,
}

impl MergedCaptures {
    /// Captures in the order that they were named; `first` is open already, if it is given.
    ///
    /// # Errors
    /// Where one can't be opened, or is no capture.
    pub(crate) fn new(
        first: Option<Box<dyn Source>>,
        waiting: impl Iterator<Item = UnreadCapture>,
        options: Options,
    ) -> Result<MergedCaptures, SourceError> {
        let mut merged = MergedCaptures {
            options,
            captures: Vec::new(),
            due: BinaryHeap::new(),
            turn: None,
            buffers: Buffers::new(MERGE_BUFFER),
            delivered: 0,
            bytes_read: 0,
            errors: Vec::new(),
        };
        if let Some(source) = first {
            merged.add(source, None);
        }
        for waiting in waiting {
            match waiting.peek(&merged.options)? {
                Some(source) => merged.add(source, Some(waiting)),
                // A capture that can be read only once is read from now on.
                None => {
                    let source = waiting.open(&merged.options)?;
                    merged.add(source, None);
                }
            }
        }
        Ok(merged)
    }

    /// Adds a capture: to be read from `source`, or to be opened when the frames that this one
    /// begins with are due.
    fn add(&mut self, source: Box<dyn Source>, again: Option<UnreadCapture>) {
        let (at, mut reader) = (self.captures.len(), MergeReader::new(source));
        if !reader.load() {
            self.captures.push(MergeInput::Ended);
            return self.end(reader);
        }
        self.due.push(Reverse((reader.key(), at)));
        self.captures.push(match again {
            Some(waiting) => MergeInput::Waiting(waiting),
            None => MergeInput::Reading(Box::new(reader)),
        });
    }

    /// Notes what a capture that has no more frames came to.
    fn end(&mut self, reader: MergeReader) {
        self.bytes_read += reader.source.account().bytes_read;
        self.errors.extend(reader.error);
    }

    /// The capture whose turn it is, and its frames before another one's turn comes.
    fn run(&mut self) -> Option<(usize, Range<usize>)> {
        loop {
            let at = match self.turn {
                Some(at) => at,
                None => self.due.pop()?.0.1,
            };
            self.turn = Some(at);
            self.begin(at);
            let until = self.due.peek().map(|Reverse(due)| *due);
            match &mut self.captures[at] {
                MergeInput::Reading(reader) => return Some((at, reader.run(at, until))),
                _ => self.turn = None,
            }
        }
    }

    /// Opens a capture whose first frame is due, if it was only looked at.
    fn begin(&mut self, at: usize) {
        if !matches!(self.captures[at], MergeInput::Waiting(_)) {
            return;
        }
        let input = std::mem::replace(&mut self.captures[at], MergeInput::Ended);
        let MergeInput::Waiting(waiting) = input else { return };
        let mut reader = match waiting.open(&self.options) {
            Ok(source) => MergeReader::new(source),
            Err(error) => return self.errors.push(error),
        };
        if reader.load() {
            reader.key();
            self.captures[at] = MergeInput::Reading(Box::new(reader));
        } else {
            self.end(reader);
        }
    }

    /// Goes on after the frames that were taken of the capture whose turn it was: those before
    /// position `until`.
    fn advance(&mut self, until: usize) {
        let Some(at) = self.turn.take() else { return };
        let MergeInput::Reading(reader) = &mut self.captures[at] else { return };
        reader.at = until;
        if reader.at < reader.batch.len() || reader.load() {
            self.due.push(Reverse((reader.key(), at)));
        } else if let MergeInput::Reading(reader) =
            std::mem::replace(&mut self.captures[at], MergeInput::Ended)
        {
            self.end(*reader);
        }
    }

    /// Fills `batch`, which is empty, with the frames that come next.
    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let Some((at, run)) = self.run() else {
            return SourceError::all(std::mem::take(&mut self.errors)).map_or(Ok(false), Err);
        };
        let MergeInput::Reading(reader) = &mut self.captures[at] else { return Ok(false) };
        if run.len() >= MERGE_RUN || self.due.is_empty() || run == (0..reader.batch.len()) {
            reader.hand_over(run.clone(), batch);
            batch.renumber(self.delivered - batch.seq()[0]);
            self.advance(run.end);
        } else {
            self.gather(batch);
        }
        self.delivered += batch.len() as u64;
        Ok(true)
    }

    /// Gathers the frames of short runs, as long as runs are short and of one link type.
    fn gather(&mut self, batch: &mut FrameBatch) {
        let mut buffer = self.buffers.take(MERGE_BUFFER, 0);
        let memory = Arc::get_mut(&mut buffer).expect("a buffer just taken has one owner");
        while !batch.is_full() {
            let Some((at, run)) = self.run() else { break };
            let MergeInput::Reading(reader) = &self.captures[at] else { break };
            let from = &reader.batch;
            if batch.is_empty() {
                batch.link = from.link;
            } else if run.len() >= MERGE_RUN || batch.link != from.link {
                break;
            }
            let mut i = run.start;
            while i < run.end && !batch.is_full() {
                let bytes = from.frame(i);
                if bytes.len() > memory.room().len() && !batch.is_empty() {
                    break;
                }
                let seq = self.delivered + batch.len() as u64;
                batch.push_from(from, i, seq, memory.len() as u32);
                memory.extend(bytes);
                i += 1;
            }
            self.advance(i);
            if i < run.end {
                break;
            }
        }
        let chunk = Arc::clone(&buffer) as Chunk;
        batch.settle(&chunk);
        self.buffers.put(buffer);
    }
}

impl Source for MergedCaptures {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        self.next(batch)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let reading = self.captures.iter().map(|input| match input {
            MergeInput::Reading(reader) => reader.source.account().bytes_read,
            MergeInput::Waiting(_) | MergeInput::Ended => 0,
        });
        let bytes_read = self.bytes_read + reading.sum::<u64>();
        Account { received: self.delivered, bytes_read, ..Account::default() }
    }
}

/// A capture that is being read.
struct MergeReader {
    source: Box<dyn Source>,
    batch: FrameBatch,
    /// The first frame of the batch that is left.
    at: usize,
    /// The batch after it, where that had to be looked at already.
    ahead: Option<FrameBatch>,
    /// The latest time that was believed.
    clock: Option<i64>,
    error: Option<SourceError>,
}

impl MergeReader {
    fn new(source: Box<dyn Source>) -> MergeReader {
        let batch = FrameBatch::new();
        MergeReader { source, batch, at: 0, ahead: None, clock: None, error: None }
    }

    /// Goes on to the next batch; `false` if there is none.
    fn load(&mut self) -> bool {
        self.at = 0;
        match self.ahead.take() {
            Some(batch) => self.batch = batch,
            None => self.error = fill(&mut *self.source, &mut self.batch, self.error.take()),
        }
        !self.batch.is_empty()
    }

    /// When the next frame is due: at its time, unless it is far ahead of what the capture had
    /// before, and the frames after it deny it. One frame of a wrong time would keep all those
    /// after it waiting until the other captures have ended.
    fn key(&mut self) -> i64 {
        let ts = self.batch.ts()[self.at];
        let near = self.clock.is_some_and(|clock| ts <= clock.saturating_add(MERGE_JUMP_NS));
        let key = if near { ts } else { self.believed(ts) };
        self.clock = self.clock.max(Some(key));
        key
    }

    /// The time that is believed of the next frame, which says `ts`.
    fn believed(&mut self, ts: i64) -> i64 {
        let left = self.batch.len() - self.at - 1;
        if left < MERGE_LOOK && self.ahead.is_none() && self.error.is_none() {
            let mut ahead = FrameBatch::new();
            self.error = fill(&mut *self.source, &mut ahead, None);
            self.ahead = Some(ahead);
        }
        let ahead = self.ahead.as_ref().map_or(&[][..], FrameBatch::ts);
        let after = self.batch.ts()[self.at + 1..].iter().chain(ahead);
        let after = after.filter(|&&next| next != NO_TIME).take(MERGE_LOOK);
        let (mut all, mut earlier, mut least) = (0, 0, i64::MAX);
        for &next in after {
            all += 1;
            if next < ts.saturating_sub(MERGE_JUMP_NS) {
                (earlier, least) = (earlier + 1, least.min(next));
            }
        }
        match 2 * earlier > all {
            true => self.clock.unwrap_or(least),
            false => ts,
        }
    }

    /// The frames up to the first that comes after the next one of another capture, which is due
    /// `until` then.
    fn run(&mut self, place: usize, until: Option<Due>) -> Range<usize> {
        let ts = self.batch.ts();
        let (mut end, mut clock) = (self.at + 1, self.clock.unwrap_or(i64::MIN));
        // The last time of this capture that comes before the other's.
        let latest =
            until.map_or(i64::MAX, |(t, other)| t.saturating_sub(i64::from(place > other)));
        while end < ts.len() && ts[end] <= latest && ts[end] <= clock.saturating_add(MERGE_JUMP_NS)
        {
            clock = clock.max(ts[end]);
            end += 1;
        }
        self.clock = Some(clock);
        self.at..end
    }

    /// Gives frames where they are.
    fn hand_over(&mut self, run: Range<usize>, batch: &mut FrameBatch) {
        if run == (0..self.batch.len()) {
            std::mem::swap(&mut self.batch, batch);
            self.batch.clear();
            return;
        }
        let (chunk, base) = self.batch.chunk();
        batch.restart(chunk, base, self.batch.link);
        let mut at = [0; BATCH];
        let at = &mut at[..run.len()];
        at.iter_mut().zip(run).for_each(|(at, i)| *at = i as u16);
        batch.extend_from(&self.batch, at, 0);
    }
}

/// Fills a batch; leaves it empty where there is nothing more, and gives the error if one is why.
fn fill(
    source: &mut dyn Source,
    batch: &mut FrameBatch,
    error: Option<SourceError>,
) -> Option<SourceError> {
    loop {
        match source.fill(batch) {
            Ok(true) if batch.is_empty() => {}
            Ok(_) => return error,
            Err(found) => {
                batch.clear();
                return error.or(Some(found));
            }
        }
    }
}
