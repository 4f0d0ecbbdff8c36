//! The `weir` command: arguments, files, terminal and exit codes around the libraries.
//!
//! Rows go to standard output, everything else to standard error. The run of a query is
//! [`cmd::run`]; how a command ends is [`exit`].

#![forbid(unsafe_code)]

mod alert_board;
mod args;
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
mod memory;
mod metrics;
mod observe;
mod offload;
mod output;
mod page;
mod plot;
mod programs;
mod progress;
mod query;
mod records;
mod shelf;
mod signals;
mod site;
mod stage_flow;
mod stats;
mod suppress;
mod tap;
mod term;
mod top;
mod user;
mod windowless;
mod wire;
mod zone;

use crate::args::{Cli, Command};
use crate::exit::Status;
use crate::term::Term;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return exit::from_clap(&e).into(),
    };
    let term = Term::new(cli.color);
    let status = run(cli.command, &term).unwrap_or_else(|e| exit::report(&e, &term));
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
        Command::Help(args) => cmd::help::run(&args, term),
        Command::KafkaCarrier => cmd::carrier::run(term),
        Command::KafkaWorker => cmd::worker::run(term),
        Command::Library(words) => cmd::library::run(&words, None, term),
    }
}
