//! `weir list`: the queries that come with Weir.

use crate::args::ListArgs;
use crate::exit::Status;
use crate::library::{LIBRARY, signature};
use crate::output;
use crate::term::Term;
use std::fmt::Write as _;
use std::io::Write as _;
use weir_lang::ParamInfo;
use weir_sink::table::FORMAT as TABLE;

/// Prints the name of each query, what it is for, and its parameters with their defaults.
pub(crate) fn run(args: &ListArgs, term: &Term) -> anyhow::Result<Status> {
    if *output::choose(args.output, term) == TABLE {
        std::io::stdout().lock().write_all(table(term.color_out).as_bytes())?;
        return Ok(Status::Ok);
    }
    let rows: Vec<[String; 3]> = LIBRARY
        .iter()
        .map(|entry| {
            let params: Vec<_> = entry.params().iter().map(in_a_cell).collect();
            [entry.name.to_owned(), entry.title(), params.join(", ")]
        })
        .collect();
    output::print(["name", "about", "params"], &rows, args.output, term)?;
    Ok(Status::Ok)
}

/// A line for each query, and below it one for each of its parameters.
fn table(color: bool) -> String {
    let (bold, plain) = if color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let indent = LIBRARY.iter().map(|e| e.name.len()).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for entry in LIBRARY {
        let gap = indent - entry.name.len();
        let _ = writeln!(out, "{bold}{}{plain}{:gap$}{}", entry.name, "", entry.title());
        let params = entry.params();
        let width = params.iter().map(|p| signature(p).len()).max().unwrap_or(0);
        for param in &params {
            let doc = param.doc.as_deref().unwrap_or_default();
            let line = format!("{:indent$}{:width$}  {doc}", "", signature(param));
            out.push_str(line.trim_end());
            out.push('\n');
        }
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
