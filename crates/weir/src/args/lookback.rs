//! Options of packets around rows.

use super::values::file_size;
use clap::Args;
use std::path::PathBuf;
use weir_capture::limits::LOOKBACK_FILES_MAX;

/// What `capture` in a query keeps, and where it writes.
#[derive(Args, Debug)]
pub(crate) struct LookbackArgs {
    /// Keep the last packets, for `capture` in a query or in one that comes later (--control): so
    /// many millions of bytes of them; KiB, MiB, GiB with k, m, g. 64m without it
    #[arg(long, value_name = "SIZE", value_parser = ring_size)]
    pub(crate) ring: Option<usize>,

    /// Write the files of `capture` into this folder
    #[arg(long, value_name = "FOLDER", default_value = ".", hide_default_value = true)]
    pub(crate) capture_dir: PathBuf,

    /// Write so many files of `capture` at most
    #[arg(long, value_name = "N", default_value_t = LOOKBACK_FILES_MAX)]
    pub(crate) capture_files: u64,

    /// Write so much into each of them at most; 64m without it
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    pub(crate) capture_size: Option<u64>,
}

fn ring_size(text: &str) -> Result<usize, String> {
    let size = file_size(text)?;
    usize::try_from(size).map_err(|_| "more than this machine can have".to_owned())
}
