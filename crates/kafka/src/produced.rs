//! What is said while records are carried, and what came of it.

use std::io::Read;
use std::sync::Arc;

/// Says something to the user while the work goes on.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The stream of a probe, as it comes by a pipe.
pub struct PipeOfProbe<'a> {
    /// Its bytes.
    pub stream: &'a mut dyn Read,
    /// Whether nobody writes to the pipe any more, even if something in it is unread.
    pub has_gone: &'a (dyn Fn() -> bool + Sync),
}

/// How a probe's records were produced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The partition.
    pub partition: i32,
    /// Records that brokers have confirmed.
    pub delivered: u64,
}
