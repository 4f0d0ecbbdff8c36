//! The options of what a run gives up before it looks at packets.

use clap::Args;

/// Who a run is, and what it may do.
#[derive(Args, Debug)]
pub(crate) struct ConfineArgs {
    /// Become this user once captures and interfaces are open: files are written as theirs
    #[arg(short = 'Z', long, value_name = "USER", hide_short_help = true)]
    pub(crate) relinquish_privileges: Option<String>,

    /// Keep all permissions while reading packets: nothing is given up (capabilities, files by
    /// Landlock, system calls by seccomp)
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}
