//! Everything that the documentation shows is run.
//!
//! - ` ```weir ` blocks compile; with `run=CAPTURE` they run, and the `text` block that follows is
//!   the table they print.
//! - ` ```console ` blocks are commands (`$ weir …`) with what they print on standard output;
//!   ` ```console stderr ` blocks with what they print on standard error.

mod common;

use assert_cmd::Command;
use common::{files, program, root, text, workplace};
use weir_engine::functions::Functions;
use weir_sink::{FORMATS, Format, Holds};

/// A fenced block: the file and line it starts at, its tag, its text.
struct Block {
    place: String,
    tag: String,
    body: String,
}

fn blocks() -> Vec<Block> {
    let mut found = Vec::new();
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|f| root().join(f));
    for path in files("docs", &[".md"]).into_iter().chain(top) {
        let content = text(&path);
        let mut lines = content.lines().enumerate();
        while let Some((n, line)) = lines.next() {
            let Some(tag) = line.strip_prefix("```") else { continue };
            let body: Vec<&str> =
                lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").collect();
            let name = path.strip_prefix(root()).unwrap_or(&path).display();
            found.push(Block {
                place: format!("{name}:{}", n + 1),
                tag: tag.to_owned(),
                body: body.join("\n") + "\n",
            });
        }
    }
    found
}

/// The output of `weir` with these arguments, where the captures of the repository are: on standard
/// output, and on standard error.
fn weir(place: &str, args: &[String]) -> (String, String) {
    weir_in(&workplace(), place, args)
}

fn weir_in(folder: &tempfile::TempDir, place: &str, args: &[String]) -> (String, String) {
    let output = Command::cargo_bin("weir")
        .expect("the binary")
        .current_dir(folder.path())
        .args(args)
        .output()
        .expect("it runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.code().is_some_and(|c| c < 3), "{place}: {errors}");
    (String::from_utf8(output.stdout).expect("text"), errors)
}

/// Lines without blanks at their ends.
fn trimmed(text: &str) -> String {
    text.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// Sees that what is printed is what a page shows at a place; with `WEIR_UPDATE_DOCS` set, makes the
/// page show it.
fn agrees(place: &str, got: &str, shown: &str, line: &str) {
    if got != shown && std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        let (page, number) = place.rsplit_once(':').expect("a file and a line");
        let path = root().join(page);
        let whole = text(&path);
        let number: usize = number.parse().expect("a number");
        let start: usize = whole.split_inclusive('\n').take(number - 1).map(str::len).sum();
        let (before, after) = whole.split_at(start);
        let after = after.replacen(shown, got, 1);
        std::fs::write(&path, format!("{before}{after}")).expect("writes the page");
        return;
    }
    assert_eq!(got, shown, "{place}: {line}");
}

#[test]
fn every_query_compiles() {
    let all = blocks();
    let queries: Vec<_> = all.iter().filter(|b| b.tag.split(' ').next() == Some("weir")).collect();
    assert!(queries.len() > 10, "{} queries in the documentation", queries.len());
    for block in queries {
        let result = std::panic::catch_unwind(|| program(&block.body, &Functions::default()));
        assert!(result.is_ok(), "{}: the query does not compile", block.place);
    }
}

#[test]
fn every_query_prints_what_is_shown() {
    let all = blocks();
    let mut ran = 0;
    for pair in all.windows(2) {
        let Some(capture) = pair[0].tag.strip_prefix("weir run=") else { continue };
        assert_eq!(pair[1].tag, "text", "{}: what it prints follows", pair[0].place);
        let args = ["run", "-e", &pair[0].body, "-r", capture, "-o", "table"].map(str::to_owned);
        let (got, errors) = weir(&pair[0].place, &args);
        assert!(!got.is_empty(), "{}: {errors}", pair[0].place);
        agrees(&pair[0].place, &trimmed(&got), &trimmed(&pair[1].body), "");
        ran += 1;
    }
    assert!(ran > 5, "{ran} queries were run");
}

#[test]
fn every_command_prints_what_is_shown() {
    let mut ran = 0;
    for block in blocks().into_iter().filter(|b| b.tag.starts_with("console")) {
        let mut rest = block.body.lines().peekable();
        // Files that one command of a block writes, the next may read.
        let folder = workplace();
        while let Some(line) = rest.next() {
            let command = line.strip_prefix("$ weir ").unwrap_or_else(|| {
                panic!("{}: a command starts with `$ weir `: {line}", block.place)
            });
            let mut shown = String::new();
            while let Some(line) = rest.next_if(|l| !l.starts_with("$ ")) {
                shown += &format!("{}\n", line.trim_end());
            }
            // The build may be one without SQL.
            if command.starts_with("sql ") && !cfg!(feature = "sql") {
                continue;
            }
            let (rows, errors) = weir_in(&folder, &block.place, &words(command));
            let got = if block.tag == "console stderr" { errors } else { rows };
            agrees(&block.place, &trimmed(&got), &shown, line);
            ran += 1;
        }
    }
    assert!(ran > 0, "no command was run");
}

#[test]
fn names_of_other_tools_are_as_the_table_says() {
    let reference = text(root().join("docs/language.md"));
    let table = reference.split("| here | `zeek`").nth(1).expect("the table of names");
    for known in weir_sink::names::KNOWN {
        let otherwise = if known.directed { " beside `ip.src`" } else { "" };
        let start = format!("| `{}`{otherwise}", known.native);
        let line = table.lines().find(|l| {
            l.starts_with(&start) && (known.directed || !l.starts_with(&format!("{start} beside")))
        });
        let line = line.unwrap_or_else(|| panic!("no line starts with {start}"));
        let cells: Vec<&str> = line.split('|').map(str::trim).skip(2).take(4).collect();
        let shown = known
            .names
            .map(|name| if name.is_empty() { String::new() } else { format!("`{name}`") });
        for (cell, name) in cells.into_iter().zip(shown) {
            let six = name.replace("IPv4", "IPv6");
            let both = format!("{name} {six}");
            assert_eq!(cell, if six == name { &name } else { &both }, "{line}");
        }
    }
}

#[test]
fn formats_of_rows_are_as_the_table_says() {
    let reference = text(root().join("docs/language.md"));
    let table = reference.split("| `-o` |").nth(1).expect("the table of formats");
    let shown: Vec<&str> = table.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    let line = |format: &&Format| {
        let Format { name, about, ending, .. } = format;
        let several = if format.holds == Holds::Outputs { "yes" } else { "no" };
        format!("| `{name}` | {about} | `.{ending}` | {several} |")
    };
    assert_eq!(shown, FORMATS.iter().map(line).collect::<Vec<_>>());
}

/// Splits a command as a shell does, as far as quotes go.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
