//! A client of Flink's REST interface: one request a connection, of HTTP/1.1 without TLS, as Flink
//! offers it. Answers, waits and bodies have bounds.

use anyhow::{Context as _, bail};
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// The most bytes of an answer.
const ANSWER_MAX: u64 = 16 << 20;

/// How long a connection may be silent: Flink compiles a job before it answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long an address may take to answer at all.
const CONNECT: Duration = Duration::from_secs(5);

/// The separator of a body in parts: no jar has it, being compressed.
const BOUNDARY: &str = "weir-5b1d2c7e9f3a4860";

/// The REST interface of a job manager.
pub(super) struct Rest {
    /// `HOST:PORT`.
    address: String,
}

/// What is sent.
enum Payload<'a> {
    None,
    Json(&'a Json),
    /// A file of this name.
    File(&'a str, &'a [u8]),
}

impl Rest {
    /// That at `HOST:PORT`.
    pub(super) fn new(address: &str) -> Rest {
        let address = address.strip_prefix("http://").unwrap_or(address);
        Rest { address: address.trim_end_matches('/').to_owned() }
    }

    pub(super) fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.ask("GET", path, &Payload::None)
    }

    pub(super) fn patch(&self, path: &str) -> anyhow::Result<Json> {
        self.ask("PATCH", path, &Payload::None)
    }

    pub(super) fn post(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.ask("POST", path, &Payload::Json(body))
    }

    /// Uploads a jar; returns the name that Flink knows it by.
    pub(super) fn upload(&self, name: &str, jar: &[u8]) -> anyhow::Result<String> {
        let answer = self.ask("POST", "/jars/upload", &Payload::File(name, jar))?;
        let path = answer["filename"].as_str().context("Flink does not say where the jar is")?;
        Ok(path.rsplit('/').next().unwrap_or(path).to_owned())
    }

    fn ask(&self, method: &str, path: &str, payload: &Payload<'_>) -> anyhow::Result<Json> {
        let (kind, body) = match payload {
            Payload::None => ("application/json".to_owned(), Vec::new()),
            Payload::Json(json) => ("application/json".to_owned(), json.to_string().into_bytes()),
            Payload::File(name, bytes) => (
                format!("multipart/form-data; boundary={BOUNDARY}"),
                [
                    format!(
                        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"jarfile\"; \
                         filename=\"{name}\"\r\nContent-Type: application/x-java-archive\r\n\r\n"
                    )
                    .as_bytes(),
                    bytes,
                    format!("\r\n--{BOUNDARY}--\r\n").as_bytes(),
                ]
                .concat(),
            ),
        };
        let head = format!(
            "{method} /v1{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut answer = Vec::new();
        self.exchange(&[head.as_bytes(), &body].concat(), &mut answer)
            .with_context(|| format!("Flink at {} (--flink)", self.address))?;
        let (status, body) = read_answer(&answer)
            .with_context(|| format!("{} does not answer as Flink does (--flink)", self.address))?;
        let json: Json = serde_json::from_slice(&body).unwrap_or(Json::Null);
        if !(200..300).contains(&status) {
            bail!("Flink at {} says {status}: {}", self.address, reason(&json));
        }
        Ok(json)
    }

    fn exchange(&self, request: &[u8], answer: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut last = None;
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(mut stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    // A server may refuse a request before it has read all of it.
                    let written = stream.write_all(request);
                    let read = stream.take(ANSWER_MAX).read_to_end(answer);
                    if answer.is_empty() {
                        written?;
                        read?;
                    }
                    return Ok(());
                }
                Err(e) => last = Some(e),
            }
        }
        match last {
            Some(e) => Err(e.into()),
            None => bail!("it has no address"),
        }
    }
}

/// The status and the body of an answer.
fn read_answer(answer: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("it breaks off")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    if !words.next().unwrap_or_default().starts_with("HTTP/1.") {
        bail!("it is no HTTP");
    }
    let status = words.next().unwrap_or_default().parse()?;
    let header = |name: &str| {
        lines.clone().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let body = &answer[end + 4..];
    if header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        return Ok((status, unchunked(body)?));
    }
    match header("content-length").map(str::parse::<usize>).transpose()? {
        Some(len) => Ok((status, body.get(..len).context("it breaks off")?.to_vec())),
        None => Ok((status, body.to_vec())),
    }
}

/// A body that comes in chunks, each after its length.
fn unchunked(mut body: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").context("it breaks off")?;
        let digits = std::str::from_utf8(&body[..end])?.split(';').next().unwrap_or_default();
        let len = usize::from_str_radix(digits.trim(), 16)?;
        let rest = &body[end + 2..];
        if len == 0 {
            return Ok(all);
        }
        all.extend_from_slice(rest.get(..len).context("it breaks off")?);
        body = rest.get(len..).and_then(|rest| rest.get(2..)).context("it breaks off")?;
    }
}

/// What Flink says of a failure: the line that names it, among all those of a stack.
fn reason(answer: &Json) -> String {
    let errors = answer["errors"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let text: Vec<&str> = errors.flat_map(str::lines).collect();
    let cause = text.iter().rfind(|line| line.starts_with("Caused by:"));
    let line = cause.or_else(|| text.iter().find(|line| !line.trim().is_empty()));
    line.map_or_else(|| "nothing more".to_owned(), |line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Result<(u16, &str), &str>) {
        let found = read_answer(answer.as_bytes());
        match (found, expected) {
            (Ok((status, body)), Ok(expected)) => {
                assert_eq!((status, &*String::from_utf8_lossy(&body)), expected);
            }
            (Err(e), Err(why)) => assert!(format!("{e:#}").contains(why), "{answer:?}: {e:#}"),
            (found, expected) => panic!("{answer:?}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn answers_are_read() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Ok((200, "{}")));
        check("HTTP/1.1 404 Not Found\r\n\r\nno", Ok((404, "no")));
        let chunks =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n1;x\r\n \r\n0\r\n";
        check(chunks, Ok((200, "{} ")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", Err("breaks off"));
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{}", Err("breaks off"));
        check("SSH-2.0-OpenSSH\r\n\r\n", Err("no HTTP"));
        check("HTTP/1.1 what\r\n\r\n", Err("invalid digit"));
        check("", Err("breaks off"));
    }

    #[test]
    fn the_cause_of_a_failure_is_told() {
        let stack = "org.apache.X\n\tat a\nCaused by: java.lang.Y: --to is missing\n\tat b\n";
        let answer = serde_json::json!({ "errors": ["Internal error.", stack] });
        assert_eq!(reason(&answer), "Caused by: java.lang.Y: --to is missing");
        assert_eq!(reason(&serde_json::json!({ "errors": ["no such job"] })), "no such job");
        assert_eq!(reason(&Json::Null), "nothing more");
    }
}
