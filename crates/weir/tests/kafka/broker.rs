//! A broker on loopback, by `cluster/kafka.sh`, and the commands over it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::{root, skip};
use crate::over_wires::{LONG, signal, text, until};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;
use weir_cluster::{ProbeHead, ProbeWriter};
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::{
    CarrierAnswer, CarrierOrder, Detail, LogName, PacketsOrder, ProduceOrder, Task, read_framed,
    write_framed,
};
use weir_kafka::properties::Properties;

/// A topic of tests: its name, its partitions and its properties.
pub(crate) type Topic = (&'static str, &'static str, &'static [&'static str]);

pub(crate) struct Broker {
    home: tempfile::TempDir,
    host: &'static str,
    port: u16,
}

/// Fetches what a broker consists of, which takes a network, or says by name why the test is
/// skipped.
pub(crate) fn fetched(test: &str) -> bool {
    let fetch = Command::new(root().join("cluster/kafka.sh")).arg("fetch").output();
    let fetch = fetch.expect("bash runs");
    if !fetch.status.success() {
        skip(test, &format!("there is no Kafka to test with: {}", text(&fetch.stderr)));
    }
    fetch.status.success()
}

/// The processes that a process has started; none where it is gone.
pub(crate) fn children(id: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Kills a process and those that it has started. Of a test that fails, it may have ended before.
pub(crate) fn kill_all(child: &mut Child) {
    let mut all = children(child.id());
    all.push(child.id().to_string());
    let _ = Command::new("kill").arg("-KILL").args(all).stderr(Stdio::null()).status();
    let _ = child.wait();
}

/// A port that is free, as are the two after it, which the broker takes, too.
fn three_ports() -> u16 {
    let bind = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port));
    let three = |_: u32| {
        let first = bind(0).expect("a port");
        let port = first.local_addr().expect("an address").port();
        let others = [bind(port.checked_add(1)?).ok()?, bind(port.checked_add(2)?).ok()?];
        drop((first, others));
        Some(port)
    };
    (0..100).find_map(three).expect("three ports in a row")
}

impl Broker {
    /// Starts one with these topics, or says by name why the test is skipped.
    pub(crate) fn start(test: &str, topics: &[Topic]) -> Option<Broker> {
        Broker::start_at("127.0.0.1", test, topics)
    }

    /// The same, at this address.
    pub(crate) fn start_at(host: &'static str, test: &str, topics: &[Topic]) -> Option<Broker> {
        let port = three_ports();
        let broker = Broker { home: tempfile::tempdir().expect("a folder"), host, port };
        let up = broker.script(&["up"]).output().expect("bash runs");
        if up.status.code() == Some(3) {
            skip(test, &format!("there is no Kafka to test with: {}", text(&up.stderr)));
            return None;
        }
        assert!(up.status.success(), "{}", text(&up.stderr));
        assert_eq!(text(&up.stdout).trim(), format!("kafka://{host}:{port}"));
        broker.make_topics(topics);
        Some(broker)
    }

    fn script(&self, args: &[&str]) -> Command {
        let mut command = Command::new(root().join("cluster/kafka.sh"));
        command.args(args).env("KAFKA_HOME", self.home.path());
        command.env("KAFKA_PORT", self.port.to_string()).env("KAFKA_SECURE", "1");
        command.env("KAFKA_HOST", self.host);
        command
    }

    /// Brings it up again.
    pub(crate) fn up(&self) {
        let up = self.script(&["up"]).output().expect("bash runs");
        assert!(up.status.success(), "{}", text(&up.stderr));
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        let pid = std::fs::read_to_string(self.home.path().join("kafka.pid")).expect("it runs");
        signal(pid.trim().parse().expect("a number"), "-KILL");
        let process = PathBuf::from(format!("/proc/{}/cmdline", pid.trim()));
        let is_gone = || std::fs::read(&process).map_or(true, |line| line.is_empty());
        until("the broker is gone", is_gone);
    }

    /// Makes all topics. Each takes a program of Java, so that several are started at once.
    fn make_topics(&self, topics: &[Topic]) {
        for some in topics.chunks(4) {
            let make = |(name, partitions, config): &Topic| {
                let args = [&["topic", *name, *partitions][..], *config].concat();
                self.script(&args).stderr(Stdio::piped()).spawn().expect("bash runs")
            };
            for making in some.iter().map(make).collect::<Vec<_>>() {
                let made = making.wait_with_output().expect("it ends");
                assert!(made.status.success(), "{}", text(&made.stderr));
            }
        }
    }

    /// Adds partitions to a topic.
    pub(crate) fn grow(&self, topic: &str, partitions: &str) {
        let grown = self.script(&["grow", topic, partitions]).output().expect("bash runs");
        assert!(grown.status.success(), "{}", text(&grown.stderr));
    }

    /// Where it listens.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The address of a topic.
    pub(crate) fn address(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.place())
    }
}

impl Broker {
    /// The address of a topic, by TLS and SASL.
    pub(crate) fn secure_address(&self, topic: &str) -> String {
        format!("kafka://127.0.0.1:{}/{topic}", self.port + 2)
    }

    /// The certificate of the broker.
    pub(crate) fn ca(&self) -> String {
        self.home.path().join("tls/ca.pem").to_str().expect("a plain path").to_owned()
    }

    /// The records that are committed in a topic: keys and values.
    pub(crate) fn read(&self, topic: &str) -> Vec<(String, String)> {
        let read = self.script(&["read", topic]).output().expect("bash runs");
        assert!(read.status.success(), "{}", text(&read.stderr));
        let pair = |line: &str| {
            let (key, value) = line.split_once('\t').expect("a key and a value");
            (key.to_owned(), value.to_owned())
        };
        text(&read.stdout).lines().map(pair).collect()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.script(&["down"]).status();
    }
}

pub(crate) fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args);
    command
}

/// Runs to its end, which has to come.
pub(crate) fn run(args: &[&str]) -> Output {
    let child = weir(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    ends(child.expect("the binary runs"), args)
}

/// The output of a process, which has to end.
pub(crate) fn ends(child: Child, what: &[&str]) -> Output {
    let id = child.id();
    let (to, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || to.send(child.wait_with_output()));
    match done.recv_timeout(LONG) {
        Ok(output) => output.expect("it runs"),
        Err(_) => {
            let _ = Command::new("kill").args(["-INT", &id.to_string()]).status();
            let output = done.recv_timeout(Duration::from_secs(5));
            panic!("{what:?} does not end: {output:?}");
        }
    }
}

/// The output of a command that succeeds.
pub(crate) fn rows(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Fails with this status and a message that contains this.
pub(crate) fn fails(args: &[&str], status: i32, why: &str) {
    let output = run(args);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {errors}");
    assert!(errors.contains(why), "{args:?}: {errors}");
}

pub(crate) fn fixture(name: &str) -> String {
    root().join("fixtures").join(name).to_str().expect("a plain path").to_owned()
}

/// The head and the messages of the stream that a run publishes.
pub(crate) fn stream_of(args: &[&str]) -> (ProbeHead, Vec<Vec<u8>>) {
    let output = run(&[args, &["--publish", "-", "-q"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (mut reader, head) = weir_cluster::ProbeReader::new(&output.stdout[..]).expect("a stream");
    let (mut messages, mut message) = (Vec::new(), Vec::new());
    while reader.next(&mut message).expect("whole") == weir_cluster::StreamItem::Message {
        messages.push(message.clone());
    }
    (head, messages)
}

/// The process that talks to Kafka, with an order that it has; its standard input.
fn carrier(address: &str, task: Task) -> (Child, ChildStdin, CarrierAnswer) {
    let order = CarrierOrder {
        topic: KafkaTopic::parse(address).expect("an address"),
        properties: Properties::default(),
        user: None,
        sandbox: true,
        detail: Detail::Usual,
        task,
    };
    let mut carrier = weir(&["kafka-carrier"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = carrier.stdin.take().expect("a pipe");
    write_framed(&order, &mut stdin).expect("it reads");
    let answer = read_framed(carrier.stdout.as_mut().expect("a pipe")).expect("it answers");
    (carrier, stdin, answer)
}

/// Produces records of packets, each the last of its run, into the first partition.
pub(crate) fn produce_packets(address: &str, records: &[Vec<u8>]) {
    let (carrier, mut stdin, answer) = carrier(address, Task::Packets(PacketsOrder::default()));
    assert!(matches!(answer, CarrierAnswer::Partitions(_)), "{answer:?}");
    for record in records {
        let head = [0, record.len() as u32].map(u32::to_le_bytes).concat();
        stdin.write_all(&[&head, &record[..]].concat()).expect("it reads");
    }
    drop(stdin);
    let output = ends(carrier, &["kafka-carrier"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Produces records as the process does that a run starts, from bytes of any kind.
pub(crate) fn produce(address: &str, lives: &[(ProbeHead, Vec<Vec<u8>>)]) -> Output {
    let probe = lives[0].0.probe.clone();
    let task = Task::Produce(ProduceOrder { log: LogName { probe, partition: None }, spill: None });
    let (carrier, mut stdin, answer) = carrier(address, task);
    assert_eq!(answer, CarrierAnswer::Ready(Vec::new()));
    let mut bytes = Vec::new();
    for (head, messages) in lives {
        let mut writer = ProbeWriter::new(&mut bytes, head).expect("memory takes it");
        messages.iter().for_each(|message| writer.message(message).expect("memory takes it"));
    }
    // It may end before it has read all.
    let _ = stdin.write_all(&bytes);
    drop(stdin);
    ends(carrier, &["kafka-carrier"])
}
