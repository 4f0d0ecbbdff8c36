//! Packets by way of Kafka: hosts that share the partitions of a topic give the rows of one run,
//! whoever is killed meanwhile.

use crate::broker::{
    Broker, children, ends, fails, fixture, kill_all, produce_packets, rows, run, weir,
};
use crate::kept::waiting;
use crate::over_wires::{signal, text, until};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use weir_kafka::packets::{PacketHead, PacketKind, PacketRecordBuilder, SpreadKey};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

const BY_FLOW: &str = "packets | summarize n = count(), bytes = sum(len) by flow every 1s";

/// Lines in an order that does not depend on partitions.
pub(crate) fn sorted(lines: &str) -> Vec<&str> {
    let mut all: Vec<&str> = lines.lines().collect();
    all.sort_unstable();
    all
}

/// Spreads a capture over the partitions of a topic.
fn spread(topic: &str, capture: &str, more: &[&str]) {
    let args = ["run", "-e", "packets | pass", "-r", capture, "-w", topic];
    let output = run(&[&args[..], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A host of a group.
fn host(query: &[&str], topic: &str, group: &str, more: &[&str]) -> Child {
    let args = ["-i", topic, "--group", group];
    let child = weir(&[&["run"][..], query, &args, more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("it starts")
}

pub(crate) fn hosts_give_the_rows_of_one_run(broker: &Broker) {
    let topic = &broker.address("shared");
    let capture = &fixture("mixed.pcap");
    // Two captures, one after the other: each is a run of its own.
    spread(topic, capture, &[]);
    spread(topic, capture, &[]);
    let one = rows(&["run", "-e", BY_FLOW, "-r", capture, "-o", "json", "-q"]);
    let twice = [one.as_str(), &one].concat();
    let args = ["-e", BY_FLOW];
    let both = ["a", "b"].map(|_| host(&args, topic, "two", &["--until", "end"]));
    let printed: Vec<String> = both
        .into_iter()
        .map(|host| {
            let output = ends(host, &["run"]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            text(&output.stdout).to_owned()
        })
        .collect();
    assert_eq!(sorted(&printed.concat()), sorted(&twice));
    // All is committed: a host that comes later has nothing to do.
    let late = ends(host(&args, topic, "two", &["--until", "end"]), &["run"]);
    assert_eq!((late.status.code(), text(&late.stdout)), (Some(0), ""), "{}", text(&late.stderr));
    assert!(text(&late.stderr).contains("committed  0 packets"), "{}", text(&late.stderr));
    // A query that remembers, and a capture filter.
    let scan = ["-e", "packets | scan n = 0 by conn idle 5m => n + 1 | project ts, conn, n"];
    let one = rows(&["run", scan[0], scan[1], "-r", capture, "-o", "json", "-q", "tcp"]);
    assert!(!one.is_empty());
    let output = ends(host(&scan, topic, "scan", &["--until", "end", "-q", "tcp"]), &scan);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(sorted(text(&output.stdout)), sorted(&[one.as_str(), &one].concat()));
}

pub(crate) fn what_partitions_cannot_do_is_refused(broker: &Broker) {
    let topic = &broker.address("shared");
    let capture = &fixture("mixed.pcap");
    let refuses = |query: &str, more: &[&str], status: i32, why: &str| {
        let args = ["run", "-e", query, "-i", topic];
        fails(&[&args[..], more].concat(), status, why);
    };
    let group = &["--group", "refused", "--until", "end"];
    let all = "packets | summarize n = count() every 1s";
    refuses(BY_FLOW, &[], 2, "--group NAME is missing");
    refuses(BY_FLOW, &["--group", "a b"], 2, "a group has 1 to 200 letters");
    refuses(all, group, 2, "pipeline 1: `summarize` has no key that is a packet field");
    refuses("packets | project ip.src | limit 3", group, 2, "`limit` needs the rows of all");
    refuses(BY_FLOW, &[&group[..], &["-j", "2"]].concat(), 2, "-j can't be used with -i kafka://");
    refuses(BY_FLOW, &[&group[..], &["-o", "csv"]].concat(), 2, "another -o than json");
    refuses(BY_FLOW, &[&group[..], &["--fragments"]].concat(), 2, "--fragments can't be used");
    let inner = [&group[..], &["--headers", "inner"]].concat();
    refuses(BY_FLOW, &inner, 2, "--headers can't be used");
    let records = "flows | summarize n = count() by ip.src";
    refuses(records, group, 2, "has packets, and the query reads flow records");
    let elsewhere = ["--rows", "kafka://h:1/t"];
    refuses(BY_FLOW, &[&group[..], &elsewhere].concat(), 2, "has to be at the brokers of");
    // Rows in a topic are as their schema says.
    let rows_to = ["--rows", topic];
    for other in [["--time", "epoch"], ["--names", "zeek"]] {
        let more = [&group[..], &rows_to, &other].concat();
        refuses(BY_FLOW, &more, 2, "cannot be used with");
    }
    // Packets of one source are in several partitions.
    let by_source = "packets | summarize n = count() by ip.src every 1s";
    refuses(by_source, group, 1, "packets are spread by conn; capture with another --spread-by");
    let nowhere = &broker.address("nowhere");
    let away = ["run", "-e", BY_FLOW, "-i", nowhere, "--group", "x"];
    fails(&away, 1, "there is no topic `nowhere`");
    let write = ["run", "-e", "packets | pass", "-r", capture, "-w", nowhere];
    fails(&write, 1, "there is no topic `nowhere`");
    fails(&[&write[..6], &[topic.as_str(), "-j", "2"]].concat(), 2, "has one worker");
    fails(&[&write[..6], &[topic.as_str(), "--headers", "inner"]].concat(), 2, "outer headers");
    fails(&["run", "flows", "-r", capture, "--spread-by", "hosts"], 2, "go to a topic");
    fails(&["run", "flows", "-r", capture, "--group", "g"], 2, "are for packets of a topic");
    fails(&["run", "flows", "-r", capture, "--kafka-config", "x"], 2, "is for kafka://");
    let no_rows = ["run", "flows", "-r", capture, "--rows", nowhere];
    fails(&no_rows, 1, "there is no topic `nowhere`");
}

/// A record of packets of another program: its run, its key, how far it is, and packets before.
fn foreign(epoch: u64, spread: SpreadKey, reached: Option<i64>, before: u64) -> Vec<u8> {
    let (mut builder, mut bytes) = (PacketRecordBuilder::default(), Vec::new());
    let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).bytes();
    builder.push(1_700_000_000_000_000_000, frame.len() as u32, &frame, 0, 0);
    let (kind, number) = (PacketKind::End, before);
    let head = PacketHead { kind, spread, link: 1, epoch, number, before, reached };
    builder.finish(&head, &mut bytes);
    bytes
}

/// Nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "runs that capture are told apart by the time")]
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_nanos() as u64
}

/// A host that may write into a topic can't stop those that read it.
pub(crate) fn records_that_lie_are_left_out(broker: &Broker) {
    let topic = &broker.address("lies");
    let capture = &fixture("mixed.pcap");
    spread(topic, capture, &[]);
    let far = Some(i64::MAX);
    let lies = [
        foreign(u64::MAX, SpreadKey::Conn, None, 0),
        foreign(now_ns(), SpreadKey::Conn, far, 0),
        foreign(now_ns(), SpreadKey::Destination, None, 0),
    ];
    produce_packets(topic, &lies);
    spread(topic, capture, &[]);
    let query = ["-e", "packets | summarize n = count() by conn every 1s"];
    let output = ends(host(&query, topic, "lies", &["--until", "end"]), &["run"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let one = rows(&["run", query[0], query[1], "-r", capture, "-o", "json", "-q"]);
    assert_eq!(sorted(text(&output.stdout)), sorted(&[one.as_str(), &one].concat()), "{said}");
    assert_eq!(
        said.matches("it is of a time that lies more than a day ahead").count(),
        2,
        "{said}"
    );
    assert!(said.contains("its packets are spread by ip.dst"), "{said}");
    assert!(said.contains("left out  3 records that could not be used"), "{said}");
}

/// Records that are absent before the first record of a run count as missing.
pub(crate) fn records_at_the_start_of_a_run_are_missed(broker: &Broker) {
    let topic = &broker.address("headless");
    produce_packets(topic, &[foreign(now_ns(), SpreadKey::Conn, None, 7)]);
    let output = ends(host(&["-e", BY_FLOW], topic, "headless", &["--until", "end"]), &["run"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("left out  7 packets of records that are missing"), "{said}");
    assert_eq!(text(&output.stdout).lines().count(), 1, "{said}");
}

/// Partitions that are added while a host waits are read, and one without a record ends none.
pub(crate) fn partitions_may_be_added(broker: &Broker) {
    let topic = &broker.address("grown");
    let (query, capture) = (["-e", BY_FLOW], &fixture("mixed.pcap"));
    let one = rows(&["run", query[0], query[1], "-r", capture, "-o", "json", "-q"]);
    let waiting = host(&query, topic, "waiting", &["--until", "end"]);
    wait_for_partition(&waiting);
    broker.grow("grown", "2");
    spread(topic, capture, &[]);
    let output = ends(waiting, &["run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(sorted(text(&output.stdout)), sorted(&one), "{}", text(&output.stderr));
    broker.grow("grown", "3");
    let output = ends(host(&query, topic, "later", &["--until", "end"]), &["run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(sorted(text(&output.stdout)), sorted(&one), "{}", text(&output.stderr));
}

/// By the key that a query groups by, any query can be shared.
pub(crate) fn packets_are_spread_by_the_key_of_a_query(broker: &Broker) {
    let (topic, to) = (&broker.address("by-source"), &broker.address("by-source-rows"));
    let capture = &fixture("mixed.pcap");
    spread(topic, capture, &["--spread-by", "ip.src"]);
    let query =
        ["-e", "packets | summarize n = count(), ports = distinct(dport) by ip.src every 1s"];
    let rows_to = ["--until", "end", "--rows", to];
    let output = ends(host(&query, topic, "sources", &rows_to), &query);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let one = rows(&["run", query[0], query[1], "-r", capture, "-o", "json", "-q"]);
    let found = broker.read("by-source-rows");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(sorted(&values.join("\n")), sorted(&one));
    // Records have the address as their key, as the schema says.
    for (key, value) in &found {
        let part = key.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        assert!(part.is_some_and(|part| value.contains(part)), "{key}: {value}");
    }
    let schema = rows(&["explain", query[0], query[1], "--schema"]);
    assert!(schema.contains(r#""x-weir-key": ["#) && schema.contains(r#""ip.src""#), "{schema}");
    // A run over a capture sends the same rows, those of a host of which others have no part.
    let plain = &broker.address("plain-rows");
    rows(&["run", query[0], query[1], "-r", capture, "--rows", plain, "-q"]);
    let found = broker.read("plain-rows");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(sorted(&values.join("\n")), sorted(&one));
}

/// A run that captures what a test writes.
struct Capture {
    child: Child,
    stdin: ChildStdin,
    header: FileHeader,
    bytes: Vec<u8>,
    sent: u64,
    all: Vec<u8>,
}

impl Capture {
    fn start(topic: &str) -> Capture {
        Capture::start_with(topic, &[])
    }

    fn start_with(topic: &str, more: &[&str]) -> Capture {
        let args = ["run", "-e", "packets | pass", "-r", "-", "-w", topic, "-q"];
        let mut child = weir(&[&args[..], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdin = child.stdin.take().expect("a pipe");
        let header = FileHeader::new(LinkType::ETHERNET);
        let bytes = header.to_bytes().to_vec();
        Capture { child, stdin, header, bytes, sent: 0, all: Vec::new() }
    }

    /// Sends packets of the next seconds, some of each of many conversations.
    fn send(&mut self, seconds: u64) {
        const EACH: u64 = 400;
        for _ in 0..seconds * EACH {
            let n = self.sent;
            let (a, b) = ([10, 0, (n % 5) as u8, (n % 13) as u8], [10, 1, 0, (n % 3) as u8]);
            let frame = Frame::ethernet().ipv4(a, b).udp((n % 7) as u16 + 1, 53).bytes();
            let ts = 1_700_000_000_000_000_000 + (n * (1_000_000_000 / EACH)) as i64;
            self.header.put_record(&mut self.bytes, ts, frame.len() as u32, &frame);
            self.sent += 1;
        }
        self.stdin.write_all(&self.bytes).expect("it reads");
        self.stdin.flush().expect("it reads");
        self.all.append(&mut self.bytes);
    }

    /// Ends it, and writes a capture of all that was sent.
    fn end(self, to: &str) {
        drop(self.stdin);
        let output = ends(self.child, &["run"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        fs::write(to, self.all).expect("writes");
    }
}

/// Waits until a host has a partition: it has a process that is a member, and two for a partition.
fn wait_for_partition(host: &Child) {
    until("a partition comes", || children(host.id()).len() >= 3);
}

/// Waits until a topic has committed rows.
fn wait_for_rows(broker: &Broker, topic: &str, more_than: usize) {
    until("rows come", || broker.read(topic).len() > more_than);
}

/// Hosts come, are killed and go; a broker is killed and comes back: each packet counts once.
pub(crate) fn nothing_is_lost_or_counts_twice(broker: &Broker) {
    let (topic, to) = (&broker.address("crash"), &broker.address("crash-rows"));
    let query = ["-e", BY_FLOW];
    let rows_to = ["--rows", to];
    let mut capture = Capture::start(topic);
    let mut first = host(&query, topic, "crash", &rows_to);
    let second = host(&query, topic, "crash", &rows_to);
    capture.send(5);
    wait_for_rows(broker, "crash-rows", 100);
    capture.send(4);
    // The first rows may be those of the other host.
    wait_for_partition(&first);
    // One machine fails, with whatever it has begun.
    kill_all(&mut first);
    capture.send(4);
    let third = host(&query, topic, "crash", &[&rows_to[..], &["--until", "end"]].concat());
    wait_for_partition(&third);
    capture.send(3);
    // The process that a person sees is killed alone: the others of its host end by themselves.
    let mut second = second;
    second.kill().expect("it runs");
    second.wait().expect("it was killed");
    capture.send(3);
    broker.kill();
    capture.send(3);
    broker.up();
    let fourth = host(&query, topic, "crash", &[&rows_to[..], &["--until", "end"]].concat());
    capture.send(3);
    let folder = tempfile::tempdir().expect("a folder");
    let all = folder.path().join("all.pcap");
    let all = all.to_str().expect("a plain path");
    let sent = capture.sent;
    capture.end(all);
    for host in [third, fourth] {
        let output = ends(host, &["run"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let found = broker.read("crash-rows");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    let one = rows(&["run", query[0], query[1], "-r", all, "-o", "json", "-q"]);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    values.iter().for_each(|row| *times.entry(row).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, n)| **n > 1).take(3).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let count = |row: &&str| {
        let n = row.split_once(r#""n":"#).and_then(|(_, rest)| rest.split(',').next());
        n.and_then(|n| n.parse::<u64>().ok()).expect("a count")
    };
    assert_eq!(values.iter().map(count).sum::<u64>(), sent, "each packet once");
    assert_eq!(sorted(&values.join("\n")), sorted(&one));
}

/// Packets wait on disk while a broker is away, also for the next run, and none is lost.
pub(crate) fn packets_wait_on_disk_for_a_broker(broker: &Broker) {
    let topic = &broker.address("kept");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (kept, config) = (path("kept"), path("config"));
    fs::create_dir(&kept).expect("makes");
    fs::write(&config, "queue.buffering.max.messages=2").expect("writes");
    let more = ["--kafka-spill", &kept, "--kafka-config", &config];
    let waits = || waiting(Path::new(&kept));
    let on_disk = |least: u64| until("packets wait on disk", || waits() > least);
    let mut capture = Capture::start_with(topic, &more);
    capture.send(3);
    broker.kill();
    // It goes on, though nothing is delivered.
    capture.send(20);
    on_disk(100_000);
    broker.up();
    capture.send(3);
    let all = path("all.pcap");
    let sent = capture.sent;
    capture.end(&all);
    assert_eq!(waits(), 0, "the space is given back");
    let query = ["-e", BY_FLOW];
    let output = ends(host(&query, topic, "kept", &["--until", "end"]), &["run"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let one = rows(&["run", query[0], query[1], "-r", &all, "-o", "json", "-q"]);
    assert!(sorted(text(&output.stdout)) == sorted(&one), "{said}");
    assert!(said.contains(&format!("committed  {sent} packets")), "{said}");
    fails(
        &["run", "flows", "-r", &all, "--kafka-spill", &kept],
        2,
        "for -w kafka:// and --publish",
    );
}

/// A host gives partitions up to one that joins, and takes them back when that leaves.
pub(crate) fn hosts_join_and_leave(broker: &Broker) {
    let (topic, to) = (&broker.address("moves"), &broker.address("moves-rows"));
    let query = ["-e", BY_FLOW];
    let rows_to = ["--rows", to, "-v"];
    let mut capture = Capture::start(topic);
    let staying = host(&query, topic, "moves", &[&rows_to[..], &["--until", "end"]].concat());
    for _ in 0..2 {
        capture.send(3);
        let joining = host(&query, topic, "moves", &rows_to);
        wait_for_partition(&joining);
        capture.send(3);
        signal(joining.id(), "-INT");
        let output = ends(joining, &["run"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("committed  ") && said.contains("interrupted"), "{said}");
    }
    capture.send(3);
    let folder = tempfile::tempdir().expect("a folder");
    let all = folder.path().join("all.pcap");
    let all = all.to_str().expect("a plain path");
    capture.end(all);
    let output = ends(staying, &["run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = broker.read("moves-rows");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    let one = rows(&["run", query[0], query[1], "-r", all, "-o", "json", "-q"]);
    assert_eq!(sorted(&values.join("\n")), sorted(&one));
}

/// Totals over all packets take partial results, which a merge puts together.
pub(crate) fn hosts_publish_partial_results(broker: &Broker) {
    let (topic, to) = (&broker.address("once"), &broker.address("partials"));
    let capture = &fixture("mixed.pcap");
    spread(topic, capture, &[]);
    let query =
        ["-e", "packets | summarize n = count(), sources = distinct(ip.src) every 1s | top 9 by n"];
    let publish = ["--publish", to, "--until", "end", "-q"];
    let both = ["a", "b"].map(|_| host(&query, topic, "totals", &publish));
    for host in both {
        let output = ends(host, &["run"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let args = ["merge", query[0], query[1], "--from", to, "--until", "end", "-o", "json"];
    let probes = ["--probes", "totals/0,totals/1,totals/2,totals/3"];
    let merged = run(&[&args[..], &probes].concat());
    let said = text(&merged.stderr);
    let one = rows(&["run", query[0], query[1], "-r", capture, "-o", "json", "-q"]);
    assert_eq!(text(&merged.stdout), one, "{said}");
    assert!(said.contains("processed  336"), "{said}");
    // Where packets are spread by something else, sums of floats are not those of one run.
    let floats = "packets | summarize x = sum(float(len)) by ip.src every 1s";
    let refused = ["run", "-e", floats, "-i", topic, "--group", "floats", "--publish", to];
    fails(&refused, 1, "packets with equal ip.src have to be in one partition");
    let file = ["run", query[0], query[1], "-i", topic, "--group", "x", "--publish", "x.wps"];
    fails(&file, 2, "have to go to a topic at the brokers of");
}

/// TLS with a certificate that a test made, and SASL by two mechanisms.
pub(crate) fn brokers_are_reached_by_tls_and_sasl(broker: &Broker) {
    let topic = &broker.secure_address("secure");
    let (capture, folder) = (fixture("mixed.pcap"), tempfile::tempdir().expect("a folder"));
    let ca = broker.ca();
    let config = |mechanism: &str, password: &str, ca: &str| {
        let path = folder.path().join(format!("{mechanism}-{password}"));
        let text = format!(
            "security.protocol=sasl_ssl\nssl.ca.location={ca}\nsasl.mechanism={mechanism}\n\
             sasl.username=probe\nsasl.password={password}\n"
        );
        fs::write(&path, text).expect("writes");
        path.to_str().expect("a plain path").to_owned()
    };
    let write = ["run", "-e", "packets | pass", "-r", &capture, "-w", topic, "--kafka-config"];
    let plain = config("PLAIN", "plain-secret", &ca);
    let scram = config("SCRAM-SHA-512", "scram-secret", &ca);
    rows(&[&write[..], &[&plain, "-q"]].concat());
    let more = ["--until", "end", "-q", "--kafka-config", &scram];
    let output = ends(host(&["-e", BY_FLOW], topic, "secure", &more), &["run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let one = rows(&["run", "-e", BY_FLOW, "-r", &capture, "-o", "json", "-q"]);
    assert_eq!(sorted(text(&output.stdout)), sorted(&one));
    // Probes and merges, too.
    let publish = ["run", "flows", "-r", &capture, "--publish", topic, "--probe", "a", "-q"];
    rows(&[&publish[..], &["--kafka-config", &scram]].concat());
    let merge = ["merge", "flows", "--from", topic, "--probes", "a", "--until", "end", "-q"];
    let merged = rows(&[&merge[..], &["-o", "json", "--kafka-config", &plain]].concat());
    assert_eq!(merged, rows(&["run", "flows", "-r", &capture, "-o", "json", "-q"]));
    // A wrong password, and a certificate that nobody trusts.
    let (wrong, other) = (config("PLAIN", "guessed", &ca), folder.path().join("other.pem"));
    let other = other.to_str().expect("a plain path");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout"])
        .args([&format!("{other}.key"), "-out", other])
        .stderr(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let strange = config("PLAIN", "plain-secret-2", other);
    std::thread::scope(|scope| {
        scope.spawn(|| fails(&[&write[..], &[&wrong]].concat(), 1, "Authentication failed"));
        scope.spawn(|| fails(&[&write[..], &[&strange]].concat(), 1, "certificate verify failed"));
    });
}
