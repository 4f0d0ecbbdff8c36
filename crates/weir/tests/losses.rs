//! Several captures, in whichever order they are given, and losses: never in silence.

use std::process::{Command, Output, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

const SECOND: i64 = 1_000_000_000;

fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    ended(weir(args).output().expect("the binary runs"))
}

fn ended(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A capture of `n` packets, one a second from second `from` on, each from another address.
fn capture(from: i64, n: u8) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for i in 0..n {
        let frame = Frame::ethernet().ipv4([10, 0, 0, i], [10, 9, 9, 9]).udp(1, 2).bytes();
        let ts = (1_700_000_000 + from + i64::from(i)) * SECOND;
        header.put_record(&mut out, ts, frame.len() as u32, &frame);
    }
    out
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path(name), bytes).expect("writes");
        self.path(name)
    }
}

const EVERY: &str = "packets | summarize n = count() every 10s";

/// It answered for the packets of the first file only, printed nothing, and ended with 0.
#[test]
fn a_newer_capture_named_first_made_all_of_the_older_one_late_in_silence() {
    let folder = Folder::new();
    let (newer, older) =
        (folder.file("newer", &capture(1000, 30)), folder.file("older", &capture(0, 200)));
    let sum = |rows: &str| -> u64 {
        rows.lines()
            .skip(1)
            .map(|row| row.rsplit(',').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    let both =
        ["run", "-e", EVERY, "-r", &newer, "-r", &older, "-o", "csv", "--fail-on-loss", "-q"];
    for workers in ["1", "2", "4"] {
        let more = [&both[..], &["-j", workers]].concat();
        let (status, rows, said) = run(&more);
        assert_eq!((status, sum(&rows), &said[..]), (Some(0), 230, ""), "{workers} workers");
        let (status, rows, said) = run(&[&more[..], &["--append"]].concat());
        assert_eq!((status, sum(&rows)), (Some(1), 30), "{workers} workers");
        assert!(said.starts_with("late       200 after"), "{said}");
        assert!(said.contains("packets, rows or alerts were lost (--fail-on-loss)"), "{said}");
    }
    // Without --fail-on-loss the loss is told all the same.
    let quiet = ["run", "-e", EVERY, "-r", &newer, "-r", &older, "--append", "-q"];
    let (status, _, said) = run(&quiet);
    assert_eq!((status, said.lines().count()), (Some(0), 1), "{said}");
}

#[test]
fn evicted_rows_were_no_loss_to_fail_for() {
    let folder = Folder::new();
    let x = folder.file("x", &capture(0, 50));
    let query = "packets | summarize n = count() by ip.src max 8";
    let (status, rows, said) =
        run(&["run", "-e", query, "-r", &x, "-o", "csv", "-q", "--fail-on-loss"]);
    assert_eq!((status, rows.lines().count()), (Some(1), 1 + 8), "{said}");
    assert!(said.starts_with("evicted    42 for want of room"), "{said}");
    let (status, _, said) = run(&["run", "-e", query, "-r", &x, "-o", "csv"]);
    assert_eq!(status, Some(0));
    assert!(said.contains("evicted    42 for want of room"), "{said}");
}

#[test]
fn captures_are_numbered_through_in_the_order_of_time() {
    let folder = Folder::new();
    let (x, y) = (folder.file("x", &capture(5, 4)), folder.file("y", &capture(0, 3)));
    let query = "packets | project number, ts";
    let lines = |args: &[&str]| {
        let (status, rows, said) = run(&[&["run", "-e", query, "-o", "csv"][..], args].concat());
        assert_eq!(status, Some(0), "{said}");
        let rows: Vec<String> = rows.lines().skip(1).map(str::to_owned).collect();
        (rows, said)
    };
    let (merged, said) = lines(&["-r", &x, "-r", &y]);
    assert!(said.contains("received   7 packets"), "{said}");
    let (in_order, _) = lines(&["-r", &y, "-r", &x]);
    assert_eq!(merged, in_order);
    let (appended, _) = lines(&["-r", &y, "-r", &x, "--append"]);
    assert_eq!(merged, appended, "rotated files that are given in order");
    let (first, said) = lines(&["-r", &x, "-r", &y, "-c", "5"]);
    assert_eq!(first, merged[..5]);
    assert!(said.contains("received   5 packets"), "{said}");
}

#[test]
fn standard_input_and_a_pipe_are_merged_with_a_file() {
    let folder = Folder::new();
    let (x, fifo) = (folder.file("x", &capture(1, 3)), folder.path("fifo"));
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    let args = ["run", "-e", "packets | project ts", "-o", "csv", "--time", "epoch"];
    let args = [&args[..], &["-r", &x, "-r", "-", "-r", &fifo]].concat();
    let mut child = weir(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, &capture(0, 2)).expect("writes");
    drop(stdin);
    std::fs::write(&fifo, capture(2, 4)).expect("writes");
    let (status, rows, said) = ended(child.wait_with_output().expect("ends"));
    assert_eq!(status, Some(0), "{said}");
    let seconds: Vec<i64> =
        rows.lines().skip(1).map(|t| t[..10].parse::<i64>().unwrap() - 1_700_000_000).collect();
    assert_eq!(seconds, [0, 1, 1, 2, 2, 3, 3, 4, 5]);
}

#[test]
fn a_capture_that_breaks_off_is_named_after_all_others_were_read() {
    let folder = Folder::new();
    let whole = capture(0, 5);
    let torn = folder.file("torn", &whole[..whole.len() - 3]);
    let x = folder.file("x", &whole);
    let (status, rows, said) = run(&["run", "-e", EVERY, "-r", &torn, "-r", &x, "-o", "csv"]);
    assert_eq!(status, Some(1));
    assert!(rows.ends_with(",9\n"), "{rows}");
    assert!(said.contains("torn: the capture breaks off"), "{said}");
    assert!(said.contains("after 4 whole records"), "{said}");
}

#[test]
fn append_is_of_files() {
    let (status, _, said) = run(&["run", "-e", EVERY, "-i", "lo", "--append"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("--append"), "{said}");
}

#[test]
fn a_small_memory_refuses_keys_and_counts_them() {
    let folder = Folder::new();
    let x = folder.file("x", &capture(0, 250));
    let stages = [
        "summarize n = count() by ip.src",
        "scan n = 0 by ip.src => n + 1 | summarize all = count() by number",
        "distinct ip.src",
        "summarize n = count() by ip.src session 3000s",
        "project ts, ip.src, len | top 1 by len per ip.src",
    ];
    for stage in stages {
        for workers in ["1", "2", "4"] {
            let query = format!("packets | {stage}");
            let args = ["run", "-e", &query, "-r", &x, "-o", "csv", "-j", workers];
            let args = [&args[..], &["-q", "--fail-on-loss"]].concat();
            let (status, all, said) = run(&args);
            assert_eq!((status, &said[..]), (Some(0), ""), "{stage}");
            let (status, same, said) = run(&[&args[..], &["--memory", "64m"]].concat());
            assert_eq!((status, &said[..], &same), (Some(0), "", &all), "{stage}: it fits");
            let (status, _, said) = run(&[&args[..], &["--memory", "2k"]].concat());
            assert_eq!(status, Some(1), "{stage} by {workers}: {said}");
            assert!(said.starts_with("evicted "), "{stage} by {workers}: {said}");
        }
    }
}

#[test]
fn what_a_query_names_counts_whatever_the_memory() {
    let folder = Folder::new();
    let x = folder.file("x", &capture(0, 250));
    let query = "packets | summarize n = count() by ip.src max 1000";
    let (status, rows, said) =
        run(&["run", "-e", query, "-r", &x, "-o", "csv", "-q", "--memory", "1k"]);
    assert_eq!((status, rows.lines().count(), &said[..]), (Some(0), 251, ""));
}

#[test]
fn the_memory_that_stages_share_is_told() {
    let folder = Folder::new();
    let x = folder.file("x", &capture(0, 5));
    let query = "let talkers = packets | summarize n = count() by ip.src\ntalkers | top 3 by n";
    let (_, _, said) = run(&["run", "-e", query, "-r", &x, "-v", "--memory", "1m"]);
    let line = said.lines().find(|line| line.starts_with("memory ")).expect("it is told");
    assert_eq!(line, "memory     1 MiB, shared by all stages without `max` (--memory)");
    let x = folder.file("x", &capture(0, 250));
    let (_, _, said) = run(&["run", "-e", query, "-r", &x, "--memory", "1k"]);
    assert!(said.contains(" of talkers); `max` in the query, or --memory"), "{said}");
    for wrong in ["0%", "101%", "much"] {
        let (status, _, said) = run(&["run", "-e", query, "-r", &x, "--memory", wrong]);
        assert_eq!(status, Some(2), "{said}");
    }
}
