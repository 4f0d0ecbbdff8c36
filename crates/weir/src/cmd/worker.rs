//! The run of a partition, which another run has started: it has the same arguments, and gets its
//! packets from the process that talks to Kafka.

use crate::args::{Cli, Command, PartitionRun};
use crate::cmd;
use crate::exit::Status;
use crate::refusals;
use crate::signals;
use crate::term::Term;
use anyhow::Context as _;
use clap::Parser as _;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use weir_kafka::order::{WorkerOrder, read_framed};

/// Takes the order, and runs what it says.
pub(crate) fn run(term: &Term) -> anyhow::Result<Status> {
    // It ends with the process that carries its packets.
    signals::outlast()?;
    // Not by way of a buffer: packets follow.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order: WorkerOrder =
        read_framed(&mut stdin).context("this command is started by weir run -i kafka://")?;
    let run = PartitionRun { partition: order.partition, share: order.share };
    let cli = match Cli::try_parse_from(order.arguments) {
        Ok(cli) => cli,
        Err(e) => return Ok(refusals::from_clap(&e)),
    };
    match cli.command {
        Command::Run(mut args) => {
            args.options.partitions.run = Some(run);
            cmd::run::run(*args, term)
        }
        Command::Watch(mut args) => {
            args.options.partitions.run = Some(run);
            cmd::watch::run(*args, term)
        }
        Command::Library(words) => cmd::library::run(&words, Some(run), term),
        _ => anyhow::bail!("a partition is for a run"),
    }
}
