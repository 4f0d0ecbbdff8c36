//! The pages of a run, by path.

use crate::answer::error;
use crate::api::Api;
use crate::exposition::MetricsFormat;
use crate::follow::send_kept;
use crate::limits::{LARGE_ANSWER, LARGE_ANSWERS_MAX};
use crate::page::Page;
use crate::request::{HttpRequest, RequestHead};
use crate::response::{Response, Status};
use crate::stream::send_rows;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// How many large answers are on their way.
#[derive(Default)]
pub(crate) struct LargeAnswers(AtomicUsize);

impl LargeAnswers {
    /// Writes an answer, or says that there are too many of its size.
    fn write(&self, response: &Response, to: &mut dyn Taker) -> io::Result<()> {
        if response.body.len() < LARGE_ANSWER {
            return response.write(to);
        }
        let others = self.0.fetch_add(1, Ordering::Relaxed);
        let result = if others < LARGE_ANSWERS_MAX {
            response.write(to)
        } else {
            let reason = format!("busy: {others} other large answers are being taken; try again");
            error(Status::Unavailable, &reason, "").write(to)
        };
        self.0.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

/// The message where the run does not answer.
const SILENT: &str = "the run does not answer: it may be waiting for its source";

impl Pages {
    /// Answers a request that its guard has let pass.
    ///
    /// # Errors
    /// If the client does not take the answer.
    pub(crate) fn answer(
        &self,
        request: &HttpRequest,
        large: &LargeAnswers,
        to: &mut dyn Taker,
    ) -> io::Result<()> {
        let (path, method) = (request.head.path.as_str(), request.head.method.as_str());
        match &self.api {
            Some(api) if path == "/api/v1/rows" && method == "GET" => {
                send_rows(&api.rows, request, to)
            }
            Some(api) if path == "/api/v1/recent" && method == "GET" => {
                send_kept(&api.rows, request, to)
            }
            Some(api) if path.starts_with("/api/") => {
                large.write(&api.answer(request).to(method, path), to)
            }
            _ => self.page(request).write(to),
        }
    }

    fn page(&self, request: &HttpRequest) -> Response {
        let head = &request.head;
        let of_page = self.page.as_ref().and_then(|page| page.answer(request));
        let mut response = of_page.unwrap_or_else(|| self.plain(head));
        response.head_only = response.status == Status::NotModified;
        response.to(&head.method, &head.path)
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
            _ => Response::text(Status::NotFound, self.paths()),
        }
    }

    /// The paths that there are, for those who ask for something else.
    fn paths(&self) -> &'static str {
        match (&self.page, &self.api) {
            (Some(_), _) => "there are / (the page), /api/v1/, /metrics and /health",
            (None, Some(_)) => "there are /api/v1/, /metrics and /health",
            (None, None) => "there are /metrics and /health",
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    /// A client that takes its answer once it may.
    struct Slow {
        leave: Option<Receiver<()>>,
        taken: Vec<u8>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(leave) = self.leave.take() {
                leave.recv().map_err(io::Error::other)?;
            }
            self.taken.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Taker for Slow {
        fn part(&mut self, _time: Duration) -> io::Result<()> {
            Ok(())
        }

        fn has_left(&self) -> bool {
            false
        }

        fn makes_room(&mut self) {}
    }

    #[test]
    fn only_so_many_large_answers_wait_for_their_clients() {
        let large = LargeAnswers::default();
        let response = Response::typed(Status::Ok, "application/x-pcapng", vec![7; LARGE_ANSWER]);
        let write = |response: &Response, leave: Option<Receiver<()>>| {
            let mut client = Slow { leave, taken: Vec::new() };
            large.write(response, &mut client).map(|()| client.taken)
        };
        std::thread::scope(|scope| {
            let start = || {
                let (leave, waits) = channel();
                (leave, scope.spawn(|| write(&response, Some(waits))))
            };
            let mut waiting: Vec<_> = (0..LARGE_ANSWERS_MAX).map(|_| start()).collect();
            while large.0.load(Ordering::Relaxed) < LARGE_ANSWERS_MAX {
                std::thread::yield_now();
            }
            let busy = write(&response, None).expect("it is taken");
            assert!(busy.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&busy));
            // Messages that are small are written.
            let small = write(&Response::text(Status::Ok, "ok"), None).expect("it is taken");
            assert!(small.starts_with(b"HTTP/1.1 200 "));
            // One whose client has left makes room, too.
            let (leave, gone) = waiting.pop().expect("one of them");
            drop(leave);
            gone.join().expect("no panic").expect_err("it has left");
            let (leave, last) = start();
            for (leave, client) in waiting.into_iter().chain([(leave, last)]) {
                leave.send(()).expect("it waits");
                let taken = client.join().expect("no panic").expect("it is taken");
                assert!(taken.starts_with(b"HTTP/1.1 200 ") && taken.len() > LARGE_ANSWER);
            }
        });
    }
}
