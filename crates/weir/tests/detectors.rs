//! `weir watch`, groups of queries, and the parameters of a site.

mod common;

use assert_cmd::Command;
use common::{detectors, root};
use std::collections::BTreeSet;
use std::process::Output;

const CAPTURE: &str = "fixtures/detectors/plaintext_login.pcap";

/// The output of `weir` with these arguments at the root of the repository.
fn weir(args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("weir").expect("the binary");
    command.current_dir(root()).args(args).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The rows that a run prints, and what else it says.
fn run(args: &[&str]) -> (String, String) {
    let output = weir(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    (text(&output.stdout), said)
}

fn refused(args: &[&str], reason: &str) {
    let output = weir(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.contains(reason), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("writes");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn all_detectors_run_however_they_are_named() {
    let names = detectors();
    let names: Vec<&str> = names.iter().map(|path| path.to_str().expect("plain")).collect();
    let (rows, _) = run(&[&["run", "-r", CAPTURE, "-o", "json"], &names[..]].concat());
    assert!(rows.contains("\"logins\":2"), "{rows}");
    for words in
        [&["watch", "detectors"][..], &["run", "detectors/"], &["run", "queries/detectors/"]]
    {
        let args = [words, &["-r", CAPTURE, "-o", "json", "-j", "2"]].concat();
        let (found, _) = run(&args);
        let sorted = |rows: &str| {
            let mut lines: Vec<String> = rows.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&found), sorted(&rows), "{words:?}");
    }
}

#[test]
fn measurements_run_where_they_are_named() {
    // A transfer that takes the whole link, and nothing else.
    let rules = |words: &[&str]| -> BTreeSet<String> {
        let (rows, _) = run(&[words, &["-r", "fixtures/iperf3.pcap", "-o", "json"]].concat());
        let rule = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            row["alert.rule"].as_str().map(str::to_owned)
        };
        rows.lines().filter_map(rule).collect()
    };
    let usual = rules(&["watch"]);
    assert_eq!(usual, rules(&["run", "detectors/default"]));
    let measured = rules(&["watch", "detectors/measurements"]);
    assert!(measured.contains("heavy_hitters"), "{measured:?}");
    assert!(usual.is_disjoint(&measured), "{usual:?}");
    assert_eq!(rules(&["watch", "detectors/"]), &usual | &measured);
}

#[test]
fn some_detectors_are_named_or_left_out() {
    let one = ["watch", "detectors/plaintext-login", "-r", CAPTURE];
    assert_eq!(run(&one).0.lines().count(), 6);
    let without = ["watch", "detectors/others", "--without", "plaintext_login", "-r", CAPTURE];
    let output = weir(&without);
    assert!(!text(&output.stdout).contains("logins"), "{output:?}");
    refused(&["watch", "--without", "plaintext", "-r", CAPTURE], "`weir list` shows them");
    let typo = ["watch", "--without", "plaintext_loginn", "-r", CAPTURE];
    refused(&typo, "did you mean `plaintext_login`?");
    refused(
        &["watch", "plaintext_login", "--without", "detectors", "-r", CAPTURE],
        "leaves nothing to run",
    );
    refused(&["run", "detectors/floodss", "-r", CAPTURE], "did you mean `detectors/floods`?");
    refused(&["run", "docs/", "-r", CAPTURE], "a folder without queries");
    // A group may follow a query, and a filter a group.
    let (rows, _) = run(&["run", "flows", "detectors/", "-r", CAPTURE, "-o", "json"]);
    assert!(rows.contains("\"_pipeline\":\"plaintext_login"), "{rows}");
}

#[test]
fn groups_are_listed() {
    let names = |args: &[&str]| -> Vec<(String, String)> {
        let (rows, _) = run(args);
        let row = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let cell = |name: &str| row[name].as_str().expect("a text").to_owned();
            (cell("name"), cell("group"))
        };
        rows.lines().map(row).collect()
    };
    let all = names(&["list"]);
    assert!(all.contains(&("knock".to_owned(), "functions".to_owned())));
    let some = names(&["list", "detectors"]);
    assert_eq!(some.len(), detectors().len());
    assert!(some.iter().all(|(_, group)| group.starts_with("detectors/")));
    let others = names(&["list", "detectors/others"]);
    assert!(others.contains(&("plaintext_login".to_owned(), "detectors/others".to_owned())));
    refused(&["list", "detector"], "no group is called `detector`");
    let (table, _) = run(&["list", "-o", "table"]);
    assert!(table.contains("\nDetectors: others (detectors/others)\n\n"), "{table}");
}

#[test]
fn a_site_sets_params_and_p_counts_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    file(&folder, "lists.txt", "10.0.0.0/8\n# and\n203.0.113.25\n");
    let site = file(
        &folder,
        "site.conf",
        "plaintext_servers = {file(\"lists.txt\"),\n    192.0.2.1}  # both\n\
         plaintext_login.threshold = 2\nthreshold = 99\n",
    );
    let run = |args: &[&str]| {
        run(&[&["watch", "plaintext_login", "-r", CAPTURE, "--site", &site], args].concat())
    };
    let (rows, said) = run(&[]);
    assert_eq!(rows.lines().count(), 2, "{rows}{said}");
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(run(&["-p", "threshold=3"]).0, "");
    let (rows, _) = run(&["-p", "threshold=1", "-p", "plaintext_servers={}"]);
    assert_eq!(rows.lines().count(), 6);
    let (plan, _) = self::run(&["explain", "plaintext_login", "--site", &site]);
    assert!(plan.contains("param threshold: int = 2  # logins in a window; default 1"), "{plan}");
    assert!(plan.contains("not ip.dst in {10.0.0.0/8, 203.0.113.25, 192.0.2.1}"), "{plan}");
}

#[test]
fn mistakes_of_a_site_have_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, reason: &str| {
        let site = file(&folder, "site.conf", text);
        refused(&["watch", "-r", CAPTURE, "--site", &site], reason);
        refused(&["check", "plaintext_login", "--site", &site], reason);
    };
    check("\n\nlocal == {10.0.0.0/8}", "site.conf:3:7 ]");
    check("plaintext_servers = {10.1.2.3/8}", "has bits set after its prefix of 8");
    check(
        "\nplaintext_servers = {80}",
        "site.conf, line 2: the param `plaintext_servers` is a set",
    );
    check("plaintext_servers = {file(\"none.txt\")}", "none.txt");
    check("interval = 5s\ninterval = 6s", "`interval` is set twice");
    let missing = folder.path().join("none.conf");
    let missing = missing.to_str().expect("plain");
    refused(&["watch", "-r", CAPTURE, "--site", missing], "none.conf: No such file");
    // The run warns of a parameter that no query has, and goes on.
    let site = file(&folder, "site.conf", "plaintext_serverss = {}\n");
    let (rows, said) = run(&["watch", "plaintext_login", "-r", CAPTURE, "--site", &site]);
    assert_eq!(rows.lines().count(), 6);
    assert!(said.contains("line 1: no query has a param called `plaintext_serverss`"), "{said}");
    assert!(said.contains("did you mean `plaintext_servers`?"), "{said}");
    assert!(
        !run(&["watch", "plaintext_login", "-r", CAPTURE, "--site", &site, "-q"])
            .1
            .contains("warning")
    );
}

/// The example reads, and sets nothing that no query has.
#[test]
fn the_example_of_a_site_fits_the_library() {
    let (_, said) = run(&["watch", "detectors", "-r", CAPTURE, "--site", "packaging/site.conf"]);
    assert!(!said.contains("no query has a param called"), "{said}");
}

/// Some sets are empty until a site fills them. The docs and the example list all of these.
#[test]
fn the_facts_of_a_site_are_listed() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a text");
    let (docs, example) = (read("docs/detectors.md"), read("packaging/site.conf"));
    let rows: String = docs.lines().filter(|line| line.starts_with("| `")).collect();
    for path in detectors() {
        let query = std::fs::read_to_string(&path).expect("a query");
        for line in query.lines().filter_map(|line| line.strip_prefix("param ")) {
            let (name, rest) = line.split_once(": ").expect("a type");
            if name != "local" && !rest.contains("= {} ") {
                continue;
            }
            assert!(rows.contains(&format!("`{name}`")), "docs/detectors.md: {name}");
            let sets = |line: &str| line.trim_start_matches("# ").starts_with(name);
            assert!(example.lines().any(sets), "packaging/site.conf: {name}");
        }
    }
}

/// Detectors whose alerts have a category and no technique: they tell what is slow, large or only
/// measured.
const WITHOUT_TECHNIQUE: [&str; 9] = [
    "dns_slow",
    "elephants",
    "half_closed",
    "heavy_changers",
    "heavy_hitters",
    "heavy_prefixes",
    "microbursts",
    "newly_opened",
    "tcp_trouble",
];

/// Detectors of one host, or of none.
const OF_ONE_END: [&str; 4] = ["heavy_changers", "heavy_hitters", "heavy_prefixes", "microbursts"];

/// Detectors that name no flow: of ARP, of a host, or of more than one flow.
const WITHOUT_FLOW: [&str; 13] = [
    "arp_spoofing",
    "baseline",
    "ddos",
    "dns_tunnel_unused",
    "exfiltration",
    "fast_flux",
    "heavy_changers",
    "heavy_hitters",
    "heavy_prefixes",
    "malformed_attacks",
    "microbursts",
    "new_talkers",
    "rogue_ra",
];

/// The times of alerts are those of packets that were captured, and each says between whom it is,
/// of what kind it is, and what to look at next.
#[test]
fn alerts_say_when_between_whom_and_what_next() {
    let rows = |args: &[&str]| -> Vec<serde_json::Value> {
        let (rows, _) = run(args);
        rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let span = "packets | summarize first = min(ts), last = max(ts)";
    let epoch = ["-o", "json", "--time", "epoch-ns"];
    let mut seen = BTreeSet::new();
    for path in detectors() {
        let query = std::fs::read_to_string(&path).expect("a query");
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let path = path.to_str().expect("a plain path");
        for capture in common::header_lines(&query, "triggers") {
            let args: Vec<&str> = capture.split(' ').collect();
            let span = &rows(&[&["run", "-e", span, "-r", args[0]], &epoch[..]].concat())[0];
            let range =
                span["first"].as_i64().expect("a time")..=span["last"].as_i64().expect("a time");
            let run = [&["run", path, "-r"], &args[..]].concat();
            for row in rows(&[&run[..], &epoch].concat()) {
                for column in ["ts", "alert.first", "alert.last"] {
                    let at = row[column].as_i64().expect("a time");
                    assert!(range.contains(&at), "{capture}: {column} of {row}");
                }
                assert!(row["alert.first"].as_i64() <= row["alert.last"].as_i64(), "{row}");
                assert!(
                    row["alert.category"].is_string() && row["alert.next"].is_string(),
                    "{row}"
                );
                let is_plain = WITHOUT_TECHNIQUE.contains(&name);
                assert_eq!(row["alert.technique"].is_null(), is_plain, "{row}");
                for text in ["alert.message", "alert.next"] {
                    let text = row[text].as_str().expect("a text");
                    assert!(!text.contains("absent") || name == "ddos", "{text}");
                }
            }
            for record in rows(&[&run[..], &["-o", "eve"]].concat()) {
                let has = |key: &str| record[key].is_string();
                let ends = (has("src_ip"), has("dest_ip"));
                let one = OF_ONE_END.contains(&name);
                assert!(ends == (true, true) || one && !ends.1, "{name}: {record}");
                assert_eq!(has("proto"), !one && name != "arp_spoofing", "{name}: {record}");
                let is_ping = record["proto"] == "ICMP";
                let without = is_ping || WITHOUT_FLOW.contains(&name);
                assert!(has("community_id") || without, "{name}: {record}");
                assert!(record["alert"]["category"].as_str().is_some_and(|text| !text.is_empty()));
                seen.insert(name.to_owned());
            }
        }
    }
    assert_eq!(seen.len(), detectors().len());
}
