//! The command line of `weir merge`.

use super::values::{duration, param, stream};
use super::{ConfineArgs, RowArgs, RulesArgs, SiteArgs, StreamArgs};
use crate::memory::MemoryShare;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::{LogName, LogStart};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir run flows -r monday.pcap --publish monday.wps
  weir run flows -r tuesday.pcap --publish tuesday.wps
  weir merge flows --from monday.wps --from tuesday.wps -o csv

  mkfifo north south
  ssh north sudo weir run syn.weir -i eth0 --publish - > north &
  ssh south sudo weir run syn.weir -i eth0 --publish - > south &
  weir merge syn.weir --from north --from south -o json

  weir merge syn.weir --from kafka://broker:9092/syn --probes north,south -o json

  weir merge syn.weir --from north --from south --publish site.wps --probe site";

/// Which logs of a topic are merged.
#[derive(Args, Debug)]
pub(crate) struct MergeKafkaArgs {
    /// The probes in the topic that windows wait for, with commas; NAME@PARTITION for one that runs
    /// with --kafka-partition [default: all that have written something by now]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = LogName::parse)]
    pub(crate) probes: Vec<LogName>,

    /// Wait for this probe of the topic only as far as its log goes now: it is dead
    #[arg(long, value_name = "NAME")]
    pub(crate) retire: Vec<String>,

    /// When to end: `end` where the run of each probe has ended and its log with it, `never` only
    /// when it is told to
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = UntilWhen::Never)]
    #[arg(hide_default_value = true)]
    pub(crate) until: UntilWhen,

    /// Where reading the topic begins: `earliest`, `latest`, or the offset of a record
    #[arg(long, value_name = "WHERE", default_value = "earliest", hide_default_value = true)]
    #[arg(value_parser = LogStart::parse)]
    pub(crate) kafka_from: LogStart,

    /// Properties of the client of Kafka, such as those of TLS: lines of NAME=VALUE, as librdkafka
    /// has them
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,
}

impl MergeArgs {
    /// Whether what is merged goes to a topic.
    pub(crate) fn publishes_to_kafka(&self) -> bool {
        self.publish.as_deref().is_some_and(KafkaTopic::is_meant)
    }
}

/// When the merge of a topic ends.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UntilWhen {
    /// Where each probe's run has ended, and its log with it
    End,
    /// When it is told to
    Never,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// The text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// The queries that the probes run: files, or names or groups from `weir list`
    #[arg(value_name = "QUERY", required_unless_present = "expressions")]
    pub(crate) queries: Vec<String>,

    /// The partial results of a probe (`weir run --publish`): a file, a named pipe, or `-` for
    /// standard input. Each probe has its own --from; windows wait for all of them. A topic
    /// (kafka://HOST:PORT/TOPIC) has those of several probes
    #[arg(long, value_name = "FILE|KAFKA", required = true, value_parser = stream)]
    pub(crate) from: Vec<String>,

    #[command(flatten)]
    pub(crate) kafka: MergeKafkaArgs,

    /// Write no rows, but what was merged, as the partial results of one probe: into this file or
    /// named pipe (`-` for standard output), or topic (kafka://HOST:PORT/TOPIC), for a merge above
    /// this one
    #[arg(long, value_name = "FILE|KAFKA", value_parser = stream)]
    #[arg(conflicts_with_all = [
        "output", "out_dir", "store", "export", "time", "names", "suppress", "alert_to",
        "alert_config", "alert_spill", "line_buffered",
    ])]
    pub(crate) publish: Option<String>,

    #[command(flatten)]
    pub(crate) stream: StreamArgs,

    /// The largest difference allowed between the clocks of live probes: probes whose kernels can't
    /// guarantee it are refused, and the exit status is 1 if eight windows of one come later by
    /// more than that and the lateness of the probes
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_skew: Option<i64>,

    /// Set a parameter in all queries that have it; QUERY.NAME=VALUE sets it in one query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    #[command(flatten)]
    pub(crate) rows: RowArgs,

    /// The memory that all stages share which keep something by key without a `max`: a size, or a
    /// share of the memory of the machine (or control group)
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
