//! Requests as bytes (RFC 9112).

use crate::limits::{BODY_MAX, HEAD_MAX, HEADERS_MAX, ROW_BODY_MAX};
use crate::response::{Response, Status};
use std::io::{self, BufRead, Read as _};

/// The head of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    /// The path that is asked for, without the question mark and what follows it.
    pub(crate) path: String,
    /// The text after the question mark.
    query: String,
    /// Names in lower case, and values.
    headers: Vec<(String, Vec<u8>)>,
}

/// A request that may be answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) head: RequestHead,
    pub(crate) body: Vec<u8>,
}

/// Why a request has no answer but this one.
pub(crate) type Refused = Box<Response>;

fn refused(status: Status, text: impl Into<String>) -> Refused {
    Box::new(Response::text(status, text))
}

impl RequestHead {
    /// The value of a header that may occur once; `Err`: it occurs more often.
    pub(crate) fn once(&self, name: &str) -> Result<Option<&[u8]>, Refused> {
        let mut all = self.headers.iter().filter(|(known, _)| known == name);
        let first = all.next().map(|(_, value)| value.as_slice());
        match all.next() {
            None => Ok(first),
            Some(_) => {
                Err(refused(Status::BadRequest, format!("the header {name} occurs more than once")))
            }
        }
    }

    /// All values of a header, separated by commas; what is no text is left out.
    pub(crate) fn all(&self, name: &str) -> String {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        let texts = values.filter_map(|(_, value)| std::str::from_utf8(value).ok());
        texts.collect::<Vec<_>>().join(",")
    }

    /// A value of the query `a=b&c=d`, as it stands there: names of programs need no
    /// percent-encoding.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Bytes that may follow: anybody may ask for the document of a page, and sends nothing.
    fn body_max(&self) -> u64 {
        match self.path.as_str() {
            "/api/v1/packets" => ROW_BODY_MAX,
            path if path.starts_with("/api/") => BODY_MAX,
            _ => 0,
        }
    }

    /// How many bytes follow.
    fn body_len(&self) -> Result<u64, Refused> {
        if self.headers.iter().any(|(name, _)| name == "transfer-encoding") {
            let text = "send the body with a Content-Length, not in chunks";
            return Err(refused(Status::NotImplemented, text));
        }
        let Some(value) = self.once("content-length")? else {
            return match self.method.as_str() {
                "POST" | "PUT" | "PATCH" => {
                    Err(refused(Status::LengthRequired, "Content-Length is missing"))
                }
                _ => Ok(0),
            };
        };
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let len = std::str::from_utf8(value).ok().filter(|_| digits);
        match len.map(str::parse) {
            None => Err(refused(Status::BadRequest, "Content-Length is no number")),
            Some(Ok(len)) if len <= self.body_max() => Ok(len),
            Some(_) => {
                let text = match self.body_max() {
                    0 => "a request for this has no body".to_owned(),
                    most => format!("a body has at most {} MiB here", most >> 20),
                };
                Err(refused(Status::ContentTooLarge, text))
            }
        }
    }
}

/// Reads a request, whose body is read only if its head is allowed to pass.
///
/// # Errors
/// If the bytes do not come. `Ok(Err(…))` is the answer to a request that is none, or may not pass.
pub(crate) fn read_request(
    from: &mut dyn BufRead,
    pass: impl FnOnce(&RequestHead) -> Result<(), Refused>,
) -> io::Result<Result<HttpRequest, Refused>> {
    let checked = match read_head(from)? {
        Ok(head) => match pass(&head).and_then(|()| head.body_len()) {
            Ok(len) => Ok((head, len)),
            Err(refusal) => Err(Box::new(refusal.to(&head.method, &head.path))),
        },
        Err(refusal) => Err(refusal),
    };
    let (head, len) = match checked {
        Ok(checked) => checked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut body = Vec::new();
    if (from.take(len).read_to_end(&mut body)? as u64) < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Ok(HttpRequest { head, body }))
}

fn read_head(from: &mut dyn BufRead) -> io::Result<Result<RequestHead, Refused>> {
    let mut bytes = Vec::new();
    let mut head = from.take(HEAD_MAX);
    loop {
        let start = bytes.len();
        let n = head.read_until(b'\n', &mut bytes)?;
        let whole = bytes.ends_with(b"\n");
        if !whole && bytes.len() as u64 == HEAD_MAX {
            let text = format!("the head of a request has at most {} KiB", HEAD_MAX >> 10);
            return Ok(Err(refused(Status::HeadTooLarge, text)));
        }
        if n == 0 || !whole {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Empty lines before a request are ignored (RFC 9112, section 2.2).
        match &bytes[start..] {
            b"\r\n" | b"\n" if start > 0 => return Ok(parse(&bytes)),
            b"\r\n" | b"\n" => bytes.clear(),
            _ => {}
        }
    }
}

fn parse(bytes: &[u8]) -> Result<RequestHead, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(n)) if n == bytes.len() => {}
        Ok(_) => return Err(refused(Status::BadRequest, "the request is cut")),
        Err(httparse::Error::TooManyHeaders) => {
            let text = format!("a request has at most {HEADERS_MAX} headers");
            return Err(refused(Status::HeadTooLarge, text));
        }
        Err(httparse::Error::Version) => {
            return Err(refused(Status::VersionNotSupported, "ask by HTTP/1.1"));
        }
        Err(e) => return Err(refused(Status::BadRequest, format!("no HTTP request: {e}"))),
    }
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !path.starts_with('/') {
        return Err(refused(Status::BadRequest, "ask for a path, such as /metrics"));
    }
    let header =
        |header: &httparse::Header<'_>| (header.name.to_ascii_lowercase(), header.value.to_vec());
    Ok(RequestHead {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: request.headers.iter().map(header).collect(),
    })
}

/// Reads any bytes as a request: it is read, refused with an answer, or does not come whole, and
/// nothing is read beyond it.
#[cfg(any(test, fuzzing))]
pub fn fuzz_http(bytes: &[u8]) {
    let mut rest = bytes;
    match read_request(&mut rest, |_| Ok(())) {
        Ok(Ok(HttpRequest { head, body })) => {
            assert!(head.path.starts_with('/') && head.headers.len() <= HEADERS_MAX);
            assert!(body.len() as u64 <= BODY_MAX);
            let read = &bytes[..bytes.len() - rest.len()];
            assert!(read.ends_with(&body));
            let again = read_request(&mut &*read, |_| Ok(())).expect("it came whole");
            assert_eq!(again, Ok(HttpRequest { head, body }), "what follows changes nothing");
        }
        Ok(Err(response)) => assert_ne!(response.status, Status::Ok),
        Err(e) => assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> Status {
        let read = read_request(&mut &*bytes, |_| Ok(())).expect("it is there");
        read.map_or_else(|response| response.status, |_| Status::Ok)
    }

    #[test]
    fn requests_are_read_to_their_end_and_no_further() {
        let bytes =
            b"\r\nPOST /api/b?c=/d HTTP/1.1\r\nHost:  x \r\nCONTENT-length: 3\r\n\r\nabcGET";
        let mut rest = &bytes[..];
        let read = read_request(&mut rest, |_| Ok(())).expect("it is there").expect("a request");
        assert_eq!((read.head.method.as_str(), read.head.path.as_str()), ("POST", "/api/b"));
        assert_eq!((read.head.param("c"), read.head.param("d")), (Some("/d"), None));
        assert_eq!((read.body.as_slice(), rest), (&b"abc"[..], &b"GET"[..]));
        assert_eq!(read.head.once("host"), Ok(Some(&b"x"[..])));
    }

    #[test]
    fn the_body_of_a_request_that_may_not_pass_is_not_read() {
        let mut rest = &b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"[..];
        let stop = |_: &RequestHead| Err(refused(Status::Unauthorized, "no"));
        let read = read_request(&mut rest, stop).expect("it is there");
        assert_eq!(read.expect_err("refused").status, Status::Unauthorized);
        assert_eq!(rest, b"abc");
    }

    #[test]
    fn refusals_under_the_api_are_objects() {
        let refusal = |bytes: &str| {
            let read = read_request(&mut bytes.as_bytes(), |_| Ok(())).expect("it is there");
            let response = read.expect_err("refused");
            (response.content_type, String::from_utf8(response.body).expect("text"))
        };
        let why = "Content-Length is missing";
        assert_eq!(
            refusal("POST /api/v1/check HTTP/1.1\r\n\r\n"),
            ("application/json", format!("{{\"error\":\"{why}\"}}\n"))
        );
        assert_eq!(
            refusal("POST /health HTTP/1.1\r\n\r\n"),
            ("text/plain; charset=utf-8", format!("{why}\n"))
        );
    }

    #[test]
    fn what_is_ambiguous_or_too_large_is_refused() {
        let with = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n").into_bytes();
        assert_eq!(status(&with("Content-Length: 0\r\n")), Status::Ok);
        assert_eq!(status(&with("")), Status::LengthRequired);
        for bad in ["+0", "-0", "0x0", "", "0, 0", "\"0\""] {
            let request = with(&format!("Content-Length: {bad}\r\n"));
            assert_eq!(status(&request), Status::BadRequest, "{bad}");
        }
        let twice = with("Content-Length: 0\r\nContent-Length: 0\r\n");
        assert_eq!(status(&twice), Status::BadRequest);
        let chunked = with("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n");
        assert_eq!(status(&chunked), Status::NotImplemented);
        for long in [BODY_MAX + 1, u64::MAX] {
            let request = format!("POST /api/ HTTP/1.1\r\nContent-Length: {long}\r\n\r\n");
            assert_eq!(status(request.as_bytes()), Status::ContentTooLarge, "{long}");
        }
        // Paths that anybody may ask for take no body, and rows are short.
        for (path, most) in
            [("/", 0), ("/health", 0), ("/assets/x", 0), ("/api/v1/packets", ROW_BODY_MAX)]
        {
            let request = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n", most + 1);
            assert_eq!(status(request.as_bytes()), Status::ContentTooLarge, "{path}");
        }
        let huge = with("Content-Length: 99999999999999999999\r\n");
        assert_eq!(status(&huge), Status::ContentTooLarge);
        assert_eq!(status(b"GET / HTTP/2.0\r\n\r\n"), Status::VersionNotSupported);
        assert_eq!(status(b"GET http://a/ HTTP/1.1\r\n\r\n"), Status::BadRequest);
        assert_eq!(status(b"\x16\x03\x01\r\n\r\n"), Status::BadRequest);
        let many = with(&"A: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(status(&many), Status::HeadTooLarge);
        let long = with(&format!("A: {}\r\n", "b".repeat(HEAD_MAX as usize)));
        assert_eq!(status(&long), Status::HeadTooLarge);
    }

    #[test]
    fn damaged_requests_are_refused_or_read_as_others() {
        let bytes = b"POST /api/a?b HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\nabGET";
        for at in 0..bytes.len() {
            fuzz_http(&bytes[..at]);
            for flip in [1, 4, 0x20, 0x80] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= flip;
                fuzz_http(&damaged);
            }
        }
    }
}
