//! `join`, `union` and `scan` of a job give the rows of one run, and so does what follows them.

use crate::alerts::{busy_now_and_then, two_probes};
use crate::common::workplace;
use crate::same_rows::are_the_same;
use crate::{Cluster, place};
use std::fs;

/// Rows that meet, that meet none, and that have none to meet.
const JOINS: &str = "let a = packets | where udp | summarize n = count(), b = sum(len) \
      by ip.src, ip.dst every 1s\n\
    let b = packets | where tcp | summarize m = count(), port = max(tcp.sport) \
      by ip.src every 1s\n\
    let total = a | summarize all = sum(n), hosts = count() every 1s\n\
    let more = total | where all > 9 | project ts, hosts, m = all\n\
    let m = b | project ts, m\n\
    let later = b | project at = ts, ip.src, was = if(m > 3, \"many\", \"few\")\n\
    let inner = a | join b by ip.src, ts\n\
    let left = a | join left b by ip.src, ts default m = -1 | top 3 by m asc, n\n\
    let anti = a | join anti b by ip.src, ts | extend late = ts + 1h\n\
    let shares = a | join total by ts | extend share = float(n) / all | where share > 0.2 \
      | join left more by ts, hosts default m = 0 \
      | summarize n = count(), most = max(share), all = sum(all) by hosts every 5s\n\
    let near = a | join left later by ip.src within -1s..2500ms default was = \"none\" \
      | summarize n = count(), few = count(was == \"none\"), apart = max(abs(at - ts)) \
      by ip.src every 3s\n\
    let gone = a | join anti later by ip.src within 1s..10s\n\
    let pairs = a | join m by ts | summarize n = count(), s = sum(m) every 2s\n\
    inner\nleft\nanti\nshares\npairs\nnear\ngone";

/// Rows of several pipelines, of which one comes through windows of its own.
const UNIONS: &str = "let a = packets | where udp | summarize n = count(), s = min(ip.ttl) \
      by ip.src every 1s\n\
    let b = packets | where tcp | summarize m = avg(len), n = count(), p = stddev(len) \
      by ip.src every 1s\n\
    let c = b | summarize n = sum(n), odd = any(n % 2 == 1), e = max(m) by net = prefix(ip.src, 8, \
      64) every 1s\n\
    let all = a | union b, c, a\n\
    let sums = all | summarize rows = count(), n = sum(n), nets = distinct(net, 1), \
      hosts = distinct(ip.src, 3), odd = distinct(odd, 1), few = distinct(n, 4) every 3s\n\
    let first = all | where n > 3 | top 4 by n per exists(m)\n\
    all\nsums\nfirst";

/// Rows that are folded: by key and by none, with what is forgotten, after a `top`, and twice.
const SCANS: &str = "let a = packets | summarize n = count(), last = max(ts), name = min(ip.dst) \
      by ip.src every 1s\n\
    let seen = a | scan times = 0, since = 0s, at = ts, was = name by ip.src idle 3s => \
      (times + 1, ts - at, ts, if(n > 5, name, was)) | where n % 3 == 0\n\
    let sum = a | scan total = 0, odd = false, mean = 0.5 => \
      (total + n, odd != (n % 2 == 1), (mean + float(n)) / 2.0)\n\
    let few = a | scan kept = 1 by ip.src idle 2s max 3 => kept * 3 + n\n\
    let best = a | top 3 by n, ip.src asc \
      | scan order = 0, text = \"\" idle 5s => (order * 3 + n, if(order % 2 == 0, \"it's\", text))\n\
    let twice = few | extend big = kept > 40 and not (ip.src in {10.0.0.0/8}) \
      | scan runs = 0 by big => if(big or runs in 3..5, runs + 1, max_of(runs - 1, 0)) \
      | summarize most = max(runs), n = count() by big every 4s \
      | scan up = most by big => coalesce(most / (up - 3), up - 1)\n\
    let net = a | scan nets = 0 by prefix(ip.src, 24, 64), n > 4 => nets + 1 \
      | extend nets = if(is_private(ip.src), nets, -nets)\n\
    seen\nsum\nfew\nbest\ntwice\nnet";

/// Folded rows of windows that overlap, and of the whole of the input.
const MORE: &str = "let slid = packets | summarize n = count() by ip.proto over 4s every 2s \
      | scan up = 0, was = n by ip.proto idle 4s => (if(n > was, up + 1, 0), n)\n\
    let whole = packets | summarize n = count() by ip.src, ip.dst \
      | scan before = 0 by ip.src => before + n\n\
    slid\nwhole";

pub(crate) fn rows_meet_and_are_folded(cluster: &Cluster) {
    let folder = workplace();
    let capture = place(folder.path(), "busy.pcap");
    fs::write(&capture, busy_now_and_then(5)).expect("a file");
    for (number, query) in [JOINS, UNIONS, SCANS, MORE].into_iter().enumerate() {
        let captures = [capture.clone()];
        let ([a, b], merged) = two_probes(folder.path(), &["-e", query], &captures);
        let (topic, to) = (format!("stages{number}"), format!("staged{number}"));
        cluster.topic(&topic);
        cluster.produce(&topic, &[&a, &b]);
        cluster.submit(query, &topic, &to, &["--bounded"]);
        let found = cluster.consume(&to, merged.lines().count());
        are_the_same(&found, &merged);
    }
    goes_on_after_a_kill(cluster, &capture);
}

/// A task manager is killed while keys are remembered, in a job without an end.
fn goes_on_after_a_kill(cluster: &Cluster, capture: &str) {
    let folder = workplace();
    let ([a, b], merged) = two_probes(folder.path(), &["-e", SCANS], &[capture.to_owned()]);
    cluster.topic("folded");
    let job = cluster.submit(SCANS, "folded", "folded-rows", &[]);
    cluster.produce("folded", &["--to", "60", &a, &b]);
    cluster.consume("folded-rows", 20);
    cluster.flink(&["kill", "1"]);
    cluster.flink(&["up"]);
    cluster.produce("folded", &["--from", "40", &a, &b]);
    let found = cluster.consume("folded-rows", merged.lines().count());
    are_the_same(&found, &merged);
    cluster.ask(&["cancel", &job]);
}
