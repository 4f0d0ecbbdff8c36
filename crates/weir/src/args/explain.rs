//! The options of `weir explain`.

use super::values::{param, workers};
use crate::memory::MemoryShare;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Files, `-` for standard input, or names from `weir list`: what would run together
    #[arg(value_name = "QUERY", required_unless_present = "expressions")]
    pub(crate) queries: Vec<String>,

    /// Text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// Set a parameter, in all queries that have it; QUERY.NAME=VALUE in one
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    /// Threads that work on the query, or `auto` for one per processor
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: NonZeroUsize,

    /// Show which default bounds are lowered to fit into so much memory, or into that share of the
    /// machine's
    #[arg(long, value_name = "SIZE|PERCENT", value_parser = MemoryShare::parse)]
    pub(crate) memory: Option<MemoryShare>,

    /// How the plan is written
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) output: PlanFormat,
}

/// How a plan is written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlanFormat {
    /// Level by level, for people
    Text,
    /// One JSON object, for programs
    Json,
}
