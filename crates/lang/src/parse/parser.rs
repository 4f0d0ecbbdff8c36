//! The parser: where it is among the tokens, mistakes, and how it goes on after them.

use super::words::STAGES;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lex::{Comment, Kind, Token, lex};
use crate::limits::DIAGNOSTICS_MAX;
use crate::tree::{Expr, ExprKind, Name};

/// A parser on its way through the tokens of a text.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Nesting of the expression being read.
    pub(super) nesting: usize,
    /// Brackets open around the current token; within them `|` is the bitwise or.
    pub(super) brackets: usize,
}

/// Looking at tokens.
impl<'a> Parser<'a> {
    /// A parser at the start of a text, and the comments in it.
    pub(super) fn new(text: &'a str) -> (Parser<'a>, Vec<Comment>) {
        let lexed = lex(text);
        let (tokens, diagnostics) = (lexed.tokens, lexed.diagnostics);
        let parser = Parser { text, tokens, at: 0, diagnostics, nesting: 0, brackets: 0 };
        (parser, lexed.comments)
    }

    pub(super) fn token(&self) -> &Token {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, n: usize) -> &Token {
        self.tokens.get(self.at + n).unwrap_or(&self.tokens[self.tokens.len() - 1])
    }

    pub(super) fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token before the current one.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub(super) fn bump(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.token().kind, Kind::Sign(s) if *s == sign)
    }

    /// The word at `n` tokens ahead, empty if it is none.
    pub(super) fn word_ahead(&self, n: usize) -> &'a str {
        let token = self.ahead(n);
        if token.kind == Kind::Name { token.span.of(self.text) } else { "" }
    }

    pub(super) fn word(&self) -> &'a str {
        self.word_ahead(0)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.bump();
        }
        found
    }

    /// Whether a `|` that joins stages is next.
    pub(super) fn at_pipe(&self) -> bool {
        self.is_sign("|") && (self.brackets == 0 || self.token().first)
    }

    /// Whether nothing that could go on with an expression in brackets is next.
    pub(super) fn at_boundary(&self) -> bool {
        self.token().kind == Kind::End
            || self.at_pipe()
            || matches!(self.word(), "param" | "let")
            || (self.word() == "packets" && self.starts_pipeline())
            || (self.is_sign("|") && STAGES.contains(&self.word_ahead(1)))
    }

    /// The current token in words.
    pub(super) fn found(&self) -> String {
        match &self.token().kind {
            Kind::End => "the end of the query".to_owned(),
            _ => format!("`{}`", self.span().of(self.text)),
        }
    }
}

/// Mistakes, and going on after them.
impl Parser<'_> {
    pub(super) fn report(&mut self, d: Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(d);
        }
    }

    /// Reports that something else was expected here; what could not be read was reported already.
    pub(super) fn expected(&mut self, what: &str) -> Diagnostic {
        let message = format!("expected {what}, found {}", self.found());
        Diagnostic::new(Code::Unexpected, self.span(), message)
    }

    pub(super) fn unexpected(&mut self, d: Diagnostic) {
        if self.token().kind != Kind::Bad {
            self.report(d);
        }
    }

    pub(super) fn expect(&mut self, sign: &str, context: &str) -> Option<Span> {
        if self.is_sign(sign) {
            return Some(self.bump());
        }
        let d = self.expected(&format!("`{sign}` {context}"));
        self.unexpected(d);
        None
    }

    /// Skips to the next pipe or statement.
    pub(super) fn skip_stage(&mut self) {
        self.brackets = 0;
        self.nesting = 0;
        while !self.at_pipe() && !self.at_statement() {
            self.bump();
        }
    }

    /// Skips to the next statement.
    pub(super) fn skip_statement(&mut self) {
        self.brackets = 0;
        self.nesting = 0;
        while !self.at_statement() {
            self.bump();
        }
    }

    /// Whether a statement starts here, for one who lost the thread: at a word that starts nothing
    /// else, or a name at the very start of a line.
    pub(super) fn at_statement(&self) -> bool {
        let token = self.token();
        let line_start = token.span.start == 0
            || matches!(self.text.as_bytes()[token.span.start - 1], b'\n' | b'\r');
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
    pub(super) fn open(&mut self) -> Span {
        self.brackets += 1;
        self.bump()
    }

    /// Closes the bracket opened at `open`, or reports that it is not closed and skips past its
    /// closing one if there is any. `whole` is whether what stands in it could be read.
    pub(super) fn close(&mut self, open: Span, closer: &'static str, whole: bool) -> Option<Span> {
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

    pub(super) fn skip_to(&mut self, closer: &str) -> Option<Span> {
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
    pub(super) fn name(&mut self) -> Name {
        let name = self.word().to_owned();
        Name::new(name, self.bump())
    }

    pub(super) fn error_expr(&self, span: Span) -> Expr {
        Expr::new(ExprKind::Error, span)
    }
}
