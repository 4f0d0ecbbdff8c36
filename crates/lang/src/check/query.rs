//! A query: its statements, and its pipelines.

use super::checker::{Built, Checker};
use super::{ends, stage};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::import::Imported;
use crate::names::{Meaning, Scope};
use crate::query::Options;
use crate::suggest;
use crate::tree::{Expr, ExprKind, LetBody, Name, Pipeline, Spanned, Stage, Statement, Tree};
use std::collections::BTreeMap;
use weir_packet::fields;
use weir_plan::limits::{OUTPUTS_MAX, PIPELINES_MAX, STAGES_MAX};
use weir_plan::together::output_names;
use weir_plan::{Input, Program, SourceKind};

/// Checks a query and builds its program. The program means something only if no diagnostic is an
/// error.
pub(crate) fn check<'t>(
    tree: &'t Tree,
    text: &'t str,
    options: &Options<'t>,
    imports: &'t [Imported],
) -> (Program, Vec<Diagnostic>) {
    let mut checker = Checker::new(text, options);
    imports.iter().for_each(|import| checker.import(import, options));
    checker.below = names_of_lets(tree);
    checker.source = checker.source_with(tree);
    checker.unknown_params(tree, imports, options);
    for statement in &tree.statements {
        checker.statement(&statement.node, options);
    }
    let mut program = checker.finish();
    name_rules(&mut program, options.program, &checker);
    (program, checker.diagnostics)
}

/// How rows are kept where an end of this word takes the packets.
fn go_on(word: &str) -> &'static str {
    match word {
        "branch" => "let rows of an arm go on: `-> pass | next`",
        "forward" => "`mirror` sends a copy, and its rows go on",
        _ => "put the packets in a `let`, and start a pipeline for each use of them",
    }
}

/// Whether a stage may follow one that ends a pipeline for the others.
fn goes_on_with(before: Option<&Stage>, stage: &Stage) -> bool {
    matches!(before, Some(Stage::Metric(_)))
        && matches!(stage, Stage::Metric(_) | Stage::Capture(_) | Stage::Print)
}

/// Names the rules of alerts after the outputs that their pipelines have among several programs,
/// and those of the library as they are called there.
fn name_rules(program: &mut Program, name: &str, checker: &Checker<'_>) {
    let names = output_names(name, program);
    for (pipeline, own) in program.pipelines.iter_mut().zip(names) {
        let of_library = pipeline.name.clone().filter(|name| checker.imported.contains_key(name));
        let own = of_library.or(own);
        for stage in &mut pipeline.stages {
            if let weir_plan::Stage::Alert(alert) = stage {
                alert.rule = own.clone().unwrap_or_else(|| name.to_owned());
            }
        }
    }
}

/// The source that a query reads: flow records, if a pipeline begins with their word, which may
/// also be the name of a `let`.
pub(super) fn source_of(tree: &Tree, lets: &BTreeMap<&str, Span>) -> SourceKind {
    let begins = |statement: &Spanned<Statement>| match &statement.node {
        Statement::Pipeline(pipeline) => is_records(&pipeline.source.node),
        Statement::Let { body: LetBody::Pipeline(pipeline), .. } => {
            is_records(&pipeline.source.node)
        }
        Statement::Let { body: LetBody::Expr(expr), .. } => {
            matches!(&expr.node, ExprKind::Name(word) if is_records(word))
        }
        _ => false,
    };
    let is_name = lets.keys().any(|name| is_records(name));
    match tree.statements.iter().any(begins) && !is_name {
        true => SourceKind::FlowRecords,
        false => SourceKind::Packets,
    }
}

fn is_records(word: &str) -> bool {
    word == SourceKind::FlowRecords.name()
}

pub(super) fn names_of_lets(tree: &Tree) -> BTreeMap<&str, Span> {
    let lets = tree.statements.iter().filter_map(|s| match &s.node {
        Statement::Let { name, .. } => Some((name.node.as_str(), name.span)),
        _ => None,
    });
    lets.collect()
}

impl<'t> Checker<'t> {
    /// The source of a query, and of those of the library that it starts from.
    fn source_with(&self, tree: &'t Tree) -> SourceKind {
        let own = source_of(tree, &self.below);
        let reads_packets = tree.statements.iter().any(|statement| match &statement.node {
            Statement::Pipeline(pipeline)
            | Statement::Let { body: LetBody::Pipeline(pipeline), .. } => {
                pipeline.source.node == SourceKind::Packets.name()
            }
            _ => false,
        });
        let mut kinds = self.imported.values().map(|(_, kind)| *kind);
        match kinds.next() {
            Some(kind) if !reads_packets => kind,
            _ => own,
        }
    }

    pub(super) fn statement(&mut self, statement: &'t Statement, options: &Options<'_>) {
        match statement {
            Statement::Broken(name) => {
                self.below.remove(name.node.as_str());
                self.define(name, Meaning::Unknown);
            }
            Statement::Param { name, ty, default } => self.param(name, ty, default, options),
            Statement::Let { name, body } => {
                self.below.remove(name.node.as_str());
                self.let_statement(name, body);
            }
            Statement::Pipeline(pipeline) => {
                self.pipeline(pipeline, None);
            }
        }
    }

    pub(super) fn define(&mut self, name: &'t Name, meaning: Meaning<'t>) {
        let word = name.node.as_str();
        let taken = if Scope::of(self.source).field(word).is_some() {
            Some(match self.source {
                SourceKind::Packets => format!("`{word}` is already a packet field"),
                SourceKind::FlowRecords => format!("`{word}` is already a field of flow records"),
            })
        } else if fields::key_by_name(word).is_some() {
            Some(format!("`{word}` is already a key of packets"))
        } else {
            None
        };
        if let Some(message) = taken {
            let d = Diagnostic::new(Code::TakenName, name.span, message);
            self.report(d.help(format!("choose another name, such as `my_{word}`")));
            // Uses of the name are not looked into.
            let _ = self.definitions.define(word, name.span, Meaning::Unknown);
        } else if let Err(earlier) = self.definitions.define(word, name.span, meaning) {
            let message = format!("`{word}` is defined twice");
            let d = Diagnostic::new(Code::TakenName, name.span, message);
            self.report(d.note_at(earlier, "first here"));
        }
    }

    fn let_statement(&mut self, name: &'t Name, body: &'t LetBody) {
        let pipeline = match body {
            LetBody::Pipeline(pipeline) => Some(self.pipeline(pipeline, Some(&name.node))),
            LetBody::Expr(Expr { node: ExprKind::Name(word), span }) => {
                match self.definitions.find(word).map(|d| &d.meaning) {
                    Some(Meaning::Pipeline(_)) => {
                        let source = Name::new(word.clone(), *span);
                        let same = Pipeline { source, stages: Vec::new() };
                        Some(self.pipeline(&same, Some(&name.node)))
                    }
                    None if is_records(word) && self.source == SourceKind::FlowRecords => {
                        let source = Name::new(word.clone(), *span);
                        let all = Pipeline { source, stages: Vec::new() };
                        Some(self.pipeline(&all, Some(&name.node)))
                    }
                    _ => None,
                }
            }
            LetBody::Expr(_) => None,
        };
        let meaning = match (pipeline, body) {
            (Some(number), _) => Meaning::Pipeline(number),
            (None, LetBody::Expr(expr)) => {
                let sound = self.root(&Scope::of(self.source), expr).is_some();
                Meaning::Alias { expr, sound }
            }
            (None, LetBody::Pipeline(_)) => unreachable!("a pipeline has a number"),
        };
        self.define(name, meaning);
    }
}

/// Pipelines.
impl<'t> Checker<'t> {
    /// Checks a pipeline and gives its number.
    fn pipeline(&mut self, pipeline: &Pipeline, name: Option<&str>) -> usize {
        let (input, stages, scope) = self.source(&pipeline.source);
        let mut built = Built {
            name: name.map(str::to_owned),
            is_imported: false,
            input,
            stages,
            scope,
            read: false,
            rows_read: false,
            print: None,
            end: None,
            idle_edit: None,
        };
        for (i, stage) in pipeline.stages.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &pipeline.stages[i].node);
            if let Some(print) = built.print.filter(|_| !goes_on_with(before, &stage.node)) {
                let word = match before {
                    Some(Stage::Capture(_)) => "capture",
                    Some(Stage::Metric(_)) => "metric",
                    _ => "print",
                };
                let message = format!("no stage follows `{word}`");
                let d = Diagnostic::new(Code::AfterPrint, stage.span, message);
                self.report(d.note_at(print, "the pipeline ends here"));
                break;
            }
            if let Some((end, word)) = built.end {
                let message = format!("no rows are left after `{word}`");
                let d = Diagnostic::new(Code::AfterEnd, stage.span, message);
                self.report(d.note_at(end, "all packets leave here").help(go_on(word)));
                break;
            }
            if let Stage::Print | Stage::Capture(_) | Stage::Metric(_) = stage.node {
                built.print = Some(stage.span);
            }
            self.stage(&mut built, stage);
            if built.stages.len() > STAGES_MAX {
                let message = format!("a pipeline has at most {STAGES_MAX} stages");
                self.report(Diagnostic::new(Code::TooLarge, stage.span, message));
                break;
            }
        }
        self.built.push(built);
        self.built.len() - 1
    }

    /// Where the rows of a pipeline come from, and what is done to them already.
    fn source(&mut self, source: &Name) -> (Input, Vec<weir_plan::Stage>, Scope) {
        let word = source.node.as_str();
        if word == "packets" || is_records(word) && self.source == SourceKind::FlowRecords {
            if word != self.source.name() {
                self.both_sources(source);
            }
            return (Input::Packets, Vec::new(), Scope::of(self.source));
        }
        let found = self.definitions.find(word).map(|d| (d.meaning.clone(), d.span));
        let found = found.or_else(|| {
            self.imported(word, source.span)
                .map(|number| (Meaning::Pipeline(number), Span::NOWHERE))
        });
        match found {
            Some((Meaning::Pipeline(number), _)) => {
                let built = &mut self.built[number];
                built.read = true;
                let (scope, end) = (built.scope.clone(), built.end);
                if let Some((end, last)) = end {
                    let message = format!("no rows come out of `{word}`");
                    let d = Diagnostic::new(Code::AfterEnd, source.span, message);
                    self.report(d.note_at(end, "all packets leave here").help(go_on(last)));
                    return (Input::Packets, Vec::new(), Scope::unknown());
                }
                let built = &mut self.built[number];
                if scope.packets {
                    // Packets are handed on as packets, with all their fields: the stages are
                    // taken over.
                    return (built.input, ends::without_ends(&built.stages), scope);
                }
                built.rows_read = true;
                (Input::Pipeline(number), Vec::new(), scope)
            }
            Some((Meaning::Unknown, _)) => (Input::Packets, Vec::new(), Scope::unknown()),
            Some((_, defined)) => {
                let message = format!("`{word}` is a value; a pipeline starts with rows");
                let d = Diagnostic::new(Code::NotAValue, source.span, message);
                self.report(d.note_at(defined, "defined here"));
                (Input::Packets, Vec::new(), Scope::unknown())
            }
            None => {
                self.unknown_source(source);
                (Input::Packets, Vec::new(), Scope::unknown())
            }
        }
    }

    /// Reports packets in a query that reads flow records.
    fn both_sources(&mut self, packets: &Name) {
        let message = "this query reads flow records, and packets have another source";
        let d = Diagnostic::new(Code::MixedSources, packets.span, message);
        self.report(d.help("make two queries, and run each over its own source"));
    }

    pub(super) fn unknown_source(&mut self, source: &Name) {
        let word = source.node.as_str();
        if let Some(below) = self.below.get(word) {
            let message = format!("`{word}` is defined only further down");
            let d = Diagnostic::new(Code::NotYetDefined, source.span, message);
            self.report(d.note_at(*below, "move this up"));
            return;
        }
        let message = format!("no pipeline is called `{word}`");
        let d = Diagnostic::new(Code::UnknownPipeline, source.span, message);
        let known = self.definitions.iter().filter_map(|(name, d)| match d.meaning {
            Meaning::Pipeline(_) => Some(name),
            _ => None,
        });
        let near = suggest::did_you_mean(word, known.chain(["packets", "flows"]));
        let field = fields::by_name(word).is_some();
        let counted = !field && fields::key_by_name(word).is_some();
        self.report(match (near, field) {
            _ if counted => d.help(format!(
                "write `packets | summarize packets = count(), bytes = sum(len) by {word}`"
            )),
            (Some(help), _) => d.help(help),
            (None, true) if source.span.start == 0 => {
                d.help(format!("write `packets | where {word}`"))
            }
            (None, true) => {
                d.help("to go on with the line above, put an operator such as `and` before it")
            }
            (None, false) => {
                d.help("a pipeline starts with `packets`, or with the name of a `let`")
            }
        });
    }

    /// The program of what was built, once all statements are checked.
    fn finish(&mut self) -> Program {
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            return Program::default();
        }
        self.stray_lets();
        self.leave_unneeded();
        let mut program = Program { pipelines: Vec::new(), source: self.source };
        let mut numbers = Vec::new();
        for built in std::mem::take(&mut self.built) {
            numbers.push(program.pipelines.len());
            let ended = built.end.is_some();
            let printed = (!built.read || built.print.is_some()) && !ended;
            if let Some(span) = built.idle_edit.filter(|_| !built.read) {
                let message = "no packets leave after this, so it changes no frame";
                let d = Diagnostic::new(Code::Unused, span, message);
                self.report(d.help("forward packets after it, such as `| forward \"x.pcap\"`"));
            }
            if printed || built.rows_read || ends::until_last_end(&built.stages) > 0 {
                program.pipelines.push(stage::finish(built, printed, &numbers));
            }
        }
        let end = self.text.trim_end().len();
        if program.pipelines.is_empty() {
            let d =
                Diagnostic::new(Code::NoPipeline, Span::new(end, end), "the query has no pipeline");
            self.report(
                d.help("write a pipeline, such as `packets | summarize count() by ip.src`"),
            );
        } else if program.pipelines.len() > PIPELINES_MAX {
            let message = format!("a query has at most {PIPELINES_MAX} pipelines");
            self.report(Diagnostic::new(Code::TooLarge, Span::new(end, end), message));
        } else if program.outlets().len() > OUTPUTS_MAX {
            let message = format!("a query has at most {OUTPUTS_MAX} outputs for packets");
            self.report(Diagnostic::new(Code::TooLarge, Span::new(end, end), message));
        } else {
            self.unused();
        }
        program
    }

    /// Warns of lets whose rows are printed only since no pipeline reads them, where the query has
    /// an output without a name: of several lets, all may be meant as outputs.
    fn stray_lets(&mut self) {
        let is_output = |b: &Built| !b.read && b.end.is_none();
        if !self.built.iter().any(|b| b.name.is_none() && is_output(b)) {
            return;
        }
        let acts = |b: &Built| {
            let alert = b.stages.iter().any(|s| matches!(s, weir_plan::Stage::Alert(_)));
            alert || b.print.is_some() || ends::until_last_end(&b.stages) > 0
        };
        let lets = self.definitions.iter().filter_map(|(name, d)| match d.meaning {
            Meaning::Pipeline(number) => Some((name, d.span, &self.built[number])),
            _ => None,
        });
        let stray = lets.filter(|(.., built)| is_output(built) && !acts(built));
        let warnings: Vec<Diagnostic> = stray
            .map(|(name, span, _)| {
                let message = format!("no pipeline reads `{name}`, so its rows are printed, too");
                let d = Diagnostic::new(Code::Unused, span, message);
                d.help("end it with `| print` where that is meant, or take it out")
            })
            .collect();
        warnings.into_iter().for_each(|d| self.report(d));
    }

    fn unused(&mut self) {
        let unused: Vec<Diagnostic> = self
            .definitions
            .iter()
            .filter(|(_, d)| !d.used)
            .filter_map(|(name, d)| {
                let kind = match d.meaning {
                    Meaning::Param(_) | Meaning::Set(_) => "param",
                    Meaning::Alias { .. } => "let",
                    Meaning::Pipeline(_) | Meaning::Unknown => return None,
                };
                let message = format!("the {kind} `{name}` is never used");
                Some(Diagnostic::new(Code::Unused, d.span, message))
            })
            .collect();
        unused.into_iter().for_each(|d| self.report(d));
    }
}
