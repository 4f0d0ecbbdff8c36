//! The client, if it is linked.

#[cfg(feature = "link")]
pub use crate::{consume::consume, look::look, produce::produce};
#[cfg(not(feature = "link"))]
pub use without::{consume, look, produce};

/// Whether there is a client.
pub const fn is_linked() -> bool {
    cfg!(feature = "link")
}

#[cfg(not(feature = "link"))]
mod without {
    use crate::log::LogCounts;
    use crate::order::{CarrierOrder, LogName, LogOrder, ProduceOrder, Roster};
    use crate::{KafkaFault, PipeOfProbe, Produced, Say};
    use std::io::Write;
    use std::sync::atomic::AtomicBool;

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn produce(
        _order: &CarrierOrder,
        _task: &ProduceOrder,
        _from: PipeOfProbe<'_>,
        _ready: &mut dyn FnMut() -> std::io::Result<()>,
        _say: &Say,
    ) -> Result<Produced, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn look(
        _order: &CarrierOrder,
        _roster: &Roster,
        _stop: &AtomicBool,
        _say: &Say,
    ) -> Result<Vec<LogName>, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn consume(
        _order: &CarrierOrder,
        _log: &LogOrder,
        _to: &mut dyn Write,
        _stop: &AtomicBool,
        _say: &Say,
    ) -> Result<LogCounts, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }
}
