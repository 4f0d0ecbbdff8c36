//! Answers.

use serde_json::json;
use std::io::{self, Write};

/// An answer that is in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) status: Status,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Whether the body is left out, as for HEAD.
    pub(crate) head_only: bool,
    /// Further headers, each with its line end; without any, browsers keep no copy.
    pub(crate) headers: String,
}

/// The statuses that are used here, of RFC 9110, section 15, and RFC 6585.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    NotModified,
    BadRequest,
    Unauthorized,
    Conflict,
    Forbidden,
    NotFound,
    MethodNotAllowed(&'static str),
    RequestTimeout,
    LengthRequired,
    ContentTooLarge,
    Misdirected,
    TooManyRequests,
    Unprocessable,
    HeadTooLarge,
    NotImplemented,
    Unavailable,
    VersionNotSupported,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::NotModified => "304 Not Modified",
            Status::BadRequest => "400 Bad Request",
            Status::Unauthorized => "401 Unauthorized",
            Status::Conflict => "409 Conflict",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed(_) => "405 Method Not Allowed",
            Status::RequestTimeout => "408 Request Timeout",
            Status::LengthRequired => "411 Length Required",
            Status::ContentTooLarge => "413 Content Too Large",
            Status::Misdirected => "421 Misdirected Request",
            Status::Unprocessable => "422 Unprocessable Content",
            Status::TooManyRequests => "429 Too Many Requests",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::NotImplemented => "501 Not Implemented",
            Status::Unavailable => "503 Service Unavailable",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every answer. Browsers guess no type, and show none to the pages of others.
const ALWAYS: &str = "Connection: close\r\nX-Content-Type-Options: nosniff\r\n\
                      Cross-Origin-Resource-Policy: same-origin\r\n";

/// Browsers keep no answer that says something of a run.
const KEEP_NOTHING: &str = "Cache-Control: no-store\r\n";

/// The head of an answer of any length, which ends with the connection.
pub(crate) fn stream_head(content_type: &str) -> String {
    let unbuffered = "X-Accel-Buffering: no";
    format!(
        "HTTP/1.1 200 OK\r\n{ALWAYS}{KEEP_NOTHING}{unbuffered}\r\n\
         Content-Type: {content_type}\r\n\r\n"
    )
}

impl Response {
    /// Bytes of some type.
    pub(crate) fn typed(
        status: Status,
        content_type: &'static str,
        body: impl Into<Vec<u8>>,
    ) -> Response {
        Response {
            status,
            content_type,
            body: body.into(),
            head_only: false,
            headers: String::new(),
        }
    }

    /// A value as JSON.
    pub(crate) fn json(status: Status, value: &serde_json::Value) -> Response {
        Response::typed(status, "application/json", format!("{value}\n"))
    }

    /// A text.
    pub(crate) fn text(status: Status, text: impl Into<String>) -> Response {
        let mut body = text.into();
        if !body.ends_with('\n') {
            body.push('\n');
        }
        Response::typed(status, TEXT, body.into_bytes())
    }

    /// The same, as the answer to a request for a path: HEAD leaves the body out, and programs that
    /// ask the API get an object in any case.
    pub(crate) fn to(mut self, method: &str, path: &str) -> Response {
        if self.content_type == TEXT && path.starts_with("/api/") {
            let error = String::from_utf8_lossy(&self.body);
            let Response { content_type, body, .. } =
                Response::json(self.status, &json!({ "error": error.trim_end() }));
            self = Response { content_type, body, ..self };
        }
        self.head_only |= method == "HEAD";
        self
    }

    /// Writes it.
    ///
    /// # Errors
    /// If the client does not take it.
    pub(crate) fn write(&self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Response { status, content_type, body, head_only, headers } = self;
        let headers = if headers.is_empty() { KEEP_NOTHING } else { headers };
        let mut head = format!("HTTP/1.1 {}\r\n{ALWAYS}{headers}", status.line());
        match status {
            Status::Unauthorized => head += "WWW-Authenticate: Bearer realm=\"weir\"\r\n",
            Status::MethodNotAllowed(allowed) => head += &format!("Allow: {allowed}\r\n"),
            Status::TooManyRequests | Status::Unavailable => head += "Retry-After: 1\r\n",
            _ => {}
        }
        head += &format!("Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len());
        to.write_all(head.as_bytes())?;
        if !head_only {
            to.write_all(body)?;
        }
        to.flush()
    }
}
