//! The latest state of each alert that a run has raised, as far as the run keeps them.

use crate::answer::{bad, error};
use crate::request::HttpRequest;
use crate::response::{Response, Status};
use serde_json::Value;

/// Which alerts a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AlertPhase {
    /// Alerts that go on, as far as the run knows.
    Open,
    /// Alerts that have ended.
    End,
    /// All that are kept.
    #[default]
    All,
}

/// The alerts that a client asks for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AlertsQuestion {
    /// In which phase they are.
    pub phase: AlertPhase,
    /// Of which program; `None`: of all.
    pub program: Option<String>,
}

/// Lists alerts; `None` if no program has that name, and none had it whose alerts are kept. Several
/// threads call it at a time.
pub type ListAlerts = Box<dyn Fn(&AlertsQuestion) -> Option<Value> + Send + Sync>;

/// Answers a request for alerts.
pub(crate) fn answer(list: &ListAlerts, request: &HttpRequest) -> Result<Response, Box<Response>> {
    let phase = match request.head.param("state") {
        None | Some("all") => AlertPhase::All,
        Some("open") => AlertPhase::Open,
        Some("end") => AlertPhase::End,
        Some(_) => return Err(bad("`state` is open, end or all")),
    };
    let program = request.head.param("program").map(str::to_owned);
    if program.as_deref() == Some("") {
        return Err(bad("`program` is the name of a program"));
    }
    let question = AlertsQuestion { phase, program };
    match list(&question) {
        Some(value) => Ok(Response::json(Status::Ok, &value)),
        None => {
            let name = question.program.unwrap_or_default();
            Err(Box::new(error(Status::NotFound, &format!("no program is called {name}"), "")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::read_request;
    use serde_json::json;

    #[test]
    fn questions_are_read() {
        let list: ListAlerts = Box::new(|asked| match asked.program.as_deref() {
            Some("none") => None,
            _ => Some(json!({ "asked": format!("{asked:?}") })),
        });
        let asked = |query: &str| {
            let bytes = format!("GET /api/v1/alerts{query} HTTP/1.1\r\n\r\n");
            let read = read_request(&mut bytes.as_bytes(), |_| Ok(())).expect("there");
            let answer = answer(&list, &read.expect("one")).unwrap_or_else(|refusal| *refusal);
            (answer.status, String::from_utf8(answer.body.to_vec()).expect("text"))
        };
        for (query, phase, program) in [
            ("", "All", "None"),
            ("?state=all", "All", "None"),
            ("?state=open&program=a", "Open", "Some(\\\"a\\\")"),
            ("?program=a.b&state=end", "End", "Some(\\\"a.b\\\")"),
        ] {
            let (status, body) = asked(query);
            assert_eq!(status, Status::Ok, "{query}");
            let expected = format!("phase: {phase}, program: {program}");
            assert!(body.contains(&expected), "{query}: {body}");
        }
        for (query, status, why) in [
            ("?state=", Status::BadRequest, "open, end or all"),
            ("?state=start", Status::BadRequest, "open, end or all"),
            ("?program=", Status::BadRequest, "name of a program"),
            ("?program=none", Status::NotFound, "no program is called none"),
        ] {
            let (found, body) = asked(query);
            assert!(found == status && body.contains(why), "{query}: {body}");
        }
    }
}
