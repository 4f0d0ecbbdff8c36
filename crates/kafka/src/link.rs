//! The client, if it is linked.

#[cfg(feature = "link")]
pub use crate::{
    consume::consume,
    group::join,
    look::look,
    process::process,
    produce::produce,
    retire::retire,
    send::{send_packets, send_rows},
};
#[cfg(not(feature = "link"))]
pub use without::{consume, join, look, process, produce, retire, send_packets, send_rows};

/// Whether there is a client.
pub const fn is_linked() -> bool {
    cfg!(feature = "link")
}

#[cfg(not(feature = "link"))]
mod without {
    use crate::log::LogCounts;
    use crate::order::{
        CarrierOrder, GroupOrder, LogName, LogOrder, PacketsOrder, PartitionEvent, PartitionOrder,
        ProduceOrder, Roster,
    };
    use crate::{KafkaFault, ParentOfGroup, PipeOfProbe, Produced, Say};
    use std::fs::File;
    use std::io::{self, Write};
    use std::sync::atomic::AtomicBool;

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn produce(
        _order: &CarrierOrder,
        _task: &ProduceOrder,
        _from: PipeOfProbe<'_>,
        _ready: &mut dyn FnMut() -> io::Result<()>,
        _say: &Say,
    ) -> Result<Produced, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn send_packets(
        _order: &CarrierOrder,
        _task: &PacketsOrder,
        _from: PipeOfProbe<'_>,
        _ready: &mut dyn FnMut(i32) -> io::Result<()>,
        _say: &Say,
    ) -> Result<u64, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn send_rows(
        _order: &CarrierOrder,
        _from: PipeOfProbe<'_>,
        _ready: &mut dyn FnMut(i32) -> io::Result<()>,
        _say: &Say,
    ) -> Result<u64, KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn retire(
        _order: &CarrierOrder,
        _log: &LogName,
        _say: &Say,
    ) -> Result<LogName, KafkaFault> {
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

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn join(
        _order: &CarrierOrder,
        _task: &GroupOrder,
        _parent: ParentOfGroup<'_>,
        _stop: &AtomicBool,
        _say: &Say,
    ) -> Result<(), KafkaFault> {
        Err(KafkaFault::NotLinked)
    }

    /// There is no client: see the crate's feature `link`.
    ///
    /// # Errors
    /// In any case.
    pub fn process(
        _order: &CarrierOrder,
        _task: &PartitionOrder,
        _worker: File,
        _report: &(dyn Fn(&PartitionEvent) -> io::Result<()> + Sync),
        _stop: &AtomicBool,
        _say: &Say,
    ) -> Result<(), KafkaFault> {
        Err(KafkaFault::NotLinked)
    }
}
