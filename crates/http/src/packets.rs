//! Packets that rows are made of, found again: as JSON, or as a capture.

use crate::answer::{bad, body, error};
use crate::request::HttpRequest;
use crate::response::{Response, Status};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Which packets are asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum WhichPackets {
    /// The packets of a row of a program.
    Row {
        /// The program.
        program: String,
        /// The output of the row, where the program has several.
        output: Option<String>,
        /// The columns of the row that are known, as rows have them.
        row: Map<String, Value>,
    },
    /// Packets that meet a condition of the language; an empty one holds for all.
    Condition(String),
}

/// A question for packets.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketsQuestion {
    /// Which packets.
    pub which: WhichPackets,
    /// They are not before this time (RFC 3339), ...
    pub from: Option<String>,
    /// ... and before this one.
    pub until: Option<String>,
    /// How many at most; `None` for as many as usual.
    pub limit: Option<u64>,
    /// How they are answered.
    pub form: PacketsForm,
}

/// How packets are answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PacketsForm {
    /// Decoded, as JSON.
    #[default]
    Json,
    /// As a pcapng file.
    Pcapng,
}

/// Packets.
#[derive(Clone, PartialEq, Debug)]
pub enum PacketsAnswer {
    /// Decoded.
    Decoded(Value),
    /// A pcapng file.
    Capture {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Why it may lack packets: names of members that the decoded answer would have.
        lacks: Vec<&'static str>,
    },
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPackets {
    /// There is no such program or output.
    Unknown(String),
    /// The question is wrong; the second text is for people, such as diagnostics.
    Wrong(String, String),
    /// The run keeps no packets, or can't tell those of such rows.
    Impossible(String),
    /// Others look for packets already.
    Busy(String),
}

/// Finds packets. Several threads call it at a time.
pub type FindPackets =
    Box<dyn Fn(PacketsQuestion) -> Result<PacketsAnswer, NoPackets> + Send + Sync>;

/// The body of a question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketsBody {
    program: Option<String>,
    output: Option<String>,
    row: Option<Map<String, Value>>,
    #[serde(rename = "where")]
    condition: Option<String>,
    from: Option<String>,
    until: Option<String>,
    limit: Option<u64>,
    #[serde(default)]
    format: PacketsForm,
}

impl PacketsBody {
    fn question(self) -> Result<PacketsQuestion, Box<Response>> {
        let which = match (self.program, self.row, self.condition) {
            (Some(program), Some(row), None) => {
                WhichPackets::Row { program, output: self.output, row }
            }
            (None, None, Some(condition)) if self.output.is_none() => {
                WhichPackets::Condition(condition)
            }
            _ => return Err(bad("name a `program` with a `row` of it, or give a `where`")),
        };
        let PacketsBody { from, until, limit, format: form, .. } = self;
        Ok(PacketsQuestion { which, from, until, limit, form })
    }
}

/// Answers a question for packets.
pub(crate) fn find(
    packets: Option<&FindPackets>,
    request: &HttpRequest,
) -> Result<Response, Box<Response>> {
    let question = body::<PacketsBody>(request)?.question()?;
    let Some(packets) = packets else {
        let reason = "this run keeps no packets that have passed: start it with --ring 64m";
        return Err(Box::new(error(Status::Conflict, reason, "")));
    };
    match packets(question) {
        Ok(PacketsAnswer::Decoded(value)) => Ok(Response::json(Status::Ok, &value)),
        Ok(PacketsAnswer::Capture { bytes, lacks }) => {
            let mut response = Response::typed(Status::Ok, "application/x-pcapng", bytes);
            "Cache-Control: no-store\r\nContent-Disposition: attachment; \
             filename=\"weir-packets.pcapng\"\r\n"
                .clone_into(&mut response.headers);
            if !lacks.is_empty() {
                let _ = write!(response.headers, "Weir-Lacks: {}\r\n", lacks.join(", "));
            }
            Ok(response)
        }
        Err(why) => Err(Box::new(match why {
            NoPackets::Unknown(reason) => error(Status::NotFound, &reason, ""),
            NoPackets::Wrong(reason, text) => error(Status::Unprocessable, &reason, &text),
            NoPackets::Impossible(reason) => error(Status::Conflict, &reason, ""),
            NoPackets::Busy(reason) => error(Status::Unavailable, &reason, ""),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::read_request;
    use serde_json::json;

    fn asked(body: &Value) -> Result<PacketsQuestion, u32> {
        let body: PacketsBody = serde_json::from_value(body.clone()).map_err(|_| 0_u32)?;
        body.question().map_err(|_| 1)
    }

    #[test]
    fn a_question_is_of_a_row_or_a_condition() {
        let row = asked(&json!({ "program": "a", "row": { "n": 1 }, "limit": 5 })).expect("one");
        assert_eq!((row.limit, row.form), (Some(5), PacketsForm::Json));
        assert!(matches!(row.which, WhichPackets::Row { output: None, .. }));
        let all = asked(&json!({ "where": "", "format": "pcapng" })).expect("one");
        let expected = WhichPackets::Condition(String::new());
        assert_eq!((all.which, all.form), (expected, PacketsForm::Pcapng));
        for (wrong, how) in [
            (json!({}), 1),
            (json!({ "program": "a" }), 1),
            (json!({ "row": {} }), 1),
            (json!({ "program": "a", "row": {}, "where": "tcp" }), 1),
            (json!({ "where": "tcp", "output": "a" }), 1),
            (json!({ "where": "tcp", "format": "html" }), 0),
            (json!({ "where": "tcp", "limit": -1 }), 0),
            (json!({ "where": "tcp", "more": 1 }), 0),
            (json!({ "where": 1 }), 0),
        ] {
            assert_eq!(asked(&wrong).err(), Some(how), "{wrong}");
        }
    }

    #[test]
    fn a_capture_is_a_file_and_refusals_say_why() {
        let body = br#"{"where": "tcp"}"#;
        let head =
            format!("POST /api/v1/packets HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
        let bytes = [head.as_bytes(), body].concat();
        let request = read_request(&mut &bytes[..], |_| Ok(())).expect("there").expect("one");
        let find_by = |found: Result<PacketsAnswer, NoPackets>| {
            let packets: FindPackets = Box::new(move |_| found.clone());
            find(Some(&packets), &request).unwrap_or_else(|refusal| *refusal)
        };
        let capture = |lacks| Ok(PacketsAnswer::Capture { bytes: vec![1, 2], lacks });
        let file = find_by(capture(vec!["more", "gone"]));
        assert!(file.headers.ends_with("\r\nWeir-Lacks: more, gone\r\n"), "{}", file.headers);
        let file = find_by(capture(Vec::new()));
        assert!(!file.headers.contains("Weir-Lacks"));
        assert_eq!((file.status, file.content_type), (Status::Ok, "application/x-pcapng"));
        assert!(file.headers.contains("attachment") && file.headers.contains("no-store"));
        let reason = "why".to_owned();
        for (why, status) in [
            (NoPackets::Unknown(reason.clone()), Status::NotFound),
            (NoPackets::Wrong(reason.clone(), "text".to_owned()), Status::Unprocessable),
            (NoPackets::Impossible(reason.clone()), Status::Conflict),
            (NoPackets::Busy(reason), Status::Unavailable),
        ] {
            let refused = find_by(Err(why));
            assert_eq!(refused.status, status);
            assert!(String::from_utf8_lossy(&refused.body).contains("why"));
        }
        let none = find(None, &request).expect_err("no packets");
        assert!(String::from_utf8_lossy(&none.body).contains("--ring"));
    }
}
