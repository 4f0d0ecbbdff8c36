//! Answers, small enough to compare: how many rows each output has, and a digest of them all.

use anyhow::{Context, Result, ensure};
use std::fmt;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::Type;

/// The output of a program. The order of rows does not count: digests of rows are summed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Answer(pub(crate) Vec<Part>);

/// The rows of one output of a program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Part {
    /// How many rows.
    pub(crate) rows: u64,
    /// The sum of the rows' digests, where somebody took the time.
    pub(crate) digest: Option<u64>,
}

impl Part {
    /// No rows, to be digested.
    pub(crate) fn digested() -> Part {
        Part { rows: 0, digest: Some(0) }
    }

    /// Takes a row in.
    pub(crate) fn add(&mut self, row: RowDigest) {
        self.rows += 1;
        if let Some(sum) = &mut self.digest {
            *sum = sum.wrapping_add(row.0);
        }
    }
}

impl Answer {
    /// Rows of all outputs.
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(|p| p.rows).sum()
    }

    /// Fails unless `said` agrees: in rows, and in digests where both have them.
    pub(crate) fn check(&self, name: &str, said: &Answer) -> Result<()> {
        let agrees = |(a, b): (&Part, &Part)| {
            a.rows == b.rows && a.digest.is_none_or(|a| b.digest.is_none_or(|b| a == b))
        };
        let same = self.0.len() == said.0.len() && self.0.iter().zip(&said.0).all(agrees);
        ensure!(same, "{name} answered {said}, which should be {self}");
        Ok(())
    }

    /// Reads what [`Answer`] prints.
    pub(crate) fn parse(text: &str) -> Result<Answer> {
        let part = |text: &str| -> Option<Part> {
            let (rows, digest) = text.split_once(':')?;
            let digest = match digest {
                "-" => None,
                digest => Some(u64::from_str_radix(digest, 16).ok()?),
            };
            Some(Part { rows: rows.parse().ok()?, digest })
        };
        let parts = text.split(',').map(part).collect::<Option<Vec<Part>>>();
        parts.map(Answer).with_context(|| format!("{text} is not an answer"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            write!(f, "{}{}:", if i > 0 { "," } else { "" }, part.rows)?;
            match part.digest {
                Some(digest) => write!(f, "{digest:016x}")?,
                None => write!(f, "-")?,
            }
        }
        Ok(())
    }
}

/// The digest of one row, cell by cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowDigest(u64);

impl RowDigest {
    /// Of a row without cells.
    pub(crate) fn new() -> RowDigest {
        RowDigest(0x9e37_79b9_7f4a_7c15)
    }

    /// As a number.
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    fn mix(self, word: u64) -> RowDigest {
        let z = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        RowDigest((z ^ z >> 29).wrapping_mul(0x94d0_49bb_1331_11eb).rotate_left(31))
    }

    /// A cell that is stored as a number: addresses as 128 bits, times as nanoseconds.
    pub(crate) fn cell(self, raw: impl Into<u128>) -> RowDigest {
        let raw = raw.into();
        self.mix(1).mix(raw as u64).mix((raw >> 64) as u64)
    }

    /// A cell without a value.
    pub(crate) fn absent(self) -> RowDigest {
        self.mix(2)
    }

    /// A cell that is a text.
    pub(crate) fn text(self, text: &[u8]) -> RowDigest {
        text.iter().fold(self.mix(3), |digest, &b| digest.mix(u64::from(b)))
    }
}

/// Counts rows and forgets them; digests them before, if asked to.
#[derive(Debug)]
pub(crate) struct Tally {
    digest: bool,
    outputs: Vec<Output>,
    answer: Answer,
}

impl Tally {
    /// Counts, and digests where `digest` is set: that takes time.
    pub(crate) fn new(digest: bool) -> Tally {
        Tally { digest, outputs: Vec::new(), answer: Answer::default() }
    }

    /// The answer: all rows that were put out.
    pub(crate) fn answer(self) -> Answer {
        self.answer
    }
}

impl Sink for Tally {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.outputs = outputs.to_vec();
        let digest = self.digest.then_some(0);
        self.answer = Answer(vec![Part { rows: 0, digest }; outputs.len()]);
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let part = &mut self.answer.0[output];
        if !self.digest {
            part.rows += rows.len as u64;
            return Ok(());
        }
        for i in 0..rows.len {
            let columns = rows.columns.iter().zip(&self.outputs[output].schema.columns);
            part.add(columns.fold(RowDigest::new(), |digest, (column, schema)| {
                match (column.present.has(i), &schema.ty) {
                    (false, _) => digest.absent(),
                    (true, Type::Str | Type::Bytes) => {
                        digest.text(rows.arena.get(column.raw(i) as u64))
                    }
                    (true, _) => digest.cell(column.raw(i)),
                }
            }));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_between_processes() {
        let counted = Part { rows: 12, digest: None };
        let answer = Answer(vec![counted, Part { rows: 3, digest: Some(0xabc) }]);
        assert_eq!(answer.to_string(), "12:-,3:0000000000000abc");
        assert_eq!(Answer::parse(&answer.to_string()).expect("whole"), answer);
        for wrong in ["", "12", "12:x", "x:-", "1:-,"] {
            assert!(Answer::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_not_digested_agrees_by_its_rows() {
        let answer = |rows, digest| Answer(vec![Part { rows, digest }]);
        let right = answer(2, Some(7));
        assert!(right.check("x", &answer(2, None)).is_ok());
        assert!(right.check("x", &answer(2, Some(7))).is_ok());
        assert!(right.check("x", &answer(2, Some(8))).is_err());
        assert!(right.check("x", &answer(3, None)).is_err());
        assert!(right.check("x", &Answer::default()).is_err());
    }

    #[test]
    fn digests_tell_cells_apart_and_not_the_order_of_rows() {
        let row = |a: u64, b: u64| RowDigest::new().cell(a).cell(b);
        let sum = |rows: [RowDigest; 2]| {
            let mut part = Part::digested();
            rows.into_iter().for_each(|r| part.add(r));
            part
        };
        assert_eq!(sum([row(1, 2), row(3, 4)]), sum([row(3, 4), row(1, 2)]));
        assert_ne!(sum([row(1, 2), row(3, 4)]), sum([row(1, 4), row(3, 2)]));
        assert_ne!(RowDigest::new().absent().0, RowDigest::new().cell(0u64).0);
        assert_ne!(RowDigest::new().text(b"a").0, RowDigest::new().text(b"b").0);
    }
}
