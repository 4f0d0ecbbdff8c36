//! `weir watch`: a run of the detectors that come with Weir.

use super::run::{self, Job, Shows};
use crate::args::WatchArgs;
use crate::captures;
use crate::exit::{Status, usage};
use crate::library;
use crate::programs::{self, Programs};
use crate::site::Site;
use crate::term::Term;
use weir_sink::alerts;

/// Runs the detectors that the words name, or all but the measurements.
pub(crate) fn run(args: WatchArgs, term: &Term) -> anyhow::Result<Status> {
    let WatchArgs { mut words, without, filter, mut options } = args;
    captures::take(&mut words, &mut options)?;
    if options.rows.output.is_none() && term.stdout_tty && !options.rows.go_to_files() {
        options.rows.output = options.rows.export.is_none().then_some(&alerts::FORMAT);
    }
    let (queries, rest) = words.split_at(programs::leading(&words, true));
    let usual = [library::DEFAULT_SET.to_owned()];
    let queries = if queries.is_empty() { &usual[..] } else { queries };
    let programs = Programs::given(&[], queries)?;
    let programs = match without.is_empty() {
        true => programs,
        false => programs.without(&left_out(&without)?)?,
    };
    let programs = programs.with_site(Site::read(options.site.site.as_deref(), term)?);
    let programs = programs.with_rules(options.rules.rules()?);
    let filter = [rest, &filter].concat().join(" ");
    run::job(Job { programs, filter, options, shows: Shows::Rows }, term)
}

/// The names of the programs that these words mean.
pub(super) fn left_out(words: &[String]) -> anyhow::Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for word in words {
        match (library::detectors(word), library::find(word)) {
            (Some(group), _) => names.extend(group.iter().map(|e| e.name)),
            (None, Some(entry)) => names.push(entry.name),
            (None, None) => {
                let hint = match weir_lang::closest(word, library::names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`weir list` shows them".to_owned(),
                };
                return Err(usage(format!("--without {word}: no detector is called so; {hint}")));
            }
        }
    }
    Ok(names)
}
