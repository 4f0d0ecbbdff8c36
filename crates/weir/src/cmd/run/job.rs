//! The job that `weir run` is given, checked.

use super::serves::Serving;
use super::session::Run;
use super::{carriers, opening, publish};
use crate::args::{RunArgs, RunOptions};
use crate::exit::{Status, usage, usage_try};
use crate::output::Collector;
use crate::page::RunPhase;
use crate::programs::{self, Programs};
use crate::site::Site;
use crate::term::Term;
use crate::wire::Notes;
use crate::{
    captures, cmd, delivery, group, inputs, library, metrics, output, plot, records, remedy,
    suppress,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::outlets::{OutletError, Outlets, is_host};
use weir_capture::records::RecordReport;
use weir_control::{RunningProgram, SiteParams};
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_engine::suppress::SuppressionList;
use weir_kafka::address::KafkaTopic;
use weir_packet::egress::Outlet;
use weir_packet::interface::InterfaceNames;
use weir_plan::Program;
use weir_plan::together::side_by_side;

/// Queries, and how to run them.
pub(crate) struct Job {
    /// The queries.
    pub(crate) programs: Programs,
    /// The capture filter; empty for none.
    pub(crate) filter: String,
    /// Everything else.
    pub(crate) options: RunOptions,
    /// Whom it is for.
    pub(crate) shows: Shows,
}

/// Whom a run is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shows {
    /// Readers of its rows.
    Rows,
    /// People in front of its page, who stay when packets end.
    Page {
        /// The folder below which captures are that they may ask queries of.
        captures: Option<PathBuf>,
    },
}

/// Runs `weir run`.
pub(crate) fn run(args: RunArgs, term: &Term) -> anyhow::Result<Status> {
    let RunArgs { expressions, mut words, filter, mut options } = args;
    if options.live.list_interfaces {
        return cmd::interfaces::list(options.rows.output, term);
    }
    captures::take(&mut words, &mut options)?;
    let (queries, rest) = words.split_at(programs::leading(&words, !expressions.is_empty()));
    if queries.iter().any(|word| word == "-") && options.reads_stdin() {
        return Err(usage(
            "standard input can't be both the query and the capture; use -e or a file",
        ));
    }
    let programs = match (&expressions[..], queries) {
        ([], []) if options.takes_programs() => Programs::none(),
        ([], []) if !options.read.is_empty() => {
            let named = captures::named(&options.read);
            return Err(usage_try(
                "no query is given: name one of `weir list` or a file, or write its text",
                Some(remedy::line(named.iter().map(String::as_str))),
            ));
        }
        _ => Programs::given(&expressions, queries)?,
    };
    let programs = programs.with_site(Site::read(options.site.site.as_deref(), term)?);
    let programs = programs.with_rules(options.rules.rules()?);
    let filter = [rest, &filter].concat().join(" ");
    job(Job { programs, filter, options, shows: Shows::Rows }, term)
}

/// Checks and runs a job.
pub(crate) fn job(job: Job, term: &Term) -> anyhow::Result<Status> {
    let Job { programs, filter, mut options, shows } = job;
    if options.live.list_interfaces {
        return cmd::interfaces::list(options.rows.output, term);
    }
    let topic = take_topic(&mut options)?;
    let words = checked_filter(&options, &filter)?;
    let functions = Functions::default();
    let Some(CompiledQueries { program, running }) =
        compile(&programs, &options, &functions, term)?
    else {
        return Ok(Status::Usage);
    };
    let format = output::row_format(&program, &options.rows, options.takes_programs(), term)?;
    check_together(&program, &options, topic.as_ref(), &words)?;
    let suppressions = suppress::read(&options.rows.suppress)?;
    let alone_known = (!options.takes_programs()).then_some(&program);
    let targets = delivery::targets(&options.rows.deliver, alone_known)?;
    let filter = parsed(&words)?;
    if options.test {
        return Ok(Status::Ok);
    }
    if let (Some(topic), None) = (&topic, options.partitions.run) {
        return group::host(topic, &program, &options, term);
    }
    check_input(&options, topic.as_ref())?;
    let site = site_of(&programs, &options)?;
    let serves = serving(&shows, &program, &options);
    let phase = phase(&options, &words, serves.as_ref());
    if options.partitions.run.is_none() {
        opening::say_plan(&program, &options, term);
    }
    let run = Run {
        phase,
        serves,
        program,
        alone: programs.sources().first().map_or_else(String::new, |s| s.program.clone()),
        is_alone: programs.sources().len() == 1 && !options.takes_programs(),
        running,
        functions,
        filter,
        format,
        collector: options.rows.export.as_ref().map(Collector::connect).transpose()?,
        in_use: inputs::of_run(&options, &programs),
        options: &options,
        term,
        site,
        list: SuppressionList::new(suppressions.clone()),
        suppressions,
        targets,
        notes: Notes::default(),
        records: RecordReport::default(),
        names: InterfaceNames::default(),
        shows_screen: false,
        stop: Arc::default(),
        rows_pipe: None,
        // The sandbox forbids this question later.
        memory: options.memory.bytes(),
    };
    match options.partitions.run {
        Some(of) => run.process_partition(of),
        None => run.start(),
    }
}

/// The values for programs that come later, read now: the sandbox forbids to read files then.
fn site_of(programs: &Programs, options: &RunOptions) -> anyhow::Result<SiteParams> {
    if !options.takes_programs() {
        return Ok(SiteParams::default());
    }
    let (rules, library) = (programs.rules(), Some(library::text as weir_lang::Library));
    Ok(SiteParams { rules, library, ..programs.site().for_later_programs()? })
}

/// Refuses a run without anything to read, and captures that are spelled wrongly.
fn check_input(options: &RunOptions, topic: Option<&KafkaTopic>) -> anyhow::Result<()> {
    if options.read.is_empty() && options.live.interface.is_empty() && topic.is_none() {
        return Err(usage_try(
            "no capture is given: name one, or an interface by -i INTERFACE",
            Some(remedy::with_input()),
        ));
    }
    remedy::refuse_misspelled(&options.read)
}

/// The capture filter, if there is one.
fn parsed(filter: &str) -> anyhow::Result<Option<Filter>> {
    match filter {
        "" => Ok(None),
        text => Filter::new(text).map(Some).map_err(|e| filter_error(e, text)),
    }
}

/// The state of a run, for its page.
fn phase(options: &RunOptions, filter: &str, serves: Option<&Serving>) -> RunPhase {
    let live = &options.live.interface;
    let sources = if live.is_empty() { &options.read } else { live };
    let again = serves.filter(|serves| serves.reads_again);
    RunPhase::new(sources, filter, again.map(|serves| Arc::clone(&serves.passes)))
}

/// The topic that packets come from, if they do: then from no interface of this machine.
fn take_topic(options: &mut RunOptions) -> anyhow::Result<Option<KafkaTopic>> {
    let topic = group::topic_of(options)?;
    if topic.is_some() {
        options.live.interface.clear();
    }
    Ok(topic)
}

/// Refuses what of a program, options and the capture filter does not go together.
fn check_together(
    program: &Program,
    options: &RunOptions,
    topic: Option<&KafkaTopic>,
    filter: &str,
) -> anyhow::Result<()> {
    records::check(options, program, !filter.is_empty())?;
    check_kafka(program, topic, options)?;
    check_outputs(program, options)
}

/// Refuses what can't go to Kafka, or come from `topic`.
fn check_kafka(
    program: &Program,
    topic: Option<&KafkaTopic>,
    options: &RunOptions,
) -> anyhow::Result<()> {
    publish::check(program, options)?;
    match topic {
        Some(topic) => group::check(program, topic, options)?,
        None => options.partitions.check()?,
    }
    carriers::check(options, topic.is_some())
}

/// How the page is served, if the run is there for one.
fn serving(shows: &Shows, program: &Program, options: &RunOptions) -> Option<Serving> {
    match shows {
        Shows::Page { captures } => Some(Serving::new(program, options, captures.clone())),
        Shows::Rows => None,
    }
}

/// The capture filter, if it and the options go together.
pub(super) fn checked_filter(options: &RunOptions, filter: &str) -> anyhow::Result<String> {
    options.live.check()?;
    options.live.possible().map_err(usage)?;
    options.write.check()?;
    options.later.check(options.takes_programs())?;
    only_filters(filter)?;
    let filter = options.filter(filter)?;
    if options.read.iter().filter(|name| *name == "-").count() > 1 {
        return Err(usage("standard input can be one capture only"));
    }
    Ok(filter)
}

/// The queries of a run.
struct CompiledQueries {
    /// All of them as one program.
    program: Program,
    /// Each by itself, where they may change; else empty.
    running: Vec<RunningProgram>,
}

/// Compiles all queries. `None`: there were errors among them.
fn compile(
    programs: &Programs,
    options: &RunOptions,
    functions: &Functions,
    term: &Term,
) -> anyhow::Result<Option<CompiledQueries>> {
    let (params, quiet) = (&options.params, options.quiet);
    if !options.takes_programs() {
        let named = options.rows.go_to_files();
        let Some(mut program) = programs.compile(params, named, functions, quiet, term)? else {
            return Ok(None);
        };
        if programs.sources().len() == 1 {
            let told = output::keep_main(&mut program, &options.rows).filter(|_| !quiet);
            told.iter().for_each(|told| term.say(format_args!("note: {told}")));
        }
        return Ok(Some(CompiledQueries { program, running: Vec::new() }));
    }
    let Some(each) = programs.compile_each(params, functions, quiet, term)? else {
        return Ok(None);
    };
    let program = side_by_side(each.clone()).map_err(|e| usage(e.to_string()))?;
    let sources = programs.sources().iter();
    let entry = |((name, program), source): ((String, Program), &crate::query::Source)| {
        RunningProgram::new(&name, &source.name, program).with_text(&source.text)
    };
    let running = each.into_iter().zip(sources).map(entry).collect();
    Ok(Some(CompiledQueries { program, running }))
}

/// Refuses outputs that the program or the options do not go together with.
fn check_outputs(program: &Program, options: &RunOptions) -> anyhow::Result<()> {
    check_packet_outputs(program, options)?;
    plot::check(program, options)?;
    metrics::check_exports(&Output::of(program)).map_err(usage)
}

/// Refuses outputs for packets that would get nothing, or that would mix with rows.
fn check_packet_outputs(program: &Program, options: &RunOptions) -> anyhow::Result<()> {
    let (outlets, changes) = (program.outlets(), options.takes_programs());
    let write = options.write.to.as_deref();
    if let Some(write) = write.filter(|_| !outlets.contains(&Outlet::Pass) && !changes) {
        return Err(usage_try(
            format!(
                "-w {write}: the query passes no packets; end it with `| pass`, or name the output \
                 there: `| forward \"{write}\"`"
            ),
            Some(remedy::passing()),
        ));
    }
    let write = write.filter(|to| !KafkaTopic::is_meant(to));
    Outlets::check(&outlets, write).map_err(|e| usage(e.to_string()))?;
    let host = Outlets::names(&outlets, write).find(|name| is_host(name));
    if let Some(name) = host.filter(|_| !options.gives_to_host()) {
        let name = name.to_owned();
        return Err(usage(OutletError::HostWithoutKernel { name }.to_string()));
    }
    let named = outlets.iter().any(|outlet| *outlet == Outlet::Named("-".to_owned()));
    let shows_rows = (output::printed(program) > 0 || changes) && !options.rows.go_to_files();
    if shows_rows && (named || write == Some("-")) {
        return Err(usage("packets can't go to standard output: the query prints rows there"));
    }
    let sends = || opening::sends_by_dpdk(program, options);
    if options.live.dpdk_args.is_some() && !options.live.is_dpdk() && sends().is_empty() {
        return Err(usage(
            "--dpdk-args only applies to captures by DPDK and to outputs that are devices of \
             DPDK: add --capture dpdk",
        ));
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
            "{word} is a file, and no capture (pcap, pcapng), no query (NAME.weir) and no word of \
             a filter"
        )));
    }
    Ok(())
}

/// A refused expression is a wrong argument; a missing libpcap is not.
pub(super) fn filter_error(e: FilterError, filter: &str) -> anyhow::Error {
    let FilterError::Expression { .. } = &e else { return e.into() };
    let e = match remedy::language(filter) {
        Some("SQL") => {
            "SQL is asked by `weir sql`; the words after captures are a filter".to_owned()
        }
        Some(other) => format!("{other} is not understood; the words after captures are a filter"),
        None => e.to_string(),
    };
    let line = remedy::with_count(filter).or_else(|| remedy::as_query(filter));
    if let Some(line) = line.or_else(|| remedy::with_filter(filter)) {
        return usage_try(e, Some(line));
    }
    match programs::meant_query(filter) {
        Some(query) if remedy::takes_queries() => {
            let word = filter.split_whitespace().next().unwrap_or_default();
            let line = remedy::with_word(word, query);
            usage_try(format!("{e}; or did you mean the query `{query}`?"), line)
        }
        _ => usage_try(e, Some(remedy::line(["help", "language"]))),
    }
}
