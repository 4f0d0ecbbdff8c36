//! The options of a run whose results are merged with those of others.

use super::values::stream;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PublishArgs {
    /// Write no rows, but the partial results of the queries into this file or named pipe (`-` for
    /// standard output), which `weir merge` combines with those of other probes
    #[arg(long, value_name = "FILE", value_parser = stream)]
    #[arg(conflicts_with_all = [
        "output", "out_dir", "export", "time", "names", "suppress", "alert_to", "alert_config",
        "alert_spill", "line_buffered", "slow_sink", "sink_queue", "control", "metrics", "http",
        "offload",
    ])]
    pub(crate) publish: Option<String>,

    /// The name of this probe, which no other probe has [default: HOST:INTERFACE or HOST:FILE]
    #[arg(long, value_name = "NAME", requires = "publish")]
    pub(crate) probe: Option<String>,
}
