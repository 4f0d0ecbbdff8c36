//! Every query of the library: formatted, planned, and run on the capture that triggers it and on
//! the one that must not.

mod common;

use assert_cmd::Command;
use common::{answer, files, program, root, text, workplace};
use std::path::Path;
use weir_engine::functions::Functions;

/// What a line of the header says behind a word.
fn header<'a>(query: &'a str, word: &str, path: &Path) -> &'a str {
    let line = query.lines().find_map(|l| l.strip_prefix(&format!("# {word}: ")));
    line.unwrap_or_else(|| panic!("{}: the header says nothing of {word}", path.display())).trim()
}

#[test]
fn formatting_changes_nothing() {
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let formatted = weir_lang::format(&query).expect("the library parses");
        assert_eq!(formatted, query, "{}: weir fmt -w mends it", path.display());
    }
}

#[test]
fn the_header_names_what_when_and_why() {
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(query.starts_with(&format!("# {name}: ")), "{name}: the first line names it");
        assert!(query.contains("# Reference: "), "{name}: the header has a reference");
        for word in ["triggers", "quiet"] {
            let capture = root().join(header(&query, word, &path));
            assert!(capture.exists(), "{name}: {}", capture.display());
        }
    }
}

#[test]
fn triggered_it_prints_the_expected_rows() {
    let folder = workplace();
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let expected = text(format!("queries/expected/{stem}.jsonl"));
        let capture = header(&query, "triggers", &path);
        let output = Command::cargo_bin("weir")
            .expect("the binary")
            .current_dir(folder.path())
            .args(["run", &format!("queries/{stem}.weir"), "-r", capture, "-o", "json"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{stem}: {}", String::from_utf8_lossy(&output.stderr));
        let sends = !program(&query, &Functions::default()).outlets().is_empty();
        assert!(sends || !output.stdout.is_empty(), "{stem}: {capture} triggers it");
        if sends {
            let ledger = String::from_utf8(output.stderr).expect("text");
            let expected = text(format!("queries/expected/{stem}.txt"));
            assert_eq!(ledger, expected, "{stem}: what went where");
        }
        let got = String::from_utf8(output.stdout).expect("text");
        assert!(
            got == expected,
            "{stem}: rows differ from queries/expected/{stem}.jsonl; if they are right, \
             `weir run queries/{stem}.weir -r {capture} -o json` writes it anew\n{got}"
        );
    }
}

#[test]
fn otherwise_it_is_quiet() {
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let plan = program(&query, &Functions::default());
        let got = answer(&plan, &root().join(header(&query, "quiet", &path)), 1);
        assert_eq!(got.error, None, "{}", path.display());
        assert_eq!(got.rows, [], "{}", path.display());
    }
}
