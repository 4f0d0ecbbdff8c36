//! The arguments of the commands over texts of queries.

use super::values::param;
use super::{RulesArgs, SiteArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Files, `-` for standard input, or names or groups from `weir list`
    #[arg(value_name = "QUERY", required_unless_present = "expression")]
    pub(crate) queries: Vec<String>,

    /// The text of a query, instead of a file
    #[arg(short, long, value_name = "TEXT", conflicts_with = "queries")]
    pub(crate) expression: Option<String>,

    /// Set a parameter of the query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FmtArgs {
    /// Files to format; `-` or none for standard input
    pub(crate) files: Vec<PathBuf>,

    /// Write nothing; list the files that are not formatted, and fail if there are any
    #[arg(long)]
    pub(crate) check: bool,

    /// Write the files back instead of printing them
    #[arg(short, long, conflicts_with = "check")]
    pub(crate) write: bool,
}
