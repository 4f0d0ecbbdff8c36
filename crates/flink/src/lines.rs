//! Lines that go out: rows, and events.

use crate::limits::LINES_BYTES;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};
use weir_sink::TimeFormat;
use weir_sink::copy::CopyLines;
use weir_sink::keyed::KeyedRows;
use weir_sink::lines::LineFormat;

/// The number of the output of events; rows have that of their pipeline.
pub const EVENTS: u16 = u16::MAX;

/// Takes lines: of each the number of its output (u16), then its key and its bytes, each after its
/// length (u32), all big endian. A key without bytes is none.
pub type Give<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowForm {
    /// As JSON, without the end of the line.
    Json,
    /// As a line of PostgreSQL's `COPY`, with its end.
    Copy,
}

/// Lines that were not handed over yet.
pub(crate) struct Lines {
    format: RowLines,
    waiting: Vec<u8>,
}

/// The writer of rows.
enum RowLines {
    Json(KeyedRows),
    Copy(CopyLines),
}

impl Lines {
    pub(crate) fn new(outputs: &[Output], form: RowForm, times: TimeFormat) -> io::Result<Lines> {
        let format = match form {
            RowForm::Json => RowLines::Json(KeyedRows::new(outputs, times)),
            RowForm::Copy => {
                let mut lines = CopyLines::default();
                lines.open(outputs, &mut Vec::new())?;
                RowLines::Copy(lines)
            }
        };
        Ok(Lines { format, waiting: Vec::new() })
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &serde_json::Value) {
        add(&mut self.waiting, EVENTS, &[], event.to_string().as_bytes());
    }

    /// Adds rows, and hands lines over whenever there are many.
    fn rows(&mut self, output: usize, rows: &Rows, give: Give<'_>) -> io::Result<()> {
        let Lines { format, waiting } = self;
        let mut take = |key: &[u8], line: &[u8]| {
            add(waiting, output as u16, key, line);
            match waiting.len() >= LINES_BYTES {
                true => hand_over(waiting, &mut *give),
                false => Ok(()),
            }
        };
        match format {
            RowLines::Json(keyed) => {
                keyed.each(output, rows, |key, line| take(key.unwrap_or_default(), line))
            }
            RowLines::Copy(lines) => {
                let mut line = Vec::new();
                for i in 0..rows.len {
                    line.clear();
                    lines.row(&mut line, output, rows, i);
                    take(&[], &line)?;
                }
                Ok(())
            }
        }
    }

    /// Hands over what waits.
    pub(crate) fn give(&mut self, give: Give<'_>) -> io::Result<()> {
        hand_over(&mut self.waiting, give)
    }
}

fn add(waiting: &mut Vec<u8>, output: u16, key: &[u8], line: &[u8]) {
    waiting.extend(output.to_be_bytes());
    for part in [key, line] {
        waiting.extend((part.len() as u32).to_be_bytes());
        waiting.extend(part);
    }
}

fn hand_over(waiting: &mut Vec<u8>, give: Give<'_>) -> io::Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let given = give(waiting);
    waiting.clear();
    given
}

/// Rows on their way out.
pub(crate) struct Outward<'a, 'g> {
    pub(crate) lines: &'a mut Lines,
    pub(crate) give: Give<'g>,
}

impl Sink for Outward<'_, '_> {
    fn open(&mut self, _outputs: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.lines.rows(output, rows, &mut *self.give)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lines.give(&mut *self.give)
    }
}
