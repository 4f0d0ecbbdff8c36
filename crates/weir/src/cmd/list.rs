//! `weir list`: the queries that come with Weir.

use crate::args::ListArgs;
use crate::exit::{Status, usage_try};
use crate::library::{self, Entry, GROUPS, LIBRARY, signature};
use crate::term::Term;
use crate::{output, remedy};
use std::fmt::Write as _;
use std::io::Write as _;
use weir_lang::ParamInfo;
use weir_sink::table::FORMAT as TABLE;

/// Prints, group by group, the name of each query, what it is for, and its parameters with their
/// defaults.
pub(crate) fn run(args: &ListArgs, term: &Term) -> anyhow::Result<Status> {
    let entries = chosen(args.group.as_deref())?;
    if *output::choose(args.output, term) == TABLE {
        std::io::stdout().lock().write_all(table(&entries, term.color_out).as_bytes())?;
        return Ok(Status::Ok);
    }
    let rows: Vec<[String; 4]> = entries
        .iter()
        .map(|entry| {
            let params: Vec<_> = entry.params().iter().map(in_a_cell).collect();
            let (name, group) = (entry.name.to_owned(), entry.group.to_owned());
            [name, group, entry.title(), params.join(", ")]
        })
        .collect();
    output::print(["name", "group", "about", "params"], &rows, args.output, term)?;
    Ok(Status::Ok)
}

/// The queries of a group, of all whose name begins so, or all.
fn chosen(group: Option<&str>) -> anyhow::Result<Vec<&'static Entry>> {
    let Some(word) = group else { return Ok(LIBRARY.iter().collect()) };
    if let Some(detectors) = library::detectors(word) {
        return Ok(detectors);
    }
    let word = word.strip_suffix('/').unwrap_or(word);
    let within = |name: &str| name == word || name.split('/').next() == Some(word);
    let found: Vec<_> = LIBRARY.iter().filter(|entry| within(entry.group)).collect();
    if found.is_empty() && !GROUPS.iter().any(|(name, _)| within(name)) {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        let near = weir_lang::closest(word, names.iter().copied().chain(["detectors"]));
        let line = near.and_then(|near| remedy::with_word(word, near));
        let message =
            format!("no group is called `{word}`; there are detectors, {}", names.join(", "));
        return Err(usage_try(message, line.or_else(|| Some(remedy::line(["list"])))));
    }
    Ok(found)
}

/// A heading for each group, a line for each query, and below it one for each of its parameters.
fn table(entries: &[&Entry], color: bool) -> String {
    let (bold, plain) = if color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let mut out = String::new();
    for (group, title) in GROUPS {
        let entries: Vec<_> = entries.iter().filter(|entry| entry.group == *group).collect();
        if entries.is_empty() {
            continue;
        }
        let indent = entries.iter().map(|e| e.name.len()).max().unwrap_or(0) + 2;
        let gap = if out.is_empty() { "" } else { "\n" };
        let word = if group.contains('/') { format!(" ({group})") } else { String::new() };
        let _ = writeln!(out, "{gap}{title}{word}\n");
        for entry in entries {
            let gap = indent - entry.name.len();
            let _ = writeln!(out, "{bold}{}{plain}{:gap$}{}", entry.name, "", entry.title());
            out += &params(entry, indent);
        }
    }
    out
}

/// A line for each parameter of a query.
fn params(entry: &Entry, indent: usize) -> String {
    let params = entry.params();
    let width = params.iter().map(|p| signature(p).len()).max().unwrap_or(0);
    let mut out = String::new();
    for param in &params {
        let doc = param.doc.as_deref().unwrap_or_default();
        let line = format!("{:indent$}{:width$}  {doc}", "", signature(param));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A parameter for programs: `interval: duration = 1s (width of a window)`.
fn in_a_cell(param: &ParamInfo) -> String {
    let signature = signature(param);
    match &param.doc {
        Some(doc) => format!("{signature} ({doc})"),
        None => signature,
    }
}
