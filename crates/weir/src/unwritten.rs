//! Rows that nobody follows, kept until somebody does: the latest of each output, in batches that
//! are full, so that what they take in memory is what they are.

use std::collections::VecDeque;
use weir_engine::rows::{Arena, Output, Rows};
use weir_packet::limits::BATCH;

/// Bytes of the rows of an output. As JSON they are about as many as are kept of a program.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Bytes of the latest rows of an output that has more: they stay in the cache of a processor, so
/// that copying them takes little from the packets. A page shows fewer.
const LATEST_BYTES_MAX: usize = 1 << 20;

/// Bytes of a batch that is used again.
const SPARE_BYTES_MAX: usize = LATEST_BYTES_MAX / 8;

/// Bytes of all rows: beyond, the output with the most gives up its earliest.
const BYTES_MAX: usize = 64 << 20;

/// Rows of a run that are to be written later.
#[derive(Default)]
pub(crate) struct UnwrittenRows {
    outputs: Vec<OutputRows>,
    bytes: usize,
    /// Rows of all outputs that have come.
    came: u64,
}

/// Those of an output.
#[derive(Default)]
struct OutputRows {
    /// All but the last are full. Each has the number of the rows of all outputs that came before
    /// its first.
    batches: VecDeque<(u64, Rows)>,
    bytes: usize,
    /// It has more rows than there is room for.
    is_long: bool,
    /// Memory of a batch that was left out.
    spare: Option<Rows>,
}

impl OutputRows {
    /// Appends rows of a batch, before which `number` rows came; gives the bytes that they take.
    fn append(&mut self, rows: &Rows, number: u64) -> usize {
        let (mut from, before) = (0, self.bytes);
        while from < rows.len {
            if self.batches.back().is_none_or(|(_, last)| last.len == BATCH) {
                let batch = self.spare.take().unwrap_or_else(|| without_order(rows));
                self.bytes += batch.memory();
                self.batches.push_back((number + from as u64, batch));
            }
            let Some((_, last)) = self.batches.back_mut() else { break };
            let to = rows.len.min(from + BATCH - last.len);
            self.bytes -= last.memory();
            last.append_cells(rows, from..to);
            self.bytes += last.memory();
            from = to;
        }
        self.bytes - before
    }

    /// Whether there is no room for all that is kept. The latest batch is kept whatever it takes.
    fn is_full(&mut self) -> bool {
        self.is_long |= self.bytes > OUTPUT_BYTES_MAX;
        self.is_long && self.bytes > LATEST_BYTES_MAX && self.batches.len() > 1
    }

    /// Leaves out the earliest batch; gives its rows, and the bytes that they took.
    fn leave_out(&mut self) -> Option<(usize, usize)> {
        let (_, mut first) = self.batches.pop_front()?;
        let (rows, bytes) = (first.len, first.memory());
        self.bytes -= bytes;
        first.clear();
        // Long texts may have been an exception.
        self.spare = (bytes <= SPARE_BYTES_MAX).then_some(first);
        Some((rows, bytes))
    }
}

/// Room for a batch of such rows, but for what is no column of theirs.
fn without_order(rows: &Rows) -> Rows {
    // Texts find the room that they need.
    Rows { order: Vec::new(), clock: Vec::new(), arena: Arena::default(), ..rows.empty() }
}

impl UnwrittenRows {
    /// Rows will be of these outputs; there may be none of others any more.
    pub(crate) fn open(&mut self, outputs: &[Output]) {
        *self = UnwrittenRows::default();
        self.outputs.resize_with(outputs.len(), OutputRows::default);
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.outputs.iter().all(|output| output.batches.is_empty())
    }

    /// Keeps rows of an output; gives the outputs and numbers of those for which there is no more
    /// room, the earliest.
    pub(crate) fn keep(&mut self, output: usize, rows: &Rows) -> Vec<(usize, u64)> {
        let mut left_out = Vec::new();
        self.bytes += self.outputs[output].append(rows, self.came);
        self.came += rows.len as u64;
        loop {
            let from = if self.outputs[output].is_full() {
                output
            } else if self.bytes > BYTES_MAX {
                let all = 0..self.outputs.len();
                all.max_by_key(|at| self.outputs[*at].bytes).unwrap_or(output)
            } else {
                return left_out;
            };
            let Some((rows, bytes)) = self.outputs[from].leave_out() else { return left_out };
            self.bytes -= bytes;
            left_out.push((from, rows as u64));
        }
    }

    /// Takes the earliest batch of all outputs.
    pub(crate) fn take_batch(&mut self) -> Option<(usize, Rows)> {
        let first = |output: &OutputRows| output.batches.front().map(|(number, _)| *number);
        let firsts = self.outputs.iter().enumerate();
        let (_, at) = firsts.filter_map(|(at, output)| Some((first(output)?, at))).min()?;
        let output = &mut self.outputs[at];
        let (_, batch) = output.batches.pop_front()?;
        output.bytes -= batch.memory();
        self.bytes -= batch.memory();
        // Somebody follows now: there may be no more of them for long.
        output.spare = None;
        Some((at, batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::rows::set_cell;
    use weir_plan::{Column, Schema, Type, Value};

    fn output(types: &[Type]) -> Output {
        let column = |(i, ty): (usize, &Type)| Column::new(&format!("c{i}"), ty);
        Output {
            name: None,
            schema: Schema { columns: types.iter().enumerate().map(column).collect() },
            keys: Vec::new(),
            capture: None,
            metrics: Vec::new(),
        }
    }

    /// Rows with these numbers, and a text of so many letters.
    fn batch(output: &Output, numbers: std::ops::Range<i64>, letters: usize) -> Rows {
        let mut rows = Rows::new(&output.schema);
        for (i, n) in numbers.enumerate() {
            let text = Value::Str(format!("{n}{}", "x".repeat(letters)).into());
            for (column, value) in rows.columns.iter_mut().zip([Value::Int(n), text]) {
                set_cell(column, i, &value, &mut rows.arena);
            }
            rows.order.push(n as u64);
            rows.clock.push(n);
            rows.len += 1;
        }
        rows
    }

    /// All rows that are kept, as they are taken.
    fn taken(kept: &mut UnwrittenRows, outputs: &[Output]) -> Vec<(usize, i64, String)> {
        let mut all = Vec::new();
        while let Some((at, rows)) = kept.take_batch() {
            for i in 0..rows.len {
                let value = |c: usize| rows.value(i, c, &outputs[at].schema.columns[c].ty);
                let (Value::Int(n), Value::Str(text)) = (value(0), value(1)) else {
                    panic!("types")
                };
                all.push((at, n, text.to_string()));
            }
        }
        assert!(kept.is_empty() && kept.bytes == 0);
        all
    }

    #[test]
    fn rows_come_out_as_they_came_in_and_fill_their_batches() {
        let outputs = [output(&[Type::Int, Type::Str]), output(&[Type::Int, Type::Str])];
        let mut kept = UnwrittenRows::default();
        kept.open(&outputs);
        let mut expected = [Vec::new(), Vec::new()];
        let mut next = 0;
        for (i, len) in
            [1, 2, 255, 256, 0, 3, 256, 1, 7, 254].into_iter().cycle().take(40).enumerate()
        {
            let at = i % 2;
            assert_eq!(kept.keep(at, &batch(&outputs[at], next..next + len, i)), []);
            expected[at]
                .extend((next..next + len).map(|n| (at, n, format!("{n}{}", "x".repeat(i)))));
            next += len;
        }
        for (output, expected) in kept.outputs.iter().zip(&expected) {
            assert_eq!(output.batches.len(), expected.len().div_ceil(BATCH));
        }
        let all = taken(&mut kept, &outputs);
        for (at, expected) in expected.iter().enumerate() {
            let own: Vec<_> = all.iter().filter(|(of, ..)| *of == at).cloned().collect();
            assert_eq!(own, *expected);
        }
        // They come in the order of their batches, not one output after the other.
        let turns = all.windows(2).filter(|two| two[0].0 != two[1].0).count();
        assert!(turns > 5, "{turns}");
    }

    #[test]
    fn the_latest_rows_of_each_output_are_kept() {
        let outputs = [output(&[Type::Int, Type::Str]), output(&[Type::Int, Type::Str])];
        let mut kept = UnwrittenRows::default();
        kept.open(&outputs);
        let (mut left_out, mut next) = (0, 100);
        // A few rows of one output stay, however many the other has.
        assert_eq!(kept.keep(0, &batch(&outputs[0], 0..100, 5)), []);
        while next < 600_000 {
            for (at, rows) in kept.keep(1, &batch(&outputs[1], next..next + 100, 40)) {
                assert_eq!(at, 1);
                left_out += rows as i64;
            }
            next += 100;
            let most = if left_out > 0 { LATEST_BYTES_MAX } else { OUTPUT_BYTES_MAX };
            assert!(kept.outputs[1].bytes <= most);
        }
        let all = taken(&mut kept, &outputs);
        let numbers: Vec<i64> = all.iter().map(|(_, n, _)| *n).collect();
        let expected: Vec<i64> = (0..100).chain(100 + left_out..next).collect();
        assert!(left_out > 0 && expected.len() > 5_000, "{left_out} {}", expected.len());
        assert_eq!(numbers, expected);
    }

    #[test]
    fn the_latest_rows_are_kept_however_long_their_texts_are() {
        let outputs = [output(&[Type::Int, Type::Str])];
        let mut kept = UnwrittenRows::default();
        kept.open(&outputs);
        for n in 0..40 {
            kept.keep(0, &batch(&outputs[0], n * 256..(n + 1) * 256, 9000));
            assert!(kept.outputs[0].batches.len() == 1 || kept.bytes <= OUTPUT_BYTES_MAX);
        }
        // After that there is room for more of those that are short.
        for n in 40..100 {
            kept.keep(0, &batch(&outputs[0], n * 256..(n + 1) * 256, 5));
        }
        let all = taken(&mut kept, &outputs);
        assert!(all.len() > 20 * 256 && all[all.len() - 1].1 == 100 * 256 - 1, "{}", all.len());
    }

    #[test]
    fn all_outputs_together_are_bounded() {
        let outputs: Vec<Output> = (0..20).map(|_| output(&[Type::Int, Type::Str])).collect();
        let mut kept = UnwrittenRows::default();
        kept.open(&outputs);
        let mut left_out = 0;
        for n in 0..120_000 {
            let at = n % outputs.len();
            let rows = batch(&outputs[at], n as i64..n as i64 + 1, 1000);
            left_out += kept.keep(at, &rows).iter().map(|(_, rows)| *rows as usize).sum::<usize>();
            assert!(kept.bytes <= BYTES_MAX);
        }
        assert_eq!(kept.bytes, kept.outputs.iter().map(|output| output.bytes).sum::<usize>());
        let all = taken(&mut kept, &outputs);
        assert!(left_out > 0);
        assert_eq!(all.len() + left_out, 120_000);
        for at in 0..outputs.len() {
            assert!(all.iter().any(|(of, ..)| *of == at), "{at}");
        }
    }
}
