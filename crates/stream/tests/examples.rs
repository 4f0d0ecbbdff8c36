//! The examples, with 1, 2 and 4 workers.

use weir_stream::StreamError;

#[path = "../examples/flow_meter.rs"]
mod flow_meter;
#[path = "../examples/heavy_hitters.rs"]
mod heavy_hitters;
#[path = "../examples/latency.rs"]
mod latency;
#[path = "../examples/port_scan.rs"]
mod port_scan;
#[path = "../examples/scores.rs"]
mod scores;
#[path = "../examples/syn_flood.rs"]
mod syn_flood;

type Lines = fn(&str, usize) -> Result<Vec<String>, StreamError>;

/// Checks how many lines an example has on a capture, and what the first one says.
fn check(example: Lines, capture: &str, (n, first): (usize, &str)) {
    let capture = format!("../../fixtures/{capture}");
    let one = example(&capture, 1).expect("it runs");
    assert_eq!((one.len(), one.first().map_or("", String::as_str)), (n, first), "{one:#?}");
    for workers in [2, 4] {
        assert_eq!(example(&capture, workers).expect("it runs"), one, "{workers} workers");
    }
}

#[test]
fn examples_say_the_same_with_any_number_of_workers() {
    let first = "192.0.2.1:46482 > 198.51.100.2:80: 7 packets, 546 bytes, 3ms 999µs";
    check(flow_meter::lines, "web.pcap", (16, first));
    let first = "2026-11-21T05:51:14Z 198.51.100.2: 42078 bytes, 52 %";
    check(heavy_hitters::lines, "syn_flood.pcap", (5, first));
    let first = "198.51.100.2 answers 192.0.2.1 in 996µs 857ns, 7 times";
    check(latency::lines, "web.pcap", (1, first));
    let first = "203.0.113.9 scans, by its first 8 contacts";
    check(port_scan::lines, "detectors/trw_scanner.pcap.gz", (1, first));
    check(port_scan::lines, "web.pcap", (0, ""));
    let first = "2026-11-21T05:50:50Z 192.0.2.1: 297 probes, score 0.89";
    check(scores::lines, "syn_scan.pcap", (1, first));
    check(scores::lines, "web.pcap", (0, ""));
    let first = "198.51.100.2:80: 2834 handshakes were left open";
    check(syn_flood::lines, "syn_flood.pcap", (1, first));
}

#[test]
fn the_example_of_the_readme_is_one_of_these() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(|l| l.trim().to_owned()).collect() };
    let readme = std::fs::read_to_string("../../README.md").expect("a text");
    let (_, rust) = readme.split_once("\n```rust\n").expect("an example");
    let example = lines(rust.split_once("\n```\n").expect("its end").0);
    let source = lines(include_str!("../examples/scores.rs"));
    assert!(source.windows(example.len()).any(|part| part == example), "{example:#?}");
}
