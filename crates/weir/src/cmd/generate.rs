//! Texts that are made of the one definition of commands: completions for shells, manual pages.

use crate::args::{Cli, CompletionsArgs, ManPagesArgs};
use crate::exit::Status;
use crate::library::LIBRARY;
use anyhow::Context as _;
use clap::{Arg, Command, CommandFactory as _, ValueHint};

/// Prints the completions for a shell, queries of the library among the commands.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Status> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut whole(), "weir", &mut text);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &text)?;
    Ok(Status::Ok)
}

/// The commands, with a name for each query of the library, which take captures.
fn whole() -> Command {
    let captures = || {
        let captures = Arg::new("captures").num_args(0..).value_hint(ValueHint::FilePath);
        captures.value_name("CAPTURE")
    };
    let query = |entry: &crate::library::Entry| {
        Command::new(entry.name).about(entry.title()).arg(captures())
    };
    Cli::command().subcommands(LIBRARY.iter().map(query))
}

/// Writes a page for the program and one for each command: `weir.1`, `weir-run.1`.
pub(crate) fn man_pages(args: &ManPagesArgs) -> anyhow::Result<Status> {
    let folder = &args.folder;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| folder.display().to_string())?;
    Ok(Status::Ok)
}
