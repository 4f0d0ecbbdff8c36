//! The binary as its users meet it: arguments, streams, exit codes, signals.

#[path = "common/signal.rs"]
mod signal;

use assert_cmd::assert::OutputAssertExt as _;
use insta::assert_snapshot;
use signal::signal;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

const PER_SECOND: &str =
    "packets | where tcp | summarize n = count(), bytes = sum(len) by ip.dst every 1s";
const EACH: &str = "packets | project ts, number, ip.src, tcp.dport";
/// 2024-05-01 12:00 UTC.
const START: i64 = 1_714_564_800_000_000_000;

/// The binary, with nothing from the environment that changes what it prints.
fn weir<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).env_remove("NO_COLOR").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

fn run<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    weir(args).output().expect("the binary runs")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}

/// A capture of `n` packets, ten a second, from 10.0.0.1 to 10.0.0.2: TCP to port 80 and every
/// third UDP to port 53.
fn capture(n: usize) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for i in 0..n {
        let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
        let frame = if i % 3 == 2 { frame.udp(4000, 53) } else { frame.tcp(4000, 80) };
        let bytes = frame.payload(b"weir").bytes();
        header.put_record(&mut out, START + i as i64 * 100_000_000, bytes.len() as u32, &bytes);
    }
    out
}

/// A folder of files that goes away with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("writes");
        path.to_str().expect("a plain path").to_owned()
    }
}

fn queries() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries");
    let entries = |folder: &Path| fs::read_dir(folder).expect("the folder of queries");
    let mut files: Vec<_> = entries(&folder)
        .chain(entries(&folder.join("detectors")))
        .chain(entries(&folder.join("records")))
        .chain(entries(&folder.join("daily")))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "weir"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn help_is_as_reviewed() {
    for command in [
        "",
        "run",
        "watch",
        "serve",
        "merge",
        "check",
        "fmt",
        "explain",
        "fields",
        "list",
        "interfaces",
        "help",
        "top",
    ] {
        for flag in ["-h", "--help"] {
            let words = [command, flag];
            let output = run(words.iter().filter(|w| !w.is_empty()));
            assert_eq!(output.status.code(), Some(0), "{command} {flag}");
            let name = format!("{command}{flag}").replace("--", "_long_").replace('-', "_short_");
            assert_snapshot!(name, stdout(&output));
        }
    }
}

/// A source that a command does not take is neither in its help nor refused without a remedy.
#[test]
fn commands_offer_the_sources_that_they_take() {
    let long = |command: &str| stdout(&run([command, "--help"])).to_owned();
    for command in ["serve", "top"] {
        let help = long(command);
        for absent in ["ipfix://:", "--group <", "--until <"] {
            assert!(!help.contains(absent), "{command}: {absent}");
        }
        for (words, remedy) in [
            (&["-i", "kafka://h:9092/t"][..], "`weir run QUERY -i kafka://h:9092/t --group NAME`"),
            (&["-i", "ipfix://:4739"], "`weir run QUERY -i ipfix://:4739`"),
            (&["-i", "lo", "--group", "g"], "-i kafka://HOST:PORT/TOPIC --group NAME"),
            (&["-i", "lo", "--until", "end"], "-i kafka://HOST:PORT/TOPIC --group NAME"),
        ] {
            let output = run([&[command], words].concat());
            assert_eq!(output.status.code(), Some(2), "{command} {words:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains(remedy), "{command} {words:?}: {said}");
        }
    }
    assert!(!long("watch").contains("ipfix://:"));
    assert!(long("run").contains("ipfix://:4739") && long("run").contains("--group <"));
}

#[test]
fn help_is_a_command_too() {
    for command in ["", "run", "list", "help", "top", "top_talkers"] {
        let words = |line: &[&str]| {
            let output = run(line.iter().filter(|w| !w.is_empty()));
            assert_eq!(output.status.code(), Some(0), "{line:?}: {}", stderr(&output));
            stdout(&output).to_owned()
        };
        let (told, help) = (words(&["help", command]), words(&[command, "--help"]));
        // A word of the language is told after the command.
        let more = told.strip_prefix(&help).unwrap_or_else(|| panic!("{command}: {told}"));
        assert_eq!(more.is_empty(), command != "top", "{command}: {more}");
    }
    let output = run(["help", "chekc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `check`?"), "{}", stderr(&output));
}

#[test]
fn version() {
    let output = run(["--version"]);
    let first = concat!("weir ", env!("CARGO_PKG_VERSION"), " (");
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines[0].starts_with(first) && lines[0].ends_with(')'), "{lines:?}");
    assert!(lines[1].starts_with("features: ") && lines[2].starts_with("libpcap"), "{lines:?}");
    assert_eq!(stdout(&run(["-V"])), concat!("weir ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn exit_status_and_reason() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(5));
    let junk = folder.file("junk.pcap", "this is not a capture file at all");
    let check = |args: &[&str], status: i32, reason: &str| {
        let output = run(args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.contains(reason), "{args:?}: {message}");
        assert!(status == 0 || output.stdout.is_empty(), "{args:?}: rows");
    };
    check(&["run", "-e", EACH, "-r", &x], 0, "received   5 packets");
    check(&["run", "-e", EACH, "-r", "nowhere.pcap"], 1, "nowhere.pcap: No such file");
    check(&["run", "-e", EACH, "-r", &junk], 1, "junk.pcap: ");
    check(&[], 2, "Usage: weir");
    check(&["run", "-e", EACH], 2, "no capture is given");
    check(&["run", "-r", &x], 2, "no query is given");
    check(&["run", "-", "-r", "-"], 2, "both the query and the capture");
    check(&["run", "nowhere.weir", "-r", &x], 2, "nowhere.weir: there is no such file");
    check(&["run", "flow", "-r", &x], 2, "did you mean `flows`?");
    check(&["flwos", "-r", &x], 2, "did you mean `flows`?");
    check(&["chekc"], 2, "did you mean `check`?");
    check(&["flows", "-r", "-", "-r", "-"], 2, "one capture only");
    check(&["flows", "-r", &x, "-r", "nowhere.pcap"], 1, "nowhere.pcap: No such file");
    check(&["flows", "-r", &x, "-F", "nowhere.txt"], 2, "-F nowhere.txt: No such file");
    check(&["flows", "-r", &x, "-F", "nowhere.txt", "udp"], 2, "two capture filters");
    check(&["flows", "-r", &x, "--frobnicate"], 2, "--frobnicate");
    check(&["flows", "-r", &x, "-j", "0"], 2, "a number from 1, or `auto`");
    check(&["flows", "-r", &x, "--lateness", "soon"], 2, "a duration such as 500ms");
    check(
        &["run", "flows", "top", "-r", &x, "-o", "tsv"],
        2,
        "and TSV holds the rows of one; use -o table, -o json,",
    );
    check(&["flows", "-r", &x, "-o", "xml"], 2, "invalid value 'xml' for '--output");
    check(&["connections", "-r", &x, "-p", "treshold=3"], 2, "treshold");
    check(&["connections", "-r", &x, "-p", "threshold"], 2, "NAME=VALUE");
    check(&["connections", "-r", &x, "-p", "threshold=3", "-p", "threshold=4"], 2, "given twice");
    check(&["explain", "top", "-p", "n=3", "-p", "n=3"], 2, "-p n is given twice");
    check(&["fields", "quicksilver"], 2, "quicksilver");
    check(&["flows", "-r", &x, &junk], 1, "junk.pcap: ");
    let text = folder.file("text.txt", "this is not a capture file at all");
    check(&["flows", "-r", &x, &text], 2, "text.txt is a file, and no capture");
    check(&["run", "flows", "-r", &x, &text, "tcp"], 2, "text.txt is a file, and no capture");
    check(&["fmt", "flows"], 2, "give a file to fmt");
    check(&["run", "flows", "nowhere.weir", "-r", &x], 2, "nowhere.weir: there is no such file");
    check(&["run", "flows", "-", "-r", "-"], 2, "both the query and the capture");
    check(&["run", "-", "-", "-r", &x], 2, "one query only");
    check(&["run", "top", "sources", "-r", &x, "-o", "csv"], 2, "--out-dir FOLDER");
    check(
        &["run", "top", "sources", "-r", &x, "-p", "intervall=3s"],
        2,
        "did you mean `interval`?",
    );
    check(&["run", "top", "sources", "-r", &x, "-p", "q.n=3"], 2, "there are top, sources");
    check(&["run", "top", "sources", "-r", &x, "-p", "sources.n=3"], 2, "no param `n`");
    check(&["run", "top", "sources", "-r", &x, "-p", "n=3", "-p", "n=3"], 2, "given twice");
    check(&["run", "top", "conections", "-r", &x], 2, "did you mean the query `connections`?");
    check(&["run", "-r", &x, "--", "flows"], 2, "no query is given");
    let binary = folder.file("binary.weir", [0xd4, 0xc3, 0xb2, 0xa1]);
    let not_text = "binary.weir is not a text; to read a capture, use -r ";
    check(&["run", &binary, "-r", &x], 2, not_text);
    check(&["check", &binary], 2, not_text);
}

#[test]
fn packets_that_no_query_passes_are_not_written() {
    let check = |args: &[&str], expected: &str| {
        let output = run(args);
        assert_eq!((output.status.code(), stderr(&output)), (Some(2), expected), "{args:?}");
    };
    let writing = "error: -w y.pcap: the query passes no packets; end it with `| pass`, or name \
                   the output there: `| forward \"y.pcap\"`\n  try: weir help pass\n";
    check(&["flows", "-r", "x.pcap", "-w", "y.pcap"], writing);
}

#[test]
fn a_capture_is_cut_into_files() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(100));
    let out = folder.0.path().join("out.pcap");
    let out = out.to_str().expect("a plain path");
    let pass = ["run", "-e", "packets | pass", "-r", &x, "-w", out];
    let output = run([&pass[..], &["-C", "2k", "-W", "3"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let packets = |name: &str| {
        let counted = run(["run", "-e", EACH, "-q", "-r", name]);
        assert_eq!(counted.status.code(), Some(0), "{}", stderr(&counted));
        stdout(&counted).lines().count()
    };
    let cut: Vec<usize> = (0..3).map(|n| packets(&format!("{out}{n}"))).collect();
    assert!(cut.iter().all(|n| (1..100).contains(n)), "{cut:?}");
    assert!(!Path::new(out).exists() && !Path::new(&format!("{out}3")).exists());
    let output = run(["run", "-e", "packets | pass", "-r", &x, "-w", "-", "-C", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("-w needs a name for -C"), "{}", stderr(&output));
    let output = run([&pass[..], &["-W", "3"]].concat());
    assert_eq!(output.status.code(), Some(2), "-W without -C");
}

/// By the packets' times, so that it comes out the same whenever it is done, and by any workers.
#[test]
fn a_capture_is_cut_by_time() {
    let folder = Folder::new();
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for second in 0..300i64 {
        header.put_record(&mut bytes, second * 1_000_000_000, 60, &[0; 60]);
    }
    let x = folder.file("x.pcap", bytes);
    let cut = |to: &str, more: &[&str]| {
        let out = tempfile::tempdir().expect("a folder");
        let to = out.path().join(to);
        let to = to.to_str().expect("a plain path");
        let pass = ["run", "-e", "packets | pass", "-r", &x, "-w", to, "-G", "100"];
        let output = run([&pass[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut files: Vec<(String, u64)> = std::fs::read_dir(out.path())
            .expect("a folder")
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, (std::fs::metadata(path).expect("there").len() - 24) / 76)
            })
            .collect();
        files.sort();
        (files, stderr(&output).to_owned())
    };
    let named = |files: &[(&str, u64)]| -> Vec<(String, u64)> {
        files.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
    };
    for workers in ["1", "3"] {
        let (files, _) = cut("x-%H%M%S.pcap", &["-j", workers]);
        let want = [("x-000000.pcap", 100), ("x-000140.pcap", 100), ("x-000320.pcap", 100)];
        assert_eq!(files, named(&want));
    }
    let (files, _) = cut("%s.", &["-C", "5k"]);
    let want = [("0.", 68), ("0.1", 32), ("100.", 68), ("100.1", 32), ("200.", 68), ("200.1", 32)];
    assert_eq!(files, named(&want));
    let (files, said) = cut("%s", &["-W", "2"]);
    assert_eq!(files, named(&[("0", 100), ("100", 100)]));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("passed 200 packets") && said.contains("after its last file"), "{said}");
    assert!(!said.contains("interrupted"), "{said}");

    let told = |to: &str| {
        let output = run(["run", "-e", "packets | pass", "-r", &x, "-w", to, "-G", "9"]);
        assert_eq!(output.status.code(), Some(1));
        stderr(&output).to_owned()
    };
    assert!(told("x.pcap").contains("x.pcap: -G needs a time in the name, such as -w x-%Y"));
    assert!(told("no/such/%s.pcap").contains("no/such/%s.pcap: there is no folder no/such"));
}

#[test]
fn errors_in_a_query_name_file_and_place() {
    let folder = Folder::new();
    let query = folder.file("typo.weir", "packets\n| where tcp.dprot == 80\n");
    for command in ["check", "explain"] {
        let output = run([command, &query]);
        assert_eq!(output.status.code(), Some(2));
        let message = stderr(&output);
        assert!(message.contains("typo.weir:2:"), "{message}");
        assert!(message.contains("tcp.dport"), "{message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_filter_may_stand_in_a_file() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(30));
    let filter = folder.file("filter.txt", "# DNS only\nudp  # not TCP\n\nport 53\n");
    let output = run(["run", "-e", EACH, "-r", &x, "-F", &filter]);
    if stderr(&output).contains("could not be loaded") {
        return eprintln!("SKIPPED a_filter_may_stand_in_a_file: no libpcap");
    }
    assert_eq!(stdout(&output).lines().count(), 10, "{}", stderr(&output));
}

/// A mistake in one of several queries stops all before anything runs, and is told with its file.
#[test]
fn one_wrong_query_stops_all() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(5));
    let good =
        folder.file("good.weir", "param n: int = 2\npackets | where len > n | project number");
    let bad = folder.file("bad.weir", "packets\n| where tcp.dprot == 80\n");
    let worse = folder.file("worse.weir", "packets | limit");
    let out = folder.0.path().join("out");
    let out = out.to_str().expect("a plain path");
    let output = run(["run", &good, &bad, &worse, "-r", &x, "--out-dir", out]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let message = stderr(&output);
    assert!(message.contains("bad.weir:2:") && message.contains("worse.weir:1:"), "{message}");
    assert!(!Path::new(out).exists(), "nothing ran");
    let output = run(["run", "-e", "packets | limit 1", "-e", "packets | lmit 1", "-r", &x]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("-e 2:1:"), "{}", stderr(&output));
    // A param goes to those that have it.
    let output = run(["run", &good, "-e", EACH, "-r", &x, "-p", "n=100000", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).lines().all(|line| line.starts_with("{\"_pipeline\":\"e\"")));
    assert_eq!(stdout(&output).lines().count(), 5);
}

#[test]
fn each_output_has_a_file() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(6));
    let two = "let udp_ones = packets | where udp | project number
               packets | where tcp | project number, dport";
    let query = folder.file("two.weir", two);
    let out = folder.0.path().join("a/b");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let write = |args: &[&str]| {
        let (folder, path) = (out.to_str().expect("a plain path"), ["--out-dir"]);
        let output = weir(["run", "-r", &x]).args(args).args(path).arg(folder).output();
        let output = output.expect("runs");
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""), "{}", stderr(&output));
    };
    write(&[&query, "-o", "csv"]);
    assert_eq!(read("two.udp_ones.csv"), "number\n3\n6\n");
    assert_eq!(read("two.csv"), "number,dport\n1,80\n2,80\n4,80\n5,80\n");
    write(&[
        &query,
        "-e",
        "packets | limit 1 | project number",
        "-e",
        "packets | summarize count()",
    ]);
    assert_eq!(read("e1.jsonl"), "{\"number\":1}\n");
    assert_eq!(read("e2.jsonl"), "{\"count\":6}\n");
    assert_eq!(read("two.udp_ones.jsonl"), "{\"number\":3}\n{\"number\":6}\n");
    write(&["-e", "packets | summarize count()", "-o", "table"]);
    assert_eq!(read("e.txt"), "count\n    6\n");
    write(&[&query, "-o", "tsv"]);
    assert_eq!(read("two.udp_ones.tsv"), "number\n3\n6\n");
    assert_eq!(read("two.tsv"), "number\tdport\n1\t80\n2\t80\n4\t80\n5\t80\n");
    write(&["-e", "packets | where arp | project number", "-o", "tsv"]);
    assert_eq!(read("e.tsv"), "number\n", "no rows still name the columns");
    write(&[&query, "-o", "markdown"]);
    let rows = "| number |\n| -----: |\n|      3 |\n|      6 |\n";
    assert_eq!(read("two.udp_ones.md"), rows);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn queries_come_before_the_filter() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(30));
    let query = folder.file("q.weir", "packets | summarize packets = count()");
    let rows = |args: &[&str]| {
        let output = weir(["run", "-r", &x, "-o", "json"]).args(args).output().expect("runs");
        (output.status.code(), stdout(&output).to_owned(), stderr(&output).to_owned())
    };
    let (status, found, message) = rows(&[&query, &query, "udp", "port", "53"]);
    if message.contains("could not be loaded") {
        return eprintln!("SKIPPED queries_come_before_the_filter: no libpcap");
    }
    let expected = "{\"_pipeline\":\"q\",\"packets\":10}\n{\"_pipeline\":\"q-2\",\"packets\":10}\n";
    assert_eq!((status, found.as_str()), (Some(0), expected), "{message}");
    assert_eq!(rows(&[&query, "--", "udp"]).1, "{\"packets\":10}\n");
    assert_eq!(rows(&[&query, "udp", "--", "port", "53"]).1, "{\"packets\":10}\n");
}

#[test]
fn rows_in_each_format() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(20));
    let rows = |format: &str, time: &str| {
        let output = run(["run", "-e", PER_SECOND, "-r", &x, "-o", format, "--time", time]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    assert_snapshot!(rows("json", "rfc3339"), @r#"
    {"ts":"2024-05-01T12:00:00Z","ip.dst":"10.0.0.2","n":7,"bytes":406}
    {"ts":"2024-05-01T12:00:01Z","ip.dst":"10.0.0.2","n":7,"bytes":406}
    "#);
    assert_snapshot!(rows("csv", "epoch"), @r#"
    ts,ip.dst,n,bytes
    1714564800.000000000,10.0.0.2,7,406
    1714564801.000000000,10.0.0.2,7,406
    "#);
    assert_snapshot!(rows("json", "epoch-ns"), @r#"
    {"ts":1714564800000000000,"ip.dst":"10.0.0.2","n":7,"bytes":406}
    {"ts":1714564801000000000,"ip.dst":"10.0.0.2","n":7,"bytes":406}
    "#);
    assert_snapshot!(rows("table", "rfc3339"), @r#"
    ts                    ip.dst    n  bytes
    2024-05-01T12:00:00Z  10.0.0.2  7    406
    2024-05-01T12:00:01Z  10.0.0.2  7    406
    "#);
}

#[test]
fn columns_have_the_names_of_other_tools() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(3));
    let header = |query: &str, names: &str| {
        let output = run(["run", "-e", query, "-r", &x, "-o", "csv", "--names", names]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).lines().next().expect("a header").to_owned()
    };
    let flows = "packets | where tcp \
                 | summarize packets = count(), first = min(ts), mine = max(len) by ip.src, dport";
    assert_eq!(header(flows, "native"), "ip.src,dport,packets,first,mine");
    assert_eq!(header(flows, "zeek"), "id.orig_h,id.resp_p,orig_pkts,ts,mine");
    assert_eq!(
        header(flows, "ipfix"),
        "sourceIPv4Address,sourceIPv6Address,destinationTransportPort,packetDeltaCount,\
         flowStartNanoseconds,mine"
    );
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(3));
    let query = "packets | summarize first = min(ts) every 1s";
    let output = run(["run", "-e", query, "-r", &x, "--names", "zeek"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("`ts` and `first` would both be called `ts`"));
}

#[test]
fn json_lines_unless_on_a_terminal() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(3));
    let output = run(["run", "-e", EACH, "-r", &x]);
    let rows: Vec<serde_json::Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["ip.src"], "10.0.0.1");
    assert_eq!(rows[2]["tcp.dport"], serde_json::Value::Null);
}

#[test]
fn the_ledger_goes_to_standard_error_and_quiet_drops_it_where_nothing_was_lost() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(20));
    let output = run(["run", "-e", PER_SECOND, "-r", &x]);
    assert_snapshot!(stderr(&output), @r"
    received   20 packets
    processed  20
    rows        2
    ");
    let output = run(["run", "-e", PER_SECOND, "-r", &x, "-q"]);
    assert_eq!(stderr(&output), "");
}

#[test]
fn malformed_packets_are_told_by_reason() {
    let folder = Folder::new();
    let mut bytes = capture(3);
    // The data offset of the first packet's TCP header, after file, record, Ethernet and IP header.
    bytes[24 + 16 + 14 + 20 + 12] = 0x10;
    let x = folder.file("x.pcap", bytes);
    let output = run(["run", "-e", EACH, "-r", &x]);
    assert_eq!(output.status.code(), Some(0));
    assert_snapshot!(stderr(&output), @r"
    received   3 packets
    processed  3: 2 whole, 1 malformed (tcp data offset 1)
    rows       3
    ");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_last_words_are_a_capture_filter() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(30));
    for words in [&["udp", "port", "53"][..], &["udp port 53"]] {
        let output = weir(["run", "-e", EACH, "-r", &x]).args(words).output().expect("runs");
        if stderr(&output).contains("could not be loaded") {
            return eprintln!("SKIPPED the_last_words_are_a_capture_filter: no libpcap");
        }
        assert_eq!(stdout(&output).lines().count(), 10, "{}", stderr(&output));
        let ledger = "received   30 packets\nfiltered   20 by the capture filter\n\
                      processed  10\nrows       10\n";
        assert_eq!(stderr(&output), ledger);
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_filter_that_can_match_nothing_on_a_link_type_does_not_end_the_run() {
    let sections = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sections.pcapng");
    let sections = sections.to_str().expect("a plain path");
    let lines = |filter: &[&str]| {
        let output = weir(["run", "-e", EACH, "-r", sections]).args(filter).output().expect("runs");
        (output.status.code(), stdout(&output).lines().count(), stderr(&output).to_owned())
    };
    let (_, all, _) = lines(&[]);
    let (status, arp, message) = lines(&["arp"]);
    if message.contains("could not be loaded") {
        return eprintln!("SKIPPED a filter on two link types: no libpcap");
    }
    assert_eq!(status, Some(0), "{message}");
    assert!(0 < arp && arp < all, "{arp} of {all}");
    let (status, ip, message) = lines(&["not", "arp"]);
    assert_eq!((status, ip), (Some(0), all - arp), "{message}");
}

#[test]
fn params_reach_the_query() {
    let folder = Folder::new();
    let query =
        folder.file("p.weir", "param port: int = 1\npackets | where tcp.dport == port | limit 1");
    let x = folder.file("x.pcap", capture(6));
    let count = |args: &[&str]| {
        let output = weir(["run", &query, "-r", &x]).args(args).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).lines().count()
    };
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&["-p", "port=80"]), 1);
}

#[test]
fn standard_input_is_a_capture_or_a_query() {
    let folder = Folder::new();
    let with_stdin = |args: &[&str], input: &[u8]| {
        let mut command = assert_cmd::Command::from_std(weir(args));
        command.write_stdin(input).output().expect("runs")
    };
    let output = with_stdin(&["run", "-e", EACH, "-r", "-"], &capture(4));
    assert_eq!(stdout(&output).lines().count(), 4, "{}", stderr(&output));
    let x = folder.file("x.pcap", capture(4));
    let output = with_stdin(&["run", "-", "-r", &x], EACH.as_bytes());
    assert_eq!(stdout(&output).lines().count(), 4, "{}", stderr(&output));
}

#[test]
fn stops_after_so_many_packets() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(1000));
    let output = run(["run", "-e", EACH, "-r", &x, "-c", "300"]);
    assert_eq!(stdout(&output).lines().count(), 300);
    assert!(stderr(&output).contains("received   300 packets"), "{}", stderr(&output));
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn packets_beyond_the_count_are_not_received() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(300));
    let output = run(["run", "-e", EACH, "-r", &x, "-c", "2", "udp"]);
    if stderr(&output).contains("could not be loaded") {
        return eprintln!("SKIPPED packets_beyond_the_count_are_not_received: no libpcap");
    }
    assert_snapshot!(stderr(&output), @r"
    received   6 packets
    filtered   4 by the capture filter
    processed  2
    rows       2
    ");
}

#[test]
fn any_number_of_workers_gives_the_same_rows() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(1000));
    let rows = |workers: &str| {
        let output = run(["run", "-e", PER_SECOND, "-r", &x, "-j", workers]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let one = rows("1");
    assert_eq!(one.lines().count(), 100);
    assert_eq!(rows("4"), one);
    assert_eq!(rows("auto"), one);
}

#[test]
fn testing_a_query_reads_no_capture() {
    let output = run(["run", "-T", "-e", EACH, "-r", "nowhere.pcap"]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), "", ""));
    let output = run(["run", "-T", "-e", "packets | were tcp"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("where"), "{}", stderr(&output));
    let output = run(["run", "-T", "-e", EACH, "tcp", "prot", "80"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("capture filter"), "{}", stderr(&output));
}

#[test]
fn a_torn_capture_gives_its_rows_then_the_ledger_then_the_error() {
    let folder = Folder::new();
    let mut bytes = capture(10);
    bytes.truncate(bytes.len() - 5);
    let x = folder.file("torn.pcap", bytes);
    let output = run(["run", "-e", EACH, "-r", &x]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 9);
    let message = stderr(&output);
    let (ledger, error) = message.split_once("error: ").expect("an error");
    assert!(ledger.contains("received   9 packets"), "{message}");
    assert!(error.contains("torn.pcap") && error.contains("after 9 whole records"), "{message}");
}

#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(50_000));
    let mut child = weir(["run", "-e", EACH, "-r", &x])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut rows = BufReader::new(child.stdout.take().expect("a pipe"));
    rows.read_line(&mut String::new()).expect("a row");
    drop(rows);
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn a_slow_pipe_shows_the_rows_of_each_packet_at_once() {
    // Two packets of TCP, so that the records are of one length.
    let file = capture(2);
    let (header, records) = file.split_at(24);
    for args in
        [&["-o", "json"][..], &["-o", "csv"], &["-o", "tsv"], &["-o", "table"], &["-j", "2"]]
    {
        let mut child = weir(["run", "-e", "packets | project number", "-r", "-", "-q"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("runs");
        let mut wire = child.stdin.take().expect("a pipe");
        let mut rows = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        wire.write_all(header).expect("writes");
        let headed = ["csv", "tsv", "table"].iter().any(|format| args.contains(format));
        for (i, record) in records.chunks(records.len() / 2).enumerate() {
            wire.write_all(record).and_then(|()| wire.flush()).expect("writes");
            if i == 0 && headed {
                assert_eq!(rows.next().expect("a line").expect("text").trim(), "number");
            }
            // Without the rest of the capture, or this would wait for ever.
            let row = rows.next().expect("a row").expect("text");
            let (number, json) = (i + 1, format!("{{\"number\":{}}}", i + 1));
            assert!(row == json || row.trim() == number.to_string(), "{args:?}: {row}");
        }
        drop(wire);
        assert!(rows.next().is_none());
        assert_eq!(child.wait().expect("ends").code(), Some(0));
    }
}

#[test]
fn rows_that_cannot_be_written_are_an_error() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else { return };
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(5));
    let output = weir(["run", "-e", EACH, "-r", &x]).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("writing rows: No space left"), "{}", stderr(&output));
}

#[test]
fn colors_only_when_asked_away_from_a_terminal() {
    let bad = ["check", "-e", "packets | were tcp"];
    let colored = |command: &mut Command| {
        let output = command.output().expect("runs");
        stderr(&output).contains('\u{1b}')
    };
    assert!(!colored(&mut weir(bad)));
    assert!(colored(weir(bad).args(["--color", "always"])));
    assert!(!colored(weir(bad).args(["--color", "never"])));
    assert!(!colored(weir(bad).env("NO_COLOR", "1")));
    assert!(colored(weir(bad).args(["--color", "always"]).env("NO_COLOR", "1")));
}

#[test]
fn ctrl_c_ends_a_silent_pipe_with_rows_and_ledger() {
    let mut child = weir(["run", "-e", PER_SECOND, "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    // The pipe stays open to the end of the test.
    let mut wire = child.stdin.take().expect("a pipe");
    wire.write_all(&capture(100)).and_then(|()| wire.flush()).expect("writes");
    let mut rows = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    rows.read_line(&mut first).expect("a window closes while the pipe is open");
    signal(child.id(), "-INT");
    let mut rest = String::new();
    rows.read_to_string(&mut rest).expect("rows");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(1 + rest.lines().count(), 10, "the last window, too: {rest}");
    assert!(stderr(&output).contains("received   100 packets"), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("\ninterrupted\n"), "{}", stderr(&output));
    drop(wire);
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(50_000));
    // All rows come at the end of the input, more than a pipe holds, and nobody reads them: from
    // the first row on, the run can't end well.
    let all_at_the_end = "packets | summarize n = count() by number";
    let mut child = weir(["run", "-e", all_at_the_end, "-r", &x])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    let mut rows = BufReader::new(child.stdout.take().expect("a pipe"));
    rows.read_line(&mut String::new()).expect("a row");
    let status = loop {
        // One that has ended takes signals until it is waited for.
        signal(child.id(), "-INT");
        if let Some(status) = child.try_wait().expect("asks") {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn formatting_is_idempotent_and_the_library_is_formatted() {
    for path in queries() {
        let name = path.display().to_string();
        let once = run(["fmt", &name]);
        assert_eq!(once.status.code(), Some(0), "{name}: {}", stderr(&once));
        let folder = Folder::new();
        let copy = folder.file("once.weir", &once.stdout);
        assert_eq!(stdout(&run(["fmt", &copy])), stdout(&once), "{name}");
        weir(["fmt", "--check", &name]).assert().success();
    }
}

#[test]
fn fmt_checks_and_writes() {
    let folder = Folder::new();
    let file = folder.file("q.weir", "packets|where   tcp\n");
    let check = run(["fmt", "--check", &file]);
    assert_eq!(check.status.code(), Some(1));
    assert!(stderr(&check).contains("q.weir: not formatted"), "{}", stderr(&check));
    weir(["fmt", "-w", &file]).assert().success().stdout("");
    weir(["fmt", "--check", &file]).assert().success();
    assert_eq!(fs::read_to_string(&file).expect("reads"), "packets\n| where tcp\n");
    let broken = folder.file("b.weir", "packets | where (");
    weir(["fmt", "-w", &broken]).assert().code(2);
    assert_eq!(fs::read_to_string(&broken).expect("reads"), "packets | where (");
}

#[test]
fn fmt_reads_standard_input() {
    let mut command = assert_cmd::Command::from_std(weir(["fmt"]));
    command.write_stdin("packets|limit 3").assert().success().stdout("packets\n| limit 3\n");
}

#[test]
fn every_query_of_the_library_is_listed_checked_explained_and_runs() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(50));
    let list = run(["list"]);
    let listed: Vec<serde_json::Value> =
        stdout(&list).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(listed.len(), queries().len());
    for query in listed {
        let name = query["name"].as_str().expect("a name");
        assert!(query["about"].as_str().is_some_and(|about| about.len() > 10), "{query}");
        weir(["check", name]).assert().success().stderr("");
        assert!(!run(["explain", name]).stdout.is_empty(), "{name}");
        // Some write captures where they run.
        let mut command = weir([name, "-r", &x]);
        let output = command.current_dir(folder.0.path()).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    }
}

#[test]
fn the_list_tells_each_param_with_its_comment() {
    let table = run(["list", "-o", "table"]);
    let lines: Vec<&str> = stdout(&table).lines().collect();
    let at = lines.iter().position(|l| l.starts_with("connections ")).expect("a line");
    assert_snapshot!(lines[at..at + 3].join("\n"), @r"
    connections     servers to which many TCP connections are opened
                    threshold: int = 40      connections in one window; report above this many
                    interval: duration = 1s  width of a window
    ");
    let list = run(["list"]);
    let line = stdout(&list).lines().find(|l| l.contains("\"connections\"")).expect("a line");
    let query: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_snapshot!(query["params"].as_str().expect("text"), @"threshold: int = 40 (connections in one window; report above this many), interval: duration = 1s (width of a window)");
}

#[test]
fn a_query_goes_by_short_name_file_name_or_path() {
    let folder = Folder::new();
    let x = folder.file("x.pcap", capture(50));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries/source_counts.weir");
    let path = path.to_str().expect("a plain path");
    let rows = stdout(&run(["sources", "-r", &x])).to_owned();
    assert_eq!(rows.lines().count(), 5);
    assert_eq!(stdout(&run(["source_counts", "-r", &x])), rows);
    assert_eq!(stdout(&run(["run", "sources", "-r", &x])), rows);
    assert_eq!(stdout(&run(["run", path, "-r", &x])), rows);
}

#[test]
fn fields_can_be_searched() {
    let output = run(["fields", "dport", "-o", "table"]);
    assert_snapshot!(stdout(&output), @r"
    name       type  doc
    dport      int   Destination port of TCP, UDP, UDP-Lite, SCTP or DCCP; absent in later fragments, unless --fragments finds it.
    tcp.dport  int   TCP destination port.
    udp.dport  int   UDP destination port.
    flow       key   One direction of a connection: the 5-tuple of addresses, ports and protocol. Parts: ip.src, sport, ip.dst, dport, ip.proto.
    ");
    let all = run(["fields"]);
    let names: Vec<serde_json::Value> =
        stdout(&all).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let known = weir_packet::fields::FIELDS.len() + weir_packet::fields::KEYS.len();
    assert_eq!(names.len(), known + weir_packet::repeated::REPEATED.len());
}

#[test]
fn explain_shows_the_stages() {
    let output = run(["explain", "-e", PER_SECOND, "-j", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("summarize"), "{}", stdout(&output));
    assert!(stdout(&output).starts_with("workers: 2;"), "{}", stdout(&output));
}

#[test]
fn explain_shows_the_params_with_their_values() {
    let folder = Folder::new();
    let query = "param port: int = 80  # of the server\nparam n: int = 3\n\
                 packets | where dport == port | limit n";
    let query = folder.file("q.weir", query);
    let output = run(["explain", &query, "-p", "port=443"]);
    let (params, plan) = stdout(&output).split_once("\n\n").expect("two parts");
    assert_snapshot!(params, @r"
    param port: int = 443  # of the server; default 80
    param n: int = 3
    ");
    assert!(plan.starts_with("workers: 1;"), "{plan}");
}

#[test]
fn trailing_bytes_behind_gzip_are_told_after_the_rows() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/web.pcap.gz");
    let mut bytes = fs::read(fixture).expect("reads");
    let folder = Folder::new();
    let whole = folder.file("web.gz", &bytes);
    bytes.extend_from_slice(b"junk");
    let trailed = folder.file("junk.gz", &bytes);
    let rows = run(["run", "-e", EACH, "-r", &whole]).stdout;
    let output = run(["run", "-e", EACH, "-r", &trailed]);
    assert_eq!((output.status.code(), &output.stdout), (Some(1), &rows));
    let message = stderr(&output);
    assert!(message.contains("junk.gz: there are trailing bytes after the gzip"), "{message}");
}

#[test]
fn fields_mean_the_packet_that_headers_chooses() {
    let folder = Folder::new();
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let inner = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).tcp(3, 80).bytes();
    let outer = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(9, 4789);
    let outer = outer.payload(&[8, 0, 0, 0, 0, 0, 1, 0]).payload(&inner).bytes();
    header.put_record(&mut bytes, START, outer.len() as u32, &outer);
    let file = folder.file("vxlan.pcap", bytes);
    let rows = |headers: &[&str]| {
        let query = "packets | project ip.src, dport, tunnel.src";
        let args = ["run", "-e", query, "-r", &file, "-o", "csv"];
        stdout(&run(args.iter().chain(headers))).lines().nth(1).expect("a row").to_owned()
    };
    assert_eq!(rows(&[]), "10.0.0.1,4789,");
    assert_eq!(rows(&["--headers", "outer"]), "10.0.0.1,4789,");
    assert_eq!(rows(&["--headers", "inner"]), "192.0.2.1,80,10.0.0.1");
}

/// The port is said once: fields, `anonymize` and what probes compare follow.
#[test]
fn a_tunnel_may_have_a_port_of_its_own() {
    let folder = Folder::new();
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let inner = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).tcp(3, 80).bytes();
    let outer = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(9, 8472);
    let outer = outer.payload(&[8, 0, 0, 0, 0, 0, 1, 0]).payload(&inner).bytes();
    header.put_record(&mut bytes, START, outer.len() as u32, &outer);
    let file = folder.file("vxlan.pcap", bytes);
    let rows = |args: &[&str]| {
        let output = run([&["run", "-r", &file, "-o", "csv"], args].concat());
        stdout(&output).lines().nth(1).unwrap_or("").to_owned()
    };
    let query = ["-e", "packets | project ip.src, dport, tunnel.src", "--headers", "inner"];
    assert_eq!(rows(&query), "10.0.0.1,8472,");
    let port = ["--tunnel-port", "geneve=1,vxlan=8472"];
    assert_eq!(rows(&[&query[..], &port].concat()), "192.0.2.1,80,10.0.0.1");

    let key = "0123456789abcdef0123456789abcdef";
    let written = folder.0.path().join("out.pcap").display().to_string();
    let query = format!("packets | anonymize ip.src, ip.dst with \"{key}\" | pass");
    let anonymize = ["run", "-r", &file, "-e", &query, "-w", &written];
    let output = run(anonymize);
    assert!(stderr(&output).contains("withheld   1 packet"), "{}", stderr(&output));
    let output = run([&anonymize[..], &port].concat());
    assert!(!stderr(&output).contains("withheld"), "{}", stderr(&output));
    let out = std::fs::read(&written).expect("it was written");
    let addresses = [[192, 0, 2, 1], [192, 0, 2, 2], [10, 0, 0, 1], [10, 0, 0, 2]];
    assert!(!addresses.iter().any(|address| out.windows(4).any(|four| four == address)));

    for (wrong, why) in [
        ("vxlan=0", "expected a number from 1 to 65535"),
        ("l2tp=1701", "no tunnel over UDP"),
        ("vxlan=1,gtp=1", "port 1 is named twice"),
    ] {
        let output = run(["run", "-r", &file, "-e", "packets", "--tunnel-port", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(why), "{wrong}: {}", stderr(&output));
    }
}

/// The parts are said once, and all that keys by flow, conn or hosts follows.
#[test]
fn flows_are_told_apart_by_what_the_run_says() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vlans.pcap");
    let capture = capture.to_str().expect("a plain path");
    let rows = |args: &[&str]| {
        let output = run([args, &["-r", capture, "-o", "csv", "-q"]].concat());
        assert_eq!(stderr(&output), "", "{args:?}");
        let text = stdout(&output);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let by_vlan = ["--flow-key", "vlan"];
    let packets = "packets | summarize n = count() by";
    for key in ["flow", "conn", "hosts"] {
        let query = format!("{packets} {key} | project n");
        assert_eq!(rows(&["run", "-e", &query]), ["n", "3"], "{key}");
        let query = format!("{packets} {key} | project n, vlan.id, vlan.inner");
        for workers in ["1", "2", "4"] {
            let args = ["run", "-e", &query, "-j", workers];
            let expected = ["n,vlan.id,vlan.inner", "1,10,", "2,20,"];
            assert_eq!(rows(&[&args[..], &by_vlan].concat()), expected, "{key}");
        }
    }
    let query = "packets | summarize flows = distinct(flow), connections = distinct(conn)";
    assert_eq!(rows(&["run", "-e", query]), ["flows,connections", "1,1"]);
    let query = ["run", "-e", query, "--flow-key", "tunnel,vlan"];
    assert_eq!(rows(&query), ["flows,connections", "2,2"]);
    assert_eq!(rows(&["ipfix"]).len(), 2);
    let records = rows(&["ipfix", "--flow-key", "vlan"]);
    assert!(records[0].contains("vlan.id,vlan.inner"), "{records:?}");
    assert_eq!(records.len(), 3);
    let explained = run(["explain", "-e", &format!("{packets} flow"), "--flow-key", "vlan"]);
    assert!(stdout(&explained).contains("vlan.id"), "{}", stdout(&explained));
    let output = run(["run", "-e", "packets", "-r", capture, "--flow-key", "mpls"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn later_fragments_are_counted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fragments.pcap");
    let file = file.to_str().expect("a plain path");
    let query = "packets | summarize n = count(ip.frag_offset > 0 and exists(sport))";
    let output = run(["run", "-e", query, "-r", file, "-o", "csv", "--fragments"]);
    let found = stdout(&output).lines().nth(1).expect("a row");
    assert_ne!(found, "0");
    let line = format!("fragments  {found} of ");
    assert!(stderr(&output).contains(&line), "{}", stderr(&output));
}

/// Each packet's time is so many milliseconds after the first capture's start.
fn windows_of(times_ms: &[i64]) -> (String, String) {
    let folder = Folder::new();
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for ms in times_ms {
        header.put_record(&mut bytes, START + ms * 1_000_000, 60, &[0; 60]);
    }
    let file = folder.file("x.pcap", bytes);
    let query = "packets | summarize n = count() every 500ms";
    let output = run(["run", "-e", query, "-r", &file, "-o", "csv", "--time", "epoch-ns"]);
    let rows = stdout(&output).lines().skip(1);
    let shown = rows.map(|row| {
        let (start, n) = row.split_once(',').expect("two columns");
        let ms = (start.parse::<i64>().expect("a time") - START) / 1_000_000;
        format!("{ms}: {n}")
    });
    (shown.collect::<Vec<_>>().join(", "), stderr(&output).to_owned())
}

/// Event time as docs/language.md has it: a capture of few packets goes by no other rules.
#[test]
fn a_packet_is_late_before_the_fourth_has_come() {
    let (rows, ledger) = windows_of(&[0, 2000, 100]);
    assert_eq!(rows, "0: 1, 2000: 1");
    assert!(ledger.contains("late") && !ledger.contains("wild"), "{ledger}");
}

#[test]
fn a_wrong_time_of_the_first_packet_makes_no_other_late() {
    let year = 365 * 86_400_000;
    for wrong in [year, -year] {
        let (rows, ledger) = windows_of(&[wrong, 0, 100, 700, 800, 900, 1300]);
        assert!(rows.contains("0: 2, 500: 3, 1000: 1"), "{rows}");
        assert!(!ledger.contains("late"), "{ledger}");
        assert_eq!(ledger.contains("wild"), wrong > 0, "{ledger}");
    }
}
