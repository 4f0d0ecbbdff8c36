//! Servers that are killed under a job.

use crate::common::workplace;
use crate::{ANY, Cluster, fixture, place, printed, publish, sorted};

/// A task manager is killed among windows, and the job manager before groups come late.
pub(crate) fn killed_servers_change_no_total(cluster: &Cluster) {
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
    cluster.says(&job, "probe b: windows that end until");
    cluster.says(&job, "the other probes wait for it");
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
    cluster.flink(&["kill", "jobmanager"]);
    cluster.flink(&["up"]);
    cluster.produce("killed", &["--garbage", "b", "--garbage", "nobody", &again]);
    let events = cluster.consume("totals-events", 5);
    assert!(events.contains("\"event\":\"late\""), "{events}");
    assert!(events.contains("\"probe\":\"b\",\"why\":\"the message breaks off"), "{events}");
    assert!(events.contains("\"probe\":\"nobody\",\"why\":\"it is not among"), "{events}");
    assert_eq!(sorted(&cluster.consume("totals", merged.lines().count())), sorted(&merged));
    cluster.says(&job, "probe b: ");
    cluster.says(&job, "its run is refused");
    cluster.says(&job, "groups left out, whose windows were out (late): ");
    let savepoint = cluster.ask(&["savepoint", "--cancel", &job]);
    assert!(savepoint.starts_with("file:"), "{savepoint}");
}

/// Probes that begin again may read packets in another way than before, also after the job was
/// restored; two that send at the same time may not.
pub(crate) fn another_run_may_read_in_another_way(cluster: &Cluster) {
    const QUERY: &str = "packets | summarize n = count() by ip.src every 1s";
    let folder = workplace();
    let read = |name: &str, probe: &str, capture: &str, lateness: &str, filter: &str| {
        let stream = place(folder.path(), name);
        let publish = ["--publish", &stream, "--probe", probe, "--lateness", lateness];
        let capture = fixture(capture);
        let run = ["run", "-q", "-e", QUERY, "-r", &capture];
        printed(&[&run[..], &publish, &["--", filter]].concat());
        stream
    };
    let (but, topic) = (format!("not ({ANY})"), "ways");
    cluster.topic(topic);
    let job = cluster.submit(QUERY, topic, "ways-rows", &[]);
    let mut expected = String::new();
    for (number, (capture, lateness)) in
        [("mixed.pcap", "0s"), ("syn_flood.pcap", "1s")].into_iter().enumerate()
    {
        let a = read(&format!("a{number}"), "a", capture, lateness, ANY);
        let b = read(&format!("b{number}"), "b", capture, lateness, &but);
        // Both begin before one of them ends, after which nothing waits for it.
        cluster.produce(topic, &["--to", "1", &a, &b]);
        cluster.produce(topic, &["--from", "1", &a, &b]);
        expected += &printed(&["run", "-q", "-e", QUERY, "-r", &fixture(capture), "-o", "json"]);
        let found = cluster.consume("ways-rows", expected.lines().count());
        assert!(sorted(&found) == sorted(&expected), "{capture}: {} rows", found.lines().count());
        cluster.flink(&["kill", "1"]);
        cluster.flink(&["up"]);
    }
    let a = read("a", "a", "syn_flood.pcap", "1s", ANY);
    let b = read("b", "b", "syn_flood.pcap", "2s", &but);
    // The one goes on while the other begins.
    cluster.produce(topic, &["--to", "3", &a]);
    cluster.produce(topic, &[&b]);
    let events = cluster.consume("ways-rows-events", 1);
    assert!(events.contains("it reads packets in another way than probe a"), "{events}");
    cluster.ask(&["cancel", &job]);
}
