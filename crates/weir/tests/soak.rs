//! A run that goes on and on while everything around it changes: its interface flaps, programs come
//! and go and are replaced, every packet is a new flow, all packets are forwarded by a second
//! interface, and nobody reads the rows of one program. Two workers share the work. Every frame is
//! accounted for in the end, and memory stays what it was.
//!
//! It takes fifteen seconds, or as many as `WEIR_SOAK_SECONDS` says. Below two minutes nothing is
//! said of memory: buffers are still being touched for the first time then.
//!
//! Memory swings by megabytes within a round, as state comes and goes. It is read where a program
//! has just gone, and medians of many rounds are compared.

#![cfg(target_os = "linux")]

mod common;
#[path = "common/signal.rs"]
mod signal;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use serde_json::Value;
use signal::signal;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_packet::craft::Frame;
use wires::{Sender, ip, namespace, pause, veth};

/// Below that nothing is said of memory.
const SETTLED: Duration = Duration::from_secs(120);

/// The growth that memory may have from the second tenth of the time to the last, in KiB: what
/// allocators do, no leak of a byte for some packets or a KiB a change.
const SLACK_KIB: u64 = 4096;

/// A flow meter with room for few, which each packet overflows.
const FLOOD: &str = "packets | summarize n = count(), bytes = sum(len) by flow every 1s max 20k \
                     | summarize flows = count(), packets = sum(n) by ts";

/// State for each source, with room for few, as exact as counting can be about each packet.
const SCANS: [&str; 2] = [
    "packets | scan n = 0 by ip.src max 20k => n + 1 | where n >= 2 | project number, ip.src, n",
    "packets | scan n = 0 by ip.src max 20k => n + 1 | where n >= 3 | project ip.src, number",
];

const ALL: &str = "packets | summarize n = count()";

/// Every packet leaves by another interface.
const BRIDGE: &str = "packets | forward \"w0\"";

/// Rows that nobody reads.
const HANGING: &str = "packets | project number, ip.src";

#[test]
#[expect(clippy::disallowed_methods, reason = "it goes on for as long as somebody wants")]
fn a_run_goes_on_whatever_happens_around_it() {
    if !namespace("a_run_goes_on_whatever_happens_around_it") {
        return;
    }
    let seconds = std::env::var("WEIR_SOAK_SECONDS").ok().and_then(|s| s.parse().ok());
    let whole = Duration::from_secs(seconds.unwrap_or(15));
    veth("v0", "v1");
    veth("w0", "w1");
    let mut run = Run::start();
    let (mut sender, started) = (Sender::new("v0"), Instant::now());
    let (mut sent, mut round, mut memory) = (0u64, 0u64, Vec::new());
    while started.elapsed() < whole {
        for _ in 0..20_000 {
            sender.send(&frame(sent));
            sent += 1;
        }
        match round % 4 {
            0 => run.ctl(&["add", "--name", "scan", "-e", SCANS[0]]),
            1 => run.ctl(&["replace", "scan", "-e", SCANS[1]]),
            2 => {
                ip("link set v1 down");
                ip("link set v1 up");
                sender = Sender::new("v0");
            }
            _ => {
                run.ctl(&["remove", "scan"]);
                memory.push(run.memory_kib());
            }
        }
        round += 1;
    }
    // Frames that are sent while the wire is not yet up again never get onto it: the kernel says
    // so.
    let [on_wire, refused] = transmitted("v0");
    assert_eq!(on_wire + refused, sent, "the wire has two ends");
    let (counts, said) = run.end(on_wire);
    let sent = on_wire;
    let memory = medians_of_tenths(&memory);
    let mut out = std::io::stderr().lock();
    let ledger: Vec<&str> = said.lines().filter(|line| !line.starts_with("note")).collect();
    let ledger = ledger.join("\n");
    let _ = writeln!(out, "soak: {sent} frames, {round} rounds, {memory:?} KiB\n{ledger}");
    let n = |key: &str| counts[key].as_u64().expect("a number");
    assert_eq!(n("received") + n("lost_in_ring") + n("lost_in_kernel"), sent, "{counts}");
    assert_eq!(n("received"), n("processed"), "{counts}");
    assert!(n("evicted") > 0 && n("refused") > 0, "{counts}");
    let forwarded = count_of(&said, "sent ", " to w0");
    assert_eq!(forwarded + count_of(&said, "refused ", " by w0:"), n("processed"), "{ledger}");
    // Frames of the kernel's own, as of IPv6, may have left by it, too.
    let [left, dropped] = transmitted("w0");
    assert!(left + dropped >= forwarded && forwarded > 0, "{left} and {dropped} left: {ledger}");
    if whole >= SETTLED {
        let [.., end] = memory;
        assert!(end <= memory[1] + SLACK_KIB, "{memory:?} KiB, as time went by");
    }
}

/// The number in the line of the ledger that begins and goes on like this; 0 where there is none.
fn count_of(said: &str, begins: &str, with: &str) -> u64 {
    let line = said.lines().find(|line| line.starts_with(begins) && line.contains(with));
    let number = line.and_then(|line| line[begins.len()..].split_whitespace().next());
    number.map_or(0, |n| n.replace(',', "").parse().expect("a number"))
}

/// The median of each tenth of what was read one after the other, or 0 of none.
fn medians_of_tenths(all: &[u64]) -> [u64; 10] {
    std::array::from_fn(|tenth| {
        let mut some = all[all.len() * tenth / 10..all.len() * (tenth + 1) / 10].to_vec();
        some.sort_unstable();
        some.get(some.len() / 2).copied().unwrap_or(0)
    })
}

/// Frames that went out by an interface, and those that it could not send.
fn transmitted(interface: &str) -> [u64; 2] {
    let output = Command::new("ip").args(["-j", "-s", "link", "show", interface]).output();
    let output = output.expect("ip, of iproute2").stdout;
    let shown: Value = serde_json::from_slice(&output).expect("JSON");
    let sent = &shown[0]["stats64"]["tx"];
    ["packets", "dropped"].map(|count| sent[count].as_u64().expect("a number"))
}

/// A packet of a flow of its own.
fn frame(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let [a, b, c, d, e, f, ..] = mixed.to_be_bytes();
    let ports = (u16::from_be_bytes([d, e]) | 1, u16::from(f) + 1);
    Frame::ethernet().ipv4([10, a, b, c], [192, 0, 2, 1]).udp(ports.0, ports.1).bytes()
}

/// The run, and the pipe that nobody reads.
struct Run {
    folder: tempfile::TempDir,
    child: Child,
    _pipe: File,
}

impl Run {
    fn start() -> Run {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("out")).expect("a folder");
        let pipe = folder.path().join("out/hanging.jsonl");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo (of coreutils)");
        // To write, too, so that opening waits for nobody.
        let reader = File::options().read(true).write(true).open(&pipe).expect("opens");
        // A program that comes later makes a new file.
        std::fs::write(folder.path().join("hanging.weir"), HANGING).expect("writes");
        let errors = File::create(folder.path().join("errors")).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", "--control=weir.sock", "--out-dir", "out", "-o", "json", "-j", "2"])
            .args(["hanging.weir", "-i", "v1", "--allow-send", "w0"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("the binary runs");
        let mut run = Run { folder, child, _pipe: reader };
        for _ in 0..1200 {
            if run.said().contains("listening on") && run.folder.path().join("weir.sock").exists() {
                break;
            }
            pause();
        }
        run.ctl(&["add", "--name", "flood", "-e", FLOOD]);
        run.ctl(&["add", "--name", "all", "-e", ALL]);
        run.ctl(&["add", "--name", "bridge", "-e", BRIDGE]);
        run
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("errors")).expect("text")
    }

    fn ask(&self, args: &[&str]) -> (bool, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["ctl", "-S", "weir.sock"]).args(args).current_dir(self.folder.path());
        let output = command.output().expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    fn ctl(&mut self, args: &[&str]) {
        let (done, _, said) = self.ask(args);
        assert!(done, "{args:?}: {said}\n{}", self.said());
    }

    fn memory_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|kib| kib.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse().ok()).expect("a size")
    }

    /// Its counts once every frame is accounted for, and all that it has said.
    fn end(mut self, sent: u64) -> (Value, String) {
        let mut counts = Value::Null;
        for _ in 0..1200 {
            let (_, text, _) = self.ask(&["stats", "-o", "json"]);
            counts = serde_json::from_str(&text).expect("JSON");
            let n = |key: &str| counts[key].as_u64().unwrap_or(0);
            if n("processed") + n("lost_in_ring") + n("lost_in_kernel") >= sent {
                break;
            }
            pause();
        }
        signal(self.child.id(), "-INT");
        // The hanging program's rows are given up on, and that is a failure.
        assert_eq!(self.child.wait().expect("ends").code(), Some(1), "{}", self.said());
        check_rows(&self.folder.path().join("out"), &counts);
        (counts, self.said())
    }
}

/// The program that counts has seen every packet, whoever came and went.
fn check_rows(out: &Path, counts: &Value) {
    let row = std::fs::read_to_string(out.join("all.jsonl")).expect("there");
    let row: Value = serde_json::from_str(&row).expect("a row");
    assert_eq!(row["n"], counts["processed"]);
}

impl Drop for Run {
    fn drop(&mut self) {
        // Of a failed test; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
