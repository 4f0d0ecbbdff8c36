//! A run that is refused, or fails at its start, leaves files as they are, and makes none.

#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// Rows to `out/e1.jsonl` and `out/e3.jsonl`, packets to `old.pcap` and `new.pcap`, those around
/// rows to a folder of their own.
const QUERIES: [&str; 3] = [
    "packets | project number",
    "packets | mirror \"new.pcap\" | pass",
    "packets | limit 1 | project ts, ip.src | capture 1s by ip.src",
];

/// A folder with captures that are sound and others that are not, and results of yesterday.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut capture = header.to_bytes().to_vec();
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).bytes();
    header.put_record(&mut capture, 1, frame.len() as u32, &frame);
    let packed = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], b"no capture at all"].concat();
    fs::create_dir(folder.path().join("out")).expect("is made");
    for (name, bytes) in [
        ("good.pcap", &capture[..]),
        ("bad.pcap", b"no capture at all, but a text"),
        ("bad.pcap.gz", &packed),
        ("old.pcap", b"packets of yesterday"),
        ("out/e1.jsonl", b"rows of yesterday"),
    ] {
        fs::write(folder.path().join(name), bytes).expect("writes");
    }
    folder
}

/// All that is there: of files their bytes.
fn tree(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("inside").display().to_string();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(name, fs::read(&path).ok());
        }
    }
    found
}

/// Runs the queries there, and others, with standard input as given.
fn run(folder: &TempDir, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder.path()).args(["run", "-w", "old.pcap", "-o", "json"]);
    for query in QUERIES {
        command.args(["-e", query]);
    }
    if !args.contains(&"--out-dir") {
        command.args(["--out-dir", "out"]);
    }
    if !args.contains(&"--capture-dir") {
        command.args(["--capture-dir", "around/alerts"]);
    }
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
    // One that is refused need not read it.
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("it ends")
}

/// It fails for this reason, and everything is as it was.
#[track_caller]
fn check(folder: &TempDir, args: &[&str], reason: &str) {
    let before = tree(folder.path());
    let output = run(folder, args, b"no capture at all, but a text");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|c| c == 1 || c == 2), "{args:?}: {said}");
    assert!(said.contains(reason), "{args:?}: {said}");
    let after = tree(folder.path());
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let names: Vec<&String> = before.keys().chain(after.keys()).filter(differs).collect();
    assert!(names.is_empty(), "{args:?} changed {names:?}: {said}");
}

#[test]
fn what_is_refused_changes_no_file() {
    let folder = folder();
    let good = ["-r", "good.pcap"];
    for control in [&[][..], &["--control=weir.sock"]] {
        let check = |args: &[&str], reason| check(&folder, &[control, args].concat(), reason);
        let with_good = |args: &[&str], reason| check(&[&good[..], args].concat(), reason);
        check(&["-i", "nosuch0"], "nosuch0: there is no such interface");
        check(&["-r", "missing.pcap"], "missing.pcap");
        check(&["-r", "bad.pcap"], "bad.pcap");
        check(&["-r", "bad.pcap", "-r", "good.pcap"], "bad.pcap");
        with_good(&["-r", "missing.pcap"], "missing.pcap");
        with_good(&["tcp", "prot", "80"], "prot");
        with_good(&["-e", "packets | sumarize n = count()"], "did you mean `summarize`?");
        with_good(&["-e", "packets | mirror \"/nosuch/x.pcap\""], "/nosuch/x.pcap");
        with_good(&["-e", "packets | mirror \"./old.pcap\""], "is the same file as old.pcap");
        with_good(&["-e", "packets | mirror \"good.pcap\""], "is a capture being read");
        with_good(&["-e", "packets | mirror \"nosuch://x\""], "nosuch");
        with_good(&["--out-dir", "old.pcap/results"], "old.pcap/results");
        with_good(&["--capture-dir", "old.pcap/alerts"], "old.pcap/alerts");
        with_good(&["-Z", "no such user"], "no such user");
    }
    fs::write(folder.path().join("taken.sock"), "no socket").expect("writes");
    check(&folder, &["-r", "good.pcap", "--control=taken.sock"], "exists and is not a socket");
}

/// A program whose file can't be opened, after one whose file is made.
#[test]
fn files_of_programs_before_the_one_that_is_refused_go_again() {
    for control in [&[][..], &["--control=weir.sock"]] {
        let folder = folder();
        fs::create_dir(folder.path().join("out/e4.jsonl")).expect("is made");
        let more = ["-r", "good.pcap", "-e", "packets | project len"];
        check(&folder, &[control, &more].concat(), "e4.jsonl: Is a directory");
        assert!(!folder.path().join("out/e3.jsonl").exists());
    }
}

/// A fault that only shows once the run has given up its permissions: it can't remove anything by
/// then.
#[test]
fn a_capture_that_is_none_empties_no_file() {
    let folder = folder();
    for (name, reason) in [("bad.pcap.gz", "bad.pcap.gz: "), ("-", "is not a capture")] {
        check(&folder, &["-r", name, "--no-sandbox"], reason);
        let before = tree(folder.path());
        let output = run(&folder, &["-r", name], b"no capture at all, but a text");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        for (name, bytes) in tree(folder.path()) {
            match before.get(&name) {
                Some(was) => assert_eq!(*was, bytes, "{name}"),
                // A folder, or a file that was made.
                None => assert!(bytes.is_none_or(|bytes| bytes.is_empty()), "{name}"),
            }
        }
        for name in ["out/e3.jsonl", "new.pcap"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
        let _ = fs::remove_dir_all(folder.path().join("around"));
    }
}

/// Nothing comes, and the user gives up waiting.
#[test]
fn a_stream_that_never_begins_empties_no_file() {
    for _ in 0..20 {
        interrupt_before_it_begins();
    }
}

/// Interrupts a run as soon as it has the first handler of SIGINT: a signal that came before all of
/// them were there was once forgotten, and the run went on.
fn interrupt_before_it_begins() {
    let folder = folder();
    let before = tree(folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["run", "-e", "packets | pass", "-r", "-", "-w", "old.pcap", "--no-sandbox"];
    let command = command.current_dir(folder.path()).args(args).args(["--out-dir", "out"]);
    let command = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let pid = rustix::process::Pid::from_child(&child);
    let path = format!("/proc/{}/status", child.id());
    let is_handled = || {
        let status = fs::read_to_string(&path).expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a line");
        u64::from_str_radix(caught.trim(), 16).expect("a mask") >> 1 & 1 == 1
    };
    let mut tries = 0..1_000_000;
    while !is_handled() {
        tries.next().expect("a handler of SIGINT");
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is there");
    let mut waits = 0..400;
    let status = loop {
        if let Some(status) = child.try_wait().expect("asks") {
            break status;
        }
        if waits.next().is_none() {
            child.kill().expect("is there");
            panic!("it did not end within 20 s of SIGINT");
        }
        wires::pause();
    };
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("a text");
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.ends_with("interrupted\n"), "{said}");
    assert_eq!(tree(folder.path()), before, "{said}");
}

/// A capture may come by standard input and still be a file that would be emptied.
#[test]
fn a_capture_by_standard_input_is_not_written_over() {
    let folder = folder();
    let capture = folder.path().join("good.pcap");
    let before = fs::read(&capture).expect("is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["run", "-e", "packets | pass", "-r", "-", "-w", "good.pcap"];
    let command = command.current_dir(folder.path()).args(args);
    let file = fs::File::open(&capture).expect("opens");
    let output = command.stdin(file).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("good.pcap is a capture being read"), "{said}");
    assert_eq!(fs::read(&capture).expect("is there"), before);
}

/// An interface that is there, and something else that is not.
#[test]
fn a_capture_from_an_interface_that_is_refused_changes_no_file() {
    if !wires::namespace("a_capture_from_an_interface_that_is_refused_changes_no_file") {
        return;
    }
    let folder = folder();
    for control in [&[][..], &["--control=weir.sock"]] {
        let check = |args: &[&str], reason| check(&folder, &[control, args].concat(), reason);
        check(&["-i", "lo", "-e", "packets | forward \"lo\""], "packets are captured on this");
        check(&["-i", "lo", "-e", "packets | mirror \"/nosuch/x.pcap\""], "/nosuch/x.pcap");
        check(&["-i", "lo", "-i", "nosuch0"], "nosuch0");
    }
}

/// The same files are emptied, and made, where nothing is refused.
#[test]
fn what_begins_writes_all_of_them() {
    for control in [&[][..], &["--control=weir.sock"]] {
        let folder = folder();
        let output = run(&folder, &[control, &["-r", "good.pcap"]].concat(), b"");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let there = tree(folder.path());
        for name in ["out/e1.jsonl", "out/e3.jsonl", "old.pcap", "new.pcap"] {
            let bytes = there.get(name).and_then(Option::as_ref).expect(name);
            let is_old = bytes.windows(9).any(|part| part == b"yesterday");
            assert!(!is_old && !bytes.is_empty(), "{name}");
        }
        let files = fs::read_dir(folder.path().join("around/alerts")).expect("a folder");
        assert_eq!(files.count(), 1);
    }
}
