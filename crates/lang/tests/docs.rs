//! The language reference: its queries compile, its mistakes are told as it says, its tables are
//! complete. The output of its queries is tested where there is an engine to run them.

use std::fs;
use weir_lang::{Code, Files, Options, Query, compile, format, render};
use weir_packet::fields;
use weir_plan::Type;
use weir_plan::aggregates::{AGGREGATES, BuiltinAggregate, OverNothing, ResultType};
use weir_plan::functions::{BUILTINS, Builtin, Gives, Parameter, Relation, Role};

/// The files of the checkout.
#[derive(Debug)]
struct Checkout;

impl Files for Checkout {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        fs::read(format!("{root}/{path}")).map_err(|e| e.to_string())
    }
}

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md");

fn reference() -> String {
    fs::read_to_string(REFERENCE).expect("the language reference")
}

/// Line, tag and text of each fenced block.
fn blocks(text: &str) -> Vec<(usize, &str, String)> {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if let Some(tag) = line.strip_prefix("```") {
            let body = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```");
            out.push((n + 1, tag, body.map(|l| format!("{l}\n")).collect()));
        }
    }
    out
}

#[test]
fn queries_compile() {
    let text = reference();
    let mut seen = 0;
    for (line, tag, body) in blocks(&text) {
        if tag == "weir" || tag.starts_with("weir run=") {
            let q = Query { name: "query.weir", text: &body };
            let options = Options { files: Some(&Checkout), ..Options::default() };
            match compile(&q, &options) {
                Ok(compiled) if compiled.warnings.is_empty() => seen += 1,
                Ok(c) => panic!("line {line}:\n{}", render(&c.warnings, &q, false)),
                Err(d) => panic!("line {line}:\n{}", render(&d, &q, false)),
            }
        }
    }
    assert!(seen > 12, "{seen} queries");
}

/// The files below a folder of the checkout whose names end so.
fn files_below(folder: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let mut folders = vec![format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR")).into()];
    let mut out = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir::<std::path::PathBuf>(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(ending) => out.push(path),
                false => {}
            }
        }
    }
    out
}

#[test]
fn queries_that_we_hand_out_give_no_warning() {
    let read = |path| fs::read_to_string(path).expect("a text");
    let library = files_below("queries", ".weir").into_iter().map(read);
    let pages: Vec<String> = files_below("docs", ".md").into_iter().map(read).collect();
    let shown = pages.iter().flat_map(|page| blocks(page));
    let shown = shown.filter(|(_, tag, _)| *tag == "weir" || tag.starts_with("weir run="));
    let all: Vec<String> = library.chain(shown.map(|(_, _, body)| body)).collect();
    for text in &all {
        let q = Query { name: "query.weir", text };
        let options = Options { files: Some(&Checkout), ..Options::default() };
        if let Ok(compiled) = compile(&q, &options) {
            assert!(compiled.warnings.is_empty(), "{}", render(&compiled.warnings, &q, false));
        }
    }
    assert!(all.len() > 150, "{} queries", all.len());
}

#[test]
fn mistakes_are_told_as_shown() {
    let text = reference();
    let blocks = blocks(&text);
    let mut seen = 0;
    for pair in blocks.windows(2) {
        let [(line, tag, body), (_, shown_tag, shown)] = pair else { unreachable!("pairs") };
        let q = Query { name: "query.weir", text: body };
        let told = match (*tag, compile(&q, &Options::default())) {
            ("weir-error", Err(d)) => d,
            ("weir-warning", Ok(compiled)) => compiled.warnings,
            ("weir-error" | "weir-warning", _) => panic!("line {line} is no {tag}"),
            _ => continue,
        };
        assert_eq!(*shown_tag, "text", "line {line}: what is told follows");
        assert_eq!(render(&told, &q, false), *shown, "line {line}");
        seen += 1;
    }
    assert!(seen > 4, "{seen} mistakes");
}

#[test]
fn whole_queries_are_in_the_canonical_layout() {
    let text = reference();
    for (line, tag, body) in blocks(&text) {
        if tag.split(' ').next() == Some("weir") {
            assert_eq!(format(&body).as_deref(), Ok(body.as_str()), "line {line}");
        }
    }
}

/// The types that a parameter takes, as the reference says them.
fn taken(parameter: &Parameter) -> String {
    let types: Vec<String> = parameter.types.iter().map(Type::to_string).collect();
    let types = match types.len() {
        0 => "a connection".to_owned(),
        8 => "any ordered type".to_owned(),
        9.. => "any type".to_owned(),
        _ => types.join(" or "),
    };
    match parameter.role {
        Role::Pattern | Role::Constant => format!("constant {types}"),
        Role::Value | Role::Float | Role::Connection => types,
    }
}

/// The row of the reference for a built-in function.
fn row_of(row: &Builtin) -> String {
    let takes: Vec<String> = row.takes.iter().map(taken).collect();
    let takes = match (row.relation, takes.len()) {
        (Relation::Same, 2) => format!("two of one type: {}", takes[0]),
        (Relation::Same, _) => format!("three of one type: {}", takes[0]),
        _ => takes.join(", "),
    };
    let gives = match &row.gives {
        Gives::Type(ty) | Gives::Conversion(ty) => ty.to_string(),
        Gives::First => "the same".to_owned(),
    };
    format!("| `{}` | {takes} | {gives} | {} |", row.call, row.doc)
}

/// The row of the reference for a way to call a built-in aggregate.
fn row_of_aggregate(row: &BuiltinAggregate) -> String {
    let mut takes: Vec<String> = row.takes.iter().map(taken).collect();
    if row.tuples {
        takes[0] += ", tuples too";
    }
    if row.condition && !row.takes[0].types.contains(&Type::Bool) {
        takes[0] += " or bool";
    }
    let gives = match &row.gives {
        ResultType::This(ty) => ty.to_string(),
        ResultType::Argument => "that of `x`".to_owned(),
        ResultType::Mean => "float; duration of a duration".to_owned(),
    };
    let nothing = match row.over_nothing {
        OverNothing::Absent => "absent",
        OverNothing::Zero => "0",
        OverNothing::Present => "",
    };
    let cells =
        [format!("`{}`", row.call), takes.join(", "), gives, nothing.into(), row.doc.into()];
    format!("| {} |", cells.join(" | ")).replace("|  |", "| |")
}

/// `WEIR_UPDATE_DOCS=1` writes the table instead.
#[test]
fn aggregates_are_in_the_reference() {
    const HEAD: &str =
        "| aggregate | takes | gives | over nothing | what |\n|---|---|---|---|---|\n";
    let text = reference();
    let start = text.find(HEAD).expect("the table of aggregates") + HEAD.len();
    let end = start + text[start..].find("\n\n").expect("its end") + 1;
    let rows: String =
        AGGREGATES.iter().map(|row| format!("{}\n", row_of_aggregate(row))).collect();
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        let updated = format!("{}{rows}{}", &text[..start], &text[end..]);
        fs::write(REFERENCE, updated).expect("the language reference is written");
        return;
    }
    assert_eq!(&text[start..end], rows, "WEIR_UPDATE_DOCS=1 writes this table");
}

#[test]
fn tables_are_complete() {
    let text = reference();
    let has = |what: &str| assert!(text.contains(what), "{what} is missing");
    BUILTINS.iter().for_each(|row| has(&row_of(row)));
    for key in fields::KEYS {
        let parts: Vec<String> =
            key.fields.iter().map(|f| format!("`{}`", f.info().name)).collect();
        has(&format!("| `{}` | {} |", key.name, parts.join(" ")));
    }
    for ty in ["bool", "int", "float", "string", "bytes", "ip", "mac", "net", "time", "duration"] {
        has(&format!("| `{ty}` | "));
    }
    for (code, doc) in Code::ALL {
        has(&format!("| {code} | {} |", doc.trim()));
    }
    let limits = weir_plan::limits::GROUPS_MAX >> 20;
    has(&format!("without it {limits} Mi"));
}

#[test]
fn parts_of_packets_are_listed() {
    let text = reference();
    for info in weir_packet::repeated::REPEATED {
        let columns: Vec<_> =
            info.parts.iter().map(|part| format!("`{}.{}`", info.prefix(), part.name)).collect();
        let line = format!("| `{}` | {} |", info.name, columns.join(" "));
        assert!(text.contains(&line), "the reference lacks\n{line}");
    }
}
