//! The arguments of the commands that help, and how the options of a run stand in its help.

use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// A command, a name from `weir list`, or a word of the language: a stage, a function, a field,
    /// a key, the code of a message, `functions`; `language` for the whole reference
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell. Its manual says where it looks for them: for bash, for example,
    /// ~/.local/share/bash-completion/completions/weir
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManPagesArgs {
    /// The folder, which is there
    pub(crate) folder: PathBuf,
}

/// The headings of the options of a run.
pub(super) const INPUT: &str = "Input";
pub(super) const RUN: &str = "The run";
pub(super) const READING: &str = "How packets are read";
pub(super) const ROWS: &str = "Rows";
pub(super) const PACKETS: &str = "Packets that the query passes";
pub(super) const LIVE: &str = "Capture from interfaces";
pub(super) const LATEST: &str = "The latest packets";
pub(super) const CLIENTS: &str = "Programs and clients while it runs";
pub(super) const PROBES: &str = "Several probes, and Kafka";
pub(super) const RIGHTS: &str = "Permissions";

/// The arguments that `-h` shows of a run. `--help` shows all.
const SHORT: &[&str] = &[
    "words",
    "expressions",
    "read",
    "count",
    "params",
    "output",
    "out_dir",
    "workers",
    "time_zone",
    "quiet",
    "verbose",
    "interface",
    "capture",
    "write",
    "line_buffered",
    "fail_on_loss",
    "http",
    "alert_to",
    "without",
    "captures",
    "color",
    "site",
];

/// A command with few options in its short help, if it has those of a run.
pub(crate) fn in_short(command: Command) -> Command {
    if command.get_arguments().all(|arg| arg.get_id() != "sink_queue") {
        return command;
    }
    command.mut_args(|arg| {
        let is_short = SHORT.contains(&arg.get_id().as_str());
        if is_short { arg } else { arg.hide_short_help(true) }
    })
}
