//! `weir NAME …`: a query of the library by its name.

use super::run::{self, Job, Shows};
use crate::args::{Cli, LibraryArgs, PartitionRun, RunOptions, in_short, wires};
use crate::exit::{Status, usage, usage_try};
use crate::library::{self, Entry, signature};
use crate::programs::Programs;
use crate::query::Source;
use crate::site::Site;
use crate::term::Term;
use crate::{captures, refusals, remedy, top};
use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::Path;
use weir_lang::ParamInfo;

/// Runs the query that the first word names with the options in the others.
pub(crate) fn run(
    words: &[OsString],
    partition: Option<PartitionRun>,
    term: &Term,
) -> anyhow::Result<Status> {
    let name = words[0].to_string_lossy();
    let Some(entry) = library::find(&name) else { return Err(unknown(&name)) };
    let command = LibraryArgs::command()
        .name(entry.name)
        .bin_name(format!("weir {}", entry.name))
        .override_usage(format!(
            "weir {0} <CAPTURE>... [OPTIONS] [FILTER]...\n       \
             weir {0} -i <INTERFACE> [OPTIONS] [FILTER]...",
            entry.name
        ))
        .about(entry.title())
        .long_about(entry.about())
        .after_help(after_help(entry));
    let command = if entry.name == top::QUERY { wires::of_top(command) } else { command };
    let args = in_short(command)
        .try_get_matches_from(words)
        .and_then(|matches| LibraryArgs::from_arg_matches(&matches));
    let mut args = match args {
        Ok(args) => args,
        Err(e) => return Ok(refusals::from_clap(&e)),
    };
    args.options.partitions.run = partition;
    let chosen = args.color.map(Term::new);
    if args.filter.first().is_some_and(|word| word == "-") {
        args.options.read.push(args.filter.remove(0));
    }
    captures::take(&mut args.filter, &mut args.options)?;
    let term = chosen.as_ref().unwrap_or(term);
    let is_query = |word: &&String| library::find(word).is_some() || word.ends_with(".weir");
    let further = args.filter.iter().take_while(is_query).count();
    if further > 0 {
        let filter = args.filter.split_off(further);
        let queries = [vec![entry.name.to_owned()], args.filter].concat();
        return several(&queries, args.options, filter.join(" "), term);
    }
    run_entry(entry, args.options, args.filter.join(" "), term)
}

/// Shows the screen of `weir top`, or prints its rows.
pub(super) fn top(options: RunOptions, filter: String, term: &Term) -> anyhow::Result<Status> {
    let entry = library::find(top::QUERY).context("the library has a query for `weir top`")?;
    run_entry(entry, options, filter, term)
}

/// Runs queries of the library together.
fn several(
    queries: &[String],
    options: RunOptions,
    filter: String,
    term: &Term,
) -> anyhow::Result<Status> {
    let programs = Programs::given(&[], queries)?.with_rules(options.rules.rules()?);
    let programs = programs.with_site(Site::read(options.site.site.as_deref(), term)?);
    run::job(Job { programs, filter, options, shows: Shows::Rows }, term)
}

fn run_entry(
    entry: &Entry,
    options: RunOptions,
    filter: String,
    term: &Term,
) -> anyhow::Result<Status> {
    let rules = options.rules.rules()?;
    if entry.name == top::QUERY {
        wires::check(&options, "weir top")?;
        if let Some(screen) = top::screen(&options, term) {
            return run::show(screen, &options, &filter, term);
        }
    }
    let programs = Programs::new(vec![Source::from_library(entry)])?.with_rules(rules);
    let site = Site::read(options.site.site.as_deref(), term)?;
    let programs = programs.with_site(site);
    run::job(Job { programs, filter, options, shows: Shows::Rows }, term)
}

/// The end of the help of a query.
fn after_help(entry: &Entry) -> String {
    match entry.name == top::QUERY {
        true => format!("{}\n\n{}", params(entry), top::HELP),
        false => params(entry),
    }
}

/// The parameters of a query, as its help shows them.
fn params(entry: &Entry) -> String {
    let params = entry.params();
    if params.is_empty() {
        return "The query has no parameters.".to_owned();
    }
    let width = params.iter().map(|p| signature(p).len()).max().unwrap_or(0);
    let line = |p: &ParamInfo| {
        let doc = p.doc.as_deref().unwrap_or_default();
        format!("\n  {:width$}  {doc}", signature(p)).trim_end().to_owned()
    };
    format!("Parameters (-p NAME=VALUE):{}", params.iter().map(line).collect::<String>())
}

fn unknown(name: &str) -> anyhow::Error {
    let commands = Cli::command();
    let commands = commands.get_subcommands().map(clap::Command::get_name);
    let names = commands.chain(library::names().map(|name| -> &str { name }));
    let message = |hint: &str| format!("no command and no query is called `{name}`; {hint}");
    if Path::new(name).is_dir() {
        let line = remedy::with_word(name, &format!("{name}/"));
        return usage_try(format!("{name} is a folder, and no command"), line);
    }
    if let Some(line) = remedy::of_command(name) {
        return usage_try(message("another one does what it may mean"), Some(line));
    }
    if Path::new(name).exists() {
        return usage(format!("{name} is no capture (pcap, pcapng), and no query (NAME.weir)"));
    }
    let near = weir_lang::closest(name, names).map(str::to_owned);
    match near.or_else(|| remedy::near_capture(name)) {
        Some(near) => {
            let message = message(&format!("did you mean `{near}`?"));
            usage_try(message, remedy::with_word(name, &near))
        }
        None => usage(message("`weir --help` shows the commands, `weir list` the queries")),
    }
}
