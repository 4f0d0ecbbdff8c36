//! Every capture of Ethernet at hand, sent over a wire and captured there: by AF_PACKET and by
//! AF_XDP the rows are those of the file, whatever the number of workers, and every frame is
//! accounted for.
//!
//! A source stays open while all captures pass. Frames that an interface cannot send are left out
//! of the file as well, and counted by why.

#![cfg(target_os = "linux")]

mod common;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::{files, program, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weir_capture::live::{LiveOptions, open_live};
use weir_capture::xdp::{XdpOptions, open_xdp};
use weir_engine::counters::Ledger;
use weir_engine::functions::Functions;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_packet::pcap::FileHeader;
use weir_packet::source::{Account, FrameBatch, LinkType, Lost, Source, SourceError};
use weir_plan::{Program, Value};
use wires::{Sender, ip, namespace, veth};

/// The query, without times: packets one by one, and flows.
const QUERY: &str = "\
    packets | project number, len, eth.src, eth.dst, vlan.id, ip.src, ip.dst, ip.proto, sport, \
              dport, tcp.seq, tcp.flags, dns.qname, dns.rcode, tls.sni, http.uri, icmp.type, \
              bytes = hex(payload)\n\
    packets | summarize n = count(), bytes = sum(len), flags = bit_or(tcp.flags) \
              by eth.src, vlan.id, ip.src, ip.dst, ip.proto, sport, dport";

/// Frames sent at once, and their bytes: less than any of the rings holds.
const FRAMES_AT_ONCE: usize = 2000;
const BYTES_AT_ONCE: usize = 8 << 20;

/// Batches without a frame after which none is expected any more: half a minute.
const QUIET: usize = 300;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Reads frames of a wire, or of a file as if others had come before.
struct Part<'a> {
    source: &'a mut dyn Source,
    /// Frames to be read, and those that were.
    left: u64,
    taken: u64,
    /// Added to the numbers of frames.
    before: u64,
    quiet: usize,
}

impl<'a> Part<'a> {
    fn new(source: &'a mut dyn Source, left: usize, before: u64) -> Part<'a> {
        Part { source, left: left as u64, taken: 0, before, quiet: 0 }
    }
}

impl Source for Part<'_> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.left == 0 || !self.source.fill(batch)? {
            return Ok(false);
        }
        let n = batch.len() as u64;
        assert!(n <= self.left, "{n} frames came, where {} were left", self.left);
        (self.left, self.taken) = (self.left - n, self.taken + n);
        self.quiet = if n == 0 { self.quiet + 1 } else { 0 };
        assert!(self.quiet < QUIET, "{} frames did not come: {:?}", self.left, self.account());
        batch.renumber(self.before);
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let lost = self.source.account().lost;
        Account { received: self.taken, lost, ..Account::default() }
    }
}

fn answer(
    program: &Program,
    source: Part<'_>,
    workers: usize,
) -> (Vec<(usize, Vec<Value>)>, Ledger) {
    let (mut source, mut sink) = (source, Collect::default());
    let options = Options { workers, ..Options::default() };
    let functions = Functions::default();
    let outcome = run(program, &functions, &mut source, &mut sink, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(source.left, 0, "all frames were read");
    (sink.rows, outcome.ledger)
}

/// The number of frames and captures that were left out, by why.
type LeftOut = BTreeMap<String, usize>;

/// The frames of a capture that an interface can send which takes frames of so many bytes.
fn sendable(capture: &Path, bytes_max: usize, left_out: &mut LeftOut) -> Vec<Vec<u8>> {
    let mut leave = |why: &str| *left_out.entry(why.to_owned()).or_default() += 1;
    let name = capture.to_str().expect("a name in UTF-8");
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let Ok(mut source) = weir_capture::open(name, &options) else {
        leave("captures that can't be opened");
        return Vec::new();
    };
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    // The packets before a fault of the file are as good as any.
    while source.fill(&mut batch).unwrap_or(false) {
        for i in 0..batch.len() {
            let frame = batch.frame(i);
            match frame.len() {
                _ if batch.link != LinkType::ETHERNET => leave("frames of other link types"),
                0..ETHERNET => leave("frames shorter than an Ethernet header"),
                n if n > bytes_max => leave(&format!("frames longer than {bytes_max} bytes")),
                _ => frames.push(frame.to_vec()),
            }
        }
    }
    frames
}

/// Cuts frames into parts that are sent at once.
fn parts(frames: &[Vec<u8>]) -> Vec<&[Vec<u8>]> {
    let (mut parts, mut rest) = (Vec::new(), frames);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |frame: &&Vec<u8>| {
            bytes += frame.len();
            bytes <= BYTES_AT_ONCE
        };
        let n = rest.iter().take(FRAMES_AT_ONCE).take_while(fits).count();
        let (part, more) = rest.split_at(n.max(1));
        parts.push(part);
        rest = more;
    }
    parts
}

/// A capture file of these frames.
fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    frames.iter().for_each(|f| header.put_record(&mut bytes, 0, f.len() as u32, f));
    bytes
}

/// The fixtures, and what is shared.
fn captures(test: &str) -> Vec<PathBuf> {
    const ENDINGS: [&str; 3] = [".pcap", ".pcapng", ".cap"];
    let mut all = files("fixtures", &ENDINGS);
    match std::env::var_os("WEIR_CAPTURES").and_then(|folder| folder.into_string().ok()) {
        Some(folder) => all.extend(files(&folder, &ENDINGS)),
        None => skip(test, "WEIR_CAPTURES names no further captures; the fixtures are replayed"),
    }
    all
}

/// Sends every capture by `v0` and compares what `source` makes of it; how many frames there were.
fn replay(test: &str, source: &mut dyn Source, bytes_max: usize) -> u64 {
    let program = program(QUERY, &Functions::default());
    let sender = Sender::new("v0");
    let (mut sent, mut replayed, mut left_out) = (0, 0, LeftOut::new());
    let all = captures(test);
    for (n, capture) in all.iter().enumerate() {
        let frames = sendable(capture, bytes_max, &mut left_out);
        replayed += usize::from(!frames.is_empty());
        for part in parts(&frames) {
            part.iter().for_each(|frame| sender.send(frame));
            let workers = [1, 2, 4][n % 3];
            let got = answer(&program, Part::new(source, part.len(), 0), workers);
            let options = weir_capture::Options::default();
            let mut read = weir_capture::open_bytes("sent", file(part), &options).expect("whole");
            let want = answer(&program, Part::new(&mut *read, part.len(), sent), 1);
            let name = capture.display();
            let at = got.0.iter().zip(&want.0).position(|(a, b)| a != b);
            let row = |rows: &[(usize, Vec<Value>)]| at.and_then(|at| rows.get(at).cloned());
            assert!(
                got.0 == want.0,
                "{name}, {workers} workers: {} and {} rows, these differ first:\n{:?}\n{:?}",
                got.0.len(),
                want.0.len(),
                row(&got.0),
                row(&want.0)
            );
            assert_eq!(got.1, want.1, "{name}, {workers} workers");
            sent += part.len() as u64;
        }
    }
    let account = source.account();
    assert_eq!((account.received, account.lost), (sent, Lost::default()));
    let left_out: Vec<String> = left_out.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let total = all.len();
    skip(test, &format!("{replayed} of {total} captures sent, {sent} frames; not {left_out:?}"));
    assert!(replayed > 10, "{replayed} captures were replayed");
    sent
}

#[test]
fn captures_by_af_packet_are_those_that_were_sent() {
    let test = "replays::captures_by_af_packet_are_those_that_were_sent";
    if !namespace(test) {
        return;
    }
    veth("v0", "v1");
    for end in ["v0", "v1"] {
        ip(&format!("link set {end} mtu 65535"));
    }
    let names = ["v1".to_owned()];
    let mut source = open_live(&names, LiveOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let sent = replay(test, &mut *source, 65_535);
    assert_eq!(source.interfaces()[0].1.received, sent);
}

#[test]
fn captures_by_af_xdp_are_those_that_were_sent() {
    let test = "replays::captures_by_af_xdp_are_those_that_were_sent";
    if !namespace(test) {
        return;
    }
    veth("v0", "v1");
    // As much as a frame may have there, see docs/xdp.md.
    const MTU: usize = 3818;
    for end in ["v0", "v1"] {
        ip(&format!("link set {end} mtu {MTU}"));
    }
    let mut source = open_xdp(&["v1"], &XdpOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let sent = replay(test, &mut source, MTU + ETHERNET);
    let queues = source.queues().expect("counts");
    let sum =
        |count: fn(&weir_capture::xdp::QueueCounts) -> u64| queues.iter().map(count).sum::<u64>();
    assert_eq!((sum(|q| q.redirected), sum(|q| q.delivered)), (sent, sent), "{queues:?}");
}
