//! Receivers of alerts: webhooks that behave well or badly, and real servers.

use crate::common::{root, workplace};
use crate::over_wires::{LONG, Run, lines, until};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// How a webhook answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Takes,
    /// It answers so often with 503, then takes.
    FailsFirst(usize),
    /// It closes the connection so often in the middle of a request, then takes.
    ClosesFirst(usize),
    /// It answers with this status.
    Answers(u16),
    NeverAnswers,
    /// It accepts connections, and reads nothing.
    NeverReads,
}

/// A request: its first line and headers, and its body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The id and the time of an attempt to deliver an alert.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) id: String,
    /// Since 1970.
    pub(crate) seconds: u64,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named =
            |line: &&str| line.split_once(": ").is_some_and(|(n, _)| n.eq_ignore_ascii_case(name));
        self.head.lines().find(named).and_then(|line| line.split_once(": ")).map(|(_, v)| v)
    }

    /// Which attempt this is.
    pub(crate) fn attempt(&self) -> Attempt {
        let id = self.header("webhook-id").expect("an id").to_owned();
        let seconds = self.header("webhook-timestamp").and_then(|time| time.parse().ok());
        Attempt { id, seconds: seconds.expect("a time") }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// A webhook.
pub(crate) struct Hook {
    pub(crate) address: String,
    requests: Receiver<Request>,
}

impl Hook {
    pub(crate) fn start(manner: Manner) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (to, requests) = mpsc::channel();
        let before = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            let held = Mutex::new(Vec::new());
            for stream in listener.incoming().map_while(Result::ok) {
                let n = before.fetch_add(1, Ordering::Relaxed);
                match manner {
                    Manner::NeverReads => held.lock().expect("no panic").push(stream),
                    _ => {
                        let to = to.clone();
                        thread::spawn(move || answer(stream, manner, n, &to));
                    }
                }
            }
        });
        Hook { address, requests }
    }

    /// The next request.
    pub(crate) fn next(&self) -> Request {
        self.requests.recv_timeout(LONG).expect("a request")
    }

    /// The requests that came since the last call.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn answer(mut stream: TcpStream, manner: Manner, n: usize, to: &Sender<Request>) {
    if matches!(manner, Manner::ClosesFirst(times) if n < times) {
        let _ = stream.read(&mut [0; 20]);
        return;
    }
    let Some(request) = read(&mut stream) else { return };
    if to.send(request).is_err() {
        return;
    }
    let status = match manner {
        Manner::FailsFirst(times) if n < times => 503,
        Manner::Answers(status) => status,
        // Until the other side has had enough.
        Manner::NeverAnswers => return drop(stream.read(&mut [0])),
        _ => 200,
    };
    let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    let _ = stream.write_all(answer.as_bytes());
}

/// Reads a request.
pub(crate) fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut from = BufReader::new(stream);
    let (mut head, mut len) = (String::new(), 0);
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            len = value.trim().parse().expect("a length");
        }
        if line == "\r\n" {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; len];
    from.read_exact(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8(body).expect("text") })
}

/// The answer of a server to a question.
pub(crate) fn get(address: &str, path: &str) -> String {
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    asked.unwrap_or_default()
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// A port that is free.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

/// An alert for each host that sends, which ends two seconds after its last packet.
pub(crate) const HOSTS: &str = "packets | summarize n = count() by host = ip.src every 1s \
    | where n > 0 | alert \"{n} packets of {host}\" severity high hold 2s storm 100000";

/// A run over packets that the test writes.
pub(crate) struct Streamed {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run: Run,
    pub(crate) packets: Option<ChildStdin>,
}

impl Streamed {
    pub(crate) fn start(args: &[&str]) -> Streamed {
        Streamed::in_folder(workplace(), args)
    }

    pub(crate) fn in_folder(folder: tempfile::TempDir, args: &[&str]) -> Streamed {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", "-r", "-", "-o", "json", "-e", HOSTS])
            .args(args)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let errors = lines(child.stderr.take().expect("piped"));
        let mut packets = child.stdin.take().expect("piped");
        packets.write_all(&FileHeader::new(LinkType::ETHERNET).to_bytes()).expect("it reads");
        let run = Run { child, errors, said: Vec::new() };
        Streamed { folder, run, packets: Some(packets) }
    }

    /// Sends a packet of each of these hosts in some second.
    pub(crate) fn send(&mut self, second: i64, hosts: impl Iterator<Item = u16>) {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = Vec::new();
        for host in hosts {
            let [high, low] = host.to_be_bytes();
            let frame = Frame::ethernet().ipv4([10, 0, high, low], [192, 0, 2, 1]);
            let frame = frame.udp(9, 1000).bytes();
            let ts = (1_700_000_000 + second) * 1_000_000_000;
            header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
        }
        let packets = self.packets.as_mut().expect("it is not over");
        packets.write_all(&bytes).and_then(|()| packets.flush()).expect("it reads");
    }

    /// The process that delivers.
    pub(crate) fn courier(&self) -> u32 {
        let id = self.run.child.id();
        let file = format!("/proc/{id}/task/{id}/children");
        let mut found = None;
        until("a process that delivers", || {
            let children = fs::read_to_string(&file).unwrap_or_default();
            found = children.split_whitespace().next().and_then(|id| id.parse().ok());
            found.is_some()
        });
        found.expect("found")
    }

    /// Ends the input; what the run said, and its status.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        drop(self.packets.take());
        let status = self.run.child.wait().expect("it ends");
        self.run.said.extend(self.run.errors.iter());
        (self.run.said.join("\n"), status.code())
    }
}

/// A server of the test, which ends with it.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(command: &mut Command) -> Server {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Server(quiet.spawn().expect("the server runs"))
    }
}

impl Drop for Server {
    /// By SIGKILL.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where `check.sh` unpacks servers; `None` if this one is not there.
pub(crate) fn unpacked(file: &str) -> Option<PathBuf> {
    let folder = root().join("target/unpacked");
    folder.join(file).exists().then_some(folder)
}

/// A certificate for `localhost` and 127.0.0.1, and its key: `cert.pem`, `key.pem`. Whether there
/// is a program that makes them.
pub(crate) fn certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=weir"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output();
    made.is_ok_and(|made| made.status.success())
}
