//! How values are rounded before they are counted.

use crate::expr::Class;
use weir_packet::limits::BATCH;

/// Makes words those that they are counted as.
#[derive(Clone, Copy)]
pub(in crate::agg) struct Rounding {
    /// How the words compare.
    pub(in crate::agg) class: Class,
    /// Rounds one word. It may not become larger than the last argument, which is the largest that
    /// a key has room for.
    pub(in crate::agg) word: fn(u64, u64) -> u64,
    /// The same for a batch of words.
    pub(in crate::agg) batch: fn(&[u64; BATCH], &mut [u64; BATCH], u64),
}
