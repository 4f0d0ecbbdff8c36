//! Statements, and the pipelines in them.

use super::Parser;
use super::words::{ACTS, CLAUSES, RESERVED, STAGES, UNSUPPORTED};
use crate::diagnostic::{Code, Diagnostic};
use crate::lex::Kind;
use crate::suggest;
use crate::tree::{LetBody, Member, Name, Pipeline, Set, Spanned, Stage, Statement, Tree};

impl Parser<'_> {
    pub(super) fn tree(&mut self) -> Tree {
        let mut statements = Vec::new();
        while self.token().kind != Kind::End {
            let (before, start) = (self.at, self.span());
            let statement = self.statement();
            if self.at == before {
                self.bump();
            }
            match statement {
                Some(s) => statements.push(Spanned::new(s, start.to(self.last_span()))),
                None => self.skip_statement(),
            }
        }
        Tree { statements }
    }

    fn statement(&mut self) -> Option<Statement> {
        let statement = match self.word() {
            "param" => self.param()?,
            "let" => self.let_statement()?,
            _ => Statement::Pipeline(self.printed_pipeline()?),
        };
        if !self.at_statement_end() {
            let mut d = self.expected("`|`, or a new statement on a new line");
            if self.is_sign(";") {
                d = d.help("statements end with the line; leave the `;` out");
            }
            self.unexpected(d);
            self.bump();
            self.skip_statement();
        }
        Some(statement)
    }

    fn param(&mut self) -> Option<Statement> {
        self.bump();
        let name = self.defined_name("param")?;
        let Some((ty, default)) = self.param_body() else { return Some(self.broken(name)) };
        Some(Statement::Param { name, ty, default })
    }

    fn param_body(&mut self) -> Option<(Name, Spanned<Set>)> {
        self.expect(":", "and a type, as in `param limit: int = 10`")?;
        if self.token().kind != Kind::Name {
            let d = self.expected("a type");
            let types = "types: int float string bool duration time ip mac net, \
                         and sets: ints nets macs strings";
            self.unexpected(d.help(types));
            return None;
        }
        let ty = self.name();
        if !self.is_sign("=") {
            let d = self.expected("`=` and a default value");
            self.unexpected(d.help("every param has a default; `-p` overrides it"));
            return None;
        }
        self.bump();
        Some((ty, self.value_or_set()?))
    }

    /// The value of a param: one value, a range, or a set in braces, which may be empty.
    pub(super) fn value_or_set(&mut self) -> Option<Spanned<Set>> {
        if self.is_sign("{") {
            return self.braced_set();
        }
        let low = self.expr()?;
        let member = match self.eat("..") {
            true => Member::Range(low, self.expr()?),
            false => Member::Value(low),
        };
        let span = member.span();
        Some(Spanned::new(Set::One(Box::new(member)), span))
    }

    /// A statement that is given up after its name.
    fn broken(&mut self, name: Name) -> Statement {
        self.skip_statement();
        Statement::Broken(name)
    }

    fn let_statement(&mut self) -> Option<Statement> {
        self.bump();
        let name = self.defined_name("let")?;
        let Some(body) = self.let_body(&name) else { return Some(self.broken(name)) };
        Some(Statement::Let { name, body })
    }

    fn let_body(&mut self, name: &Name) -> Option<LetBody> {
        self.expect("=", "and a pipeline or an expression")?;
        let pipeline = self.word() == "packets"
            || self.token().kind == Kind::Name && matches!(self.ahead(1).kind, Kind::Sign("|"));
        if !pipeline {
            return Some(LetBody::Expr(self.expr()?));
        }
        self.pipeline_name(name);
        let source = self.name();
        Some(LetBody::Pipeline(self.pipeline(source)))
    }

    /// The name that a statement defines.
    fn defined_name(&mut self, statement: &str) -> Option<Name> {
        if self.token().kind != Kind::Name {
            let d = self.expected(&format!("a name after `{statement}`"));
            self.unexpected(d);
            return None;
        }
        let name = self.name();
        let word = name.node.as_str();
        if word.contains('.') {
            let message = format!("the name of a {statement} has no dots");
            let help = format!("write `{}`", word.replace('.', "_"));
            self.report(Diagnostic::new(Code::BadName, name.span, message).help(help));
        } else if RESERVED.contains(&word) || word == "packets" {
            self.taken_by_language(&name);
        }
        Some(name)
    }

    /// Reports the name of a pipeline that could not be told from a stage, where it starts a line.
    fn pipeline_name(&mut self, name: &Name) {
        if [STAGES, UNSUPPORTED, CLAUSES].iter().any(|set| set.contains(&name.node.as_str())) {
            self.taken_by_language(name);
        }
    }

    fn taken_by_language(&mut self, name: &Name) {
        let word = name.node.as_str();
        let message = format!("`{word}` is a word of the language and cannot be a name here");
        let help = format!("choose another name, such as `my_{}`", word.trim_matches('_'));
        self.report(Diagnostic::new(Code::BadName, name.span, message).help(help));
    }

    fn printed_pipeline(&mut self) -> Option<Pipeline> {
        let (span, word) = (self.span(), self.word());
        let packets = Name::new("packets".to_owned(), span);
        if self.is_sign("|") {
            let d = Diagnostic::new(Code::Unexpected, span, "this `|` has no rows to its left")
                .help("a pipeline starts with `packets`, or with the name of another one");
            self.report(d);
            return Some(self.pipeline(packets));
        }
        if self.at_select() {
            self.select();
            return None;
        }
        if self.at_bare_condition() {
            let condition = self.bare_condition();
            let mut pipeline = self.pipeline(packets);
            pipeline.stages.splice(0..0, condition);
            return Some(pipeline);
        }
        let is_stage = STAGES.contains(&word) || suggest::stage(word).is_some();
        if is_stage && !matches!(self.ahead(1).kind, Kind::Sign("|") | Kind::End) {
            let message = "a pipeline starts with the rows it reads";
            let d = Diagnostic::new(Code::Unexpected, span, message)
                .help(format!("write `packets | {} …`", suggest::stage(word).unwrap_or(word)));
            self.report(d);
            let first = self.stage();
            let mut pipeline = self.pipeline(packets);
            pipeline.stages.insert(0, first);
            return Some(pipeline);
        }
        if self.token().kind != Kind::Name {
            let d = self.expected("a pipeline, `let` or `param`");
            self.unexpected(d.help("a pipeline starts with `packets`"));
            return None;
        }
        let source = self.name();
        Some(self.pipeline(source))
    }

    /// The stages after the source.
    fn pipeline(&mut self, source: Name) -> Pipeline {
        let mut stages = Vec::new();
        loop {
            self.brackets = 0;
            self.nesting = 0;
            if self.is_sign("|") {
                let pipe = self.bump();
                if self.at_boundary() {
                    let message = "there is no stage after this `|`";
                    self.report(Diagnostic::new(Code::Unexpected, pipe, message));
                    continue;
                }
            } else if STAGES.contains(&self.word()) && !self.starts_pipeline() {
                let message = format!("a `|` is missing before `{}`", self.word());
                let d = Diagnostic::new(Code::Unexpected, self.span(), message);
                self.report(d.help(format!("write `| {} …`", self.word())));
            } else {
                return Pipeline { source, stages };
            }
            stages.push(self.stage());
        }
    }

    /// Whether a name at the start of a line is followed by a pipe or nothing.
    pub(super) fn starts_pipeline(&self) -> bool {
        self.token().first && matches!(self.ahead(1).kind, Kind::Sign("|") | Kind::End)
    }

    /// A stage after its pipe, and on to the next one.
    fn stage(&mut self) -> Spanned<Stage> {
        let start = self.span();
        let word = self.word();
        let harmless =
            matches!(word, "where" | "limit" | "top" | "print" | "branch") || ACTS.contains(&word);
        let stage = self.stage_body();
        if stage.is_none() {
            self.skip_stage();
        }
        let stage = stage.unwrap_or(Stage::Broken { harmless });
        let span = start.to(self.last_span());
        let ends = self.at_pipe() || self.at_statement_end();
        if !ends && !matches!(stage, Stage::Broken { .. }) && !STAGES.contains(&self.word()) {
            let d = self.expected("`|`, or a new statement on a new line");
            let d = self.after_stage(d);
            self.unexpected(d);
            self.skip_stage();
        }
        Spanned::new(stage, span)
    }

    pub(super) fn at_statement_end(&self) -> bool {
        let token = self.token();
        token.kind == Kind::End
            || matches!(self.word(), "param" | "let")
            || token.first && token.kind == Kind::Name
    }

    /// The diagnostic with the likely meaning of a stray token after a whole stage.
    fn after_stage(&self, d: Diagnostic) -> Diagnostic {
        match (&self.token().kind, self.word()) {
            (Kind::Sign(";"), _) => d.help("statements end with the line; leave the `;` out"),
            (Kind::Sign(")" | "}" | "]"), _) => d.help("nothing that it could close is open"),
            (_, word @ ("AND" | "OR" | "NOT" | "IN")) => {
                d.help(format!("words are lower case: `{}`", word.to_lowercase()))
            }
            (_, "timezone" | "tz") => {
                d.help("the time zone is an option of the run: --time-zone Europe/Rome")
            }
            (_, "xor") => d.help("write `^`"),
            (_, word @ ("contains" | "matches" | "starts_with" | "ends_with")) => {
                d.help(format!("`{word}` is a function: `{word}(text, \"part\")`"))
            }
            (Kind::Name | Kind::Literal(_), _) => {
                d.help("an operator, a `,` or a `|` may be missing before it")
            }
            _ => d,
        }
    }
}
