//! `weir help`: what `--help` says, by the word that newcomers try first.

use super::library;
use crate::args::{Cli, Command, HelpArgs};
use crate::exit::{self, Status};
use crate::term::Term;
use clap::Parser as _;

/// Prints the help of the program, of a command, or of a query of the library.
pub(crate) fn run(args: &HelpArgs, term: &Term) -> anyhow::Result<Status> {
    let words = args.command.iter().map(String::as_str);
    match Cli::try_parse_from(["weir"].into_iter().chain(words).chain(["--help"])) {
        Err(e) => Ok(exit::from_clap(&e)),
        Ok(Cli { command: Command::Library(words), .. }) => library::run(&words, None, term),
        Ok(cli) => unreachable!("--help ends the reading of {:?}", cli.command),
    }
}
