//! What operators are made with, and whose results theirs are merged with.

use crate::functions::Functions;
use crate::table::HashKey;

/// What operators are made with, besides the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildContext<'a> {
    /// Everything registered.
    pub(crate) functions: &'a Functions,
    /// What tables hash keys with.
    pub(crate) hash_key: HashKey,
    /// Whose results are merged with those of this run.
    pub(crate) peers: Peers,
}

/// Whose results are merged with those of a run, each over packets of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peers {
    /// Nobody's: the numbers of packets are their order.
    None,
    /// Those of the kernel, which does not number packets: their times are their order.
    Kernel,
    /// Those of other probes, whose packets have numbers of their own.
    Probes {
        /// Tells probes apart where packets have the same time and number.
        tag: u16,
    },
}
