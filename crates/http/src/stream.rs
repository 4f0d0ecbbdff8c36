//! Rows as a stream that lasts: server-sent events, or lines of JSON.

use crate::api::error;
use crate::feed::{NoRows, RowEvent, RowFeed, rows};
use crate::limits::{LOOK, LOOKS_PER_SIGN, STREAM_PATIENCE, STREAMS_MAX};
use crate::request::HttpRequest;
use crate::response::{Status, stream_head};
use std::io::{self, Write};
use std::sync::Arc;
use weir_control::Taker;

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
pub(crate) fn send_rows(
    feed: &RowFeed,
    request: &HttpRequest,
    to: &mut dyn Taker,
) -> io::Result<()> {
    let refuse = |status, reason: &str, to: &mut dyn Taker| error(status, reason, "").write(to);
    let Some(program) = request.head.param("program") else {
        return refuse(Status::BadRequest, "name a program: /api/v1/rows?program=NAME", to);
    };
    let stream = match feed.subscribe(program) {
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
        if let RowEvent::Rows(blocks) = &event {
            stream.rest(blocks.iter().map(|block| block.len()).sum());
        }
        if event == RowEvent::End {
            return Ok(());
        }
    }
}

/// The lines of blocks of rows.
fn lines(blocks: &[Arc<[u8]>]) -> impl Iterator<Item = &[u8]> {
    blocks.iter().flat_map(|block| rows(block))
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
            (StreamForm::Events, RowEvent::Rows(all)) => lines(all).try_for_each(|line| {
                to.write_all(b"data: ")?;
                to.write_all(line)?;
                to.write_all(b"\n\n")
            }),
            (StreamForm::Events, RowEvent::Lost(n)) => {
                write!(to, "event: lost\ndata: {{\"rows\":{n}}}\n\n")
            }
            // A comment: nothing for the client but that the connection lasts.
            (StreamForm::Events, RowEvent::Quiet) => to.write_all(b":\n\n"),
            (StreamForm::Events, RowEvent::End) => to.write_all(b"event: end\ndata: {}\n\n"),
            (StreamForm::Lines, RowEvent::Rows(all)) => lines(all).try_for_each(|line| {
                to.write_all(line)?;
                to.write_all(b"\n")
            }),
            (StreamForm::Lines, RowEvent::Lost(n)) => writeln!(to, "{{\"_lost\":{n}}}"),
            // Readers of such lines skip empty ones.
            (StreamForm::Lines, RowEvent::Quiet) => to.write_all(b"\n"),
            (StreamForm::Lines, RowEvent::End) => Ok(()),
        }
    }
}
