//! The `weir` command: arguments, files, terminal and exit codes around the libraries.
//!
//! Rows go to standard output, everything else to standard error. The run of a query is
//! [`cmd::run`]; how a command ends is [`exit`].

#![forbid(unsafe_code)]

mod alert_board;
mod args;
mod captures;
mod cmd;
mod control;
mod delivery;
mod evictions;
mod exit;
mod exports;
mod group;
mod inputs;
mod kafka;
mod ledger;
mod library;
mod lookback;
mod manual;
mod memory;
mod metrics;
mod observe;
mod offload;
mod output;
mod page;
mod plot;
mod programs;
mod progress;
mod publishing;
mod query;
mod records;
mod refusals;
mod remedy;
mod shelf;
mod signals;
mod site;
mod stage_flow;
mod stats;
mod suppress;
mod tap;
mod term;
mod texts;
mod top;
mod user;
mod version;
mod windowless;
mod wire;
mod zone;

use crate::args::{Cli, Command};
use crate::exit::Status;
use crate::term::{ColorWhen, Term};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (color, command) = match words.first() {
        Some(first) if first == "--version" => return version::print().into(),
        Some(first) if cmd::open::is_begun_by(first) => {
            (ColorWhen::default(), Command::Library(words))
        }
        _ => match Cli::read(std::env::args_os()) {
            Ok(cli) => (cli.color, cli.command),
            Err(e) => return refusals::from_clap(&e).into(),
        },
    };
    let term = Term::new(color);
    let status = run(command, &term).unwrap_or_else(|e| exit::report(&e, &term));
    status.into()
}

fn run(command: Command, term: &Term) -> anyhow::Result<Status> {
    match command {
        Command::Run(args) => cmd::run::run(*args, term),
        Command::Watch(args) => cmd::watch::run(*args, term),
        Command::Report(args) => cmd::report::run(*args, term),
        Command::Serve(args) => cmd::serve::run(*args, term),
        Command::Merge(args) => cmd::merge::run(*args, term),
        Command::Cluster(args) => cmd::cluster::run(&args, term),
        Command::Sql(args) => cmd::sql::run(&args, term),
        Command::Archive(args) => cmd::archive::run(&args, term),
        Command::Check(args) => cmd::check::run(&args, term),
        Command::Fmt(args) => cmd::fmt::run(&args, term),
        Command::Explain(args) => cmd::explain::run(&args, term),
        Command::Fields(args) => cmd::fields::run(&args, term),
        Command::List(args) => cmd::list::run(&args, term),
        Command::Doctor(args) => cmd::doctor::run(&args, term),
        Command::Interfaces(args) => cmd::interfaces::run(&args, term),
        Command::Ctl(args) => cmd::ctl::run(args, term),
        Command::DeliverAlerts => cmd::deliver::run(),
        Command::KeepCaptures => cmd::shelf::run(),
        Command::Completions(args) => cmd::generate::completions(&args),
        Command::ManPages(args) => cmd::generate::man_pages(&args),
        Command::Help(args) => cmd::help::run(&args, term),
        Command::KafkaCarrier => cmd::carrier::run(term),
        Command::KafkaWorker => cmd::worker::run(term),
        Command::Library(words) => cmd::open::run(&words, term),
    }
}
