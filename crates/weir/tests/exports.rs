//! `metric` in a query, read by Prometheus, and the dashboards in `packaging/grafana`, whose
//! expressions Prometheus evaluates.

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

use common::{files, root, skip};
use over_http::{Streamed, address, get, metrics};
use over_wires::{Run, text, weir};
use prometheus::{Prometheus, program};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{dns_query, dns_response};
use wires::{Sender, namespace, veth};

const TOKEN: &str = "0123456789abcdef";

const EXPORTED: &str = "packets
| summarize n = count(), h = histogram(len, 100) by ip.src every 1s
| metric counter \"host_packets_total\" of n max 2 help \"Packets, by host.\"
| metric histogram \"frame_bytes\" of h by ip.src
| metric gauge \"host_packets_now\" of n";

/// The value of a metric, by its name and labels.
fn value(all: &BTreeMap<String, u64>, name: &str) -> u64 {
    *all.get(name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

#[test]
fn columns_of_a_query_are_metrics() {
    for workers in ["1", "2"] {
        let mut run = Streamed::start(&["--metrics", "0", "-e", EXPORTED, "-j", workers]);
        // Ten packets a second of three hosts in turns; the last windows are not closed yet.
        run.send(95);
        let mut now = metrics(&run.address);
        let counted = |now: &BTreeMap<String, u64>| -> u64 {
            let all = now.iter().filter(|(name, _)| name.starts_with("host_packets_total"));
            all.map(|(_, n)| n).sum()
        };
        while counted(&now) < 80 {
            wires::pause();
            now = metrics(&run.address);
        }
        let closed = counted(&now);
        assert!(closed.is_multiple_of(10), "{closed}");
        let series = now.keys().filter(|name| name.starts_with("host_packets_total")).count();
        assert_eq!(series, 3, "{now:?}");
        assert!(value(&now, "host_packets_total{ip_src=\"_other\"}") > 0);
        // One packet in ten is malformed, and has no address.
        let hosts = ["10.0.0.0", "10.0.0.1", "10.0.0.2", ""];
        let sum = |name: &str| -> u64 {
            hosts.iter().map(|host| value(&now, &format!("{name}{{ip_src=\"{host}\"}}"))).sum()
        };
        let all = sum("frame_bytes_count");
        assert_eq!(all, closed);
        let bounded = "frame_bytes_bucket{ip_src=\"10.0.0.1\",le=\"100.0\"}";
        assert_eq!(value(&now, bounded), value(&now, "frame_bytes_count{ip_src=\"10.0.0.1\"}"));
        assert_eq!(sum("host_packets_now"), 10);
        for metric in ["host_packets", "frame_bytes", "host_packets_now"] {
            let of = |name: &str| value(&now, &format!("{name}{{metric=\"{metric}\"}}"));
            let (skipped, beyond) =
                (of("weir_metric_rows_skipped_total"), of("weir_metric_rows_beyond_total"));
            assert_eq!((skipped, beyond), (0, 0), "{metric}");
        }
        let text = get(&run.address, "/metrics", "Accept: application/openmetrics-text\r\n").1;
        for line in [
            "# TYPE host_packets counter",
            "# HELP host_packets Packets, by host.",
            "# TYPE frame_bytes histogram",
            "# TYPE host_packets_now gauge",
        ] {
            assert!(text.contains(line), "{line}");
        }
        let said = run.end();
        assert!(said.contains("received   95 packets"), "{said}");
    }
}

/// A row whose value is absent counts nowhere, and is counted as that.
#[test]
fn rows_without_a_value_are_counted() {
    let query = "packets
| summarize n = count() by ip.src every 1s
| extend r = n / (n - n)
| metric gauge \"ratio\" of r";
    let mut run = Streamed::start(&["--metrics", "0", "-e", query]);
    run.send(95);
    let skipped = "weir_metric_rows_skipped_total{metric=\"ratio\"}";
    while value(&metrics(&run.address), skipped) < 20 {
        wires::pause();
    }
    let now = metrics(&run.address);
    assert!(!now.keys().any(|name| name.starts_with("ratio")), "{now:?}");
    run.end();
}

#[test]
fn rows_pass_on_and_names_are_checked() {
    let capture = root().join("fixtures/mixed.pcap");
    let capture = capture.to_str().expect("a plain path");
    let run = |query: &str, more: &[&str]| {
        weir(&[&["run", "-e", query, "-r", capture, "-o", "csv"], more].concat())
    };
    let plain = "packets | summarize n = count() by ip.proto every 1s";
    let exported = format!("{plain} | metric counter \"x\" of n");
    let (without, with) = (run(plain, &[]), run(&exported, &[]));
    assert_eq!(text(&without.stdout), text(&with.stdout));
    assert!(text(&with.stderr).contains("nobody can read the metrics x"), "{}", text(&with.stderr));
    let read = run(&exported, &["--metrics", "0"]);
    assert!(read.status.success() && !text(&read.stderr).contains("nobody can read"));
    for (query, why) in [
        (format!("{plain} | metric gauge \"weir_packets_received\" of n"), "runs have a metric"),
        (format!("{plain} | metric counter \"weir_stage_rows_in\" of n"), "runs have a metric"),
        (format!("{exported} | metric gauge \"x\" of n"), "two metrics would have the name `x`"),
    ] {
        let output = run(&query, &["--metrics", "0"]);
        assert_eq!(output.status.code(), Some(2), "{query}");
        assert!(text(&output.stderr).contains(why), "{query}: {}", text(&output.stderr));
    }
}

/// The expressions of a dashboard, with the variables of Grafana put in.
fn expressions(dashboard: &str) -> Vec<(String, String)> {
    let json: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
    let panels = json["panels"].as_array().expect("panels");
    let mut all = Vec::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().expect("a title");
        for target in panel["targets"].as_array().expect("targets") {
            let expr = target["expr"].as_str().expect("an expression");
            let expr = expr.replace("$job", "weir").replace("$instance", ".*");
            all.push((title.to_owned(), expr.replace("$__rate_interval", "30s")));
        }
    }
    all
}

#[test]
fn prometheus_evaluates_every_panel_of_the_dashboards() {
    let test = "prometheus_evaluates_every_panel_of_the_dashboards";
    let Some(server) = program("prometheus") else {
        return skip(test, "there is no prometheus (check.sh gets it from Debian)");
    };
    if !namespace(test) {
        return;
    }
    veth("v0", "v1");
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    fs::write(place("token"), TOKEN).expect("writes");
    fs::set_permissions(place("token"), Permissions::from_mode(0o600)).expect("is ours");
    // Windows of a second instead of ten, so that some close while the test waits.
    let query = common::text("packaging/grafana/traffic.weir").replace("every 10s", "every 1s");
    fs::write(place("traffic.weir"), query).expect("writes");
    let around = format!(
        "packets | mirror \"{}\" | summarize n = count() by ip.src every 1s | capture 1s by ip.src",
        place("copy.pcap")
    );
    let (query, token, rows) = (place("traffic.weir"), place("token"), place("rows"));
    let captures = place("captures");
    let mut run = Run::start(&[
        "run",
        &query,
        "-e",
        &around,
        "-i",
        "v1",
        "-Q",
        "in",
        "-j",
        "2",
        "--out-dir",
        &rows,
        "--capture-dir",
        &captures,
        "--http",
        "127.0.0.1:9464",
        "--http-token-file",
        &token,
        "--alert-to",
        "syslog://127.0.0.1:9514",
    ]);
    address(&mut run);
    let server = Prometheus::start(&server, folder.path(), "127.0.0.1:9464");
    let sender = Sender::new("v0");
    let send = |i: u8| {
        let between = Frame::ethernet().ipv4([10, 0, 0, i], [192, 0, 2, 1]);
        let id = u16::from(i);
        let asks = between.clone().udp(4000, 53).payload(&dns_query(id, "example.test", 1));
        let back = Frame::ethernet().ipv4([192, 0, 2, 1], [10, 0, 0, i]);
        let answer = dns_response(id, "example.test", 1, 0, &[]);
        let answers = back.clone().udp(53, 4000).payload(&answer);
        let data = between.tcp(5000 + id, 80).flags(0x10).seq(1).ackno(1).payload(b"data");
        let ack = back.tcp(80, 5000 + id).flags(0x10).seq(1).ackno(5);
        [asks, answers, data, ack].iter().for_each(|frame| sender.send(&frame.bytes()));
    };
    let mut missing = Vec::new();
    let dashboards = files("packaging/grafana", &[".json"]);
    assert_eq!(dashboards.len(), 2);
    let all: Vec<_> = dashboards.iter().flat_map(|path| expressions(&common::text(path))).collect();
    assert!(all.len() > 40, "{}", all.len());
    for i in 0..60 {
        send(i);
        wires::pause();
    }
    for (title, expression) in all {
        if !server.answers(&expression) {
            missing.push(format!("{title}: {expression}"));
        }
        // Windows close as time goes on.
        send(60);
    }
    assert!(missing.is_empty(), "{missing:#?}");
    server.becomes("count(weir_packet_size_bytes_bucket)", 22.0);
    run.interrupt();
}
