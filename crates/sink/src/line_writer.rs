//! Rows as lines of JSON in memory, for readers that take them one by one.

use crate::{Names, RowOptions, json};
use std::io;
use weir_engine::rows::{Output, Rows};

/// Writes rows of one output as lines of JSON.
pub struct LineWriter {
    output: Output,
    options: RowOptions,
    names: Names,
}

impl LineWriter {
    /// A writer for rows of this output.
    pub fn new(output: Output, options: RowOptions, names: Names) -> LineWriter {
        LineWriter { output, options, names }
    }

    /// The rows, a line each.
    pub fn lines(&self, rows: &Rows) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut sink = json::FORMAT.sink(&mut lines, self.options, self.names);
        let mut written = || -> io::Result<()> {
            sink.open(std::slice::from_ref(&self.output))?;
            sink.rows(0, rows)?;
            sink.finish()
        };
        // Memory takes all that is written.
        let result = written();
        debug_assert!(result.is_ok(), "{result:?}");
        drop(sink);
        lines
    }
}

/// Each line of a text that holds something, without its end.
pub fn each_line(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|line| !line.is_empty())
}
