//! The options of `weir doctor`.

use super::values::format;
use clap::Args;
use weir_sink::Format;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The interface to check; several, each with its own -i [default: all that are up]
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Vec<String>,

    /// The format of findings [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}
