//! Every query of the library over every capture at hand: 1, 2 and 4 workers and the naive model
//! give the same rows in the same order, and the same counts.

mod common;

use common::{answer, files, naive_answer, program, root, shared, supported, text, truths};
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;

fn agree(captures: &[PathBuf]) {
    let queries: Vec<_> = files("queries", &[".weir"])
        .into_iter()
        .map(|path| (path.clone(), program(&text(&path), &Functions::default())))
        .collect();
    assert!(queries.len() >= 6, "the library has {} queries", queries.len());
    for capture in captures {
        for (query, program) in &queries {
            same(query, program, capture);
        }
    }
}

fn same(query: &Path, program: &weir_plan::Program, capture: &Path) {
    let want = naive_answer(program, capture);
    assert!(want.ledger.adds_up(), "{}: {:?}", capture.display(), want.ledger);
    for workers in [1, 2, 4] {
        let got = answer(program, capture, workers);
        let what = format!("{} over {}, {workers} workers", query.display(), capture.display());
        assert!(got.rows == want.rows, "{what}: {}", difference(&got.rows, &want.rows));
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
    agree(&captures);
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
    agree(&captures);
}

#[test]
fn the_repository_is_where_it_should_be() {
    assert!(root().join("Cargo.toml").exists());
}
