//! The options of `weir doctor`.

use super::values::format;
use clap::Args;
use weir_sink::Format;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Interface to look at; several, each with its own -i; all that are up without it
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Vec<String>,

    /// How findings are written; as a text on a terminal, else JSON lines
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}
