//! The rows that came last, kept for clients that come later.
//!
//! All clients share what is kept: each has a cursor by program, and none has a buffer. Who reads
//! slowly skips rows, and is told how many.

use crate::limits::{HISTORY_BYTES_MAX, HISTORY_PART_MAX, PROGRAM_HISTORY_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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
}

/// The latest rows of a program.
#[derive(Default)]
struct Kept {
    outputs: Vec<FeedOutput>,
    /// Lines of JSON, and their numbers.
    lines: VecDeque<(u64, Arc<[u8]>)>,
    bytes: usize,
    /// The number of the first row since the program began, ...
    begin: u64,
    /// ... and that of the row that comes next.
    next: u64,
}

/// Rows of a program that a client has not seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unseen {
    /// What the client has to know of the outputs, if it saw none of these rows before.
    pub(crate) outputs: Option<Vec<FeedOutput>>,
    /// Rows between these and those that it has seen, which are not kept.
    pub(crate) skipped: u64,
    /// Lines of JSON.
    pub(crate) lines: Vec<Arc<[u8]>>,
    /// The number of the row after these.
    pub(crate) next: u64,
}

impl History {
    /// These outputs are there from now on. `anew`: none of them goes on with earlier rows.
    pub(crate) fn open(&mut self, outputs: &[FeedOutput], anew: bool) {
        let mut before = std::mem::take(&mut self.programs);
        for output in outputs {
            let kept = self.programs.entry(output.program.clone()).or_default();
            kept.outputs.push(output.clone());
        }
        for (name, kept) in &mut self.programs {
            let Some(old) = before.remove(name) else { continue };
            if old.outputs == kept.outputs && !anew {
                *kept = old;
            } else {
                // No client's cursor is right any more, so each is told of the outputs.
                (kept.begin, kept.next) = (old.next + 1, old.next + 1);
            }
        }
        self.bytes = self.programs.values().map(|kept| kept.bytes).sum();
    }

    /// Adds rows of a program, and lets go of the oldest beyond the bounds.
    pub(crate) fn add(&mut self, program: &str, lines: &[u8]) {
        let Some(kept) = self.programs.get_mut(program) else { return };
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            kept.lines.push_back((kept.next, line.into()));
            kept.next += 1;
            (kept.bytes, self.bytes) = (kept.bytes + line.len(), self.bytes + line.len());
            while kept.bytes > PROGRAM_HISTORY_MAX {
                self.bytes -= kept.forget();
            }
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
        let at = kept.lines.partition_point(|(number, _)| *number < from);
        let (mut bytes, mut lines, mut next) = (0, Vec::new(), kept.next);
        for (number, line) in kept.lines.range(at..) {
            if bytes > HISTORY_PART_MAX {
                next = *number;
                break;
            }
            bytes += line.len();
            lines.push(Arc::clone(line));
        }
        let skipped = (next - from).saturating_sub(lines.len() as u64);
        let outputs = known.is_none().then(|| kept.outputs.clone());
        Some(Unseen { outputs, skipped, lines, next })
    }
}

impl Kept {
    /// Lets go of the oldest row; gives its bytes.
    fn forget(&mut self) -> usize {
        let bytes = self.lines.pop_front().map_or(0, |(_, line)| line.len());
        self.bytes -= bytes;
        bytes
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
        unseen.lines.iter().map(|line| std::str::from_utf8(line).expect("text")).collect()
    }

    #[test]
    fn clients_that_come_later_see_the_same_rows() {
        let mut history = history();
        history.add("a", b"{1}\n{2}\n");
        history.add("none", b"{3}\n");
        let first = history.since("a", None).expect("rows");
        assert_eq!((texts(&first), first.skipped, first.next), (vec!["{1}", "{2}"], 0, 2));
        assert_eq!(first.outputs, Some(vec![output("a", "n")]));
        assert_eq!(history.since("a", Some(2)), None);
        history.add("a", b"{4}\n");
        let more = history.since("a", Some(2)).expect("a row");
        assert_eq!((texts(&more), more.outputs.is_none(), more.next), (vec!["{4}"], true, 3));
        // It is told of outputs without rows, too, and once.
        let empty = history.since("b", None).expect("outputs");
        assert!(empty.outputs.is_some() && empty.lines.is_empty());
        assert_eq!(history.since("b", Some(empty.next)), None);
        assert_eq!(history.since("none", None), None);
        // A number of another run.
        assert!(history.since("a", Some(77)).expect("all").outputs.is_some());
    }

    #[test]
    fn rows_beyond_the_bounds_are_counted() {
        let mut history = history();
        let line = [vec![b'x'; PROGRAM_HISTORY_MAX / 2], vec![b'\n']].concat();
        (0..5).for_each(|_| history.add("a", &line));
        let mut cursor = history.since("a", None).expect("rows");
        assert_eq!((cursor.skipped, cursor.lines.len(), cursor.next), (3, 1, 4), "in parts");
        cursor = history.since("a", Some(cursor.next)).expect("the rest");
        assert_eq!((cursor.skipped, cursor.lines.len(), cursor.next), (0, 1, 5));
        history.skip("a", 7);
        let after = history.since("a", Some(5)).expect("a gap");
        assert_eq!((after.skipped, after.lines.len(), after.next), (7, 0, 12));
        let names: Vec<_> = (0..9).map(|i| output(&i.to_string(), "n")).collect();
        history.open(&names, false);
        for name in &names {
            (0..2).for_each(|_| history.add(&name.program, &line));
        }
        assert!(history.bytes <= HISTORY_BYTES_MAX);
        let kept: usize = history.programs.values().map(|kept| kept.bytes).sum();
        assert_eq!(kept, history.bytes);
    }

    #[test]
    fn a_program_that_changes_begins_anew() {
        let mut history = history();
        history.add("a", b"{1}\n");
        history.add("b", b"{1}\n");
        history.open(&[output("a", "n"), output("b", "m")], false);
        assert_eq!(history.since("a", Some(1)), None);
        let b = history.since("b", Some(1)).expect("outputs");
        assert_eq!((b.outputs, b.lines.len()), (Some(vec![output("b", "m")]), 0));
        history.open(&[output("a", "n")], true);
        history.add("a", b"{2}\n");
        let a = history.since("a", Some(0)).expect("a row");
        assert!(a.outputs.is_some() && texts(&a) == ["{2}"]);
    }
}
