//! The command line of `weir archive`.

use super::values::{duration, file_size, format};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_sink::Format;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir archive ls archive
  weir archive check archive
  weir archive expire archive --older-than 90d --keep 500g
  weir archive expire archive --older-than 90d --dry-run";

#[derive(Args, Debug)]
pub(crate) struct ArchiveArgs {
    #[command(subcommand)]
    pub(crate) command: ArchiveCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ArchiveCommand {
    /// List the outputs that are stored, or the hours of one of them
    Ls(ListStoredArgs),
    /// Read all files to their ends: each is whole, and has the columns and times that it says
    Check(CheckStoredArgs),
    /// Remove the oldest files
    Expire(ExpireArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListStoredArgs {
    /// The folder of the archive, as --store had it
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,

    /// List the hours of this output
    #[arg(value_name = "OUTPUT")]
    pub(crate) output_name: Option<String>,

    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckStoredArgs {
    /// The folder of the archive, as --store had it
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExpireArgs {
    /// The folder of the archive, as --store had it
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,

    /// Remove files whose last row is older than this, such as 90d; rows without a time are as old
    /// as their file
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[arg(required_unless_present = "keep")]
    pub(crate) older_than: Option<i64>,

    /// Remove the oldest files until the others take no more than this: in MB, or with k, m, g
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    pub(crate) keep: Option<u64>,

    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}
