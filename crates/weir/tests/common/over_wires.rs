//! Runs over interfaces, and the frames that they are sent.

#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "signal.rs"]
mod signal;

pub(crate) use signal::signal;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType};

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// Waits until something has happened; panics if it does not.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    until_some(what, || happened().then_some(()));
}

/// Waits until there is something, and gives it; panics if it does not come.
#[expect(clippy::disallowed_methods, reason = "other processes do it, and say nothing of it")]
pub(crate) fn until_some<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 0..LONG.as_millis() / PAUSE.as_millis() {
        if let Some(value) = happened() {
            return value;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("waited in vain until {what}");
}

/// Waits until a process is confined, after which signals end it in an orderly way.
pub(crate) fn until_confined(id: u32) {
    let status = format!("/proc/{id}/status");
    until("the process is confined", || {
        let text = std::fs::read_to_string(&status).expect("it runs");
        text.lines().any(|line| line == "Seccomp:\t2")
    });
}

/// A run of the binary, and what it says on standard error.
pub(crate) struct Run {
    pub(crate) child: Child,
    pub(crate) errors: Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Run {
    /// Starts it and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let errors = lines(child.stderr.take().expect("piped"));
        let mut run = Run { child, errors, said: Vec::new() };
        run.until("listening on ");
        run
    }

    /// Whether it has said so by now.
    pub(crate) fn has_said(&self, text: &str) -> bool {
        self.said.iter().any(|line| line.contains(text))
    }

    /// Waits until a line begins so.
    pub(crate) fn until(&mut self, start: &str) {
        loop {
            let line = self.errors.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no `{start}` after {:?}", self.said));
            self.said.push(line);
            if self.said[self.said.len() - 1].starts_with(start) {
                return;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Its rows, and all that it said, once it has ended well.
    pub(crate) fn end(mut self) -> (String, String) {
        let mut rows = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut rows).expect("text");
        (rows, self.ended())
    }

    /// All that it said, once it has ended well and its rows were taken.
    pub(crate) fn ended(mut self) -> String {
        let status = self.child.wait().expect("ends");
        self.said.extend(self.errors.iter());
        let said = self.said.join("\n");
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// The same, of a run that Ctrl-C ends.
    pub(crate) fn interrupt(self) -> (String, String) {
        self.signal("-INT");
        self.end()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Of a failed test; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn lines(from: ChildStderr) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
    });
    lines
}

pub(crate) fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("the binary runs")
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The frames of a capture that an Ethernet interface can send, as far as they are whole.
pub(crate) fn sendable(capture: &Path, most: usize) -> Vec<Vec<u8>> {
    let name = capture.to_str().expect("a name in UTF-8");
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let Ok(mut source) = weir_capture::open(name, &options) else { return Vec::new() };
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    while frames.len() < most && source.fill(&mut batch).unwrap_or(false) {
        if batch.link != LinkType::ETHERNET {
            return Vec::new();
        }
        let whole = |i: &usize| (14..=60_000).contains(&batch.frame(*i).len());
        frames.extend((0..batch.len()).filter(whole).map(|i| batch.frame(i).to_vec()));
    }
    frames.truncate(most);
    frames
}

/// A capture file of Ethernet frames, all of time 0.
pub(crate) fn capture_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    frames.iter().for_each(|f| header.put_record(&mut file, 0, f.len() as u32, f));
    file
}
