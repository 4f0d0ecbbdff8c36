//! What runs, and changes of it.

use super::desk::{Desk, Listed};
use super::message::{Attached, Reply, Request, Text};
use super::sink::{Board, Coming, Member, New, Own};
use crate::output::{Leftovers, Unwritten};
use crate::stats::Stats;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::SystemTime;
use weir_capture::outlets::Outlets;
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_engine::run::{Change, Changes};
use weir_lang::{Files, Options, Query};
use weir_packet::egress::Outlet;
use weir_plan::change::{Continued, continued};
use weir_plan::together::side_by_side;
use weir_plan::{Input, Pipeline, Program, Schema, print};
use weir_sink::Names;

/// A program that runs.
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// Where its query is from.
    pub(crate) source: String,
    /// What it does.
    pub(crate) program: Program,
    since: SystemTime,
    member: Arc<Member>,
}

impl Entry {
    /// A program that comes now.
    #[expect(clippy::disallowed_methods, reason = "people ask since when it runs")]
    pub(crate) fn new(name: &str, source: &str, program: Program) -> Entry {
        Entry {
            name: name.to_owned(),
            source: source.to_owned(),
            program,
            since: SystemTime::now(),
            member: Arc::default(),
        }
    }

    /// The outputs that it has beside others.
    fn outputs(&self) -> Vec<Output> {
        let alone = vec![(self.name.clone(), self.program.clone())];
        side_by_side(alone).map_or_else(|_| Vec::new(), |program| Output::of(&program))
    }

    fn listed(&self) -> Listed {
        Listed {
            name: self.name.clone(),
            source: self.source.clone(),
            since: self.since,
            member: Arc::clone(&self.member),
        }
    }

    fn coming(&self, own: Option<Own>) -> Coming {
        let (name, member) = (self.name.clone(), Arc::clone(&self.member));
        Coming { name, outputs: self.outputs().len(), own, member }
    }
}

/// Makes a program's own sink, if programs have some.
pub(crate) type MakeOwn = Box<dyn FnMut(&str, &[Output]) -> anyhow::Result<Option<New>> + Send>;

/// What programs must keep to.
pub(crate) struct Rules {
    /// Where packets go that pass.
    pub(crate) write: Option<String>,
    /// Whose names columns have.
    pub(crate) names: Names,
    /// Whether standard output takes rows, and so no packets.
    pub(crate) shows: bool,
    /// Makes sinks.
    pub(crate) own: MakeOwn,
    /// Whether the run has given up what it did not need.
    pub(crate) confined: bool,
    /// Whether the last packets are kept.
    pub(crate) keeps: bool,
}

/// The programs of a run.
pub(crate) struct Deck {
    entries: Vec<Entry>,
    functions: Functions,
    rules: Rules,
    board: Arc<Board>,
    changes: Arc<Changes>,
    desk: Desk,
}

impl Deck {
    /// A deck of the programs that a run begins with, and the files that were made for them. Their
    /// sinks are laid down on the board.
    ///
    /// # Errors
    /// Where a sink can't be made: then none of the files is left.
    pub(crate) fn new(
        entries: Vec<Entry>,
        mut rules: Rules,
        board: Arc<Board>,
        changes: Arc<Changes>,
        stats: Stats,
    ) -> anyhow::Result<(Deck, Leftovers)> {
        let (mut coming, mut made) = (Vec::new(), Leftovers::default());
        for entry in &entries {
            let own = (rules.own)(&entry.name, &entry.outputs())?;
            let own = own.map(|New { sink, files }| {
                made.0.extend(files);
                sink
            });
            coming.push(entry.coming(own));
        }
        board.lay(coming);
        let functions = Functions::default();
        let deck = Deck { entries, functions, rules, board, changes, desk: Desk::new(stats) };
        deck.show();
        Ok((deck, made))
    }

    /// Does what is asked.
    pub(crate) fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::List => self.desk.list(),
            Request::Stats => self.desk.stats(),
            Request::Add(text) => self.put(text, false),
            Request::Replace(text) => self.put(text, true),
            Request::Remove { name } => self.remove(&name),
        }
    }

    /// What can be told of the programs while they change.
    pub(crate) fn desk(&self) -> Desk {
        self.desk.clone()
    }

    /// Lets the desk know which programs run.
    fn show(&self) {
        self.desk.show(self.entries.iter().map(Entry::listed).collect());
    }

    /// Adds a program, or lets it take the place of the one of its name.
    fn put(&mut self, text: Text, replaces: bool) -> Reply {
        let at = match self.place(&text.name, replaces) {
            Ok(at) => at,
            Err(reason) => return Reply::refusal(reason),
        };
        let (program, warnings) = match self.compile(&text) {
            Ok(compiled) => compiled,
            Err(reply) => return *reply,
        };
        let mut entry = Entry::new(&text.name, &text.source, program);
        if let Err(reason) = self.allows(&entry) {
            return Reply::refusal(reason);
        }
        let (own, files) = match self.sink_of(&mut entry, at) {
            Ok(Some(New { sink, files })) => (Some(sink), files),
            Ok(None) => (None, Vec::new()),
            Err(reason) => return Reply::refusal(reason),
        };
        let coming = entry.coming(own);
        let place = at.unwrap_or(self.entries.len());
        let mut next: Vec<Coming> = self.entries.iter().map(|e| e.coming(None)).collect();
        let mut programs = self.programs();
        let named = (entry.name.clone(), entry.program.clone());
        match at {
            Some(at) => (next[at], programs[at]) = (coming, named),
            None => {
                next.push(coming);
                programs.push(named);
            }
        }
        let done = match self.change(&programs, next) {
            Ok(done) => done,
            Err(reason) => {
                // Before anybody is told, and asks again: the sink lets go of them at its leisure.
                files.iter().for_each(Unwritten::remove);
                return Reply::refusal(reason);
            }
        };
        let first = programs[..place].iter().map(|(_, p)| p.pipelines.len()).sum();
        let did = if replaces { "replaced" } else { "added" };
        let mut reply = format!("{warnings}{did} {}\n", entry.name);
        if replaces {
            reply += &held(&entry.program, first, &done);
        }
        match at {
            Some(at) => self.entries[at] = entry,
            None => self.entries.push(entry),
        }
        self.show();
        Reply { text: reply, ..Reply::default() }
    }

    /// Which program one of this name takes the place of, if it replaces one.
    fn place(&self, name: &str, replaces: bool) -> Result<Option<usize>, String> {
        let at = self.entries.iter().position(|entry| entry.name == name);
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

    /// A sink for a program, where it is to have a new one. Rows that look as those of the program
    /// that it replaces go on where they went, unless that failed.
    fn sink_of(&mut self, entry: &mut Entry, at: Option<usize>) -> Result<Option<New>, String> {
        let outputs = entry.outputs();
        let looks_the_same = |old: Vec<Output>| {
            old.len() == outputs.len() && old.iter().zip(&outputs).all(|(a, b)| a.looks_like(b))
        };
        let goes_on = |old: &&Entry| old.member.failed().is_none() && looks_the_same(old.outputs());
        if let Some(old) = at.map(|at| &self.entries[at]).filter(goes_on) {
            entry.member = Arc::clone(&old.member);
            return Ok(None);
        }
        (self.rules.own)(&entry.name, &entry.outputs()).map_err(|e| format!("{e:#}"))
    }

    fn remove(&mut self, name: &str) -> Reply {
        let Some(at) = self.entries.iter().position(|entry| entry.name == name) else {
            return Reply::refusal(self.unknown(name));
        };
        let others = || self.entries.iter().enumerate().filter(|(i, _)| *i != at);
        let next = others().map(|(_, entry)| entry.coming(None)).collect();
        let programs: Vec<_> = others().map(|(_, e)| (e.name.clone(), e.program.clone())).collect();
        match self.change(&programs, next) {
            Ok(_) => {
                self.entries.remove(at);
                self.show();
                Reply { text: format!("removed {name}\n"), ..Reply::default() }
            }
            Err(reason) => Reply::refusal(reason),
        }
    }

    fn programs(&self) -> Vec<(String, Program)> {
        self.entries.iter().map(|e| (e.name.clone(), e.program.clone())).collect()
    }

    /// Lets these programs run from now on; says what of which stages was kept, and where pipelines
    /// went on.
    fn change(&self, programs: &[(String, Program)], next: Vec<Coming>) -> Result<Done, String> {
        let program = side_by_side(programs.to_vec()).map_err(|e| e.to_string())?;
        let continued = continued(&self.programs(), programs);
        let (told, answer) = mpsc::channel();
        let change = Change {
            program,
            continued: continued.clone(),
            // Whoever asked may have gone.
            told: Box::new(move |result| drop(told.send(result))),
        };
        self.board.lay(next);
        self.changes.send(change);
        match answer.recv() {
            Ok(Ok(kept)) => Ok(Done { kept, continued }),
            Ok(Err(e)) => {
                self.board.take_back();
                Err(self.denied(e.to_string()))
            }
            Err(_) => Err("the run has ended".to_owned()),
        }
    }

    /// The program and its warnings, or what is wrong with it.
    fn compile(&self, text: &Text) -> Result<(Program, String), Box<Reply>> {
        let files: BTreeMap<&str, &Attached> =
            text.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let query = Query { name: &text.source, text: &text.text };
        let options = Options {
            params: &text.params,
            signatures: self.functions.signatures(),
            files: Some(&Sent(files)),
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

    /// Whether a program may run beside the others.
    fn allows(&self, entry: &Entry) -> Result<(), String> {
        let Rules { write, names, shows, keeps, .. } = &self.rules;
        if !keeps && entry.program.captures().next().is_some() {
            let reason = "`capture` needs the packets before it, and this run keeps none: start it \
                          with --ring 64m, say; the files go where --capture-dir says then";
            return Err(reason.to_owned());
        }
        let outlets = entry.program.outlets();
        Outlets::check(&outlets, write.as_deref()).map_err(|e| e.to_string())?;
        if *shows && outlets.contains(&Outlet::Named("-".to_owned())) {
            return Err("packets can't go to standard output: rows go there".to_owned());
        }
        names.check(&entry.outputs()).map_err(|clash| clash.to_string())
    }

    /// A reason, with what the sandbox has to do with it.
    fn denied(&self, reason: String) -> String {
        match self.rules.confined && reason.contains("Permission denied") {
            true => format!(
                "{reason}; programs that come may write where the run was started, and in the \
                 folders of its -w and --out-dir; with --no-sandbox it lets them write anywhere"
            ),
            false => reason,
        }
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let there = match &names[..] {
            [] => "none runs".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        format!("no program is called {name}; {there}")
    }
}

/// What came of a change.
struct Done {
    /// The pipelines and stages that went on with what they held.
    kept: Vec<(usize, usize)>,
    /// Where pipelines went on.
    continued: Vec<Option<Continued>>,
}

/// Why a program may not be called so: names become keys of rows, and names of files.
fn bad_name(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let good = !name.is_empty() && name.len() <= 64 && name.chars().all(plain);
    let rule = "at most 64 letters, digits, `_` and `-`";
    (!good).then(|| format!("{name:?} is no name of a program: expected {rule}"))
}

/// What stages of a program that was replaced went on with, and what began anew, in lines.
/// `first`: the number of its first pipeline.
fn held(program: &Program, first: usize, done: &Done) -> String {
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
    let mut schema = match pipeline.input {
        Input::Packets => Schema::default(),
        Input::Pipeline(i) => program.pipelines[i].schema.clone(),
    };
    let mut out = Vec::new();
    for (s, stage) in pipeline.stages.iter().enumerate() {
        if stage.holds_state() {
            out.push((s, print::stage(stage, &schema)));
        }
        schema = stage.output(&schema);
    }
    out
}

/// Files that came with a question.
struct Sent<'a>(BTreeMap<&'a str, &'a Attached>);

impl std::fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Files for Sent<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let file = self.0.get(path).map(|file| file.bytes.clone());
        file.ok_or_else(|| "was not sent along".to_owned())
    }
}
