//! From text to a checked program, and to the canonical layout.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::query::{Options, Query};
use crate::{alert_times, check, import, limits, parse};
use weir_plan::Program;

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
    let mut parsed = parse::parse(q.text);
    alert_times::add(&mut parsed.tree);
    let imports = import::imports(&parsed.tree, o);
    let (program, mut diagnostics) = check::check(&parsed.tree, q.text, o, &imports);
    // Text that asks nothing because it could not be read is reported once.
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
/// The mistakes that keep the text from being read. Names and types are not looked at.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    too_long(text)?;
    let mut parsed = parse::parse(text);
    if !parsed.diagnostics.is_empty() {
        parsed.diagnostics.sort_by_key(|d| d.span);
        return Err(parsed.diagnostics);
    }
    Ok(crate::format::format(&parsed.tree, &parsed.comments, text))
}

fn too_long(text: &str) -> Result<(), Vec<Diagnostic>> {
    if text.len() <= limits::TEXT_MAX {
        return Ok(());
    }
    let message = format!("a query is at most {} bytes long", limits::TEXT_MAX);
    Err(vec![Diagnostic::new(Code::TooLarge, Span::NOWHERE, message)])
}
