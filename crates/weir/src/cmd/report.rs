//! `weir report`: one page about a capture.

use super::run::{self, ReportJob};
use super::watch::left_out;
use crate::args::{LibraryArgs, ReportArgs, RunOptions};
use crate::exit::{Status, usage};
use crate::programs::Programs;
use crate::site::Site;
use crate::term::Term;
use clap::Parser as _;
use std::path::Path;
use weir_capture::write::is_read;
use weir_report::RuleTitle;

/// Bytes of captures up to which the time lines begin with the finest steps.
const SMALL: u64 = 16 << 20;

/// Writes a report.
pub(crate) fn run(mut args: ReportArgs, term: &Term) -> anyhow::Result<Status> {
    let words = std::mem::take(&mut args.words);
    let (captures, rest) = words.split_at(leading(&words, !args.read.is_empty()));
    let read = [captures, &args.read].concat();
    if read.is_empty() {
        return Err(usage("no capture given: weir report CAPTURE -o report.html"));
    }
    if is_read(&args.output, &read) {
        let output = args.output.display();
        return Err(usage(format!("-o {output}: this is a capture that is read")));
    }
    let detectors = Programs::given(&[], &["detectors/default".to_owned()])?;
    let detectors = match args.without.is_empty() {
        true => detectors,
        false => detectors.without_any(&left_out(&args.without)?),
    };
    let title = |source: &crate::query::Source| RuleTitle {
        name: source.program.clone(),
        title: weir_lang::header(&source.text).title,
    };
    let rules = detectors.sources().iter().map(title).collect();
    let detectors = detectors.with_site(Site::read(args.site.site.as_deref(), term)?);
    let detectors = detectors.with_rules(args.rules.rules()?);
    let words = [rest, &args.filter].concat().join(" ");
    let output = std::mem::take(&mut args.output);
    let sizes = read.iter().map(|name| match name.as_str() {
        "-" => None,
        name => std::fs::metadata(name).ok().filter(std::fs::Metadata::is_file).map(|m| m.len()),
    });
    let is_small = sizes.sum::<Option<u64>>().is_some_and(|bytes| bytes <= SMALL);
    let options = options(args, read)?;
    run::report(ReportJob { detectors, rules, words, output, is_small, options: &options }, term)
}

/// The options of a run over these captures, all that a report has not as if they were not given.
fn options(args: ReportArgs, read: Vec<String>) -> Result<RunOptions, clap::Error> {
    let defaults = LibraryArgs::try_parse_from(["report", "-r", "-"])?.options;
    let mut rows = defaults.rows;
    rows.suppress = args.suppress;
    Ok(RunOptions {
        read,
        append: args.append,
        site: args.site,
        filter_file: args.filter_file,
        rows,
        count: args.count,
        workers: args.workers,
        memory: args.memory,
        lateness: args.lateness,
        headers: args.headers,
        rules: args.rules,
        fragments: args.fragments,
        quiet: args.quiet,
        no_progress: args.no_progress,
        confine: args.confine,
        ..defaults
    })
}

/// How many of the words are captures: the first one, unless captures are given otherwise, and all
/// after it that are files or standard input.
fn leading(words: &[String], is_given: bool) -> usize {
    let is_capture = |word: &String| word == "-" || Path::new(word).exists();
    let first = usize::from(!is_given && !words.is_empty());
    first + words[first..].iter().take_while(|word| is_capture(word)).count()
}
