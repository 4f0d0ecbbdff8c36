//! Requests over HTTP/1.1, one for each connection. Answers are judged by their status alone; a
//! redirection is not followed, so that alerts go where the user said, and nowhere else.

use crate::connection::{Connection, Route};
use crate::failure::Failure;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_HEADERS_MAX, RETRY_AFTER_MAX};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// A request with a body of JSON.
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: &'a str,
    /// The path and what follows it.
    pub(crate) path: &'a str,
    /// Further headers.
    pub(crate) headers: &'a [(&'static str, String)],
    pub(crate) body: &'a [u8],
}

/// Asks; `Ok` if the peer has taken it.
pub(crate) fn send(route: &Route, request: &HttpRequest<'_>, by: Instant) -> Result<(), Failure> {
    let mut connection = Connection::open(route, by)?;
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: weir/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n",
        request.method,
        request.path,
        route.peer,
        env!("CARGO_PKG_VERSION"),
        request.body.len(),
    );
    for (name, value) in request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let sent = connection
        .write_all(&[head.as_bytes(), request.body].concat())
        .and_then(|()| connection.flush());
    // A peer may answer, and close, before it has read everything: its answer says more.
    let answer = read_answer(&mut connection);
    match (sent, answer) {
        (_, Ok(answer)) => answer.judge(),
        (Err(e), Err(_)) => Err(Failure::away("sending", &e)),
        (Ok(()), Err(failure)) => Err(failure),
    }
}

/// The answer of a peer.
#[derive(PartialEq, Eq, Debug)]
struct Answer {
    status: u16,
    retry_after: Option<Duration>,
}

impl Answer {
    fn judge(&self) -> Result<(), Failure> {
        let why = format!("it answers with the status {}", self.status);
        match self.status {
            200..=299 => Ok(()),
            410 => Err(Failure::Gone(why)),
            408 | 425 | 429 | 500..=599 => Err(Failure::Busy(why, self.retry_after)),
            _ => Err(Failure::Refused(why)),
        }
    }
}

fn read_answer(connection: &mut Connection) -> Result<Answer, Failure> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n =
            connection.read(&mut piece).map_err(|e| Failure::away("waiting for an answer", &e))?;
        if n == 0 {
            return Err(Failure::Away("it closed the connection without an answer".to_owned()));
        }
        bytes.extend_from_slice(&piece[..n]);
        match parse(&bytes) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) if bytes.len() <= ANSWER_BYTES_MAX => {}
            Ok(None) | Err(()) => {
                return Err(Failure::Busy("it does not answer as HTTP does".to_owned(), None));
            }
        }
    }
}

/// The answer, once all of its head is there. Answers that announce another (1xx) are passed over.
fn parse(bytes: &[u8]) -> Result<Option<Answer>, ()> {
    let mut rest = bytes;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; ANSWER_HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let len = match head.parse(rest) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(()),
        };
        let status = head.code.unwrap_or_default();
        if (100..200).contains(&status) {
            rest = &rest[len..];
            continue;
        }
        let retry = head.headers.iter().find(|h| h.name.eq_ignore_ascii_case("retry-after"));
        let seconds = retry.and_then(|h| str::from_utf8(h.value).ok()?.trim().parse().ok());
        let retry_after = seconds.map(|s| Duration::from_secs(s).min(RETRY_AFTER_MAX));
        return Ok(Some(Answer { status, retry_after }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_their_status() {
        let judged = |text: &str| match parse(text.as_bytes()) {
            Ok(Some(answer)) => match answer.judge() {
                Ok(()) => "taken".to_owned(),
                Err(Failure::Busy(_, Some(after))) => format!("after {after:?}"),
                Err(Failure::Busy(..)) => "again".to_owned(),
                Err(Failure::Gone(_)) => "no more".to_owned(),
                Err(_) => "never".to_owned(),
            },
            Ok(None) => "unfinished".to_owned(),
            Err(()) => "no HTTP".to_owned(),
        };
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", "taken"),
            ("HTTP/1.0 204 x\r\nA: b\r\n\r\nbody", "taken"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 OK\r\n\r\n", "taken"),
            ("HTTP/1.1 302 Found\r\nLocation: http://evil\r\n\r\n", "never"),
            ("HTTP/1.1 404 x\r\n\r\n", "never"),
            ("HTTP/1.1 410 x\r\n\r\n", "no more"),
            ("HTTP/1.1 503 x\r\n\r\n", "again"),
            ("HTTP/1.1 429 x\r\nretry-after: 7\r\n\r\n", "after 7s"),
            ("HTTP/1.1 429 x\r\nretry-after: 999999999999\r\n\r\n", "after 600s"),
            ("HTTP/1.1 429 x\r\nretry-after: Wed, 21 Oct\r\n\r\n", "again"),
            ("HTTP/1.1 100 Continue\r\n\r\n", "unfinished"),
            ("HTTP/1.1 200 OK\r\n", "unfinished"),
            ("", "unfinished"),
            ("220 mail ESMTP\r\n", "no HTTP"),
            ("\0\0", "no HTTP"),
        ] {
            assert_eq!(judged(text), expected, "{text:?}");
        }
        let long = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(ANSWER_HEADERS_MAX + 1));
        assert_eq!(judged(&format!("{long}\r\n")), "no HTTP");
    }
}
