//! The page in a browser.

use super::Served;
use crate::common::{files, root, skip};
use crate::wires::{Sender, ip, namespace, pause, veth};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{client_hello, dns_query};
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// Where Debian has its browser; `CHROMIUM` names another.
const CHROMIUM: &str = "/usr/bin/chromium";

/// A hostile name.
const EVIL: &str = "<img src=x onerror=hacked=1>";

/// The folder of the scripts with what npm fetched for them, if it could.
fn scripts() -> Option<&'static Path> {
    static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let from = root().join("crates/dashboard/web");
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        fs::create_dir_all(&to).expect("a folder");
        for name in ["package.json", "package-lock.json", ".npmrc", "tsconfig.json"] {
            fs::copy(from.join(name), to.join(name)).expect("copies");
        }
        for (folder, ending) in [("src", ".ts"), ("tests", ".mjs"), ("../programs", ".weir")] {
            let (from, to) = (format!("crates/dashboard/web/{folder}"), to.join(folder));
            fs::create_dir_all(&to).expect("a folder");
            for file in files(from.trim_end_matches('/'), &[ending]) {
                fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("copies");
            }
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-progress", "--prefer-offline"]);
        let done = npm.current_dir(&to).output().is_ok_and(|output| output.status.success());
        done.then_some(to)
    });
    place.as_deref()
}

pub(super) fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from)
}

/// The scripts, or `None` after saying that a test is skipped.
pub(super) fn ready(test: &str) -> Option<&'static Path> {
    if !chromium().exists() {
        skip(test, "there is no chromium (Debian: apt-get install chromium)");
        return None;
    }
    if scripts().is_none() {
        skip(test, "npm ci failed: it needs npm, and its registry or cache");
    }
    scripts()
}

/// Runs the script that looks at a page.
fn look(scripts: &Path, page: &str, kind: &str) {
    let pictures = scripts.join("pictures");
    fs::create_dir_all(&pictures).expect("a folder");
    let script = scripts.join("tests/page.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(page).arg(pictures).arg(kind).env("CHROMIUM", chromium());
    node.env("CAPTURE", root().join("fixtures/mixed.pcap"));
    let output = node.output().expect("node runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", said(&output.stdout), said(&output.stderr));
}

/// Packets whose names of servers would be code on a page that takes them for HTML.
fn evil_names() -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let from = Frame::ethernet().ipv4([10, 6, 6, 6], [10, 6, 6, 7]);
    let name = format!("{EVIL}.\u{202e}\u{1b}[31m.example");
    let frames = [
        from.clone().udp(4000, 53).payload(&dns_query(7, &name, 1)).bytes(),
        from.clone().tcp(4001, 443).payload(&client_hello(EVIL, &[], &[])).bytes(),
        from.tcp(4002, 80)
            .payload(format!("GET / HTTP/1.1\r\nHost: {EVIL}\r\n\r\n").as_bytes())
            .bytes(),
    ];
    for (i, frame) in frames.iter().enumerate() {
        // Within the time of the fixtures.
        let ts = 1_795_240_272_000_000_000 + i as i64 * 1_000_000;
        header.put_record(&mut bytes, ts, frame.len() as u32, frame);
    }
    bytes
}

#[test]
fn types_of_the_page_agree() {
    let Some(scripts) = ready("types_of_the_page_agree") else { return };
    let mut tsc = Command::new(scripts.join("node_modules/.bin/tsc"));
    let output = tsc.arg("--noEmit").current_dir(scripts).output().expect("tsc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The rows that the page keeps, and the tables that it makes of them.
#[test]
fn the_page_adds_up_what_it_keeps() {
    let Some(scripts) = ready("the_page_adds_up_what_it_keeps") else { return };
    let mut node = Command::new("node");
    let output = node.arg(scripts.join("tests/model.mjs")).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_view_over_files() {
    let Some(scripts) = ready("every_view_over_files") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    fs::write(place("evil.pcap"), evil_names()).expect("writes");
    let names = "packets | where exists(dns.qname) or exists(tls.sni) or exists(http.host)\n\
                 | where ip.src == 10.6.6.6\n| project ts, dns.qname, tls.sni, http.host\n";
    fs::write(place("names.weir"), names).expect("writes");
    // Alerts stay, though another output has more rows after them than are kept.
    let flood = "let floods = packets | where tcp.syn and not tcp.ack\n\
                 | summarize syns = count() by server = ip.dst every 1s\n| where syns > 100\n\
                 | alert \"{syns} SYNs to {server}\" severity high\n| print\n\
                 packets | summarize n = count() by ip.src, ip.dst, sport, dport\n\
                 over 1s every 100ms\n";
    fs::write(place("flood.weir"), flood).expect("writes");
    let capture = |name: &str| root().join("fixtures").join(name).display().to_string();
    let (mixed, syns) = (capture("mixed.pcap"), capture("syn_flood.pcap"));
    let (a, b, evil) = (place("names.weir"), place("flood.weir"), place("evil.pcap"));
    let served = Served::start(&[
        "serve",
        &a,
        &b,
        "--http",
        "0",
        "-r",
        &mixed,
        "-r",
        &syns,
        "-r",
        &evil,
        "--captures",
        &root().join("fixtures").display().to_string(),
    ]);
    look(scripts, &served.page, "file");
    served.end();
}

#[test]
fn every_view_over_a_wire() {
    let Some(scripts) = ready("every_view_over_a_wire") else { return };
    if !namespace("every_view_over_a_wire") {
        return;
    }
    veth("v1", "v2");
    ip("link set lo up");
    veth("v3", "v4");
    let served = Served::start(&["serve", "--http", "0", "-i", "v2", "-i", "v4", "-j", "2"]);
    let senders = [Sender::new("v1"), Sender::new("v3")];
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let sending = std::thread::spawn(move || {
        // Bounded, should the browser hang.
        for i in 0..6000_u32 {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            let host = (i % 7) as u8;
            let frame = Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, host % 3]);
            let sender = &senders[usize::from(i % 3 == 0)];
            sender.send(&frame.udp(1000 + u16::from(host), 53).payload(&[0; 60]).bytes());
            pause();
        }
    });
    look(scripts, &served.page, "live");
    over.store(true, Ordering::Relaxed);
    sending.join().expect("it ends");
    let said = served.end();
    assert!(said.contains("\nprocessed"), "{said}");
}

/// A reader who can't see a report, or has no mouse, can read it.
#[test]
fn a_report_is_accessible() {
    let Some(scripts) = ready("a_report_is_accessible") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let capture = |name: &str| root().join("fixtures").join(name);
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("report").arg(capture("mixed.pcap")).arg(capture("syn_flood.pcap"));
    let made = weir.arg("-o").arg(&page).output().expect("the binary runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut node = Command::new("node");
    node.arg(scripts.join("tests/report.mjs")).arg(&page).env("CHROMIUM", chromium());
    let output = node.output().expect("node runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", said(&output.stdout), said(&output.stderr));
}

/// A run whose programs are those of its user has the page, too, which adds its own if asked to.
#[test]
fn a_run_with_http_has_the_page() {
    let Some(scripts) = ready("a_run_with_http_has_the_page") else { return };
    if !namespace("a_run_with_http_has_the_page") {
        return;
    }
    veth("v1", "v2");
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    let secret = "0123456789abcdef";
    fs::write(&token, secret).expect("writes");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&token, mode).expect("is ours");
    let file = token.display().to_string();
    let served = Served::start(&[
        "run",
        "--http",
        "0",
        "--http-token-file",
        &file,
        "-i",
        "v2",
        "-o",
        "json",
    ]);
    look(scripts, &format!("{}#token={secret}", served.page), "plain");
    served.end();
}
