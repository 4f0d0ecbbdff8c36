//! Tokens to a tree. The parser never gives up: it reports a mistake, skips to where sense begins
//! again (the closing bracket, the next `|`, the next statement), and goes on.
//!
//! A parsing function that returns `None` has reported why. Line breaks are blanks, with two
//! exceptions: a `|` at the start of a line is always the pipe, also within brackets, and a
//! pipeline that starts with a name starts a line.

mod ends;
mod expr;
mod foreign;
mod join;
mod parser;
mod pattern;
mod rows;
mod stage;
mod statement;
mod words;

use crate::diagnostic::Diagnostic;
use crate::lex::{Comment, lex};
use crate::tree::Tree;
use parser::Parser;

/// What the parser makes of a text.
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) comments: Vec<Comment>,
    /// In no particular order.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads a query.
pub(crate) fn parse(text: &str) -> Parsed {
    let lexed = lex(text);
    let mut parser = Parser {
        text,
        tokens: lexed.tokens,
        at: 0,
        diagnostics: lexed.diagnostics,
        nesting: 0,
        brackets: 0,
    };
    let tree = parser.tree();
    Parsed { tree, comments: lexed.comments, diagnostics: parser.diagnostics }
}
