//! The ledger of a run over HTTP: what Prometheus reads is what the run prints at its end.

#![cfg(target_os = "linux")]

mod common;
#[path = "common/over_http.rs"]
mod over_http;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "common/prometheus.rs"]
mod prometheus;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::{root, skip, workplace};
use over_http::{Streamed, address, ask, get, metrics};
use over_wires::{Run, text, weir};
use prometheus::{Prometheus, program};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use weir_packet::craft::Frame;
use wires::{Sender, namespace, veth};

const FLOWS: &str = "packets | summarize n = count() by ip.src every 1s";

#[test]
fn metrics_are_those_of_the_ledger() {
    for workers in ["1", "2", "4"] {
        let mut run = Streamed::start(&["--metrics", "0", "-e", FLOWS, "-j", workers]);
        run.send(50);
        let malformed = "weir_packets_malformed_total{reason=\"ipv4 header length\"}";
        let of_workers = |now: &BTreeMap<String, u64>| {
            let all = now.iter().filter(|(name, _)| name.starts_with("weir_worker_packets_total"));
            all.map(|(_, n)| n).sum::<u64>()
        };
        // A batch is counted as processed before its headers are read, and by its worker.
        let mut now = metrics(&run.address);
        while now[malformed] < 5 || of_workers(&now) < 50 || now["weir_rows_emitted_total"] == 0 {
            wires::pause();
            now = metrics(&run.address);
        }
        for (name, value) in [
            ("weir_packets_received_total", 50),
            ("weir_packets_processed_total", 50),
            ("weir_packets_filtered_total", 0),
            (malformed, 5),
            ("weir_packets_malformed_total{reason=\"radiotap\"}", 0),
            ("weir_packets_lost_total{place=\"ring\"}", 0),
        ] {
            assert_eq!(now.get(name), Some(&value), "{name} with {workers} workers");
        }
        assert_eq!(of_workers(&now), 50);
        // Each packet comes to the first stage of the only program.
        let first = |name: &str, level: &str| {
            let labels = format!("program=\"e\",level=\"{level}\",pipeline=\"0\",stage=\"0\"");
            now[&format!("{name}{{{labels}}}")]
        };
        let came = |level: &str| first("weir_stage_rows_in_total", level);
        let left = |level: &str| first("weir_stage_rows_out_total", level);
        assert_eq!((came("worker"), left("worker") > 0), (50, true), "{now:?}");
        assert!(came("machine") <= left("worker") && left("machine") > 0, "{now:?}");
        assert!(first("weir_stage_keys", "machine") <= 4 * 2, "{now:?}");
        assert!(
            now["weir_rows_emitted_total"] > 0 && now["weir_start_time_seconds"] > 1_700_000_000
        );
        let open = get(&run.address, "/metrics", "Accept: application/openmetrics-text\r\n").1;
        assert!(open.ends_with("# EOF\n") && open.contains("weir_packets_received_total 50\n"));
        assert_eq!(get(&run.address, "/health", ""), (200, "ok\n".to_owned()));
        let said = run.end();
        assert!(said.contains("received   50 packets"), "{said}");
    }
}

/// No counter falls while programs come, are replaced, and go, whoever writes their rows.
#[test]
fn counters_never_fall_while_programs_change() {
    for to_files in [false, true] {
        let mut args = vec!["--control=weir.sock", "-o", "json", "-j", "2", "--slow-sink", "drop"];
        if to_files {
            args.extend(["--out-dir", "rows"]);
        }
        let mut run = Streamed::start(&[&["--metrics", "0"], &args[..]].concat());
        let mut before = metrics(&run.address);
        for change in [
            &["add", "--name", "a", "-e", FLOWS][..],
            &["add", "--name", "b", "-e", "packets | project len"],
            &["replace", "a", "-e", "packets | summarize bytes = sum(len) by ip.dst every 2s"],
            &["remove", "b"],
            &["add", "--name", "b", "-e", "packets | where len > 5"],
            &["remove", "a"],
            &["remove", "b"],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
            command.arg("ctl").args(change).env("WEIR_SOCKET", run.folder.path().join("weir.sock"));
            let output = command.output().expect("the binary runs");
            assert!(output.status.success(), "{change:?}: {}", text(&output.stderr));
            run.send(40);
            let now = metrics(&run.address);
            for (name, value) in before.iter().filter(|(name, _)| name.contains("_total")) {
                let fell = now.get(name).is_none_or(|now| now < value);
                assert!(!fell, "{name} fell from {value} to {:?} by {change:?}", now.get(name));
            }
            before = now;
        }
        assert!(before["weir_rows_emitted_total"] > 100, "{before:?}");
        // Two programs were called so, of which each took the packets of two turns.
        let stage = "{program=\"b\",level=\"worker\",pipeline=\"0\",stage=\"0\"}";
        assert_eq!(before[&format!("weir_stage_rows_in_total{stage}")], 160, "{before:?}");
        run.end();
    }
}

#[test]
fn other_hosts_need_a_token() {
    let folder = workplace();
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef\n").expect("writes");
    fs::set_permissions(&token, Permissions::from_mode(0o644)).expect("is ours");
    let file = token.to_str().expect("a plain path");
    let capture = root().join("fixtures/mixed.pcap");
    let capture = capture.to_str().expect("a plain path");
    let refused = |args: &[&str], why: &str| {
        let output = weir(&[&["run", "-e", FLOWS, "-r", capture], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
    };
    refused(&["--metrics", "0.0.0.0:0"], "other hosts can connect there");
    refused(&["--metrics", "[::]:0"], "other hosts can connect there");
    let with_token = ["--metrics", "0.0.0.0:0", "--http-token-file", file];
    refused(&with_token, "every user may use this token");
    refused(&["--metrics", "example.com:80"], "expected an address and a port");
    refused(&["--http-host", "a"], "--metrics");

    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("is ours");
    let mut args = vec!["-e", FLOWS, "--http-token-file", file, "--http-host", "monitor.example"];
    let run = Streamed::start(&[&["--metrics", "0"], &args[..]].concat());
    let with = |headers: &str| get(&run.address, "/metrics", headers).0;
    assert_eq!(with(""), 401);
    assert_eq!(with("Authorization: Bearer 0123456789abcdeF\r\n"), 401);
    assert_eq!(with("Authorization: Bearer 0123456789abcdef\r\n"), 200);
    assert_eq!(get(&run.address, "/health", "").0, 200);
    let by_name = |host: &str| {
        let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n");
        ask(&run.address, &request).0
    };
    assert_eq!(by_name("monitor.example:9464"), 200);
    assert_eq!(by_name("evil.example"), 421);
    run.end();
    args.truncate(2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("it has one").to_string();
    let output = weir(&[&["run", "-r", capture, "--metrics", &taken], &args[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("can't listen there"), "{}", text(&output.stderr));
}

/// A thousand clients that ask nothing, or slowly, keep Prometheus from nothing, and packets
/// neither.
#[test]
fn clients_that_misbehave_keep_no_metrics_from_others() {
    let mut run = Streamed::start(&["--metrics", "0", "-e", FLOWS]);
    let mut idle = Vec::new();
    for i in 0..1000 {
        let mut stream = TcpStream::connect(&run.address).expect("connects");
        if i % 2 == 0 {
            // The clients that had to make room may be gone.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ");
        }
        idle.push(stream);
        // As many as may open files.
        if idle.len() > 400 {
            idle.remove(0);
        }
    }
    run.send(30);
    assert_eq!(metrics(&run.address)["weir_packets_received_total"], 30);
    let huge = format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(20_000));
    assert_eq!(ask(&run.address, &huge).0, 431);
    let body = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n";
    assert_eq!(ask(&run.address, body).0, 413);
    run.send(30);
    drop(idle);
    assert!(run.end().contains("received   60 packets"));
}

#[test]
fn prometheus_reads_a_live_run() {
    let test = "prometheus_reads_a_live_run";
    let Some(server) = program("prometheus") else {
        return skip(test, "there is no prometheus (check.sh gets it from Debian)");
    };
    if !namespace(test) {
        return;
    }
    veth("v0", "v1");
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef").expect("writes");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("is ours");
    let file = token.to_str().expect("a plain path");
    let listen = ["--metrics", "0.0.0.0:9464", "--http-token-file", file];
    let query = ["run", "-e", FLOWS, "-i", "v1", "-Q", "in", "-j", "2", "-o", "json"];
    let mut run = Run::start(&[&query[..], &listen].concat());
    address(&mut run);
    let server = Prometheus::start(&server, folder.path(), "127.0.0.1:9464");
    server.becomes("up{job=\"weir\"}", 1.0);
    server.becomes("weir_packets_received_total", 0.0);
    let sender = Sender::new("v0");
    let frame = |i: u8| Frame::ethernet().ipv4([10, 0, 0, i], [192, 0, 2, 1]).udp(9, 9).bytes();
    (0..200).for_each(|i| sender.send(&frame(i)));
    server.becomes("weir_packets_processed_total", 200.0);
    server.becomes("sum(weir_worker_packets_total)", 200.0);
    server.becomes("weir_interface_packets_received_total{interface=\"v1\"}", 200.0);
    server.becomes("sum(weir_packets_lost_total)", 0.0);
    server.becomes("weir_rows_emitted_total", 200.0);
    server.becomes("count(weir_packets_malformed_total)", 19.0);
    let increased = server.value("increase(weir_packets_received_total[1m])");
    assert!(increased.is_some_and(|n| n >= 200.0), "{increased:?}");
    let (status, metrics) =
        get("127.0.0.1:9464", "/metrics", "Authorization: Bearer 0123456789abcdef\r\n");
    assert_eq!(status, 200);
    if let Some(promtool) = program("promtool") {
        let mut child = Command::new(promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        child.stdin.take().expect("piped").write_all(metrics.as_bytes()).expect("it reads");
        let said = child.wait_with_output().expect("ends");
        let all = format!("{}{}", text(&said.stdout), text(&said.stderr));
        assert!(said.status.success() && all.is_empty(), "{all}");
    }
    let (_, said) = run.interrupt();
    assert!(said.contains("received   200 packets"), "{said}");
}
