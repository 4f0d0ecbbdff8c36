//! The rules of the house that a machine can hold.

#[path = "tidy/circles.rs"]
mod circles;
mod common;
#[path = "tidy/house.rs"]
mod house;
#[path = "tidy/pictures.rs"]
mod pictures;
#[path = "tidy/source.rs"]
mod source;

use common::{files, root, text};
use std::collections::BTreeMap;

/// The crates that each crate may depend on in this workspace, beside `base`: the table of
/// ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("packet", &[]),
    ("ebpf", &[]),
    ("flows", &["packet"]),
    ("capture", &["packet", "ebpf", "flows"]),
    ("dpdk", &["packet", "capture"]),
    ("plan", &["packet"]),
    ("offload", &["packet", "plan", "ebpf"]),
    ("lang", &["packet", "plan"]),
    ("engine", &["packet", "plan"]),
    ("model", &["packet", "plan"]),
    ("derive", &[]),
    ("stream", &["packet", "capture", "plan", "lang", "engine", "derive"]),
    ("arrow", &["packet", "plan", "engine"]),
    ("sink", &["packet", "plan", "engine", "arrow"]),
    ("archive", &["plan", "engine", "arrow"]),
    ("sql", &["packet", "plan", "lang", "engine", "arrow", "stream"]),
    ("sandbox", &[]),
    ("control", &["plan", "lang", "engine"]),
    ("http", &["packet", "plan", "engine", "sink", "control"]),
    ("cluster", &["engine"]),
    ("deliver", &[]),
    ("kafka", &["engine", "cluster"]),
    ("flink", &["plan", "engine", "cluster", "kafka", "sink"]),
    ("native", &["flink"]),
    ("partitions", &["packet", "capture", "plan", "engine", "sink", "kafka"]),
    ("kernel", &["packet", "ebpf", "capture", "plan", "offload", "engine"]),
    ("search", &["packet", "capture", "plan", "lang", "engine", "sink", "control", "http"]),
    ("doctor", &["capture", "dpdk", "sandbox"]),
    ("top", &["packet", "plan", "lang", "engine"]),
    ("dashboard", &[]),
    ("report", &["packet", "plan", "lang", "engine"]),
    (
        "weir",
        &[
            "packet",
            "ebpf",
            "capture",
            "flows",
            "dpdk",
            "plan",
            "offload",
            "lang",
            "engine",
            "sink",
            "archive",
            "sql",
            "sandbox",
            "control",
            "http",
            "cluster",
            "deliver",
            "kafka",
            "flink",
            "doctor",
            "top",
            "report",
            "dashboard",
            "partitions",
            "kernel",
            "search",
        ],
    ),
];

/// Where `unsafe` may stand.
const UNSAFE: &[&str] = &[
    "crates/packet/src/prefetch.rs",
    "crates/packet/src/processor.rs",
    "crates/engine/src/processor.rs",
    "crates/engine/src/pages.rs",
    "crates/capture/src/sys/",
    "crates/dpdk/src/sys.rs",
    "crates/dpdk/src/sys/",
    "crates/native/src/sys.rs",
    "crates/sandbox/src/sys.rs",
    "bench/src/sys.rs",
    "bench/src/sys/",
    // This file, which spells what it looks for.
    "crates/weir/tests/tidy.rs",
];

/// Lines of a file without its tests.
const LINES_MAX: usize = 500;

fn name(path: &std::path::Path) -> String {
    path.strip_prefix(root()).expect("below the root").display().to_string()
}

fn sources() -> Vec<(String, String)> {
    let mut all = files("crates", &[".rs"]);
    all.extend(files("bench", &[".rs"]));
    all.into_iter().map(|p| (name(&p), text(&p))).collect()
}

#[test]
fn crates_depend_only_on_what_they_may() {
    for (krate, allowed) in MAY_USE {
        let manifest = text(format!("crates/{krate}/Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().expect("a first part");
        for line in dependencies.lines().filter_map(|l| l.strip_prefix("weir-")) {
            let used = line.split(['.', ' ', '=']).next().expect("a name");
            let is_allowed = allowed.contains(&used) || used == "base" && *krate != "base";
            assert!(is_allowed, "{krate} may not use {used}");
        }
    }
    let folders = std::fs::read_dir(root().join("crates")).expect("crates/").count();
    assert_eq!(folders, MAY_USE.len(), "every crate stands in the table");
}

#[test]
fn unsafe_has_an_address() {
    for (file, source) in sources() {
        let allowed = UNSAFE.iter().any(|u| file.starts_with(u));
        let uses = source.lines().any(|l| {
            let code = l.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(allowed || !uses, "{file} is not in the list of unsafe modules");
    }
}

#[test]
fn files_fit_in_the_head() {
    for (file, source) in sources() {
        let code = source.split("#[cfg(test)]\nmod tests {").next().expect("a first part");
        let lines = code.lines().count();
        assert!(
            lines <= LINES_MAX || file.contains("/tests/") || file.ends_with("tests.rs"),
            "{file} has {lines} lines without its tests: split it"
        );
        // Snapshots in the tests after the code may be wide.
        for (n, line) in code.lines().enumerate().filter(|_| !file.contains("/tests/")) {
            let width = line.chars().count();
            assert!(
                width <= 100 || line.starts_with("//! | "),
                "{file}:{} is {width} columns wide",
                n + 1
            );
        }
    }
}

/// Words that a sentence does not begin with: its subject is to be named.
const UNNAMED: &[&str] = &["What", "Those", "Whose", "Who", "Whoever", "Nobody"];

/// The text of a line that is a comment, and nothing else.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']).trim())
}

/// Whether a line of a comment ends a sentence, so that the next one begins another.
fn ends_sentence(text: &str) -> bool {
    text.is_empty() || text.ends_with(['.', ':', '!', '?'])
}

#[test]
fn sentences_of_comments_name_their_subject() {
    let mut unnamed = Vec::new();
    for (file, source) in sources() {
        let mut is_start = true;
        for (n, line) in source.lines().enumerate() {
            let Some(text) = comment(line) else {
                is_start = true;
                continue;
            };
            let later = text.match_indices(". ").map(|(at, _)| &text[at + 2..]);
            let first = is_start.then_some(text);
            let word = |sentence: &str| {
                sentence.split([' ', ',', '.', ':', '\'']).next().map(str::to_owned)
            };
            let words = first.into_iter().chain(later).filter_map(word);
            for word in words.filter(|word| UNNAMED.contains(&word.as_str())) {
                unnamed.push(format!("{file}:{}: {word}", n + 1));
            }
            is_start = ends_sentence(text);
        }
    }
    assert!(unnamed.is_empty(), "sentences that do not name their subject: {unnamed:#?}");
}

#[test]
fn markdown_fits_in_its_columns() {
    for path in files(".", &[".md"]) {
        let mut is_code = false;
        for (n, line) in text(&path).lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_exempt = is_code || line.starts_with('|') || line.starts_with("    ");
            let width = line.chars().count();
            assert!(is_exempt || width <= 100, "{}:{} has {width} columns", name(&path), n + 1);
        }
    }
}

/// The tables of the reference are those at the heads of the files of operators and aggregates;
/// each is found by its row `Syntax`. With `WEIR_UPDATE_DOCS` set they are written instead.
#[test]
fn every_operator_and_aggregate_is_in_the_reference() {
    let is_update = std::env::var_os("WEIR_UPDATE_DOCS").is_some();
    let mut reference = text("docs/operators.md");
    let mut checked = 0;
    let mut all = files("crates/engine/src/ops", &[".rs"]);
    all.extend(files("crates/engine/src/agg", &[".rs"]));
    for path in all {
        let source = text(&path);
        let head = source.lines().map_while(|l| l.strip_prefix("//!").map(str::trim));
        let rows: Vec<String> = head.filter(|l| l.starts_with('|')).map(plain).collect();
        let Some(syntax) = rows.iter().find(|row| row.starts_with("| Syntax | ")) else {
            assert!(rows.is_empty(), "{}: the table has no row `Syntax`", name(&path));
            continue;
        };
        let Some(at) = reference.find(syntax.as_str()) else {
            panic!("docs/operators.md has no table for {}, with the row\n{syntax}", name(&path));
        };
        let start = reference[..at].rfind("\n\n").map_or(0, |blank| blank + 2);
        let end =
            reference[at..].find("\n\n").map_or(reference.trim_end().len(), |blank| at + blank);
        if is_update {
            reference.replace_range(start..end, &rows.join("\n"));
        }
        assert!(
            is_update || reference[start..end].lines().eq(rows.iter().map(String::as_str)),
            "docs/operators.md says otherwise than {}, and WEIR_UPDATE_DOCS=1 corrects it",
            name(&path)
        );
        checked += 1;
    }
    assert!(checked >= 14, "{checked} operators and aggregates have a table");
    if is_update {
        std::fs::write(root().join("docs/operators.md"), reference).expect("the reference");
    }
}

/// Other programs read and merge partial results by this page alone.
#[test]
fn every_kind_of_state_is_on_the_page_of_partial_results() {
    let page = text("docs/partials.md");
    let source = text("crates/engine/src/agg/states.rs");
    let after = source.split("enum StateKind {").nth(1).expect("the kinds of states");
    let kinds = after.lines().take_while(|line| *line != "}").filter_map(|l| l.split_once(" = "));
    let mut checked = 0;
    for (name, number) in kinds {
        let number = number.trim_end_matches(',');
        let row = format!("\n| {number} | ");
        assert!(page.contains(&row), "docs/partials.md lacks kind {number}, {}", name.trim());
        checked += 1;
    }
    assert!(checked >= 29, "{checked} kinds of states");
}

/// A row without the links that only rustdoc follows.
fn plain(row: &str) -> String {
    let mut out = String::new();
    let mut rest = row;
    while let Some(at) = rest.find("](crate::") {
        let (before, after) = rest.split_at(at);
        let open = before.rfind('[').expect("a link opens");
        out += &before[..open];
        out += &before[open + 1..];
        rest = &after[after.find(')').expect("a link closes") + 1..];
    }
    out + rest
}

/// A promise without a test is not made; a test that was renamed or removed takes its promise
/// along.
#[test]
fn every_promise_names_a_test_that_exists() {
    let page = text("docs/trust.md");
    let promises: Vec<&str> =
        page.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| promise ")).collect();
    assert!(promises.len() >= 15, "{} promises", promises.len());
    for promise in promises {
        assert!(named_tests(promise) > 0, "no test is named:\n{promise}");
    }
    // The page about the packets that pass, by which way and when.
    assert!(named_tests(&text("docs/network_functions.md")) >= 9);
}

/// How many tests a text names, all of which exist.
fn named_tests(of: &str) -> usize {
    // Names stand in code, as every second part between backticks.
    let names = of.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::"));
    let names = names.filter(|(file, _)| file.ends_with(".rs"));
    let exists = |(file, test): (&str, &str)| {
        assert!(text(file).contains(&format!("fn {test}(")), "{file} has no `{test}`:\n{of}");
    };
    names.map(exists).count()
}

/// Where everything was installed before, nobody sees that a package is missing.
#[test]
fn each_package_of_the_check_says_what_it_is_for() {
    let check = text("check.sh");
    let list = |name: &str| {
        let list = check.split(&format!("\n{name}=\"")).nth(1).expect("a list");
        list.split('"').next().expect("its end").to_owned()
    };
    let lists = list("installed") + " " + &list("unpacked");
    let packages: Vec<&str> =
        lists.split_whitespace().map(|one| one.split('=').next().expect("a name")).collect();
    let page = text("CONTRIBUTING.md");
    let section = page.split("\n## What check.sh installs\n").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("its end");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    let named: Vec<&str> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let sorted = |mut all: Vec<&str>| {
        all.sort_unstable();
        all.join(" ")
    };
    assert_eq!(sorted(packages), sorted(named));
}

#[test]
fn links_are_alive() {
    for path in files(".", &[".md"]) {
        let folder = path.parent().expect("a folder");
        let content = text(&path);
        let mut rest = content.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split('#').next().expect("a first part");
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            assert!(folder.join(target).exists(), "{}: {target}", name(&path));
        }
    }
}

#[test]
fn dependencies_say_what_they_do() {
    let manifest = text("Cargo.toml");
    let section = manifest.split("[workspace.dependencies]").nth(1).expect("the section");
    let section = section.split("\n[").next().expect("its end");
    let mut uncommented = BTreeMap::new();
    let mut comment = false;
    for line in section.lines() {
        match line {
            l if l.starts_with('#') => comment = true,
            "" => comment = false,
            l if l.starts_with("weir-") => {}
            l => {
                if !comment {
                    uncommented.insert(l.split(' ').next().unwrap_or(l).to_owned(), l.to_owned());
                }
            }
        }
    }
    assert!(uncommented.is_empty(), "no comment above {:?}", uncommented.keys());
}
