//! The context in which operators are made, and whose results theirs are merged with.

use crate::functions::Functions;
use crate::room::MemoryRoom;
use crate::table::HashKey;
use std::sync::Arc;

/// The context in which operators are made, besides the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildContext<'a> {
    /// Everything registered.
    pub(crate) functions: &'a Functions,
    /// The key of the hash of tables.
    pub(crate) hash_key: HashKey,
    /// The parties whose results are merged with those of this run.
    pub(crate) peers: Peers,
    /// The memory that stages share, if it is bounded.
    pub(crate) room: Option<&'a Arc<MemoryRoom>>,
}

/// The parties whose results are merged with those of a run, each over packets of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peers {
    /// None: the numbers of packets are their order.
    None,
    /// The results of the kernel, which does not number packets: their times are their order.
    Kernel,
    /// The results of other probes, whose packets have numbers of their own.
    Probes {
        /// Tells probes apart where packets have the same time and number.
        tag: u16,
    },
}
