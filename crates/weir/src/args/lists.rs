//! The arguments of the commands that list what there is.

use super::values::format;
use clap::Args;
use weir_sink::Format;

#[derive(Args, Debug)]
pub(crate) struct FieldsArgs {
    /// List only fields whose name or description contains this
    pub(crate) pattern: Option<String>,

    /// List the fields and keys of flow records: of queries that begin with `flows`
    #[arg(long)]
    pub(crate) flows: bool,

    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// List only this group, such as `general` or `detectors`
    pub(crate) group: Option<String>,

    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}

#[derive(Args, Debug)]
pub(crate) struct InterfacesArgs {
    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}
