//! Captures beside the run, which queries may be asked of: in a folder, or sent by clients.

use crate::answer::{bad, body, error};
use crate::request::HttpRequest;
use crate::response::{Response, Status};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_sink::each_line;

/// The question of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShelfQuestion {
    /// Which captures there are.
    List,
    /// Keep a capture.
    Add {
        /// The client's name for it.
        title: String,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Let go of a capture that was sent.
    Remove {
        /// Its name.
        capture: String,
    },
    /// Run a query over a capture.
    Query {
        /// The name of the capture: `file:NAME` or `upload:NUMBER`.
        capture: String,
        /// The text of the query.
        text: String,
        /// Values of its params.
        params: BTreeMap<String, String>,
    },
}

/// An answer: an object, and rows as lines of JSON if a query was asked.
#[derive(Clone, PartialEq, Debug)]
pub struct ShelfAnswer {
    /// The object.
    pub head: Value,
    /// The rows.
    pub rows: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShelfRefusal {
    /// There is no such capture.
    Missing(String),
    /// The question is wrong; the second text is for people, such as diagnostics.
    Wrong(String, String),
    /// There are as many captures as may be.
    Full(String),
    /// Others ask at the same time.
    Busy(String),
    /// The keeper of the captures has ended, and asking again does not help.
    Ended(String),
}

/// Asks what keeps the captures. Several threads call it at a time.
pub type AskShelf = Box<dyn Fn(ShelfQuestion) -> Result<ShelfAnswer, ShelfRefusal> + Send + Sync>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureQueryBody {
    capture: String,
    text: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
}

/// Answers a request about captures.
pub(crate) fn answer(
    shelf: Option<&AskShelf>,
    (path, method): (&str, &str),
    request: &HttpRequest,
) -> Result<Response, Box<Response>> {
    let Some(shelf) = shelf else {
        let reason = "this run keeps no captures: `weir serve` does";
        return Err(Box::new(error(Status::Conflict, reason, "")));
    };
    let name = || request.head.param("name").unwrap_or_default().to_owned();
    let question = match (path, method) {
        ("/api/v1/captures", "GET") => ShelfQuestion::List,
        ("/api/v1/captures", "DELETE") => ShelfQuestion::Remove { capture: name() },
        ("/api/v1/captures", _) if request.body.is_empty() => {
            return Err(bad("the body is the capture, and it is empty"));
        }
        ("/api/v1/captures", _) => {
            ShelfQuestion::Add { title: name(), bytes: request.body.clone() }
        }
        _ => {
            let CaptureQueryBody { capture, text, params } = body(request)?;
            ShelfQuestion::Query { capture, text, params }
        }
    };
    let is_query = matches!(question, ShelfQuestion::Query { .. });
    match shelf(question) {
        Ok(answer) if is_query => Ok(with_rows(&answer)),
        Ok(answer) => Ok(Response::json(Status::Ok, &answer.head)),
        Err(why) => Err(Box::new(match why {
            ShelfRefusal::Missing(reason) => error(Status::NotFound, &reason, ""),
            ShelfRefusal::Wrong(reason, text) => error(Status::Unprocessable, &reason, &text),
            ShelfRefusal::Full(reason) => error(Status::Conflict, &reason, ""),
            ShelfRefusal::Busy(reason) | ShelfRefusal::Ended(reason) => {
                error(Status::Unavailable, &reason, "")
            }
        })),
    }
}

/// The object of an answer with the rows in it, which are JSON already.
fn with_rows(answer: &ShelfAnswer) -> Response {
    let head = answer.head.to_string();
    let open = head.strip_suffix('}').unwrap_or(&head);
    let mut bytes = open.as_bytes().to_vec();
    bytes.extend_from_slice(if open.len() > 1 { b",\"rows\":[" } else { b"\"rows\":[" });
    for (i, line) in each_line(&answer.rows).enumerate() {
        bytes.extend_from_slice(if i > 0 { b"," } else { b"" });
        bytes.extend_from_slice(line);
    }
    bytes.extend_from_slice(b"]}\n");
    Response::typed(Status::Ok, "application/json", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_in_the_object() {
        for head in [json!({ "more": false }), json!({})] {
            for (rows, n) in [("", 0), ("{\"n\":1}\n", 1), ("{\"n\":1}\n{\"n\":2}\n", 2)] {
                let answer = ShelfAnswer { head: head.clone(), rows: rows.into() };
                let value: Value = serde_json::from_slice(&with_rows(&answer).body).expect("JSON");
                assert_eq!(value["rows"].as_array().map(Vec::len), Some(n));
                assert_eq!(value["more"], head["more"]);
            }
        }
    }
}
