//! The options for what a run gives up before it reads packets.

use clap::Args;

/// The user and the permissions of a run.
#[derive(Args, Debug)]
pub(crate) struct ConfineArgs {
    /// Become this user once captures and interfaces are open; files that the run writes belong to
    /// this user
    #[arg(short = 'Z', long, value_name = "USER", hide_short_help = true)]
    pub(crate) relinquish_privileges: Option<String>,

    /// Give up no permissions before reading packets (capabilities, files by Landlock, system calls
    /// by seccomp)
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}
