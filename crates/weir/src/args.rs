//! The command line, as clap sees it. The letters are those of tcpdump where it has one.

mod archive;
mod cluster;
mod confine;
pub(crate) mod ctl;
mod deliver;
mod doctor;
mod explain;
mod help;
mod http;
mod later;
mod lists;
mod live;
mod lookback;
mod merge;
mod offload;
mod partitions;
mod publish;
mod report;
mod rows;
mod rules;
mod serve;
mod site;
mod sql;
mod texts;
mod values;
mod watch;
pub(crate) mod wires;
mod write;

pub(crate) use archive::ArchiveArgs;
#[cfg(feature = "tables")]
pub(crate) use archive::{ArchiveCommand, ExpireArgs, ListStoredArgs};
pub(crate) use cluster::{
    ClusterArgs, ClusterCommand, ClusterQueryArgs, FlinkArgs, JobArgs, RetireArgs, SavepointArgs,
    SubmitArgs,
};
pub(crate) use confine::ConfineArgs;
pub(crate) use deliver::DeliverArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use explain::{ExplainArgs, PlanFormat};
use help::{CLIENTS, INPUT, LATEST, LIVE, PACKETS, PROBES, READING, RIGHTS, ROWS, RUN};
pub(crate) use help::{CompletionsArgs, HelpArgs, ManPagesArgs, in_short};
pub(crate) use http::HttpArgs;
pub(crate) use later::LaterArgs;
pub(crate) use lists::{FieldsArgs, InterfacesArgs, ListArgs};
pub(crate) use live::{Capture, LiveArgs, Stamp};
pub(crate) use lookback::LookbackArgs;
pub(crate) use merge::{MergeArgs, UntilWhen};
pub(crate) use offload::{HookName, OffloadMode};
pub(crate) use partitions::{PartitionRun, PartitionsArgs};
pub(crate) use publish::{PublishArgs, StreamArgs};
pub(crate) use report::ReportArgs;
pub(crate) use rows::RowArgs;
pub(crate) use rules::RulesArgs;
pub(crate) use site::SiteArgs;
pub(crate) use sql::SqlArgs;
pub(crate) use texts::{CheckArgs, FmtArgs};
pub(crate) use values::{ExportTo, ExportVersion, Headers, SlowSink, file_size};
use values::{batches, duration, param, seconds, workers};
pub(crate) use write::WriteArgs;

use crate::exit::usage;
use crate::memory::MemoryShare;
use crate::term::ColorWhen;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use weir_packet::egress::Outlet;
use weir_plan::Program;
use weir_sink::limits::QUEUE_BATCHES;

/// Ask questions of packet streams: one short typed query at line rate.
#[derive(Parser, Debug)]
#[command(
    name = "weir",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_value_name = "COMMAND",
    after_help = AFTER_HELP,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to color headings and messages
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: ColorWhen,
}

const AFTER_HELP: &str = "\
weir FILE.pcap opens a screen on a terminal, and prints a summary elsewhere.
weir 'where dns | top 5 by len' FILE.pcap asks a question: `weir help language`.
Queries that come with Weir run by name: weir flows FILE.pcap [FILTER]. `weir list` lists them.

Rows go to standard output, everything else to standard error. Ctrl-C ends the input: windows
close, and the last rows and the ledger are printed. A second Ctrl-C ends the program at once.
Exit status: 0 if the run completed or was interrupted, 1 if it failed, 2 if the arguments or the
query are wrong, 130 if a second Ctrl-C ended it.";

const OPEN_USAGE: &str = "\
weir <CAPTURE>... [OPTIONS] [FILTER]...
       weir <QUERY>... <CAPTURE>... [OPTIONS] [FILTER]...
       weir -i <INTERFACE> [OPTIONS] [FILTER]...";

const RUN_USAGE: &str = "\
weir run <QUERY>... <CAPTURE>... [OPTIONS] [FILTER]...
       weir run -e <TEXT> <CAPTURE>... [OPTIONS] [FILTER]...
       weir run <QUERY>... -i <INTERFACE> [OPTIONS] [FILTER]...";

const RUN_EXAMPLES: &str = "\
Examples:
  weir run syn_flood.weir capture.pcap -p threshold=100
  weir run 'summarize n = count() by ip.dst every 1s' capture.pcap tcp port 80
  weir run flows knock my.weir capture.pcap -o csv --out-dir results udp
  zcat capture.pcap.gz | weir run my.weir -r - -o json | jq .
  sudo weir run ipfix -i eth0 -o table tcp port 443";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run queries over a capture
    #[command(override_usage = RUN_USAGE, after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Run the detectors that come with Weir, and print their alerts
    #[command(override_usage = watch::USAGE, after_help = watch::EXAMPLES)]
    #[command(mut_arg("interface", wires::interface_of_detectors))]
    Watch(Box<WatchArgs>),
    /// Write a page about a capture: one HTML file with time lines, top tables and findings
    #[command(override_usage = report::USAGE, after_help = report::EXAMPLES)]
    Report(Box<ReportArgs>),
    /// Show what is on the wire, or in a capture, on a page for browsers
    #[command(override_usage = serve::USAGE, after_help = serve::EXAMPLES)]
    #[command(mut_arg("interface", wires::interface))]
    #[command(mut_arg("group", wires::unoffered), mut_arg("until", wires::unoffered))]
    Serve(Box<ServeArgs>),
    /// Merge the partial results of several probes (weir run --publish) into rows
    #[command(after_help = merge::EXAMPLES)]
    Merge(Box<MergeArgs>),
    /// Run the upper levels of queries on Apache Flink, over partial results in Kafka
    #[command(after_help = cluster::EXAMPLES)]
    Cluster(ClusterArgs),
    /// Ask captures, rows and stored tables by SQL
    #[command(after_help = sql::EXAMPLES)]
    Sql(SqlArgs),
    /// List, check and clear out rows that are stored (weir run --store)
    #[command(after_help = archive::EXAMPLES)]
    Archive(ArchiveArgs),
    /// Check queries without running them
    Check(CheckArgs),
    /// Format queries
    Fmt(FmtArgs),
    /// Show how queries would run, and why
    Explain(ExplainArgs),
    /// List the fields, keys and parts of packets that queries can use
    Fields(FieldsArgs),
    /// List the queries that come with Weir
    List(ListArgs),
    /// List the interfaces and devices to capture from
    Interfaces(InterfacesArgs),
    /// Change the programs of a run that was started with --control
    Ctl(ctl::CtlArgs),
    /// Check whether this machine is set up for capturing
    Doctor(DoctorArgs),
    /// Deliver the alerts of a run, which starts this itself
    #[command(hide = true)]
    DeliverAlerts,
    /// Keep captures for the page of a run, which starts this itself
    #[command(hide = true)]
    KeepCaptures,
    /// Print what a shell takes to complete command lines: bash, zsh, fish
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    ManPages(ManPagesArgs),
    /// Show the help of a command, a query, or a word of the language
    Help(HelpArgs),
    /// Carry partial results to Kafka or from there, for the process that starts it
    #[command(hide = true)]
    KafkaCarrier,
    /// Run the queries over a partition of a topic, for the run that starts this itself
    #[command(hide = true)]
    KafkaWorker,
    /// Run a query of the library by its name
    #[command(external_subcommand)]
    Library(Vec<OsString>),
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// Queries, captures, and the words of a capture filter such as: tcp port 80
    ///
    /// First the query: a file, `-` for standard input, a name from `weir list`, or its text in
    /// quotes (not needed with -e); or several at once: a folder of queries, `detectors/`, or a
    /// group of detectors such as `detectors/floods`. Then further queries that run together with
    /// it. Captures by name, such as trace.pcap, stand anywhere. Then the words of a capture
    /// filter, a filter expression of tcpdump.
    #[arg(value_name = "QUERY]... [CAPTURE]... [FILTER")]
    pub(crate) words: Vec<String>,

    /// The capture filter, where its words could be taken for queries
    #[arg(last = true, value_name = "FILTER", hide = true)]
    pub(crate) filter: Vec<String>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Detectors, if not the usual ones, captures, and the words of a capture filter
    ///
    /// Detectors are names or groups from `weir list` (`syn_flood`, `detectors/floods`,
    /// `detectors/` for all, measurements too), or files (`NAME.weir`). Captures are known by name,
    /// such as trace.pcap. A capture filter is a filter expression of tcpdump, such as tcp port 80.
    #[arg(value_name = "DETECTOR]... [CAPTURE]... [FILTER")]
    pub(crate) words: Vec<String>,

    /// Leave out a detector, or a group of them; may be given several times
    #[arg(long, value_name = "DETECTOR")]
    pub(crate) without: Vec<String>,

    /// The capture filter, where its words could be taken for detectors
    #[arg(last = true, value_name = "FILTER", hide = true)]
    pub(crate) filter: Vec<String>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Further queries, captures, and the words of a capture filter such as: tcp port 80
    ///
    /// Queries are files (`NAME.weir`), and names or groups from `weir list`, such as `detectors/`.
    /// Captures are known by name, such as trace.pcap. A capture filter is a filter expression of
    /// tcpdump.
    #[arg(value_name = "QUERY]... [CAPTURE]... [FILTER")]
    pub(crate) words: Vec<String>,

    /// The capture filter, where its words could be taken for queries
    #[arg(last = true, value_name = "FILTER", hide = true)]
    pub(crate) filter: Vec<String>,

    /// Also let the page ask queries of the captures below this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) captures: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// The command line of a query of the library: `weir flows …`.
#[derive(Parser, Debug)]
#[command(max_term_width = 100)]
pub(crate) struct LibraryArgs {
    /// Captures, such as trace.pcap, and the words of a capture filter such as: tcp port 80
    ///
    /// `-` is standard input. A capture filter is a filter expression of tcpdump.
    #[arg(value_name = "CAPTURE]... [FILTER")]
    pub(crate) filter: Vec<String>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    /// When to color headings and messages
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<ColorWhen>,
}

/// The command line without a command: `weir trace.pcap`.
#[derive(Parser, Debug)]
#[command(name = "weir", max_term_width = 100, override_usage = OPEN_USAGE)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// When to color headings and messages
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<ColorWhen>,
}

/// The options of every run.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// A capture or a folder of captures, instead of one among the words
    ///
    /// Captures are pcap or pcapng, plain, gzip or zstd; `-` is standard input. Several are merged
    /// by the times of their packets.
    #[arg(short, long, value_name = "CAPTURE", help_heading = INPUT)]
    pub(crate) read: Vec<String>,

    /// Read several captures one after the other, in the given order, instead of merging them
    #[arg(long, conflicts_with = "interface", help_heading = INPUT)]
    pub(crate) append: bool,

    /// Set a parameter in all queries that have it, or in one by QUERY.NAME=VALUE
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    /// Read the capture filter from a file, in which `#` starts a comment
    #[arg(short = 'F', long, value_name = "FILE", help_heading = INPUT)]
    pub(crate) filter_file: Option<PathBuf>,

    #[command(flatten, next_help_heading = ROWS)]
    pub(crate) rows: RowArgs,

    /// Draw the rows over time, too: a picture (SVG) with a panel for each column of numbers, and a
    /// line for each key
    #[arg(long, value_name = "FILE.svg", help_heading = ROWS)]
    pub(crate) plot: Option<PathBuf>,

    /// Stop after this many packets
    #[arg(short, long, value_name = "N", help_heading = INPUT)]
    pub(crate) count: Option<u64>,

    /// Threads that work on the query, or `auto` for one per processor
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = workers)]
    #[arg(help_heading = RUN)]
    pub(crate) workers: NonZeroUsize,

    /// The approximate number of groups of a summarize: its tables begin with room for them
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    #[arg(help_heading = RUN)]
    pub(crate) groups: usize,

    /// The memory that all stages share which keep something by key without a `max`: a size, or a
    /// share of the memory of the machine (or control group)
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "50%")]
    #[arg(value_parser = MemoryShare::parse, help_heading = RUN)]
    pub(crate) memory: MemoryShare,

    /// How long windows wait for packets that come out of order, such as 500ms, or for late flow
    /// records [default: 1s for packets, 60s for flow records]
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = READING)]
    pub(crate) lateness: Option<i64>,

    /// The packet of a tunnel that fields such as ip.src, flow or tcp are read from
    ///
    /// Tunnels are IP in IP, GRE, ERSPAN, VXLAN, GENEVE, GTP-U and Teredo.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "outer", help_heading = READING)]
    pub(crate) headers: Headers,

    #[command(flatten, next_help_heading = READING)]
    pub(crate) rules: RulesArgs,

    /// Give later fragments of a datagram the ports of the first one, if that came before them
    #[arg(long, help_heading = READING)]
    pub(crate) fragments: bool,

    /// Check the query and the filter, and stop
    #[arg(short = 'T', long, help_heading = RUN)]
    pub(crate) test: bool,

    /// Print no warnings, and only the losses of the ledger
    #[arg(short, long, conflicts_with = "verbose", help_heading = RUN)]
    pub(crate) quiet: bool,

    /// Print the plan of the query before it runs, and more of the ledger at the end
    #[arg(short, long, help_heading = RUN)]
    pub(crate) verbose: bool,

    /// Show no progress bar
    #[arg(long, help_heading = RUN)]
    pub(crate) no_progress: bool,

    /// Accepted without effect: Weir never looks up names
    #[arg(short = 'n', hide = true)]
    pub(crate) _numeric: bool,

    #[command(flatten, next_help_heading = LIVE)]
    pub(crate) live: LiveArgs,

    #[command(flatten, next_help_heading = RIGHTS)]
    pub(crate) confine: ConfineArgs,

    #[command(flatten, next_help_heading = LATEST)]
    pub(crate) lookback: LookbackArgs,

    /// Write each row as soon as it is emitted, even while packets keep coming
    #[arg(short, long, help_heading = ROWS)]
    pub(crate) line_buffered: bool,

    /// Write each packet (-w, `forward`) at once
    #[arg(short = 'U', long, help_heading = PACKETS)]
    pub(crate) packet_buffered: bool,

    /// Print the ledger so far at this interval; SIGUSR1 prints it at any time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = RUN)]
    pub(crate) stats: Option<Duration>,

    /// Wait for a reader that does not take rows in time, or drop rows [default: wait for files,
    /// drop for interfaces]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = ROWS)]
    pub(crate) slow_sink: Option<SlowSink>,

    /// The number of batches of up to 256 rows that may wait before rows are left out
    #[arg(long, value_name = "BATCHES", default_value_t = QUEUE_BATCHES, value_parser = batches)]
    #[arg(hide_default_value = true, help_heading = ROWS)]
    pub(crate) sink_queue: usize,

    /// Fail with exit status 1 if packets or rows were lost, late or evicted
    #[arg(long, help_heading = RUN)]
    pub(crate) fail_on_loss: bool,

    #[command(flatten, next_help_heading = CLIENTS)]
    pub(crate) later: LaterArgs,

    #[command(flatten, next_help_heading = CLIENTS)]
    pub(crate) http: HttpArgs,

    #[command(flatten, next_help_heading = PROBES)]
    pub(crate) publish: PublishArgs,

    #[command(flatten, next_help_heading = PACKETS)]
    pub(crate) write: WriteArgs,

    #[command(flatten, next_help_heading = PROBES)]
    pub(crate) partitions: PartitionsArgs,
}

impl Cli {
    /// Reads a command line, the name of the program first.
    pub(crate) fn read<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Cli, clap::Error> {
        let command = Cli::command().mut_subcommands(in_short);
        Cli::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

impl RunOptions {
    /// How headers are read where packets are in tunnels.
    pub(crate) fn headers(&self) -> weir_packet::walk::Headers {
        weir_packet::walk::Headers::from(self.headers).with_ports(self.rules.tunnel_ports())
    }

    /// Whether programs may come and go.
    pub(crate) fn takes_programs(&self) -> bool {
        self.later.control.is_some() || self.http.http.is_some()
    }

    /// Where packets of a program may go that the run begins with, and where those of programs may
    /// that come later, but for new files.
    pub(crate) fn outlets(&self, program: &Program) -> Vec<Outlet> {
        let mut all = program.outlets();
        let later = self.takes_programs().then(|| self.later.wires().chain([Outlet::Pass]));
        for outlet in later.into_iter().flatten() {
            if !all.contains(&outlet) {
                all.push(outlet);
            }
        }
        all
    }

    /// Whether a part of the query in the kernel decides which packets the host gets, for as long
    /// as the run lasts: once programs have changed, packets go up, and no way leads back.
    pub(crate) fn gives_to_host(&self) -> bool {
        let in_kernel = self.live.is_xdp() && self.live.is_offload_required();
        !self.live.interface.is_empty() && in_kernel && !self.takes_programs()
    }

    /// Whether a capture comes from standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.read.iter().any(|name| name == "-")
    }

    /// The capture filter, given as words or in a file; empty for none.
    pub(crate) fn filter(&self, words: &str) -> anyhow::Result<String> {
        let Some(path) = &self.filter_file else { return Ok(words.to_owned()) };
        if !words.is_empty() {
            let file = path.display();
            return Err(usage(format!("there are two capture filters: -F {file}, and `{words}`")));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| usage(format!("-F {}: {e}", path.display())))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        Ok(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> RunArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("parses");
        match cli.command {
            Command::Run(args) => *args,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
        LibraryArgs::command().debug_assert();
    }

    #[test]
    fn filter_words_follow_options_and_need_no_quotes() {
        let args = parse("weir run q.weir -nr x.pcap -o json tcp port 80 and not host 10.0.0.1");
        assert_eq!(args.words.join(" "), "q.weir tcp port 80 and not host 10.0.0.1");
        assert_eq!(args.options.read, ["x.pcap"]);
        assert_eq!(args.options.rows.output, Some(&weir_sink::json::FORMAT));
    }

    #[test]
    fn params_repeat() {
        let args = parse("weir run -e packets -r - -p a=1 -p b=x=y");
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(args.options.params, [pair("a", "1"), pair("b", "x=y")]);
    }

    #[test]
    fn queries_and_filters() {
        let args = parse("weir run a.weir -r x b.weir -- udp port 53");
        assert_eq!(args.words, ["a.weir", "b.weir"]);
        assert_eq!(args.filter, ["udp", "port", "53"]);
        let args = parse("weir run -e packets -e arp -r x tcp");
        assert_eq!((args.expressions.len(), args.words.len()), (2, 1));
    }

    #[test]
    fn numbers_and_durations() {
        let args = parse("weir run q -r x -j 4 --lateness 500ms -c 10");
        assert_eq!(args.options.workers.get(), 4);
        assert_eq!(args.options.lateness, Some(500_000_000));
        assert_eq!(args.options.count, Some(10));
        assert_eq!(args.options.memory, MemoryShare::Percent(50));
    }

    #[test]
    fn other_names_are_queries_of_the_library() {
        let cli = Cli::try_parse_from(["weir", "flows", "-r", "x.pcap", "udp"]).expect("parses");
        assert!(matches!(cli.command, Command::Library(words) if words.len() == 4));
    }

    #[test]
    fn watching_takes_the_options_of_a_run() {
        let line = "weir watch detectors/floods -i eth0 -j 2 --site s.conf --without x tcp port 80";
        let cli = Cli::try_parse_from(line.split(' ')).expect("parses");
        let Command::Watch(args) = cli.command else { panic!("not a watch") };
        assert_eq!(args.words.join(" "), "detectors/floods tcp port 80");
        assert_eq!((args.without, args.options.workers.get()), (vec!["x".to_owned()], 2));
        assert!(args.options.site.site.is_some());
    }
}
