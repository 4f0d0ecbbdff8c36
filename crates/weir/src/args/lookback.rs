//! Options of packets around rows.

use super::values::file_size;
use clap::Args;
use std::path::PathBuf;
use weir_capture::limits::LOOKBACK_FILES_MAX;

/// The packets that are kept for `capture` in a query, and where it writes.
#[derive(Args, Debug)]
pub(crate) struct LookbackArgs {
    /// Keep this much of the latest packets, for `capture` in a query or in one that is added later
    /// (--control), and for those who look at packets of a row (--http): in millions of bytes, or
    /// with k, m, g in KiB, MiB, GiB; 0 for none [default: 64m, if something needs it]
    #[arg(long, value_name = "SIZE", value_parser = ring_size)]
    pub(crate) ring: Option<usize>,

    /// Write the files of `capture` into this folder [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) capture_dir: Option<PathBuf>,

    /// Write at most this many files of `capture`
    #[arg(long, value_name = "N", default_value_t = LOOKBACK_FILES_MAX)]
    pub(crate) capture_files: u64,

    /// Write at most this much into each file of `capture` [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    pub(crate) capture_size: Option<u64>,

    /// Whether the ring is there for the page only.
    #[arg(skip)]
    pub(crate) is_of_page: bool,
}

fn ring_size(text: &str) -> Result<usize, String> {
    if text == "0" {
        return Ok(0);
    }
    let size = file_size(text)?;
    usize::try_from(size).map_err(|_| "this is more than the machine can address".to_owned())
}
