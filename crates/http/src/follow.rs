//! The rows that are kept, and those that follow, as server-sent events: for pages that show what
//! was before they came.

use crate::answer::error;
use crate::form::ShownOutput;
use crate::limits::{
    FOLLOW_PACE, FOLLOWED_MAX, LOOK, LOOKS_PER_SIGN, STREAM_PATIENCE, STREAMS_MAX,
};
use crate::log::{RowLog, Unseen};
use crate::request::HttpRequest;
use crate::response::{Status, stream_head};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::thread;
use weir_control::Taker;
use weir_sink::each_line;

/// Reads `a,b:12`: programs, and the number of the row that a client wants next.
fn cursors(text: &str) -> Option<Vec<(String, Option<u64>)>> {
    let one = |word: &str| match word.split_once(':') {
        Some((name, number)) => number.parse().ok().map(|n| (name.to_owned(), Some(n))),
        None => Some((word.to_owned(), None)),
    };
    let all: Option<Vec<_>> = text.split(',').take(FOLLOWED_MAX + 1).map(one).collect();
    all.filter(|all| all.len() <= FOLLOWED_MAX && all.iter().all(|(name, _)| !name.is_empty()))
}

/// Sends the rows of the programs that a request names, until the client leaves or the run ends.
///
/// # Errors
/// If the client does not take what comes.
pub(crate) fn send_kept(log: &RowLog, request: &HttpRequest, to: &mut dyn Taker) -> io::Result<()> {
    let refuse = |status, reason: &str, to: &mut dyn Taker| error(status, reason, "").write(to);
    if !log.keeps() {
        let reason = "this run keeps no rows: it has no page (weir serve)";
        return refuse(Status::NotFound, reason, to);
    }
    let Some(mut cursors) = request.head.param("programs").and_then(cursors) else {
        let reason = format!(
            "name at most {FOLLOWED_MAX} programs: /api/v1/recent?programs=NAME,NAME:NUMBER"
        );
        return refuse(Status::BadRequest, &reason, to);
    };
    let Some(_follower) = log.follow() else {
        let reason = format!("{STREAMS_MAX} clients get rows already");
        return refuse(Status::Unavailable, &reason, to);
    };
    to.write_all(stream_head("text/event-stream; charset=utf-8").as_bytes())?;
    to.part(STREAM_PATIENCE)?;
    let mut quiet = 0;
    while let Some(all) = log.unseen(&mut cursors, LOOK) {
        if all.is_empty() {
            if to.has_left() {
                return Ok(());
            }
            quiet += 1;
            if quiet < LOOKS_PER_SIGN {
                continue;
            }
            to.write_all(b":\n\n")?;
        }
        quiet = 0;
        for (program, unseen) in &all {
            write(program, unseen, to)?;
            to.part(STREAM_PATIENCE)?;
        }
        to.part(STREAM_PATIENCE)?;
        // A client gets what comes meanwhile in one go.
        thread::park_timeout(FOLLOW_PACE);
    }
    to.write_all(b"event: end\ndata: {}\n\n")?;
    to.part(STREAM_PATIENCE)
}

/// Writes an event for rows of a program.
fn write(program: &str, unseen: &Unseen, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let Unseen { outputs, skipped, blocks, next } = unseen;
    let outputs = outputs.as_ref().map(|all| all.iter().map(described).collect::<Vec<_>>());
    let mut head = json!({ "program": program, "next": next, "skipped": skipped });
    if let Some(outputs) = outputs {
        head["outputs"] = outputs.into();
    }
    let head = head.to_string();
    let open = head.strip_suffix('}').unwrap_or(&head);
    write!(to, "event: rows\ndata: {open},\"rows\":[")?;
    for (i, line) in blocks.iter().flat_map(|block| each_line(block)).enumerate() {
        to.write_all(if i > 0 { b"," } else { b"" })?;
        to.write_all(line)?;
    }
    to.write_all(b"]}\n\n")
}

fn described(output: &ShownOutput) -> Value {
    let column = |(name, ty): &(String, String)| json!({ "name": name, "type": ty });
    let columns: Vec<_> = output.columns.iter().map(column).collect();
    json!({ "name": output.output, "columns": columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_with_numbers() {
        let all = cursors("a,b-c:12").expect("two");
        assert_eq!(all, [("a".to_owned(), None), ("b-c".to_owned(), Some(12))]);
        for bad in ["", "a,", "a:", "a:x", "a:-1", "a:99999999999999999999", ":1"] {
            assert_eq!(cursors(bad), None, "{bad}");
        }
        assert!(cursors(&["a"; FOLLOWED_MAX].join(",")).is_some());
        assert_eq!(cursors(&["a"; FOLLOWED_MAX + 1].join(",")), None);
    }

    #[test]
    fn an_event_is_json() {
        let outputs = Some(vec![ShownOutput {
            program: "a".to_owned(),
            output: "a".to_owned(),
            columns: vec![("n\"".to_owned(), "int".to_owned())],
        }]);
        let blocks = vec![(*b"{\"n\":1}\n{\"n\":2}\n").into()];
        let unseen = Unseen { outputs, skipped: 3, blocks, next: 5 };
        let mut out = Vec::new();
        write("a", &unseen, &mut out).expect("in memory");
        let text = String::from_utf8(out).expect("text");
        let data = text.strip_prefix("event: rows\ndata: ").and_then(|t| t.strip_suffix("\n\n"));
        let value: Value = serde_json::from_str(data.expect("an event")).expect("JSON");
        let columns = json!([{ "name": "n\"", "type": "int" }]);
        let expected = json!({
            "program": "a", "next": 5, "skipped": 3, "rows": [{ "n": 1 }, { "n": 2 }],
            "outputs": [{ "name": "a", "columns": columns }],
        });
        assert_eq!(value, expected);
    }
}
