//! Physical plans of whole queries: what they say, and that JSON gives them back.

mod common;

use assert_cmd::Command;
use common::{files, program, text};
use insta::assert_snapshot;
use weir_engine::functions::Functions;
use weir_plan::functions::Signatures;
use weir_plan::limits::PLAN_BYTES_MAX;
use weir_plan::physical::{
    ExchangeId, Half, Inlet, Needs, Node, NodeId, Physical, PipelineId, Prefix, Tick, Unreadable,
    Unwritable, Work, fuzz_physical,
};
use weir_plan::stage::Stage;

/// A query with something of everything that a plan can hold.
const EVERYTHING: &str = r#"
param slow: duration = 2s
let starts = packets
    | where tcp and ip.src in {10.0.0.0/8, 192.0.2.7} or dport in {22, 8000..8999, 443}
    | extend half = len / 2, name = concat(lower(dns.qname), "\n\"é"), odd = tcp[13:2] == 0x1002
    | scan n = 0, last = ts by flow idle 1m max 500 => (n + 1, ts)
    | summarize count(), bytes = sum(len), q = quantile(len, 0.95), f = frequent(dport, 3),
          d = distinct(flow, 100), rate = rate(len) where not tcp.ack, some = any(odd)
          by ip.src, net = prefix(ip.dst, 24, 64) over 10s every 5s lateness 1s fill idle 1m max 1000
let others = packets
    | summarize total = avg(float(len) * -0.5) by ip.src every 5s
let sessions = packets
    | summarize why = end_reason(), v = stddev(len) by flow session 15s active 1m until tcp.rst
starts | join left others by ip.src default total = 1.5 | top 3 by bytes, ip.src asc per net
sessions | join anti starts by ip.src within -1s..3s max 9
packets | each o = tcp.option | where o.kind == 3 | project ts, o.kind, x = abs(-7), y = if(tcp, 1, 2)
packets | distinct ip.src, hex(eth.type) idle 1h | sample 1 in 10 by flow | limit 5
packets | branch when dns -> trim 96 | tag 7 | forward "a.pcap"
    when tcp -> steer by flow to ("b", "c") else -> drop
"#;

fn plan(query: &str) -> Physical {
    Physical::new(&program(query, &Functions::default()), &[])
}

fn json(plan: &Physical) -> String {
    plan.to_json(&Signatures::default()).expect("it can be written")
}

fn read(json: &str) -> Result<Physical, Unreadable> {
    Physical::from_json(json, &Signatures::default())
}

/// The queries of the library, and that with everything.
fn all() -> Vec<(String, String)> {
    let library = files("queries", &[".weir"]);
    let mut all: Vec<_> = library.iter().map(|p| (p.display().to_string(), text(p))).collect();
    all.push(("everything".to_owned(), EVERYTHING.to_owned()));
    all
}

#[test]
fn json_gives_every_plan_back() {
    for (name, query) in all() {
        let program = program(&query, &Functions::default());
        let plan = Physical::new(&program, &[]);
        assert_eq!(plan.check(&Signatures::default()), Ok(()), "{name}");
        assert_eq!(plan.program(), program, "{name}");
        let json = json(&plan);
        assert_eq!(read(&json).as_ref(), Ok(&plan), "{name}\n{json}");
    }
}

/// A change of these snapshots is a change of the format: it needs another version.
#[test]
fn the_format_is_that_of_version_3() {
    assert_snapshot!(json(&plan(EVERYTHING)));
}

/// A query of whose two pipelines the kernel can do something.
const COUNTED: &str = "packets | where tcp.syn | summarize n = count() by ip.src every 10s
packets | where udp and dport == 53 | project ts, ip.src";

/// Its plan, of which the kernel runs the first pipeline up to its groups, and the condition of the
/// other.
fn counted() -> Physical {
    plan(COUNTED).with_kernel("socket filter", &counted_prefixes())
}

fn counted_prefixes() -> [Prefix; 2] {
    let stopped_by = Some("rows are for workers".to_owned());
    [
        Prefix { pipeline: PipelineId(0), stages: 2, counts: true, acts: false, stopped_by: None },
        Prefix { pipeline: PipelineId(1), stages: 1, counts: false, acts: false, stopped_by },
    ]
}

#[test]
fn a_kernel_level_is_part_of_the_format() {
    let plan = counted();
    assert_eq!(plan.check(&Signatures::default()), Ok(()));
    let json = json(&plan);
    assert_eq!(read(&json).as_ref(), Ok(&plan), "{json}");
    let level: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let text = |value: &serde_json::Value| format!("{value:#}");
    assert_snapshot!(text(&level["exchanges"]));
}

#[test]
fn the_text_shows_the_kernel_level() {
    let program = program(COUNTED, &Functions::default());
    let prefixes = counted_prefixes();
    assert_snapshot!(weir_plan::print::explain_with_kernel(
        &program,
        2,
        "socket filter",
        &prefixes
    ));
}

/// The kernel takes nothing off what other levels do.
#[test]
fn a_kernel_level_changes_no_meaning() {
    for (name, query) in all() {
        let plain = plan(&query);
        let wheres = |p: usize| {
            let is_where = |node: &&Node| matches!(node.work, Work::Stage(Stage::Where(_)));
            plain.nodes(PipelineId(p)).take_while(is_where).count()
        };
        let prefixes: Vec<Prefix> = (0..plain.pipelines.len())
            .map(|p| Prefix {
                pipeline: PipelineId(p),
                stages: wheres(p),
                counts: false,
                acts: false,
                stopped_by: None,
            })
            .collect();
        let with = plain.with_kernel("hook", &prefixes);
        assert_eq!(with.check(&Signatures::default()), Ok(()), "{name}");
        assert_eq!(with.program(), plain.program(), "{name}");
        assert_eq!(with.without_kernel(), plain, "{name}");
        assert_eq!(with.with_kernel("hook", &prefixes), with, "{name}");
        assert_eq!(read(&json(&with)).as_ref(), Ok(&with), "{name}");
        for node in (0..plain.pipelines.len()).flat_map(|p| plain.nodes(PipelineId(p))) {
            let print = |plan: &Physical| plan.fingerprint(node.id, &Signatures::default());
            assert_eq!(print(&with), print(&plain), "{name}");
        }
    }
}

#[test]
fn kernel_levels_that_do_not_fit_are_refused() {
    type Break = fn(&mut Physical);
    let faults: [(Break, &str); 9] = [
        (|p| drop(p.levels.remove(0)), "it has exchanges of a kernel level, which it lacks"),
        (|p| drop(p.levels[0].fragments.pop()), "it does not have each pipeline over packets once"),
        (
            |p| p.levels[0].ticks = vec![Tick { every_ns: 1, lateness_ns: 0 }],
            "it has ticks, and no watermark reaches it",
        ),
        (
            |p| drop(p.levels[0].fragments[0].nodes.remove(0)),
            "it is not the beginning of what workers run",
        ),
        (
            |p| drop(p.levels[0].fragments[0].nodes.pop()),
            "it hands over something else than frames and groups",
        ),
        (
            |p| p.levels[0].fragments[0].to.truncate(1),
            "groups have one way to go, and only where it counts",
        ),
        (
            |p| p.levels[0].fragments[1].to.clear(),
            "it hands over something else than frames and groups",
        ),
        (
            |p| p.levels[0].fragments[1].from = Inlet::Exchange(ExchangeId(2)),
            "it does not take what is offered",
        ),
        (
            |p| p.exchanges[0].needs = Needs::OneProducer,
            "its exchanges ask for packets in one place",
        ),
    ];
    for (fault, why) in faults {
        let mut plan = counted();
        fault(&mut plan);
        let found = plan.check(&Signatures::default()).expect_err(why);
        assert_eq!(found.why, why);
    }
}

#[test]
fn the_text_shows_levels_and_exchanges() {
    let program = program(EVERYTHING, &Functions::default());
    assert_snapshot!(weir_plan::print::explain(&program, 4));
}

#[test]
fn other_versions_and_members_are_refused_by_name() {
    let good = json(&plan("packets | where tcp | limit 3"));
    let check = |from: &str, to: &str, expected: &str| {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let error = read(&bad).expect_err(&bad).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(r#""version": 3"#, r#""version": 1"#, "format version 1; only version 3 can be read");
    check(r#""version": 3"#, r#""vision": 3"#, "it has no `version`");
    check(r#""version": 3"#, r#""version": 3, "more": 2"#, "unknown member `more`");
    check(r#""frame": false"#, r#""frame": 0"#, "carries.frame: expected true or false; found 0");
    check(r#""field": "tcp""#, r#""field": "tpc""#, "there is no packet field `tpc`");
    check(r#""limit": "3""#, r#""limit": 3"#, "expected a whole number as a string; found 3");
    check(r#""limit": "3""#, r#""limits": "3""#, "`limits` is unknown here; known are where,");
    check(r#""rows": 0"#, r#""rows": 7"#, "pipeline 1");
    check(r#""field": "tcp""#, r#""field": "len""#, "stage 1: it does not fit its input");
    check("{", "", "this is not JSON");
    let deep = "[".repeat(100_000);
    assert_eq!(read(&deep), Err(Unreadable::TooLarge));
    assert_eq!(read(&" ".repeat(PLAN_BYTES_MAX + 1)), Err(Unreadable::TooLarge));
}

#[test]
fn a_key_stays_where_it_is() {
    let query = r#"packets | project a = anonymize(ip.src, "0123456789abcdef0123456789abcdef")"#;
    let written = plan(query).to_json(&Signatures::default());
    assert_eq!(written, Err(Unwritable::Key));
    let weir = Command::cargo_bin("weir")
        .expect("the binary")
        .args(["explain", "-e", query])
        .args(["-o", "json"])
        .output();
    let output = weir.expect("it runs");
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(message.contains("holds a key of `anonymize`"), "{message}");
    assert!(!message.contains("0123456789abcdef"), "{message}");
}

/// A fingerprint is of what a node computes, and of nothing else.
#[test]
fn fingerprints_say_what_is_computed() {
    let print = |query: &str, pipeline, stage, half| {
        let id = NodeId { pipeline: PipelineId(pipeline), stage, half };
        plan(query).fingerprint(id, &Signatures::default()).expect("no key")
    };
    let count = "packets | where tcp | summarize count() by ip.src every 1s";
    let here = print(count, 0, 1, Half::Partial);
    assert!(here.is_some());
    let beside = format!("packets | scan n = 0 by sport => n + 1 | project n\n{count}");
    assert_eq!(print(&beside, 1, 1, Half::Partial), here);
    assert_eq!(print(&format!("let x = {count}\nx | limit 2"), 0, 1, Half::Partial), here);
    assert_ne!(print(count, 0, 1, Half::Final), here);
    assert_ne!(print(&count.replace("tcp", "udp"), 0, 1, Half::Partial), here);
    assert_ne!(print(&count.replace("1s", "2s"), 0, 1, Half::Partial), here);
    assert_eq!(print(count, 0, 1, Half::Whole), None);
    assert_eq!(print(count, 3, 0, Half::Whole), None);
    // Other machines compare it.
    assert_snapshot!(format!("{:032x}", here.unwrap_or_default()));
}

/// Numbers below `n` from a seed (SplitMix64).
fn below(seed: &mut u64, n: usize) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as usize % n
}

/// Replacements for bytes: other tokens of the format, and edges of its numbers.
const TOKENS: [&str; 16] = [
    "0",
    "1",
    "65535",
    "18446744073709551615",
    "-1",
    "\"-9223372036854775808\"",
    "\"0\"",
    "null",
    "[]",
    "{}",
    "\"whole\"",
    "\"final\"",
    "\"absent\"",
    "\"int\"",
    "\"ip\"",
    "1e999",
];

/// Mutated plans are refused, or are plans that can be written, read, placed and printed.
#[test]
fn no_mutation_breaks_the_reader() {
    let mut seed = 7;
    let (mut good, mut bad) = (0, 0);
    let plans = all().into_iter().map(|(_, query)| plan(&query)).chain([counted()]);
    for json in plans.map(|plan| json(&plan)) {
        let words: Vec<(usize, &str)> = words(&json);
        for _ in 0..60 {
            let mut text = json.clone();
            for _ in 0..1 + below(&mut seed, 2) {
                let (at, word) = words[below(&mut seed, words.len())];
                let other = match below(&mut seed, 3) {
                    0 => TOKENS[below(&mut seed, TOKENS.len())],
                    _ => words[below(&mut seed, words.len())].1,
                };
                if text.get(at..at + word.len()) == Some(word) {
                    text.replace_range(at..at + word.len(), other);
                }
            }
            match read(&text) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
            fuzz_physical(text.as_bytes());
        }
        let cut = below(&mut seed, json.len());
        fuzz_physical(&json.as_bytes()[..cut]);
    }
    assert!(good > 10 && bad > 10, "{good} were read, {bad} refused");
}

/// The strings and numbers of a text of JSON, with their places.
fn words(json: &str) -> Vec<(usize, &str)> {
    let (mut words, mut at) = (Vec::new(), 0);
    for line in json.split_inclusive('\n') {
        let value = line.trim_start();
        let value = value.split_once(": ").map_or(value, |(_, value)| value);
        let value = value.trim_end().trim_end_matches(',');
        if !value.is_empty() && !value.ends_with(['{', '[']) {
            let start = at + line.find(value).unwrap_or(0);
            words.push((start, &json[start..start + value.len()]));
        }
        at += line.len();
    }
    words
}

/// A network is a part of its address, and a column that holds either counts as what it holds.
#[test]
fn packets_are_spread_by_networks_and_by_what_columns_hold() {
    for (query, by) in [
        ("extend net = prefix(ip.src, 24) | scan n = 0 by net => n + 1", "prefix(ip.src, 24)"),
        ("scan n = 0 by prefix(ip.src, 24, 48) => n + 1", "prefix(ip.src, 24, 48)"),
        ("extend from = ip.src | scan n = 0 by from, dport => n + 1", "ip.src, dport"),
        (
            "scan n = 0 by flow => n + 1 | scan m = 0 by prefix(ip.dst, 16) => m + 1",
            "prefix(ip.dst, 16)",
        ),
    ] {
        let query = format!("packets | {query} | project n");
        let plan = plan(&query);
        assert_eq!(read(&json(&plan)).as_ref(), Ok(&plan));
        let program = program(&query, &Functions::default());
        let text = weir_plan::print::explain(&program, 4);
        assert!(text.contains(&format!("largest common key: {by}\n")), "{query}: {text}");
        assert!(text.contains("workers: 4"), "{query}: {text}");
    }
}
