//! Programs that come, go and are replaced while a run goes on, asked over its socket.

mod common;
#[path = "common/over_wires.rs"]
mod over_wires;

use over_wires::until;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType, Source as _};

/// A run over a stream that the test writes, and its socket.
struct Run {
    folder: TempDir,
    child: Child,
    packets: Option<ChildStdin>,
    sent: u64,
}

impl Run {
    fn start(args: &[&str]) -> Run {
        Run::start_in(tempfile::tempdir().expect("a folder"), args)
    }

    fn start_in(folder: TempDir, args: &[&str]) -> Run {
        let socket = format!("--control={}", folder.path().join("weir.sock").display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", &socket, "-r", "-", "-l"])
            .args(args)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut packets = child.stdin.take().expect("piped");
        let header = FileHeader::new(LinkType::ETHERNET).to_bytes();
        packets.write_all(&header).expect("it reads");
        let run = Run { folder, child, packets: Some(packets), sent: 0 };
        until("it listens", || run.path("weir.sock").exists());
        run
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Sends packets, a tenth of a second apart, and waits until they were processed.
    fn send(&mut self, n: u64) {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = Vec::new();
        for i in self.sent..self.sent + n {
            let frame = frame(i);
            let ts = 1_700_000_000_000_000_000 + i as i64 * 100_000_000;
            header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
        }
        let packets = self.packets.as_mut().expect("it is not over");
        packets.write_all(&bytes).and_then(|()| packets.flush()).expect("it reads");
        self.sent += n;
        until("all are processed", || self.counts()["processed"] == self.sent);
    }

    fn ask(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("ctl").args(args).env("WEIR_SOCKET", self.path("weir.sock"));
        command.current_dir(self.folder.path()).output().expect("the binary runs")
    }

    /// Its answer to a command that it carries out.
    fn ctl(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        let said = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        said
    }

    /// Its answer to a command that it refuses.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        text(&output.stderr).to_owned()
    }

    fn counts(&self) -> Value {
        serde_json::from_slice(&self.ask(&["stats", "-o", "json"]).stdout).expect("JSON")
    }

    /// The programs that run.
    fn list(&self) -> Vec<Listed> {
        let output = self.ask(&["list", "-o", "json"]);
        let row = |line: &str| {
            let row: Value = serde_json::from_str(line).expect("JSON");
            let text = |key: &str| row[key].as_str().expect("text").to_owned();
            Listed { name: text("name"), rows: row["rows"].as_u64(), state: text("state") }
        };
        text(&output.stdout).lines().map(row).collect()
    }

    /// Ends the packets; its exit status, its rows, and what it said.
    fn end(mut self) -> (Option<i32>, Vec<Value>, String) {
        drop(self.packets.take());
        let (mut rows, mut said) = (String::new(), String::new());
        self.child.stdout.take().expect("piped").read_to_string(&mut rows).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("ends").code();
        assert!(!self.path("weir.sock").exists(), "the socket is still there");
        let rows = rows.lines().map(|line| serde_json::from_str(line).expect(line));
        (status, rows.collect(), said)
    }
}

/// A program as `weir ctl list` has it.
#[derive(Debug)]
struct Listed {
    name: String,
    /// `None` where it is no number.
    rows: Option<u64>,
    state: String,
}

impl Drop for Run {
    fn drop(&mut self) {
        // Of a failed test; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The packets, by turns of three hosts.
fn frame(i: u64) -> Vec<u8> {
    let frame = Frame::ethernet().ipv4([10, 0, 0, (i % 3) as u8], [192, 0, 2, 1]);
    frame.udp(9, 1000).bytes()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// A row as it was written.
fn row(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

const COUNT: &str = "packets | summarize n = count()";

#[test]
fn programs_come_and_go_and_count_what_came_meanwhile() {
    for workers in ["1", "3"] {
        let mut run = Run::start(&["-j", workers]);
        assert!(run.list().is_empty());
        run.send(5);
        assert_eq!(run.ctl(&["add", "-e", COUNT, "--name", "first"]), "added first\n");
        run.send(10);
        run.ctl(&["add", "-e", COUNT, "--name", "second"]);
        run.send(3);
        assert_eq!(run.ctl(&["remove", "first"]), "removed first\n");
        let names: Vec<String> = run.list().into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["second"]);
        run.send(4);
        let (status, rows, said) = run.end();
        assert_eq!(status, Some(0), "{said}");
        let first = row(r#"{"_pipeline": "first", "n": 13}"#);
        assert_eq!(rows, [first, row(r#"{"_pipeline": "second", "n": 7}"#)]);
        assert!(said.contains("received   22 packets\n"), "{said}");
    }
}

#[test]
fn a_replacement_goes_on_with_what_stayed_the_same() {
    for workers in ["1", "2"] {
        let query = "param least: int = 5\n\
                     packets | scan i = 0 by ip.src idle 1h => i + 1 \
                     | summarize n = max(i) by ip.src | where n >= least | top 1 by n";
        let mut run = Run::start(&["-j", workers]);
        std::fs::write(run.path("q.weir"), query).expect("writes");
        run.ctl(&["add", "q.weir"]);
        run.send(9);
        let said = run.ctl(&["replace", "q", "q.weir", "-p", "least=2"]);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 4, "{said}");
        assert!(lines[0] == "replaced q" && lines[1].starts_with("kept       scan"), "{said}");
        assert!(lines[2].starts_with("kept       summarize"), "{said}");
        assert!(lines[3].starts_with("began anew top 1 by n"), "{said}");
        run.send(9);
        let (status, rows, said) = run.end();
        assert_eq!(status, Some(0), "{said}");
        // Six of each source, as though there had been no other query.
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["n"], 6);
    }
}

#[test]
fn rows_that_list_counts_were_texts_in_json() {
    let mut run = Run::start(&["--out-dir", "out", "-o", "csv"]);
    run.ctl(&["add", "-e", "packets | project number", "--name", "numbers"]);
    run.send(5);
    until("rows are counted", || run.list()[0].rows == Some(5));
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
}

/// A folder with a query whose rows go to a disk that is full.
fn full_disk(name: &str, query: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(format!("{name}.weir")), query).expect("writes");
    std::fs::create_dir(folder.path().join("out")).expect("a folder");
    let rows = folder.path().join(format!("out/{name}.csv"));
    std::os::unix::fs::symlink("/dev/full", rows).expect("links");
    folder
}

#[test]
fn one_that_cannot_write_takes_nothing_from_the_others() {
    let numbers = "packets | project number";
    let mut run =
        Run::start_in(full_disk("full", numbers), &["full.weir", "--out-dir", "out", "-o", "csv"]);
    run.ctl(&["add", "-e", numbers, "--name", "well"]);
    run.send(20);
    until("it fails", || run.list()[0].state != "runs");
    let list = run.list();
    assert!(list[0].state.starts_with("failed: No space left on device"), "{list:?}");
    assert_eq!(list[1].state, "runs");
    // Again, under the same name: what was written is not overwritten.
    run.ctl(&["remove", "well"]);
    run.ctl(&["add", "-e", COUNT, "--name", "well"]);
    let before = run.sent;
    run.send(7);
    let folder = run.folder.path().join("out");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("there");
    let written = read("well.csv");
    assert_eq!(written.lines().count() as u64, 1 + before);
    assert_eq!(read("well-2.csv"), "n\n");
    let second = std::fs::File::open(folder.join("well-2.csv")).expect("there");
    let (status, _, said) = run.end();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("full: No space left on device"), "{said}");
    let mut last = String::new();
    { second }.read_to_string(&mut last).expect("text");
    assert_eq!(last, "n\n7\n");
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let mut run = Run::start(&["-e", COUNT, "--allow-write", "."]);
    run.send(2);
    assert!(run.counts()["captured"].is_null(), "no packets are kept");
    assert!(run.counts()["kernel_hands_up"].is_null(), "the kernel runs no part");
    let check = |args: &[&str], part: &str| {
        let said = run.refused(args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    check(&["add", "-e", "packets | sumarize n = count()"], "did you mean `summarize`?");
    check(&["add", "-e", COUNT], "a program called e runs already");
    check(&["add", "-e", COUNT, "--name", "../x"], "can't be the name of a program");
    check(&["add", "-e", COUNT, "--name", "x", "-p", "n=1"], "n");
    check(&["replace", "f", "-e", COUNT], "no program is called f; there are e");
    check(&["remove", "f"], "no program is called f; there are e");
    check(&["add", "nosuch.weir"], "nosuch.weir: there is no such file");
    let nowhere = "packets | forward \"/nosuch/x.pcap\"";
    check(&["add", "--name", "x", "-e", nowhere], "/nosuch/x.pcap");
    // A file that was opened before that is not left over.
    let left = run.path("left.pcap");
    let half = format!("packets | mirror {left:?} | forward \"/nosuch/x.pcap\"");
    check(&["add", "--name", "x", "-e", &half], "/nosuch/x.pcap");
    assert!(!left.exists());
    let around = "packets | project ts, ip.src | capture 1s by ip.src";
    let keeps_none = "`capture` writes earlier packets to new files, and this run keeps none for \
                      that: start it with --ring 64m, say, and --capture-dir FOLDER";
    check(&["add", "--name", "x", "-e", around], keeps_none);
    check(&["replace", "e", "-e", around], keeps_none);
    let names = "packets | where ip.src in file(\"missing.txt\") | project number";
    check(&["add", "--name", "x", "-e", names], "missing.txt");
    let mode = std::fs::metadata(run.path("weir.sock")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    run.send(2);
    let (status, rows, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(rows, [row(r#"{"_pipeline": "e", "n": 4}"#)]);
}

/// Files of rows are made before it turns out that a program can't run.
#[test]
fn what_is_refused_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("old.jsonl"), "rows\n").expect("writes");
    let mut run = Run::start(&["-e", COUNT, "--out-dir", folder.path().to_str().expect("plain")]);
    run.send(2);
    let wrong = "packets | mirror \"/nosuch/x.pcap\" | project number";
    for name in ["new", "old"] {
        let said = run.refused(&["add", "--name", name, "-e", wrong]);
        assert!(said.contains("/nosuch/x.pcap"), "{said}");
        assert!(!place("new.jsonl").exists(), "it is gone when the answer comes");
    }
    assert_eq!(std::fs::read_to_string(place("old.jsonl")).expect("stays"), "rows\n");
    // Mended at once, it has the file, and keeps it.
    let names: Vec<String> = (0..8).map(|n| format!("again{n}")).collect();
    for name in &names {
        run.refused(&["add", "--name", name, "-e", wrong]);
        run.ctl(&["add", "--name", name, "-e", "packets | project number"]);
    }
    run.send(2);
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(place("e.jsonl").exists());
    for name in &names {
        let rows = std::fs::read_to_string(place(&format!("{name}.jsonl"))).expect("is there");
        assert_eq!(rows.lines().count(), 2, "{name}");
    }
}

/// The folder of rows is made before the run gives up making folders elsewhere.
#[test]
fn rows_go_to_a_folder_elsewhere_that_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("new/out");
    let mut run = Run::start(&["--out-dir", out.to_str().expect("plain")]);
    run.ctl(&["add", "--name", "n", "-e", "packets | project number"]);
    run.send(2);
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    let rows = std::fs::read_to_string(out.join("n.jsonl")).expect("is there");
    assert_eq!(rows.lines().count(), 2);
}

/// Rows that ask for the packets around them do so wherever their output stands.
#[test]
fn packets_around_rows_are_captured_while_others_come_and_go() {
    for workers in ["1", "2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().to_str().expect("a plain path");
        let query = "packets | where number == 5 | project ts, ip.src | capture 1h by ip.src";
        let args = ["-j", workers, "-e", COUNT, "-e", query, "--capture-dir", to];
        let mut run = Run::start(&args);
        run.send(3);
        run.ctl(&["remove", "e1"]);
        run.send(4);
        run.ctl(&["add", "-e", COUNT, "--name", "later"]);
        run.send(3);
        let (status, rows, said) = run.end();
        assert_eq!((status, rows.len()), (Some(0), 3), "{said}");
        let files = std::fs::read_dir(folder.path()).expect("a folder");
        let files: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
        assert_eq!(files, [rows[1]["capture"].as_str().expect("a name")]);
        assert!(said.contains("captured   3 packets in 1 file\n"), "{said}");
    }
}

/// Numbers of the packets in a file of a folder.
fn numbers(folder: &TempDir, name: &Value) -> Vec<i64> {
    let path = folder.path().join(name.as_str().expect("a name"));
    let name = path.to_str().expect("a plain path");
    let mut source =
        weir_capture::open(name, &weir_capture::Options::default()).expect("a capture");
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).expect("whole records") {
        all.extend(batch.ts().iter().map(|ts| (ts - 1_700_000_000_000_000_000) / 100_000_000 + 1));
    }
    all
}

/// Packets that came before a program did are found by its keys, whatever these are. Files go on
/// where their program does not.
#[test]
fn programs_that_come_capture_what_came_before_them() {
    for workers in ["1", "2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().to_str().expect("a plain path");
        let mut run = Run::start(&["-j", workers, "--ring", "1m", "--capture-dir", to]);
        assert_eq!(run.counts()["captured"]["files"], 0);
        let around = |number: u64, capture: &str| {
            format!("packets | where number == {number} | project ts, ip.src, dport | {capture}")
        };
        run.send(4);
        run.ctl(&["add", "--name", "a", "-e", &around(6, "capture 1h by ip.src")]);
        run.send(4);
        // With another key; the file of the first row goes on.
        run.ctl(&["replace", "a", "-e", &around(10, "capture before 550ms by dport")]);
        run.send(4);
        run.ctl(&["add", "--name", "b", "-e", &around(13, "capture before 1h after 150ms")]);
        run.ctl(&["remove", "a"]);
        // Files end with a batch that begins after their time.
        run.send(15);
        run.send(15);
        // The second and the third file have ended: six packets and fourteen.
        let captured = |key: &str| run.counts()["captured"][key].as_u64().expect("a number");
        until("they are written", || captured("files") == 3 && captured("frames") == 20);
        assert_eq!(captured("bytes"), 20 * frame(0).len() as u64);
        let others = ["short", "full", "left_out", "missed", "refused", "existed", "failed"];
        assert_eq!(others.map(captured), [0; 7]);
        // No program is there any more, but packets are kept.
        run.ctl(&["remove", "b"]);
        run.send(1);
        run.ctl(&["add", "--name", "c", "-e", &around(44, "capture before 250ms by ip.src")]);
        run.send(4);
        let (status, rows, said) = run.end();
        assert_eq!((status, rows.len()), (Some(0), 4), "{said}");
        let first: Vec<i64> = (3..=47).step_by(3).collect();
        assert_eq!(numbers(&folder, &rows[0]["capture"]), first, "{rows:?}");
        assert_eq!(numbers(&folder, &rows[1]["capture"]), [5, 6, 7, 8, 9, 10], "{rows:?}");
        let third: Vec<i64> = (1..=14).collect();
        assert_eq!(numbers(&folder, &rows[2]["capture"]), third, "{rows:?}");
        assert_eq!(numbers(&folder, &rows[3]["capture"]), [44], "{rows:?}");
        let all = first.len() + 6 + 14 + 1;
        assert!(said.contains(&format!("captured   {all} packets in 4 files\n")), "{said}");
    }
}

/// Rows that look the same go on in the same file, though they ask for more than before.
#[test]
fn a_replacement_may_ask_for_other_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().to_str().expect("a plain path");
    let mut run = Run::start(&["--ring", "1m", "--capture-dir", to, "--out-dir", "out"]);
    let query = "packets | where number in {3, 5} | project ts, ip.src, dport | capture before";
    run.ctl(&["add", "--name", "a", "-e", &format!("{query} 150ms by dport")]);
    run.send(4);
    run.ctl(&["replace", "a", "-e", &format!("{query} 250ms by dport")]);
    run.send(20);
    let files = run.path("out");
    let out = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    let rows = std::fs::read_to_string(files.join("a.jsonl")).expect("there");
    let rows: Vec<Value> = rows.lines().map(row).collect();
    assert_eq!(numbers(&folder, &rows[0]["capture"]), [2, 3], "{rows:?}");
    assert_eq!(numbers(&folder, &rows[1]["capture"]), [3, 4, 5], "{rows:?}");
    assert!(!files.join("a-2.jsonl").exists());
    drop(out);
}

#[test]
fn files_that_a_query_names_come_along() {
    let mut run = Run::start(&[]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::write(elsewhere.path().join("hosts.txt"), "10.0.0.1\n").expect("writes");
    let query = "packets | where ip.src in file(\"hosts.txt\") | summarize n = count()";
    let path = elsewhere.path().join("q.weir");
    std::fs::write(&path, query).expect("writes");
    run.ctl(&["add", path.to_str().expect("plain")]);
    drop(elsewhere);
    run.send(9);
    let (_, rows, _) = run.end();
    assert_eq!(rows, [row(r#"{"_pipeline": "q", "n": 3}"#)]);
}

#[test]
fn packets_of_programs_that_come_and_go_are_written() {
    let mut run = Run::start(&["--allow-write", "."]);
    let to = |file: &str| format!("packets | forward \"{file}\"");
    run.ctl(&["add", "--name", "a", "-e", &to("a.pcap")]);
    run.send(4);
    run.ctl(&["add", "--name", "b", "-e", &to("b.pcap")]);
    run.send(3);
    // The same file twice has one writer only.
    let twice = run.refused(&["add", "--name", "c", "-e", &to("./b.pcap")]);
    assert!(twice.contains("./b.pcap exists already"), "{twice}");
    run.ctl(&["remove", "a"]);
    run.send(2);
    let lens = |folder: &Path| {
        let frame = (std::fs::metadata(folder.join("a.pcap")).expect("there").len() - 24) / 7;
        ["a.pcap", "b.pcap"]
            .map(|name| (std::fs::metadata(folder.join(name)).expect("there").len() - 24) / frame)
    };
    let folder = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(lens(folder.path()), [7, 5]);
    assert!(said.contains("7 packets to a.pcap") && said.contains("5 packets to b.pcap"), "{said}");
}

#[test]
fn a_file_that_is_full_takes_nothing_from_the_others() {
    let to = |file: &str| format!("packets | forward \"{file}\"");
    let mut run = Run::start(&["-U", "-e", &to("/dev/full"), "--allow-write", "."]);
    run.ctl(&["add", "--name", "well", "-e", &to("well.pcap")]);
    run.send(5);
    // Neither do they end with it, nor is anything counted twice.
    run.ctl(&["add", "--name", "none", "-e", "packets | where false | forward \"/dev/full\""]);
    run.ctl(&["remove", "none"]);
    run.send(4);
    run.ctl(&["remove", "e"]);
    let folder = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
    let (status, _, said) = run.end();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("/dev/full: No space left on device"), "{said}");
    assert!(said.contains("9 packets to well.pcap"), "{said}");
    assert!(said.contains("sent       0 packets to /dev/full"), "{said}");
    assert!(said.contains("refused    9 by /dev/full: 9 that could not be written"), "{said}");
    assert!(std::fs::metadata(folder.path().join("well.pcap")).expect("there").len() > 9 * 56);
}

/// A stage that brings along what a later one wants holds what it held all the same.
#[test]
fn a_replacement_may_want_more_of_the_same_packets() {
    let mut run = Run::start(&["-e", "packets | each vlan.tag", "--allow-write", "."]);
    run.send(2);
    run.ctl(&["replace", "e", "-e", "packets | each vlan.tag | forward \"x.pcap\""]);
    run.ctl(&["add", "--name", "top", "-e", "packets | top 2 by len | project number"]);
    run.send(2);
    let more = "packets | top 2 by len | where ip.src == 10.0.0.2 | project number, ip.src";
    run.ctl(&["replace", "top", "-e", more]);
    run.send(4);
    let (status, rows, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    // The rows of a stage that was not kept came out when it went: packets 3 and 4.
    let numbers: Vec<u64> = rows.iter().filter_map(|r| r["number"].as_u64()).collect();
    assert_eq!(numbers[..2], [3, 4], "{rows:?}");
}

#[test]
fn a_failed_program_is_not_forgotten_and_may_be_mended() {
    let numbers = "packets | project number";
    let mut run =
        Run::start_in(full_disk("f", numbers), &["f.weir", "--out-dir", "out", "-o", "csv"]);
    run.send(5);
    until("it fails", || run.list()[0].state != "runs");
    run.ctl(&["replace", "f", "-e", numbers]);
    assert_eq!(run.list()[0].state, "runs");
    run.send(3);
    run.ctl(&["remove", "f"]);
    let file = run.path("out/f-2.csv");
    until("it is written", || std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty()));
    let written = std::fs::read_to_string(&file).expect("there");
    assert_eq!(written, "number\n6\n7\n8\n");
    let (status, _, said) = run.end();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("rows       3\nunwritten  5 "), "{said}");
}

#[test]
fn files_of_rows_are_emptied_by_no_program_that_comes_later() {
    let mut run = Run::start(&["--out-dir", "out", "-w", "all.pcap"]);
    std::fs::create_dir_all(run.path("out")).expect("a folder");
    std::fs::write(run.path("out/x.jsonl"), "of yesterday").expect("writes");
    std::os::unix::fs::symlink("../elsewhere", run.path("out/x-2.jsonl")).expect("links");
    let wrong = "packets | mirror \"/nosuch/y.pcap\" | project number";
    run.refused(&["add", "--name", "x", "-e", wrong]);
    run.ctl(&["add", "--name", "x", "-e", COUNT]);
    let read = |name: &str| std::fs::read_to_string(run.path(name)).expect("there");
    assert_eq!((read("out/x.jsonl"), read("out/x-3.jsonl")), ("of yesterday".into(), "".into()));
    assert!(!run.path("elsewhere").exists());
    // The same capture again, which goes on.
    for n in [3, 4] {
        run.ctl(&["add", "--name", "p", "-e", "packets | pass"]);
        run.send(n);
        run.ctl(&["remove", "p"]);
    }
    let folder = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    let capture = std::fs::read(folder.path().join("all.pcap")).expect("there");
    assert_eq!((capture.len() - 24) % 7, 0, "seven packets");
    assert!(capture.len() > 7 * 56, "{}", capture.len());
    assert!(said.contains("passed     7 packets"), "{said}");
}

/// Each file below a folder, and what it holds or where it leads.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("there").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("has one"));
        if kind.is_dir() {
            all.extend(tree(&path));
        }
        let holds = match kind.is_file() {
            true => std::fs::read(&path).expect("reads"),
            false => format!("{kind:?} {:?}", std::fs::read_link(&path).ok()).into_bytes(),
        };
        all.push((path.display().to_string(), holds));
    }
    all.sort();
    all
}

/// A folder with one for new files in it, and all that a client could want to lead the run by.
fn baited() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    for name in ["given", "given/deep", "other", "out"] {
        std::fs::create_dir(place(name)).expect("makes");
    }
    for name in ["precious", "other/precious", "given/old.pcap", "out/p.jsonl"] {
        std::fs::write(place(name), "of yesterday").expect("writes");
    }
    let links = [
        ("../precious", "given/link.pcap"),
        ("../other/new.pcap", "given/dangling.pcap"),
        ("../other", "given/way"),
        ("/dev/null", "given/null.pcap"),
        ("given", "alias"),
    ];
    for (to, at) in links {
        std::os::unix::fs::symlink(to, place(at)).expect("links");
    }
    std::fs::hard_link(place("precious"), place("given/hard.pcap")).expect("links");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, place("given/pipe.pcap"), mode).expect("makes");
    folder
}

/// A client wrote over any file below the folder that the run was started in, with bytes that the
/// sender of a packet had chosen: names were taken as those of the first programs, and the tests
/// only knew clients that mean well.
#[test]
fn a_client_makes_new_files_in_the_folders_that_were_given_and_changes_none() {
    for sandbox in [&[][..], &["--no-sandbox"]] {
        let args = ["-e", COUNT, "--allow-write", "given", "--out-dir", "out"];
        let mut run = Run::start_in(baited(), &[&args[..], sandbox].concat());
        run.send(1);
        let files = |run: &Run| -> Vec<_> {
            let own = |name: &str| name.contains("/out/e") || name.ends_with("weir.sock");
            tree(run.folder.path()).into_iter().filter(|(name, _)| !own(name)).collect()
        };
        let before = files(&run);
        let absolute = |name: &str| run.path(name).display().to_string();
        let elsewhere = [
            "precious".to_owned(),
            "./x.pcap".to_owned(),
            "x.pcap".to_owned(),
            "other/precious.pcap".to_owned(),
            "given/../x.pcap".to_owned(),
            "given/../given/x.pcap".to_owned(),
            "given/way/x.pcap".to_owned(),
            "given/deep/x.pcap".to_owned(),
            "given/./../other/x.pcap".to_owned(),
            "out/x.pcap".to_owned(),
            "out/p.jsonl".to_owned(),
            absolute("x.pcap"),
            absolute("other/x.pcap"),
            "/dev/null".to_owned(),
            "/dev/full".to_owned(),
            "/proc/self/mem".to_owned(),
            "/dev/fd/1".to_owned(),
            "/tmp/weir-x.pcap".to_owned(),
            "-".to_owned(),
            format!("other/{}.pcap", "n".repeat(4096)),
        ];
        let ends = ["forward", "mirror", "broadcast to", "steer by flow to"];
        let query = |name: &str, end: &str| match end.ends_with("to") {
            true => format!("packets | {end} ({name:?}, \"given/{}.pcap\")", name.len()),
            false => format!("packets | {end} {name:?}"),
        };
        for (name, end) in elsewhere.iter().zip(ends.iter().cycle()) {
            let said = run.refused(&["add", "--name", "p", "-e", &query(name, end)]);
            // A name without an ending or a slash is that of an interface.
            let option = if name == "precious" { "--allow-send precious" } else { "--allow-write" };
            assert!(said.contains(option), "{name}: {said}");
        }
        for name in ["old", "link", "dangling", "null", "hard", "pipe"] {
            for folder in ["given", "alias", "./given", &absolute("given")] {
                let to = format!("packets | mirror \"{folder}/{name}.pcap\" | project number");
                let said = run.refused(&["add", "--name", "p", "-e", &to]);
                let other = folder == "alias" && said.contains("make files only in");
                assert!(other || said.contains("exists already"), "{folder}/{name}: {said}");
            }
        }
        let long = format!("packets | forward \"given/{}.pcap\"", "n".repeat(4096));
        let said = run.refused(&["add", "--name", "p", "-e", &long]);
        assert!(said.contains("File name too long"), "{said}");
        assert_eq!(before, files(&run));
        run.ctl(&[
            "add",
            "--name",
            "p",
            "-e",
            "packets | mirror \"given/new.pcap\" | project number",
        ]);
        run.send(2);
        let folder = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
        let (status, _, said) = run.end();
        assert_eq!(status, Some(0), "{said}");
        let now = tree(folder.path());
        assert!(before.iter().all(|file| now.contains(file)), "{now:?}");
        for new in ["given/new.pcap", "out/p-2.jsonl"] {
            assert!(std::fs::metadata(folder.path().join(new)).is_ok_and(|m| m.len() > 0), "{new}");
        }
    }
}

/// The folder is another one by its name from one moment to the next.
#[test]
fn a_folder_that_is_swapped_gets_no_file() {
    for sandbox in [&[][..], &["--no-sandbox"]] {
        let folder = baited();
        let place = |name: &str| folder.path().join(name);
        let given = place("given").display().to_string();
        let mut run = Run::start(&[&["--allow-write", &given][..], sandbox].concat());
        run.send(1);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(place("given"), place("away")).expect("moves");
                    std::os::unix::fs::symlink("other", place("given")).expect("links");
                    std::fs::remove_file(place("given")).expect("is a link");
                    std::fs::rename(place("away"), place("given")).expect("moves");
                }
            });
            for n in 0..30 {
                let to = format!("packets | forward \"{given}/{n}.pcap\"");
                run.ctl(&["add", "--name", &format!("p{n}"), "-e", &to]);
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let (status, _, said) = run.end();
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(std::fs::read_dir(place("other")).expect("there").count(), 1, "{said}");
        assert!(place("given/29.pcap").exists());
    }
}

/// Interfaces, devices and other hosts get packets of programs that come later where the run was
/// told so at its start, and opened them.
#[test]
fn a_client_sends_packets_where_the_run_was_told_to() {
    let there = std::net::UdpSocket::bind("127.0.0.1:0").expect("binds");
    there.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    let to = format!("udp://{}", there.local_addr().expect("bound"));
    let mut run = Run::start(&["-e", COUNT, "--allow-send", &to]);
    for other in [
        "lo",
        "xdp:lo",
        "tap:weir0",
        "tun:weir0",
        "udp://127.0.0.1:9",
        "udp://localhost:9",
        "vxlan://127.0.0.1?vni=7",
        "gre://127.0.0.1",
        "erspan://127.0.0.1?session=7",
        "dpdk:net_null0",
        "host:",
    ] {
        let said =
            run.refused(&["add", "--name", "p", "-e", &format!("packets | forward {other:?}")]);
        assert!(said.contains(&format!("--allow-send {other}")), "{other}: {said}");
    }
    for name in ["one", "two"] {
        run.ctl(&["add", "--name", name, "-e", &format!("packets | forward {to:?}")]);
        run.send(1);
        let mut frame = [0; 2000];
        assert!(there.recv(&mut frame).expect("comes") > 20);
        run.ctl(&["remove", name]);
    }
    let (status, _, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(&format!("2 packets to {to}")), "{said}");
}

#[test]
fn what_is_for_later_programs_is_checked_at_the_start() {
    let check = |args: &[&str], status: i32, part: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let first = ["run", "-e", COUNT, "-r", "fixtures/dns.pcap"];
        let output = command.current_dir(common::root()).args(first).args(args).output();
        let output = output.expect("the binary runs");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(part), "{args:?}: {said}");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let control = format!("--control={}", folder.path().join("s").display());
    std::os::unix::fs::symlink("/", folder.path().join("root")).expect("links");
    let root = folder.path().join("root").display().to_string();
    for root in ["/", "/usr/..", &root] {
        let whole = "this is the whole file system; name a folder for new files";
        check(&[&control, "--allow-write", root], 1, whole);
        check(&[&control, "--out-dir", root], 1, whole);
        check(&[&control, "--ring", "1m", "--capture-dir", root], 1, whole);
    }
    check(
        &[&control, "--allow-write", "/no/such/folder"],
        1,
        "--allow-write /no/such/folder: No such",
    );
    check(&[&control, "--allow-write", "README.md"], 1, "Not a directory");
    check(&[&control, "--allow-send", "x.pcap"], 2, "let programs make files by --allow-write");
    check(&[&control, "--allow-send", "-"], 2, "let programs make files by --allow-write");
    check(&[&control, "--allow-send", "udp://x"], 2, "--allow-send udp://x");
    check(&[&control, "--allow-send", "nosuch0"], 1, "nosuch0");
    let alone = "is for programs that come later: add --control or --http";
    check(&["--allow-write", "."], 2, &format!("--allow-write . {alone}"));
    check(&["--allow-send", "lo"], 2, &format!("--allow-send lo {alone}"));
}

/// Packets around rows of later programs need a folder that the run was told.
#[test]
fn files_of_captures_need_a_folder() {
    let around = "packets | project ts, ip.src | capture 1s by ip.src";
    let mut run = Run::start(&["-e", around]);
    run.send(1);
    let said = run.refused(&["add", "--name", "x", "-e", around]);
    assert!(said.contains("--capture-dir FOLDER"), "{said}");
    assert_eq!(run.end().0, Some(0));
    let mut run = Run::start(&["--ring", "1m", "--capture-dir", "around"]);
    run.ctl(&["add", "--name", "x", "-e", around]);
    run.send(1);
    let folder = std::mem::replace(&mut run.folder, tempfile::tempdir().expect("a folder"));
    assert_eq!(run.end().0, Some(0));
    assert_eq!(std::fs::read_dir(folder.path().join("around")).expect("is made").count(), 1);
}

#[test]
fn without_a_run_it_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("none.sock");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["ctl", "list", "-S", socket.to_str().expect("plain")])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("no run listens there") && said.contains("weir run --control="),
        "{said}"
    );
}

/// Connects to a run, and says no more than this.
fn client(run: &Run, words: &[u8]) -> UnixStream {
    let mut client = UnixStream::connect(run.path("weir.sock")).expect("it listens");
    client.write_all(words).expect("there is room");
    client
}

/// The answer to a client, once it comes.
fn answer(mut client: &UnixStream) -> String {
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    let mut said = String::new();
    // A question that it did not read to its end resets the connection, after the answer.
    let _ = client.read_to_string(&mut said);
    said
}

/// One client that connected and said nothing was waited for, and all others with it, each for five
/// seconds; a thousand kept everybody out. The tests asked one question after the other.
#[test]
fn an_idle_client_kept_all_others_waiting() {
    let run = Run::start(&["-e", "packets | summarize n = count()"]);
    let most = getrlimit(Resource::Nofile).maximum;
    let current = Some(most.map_or(4096, |most| most.min(4096)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: most }).expect("within what may be");
    let idle: Vec<UnixStream> = (0..1000).map(|_| client(&run, b"")).collect();
    // One after the other they would take longer than an hour, and `weir ctl` waits a minute.
    for _ in 0..20 {
        assert_eq!(run.list().len(), 1);
    }
    // The clients that made room were told so, the others that their time is over.
    let (first, last) = (answer(&idle[0]), answer(&idle[999]));
    assert!(first.contains("busy: 64 others ask at the same time"), "{first}");
    let late = ["busy: ", "no whole question came within 5 s"];
    assert!(late.iter().any(|reason| last.contains(reason)), "{last}");
    assert_eq!(run.list().len(), 1);
    let (status, ..) = run.end();
    assert_eq!(status, Some(0));
}

/// Whatever clients do, others are answered meanwhile.
#[test]
fn clients_that_misbehave_keep_nobody_from_being_answered() {
    let run = Run::start(&["-e", "packets | summarize n = count()"]);
    // Half a question, and gone.
    (0..200).for_each(|_| drop(client(&run, b"{\"command\":\"li")));
    // A question, and gone before the answer.
    (0..200).for_each(|_| drop(client(&run, b"{\"command\":\"stats\"}\n")));
    until("others are answered", || run.list().len() == 1);
    // A question without end.
    let mut endless = client(&run, b"{\"command\":\"");
    let wrote = (0..1024).try_for_each(|_| endless.write_all(&[b'x'; 1 << 20]));
    assert!(wrote.is_err(), "a GiB was taken");
    assert!(answer(&endless).contains("no question"), "it is told");
    // A letter now and then, by more than there may be, and answers that nobody reads.
    let slow: Vec<UnixStream> = (0..100).map(|_| client(&run, b"{")).collect();
    let deaf: Vec<UnixStream> =
        (0..100).map(|_| client(&run, b"{\"command\":\"stats\"}\n")).collect();
    for mut client in &slow {
        // It may have had to make room.
        let _ = client.write_all(b"\"");
    }
    until("others are answered", || run.list().len() == 1);
    for answer in deaf.iter().map(answer) {
        assert!(answer.contains("counts") || answer.contains("busy: "), "{answer}");
    }
    // A file that is said to come, and does not.
    let add = "{\"command\":\"add\",\"name\":\"x\",\"source\":\"x\",\"text\":\"packets\",\
               \"params\":[],\"files\":[{\"path\":\"x\",\"len\":500000000}]}\n";
    let _waits: Vec<UnixStream> = (0..100).map(|_| client(&run, add.as_bytes())).collect();
    run.ctl(&["add", "-e", "packets | summarize n = count() by ip.src", "--name", "other"]);
    assert_eq!(run.list().len(), 2);
    let (status, ..) = run.end();
    assert_eq!(status, Some(0));
}

/// An alert that was suppressed when it began comes out with the row after that, with its true
/// beginning.
#[test]
fn alerts_are_suppressed_and_reported_again() {
    let query = "packets | summarize n = count() by ip.src every 1s | alert \"{n}\" hold 1h";
    let mut run = Run::start(&["-e", query]);
    let line = "e ip.src=10.0.0.0/31";
    assert_eq!(run.ctl(&["suppress", line]), format!("suppressed {line}\n"));
    run.send(40);
    assert_eq!(run.counts()["suppressed"], 2);
    let listed = run.ask(&["suppressions", "-o", "json"]);
    assert_eq!(
        row(text(&listed.stdout)),
        row(&format!(r#"{{"suppression":"{line}","from":"ctl"}}"#))
    );
    assert!(run.refused(&["unsuppress", "e ip.src=10.0.0.0/30"]).contains("no line of the list"));
    assert!(run.refused(&["suppress", "e ip.src"]).contains("neither COLUMN=VALUE nor"));
    assert_eq!(run.ctl(&["unsuppress", line]), "removed 1 line\n");
    run.send(30);
    std::fs::write(run.path("list"), "# all\n*\n").expect("writes");
    assert_eq!(run.ctl(&["reload-suppressions", "list"]), "1 line instead of 0\n");
    run.send(30);
    let (status, rows, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    let told = |row: &Value| {
        let cell = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        (cell("alert.state"), cell("ip.src"), row["alert.rows"].as_i64().expect("an int") > 1)
    };
    let starts: Vec<_> = rows.iter().map(told).filter(|(state, ..)| state == "start").collect();
    let start = |host: &str, lasted| ("start".to_owned(), host.to_owned(), lasted);
    let expected = [start("10.0.0.2", false), start("10.0.0.0", true), start("10.0.0.1", true)];
    assert_eq!(starts, expected);
    // Alerts that came out have an end, and both rows of each have the same beginning.
    assert_eq!(rows.len(), 6);
    for host in ["10.0.0.0", "10.0.0.1", "10.0.0.2"] {
        let of_host: Vec<&Value> = rows.iter().filter(|row| row["ip.src"] == host).collect();
        assert_eq!(of_host.len(), 2, "{rows:?}");
        assert_eq!(of_host[0]["alert.first"], of_host[1]["alert.first"]);
    }
}
