//! Every query of the library over every capture at hand: 1, 2 and 4 workers and the naive model
//! give the same rows in the same order, and the same counts.

mod common;

use common::{
    ReadingOptions, answer_of, detectors, fixtures, map_at_once, naive_answer, own_captures,
    program, program_by, queries, root, shared, supported, text, truths,
};
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;
use weir_packet::fields::{FlowKey, KeyPart};
use weir_packet::walk::Headers;
use weir_plan::Program;

/// Everything that can be asked of how packets are read.
const INSIDE: ReadingOptions = ReadingOptions { headers: Headers::INNER, fragments: true };

fn compiled(paths: Vec<PathBuf>) -> Vec<(PathBuf, Program)> {
    let one = |path: PathBuf| (path.clone(), program(&text(&path), &Functions::default()));
    paths.into_iter().map(one).collect()
}

fn agree(queries: Vec<PathBuf>, captures: &[PathBuf], reading: ReadingOptions) {
    let queries = compiled(queries);
    let pairs =
        captures.iter().flat_map(|capture| queries.iter().map(move |query| (capture, query)));
    map_at_once(&pairs.collect::<Vec<_>>(), |(capture, (query, program))| {
        same(query, program, capture, reading);
    });
}

fn same(query: &Path, program: &Program, capture: &Path, reading: ReadingOptions) {
    let want = naive_answer(program, capture, reading);
    assert!(want.ledger.adds_up(), "{}: {:?}", capture.display(), want.ledger);
    for workers in [1, 2, 4] {
        let got = answer_of(program, capture, workers, reading);
        let what = format!(
            "{} over {}, {workers} workers, {reading:?}",
            query.display(),
            capture.display()
        );
        assert!(got.rows == want.rows, "{what}: {}", difference(&got.rows, &want.rows));
        assert!(got.frames == want.frames, "{what}: {}", difference(&got.frames, &want.frames));
        assert_eq!(got.ledger, want.ledger, "{what}");
        assert_eq!(got.error, want.error, "{what}");
    }
}

fn difference<T: PartialEq + std::fmt::Debug>(got: &[T], want: &[T]) -> String {
    let at = got.iter().zip(want).take_while(|(a, b)| a == b).count();
    format!("row {at}: got {:?}, want {:?}", got.get(at), want.get(at))
}

#[test]
fn on_the_fixtures() {
    let captures = fixtures();
    assert!(queries().len() >= 6, "the library has {} queries", queries().len());
    agree(queries(), &captures, ReadingOptions::default());
    agree(queries(), &captures, INSIDE);
    agree(detectors(), &captures, ReadingOptions::default());
}

/// Captures that were made for one detector say nothing of the others.
#[test]
fn detectors_on_their_own_captures() {
    map_at_once(&compiled(detectors()), |(path, program)| {
        for capture in own_captures(&text(path)) {
            same(path, program, &root().join(capture), ReadingOptions::default());
        }
    });
}

#[test]
fn on_the_shared_captures() {
    let Some(folder) = shared("agree::on_the_shared_captures") else { return };
    let captures: Vec<PathBuf> = truths(&folder)
        .iter()
        .filter(|t| supported(t))
        .map(|t| folder.join(t["file"].as_str().expect("a name")))
        .collect();
    assert!(captures.len() > 200, "{} captures", captures.len());
    agree(queries(), &captures, ReadingOptions::default());
}

#[test]
fn inside_tunnels_and_fragments() {
    let Some(folder) = shared("agree::inside_tunnels_and_fragments") else { return };
    let special = |t: &serde_json::Value| {
        let deep = t["flows_inner"] != t["flows_outer"];
        deep || t["fragments_later"].as_u64().is_some_and(|n| n > 0)
    };
    let captures: Vec<PathBuf> = truths(&folder)
        .iter()
        .filter(|t| supported(t) && special(t))
        .map(|t| folder.join(t["file"].as_str().expect("a name")))
        .collect();
    assert!(captures.len() > 20, "{} captures", captures.len());
    agree(queries(), &captures, INSIDE);
}

#[test]
fn the_repository_is_where_it_should_be() {
    assert!(root().join("Cargo.toml").exists());
}

/// The same where flows are told apart by more. Each query compiles with all parts, and those over
/// tunnels and tags give the model's rows.
#[test]
fn workers_and_the_model_agree_with_other_keys_of_flows() {
    let flow_key = KeyPart::ALL.into_iter().fold(FlowKey::default(), FlowKey::with);
    let rules = weir_lang::ReadingRules { flow_key, ..Default::default() };
    let captures = ["vlans.pcap", "vlan.pcap", "qinq.pcap", "sessions.pcap", "span.pcap"];
    let folder = root().join("fixtures");
    for query in queries().into_iter().chain(detectors()) {
        let text = text(&query);
        let program = program_by(&text, &Functions::default(), rules);
        for capture in captures {
            same(&query, &program, &folder.join(capture), INSIDE);
        }
    }
}
