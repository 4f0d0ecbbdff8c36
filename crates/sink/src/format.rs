//! Formats: each describes itself by a [`Format`], in a file of its own.

use crate::names::{Named, Names};
use crate::options::RowOptions;
use std::fmt;
use std::io::Write;
use weir_engine::rows::{Output, Sink};

/// A format that rows can be written in.
pub struct Format {
    /// Its name, as after `-o`.
    pub name: &'static str,
    /// Its name in a sentence.
    pub title: &'static str,
    /// Its description, in a line.
    pub about: &'static str,
    /// How names of files end.
    pub ending: &'static str,
    /// How many outputs of a program one file or stream can hold.
    pub holds: Holds,
    /// Whether it is text, which a terminal can show.
    pub is_text: bool,
    /// Sees whether it can hold the columns of these outputs; the error says which one it can't
    /// hold, and what helps.
    pub check: fn(&[Output]) -> Result<(), String>,
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
