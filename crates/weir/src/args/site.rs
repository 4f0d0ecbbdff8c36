//! The file of a site's parameters.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct SiteArgs {
    /// Set parameters from a file, in all queries that have them
    ///
    /// Its lines are as `local = {10.0.0.0/8, fc00::/7}`; -p takes precedence.
    #[arg(long, value_name = "FILE")]
    pub(crate) site: Option<PathBuf>,
}
