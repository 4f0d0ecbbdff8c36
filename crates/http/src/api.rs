//! The JSON API: what `weir ctl` asks, over HTTP.

use crate::alerts::{self, ListAlerts};
use crate::answer::{bad, body, error};
use crate::log::RowLog;
use crate::packets::{self, FindPackets};
use crate::request::HttpRequest;
use crate::response::{Response, Status};
use crate::shelf::{self, AskShelf};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_control::{Answers, Attached, QueryText, Reply, Request};

/// Questions about the programs of a run, and changes of them.
pub struct Api {
    /// Answers as the control socket does.
    pub answers: Arc<Answers>,
    /// The rows of programs.
    pub rows: RowLog,
    /// Lists the alerts of programs.
    pub alerts: ListAlerts,
    /// Answers to clients for which the run need not be asked.
    pub lookups: Lookups,
    /// Finds packets that have passed, where some are kept or can be read again.
    pub packets: Option<FindPackets>,
    /// Keeps captures beside the run, where something does.
    pub shelf: Option<AskShelf>,
}

/// Checks the text of a query with values of its params, by name.
pub type CheckQuery = Box<dyn Fn(&str, &[(String, String)]) -> Value + Send + Sync>;

/// Answers that do not depend on packets.
pub struct Lookups {
    /// Checks the text of a query, with values of its params, and says what its rows would be.
    pub check: CheckQuery,
    /// The words of the language, for completion.
    pub fields: Value,
    /// The queries that come with Weir.
    pub library: Value,
    /// Where packets come from, and whether more are to come.
    pub run: Box<dyn Fn() -> Value + Send + Sync>,
    /// The counts of the stages of programs; `None` if the run does not answer in time.
    pub stages: Box<dyn Fn() -> Option<Value> + Send + Sync>,
}

/// The paths of the API and their methods, as openapi.json describes them.
pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/api/v1/alerts", "GET"),
    ("/api/v1/captures", "GET, POST, DELETE"),
    ("/api/v1/captures/query", "POST"),
    ("/api/v1/check", "POST"),
    ("/api/v1/fields", "GET"),
    ("/api/v1/library", "GET"),
    ("/api/v1/openapi.json", "GET"),
    ("/api/v1/packets", "POST"),
    ("/api/v1/programs", "GET, POST"),
    ("/api/v1/programs/{name}", "GET, PUT, DELETE"),
    ("/api/v1/recent", "GET"),
    ("/api/v1/rows", "GET"),
    ("/api/v1/run", "GET"),
    ("/api/v1/stages", "GET"),
    ("/api/v1/stats", "GET"),
    ("/api/v1/suppressions", "GET, POST, PUT, DELETE"),
];

/// The message where the run does not answer.
const SILENT: &str = "the run does not answer: it may be waiting for its source";

/// The description of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// A query, as a client sends it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody {
    /// Where the path does not say it.
    name: Option<String>,
    text: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    files: Vec<FileBody>,
}

/// A query to be checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    text: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
}

/// A file that a query names, or a list of suppressions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBody {
    path: String,
    text: String,
}

/// A line of a list of suppressions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineBody {
    line: String,
}

/// Files of suppressions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesBody {
    files: Vec<FileBody>,
}

impl FileBody {
    fn attached(self) -> Attached {
        let bytes = self.text.into_bytes();
        Attached { path: self.path, len: bytes.len() as u64, bytes }
    }
}

impl QueryBody {
    /// The query, which has the name of the path if there is one.
    fn query(self, path: Option<&str>) -> Result<QueryText, Box<Response>> {
        let name = match (path, self.name) {
            (Some(name), None) => name.to_owned(),
            (Some(path), Some(name)) if path == name => name,
            (None, Some(name)) => name,
            (Some(_), Some(_)) => return Err(bad("the name is not that of the path")),
            (None, None) => return Err(bad("missing field `name`")),
        };
        Ok(QueryText {
            source: format!("{name}.weir"),
            name,
            text: self.text,
            params: self.params.into_iter().collect(),
            files: self.files.into_iter().map(FileBody::attached).collect(),
        })
    }
}

/// Which of the routes a path takes, with the name in it.
pub(crate) fn route(path: &str) -> Option<(usize, Option<&str>)> {
    let position = |wanted: &str| ROUTES.iter().position(|(route, _)| *route == wanted);
    match path.strip_prefix("/api/v1/programs/") {
        Some(name) if !name.is_empty() && !name.contains('/') => {
            position("/api/v1/programs/{name}").map(|at| (at, Some(name)))
        }
        _ => position(path).map(|at| (at, None)),
    }
}

impl Api {
    /// Answers a request that is not for rows.
    pub(crate) fn answer(&self, request: &HttpRequest) -> Response {
        self.respond(request).unwrap_or_else(|refusal| *refusal)
    }

    fn respond(&self, request: &HttpRequest) -> Result<Response, Box<Response>> {
        let unknown =
            || Box::new(error(Status::NotFound, "no such path: /api/v1/openapi.json", ""));
        let (at, name) = route(&request.head.path).ok_or_else(unknown)?;
        let (path, methods) = ROUTES[at];
        let method = request.head.method.as_str();
        if !methods.split(", ").any(|known| known == method) {
            let reason = format!("this path has {methods}");
            return Err(Box::new(error(Status::MethodNotAllowed(methods), &reason, "")));
        }
        if let Some(found) = self.look_up(path, method, name, request) {
            return found;
        }
        let question = match (path, method) {
            ("/api/v1/programs", "GET") => Request::List,
            ("/api/v1/programs", _) => Request::Add(body::<QueryBody>(request)?.query(None)?),
            ("/api/v1/programs/{name}", "PUT") => {
                Request::Replace(body::<QueryBody>(request)?.query(name)?)
            }
            ("/api/v1/programs/{name}", _) => {
                Request::Remove { name: name.unwrap_or_default().to_owned() }
            }
            ("/api/v1/stats", _) => Request::Stats,
            ("/api/v1/suppressions", "GET") => Request::Suppressions,
            ("/api/v1/suppressions", "POST") => {
                Request::Suppress { line: body::<LineBody>(request)?.line }
            }
            ("/api/v1/suppressions", "DELETE") => {
                Request::Unsuppress { line: body::<LineBody>(request)?.line }
            }
            ("/api/v1/suppressions", _) => {
                let files = body::<FilesBody>(request)?.files;
                Request::ReloadSuppressions {
                    files: files.into_iter().map(FileBody::attached).collect(),
                }
            }
            _ => return Err(unknown()),
        };
        Ok(self.ask(question, name))
    }

    /// Answers what need not ask the run; `None` if it is another question.
    fn look_up(
        &self,
        path: &str,
        method: &str,
        name: Option<&str>,
        request: &HttpRequest,
    ) -> Option<Result<Response, Box<Response>>> {
        let found = match (path, method) {
            ("/api/v1/openapi.json", _) => {
                Ok(Response::typed(Status::Ok, "application/json", OPENAPI))
            }
            ("/api/v1/check", _) => body::<CheckBody>(request).map(|CheckBody { text, params }| {
                let params: Vec<_> = params.into_iter().collect();
                Response::json(Status::Ok, &(self.lookups.check)(&text, &params))
            }),
            ("/api/v1/fields", _) => Ok(Response::json(Status::Ok, &self.lookups.fields)),
            ("/api/v1/stages", _) => (self.lookups.stages)()
                .map(|value| Response::json(Status::Ok, &value))
                .ok_or_else(|| Box::new(error(Status::Unavailable, SILENT, ""))),
            ("/api/v1/alerts", _) => alerts::answer(&self.alerts, request),
            ("/api/v1/library", _) => Ok(Response::json(Status::Ok, &self.lookups.library)),
            ("/api/v1/captures" | "/api/v1/captures/query", _) => {
                shelf::answer(self.shelf.as_ref(), (path, method), request)
            }
            ("/api/v1/packets", _) => packets::find(self.packets.as_ref(), request),
            ("/api/v1/run", _) => Ok(Response::json(Status::Ok, &(self.lookups.run)())),
            ("/api/v1/programs/{name}", "GET") => Ok(self.program(name.unwrap_or_default())),
            _ => return None,
        };
        Some(found)
    }

    /// A program with its text and its plan.
    fn program(&self, name: &str) -> Response {
        let Some(shown) = self.answers.program(name) else {
            return error(Status::NotFound, &format!("no program is called {name}"), "");
        };
        // A plan that calls functions of the embedding program can't be written.
        let plan = shown.plan.and_then(|plan| serde_json::from_str::<Value>(&plan).ok());
        let value = json!({
            "name": name,
            "source": shown.source,
            "text": shown.text,
            "plan": plan,
            "stages": shown.stages,
        });
        Response::json(Status::Ok, &value)
    }

    /// Answers as the control socket does. `name`: the program that the path names.
    fn ask(&self, question: Request, name: Option<&str>) -> Response {
        let (is_list, is_stats) = (question == Request::List, question == Request::Stats);
        let is_suppressions = question == Request::Suppressions;
        let exists = name.is_none_or(|name| {
            let all = self.answers.reply(Request::List).programs;
            all.iter().any(|program| program.name == name)
        });
        let reply = self.answers.reply(question);
        if let Some(reason) = &reply.error {
            let status = match () {
                () if is_stats => Status::Unavailable,
                () if !exists => Status::NotFound,
                () if !reply.text.is_empty() => Status::Unprocessable,
                () => Status::Conflict,
            };
            return error(status, reason, &reply.text);
        }
        let Reply { text, programs, suppressions, counts, .. } = reply;
        let value: Value = match () {
            () if is_list => json!({ "programs": programs }),
            () if is_suppressions => json!({ "suppressions": suppressions }),
            () if is_stats => json!(counts),
            () => json!({ "text": text }),
        };
        Response::json(Status::Ok, &value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path and method of the description is one of the API, and the other way round.
    #[test]
    fn the_description_has_the_paths_of_the_api() {
        let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let paths = description["paths"].as_object().expect("paths");
        let mut described: Vec<(String, String)> = Vec::new();
        for (path, item) in paths.iter().filter(|(path, _)| path.starts_with("/api/")) {
            let methods = ["get", "post", "put", "delete"];
            let known = methods.iter().filter(|method| item.get(**method).is_some());
            let all: Vec<_> = known.map(|method| method.to_uppercase()).collect();
            described.push((path.clone(), all.join(", ")));
        }
        described.sort();
        let expected: Vec<_> =
            ROUTES.iter().map(|(path, all)| ((*path).to_owned(), (*all).to_owned())).collect();
        assert_eq!(described, expected);
    }

    #[test]
    fn names_in_paths_are_one_segment() {
        let name = |path| route(path).and_then(|(_, name)| name);
        assert_eq!(name("/api/v1/programs/a-b"), Some("a-b"));
        for none in ["/api/v1/programs/", "/api/v1/programs/a/b", "/api/v1", "/api/v1/programs//"] {
            assert_eq!(route(none), None, "{none}");
        }
        assert!(route("/api/v1/programs").is_some());
    }
}
