//! Lines that go out: rows, and events.

use crate::limits::LINES_BYTES;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};
use weir_sink::TimeFormat;
use weir_sink::copy::CopyLines;
use weir_sink::json::Objects;
use weir_sink::lines::LineFormat;

/// The number of the output of events; rows have that of their pipeline.
pub const EVENTS: u16 = u16::MAX;

/// Takes lines: of each the number of its output (u16), its length (u32), both big endian, and its
/// bytes.
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
    format: Box<dyn LineFormat + Send>,
    form: RowForm,
    waiting: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(outputs: &[Output], form: RowForm, times: TimeFormat) -> io::Result<Lines> {
        let mut format: Box<dyn LineFormat + Send> = match form {
            RowForm::Json => Box::new(Objects::new(times)),
            RowForm::Copy => Box::new(CopyLines::default()),
        };
        format.open(outputs, &mut Vec::new())?;
        Ok(Lines { format, form, waiting: Vec::new() })
    }

    fn line(&mut self, output: u16, write: impl FnOnce(&dyn LineFormat, &mut Vec<u8>)) {
        self.waiting.extend(output.to_be_bytes());
        let at = self.waiting.len();
        self.waiting.extend([0; 4]);
        write(&*self.format, &mut self.waiting);
        let is_json = output == EVENTS || self.form == RowForm::Json;
        if is_json && self.waiting.last() == Some(&b'\n') {
            self.waiting.pop();
        }
        let len = (self.waiting.len() - at - 4) as u32;
        self.waiting[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &serde_json::Value) {
        self.line(EVENTS, |_, to| to.extend(event.to_string().bytes()));
    }

    /// Hands over what waits.
    pub(crate) fn give(&mut self, give: Give<'_>) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let given = give(&self.waiting);
        self.waiting.clear();
        given
    }
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
        for i in 0..rows.len {
            self.lines.line(output as u16, |format, to| format.row(to, output, rows, i));
            if self.lines.waiting.len() >= LINES_BYTES {
                self.lines.give(&mut *self.give)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lines.give(&mut *self.give)
    }
}
