//! `weir report`: the page about a capture, and `--plot`.

mod common;

use common::{root, shared, skip, truths, workplace};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use weir_packet::craft::Frame;
use weir_packet::craft::messages::dns_query;

/// Runs the program in a folder with links to the fixtures.
fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().expect("the binary runs")
}

fn report(folder: &Path, args: &[&str]) -> String {
    let output = weir(folder, &[&["report"], args, &["-o", "report.html", "-q"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.join("report.html")).expect("a page")
}

/// A pcap file of these frames, a millisecond apart.
fn capture(path: &Path, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    bytes.extend_from_slice(&[2, 0, 4, 0]);
    for n in [0, 0, 65_535, 1_u32] {
        bytes.extend_from_slice(&n.to_le_bytes());
    }
    for (i, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for n in [1_700_000_000 + i as u32 / 1000, (i as u32 % 1000) * 1000, len, len] {
            bytes.extend_from_slice(&n.to_le_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    fs::write(path, bytes).expect("writes");
}

/// The cells of the rows of the table with this caption, as text.
fn table(page: &str, caption: &str) -> Vec<Vec<String>> {
    let caption = format!("<caption>{caption}</caption>");
    let rest = page.split_once(&caption).unwrap_or_else(|| panic!("no {caption}")).1;
    let body = rest.split_once("</table>").expect("an end").0;
    let row = |row: &str| {
        let cells = row.split("</td>").flat_map(|part| part.split("</th>"));
        cells.map(text_of).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    body.split("<tr").skip(2).map(row).collect()
}

/// The text of a piece of a page.
fn text_of(markup: &str) -> String {
    let mut out = String::new();
    for part in markup.split('<') {
        out.push_str(part.split_once('>').map_or("", |(_, text)| text));
    }
    out.replace('\u{202f}', "").trim().to_owned()
}

#[test]
fn a_page_says_what_is_in_the_capture() {
    let folder = workplace();
    let page = report(folder.path(), &["fixtures/mixed.pcap"]);
    for text in [
        "<dt>Packets</dt><dd>336</dd>",
        "<dt>Bytes on the wire</dt><dd>78\u{202f}131</dd>",
        "<dt>First packet (UTC)</dt><dd>2026-11-21 05:51:10.006666</dd>",
        "<figcaption>Bits per second",
        "<title>fixtures/mixed.pcap – Weir report</title>",
        "198.51.100.2",
        "www.example.test",
        "received   336 packets",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for caption in [
        "Pairs of hosts with the most bytes, in both directions",
        "Connections with the most bytes, in both directions",
        "Services by protocol and the smaller port",
        "Protocols of IP, and other types of frames",
    ] {
        let rows = table(&page, caption);
        let (total, rows) = rows.split_last().expect("a total");
        let sum: u64 = rows.iter().map(|row| row[1].parse::<u64>().expect("bytes")).sum();
        assert_eq!((total[0].as_str(), total[1].parse()), ("total", Ok(sum)), "{caption}");
        assert_eq!(sum, 78_131, "{caption}");
    }
    let hosts = table(&page, "Hosts with the most bytes, sent and received");
    let sum = |at: usize| -> u64 {
        let rows = &hosts[..hosts.len() - 1];
        rows.iter().map(|row| row[at].parse::<u64>().expect("a count")).sum()
    };
    assert_eq!([sum(1), sum(2), sum(3), sum(4)], [78_131, 78_131, 336, 336]);
}

#[test]
fn the_same_capture_gives_the_same_bytes() {
    let folder = workplace();
    let first = report(folder.path(), &["fixtures/syn_flood.pcap"]);
    assert_eq!(first, report(folder.path(), &["fixtures/syn_flood.pcap", "-j", "2"]));
    assert_eq!(first, report(folder.path(), &["-r", "fixtures/syn_flood.pcap"]));
    let output = weir(folder.path(), &["report", "fixtures/syn_flood.pcap", "-o", "-"]);
    assert_eq!(String::from_utf8(output.stdout).expect("text"), first);
    assert!(first.contains("syn_flood") && first.contains("class=\"severity "));
    let without = report(folder.path(), &["fixtures/syn_flood.pcap", "--without", "detectors/"]);
    assert!(without.contains("0 detectors ran. They found nothing."));
}

#[test]
fn captures_are_merged_filtered_and_read_from_a_pipe() {
    let folder = workplace();
    let both = report(folder.path(), &["fixtures/web.pcap", "fixtures/dns.pcap"]);
    assert!(both.contains("fixtures/web.pcap, fixtures/dns.pcap"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["report", "-", "-o", "-", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let bytes = fs::read(root().join("fixtures/dns.pcap")).expect("reads");
    child.stdin.take().expect("a pipe").write_all(&bytes).expect("it reads");
    let output = child.wait_with_output().expect("ends");
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && page.contains("<title>standard input"));
    if weir_capture::bpf::Filter::new("udp").is_err() {
        return skip("captures_are_merged_filtered_and_read_from_a_pipe", "there is no libpcap");
    }
    let args = ["fixtures/mixed.pcap", "udp", "port", "53"];
    let page = report(folder.path(), &args);
    assert!(
        page.contains("<dt>Packets</dt><dd>4</dd>") && page.contains("<code>udp port 53</code>")
    );
}

/// Whatever packets say is text.
#[test]
fn names_from_packets_are_no_markup() {
    let folder = workplace();
    let path = folder.path().join("<b>.pcap");
    let name = "<script>alert(1)</script>.\"x' onload=.example.test";
    let query = dns_query(7, name, 1);
    let dns = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 53]).udp(4000, 53);
    let http = b"GET / HTTP/1.1\r\nHost: <img src=x onerror=alert(1)>\r\n\r\n";
    let web = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 80]).tcp(4001, 80);
    capture(&path, &[dns.payload(&query).bytes(), web.payload(http).bytes()]);
    let page = report(folder.path(), &["<b>.pcap"]);
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&lt;b&gt;.pcap")
    );
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    for word in ["<script", "<img", "<b>", "\" onload"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn odd_captures_have_a_page() {
    let folder = workplace();
    let path = |name: &str| folder.path().join(name);
    let frame = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).udp(1, 2).bytes();
    capture(&path("empty.pcap"), &[]);
    capture(&path("one.pcap"), std::slice::from_ref(&frame));
    assert!(report(folder.path(), &["empty.pcap"]).contains("<dt>Packets</dt><dd>0</dd>"));
    assert!(report(folder.path(), &["one.pcap"]).contains("<dt>Packets</dt><dd>1</dd>"));
    // A gap of ten years, and the earliest and the latest time of the format.
    capture(&path("gap.pcap"), &vec![frame; 9]);
    let mut bytes = fs::read(path("gap.pcap")).expect("reads");
    let record = (bytes.len() - 24) / 9;
    let at = |i: usize| 24 + i * record;
    bytes[at(8)..at(8) + 4].copy_from_slice(&2_020_000_000_u32.to_le_bytes());
    fs::write(path("gap.pcap"), &bytes).expect("writes");
    let page = report(folder.path(), &["gap.pcap"]);
    assert!(page.contains("Not in these pictures: 1 packets"), "a gap");
    bytes[at(7)..at(7) + 4].copy_from_slice(&0_u32.to_le_bytes());
    bytes[at(8)..at(8) + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(path("gap.pcap"), &bytes).expect("writes");
    assert!(report(folder.path(), &["gap.pcap"]).contains("<dt>Packets</dt><dd>9</dd>"));
    // A capture that ends in a packet.
    bytes.truncate(at(5) + 20);
    fs::write(path("torn.pcap"), &bytes).expect("writes");
    let output = weir(folder.path(), &["report", "torn.pcap", "-o", "torn.html"]);
    let page = fs::read_to_string(path("torn.html")).expect("a page");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        page.contains("This report is not about the whole input") && page.contains("torn.pcap")
    );
}

#[test]
fn wrong_arguments_leave_files_as_they_are() {
    let folder = workplace();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("old.html"), "old").expect("writes");
    fs::write(path("no.pcap"), "this is no capture").expect("writes");
    let refused = |args: &[&str], status: i32, why: &str| {
        let output = weir(folder.path(), &[&["report"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&["-o", "old.html"], 2, "no capture is given");
    refused(&["missing.pcap", "-o", "old.html"], 1, "missing.pcap");
    refused(&["no.pcap", "-o", "old.html"], 1, "no.pcap");
    refused(&["no.pcap", "-o", "new.html"], 1, "no.pcap");
    refused(&["no.pcap", "-o", "no.pcap"], 2, "this is a capture that is read");
    refused(&["fixtures/web.pcap", "-o", "no/such.html"], 1, "no/such.html");
    refused(&["fixtures/web.pcap", "-o", "old.html", "--without", "x"], 2, "no detector");
    assert_eq!(fs::read_to_string(path("old.html")).expect("stays"), "old");
    assert_eq!(fs::read_to_string(path("no.pcap")).expect("stays"), "this is no capture");
    assert!(!path("new.html").exists());
    if Path::new("/dev/full").exists() {
        refused(&["fixtures/web.pcap", "-o", "/dev/full"], 1, "/dev/full: No space left");
    }
}

/// Every shared capture has a page, in bounded time and size.
#[test]
#[expect(clippy::disallowed_methods, reason = "a report that takes very long is a fault")]
fn every_shared_capture_has_a_page() {
    let Some(shared) = shared("every_shared_capture_has_a_page") else { return };
    let folder = workplace();
    for (i, truth) in truths(&shared).iter().enumerate() {
        // All of them take minutes.
        if i % 8 != 0 && std::env::var_os("WEIR_ALL").is_none() {
            continue;
        }
        let path = shared.join(truth["file"].as_str().expect("a name"));
        let name = path.display().to_string();
        let started = Instant::now();
        let output = weir(folder.path(), &["report", "-r", &name, "-o", "page.html"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some_and(|code| code < 2), "{name}: {said}");
        assert!(!said.contains("panicked"), "{name}: {said}");
        assert!(started.elapsed() < Duration::from_secs(120), "{name}");
        if let Ok(page) = fs::read_to_string(folder.path().join("page.html")) {
            assert!(page.len() < 4 << 20 && !page.contains("<script"), "{name}");
            let _ = fs::remove_file(folder.path().join("page.html"));
        }
        if i % 32 == 0 {
            let summary = weir(folder.path(), &["report", "-r", &name]);
            assert_eq!(summary.status.code(), output.status.code(), "{name}");
            let text = String::from_utf8(summary.stdout).expect("text");
            let harmless = |c: char| c == '\n' || !c.is_control();
            assert!(text.starts_with(&name) && text.chars().all(harmless), "{name}: {text}");
            assert!(text.contains("\n  packets   "), "{name}: {text}");
        }
    }
}

const BY_PORT: &str =
    "packets | where tcp | summarize n = count(), bytes = sum(len) by dport every 1s";

#[test]
fn a_plot_draws_the_rows_of_a_query() {
    let folder = workplace();
    let run = |plot: &str, more: &[&str]| {
        let args = ["run", "-e", BY_PORT, "-r", "fixtures/mixed.pcap", "--plot", plot, "-o", "csv"];
        weir(folder.path(), &[&args[..], more].concat())
    };
    let output = run("a.svg", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("ts,dport,n,bytes\n"));
    let first = fs::read_to_string(folder.path().join("a.svg")).expect("a picture");
    assert!(first.starts_with("<svg xmlns=") && first.ends_with("</svg>\n"));
    assert_eq!(first.matches("class=\"title\"").count(), 2);
    assert!(first.contains(">other (") && first.contains("e: fixtures/mixed.pcap"));
    assert!(run("b.svg", &["-j", "2"]).status.success());
    assert_eq!(fs::read_to_string(folder.path().join("b.svg")).expect("a picture"), first);
}

#[test]
fn a_plot_of_rows_without_a_time_is_refused_before_the_run() {
    let folder = workplace();
    fs::write(folder.path().join("old.svg"), "old").expect("writes");
    let refused = |query: &str, more: &[&str], why: &str| {
        let args = ["run", "-e", query, "-r", "fixtures/mixed.pcap", "--plot", "old.svg"];
        let output = weir(folder.path(), &[&args[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{query}: {said}");
        assert!(said.contains(why), "{query}: {said}");
    };
    refused("packets | summarize n = count() by ip.src", &[], "the rows of the query have no time");
    refused("packets | summarize by ip.src every 1s", &[], "no column of numbers");
    refused("packets | drop", &[], "nothing to draw");
    refused(BY_PORT, &["--control"], "come and go");
    refused(BY_PORT, &["--publish", "x"], "has no rows");
    let named = "let a = packets | summarize n = count() by dport\n\
                 let b = packets | summarize n = count() every 1s";
    refused(named, &["-T"], "the rows of `a` have no time");
    assert_eq!(fs::read_to_string(folder.path().join("old.svg")).expect("stays"), "old");
}
