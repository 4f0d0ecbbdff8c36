//! Rows as a stream that lasts: server-sent events, or lines of JSON.

use crate::answer::error;
use crate::limits::{LOOK, LOOKS_PER_SIGN, STREAM_PATIENCE, STREAMS_MAX};
use crate::log::{NoRows, RowEvent, RowLog};
use crate::request::HttpRequest;
use crate::response::{Status, stream_head};
use std::io::{self, Write};
use std::sync::Arc;
use weir_control::Taker;
use weir_sink::each_line;

/// The form of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamForm {
    /// Server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
    Events,
    /// A line of JSON for each row.
    Lines,
}

/// Sends rows of the program that a request names, until the client leaves or the program ends.
///
/// # Errors
/// If the client does not take what comes.
pub(crate) fn send_rows(log: &RowLog, request: &HttpRequest, to: &mut dyn Taker) -> io::Result<()> {
    let refuse = |status, reason: &str, to: &mut dyn Taker| error(status, reason, "").write(to);
    let Some(program) = request.head.param("program") else {
        return refuse(Status::BadRequest, "name a program: /api/v1/rows?program=NAME", to);
    };
    let stream = match log.subscribe(program) {
        Ok(stream) => stream,
        Err(NoRows::Unknown) => {
            let reason = "no program of this name prints rows";
            return refuse(Status::NotFound, reason, to);
        }
        Err(NoRows::Full) => {
            let reason = format!("{STREAMS_MAX} clients get rows already");
            return refuse(Status::Unavailable, &reason, to);
        }
    };
    let accept = request.head.all("accept").to_ascii_lowercase();
    let form = match accept.contains("text/event-stream") {
        true => StreamForm::Events,
        false => StreamForm::Lines,
    };
    to.write_all(stream_head(form.content_type()).as_bytes())?;
    to.part(STREAM_PATIENCE)?;
    let mut quiet = 0;
    loop {
        let event = stream.next(LOOK);
        quiet = if event == RowEvent::Quiet { quiet + 1 } else { 0 };
        if quiet > 0 {
            if to.has_left() {
                return Ok(());
            }
            if quiet < LOOKS_PER_SIGN {
                continue;
            }
            quiet = 0;
        }
        form.write(&event, to)?;
        to.part(STREAM_PATIENCE)?;
        if let RowEvent::Rows(_, blocks) = &event {
            stream.rest(blocks.iter().map(|block| block.len()).sum());
        }
        if event == RowEvent::End {
            return Ok(());
        }
    }
}

/// The lines of blocks of rows.
fn lines(blocks: &[Arc<[u8]>]) -> impl Iterator<Item = &[u8]> {
    blocks.iter().flat_map(|block| each_line(block))
}

impl StreamForm {
    fn content_type(self) -> &'static str {
        match self {
            StreamForm::Events => "text/event-stream; charset=utf-8",
            StreamForm::Lines => "application/x-ndjson",
        }
    }

    fn write(self, event: &RowEvent, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        match (self, event) {
            (_, RowEvent::Rows(lost, blocks)) => {
                // The report of a loss comes before the rows that follow it.
                if *lost > 0 {
                    self.write_lost(*lost, to)?;
                }
                lines(blocks).try_for_each(|line| self.write_row(line, to))
            }
            // A comment: nothing for the client but that the connection lasts.
            (StreamForm::Events, RowEvent::Quiet) => to.write_all(b":\n\n"),
            (StreamForm::Events, RowEvent::End) => to.write_all(b"event: end\ndata: {}\n\n"),
            // Readers of such lines skip empty ones.
            (StreamForm::Lines, RowEvent::Quiet) => to.write_all(b"\n"),
            (StreamForm::Lines, RowEvent::End) => Ok(()),
        }
    }

    fn write_row(self, line: &[u8], to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let (before, after): (&[u8], &[u8]) = match self {
            StreamForm::Events => (b"data: ", b"\n\n"),
            StreamForm::Lines => (b"", b"\n"),
        };
        [before, line, after].iter().try_for_each(|part| to.write_all(part))
    }

    fn write_lost(self, rows: u64, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        match self {
            StreamForm::Events => write!(to, "event: lost\ndata: {{\"rows\":{rows}}}\n\n"),
            StreamForm::Lines => writeln!(to, "{{\"_lost\":{rows}}}"),
        }
    }
}
