//! `weir help`: what `--help` says, by the word that newcomers try first; and what the references
//! say of a word of the language.

use super::library;
use crate::args::{Cli, Command, HelpArgs};
use crate::exit::{Status, usage_try};
use crate::library::find;
use crate::manual;
use crate::term::Term;
use crate::{refusals, remedy};
use clap::CommandFactory as _;
use std::io::Write as _;

/// Prints the help of the program, of a command, of a query of the library, or of a word of the
/// language.
pub(crate) fn run(args: &HelpArgs, term: &Term) -> anyhow::Result<Status> {
    let Some(word) = args.topic.as_deref() else { return of_command(&[], term) };
    if find(word).is_some() || Cli::command().find_subcommand(word).is_some() {
        // A word of the language that a command has, too, is told below it.
        let status = of_command(&[word], term)?;
        return match manual::of_word(word) {
            Some(text) => print(&format!("\nIn queries:\n\n{text}")).map(|()| status),
            None => Ok(status),
        };
    }
    match manual::of_word(word).or_else(|| manual::section(word)) {
        Some(text) => print(&text).map(|()| Status::Ok),
        None => Err(unknown(word)),
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn of_command(words: &[&str], term: &Term) -> anyhow::Result<Status> {
    match Cli::read(["weir"].iter().chain(words).chain(&["--help"])) {
        Err(e) => Ok(refusals::from_clap(&e)),
        Ok(Cli { command: Command::Library(words), .. }) => library::run(&words, None, term),
        Ok(cli) => unreachable!("--help ends the reading of {:?}", cli.command),
    }
}

fn unknown(word: &str) -> anyhow::Error {
    let commands = Cli::command();
    let commands = commands.get_subcommands().filter(|command| !command.is_hide_set());
    let names = commands.map(|command| command.get_name().to_owned());
    let names = names.chain(crate::library::names().map(str::to_owned)).chain(manual::topics());
    let names: Vec<String> = names.collect();
    let message = |hint: &str| {
        format!("no command, no query and no word of the language is called `{word}`; {hint}")
    };
    match weir_lang::closest(word, names.iter().map(String::as_str)) {
        Some(near) => {
            let line = remedy::with_word(word, near);
            usage_try(message(&format!("did you mean `{near}`?")), line)
        }
        None => {
            let found = remedy::is_in_a_field(word);
            let line = if found { ["fields", word] } else { ["help", "language"] };
            usage_try(
                message("`weir help language` is the whole reference"),
                Some(remedy::line(line)),
            )
        }
    }
}
