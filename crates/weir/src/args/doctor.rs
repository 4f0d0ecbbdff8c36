//! The options of `weir doctor`.

use super::Format;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Interface to look at; several, each with its own -i; all that are up without it
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Vec<String>,

    /// How findings are written; as a text on a terminal, else JSON lines
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
}
