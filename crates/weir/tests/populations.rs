//! Shares, ratios, means and rates of the library and of the report: each is computed once more
//! here, in plain Rust over packets of ours, whose kinds a population may mistake: SYNs and FINs
//! that are sent again, connections of one side, packets out of order, values that are absent.
//!
//! A column that is such a number by its name, or by how it is computed, and that no computation
//! here covers, fails the test by its name.

mod common;
mod populations {
    pub(crate) mod dns;
    pub(crate) mod media;
    pub(crate) mod recipes;
    pub(crate) mod report;
    pub(crate) mod tcp;
    pub(crate) mod traffic;
}

use common::{files, program, root, text};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use weir_capture::memory::MemorySource;
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_lang::{Query, compile, render};
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::{Agg, AggFunc, BinaryOp, Expr, ExprKind, Pipeline, Program, Stage, Type, Value};

/// The start of a window of any width up to a day.
pub(crate) const START: i64 = 1_795_219_200_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const MS: i64 = 1_000_000;

/// A packet as its maker knows it.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Nanoseconds since [`START`].
    pub(crate) at: i64,
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    /// The number of the protocol; 0 of a frame that is no IP.
    pub(crate) proto: u8,
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) flags: u16,
    /// Bytes of payload.
    pub(crate) data: i64,
    /// Whether what it carries was sent before.
    pub(crate) again: bool,
    pub(crate) frame: Vec<u8>,
}

impl Packet {
    /// A packet of these addresses, from a frame that has them.
    pub(crate) fn new(
        at: i64,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        proto: u8,
        frame: &Frame,
    ) -> Packet {
        let frame = frame.bytes();
        Packet { at, src, dst, proto, ports: None, flags: 0, data: 0, again: false, frame }
    }

    /// Bytes on the wire.
    pub(crate) fn len(&self) -> i64 {
        self.frame.len() as i64
    }

    /// The start of the window of this width that it is in, as a key of a row.
    pub(crate) fn window(&self, width: i64) -> String {
        time(self.at.div_euclid(width) * width)
    }
}

/// A time since [`START`] as rows have it.
pub(crate) fn time(at: i64) -> String {
    Value::Time(START + at).to_string()
}

/// Numbers without order, the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The rows that were computed here: the keys of each, and its columns.
pub(crate) type Own = Vec<(Vec<String>, Vec<f64>)>;

/// Columns of a query that are computed here.
pub(crate) struct Computed {
    /// Its file, below `queries/` or `crates/`, without its ending.
    query: &'static str,
    /// The name of the pipeline, if there are several.
    output: Option<&'static str>,
    /// Params, such that every row comes out.
    params: &'static [(&'static str, &'static str)],
    /// The columns that tell rows apart.
    keys: &'static [&'static str],
    columns: &'static [&'static str],
    /// How far a value may be off, as a part of it.
    rounded: f64,
    packets: fn() -> Vec<Packet>,
    own: fn(&[Packet]) -> Own,
}

/// All of them.
fn computed() -> Vec<Computed> {
    [tcp(), traffic(), dns(), media()].into_iter().flatten().collect()
}

fn tcp() -> Vec<Computed> {
    use populations::tcp::{again_shares, one_way, packets, resets, retransmitting};
    let trouble = |output, own| Computed {
        query: "detectors/tcp_trouble",
        output: Some(output),
        params: &[
            ("again_share", "-1.0"),
            ("reset_share", "-1.0"),
            ("one_way_share", "-1.0"),
            ("most_servers", "1000"),
            ("least_data", "0"),
            ("least_connections", "0"),
        ],
        keys: &["ts", "server", "port"],
        columns: &["share"],
        rounded: 0.0,
        packets,
        own,
    };
    vec![
        trouble("retransmitting", retransmitting),
        trouble("resetting", resets),
        trouble("one_way", one_way),
        Computed {
            query: "tcp_health",
            output: Some("servers"),
            params: &[],
            keys: &["ts", "server", "port"],
            columns: &["again_share"],
            rounded: 0.0,
            packets,
            own: again_shares,
        },
    ]
}

fn traffic() -> Vec<Computed> {
    use populations::traffic as t;
    let of = |query, params, keys, columns, own| Computed {
        query,
        output: None,
        params,
        keys,
        columns,
        rounded: 1e-9,
        packets: t::packets,
        own,
    };
    let host = &["ts", "host"];
    let target = &["ts", "target"];
    let flood = &[("threshold", "0.000001"), ("bits", "0.000001")];
    let rates = &["load", "pps", "bps"];
    vec![
        of("daily/timeline", &[], &["ts"], &["bits_per_second"], t::timeline),
        of(
            "entropy",
            &[("interval", "10s")],
            &["ts"],
            &["src", "dst", "sport", "dport"],
            t::entropy,
        ),
        of("packet_sizes", &[], &["ts"], &["mean", "gap_mean", "gap_sigma"], t::packet_sizes),
        Computed {
            output: Some("protocols"),
            ..of(
                "protocol_shares",
                &[],
                &["ts", "protocol"],
                &["packet_share", "byte_share"],
                t::protocol_shares,
            )
        },
        Computed {
            output: Some("services"),
            ..of(
                "protocol_shares",
                &[("n", "1000")],
                &["ts", "protocol", "port"],
                &["packet_share", "byte_share"],
                t::service_shares,
            )
        },
        of(
            "detectors/heavy_hitters",
            &[("share", "-1.0"), ("floor", "0")],
            host,
            &["part"],
            t::heavy_hitters,
        ),
        of(
            "detectors/heavy_prefixes",
            &[("share", "0.2"), ("floor", "0")],
            &["ts", "source", "bits"],
            &["part"],
            t::heavy_prefixes,
        ),
        of(
            "detectors/heavy_changers",
            &[("share", "-1.0"), ("floor", "0")],
            host,
            &["part"],
            t::heavy_changers,
        ),
        of(
            "detectors/elephants",
            &[("share", "-1.0")],
            &["ts", "ip.src", "sport", "ip.dst", "dport", "ip.proto"],
            &["bits_per_second"],
            t::elephants,
        ),
        of(
            "detectors/exfiltration",
            &[("volume", "0"), ("ratio", "-2.0"), ("step", "1h")],
            &["ts", "host", "peer"],
            &["pcr"],
            t::exfiltration,
        ),
        of("detectors/icmp_flood", flood, target, rates, t::icmp_flood),
        of("detectors/udp_flood", flood, target, rates, t::udp_flood),
        of(
            "detectors/baseline",
            &[("interval", "1s"), ("warm_up", "3"), ("deviations", "0.001"), ("floor_bytes", "10")],
            host,
            &["unlike"],
            t::baseline,
        ),
        of(
            "detectors/microbursts",
            &[("link_rate", "1000000"), ("share", "0.0")],
            &["ts"],
            &["peak"],
            t::microbursts,
        ),
        of(
            "detectors/syn_fin_cusum",
            &[("allowance", "-1000.0"), ("limit", "-1.0"), ("interval", "2s"), ("warm_up", "0")],
            &["ts"],
            &["x"],
            t::syn_fin,
        ),
        Computed {
            packets: t::beacons,
            ..of(
                "detectors/beacon",
                &[("score", "-1.0"), ("span", "24s"), ("bar", "1s")],
                &["ts", "client", "server"],
                &["beacon", "timing", "size", "level", "duration"],
                t::beacon,
            )
        },
        Computed {
            packets: t::answered_calls,
            ..of(
                "detectors/beacon_hours",
                &[("score", "-1.0"), ("span", "24s"), ("step", "24s"), ("least", "5")],
                &["ts", "client", "server"],
                &["timing"],
                t::beacon_hours,
            )
        },
    ]
}

fn dns() -> Vec<Computed> {
    use populations::dns as d;
    let of = |query, params, keys, columns, rounded, own| Computed {
        query,
        output: None,
        params,
        keys,
        columns,
        rounded,
        packets: d::packets,
        own,
    };
    vec![
        of(
            "detectors/dns_amplification",
            &[("factor", "-1.0"), ("volume", "0")],
            &["ts", "host", "server"],
            &["amplification"],
            1e-9,
            d::amplification,
        ),
        of(
            "detectors/dns_nxdomain",
            &[("missing", "-1"), ("ratio", "-1.0")],
            &["ts", "client"],
            &["share"],
            1e-9,
            d::nxdomain,
        ),
        // Quantiles are rounded to eleven bits.
        of(
            "detectors/dns_slow",
            &[("slow", "1ms"), ("lost", "0.001"), ("least", "0")],
            &["ts", "server"],
            &["share", "load"],
            1e-3,
            d::slow,
        ),
        of(
            "detectors/dns_information",
            &[("bytes", "-1"), ("span", "1h")],
            &["ts", "client", "domain"],
            &["information"],
            0.0,
            d::information,
        ),
    ]
}

fn media() -> Vec<Computed> {
    use populations::media::{packets, rtp};
    vec![Computed {
        query: "rtp",
        output: None,
        params: &[],
        keys: &["ip.src", "sport", "ssrc"],
        columns: &["loss", "jitter_ms", "jitter_max"],
        rounded: 1e-6,
        packets,
        own: rtp,
    }]
}

/// Words of names that are said of a part of something, or of a mean.
const WORDS: &[&str] = &[
    "share", "ratio", "percent", "mean", "avg", "average", "rate", "loss", "part", "load",
    "jitter", "pps", "bps", "factor",
];

/// The columns of the query's outputs that are such numbers.
fn ratios(program: &Program) -> BTreeSet<(usize, String)> {
    let mut found = BTreeSet::new();
    for (p, pipeline) in program.pipelines.iter().enumerate().filter(|(_, p)| p.printed) {
        let divided = divided(program, pipeline);
        for column in &pipeline.schema.columns {
            let numeric = matches!(column.ty, Type::Int | Type::Float | Type::Duration);
            let named = column.name.split(['_', '.']).any(|word| WORDS.contains(&word));
            let is_ours = !column.name.starts_with("alert.") && column.name != "completeness";
            if numeric && is_ours && (named || divided.contains(&column.name)) {
                found.insert((p, column.name.clone()));
            }
        }
    }
    found
}

/// Names of columns that are divided, or means, in a pipeline or in those that it reads.
fn divided(program: &Program, pipeline: &Pipeline) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in pipeline.sources() {
        found.extend(divided(program, &program.pipelines[source]));
    }
    for stage in &pipeline.stages {
        match stage {
            Stage::Extend { columns } => {
                let of = columns.iter().filter(|(_, _, e)| divides(e));
                found.extend(of.map(|(name, ..)| name.clone()));
            }
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                let of = columns.iter().filter(|(_, e)| divides(e));
                found.extend(of.map(|(name, _)| name.clone()));
            }
            Stage::Summarize(s) => {
                found.extend(s.aggs.iter().filter(|agg| is_mean(agg)).map(|agg| agg.name.clone()));
            }
            _ => {}
        }
    }
    found
}

fn is_mean(agg: &Agg) -> bool {
    let mean = [AggFunc::Avg, AggFunc::Stddev, AggFunc::Variance].contains(&agg.func);
    mean || matches!(agg.func, AggFunc::Rate(_))
}

/// Whether an expression divides what is no whole number.
fn divides(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Binary(op, a, b) => {
            (*op == BinaryOp::Div && e.ty == Type::Float) || divides(a) || divides(b)
        }
        ExprKind::Call(_, args) | ExprKind::Tuple(args) => args.iter().any(divides),
        _ => false,
    }
}

/// A query by its file below `queries/` or `crates/`, without its alerts.
fn query(name: &str) -> String {
    let whole = text(if name.contains("/src/") {
        format!("crates/{name}.weir")
    } else {
        format!("queries/{name}.weir")
    });
    let mut kept = String::new();
    let mut skips = false;
    for line in whole.lines() {
        skips = line.trim_start().starts_with("| alert") || skips && !line.trim().is_empty();
        if !skips {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// The rows of the computed columns, by the keys.
fn rows(of: &Computed, packets: &[Packet]) -> BTreeMap<Vec<String>, Vec<f64>> {
    let text = query(of.query);
    let named = Query { name: of.query, text: &text };
    let params: Vec<_> = of.params.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let options = weir_lang::Options { params: &params, ..weir_lang::Options::default() };
    let program = match compile(&named, &options) {
        Ok(compiled) => compiled.program,
        Err(diagnostics) => panic!("{}", render(&diagnostics, &named, false)),
    };
    let packets = packets.iter().map(|p| (START + p.at, p.frame.len() as u32, p.frame.clone()));
    let memory = MemorySource::new(LinkType::ETHERNET, packets);
    let (mut source, mut sink) = (Reading::new(memory), Collect::default());
    let functions = Functions::default();
    let options = Options { workers: 2, ..Options::default() };
    let outcome = run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
    assert!(outcome.error.is_none(), "{}", of.query);
    let printed: Vec<_> = program.pipelines.iter().filter(|p| p.printed).collect();
    let mut found = BTreeMap::new();
    for (output, row) in sink.rows {
        if of.output.is_some() && printed[output].name.as_deref() != of.output {
            continue;
        }
        let columns = &printed[output].schema.columns;
        let cell = |name: &&str| {
            let at = columns.iter().position(|c| c.name == *name);
            &row[at.unwrap_or_else(|| panic!("{}: no column {name}", of.query))]
        };
        let plain = |value: &Value| match value {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        };
        let keys: Vec<_> = of.keys.iter().map(|name| plain(cell(name))).collect();
        let values = of.columns.iter().map(|name| number(cell(name))).collect();
        assert_eq!(found.insert(keys.clone(), values), None, "{}: {keys:?} twice", of.query);
    }
    found
}

/// A cell as a number: an absent one is none, and a duration is of seconds.
fn number(value: &Value) -> f64 {
    match value {
        Value::Int(n) => *n as f64,
        Value::Float(f) => *f,
        Value::Duration(ns) => *ns as f64 / SECOND as f64,
        Value::Absent => f64::NAN,
        other => panic!("no number: {other}"),
    }
}

#[test]
fn every_share_and_mean_is_computed_once_more() {
    for of in computed() {
        let packets = (of.packets)();
        let what = format!("{} {}", of.query, of.output.unwrap_or_default());
        let got = rows(&of, &packets);
        let own: BTreeMap<_, _> = (of.own)(&packets).into_iter().collect();
        assert!(own.len() > 1, "{what}: {} rows show nothing", own.len());
        let keys = |rows: &BTreeMap<Vec<String>, _>| rows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&got), keys(&own), "{what}: which rows there are");
        for (key, values) in own {
            for ((name, own), got) in of.columns.iter().zip(values).zip(&got[&key]) {
                let near = (own - got).abs() <= of.rounded * own.abs().max(1e-12);
                let same = near || own == *got || own.is_nan() && got.is_nan();
                assert!(same, "{what}: {name} of {key:?} is {got}, and {own} by itself");
            }
        }
    }
}

#[test]
fn no_share_and_no_mean_goes_without() {
    let mut covered: BTreeSet<(String, Option<&str>, &str)> = BTreeSet::new();
    for of in computed() {
        covered.extend(of.columns.iter().map(|name| (of.query.to_owned(), of.output, *name)));
    }
    let mut seen = 0;
    for folder in ["queries", "crates/report/src/queries", "crates/dashboard/programs"] {
        for path in files(folder, &[".weir"]) {
            let name = short_name(&path);
            let program = program(&text(&path), &Functions::default());
            let printed = program.pipelines.iter().filter(|p| p.printed).count();
            for (p, column) in ratios(&program) {
                let output = program.pipelines[p].name.as_deref().filter(|_| printed > 1);
                seen += 1;
                assert!(
                    covered.iter().any(|(q, o, c)| (q, *o, *c) == (&name, output, column.as_str())),
                    "{name}: nothing in tests/populations computes `{column}` of {output:?} anew"
                );
            }
        }
    }
    assert!(seen >= 30, "{seen}: the words or the operators are not found any more");
}

/// The name of a query's file as [`Computed::query`] has it.
fn short_name(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root").with_extension("");
    let path = path.to_str().expect("plain");
    let below = path.strip_prefix("queries/").or_else(|| path.strip_prefix("crates/"));
    below.expect("a known folder").to_owned()
}
