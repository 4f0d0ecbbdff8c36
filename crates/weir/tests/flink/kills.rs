//! Servers that are killed under a job.

use crate::common::workplace;
use crate::{ANY, Cluster, fixture, place, printed, publish, sorted};

/// A task manager is killed among windows, and again before groups come late.
pub(crate) fn a_killed_task_manager_changes_no_total(cluster: &Cluster) {
    const QUERY: &str = "packets | summarize n = count(), bytes = sum(len), \
        d = distinct(ip.dst, 5), a = approx_distinct(sport) by ip.src every 1s";
    let folder = workplace();
    let [a, b] = publish(folder.path(), QUERY, &fixture("syn_flood.pcap"), ANY);
    let merged = printed(&["merge", "-q", "-e", QUERY, "--from", &a, "--from", &b, "-o", "json"]);
    cluster.topic("killed");
    let job = cluster.submit(QUERY, "killed", "totals", &[]);
    // The first messages: some windows close, others stay open.
    cluster.produce("killed", &["--to", "7", &a, "--to", "5", &b]);
    cluster.consume("totals", 1);
    cluster.flink(&["kill", "1"]);
    cluster.flink(&["up"]);
    cluster.produce("killed", &["--from", "3", &a, &b]);
    let found = cluster.consume("totals", merged.lines().count());
    assert_eq!(sorted(&found), sorted(&merged));
    // A second life of a probe, whose windows have all closed: its groups are late.
    let again = place(folder.path(), "again.wps");
    printed(&[
        "run",
        "-q",
        "-e",
        QUERY,
        "-r",
        &fixture("syn_flood.pcap"),
        "--publish",
        &again,
        "--probe",
        "a",
    ]);
    cluster.flink(&["kill", "1"]);
    cluster.flink(&["up"]);
    cluster.produce("killed", &["--garbage", "b", "--garbage", "nobody", &again]);
    let events = cluster.consume("totals-events", 5);
    assert!(events.contains("\"event\":\"late\""), "{events}");
    assert!(events.contains("\"probe\":\"b\",\"why\":\"the message breaks off"), "{events}");
    assert!(events.contains("\"probe\":\"nobody\",\"why\":\"it is not among"), "{events}");
    assert_eq!(sorted(&cluster.consume("totals", merged.lines().count())), sorted(&merged));
    let savepoint = cluster.ask(&["savepoint", "--cancel", &job]);
    assert!(savepoint.starts_with("file:"), "{savepoint}");
}
