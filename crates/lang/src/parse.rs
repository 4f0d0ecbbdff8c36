//! Tokens to a tree. The parser never gives up: it reports a mistake, skips to where sense begins
//! again (the closing bracket, the next `|`, the next statement), and goes on.
//!
//! A parsing function that returns `None` has reported why. Line breaks are blanks, with two
//! exceptions: a `|` at the start of a line is always the pipe, also within brackets, and a
//! pipeline that starts with a name starts a line.

mod alert;
mod ends;
mod expr;
mod foreign;
mod join;
mod metric;
mod parser;
mod pattern;
mod rows;
mod settings;
mod stage;
mod statement;
mod words;

use crate::diagnostic::Diagnostic;
use crate::lex::{Comment, Kind};
use crate::tree::{Set, Spanned, Tree};
use parser::Parser;
pub(crate) use settings::SettingLine;
pub(crate) use words::STAGES;

/// The result of parsing a text.
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) comments: Vec<Comment>,
    /// In no particular order.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads a query.
pub(crate) fn parse(text: &str) -> Parsed {
    let (mut parser, comments) = Parser::new(text);
    let tree = parser.tree();
    Parsed { tree, comments, diagnostics: parser.diagnostics }
}

/// Reads what a param is set to outside of a query, and nothing else: a value, a range or a set.
pub(crate) fn parse_value(text: &str) -> Result<Spanned<Set>, Vec<Diagnostic>> {
    let (mut parser, _) = Parser::new(text);
    let set = parser.value_or_set();
    if set.is_some() && parser.token().kind != Kind::End {
        let d = parser.expected("nothing after the value");
        parser.unexpected(d);
    }
    match set {
        Some(set) if parser.diagnostics.is_empty() => Ok(set),
        _ => Err(no_query(parser.diagnostics)),
    }
}

/// Reads a file of settings, `NAME = VALUE` on lines of their own, and what is wrong with it.
pub(crate) fn parse_settings(text: &str) -> (Vec<SettingLine>, Vec<Diagnostic>) {
    let (mut parser, _) = Parser::new(text);
    let settings = parser.settings();
    (settings, no_query(parser.diagnostics))
}

/// Diagnostics of a text that is no query.
fn no_query(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for d in &mut diagnostics {
        d.message = d.message.replace("the end of the query", "the end of the text");
    }
    diagnostics
}
