//! The command line of `weir merge`.

use super::values::{format, param};
use super::{ConfineArgs, Names, SiteArgs, Time};
use crate::memory::MemoryShare;
use clap::Args;
use std::path::PathBuf;
use weir_sink::Format;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir run flows -r monday.pcap --publish monday.wps
  weir run flows -r tuesday.pcap --publish tuesday.wps
  weir merge flows --from monday.wps --from tuesday.wps -o csv

  mkfifo north south
  ssh north sudo weir run syn.weir -i eth0 --publish - > north &
  ssh south sudo weir run syn.weir -i eth0 --publish - > south &
  weir merge syn.weir --from north --from south -o json";

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// The text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// The queries that the probes run: files, or names or groups from `weir list`
    #[arg(value_name = "QUERY", required_unless_present = "expressions")]
    pub(crate) queries: Vec<String>,

    /// The partial results of a probe (`weir run --publish`): a file, a named pipe, or `-` for
    /// standard input. Each probe has its own --from; windows wait for all of them
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) from: Vec<String>,

    /// Set a parameter in all queries that have it; QUERY.NAME=VALUE sets it in one query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,

    /// Write a file for each output into this folder: QUERY.csv, or QUERY.NAME.csv for a named one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out_dir: Option<PathBuf>,

    /// The format of times
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "rfc3339")]
    pub(crate) time: Time,

    /// The tool whose names columns have: ip.src is id.orig_h in Zeek, and src_ip in EVE
    #[arg(long, value_enum, value_name = "PROFILE", default_value = "native")]
    pub(crate) names: Names,

    /// Leave out the alerts that this file names, a line each: RULE COLUMN=VALUE … until TIME
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Vec<PathBuf>,

    /// The memory that the default bounds of all stages fit into together: a size, or a share of
    /// the memory of the machine (or control group)
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "50%")]
    #[arg(value_parser = MemoryShare::parse)]
    pub(crate) memory: MemoryShare,

    /// Print no warnings, and only what was lost
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Also print what came from each probe
    #[arg(short, long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) confine: ConfineArgs,

    /// Write each row as soon as it is emitted
    #[arg(short, long)]
    pub(crate) line_buffered: bool,

    /// Fail with exit status 1 if packets or rows were lost, late or evicted, after everything else
    /// is done
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
}
