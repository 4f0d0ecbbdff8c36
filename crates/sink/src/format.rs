//! The formats that rows can be written in. Each is a file of this crate, which describes itself by
//! a [`Format`], and one line of [`FORMATS`]; values of `-o`, help, messages, endings of files and
//! the check of the reference are made from them.

use crate::{Named, Names, TimeFormat, csv, json, markdown, table, tsv};
use std::fmt;
use std::io::Write;
use weir_engine::rows::Sink;

/// Every format, in the order in which people are told of them.
pub static FORMATS: &[&Format] =
    &[&table::FORMAT, &json::FORMAT, &csv::FORMAT, &tsv::FORMAT, &markdown::FORMAT];

/// A format that rows can be written in.
pub struct Format {
    /// Its name, as after `-o`.
    pub name: &'static str,
    /// What it is called in a sentence.
    pub title: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// How names of files end.
    pub ending: &'static str,
    /// How many outputs of a program one file or stream can hold.
    pub holds: Holds,
    /// Makes a sink of this format.
    pub make: for<'a> fn(Box<dyn Write + 'a>, RowOptions) -> Box<dyn Sink + 'a>,
}

/// How many outputs of a program one file or stream can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// One: its only header names the columns.
    OneOutput,
    /// Several: rows, or headings above them, say which output they are of.
    Outputs,
}

/// How rows are written, in whatever format.
#[derive(Clone, Copy, Default, Debug)]
pub struct RowOptions {
    /// How times are written.
    pub time: TimeFormat,
    /// Whether headings are bold, for a terminal.
    pub color: bool,
    /// Whether rows are shown whenever the sink is flushed, as befits a stream that may pause,
    /// rather than when there are enough of them for a steady layout.
    pub stream: bool,
    /// Whether each row, or a title above it, says which output it is of even where there is one
    /// only, since others may come.
    pub titles: bool,
}

impl Format {
    /// A sink of this format, whose columns have the names of a profile.
    pub fn sink<'a>(
        &self,
        out: impl Write + 'a,
        options: RowOptions,
        names: Names,
    ) -> Box<dyn Sink + 'a> {
        Box::new(Named::new(names, (self.make)(Box::new(out), options)))
    }

    /// The format of this name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }
}

/// A format is known by its name.
impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Format").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use std::collections::BTreeSet;
    use weir_engine::rows::{Output, Rows};
    use weir_plan::{Type, Value};

    fn written(format: &Format, outputs: &[Output], batches: &[(usize, Rows)]) -> String {
        let mut text = Vec::new();
        let mut sink = format.sink(&mut text, RowOptions::default(), Names::Native);
        sink.open(outputs).expect("opens");
        for (n, batch) in batches {
            sink.rows(*n, batch).expect("writes");
        }
        sink.finish().expect("finishes");
        assert_eq!(sink.unwritten(), 0);
        drop(sink);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn each_format_is_found_by_its_name_and_has_an_ending_of_its_own() {
        let endings: BTreeSet<_> = FORMATS.iter().map(|format| format.ending).collect();
        assert_eq!(endings.len(), FORMATS.len());
        for format in FORMATS {
            assert_eq!(Format::by_name(format.name), Some(*format));
            assert!(!format.about.ends_with('.') && !format.title.is_empty());
        }
        assert_eq!(Format::by_name("xml"), None);
    }

    /// What a format says of itself is so.
    #[test]
    fn a_format_holds_as_many_outputs_as_it_says() {
        let outputs = ["one", "two"].map(|name| output(Some(name), &[("n", Type::Int)]));
        for format in FORMATS {
            let mut sink = format.sink(Vec::new(), RowOptions::default(), Names::Native);
            let opened = sink.open(&outputs);
            assert_eq!(opened.is_ok(), format.holds == Holds::Outputs, "{format:?}");
            if let Err(e) = opened {
                assert!(e.to_string().starts_with(format.title), "{e}");
                continue;
            }
            let batches: Vec<_> = (0..2)
                .map(|i| (i, rows(&outputs[i], &[vec![Value::Int(40 + i as i64)]])))
                .collect();
            let text = written(format, &outputs, &batches);
            for word in ["one", "two", "40", "41"] {
                assert!(text.contains(word), "{format:?}: {text}");
            }
        }
    }

    #[test]
    fn every_format_writes_every_type_and_ends_its_last_line() {
        let (output, batch) = every_type();
        for format in FORMATS {
            let text = written(format, std::slice::from_ref(&output), &[(0, batch.clone())]);
            assert!(text.ends_with('\n') && text.contains("10.0.0.1"), "{format:?}: {text}");
            let text = written(format, std::slice::from_ref(&output), &[]);
            assert!(text.is_empty() || text.ends_with('\n'), "{format:?}: {text}");
        }
    }
}
