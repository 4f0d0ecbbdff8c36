//! The latest rows of a program.
//!
//! Rows get their numbers when a client asks for them. Until then they wait as they are, in full
//! batches, so that rows that nobody follows cost no more than their copy. All clients share these
//! rows: each has a cursor, and none has a buffer. A client that reads slowly skips rows, and is
//! told how many.

use crate::block::{BlockBody, RowBlock};
use crate::form::ShownOutput;
use crate::limits::{
    HISTORY_PART_MAX, LATEST_BYTES_MAX, OUTPUT_HISTORY_MIN, PROGRAM_HISTORY_MAX, SPARE_BYTES_MAX,
    UNREAD_BYTES_MAX,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use weir_engine::rows::{Arena, Rows};
use weir_packet::limits::BATCH;
use weir_sink::LineWriter;

/// The latest rows of a program.
#[derive(Default)]
pub(crate) struct History {
    outputs: Vec<OutputHistory>,
    /// The number of the first row since the program began, ...
    begin: u64,
    /// ... and the number that the next row gets.
    next: u64,
    /// Batches that have come and had no number.
    turn: u64,
}

/// The latest rows of an output.
struct OutputHistory {
    shown: ShownOutput,
    writer: Arc<LineWriter>,
    blocks: VecDeque<RowBlock>,
    /// Batches whose rows have no numbers, later than the blocks, each with its turn; all but the
    /// last are full.
    unread: VecDeque<(u64, Rows)>,
    /// Bytes of all of these, ...
    bytes: usize,
    /// ... and of those without numbers.
    unread_bytes: usize,
    /// There is no room for all rows that nobody reads.
    is_long: bool,
    /// Memory of a batch that was left out.
    spare: Option<Rows>,
}

/// Rows of a program that a client has not seen.
pub(crate) struct Found {
    /// The outputs, for a client that saw none of these rows before.
    pub(crate) outputs: Option<Vec<ShownOutput>>,
    /// Rows between these and those that it has seen, which are not kept.
    pub(crate) skipped: u64,
    /// Blocks: the number of the first row, how many rows of it the client has seen, and the rows.
    pub(crate) blocks: Vec<(u64, u64, Arc<BlockBody>)>,
    /// The number of the row after these.
    pub(crate) next: u64,
}

/// Rows that are not kept any more.
pub(crate) struct Forgotten {
    /// Their numbers.
    pub(crate) rows: Range<u64>,
    pub(crate) bytes: usize,
}

impl History {
    /// A program with these outputs, whose first row gets the number `begin`.
    pub(crate) fn new(begin: u64) -> History {
        History { begin, next: begin, ..History::default() }
    }

    /// Its first row gets this number.
    pub(crate) fn begin_at(&mut self, begin: u64) {
        (self.begin, self.next) = (begin, begin);
    }

    /// One more output; gives its number.
    pub(crate) fn add_output(&mut self, shown: ShownOutput, writer: LineWriter) -> usize {
        self.outputs.push(OutputHistory {
            shown,
            writer: Arc::new(writer),
            blocks: VecDeque::new(),
            unread: VecDeque::new(),
            bytes: 0,
            unread_bytes: 0,
            is_long: false,
            spare: None,
        });
        self.outputs.len() - 1
    }

    /// Whether the other has the same outputs.
    pub(crate) fn is_like(&self, other: &History) -> bool {
        self.described().eq(other.described())
    }

    fn described(&self) -> impl Iterator<Item = &ShownOutput> {
        self.outputs.iter().map(|of| &of.shown)
    }

    /// The number that a client begins with: of the first row since the program began, ...
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// ... or, with all earlier rows numbered, of the next one.
    pub(crate) fn next(&mut self) -> u64 {
        self.number();
        self.next
    }

    /// Bytes of all its rows.
    pub(crate) fn bytes(&self) -> usize {
        self.outputs.iter().map(|of| of.bytes).sum()
    }

    /// Appends rows of an output. `is_read`: a client reads what comes.
    pub(crate) fn append(&mut self, output: usize, rows: &Rows, is_read: bool) {
        self.turn += 1;
        let of = &mut self.outputs[output];
        let mut from = 0;
        while from < rows.len {
            if of.unread.back().is_none_or(|(_, last)| last.len == BATCH) {
                let batch = of.spare.take().unwrap_or_else(|| without_order(rows));
                of.unread_bytes += batch.memory();
                of.bytes += batch.memory();
                of.unread.push_back((self.turn, batch));
            }
            let Some((_, last)) = of.unread.back_mut() else { break };
            let (to, before) = (rows.len.min(from + BATCH - last.len), last.memory());
            last.append_cells(rows, from..to);
            let grown = last.memory() - before;
            (of.unread_bytes, of.bytes) = (of.unread_bytes + grown, of.bytes + grown);
            from = to;
        }
        of.is_long |= !is_read && of.unread_bytes > UNREAD_BYTES_MAX;
    }

    /// Forgets rows that are too many for the program: the caller asks until there are none.
    pub(crate) fn shrink(&mut self) -> Option<Forgotten> {
        let is_over = |of: &OutputHistory| {
            of.is_long && of.unread_bytes > LATEST_BYTES_MAX && of.unread.len() > 1
        };
        if let Some(output) = self.outputs.iter().position(is_over) {
            return self.forget_unread(output);
        }
        (self.bytes() > PROGRAM_HISTORY_MAX).then(|| self.forget()).flatten()
    }

    /// Forgets the oldest rows that came together. They are of the outputs that have more than each
    /// may keep: so those with many rows reach equally far back.
    pub(crate) fn forget(&mut self) -> Option<Forgotten> {
        let outputs = || self.outputs.iter().enumerate().filter(|(_, of)| of.bytes > 0);
        let oldest = |of: &OutputHistory| match (of.blocks.front(), of.unread.front()) {
            (Some(block), _) => (false, block.first),
            (None, unread) => (true, unread.map_or(u64::MAX, |(turn, _)| *turn)),
        };
        let of_many = outputs().filter(|(_, of)| of.bytes > OUTPUT_HISTORY_MIN);
        let chosen = of_many.min_by_key(|(_, of)| oldest(of));
        let (at, _) = chosen.or_else(|| outputs().max_by_key(|(_, of)| of.bytes))?;
        let of = &mut self.outputs[at];
        let Some(block) = of.blocks.pop_front() else { return self.forget_unread(at) };
        of.bytes -= block.bytes;
        Some(Forgotten { rows: block.first..block.end(), bytes: block.bytes })
    }

    /// Forgets the oldest rows of an output that have no numbers: they get some as they go.
    fn forget_unread(&mut self, output: usize) -> Option<Forgotten> {
        let of = &mut self.outputs[output];
        let (_, mut batch) = of.unread.pop_front()?;
        let (first, bytes) = (self.next, batch.memory());
        self.next += batch.len as u64;
        (of.unread_bytes, of.bytes) = (of.unread_bytes - bytes, of.bytes - bytes);
        batch.clear();
        // Long texts may have been an exception.
        of.spare = (bytes <= SPARE_BYTES_MAX).then_some(batch);
        Some(Forgotten { rows: first..self.next, bytes })
    }

    /// Gives numbers to all rows, in the order in which their batches began.
    fn number(&mut self) {
        loop {
            let first = |of: &OutputHistory| of.unread.front().map(|(turn, _)| *turn);
            let firsts = self.outputs.iter().enumerate();
            let firsts = firsts.filter_map(|(at, of)| Some((first(of)?, at)));
            let Some((_, at)) = firsts.min() else { break };
            let of = &mut self.outputs[at];
            let Some((_, batch)) = of.unread.pop_front() else { break };
            of.blocks.push_back(RowBlock::new(self.next, batch, &of.writer));
            self.next += of.blocks.back().map_or(0, |block| block.rows);
        }
        for of in &mut self.outputs {
            (of.unread_bytes, of.is_long, of.spare) = (0, false, None);
        }
    }

    /// The rows from a number on, or some of them; `None` if there are none, and the client knows
    /// the outputs. A client that comes first begins with those that are kept.
    pub(crate) fn since(&mut self, cursor: Option<u64>) -> Option<Found> {
        self.number();
        let known = cursor.filter(|cursor| (self.begin..=self.next).contains(cursor));
        let from = known.unwrap_or(self.begin);
        if known == Some(self.next) {
            return None;
        }
        let (mut bytes, mut rows, mut blocks, mut next) = (0, 0, Vec::new(), self.next);
        for block in self.blocks_from(from) {
            if bytes > HISTORY_PART_MAX {
                next = block.first;
                break;
            }
            // Clients are given numbers at the beginning of blocks; others may make up their own.
            let seen = from.saturating_sub(block.first);
            bytes += block.bytes;
            rows += block.rows - seen;
            blocks.push((block.first, seen, Arc::clone(&block.body)));
        }
        let skipped = (next - from).saturating_sub(rows);
        let outputs = known.is_none().then(|| self.described().cloned().collect());
        Some(Found { outputs, skipped, blocks, next })
    }

    /// The blocks of all outputs that have rows from a number on, in the order of their numbers.
    fn blocks_from(&self, number: u64) -> impl Iterator<Item = &RowBlock> {
        let unseen = |of: &OutputHistory| of.blocks.partition_point(|block| block.end() <= number);
        let mut rest: Vec<_> =
            self.outputs.iter().map(|of| of.blocks.range(unseen(of)..).peekable()).collect();
        std::iter::from_fn(move || {
            let firsts = rest.iter_mut().enumerate();
            let firsts = firsts.filter_map(|(at, blocks)| Some((blocks.peek()?.first, at)));
            let (_, at) = firsts.min()?;
            rest[at].next()
        })
    }

    /// A block takes so many bytes now that its lines are written.
    pub(crate) fn weigh(&mut self, first: u64, bytes: usize) {
        for of in &mut self.outputs {
            if let Ok(at) = of.blocks.binary_search_by_key(&first, |block| block.first) {
                of.bytes = of.bytes - of.blocks[at].bytes + bytes;
                of.blocks[at].bytes = bytes;
            }
        }
    }
}

/// Room for a batch of such rows, but for what is no column of theirs.
fn without_order(rows: &Rows) -> Rows {
    // Texts find the room that they need.
    Rows { order: Vec::new(), clock: Vec::new(), arena: Arena::default(), ..rows.empty() }
}

#[cfg(test)]
mod tests;
