//! Random programs over merged rows: a job gives the rows of `weir merge` and of one run. Numbers
//! are those at the edges of their types, and some that rows have.

use crate::alerts::{busy_now_and_then, two_probes};
use crate::common::workplace;
use crate::losses::Draw;
use crate::same_rows::are_the_same;
use crate::{Cluster, place, weir};
use proptest::prelude::any;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use std::fs;

/// A summarize over packets, with which a random pipeline begins.
struct Base {
    name: &'static str,
    stages: &'static str,
    columns: &'static [(&'static str, Kind)],
}

const BASES: [Base; 3] = [
    Base {
        name: "a",
        stages: "packets | where udp | summarize n = count(), b = sum(len), t = max(ts), d = min(ip.dst), \
         x = avg(len) by ip.src, ip.proto every 1s",
        columns: &[
            ("ip.src", Kind::Ip),
            ("ip.proto", Kind::Int),
            ("n", Kind::Int),
            ("b", Kind::Int),
            ("t", Kind::Time),
            ("d", Kind::Ip),
            ("x", Kind::Float),
        ],
    },
    Base {
        name: "b",
        stages: "packets | summarize m = count(), u = min(ts), f = stddev(len), y = any(tcp.syn), \
         z = min(tcp.dport) by ip.src every 1s",
        columns: &[
            ("ip.src", Kind::Ip),
            ("m", Kind::Int),
            ("u", Kind::Time),
            ("f", Kind::Float),
            ("y", Kind::Bool),
            ("z", Kind::Int),
        ],
    },
    Base {
        name: "c",
        stages: "packets | where tcp | summarize k = count(), v = max(tcp.payload_len) \
         by ip.dst, w = tcp.sport == 1001 every 1s",
        columns: &[("ip.dst", Kind::Ip), ("w", Kind::Bool), ("k", Kind::Int), ("v", Kind::Int)],
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bool,
    Int,
    Float,
    Ip,
    Text,
    Time,
    Duration,
}

const INTS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "63",
    "64",
    "100",
    "-1",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775807",
];
const FLOATS: [&str; 7] = ["0.0", "1.0", "0.5", "-2.25", "1e300", "1e-300", "3.0000000000000004"];
const IPS: [&str; 5] = ["10.0.0.1", "200.0.0.3", "0.0.0.0", "::1", "ffff::"];
const TEXTS: [&str; 4] = ["\"\"", "\"it's\"", "\"a\\\"b\"", "\"é\""];
const TIMES: [&str; 3] =
    ["@2001-09-09T01:46:45Z", "@1970-01-01T00:00:00Z", "@2200-01-01T00:00:00Z"];
const DURATIONS: [&str; 4] = ["0s", "1ns", "1500ms", "-2s"];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// The rows of a pipeline while it is written.
struct Rows<'a> {
    draw: &'a mut Draw,
    columns: Vec<(String, Kind)>,
    names: u64,
    /// States of the scan that is being written.
    states: Vec<(String, Kind)>,
}

impl Rows<'_> {
    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.draw.below(all.len() as u64) as usize]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    fn kind(&mut self) -> Kind {
        use Kind::*;
        [Bool, Int, Int, Int, Float, Ip, Text, Time, Duration][self.draw.below(9) as usize]
    }

    /// A column or a state of a kind, or a constant.
    fn leaf(&mut self, kind: Kind) -> String {
        let all = self.columns.iter().chain(&self.states);
        let fit: Vec<String> =
            all.filter(|(_, of)| *of == kind).map(|(name, _)| name.clone()).collect();
        if !fit.is_empty() && self.draw.below(4) > 0 {
            return fit[self.draw.below(fit.len() as u64) as usize].clone();
        }
        let all: &[&str] = match kind {
            Kind::Bool => &["true", "false"],
            Kind::Int => &INTS,
            Kind::Float => &FLOATS,
            Kind::Ip => &IPS,
            Kind::Text => &TEXTS,
            Kind::Time => &TIMES,
            Kind::Duration => &DURATIONS,
        };
        self.pick(all).to_owned()
    }

    fn value(&mut self, kind: Kind, depth: u64) -> String {
        if depth == 0 || self.draw.below(5) == 0 {
            return self.leaf(kind);
        }
        let deeper = depth - 1;
        if self.draw.below(5) == 0 {
            let (c, a, b) = (
                self.value(Kind::Bool, deeper),
                self.value(kind, deeper),
                self.value(kind, deeper),
            );
            return match self.draw.below(3) {
                0 => format!("coalesce({a}, {b})"),
                _ => format!("if({c}, {a}, {b})"),
            };
        }
        match kind {
            Kind::Bool => self.condition(deeper),
            Kind::Int => {
                let (a, b) = (self.value(kind, deeper), self.value(kind, deeper));
                match self.draw.below(6) {
                    0 => format!("-({a})"),
                    1 => format!("abs({a})"),
                    2 => format!("{}({a}, {b})", self.pick(&["min_of", "max_of"])),
                    3 => format!("int({})", self.value(Kind::Float, deeper)),
                    _ => {
                        let op = self.pick(&["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]);
                        format!("(({a}) {op} ({b}))")
                    }
                }
            }
            Kind::Float => {
                let (a, b) = (self.value(kind, deeper), self.value(kind, deeper));
                match self.draw.below(4) {
                    0 => format!("float({})", self.value(Kind::Int, deeper)),
                    1 => format!("{}({a}, {b})", self.pick(&["min_of", "max_of"])),
                    2 => format!("sqrt({a})"),
                    _ => format!("(({a}) {} ({b}))", self.pick(&["+", "-", "*", "/"])),
                }
            }
            Kind::Ip => {
                let (a, v4, v6) = (self.leaf(kind), self.draw.below(33), self.draw.below(129));
                format!("prefix({a}, {v4}, {v6})")
            }
            Kind::Text => self.leaf(kind),
            Kind::Time => {
                let (a, b) = (self.leaf(kind), self.value(Kind::Duration, deeper));
                format!("({a} + {b})")
            }
            Kind::Duration => {
                let (a, b) = (self.leaf(Kind::Time), self.leaf(Kind::Time));
                format!("({a} - {b})")
            }
        }
    }

    fn condition(&mut self, depth: u64) -> String {
        match self.draw.below(7) {
            0 => format!("not ({})", self.value(Kind::Bool, depth)),
            1 | 2 => {
                let (a, b) = (self.value(Kind::Bool, depth), self.value(Kind::Bool, depth));
                format!("(({a}) {} ({b}))", self.pick(&["and", "or"]))
            }
            3 => {
                let a = self.value(Kind::Int, depth);
                format!("({a}) in {}..{}", self.draw.below(3), 3 + self.draw.below(100))
            }
            4 => format!("{} in {{10.0.0.0/8, ::/1}}", self.leaf(Kind::Ip)),
            5 => {
                let columns = self.columns.len() as u64;
                format!("exists({})", self.columns[self.draw.below(columns) as usize].0)
            }
            _ => {
                let kind = self.kind();
                let (a, b) = (self.value(kind, depth), self.value(kind, depth));
                let all = if kind == Kind::Bool { &COMPARISONS[..2] } else { &COMPARISONS[..] };
                format!("(({a}) {} ({b}))", self.pick(all))
            }
        }
    }

    /// A stage, and what it does to the columns.
    fn stage(&mut self) -> String {
        match self.draw.below(9) {
            0 | 1 => format!("where {}", self.condition(2)),
            2 | 3 => {
                let (kind, name) = (self.kind(), self.name());
                let text = format!("extend {name} = {}", self.value(kind, 3));
                self.columns.push((name, kind));
                text
            }
            4 | 5 => self.scan(),
            6 => {
                let kind = self.kind();
                let by = self.value(kind, 1);
                let order = self.pick(&["", " asc", " desc"]);
                let per = match self.draw.below(3) {
                    0 => format!(" per {}", self.leaf(Kind::Ip)),
                    _ => String::new(),
                };
                format!("top {} by {by}{order}{per}", 1 + self.draw.below(4))
            }
            _ => self.summarize(),
        }
    }

    fn scan(&mut self) -> String {
        let mut all = Vec::new();
        for _ in 0..1 + self.draw.below(2) {
            let (kind, name) = (self.kind(), self.name());
            all.push((name, kind, self.value(kind, 1)));
        }
        let key = match self.draw.below(4) {
            0 => String::new(),
            1 => format!(" by {}", self.condition(1)),
            _ => format!(" by {}", self.leaf(Kind::Ip)),
        };
        self.states = all.iter().map(|(name, kind, _)| (name.clone(), *kind)).collect();
        let next: Vec<String> = all.iter().map(|(_, kind, _)| self.value(*kind, 2)).collect();
        let states = std::mem::take(&mut self.states);
        let first: Vec<String> =
            all.iter().map(|(name, _, init)| format!("{name} = {init}")).collect();
        let idle = self.pick(&["", " idle 2s", " idle 8s"]);
        let max = if key.is_empty() { "" } else { self.pick(&["", "", " max 2", " max 3"]) };
        let next = if next.len() == 1 { next[0].clone() } else { format!("({})", next.join(", ")) };
        self.columns.extend(states);
        format!("scan {}{key}{idle}{max} => {next}", first.join(", "))
    }

    fn summarize(&mut self) -> String {
        let mut aggs = Vec::new();
        let mut columns = Vec::new();
        for _ in 0..1 + self.draw.below(3) {
            let name = self.name();
            let (call, kind) = match self.draw.below(6) {
                0 => (format!("sum({})", self.value(Kind::Int, 1)), Kind::Int),
                1 => (format!("avg({})", self.value(Kind::Int, 1)), Kind::Float),
                2 => {
                    let kind = [Kind::Int, Kind::Float, Kind::Time][self.draw.below(3) as usize];
                    let call = self.pick(&["min", "max"]);
                    (format!("{call}({})", self.value(kind, 1)), kind)
                }
                3 => (
                    format!("{}({})", self.pick(&["any", "all"]), self.value(Kind::Bool, 1)),
                    Kind::Bool,
                ),
                4 => {
                    let kind = [Kind::Int, Kind::Ip, Kind::Bool][self.draw.below(3) as usize];
                    let limit = self.pick(&["", ", 1", ", 3"]);
                    (format!("distinct({}{limit})", self.value(kind, 1)), Kind::Int)
                }
                _ => (format!("count({})", self.condition(1)), Kind::Int),
            };
            aggs.push(format!("{name} = {call}"));
            columns.push((name, kind));
        }
        let (key, kind) = (self.name(), self.kind());
        let by = match self.draw.below(3) {
            0 => String::new(),
            _ => format!(" by {key} = {}", self.value(kind, 1)),
        };
        if !by.is_empty() {
            columns.push((key, kind));
        }
        self.columns = columns;
        format!("summarize {}{by} every {}s", aggs.join(", "), self.pick(&["1", "2", "4"]))
    }
}

/// A pipeline that is a program, with what it is made of.
fn pipeline(draw: &mut Draw) -> String {
    for _ in 0..1000 {
        let base = &BASES[draw.below(3) as usize];
        let columns = base.columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let mut rows = Rows { draw, columns, names: 0, states: Vec::new() };
        let mut text = base.name.to_owned();
        match rows.draw.below(5) {
            0 => {
                let kind = rows.pick(&["", "left ", "anti "]);
                text += &format!(" | join {kind}(b) by ts, ip.src").replace("(b)", "other");
            }
            1 => text += " | union other",
            _ => {}
        }
        for _ in 0..1 + rows.draw.below(4) {
            text += &format!(" | {}", rows.stage());
        }
        let program = program(&[text.clone()]);
        if weir(&["explain", "-e", &program]).status.success() {
            return text;
        }
    }
    panic!("no pipeline is a program");
}

fn program(pipelines: &[String]) -> String {
    let mut text = String::new();
    for Base { name, stages, .. } in BASES {
        text += &format!("let {name} = {stages}\n");
    }
    text += "let other = b | project ts, ip.src, other = m, more = f\n";
    text + &pipelines.join("\n")
}

#[expect(clippy::print_stdout, reason = "programs are shown where it fails")]
pub(crate) fn random_programs_give_the_rows_of_one_run(cluster: &Cluster) {
    let mut runner = TestRunner::default();
    let seed = any::<u64>().new_tree(&mut runner).expect("a number").current() >> 32;
    let folder = workplace();
    for round in 0..2 {
        let mut draw = Draw(seed * 1000 + round);
        let capture = place(folder.path(), "busy.pcap");
        fs::write(&capture, busy_now_and_then(seed + round)).expect("a file");
        let pipelines: Vec<String> = (0..10).map(|_| pipeline(&mut draw)).collect();
        let text = program(&pipelines);
        let ([a, b], merged) = two_probes(folder.path(), &["-e", &text], &[capture]);
        println!("{text}");
        assert!(merged.lines().count() > 100, "few rows: {merged}");
        let (topic, to) = (format!("random{round}"), format!("random-rows{round}"));
        cluster.topic(&topic);
        cluster.produce(&topic, &[&a, &b]);
        cluster.submit(&text, &topic, &to, &["--bounded"]);
        let found = cluster.consume(&to, merged.lines().count());
        are_the_same(&found, &merged);
    }
}
