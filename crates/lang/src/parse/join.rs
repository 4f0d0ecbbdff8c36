//! Stages that name other pipelines: `join` and `union`.

use super::Parser;
use crate::diagnostic::{Code, Diagnostic};
use crate::lex::Kind;
use crate::tree::{Join, JoinKey, Name, Stage};
use weir_plan::JoinKind;

/// The names that other languages give to joins that there are not here.
const FOREIGN: &[(&str, &str)] = &[
    ("outer", "a `left` join keeps the rows of the left side; there is none of both sides"),
    ("full", "a `left` join keeps the rows of the left side; there is none of both sides"),
    ("right", "swap the sides, and write `join left …`"),
    ("leftouter", "write `join left …`"),
    ("leftanti", "write `join anti …`"),
    ("semi", "an inner join gives every pair; `summarize` the left columns to have each once"),
    ("cross", "a join needs columns that are equal on both sides"),
];

impl Parser<'_> {
    pub(super) fn join(&mut self) -> Option<Stage> {
        self.bump();
        let kind = self.join_kind()?;
        let right = self.side("join")?;
        let (mut keys, mut within, mut defaults, mut max) = (Vec::new(), None, Vec::new(), None);
        loop {
            let again = match self.word() {
                "by" | "on" => !keys.is_empty(),
                "within" => within.is_some(),
                "default" => !defaults.is_empty(),
                "max" => max.is_some(),
                _ => break,
            };
            let (clause, span) = self.clause(again);
            match clause {
                "within" => within = Some(self.member()?),
                "default" => defaults = self.list(|p| p.named_item("default"))?,
                "max" => max = Some(self.expr()?),
                word => {
                    if word == "on" {
                        let message = "what is equal on both sides stands after `by`";
                        let d = Diagnostic::new(Code::ForeignWord, span, message);
                        self.report(d.help("write `by` instead of `on`"));
                    }
                    keys = self.list(Parser::join_key)?;
                }
            }
        }
        if keys.is_empty() {
            let d = self.expected("`by` and columns that are equal on both sides");
            self.unexpected(d.help(format!("as in `join {} by ip.src, ip.dst`", right.node)));
            return None;
        }
        Some(Stage::Join(Join { kind, right, keys, within, defaults, max }))
    }

    /// The word for what comes out, if there is one: it is followed by the name of a pipeline.
    fn join_kind(&mut self) -> Option<Option<JoinKind>> {
        let word = self.word();
        if word == "kind" && matches!(self.ahead(1).kind, Kind::Sign("=")) {
            let d = Diagnostic::new(Code::ForeignWord, self.span(), "the kind is just a word here");
            self.report(d.help("write `join left NAME by …`; kinds: inner left anti"));
            return None;
        }
        let next =
            self.ahead(1).kind == Kind::Name || matches!(self.ahead(1).kind, Kind::Sign("("));
        if !next || matches!(self.word_ahead(1), "by" | "on") {
            return Some(None);
        }
        let known = [JoinKind::Inner, JoinKind::Left, JoinKind::Anti];
        if let Some(kind) = known.into_iter().find(|kind| kind.name() == word) {
            self.bump();
            return Some(Some(kind));
        }
        if let Some((_, help)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
            let message = format!("there is no `{word}` join");
            let d = Diagnostic::new(Code::ForeignWord, self.span(), message).help(*help);
            self.report(d.note("kinds: inner left anti"));
            return None;
        }
        Some(None)
    }

    /// The name of another pipeline.
    fn side(&mut self, stage: &str) -> Option<Name> {
        if self.is_sign("(") {
            let message = format!("the other side of a `{stage}` is the name of a pipeline");
            let d = Diagnostic::new(Code::Unexpected, self.span(), message);
            self.report(d.help("define it above: `let NAME = packets | …`"));
            self.skip_brackets();
            return None;
        }
        if self.token().kind != Kind::Name {
            let d = self.expected("the name of another pipeline");
            self.unexpected(d.help(format!("as in `{stage} answers`, after `let answers = …`")));
            return None;
        }
        Some(self.name())
    }

    /// Skips what stands in brackets, pipes and all.
    fn skip_brackets(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.token().kind {
                Kind::Sign("(") => depth += 1,
                Kind::Sign(")") => depth -= 1,
                _ => {}
            }
            if self.token().kind == Kind::End {
                return;
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// `column`, or `column == column`.
    fn join_key(&mut self) -> Option<JoinKey> {
        let left = self.key_column()?;
        let right = match self.token().kind {
            Kind::Sign("==") => {
                self.bump();
                Some(self.key_column()?)
            }
            Kind::Sign("=") => {
                let d = Diagnostic::new(Code::ForeignWord, self.span(), "`=` gives a name");
                self.report(d.help("equal is `==`, the left side's column first"));
                return None;
            }
            _ => None,
        };
        let computed =
            matches!(&self.token().kind, Kind::Sign(s) if !matches!(*s, "," | "|" | ";"));
        if computed {
            return self.computed_key();
        }
        Some(JoinKey { left, right })
    }

    fn key_column(&mut self) -> Option<Name> {
        match self.token().kind {
            Kind::Name => Some(self.name()),
            Kind::Literal(_) | Kind::Sign("(" | "-" | "~") => self.computed_key(),
            _ => {
                let d = self.expected("a column");
                self.unexpected(d.help("columns of both sides: `by ip.src, client == server`"));
                None
            }
        }
    }

    fn computed_key<T>(&mut self) -> Option<T> {
        let message = "rows are joined by columns, not by what is computed here";
        let d = Diagnostic::new(Code::Unexpected, self.span(), message);
        self.report(d.help("make it a column of that side before: `| extend NAME = …`"));
        None
    }

    pub(super) fn union(&mut self) -> Option<Stage> {
        self.bump();
        Some(Stage::Union(self.list(|p| p.side("union"))?))
    }
}
