//! The options of `weir explain`.

use super::values::{param, workers};
use super::{HookName, RulesArgs, SiteArgs};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Queries that would run together: files, `-` for standard input, or names or groups from
    /// `weir list`
    #[arg(value_name = "QUERY", required_unless_present = "expressions")]
    pub(crate) queries: Vec<String>,

    /// The text of a query, instead of a file; may be given several times
    #[arg(short, long = "expression", value_name = "TEXT")]
    pub(crate) expressions: Vec<String>,

    /// Set a parameter in all queries that have it; QUERY.NAME=VALUE sets it in one query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Threads that work on the query, or `auto` for one per processor
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: NonZeroUsize,

    /// Show the part that the kernel can run with --offload, at this hook, its program and its maps
    #[arg(long, value_enum, value_name = "HOOK", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "socket")]
    pub(crate) offload: Option<HookName>,

    /// Show whether several probes can run the query together (run --publish, merge), which packets
    /// each may see, and the fingerprint that their partial results bear
    #[arg(long, conflicts_with = "offload")]
    pub(crate) cluster: bool,

    /// Show what rows look like in JSON instead, as a JSON Schema
    #[arg(long, conflicts_with_all = ["offload", "cluster", "output"])]
    pub(crate) schema: bool,

    /// The format of the plan
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) output: PlanFormat,
}

/// The format of a plan.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlanFormat {
    /// Level by level, for people
    Text,
    /// One JSON object, for programs
    Json,
}
