//! The programs of a run, and changes of them.

use crate::cleanup::Cleanup;
use crate::limits::NAME_MAX;
use crate::message::{Attached, QueryText, Reply, Request};
use crate::overview::{AskReport, Overview, stages};
use crate::passes::ChangeBy;
use crate::pending::{NextProgram, PendingChanges, ProgramSink};
use crate::program::RunningProgram;
use crate::site::SiteParams;
use crate::suppressions::Suppressions;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc;
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_engine::run::Change;
use weir_lang::{Files, Options, Query};
use weir_plan::change::{Continued, continued};
use weir_plan::together::side_by_side;
use weir_plan::{Pipeline, Program};

/// A program's own sink that is new.
pub struct NewSink {
    /// The sink.
    pub sink: ProgramSink,
    /// Removes what was made for it, until it is opened.
    pub cleanup: Cleanup,
}

/// Makes a program's own sink for its outputs, if programs have sinks of their own; or says why it
/// can't be made. It is called for the programs that the run begins with, in their order, and then
/// for those that come later.
pub type MakeSink = Box<dyn FnMut(&[Output]) -> Result<Option<NewSink>, String> + Send>;

/// Says whether a program with these outputs may run; if not, why.
pub type Allows = Box<dyn Fn(&Program, &[Output]) -> Result<(), String> + Send>;

/// The rules of a run for its programs.
pub struct Rules {
    /// Refuses programs that may not run here.
    pub allows: Allows,
    /// Makes sinks.
    pub make_sink: MakeSink,
    /// The alerts that are not reported.
    pub suppressions: Suppressions,
    /// Values for the params that programs leave open.
    pub site: SiteParams,
}

/// The programs of a run.
pub struct Registry {
    programs: Vec<RunningProgram>,
    functions: Functions,
    rules: Rules,
    pending: Arc<PendingChanges>,
    changes: ChangeBy,
    overview: Overview,
}

impl Registry {
    /// The programs that a run begins with. Their sinks are added to `pending`. The result also
    /// removes what was made for the sinks, until they are opened.
    ///
    /// # Errors
    /// If a sink can't be made; what was made for the others is removed then.
    pub fn new(
        programs: Vec<RunningProgram>,
        mut rules: Rules,
        pending: Arc<PendingChanges>,
        changes: ChangeBy,
        report: AskReport,
    ) -> Result<(Registry, Cleanup), String> {
        let (mut next, mut cleanup) = (Vec::new(), Cleanup::default());
        for program in &programs {
            let own = (rules.make_sink)(&program.outputs())?;
            let own = own.map(|new| {
                cleanup.absorb(new.cleanup);
                new.sink
            });
            next.push(program.next(own));
        }
        pending.add(next);
        let (functions, overview) = (Functions::default(), Overview::new(report));
        let registry = Registry { programs, functions, rules, pending, changes, overview };
        registry.show();
        Ok((registry, cleanup))
    }

    /// Does what a client asks.
    pub(crate) fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::List => self.overview.list(),
            Request::Stats => self.overview.stats(),
            Request::Add(text) => self.add_or_replace(text, false),
            Request::Replace(text) => self.add_or_replace(text, true),
            Request::Remove { name } => self.remove(&name),
            Request::Suppressions
            | Request::Suppress { .. }
            | Request::Unsuppress { .. }
            | Request::ReloadSuppressions { .. } => self.rules.suppressions.answer(request),
        }
    }

    /// The alerts that are not reported.
    pub(crate) fn suppressions(&self) -> Suppressions {
        self.rules.suppressions.clone()
    }

    /// Answers about the programs while they change.
    pub(crate) fn overview(&self) -> Overview {
        self.overview.clone()
    }

    /// Lists the programs that run now.
    fn show(&self) {
        self.overview.show(self.programs.iter().map(RunningProgram::listed).collect());
    }

    /// Adds a program, or replaces the one with its name.
    fn add_or_replace(&mut self, text: QueryText, replaces: bool) -> Reply {
        let at = match self.place(&text.name, replaces) {
            Ok(at) => at,
            Err(reason) => return Reply::refusal(reason),
        };
        let (program, warnings) = match self.compile(&text) {
            Ok(compiled) => compiled,
            Err(reply) => return *reply,
        };
        let mut new = RunningProgram::new(&text.name, &text.source, program).with_text(&text.text);
        if let Err(reason) = (self.rules.allows)(&new.program, &new.outputs()) {
            return Reply::refusal(reason);
        }
        let (own, cleanup) = match self.sink_of(&mut new, at) {
            Ok(Some(NewSink { sink, cleanup })) => (Some(sink), cleanup),
            Ok(None) => (None, Cleanup::default()),
            Err(reason) => return Reply::refusal(reason),
        };
        let next_program = new.next(own);
        let place = at.unwrap_or(self.programs.len());
        let mut next: Vec<NextProgram> = self.programs.iter().map(|p| p.next(None)).collect();
        let mut programs = self.named();
        let named = new.named();
        match at {
            Some(at) => (next[at], programs[at]) = (next_program, named),
            None => {
                next.push(next_program);
                programs.push(named);
            }
        }
        let done = match self.change(&programs, next) {
            Ok(done) => done,
            Err(reason) => {
                // Before the client learns of it and asks again: the sink may close its files
                // later.
                drop(cleanup);
                return Reply::refusal(reason);
            }
        };
        cleanup.cancel();
        let first = programs[..place].iter().map(|(_, p)| p.pipelines.len()).sum();
        let did = if replaces { "replaced" } else { "added" };
        let mut reply = format!("{warnings}{did} {}\n", new.name);
        if replaces {
            reply += &kept_and_new(&new.program, first, &done);
        }
        match at {
            Some(at) => self.programs[at] = new,
            None => self.programs.push(new),
        }
        self.show();
        Reply { text: reply, ..Reply::default() }
    }

    /// The position of the program that one of this name replaces, if it replaces one.
    fn place(&self, name: &str, replaces: bool) -> Result<Option<usize>, String> {
        let at = self.programs.iter().position(|program| program.name == name);
        match (replaces, at) {
            (true, None) => return Err(self.unknown(name)),
            (false, Some(_)) => {
                return Err(format!(
                    "a program called {name} runs already: `weir ctl replace {name} …` changes \
                     it, --name gives another name"
                ));
            }
            _ => {}
        }
        bad_name(name).map_or(Ok(at), Err)
    }

    /// A new sink for a program, where it needs one. If its rows have the columns of the program
    /// that it replaces, and that program's sink has not failed, they go on to that sink.
    fn sink_of(
        &mut self,
        new: &mut RunningProgram,
        at: Option<usize>,
    ) -> Result<Option<NewSink>, String> {
        let outputs = new.outputs();
        let looks_the_same = |old: Vec<Output>| {
            old.len() == outputs.len() && old.iter().zip(&outputs).all(|(a, b)| a.looks_like(b))
        };
        let goes_on =
            |old: &&RunningProgram| old.counts.failed().is_none() && looks_the_same(old.outputs());
        if let Some(old) = at.map(|at| &self.programs[at]).filter(goes_on) {
            new.counts = Arc::clone(&old.counts);
            return Ok(None);
        }
        (self.rules.make_sink)(&outputs)
    }

    fn remove(&mut self, name: &str) -> Reply {
        let Some(at) = self.programs.iter().position(|program| program.name == name) else {
            return Reply::refusal(self.unknown(name));
        };
        let others = || self.programs.iter().enumerate().filter(|(i, _)| *i != at);
        let next = others().map(|(_, program)| program.next(None)).collect();
        let programs: Vec<_> = others().map(|(_, e)| e.named()).collect();
        match self.change(&programs, next) {
            Ok(_) => {
                self.programs.remove(at);
                self.show();
                Reply { text: format!("removed {name}\n"), ..Reply::default() }
            }
            Err(reason) => Reply::refusal(reason),
        }
    }

    fn named(&self) -> Vec<(String, Program)> {
        self.programs.iter().map(RunningProgram::named).collect()
    }

    /// Makes the run change to these programs; says which stages kept their state, and which
    /// pipelines went on.
    fn change(
        &self,
        programs: &[(String, Program)],
        next: Vec<NextProgram>,
    ) -> Result<Done, String> {
        let program = side_by_side(programs.to_vec()).map_err(|e| e.to_string())?;
        let changes = match &self.changes {
            ChangeBy::Continuing(changes) => changes,
            ChangeBy::ReadingAgain(passes) => {
                passes.demand(program, |replaces| {
                    if replaces {
                        self.pending.take_back();
                    }
                    self.pending.add(next);
                });
                let continued = vec![None; programs.len()];
                return Ok(Done { kept: Vec::new(), continued });
            }
        };
        let continued = continued(&self.named(), programs);
        let (report, answer) = mpsc::channel();
        let change = Change {
            program,
            continued: continued.clone(),
            // The client may have gone.
            report: Box::new(move |result| drop(report.send(result))),
        };
        self.pending.add(next);
        changes.send(change);
        match answer.recv() {
            Ok(Ok(kept)) => Ok(Done { kept, continued }),
            Ok(Err(e)) => {
                self.pending.take_back();
                Err(e.to_string())
            }
            Err(_) => Err("the run has ended".to_owned()),
        }
    }

    /// The program and its warnings, or what is wrong with it.
    fn compile(&self, text: &QueryText) -> Result<(Program, String), Box<Reply>> {
        let files: BTreeMap<&str, &Attached> =
            text.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let query = Query { name: &text.source, text: &text.text };
        let params = self.rules.site.params(text);
        let files = KnownFiles { sent: files, site: &self.rules.site };
        let options = Options {
            params: &params,
            program: &text.name,
            signatures: self.functions.signatures(),
            files: Some(&files),
            rules: self.rules.site.rules,
            library: self.rules.site.library,
        };
        match weir_lang::compile(&query, &options) {
            Ok(compiled) => {
                let warnings = weir_lang::render(&compiled.warnings, &query, false);
                Ok((compiled.program, warnings))
            }
            Err(diagnostics) => Err(Box::new(Reply {
                error: Some(format!("{} has errors", text.source)),
                text: weir_lang::render(&diagnostics, &query, false),
                ..Reply::default()
            })),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.programs.iter().map(|program| program.name.as_str()).collect();
        let there = match &names[..] {
            [] => "none runs".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        format!("no program is called {name}; {there}")
    }
}

/// The result of a change.
struct Done {
    /// The pipelines and stages that kept their state.
    kept: Vec<(usize, usize)>,
    /// Where pipelines went on.
    continued: Vec<Option<Continued>>,
}

/// Why a program can't have a name. Names become keys of rows, and names of files.
fn bad_name(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let good = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain);
    let rule = format!("at most {NAME_MAX} letters, digits, `_` and `-`");
    (!good).then(|| format!("{name:?} can't be the name of a program: expected {rule}"))
}

/// Lines that say which stages of a replaced program kept their state, and which began anew.
/// `first`: the number of its first pipeline.
fn kept_and_new(program: &Program, first: usize, done: &Done) -> String {
    let mut out = String::new();
    for (p, pipeline) in program.pipelines.iter().enumerate() {
        let went_on = done.continued.get(first + p).is_some_and(Option::is_some);
        for (s, text) in stateful(program, pipeline) {
            let what = match done.kept.contains(&(first + p, s)) {
                true => "kept      ",
                false if went_on => "began anew",
                false => "new       ",
            };
            let _ = writeln!(out, "{what} {text}");
        }
    }
    out
}

/// The stages of a pipeline that remember rows, with their numbers.
fn stateful(program: &Program, pipeline: &Pipeline) -> Vec<(usize, String)> {
    let texts = stages(program, pipeline).into_iter().enumerate();
    texts.filter(|(s, _)| pipeline.stages[*s].holds_state()).collect()
}

/// Files that came with a request, and those of the site.
struct KnownFiles<'a> {
    sent: BTreeMap<&'a str, &'a Attached>,
    site: &'a SiteParams,
}

impl std::fmt::Debug for KnownFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.sent.keys()).finish()
    }
}

impl Files for KnownFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let sent = self.sent.get(path).map(|file| file.bytes.as_slice());
        let file = sent.or_else(|| self.site.file(path)).map(<[u8]>::to_vec);
        file.ok_or_else(|| "was not sent with the request".to_owned())
    }
}
