//! Packets that go out: which files they are in, and that they are the ones that came.

mod common;

use common::{root, skip, text, workplace};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layers, classify};

/// Link type, time, length on the wire, bytes.
type Record = (u16, i64, u32, Vec<u8>);

/// Runs the binary in a folder; panics unless it succeeds.
fn weir(folder: &Path, args: &[&str]) -> Output {
    let output = attempt(folder, args);
    assert!(output.status.success(), "{args:?}: {}", errors(&output));
    output
}

fn attempt(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().expect("it runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All frames of a capture.
fn records(path: &Path) -> Vec<Record> {
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let name = path.to_str().expect("a plain path");
    let mut source = weir_capture::open(name, &options).unwrap_or_else(|e| panic!("{e}"));
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        for i in 0..batch.len() {
            let (ts, len) = (batch.ts()[i], batch.lens()[i]);
            all.push((batch.link.0, ts, len, batch.frame(i).to_vec()));
        }
    }
    all
}

fn fixture(name: &str) -> Vec<Record> {
    records(&root().join("fixtures").join(name))
}

/// The rows of a query of one pipeline, a line for each packet.
fn asked(folder: &Path, capture: &str, fields: &str) -> Vec<String> {
    let query = format!("packets | project {fields}");
    let output = weir(folder, &["run", "-e", &query, "-r", capture, "-o", "csv", "-q"]);
    output.stdout.lines().skip(1).map(|l| l.expect("text")).collect()
}

/// Every capture of the fixtures that can be read to its end.
fn captures() -> Vec<String> {
    let mut all = common::files("fixtures", &[".pcap", ".pcapng", ".gz", ".zst"]);
    // The captures of detectors are of the same kinds.
    all.retain(|path| path.parent() == Some(&root().join("fixtures")));
    let name = |p: &std::path::PathBuf| p.file_name().expect("a name").to_str().map(str::to_owned);
    all.iter().filter_map(name).collect()
}

#[test]
fn frames_are_copied_byte_by_byte() {
    let folder = workplace();
    let mut kinds = BTreeSet::new();
    for capture in captures() {
        let before = fixture(&capture);
        kinds.extend(before.iter().map(|r| r.0));
        let read = format!("fixtures/{capture}");
        for workers in ["1", "2", "4"] {
            let args = ["run", "-e", "packets | mirror \"all.pcapng\" | pass", "-j", workers];
            weir(folder.path(), &[&args[..], &["-r", &read, "-w", "pass.pcapng"]].concat());
            for copy in ["all.pcapng", "pass.pcapng"] {
                let got = records(&folder.path().join(copy));
                assert!(got == before, "{capture}, {workers} workers: {copy}");
            }
        }
    }
    assert!(kinds.len() >= 4, "link types {kinds:?}");
}

#[test]
fn every_capture_can_be_written_as_pcap_if_it_has_one_link_type() {
    let folder = workplace();
    let mut several = 0;
    for capture in captures() {
        let before = fixture(&capture);
        let links: BTreeSet<u16> = before.iter().map(|r| r.0).collect();
        let read = format!("fixtures/{capture}");
        let args = ["run", "-e", "packets | forward \"x.pcap\"", "-r", &read, "-q"];
        let output = attempt(folder.path(), &args);
        let got = records(&folder.path().join("x.pcap"));
        if links.len() <= 1 {
            assert!(output.status.success(), "{capture}: {}", errors(&output));
            assert!(got == before, "{capture}");
        } else {
            // The frames before the first of another type are there.
            assert_eq!(output.status.code(), Some(1), "{capture}");
            assert!(errors(&output).contains("x.pcap: a pcap file has frames of one link type"));
            let same = before.iter().take_while(|r| r.0 == before[0].0);
            assert!(got.iter().eq(same), "{capture}");
            several += 1;
        }
    }
    assert!(several > 0, "a capture with several link types");
}

/// Both directions of a flow, and all flows between two hosts, are in one file; DNS is in all.
#[test]
fn the_load_balancer_keeps_flows_together() {
    const WORKERS: [&str; 3] = ["worker1.pcap", "worker2.pcap", "worker3.pcap"];
    let folder = workplace();
    let mut used = BTreeSet::new();
    for capture in ["mixed.pcap", "web.pcap.gz", "connect_scan.pcap", "dns.pcap", "ipv6.pcap"] {
        let read = format!("fixtures/{capture}");
        let mut of_workers = Vec::new();
        for j in ["1", "2", "4"] {
            weir(folder.path(), &["balance", "-r", &read, "-j", j]);
            let files: Vec<Vec<u8>> = WORKERS
                .iter()
                .map(|f| std::fs::read(folder.path().join(f)).expect("a file"))
                .collect();
            of_workers.push(files);
        }
        assert!(of_workers.windows(2).all(|w| w[0] == w[1]), "{capture}: any number of workers");
        let before = fixture(capture);
        let (mut home, mut copies) = (BTreeMap::new(), BTreeMap::<Record, usize>::new());
        for worker in WORKERS {
            let records = records(&folder.path().join(worker));
            let fields = "hosts, dns, number";
            let hosts = asked(folder.path(), worker, fields);
            assert_eq!(records.len(), hosts.len());
            for (record, line) in records.into_iter().zip(hosts) {
                let (pair, rest) = line
                    .rsplit_once(',')
                    .map(|(l, _)| l)
                    .and_then(|l| l.rsplit_once(','))
                    .expect("three parts");
                if rest != "true" {
                    let first = home.entry(pair.to_owned()).or_insert(worker);
                    assert_eq!(*first, worker, "{capture}: {pair}");
                    used.insert(worker);
                }
                *copies.entry(record).or_default() += 1;
            }
        }
        let dns = asked(folder.path(), &read, "dns");
        let mut want = BTreeMap::<Record, usize>::new();
        for (record, dns) in before.into_iter().zip(dns) {
            *want.entry(record).or_default() += if dns == "true" { 3 } else { 1 };
        }
        assert!(copies == want, "{capture}: each frame where it belongs, as often as it does");
    }
    assert!(used.len() > 1, "{used:?}");
}

#[test]
fn a_worker_taken_out_moves_only_its_own_pairs() {
    let folder = workplace();
    let steer = |outputs: &str| {
        let query = format!("packets | steer by ip.src, ip.dst, dport to ({outputs})");
        weir(folder.path(), &["run", "-e", &query, "-r", "fixtures/connect_scan.pcap", "-q"]);
    };
    let read = |name: &str| records(&folder.path().join(name));
    steer("\"a.pcap\", \"b.pcap\", \"c.pcap\"");
    let before = [read("a.pcap"), read("c.pcap")];
    assert!(!read("b.pcap").is_empty());
    steer("\"a.pcap\", \"c.pcap\"");
    for (before, after) in before.iter().zip([read("a.pcap"), read("c.pcap")]) {
        let after: BTreeSet<Record> = after.into_iter().collect();
        assert!(before.iter().all(|record| after.contains(record)));
    }
}

/// The firewall by a model of its own: who has knocked, and which flows are open.
#[test]
fn the_knocking_firewall_lets_in_who_knocked() {
    let folder = workplace();
    let knock = [5123u16, 6234, 7345, 8456];
    let lines = asked(folder.path(), "fixtures/knock.pcap", "ip.src, ip.dst, sport, tcp.dport");
    let (mut stage, mut open) = (BTreeMap::<(String, String), usize>::new(), BTreeSet::new());
    let mut passed = Vec::new();
    for (record, line) in fixture("knock.pcap").into_iter().zip(&lines) {
        let parts: Vec<&str> = line.split(',').collect();
        let Ok(port) = parts[3].parse::<u16>() else { continue };
        let at = stage.entry((parts[0].to_owned(), parts[1].to_owned())).or_default();
        *at = match *at {
            4 => 4,
            n if port == knock[n] => n + 1,
            _ => 0,
        };
        if port == 22 && (*at == 4 || open.contains(line)) {
            open.insert(line.clone());
            passed.push(record);
        }
    }
    for workers in ["1", "2", "4"] {
        let args = ["knock", "-r", "fixtures/knock.pcap", "-w", "in.pcap", "-j", workers];
        let output = weir(folder.path(), &[&args[..], &["-o", "json"]].concat());
        assert_eq!(records(&folder.path().join("in.pcap")), passed);
        assert_eq!(passed.len(), 4);
        // The verdicts are rows, as without a file.
        let rows = String::from_utf8(output.stdout).expect("text");
        assert_eq!(rows, text("queries/expected/port_knocking.jsonl"));
    }
}

#[test]
fn frames_are_trimmed_and_tagged() {
    let folder = workplace();
    let query = "packets | where tcp | mirror \"whole.pcap\" | trim 60 | tag 42 | pass";
    let read = "fixtures/web.pcap";
    weir(folder.path(), &["run", "-e", query, "-r", read, "-w", "tagged.pcap", "-q"]);
    let whole = records(&folder.path().join("whole.pcap"));
    let tagged = records(&folder.path().join("tagged.pcap"));
    assert_eq!(whole.len(), tagged.len());
    for ((_, ts, len, before), (_, tagged_ts, tagged_len, after)) in whole.iter().zip(&tagged) {
        assert_eq!((ts, len + 4), (tagged_ts, *tagged_len));
        let kept = &before[..before.len().min(60)];
        assert_eq!(after[..12], kept[..12]);
        assert_eq!(after[12..16], [0x81, 0, 0, 42]);
        assert_eq!(after[16..], kept[12..]);
    }
    let vlans = asked(folder.path(), "tagged.pcap", "vlan.id, tcp.dport");
    assert!(vlans.iter().all(|line| line.starts_with("42,")));
}

/// A frame that the snap length cut stays so, and keeps its length on the wire.
#[test]
fn snapped_frames_stay_snapped() {
    let folder = workplace();
    let args = ["run", "-e", "packets | trim 70 | forward \"cut.pcap\"", "-q", "-r"];
    weir(folder.path(), &[&args[..], &["fixtures/web.pcap"]].concat());
    let cut = records(&folder.path().join("cut.pcap"));
    assert!(cut.iter().any(|(_, _, len, bytes)| *len > 1000 && bytes.len() == 70));
    for name in ["again.pcap", "again.pcapng"] {
        let query = format!("packets | forward {name:?}");
        weir(folder.path(), &["run", "-e", &query, "-r", "cut.pcap", "-q"]);
        assert!(records(&folder.path().join(name)) == cut, "{name}");
    }
    // The lengths that queries see are those on the wire.
    let lens = |capture| asked(folder.path(), capture, "len");
    assert_eq!(lens("cut.pcap"), lens("fixtures/web.pcap"));
}

#[test]
fn what_is_read_is_not_overwritten() {
    let folder = workplace();
    let capture = std::fs::read(root().join("fixtures/dns.pcap")).expect("a capture");
    std::fs::write(folder.path().join("mine.pcap"), &capture).expect("writes");
    for args in [
        &["run", "-e", "packets | forward \"mine.pcap\"", "-r", "mine.pcap"][..],
        &["run", "-e", "packets | pass", "-r", "mine.pcap", "-w", "./mine.pcap"],
    ] {
        let output = attempt(folder.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(errors(&output).contains("mine.pcap is a capture being read"), "{args:?}");
        assert_eq!(std::fs::read(folder.path().join("mine.pcap")).expect("there"), capture);
    }
}

/// A folder with captures, plain and compressed, partial results, a table and queries, all with
/// names that files of rows would have.
fn folder_of_inputs() -> tempfile::TempDir {
    let folder = workplace();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("writes");
    };
    let capture = std::fs::read(root().join("fixtures/dns.pcap")).expect("a capture");
    write("dns.csv", &capture);
    write("dns.jsonl", &capture);
    write("hosts.csv", b"host,owner\n10.0.0.1,me\n");
    write("packed.csv", &std::fs::read(root().join("fixtures/web.pcap.gz")).expect("a capture"));
    let count = b"packets | summarize n = count() every 1s";
    write("dns.weir", count);
    write("packed.weir", count);
    write("part.weir", count);
    write("hosts.weir", b"packets | extend owner = lookup(\"hosts.csv\", ip.src, \"owner\")");
    let publish = ["run", "-q", "part.weir", "-r", "fixtures/dns.pcap", "--publish", "part.csv"];
    weir(folder.path(), &publish);
    std::fs::create_dir(folder.path().join("linked")).expect("is made");
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(to, folder.path().join(at)).expect("links");
    };
    link("../dns.csv", "linked/dns.csv");
    folder
}

/// `--out-dir` once emptied captures while they were mapped, and replaced partial results and
/// tables.
#[test]
fn files_of_rows_replaced_what_was_read() {
    let folder = folder_of_inputs();
    let check = |args: &[&str], kept: &str, told: &str| {
        let before = std::fs::read(folder.path().join(kept)).expect("is there");
        let output = attempt(folder.path(), args);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(told), "{args:?}: {said}");
        assert!(said.contains("being read"), "{args:?}: {said}");
        let after = std::fs::read(folder.path().join(kept)).expect("is there");
        assert!(before == after, "{args:?} changed {kept}: {said}");
    };
    for control in [&[][..], &["--control=weir.sock"]] {
        let run = |given: &[&str], kept: &str, told: &str| {
            check(&[&["run", "-q"][..], control, given].concat(), kept, told);
        };
        let capture = "dns.csv is a capture being read, dns.csv";
        let here = ["--out-dir", ".", "-o", "csv"];
        run(&[&["dns.weir", "-r", "dns.csv"][..], &here].concat(), "dns.csv", capture);
        let json = ["dns.weir", "-r", "dns.jsonl", "--out-dir", ".", "-o", "json"];
        run(&json, "dns.jsonl", "dns.jsonl is a capture");
        let linked = ["dns.weir", "-r", "dns.csv", "--out-dir", "linked", "-o", "csv"];
        run(&linked, "dns.csv", "linked/dns.csv is a capture being read, dns.csv");
        let packed = [&["packed.weir", "-r", "packed.csv"][..], &here].concat();
        run(&packed, "packed.csv", "packed.csv is a capture");
        let table = [&["hosts.weir", "-r", "fixtures/dns.pcap"][..], &here].concat();
        run(&table, "hosts.csv", "hosts.csv is a file of a query being read, hosts.csv");
    }
    let merge = ["merge", "-q", "part.weir", "--from", "part.csv", "--out-dir", ".", "-o", "csv"];
    check(&merge, "part.csv", "part.csv is a stream of partial results being read, part.csv");
    let forward = "packets | forward \"./dns.weir\"";
    let query = ["run", "-q", "dns.weir", "-e", forward, "-r", "fixtures/dns.pcap"];
    check(&[&query[..], &["--out-dir", "o"]].concat(), "dns.weir", "dns.weir is a query being");
    std::fs::copy(folder.path().join("dns.csv"), folder.path().join("plaintext_login.csv"))
        .expect("is copied");
    let watch = ["watch", "-q", "-r", "plaintext_login.csv", "--out-dir", ".", "-o", "csv"];
    check(&watch, "plaintext_login.csv", "plaintext_login.csv is a capture");
}

/// A picture, packets and rows that were to be one file wrote over each other.
#[test]
fn two_outputs_were_one_file() {
    let folder = folder_of_inputs();
    let rows = ["run", "-q", "dns.weir", "-r", "fixtures/dns.pcap", "-o", "csv", "--out-dir", "o"];
    std::fs::create_dir(folder.path().join("o")).expect("is made");
    for there in [false, true] {
        if there {
            std::fs::write(folder.path().join("o/dns.csv"), "old").expect("writes");
        }
        for (more, told) in [
            (&["--plot", "o/dns.csv"][..], "o/dns.csv is the file of two outputs"),
            (&["--plot", "o/../o/dns.csv"], "o/../o/dns.csv is the same file as o/dns.csv"),
            (&["-e", "packets | forward \"o/dns.csv\""], "o/dns.csv is the file of two outputs"),
        ] {
            let output = attempt(folder.path(), &[&rows[..], more].concat());
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(1), "{more:?}: {said}");
            assert!(said.contains(told), "{more:?}: {said}");
            let left = std::fs::read(folder.path().join("o/dns.csv"));
            assert_eq!(left.ok().as_deref(), there.then_some(&b"old"[..]), "{more:?}");
        }
    }
    // Devices are no matter.
    let null = ["--plot", "/dev/null"];
    weir(folder.path(), &[&rows[..], &null].concat());
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let folder = workplace();
    let told = |query: &str, more: &[&str]| {
        let args = [&["run", "-e", query, "-r", "fixtures/dns.pcap"][..], more].concat();
        let output = attempt(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        errors(&output)
    };
    let passes_none = told("packets | where dns", &["-w", "x.pcap"]);
    assert!(passes_none.contains("the query passes no packets; end it with `| pass`"));
    let both = told("packets | mirror \"-\"", &[]);
    assert!(both.contains("the query prints rows there"));
    let both = told("packets | pass\npackets | limit 1", &["-w", "-"]);
    assert!(both.contains("the query prints rows there"));
}

/// A device that is always full stands for a disk that is.
#[test]
fn a_full_disk_ends_the_run() {
    if !Path::new("/dev/full").exists() {
        return skip("ends::a_full_disk_ends_the_run", "no /dev/full here");
    }
    let folder = workplace();
    let query = "packets | mirror \"good.pcap\" | forward \"/dev/full\"";
    for workers in ["1", "2"] {
        let args = ["run", "-e", query, "-r", "fixtures/web.pcap", "-j", workers];
        let output = attempt(folder.path(), &args);
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains("error: /dev/full: No space left on device"));
        let good = records(&folder.path().join("good.pcap"));
        assert!(!good.is_empty() && fixture("web.pcap").starts_with(&good));
    }
}

#[test]
fn packets_go_to_standard_output() {
    let folder = workplace();
    let args = ["run", "-e", "packets | where dns | pass", "-r", "fixtures/mixed.pcap"];
    let direct = weir(folder.path(), &[&args[..], &["-w", "-", "-q"]].concat());
    weir(folder.path(), &[&args[..], &["-w", "dns.pcap"]].concat());
    assert_eq!(direct.stdout, std::fs::read(folder.path().join("dns.pcap")).expect("a file"));
    // And from one run into the next.
    let mut next = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", "-e", "packets | summarize n = count(dns)", "-r", "-", "-o", "csv", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    next.stdin.take().expect("a pipe").write_all(&direct.stdout).expect("takes it");
    let rows = next.wait_with_output().expect("it ends").stdout;
    assert_eq!(rows, b"n\n6\n");
}

#[test]
fn other_tools_read_what_is_written() {
    let folder = workplace();
    let query = "packets | mirror \"a.pcap\" | tag 9 | trim 80 | forward \"b.pcapng\"";
    weir(folder.path(), &["run", "-e", query, "-r", "fixtures/mixed.pcap", "-q"]);
    weir(
        folder.path(),
        &[
            "run",
            "-e",
            "packets | forward \"empty.pcapng\"",
            "-q",
            "-r",
            "fixtures/mixed.pcap",
            "port",
            "9999",
        ],
    );
    let n = fixture("mixed.pcap").len();
    let count = |tool: &str, args: &[&str]| -> Option<usize> {
        let output = Command::new(tool).args(args).current_dir(folder.path()).output();
        let Ok(output) = output else {
            skip("ends::other_tools_read_what_is_written", &format!("{tool} is not installed"));
            return None;
        };
        assert!(output.status.success(), "{tool} {args:?}: {}", errors(&output));
        Some(output.stdout.lines().count())
    };
    for (file, frames) in [("a.pcap", n), ("b.pcapng", n), ("empty.pcapng", 0)] {
        if let Some(lines) = count("tcpdump", &["-nn", "-t", "-q", "-r", file]) {
            assert_eq!(lines, frames, "tcpdump, {file}");
        }
        if let Some(lines) =
            count("tshark", &["-n", "-T", "fields", "-e", "frame.number", "-r", file])
        {
            assert_eq!(lines, frames, "tshark, {file}");
        }
    }
}

/// The walk over a written frame sees what it saw in the one that was read.
#[test]
fn a_tag_does_not_hide_what_is_behind_it() {
    let folder = workplace();
    let query = "packets | tag 100 | forward \"t.pcap\"";
    weir(folder.path(), &["run", "-e", query, "-r", "fixtures/vlan.pcap", "-q"]);
    let fields = "ip.src, sport, ip.dst, dport, ip.proto, tcp.flags";
    let before = asked(folder.path(), "fixtures/vlan.pcap", fields);
    assert_eq!(asked(folder.path(), "t.pcap", fields), before);
    // They are sound, too.
    let options = weir_capture::Options::default();
    let file = folder.path().join("t.pcap");
    let mut source = weir_capture::open(file.to_str().expect("a path"), &options).expect("opens");
    let (mut batch, mut layers) = (FrameBatch::new(), Layers::new());
    while source.fill(&mut batch).expect("no error") {
        classify(&batch, &mut layers);
    }
    assert_eq!((layers.cut, layers.malformed.iter().sum::<u64>()), (0, 0));
}

/// By every way out, with one worker and with two.
#[test]
fn no_true_address_leaves_where_it_is_anonymized() {
    let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    for name in ["web.pcap", "ipv6.pcap", "vlan.pcap", "qinq.pcap", "dns.pcap"] {
        let before = fixture(name);
        for (ways, workers) in [("pass", "1"), ("mirror \"m.pcap\" | forward \"f.pcap\"", "2")] {
            let folder = workplace();
            let query = format!("packets | anonymize ip.src, ip.dst with \"{key}\" | {ways}");
            let capture = format!("fixtures/{name}");
            let mut args = vec!["run", "-e", &query, "-r", &capture, "-j", workers];
            let files = match ways {
                "pass" => {
                    args.extend(["-w", "p.pcap"]);
                    vec!["p.pcap"]
                }
                _ => vec!["m.pcap", "f.pcap"],
            };
            weir(folder.path(), &args);
            for file in files {
                let after = records(&folder.path().join(file));
                assert_eq!(after.len(), before.len(), "{name} {file}");
                let addresses = addresses(&before);
                assert!(!addresses.is_empty() && addresses.len() < 100, "{name}");
                for ((_, _, len, frame), (_, _, true_len, true_frame)) in after.iter().zip(&before)
                {
                    assert_eq!((len, frame.len()), (true_len, true_frame.len()), "{name} {file}");
                    // Answers of DNS keep theirs, as documented: headers are looked at.
                    let headers = &frame[..frame.len().min(62)];
                    let kept = |a: &Vec<u8>| headers.windows(a.len()).any(|bytes| bytes == a);
                    assert!(!addresses.iter().any(kept), "{name} {file}: {frame:02x?}");
                }
            }
        }
    }
}

/// The addresses in IP headers after an EtherType in these frames.
fn addresses(records: &[Record]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for (_, _, _, frame) in records {
        for at in 0..frame.len().saturating_sub(42) {
            match frame[at..] {
                [0x08, 0x00, 0x45, ..] => {
                    found.extend([14, 18].map(|from| frame[at + from..at + from + 4].to_vec()));
                }
                [0x86, 0xdd, 0x60, ..] => {
                    found.extend([10, 26].map(|from| frame[at + from..at + from + 16].to_vec()));
                }
                _ => {}
            }
        }
    }
    found
}
