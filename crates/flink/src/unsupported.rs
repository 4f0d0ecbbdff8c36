//! What does not run on Flink, by name.

use std::fmt;
use weir_engine::exchange::Refused;

/// Why a query does not run on Flink.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unsupported {
    /// Several probes can't run it in any way.
    Spread(Refused),
    /// A pipeline needs something that the job does not do.
    In {
        /// The pipeline, by its name or its number.
        pipeline: String,
        /// What it needs.
        what: String,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Spread(why) => write!(f, "{why}"),
            Unsupported::In { pipeline, what } => write!(
                f,
                "{pipeline} needs {what}, which does not run on Flink: run the upper level with \
                 `weir merge`"
            ),
        }
    }
}

impl std::error::Error for Unsupported {}
