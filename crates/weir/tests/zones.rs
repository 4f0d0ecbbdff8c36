//! Time zones: days begin at local midnight, and times are written with their distance from UTC.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;
use weir_packet::time::parse_rfc3339;

const BY_DAY: &str = "packets | summarize n = count() every 1d";

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).env("TZ", "Asia/Kolkata").stdin(Stdio::null());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// A capture with a packet at each of these times.
fn capture(folder: &Path, name: &str, times: &[&str]) -> String {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for time in times {
        let frame = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).udp(4000, 53);
        let bytes = frame.payload(b"weir").bytes();
        let ts = parse_rfc3339(time).unwrap_or_else(|| panic!("{time}"));
        header.put_record(&mut out, ts, bytes.len() as u32, &bytes);
    }
    let path = folder.join(name);
    fs::write(&path, out).expect("writes");
    path.to_str().expect("a plain path").to_owned()
}

/// The rows of a query over packets at these times, in a zone, as CSV without its first line; the
/// same with one worker and with two.
fn rows(query: &str, zone: &str, times: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let x = capture(folder.path(), "x.pcap", times);
    let of = |workers: &str| {
        let args = ["run", "-e", query, "-r", &x, "-o", "csv", "-q", "-j", workers];
        let output = run(&[&args[..], &["--time-zone", zone]].concat());
        assert!(output.status.success(), "{query}: {}", text(&output.stderr));
        let lines = text(&output.stdout);
        lines.split_once('\n').expect("a header").1.trim_end().replace('\n', " ")
    };
    let rows = of("1");
    assert_eq!(of("2"), rows, "{query} with two workers");
    rows
}

#[test]
fn two_packets_of_a_local_day_are_in_one_day() {
    // 00:30 and 01:30 of the 14th in Rome.
    let times = ["2023-11-13T23:30:00Z", "2023-11-14T00:30:00Z"];
    let day = "2023-11-14T00:00:00+01:00";
    assert_eq!(rows(BY_DAY, "Europe/Rome", &times), format!("{day},2"));
    let utc = "2023-11-13T00:00:00Z,1 2023-11-14T00:00:00Z,1";
    assert_eq!(rows(BY_DAY, "UTC", &times), utc);
    let binned = "packets | summarize n = count() by day = bin(ts, 1d)";
    assert_eq!(rows(binned, "Europe/Rome", &times), format!("{day},2"));
    assert_eq!(rows(BY_DAY, "local", &times), "2023-11-14T00:00:00+05:30,2");
    // The other way round, west of Greenwich.
    let west = "2023-11-13T00:00:00-05:00,2";
    assert_eq!(rows(BY_DAY, "America/New_York", &times), west);
}

#[test]
fn days_have_23_and_25_hours_where_clocks_change() {
    // The 26th of March begins at 23:00 UTC, and the 27th 23 hours later.
    let march = ["2023-03-25T22:59:59Z", "2023-03-25T23:00:00Z", "2023-03-26T21:59:59Z"];
    let march = [&march[..], &["2023-03-26T22:00:00Z"]].concat();
    assert_eq!(
        rows(BY_DAY, "Europe/Rome", &march),
        "2023-03-25T00:00:00+01:00,1 2023-03-26T00:00:00+01:00,2 2023-03-27T00:00:00+02:00,1"
    );
    // The 29th of October begins at 22:00 UTC, and the 30th 25 hours later.
    let october = ["2023-10-28T21:59:59Z", "2023-10-28T22:00:00Z", "2023-10-29T22:59:59Z"];
    let october = [&october[..], &["2023-10-29T23:00:00Z"]].concat();
    assert_eq!(
        rows(BY_DAY, "Europe/Rome", &october),
        "2023-10-28T00:00:00+02:00,1 2023-10-29T00:00:00+02:00,2 2023-10-30T00:00:00+01:00,1"
    );
    // The hour that comes twice is two windows of an hour, and in one of two hours.
    let twice = ["2023-10-29T00:30:00Z", "2023-10-29T01:30:00Z"];
    let hours = "2023-10-29T02:00:00+02:00,1 2023-10-29T02:00:00+01:00,1";
    let by_hour = "packets | summarize n = count() every 1h";
    assert_eq!(rows(by_hour, "Europe/Rome", &twice), hours);
    let by_two = "packets | summarize n = count() every 2h";
    assert_eq!(rows(by_two, "Europe/Rome", &twice), "2023-10-29T02:00:00+02:00,2");
    // Hours begin where clocks show them, also half an hour beside those of UTC.
    let half = "2023-10-29T06:00:00+05:30,1 2023-10-29T07:00:00+05:30,1";
    assert_eq!(rows(by_hour, "Asia/Kolkata", &twice), half);
}

#[test]
fn hours_are_hours_where_zones_have_half_ones_too() {
    let by_hour = "packets | summarize n = count() every 1h";
    let binned = "packets | summarize n = count() by hour = bin(ts, 1h)";
    // 02:30 comes twice.
    let twice = ["2025-04-05T16:00:00Z", "2025-04-05T17:00:00Z"];
    let hours = "2025-04-06T02:00:00+10:30,1 2025-04-06T02:00:00+09:30,1";
    assert_eq!(rows(by_hour, "Australia/Adelaide", &twice), hours);
    assert_eq!(rows(binned, "Australia/Adelaide", &twice), hours);
    let twice = ["2025-11-02T04:00:00Z", "2025-11-02T05:00:00Z"];
    let hours = "2025-11-02T01:00:00-02:30,1 2025-11-02T01:00:00-03:30,1";
    assert_eq!(rows(by_hour, "America/St_Johns", &twice), hours);
    // On Lord Howe half an hour does.
    let half = ["2023-04-01T14:45:00Z", "2023-04-01T15:15:00Z"];
    assert_eq!(rows(by_hour, "Australia/Lord_Howe", &half), "2023-04-02T01:00:00+11:00,2");
}

#[test]
fn what_local_clocks_skip_is_no_window() {
    let times = ["2025-10-04T16:00:00Z", "2025-10-04T17:00:00Z"];
    let hours = "2025-10-05T01:00:00+09:30,1 2025-10-05T03:00:00+10:30,1";
    let filled = "packets | summarize n = count() every 1h fill";
    assert_eq!(rows(filled, "Australia/Adelaide", &times), hours);
    let sliding = "packets | summarize n = count() over 2h every 1h";
    assert_eq!(
        rows(sliding, "Australia/Adelaide", &times),
        "2025-10-05T00:00:00+09:30,1 2025-10-05T01:00:00+09:30,2 2025-10-05T03:00:00+10:30,1"
    );
    let times = ["2011-12-30T09:00:00Z", "2011-12-30T11:00:00Z"];
    let days = "2011-12-29T00:00:00-10:00,1 2011-12-31T00:00:00+14:00,1";
    let filled = "packets | summarize n = count() every 1d fill";
    assert_eq!(rows(filled, "Pacific/Apia", &times), days);
    let times = ["2023-09-30T15:25:00Z", "2023-09-30T15:35:00Z", "2023-09-30T15:45:00Z"];
    let thirds = "2023-10-01T01:40:00+10:30,1 2023-10-01T02:30:00+11:00,1 \
                  2023-10-01T02:40:00+11:00,1";
    let filled = "packets | summarize n = count() every 20m fill";
    assert_eq!(rows(filled, "Australia/Lord_Howe", &times), thirds);
}

#[test]
fn sliding_and_filled_windows_are_of_local_days() {
    let times = ["2023-10-27T22:00:00Z", "2023-10-29T23:00:00Z"];
    let filled = "packets | summarize n = count() every 1d fill";
    assert_eq!(
        rows(filled, "Europe/Rome", &times),
        "2023-10-28T00:00:00+02:00,1 2023-10-29T00:00:00+02:00,0 2023-10-30T00:00:00+01:00,1"
    );
    let sliding = "packets | summarize n = count() over 2d every 1d";
    assert_eq!(
        rows(sliding, "Europe/Rome", &times),
        "2023-10-27T00:00:00+02:00,1 2023-10-28T00:00:00+02:00,1 2023-10-29T00:00:00+02:00,1 \
         2023-10-30T00:00:00+01:00,1"
    );
    // A second summarize takes days of hours, also where these are not of the same zone's length.
    let both = "packets | summarize n = count() every 1h | summarize n = sum(n) every 1d";
    assert_eq!(
        rows(both, "Europe/Rome", &times),
        "2023-10-28T00:00:00+02:00,1 2023-10-30T00:00:00+01:00,1"
    );
}

#[test]
fn parts_of_a_time_and_dates_are_local() {
    let parts = "packets | project y = year(ts), m = month(ts), d = day(ts), w = weekday(ts), \
                 h = hour(ts), n = minute(ts)";
    let times = ["2023-12-31T23:30:00Z"];
    assert_eq!(rows(parts, "Europe/Rome", &times), "2024,1,1,1,0,30");
    assert_eq!(rows(parts, "Asia/Kolkata", &times), "2024,1,1,1,5,0");
    assert_eq!(rows(parts, "UTC", &times), "2023,12,31,7,23,30");
    // A date is its midnight in the zone; a time says which it is in.
    let since = "packets | where ts >= @2024-01-01 | project ts";
    assert_eq!(rows(since, "Europe/Rome", &times), "2024-01-01T00:30:00+01:00");
    assert_eq!(rows(since, "UTC", &times), "");
    let since = "packets | where ts >= @2024-01-01T00:00:00Z | project ts";
    assert_eq!(rows(since, "Europe/Rome", &times), "");
}

#[test]
fn every_format_has_the_distance_from_utc() {
    let folder = tempfile::tempdir().expect("a folder");
    let x = capture(folder.path(), "x.pcap", &["2023-07-01T12:00:00.5Z"]);
    let written = |more: &[&str]| {
        let args = ["run", "-e", "packets | project ts", "-r", &x, "-q"];
        let output = run(&[&args[..], &["--time-zone", "Europe/Rome"], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let local = "2023-07-01T14:00:00.500+02:00";
    assert_eq!(written(&["-o", "json"]), format!("{{\"ts\":\"{local}\"}}\n"));
    for format in ["csv", "tsv", "table", "markdown"] {
        assert!(written(&["-o", format]).contains(local), "{format}");
    }
    assert_eq!(written(&["-o", "csv", "--time", "epoch"]), "ts\n1688212800.500000000\n");
}

#[test]
fn probes_agree_on_the_zone() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
    let times = ["2023-10-28T21:59:59Z", "2023-10-28T22:00:00Z", "2023-10-29T22:59:59Z"];
    let (a, b) = (capture(folder.path(), "a.pcap", &times), at("b.pcap"));
    capture(folder.path(), "b.pcap", &["2023-10-28T22:00:01Z", "2023-10-29T23:00:00Z"]);
    let publish = |capture: &str, to: &str, zone: &str| {
        let args = ["run", "-e", BY_DAY, "-r", capture, "--publish", to, "--time-zone", zone];
        let output = run(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let merge = |zone: &str| {
        let (a, b) = (at("a"), at("b"));
        let args = ["merge", "-e", BY_DAY, "-o", "csv", "--from", &a, "--from", &b];
        run(&[&args[..], &["--time-zone", zone]].concat())
    };
    publish(&a, &at("a"), "Europe/Rome");
    publish(&b, &at("b"), "Europe/Rome");
    let merged = merge("Europe/Rome");
    assert_eq!(
        text(&merged.stdout),
        "ts,n\n2023-10-28T00:00:00+02:00,1\n2023-10-29T00:00:00+02:00,3\n\
         2023-10-30T00:00:00+01:00,1\n",
        "{}",
        text(&merged.stderr)
    );
    for other in ["UTC", "Europe/London"] {
        let refused = merge(other);
        assert_eq!(refused.status.code(), Some(2), "{other}: {}", text(&refused.stdout));
    }
    fs::remove_file(at("b")).expect("there is one");
    publish(&b, &at("b"), "UTC");
    assert_ne!(merge("Europe/Rome").status.code(), Some(0));
}

#[test]
fn what_a_zone_can_not_do_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let x = capture(folder.path(), "x.pcap", &["2023-07-01T12:00:00Z"]);
    let refused = |query: &str, zone: &str, why: &str| {
        let output = run(&["run", "-e", query, "-r", &x, "--time-zone", zone]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{query}: {told}");
        assert!(told.contains(why), "{query}: {told}");
    };
    refused(BY_DAY, "Europe/Rom", "did you mean `Europe/Rome`?");
    refused(BY_DAY, "", "there is no such time zone");
    let rate = "packets | summarize r = rate(len) every 1d";
    refused(rate, "Europe/Rome", "windows by the clock of Europe/Rome do not all last as long");
    // Where no clock is ever changed, they do; and hours of UTC are hours of Rome.
    for (zone, every) in [("Asia/Dubai", "1d"), ("Europe/Rome", "1h")] {
        let query = format!("packets | summarize r = rate(len) every {every}");
        let output = run(&["run", "-e", &query, "-r", &x, "--time-zone", zone]);
        assert!(output.status.success(), "{zone}: {}", text(&output.stderr));
    }
}

#[test]
fn a_report_and_a_picture_are_in_the_zone() {
    let folder = tempfile::tempdir().expect("a folder");
    let x = capture(folder.path(), "x.pcap", &["2023-07-01T22:30:00Z", "2023-07-01T22:30:01Z"]);
    let output = run(&["report", &x, "-o", "-", "--time-zone", "Europe/Rome", "-q"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    for part in [
        "<dt>First packet (local time)</dt><dd>2023-07-02 00:30:00</dd>",
        "<dt>Time zone</dt><dd>Europe/Rome</dd>",
        "00:30:01",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("22:30:0"), "a time is in UTC");
    let svg = folder.path().join("x.svg");
    let to = svg.to_str().expect("plain");
    let query = "packets | summarize n = count() every 100ms";
    let args = ["run", "-e", query, "-r", &x, "--plot", to, "--time-zone", "Europe/Rome"];
    assert!(run(&args).status.success());
    let picture = fs::read_to_string(&svg).expect("a picture");
    assert!(picture.contains(">00:30:00") && !picture.contains(">22:30:0"), "{picture}");
}
