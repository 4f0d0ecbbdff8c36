//! The version of this binary, and of what it is made.

use crate::exit::Status;
use std::io::Write as _;

/// The commit and its day; empty in builds for work on it.
const COMMIT: &str = env!("WEIR_COMMIT");

/// The features of the build that are not always there.
const FEATURES: &[(&str, bool)] = &[
    ("dpdk", cfg!(feature = "dpdk")),
    ("kafka", cfg!(feature = "kafka")),
    ("serve", cfg!(feature = "serve")),
    ("sql", cfg!(feature = "sql")),
    ("tables", cfg!(feature = "tables")),
];

/// Prints version, commit, features, and which libpcap is found.
pub(crate) fn print() -> Status {
    let commit = if COMMIT.is_empty() { "a build without a commit" } else { COMMIT };
    let features: Vec<&str> =
        FEATURES.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    let libpcap = weir_capture::libpcap_version().unwrap_or_else(|why| format!("libpcap: {why}"));
    let text =
        format!("weir {} ({commit})\nfeatures: {features}\n{libpcap}\n", env!("CARGO_PKG_VERSION"));
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Status::Ok,
        Err(_) => Status::Failed,
    }
}
