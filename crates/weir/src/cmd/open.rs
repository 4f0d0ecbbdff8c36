//! `weir FILE`, `weir 'where …' FILE`, `weir -i eth0`: what is asked without a command.

use super::{library, report, run};
use crate::args::{OpenArgs, RunArgs, in_short};
use crate::captures;
use crate::exit::{Status, usage_try};
use crate::library as lib;
use crate::programs::leading;
use crate::term::Term;
use crate::texts::is_text;
use crate::{refusals, remedy, top};
use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::Path;

/// Runs a query of the library, or what is asked without a command.
pub(crate) fn run(words: &[OsString], term: &Term) -> anyhow::Result<Status> {
    let first = words[0].to_string_lossy();
    match lib::find(&first).is_none() && is_begun(&first) {
        true => open(words, term),
        false => library::run(words, None, term),
    }
}

/// Whether a command line without a command begins with this word.
fn is_begun(word: &str) -> bool {
    let is_folder = word.contains('/') && Path::new(word).is_dir();
    word.starts_with('-')
        || word.ends_with(".weir")
        || is_folder
        || captures::is_meant_first(word)
        || is_text(word)
        || lib::detectors(word).is_some()
        || captures::FILTER_WORDS.contains(&word)
}

/// Runs what the words ask: the queries among them, if there are any. Without one, shows the
/// traffic on a screen where there is a terminal; else prints a summary of captures, or the rows of
/// `weir top`.
fn open(words: &[OsString], term: &Term) -> anyhow::Result<Status> {
    let name = [OsString::from("weir")];
    let matches = in_short(OpenArgs::command()).try_get_matches_from(name.iter().chain(words));
    let args = match matches.and_then(|matches| OpenArgs::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(e) => return Ok(refusals::from_clap(&e)),
    };
    let chosen = args.color.map(Term::new);
    let term = chosen.as_ref().unwrap_or(term);
    let RunArgs { expressions, mut words, filter, mut options } = args.run;
    if !options.live.interface.is_empty() && words.iter().any(|word| captures::is_meant(word)) {
        let message = "captures and -i are given: a run reads one or the other";
        return Err(usage_try(message, Some(remedy::without_interfaces())));
    }
    // A query comes from a file or a word here.
    if let Some(at) = words.iter().position(|word| word == "-") {
        options.read.push(words.remove(at));
    }
    captures::take(&mut words, &mut options)?;
    // Without a query, packets are written as they are.
    let queries = leading(&words, true);
    if options.write.to.is_some() && expressions.is_empty() && queries == 0 {
        words.insert(0, "packets | pass".to_owned());
    }
    if !expressions.is_empty() || leading(&words, true) > 0 {
        return run::run(RunArgs { expressions, words, filter, options }, term);
    }
    let is_live = !options.live.interface.is_empty();
    let has_screen = term.look(options.rules.time_zone).is_some();
    if options.read.is_empty() && !is_live && !options.live.list_interfaces {
        return Err(usage_try(
            "no capture and no interface is given; `weir --help` shows the commands",
            Some(remedy::with_input()),
        ));
    }
    let filter = [words, filter].concat().join(" ");
    match is_live || has_screen || top::asks_for_rows(&options) {
        true => library::top(options, filter, term),
        false => report::summary(&options, filter, term),
    }
}

/// Whether a command line without a command begins with this word: an option that only runs have.
pub(crate) fn is_begun_by(word: &OsString) -> bool {
    let general = ["-h", "--help", "-V", "--version"];
    let word = word.to_string_lossy();
    word.starts_with('-') && !general.contains(&&*word) && !word.starts_with("--color")
}
