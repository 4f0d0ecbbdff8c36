//! Programs with closures: their rows, and the mistakes that they refuse.

use jiff::{SignedDuration, Timestamp};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::Frames;
use weir_stream::{
    Aggregate, FromRow, Stream, StreamError, StreamProgram, StreamRun, aggregate, function, packets,
};

/// The packets of the capture in memory: those of two hosts, and one that is not IP.
const PACKETS: i64 = 41;

/// Reads this capture as rows.
fn rows<R: FromRow>(stream: Stream) -> Vec<R> {
    let run = |workers| {
        let mut source = Frames::sample().cut(&[7]);
        let (rows, ledger) =
            stream.clone().run(&mut source).workers(workers).collect::<R>().expect("it runs");
        assert_eq!(ledger.processed, PACKETS as u64);
        rows
    };
    let one = run(1);
    assert_eq!(run(2).len(), one.len());
    one
}

fn refused<R: FromRow>(stream: Stream, reason: &str) {
    let mut source = Frames::sample();
    let Err(e) = stream.run(&mut source).collect::<R>() else { panic!("it runs: {reason}") };
    assert!(e.to_string().contains(reason), "{e}");
}

#[derive(FromRow, PartialEq, Debug)]
struct Talker {
    ip_src: IpAddr,
    n: i64,
    #[column("no.port")]
    r#type: Option<i64>,
}

/// A struct whose field may be of any type.
#[derive(FromRow)]
struct Counted<T> {
    n: T,
}

#[test]
fn rows_are_structs_and_tuples() {
    let counted: Vec<Counted<Option<i64>>> = rows(packets().query("summarize n = count()"));
    assert_eq!(counted[0].n, Some(PACKETS));
    let stream = packets().query("where ip | summarize n = count() by ip.src");
    let stream = stream
        .query("extend none = sport_of(n)")
        .uses(&function("sport_of", |n: i64| (n > 40).then_some(n)));
    let typed: Vec<Talker> = rows(stream.clone().query("rename no.port = none"));
    let pairs: Vec<(IpAddr, i64, Option<i64>)> = rows(stream);
    assert_eq!(typed.len(), 2);
    assert!(typed.iter().zip(&pairs).all(|(t, p)| (t.ip_src, t.n, t.r#type) == *p));
    assert!(typed.iter().all(|t| t.r#type.is_none()));
}

#[test]
fn each_type_passes_a_closure() {
    let there = packets()
        .filter("tcp")
        .extend_by("a", ["tcp.syn"], |x: bool| !x)
        .extend_by("b", ["float(len)"], |x: f64| x / 2.0)
        .extend_by("c", ["if(tcp.syn, \"yes\", \"no\")"], |x: String| x + "!")
        .extend_by("d", ["payload"], |x: Vec<u8>| x.len() as i64)
        .extend_by("e", ["ip.src"], |x: IpAddr| x)
        .extend_by("f", ["eth.src"], |x: [u8; 6]| x)
        .extend_by("g", ["ts"], |x: Timestamp| x + SignedDuration::from_secs(1))
        .extend_by("h", ["ts - ts"], |x: SignedDuration| x - SignedDuration::from_secs(1))
        .query(
            "project a = a == not tcp.syn, b = b * 2.0 == float(len), c = ends_with(c, \"!\"), \
                d = d >= 0, e = e == ip.src, f = f == eth.src, g = g - ts == 1s, h = h == -1s",
        );
    type Eight = (bool, bool, bool, Option<bool>, bool, bool, bool, bool);
    for (a, b, c, d, e, f, g, h) in rows::<Eight>(there) {
        assert!(a && b && c && d.unwrap_or(true) && e && f && g && h);
    }
}

#[test]
fn absent_values_are_options() {
    // Packets that are not TCP have no flags.
    let known = packets().filter_by(["tcp.flags"], |_: i64| true).query("summarize n = count()");
    let all = packets().filter_by(["tcp.flags"], |flags: Option<i64>| flags != Some(-1));
    let none = packets().filter_by(["tcp.flags"], |flags: Option<i64>| flags.is_none());
    let count = |stream: Stream| rows::<(i64,)>(stream.query("summarize n = count()"))[0].0;
    let known = rows::<(i64,)>(known)[0].0;
    assert_eq!((count(all), count(none)), (PACKETS, PACKETS - known));
    assert!((1..PACKETS).contains(&known));
}

/// A sum, and one that is wrong on purpose where its bytes are read.
#[derive(Default)]
struct Total(i64);

impl Aggregate for Total {
    type Input = i64;
    type Output = Option<i64>;

    fn update(&mut self, n: i64) {
        self.0 += n;
    }

    fn merge(&mut self, other: &Total) {
        self.0 += other.0;
    }

    fn finish(&self) -> Option<i64> {
        (self.0 > 0).then_some(self.0)
    }

    fn encode(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn decode(bytes: &[u8]) -> Option<Total> {
        Some(Total(i64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

#[test]
fn aggregates_are_called_by_name() {
    let stream = packets().uses(&aggregate::<Total>("total"));
    let stream = stream.query("summarize a = total(len), b = sum(len), c = total(len - len)");
    let found = rows::<(i64, i64, Option<i64>)>(stream);
    assert!(found[0].0 > 0 && found[0].0 == found[0].1 && found[0].2.is_none());
}

#[test]
fn streams_are_joined_and_named_once() {
    let asked =
        packets().filter_by(["sport", "dport"], |a: i64, b: i64| a > b).query("project ts, conn");
    let both = packets().query("project ts, conn").join_anti(&asked, "ts, conn within 0s..0s");
    let text = both.clone().union(&packets().query("project ts, conn")).to_string();
    let wanted = "\
let stream_1 = packets
| where closure_1(sport, dport)
| project ts, conn

let stream_2 = packets
| project ts, conn

packets
| project ts, conn
| join anti stream_1 by ts, conn within 0s..0s
| union stream_2
";
    assert_eq!(text, wanted);
    assert!(rows::<(i64,)>(both.query("summarize n = count()"))[0].0 > 0);
}

#[test]
fn queries_are_split_before_their_last_pipeline() {
    let text =
        "param n: int = 3\n\nlet syns = packets\n    | where tcp\n\n# all\nsyns | where len > n";
    let stream = Stream::of_query(text).query("summarize n = count()");
    assert!(
        stream.to_string().ends_with("syns\n| where len > n\n| summarize n = count()\n"),
        "{stream}"
    );
    let mut source = Frames::sample();
    let some =
        stream.clone().run(&mut source).param("n", "9000").collect::<(i64,)>().expect("runs");
    assert_eq!(some.0, [(0,)]);
    assert!(rows::<(i64,)>(stream)[0].0 > 0);
    let named = Stream::of_named(text, "syns").query("summarize n = count()");
    assert!(rows::<(i64,)>(named)[0].0 > 0);
    refused::<(i64,)>(Stream::of_query("packets | wher tcp"), "where");
}

#[test]
fn several_outputs_have_their_closures() {
    let program = StreamProgram::default()
        .output("all", packets().query("summarize n = count()"))
        .output("senders", packets().query("summarize by ip.src"));
    let mut source = Frames::sample();
    let (mut all, mut hosts) = (0, 0);
    let run = program.clone().run(&mut source);
    run.each("senders", |_: (Option<IpAddr>,)| hosts += 1)
        .each("all", |(n,)| all = n)
        .finish()
        .expect("runs");
    assert_eq!((all, hosts), (PACKETS, 3));
    let mut source = Frames::sample();
    let e = program.clone().run(&mut source).each("host", |_: (i64,)| ()).finish().expect_err("no");
    let wanted = "rows of `host`: there is no such output; there are all, senders";
    assert_eq!(e.to_string(), wanted);
    let mut source = Frames::sample();
    let run = program.clone().run(&mut source).each("all", |_: (i64,)| ());
    let e = run.each("all", |_: (i64,)| ()).finish().expect_err("no");
    assert_eq!(e.to_string(), "an output has two closures");
    let mut source = Frames::sample();
    let first = program.clone().run(&mut source).collect::<(i64,)>().expect("of the first").0;
    assert_eq!(first, [(PACKETS,)]);
    let named = program.clone().named("mine").compile().expect("compiles").0;
    assert_eq!(named.pipelines.len(), 2);
    assert!(program.explain(2).expect("a plan").contains("summarize"));
}

#[test]
fn mistakes_are_told_before_a_packet_is_read() {
    let counted = packets().query("summarize n = count() by ip.src");
    refused::<(i64,)>(counted.clone(), "a tuple of 1 reads no rows of 2 columns: ip.src, n");
    refused::<(i64, i64)>(counted.clone(), "the column `ip.src` is of type ip, and read as int");
    refused::<Talker>(counted, "there is no column `no.port`; there are ip.src, n");
    refused::<(i64,)>(packets().filter_by(["ip.src"], |_: i64| true), "closure_1");
    let (a, b) = (function("same", |n: i64| n), function("same", |n: i64| n + 1));
    refused::<(i64,)>(packets().uses(&a).uses(&b), "two functions are called `same`");
    refused::<(i64,)>(packets().uses(&a).uses(&a).filter("same(len) < 0 and nothing"), "nothing");
    let built_in = [function("abs", |n: i64| n), aggregate::<Total>("entropy")];
    for function in built_in {
        refused::<(i64,)>(packets().uses(&function), "the language has a function");
    }
    let start = |at: f64| {
        packets().scan_by(["most"], (at,), "ip.src", ["len"], |(most,): (f64,), n: i64| {
            (most.max(n as f64),)
        })
    };
    refused::<(f64,)>(start(f64::NEG_INFINITY), "the start of the state `most`");
    assert_eq!(rows::<(f64,)>(start(0.0).query("project most")).len(), PACKETS as usize);
    refused::<(i64,)>(packets().query("where len < 0 | drop"), "no rows to take");
}

#[test]
fn a_run_ends_early_and_says_why() {
    refused::<(IpAddr,)>(packets().query("project ip.src"), "`ip.src` is absent in a row");
    let panics = packets().filter_by(["number"], |n: i64| {
        assert!(n < 30, "this is meant to panic");
        true
    });
    let mut source = Frames::sample();
    let mut seen = 0;
    let run: StreamRun<'_> = panics.query("project number").run(&mut source);
    let e = run.for_each(|_: (i64,)| seen += 1).expect_err("it panics");
    let StreamError::Run { ledger, .. } = &e else { panic!("{e}") };
    assert!(ledger.processed > 0 && e.to_string().contains("meant to panic"), "{e}");
    let stop = Arc::new(AtomicBool::new(false));
    stop.store(true, Ordering::Relaxed);
    let mut source = Frames::sample();
    let stopped = packets().query("summarize n = count()").run(&mut source).stop(stop);
    assert!(stopped.collect::<(i64,)>().expect("it ends").1.processed < PACKETS as u64);
}

#[test]
fn a_scan_goes_on_after_rows_without_its_inputs() {
    // Some packets have no port, and every fourth state is one that no column holds.
    let step = |(n, sum): (i64, f64), port: i64| {
        (n + 1, if n % 4 == 3 { f64::NAN } else { sum + port as f64 })
    };
    let stream = packets().scan_by(["n", "sum"], (0, 0.5), "protocol == \"\"", ["dport"], step);
    let states = rows::<(i64, f64)>(stream.query("project n, sum"));
    assert_eq!(states.len(), PACKETS as usize);
    let (ports, sums) = states.last().expect("states");
    assert!(*ports == PACKETS - 1 && *sums > 40.0 * 80.0 / 2.0, "{ports} {sums}");
}

#[test]
fn every_type_may_be_absent() {
    fn none<T>(x: Option<T>) -> bool {
        x.is_none()
    }
    let stream = packets()
        .filter_by(["tcp.syn"], none::<bool>)
        .filter_by(["tcp.seq"], none::<i64>)
        .filter_by(["float(tcp.seq)"], none::<f64>)
        .filter_by(["dns.qname"], none::<String>)
        .filter_by(["payload"], none::<Vec<u8>>)
        .filter_by(["ip.src"], none::<IpAddr>)
        .filter_by(["dhcp.client_mac"], none::<[u8; 6]>)
        .filter_by(["time_ns(tcp.seq)"], none::<Timestamp>)
        .filter_by(["duration_ns(tcp.seq)"], none::<SignedDuration>);
    assert_eq!(rows::<(i64,)>(stream.query("summarize n = count()")), [(1,)]);
}

/// Every query of the library is the start of a stream, and an output beside others.
#[test]
fn queries_of_the_library_are_streams() {
    let mut n = 0;
    for folder in ["../../queries", "../../queries/detectors"] {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|ending| ending != "weir") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a query");
            let program = StreamProgram::default()
                .output("these", Stream::of_query(&text))
                .output("all_of_them", packets().query("summarize n = count()"));
            let found = program.compile();
            assert!(found.is_ok(), "{}: {}", path.display(), found.expect_err("no"));
            n += 1;
        }
    }
    assert!(n > 60, "{n} queries");
}
