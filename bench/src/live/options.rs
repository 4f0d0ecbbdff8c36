//! Options of `weir-bench live`.

use regex::Regex;
use std::path::PathBuf;

/// The cases to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LiveOptions {
    /// Rounds; one more before them is not counted.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
    /// Bytes of frames, without their check sequence: 60 is the shortest there is on a wire.
    #[arg(long, value_delimiter = ',', default_values_t = [60, 1500])]
    pub(crate) bytes: Vec<usize>,
    /// Flows.
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 100_000])]
    pub(crate) flows: Vec<u32>,
    /// Milliseconds that count, of each run.
    #[arg(long, default_value_t = 1000)]
    pub(crate) window_ms: u64,
    /// Milliseconds before them.
    #[arg(long, default_value_t = 400)]
    pub(crate) warm_up_ms: u64,
    /// Frames of a run at most; a run that ends before its window does has no figures.
    #[arg(long, default_value_t = i32::MAX as u32)]
    pub(crate) frames: u32,
    /// The processor of the sender, and that of the receiver.
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',')]
    #[arg(default_values_t = [0, 1])]
    pub(crate) pin: Vec<usize>,
    /// Run with the priority of any other process; on a machine that does other things.
    #[arg(long)]
    pub(crate) no_priority: bool,
    /// Send by an AF_PACKET socket, as where the kernel makes no live frames.
    #[arg(long)]
    pub(crate) socket: bool,
    /// Only those receivers whose name in the table matches.
    #[arg(long, value_name = "REGEX")]
    pub(crate) only: Option<Regex>,
    /// Only check that everything adds up: windows may stay open.
    #[arg(long)]
    pub(crate) check: bool,
    /// Write every single measurement to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
