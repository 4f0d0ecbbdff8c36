//! The rows that came last, kept for clients that come later.
//!
//! All clients share what is kept: each has a cursor by program, and none has a buffer. Who reads
//! slowly skips rows, and is told how many.

use crate::limits::{
    HISTORY_BYTES_MAX, HISTORY_PART_MAX, KEPT_PER_SECOND, OUTPUT_HISTORY_MIN, PROGRAM_HISTORY_MAX,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An output of a program, as clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedOutput {
    /// The program.
    pub program: String,
    /// The name of the output in its rows (`_pipeline`).
    pub output: String,
    /// The names and types of its columns.
    pub columns: Vec<(String, String)>,
}

/// Rows by program.
#[derive(Default)]
pub(crate) struct History {
    programs: BTreeMap<String, Kept>,
    bytes: usize,
    /// The number of the first row of a program that begins: greater than those of all programs
    /// that are gone, of which clients may still have numbers.
    begin: u64,
}

/// The latest rows of a program.
#[derive(Default)]
struct Kept {
    outputs: Vec<KeptOutput>,
    bytes: usize,
    /// The number of the first row since the program began, ...
    begin: u64,
    /// ... and that of the row that comes next.
    next: u64,
}

/// The latest rows of an output.
struct KeptOutput {
    output: FeedOutput,
    blocks: VecDeque<KeptBlock>,
    bytes: usize,
}

/// Rows that came together.
struct KeptBlock {
    /// The number of the first.
    first: u64,
    rows: u64,
    /// A line of JSON for each.
    lines: Arc<[u8]>,
}

/// Rows of a program that a client has not seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unseen {
    /// What the client has to know of the outputs, if it saw none of these rows before.
    pub(crate) outputs: Option<Vec<FeedOutput>>,
    /// Rows between these and those that it has seen, which are not kept.
    pub(crate) skipped: u64,
    /// Blocks of lines of JSON.
    pub(crate) blocks: Vec<Arc<[u8]>>,
    /// The number of the row after these.
    pub(crate) next: u64,
}

impl History {
    /// These outputs are there from now on. `anew`: none of them goes on with earlier rows.
    pub(crate) fn open(&mut self, outputs: &[FeedOutput], anew: bool) {
        let mut before = std::mem::take(&mut self.programs);
        for output in outputs {
            let kept = self.programs.entry(output.program.clone()).or_default();
            let output = output.clone();
            kept.outputs.push(KeptOutput { output, blocks: VecDeque::new(), bytes: 0 });
        }
        for (name, kept) in &mut self.programs {
            let Some(old) = before.remove(name) else {
                (kept.begin, kept.next) = (self.begin, self.begin);
                continue;
            };
            if old.described().eq(kept.described()) && !anew {
                *kept = old;
            } else {
                // No client's cursor is right any more, so each is told of the outputs.
                (kept.begin, kept.next) = (old.next + 1, old.next + 1);
            }
        }
        let gone = before.values().map(|kept| kept.next + 1);
        self.begin = gone.fold(self.begin, u64::max);
        self.bytes = self.programs.values().map(|kept| kept.bytes).sum();
    }

    /// Adds a block of so many rows of an output. Beyond the bounds, the oldest go, but a few rows
    /// of an output stay, however many another has.
    pub(crate) fn add(&mut self, output: &FeedOutput, lines: &Arc<[u8]>, rows: u64) {
        let Some(kept) = self.programs.get_mut(&output.program) else { return };
        let first = kept.next;
        let Some(of) = kept.outputs.iter_mut().find(|of| of.output.output == output.output) else {
            return;
        };
        of.blocks.push_back(KeptBlock { first, rows, lines: Arc::clone(lines) });
        of.bytes += lines.len();
        kept.next += rows;
        (kept.bytes, self.bytes) = (kept.bytes + lines.len(), self.bytes + lines.len());
        while kept.bytes > PROGRAM_HISTORY_MAX {
            self.bytes -= kept.forget();
        }
        while self.bytes > HISTORY_BYTES_MAX {
            let largest = self.programs.values_mut().max_by_key(|kept| kept.bytes);
            self.bytes -= largest.map_or(self.bytes, Kept::forget);
        }
    }

    /// Counts rows that are not kept.
    pub(crate) fn skip(&mut self, program: &str, rows: u64) {
        if let Some(kept) = self.programs.get_mut(program) {
            kept.next += rows;
        }
    }

    /// The rows of a program from a number on, or some of them; `None` if there are none, and the
    /// client knows the outputs. A client that comes first begins at 0.
    pub(crate) fn since(&self, program: &str, cursor: Option<u64>) -> Option<Unseen> {
        let kept = self.programs.get(program)?;
        let known = cursor.filter(|cursor| (kept.begin..=kept.next).contains(cursor));
        let from = known.unwrap_or(kept.begin);
        if known == Some(kept.next) {
            return None;
        }
        let (mut bytes, mut rows, mut blocks, mut next) = (0, 0, Vec::new(), kept.next);
        for block in kept.blocks_from(from) {
            if bytes > HISTORY_PART_MAX {
                next = block.first;
                break;
            }
            let (unseen, lines) = block.from(from);
            bytes += lines.len();
            rows += unseen;
            blocks.push(lines);
        }
        let skipped = (next - from).saturating_sub(rows);
        let outputs = known.is_none().then(|| kept.described().cloned().collect());
        Some(Unseen { outputs, skipped, blocks, next })
    }
}

impl KeptBlock {
    /// Its rows from a number on: how many, and their lines.
    fn from(&self, number: u64) -> (u64, Arc<[u8]>) {
        let seen = number.saturating_sub(self.first);
        if seen == 0 {
            return (self.rows, Arc::clone(&self.lines));
        }
        // Clients are given numbers at the beginning of blocks; others may make up their own.
        let unseen = self.lines.split_inclusive(|b| *b == b'\n').skip(seen as usize);
        (self.rows - seen, unseen.flatten().copied().collect())
    }
}

impl Kept {
    fn described(&self) -> impl Iterator<Item = &FeedOutput> {
        self.outputs.iter().map(|of| &of.output)
    }

    /// The blocks of all outputs that have rows from a number on, in the order of their numbers.
    fn blocks_from(&self, number: u64) -> impl Iterator<Item = &KeptBlock> {
        let unseen =
            |of: &KeptOutput| of.blocks.partition_point(|block| block.first + block.rows <= number);
        let mut rest: Vec<_> =
            self.outputs.iter().map(|of| of.blocks.range(unseen(of)..).peekable()).collect();
        std::iter::from_fn(move || {
            let firsts = rest.iter_mut().enumerate();
            let firsts = firsts.filter_map(|(at, blocks)| Some((blocks.peek()?.first, at)));
            let (_, at) = firsts.min()?;
            rest[at].next()
        })
    }

    /// Lets go of the oldest rows that came together; gives their bytes. They are of the outputs
    /// that have more than each may keep: so those with many rows reach equally far back.
    fn forget(&mut self) -> usize {
        let outputs = || self.outputs.iter().enumerate();
        let oldest = |of: &KeptOutput| of.blocks.front().map_or(u64::MAX, |block| block.first);
        let of_many = outputs().filter(|(_, of)| of.bytes > OUTPUT_HISTORY_MIN);
        let chosen = of_many.min_by_key(|(_, of)| oldest(of));
        let Some((at, _)) = chosen.or_else(|| outputs().max_by_key(|(_, of)| of.bytes)) else {
            return 0;
        };
        let of = &mut self.outputs[at];
        let bytes = of.blocks.pop_front().map_or(0, |block| block.lines.len());
        (of.bytes, self.bytes) = (of.bytes - bytes, self.bytes - bytes);
        bytes
    }
}

/// How many rows of a program were kept in the current second.
pub(crate) struct KeptRate {
    program: String,
    /// When that second began.
    began: Instant,
    /// By output.
    rows: Vec<(String, u64)>,
}

impl KeptRate {
    /// Of a program that has kept none in the second that begins now.
    pub(crate) fn new(program: &str, now: Instant) -> KeptRate {
        KeptRate { program: program.to_owned(), began: now, rows: Vec::new() }
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Whether so many rows of an output may be kept, too. What one output does not use, others
    /// may have; a share of it, each has in any case.
    pub(crate) fn has_room(&mut self, output: &str, rows: u64, now: Instant) -> bool {
        if now.duration_since(self.began) >= Duration::from_secs(1) {
            self.began = now;
            self.rows.iter_mut().for_each(|(_, kept)| *kept = 0);
        }
        let at = self.rows.iter().position(|(name, _)| name == output).unwrap_or_else(|| {
            self.rows.push((output.to_owned(), 0));
            self.rows.len() - 1
        });
        let all: u64 = self.rows.iter().map(|(_, kept)| kept).sum();
        let share = KEPT_PER_SECOND / self.rows.len() as u64;
        let (_, own) = &mut self.rows[at];
        let is_kept = all + rows <= KEPT_PER_SECOND || *own + rows <= share;
        *own += if is_kept { rows } else { 0 };
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(program: &str, column: &str) -> FeedOutput {
        let columns = vec![(column.to_owned(), "int".to_owned())];
        FeedOutput { program: program.to_owned(), output: program.to_owned(), columns }
    }

    fn history() -> History {
        let mut history = History::default();
        history.open(&[output("a", "n"), output("b", "n")], false);
        history
    }

    fn texts(unseen: &Unseen) -> Vec<&str> {
        let lines = unseen.blocks.iter().flat_map(|block| crate::feed::rows(block));
        lines.map(|line| std::str::from_utf8(line).expect("text")).collect()
    }

    fn add(history: &mut History, program: &str, lines: &[u8]) {
        history.add(
            &output(program, "n"),
            &Arc::from(lines),
            crate::feed::rows(lines).count() as u64,
        );
    }

    #[test]
    fn clients_that_come_later_see_the_same_rows() {
        let mut history = history();
        add(&mut history, "a", b"{1}\n{2}\n");
        add(&mut history, "none", b"{3}\n");
        let first = history.since("a", None).expect("rows");
        assert_eq!((texts(&first), first.skipped, first.next), (vec!["{1}", "{2}"], 0, 2));
        assert_eq!(first.outputs, Some(vec![output("a", "n")]));
        assert_eq!(history.since("a", Some(2)), None);
        add(&mut history, "a", b"{4}\n");
        let more = history.since("a", Some(2)).expect("a row");
        assert_eq!((texts(&more), more.outputs.is_none(), more.next), (vec!["{4}"], true, 3));
        // It is told of outputs without rows, too, and once.
        let empty = history.since("b", None).expect("outputs");
        assert!(empty.outputs.is_some() && empty.blocks.is_empty());
        assert_eq!(history.since("b", Some(empty.next)), None);
        assert_eq!(history.since("none", None), None);
        // A number within rows that came together.
        let second = history.since("a", Some(1)).expect("a row");
        assert_eq!((texts(&second), second.skipped, second.next), (vec!["{2}", "{4}"], 0, 3));
        // A number of another run.
        assert!(history.since("a", Some(77)).expect("all").outputs.is_some());
    }

    #[test]
    fn rows_beyond_the_bounds_are_counted() {
        let mut history = history();
        let line = [vec![b'x'; PROGRAM_HISTORY_MAX / 2 - 1], vec![b'\n']].concat();
        (0..5).for_each(|_| add(&mut history, "a", &line));
        let mut cursor = history.since("a", None).expect("rows");
        assert_eq!((cursor.skipped, cursor.blocks.len(), cursor.next), (3, 1, 4), "in parts");
        cursor = history.since("a", Some(cursor.next)).expect("the rest");
        assert_eq!((cursor.skipped, cursor.blocks.len(), cursor.next), (0, 1, 5));
        history.skip("a", 7);
        let after = history.since("a", Some(5)).expect("a gap");
        assert_eq!((after.skipped, after.blocks.len(), after.next), (7, 0, 12));
        let names: Vec<_> = (0..9).map(|i| output(&i.to_string(), "n")).collect();
        history.open(&names, false);
        for name in &names {
            (0..2).for_each(|_| add(&mut history, &name.program, &line));
        }
        assert!(history.bytes <= HISTORY_BYTES_MAX);
        let kept: usize = history.programs.values().map(|kept| kept.bytes).sum();
        assert_eq!(kept, history.bytes);
    }

    #[test]
    fn few_rows_stay_however_many_another_output_has() {
        let mut history = History::default();
        let alerts = FeedOutput { output: "a.alerts".to_owned(), ..output("a", "n") };
        history.open(&[output("a", "n"), alerts.clone()], false);
        let line = [vec![b'x'; PROGRAM_HISTORY_MAX / 8 - 1], vec![b'\n']].concat();
        history.add(&alerts, &Arc::from(*b"{1}\n{2}\n"), 2);
        for _ in 0..20 {
            add(&mut history, "a", &line);
        }
        history.add(&alerts, &Arc::from(*b"{3}\n"), 1);
        assert!(history.bytes <= PROGRAM_HISTORY_MAX);
        // They come in the order of their numbers, and the gap is told.
        let (mut all, mut skipped, mut cursor) = (Vec::new(), 0, None);
        while let Some(unseen) = history.since("a", cursor) {
            all.extend(texts(&unseen).iter().map(|text| text[..text.len().min(3)].to_owned()));
            (skipped, cursor) = (skipped + unseen.skipped, Some(unseen.next));
        }
        let kept = all.len() as u64 - 3;
        assert!((6..8).contains(&kept), "{kept}");
        assert_eq!((skipped, cursor), (20 - kept, Some(23)));
        assert_eq!(
            (&*all[0], &*all[1], &*all[2], &*all[all.len() - 1]),
            ("{1}", "{2}", "xxx", "{3}")
        );
        // An output that is not there has none.
        history.add(
            &FeedOutput { output: "a.b".to_owned(), ..output("a", "n") },
            &Arc::from(*b"{}\n"),
            1,
        );
        assert_eq!(history.since("a", cursor), None);
    }

    #[test]
    fn outputs_with_many_rows_reach_equally_far_back() {
        let mut history = History::default();
        let small = FeedOutput { output: "a.small".to_owned(), ..output("a", "n") };
        history.open(&[output("a", "n"), small.clone()], false);
        let line = |bytes: usize| [vec![b'x'; bytes - 1], vec![b'\n']].concat();
        for _ in 0..100 {
            add(&mut history, "a", &line(PROGRAM_HISTORY_MAX / 32));
            history.add(&small, &Arc::from(line(PROGRAM_HISTORY_MAX / 96)), 1);
        }
        assert!(history.bytes <= PROGRAM_HISTORY_MAX);
        let kept = history.programs["a"].outputs.iter().map(|of| of.blocks.len());
        assert_eq!(kept.collect::<Vec<_>>(), [24, 24]);
    }

    #[test]
    fn a_program_that_changes_begins_anew() {
        let mut history = history();
        add(&mut history, "a", b"{1}\n");
        add(&mut history, "b", b"{1}\n");
        history.open(&[output("a", "n"), output("b", "m")], false);
        assert_eq!(history.since("a", Some(1)), None);
        let b = history.since("b", Some(1)).expect("outputs");
        assert_eq!((b.outputs, b.blocks.len()), (Some(vec![output("b", "m")]), 0));
        // Nor is a number right of a program that went and came again, or of another.
        history.open(&[output("a", "n")], false);
        history.open(&[output("a", "n"), output("b", "m"), output("c", "m")], false);
        (0..9).for_each(|_| add(&mut history, "b", b"{3}\n{4}\n{5}\n"));
        let unseen = history.since("b", Some(b.next)).expect("all rows");
        assert_eq!((unseen.skipped, unseen.blocks.len()), (0, 9));
        assert!(unseen.outputs.is_some() && history.since("c", Some(0)).is_some());
        history.open(&[output("a", "n")], true);
        add(&mut history, "a", b"{2}\n");
        let a = history.since("a", Some(0)).expect("a row");
        assert!(a.outputs.is_some() && texts(&a) == ["{2}"]);
    }
}
