//! A host that shares the partitions of a topic with others: for each of its partitions it starts a
//! run, and a process that carries packets to the run and rows from it. This process sees neither
//! packets nor brokers.

mod check;
mod host;
mod pair;
mod probe;

pub(crate) use check::{check, topic_of};
pub(crate) use host::host;
pub(crate) use probe::probe_of;
