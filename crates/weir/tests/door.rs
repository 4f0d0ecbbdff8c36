//! The first commands of people who know other tools: what is accepted, and what is refused. Every
//! refusal ends with a command line, and each of these runs.

use insta::assert_snapshot;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Command lines that mean something, and are not right.
const WRONG: &str = include_str!("door/wrong.txt");

/// Command lines that are accepted, and what their output has.
const RIGHT: &[(&str, &str)] = &[
    ("weir x.pcap", "Findings of "),
    ("weir x.pcap tcp port 80", "filter    tcp port 80"),
    ("weir x.pcap 'tcp port 80'", "filter    tcp port 80"),
    ("weir -r x.pcap", "Findings of "),
    ("weir folder", "packets"),
    ("weir folder/ y.pcap", "packets"),
    ("weir 'where dns.rcode == 3' x.pcap", "\"len\":91"),
    ("weir x.pcap 'where dns.rcode == 3 | summarize n = count()'", "\"n\":1"),
    ("weir 'packets | limit 1' x.pcap", "\"ts\""),
    ("weir -e 'limit 1' x.pcap", "\"ts\""),
    ("weir run 'packets | limit 1' x.pcap", "\"ts\""),
    ("weir run 'limit 1' -r x.pcap", "\"ts\""),
    ("weir my.weir x.pcap", "\"n\":"),
    ("weir 'hosts | where hears_from > 1' x.pcap", "\"hears_from\":2"),
    ("weir x.pcap 'flow_meter.totals | where flows > 1'", "\"flows\":"),
    ("weir sources x.pcap -p interval=10s", "\"packets\":"),
    ("weir 'sources | top 1 by packets' x.pcap -p interval=10s", "\"packets\":"),
    ("weir run -e 'port_scan | project ts, alert.message' x.pcap", "alert.message"),
    ("weir run my.weir x.pcap y.pcap", "\"n\":"),
    ("weir flows x.pcap", "\"packets\":"),
    ("weir flows x.pcap udp", "\"ip.proto\":17"),
    ("weir flows udp x.pcap", "\"ip.proto\":17"),
    ("weir flows -r x.pcap y.pcap", "\"packets\":"),
    ("weir flows - < x.pcap", "\"packets\":"),
    ("weir - < x.pcap", "Findings of "),
    ("weir tcp port 80 x.pcap", "filter    tcp port 80"),
    ("weir flows hosts x.pcap", "\"_pipeline\":\"hosts\""),
    ("weir flows x.pcap -o csv", "ip.src,sport,"),
    (
        "weir 'let a = packets | summarize n = count() by ip.src\nlet b = packets | summarize m = count() by ip.dst' x.pcap -o csv",
        "ip.src,n",
    ),
    (
        "weir x.pcap 'let a = packets | summarize n = count() by ip.src | print\na | summarize hosts = count()' -o csv",
        "hosts",
    ),
    ("weir top x.pcap", "\"hosts.a\""),
    ("weir top x.pcap 'tcp port 80'", "\"hosts.a\""),
    ("weir x.pcap -o json", "\"hosts.a\""),
    ("weir watch x.pcap", "port_scan"),
    ("weir detectors/sonata x.pcap", "port_scan"),
    ("weir report x.pcap", "Findings of "),
    ("weir help where", "keeps the rows"),
    ("weir help tcp.flags", "TCP flag bits"),
    ("weir help functions", "coalesce(x, y)"),
    ("weir help language", "A query says what to do with packets"),
    ("weir help W012", "A stage that does not exist"),
    ("weir help top", "In queries:"),
    ("weir --version", "libpcap"),
    ("weir completions bash", "tcp-health"),
];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        for (name, of) in [("x.pcap", "mixed.pcap"), ("y.pcap", "web.pcap")] {
            fs::copy(fixtures.join(of), folder.path(name)).expect("copies");
        }
        fs::create_dir(folder.path("folder")).expect("makes");
        fs::copy(fixtures.join("dns.pcap"), folder.path("folder/z.pcap")).expect("copies");
        fs::write(folder.path("my.weir"), "packets | summarize n = count()\n").expect("writes");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a line as a shell does, with this `weir`.
    fn run(&self, line: &str) -> Output {
        let binary = Path::new(env!("CARGO_BIN_EXE_weir"));
        let folder = binary.parent().expect("a folder").display();
        let line = format!("PATH={folder}:$PATH; {line}");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(self.0.path()).stdin(Stdio::null());
        command.env_remove("NO_COLOR").output().expect("sh runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_refusal_ends_with_a_line_that_runs() {
    let folder = Folder::new();
    let mut all = String::new();
    assert!(WRONG.lines().count() >= 60);
    for line in WRONG.lines() {
        let output = folder.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");
        let errors = said.lines().filter(|said| said.to_lowercase().contains("error:"));
        let errors: Vec<&str> = errors.map(str::trim).collect();
        let remedy = said.lines().last().and_then(|last| last.trim().strip_prefix("try: "));
        let remedy = remedy.unwrap_or_else(|| panic!("{line} has no remedy: {said}"));
        // Each runs in a folder as it was.
        let again = Folder::new().run(remedy);
        let why = text(&again.stderr);
        assert_eq!(again.status.code(), Some(0), "{line}: {remedy}: {why}");
        let _ = writeln!(all, "$ {line}\n  {}\n  try: {remedy}\n", errors.join("\n  "));
    }
    assert_snapshot!(all);
}

#[test]
fn plausible_first_commands_are_accepted() {
    let folder = Folder::new();
    for (line, expected) in RIGHT {
        let output = folder.run(line);
        let (out, said) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        assert!(out.contains(expected), "{line}: {out} {said}");
    }
}

/// As `tcpdump -r x -w y filter` does.
#[test]
fn packets_are_written_without_a_query() {
    let folder = Folder::new();
    let output = folder.run("weir x.pcap -w udp.pcap udp && weir flows udp.pcap -o csv -q");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(
        out.lines().count() > 1 && out.lines().skip(1).all(|row| row.contains(",17,")),
        "{out}"
    );
}

/// The lines of the summary that say what to ask next.
#[test]
fn the_next_lines_of_a_summary_run() {
    let folder = Folder::new();
    for line in ["weir x.pcap", "weir folder x.pcap 'udp or tcp'", "weir 'folder/'"] {
        let out = text(&folder.run(line).stdout);
        let next: Vec<&str> = out.lines().skip_while(|line| *line != "Next").skip(1).collect();
        assert!(next.len() > 2, "{out}");
        for next in next {
            // A comment ends each, as shells have it.
            let output = folder.run(next.trim());
            assert_eq!(output.status.code(), Some(0), "{next}: {}", text(&output.stderr));
        }
    }
}

/// Manual pages and completions come from the definition of the commands.
#[test]
fn completions_and_manual_pages_are_made() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = folder.run(&format!("weir completions {shell} > weir.{shell}"));
        assert_eq!(output.status.code(), Some(0), "{shell}: {}", text(&output.stderr));
    }
    let output = folder.run("bash -n weir.bash && mkdir man && weir man-pages man && ls man");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let pages = text(&output.stdout);
    for page in ["weir.1", "weir-run.1", "weir-watch.1", "weir-report.1"] {
        assert!(pages.lines().any(|line| line == page), "{pages}");
    }
    let page = fs::read_to_string(folder.path("man/weir-run.1")).expect("a page");
    assert!(page.contains(".TH weir-run 1") && page.contains("capture filter"), "{page}");
}
