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
mod pattern;
mod rows;
mod stage;
mod statement;

pub(crate) use stage::one_line;

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lex::{Comment, Kind, Token, lex};
use crate::limits::DIAGNOSTICS_MAX;
use crate::tree::{Expr, ExprKind, Name, Tree};

/// Words that are never names.
pub(crate) const RESERVED: &[&str] =
    &["param", "let", "and", "or", "not", "in", "if", "match", "by", "every", "where", "_"];

/// Stages that this version has.
pub(crate) const STAGES: &[&str] = &[
    "where",
    "extend",
    "project",
    "project-away",
    "rename",
    "summarize",
    "scan",
    "top",
    "limit",
    "distinct",
    "sample",
    "each",
    "capture",
    "join",
    "union",
    "print",
    "branch",
    "pass",
    "drop",
    "forward",
    "broadcast",
    "steer",
    "mirror",
    "trim",
    "tag",
    "anonymize",
];

/// Stages of the design that are still to come.
pub(crate) const UNSUPPORTED: &[&str] = &["alert", "store", "publish", "metric"];

/// Words that go on with a stage, and so are no names of pipelines.
const CLAUSES: &[&str] = &[
    "max", "idle", "asc", "desc", "per", "over", "lateness", "fill", "within", "default", "when",
    "else", "next", "before", "after",
];

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

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    /// Nesting of the expression being read.
    nesting: usize,
    /// Brackets open around the current token; within them `|` is the bitwise or.
    brackets: usize,
}

/// Looking at tokens.
impl<'a> Parser<'a> {
    fn token(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> &Token {
        self.tokens.get(self.at + n).unwrap_or(&self.tokens[self.tokens.len() - 1])
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token before the current one.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn bump(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.token().kind, Kind::Sign(s) if *s == sign)
    }

    /// The word at `n` tokens ahead, empty if it is none.
    fn word_ahead(&self, n: usize) -> &'a str {
        let token = self.ahead(n);
        if token.kind == Kind::Name { token.span.of(self.text) } else { "" }
    }

    fn word(&self) -> &'a str {
        self.word_ahead(0)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.bump();
        }
        found
    }

    /// Whether a `|` that joins stages is next.
    fn at_pipe(&self) -> bool {
        self.is_sign("|") && (self.brackets == 0 || self.token().first)
    }

    /// Whether nothing that could go on with an expression in brackets is next.
    fn at_boundary(&self) -> bool {
        self.token().kind == Kind::End
            || self.at_pipe()
            || matches!(self.word(), "param" | "let")
            || (self.word() == "packets" && self.starts_pipeline())
            || (self.is_sign("|") && STAGES.contains(&self.word_ahead(1)))
    }

    /// The current token in words.
    fn found(&self) -> String {
        match &self.token().kind {
            Kind::End => "the end of the query".to_owned(),
            _ => format!("`{}`", self.span().of(self.text)),
        }
    }
}

/// Mistakes, and going on behind them.
impl Parser<'_> {
    fn report(&mut self, d: Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(d);
        }
    }

    /// Reports that something else was expected here; what could not be read was reported already.
    fn expected(&mut self, what: &str) -> Diagnostic {
        let message = format!("expected {what}, found {}", self.found());
        Diagnostic::new(Code::Unexpected, self.span(), message)
    }

    fn unexpected(&mut self, d: Diagnostic) {
        if self.token().kind != Kind::Bad {
            self.report(d);
        }
    }

    fn expect(&mut self, sign: &str, context: &str) -> Option<Span> {
        if self.is_sign(sign) {
            return Some(self.bump());
        }
        let d = self.expected(&format!("`{sign}` {context}"));
        self.unexpected(d);
        None
    }

    /// Skips to the next pipe or statement.
    fn skip_stage(&mut self) {
        self.brackets = 0;
        self.nesting = 0;
        while !self.at_pipe() && !self.at_statement() {
            self.bump();
        }
    }

    /// Skips to the next statement.
    fn skip_statement(&mut self) {
        self.brackets = 0;
        self.nesting = 0;
        while !self.at_statement() {
            self.bump();
        }
    }

    /// Whether a statement starts here, for one who lost the thread: at a word that starts nothing
    /// else, or a name at the very start of a line.
    fn at_statement(&self) -> bool {
        let token = self.token();
        let line_start =
            token.span.start == 0 || self.text.as_bytes()[token.span.start - 1] == b'\n';
        match token.kind {
            Kind::End => true,
            Kind::Name => {
                line_start
                    || token.first && matches!(self.word(), "param" | "let")
                    || self.word() == "packets" && self.starts_pipeline()
            }
            _ => false,
        }
    }

    /// Opens a bracket; the current token.
    fn open(&mut self) -> Span {
        self.brackets += 1;
        self.bump()
    }

    /// Closes the bracket opened at `open`, or reports that it is not closed and skips behind its
    /// closing one if there is any. `whole` is whether what stands in it could be read.
    fn close(&mut self, open: Span, closer: &'static str, whole: bool) -> Option<Span> {
        if whole && self.is_sign(closer) {
            self.brackets = self.brackets.saturating_sub(1);
            return Some(self.bump());
        }
        let opener = open.of(self.text).to_owned();
        if whole && self.at_boundary() {
            let message = format!("this `{opener}` is never closed");
            let d = Diagnostic::new(Code::Unclosed, open, message);
            let place = Span::new(self.last_span().end, self.last_span().end);
            self.report(d.label(format!("no `{closer}` for it")).note_at(
                Span::new(place.start.saturating_sub(1), place.end),
                "expected here at the latest",
            ));
        } else if whole {
            let d = self.expected(&format!("`,` or `{closer}`"));
            self.unexpected(d.note_at(open, "to go on with, or to close this"));
        }
        self.skip_to(closer)
    }

    fn skip_to(&mut self, closer: &str) -> Option<Span> {
        let mut depth = 0usize;
        while !self.at_boundary() {
            if depth == 0 && self.is_sign(closer) {
                self.brackets = self.brackets.saturating_sub(1);
                return Some(self.bump());
            }
            match self.token().kind {
                Kind::Sign("(" | "{" | "[") => depth += 1,
                Kind::Sign(")" | "}" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
        None
    }
}

/// Small pieces of a tree.
impl Parser<'_> {
    /// The name at the current token.
    fn name(&mut self) -> Name {
        let name = self.word().to_owned();
        Name::new(name, self.bump())
    }

    fn error_expr(&self, span: Span) -> Expr {
        Expr::new(ExprKind::Error, span)
    }
}
