//! The socket that clients connect to.

use crate::guard::{Guard, needs_token};
use crate::limits::{
    CLIENT_PATIENCE, CLIENT_RATE, CLIENTS_MAX, NICE, REQUESTS_MAX, REQUESTS_PER_SECOND,
};
use crate::pages::{LargeAnswers, Pages};
use crate::request::{HttpRequest, Refused, read_request};
use crate::response::{Response, Status};
use parking_lot::Mutex;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};
use weir_control::{Bounds, Service, Taker, serve};

/// Where a run listens: an address with a port, or a port of 127.0.0.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(SocketAddr);

impl Address {
    /// Reads `127.0.0.1:9464`, `[::1]:9464`, `localhost:9464` or `9464`.
    ///
    /// # Errors
    /// If it is none of these; the text says what is expected.
    pub fn parse(text: &str) -> Result<Address, String> {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let plain = port.bytes().all(|b| b.is_ascii_digit());
        match (port.parse(), text.parse()) {
            (Ok(port), _) if plain => Ok(Address(local(port))),
            (_, Ok(address)) => Ok(Address(address)),
            _ => {
                Err("expected an address and a port, such as 127.0.0.1:9464, or a port".to_owned())
            }
        }
    }

    /// Whether only this host can connect to it.
    pub fn is_loopback(&self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A socket on which a run answers requests.
#[derive(Debug)]
pub struct HttpSocket {
    listener: TcpListener,
    guard: Guard,
}

impl HttpSocket {
    /// Begins to listen; clients wait until [`HttpSocket::start`].
    ///
    /// # Errors
    /// If the system refuses the address.
    pub fn bind(address: Address, guard: Guard) -> io::Result<HttpSocket> {
        Ok(HttpSocket { listener: TcpListener::bind(address.0)?, guard })
    }

    /// Where it listens: the port, too, where that was 0.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<Address> {
        self.listener.local_addr().map(Address)
    }

    /// Answers clients in threads of its own, many at a time, to the end of the process.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(self, pages: Pages) -> io::Result<()> {
        let HttpSocket { listener, guard } = self;
        let bounds = Bounds {
            clients: CLIENTS_MAX,
            ask: CLIENT_PATIENCE,
            accept: CLIENT_PATIENCE,
            bytes_per_second: CLIENT_RATE,
            bytes: REQUESTS_MAX,
        };
        let answers =
            HttpService { guard, pages, rates: Mutex::default(), large: LargeAnswers::default() };
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            let_packets_go_first();
            serve(&listener, answers, bounds);
        })?;
        Ok(())
    }
}

/// Lowers the priority of this thread, and of those that it starts: many clients may want as much
/// time as there is, and packets must not wait for them. Where the system refuses, nothing else
/// changes.
fn let_packets_go_first() {
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Answers requests.
struct HttpService {
    guard: Guard,
    pages: Pages,
    rates: Mutex<Rates>,
    large: LargeAnswers,
}

/// The connections of requests for what anybody may see, and of the others, which the first can't
/// use up.
#[derive(Default)]
struct Rates {
    open: Rate,
    guarded: Rate,
}

/// Limits the requests of a second.
#[derive(Default)]
struct Rate {
    /// When the current second began.
    begin: Option<Instant>,
    /// The requests since.
    asked: u32,
}

impl Rate {
    /// Whether one more may be answered.
    fn allows(&mut self, now: Instant) -> bool {
        let fresh = |begin: &Instant| now.duration_since(*begin) < Duration::from_secs(1);
        if !self.begin.as_ref().is_some_and(fresh) {
            (self.begin, self.asked) = (Some(now), 0);
        }
        self.asked = self.asked.saturating_add(1);
        self.asked <= REQUESTS_PER_SECOND
    }
}

impl HttpService {
    #[expect(clippy::disallowed_methods, reason = "a limit per second")]
    fn has_room(&self, is_guarded: bool) -> bool {
        let mut rates = self.rates.lock();
        let rate = if is_guarded { &mut rates.guarded } else { &mut rates.open };
        rate.allows(Instant::now())
    }
}

impl Service for HttpService {
    type Question = Result<HttpRequest, Refused>;

    fn read(&self, from: &mut dyn BufRead) -> io::Result<Result<HttpRequest, Refused>> {
        read_request(from, |head| self.guard.check(head))
    }

    fn answer(
        &self,
        asked: io::Result<Result<HttpRequest, Refused>>,
        to: &mut dyn Taker,
    ) -> io::Result<()> {
        let is_guarded = matches!(&asked, Ok(Ok(request)) if needs_token(&request.head.path));
        if !is_guarded {
            to.makes_room();
        }
        let response = match asked {
            Ok(Ok(request)) if !self.has_room(is_guarded) => {
                let text = format!("more than {REQUESTS_PER_SECOND} requests in a second");
                let HttpRequest { head, .. } = request;
                Response::text(Status::TooManyRequests, text).to(&head.method, &head.path)
            }
            Ok(Ok(request)) => return self.pages.answer(&request, &self.large, to),
            Ok(Err(refusal)) => *refusal,
            Err(e) => match e.kind() {
                io::ErrorKind::TimedOut => {
                    let seconds = CLIENT_PATIENCE.as_secs();
                    let text =
                        format!("no whole request came within {seconds} s, or it came too slowly");
                    Response::text(Status::RequestTimeout, text)
                }
                io::ErrorKind::QuotaExceeded => Response::text(Status::Unavailable, e.to_string()),
                // It is gone.
                _ => return Err(e),
            },
        };
        response.write(to)
    }

    fn refuse(&self, to: &mut dyn Write) -> io::Result<()> {
        let text = format!("busy: {CLIENTS_MAX} others ask at the same time; try again");
        Response::text(Status::Unavailable, text).write(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::MetricsFormat;
    use std::io::Read as _;
    use std::net::TcpStream;

    #[test]
    fn addresses_are_of_this_host_unless_they_say_otherwise() {
        let shown = |text: &str| Address::parse(text).expect(text).to_string();
        assert_eq!(shown("9464"), "127.0.0.1:9464");
        assert_eq!(shown("localhost:0"), "127.0.0.1:0");
        assert_eq!(shown("0.0.0.0:65535"), "0.0.0.0:65535");
        assert_eq!(shown("[::1]:1"), "[::1]:1");
        for bad in ["", ":80", "localhost", "127.0.0.1", "65536", "+1", "host:80", "::1:80:x"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        for (text, local) in [
            ("127.8.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            assert_eq!(Address::parse(text).expect(text).is_loopback(), local, "{text}");
        }
    }

    /// A server on some port.
    fn served() -> SocketAddr {
        let address = Address::parse("0").expect("a port");
        let guard = Guard { token: None, hosts: Vec::new() };
        let socket = HttpSocket::bind(address, guard).expect("listens");
        let bound = socket.address().expect("it has one").0;
        let pages = Pages {
            metrics: Box::new(|format| {
                (format == MetricsFormat::OpenMetrics).then(|| "# EOF\n".to_owned())
            }),
            is_healthy: Box::new(|| true),
            api: None,
            page: None,
        };
        socket.start(pages).expect("a thread");
        bound
    }

    fn said(mut stream: TcpStream) -> String {
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("an answer");
        said
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.write_all(request.as_bytes()).expect("it reads");
        said(stream)
    }

    #[test]
    fn paths_and_methods_are_answered() {
        let address = served();
        let get = |line: &str| ask(address, &format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let healthy = get("GET /health");
        assert!(healthy.starts_with("HTTP/1.1 200 OK\r\n") && healthy.ends_with("\r\n\r\nok\n"));
        let head = get("HEAD /health");
        assert!(head.contains("Content-Length: 3\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let post =
            ask(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("Allow: GET, HEAD\r\n"));
        assert!(get("GET /").starts_with("HTTP/1.1 404 "));
        // The run does not answer here.
        assert!(get("GET /metrics").starts_with("HTTP/1.1 503 "));
        let open = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
                    Accept: application/openmetrics-text\r\n\r\n";
        let open = ask(address, open);
        assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
        assert!(open.ends_with("\r\n\r\n# EOF\n"), "{open}");
    }

    /// A second request on the connection is not answered, and costs the first no answer.
    #[test]
    fn pipelined_requests_get_one_answer() {
        let address = served();
        let one = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let said = ask(address, &one.repeat(1000));
        assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 1, "{said}");
        assert!(said.ends_with("ok\n"));
    }

    #[test]
    fn idle_clients_keep_nobody_out() {
        let address = served();
        let connect = |_| TcpStream::connect(address).expect("connects");
        let idle: Vec<_> = (0..300).map(connect).collect();
        let slow = || {
            let mut stream = connect(0);
            stream.write_all(b"GET /health HTT").expect("is there");
            stream
        };
        let slow = slow();
        let answer = ask(address, "GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n");
        assert!(answer.ends_with("ok\n"), "{answer}");
        let waited = said(slow);
        assert!(waited.starts_with("HTTP/1.1 408 "), "{waited}");
        drop(idle);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "times that the test counts from")]
    fn a_second_has_so_many_answers() {
        let (mut rate, begin) = (Rate::default(), Instant::now());
        let after = |ms| begin + Duration::from_millis(ms);
        assert!((0..REQUESTS_PER_SECOND).all(|_| rate.allows(begin)));
        assert!(!rate.allows(begin) && !rate.allows(after(999)));
        assert!(rate.allows(after(1000)) && rate.allows(after(1001)));
    }
}
