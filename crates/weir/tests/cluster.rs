//! A whole cluster: two probes in namespaces of their own, hosts that share the packets of one of
//! them, a broker, and a job on Flink over three detectors. Each of them is killed in turn and comes
//! back. The packets on the wires are recorded, and the job gives the rows of one run over them.

#![cfg(all(target_os = "linux", feature = "kafka"))]

#[path = "kafka/broker.rs"]
mod broker;
mod common;
#[path = "cluster/flink.rs"]
mod flink;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "common/same_rows.rs"]
mod same_rows;
#[path = "cluster/site.rs"]
mod site;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use broker::{Broker, Topic, ends, kill_all, rows, run, weir};
use flink::Flink;
use over_wires::{Run, signal, text};
use same_rows::are_the_same;
use site::Site;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// One cluster at a time: each takes gigabytes of memory.
static ALONE: Mutex<()> = Mutex::new(());

const NAME: &str = "a_cluster_whose_parts_are_killed_gives_the_rows_of_one_run";

const TOPICS: [Topic; 2] = [("records", "2", &[]), ("partials", "3", &[])];

/// Where the broker listens: probes in other namespaces have to reach it.
const HOST: &str = "10.99.0.1";

const TOTALS: &str = "packets | summarize n = count(), bytes = sum(len), ports = distinct(dport), \
    completeness() by ip.src every 1s";

/// The queries that the probes and the job run.
struct Queries {
    folder: tempfile::TempDir,
}

impl Queries {
    fn new() -> Queries {
        let folder = common::workplace();
        std::fs::write(folder.path().join("totals.weir"), TOTALS).expect("a file");
        Queries { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain path").to_owned()
    }

    /// Their names and parameters.
    fn args(&self) -> Vec<String> {
        let detectors = ["syn_flood", "heavy_hitters", "superspreader"];
        let parameters = ["-p", "interval=1s", "-p", "threshold=40"];
        let totals = self.path("totals.weir");
        let all = detectors.into_iter().chain([&*totals]).chain(parameters);
        all.map(str::to_owned).collect()
    }

    /// A command over them.
    fn command(&self, before: &[&str], after: &[&str]) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [own(before), self.args(), own(after)].concat()
    }
}

/// A process of a group that analyses packets out of the broker.
struct Host(Option<Child>);

impl Host {
    fn start(queries: &Queries, broker: &Broker) -> Host {
        let (from, to) = (broker.address("records"), broker.address("partials"));
        let args = queries.command(&["run"], &["-i", &from, "--group", "hosts", "--publish", &to]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let host = weir(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Host(Some(host.expect("it starts")))
    }

    /// Ends it by Ctrl-C.
    fn interrupt(mut self) {
        let host = self.0.take().expect("it runs");
        signal(host.id(), "-INT");
        let output = ends(host, &["run"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

/// All of its processes at once, also where a test fails.
impl Drop for Host {
    fn drop(&mut self) {
        if let Some(host) = &mut self.0 {
            kill_all(host);
        }
    }
}

/// The lines of a topic.
fn lines(broker: &Broker, topic: &str) -> Vec<String> {
    let mut lines: Vec<String> = broker.read(topic).into_iter().map(|(_, value)| value).collect();
    lines.sort();
    lines
}

/// Waits until a line of a topic contains this.
fn wait_for(broker: &Broker, topic: &str, what: &str) {
    // Each look takes some seconds.
    let came = |_: &u32| lines(broker, topic).iter().any(|line| line.contains(what));
    assert!((0..20).find(came).is_some(), "{topic}: no {what} in {:#?}", lines(broker, topic));
}

/// The second in which a row stands.
fn second(row: &str) -> &str {
    row.split_once(r#""ts":""#).map_or("", |(_, rest)| &rest[..19])
}

/// A row whose times end at the second: those of a packet differ a little between two who capture
/// it.
fn to_the_second(row: &str) -> String {
    let (mut out, mut rest) = (String::new(), row);
    while let Some((before, after)) = rest.split_once('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (fraction, further) = after.split_at(digits);
        out += before;
        if !further.starts_with('Z') {
            out = out + "." + fraction;
        }
        rest = further;
    }
    out + rest
}

#[test]
fn a_cluster_whose_parts_are_killed_gives_the_rows_of_one_run() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !broker::fetched(NAME) || !wires::namespace(NAME) {
        return;
    }
    let Some(flink) = Flink::new(NAME) else { return };
    wires::ip(&format!("addr add {HOST}/32 dev lo"));
    let Some(broker) = Broker::start_at(HOST, NAME, &TOPICS) else { return };
    if !flink.up(NAME) {
        return;
    }
    let queries = Queries::new();
    let sites = [1, 2].map(|number| Site::new(NAME, number, HOST));
    let recorded = sites.each_ref().map(|site| queries.path(&format!("{}.pcap", site.number)));
    let recorders: Vec<Run> = (sites.iter().zip(&recorded))
        .map(|(site, file)| site.start(&["-e", "packets | pass", "-w", file]))
        .collect();
    let (partials, records) = (broker.address("partials"), broker.address("records"));
    let publish = queries.command(&[], &["--publish", &partials, "--probe", "a"]);
    let publish: Vec<&str> = publish.iter().map(String::as_str).collect();
    let mut probe = sites[0].start(&publish);
    let sender = sites[1].start(&["-e", "packets | pass", "-w", &records]);
    let [killed, staying] = [(); 2].map(|()| Host::start(&queries, &broker));
    let job = flink.submit(&queries.args(), &broker.place(), "a,hosts/0,hosts/1");

    let send = |round: u8| site::send(&sites, round);
    let arrives = |round: u8| wait_for(&broker, "rows", &format!(r#""ip.src":"10.0.2.{round}""#));
    send(1);
    arrives(1);
    flink.kill();
    send(2);
    assert!(flink.up(NAME));
    arrives(2);
    // The probe is gone, and misses its part of these packets.
    kill_all(&mut probe.child);
    let unseen = send(3);
    let mut probe = sites[0].start(&publish);
    site::pass_seconds(3);
    send(4);
    arrives(4);
    // In the midst of a window.
    send(5);
    drop(killed);
    arrives(5);
    let hosts = [staying, Host::start(&queries, &broker)];
    send(6);
    broker.kill();
    send(7);
    broker.up();
    arrives(7);
    send(8);
    arrives(8);

    for recorder in recorders {
        recorder.interrupt();
    }
    let one =
        queries.command(&["run"], &["-r", &recorded[0], "-r", &recorded[1], "-o", "json", "-q"]);
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    // A job without an end has no alert that is open at its end.
    let all = rows(&one);
    let expected: Vec<&str> =
        all.lines().filter(|row| !row.contains(r#""alert.state":"open""#)).collect();
    for kind in ["syn_flood", "heavy_hitters", "superspreader"] {
        let told = |row: &&&str| row.contains(&format!(r#""alert.rule":"{kind}""#));
        assert!(expected.iter().filter(told).count() >= 7, "{kind}: {expected:#?}");
    }
    let of_whole = |row: &&str| second(row) != unseen;
    let found = lines(&broker, "rows");
    let whole = found.iter().map(String::as_str).filter(of_whole).map(to_the_second);
    let whole: Vec<String> = whole.collect();
    let expected: Vec<String> = expected.into_iter().filter(of_whole).map(to_the_second).collect();
    are_the_same(&whole.join("\n"), &expected.join("\n"));
    what_nobody_saw(&found, &unseen);

    // The parts end, each in its way; then groups of windows come that are out.
    probe.signal("-INT");
    let status = probe.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    sender.interrupt();
    hosts.into_iter().for_each(Host::interrupt);
    flink.kill();
    assert!(flink.up(NAME));
    let again = queries.command(&["run"], &["-r", &recorded[0], "-q"]);
    let again: Vec<&str> = again
        .iter()
        .map(String::as_str)
        .chain(publish[publish.len() - 4..].iter().copied())
        .collect();
    assert!(run(&again).status.success());
    wait_for(&broker, "rows-events", r#""event":"late""#);
    assert_eq!(lines(&broker, "rows"), found, "what is late changes nothing");
    flink.cancel(&job);
}

/// The three commands of the README, in a namespace where their ports are free.
#[test]
fn the_commands_of_the_readme_run_a_cluster() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const TEST: &str = "the_commands_of_the_readme_run_a_cluster";
    if !broker::fetched(TEST) || !wires::namespace(TEST) || Flink::new(TEST).is_none() {
        return;
    }
    let readme = common::text(common::root().join("README.md"));
    let block = readme.split_once("  ```sh\n  cluster/up").expect("the commands").1;
    let commands = format!("set -e\ncluster/up{}", block.split_once("```").expect("an end").0);
    let folder = common::workplace();
    let shell = |commands: &str| {
        let weir = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
        let with_weir = format!("PATH=\"{}:$PATH\"\n{commands}", weir.display());
        let output = Command::new("bash")
            .args(["-c", &with_weir])
            .current_dir(common::root())
            .env("KAFKA_HOME", folder.path().join("kafka"))
            .env("FLINK_HOME", folder.path().join("flink"))
            .env("WEIR_NATIVE", common::native())
            .output();
        output.expect("bash runs")
    };
    let ran = shell(&commands);
    let alerts = ran.status.success().then(|| {
        let look = |_: &u32| {
            let read = shell("cluster/kafka.sh read alerts");
            let lines = text(&read.stdout).to_owned();
            (!lines.is_empty()).then_some(lines)
        };
        (0..20).find_map(|n| look(&n))
    });
    shell("cluster/flink.sh down; cluster/kafka.sh down");
    let alerts = alerts.flatten().unwrap_or_else(|| panic!("{}", text(&ran.stderr)));
    assert!(alerts.contains(r#""alert.rule":"syn_flood""#), "{alerts}");
}

/// Of the window in which a probe was gone, the rows have what the other saw, and say that it is
/// not all.
fn what_nobody_saw(found: &[String], unseen: &str) {
    let rows: Vec<&String> = found.iter().filter(|row| second(row) == unseen).collect();
    assert!(!rows.is_empty());
    for row in rows {
        let share = row.split_once(r#""completeness":"#).map(|(_, rest)| rest);
        let share = share.and_then(|rest| rest.split([',', '}']).next());
        let share: f64 = share.and_then(|share| share.parse().ok()).expect("a share");
        assert!(share < 0.001, "{row}");
    }
}
