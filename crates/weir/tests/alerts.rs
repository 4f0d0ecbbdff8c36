//! Alerts from the command line: the same with any number of workers, lists that leave some out,
//! and the list of a run that goes on.

mod common;

use assert_cmd::Command;
use common::workplace;
use std::fs;
use std::path::Path;

const FLOOD: &str = "packets | where tcp.syn and not tcp.ack \
    | summarize syns = count() by server = ip.dst every 1s | where syns > 100 \
    | alert \"{syns} SYNs to {server}\" severity high";

/// The rows of a run over the flood, its messages on standard error, and its exit status.
fn flood(folder: &Path, args: &[&str]) -> (String, String, Option<i32>) {
    let format = if args.contains(&"-o") { &[][..] } else { &["-o", "json"][..] };
    let run = ["run", "-e", FLOOD, "-r", "fixtures/syn_flood.pcap"];
    let output = Command::cargo_bin("weir")
        .expect("the binary")
        .current_dir(folder)
        .args(run)
        .args(format)
        .args(args)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn alerts_are_the_same_with_any_number_of_workers() {
    let folder = workplace();
    let (rows, _, status) = flood(folder.path(), &[]);
    assert_eq!((rows.lines().count(), status), (2, Some(0)));
    for workers in ["2", "4"] {
        assert_eq!(flood(folder.path(), &["-j", workers]).0, rows, "{workers} workers");
    }
}

#[test]
fn a_list_leaves_alerts_out_and_they_are_counted() {
    let folder = workplace();
    let list = folder.path().join("list");
    let with = |text: &str| {
        fs::write(&list, text).expect("writes");
        flood(folder.path(), &["--suppress", "list"])
    };
    for line in [
        "e server=198.51.100.2",
        "* server=198.51.0.0/16 # ours",
        "e",
        "* key=1\ne server=198.51.100.2",
    ] {
        let (rows, ledger, status) = with(line);
        assert_eq!((rows.as_str(), status), ("", Some(0)), "{line}");
        let counted =
            ledger.lines().any(|l| l.starts_with("suppressed") && l.contains(" 1 alert, by"));
        assert!(counted, "{line}: {ledger}");
    }
    let (rows, ledger, _) = with("other server=198.51.100.2\ne server=198.51.100.3\n");
    assert!(rows.lines().count() == 2 && !ledger.contains("suppressed"), "{ledger}");
    // The second window has other evidence, or is of a later second than the line says.
    let (rows, ..) = with("* syns=716");
    assert!(rows.starts_with("{\"ts\":\"2026-11-21T05:51:16.") && rows.contains("\"start\""));
    let (rows, ..) = with("e until 2026-11-21T05:51:16Z");
    assert!(rows.starts_with("{\"ts\":\"2026-11-21T05:51:16.") && rows.contains("\"start\""));
}

#[test]
fn a_line_that_cannot_be_read_is_told_before_the_run() {
    let folder = workplace();
    fs::write(folder.path().join("list"), "# ours\ne server=198.51.100.0/33\n").expect("writes");
    let (rows, errors, status) = flood(folder.path(), &["--suppress", "list"]);
    assert_eq!((rows.as_str(), status), ("", Some(2)));
    assert!(
        errors.contains("--suppress list, line 2: `198.51.100.0/33` is no network"),
        "{errors}"
    );
    let (_, errors, status) = flood(folder.path(), &["--suppress", "missing"]);
    assert!(status == Some(2) && errors.contains("--suppress missing: "), "{errors}");
}

#[test]
fn alerts_are_records_of_eve() {
    let folder = workplace();
    let (rows, ..) = flood(folder.path(), &["-o", "eve"]);
    for line in rows.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(record["event_type"], "alert");
        assert_eq!(record["alert"]["severity"], 1);
        assert_eq!(record["dest_ip"], "198.51.100.2");
    }
    assert_eq!(rows.lines().count(), 2);
}

/// The number that a ledger has under this word.
fn counted(ledger: &str, word: &str) -> f64 {
    let line = ledger.lines().find_map(|line| line.strip_prefix(word)).expect("it is told");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}

/// A query that gives up rows for want of room says so among its own alerts, the same with any
/// number of workers.
#[test]
fn rows_that_were_given_up_are_an_alert() {
    let folder = workplace();
    let run = |max: &str, workers: &str| {
        let query = format!(
            "packets | summarize n = count() by ip.src max {max} every 10s | where n >= 1 \
             | alert \"{{ip.src}}\" severity low hold 1m"
        );
        let args = ["run", "-r", "fixtures/mixed.pcap", "-o", "json", "-j", workers, "-e"];
        let output = Command::cargo_bin("weir").expect("the binary");
        let output =
            { output }.current_dir(folder.path()).args(args).arg(query).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        let rows = String::from_utf8(output.stdout).expect("text");
        let rows: Vec<serde_json::Value> =
            rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(counted(&said, "rows"), rows.len() as f64, "{said}");
        let own: Vec<_> = rows.into_iter().filter(|row| row["alert.rule"] == "evictions").collect();
        (own, said)
    };
    let (own, said) = run("5", "1");
    let states: Vec<_> = own.iter().map(|row| row["alert.state"].as_str().expect("text")).collect();
    assert_eq!(states, ["start", "open"], "{said}");
    for row in &own {
        let evicted = row["alert.value"].as_f64().expect("a number");
        assert_eq!(counted(&said, "evicted"), evicted, "{said}");
        assert_eq!(
            (&row["alert.severity"], &row["alert.field"]),
            (&"high".into(), &"evicted".into())
        );
        assert!(row["alert.message"].as_str().expect("text").contains("for want of room"));
        assert!(row["n"].is_null() && row["ip.src"].is_null(), "{row}");
    }
    assert_eq!(run("5", "3").0, own);
    assert_eq!(run("500", "1").0, Vec::<serde_json::Value>::new());
}

/// A query may give columns of its own the names of an alert's, with other types.
#[test]
fn an_alert_of_evictions_fits_the_columns_of_its_output() {
    let folder = workplace();
    let query = "packets | summarize n = count() by ip.src max 2 every 10s | where n >= 1 \
        | alert \"{ip.src}\" severity low hold 1m | project n, alert.severity, alert.rule, \
        alert.message, alert.value = concat(\"x\", alert.state), ts = 7, alert.first";
    let args = ["run", "-q", "-r", "fixtures/mixed.pcap", "-o", "json", "-e", query];
    let output = Command::cargo_bin("weir").expect("the binary");
    let output = { output }.current_dir(folder.path()).args(args).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let rows = String::from_utf8(output.stdout).expect("text");
    let own: Vec<&str> =
        rows.lines().filter(|row| row.contains("\"alert.rule\":\"evictions\"")).collect();
    assert_eq!(own.len(), 2, "{rows}");
    for row in own {
        let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
        assert!(row["n"].is_null() && row["alert.value"].is_null() && row["ts"].is_null());
        assert!(row["alert.first"].is_string() && row["alert.severity"] == "high", "{row}");
    }
}
