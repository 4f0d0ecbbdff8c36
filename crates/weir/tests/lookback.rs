//! Packets around rows: `capture` in a query, run over captures.

mod common;

use common::root;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use weir_engine::functions::Functions;
use weir_engine::limits::{JUMP_NS, LATENESS_NS};
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_model::{Frames, TimeRules};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType, Source};

/// Runs the binary.
fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Times and bytes of the frames in a capture.
fn read(path: &Path) -> Vec<(i64, Vec<u8>)> {
    let name = path.to_str().expect("a plain path");
    let mut source =
        weir_capture::open(name, &weir_capture::Options::default()).expect("a capture");
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).expect("whole records") {
        all.extend((0..batch.len()).map(|i| (batch.ts()[i], batch.frame(i).to_vec())));
    }
    all
}

fn path(folder: &tempfile::TempDir) -> &str {
    folder.path().to_str().expect("a plain path")
}

/// The numbers of frames for which a condition holds, by another query over the same capture.
fn numbers(capture: &str, condition: &str) -> Vec<usize> {
    let query = format!("packets | where {condition} | project number");
    let output = weir(&["run", "-q", "-e", &query, "-r", capture, "-o", "csv"]);
    text(&output.stdout).lines().skip(1).map(|n| n.parse().expect("a number")).collect()
}

const SCAN: &str = "packets | where tcp.syn and not tcp.ack \
     | summarize ports = distinct(dport) by ip.src every 1s | where ports > 100";

/// The file of a scan holds the scanner's packets, in time before and after the window.
#[test]
fn a_scanners_packets_are_in_the_file_of_the_scan() {
    let capture = root().join("fixtures/syn_scan.pcap");
    let capture = capture.to_str().expect("a plain path");
    let all = read(Path::new(capture));
    let mut rows = BTreeSet::new();
    for workers in ["1", "2", "4"] {
        let folder = tempfile::tempdir().expect("a folder");
        let query = format!("let scans = {SCAN} | capture before 100ms after 10ms by ip.src");
        let args = ["run", "-e", &query, "-r", capture, "-o", "csv", "-j", workers];
        let output = weir(&[&args[..], &["--capture-dir", path(&folder)]].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        rows.insert(text(&output.stdout).to_owned());
        let name = "scans-2026-11-21T055053Z-192.0.2.1.pcapng";
        assert!(text(&output.stdout).contains(&format!(",{name}\n")), "{output:?}");
        let files = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 1, "{errors}");

        let from = 1_795_240_253_000_000_000 - 100_000_000;
        let to = from + 100_000_000 + 999_999_999 + 10_000_000;
        let of_host = numbers(capture, "ip.src == 192.0.2.1");
        let want: Vec<_> = of_host.iter().map(|n| all[*n - 1].clone()).collect();
        let want: Vec<_> = want.into_iter().filter(|(ts, _)| (from..=to).contains(ts)).collect();
        let got = read(&folder.path().join(name));
        assert!(want.len() > 300, "{}", want.len());
        assert_eq!(got, want, "{workers} workers");
        let told = format!("captured   {} packets in 1 file\n", want.len());
        assert!(errors.ends_with(&told), "{errors}");
        tcpdump_reads(&folder.path().join(name), want.len());
    }
    assert_eq!(rows.len(), 1, "{rows:?}");
}

/// tcpdump finds as many packets in a file, where it is installed.
#[expect(clippy::print_stderr, reason = "a skipped part says so")]
fn tcpdump_reads(file: &Path, n: usize) {
    let Ok(output) = Command::new("tcpdump").args(["-nn", "-r"]).arg(file).output() else {
        eprintln!("SKIPPED no tcpdump to read {}", file.display());
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout).lines().count(), n);
}

/// Both directions of a connection, which `conn` is the key of; a file for each.
#[test]
fn a_connection_has_both_directions() {
    let capture = root().join("fixtures/web.pcap");
    let capture = capture.to_str().expect("a plain path");
    let all = read(Path::new(capture));
    let folder = tempfile::tempdir().expect("a folder");
    let query = "packets | where tcp.syn and not tcp.ack | project ts, conn, sport \
                 | capture 1h by conn";
    let args = ["run", "-e", query, "-r", capture, "-o", "csv", "--capture-dir", path(&folder)];
    let output = weir(&args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut rows = 0;
    for row in text(&output.stdout).lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let (name, sport) = (cells[cells.len() - 1], cells[cells.len() - 2]);
        let conn = numbers(capture, &format!("tcp and (sport == {sport} or dport == {sport})"));
        let want: Vec<_> = conn.iter().map(|n| all[*n - 1].clone()).collect();
        assert!(want.len() > 2);
        assert_eq!(read(&folder.path().join(name)), want, "{row}");
        rows += 1;
    }
    assert!(rows > 0, "{output:?}");
}

/// A capture of `n` packets a second from each of two hosts, for a minute.
fn minute(folder: &tempfile::TempDir, n: i64) -> String {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    for i in 0..60 * n * 2 {
        let frame = Frame::ethernet().ipv4([10, 0, 0, (i % 2) as u8], [10, 0, 0, 9]);
        let frame = frame.udp(1, 2).payload(&[i as u8; 100]).bytes();
        header.put_record(&mut file, i / 2 * 1_000_000_000 / n, frame.len() as u32, &frame);
    }
    let path = folder.path().join("minute.pcap");
    std::fs::write(&path, file).expect("writes");
    path.to_str().expect("a plain path").to_owned()
}

/// Rows that come out late find what the ring still has; what it has no more is told.
#[test]
fn a_ring_that_is_too_small_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = minute(&folder, 100);
    let query = "packets | where ip.src == 10.0.0.1 | summarize n = count() by ip.src every 20s \
                 | capture 1s by ip.src";
    let mut frames = Vec::new();
    for (ring, told) in [("200k", true), ("16m", false)] {
        let out = folder.path().join(ring);
        let out = out.to_str().expect("a plain path");
        let args = ["run", "-e", query, "-r", &capture, "--ring", ring, "--capture-dir", out];
        let output = weir(&args);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        assert_eq!(errors.contains("--ring keeps more"), told, "{errors}");
        let file = Path::new(out).join("alert-1970-01-01T000020Z-10.0.0.1.pcapng");
        frames.push(read(&file).len());
    }
    // From a second before the window to one after it.
    assert_eq!(frames[1], 2200);
    assert!((1..2200).contains(&frames[0]), "{frames:?}");

    // A second run finds the names taken, and overwrites nothing.
    let out = folder.path().join("16m");
    let args = ["run", "-e", query, "-r", &capture, "--capture-dir"];
    let output = weir(&[&args[..], &[out.to_str().expect("a plain path")]].concat());
    let errors = text(&output.stderr);
    assert!(errors.contains("0 packets in 0 files; 3 not begun: there was a file"), "{errors}");
}

#[test]
fn it_is_explained() {
    let query = "packets | summarize n = count() by attacker = ip.src, sport every 1s \
                 | capture 30s after 5s by ip.src = attacker, sport";
    let output = weir(&["explain", "-e", query]);
    let line = "\n    capture before 30s after 5s by ip.src = attacker, sport\n";
    assert!(text(&output.stdout).contains(line), "{}", text(&output.stdout));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let capture = root().join("fixtures/dns.pcap");
    let capture = capture.to_str().expect("a plain path");
    let output = weir(&["run", "-e", "packets | limit 1", "-r", capture, "--ring", "1m"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the query has no `capture`"), "{output:?}");
    assert!(
        text(&output.stderr).contains("--control for queries that are added later"),
        "{output:?}"
    );
    let query = "packets | project ts, ip.src | capture 1s by ip.src";
    for ring in ["0", "x", "5t"] {
        let output = weir(&["run", "-e", query, "-r", capture, "--ring", ring]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let args = ["run", "-e", query, "-r", capture, "--capture-dir", "/dev/null/x"];
    let output = weir(&args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("--capture-dir /dev/null/x"), "{output:?}");
}

/// Rows with the names of files are those of the naive model, with any number of workers.
#[test]
fn names_of_files_are_in_the_model_too() {
    let query = format!("{SCAN} | capture 30s by ip.src");
    let queries = [
        &query,
        "packets | project ts, link, number | capture before 1s by link",
        "packets | summarize n = count() by conn session 1s | capture after 1s by conn",
    ];
    for query in queries {
        let program = common::program(query, &Default::default());
        assert_eq!(program.captures().count(), 1);
        let functions = Functions::default();
        let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
        let want = weir_model::run(&program, &functions, &mut Frames::sample(), &rules);
        assert!(query == queries[0] || !want.rows.is_empty(), "{query}");
        for workers in [1, 2, 4] {
            let (mut sink, mut source) = (Collect::default(), Frames::sample().cut(&[3, 1, 64]));
            let options = Options { workers, ..Options::default() };
            run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
            assert_eq!(sink.rows, want.rows, "{query} with {workers} workers");
        }
    }
}

/// Each packet was processed by one worker, or by one in each way of spreading.
#[test]
fn the_shares_of_workers_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = minute(&folder, 100);
    let whole = "packets | summarize n = count() by ip.src";
    let keyed = "packets | scan n = 0 by ip.src => n + 1 | summarize m = max(n) by ip.src";
    let other = "packets | scan n = 0 by ip.dst => n + 1 | summarize m = max(n) by ip.dst";
    for (queries, ways) in [(&[whole][..], 1), (&[keyed], 1), (&[keyed, other], 2)] {
        for workers in ["1", "3"] {
            let mut args = vec!["run", "-r", &capture, "-v", "-o", "json", "-j", workers];
            queries.iter().for_each(|query| args.extend(["-e", query]));
            let output = weir(&args);
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{errors}");
            // The plan, which stands before them, has a level of that name.
            let is_share = |l: &&str| l.starts_with("worker ") && !l.starts_with("worker level");
            let lines: Vec<&str> = errors.lines().filter(is_share).collect();
            if workers == "1" {
                assert!(lines.is_empty(), "{errors}");
                continue;
            }
            assert_eq!(lines.len(), 3, "{errors}");
            let share = |line: &&str| {
                let n = line.split_whitespace().nth(2).and_then(|n| n.parse::<u64>().ok());
                n.expect("a number")
            };
            assert_eq!(lines.iter().map(share).sum::<u64>(), 12_000 * ways, "{errors}");
        }
    }
}
