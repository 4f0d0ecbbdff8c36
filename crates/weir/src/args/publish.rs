//! The options of a run whose results are merged with those of others.

use super::values::{file_size, stream};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct PublishArgs {
    /// Write no rows, but the partial results of the queries into this file or named pipe (`-` for
    /// standard output), or topic (kafka://HOST:PORT/TOPIC), which `weir merge` combines with those
    /// of other probes
    #[arg(long, value_name = "FILE|KAFKA", value_parser = stream)]
    #[arg(conflicts_with_all = [
        "output", "out_dir", "store", "export", "time", "names", "suppress", "alert_to",
        "alert_config", "alert_spill", "line_buffered", "slow_sink", "sink_queue", "control",
        "metrics", "http", "offload", "rows",
    ])]
    pub(crate) publish: Option<String>,

    /// Properties of the client of Kafka (kafka://), such as those of TLS: lines of NAME=VALUE, as
    /// librdkafka has them
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) kafka_config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stream: StreamArgs,
}

/// The options of who publishes a stream of partial results: a probe, or a merge.
#[derive(Args, Debug)]
pub(crate) struct StreamArgs {
    /// The name under which partial results are published, which no other probe has [default: HOST
    /// and what is read, as HOST:eth0]
    #[arg(long, value_name = "NAME", requires = "publish")]
    pub(crate) probe: Option<String>,

    /// The partition that partial results go to [default: by the hash of the name of the probe]
    #[arg(long, value_name = "N", requires = "publish", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) kafka_partition: Option<i32>,

    /// Keep records in this folder that have no room in memory while no broker answers (-w or
    /// --publish kafka://)
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) kafka_spill: Option<PathBuf>,

    /// How much may be kept there: bytes in millions, or with k, m, g in KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", requires = "kafka_spill", default_value = "1g")]
    #[arg(value_parser = file_size, hide_short_help = true)]
    pub(crate) kafka_spill_max: u64,
}

impl StreamArgs {
    /// Whether something is set that only Kafka has.
    pub(crate) fn is_for_kafka(&self) -> bool {
        self.kafka_partition.is_some() || self.kafka_spill.is_some()
    }
}
