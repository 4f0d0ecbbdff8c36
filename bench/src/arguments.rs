//! Arguments that several commands take.

use crate::trace::{PRESETS, Preset};
use anyhow::{Context, Result};

/// Where traces and what is built are kept.
pub(crate) const OUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/out");

/// How often something is run.
#[derive(clap::Args, Debug)]
pub(crate) struct Rounds {
    /// Rounds; one more before them, where there is something to warm up, is not counted.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
}

/// The trace of a name.
///
/// # Errors
/// The names that there are.
pub(crate) fn preset(name: &str) -> Result<&'static Preset> {
    let names = PRESETS.each_ref().map(|p| p.name).join(", ");
    let found = PRESETS.iter().find(|p| p.name == name);
    found.with_context(|| format!("no trace is called {name}; there are {names}"))
}
