//! What a run shows, by path.

use crate::exposition::MetricsFormat;
use crate::request::HttpRequest;
use crate::response::{Response, Status};

/// What a run shows. Several threads ask at a time.
pub struct Pages {
    /// The metrics as text, if the run answers in time.
    pub metrics: Box<dyn Fn(MetricsFormat) -> Option<String> + Send + Sync>,
    /// Whether the run answers.
    pub is_healthy: Box<dyn Fn() -> bool + Send + Sync>,
}

/// What to say where the run does not answer.
const SILENT: &str = "the run does not answer: it may be waiting for its source";

impl Pages {
    /// Answers a request that its guard has let pass.
    pub(crate) fn answer(&self, request: &HttpRequest) -> Response {
        let head = &request.head;
        let mut response = match (head.path.as_str(), head.method.as_str()) {
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
        };
        response.head_only = head.method == "HEAD";
        response
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
