//! `weir explain`: the plan, where each part runs, and why.

use crate::args::ExplainArgs;
use crate::exit::Status;
use crate::query::{self, Source};
use crate::term::Term;
use std::fmt::Write as _;
use std::io::Write as _;
use weir_engine::functions::Functions;

/// Prints the params of a query, then its plan.
pub(crate) fn run(args: &ExplainArgs, term: &Term) -> anyhow::Result<Status> {
    let source = Source::given(args.expression.as_deref(), args.query.as_deref())?;
    let Some(program) = query::compile(&source, &args.params, &Functions::default(), false, term)?
    else {
        return Ok(Status::Usage);
    };
    let mut text = params(&source.text, &args.params);
    text += &weir_plan::print::explain(&program, args.workers.get());
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Status::Ok)
}

/// A line for each param with the value that it has here, then an empty one.
fn params(query: &str, given: &[(String, String)]) -> String {
    let mut out = String::new();
    for param in weir_lang::params(query) {
        let set = given.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value);
        let default = set.map(|_| format!("default {}", param.default));
        let notes: Vec<&str> =
            [param.doc.as_deref(), default.as_deref()].into_iter().flatten().collect();
        let value = set.unwrap_or(&param.default);
        let _ = write!(out, "param {}: {} = {value}", param.name, param.ty);
        if !notes.is_empty() {
            let _ = write!(out, "  # {}", notes.join("; "));
        }
        out.push('\n');
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}
