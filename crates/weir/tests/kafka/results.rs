//! The result of several probes is that of one run.

use crate::broker::{Broker, ends, fixture, produce, rows, run, stream_of, weir};
use crate::over_wires::{signal, text, until_confined};
use std::fs;
use std::process::Stdio;
use weir_cluster::ProbeHead;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// Each of two links carries half of a flood, which is below the threshold.
pub(crate) fn two_probes_give_the_rows_of_one_run(broker: &Broker) {
    let capture = &fixture("detectors/half_open_128.pcap.gz");
    let halves = ["ip[15] + ip[19] < 66", "not (ip[15] + ip[19] < 66)"];
    let one = rows(&["run", "syn_flood", "-r", capture, "-o", "json"]);
    assert!(one.contains("128 handshakes"), "{one}");
    // Each has a partition of its own, and both have one together.
    for topic in ["halves", "together"] {
        let topic = broker.address(topic);
        for (probe, half) in ["north", "south"].into_iter().zip(halves) {
            let to = ["--publish", &topic, "--probe", probe, "-v"];
            let args = [&["run", "syn_flood", "-r", capture][..], &to, &["--", half]].concat();
            let said = run(&args);
            let said = text(&said.stderr);
            assert!(said.contains(" records delivered to partition "), "{said}");
            assert!(said.contains("kafka: sandbox: no capabilities; "), "{said}");
            assert!(said.contains("no sockets but TCP and UDP (seccomp)"), "{said}");
        }
        let merge = ["merge", "syn_flood", "--from", &topic, "-o", "json", "--until", "end"];
        for probes in ["north,south", "south,north"] {
            let merged = rows(&[&merge[..], &["--probes", probes]].concat());
            assert_eq!(merged, one, "{topic}, {probes}");
        }
        // Without a list, those that are there.
        let found = run(&merge);
        assert_eq!(text(&found.stdout), one);
        let said = text(&found.stderr);
        assert!(said.contains("--probes north@") && said.contains(",south@"), "{said}");
    }
}

pub(crate) fn records_that_come_again_count_once(broker: &Broker) {
    let topic = broker.address("again");
    let (query, capture) = ("source_counts", fixture("mixed.pcap"));
    let args = ["run", query, "-r", &capture];
    let (head, messages) = stream_of(&[&args[..], &["--probe", "a", "tcp"]].concat());
    let later = ProbeHead { epoch: head.epoch + 1, ..head.clone() };
    let empty = stream_of(&[&args[..], &["--probe", "a", "ip proto 99"]].concat());
    let second = (empty.0.clone(), empty.1);
    assert!(second.0.epoch > later.epoch);
    let first = (head, messages);
    // The first life, again as far as its middle, the second one, and the first one once more.
    let middle = (first.0.clone(), first.1[..first.1.len() / 2].to_vec());
    let lives = [first.clone(), middle, first.clone(), second, first];
    let output = produce(&topic, &lives);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let args = ["run", query, "-r", &capture, "--publish", &topic, "--probe", "b", "-q"];
    rows(&[&args[..], &["not tcp"]].concat());
    let merge = ["merge", query, "--from", &topic, "--until", "end", "-o", "json"];
    let merged = run(&merge);
    let said = text(&merged.stderr);
    assert_eq!(text(&merged.stdout), rows(&["run", query, "-r", &capture, "-o", "json", "-q"]));
    assert!(said.contains(" that came twice"), "{said}");
    assert_eq!(merged.status.code(), Some(0), "{said}");
}

/// One group with more values than a record of Kafka's default size takes.
pub(crate) fn long_messages_travel_in_parts(broker: &Broker) {
    let topic = broker.address("long");
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("long.pcap");
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).bytes();
    for n in 0..250_000 {
        header.put_record(&mut bytes, n * 1000, frame.len() as u32, &frame);
    }
    fs::write(&capture, bytes).expect("writes");
    let capture = capture.to_str().expect("a plain path");
    let query = ["-e", "packets | summarize n = distinct(ts) every 1h"];
    let publish = ["-r", capture, "--publish", &topic, "--probe", "a", "-q"];
    let publishing = [&["run"][..], &query, &publish].concat();
    rows(&publishing);
    let merge = ["--from", &topic, "--until", "end", "-o", "csv", "-q"];
    let merged = rows(&[&["merge"][..], &query, &merge].concat());
    assert!(merged.contains(",250000"), "{merged}");
    // A reader that takes all of it, and then no more.
    let child = weir(&[&["merge"][..], &query, &merge[..2], &["-q", "-o", "csv", "-l"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    until_confined(child.id());
    signal(child.id(), "-INT");
    let ended = ends(child, &["merge"]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
}
