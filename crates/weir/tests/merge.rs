//! Several probes and one result, by the commands that users have: `weir run --publish` on each
//! probe, and `weir merge`.

#[path = "merge/apart.rs"]
mod apart;
mod common;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "merge/skew.rs"]
mod skew;
#[path = "merge/warnings.rs"]
mod warnings;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use assert_cmd::cargo::CommandCargoExt as _;
use common::{files, is_of_records, map_at_once, root};
use over_wires::{LONG, Run, signal, until_confined};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use weir_engine::exchange::needs;
use weir_engine::functions::Functions;
use weir_packet::craft::Frame;
use weir_plan::physical::Physical;
use wires::{Sender, namespace, veth};

fn weir(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("weir").expect("the binary");
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    weir(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The output of a command that succeeds.
fn rows(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Fails with this status and a message that contains this.
fn fails(args: &[&str], status: i32, why: &str) {
    let output = run(args);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {errors}");
    assert!(errors.contains(why), "{args:?}: {errors}");
}

/// The bytes of a stream in whose head a text is another one.
fn edit_head(mut bytes: Vec<u8>, text: &str, other: &str) -> Vec<u8> {
    let at = bytes.windows(text.len()).position(|bytes| bytes == text.as_bytes());
    let at = at.expect("its head says that");
    bytes.splice(at..at + text.len(), other.bytes());
    let longer = other.len() as i64 - text.len() as i64;
    let len = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    let len = u32::try_from(i64::from(len) + longer).expect("a length");
    bytes[4..8].copy_from_slice(&len.to_le_bytes());
    bytes
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    fn fifo(&self, name: &str) -> String {
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        path
    }
}

fn fixture(name: &str) -> String {
    root().join("fixtures").join(name).to_str().expect("a plain path").to_owned()
}

/// The queries of the library that several machines can run: the path and the plan.
fn spread() -> Vec<(PathBuf, Physical)> {
    let functions = Functions::default();
    let all = files("queries", &[".weir"]).into_iter().filter(|path| !is_of_records(path));
    let plan = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a query");
        let plan = Physical::new(&common::program(&text, &functions), &[]);
        needs(&plan).is_ok().then_some((path, plan))
    };
    all.filter_map(plan).collect()
}

/// Two shares of packets, by a sum of bytes of their headers that has nothing to do with any key.
const SHARES: [&str; 2] = [
    "(ip[5] + ip[11] + ip[15] + ip[19]) & 1 == 0",
    "not ((ip[5] + ip[11] + ip[15] + ip[19]) & 1 == 0)",
];

/// Publishes what a probe sees of a capture; how many packets that are.
fn publish(query: &str, capture: &str, file: &str, share: &str) -> u64 {
    let args = ["run", query, "-r", capture, "--publish", file, "--probe", file, "--", share];
    let output = run(&args);
    let told = text(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{args:?}: {told}");
    let processed = told.lines().find_map(|line| line.strip_prefix("processed"));
    let number = processed
        .and_then(|rest| rest.split_whitespace().next()?.trim_end_matches(':').parse().ok());
    number.unwrap_or_else(|| panic!("no count of packets: {told}"))
}

#[test]
fn queries_of_the_library_give_the_rows_of_one_run() {
    let merges = |plan: &Physical| matches!(needs(plan), Ok(weir_plan::physical::Needs::Nothing));
    let all: Vec<_> = spread().into_iter().filter(|(_, plan)| merges(plan)).collect();
    let counts = map_at_once(&all, |(path, _)| {
        let (folder, mut compared, mut split) = (Folder::new(), 0, 0);
        let [a, b, c] = ["a.wps", "b.wps", "c.wps"].map(|name| folder.path(name));
        let query = path.to_str().expect("a plain path");
        // The captures that its header names: what triggers it, what must not, vectors.
        let text = fs::read_to_string(path).expect("a query");
        let header = text.lines().take_while(|line| line.starts_with('#'));
        let words = header.flat_map(str::split_whitespace);
        let named = words.filter(|word| word.starts_with("fixtures/") && word.contains(".pcap"));
        let own: Vec<String> =
            named.filter_map(|word| word.strip_prefix("fixtures/").map(fixture)).collect();
        let usual = ["mixed.pcap", "web.pcap", "dns.pcap", "syn_flood.pcap", "sessions.pcap"];
        for capture in &usual.map(fixture).into_iter().chain(own).collect::<Vec<_>>() {
            let seen = [(&a, SHARES[0]), (&b, SHARES[1])];
            let seen = seen.map(|(file, share)| publish(query, capture, file, share));
            split += usize::from(seen.iter().all(|packets| *packets > 4));
            let whole = publish(query, capture, &c, "len >= 0");
            assert_eq!(seen[0] + seen[1], whole, "{query}, {capture}");
            let one = rows(&["run", query, "-r", capture, "-o", "json", "-q"]);
            let merged = rows(&["merge", query, "--from", &a, "--from", &b, "-o", "json", "-q"]);
            assert_eq!(merged, one, "{query}, {capture}");
            let swapped = rows(&["merge", query, "--from", &b, "--from", &a, "-o", "json", "-q"]);
            assert_eq!(swapped, one, "{query}, {capture}");
            // Merges stand one above the other.
            let site = ["--from", &b, "--publish", &c, "--probe", "site"];
            assert_eq!(rows(&[&["merge", "-q", query][..], &site].concat()), "");
            let above = rows(&["merge", query, "--from", &a, "--from", &c, "-o", "json", "-q"]);
            assert_eq!(above, one, "{query}, {capture}");
            compared += one.lines().count();
        }
        (compared, split)
    });
    let (compared, split) = counts.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(compared > 1000 && split > 150, "{compared} rows, {split} captures in two shares");
}

#[test]
fn a_merge_that_passes_on_says_what_it_cannot() {
    let folder = Folder::new();
    let [a, b, site] = ["a.wps", "b.wps", "site.wps"].map(|name| folder.path(name));
    let capture = &fixture("syn_flood.pcap");
    for (file, share) in [(&a, SHARES[0]), (&b, SHARES[1])] {
        publish("connections", capture, file, share);
    }
    let from = ["merge", "connections", "--from", &a, "--from", &b, "--publish"];
    fails(&[&from[..], &[&a]].concat(), 2, "that is read (--from)");
    fails(&[&from[..], &[&site, "-o", "csv"]].concat(), 2, "cannot be used with");
    fails(&[&from[..], &[&site, "--probe", "a\u{7}"]].concat(), 2, "--probe: the name of a probe");
    fails(&[&from[..], &[&site, "--kafka-partition", "1"]].concat(), 2, "are for kafka://");
    fails(&[&from[..], &["/dev/full"]].concat(), 1, "/dev/full: partial results");
    // Its name says where it stands; its ledger is that of its probes.
    let output = run(&[&from[..], &[&site]].concat());
    assert!(text(&output.stderr).starts_with("received"), "{}", text(&output.stderr));
    let output = run(&["merge", "connections", "--from", &site, "-v", "-o", "json"]);
    let told = text(&output.stderr);
    assert!(told.contains(":a.wps+b.wps (") && told.contains("processed"), "{told}");
    // A stream that breaks off below is told below, and lowers completeness above.
    let whole = fs::read(&b).expect("a stream");
    fs::write(&b, &whole[..whole.len() / 2]).expect("a file");
    fails(&[&from[..], &[&site]].concat(), 1, "partial results of 1 of 2 streams are missing");
    let output = run(&["merge", "connections", "--from", &site, "-o", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Each of two links carries half of a flood, which is below the threshold.
#[test]
fn a_flood_by_two_links_is_seen_by_the_merge() {
    let folder = Folder::new();
    let capture = &fixture("detectors/half_open_128.pcap.gz");
    let files = ["a.wps", "b.wps"].map(|name| folder.path(name));
    // The last byte of the server's or client's address, whichever is not the server's.
    let halves = ["ip[15] + ip[19] < 66", "not (ip[15] + ip[19] < 66)"];
    for (file, half) in files.iter().zip(halves) {
        assert!(publish("syn_flood", capture, file, half) > 100, "{half}");
        assert_eq!(rows(&["run", "syn_flood", "-r", capture, "-q", "--", half]), "", "{half}");
    }
    let merged =
        rows(&["merge", "syn_flood", "--from", &files[0], "--from", &files[1], "-o", "json"]);
    assert_eq!(merged, rows(&["run", "syn_flood", "-r", capture, "-o", "json"]));
    assert!(merged.contains("128 handshakes"), "{merged}");
}

/// A query that needs its key in one place runs on one of two probes, beside one that sees nothing.
#[test]
fn queries_that_need_a_key_give_the_rows_of_one_run_too() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a.wps"), folder.path("b.wps"));
    let mut tried = 0;
    for (path, plan) in spread() {
        if matches!(needs(&plan), Ok(weir_plan::physical::Needs::Nothing)) {
            continue;
        }
        let query = path.to_str().expect("a plain path");
        let capture = &fixture("mixed.pcap");
        rows(&["run", query, "-r", capture, "--publish", &a, "--probe", "a", "-q"]);
        rows(&["run", query, "-r", capture, "--publish", &b, "--probe", "b", "-q", "ip proto 99"]);
        let one = rows(&["run", query, "-r", capture, "-o", "json", "-q"]);
        let merged = rows(&["merge", query, "--from", &b, "--from", &a, "-o", "json", "-q"]);
        assert_eq!(merged, one, "{query}");
        tried += 1;
    }
    assert!(tried >= 4, "{tried} queries");
}

#[test]
fn the_ledger_is_that_of_all_probes() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a.wps"), folder.path("b.wps"));
    let capture = &fixture("mixed.pcap");
    for (file, filter) in [(&a, "udp"), (&b, "not udp")] {
        let output =
            run(&["run", "flows", "-r", capture, "--publish", file, "--probe", filter, filter]);
        assert!(text(&output.stderr).starts_with("received   336 packets\nfiltered"));
    }
    let output = run(&["merge", "flows", "--from", &a, "--from", &b, "-v", "-o", "json"]);
    let told = text(&output.stderr);
    assert!(told.contains("received   672 packets"), "{told}");
    assert!(told.contains("filtered   336 by the capture filter"), "{told}");
    assert!(told.contains("processed  336"), "{told}");
    assert!(told.contains("probe udp (") && told.contains("probe not udp ("), "{told}");
}

#[test]
fn partial_results_go_through_pipes_while_probes_run() {
    let folder = Folder::new();
    let (a, b) = (folder.fifo("a"), folder.fifo("b"));
    let capture = &fixture("syn_flood.pcap");
    let query = "packets | summarize n = count() by ip.dst every 100ms";
    let probe = |pipe: &str, filter: &str| {
        let args =
            ["run", "-e", query, "-r", capture, "--publish", pipe, "--probe", filter, filter];
        weir(&args).stderr(Stdio::null()).spawn().expect("it starts")
    };
    let mut probes = [probe(&a, "ip src host 192.0.2.1"), probe(&b, "not ip src host 192.0.2.1")];
    // In the other order than they are opened by the probes.
    let merged = rows(&["merge", "-e", query, "--from", &b, "--from", &a, "-o", "json", "-q"]);
    let one = rows(&["run", "-e", query, "-r", capture, "-o", "json", "-q"]);
    assert!(one.lines().count() > 5 && merged == one, "{merged}\nnot\n{one}");
    for probe in &mut probes {
        assert!(probe.wait().expect("it ends").success());
    }
    // By standard output and input, too.
    let mut publisher = weir(&["run", "-e", query, "-r", capture, "--publish", "-", "-q"]);
    let mut publisher = publisher.stdout(Stdio::piped()).spawn().expect("it starts");
    let stdout = publisher.stdout.take().expect("a pipe");
    let merged = weir(&["merge", "-e", query, "--from", "-", "-o", "json", "-q"])
        .stdin(stdout)
        .output()
        .expect("it runs");
    assert_eq!(text(&merged.stdout), one);
    assert!(publisher.wait().expect("it ends").success());
}

#[test]
fn a_probe_that_is_killed_is_told_and_costs_the_others_nothing() {
    let folder = Folder::new();
    let (a, b) = (folder.fifo("a"), folder.path("b.wps"));
    let capture = &fixture("syn_flood.pcap");
    let query = "packets | summarize n = count() by ip.dst every 100ms";
    rows(&["run", "-e", query, "-r", capture, "--publish", &b, "--probe", "b", "-q"]);
    // It has its capture from a pipe that nobody writes to the end.
    let mut killed = weir(&["run", "-e", query, "-r", "-", "--publish", &a, "--probe", "a", "-q"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let merging = weir(&["merge", "-e", query, "--from", &a, "--from", &b, "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let bytes = fs::read(capture).expect("a capture");
    let stdin = killed.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut &stdin, &bytes[..bytes.len() / 2]).expect("it reads");
    // Its head is there once merge has opened it; what it has sent by now is not what matters.
    wait_for_reader(&a);
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    drop(stdin);
    let merged = merging.wait_with_output().expect("it ends");
    let errors = text(&merged.stderr);
    assert_eq!(merged.status.code(), Some(1), "{errors}");
    let told = errors.contains("the stream ended before the run of the probe did")
        || errors.contains("the stream breaks off at byte")
        || errors.contains("it is empty: no probe has written to it");
    assert!(told, "{errors}");
    if !errors.contains("it is empty") {
        let alone = rows(&["run", "-e", query, "-r", capture, "-o", "json", "-q"]);
        let groups = text(&merged.stdout).lines().count();
        assert_eq!(groups, alone.lines().count(), "{errors}");
    }
}

/// Waits until both ends of a named pipe are open: then it can be opened for writing at once.
fn wait_for_reader(pipe: &str) {
    use rustix::fs::{OFlags, open};
    for _ in 0..1000 {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        if open(pipe, flags, Mode::empty()).is_ok() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("nobody reads {pipe}");
}

#[test]
fn damaged_and_foreign_streams_are_told_by_name() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a.wps"), folder.path("b.wps"));
    let capture = &fixture("mixed.pcap");
    rows(&["run", "source_counts", "-r", capture, "--publish", &a, "--probe", "a", "-q"]);
    rows(&["run", "flows", "-r", capture, "--publish", &b, "--probe", "b", "-q"]);
    fails(&["merge", "source_counts", "--from", &a, "--from", &b], 2, "b.wps: its probe (weir 0.");
    fails(&["merge", "flows", "--from", &a], 2, "runs another query, or has other parameters");
    fails(&["merge", "flows", "--from", capture], 1, "mixed.pcap: this is no stream of a probe");
    fails(&["merge", "flows", "--from", "/nowhere/x"], 1, "/nowhere/x: No such file");
    fails(&["merge", "flows", "--from", "-", "--from", "-"], 2, "one stream only");
    fails(&["merge", "flows", "--from", "amqp://h:9092/t"], 2, "amqp is not supported; expected");
    fails(&["merge", "flows", "--from", "kafka://h:9092"], 2, "expected kafka://HOST:PORT/TOPIC");
    fails(&["merge", "flows", "--from", &a, "--until", "end"], 2, "are for a topic");
    fails(&["merge", "flows"], 2, "--from <FILE|KAFKA>");
    fails(&["merge", "knock", "--from", &a], 2, "sends frames on");
    let whole = fs::read(&a).expect("a stream");
    fs::write(&a, &whole[..whole.len() - 10]).expect("writes");
    fails(&["merge", "source_counts", "--from", &a], 1, "a.wps): ");
    fails(&["merge", "source_counts", "--from", &a], 1, "the stream breaks off at byte");
    let mut damaged = whole.clone();
    let at = damaged.len() - 40;
    damaged[at] ^= 0xff;
    fs::write(&a, damaged).expect("writes");
    fails(&["merge", "source_counts", "--from", &a], 1, "error: ");
    fs::write(&a, b"").expect("writes");
    let empty = "it is empty: no probe has written to it";
    fails(&["merge", "source_counts", "--from", &a], 1, empty);
    // Other probes lose nothing.
    rows(&["run", "source_counts", "-r", capture, "--publish", &b, "--probe", "b", "-q"]);
    let alone = rows(&["merge", "source_counts", "--from", &b, "-o", "json"]);
    let args = ["merge", "source_counts", "--from", &a, "--from", &b, "-o", "json"];
    fails(&args, 1, empty);
    fails(&args, 1, "partial results of 1 of 2 streams are missing");
    assert_eq!(text(&run(&args).stdout), alone);
}

#[test]
fn what_a_probe_cannot_do_is_refused_before_it_begins() {
    let folder = Folder::new();
    let (out, capture) = (folder.path("x.wps"), &fixture("mixed.pcap"));
    let with = |query: &str, more: &[&str], why: &str| {
        let args = ["run", query, "-r", capture, "--publish", &out];
        fails(&[&args[..], more].concat(), 2, why);
        assert!(!Path::new(&out).exists(), "{why}");
    };
    with("knock", &[], "pipeline 1 sends frames on");
    with("flows", &["-j", "2"], "a probe has one worker");
    with("flows", &["-o", "csv"], "cannot be used with");
    with("flows", &["--probe", ""], "the name of a probe has 1 to 255 bytes");
    with("flows", &["--probe", "a\nb"], "no control characters");
    with("flows", &["--control=/tmp/never"], "cannot be used with");
    let other = ["run", "flows", "-r", capture, "--publish", "amqp://h:9092/t"];
    fails(&other, 2, "amqp is not supported; expected a file, a named pipe, `-` or kafka://");
    with("flows", &["--kafka-partition", "1"], "are for kafka://");
    let (copy, linked) = (folder.path("copy.pcap"), folder.path("linked.pcap"));
    fs::copy(capture, &copy).expect("copies");
    fs::hard_link(&copy, &linked).expect("links");
    for name in [&copy, &linked] {
        let args = ["run", "flows", "-r", &copy, "--publish", name];
        fails(&args, 2, "that is the capture to be read");
    }
    assert_eq!(fs::read(&copy).expect("it is there"), fs::read(capture).expect("it is there"));
    fails(&["run", "flows", "-r", capture, "--probe", "x"], 2, "--publish <FILE|KAFKA>");
}

/// A merge exports nothing, and says so by the name of the metric.
#[test]
fn metrics_of_a_merged_query_are_refused() {
    let query =
        "packets | summarize n = count() by ip.src every 1s | metric counter \"hosts\" of n";
    let why = "weir merge exports no metrics, and the query has `metric` (hosts)";
    fails(&["merge", "-e", query, "--from", "never.wps"], 2, why);
}

#[test]
fn streams_are_read_in_the_sandbox() {
    let folder = Folder::new();
    let pipe = folder.fifo("a");
    let merging = weir(&["merge", "flows", "--from", &pipe])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut probe = fs::File::options().write(true).open(&pipe).expect("merge reads it");
    until_confined(merging.id());
    std::io::Write::write_all(&mut probe, b"GET / HTTP/1.1").expect("it reads");
    drop(probe);
    let ended = merging.wait_with_output().expect("it ends");
    let errors = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert!(errors.contains("a: this is no stream of a probe"), "{errors}");
}

/// A probe is named by its host and by what it reads, and its stream can be written again.
#[test]
fn a_stream_is_written_anew_under_a_default_name() {
    let folder = Folder::new();
    let (a, capture) = (folder.path("a.wps"), &fixture("web.pcap"));
    for _ in 0..2 {
        rows(&["run", "flows", "-r", capture, "--publish", &a, "-q"]);
        let output = run(&["merge", "flows", "--from", &a, "-v", "-o", "json"]);
        assert!(text(&output.stderr).contains(":web.pcap (/"), "{}", text(&output.stderr));
        assert_eq!(
            text(&output.stdout),
            rows(&["run", "flows", "-r", capture, "-o", "json", "-q"])
        );
    }
    // A failed write is told, and nothing is a broken pipe that could be taken for the end.
    let (full, why) = ("/dev/full", "partial results: ");
    fails(&["run", "flows", "-r", capture, "--publish", full, "-q"], 1, why);
}

#[test]
fn rows_of_several_outputs_go_into_files() {
    let folder = Folder::new();
    let (a, out, one) = (folder.path("a.wps"), folder.path("out"), folder.path("one"));
    let capture = &fixture("mixed.pcap");
    let queries = ["connections", "sources"];
    let publish = ["run", queries[0], queries[1], "-r", capture, "--publish", &a, "-q"];
    rows(&publish);
    let files = ["-o", "csv", "-q", "--out-dir"];
    rows(&[&["merge", queries[0], queries[1], "--from", &a][..], &files, &[&out]].concat());
    rows(&[&["run", queries[0], queries[1], "-r", capture][..], &files, &[&one]].concat());
    for query in queries {
        let read = |folder: &str| {
            let path = Path::new(folder).join(format!("{query}.csv"));
            fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        assert_eq!(read(&out), read(&one), "{query}");
    }
}

/// Three probes on wires of their own, one of which is quiet: rows come while all run, and a probe
/// that is killed afterwards takes nothing with it that it has sent.
#[test]
fn probes_on_wires_give_rows_while_they_run() {
    if !namespace("probes_on_wires_give_rows_while_they_run") {
        return;
    }
    let folder = Folder::new();
    let wires = [("a0", "a1"), ("b0", "b1"), ("c0", "c1")];
    let pipes = wires.map(|(one, other)| {
        veth(one, other);
        folder.fifo(one)
    });
    let query = "packets | where udp and dport == 4242 \
                 | summarize n = count(), ports = distinct(sport) by ip.src every 100ms";
    let from: Vec<&str> = pipes.iter().flat_map(|pipe| ["--from", pipe]).collect();
    let merge = [&["merge", "-e", query, "-o", "csv", "-l", "-v"][..], &from].concat();
    let mut merging =
        weir(&merge).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let probe = |wire: usize| {
        let (pipe, name) = (&pipes[wire], wires[wire].1);
        Run::start(&["run", "-e", query, "-i", name, "-Q", "in", "--publish", pipe])
    };
    let [a, b, quiet] = [probe(0), probe(1), probe(2)];
    let (to, rows) = mpsc::channel();
    let stdout = BufReader::new(merging.stdout.take().expect("a pipe"));
    let reader = std::thread::spawn(move || {
        stdout.lines().map_while(Result::ok).skip(1).try_for_each(|line| to.send(line))
    });
    // The kernel is asked for frames by then: each probe has written a mark.
    let frame = |host: u8, port| {
        Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]).udp(port, 4242).bytes()
    };
    let senders = [Sender::new("a0"), Sender::new("b0")];
    for round in 0..10u16 {
        for n in 0..100 {
            senders.iter().for_each(|sender| sender.send(&frame((n % 3) as u8, round * 100 + n)));
        }
        wires::pause();
    }
    let mut packets = 0;
    while packets < 2000 {
        let row = rows.recv_timeout(LONG).expect("rows come while probes run");
        packets += row.split(',').nth(2).and_then(|n| n.parse::<u64>().ok()).expect("a count");
    }
    assert_eq!(packets, 2000, "each packet once");
    signal(merging.id(), "-USR1");
    let (_, said) = a.interrupt();
    assert!(said.contains("processed  1000"), "{said}");
    b.signal("-KILL");
    let (_, said) = quiet.interrupt();
    assert!(said.contains("processed  0") || said.contains("received   "), "{said}");
    let ended = merging.wait_with_output().expect("it ends");
    let errors = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert!(errors.contains(":b1 (") && errors.contains("before the run of the probe did"));
    assert!(errors.contains("processed  2000") || errors.contains("of 3 streams"), "{errors}");
    assert!(errors.contains(":c1: windows that end until 20"), "{errors}");
    assert!(reader.join().expect("it ends").is_ok());
    assert_eq!(rows.try_iter().count(), 0, "no row comes twice");
}
