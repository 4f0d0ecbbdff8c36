//! The pages of a run, by path.

use crate::api::Api;
use crate::exposition::MetricsFormat;
use crate::follow::send_kept;
use crate::page::Page;
use crate::request::{HttpRequest, RequestHead};
use crate::response::{Response, Status};
use crate::stream::send_rows;
use std::io;
use weir_control::Taker;

/// The pages of a run. Several threads ask for them at a time.
pub struct Pages {
    /// The metrics as text, if the run answers in time.
    pub metrics: Box<dyn Fn(MetricsFormat) -> Option<String> + Send + Sync>,
    /// Whether the run answers.
    pub is_healthy: Box<dyn Fn() -> bool + Send + Sync>,
    /// The programs, and their rows, where clients may change them.
    pub api: Option<Api>,
    /// The page for browsers, where there is one.
    pub page: Option<Page>,
}

/// What to say where the run does not answer.
const SILENT: &str = "the run does not answer: it may be waiting for its source";

impl Pages {
    /// Answers a request that its guard has let pass.
    ///
    /// # Errors
    /// If the client does not take the answer.
    pub(crate) fn answer(&self, request: &HttpRequest, to: &mut dyn Taker) -> io::Result<()> {
        let (path, method) = (request.head.path.as_str(), request.head.method.as_str());
        match &self.api {
            Some(api) if path == "/api/v1/rows" && method == "GET" => {
                send_rows(&api.rows, request, to)
            }
            Some(api) if path == "/api/v1/recent" && method == "GET" => {
                send_kept(&api.rows, request, to)
            }
            Some(api) if path.starts_with("/api/") => api.answer(request).write(to),
            _ => self.page(request).write(to),
        }
    }

    fn page(&self, request: &HttpRequest) -> Response {
        let head = &request.head;
        let of_page = self.page.as_ref().and_then(|page| page.answer(request));
        let mut response = of_page.unwrap_or_else(|| self.plain(head));
        response.head_only = head.method == "HEAD" || response.status == Status::NotModified;
        response
    }

    fn plain(&self, head: &RequestHead) -> Response {
        match (head.path.as_str(), head.method.as_str()) {
            ("/metrics", "GET" | "HEAD") => {
                self.metrics(MetricsFormat::accepted(&head.all("accept")))
            }
            ("/health", "GET" | "HEAD") => match (self.is_healthy)() {
                true => Response::text(Status::Ok, "ok"),
                false => Response::text(Status::Unavailable, SILENT),
            },
            ("/metrics" | "/health", _) => {
                Response::text(Status::MethodNotAllowed("GET, HEAD"), "only GET and HEAD")
            }
            _ => Response::text(Status::NotFound, "there are /metrics and /health"),
        }
    }

    fn metrics(&self, format: MetricsFormat) -> Response {
        match (self.metrics)(format) {
            Some(text) => {
                Response { content_type: format.content_type(), ..Response::text(Status::Ok, text) }
            }
            None => Response::text(Status::Unavailable, SILENT),
        }
    }
}
