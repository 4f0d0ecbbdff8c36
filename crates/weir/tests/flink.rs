//! The upper levels of queries as a job: the engine in a Java machine alone, and the job on Flink,
//! each against `weir merge` and one run. Java, Flink and Kafka come from the package registries
//! (`cluster/flink.sh`); where they can't be had, the tests say that they were skipped.

#![cfg(target_os = "linux")]

#[path = "flink/alerts.rs"]
mod alerts;
mod common;
#[path = "flink/kills.rs"]
mod kills;
#[path = "flink/losses.rs"]
mod losses;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "flink/places.rs"]
mod places;
#[path = "flink/random.rs"]
mod random;
#[path = "common/same_rows.rs"]
mod same_rows;
#[path = "flink/stages.rs"]
mod stages;
#[path = "flink/tables.rs"]
mod tables;

use assert_cmd::cargo::CommandCargoExt as _;
use common::{root, skip, workplace};
use over_wires::until;
use same_rows::are_the_same;
use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tempfile::NamedTempFile;

fn weir(args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("weir").expect("the binary");
    command.args(args).current_dir(root()).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The output of a command that succeeds.
fn printed(args: &[&str]) -> String {
    let output = weir(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The lines of a text, sorted.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// A script of `cluster/` with these settings: what it prints, or `None` where something that it
/// needs is missing (status 3).
fn script(test: &str, name: &str, args: &[&str], settings: &[(&str, String)]) -> Option<String> {
    let mut command = Command::new(root().join("cluster").join(name));
    command.env("WEIR_NATIVE", common::native());
    command.args(args).envs(settings.iter().map(|(key, value)| (key, value)));
    let output = command.output().expect("the script runs");
    match output.status.code() {
        Some(0) => Some(text(&output.stdout).trim().to_owned()),
        Some(3) => {
            skip(test, text(&output.stderr).trim());
            None
        }
        _ => panic!("{name} {args:?}: {}", text(&output.stderr)),
    }
}

/// Flink's jars, which also have what Kafka's client logs with.
fn flink_jars() -> String {
    root().join("target/cluster/flink-2.3.0/lib/*").display().to_string()
}

/// The jars of the job.
struct Jars {
    job: PathBuf,
    /// Programs that only tests need.
    tests: PathBuf,
}

impl Jars {
    /// The jars that all tests use; they are built once.
    fn get(test: &str) -> Option<&'static Jars> {
        static JARS: OnceLock<Option<Jars>> = OnceLock::new();
        let jars = JARS.get_or_init(|| Jars::build(test)).as_ref();
        if jars.is_none() {
            skip(test, "the jar of the job can't be built here");
        }
        jars
    }

    fn build(test: &str) -> Option<Jars> {
        let job = PathBuf::from(script(test, "flink.sh", &["jar"], &[])?);
        let tests = job.with_file_name("tests");
        let sources = common::files("flink/src/test", &[".java"]);
        fs::create_dir_all(&tests).expect("a folder");
        let mut javac = Command::new("javac");
        let path = format!("{}:{}", job.display(), flink_jars());
        javac.arg("-nowarn").arg("-d").arg(&tests).arg("-cp").arg(path).args(sources);
        let output = javac.output().expect("javac runs: the jar was built with it");
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(Jars { job, tests })
    }

    /// A Java machine for a program of the jars.
    fn java(&self, class: &str) -> Command {
        let [tests, job] = [&self.tests, &self.job].map(|path| path.display());
        let path = format!("{tests}:{job}:{}", flink_jars());
        let mut java = Command::new("java");
        java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", &path, class]);
        java
    }

    /// Runs a program with arguments in the one Java machine of this test. Returns the lines that
    /// it prints, or the reason why it failed.
    fn ask(&self, program: &[&str]) -> Result<String, String> {
        thread_local! {
            static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
        }
        ASKED.with_borrow_mut(|asked| {
            asked.get_or_insert_with(|| Asked::start(self)).ask(&program.join("\t"))
        })
    }
}

/// A Java machine that runs programs one after the other. It ends when its input does.
struct Asked {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
    errors: NamedTempFile,
}

impl Asked {
    fn start(jars: &Jars) -> Asked {
        let errors = NamedTempFile::new().expect("a file");
        let mut java = jars.java("weir.Asked");
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        java.stderr(errors.reopen().expect("the file"));
        let mut child = java.spawn().expect("java runs");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Asked { child, answers, errors }
    }

    fn ask(&mut self, program: &str) -> Result<String, String> {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{program}").expect("it runs");
        let mut printed = String::new();
        for line in self.answers.by_ref() {
            let line = line.expect("text");
            match line.strip_prefix("--") {
                Some("") => return Ok(printed),
                Some(_) => break,
                None => printed = printed + &line + "\n",
            }
        }
        Err(printed + &fs::read_to_string(self.errors.path()).expect("text"))
    }
}

fn fixture(name: &str) -> String {
    root().join("fixtures").join(name).to_str().expect("a plain path").to_owned()
}

fn place(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a plain path").to_owned()
}

/// Lets two probes see the packets of a capture: those that a filter keeps, and the others. Returns
/// their streams.
fn publish(folder: &Path, query: &str, capture: &str, filter: &str) -> [String; 2] {
    publish_all(folder, &["-e", query], capture, filter)
}

/// The same for several queries.
fn publish_all(folder: &Path, queries: &[&str], capture: &str, filter: &str) -> [String; 2] {
    let [a, b] = ["a", "b"].map(|probe| place(folder, &format!("{probe}.wps")));
    let both = [("a", &a, filter.to_owned()), ("b", &b, format!("not ({filter})"))];
    for (probe, stream, filter) in both {
        let _ = fs::remove_file(stream);
        let to = ["-r", capture, "--publish", stream, "--probe", probe, "--", &filter];
        printed(&[&["run", "-q"], queries, &to].concat());
    }
    [a, b]
}

/// Splits packets without regard to anything that queries group by.
const ANY: &str = "less 90";

/// Puts all packets to the first probe: what a query needs whose packets must be at one.
const FIRST: &str = "greater 0";

const SUMS: &str = "packets | summarize n = count(), named = count(dns.qname), bytes = \
    sum(len), off = sum(len - 700), ports = sum(tcp.dport), least = \
    min(len), most = max(ip.ttl), low = min(ip.dst), high = max(ip.dst), \
    mean = avg(len), one = any(tcp.syn), every1 = all(tcp.ack), bits = \
    bit_or(tcp.flags), var = variance(len), dev = stddev(len), seen = \
    rate(), speed = rate(len), name = first(dns.qname), port = \
    last(tcp.dport), who = first(ip.dst), when = last(ts), big = count() \
    where len > 500, mac = max(eth.src) by ip.src every 1s";

const VALUES: &str = "packets | summarize d = distinct(ip.dst), dt = distinct((ip.dst, \
    dport)), few = distinct(sport, 3), q = distinct(dns.qname, 2), ap = \
    approx_distinct(ip.dst), at = approx_distinct((ip.src, sport)), an = \
    approx_distinct(dns.qname), am = approx_distinct(eth.src), med = \
    median(len), p95 = quantile(len, 0.95), p10 = percentile(tcp.seq, 10), \
    m = mad(len), fr = frequent(dport, 3), fi = frequent(ip.dst, 2), fq = \
    frequent(dns.qname, 2), h = histogram(len, 500), e = entropy(dport), \
    ef = entropy((ip.dst, dport)), mb = max_by(ip.dst, len), nb = \
    min_by(dns.qname, len), t = min(dns.qname), tt = max(dns.qname) by \
    eth.src every 10s";

const FLOATS: &str = "packets | extend x = float(len) / 3.0 | summarize s = sum(x), a = \
    avg(x), v = variance(x), d = stddev(x), lo = min(x), hi = max(x), q = \
    quantile(x, 0.9), m = mad(x), f = frequent(x, 2), c = distinct(x), mb \
    = max_by(x, ts) by ip.src every 1s";

const SPANS: &str = "packets | extend d = ts - @2026-11-21T05:00:00Z | summarize s = \
    sum(d), a = avg(d), lo = min(d), hi = max(d), sd = stddev(d), q = \
    median(d), f = frequent(d, 2), h = histogram(d, 1s), e = entropy(d), l \
    = min(ts), m = mad(d), ad = approx_distinct(d) by ip.proto every 1m";

const KEYS: &str = "packets | summarize n = count() by tcp.syn, eth.src, dns.qname, two = \
    payload[0:2], at = bin(ts, 10ms), half = float(len) / 2.0, ip.src \
    every 1s";

const SLIDING: &str = "packets | summarize n = count(), b = sum(len), d = distinct(ip.dst, \
    2), f = first(dport), q = median(len) by ip.proto over 5s every 2s \
    lateness 1s";

const ALONE: &str = "packets | where len > 100000 | summarize n = count(), s = sum(len), d \
    = distinct(ip.src), m = max(len), q = median(len), a = \
    approx_distinct(ip.src), f = first(ip.src)";

const ALL: &str = "packets | summarize n = count(), d = distinct(ip.src), m = max(len) by \
    ip.proto";

const TWO: &str = "let sources = packets | summarize n = count() by ip.src every 1s\n\
    let ports = packets | summarize n = count(), d = distinct(ip.src) by dport every 2s\n\
    sources\nports";

/// The queries, and how their packets may be spread.
const MERGED: [(&str, &str); 9] = [
    (SUMS, ANY),
    (VALUES, ANY),
    (FLOATS, FIRST),
    (SPANS, ANY),
    (KEYS, ANY),
    (SLIDING, ANY),
    (ALONE, ANY),
    (ALL, ANY),
    (TWO, ANY),
];

const CAPTURES: [&str; 3] = ["mixed.pcap", "dns.pcap", "syn_flood.pcap"];

/// More that `weir merge` runs, whatever probe sees which packet or all packets at one.
const MORE: [(&str, &str); 8] = [
    ("packets | summarize n = count(), b = sum(len) by ip.src, ip.dst session 500ms", FIRST),
    ("packets | summarize n = count() by ip.src every 1s fill", ANY),
    (
        "let a = packets | summarize n = count() by ip.src every 1s\n\
         packets | summarize m = sum(len) by ip.src every 1s | join a by ip.src, ts max 5",
        ANY,
    ),
    (
        "let a = packets | summarize n = count() by ip.src every 1s\n\
         let b = packets | summarize n = sum(len) by ip.dst every 2s\n\
         a | union b | scan m = 0 by ip.src => m + n",
        ANY,
    ),
    ("packets | summarize n = count() by ip.src every 1s | limit 3", ANY),
    (
        "packets | extend x = float(len) / 3.0 | summarize s = sum(x), v = variance(x) \
           by ip.src over 3s every 1s",
        FIRST,
    ),
    (
        "packets | summarize n = count(), m = median(len) by ip.src every 1s \
         | extend s = string(n) | summarize q = median(n), last = max(s) by ip.src every 10s",
        ANY,
    ),
    ("packets | summarize n = count() by ip.src every 1s | summarize n = sum(n)", ANY),
];

/// The job over a query, in a file.
fn job_file(folder: &Path, query: &[&str]) -> String {
    let job = place(folder, "job.json");
    let plan = printed(&[&["explain", "-o", "json"][..], query].concat());
    let text = serde_json::json!({ "version": weir_flink::VERSION, "plan": plan });
    fs::write(&job, text.to_string()).expect("a file");
    job
}

/// Fails where the rows of streams in a Java machine are not those of `weir merge`.
fn merges_alike(jars: &Jars, folder: &Path, query: &[&str], streams: &[&str]) -> String {
    let job = job_file(folder, query);
    let from: Vec<&str> = streams.iter().flat_map(|stream| ["--from", stream]).collect();
    // Where something of a stream is missing, it says so by its status.
    let merged = weir(&[&["merge", "-q", "-o", "json"][..], query, &from].concat());
    let expected = text(&merged.stdout).to_owned();
    for restore_each in ["0", "3"] {
        let merge = ["MergeFiles", "--restore", restore_each, &job];
        let found = jars.ask(&[&merge[..], streams].concat());
        are_the_same(&found.unwrap_or_else(|why| panic!("{query:?}: {why}")), &expected);
    }
    expected
}

#[test]
fn the_engine_in_java_gives_the_rows_of_weir_merge() {
    const TEST: &str = "the_engine_in_java_gives_the_rows_of_weir_merge";
    let Some(jars) = Jars::get(TEST) else { return };
    let folder = workplace();
    for (query, filter) in MERGED.into_iter().chain(MORE) {
        for capture in CAPTURES {
            let [a, b] = publish(folder.path(), query, &fixture(capture), filter);
            merges_alike(jars, folder.path(), &["-e", query], &[&a, &b]);
        }
    }
}

/// Each query of the library that several probes can run.
#[test]
fn the_library_runs_in_java_as_in_weir_merge() {
    const TEST: &str = "the_library_runs_in_java_as_in_weir_merge";
    let Some(jars) = Jars::get(TEST) else { return };
    let folder = workplace();
    let (mut merged, mut with_rows) = (0, 0);
    for path in common::queries().into_iter().chain(common::detectors()) {
        let query = path.to_str().expect("a plain path");
        let explained = weir(&["explain", "--cluster", query]);
        let explained = text(&explained.stdout);
        if !explained.contains("fingerprint") {
            continue;
        }
        let filter = if explained.contains("any packet is at any") { ANY } else { FIRST };
        let own = common::own_captures(&common::text(&path));
        let capture = own.first().map_or_else(|| fixture("mixed.pcap"), |own| at_root(own));
        let [a, b] = publish_all(folder.path(), &[query], &capture, filter);
        let rows = merges_alike(jars, folder.path(), &[query], &[&a, &b]);
        merged += 1;
        with_rows += usize::from(!rows.is_empty());
    }
    assert!(merged >= 40 && with_rows >= 35, "{merged} queries, {with_rows} with rows");
}

fn at_root(name: &str) -> String {
    root().join(name).to_str().expect("a plain path").to_owned()
}

#[test]
fn the_engine_in_java_knows_what_was_lost() {
    let Some(jars) = Jars::get("the_engine_in_java_knows_what_was_lost") else { return };
    losses::what_was_lost_is_that_of_weir_merge(jars);
    losses::what_nobody_saw_is_that_of_weir_merge(jars);
}

#[test]
fn what_goes_wrong_in_the_engine_is_an_exception_in_java() {
    const TEST: &str = "what_goes_wrong_in_the_engine_is_an_exception_in_java";
    let Some(jars) = Jars::get(TEST) else { return };
    let folder = workplace();
    let job = job_file(folder.path(), &["-e", SUMS]);
    let output = jars.java("weir.NativeTest").arg(job).output().expect("java runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("checks passed"));
}

/// A job runs what `weir merge` runs, and says the same of other queries.
#[test]
fn what_does_not_merge_is_no_job() {
    let refused = |query: &str, what: &str| {
        let job = ["--kafka", "localhost:1", "--topic", "t", "--probes", "a", "--to", "rows"];
        let submitted = weir(&[&["cluster", "submit", "-e", query][..], &job].concat());
        let merged = weir(&["merge", "-e", query, "--from", "/dev/null"]);
        for output in [submitted, merged] {
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{query}: {errors}");
            assert!(errors.contains(what), "{query}: {errors}");
        }
    };
    refused("packets | where tcp", "hands over rows one by one");
    let metric = "packets | summarize n = count() by ip.proto \
        | metric counter \"x\" of n by ip.proto max 20";
    refused(metric, "exports no metrics");
    let endless = "packets | summarize n = count() by ip.src";
    let job = ["--kafka", "localhost:1", "--topic", "t", "--probes", "a", "--to", "rows"];
    let output = weir(&[&["cluster", "submit", "-e", endless][..], &job].concat());
    assert!(text(&output.stderr).contains("add `every`, or --bounded"));
}

/// Arguments of a job are shown by Flink to everybody.
#[test]
fn a_password_does_not_get_into_a_job() {
    let url = "jdbc:postgresql://localhost/weir?user=a&Password=b";
    for (url, why) in [(url, "~/.pgpass"), ("postgres://localhost", "jdbc:postgresql://HOST/NAME")]
    {
        let names = ["--kafka", "localhost:1", "--topic", "t", "--probes", "a", "--to", "rows"];
        let output =
            weir(&[&["cluster", "submit", "flows", "--database", url][..], &names].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
}

/// Queries with stages above the merge, each with a capture.
const ABOVE: [(&str, &str); 3] = [
    (
        "packets | where tcp.syn and not tcp.ack \
         | summarize connections = distinct(flow) by server = ip.dst every 1s \
         | where connections > 100",
        "syn_flood.pcap",
    ),
    (
        "packets | summarize bytes = sum(len), n = count(), name = min(dns.qname) \
           by ip.src every 1s \
         | extend mean = float(bytes) / n, twice = bytes * 4611686018427387904 / n, \
           inside = ip.src in {10.0.0.0/8, 192.0.2.0/24} \
         | where n >= 1 and not (bytes < 100 and exists(name)) \
         | project ts, host = ip.src, bytes, mean, twice, name, kind = if(inside, \"in\", \"out\") \
         | top 3 by mean, bytes asc",
        "mixed.pcap",
    ),
    (
        "let spread = packets | where tcp.syn and not tcp.ack \
           | summarize hosts = distinct(ip.dst, 10) by source = ip.src, ip.proto every 1s\n\
         let all = spread | summarize sources = count(), hosts = sum(hosts), most = max(hosts), \
           mean = avg(hosts), some = any(hosts > 3), big = count() where hosts > 10 \
           by ip.proto every 10s\n\
         spread | where hosts >= 2\n\
         all",
        "detectors/spreader_40.pcap.gz",
    ),
];

/// Kafka and Flink of a test, on ports of their own, ended at the end.
struct Cluster {
    settings: Vec<(&'static str, String)>,
    jars: &'static Jars,
    /// One is up at a time.
    _only: MutexGuard<'static, ()>,
}

static ONLY: Mutex<()> = Mutex::new(());

impl Cluster {
    fn new(test: &str) -> Option<Cluster> {
        let jars = Jars::get(test)?;
        let home = |name: &str| root().join("target/cluster").join(name).display().to_string();
        let settings = vec![
            ("KAFKA_PORT", "19592".to_owned()),
            ("KAFKA_HOME", home("test-kafka")),
            ("KAFKA_SECURE", "1".to_owned()),
            ("FLINK_PORT", "18581".to_owned()),
            ("FLINK_HOME", home("test-flink")),
            ("FLINK_HA", "1".to_owned()),
        ];
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = Cluster { settings, jars, _only: only };
        // Remains of an earlier test that was ended with violence.
        cluster.down();
        let _ = fs::remove_dir_all(home("test-kafka"));
        let _ = fs::remove_dir_all(home("test-flink"));
        script(test, "kafka.sh", &["up"], &cluster.settings)?;
        script(test, "flink.sh", &["up"], &cluster.settings)?;
        Some(cluster)
    }

    fn flink(&self, args: &[&str]) {
        script("flink", "flink.sh", args, &self.settings).expect("it ran before");
    }

    fn down(&self) {
        for name in ["flink.sh", "kafka.sh"] {
            let mut command = Command::new(root().join("cluster").join(name));
            command.arg("down").envs(self.settings.iter().map(|(key, value)| (key, value)));
            let _ = command.output();
        }
    }

    fn topic(&self, name: &str) {
        let made = self.jars.ask(&["MakeTopic", "127.0.0.1:19592", name, "2"]);
        made.unwrap_or_else(|why| panic!("{name}: {why}"));
    }

    /// Puts streams into a topic.
    fn produce(&self, topic: &str, args: &[&str]) {
        let produce = ["Produce", "127.0.0.1:19592", topic];
        let produced = self.jars.ask(&[&produce[..], args].concat());
        produced.unwrap_or_else(|why| panic!("{topic}: {why}"));
    }

    /// Lines that are committed in a topic: so many, and whatever comes in the next two seconds.
    fn consume(&self, topic: &str, lines: usize) -> String {
        let lines = lines.to_string();
        let found = self.jars.ask(&["Consume", "127.0.0.1:19592", topic, &lines, "90"]);
        found.unwrap_or_else(|why| panic!("{topic}: {lines} lines were waited for: {why}"))
    }

    /// Starts a job over the probes a and b.
    fn submit(&self, query: &str, topic: &str, to: &str, more: &[&str]) -> String {
        self.submit_all(&["-e", query], topic, to, more)
    }

    /// The same over several queries.
    fn submit_all(&self, queries: &[&str], topic: &str, to: &str, more: &[&str]) -> String {
        let output = self.submitted(queries, topic, to, more);
        assert!(output.status.success(), "{queries:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// Tries to start a job over the probes a and b.
    fn try_submit(&self, query: &str, topic: &str, to: &str, more: &[&str]) -> Output {
        self.submitted(&["-e", query], topic, to, more)
    }

    fn submitted(&self, queries: &[&str], topic: &str, to: &str, more: &[&str]) -> Output {
        let jar = self.jars.job.to_str().expect("a plain path");
        let servers = ["--kafka", "127.0.0.1:19592", "--flink", "127.0.0.1:18581", "--jar", jar];
        let job = ["--topic", topic, "--probes", "a,b", "--to", to, "--checkpoint-ms", "500"];
        let servers = [&servers[..], &["--create-topics"]].concat();
        weir(&[&["cluster", "submit"], queries, &servers, &job, more].concat())
    }

    /// Tries the same with no more than these options.
    fn try_plain(&self, more: &[&str]) -> Output {
        let jar = self.jars.job.to_str().expect("a plain path");
        let servers = ["--flink", "127.0.0.1:18581", "--jar", jar, "--probes", "a,b"];
        weir(&[&["cluster", "submit", "-e", places::QUERY][..], &servers, more].concat())
    }

    /// Waits until the state of a job says this.
    fn says(&self, job: &str, what: &str) {
        until(&format!("{job}: {what}"), || self.ask(&["status", job]).contains(what));
    }

    fn ask(&self, args: &[&str]) -> String {
        printed(&[&["cluster"][..], args, &["--flink", "127.0.0.1:18581"]].concat())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.down();
    }
}

#[test]
fn jobs_on_flink_give_the_rows_of_one_run() {
    const TEST: &str = "jobs_on_flink_give_the_rows_of_one_run";
    let Some(cluster) = Cluster::new(TEST) else { return };
    let folder = workplace();
    let mut jobs = Vec::new();
    for (number, (query, capture)) in ABOVE.into_iter().enumerate() {
        let [a, b] = publish(folder.path(), query, &fixture(capture), ANY);
        let (topic, to) = (format!("partials{number}"), format!("rows{number}"));
        cluster.topic(&topic);
        // In small parts, and all of it twice.
        cluster.produce(&topic, &["--part-bytes", "1000", &a, &b, &b, &a]);
        let job = cluster.submit(query, &topic, &to, &[]);
        let merged =
            printed(&["merge", "-q", "-e", query, "--from", &a, "--from", &b, "-o", "json"]);
        assert_eq!(
            merged,
            printed(&["run", "-q", "-e", query, "-r", &fixture(capture), "-o", "json"])
        );
        assert!(!merged.is_empty(), "{query}");
        let found = cluster.consume(&to, merged.lines().count());
        assert_eq!(sorted(&found), sorted(&merged), "{query}");
        assert!(cluster.ask(&["status", &job]).contains("RUNNING"));
        cluster.ask(&["cancel", &job]);
        jobs.push(job);
    }
    let all = cluster.ask(&["list"]);
    assert!(jobs.iter().all(|job| all.contains(job.as_str())), "{all}");
    stages::rows_meet_and_are_folded(&cluster);
    random::random_programs_give_the_rows_of_one_run(&cluster);
    alerts::random_rows_give_the_alerts_of_one_run(&cluster);
    losses::rows_say_what_was_lost(&cluster);
    alerts::the_library_gives_the_rows_of_one_run(&cluster);
    kills::killed_servers_change_no_total(&cluster);
    kills::another_run_may_read_in_another_way(&cluster);
}

#[test]
fn a_job_starts_where_its_rows_belong() {
    const TEST: &str = "a_job_starts_where_its_rows_belong";
    let Some(cluster) = Cluster::new(TEST) else { return };
    places::topics_are_there_before_a_job(&cluster);
    places::rows_do_not_come_twice(&cluster);
    places::a_job_speaks_tls_and_sasl(&cluster);
    tables::rows_go_into_tables_once(&cluster);
}
