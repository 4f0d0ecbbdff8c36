//! Alerts of a job are those of `weir merge`: of the detectors that jobs run, and of random rows.

use crate::common::{detectors, own_captures, queries, text, workplace};
use crate::same_rows::are_the_same;
use crate::{Cluster, FIRST, at_root, fixture, place, printed, sorted, weir};
use std::fs;
use std::path::Path;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// Splits packets without regard to connections.
const SPLIT: &str = "net 0.0.0.0/1";

/// Streams of two probes, and the rows of both together, which are those of one run.
pub(crate) fn two_probes(
    folder: &Path,
    queries: &[&str],
    captures: &[String],
) -> ([String; 2], String) {
    two_parts(folder, queries, captures, SPLIT)
}

/// The same, of probes of which one sees what a filter keeps.
fn two_parts(
    folder: &Path,
    queries: &[&str],
    captures: &[String],
    filter: &str,
) -> ([String; 2], String) {
    let read: Vec<&str> = captures.iter().flat_map(|file| ["-r", file.as_str()]).collect();
    let [a, b] = ["a", "b"].map(|probe| place(folder, &format!("{probe}.wps")));
    let both = [("a", &a, filter.to_owned()), ("b", &b, format!("not ({filter})"))];
    for (probe, stream, filter) in both {
        let _ = fs::remove_file(stream);
        let to = ["--publish", stream, "--probe", probe, "-q", "--", &filter];
        printed(&[&["run"], queries, &read, &to].concat());
    }
    let merge = ["--from", &a, "--from", &b, "-o", "json", "-q"];
    let merged = printed(&[&["merge"], queries, &merge[..]].concat());
    let one = printed(&[&["run"], queries, &read, &["-o", "json", "-q"]].concat());
    // A run also says which of its queries gave rows up; a merge does not.
    let is_of_queries = |line: &&str| !line.contains("\"alert.rule\":\"evictions\"");
    let one: String = one.lines().filter(is_of_queries).map(|line| format!("{line}\n")).collect();
    assert_eq!(sorted(&merged), sorted(&one));
    ([a, b], merged)
}

/// Queries that run together, each with a capture that triggers it.
type Group = Vec<(String, String)>;

/// Returns the text of `weir explain --cluster`, if several probes can run these queries together.
fn explained<'a>(queries: impl Iterator<Item = &'a str>) -> Option<String> {
    let explained = weir(&["explain", "--cluster"].into_iter().chain(queries).collect::<Vec<_>>());
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    explained.contains("fingerprint").then_some(explained)
}

/// The queries of the library that several probes can run: those for which any probe may see any
/// packet; and groups of the others, by keys that they have in common.
fn merged_library() -> (Group, Vec<Group>) {
    let (mut anywhere, mut groups) = (Group::new(), Vec::<Group>::new());
    for path in queries().into_iter().chain(detectors()) {
        let query = path.to_str().expect("a plain path").to_owned();
        let Some(explained_alone) = explained([query.as_str()].into_iter()) else { continue };
        let capture = own_captures(&text(&path)).into_iter().next();
        let capture = capture.map_or_else(|| fixture("mixed.pcap"), |own| at_root(&own));
        if explained_alone.contains("any packet is at any") {
            anywhere.push((query, capture));
            continue;
        }
        let fits = |group: &&mut Group| {
            let all = group.iter().map(|(other, _)| other.as_str());
            explained(all.chain([query.as_str()])).is_some()
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push((query, capture)),
            None => groups.push(vec![(query, capture)]),
        }
    }
    (anywhere, groups)
}

pub(crate) fn the_library_gives_the_rows_of_one_run(cluster: &Cluster) {
    let folder = workplace();
    let (anywhere, groups) = merged_library();
    assert!(anywhere.len() >= 33 && groups.concat().len() >= 6, "{anywhere:?} {groups:?}");
    // All packets of the others are at one probe.
    let groups = groups.into_iter().map(|group| (group, FIRST));
    for (number, (group, filter)) in [(anywhere, SPLIT)].into_iter().chain(groups).enumerate() {
        let (queries, captures): (Vec<String>, Vec<String>) = group.into_iter().unzip();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let ([a, b], merged) = two_parts(folder.path(), &queries, &captures, filter);
        assert!(merged.lines().count() >= queries.len(), "{merged}");
        let (topic, to) = (&format!("library{number}"), &format!("library-rows{number}"));
        cluster.topic(topic);
        cluster.produce(topic, &[&a, &b]);
        cluster.submit_all(&queries, topic, to, &["--bounded"]);
        are_the_same(&cluster.consume(to, merged.lines().count()), &merged);
    }
}

/// Packets of a minute, of hosts that are busy now and then.
pub(crate) fn busy_now_and_then(seed: u64) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let mut state = seed;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let (mut ts, mut host) = (1_000_000_000_000_000_000i64, 0);
    for n in 0..4000u64 {
        if below(40) == 0 {
            host = below(6);
        }
        ts += (below(30_000_000) + if below(300) == 0 { 6_000_000_000 } else { 0 }) as i64;
        let from = [[10, 0, 0, host as u8], [200, 0, 0, host as u8]][below(2) as usize];
        let to = [[10, 1], [203, 0]][below(2) as usize];
        let frame = Frame::ethernet().ipv4(from, [to[0], to[1], 0, below(3) as u8]);
        let size = vec![0; below(90) as usize];
        let frame = match below(3) {
            0 => frame.udp(below(4) as u16, 53).payload(&size).bytes(),
            _ => frame.tcp(1000 + (n % 3) as u16, 80).payload(&size).bytes(),
        };
        header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
    }
    bytes
}

/// Alerts that go on, end, come again, are crowded out, name connections, and texts that are odd.
const RANDOM: [&str; 5] = [
    "packets | summarize n = count(), mean = avg(len), completeness() by ip.src every 1s \
     | where n > 6 \
     | alert \"{ip.src} sent {n} packets of {mean} bytes\" severity low key ip.src hold 2s repeat 3s",
    "packets | summarize n = count(), d = stddev(len) by ip.proto, ip.dst every 500ms \
     | where n <= 3 | alert \"{d} from {ip.proto}\" severity high key ip.proto, ip.dst hold 1s max 2",
    "packets | summarize n = count(), last = max(ts), first = min(ts) by conn every 2s \
     | extend took = last - first \
     | where took > 40ms | alert \"{conn.a_ip} took {took} until {last}\" severity info hold 5s",
    "packets | summarize n = count(), m = avg(len) by ip.src every 1s \
     | summarize most = max(n), mean = avg(n), low = min(m), high = max(m) \
       by odd = n % 2 == 1 every 5s \
     | where most > 8 | alert \"{most} {mean} {low} {high}\" severity critical key odd hold 10s",
    "packets | summarize n = count(), r = rate() by ip.src every 1s \
     | extend name = if(n > 9, \"a \\\"b\\\"\\n\", if(n > 6, \"absent\", if(n > 3, \"\", \"x\"))) \
     | alert \"{r} {name}\" severity medium key name hold 1s",
];

pub(crate) fn random_rows_give_the_alerts_of_one_run(cluster: &Cluster) {
    let folder = workplace();
    let queries: Vec<&str> = RANDOM.iter().flat_map(|query| ["-e", *query]).collect();
    let capture = place(folder.path(), "busy.pcap");
    fs::write(&capture, busy_now_and_then(11)).expect("a file");
    let ([a, b], merged) = two_probes(folder.path(), &queries, &[capture]);
    for state in ["start", "ongoing", "end", "open"] {
        assert!(merged.contains(&format!("\"alert.state\":\"{state}\"")), "no alert is {state}");
    }
    assert!(merged.contains("\"alert.community_id\":\"1:"), "{merged}");
    cluster.topic("busy");
    cluster.produce("busy", &[&a, &b]);
    cluster.submit_all(&queries, "busy", "busy-alerts", &["--bounded"]);
    let found = cluster.consume("busy-alerts", merged.lines().count());
    are_the_same(&found, &merged);
    goes_on_after_a_kill(cluster, &queries, [&a, &b], &merged);
}

/// A task manager is killed while keys fire. Such a job goes on after its probes, so no alert is
/// open at its end.
fn goes_on_after_a_kill(cluster: &Cluster, queries: &[&str], [a, b]: [&str; 2], merged: &str) {
    cluster.topic("busy-killed");
    let job = cluster.submit_all(queries, "busy-killed", "killed-alerts", &[]);
    cluster.produce("busy-killed", &["--to", "150", a, b]);
    cluster.consume("killed-alerts", 20);
    cluster.flink(&["kill", "1"]);
    cluster.flink(&["up"]);
    cluster.produce("busy-killed", &["--from", "100", a, b]);
    let is_open = |row: &&str| row.contains("\"alert.state\":\"open\"");
    let expected: Vec<&str> = merged.lines().filter(|row| !is_open(row)).collect();
    let mut found = sorted(&cluster.consume("killed-alerts", expected.len()));
    for row in expected {
        let at = found.iter().position(|one| one == row);
        found.remove(at.unwrap_or_else(|| panic!("this is missing: {row}")));
    }
    let ended = |row: &String| {
        let open = row.replacen("\"alert.state\":\"end\"", "\"alert.state\":\"open\"", 1);
        merged.lines().any(|one| one == open)
    };
    assert!(found.iter().all(ended), "these are too many: {found:#?}");
    cluster.ask(&["cancel", &job]);
}
