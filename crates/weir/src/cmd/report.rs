//! `weir report`: one page about a capture.

use super::run::{self, ReportForm, ReportJob};
use super::watch::left_out;
use crate::args::{LibraryArgs, ReportArgs, RunOptions};
use crate::captures::{expanded, is_meant};
use crate::exit::{Status, usage_try};
use crate::programs::Programs;
use crate::remedy;
use crate::site::Site;
use crate::term::Term;
use clap::Parser as _;
use std::path::Path;
use weir_capture::write::is_read;
use weir_report::RuleTitle;

/// The subject of a report beside its captures.
struct Subject {
    without: Vec<String>,
    words: String,
    form: ReportForm,
}

/// Bytes of captures up to which the time lines begin with the finest steps.
const SMALL: u64 = 16 << 20;

/// Writes a report.
pub(crate) fn run(mut args: ReportArgs, term: &Term) -> anyhow::Result<Status> {
    let words = std::mem::take(&mut args.words);
    let (captures, rest) = words.split_at(leading(&words, !args.read.is_empty()));
    let read = expanded([captures, &args.read].concat())?;
    remedy::refuse_misspelled(&read)?;
    if read.is_empty() {
        let message = "no capture is given: weir report CAPTURE, or with -o report.html";
        return Err(usage_try(message, Some(remedy::with_input())));
    }
    if let Some(output) = args.output.as_ref().filter(|output| is_read(output, &read)) {
        let output = output.display();
        let output = output.to_string();
        let line = remedy::with_value(&output, &remedy::report_name());
        return Err(usage_try(format!("-o {output}: this is a capture that is read"), line));
    }
    let subject = Subject {
        without: std::mem::take(&mut args.without),
        words: [rest, &args.filter].concat().join(" "),
        form: args.output.take().map_or(ReportForm::Text, ReportForm::Page),
    };
    of_captures(subject, &options(args, read)?, term)
}

/// Prints a summary of captures.
pub(super) fn summary(options: &RunOptions, words: String, term: &Term) -> anyhow::Result<Status> {
    let subject = Subject { without: Vec::new(), words, form: ReportForm::Text };
    of_captures(subject, options, term)
}

fn of_captures(subject: Subject, options: &RunOptions, term: &Term) -> anyhow::Result<Status> {
    let Subject { without, words, form } = subject;
    let detectors = Programs::given(&[], &["detectors/default".to_owned()])?;
    let detectors = match without.is_empty() {
        true => detectors,
        false => detectors.without_any(&left_out(&without)?),
    };
    let title = |source: &crate::query::Source| RuleTitle {
        name: source.program.clone(),
        title: weir_lang::header(&source.text).title,
    };
    let rules = detectors.sources().iter().map(title).collect();
    let detectors = detectors.with_site(Site::read(options.site.site.as_deref(), term)?);
    let detectors = detectors.with_rules(options.rules.rules()?);
    let sizes = options.read.iter().map(|name| match name.as_str() {
        "-" => None,
        name => std::fs::metadata(name).ok().filter(std::fs::Metadata::is_file).map(|m| m.len()),
    });
    let is_small = sizes.sum::<Option<u64>>().is_some_and(|bytes| bytes <= SMALL);
    run::report(ReportJob { detectors, rules, words, form, is_small, options }, term)
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
    let is_capture = |word: &String| word == "-" || is_meant(word) || Path::new(word).exists();
    let first = usize::from(!is_given && !words.is_empty());
    first + words[first..].iter().take_while(|word| is_capture(word)).count()
}
