//! What is said while records are carried, and what came of it.

use std::sync::Arc;

/// Says something to the user while the work goes on.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// How a probe's records were produced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The partition.
    pub partition: i32,
    /// Records that brokers have confirmed.
    pub delivered: u64,
}
