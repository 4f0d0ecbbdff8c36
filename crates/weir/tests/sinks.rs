//! The fate of rows and packets where signals end a run, readers stand still or go away, and
//! disks are full: each is written or counted, and what is written is whole.

mod common;
#[path = "common/signal.rs"]
mod signal;

use common::skip;
use rustix::event::{PollFd, PollFlags, poll};
use signal::signal;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use weir_packet::craft::Frame;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::source::{FrameBatch, LinkType};

const EACH: &str = "packets | project number, len, ip.src, ip.dst";

/// A capture of so many packets.
fn capture(n: u32) -> Vec<u8> {
    let header = FileHeader {
        order: ByteOrder::Little,
        nanos: true,
        modified: false,
        version: (2, 4),
        snaplen: 0,
        link: LinkType::ETHERNET,
    };
    let mut bytes = header.to_bytes().to_vec();
    for i in 0..n {
        let [_, b, c, d] = i.to_be_bytes();
        let frame = Frame::ethernet().ipv4([10, b, c, d], [192, 0, 2, 1]).udp(9, 9).bytes();
        header.put_record(&mut bytes, i64::from(i) * 1_000_000, frame.len() as u32, &frame);
    }
    bytes
}

/// A folder with a capture of so many packets.
fn folder(n: u32) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    fs::write(&path, capture(n)).expect("writes");
    let path = path.to_str().expect("a plain path").to_owned();
    (folder, path)
}

fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The number in the line of the ledger that begins so; 0 where there is none.
fn count(said: &str, line: &str) -> u64 {
    let mut lines = said.lines().map(|said| said.split_whitespace());
    let found = lines.find_map(|mut words| (words.next() == Some(line)).then(|| words.next()));
    let number = |n: &str| n.trim_end_matches(':').parse().ok();
    found.flatten().map_or(0, |n| number(n).unwrap_or_else(|| panic!("{line}: {said}")))
}

/// Whole rows, which begin with a number or, as JSON, with a brace: headers don't.
fn rows_of(text: &str) -> u64 {
    let row = |line: &&str| {
        let start = line.trim_start_matches(['|', ' ']).chars().next();
        line.ends_with('\n') && start.is_some_and(|c| c == '{' || c.is_ascii_digit())
    };
    text.split_inclusive('\n').filter(row).count() as u64
}

/// The packets of a capture; panics where it is torn.
fn packets(path: &Path) -> u64 {
    let name = path.to_str().expect("a plain path");
    let mut source = weir_capture::open(name, &weir_capture::Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let (mut batch, mut n) = (FrameBatch::new(), 0);
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        n += batch.len() as u64;
    }
    n
}

/// Waits until the pipe that a process writes to has no room: it waits from then on. How many bytes
/// that takes depends on the sizes of its writes, so the other end is asked.
fn until_full(child: &Child) {
    let path = format!("/proc/{}/fd/1", child.id());
    let pipe = File::options().write(true).open(path).expect("its standard output");
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let has_room = || {
        let mut asked = [PollFd::new(&pipe, PollFlags::OUT)];
        poll(&mut asked, Some(&at_once)).expect("a pipe") > 0
    };
    while has_room() {
        std::thread::yield_now();
    }
}

/// A run that reads a capture from a pipe and writes packets to a file; it has read all so far.
fn stream(folder: &Path, starts: &mut Command) -> (Child, std::process::ChildStdin) {
    let query = "packets | mirror \"x.pcap\" | summarize n = count() every 10ms";
    starts.args(["run", "-e", query, "-r", "-"]).current_dir(folder);
    starts.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = starts.spawn().expect("runs");
    let mut wire = child.stdin.take().expect("a pipe");
    wire.write_all(&capture(2000)).and_then(|()| wire.flush()).expect("writes");
    let rows = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    assert!(rows.lines().next().expect("a row").is_ok());
    (child, wire)
}

/// A terminal that goes away ended the process where it stood: no ledger, and a file that broke off
/// within a packet. The tests ended runs by SIGINT only.
#[test]
fn a_hangup_ended_the_run_without_ledger_and_cut_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, wire) = stream(folder.path(), &mut Command::new(env!("CARGO_BIN_EXE_weir")));
    // The shell tells, then the kernel, and systemd might say that it is over, too.
    signal(child.id(), "-HUP");
    signal(child.id(), "-HUP");
    signal(child.id(), "-TERM");
    let output = child.wait_with_output().expect("ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let received = count(said, "received");
    assert_eq!(packets(&folder.path().join("x.pcap")), received, "{said}");
    assert!(said.ends_with("\ninterrupted\n") && received > 0, "{said}");
    drop(wire);
}

/// A user who starts a run by nohup(1) wants it to go on.
#[test]
fn a_hangup_that_is_ignored_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_weir")]);
    let (child, mut wire) = stream(folder.path(), &mut shell);
    signal(child.id(), "-HUP");
    wire.write_all(&capture(1000)[24..]).expect("it still reads");
    drop(wire);
    let output = child.wait_with_output().expect("ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(packets(&folder.path().join("x.pcap")), 3000);
    assert!(!said.contains("interrupted"), "{said}");
}

/// Rows that nobody takes kept Ctrl-C from doing anything, but the second time. The test of a
/// reader that stands still was of rows that are left out, never of those that wait.
#[test]
fn a_stuck_reader_kept_ctrl_c_from_ending_the_run() {
    let (_folder, x) = folder(20_000);
    for more in [&["-o", "json"][..], &["-o", "csv"], &["-o", "table"], &["-j", "2"]] {
        let args = [&["run", "-e", EACH, "-r", &x, "--slow-sink", "wait"], more].concat();
        let mut child = weir(&args).spawn().expect("runs");
        let mut rows = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        rows.read_line(&mut first).expect("a row");
        until_full(&child);
        signal(child.id(), "-INT");
        let output = child.wait_with_output().expect("ends");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{more:?}: {said}");
        assert!(said.contains("error: writing rows: the reader took nothing for 5 s"), "{said}");
        // The rows in the pipe were written, to the last whole one.
        let mut rest = String::new();
        rows.read_to_string(&mut rest).expect("text");
        assert_eq!(count(said, "rows"), rows_of(&(first + &rest)), "{more:?}: {said}");
        assert!(count(said, "unwritten") > 0, "{more:?}: {said}");
    }
}

/// The same of packets.
#[test]
fn a_stuck_reader_of_packets_kept_ctrl_c_from_ending_the_run() {
    let (_folder, x) = folder(20_000);
    let mut child =
        weir(&["run", "-e", "packets | pass", "-r", &x, "-w", "-"]).spawn().expect("runs");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut bytes = vec![0; 24];
    pipe.read_exact(&mut bytes).expect("a header");
    until_full(&child);
    signal(child.id(), "-INT");
    let output = child.wait_with_output().expect("ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: -: the reader took nothing for 5 s"), "{said}");
    pipe.read_to_end(&mut bytes).expect("reads");
    // Each record has 16 bytes and a frame of 42.
    assert_eq!(count(said, "passed"), (bytes.len() as u64 - 24) / 58, "{said}");
    assert!(count(said, "refused") > 0, "{said}");
}

/// Runs Weir in a folder that is a disk of so many KiB, and copies what is there then to `to`;
/// `None` after saying that it could not be done. Standard output goes to `rows` there.
fn on_a_small_disk(test: &str, kib: u32, to: &Path, args: &[&str]) -> Option<Output> {
    let script = "disk=$1 to=$2 weir=$3; shift 3; mount -t tmpfs -o size=$disk none /mnt || exit 99\n\
                  cd /mnt; \"$weir\" \"$@\" >rows; status=$?; cp -r . \"$to\"; exit $status";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", &format!("{kib}k")]).arg(to);
    command.arg(env!("CARGO_BIN_EXE_weir")).args(args);
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output)
            if output.status.code() != Some(99)
                && !text(&output.stderr).starts_with("unshare:") =>
        {
            Some(output)
        }
        _ => {
            skip(test, "no file system can be mounted; run as root");
            None
        }
    }
}

/// Rows that a full disk did not take were in no count, a batch at a time, and those that had
/// gathered counted as written. The test looked at the message only.
#[test]
fn rows_that_a_full_disk_did_not_take_were_in_no_count() {
    let n = 20_000;
    let (_folder, x) = folder(n);
    let all: [&[&str]; 8] = [
        &["-o", "json"],
        &["-o", "csv"],
        &["-o", "tsv"],
        &["-o", "markdown"],
        &["-o", "table"],
        &["-j", "2"],
        &["--slow-sink", "drop", "--sink-queue", "1000"],
        &["--out-dir", "."],
    ];
    for more in all {
        let to = tempfile::tempdir().expect("a folder");
        let args = [&["run", "-e", EACH, "-r", &x], more].concat();
        let test = "rows_that_a_full_disk_did_not_take";
        let Some(output) = on_a_small_disk(test, 400, to.path(), &args) else { return };
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{more:?}: {said}");
        assert!(said.contains("error: writing rows: No space left"), "{more:?}: {said}");
        let file = if more.contains(&"--out-dir") { "e.jsonl" } else { "rows" };
        let rows = fs::read_to_string(to.path().join(file)).expect("text");
        let whole = rows_of(&rows);
        assert_eq!(count(said, "rows"), whole, "{more:?}: {said}");
        // No window is open when it ends: each packet that was processed has a row.
        let counted = count(said, "rows") + count(said, "unwritten") + count(said, "refused");
        assert_eq!(counted, count(said, "processed"), "{more:?}: {said}");
        assert!(count(said, "unwritten") > 0 && whole > 1000, "{more:?}: {said}");
    }
}

/// The ledger said of more packets that they had been written than the file had, which ended within
/// one.
#[test]
fn packets_that_a_full_disk_did_not_take_counted_as_passed() {
    let (_folder, x) = folder(20_000);
    for (name, more) in [("x.pcap", &[][..]), ("x.pcapng", &[]), ("x.pcap", &["-U", "-j", "2"])] {
        let to = tempfile::tempdir().expect("a folder");
        let args = [&["run", "-e", "packets | pass", "-r", &x, "-w", name], more].concat();
        let test = "packets_that_a_full_disk_did_not_take";
        let Some(output) = on_a_small_disk(test, 400, to.path(), &args) else { return };
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(&format!("error: {name}: No space left")), "{name}: {said}");
        assert_eq!(count(said, "passed"), packets(&to.path().join(name)), "{name}: {said}");
        let counted = count(said, "passed") + count(said, "refused");
        assert_eq!(counted, count(said, "processed"), "{name}: {said}");
        assert!(said.contains("that could not be written"), "{name}: {said}");
    }
}

/// A device that is always full takes nothing.
#[test]
fn rows_of_which_none_was_written_are_counted() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let (_folder, x) = folder(5);
    let output = weir(&["run", "-e", EACH, "-r", &x]).stdout(full).output().expect("runs");
    let said = text(&output.stderr);
    assert_eq!((count(said, "rows"), count(said, "unwritten")), (0, 5), "{said}");
}
