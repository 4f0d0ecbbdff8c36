//! Stages.

use super::Parser;
use super::words::{ACTS, RESERVED, STAGES, UNSUPPORTED};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::foreign;
use crate::lex::Kind;
use crate::suggest;
use crate::tree::{AggItem, Fill, Item, Scan, Sessions, Spanned, Stage, Summarize};

impl<'a> Parser<'a> {
    /// A stage from its word on.
    pub(super) fn stage_body(&mut self) -> Option<Stage> {
        match self.word() {
            "where" => {
                self.bump();
                Some(Stage::Where(self.expr()?))
            }
            "extend" => {
                self.bump();
                Some(Stage::Extend(self.list(|p| p.named_item("extend"))?))
            }
            "project" => self.project(),
            "rename" => {
                self.bump();
                Some(Stage::Rename(self.list(|p| p.named_item("rename"))?))
            }
            "summarize" => self.summarize(),
            "scan" => self.scan(),
            "analyze" => self.analyze(),
            "top" => self.top(),
            "distinct" => self.distinct(),
            "deduplicate" => self.deduplicate(),
            "sample" => self.sample(),
            "each" => self.each(),
            "capture" => self.capture(),
            "alert" => self.alert(),
            "metric" => self.metric(),
            "hello" => self.hello(),
            "limit" => {
                self.bump();
                Some(Stage::Limit(self.expr()?))
            }
            "join" => self.join(),
            "union" => self.union(),
            "print" => {
                self.bump();
                Some(Stage::Print)
            }
            "branch" => self.branch(),
            word if ACTS.contains(&word) => Some(Stage::Act(self.act()?)),
            word if UNSUPPORTED.contains(&word) => self.unsupported(),
            _ => {
                self.unknown_stage();
                None
            }
        }
    }

    /// `project`, or `project-away`: a word with a hyphen is three tokens without blanks.
    fn project(&mut self) -> Option<Stage> {
        let word = self.bump();
        let hyphen = self.is_sign("-") && self.span().start == word.end;
        let (second, whole) = (self.word_ahead(1), word.to(self.ahead(1).span));
        if hyphen && self.ahead(1).span.start == self.span().end && !second.is_empty() {
            if second != "away" {
                let word = whole.of(self.text);
                let d = format!("there is no stage called `{word}`");
                let ours = suggest::stage(word).unwrap_or("project-away");
                let d = Diagnostic::new(Code::UnknownStage, whole, d);
                self.report(d.help(format!("did you mean `{ours}`?")));
                self.skip_stage();
                return None;
            }
            self.bump();
            self.bump();
            return Some(Stage::ProjectAway(self.list(Parser::item)?));
        }
        if self.is_sign("*") {
            let d = Diagnostic::new(Code::ForeignWord, self.span(), "`*` is no column");
            self.report(d.help("leave `project` out: rows keep what they have"));
            return None;
        }
        Some(Stage::Project(self.list(Parser::item)?))
    }

    fn unsupported(&mut self) -> Option<Stage> {
        let name = self.name();
        let word = name.node.as_str();
        let d =
            Diagnostic::new(Code::Unsupported, name.span, format!("`{word}` is not supported yet"));
        self.report(match word {
            "store" => d.help("leave it out: `weir run --store FOLDER` stores the rows of a query"),
            "publish" => d.help("leave it out: `weir run --publish TO` publishes partial results"),
            _ => d,
        });
        self.skip_stage();
        Some(Stage::Unsupported(name))
    }

    fn unknown_stage(&mut self) {
        let word = self.word();
        if word.is_empty() {
            let d = self.expected("a stage");
            self.unexpected(d.help(format!("stages: {}", STAGES.join(" "))));
            return;
        }
        let d = Diagnostic::new(
            Code::UnknownStage,
            self.span(),
            format!("there is no stage called `{word}`"),
        );
        let near = suggest::closest(word, STAGES.iter().chain(UNSUPPORTED).copied());
        if let Some(help) = foreign::stage(word) {
            self.report(d.help(help));
            self.bump();
            return;
        }
        let copies = matches!(word, "dedup" | "dedupe") && self.word_ahead(1) == "within";
        let copies = copies.then_some("deduplicate");
        self.report(match copies.or(suggest::stage(word)).or(near) {
            _ if matches!(word, "over" | "every" | "by" | "lateness" | "fill") => d.help(format!(
                "`{word}` goes on with a `summarize`: `| summarize … over 60s every 10s`"
            )),
            _ if word == "next" => d.help("`next` ends an arm of `branch` whose rows go on"),
            Some(stage) => d.help(format!("did you mean `{stage}`?")),
            None => d.note(format!("stages: {}", STAGES.join(" "))),
        });
        self.bump();
    }

    /// One or more of `part`, separated by commas.
    pub(super) fn list<T>(
        &mut self,
        mut part: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut out = vec![part(self)?];
        while self.is_sign(",") {
            let comma = self.bump();
            let word = self.word();
            if matches!(word, "every" | "by") {
                let message = format!("no comma stands before `{word}`");
                let d = Diagnostic::new(Code::Unexpected, comma.to(self.span()), message);
                self.report(d.help(format!("write `{word}`")));
                break;
            }
            out.push(part(self)?);
        }
        Some(out)
    }

    fn at_named(&self) -> bool {
        self.token().kind == Kind::Name && matches!(self.ahead(1).kind, Kind::Sign("="))
    }

    /// `expr`, or `name = expr`.
    pub(super) fn item(&mut self) -> Option<Item> {
        let name = self.at_named().then(|| {
            let name = self.name();
            self.bump();
            name
        });
        if let Some(name) = name.as_ref().filter(|n| RESERVED.contains(&n.node.as_str())) {
            let message =
                format!("`{}` is a word of the language and cannot name a column", name.node);
            self.report(Diagnostic::new(Code::BadName, name.span, message));
        }
        Some(Item { name, expr: self.expr()? })
    }

    /// `name = expr`.
    pub(super) fn named_item(&mut self, stage: &str) -> Option<Item> {
        let item = self.item()?;
        if item.name.is_none() {
            let text = item.expr.span.of(self.text);
            let d = Diagnostic::new(
                Code::NeedsName,
                item.expr.span,
                format!("`{stage}` needs a name for this value"),
            );
            self.report(d.help(format!("write `{stage} NAME = {}`", one_line(text))));
        }
        Some(item)
    }

    /// Whether a clause of a stage starts here rather than another part of the stage.
    fn at_clause(&self) -> bool {
        let word = self.word();
        let free = matches!(word, "max" | "over" | "lateness" | "fill");
        let free = free || Sessions::WORDS.contains(&word);
        let clause = free && !matches!(self.ahead(1).kind, Kind::Sign("(" | "="));
        clause || matches!(self.word(), "by" | "every") || self.at_boundary()
    }

    /// Takes the word of a clause; reports that it was there before.
    pub(super) fn clause(&mut self, again: bool) -> (&'a str, Span) {
        let clause = self.word();
        let span = self.bump();
        if again {
            let message = format!("`{clause}` is given twice");
            self.report(Diagnostic::new(Code::Unexpected, span, message));
        }
        (clause, span)
    }

    fn summarize(&mut self) -> Option<Stage> {
        let word = self.bump();
        let aggs = if self.at_clause() { Vec::new() } else { self.list(Parser::agg)? };
        let mut out = Summarize {
            aggs,
            keys: Vec::new(),
            over: None,
            every: None,
            lateness: None,
            fill: None,
            sessions: Box::default(),
            max: None,
        };
        loop {
            let again = match self.word() {
                "by" => !out.keys.is_empty(),
                "over" => out.over.is_some(),
                "every" => out.every.is_some(),
                "lateness" => out.lateness.is_some(),
                "fill" => out.fill.is_some(),
                "max" => out.max.is_some(),
                word => match out.sessions.clause_mut(word) {
                    Some(clause) => clause.is_some(),
                    None => break,
                },
            };
            let (clause, span) = self.clause(again);
            match clause {
                "by" => out.keys = self.list(Parser::item)?,
                "over" => out.over = Some(self.expr()?),
                "every" => {
                    out.every = Some(self.expr()?);
                    out.sessions.rows = self.eat_word("rows");
                }
                "lateness" => out.lateness = Some(self.expr()?),
                "fill" => out.fill = Some(self.fill(span)?),
                "max" => out.max = Some(self.expr()?),
                word => {
                    let e = self.expr()?;
                    out.sessions.clause_mut(word).into_iter().for_each(|c| *c = Some(e.clone()));
                }
            }
        }
        if out.aggs.is_empty() && out.keys.is_empty() {
            let d = Diagnostic::new(Code::Unexpected, word, "`summarize` has nothing to compute");
            self.report(d.help("write an aggregate or a key: `summarize n = count() by ip.src`"));
            return None;
        }
        Some(Stage::Summarize(out))
    }

    /// The clauses after the word `fill`.
    fn fill(&mut self, word: Span) -> Option<Fill> {
        let from_start = self.eat_word("from");
        if from_start && !self.eat_word("start") {
            let d = self.expected("`start`").help("write `fill from start`");
            self.unexpected(d);
            return None;
        }
        let idle = if self.eat_word("idle") { Some(self.expr()?) } else { None };
        Some(Fill { word: Spanned::new((), word), from_start, idle })
    }

    fn agg(&mut self) -> Option<AggItem> {
        let item = self.item()?;
        let cond = if self.eat_word("where") { Some(self.expr()?) } else { None };
        Some(AggItem { item, cond })
    }

    fn scan(&mut self) -> Option<Stage> {
        self.bump();
        let states = self.list(|p| p.named_item("scan"))?;
        let (mut keys, mut idle, mut max) = (Vec::new(), None, None);
        loop {
            if self.eat_word("by") {
                keys = self.list(Parser::expr)?;
            } else if self.eat_word("idle") {
                idle = Some(self.expr()?);
            } else if self.eat_word("max") {
                max = Some(self.expr()?);
            } else {
                break;
            }
        }
        if !self.is_sign("=>") {
            let d = self.expected("`=>` and the state after each row");
            self.unexpected(d.help("as in `scan n = 0 by flow => n + 1`"));
            return None;
        }
        self.bump();
        let update = self.expr()?;
        Some(Stage::Scan(Scan { states, keys, idle, max, update }))
    }
}
