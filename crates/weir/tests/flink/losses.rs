//! Losses of probes: `completeness()` of the engine in Java and of the job is that of `weir merge`.

use crate::common::workplace;
use crate::{ANY, Cluster, Jars, fixture, merges_alike, place, printed, publish, sorted};
use std::fs;
use std::path::Path;

/// Where a message has the kind of its body, and the number of the kind that tells of losses
/// (docs/partials.md).
const KIND_AT: usize = 57;
const LOSSES: u8 = 2;

/// Time stamps of the captures.
const FIRST: i64 = 1_795_240_240_000_000_000;
const S: i64 = 1_000_000_000;

/// Numbers that look like random ones, the same each time.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }

    fn time(&mut self) -> i64 {
        let near = FIRST + self.below(45 * 1000) as i64 * (S / 1000);
        [i64::MIN, i64::MIN + 1, 0, near, near, near, near, near, i64::MAX - 1, i64::MAX]
            [self.below(10) as usize]
    }

    /// A gap as a message has it: the watermark when it was found, since when, until when, frames.
    fn gap(&mut self) -> Vec<u8> {
        let frames = [0, 1, 2, 3, 10, 1000, 1000, u64::MAX][self.below(8) as usize];
        let times = [self.time(), self.time(), self.time()];
        let times = times.iter().flat_map(|time| time.to_le_bytes());
        times.chain(frames.to_le_bytes()).collect()
    }
}

/// Lets the probe of a stream tell of gaps besides the frames that it saw.
fn lose(stream: &str, draw: &mut Draw, most: u64) {
    let bytes = fs::read(stream).expect("the stream");
    let length =
        |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut at = 8 + length(4);
    let mut out = bytes[..at].to_vec();
    let mut told = 0;
    while at < bytes.len() {
        let mut message = bytes[at + 4..at + 4 + length(at)].to_vec();
        at += 4 + message.len();
        if message[KIND_AT] == LOSSES {
            let gaps: Vec<u8> = (0..=draw.below(most)).flat_map(|_| draw.gap()).collect();
            let count = (gaps.len() / 32) as u32;
            let body = KIND_AT + 1;
            assert_eq!(message[body..body + 4], [0; 4], "nothing was lost here");
            message.splice(body..body + 4, count.to_le_bytes().into_iter().chain(gaps));
            told += count;
        }
        out.extend((message.len() as u32).to_le_bytes());
        out.extend(message);
    }
    assert!(told > 0, "the probe tells of nothing");
    fs::write(stream, out).expect("a file");
}

/// Windows of each kind.
const QUERIES: [&str; 5] = [
    "packets | summarize n = count(), completeness() by ip.src every 1s",
    "packets | where tcp | summarize completeness(), n = count() every 500ms",
    "packets | summarize n = count(), share = completeness() by ip.proto over 5s every 2s lateness 1s",
    "packets | summarize completeness(), d = distinct(ip.dst)",
    "let a = packets | summarize n = count(), completeness() by dport every 1s\n\
     let b = packets | where udp | summarize completeness() by sport every 3s\n\
     a\nb",
];

pub(crate) fn what_was_lost_is_that_of_weir_merge(jars: &Jars) {
    let folder = workplace();
    let mut lost = 0;
    for (number, query) in (1u64..).zip(QUERIES) {
        for (seed, capture) in (1u64..).zip(["mixed.pcap", "dns.pcap", "syn_flood.pcap"]) {
            for most in [1, 3, 40] {
                let [a, b] = publish(folder.path(), query, &fixture(capture), ANY);
                let mut draw = Draw(number * 100 + seed * 10 + most);
                lose(&a, &mut draw, most);
                lose(&b, &mut draw, most);
                let streams = [&*a, &*b];
                let expected = merges_alike(jars, folder.path(), &["-e", query], &streams);
                lost += expected.lines().filter(|row| !row.contains("\":1.0")).count();
            }
        }
    }
    assert!(lost > 100, "little was lost: {lost} rows say so");
}

/// `completeness()` between a life that broke off and the next one: nobody knows how many frames
/// passed.
pub(crate) fn what_nobody_saw_is_that_of_weir_merge(jars: &Jars) {
    let folder = workplace();
    let (mut unseen, mut whole) = (0, 0);
    for query in QUERIES {
        let captures = ["dns.pcap", "mixed.pcap"].map(fixture);
        let [first, second, both] = ["first", "second", "both"].map(|to| place(folder.path(), to));
        let read = |probe: &str, captures: &[String], to: &str| {
            let _ = fs::remove_file(to);
            let read = captures.iter().flat_map(|file| ["-r", file]).collect::<Vec<_>>();
            let publish = ["--publish", to, "--probe", probe];
            printed(&[&["run", "-q", "-e", query], &read[..], &publish].concat());
        };
        read("b", &captures, &both);
        for kept in [0, 1, 2, 3, 5, 8, 1000] {
            read("a", &captures[..1], &first);
            read("a", &captures[1..], &second);
            break_off(&first, kept);
            let streams = [&*second, &*both, &*first];
            let expected = merges_alike(jars, folder.path(), &["-e", query], &streams);
            let of = |share: &str| expected.lines().filter(|row| row.contains(share)).count();
            unseen += of("e-");
            whole += of("\":1.0");
        }
    }
    assert!(unseen > 100 && whole > 100, "{unseen} rows lack something, {whole} do not");
}

/// Leaves so many messages of a stream.
fn break_off(stream: &str, kept: usize) {
    let bytes = fs::read(stream).expect("the stream");
    let length =
        |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut at = 8 + length(4);
    for _ in 0..kept {
        if at < bytes.len() {
            at += 4 + length(at);
        }
    }
    fs::write(stream, &bytes[..at]).expect("a file");
}

/// Streams of two probes of which something was lost in some windows, and not in others; and the
/// rows of `weir merge`.
fn lossy(folder: &Path, query: &str) -> [String; 3] {
    let some = |seed: u64| {
        let [a, b] = publish(folder, query, &fixture("syn_flood.pcap"), ANY);
        let mut draw = Draw(seed);
        lose(&a, &mut draw, 3);
        lose(&b, &mut draw, 3);
        let merged =
            printed(&["merge", "-q", "-e", query, "--from", &a, "--from", &b, "-o", "json"]);
        let whole = merged.lines().filter(|row| row.contains("\":1.0")).count();
        (0 < whole && whole < merged.lines().count()).then_some([a, b, merged])
    };
    (1..100).find_map(some).expect("gaps in a window")
}

/// In the job, where a task manager is killed between what was lost and the end of its window.
pub(crate) fn rows_say_what_was_lost(cluster: &Cluster) {
    let folder = workplace();
    for (number, query) in [QUERIES[0], QUERIES[2]].into_iter().enumerate() {
        let [a, b, merged] = lossy(folder.path(), query);
        let (topic, to) = (format!("lost{number}"), format!("lost-rows{number}"));
        cluster.topic(&topic);
        let job = cluster.submit(query, &topic, &to, &[]);
        // So many that the first window closes.
        cluster.produce(&topic, &["--to", "10", &a, &b]);
        if number == 0 {
            cluster.consume(&to, 1);
            cluster.flink(&["kill", "1"]);
            cluster.flink(&["up"]);
        }
        cluster.produce(&topic, &["--from", "3", &a, &b]);
        let found = cluster.consume(&to, merged.lines().count());
        assert_eq!(sorted(&found), sorted(&merged), "{query}");
        cluster.ask(&["cancel", &job]);
    }
}
