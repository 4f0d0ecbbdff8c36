//! `weir serve`: a run that shows itself on a page for browsers.

use super::run::{self, Job, Shows};
use crate::args::{RunOptions, ServeArgs, wires};
use crate::captures;
use crate::exit::{Status, usage};
use crate::page;
use crate::programs::{self, Programs};
use crate::query::Source;
use crate::site::Site;
use crate::term::Term;
use anyhow::Context as _;
use weir_capture::limits::LOOKBACK_BYTES;
use weir_http::{Address, Token};

/// Where it listens if nothing is said.
const ADDRESS: &str = "127.0.0.1:9464";

/// Runs what the page counts by, and the queries that the words name.
pub(crate) fn run(args: ServeArgs, term: &Term) -> anyhow::Result<Status> {
    let ServeArgs { mut words, filter, captures, mut options } = args;
    captures::take(&mut words, &mut options)?;
    wires::check(&options, "weir serve")?;
    if !page::IS_BUILT {
        return Err(usage(
            "this weir was built without its page: `cargo install --path crates/weir --features \
             serve` builds it, and takes npm (docs/serve.md); `weir top` shows traffic on the \
             terminal, and `weir run --http` has the API",
        ));
    }
    check(&options)?;
    let (queries, rest) = words.split_at(programs::leading(&words, true));
    let own = weir_dashboard::PROGRAMS
        .iter()
        .map(|(name, text)| Source::new(format!("{name}.weir"), (*name).to_owned(), text));
    let mut sources: Vec<Source> = own.collect();
    for word in queries {
        sources.extend(Source::load_all(word)?);
    }
    let programs = Programs::new(sources)?;
    let programs = programs.with_site(Site::read(options.site.site.as_deref(), term)?);
    let programs = programs.with_rules(options.rules.rules()?);
    let default = || Address::parse(ADDRESS).map_err(anyhow::Error::msg);
    let address = options.http.http.map_or_else(default, Ok)?;
    options.http.http = Some(address);
    if options.http.http_token_file.is_none() && address.is_loopback() {
        options.http.own_token = Some(Token::random().context("random bytes for a token")?);
    }
    if !options.live.interface.is_empty() && options.lookback.ring.is_none() {
        options.lookback.ring = Some(LOOKBACK_BYTES);
        options.lookback.is_of_page = true;
    }
    let filter = [rest, &filter].concat().join(" ");
    run::job(Job { programs, filter, options, shows: Shows::Page { captures } }, term)
}

/// Refuses options that say something of rows for readers, of whom there are none.
fn check(options: &RunOptions) -> anyhow::Result<()> {
    let written = options.rows.go_to_files();
    let refused = [
        (options.http.metrics.is_some(), "--metrics: /metrics is beside the page; use --http"),
        (options.publish.publish.is_some(), "--publish: its rows are shown on the page"),
        (options.rows.export.is_some(), "--export: its rows are shown on the page"),
        (
            options.rows.output.is_some() && !written,
            "-o without --out-dir: its rows are shown on the page",
        ),
    ];
    match refused.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(usage(format!("weir serve takes no {why}"))),
        None => Ok(()),
    }
}
