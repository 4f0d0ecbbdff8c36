//! `weir NAME …`: a query of the library by its name.

use super::run::{self, Job, Shows};
use crate::args::{Cli, LibraryArgs, PartitionRun, wires};
use crate::exit::{self, Status, usage};
use crate::library::{self, Entry, signature};
use crate::programs::Programs;
use crate::query::Source;
use crate::site::Site;
use crate::term::Term;
use crate::top;
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
            "weir {0} -r <CAPTURE> [OPTIONS] [FILTER]...\n       \
             weir {0} -i <INTERFACE> [OPTIONS] [FILTER]...",
            entry.name
        ))
        .about(entry.title())
        .long_about(entry.about())
        .after_help(after_help(entry));
    let command = if entry.name == top::QUERY { wires::of_top(command) } else { command };
    let args = command
        .try_get_matches_from(words)
        .and_then(|matches| LibraryArgs::from_arg_matches(&matches));
    let mut args = match args {
        Ok(args) => args,
        Err(e) => return Ok(exit::from_clap(&e)),
    };
    args.options.partitions.run = partition;
    let chosen = args.color.map(Term::new);
    let rules = args.options.rules.rules()?;
    if entry.name == top::QUERY {
        wires::check(&args.options, "weir top")?;
    }
    if entry.name == top::QUERY
        && let Some(screen) = top::screen(&args.options, chosen.as_ref().unwrap_or(term))
    {
        return run::show(screen, &args.options, &args.filter.join(" "), term);
    }
    let programs = Programs::new(vec![Source::from_library(entry)])?.with_rules(rules);
    let site = Site::read(args.options.site.site.as_deref(), chosen.as_ref().unwrap_or(term))?;
    let job = Job {
        programs: programs.with_site(site),
        filter: args.filter.join(" "),
        options: args.options,
        shows: Shows::Rows,
    };
    run::job(job, chosen.as_ref().unwrap_or(term))
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
    let hint = if Path::new(name).exists() {
        format!("to run a query in a file: weir run {name}")
    } else if let Some(near) = weir_lang::closest(name, names) {
        format!("did you mean `{near}`?")
    } else {
        "`weir --help` shows the commands, `weir list` the queries".to_owned()
    };
    usage(format!("no command and no query is called `{name}`; {hint}"))
}
