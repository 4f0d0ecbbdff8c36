//! A run that receives flow records, for tests.

use crate::common::root;
use crate::signal::signal;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// A run that receives records, which ends when it is told to.
pub(crate) struct Receiver {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
    port: u16,
}

impl Receiver {
    /// Starts a query over records, with more arguments.
    pub(crate) fn start(query: &str, scheme: &str, more: &[&str]) -> Receiver {
        let address = format!("{scheme}://127.0.0.1:0");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["run", "-e", query, "-i", &address, "-o", "csv"]).args(more);
        command.current_dir(root()).stdin(Stdio::null());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir runs");
        let mut errors = BufReader::new(child.stderr.take().expect("standard error"));
        let (mut said, mut port) = (String::new(), None);
        // The sandbox is entered after the sockets are open, and is the last thing that is said.
        while !said.contains("sandbox: ") {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).expect("text") > 0, "it ended: {said}");
            if line.starts_with("receiving flow records at ") {
                port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
            }
            said += &line;
        }
        Receiver { child, errors, said, port: port.expect("a port") }
    }

    /// The address that it receives at.
    pub(crate) fn to(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Waits until nothing is in the socket any more.
    fn has_read_all(&self) {
        let end = format!(":{:04X}", self.port);
        for _ in 0..200 {
            pause();
            let sockets = std::fs::read_to_string("/proc/net/udp").expect("sockets");
            let mut all = sockets.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
            if all.any(|cells| cells[1].ends_with(&end) && cells[4].ends_with(":00000000")) {
                return;
            }
        }
        panic!("datagrams are not read");
    }

    /// Ends the run: its rows, and what it said.
    pub(crate) fn end(mut self) -> (Vec<String>, String) {
        self.has_read_all();
        signal(self.child.id(), "-INT");
        let mut text = String::new();
        self.child.stdout.take().expect("rows").read_to_string(&mut text).expect("text");
        self.errors.read_to_string(&mut self.said).expect("text");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.said);
        (text.lines().map(str::to_owned).collect(), std::mem::take(&mut self.said))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a reader of datagrams says nothing of each")]
fn pause() {
    std::thread::sleep(Duration::from_millis(25));
}
