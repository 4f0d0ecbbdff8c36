//! Requests that can't be met are refused in words that help.

use crate::broker::{Broker, fails, fixture, produce, rows, run, stream_of};
use crate::over_wires::text;
use std::fs;

pub(crate) fn what_cannot_be_is_refused_in_words(broker: &Broker) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("writes");
        path.to_str().expect("a plain path").to_owned()
    };
    let capture = &fixture("mixed.pcap");
    let topic = broker.address("refused");
    let publish = |to: &str, more: &[&str], status: i32, why: &str| {
        let args = ["run", "source_counts", "-r", capture, "--publish", to, "--probe", "a"];
        fails(&[&args[..], more].concat(), status, why);
    };
    let merge = |from: &str, more: &[&str], status: i32, why: &str| {
        fails(&[&["merge", "source_counts", "--from", from][..], more].concat(), status, why);
    };
    // The topic, the partition, the probes.
    let nowhere = &broker.address("nowhere");
    publish(nowhere, &[], 1, "there is no topic `nowhere` (make it: kafka-topics.sh");
    merge(nowhere, &["--probes", "a"], 1, "there is no topic `nowhere`");
    publish(&topic, &["--kafka-partition", "2"], 2, "no partition 2: it has 2, numbered from 0");
    merge(&topic, &["--probes", "a@7"], 2, "no partition 7");
    merge(&topic, &[], 1, "no probe has written into the topic yet; name those to wait for");
    merge(&topic, &["--probes", "a", "--retire", "b"], 2, "--retire b: it is not among");
    merge(&topic, &["--probes", "a,a"], 2, "a is there twice");
    merge(&topic, &["--probes", "a,"], 2, "the name of a probe has 1 to 255 bytes");
    merge(&topic, &["--from", &topic], 2, "one topic is possible");
    merge(&topic, &["--probes", "a", "--kafka-from", "7"], 1, "has no record of offset 7: it has");
    merge(&topic, &["--kafka-from", "first"], 2, "expected `earliest`, `latest`");
    merge(capture, &["--until", "end"], 2, "are for a topic");
    publish("/dev/null", &["--kafka-partition", "0"], 2, "are for kafka://");
    // The properties.
    let with = |text: &str| config("config", text);
    let publish_with = |text: &str, status: i32, why: &str| {
        publish(&topic, &["--kafka-config", &with(text)], status, why);
    };
    publish_with("x", 2, "config: line 1: expected NAME=VALUE");
    publish_with("no.such.thing=1", 2, "No such configuration property: \"no.such.thing\"");
    publish_with("\nacks=0", 2, "line 2: acks can't be set");
    publish_with("ssl.key.location=/nowhere/key.pem", 1, "ssl.key.location /nowhere/key.pem");
    let missing = "security.protocol=ssl\nssl.ca.location=/nowhere/ca.pem";
    publish_with(missing, 2, "ssl.ca.location failed");
    publish(&topic, &["--kafka-config", "/nowhere/config"], 1, "No such file");
    merge(&topic, &["--probes", "a", "--kafka-config", &with("acks=0")], 2, "can't be set");
    // No broker, and one that speaks no TLS: each is waited for.
    let none = "kafka://127.0.0.1:1/t";
    let why = "no broker answers as it should: ";
    std::thread::scope(|scope| {
        scope.spawn(|| publish(none, &[], 1, why));
        scope.spawn(|| publish_with("security.protocol=ssl", 1, why));
        scope.spawn(|| merge(none, &["--probes", "a"], 1, "Connection refused"));
    });
}

/// Others may write into a topic what they want: a merge names it and goes on.
pub(crate) fn records_that_are_none_are_named(broker: &Broker) {
    let topic = broker.address("damaged");
    let capture = &fixture("mixed.pcap");
    let args = ["run", "source_counts", "-r", capture];
    let (head, mut messages) = stream_of(&[&args[..], &["--probe", "a"]].concat());
    let mut wrong = messages[0].clone();
    wrong.truncate(wrong.len() - 1);
    messages.splice(0..0, [b"{\"not\": \"ours\"}".to_vec(), wrong]);
    let output = produce(&topic, &[(head, messages)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let merge = ["merge", "source_counts", "--from", &topic, "--until", "end", "-o", "json"];
    let merged = run(&merge);
    let said = text(&merged.stderr);
    assert_eq!(merged.status.code(), Some(1), "{said}");
    assert_eq!(text(&merged.stdout), rows(&[&args[..], &["-o", "json", "-q"]].concat()));
    assert!(said.contains("kafka, probe a: partition 0, offset 1: it is no record"), "{said}");
    assert!(said.contains("partition 0, offset 2: the message breaks off in"), "{said}");
    assert!(said.contains("2 records could not be used, and were left out"), "{said}");
    // Another query than that of the probes.
    fails(&["merge", "flows", "--from", &topic, "-q"], 2, "runs another query");
}

pub(crate) fn a_broker_that_refuses_ends_the_run(broker: &Broker) {
    let topic = broker.address("small");
    let capture = &fixture("mixed.pcap");
    let query = "packets | summarize n = count() by ip.src, t = ts every 1h";
    let args = ["run", "-e", query, "-r", capture, "--publish", &topic, "--probe", "a"];
    let output = run(&args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("a broker refuses records: Broker: Message size too large"), "{said}");
}
