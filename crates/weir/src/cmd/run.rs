//! `weir run`: queries over a capture, to rows and a ledger.

mod ending;
mod opening;

use crate::args::{RunArgs, RunOptions, SlowSink};
use crate::control::{self, Limits};
use crate::exit::{Status, usage};
use crate::output::{Fresh, Taken};
use crate::programs::{self, Programs};
use crate::progress::Progress;
use crate::stats::Stats;
use crate::term::Term;
use crate::wire::Notes;
use crate::{cmd, lookback, output, signals};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::lookback::Lookback;
use weir_capture::outlets::{Outlets, Report};
use weir_capture::write::{Made, StoppableWriter};
use weir_control::{
    Cleanup, MakeSink, NewSink, PendingChanges, ProgramSinks, Registry, RowTarget, Rules,
    RunningProgram, Server,
};
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::rows::Output;
use weir_engine::rows::Sink;
use weir_engine::run::{Changes, Options};
use weir_packet::egress::Outlet;
use weir_packet::interface::InterfaceNames;
use weir_plan::Program;
use weir_plan::together::side_by_side;
use weir_sandbox::UserIds;
use weir_sink::queue::{Queue, WhenFull};
use weir_sink::{Format, RowOptions, json};

/// Queries, what they read, and how.
pub(crate) struct Job {
    /// The queries.
    pub(crate) programs: Programs,
    /// The capture filter; empty for none.
    pub(crate) filter: String,
    /// Everything else.
    pub(crate) options: RunOptions,
}

/// Runs `weir run`.
pub(crate) fn run(args: RunArgs, term: &Term) -> anyhow::Result<Status> {
    let RunArgs { expressions, words, filter, options } = args;
    if options.live.list_interfaces {
        return cmd::interfaces::list(options.output, term);
    }
    let (queries, rest) = words.split_at(programs::leading(&words, !expressions.is_empty()));
    if queries.iter().any(|word| word == "-") && options.reads_stdin() {
        return Err(usage(
            "standard input can't be both the query and the capture; use -e or a file",
        ));
    }
    let programs = match (&expressions[..], queries) {
        ([], []) if options.control.is_some() => Programs::none(),
        _ => Programs::given(&expressions, queries)?,
    };
    let filter = [rest, &filter].concat().join(" ");
    job(Job { programs, filter, options }, term)
}

/// Checks and runs a job.
pub(crate) fn job(job: Job, term: &Term) -> anyhow::Result<Status> {
    let Job { programs, filter, options } = job;
    if options.live.list_interfaces {
        return cmd::interfaces::list(options.output, term);
    }
    options.live.check()?;
    options.live.possible().map_err(usage)?;
    options.write.check()?;
    only_filters(&filter)?;
    let filter = options.filter(&filter)?;
    if options.read.iter().filter(|name| *name == "-").count() > 1 {
        return Err(usage("standard input can be one capture only"));
    }
    let functions = Functions::default();
    let Some((program, entries)) = compile(&programs, &options, &functions, term)? else {
        return Ok(Status::Usage);
    };
    let changes = options.control.is_some();
    let format = match (options.output, &options.out_dir) {
        (None, Some(_)) => &json::FORMAT,
        (chosen, _) => output::choose(chosen, term),
    };
    let printed = program.pipelines.iter().filter(|p| p.printed).count();
    if (printed > 1 || changes) && options.out_dir.is_none() {
        let outputs = match changes {
            true => "outputs come and go".to_owned(),
            false => format!("there are {printed} outputs"),
        };
        output::one_place(format, &outputs).map_err(usage)?;
    }
    let outputs = Output::of(&program);
    weir_sink::Names::from(options.names).check(&outputs).map_err(|clash| {
        usage(format!("{clash} with these --names; give one another name in the query"))
    })?;
    let format = if printed == 0 && !changes { &json::FORMAT } else { format };
    let shows = (printed > 0 || changes) && options.out_dir.is_none();
    writes(&program, options.write.to.as_deref(), (shows, changes))?;
    let sends = || opening::sends_by_dpdk(&program, &options);
    if options.live.dpdk_args.is_some() && !options.live.is_dpdk() && sends().is_empty() {
        return Err(usage(
            "--dpdk-args is of captures by DPDK, and of outputs that are its devices: add \
             --capture dpdk",
        ));
    }
    let filter = match filter.as_str() {
        "" => None,
        text => Some(Filter::new(text).map_err(|e| filter_error(e, text))?),
    };
    if options.test {
        return Ok(Status::Ok);
    }
    if options.read.is_empty() && options.live.interface.is_empty() {
        return Err(usage("no capture given: use -r CAPTURE or -i INTERFACE"));
    }
    opening::tell_plan(&program, &functions, &options, term);
    let (options, notes, names) = (&options, Notes::default(), InterfaceNames::default());
    let stop = Arc::default();
    // Asked of the system while that may still be asked.
    let memory = options.memory.bytes();
    let run = Run {
        program,
        entries,
        functions,
        filter,
        format,
        options,
        term,
        notes,
        names,
        stop,
        memory,
    };
    run.start()
}

/// All queries as one program; by themselves, too, where they may change. `None`: there were errors
/// among them.
fn compile(
    programs: &Programs,
    options: &RunOptions,
    functions: &Functions,
    term: &Term,
) -> anyhow::Result<Option<(Program, Vec<RunningProgram>)>> {
    let (params, quiet) = (&options.params, options.quiet);
    if options.control.is_none() {
        let named = options.out_dir.is_some();
        let compiled = programs.compile(params, named, functions, quiet, term)?;
        return Ok(compiled.map(|program| (program, Vec::new())));
    }
    let Some(each) = programs.compile_each(params, functions, quiet, term)? else {
        return Ok(None);
    };
    let program = side_by_side(each.clone()).map_err(|e| usage(e.to_string()))?;
    let sources = programs.sources().iter();
    let entry = |((name, program), source): ((String, Program), &crate::query::Source)| {
        RunningProgram::new(&name, &source.name, program)
    };
    Ok(Some((program, each.into_iter().zip(sources).map(entry).collect())))
}

/// Refuses outputs that would get nothing, or rows between their packets.
fn writes(
    program: &Program,
    write: Option<&str>,
    (shows, changes): (bool, bool),
) -> anyhow::Result<()> {
    let outlets = program.outlets();
    if let Some(write) = write.filter(|_| !outlets.contains(&Outlet::Pass) && !changes) {
        return Err(usage(format!(
            "-w {write}: the query passes no packets; end it with `| pass`, or say there where \
             they go: `| forward \"{write}\"`"
        )));
    }
    Outlets::check(&outlets, write).map_err(|e| usage(e.to_string()))?;
    let named = outlets.iter().any(|outlet| *outlet == Outlet::Named("-".to_owned()));
    if shows && (named || write == Some("-")) {
        return Err(usage("packets can't go to standard output: the query prints rows there"));
    }
    Ok(())
}

/// Refuses a second capture that is given, as `-r *.pcap` does, as if it were a filter.
fn only_filters(filter: &str) -> anyhow::Result<()> {
    // A file may bear the name of a word that begins filters; those are of letters and digits.
    let word = filter.split_whitespace().next().unwrap_or_default();
    let keyword = word.bytes().all(|b| b.is_ascii_alphanumeric());
    if !keyword && Path::new(word).is_file() {
        return Err(usage(format!(
            "{word} is a file, not a capture filter: each capture needs its own -r, and a query \
             after the first ends in .weir"
        )));
    }
    Ok(())
}

/// A refused expression is a wrong argument; a missing libpcap is not.
fn filter_error(e: FilterError, filter: &str) -> anyhow::Error {
    match (&e, programs::meant_query(filter)) {
        (FilterError::Expression { .. }, Some(query)) => {
            usage(format!("{e}; or did you mean the query `{query}`?"))
        }
        (FilterError::Expression { .. }, None) => usage(e.to_string()),
        _ => e.into(),
    }
}

/// Everything that a run needs, checked.
struct Run<'a> {
    program: Program,
    /// The programs that it is made of, where they may change.
    entries: Vec<RunningProgram>,
    functions: Functions,
    filter: Option<Filter>,
    format: &'static Format,
    options: &'a RunOptions,
    term: &'a Term,
    /// What happens to interfaces.
    notes: Notes,
    /// What interfaces are called.
    names: InterfaceNames,
    /// Set by signals that end the run, and where there is nothing left to do.
    stop: Arc<AtomicBool>,
    /// Bytes that default bounds fit into, if they are to.
    memory: Option<u64>,
}

impl Run<'_> {
    /// Opens everything, gives up the rest, and runs. No thread is started before, so that what is
    /// given up is so for all.
    fn start(mut self) -> anyhow::Result<Status> {
        let stop = Arc::clone(&self.stop);
        let heard = signals::hear(&stop)?;
        let stats = Stats::new(self.term);
        let server = self.options.control.as_deref().map(Server::bind).transpose()?;
        let stream =
            self.is_live() || self.options.read.iter().any(|capture| opening::is_stream(capture));
        let (input, senders) = self.input(&stop)?;
        if let (Some(server), Some(user)) = (&server, &self.options.confine.relinquish_privileges) {
            let UserIds { user, group } = opening::user_ids(user)?;
            server.give_to(user, group)?;
        }
        self.become_user()?;
        // From here on things are made; until the run begins they are removed again where something
        // is refused, and files that are there stay as they are.
        let mut made = Made::default();
        let files = self.files(&mut made)?;
        let (how, around) = ((server.is_some(), self.is_live()), &self.options.lookback);
        let kept = lookback::options(&self.program, around, how, &mut made)?;
        let mut outlets = self.outlets(&input, senders)?;
        self.confine(&input, &outlets, kept.as_ref());

        let ending = Arc::clone(&stop);
        outlets.when_over(move || ending.store(true, Ordering::Relaxed));
        let Some(source) = self.source(input, stream, heard, &stats)? else {
            if !self.options.quiet {
                self.term.say("interrupted");
            }
            return Ok(Status::Ok);
        };
        let mut source = Reading::new(source).headers(self.options.headers.into());
        if self.options.fragments {
            source = source.fragments();
        }
        let mut source = Lookback::new(source, kept)?;
        if let Some(tally) = source.tally() {
            stats.tell_captures(tally);
        }
        let mut progress = self.progress(stream);
        let table = RowOptions {
            time: self.options.time.into(),
            color: self.term.color_out,
            stream,
            titles: server.is_some(),
        };
        let changes = server.is_some().then(Arc::<Changes>::default);
        let entries = std::mem::take(&mut self.entries);
        let (sink, _cleanup) = match (&server, &changes) {
            (Some(server), Some(changes)) => {
                let keeps = source.asking().is_some();
                let board = (changes, &stats, keeps);
                self.controlled(entries, server, board, progress.as_ref(), table)?
            }
            _ => {
                let cleanup = output::cleanup(files.as_deref().unwrap_or_default());
                (self.sink(files, progress.as_ref(), table)?, cleanup)
            }
        };
        let mut sink = self.prompt(sink);
        if let Some(asking) = source.asking() {
            sink = Box::new(lookback::Asks::new(asking, sink));
        }
        if let Some(period) = self.options.stats {
            stats.print_every(period)?;
        }
        made.keep();
        let options = self.engine_options(&stop, &stats, changes);
        let outcome = weir_engine::run::run_to(
            &self.program,
            &self.functions,
            &mut source,
            (&mut *sink, &mut outlets),
            &options,
            &mut |account| {
                if let Some(progress) = &mut progress {
                    progress.update(account);
                }
            },
        );
        drop(sink);
        drop(server);
        if let Some(progress) = &progress {
            progress.finish();
        }
        let interrupted = stop.load(Ordering::Relaxed) && !outlets.is_over();
        self.end(outcome, &mut source, interrupted)
    }

    /// Whether packets come from interfaces.
    fn is_live(&self) -> bool {
        !self.options.live.interface.is_empty()
    }

    fn engine_options(
        &self,
        stop: &Arc<AtomicBool>,
        stats: &Stats,
        changes: Option<Arc<Changes>>,
    ) -> Options {
        let defaults = Options::default();
        Options {
            workers: self.options.workers.get(),
            groups_hint: self.options.groups,
            memory: self.memory,
            lateness_ns: self.options.lateness.unwrap_or(defaults.lateness_ns),
            // Interfaces are asked to end themselves, and deliver what is on its way.
            stop: (!self.is_live()).then(|| Arc::clone(stop)),
            inquiry: Some(stats.inquiry()),
            changes,
            ..defaults
        }
    }

    /// Says on the terminal what happens to outlets while the run goes on.
    fn tell(&self) -> Report {
        let (term, quiet) = (*self.term, self.options.quiet);
        Box::new(move |text| {
            if !quiet {
                term.say(text);
            }
        })
    }

    /// Where rows go: to standard output, or into files.
    fn sink(
        &self,
        files: Option<Vec<Fresh>>,
        progress: Option<&Progress>,
        options: RowOptions,
    ) -> anyhow::Result<Box<dyn Sink>> {
        let (names, format) = (self.options.names.into(), self.format);
        let ending = Arc::new(AtomicBool::new(false));
        let stops = [Arc::clone(&self.stop), Arc::clone(&ending)];
        let stdout = StoppableWriter::stdout(&stops)?;
        let sink = move |stdout: Box<dyn Write>| -> Box<dyn Sink> {
            match files {
                Some(files) => {
                    let taken = Taken::default();
                    Box::new(output::over(files, format, options, names, &taken, &stops))
                }
                None => format.sink(stdout, options, names),
            }
        };
        if self.drops() {
            let sink = move || Ok(sink(Box::new(stdout)));
            let queue = Queue::start(sink, WhenFull::Refuse, self.options.sink_queue)?;
            return Ok(Box::new(queue.ending_by(ending)));
        }
        Ok(sink(match progress {
            Some(progress) => Box::new(progress.around(stdout)),
            None => Box::new(stdout),
        }))
    }

    /// Whether rows that nobody takes in time are left out.
    fn drops(&self) -> bool {
        self.options.slow_sink.map_or(self.is_live(), |slow| slow == SlowSink::Drop)
    }

    /// Shows rows as soon as they are there, if that is asked for.
    fn prompt(&self, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        match self.options.line_buffered {
            true => Box::new(output::Prompt(sink)),
            false => sink,
        }
    }

    /// Lets programs change, asked by the server; gives the sink for their rows, and the files that
    /// were made for them.
    fn controlled(
        &self,
        entries: Vec<RunningProgram>,
        server: &Server,
        (changes, stats, keeps_packets): (&Arc<Changes>, &Stats, bool),
        progress: Option<&Progress>,
        table: RowOptions,
    ) -> anyhow::Result<(Box<dyn Sink>, Cleanup)> {
        let pending = Arc::new(PendingChanges::default());
        let limits = Limits {
            write: self.options.write.to.clone(),
            names: self.options.names.into(),
            shows_rows: self.options.out_dir.is_none(),
            keeps_packets,
        };
        let confined = !self.options.confine.no_sandbox;
        let rules = Rules {
            allows: Box::new(move |program, outputs| limits.check(program, outputs)),
            make_sink: self.make_sink(table),
            advise: Box::new(move |reason| if confined { control::advise(reason) } else { reason }),
        };
        let stats = stats.clone();
        let report = Arc::new(move |patience| control::report(&stats, patience));
        let (theirs, changes) = (Arc::clone(&pending), Arc::clone(changes));
        let (registry, cleanup) =
            Registry::new(entries, rules, theirs, changes, report).map_err(anyhow::Error::msg)?;
        server.start(registry)?;
        let target = match self.options.out_dir {
            Some(_) => RowTarget::PerProgram,
            None => RowTarget::Shared(self.sink(None, progress, table)?),
        };
        let term = *self.term;
        let sink = ProgramSinks::new(target, pending, Box::new(move |text| term.say(text)));
        Ok((Box::new(sink), cleanup))
    }

    /// Makes the sinks of programs that write files of their own.
    fn make_sink(&self, options: RowOptions) -> MakeSink {
        let (folder, format) = (self.options.out_dir.clone(), self.format);
        let (names, lots) = (self.options.names.into(), self.options.sink_queue);
        let when_full = if self.drops() { WhenFull::Refuse } else { WhenFull::Wait };
        let (taken, stop) = (Taken::default(), Arc::clone(&self.stop));
        Box::new(move |outputs| {
            let Some(folder) = &folder else { return Ok(None) };
            let files = output::files(folder, outputs, format, &taken);
            let files = files.map_err(|e| format!("{e:#}"))?;
            let cleanup = output::cleanup(&files);
            let (taken, ending) = (Arc::clone(&taken), Arc::new(AtomicBool::new(false)));
            let stops = [Arc::clone(&stop), Arc::clone(&ending)];
            let make = move || {
                let sink = output::over(files, format, options, names, &taken, &stops);
                Ok(Box::new(sink) as Box<dyn Sink>)
            };
            let queue = Queue::start(make, when_full, lots).map_err(|e| e.to_string())?;
            Ok(Some(NewSink { sink: Box::new(queue.ending_by(ending)), cleanup }))
        })
    }

    /// A progress bar, where there is a length to measure by and somebody to see it.
    fn progress(&self, stream: bool) -> Option<Progress> {
        let wanted =
            !stream && self.term.stderr_tty && !self.options.quiet && !self.options.no_progress;
        let sizes = || self.options.read.iter().map(|name| weir_capture::size_hint(name)).sum();
        let total: Option<u64> = wanted.then(sizes).flatten();
        total.map(Progress::new)
    }
}
