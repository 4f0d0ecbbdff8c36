//! The right answers to the works, found the slow way: packet by packet, in maps of the standard
//! library, with a parser that knows just what the generator writes. It shares no code with the
//! engine but the digest of a row.

mod packets;

use crate::answer::{Answer, Part, RowDigest};
use crate::work::{FLOW_METER, Folder, Text, Work, texts, together};
use crate::{contestant, sys};
use anyhow::{Context, Result, bail};
use packets::{Flow, Packet, packets};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;
use weir_engine::functions::Functions;

/// Part of the name under which answers are kept: to be changed whenever this file finds others.
const VERSION: u32 = 1;

/// Nanoseconds of a window.
const WINDOW_NS: i64 = 1_000_000_000;

/// The answer to `work` over a trace. Found once, then kept beside the trace.
pub(crate) fn answer(work: &Work, trace: &Path) -> Result<Answer> {
    let name = match work.text {
        // The same question in Rust.
        Text::RustApi => FLOW_METER.name.to_owned(),
        Text::Together(folder) => format!("{}-{:016x}", work.name, digest(folder)?),
        _ => work.name.to_owned(),
    };
    let kept = trace.with_extension(format!("pcap.{name}-v{VERSION}.answer"));
    if let Some(answer) = fs::read_to_string(&kept).ok().and_then(|s| Answer::parse(&s).ok()) {
        return Ok(answer);
    }
    let answer = match work.text {
        Text::Together(folder) => one_by_one(folder, trace)?,
        _ => {
            let file = sys::map(trace).with_context(|| trace.display().to_string())?;
            Answer(vec![find(&name, packets(&file)?)?])
        }
    };
    let unfinished = kept.with_extension("part");
    fs::write(&unfinished, answer.to_string()).with_context(|| unfinished.display().to_string())?;
    fs::rename(&unfinished, &kept).with_context(|| kept.display().to_string())?;
    Ok(answer)
}

/// Tells the queries of a folder from what they were before somebody changed one.
fn digest(folder: Folder) -> Result<u64> {
    let texts = texts(folder)?.into_iter();
    let digest = |sum, (name, text): (String, String)| {
        RowDigest::text(sum, name.as_bytes()).text(text.as_bytes())
    };
    Ok(texts.fold(RowDigest::new(), digest).value())
}

/// The rows of the queries of a folder when each runs alone: whether they are right is what the
/// tests of the library check, here they must not disturb each other.
fn one_by_one(folder: Folder, trace: &Path) -> Result<Answer> {
    let mut all = Answer::default();
    for (name, program) in together(folder)? {
        let program = (program, Functions::default());
        let (_, answer) =
            contestant::run_program(&program, trace, &contestant::CHECK, folder.may_evict())
                .with_context(|| format!("running {name} alone"))?;
        all.0.extend(answer.0);
    }
    Ok(all)
}

fn find(work: &str, packets: impl Iterator<Item = Packet>) -> Result<Part> {
    Ok(match work {
        "flow-meter" => meter(packets, |p| p.flow(), flow_cells),
        "general-key" => {
            meter(packets, |p| (p.ttl, p.dst), |(ttl, dst), row| row.cell(*ttl).cell(*dst).absent())
        }
        "source-counts" => source_counts(packets),
        "syn-by-destination" => syn_by_destination(packets),
        "predicate" => predicate(packets),
        "distinct-sources" => distinct_sources(packets),
        "approx-distinct" => Part { digest: None, ..distinct_sources(packets) },
        "quantiles" => quantiles(packets),
        "frequent" => frequent(packets),
        "sliding" => sliding(packets),
        "interval-join" => interval_join(packets),
        "port-knocking" => port_knocking(packets),
        _ => bail!("nobody knows the answer to {work}"),
    })
}

fn flow_cells(flow: &Flow, row: RowDigest) -> RowDigest {
    let row = row.cell(flow.src).cell(flow.sport).cell(flow.dst).cell(flow.dport);
    row.cell(flow.proto)
}

/// Packets, bytes, first and last time of each key.
fn meter<K: std::hash::Hash + Eq>(
    packets: impl Iterator<Item = Packet>,
    key: impl Fn(&Packet) -> K,
    cells: impl Fn(&K, RowDigest) -> RowDigest,
) -> Part {
    let mut meters: HashMap<K, (u64, u64, i64, i64)> = HashMap::new();
    for p in packets {
        let m = meters.entry(key(&p)).or_insert((0, 0, p.ts, p.ts));
        *m = (m.0 + 1, m.1 + p.len, m.2.min(p.ts), m.3.max(p.ts));
    }
    rows(meters.iter().map(|(key, m)| {
        cells(key, RowDigest::new()).cell(m.0).cell(m.1).cell(m.2 as u64).cell(m.3 as u64)
    }))
}

fn source_counts(packets: impl Iterator<Item = Packet>) -> Part {
    let mut counts: HashMap<(i64, u128), (u64, u64)> = HashMap::new();
    for p in packets {
        let c = counts.entry((window(p.ts), p.src)).or_default();
        *c = (c.0 + 1, c.1 + p.len);
    }
    rows(counts.iter().map(|((start, src), c)| windowed(*start).cell(*src).cell(c.0).cell(c.1)))
}

fn syn_by_destination(packets: impl Iterator<Item = Packet>) -> Part {
    let mut counts: HashMap<(i64, u128), u64> = HashMap::new();
    for p in packets.filter(|p| p.tcp_flags.is_some_and(|f| f & 0x12 == 0x02)) {
        *counts.entry((window(p.ts), p.dst)).or_default() += 1;
    }
    rows(counts.iter().map(|((start, dst), n)| windowed(*start).cell(*dst).cell(*n)))
}

fn predicate(packets: impl Iterator<Item = Packet>) -> Part {
    let n = packets.filter(|p| p.len * 8 + u64::from(p.ttl) > 572).count();
    rows([RowDigest::new().cell(n as u64)].into_iter())
}

fn distinct_sources(packets: impl Iterator<Item = Packet>) -> Part {
    let mut sources: HashMap<(i64, u128), HashSet<u128>> = HashMap::new();
    for p in packets {
        sources.entry((window(p.ts), p.dst)).or_default().insert(p.src);
    }
    let row = |((start, dst), srcs): (&(i64, u128), &HashSet<u128>)| {
        windowed(*start).cell(*dst).cell(srcs.len() as u64)
    };
    rows(sources.iter().map(row))
}

/// Each packet in five windows.
fn sliding(packets: impl Iterator<Item = Packet>) -> Part {
    let mut counts: HashMap<(i64, u128), (u64, u64)> = HashMap::new();
    for p in packets {
        for back in 0..5 {
            let c = counts.entry((window(p.ts) - back * WINDOW_NS, p.src)).or_default();
            *c = (c.0 + 1, c.1 + p.len);
        }
    }
    rows(counts.iter().map(|((start, src), c)| windowed(*start).cell(*src).cell(c.0).cell(c.1)))
}

/// By looking through all answers of the connection. One that comes after the end may be an answer,
/// so that nothing is known of the last three seconds.
fn interval_join(packets: impl Iterator<Item = Packet>) -> Part {
    let conn = |p: &Packet| {
        let ends = [(p.src, p.sport), (p.dst, p.dport)];
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    };
    let (mut asked, mut answers) = (Vec::new(), HashMap::<_, Vec<i64>>::new());
    let mut end = i64::MIN;
    for p in packets {
        end = end.max(p.ts);
        match p.tcp_flags.map(|f| f & 0x12) {
            Some(0x02) => asked.push(p),
            Some(0x12) => answers.entry(conn(&p)).or_default().push(p.ts),
            _ => {}
        }
    }
    let in_time = |p: &Packet, ts: &i64| (p.ts..=p.ts + 3 * WINDOW_NS).contains(ts);
    let met =
        |p: &Packet| answers.get(&conn(p)).is_some_and(|all| all.iter().any(|ts| in_time(p, ts)));
    let row = |p: &Packet| RowDigest::new().cell(p.ts as u64).cell(p.src).cell(p.dst).cell(p.dport);
    let is_known = |p: &&Packet| p.ts + 3 * WINDOW_NS <= end;
    rows(asked.iter().filter(is_known).filter(|p| !met(p)).map(row))
}

/// The values at two ranks, by sorting all values; of 16 bits, so quantiles of them are exact.
fn quantiles(packets: impl Iterator<Item = Packet>) -> Part {
    let mut ports: HashMap<(i64, u128), Vec<u16>> = HashMap::new();
    for p in packets {
        ports.entry((window(p.ts), p.dst)).or_default().push(p.sport);
    }
    rows(ports.iter_mut().map(|((start, dst), ports)| {
        ports.sort_unstable();
        let at = |percent: usize| {
            let rank = (ports.len() * percent).div_ceil(100).max(1);
            u64::from(ports[rank - 1])
        };
        windowed(*start).cell(*dst).cell(at(50)).cell(at(99))
    }))
}

/// The ten largest counts of each window as text.
fn frequent(packets: impl Iterator<Item = Packet>) -> Part {
    let mut counts: HashMap<i64, HashMap<u128, u64>> = HashMap::new();
    for p in packets {
        *counts.entry(window(p.ts)).or_default().entry(p.dst).or_default() += 1;
    }
    rows(counts.iter().map(|(start, counts)| {
        let mut all: Vec<_> = counts.iter().map(|(dst, n)| (std::cmp::Reverse(*n), *dst)).collect();
        all.sort_unstable();
        let text = |(n, dst): &(std::cmp::Reverse<u64>, u128)| {
            format!("{}={}", Ipv6Addr::from_bits(*dst).to_canonical(), n.0)
        };
        let text = all.iter().take(10).map(text).collect::<Vec<_>>().join(" ");
        windowed(*start).text(text.as_bytes())
    }))
}

/// Without the bounds and idle times of the query, which are beyond what the traces reach.
fn port_knocking(packets: impl Iterator<Item = Packet>) -> Part {
    let mut stages: HashMap<(u128, u128), u8> = HashMap::new();
    let mut open: HashSet<Flow> = HashSet::new();
    let mut part = Part::digested();
    for p in packets.filter(|p| p.tcp_flags.is_some()) {
        let stage = stages.entry((p.src, p.dst)).or_default();
        *stage = match (*stage, p.dport) {
            (0, 5123) => 1,
            (1, 6234) => 2,
            (2, 7345) => 3,
            (3, 8456) | (4, _) => 4,
            _ => 0,
        };
        if p.dport != 22 {
            continue;
        }
        if *stage == 4 {
            open.insert(p.flow());
        }
        let verdict: &[u8] = if open.contains(&p.flow()) { b"pass" } else { b"drop" };
        let row = flow_cells(&p.flow(), RowDigest::new().cell(p.ts as u64));
        part.add(row.cell(*stage).text(verdict));
    }
    part
}

fn window(ts: i64) -> i64 {
    ts - ts.rem_euclid(WINDOW_NS)
}

/// A row that begins with the start of its window.
fn windowed(start: i64) -> RowDigest {
    RowDigest::new().cell(start as u64)
}

fn rows(rows: impl Iterator<Item = RowDigest>) -> Part {
    rows.fold(Part::digested(), |mut part, row| {
        part.add(row);
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::{CHECK, Setup};
    use crate::trace::PRESETS;
    use crate::work::WORKS;
    use weir_engine::limits::{JUMP_NS, LATENESS_NS};
    use weir_engine::rows::{Rows, Sink, set_cell};
    use weir_model::TimeRules;
    use weir_plan::{Program, Schema};

    /// The answer of the naive model.
    fn naive_answer((program, functions): &(Program, Functions), trace: &Path) -> Answer {
        let name = trace.to_str().expect("UTF-8");
        let options = weir_capture::Options::default();
        let mut source = weir_capture::open(name, &options).expect("opens");
        let time = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
        let answer = weir_model::run(program, functions, &mut *source, &time);
        let outputs = weir_engine::rows::Output::of(program);
        let mut tally = crate::answer::Tally::new(true);
        tally.open(&outputs).expect("takes all");
        for (output, cells) in answer.rows {
            let schema: &Schema = &outputs[output].schema;
            let mut row = Rows::new(schema);
            row.len = 1;
            for (column, value) in row.columns.iter_mut().zip(&cells) {
                set_cell(column, 0, value, &mut row.arena);
            }
            tally.rows(output, &row).expect("takes all");
        }
        tally.answer()
    }

    /// The slow way, the naive model and the engine with one and two workers agree, on all traces;
    /// the slow way knows of approximations only how many there are.
    #[test]
    fn three_ways_to_the_same_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        for preset in &PRESETS {
            let mut options = preset.options.clone();
            (options.packets, options.conversations) = (6_000, 1_000);
            // So that it goes on for longer than answers are waited for.
            options.gap_ns = 1_000_000;
            let (trace, truth) = options.make(folder.path()).expect("written");
            for work in &WORKS {
                let what = format!("{} on {}", work.name, preset.name);
                let expected = answer(work, &trace).expect("found");
                let mut one = None;
                for workers in [1, 2] {
                    let setup = Setup { workers, ..CHECK };
                    let (measure, said) = contestant::run_work(work, &trace, &setup).expect("runs");
                    assert_eq!(measure.packets, truth.packets, "{what}");
                    expected
                        .check(&format!("{what} with {workers} workers"), &said)
                        .expect("right");
                    one.get_or_insert(said.clone());
                    assert_eq!(Some(said), one, "{what} with {workers} workers");
                }
                let program = work.program(None).expect("compiles");
                assert_eq!(Some(naive_answer(&program, &trace)), one, "{what}");
                // Nothing attacks anyone in these traces.
                let silent = work.text == Text::Together(Folder::Detectors);
                assert!(silent || expected.rows() > 0, "{what} puts out nothing");
                assert_eq!(answer(work, &trace).expect("kept"), expected, "{what}");
            }
            let flows = answer(&crate::work::FLOW_METER, &trace).expect("kept").rows();
            assert_eq!(flows, truth.flows, "trace {}", preset.name);
        }
    }
}
