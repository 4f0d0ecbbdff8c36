//! Every query of the library over every capture at hand: 1, 2 and 4 workers and the naive model
//! give the same rows in the same order, and the same counts.

mod common;

use common::{Way, answer_of, files, naive_answer, program, root, shared, supported, text, truths};
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;
use weir_packet::walk::Headers;

/// Everything that can be asked of how packets are read.
const INSIDE: Way = Way { headers: Headers::Inner, fragments: true };

fn agree(captures: &[PathBuf], way: Way) {
    let queries: Vec<_> = files("queries", &[".weir"])
        .into_iter()
        .map(|path| (path.clone(), program(&text(&path), &Functions::default())))
        .collect();
    assert!(queries.len() >= 6, "the library has {} queries", queries.len());
    for capture in captures {
        for (query, program) in &queries {
            same(query, program, capture, way);
        }
    }
}

fn same(query: &Path, program: &weir_plan::Program, capture: &Path, way: Way) {
    let want = naive_answer(program, capture, way);
    assert!(want.ledger.adds_up(), "{}: {:?}", capture.display(), want.ledger);
    for workers in [1, 2, 4] {
        let got = answer_of(program, capture, workers, way);
        let what =
            format!("{} over {}, {workers} workers, {way:?}", query.display(), capture.display());
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
    let captures = files("fixtures", &[".pcap", ".pcapng", ".gz", ".zst"]);
    assert!(captures.len() >= 12, "{} fixtures", captures.len());
    agree(&captures, Way::default());
    agree(&captures, INSIDE);
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
    agree(&captures, Way::default());
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
    agree(&captures, INSIDE);
}

#[test]
fn the_repository_is_where_it_should_be() {
    assert!(root().join("Cargo.toml").exists());
}
