//! The arguments of `weir report`.

use super::values::{duration, workers};
use super::{ConfineArgs, Headers, RulesArgs, SiteArgs};
use crate::memory::MemoryShare;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const USAGE: &str = "\
weir report <CAPTURE>... -o <FILE> [OPTIONS] [FILTER]...
       weir report <CAPTURE>... [OPTIONS] [FILTER]...";

pub(super) const EXAMPLES: &str = "\
Examples:
  weir report trace.pcap
  weir report trace.pcap -o report.html
  weir report trace.pcap -o web.html tcp port 443
  weir report monday.pcap tuesday.pcap --site site.conf -o report.html
  zcat trace.pcap.gz | weir report - -o - >report.html

The page needs no other file and no script. The same capture gives the same bytes. Exit status: 0 if
the report is about the whole input, 1 if not, 2 if the arguments are wrong.";

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// First the captures: pcap or pcapng, plain, gzip or zstd; `-` for standard input. Several are
    /// merged by the times of their packets. Then the words of a capture filter, a filter
    /// expression of tcpdump such as: tcp port 80
    #[arg(value_name = "CAPTURE]... [FILTER")]
    pub(crate) words: Vec<String>,

    /// The capture filter, where its words could be taken for captures
    #[arg(last = true, value_name = "FILTER", hide = true)]
    pub(crate) filter: Vec<String>,

    /// A capture, instead of one among the words; may be given several times
    #[arg(short, long, value_name = "CAPTURE")]
    pub(crate) read: Vec<String>,

    /// The file that the page is written to; `-` for standard output. Without it, a summary is
    /// printed as text
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Read several captures one after the other, in the given order, instead of merging them
    #[arg(long)]
    pub(crate) append: bool,

    /// Leave out a detector, or a group of them; may be given several times
    #[arg(long, value_name = "DETECTOR")]
    pub(crate) without: Vec<String>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    /// Leave out the alerts that this file names, a line each: RULE COLUMN=VALUE … until TIME
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Vec<PathBuf>,

    /// Read the capture filter from a file, in which `#` starts a comment
    #[arg(short = 'F', long, value_name = "FILE")]
    pub(crate) filter_file: Option<PathBuf>,

    /// Stop after this many packets
    #[arg(short, long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Threads that work on the queries, or `auto` for one per processor
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: NonZeroUsize,

    /// The memory that all stages share which keep something by key without a `max`: a size, or a
    /// share of the memory of the machine (or control group)
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "50%")]
    #[arg(value_parser = MemoryShare::parse)]
    pub(crate) memory: MemoryShare,

    /// How long windows wait for packets that come out of order, such as 500ms
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lateness: Option<i64>,

    /// The packet that fields such as ip.src, flow or tcp are read from if there is a tunnel
    #[arg(long, value_enum, value_name = "WHICH", default_value = "outer")]
    pub(crate) headers: Headers,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Give later fragments of a datagram the ports of the first one, if that came before them
    #[arg(long)]
    pub(crate) fragments: bool,

    /// Print no warnings, and only the losses of the ledger
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Show no progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,

    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
}
