//! Probes and brokers that go and come back.

use crate::broker::{Broker, children, ends, kill_all, rows, run, weir};
use crate::kept::waiting;
use crate::over_wires::{LONG, Run, signal, text, until, until_confined};
use crate::wires::{Sender, pause, veth};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

pub(crate) const QUERY: &str = "packets | summarize n = count() by ip.src every 1s";

/// Rows of a window: one for each host.
pub(crate) const HOSTS: u64 = 3;

/// A capture of 40 seconds with packets all the time, in two halves; the second has no header.
pub(crate) struct Steady {
    folder: tempfile::TempDir,
    pub(crate) first: Vec<u8>,
    pub(crate) second: Vec<u8>,
}

impl Steady {
    pub(crate) fn new() -> Steady {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = header.to_bytes().to_vec();
        let mut first = Vec::new();
        for n in 0..4000u32 {
            if n == 2000 {
                first = std::mem::take(&mut bytes);
            }
            let source = [10, 0, 0, (u64::from(n) % HOSTS) as u8];
            let frame = Frame::ethernet().ipv4(source, [10, 0, 0, 9]).udp(n as u16, 53).bytes();
            let ts = 1_000_000_000_000_000_000 + i64::from(n) * 10_000_000;
            header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("all.pcap"), [&first[..], &bytes].concat()).expect("writes");
        Steady { folder, first, second: bytes }
    }

    pub(crate) fn path(&self) -> String {
        self.folder.path().join("all.pcap").to_str().expect("a plain path").to_owned()
    }

    /// The rows of one run over all of it.
    pub(crate) fn rows(&self) -> String {
        rows(&["run", "-e", QUERY, "-r", &self.path(), "-o", "json", "-q"])
    }

    /// The header of the file alone.
    pub(crate) fn header(&self) -> &[u8] {
        &self.first[..24]
    }
}

/// A run over what is written to its standard input.
fn fed(topic: &str, probe: &str, more: &[&str]) -> Child {
    let args = ["run", "-e", QUERY, "-r", "-", "--publish", topic, "--probe", probe];
    let mut command = weir(&[&args[..], more].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Waits until a merge has rows of so many windows of a probe.
pub(crate) fn wait_for_windows(topic: &str, probe: &str, windows: u64) {
    let args = ["merge", "-e", QUERY, "--from", topic, "--probes", probe, "-l", "-o", "csv", "-q"];
    let mut merging =
        weir(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let lines = BufReader::new(merging.stdout.take().expect("a pipe")).lines();
    let (to, came) = mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| to.send(line)));
    for _ in 0..=windows * HOSTS {
        came.recv_timeout(LONG).expect("rows come");
    }
    let _ = merging.kill();
    let _ = merging.wait();
}

pub(crate) fn a_killed_probe_goes_on_in_its_next_life(broker: &Broker) {
    let (topic, steady) = (broker.address("killed"), Steady::new());
    let mut killed = fed(&topic, "a", &["-q"]);
    let mut stdin = killed.stdin.take().expect("a pipe");
    stdin.write_all(&steady.first).expect("it reads");
    wait_for_windows(&topic, "a", 15);
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    drop(stdin);
    let mut again = fed(&topic, "a", &["-q"]);
    let mut stdin = again.stdin.take().expect("a pipe");
    stdin.write_all(steady.header()).expect("it reads");
    stdin.write_all(&steady.second).expect("it reads");
    drop(stdin);
    assert!(ends(again, &["a"]).status.success());
    let merge = ["merge", "-e", QUERY, "--from", &topic, "--probes", "a", "--until", "end"];
    let merged = run(&[&merge[..], &["-o", "json"]].concat());
    let said = text(&merged.stderr);
    assert_eq!(merged.status.code(), Some(1), "{said}");
    assert!(said.contains("in 2 lives, of which 1 broke off"), "{said}");
    // All windows of the second life are there, and those that the first one has sent: what it
    // had read and not sent is missing.
    let (one, found) = (steady.rows(), text(&merged.stdout).to_owned());
    assert!(found.lines().all(|row| one.contains(row)), "{found}");
    let windows = found.lines().count() as u64 / HOSTS;
    assert!((35..40).contains(&windows), "{windows}: {said}");
}

/// The process that carries its records is killed with it: no word of its end is left.
pub(crate) fn a_dead_probe_is_retired_by_word(broker: &Broker) {
    let (topic, steady) = (broker.address("dead"), Steady::new());
    let mut dead = fed(&topic, "dead", &["-q"]);
    dead.stdin.as_mut().expect("a pipe").write_all(&steady.first).expect("it reads");
    wait_for_windows(&topic, "dead", 15);
    kill_with_carrier(&mut dead);
    rows(&["run", "-e", QUERY, "-r", &steady.path(), "--publish", &topic, "--probe", "b", "-q"]);
    let merge = ["merge", "-e", QUERY, "--from", &topic, "--probes", "dead,b", "-o", "json", "-l"];
    // It is waited for, ...
    let waits = weir(&merge).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut waits = waits.expect("it starts");
    until_confined(waits.id());
    let mut said = Said::new(&mut waits);
    said.until_told("probe dead: windows that end until", |rest| {
        rest.contains("the other probes wait for it")
    });
    signal(waits.id(), "-INT");
    assert_eq!(waits.wait().expect("it ends").code(), Some(0), "{:?}", said.lines);
    // ... until somebody says that it is dead: to this merge, ...
    let merged = run(&[&merge[..], &["--retire", "dead", "--until", "end"]].concat());
    let said = text(&merged.stderr);
    assert_eq!(merged.status.code(), Some(1), "{said}");
    assert!(said.contains("the stream ended before the run of the probe did"), "{said}");
    assert_eq!(text(&merged.stdout).lines().count(), steady.rows().lines().count(), "{said}");
    // ... or to all, by a word in its log.
    let retired = run(&["cluster", "retire", "dead", "--topic", &topic]);
    let told = text(&retired.stderr);
    assert_eq!(retired.status.code(), Some(0), "{told}");
    assert!(told.contains("probe dead@") && told.contains(" is retired: nothing waits"), "{told}");
    let again = run(&[&merge[..], &["--until", "end"]].concat());
    let said = text(&again.stderr);
    assert_eq!((again.status.code(), &again.stdout), (Some(1), &merged.stdout), "{said}");
    assert!(said.contains("the stream ended before the run of the probe did"), "{said}");
    // A job may wait for one that never came: that is said, since it may be a typing error.
    let unseen = run(&["cluster", "retire", "deda@0", "--topic", &topic]);
    let told = text(&unseen.stderr);
    assert_eq!(unseen.status.code(), Some(0), "{told}");
    let known = "kafka: no probe `deda` has written into partition 0; these have: b@";
    assert!(told.contains(known) && told.contains(", dead@"), "{told}");
    let nowhere = run(&["cluster", "retire", "dead@99", "--topic", &topic]);
    let told = text(&nowhere.stderr);
    assert_eq!(nowhere.status.code(), Some(2), "{told}");
}

/// The messages of a merge on standard error, also when it is asked how far its probes are.
struct Said {
    merge: u32,
    errors: Receiver<String>,
    lines: Vec<String>,
}

impl Said {
    fn new(merge: &mut Child) -> Said {
        let errors = crate::over_wires::lines(merge.stderr.take().expect("a pipe"));
        Said { merge: merge.id(), errors, lines: Vec::new() }
    }

    /// Asks until a line begins so, and what follows in it is as wanted.
    fn until_told(&mut self, start: &str, is_wanted: impl Fn(&str) -> bool) {
        until(start, || {
            signal(self.merge, "-USR1");
            pause();
            let new = self.lines.len();
            self.lines.extend(self.errors.try_iter());
            // The newest answer counts.
            let told = self.lines[new..].iter().rev().find_map(|line| line.strip_prefix(start));
            told.is_some_and(&is_wanted)
        });
    }
}

/// Kills a run, and what carries its records.
fn kill_with_carrier(run: &mut Child) {
    let carrier = children(run.id());
    assert_eq!(carrier.len(), 1, "{carrier:?}");
    kill_all(run);
}

pub(crate) fn a_broker_that_is_away_loses_nothing(broker: &Broker) {
    let (topic, steady) = (broker.address("away"), Steady::new());
    let mut probe = fed(&topic, "a", &["-v"]);
    let mut stdin = probe.stdin.take().expect("a pipe");
    stdin.write_all(&steady.first).expect("it reads");
    wait_for_windows(&topic, "a", 15);
    broker.kill();
    stdin.write_all(&steady.second).expect("it reads");
    drop(stdin);
    let said = crate::over_wires::lines(probe.stderr.take().expect("a pipe"));
    let away = said.iter().find(|line| line.contains("no broker answers: "));
    assert!(away.expect("it says so").contains("records wait in memory"));
    broker.up();
    let status = probe.wait().expect("it ends");
    let rest: Vec<String> = said.iter().collect();
    assert!(status.success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("a broker answers again")), "{rest:?}");
    let merge = ["merge", "-e", QUERY, "--from", &topic, "--until", "end", "-o", "json", "-q"];
    assert_eq!(rows(&merge), steady.rows());
}

/// Memory takes next to nothing here. Records that a killed process has left on disk are sent by
/// the next.
pub(crate) fn records_wait_on_disk_for_a_broker(broker: &Broker) {
    let (topic, steady) = (broker.address("spill"), Steady::new());
    let config = steady.folder.path().join("config");
    fs::write(&config, "queue.buffering.max.messages=2").expect("writes");
    let kept = steady.folder.path().join("kept");
    fs::create_dir(&kept).expect("makes");
    let [config, kept] = [&config, &kept].map(|path| path.to_str().expect("a plain path"));
    let more = ["--kafka-config", config, "--kafka-spill", kept, "-q"];
    let waits = || waiting(Path::new(kept));
    let until_on_disk = || {
        let mut before = 0;
        until("all that waits is on disk", || {
            (0..4).for_each(|_| pause());
            let now = waits();
            std::mem::replace(&mut before, now) == now && now > 1000
        });
    };
    // Half of the first half, and half of the second.
    let frame = (steady.first.len() - 24) / 2000;
    let (first, rest) = steady.first.split_at(24 + 1000 * frame);
    let mut killed = fed(&topic, "a", &more);
    let mut stdin = killed.stdin.take().expect("a pipe");
    stdin.write_all(first).expect("it reads");
    wait_for_windows(&topic, "a", 6);
    broker.kill();
    stdin.write_all(rest).expect("it reads");
    until_on_disk();
    kill_with_carrier(&mut killed);
    assert!(waits() > 1000);
    broker.up();
    let (second, rest) = steady.second.split_at(1000 * frame);
    let mut again = fed(&topic, "a", &more);
    let mut stdin = again.stdin.take().expect("a pipe");
    stdin.write_all(steady.header()).expect("it reads");
    stdin.write_all(second).expect("it reads");
    wait_for_windows(&topic, "a", 20);
    broker.kill();
    stdin.write_all(rest).expect("it reads");
    drop(stdin);
    until_on_disk();
    broker.up();
    let ended = ends(again, &["a"]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(waits(), 0, "the space is given back");
    let merge = ["merge", "-e", QUERY, "--from", &topic, "--until", "end", "-o", "json"];
    let merged = run(&merge);
    let said = text(&merged.stderr);
    assert!(said.contains("in 2 lives, of which 1 broke off"), "{said}");
    let windows = text(&merged.stdout).lines().count() as u64 / HOSTS;
    assert!((35..=40).contains(&windows), "{windows} windows: {said}");
}

/// Two probes on wires: a merge gives rows while they run, and while one of them starts again.
pub(crate) fn lives_come_while_a_merge_runs(broker: &Broker) {
    let topic = &broker.address("live");
    for wire in [("ka0", "ka1"), ("kb0", "kb1")] {
        veth(wire.0, wire.1);
    }
    let query = "packets | where udp and dport == 4242 \
                 | summarize n = count(), ports = distinct(sport) by ip.src every 100ms";
    let merge = ["merge", "-e", query, "-o", "csv", "-l", "--from", topic, "--probes", "a,b"];
    let mut merging =
        weir(&merge).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let stdout = BufReader::new(merging.stdout.take().expect("a pipe"));
    let (to, rows) = mpsc::channel();
    std::thread::spawn(move || {
        stdout.lines().map_while(Result::ok).skip(1).try_for_each(|line| to.send(line))
    });
    let probe = |wire: &str, name: &str| {
        let args = ["run", "-e", query, "-i", wire, "-Q", "in", "--publish", topic];
        Run::start(&[&args[..], &["--probe", name]].concat())
    };
    let mut told = Said::new(&mut merging);
    let (a, b) = (probe("ka1", "a"), probe("kb1", "b"));
    confined(a.child.id());
    let senders = [Sender::new("ka0"), Sender::new("kb0")];
    let frame = |host: u8, port| {
        Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]).udp(port, 4242).bytes()
    };
    let send = |rounds: std::ops::Range<u16>| {
        for round in rounds {
            for n in 0..100 {
                let frame = frame((n % 3) as u8, round * 100 + n);
                senders.iter().for_each(|sender| sender.send(&frame));
            }
            pause();
        }
    };
    let take = |want: u64| {
        let mut packets = 0;
        while packets < want {
            let row = rows.recv_timeout(LONG).expect("rows come while probes run");
            let n = row.split(',').nth(2).and_then(|n| n.parse::<u64>().ok());
            packets += n.expect("a count");
        }
        assert_eq!(packets, want, "each packet once");
    };
    send(0..10);
    take(2000);
    // One starts again: the merge goes on with its next life. The first windows of that may be out
    // before it is heard of; those after it are not.
    let over = "; its run has ended";
    let (_, said) = a.interrupt();
    assert!(said.contains("processed  1000"), "{said}");
    told.until_told("probe a: ", |rest| rest.contains(over));
    let a = probe("ka1", "a");
    told.until_told("probe a: ", |rest| !rest.contains(over));
    send(10..20);
    take(2000);
    for probe in [a, b] {
        probe.interrupt();
    }
    signal(merging.id(), "-INT");
    let ended = ends(merging, &merge);
    told.lines.extend(told.errors.iter());
    let said = told.lines.join("\n");
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("processed  4000"), "{said}");
}

/// The process that talks to Kafka sees no packets, and may do little; the one that sees packets
/// talks to nobody.
fn confined(id: u32) {
    let carriers = children(id);
    assert_eq!(carriers.len(), 1, "{carriers:?}");
    let status = fs::read_to_string(format!("/proc/{}/status", carriers[0])).expect("it runs");
    for line in ["Seccomp:\t2", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.lines().any(|found| found == line), "{line} in {status}");
    }
    let inodes = |table: &str, column: usize| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).expect("a table");
        let inode = |line: &str| line.split_whitespace().nth(column).map(str::to_owned);
        text.lines().skip(1).filter_map(inode).collect::<Vec<_>>()
    };
    let holds = |id: &str, all: &[String]| {
        let fds = fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").flatten();
        let links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        let links: Vec<String> = links.map(|link| link.display().to_string()).collect();
        all.iter().any(|inode| links.contains(&format!("socket:[{inode}]")))
    };
    let run = id.to_string();
    // The carrier connects in its own time, and again where a connection was closed.
    until("one sees packets, and the other talks to the broker", || {
        let (packets, tcp) = (inodes("packet", 8), inodes("tcp", 9));
        assert!(!holds(&run, &tcp), "what sees packets talks to nobody");
        assert!(!holds(&carriers[0], &packets), "what talks to others sees no packets");
        holds(&run, &packets) && holds(&carriers[0], &tcp)
    });
}
