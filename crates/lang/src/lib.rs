//! Query text to a plan, or diagnostics.
//!
//! | stage | in | out |
//! |---|---|---|
//! | `lex` | text | tokens and comments |
//! | `parse` | tokens | a syntax tree |
//! | `check`, `lower` | a tree | a typed [`weir_plan::Program`] |
//! | `format` | a tree and comments | text in the canonical layout |
//! | [`render`](fn@render) | diagnostics | a drawing for a person |
//!
//! Each of them goes on after a mistake, so that one run tells of several. This is the only crate
//! that knows where in a text something stands. The language itself is described in
//! `docs/language.md`.

#![deny(unsafe_code)]

mod check;
pub mod diagnostic;
mod excerpt;
mod files;
mod foreign;
mod format;
mod fuzz;
mod header;
mod lex;
pub mod limits;
mod lower;
mod names;
mod parse;
mod render;
mod suggest;
mod tree;

pub use diagnostic::{Code, Diagnostic, Note, Severity, Span};
pub use files::{Files, fuzz_file};
pub use fuzz::fuzz_query;
pub use header::{Header, ParamInfo, header, params};
pub use render::render;
pub use suggest::closest;

use weir_plan::{Program, Signatures};

/// A query and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// What diagnostics call it: a file name, or `-e`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What a query is compiled with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Values of params by name, as text; the last one of a name counts.
    pub params: &'a [(String, String)],
    /// Functions beside the built-in ones.
    pub signatures: &'a Signatures,
    /// Where the files that a query names are found; without it, they are not.
    pub files: Option<&'a dyn Files>,
}

impl Default for Options<'_> {
    /// No values for params, no functions, no files.
    fn default() -> Self {
        static NONE: Signatures = Signatures { scalars: Vec::new(), aggregates: Vec::new() };
        Options { params: &[], signatures: &NONE, files: None }
    }
}

/// A program, and what is odd about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Compiled {
    /// The program, checked.
    pub program: Program,
    /// Warnings, in the order of the text.
    pub warnings: Vec<Diagnostic>,
}

/// Compiles a query.
///
/// # Errors
/// All mistakes found, at least one of them an error, in the order of the text.
pub fn compile(q: &Query<'_>, o: &Options<'_>) -> Result<Compiled, Vec<Diagnostic>> {
    too_long(q.text)?;
    let parsed = parse::parse(q.text);
    let (program, mut diagnostics) = check::check(&parsed.tree, q.text, o);
    // What asks nothing because it could not be read is told of once.
    if !parsed.diagnostics.is_empty() {
        diagnostics.retain(|d| d.code != Code::NoPipeline && d.code != Code::Unused);
    }
    diagnostics.extend(parsed.diagnostics);
    // Where there are too many, warnings are dropped before errors.
    diagnostics.sort_by_key(|d| (!d.is_error(), d.span));
    diagnostics.dedup();
    diagnostics.truncate(limits::DIAGNOSTICS_MAX);
    diagnostics.sort_by_key(|d| d.span);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    Ok(Compiled { program, warnings: diagnostics })
}

/// A query in the canonical layout: one stage a line, comments and the blank lines between
/// statements kept. Formatting the result changes nothing.
///
/// # Errors
/// What keeps the text from being read. Names and types are not looked at.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    too_long(text)?;
    let mut parsed = parse::parse(text);
    if !parsed.diagnostics.is_empty() {
        parsed.diagnostics.sort_by_key(|d| d.span);
        return Err(parsed.diagnostics);
    }
    Ok(format::format(&parsed.tree, &parsed.comments, text))
}

fn too_long(text: &str) -> Result<(), Vec<Diagnostic>> {
    if text.len() <= limits::TEXT_MAX {
        return Ok(());
    }
    let message = format!("a query is at most {} bytes long", limits::TEXT_MAX);
    Err(vec![Diagnostic::new(Code::TooLarge, Span::NOWHERE, message)])
}
