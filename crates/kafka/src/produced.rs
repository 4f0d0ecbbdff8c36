//! Messages while records are carried, and the result.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Says something to the user while the work goes on.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The stream of a probe, as it comes by a pipe.
pub struct PipeOfProbe<'a> {
    /// Its bytes.
    pub stream: &'a mut dyn Read,
    /// Whether nobody writes to the pipe any more, even if something in it is unread.
    pub has_gone: &'a (dyn Fn() -> bool + Sync),
}

/// The process that a member of a group tells of its partitions.
pub struct ParentOfGroup<'a> {
    /// Is told the number of partitions, before the member joins.
    pub ready: &'a mut dyn FnMut(i32) -> io::Result<()>,
    /// Is told what happens.
    pub events: &'a mut (dyn Write + Send),
    /// Says that partitions which were revoked are not processed any more.
    pub acks: Receiver<()>,
}

/// How a probe's records were produced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The partition.
    pub partition: i32,
    /// Records that brokers have confirmed.
    pub delivered: u64,
}
