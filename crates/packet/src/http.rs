//! HTTP/1 requests and responses, as far as one segment holds them (RFC 9112).
//!
//! [`Http::new`] looks at the first line: a request is one of the known methods, a target, and
//! `HTTP/1.x` where the line ends in the segment; a response is `HTTP/1.x` and a status. A segment
//! may end within the line, even directly after the space that follows the method. Header fields
//! are read until the empty line, or as far as whole lines go.

/// The methods of requests: those of RFC 9110 and RFC 5789, and those of WebDAV (RFC 4918).
const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
];

/// The bytes that both versions of the protocol have in common in their lines.
const VERSION: &[u8] = b"HTTP/1.";

/// The start of a message.
#[derive(Clone, Copy, Debug)]
pub struct Http<'a> {
    line: Line<'a>,
    /// The bytes after the first line.
    rest: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Line<'a> {
    /// Method and target; the target is empty where the segment ends before it.
    Request(&'a [u8], &'a [u8]),
    /// Status.
    Response(u16),
}

impl<'a> Http<'a> {
    /// A view of a segment's payload; `None` if no message starts there.
    pub fn new(payload: &'a [u8]) -> Option<Http<'a>> {
        // Most payloads are something else: see that at the first byte.
        if !payload.first()?.is_ascii_uppercase() {
            return None;
        }
        let end = payload.iter().position(|&byte| byte == b'\n');
        let (line, rest) = payload.split_at(end.map_or(payload.len(), |end| end + 1));
        let line = match line.strip_prefix(VERSION) {
            Some(rest) => Line::Response(status(rest)?),
            None => request(line, end.is_some())?,
        };
        Some(Http { line, rest })
    }

    /// The method of a request, in capitals.
    pub fn method(&self) -> Option<&'a [u8]> {
        match self.line {
            Line::Request(method, _) => Some(method),
            Line::Response(_) => None,
        }
    }

    /// The target of a request: a path with its query, or a whole URI where a proxy is asked. As
    /// much of it as this segment holds, if that is anything.
    pub fn target(&self) -> Option<&'a [u8]> {
        match self.line {
            Line::Request(_, target) => Some(target).filter(|target| !target.is_empty()),
            Line::Response(_) => None,
        }
    }

    /// The status of a response, three digits.
    pub fn status(&self) -> Option<u16> {
        match self.line {
            Line::Request(..) => None,
            Line::Response(status) => Some(status),
        }
    }

    /// The bytes after the message in its payload, as far as its header fields tell where it ends;
    /// `None` where the header fields go on in a later segment.
    pub fn after(&self) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        loop {
            let end = rest.iter().position(|&byte| byte == b'\n')?;
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            if line.trim_ascii().is_empty() {
                break;
            }
        }
        let length = self.header("content-length");
        let length = length.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        Some(rest.get(length.unwrap_or(0)..).unwrap_or(&[]))
    }

    /// The value of the first header field of a name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        let named = |(found, _): &(&[u8], _)| found.eq_ignore_ascii_case(name.as_bytes());
        self.headers().find(named).map(|(_, value)| value)
    }

    /// Names and values of the header fields whose lines are whole.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let lines = self.rest.split_inclusive(|&byte| byte == b'\n');
        let lines = lines.take_while(|line| line.ends_with(b"\n") && !line.trim_ascii().is_empty());
        lines.filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

/// The first line of a request; not `whole` if it goes on in a later segment.
fn request(line: &[u8], whole: bool) -> Option<Line<'_>> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (method, rest) = (&line[..space], line[space + 1..].trim_ascii_end());
    let mut words = rest.splitn(2, |&byte| byte == b' ');
    let (target, version) = (words.next()?, words.next().unwrap_or(&[]));
    let known = METHODS.iter().any(|known| known.as_bytes() == method);
    let fits = match whole {
        true => !target.is_empty() && version.starts_with(VERSION),
        false => {
            let plausible = match target {
                [] => version.is_empty(),
                [b'/', ..] | b"*" => true,
                _ => start_of(target, b"http"),
            };
            plausible && start_of(version, VERSION)
        }
    };
    (known && fits).then_some(Line::Request(method, target))
}

/// Whether one of two is the start of the other.
fn start_of(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// The status behind `HTTP/1.`: a digit, a space, three digits, and no fourth.
fn status(rest: &[u8]) -> Option<u16> {
    let (&[minor, b' ', a, b, c], rest) = rest.split_first_chunk()? else { return None };
    let digits = [minor, a, b, c].iter().all(u8::is_ascii_digit);
    let ends = rest.first().is_none_or(|byte| !byte.is_ascii_digit());
    let number = [a, b, c].iter().fold(0, |n, digit| n * 10 + u16::from(digit.wrapping_sub(b'0')));
    (digits && ends).then_some(number)
}

/// Any bytes as a segment's payload: what is read lies inside. Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_http(bytes: &[u8]) {
    let Some(http) = Http::new(bytes) else { return };
    let held: usize = http.headers().map(|(name, value)| name.len() + value.len() + 2).sum();
    let line = http.method().map_or(12, |m| m.len() + http.target().map_or(0, |t| t.len() + 1));
    assert!(held + line <= bytes.len());
    assert!(http.status().is_none_or(|status| status < 1000));
    assert_eq!(http.status().is_none(), http.method().is_some());
    assert!(http.after().is_none_or(|after| after.len() < bytes.len()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: &[u8] = b"GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\nuser-agent:  curl/8 \
                             \r\nAccept: */*\r\n\r\nHost: in the body\r\n";

    #[test]
    fn reads_a_request() {
        let http = Http::new(REQUEST).unwrap();
        assert_eq!((http.method(), http.target()), (Some(&b"GET"[..]), Some(&b"/a?b=c"[..])));
        assert_eq!(http.header("host"), Some(&b"example.org:8080"[..]));
        assert_eq!(http.header("User-Agent"), Some(&b"curl/8"[..]));
        assert_eq!((http.header("cookie"), http.status()), (None, None));
        assert_eq!(http.headers().count(), 3);
    }

    #[test]
    fn reads_a_response() {
        let http = Http::new(b"HTTP/1.0 404 Not Found\nServer: x\n\n").unwrap();
        assert_eq!((http.status(), http.method(), http.target()), (Some(404), None, None));
        assert_eq!(http.header("server"), Some(&b"x"[..]));
        assert_eq!(Http::new(b"HTTP/1.1 200").unwrap().status(), Some(200));
    }

    #[test]
    fn a_cut_message_is_read_as_far_as_it_goes() {
        let target = |n: usize| Http::new(&REQUEST[..n]).and_then(|http| http.target());
        assert_eq!(target(4), None);
        assert_eq!(target(5), Some(&b"/"[..]));
        assert_eq!(target(7), Some(&b"/a?"[..]));
        assert_eq!(target(15), Some(&b"/a?b=c"[..]));
        let cut = Http::new(&REQUEST[..40]).unwrap();
        assert_eq!(cut.header("host"), None, "there may be more of it");
    }

    #[test]
    fn a_segment_that_ends_after_the_method_still_has_the_method() {
        for method in METHODS {
            let start = format!("{method} ");
            let http = Http::new(start.as_bytes()).unwrap_or_else(|| panic!("{start:?}"));
            assert_eq!((http.method(), http.target()), (Some(method.as_bytes()), None));
            assert_eq!((http.status(), http.headers().count()), (None, 0));
        }
        for cut in ["GET h", "GET htt", "GET http://a", "OPTIONS *", "OPTIONS * HT"] {
            assert!(Http::new(cut.as_bytes()).is_some(), "{cut}");
        }
    }

    /// However TCP cuts a message, the first segment has what it holds of the first line.
    #[test]
    fn every_cut_of_a_request_has_what_it_holds() {
        let line = REQUEST.iter().position(|&b| b == b'\r').unwrap();
        for cut in 0..=REQUEST.len() {
            let http = Http::new(&REQUEST[..cut]);
            let method = http.and_then(|http| http.method());
            assert_eq!(method.is_some(), cut >= 4, "cut at {cut}");
            let target = http.and_then(|http| http.target());
            let held = (cut > 4).then(|| &REQUEST[4..cut.min(10)]);
            assert_eq!(target, held, "cut at {cut} of {line}");
        }
    }

    #[test]
    fn other_bytes_are_no_message() {
        for bytes in [
            &b""[..],
            b"get / HTTP/1.1\r\n",
            b"GET / HTTP/2\r\n",
            b"GET /\r\n",
            b"GETS / HTTP/1.1\r\n",
            b"GET  HTTP/1.1\r\n",
            b"HTTP/2 200 OK\r\n",
            b"HTTP/1.1 20",
            b"HTTP/1.1 2000 OK",
            b"POST office",
            b"POST",
            b"POSTS ",
            b" ",
            b"GET \r\n",
            b"GET  HTTP/1.1",
            b"GET *x",
        ] {
            assert!(Http::new(bytes).is_none(), "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            fuzz_http(&bytes);
        }

        #[test]
        fn mutated_messages_hold(
            response: bool,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let first = if response { &b"HTTP/1.1 200 OK\r\n"[..] } else { b"" };
            let mut bytes = [first, REQUEST].concat();
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_http(&bytes[..cut.index(bytes.len() + 1)]);
        }
    }
}
