//! A run whose packets a test writes, and what it says over HTTP.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::workplace;
use crate::over_wires::{Run, lines};
use crate::wires;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, Command, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// A token, and the header that sends it.
pub(crate) const SECRET: &str = "0123456789abcdef";
pub(crate) const TOKEN: &str = "Authorization: Bearer 0123456789abcdef\r\n";

/// Asks a server, and gives the status and the body.
pub(crate) fn ask(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.expect("a status"), body.to_owned())
}

pub(crate) fn get(address: &str, path: &str, headers: &str) -> (u16, String) {
    let host = address.replace("0.0.0.0", "127.0.0.1");
    ask(
        &host,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"),
    )
}

/// The metrics of a run by the names and labels of their samples.
pub(crate) fn metrics(address: &str) -> BTreeMap<String, u64> {
    let (status, body) = get(address, "/metrics", TOKEN);
    assert_eq!(status, 200, "{body}");
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a sample");
        (name.to_owned(), value.parse().expect("a number"))
    };
    body.lines().filter(|line| !line.starts_with('#')).map(sample).collect()
}

/// Where a run says that it shows its metrics.
pub(crate) fn address(run: &mut Run) -> String {
    run.until("metrics: http://");
    let line = run.said.last().expect("it said so");
    let rest = line.trim_start_matches("metrics: http://");
    rest.trim_end_matches("/metrics").to_owned()
}

/// A run over a stream that the test writes.
pub(crate) struct Streamed {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run: Run,
    pub(crate) packets: Option<ChildStdin>,
    pub(crate) address: String,
    pub(crate) sent: u64,
}

impl Streamed {
    pub(crate) fn start(args: &[&str]) -> Streamed {
        let folder = workplace();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", "-r", "-"])
            .args(args)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let errors = lines(child.stderr.take().expect("piped"));
        let mut packets = child.stdin.take().expect("piped");
        let header = FileHeader::new(LinkType::ETHERNET).to_bytes();
        packets.write_all(&header).expect("it reads");
        let mut run = Run { child, errors, said: Vec::new() };
        let address = address(&mut run);
        Streamed { folder, run, packets: Some(packets), address, sent: 0 }
    }

    /// Sends packets of three hosts, one in ten of them malformed, and waits until they were
    /// processed.
    pub(crate) fn send(&mut self, n: u64) {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = Vec::new();
        for i in self.sent..self.sent + n {
            let frame = Frame::ethernet().ipv4([10, 0, 0, (i % 3) as u8], [192, 0, 2, 1]);
            let mut frame = frame.udp(9, 1000).bytes();
            if i % 10 == 0 {
                // An IPv4 header of 16 bytes.
                frame[14] = 0x44;
            }
            let ts = 1_700_000_000_000_000_000 + i as i64 * 100_000_000;
            header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
        }
        let packets = self.packets.as_mut().expect("it is not over");
        packets.write_all(&bytes).and_then(|()| packets.flush()).expect("it reads");
        self.sent += n;
        while metrics(&self.address)["weir_packets_processed_total"] < self.sent {
            wires::pause();
        }
    }

    pub(crate) fn end(mut self) -> String {
        drop(self.packets.take());
        self.run.ended()
    }
}
