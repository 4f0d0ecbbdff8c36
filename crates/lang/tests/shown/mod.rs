//! Queries with mistakes, as their authors see them.

use std::fmt::Write;
use weir_lang::{Code, Options, Query, compile, render};

/// The diagnostics of all queries, as text; each query must have one of its kind among them.
pub(crate) fn shown(bad: &[(Code, &str)]) -> String {
    let mut out = String::new();
    for (code, text) in bad {
        let q = Query { name: "query.weir", text };
        let diagnostics = match compile(&q, &Options::default()) {
            Ok(compiled) => compiled.warnings,
            Err(diagnostics) => diagnostics,
        };
        assert!(diagnostics.iter().any(|d| d.code == *code), "{code} of {text}: {diagnostics:?}");
        writeln!(out, "{}", render(&diagnostics, &q, false)).expect("writing to memory");
    }
    out
}
