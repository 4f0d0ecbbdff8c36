//! A sink of its own for each output: where a format holds the rows of one only, or where rows go
//! to files by output.

use std::io;
use weir_engine::rows::{Output, Rows, Sink};

/// Hands the rows of each output to the sink of that number. Each of them sees one output, and
/// need not say which.
pub struct Split<'a> {
    sinks: Vec<Box<dyn Sink + 'a>>,
}

impl<'a> Split<'a> {
    /// One sink for each output of the program, in their order.
    pub fn new(sinks: Vec<Box<dyn Sink + 'a>>) -> Split<'a> {
        Split { sinks }
    }

    /// Lets each sink do something, also after another failed; gives the first error.
    fn each(
        &mut self,
        mut call: impl FnMut(usize, &mut dyn Sink) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut result = Ok(());
        for (n, sink) in self.sinks.iter_mut().enumerate() {
            result = result.and(call(n, &mut **sink));
        }
        result
    }
}

impl Sink for Split<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        if outputs.len() != self.sinks.len() {
            let reason = format!("{} outputs for {} sinks", outputs.len(), self.sinks.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        self.each(|n, sink| sink.open(std::slice::from_ref(&outputs[n])))
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.sinks[output].rows(0, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.each(|_, sink| sink.flush())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.each(|_, sink| sink.finish())
    }

    fn refused(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.refused()).sum()
    }

    fn unwritten(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.unwritten()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Full, output, rows};
    use crate::{Csv, JsonLines, TimeFormat};
    use weir_plan::{Type, Value};

    #[test]
    fn each_output_has_its_own() {
        let (one, two) =
            (output(Some("one"), &[("n", Type::Int)]), output(Some("two"), &[("x", Type::Bool)]));
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        let mut split = Split::new(vec![
            Box::new(Csv::new(&mut csv, TimeFormat::Rfc3339)),
            Box::new(JsonLines::new(&mut json, TimeFormat::Rfc3339)),
        ]);
        split.open(&[one.clone(), two.clone()]).expect("opens");
        split.rows(1, &rows(&two, &[vec![Value::Bool(true)]])).expect("writes");
        split.rows(0, &rows(&one, &[vec![Value::Int(7)]])).expect("writes");
        split.finish().expect("finishes");
        assert!(split.open(&[one]).is_err(), "a sink for each");
        drop(split);
        assert_eq!((&csv[..], &json[..]), (&b"n\n7\n"[..], &b"{\"x\":true}\n"[..]));
    }

    #[test]
    fn one_that_fails_keeps_no_other_from_finishing() {
        let both = [output(None, &[("n", Type::Int)]), output(None, &[("n", Type::Int)])];
        let mut csv = Vec::new();
        let mut split = Split::new(vec![
            Box::new(Csv::new(Full, TimeFormat::Rfc3339)),
            Box::new(Csv::new(&mut csv, TimeFormat::Rfc3339)),
        ]);
        split.open(&both).expect("writes later");
        let error = split.finish().expect_err("the first is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        drop(split);
        assert_eq!(csv, b"n\n");
    }
}
