//! Every query of the library: formatted, planned, and run on the captures that trigger it and on
//! those that must not. Of detectors also the vectors, and what their headers have to say.

mod common;

use assert_cmd::Command;
use common::{
    answer, detectors, files, header_lines, is_detector, own_captures, program, root, text,
    workplace,
};
use std::path::Path;
use weir_engine::functions::Functions;

/// The first line of the header that begins with a word.
fn header(query: &str, word: &str, path: &Path) -> String {
    let mut lines = header_lines(query, word).into_iter();
    lines.next().unwrap_or_else(|| panic!("{}: the header has no `# {word}: `", path.display()))
}

/// The name of a query's file below `queries/`, without its ending.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().expect("a name").to_string_lossy();
    let folder = path.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
    match &*folder {
        "queries" => stem.into_owned(),
        folder => format!("{folder}/{stem}"),
    }
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
        let own = ["Memory", "False positives"];
        for word in ["Reference"].iter().chain(own.iter().filter(|_| is_detector(&path))) {
            assert!(header(&query, word, &path).len() > 5, "{name}: {word}");
        }
        for word in ["triggers", "quiet"] {
            assert!(!header_lines(&query, word).is_empty(), "{name}: no `# {word}: `");
        }
        for capture in own_captures(&query) {
            assert!(root().join(&capture).exists(), "{name}: {capture}");
        }
        for (i, line) in query.lines().enumerate() {
            assert!(line.chars().count() <= 100, "{name}:{}: {line}", i + 1);
        }
    }
}

#[test]
fn triggered_it_prints_the_expected_rows() {
    let folder = workplace();
    for path in files("queries", &[".weir"]) {
        let (query, stem) = (text(&path), stem(&path));
        let capture = header(&query, "triggers", &path);
        let output = Command::cargo_bin("weir")
            .expect("the binary")
            .current_dir(folder.path())
            .args(["run", &format!("queries/{stem}.weir"), "-r", &capture, "-o", "json"])
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
        let expected = root().join(format!("queries/expected/{stem}.jsonl"));
        let expected = std::fs::read_to_string(expected).unwrap_or_default();
        assert!(
            got == expected,
            "{stem}: rows differ from queries/expected/{stem}.jsonl; if they are right, \
             `weir run queries/{stem}.weir -r {capture} -o json` writes it anew\n{got}"
        );
    }
}

#[test]
fn further_captures_trigger_it_too() {
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let plan = program(&query, &Functions::default());
        for capture in header_lines(&query, "triggers").iter().skip(1) {
            let got = answer(&plan, &root().join(capture), 1);
            assert_eq!(got.error, None, "{}", path.display());
            assert!(!got.rows.is_empty(), "{}: {capture} triggers it", path.display());
        }
    }
}

#[test]
fn otherwise_it_is_quiet() {
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        let plan = program(&query, &Functions::default());
        for capture in header_lines(&query, "quiet") {
            let got = answer(&plan, &root().join(&capture), 1);
            assert_eq!(got.error, None, "{}", path.display());
            assert_eq!(got.rows, [], "{}: {capture}", path.display());
        }
    }
}

/// A line `# vector: CAPTURE [-p NAME=VALUE]… = N rows`.
#[derive(PartialEq, Eq, Debug)]
struct Vector {
    capture: String,
    params: Vec<(String, String)>,
    rows: usize,
}

impl Vector {
    fn read(line: &str) -> Option<Vector> {
        let (given, rows) = line.rsplit_once(" = ")?;
        let rows = rows.strip_suffix(" rows").or_else(|| rows.strip_suffix(" row"))?;
        let mut words = given.split(" -p ").map(str::trim);
        let capture = words.next()?.to_owned();
        let param = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let params = words.map(param).collect::<Option<_>>()?;
        Some(Vector { capture, params, rows: rows.parse().ok()? })
    }
}

#[test]
fn vectors_are_read() {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let check = |line: &str, capture: &str, params: Vec<_>, rows| {
        let capture = capture.to_owned();
        assert_eq!(Vector::read(line), Some(Vector { capture, params, rows }), "{line}");
    };
    check("a.pcap = 0 rows", "a.pcap", vec![], 0);
    check("a.pcap -p n=3 = 1 row", "a.pcap", vec![pair("n", "3")], 1);
    let params = vec![pair("n", "3"), pair("local", "{10.0.0.0/8, ::1}")];
    check("a.pcap -p n=3 -p local={10.0.0.0/8, ::1} = 12 rows", "a.pcap", params, 12);
    for line in ["a.pcap", "a.pcap = rows", "a.pcap = 1", "a.pcap -p n = 1 row"] {
        assert_eq!(Vector::read(line), None, "{line}");
    }
}

/// Each vector of a detector gives so many rows, the same with any number of workers.
#[test]
fn vectors_give_so_many_rows() {
    let mut vectors = 0;
    for path in files("queries", &[".weir"]) {
        let query = text(&path);
        for line in header_lines(&query, "vector") {
            let what = format!("{}: {line}", path.display());
            let vector = Vector::read(&line).unwrap_or_else(|| panic!("{what}: not a vector"));
            let options = weir_lang::Options { params: &vector.params, ..Default::default() };
            let given = weir_lang::Query { name: "test.weir", text: &query };
            let plan = weir_lang::compile(&given, &options);
            let plan = plan.unwrap_or_else(|d| panic!("{what}: {d:?}")).program;
            let one = answer(&plan, &root().join(&vector.capture), 1);
            assert_eq!(one.error, None, "{what}");
            assert_eq!(one.rows.len(), vector.rows, "{what}\n{:?}", one.rows);
            for workers in [2, 4] {
                let several = answer(&plan, &root().join(&vector.capture), workers);
                assert_eq!(several.rows, one.rows, "{what}: {workers} workers");
            }
            vectors += 1;
        }
    }
    assert!(vectors >= detectors().len(), "{vectors} vectors");
}
