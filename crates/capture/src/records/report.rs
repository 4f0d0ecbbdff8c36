//! Counts of exporters and their records, which a run reads while records come, and after.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_flows::{Collector, Counts, Datagram, Exporter};
use weir_packet::record::FlowRecord;
use weir_packet::source::{Account, Lost};

/// The collector of a source, which others may ask what it counted.
#[derive(Clone, Default)]
pub struct RecordReport(Arc<RecordCounts>);

#[derive(Default)]
struct RecordCounts {
    collector: Mutex<Collector>,
    /// Datagrams that the kernel dropped, since the program did not keep up.
    dropped: AtomicU64,
    /// The losses that the last call of [`RecordReport::losses`] returned.
    told: Mutex<Lost>,
    /// Packets that were read and carried no datagram of an exporter.
    others: AtomicU64,
    /// Packets that were lost before they were read.
    unseen: AtomicU64,
    /// Records that said to end too long after they came.
    ahead: AtomicU64,
    /// Records beyond those that one datagram may bring.
    crowded: AtomicU64,
}

/// Counts of a source of flow records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSummary {
    /// Of all exporters.
    pub counts: Counts,
    /// Of each.
    pub exporters: Vec<Exporter>,
    /// Datagrams that the kernel dropped, since the program did not keep up.
    pub dropped: u64,
    /// Packets of a capture that carried no datagram of an exporter.
    pub others: u64,
    /// Packets of a capture that were lost before they were read: each may have carried a datagram.
    pub unseen: u64,
    /// Records that said to end more than [`RECORD_AHEAD_NS`](crate::limits::RECORD_AHEAD_NS) after
    /// they came, and count for the time at which they did.
    pub ahead: u64,
    /// Records beyond the [`RECORDS_AT_ONCE`](crate::limits::RECORDS_AT_ONCE) that one datagram may
    /// bring.
    pub crowded: u64,
}

impl RecordReport {
    /// The counts so far.
    pub fn summary(&self) -> RecordSummary {
        let collector = self.0.collector.lock();
        RecordSummary {
            counts: collector.counts(),
            exporters: collector.exporters().to_vec(),
            dropped: self.0.dropped.load(Ordering::Relaxed),
            others: self.0.others.load(Ordering::Relaxed),
            unseen: self.0.unseen.load(Ordering::Relaxed),
            ahead: self.0.ahead.load(Ordering::Relaxed),
            crowded: self.0.crowded.load(Ordering::Relaxed),
        }
    }

    pub(super) fn read(&self, datagram: &Datagram<'_>, put: &mut dyn FnMut(&FlowRecord, i64)) {
        self.0.collector.lock().read(datagram, put);
    }

    pub(super) fn set_dropped(&self, dropped: u64) {
        self.0.dropped.store(dropped, Ordering::Relaxed);
    }

    pub(super) fn set_unseen(&self, unseen: u64) {
        self.0.unseen.store(unseen, Ordering::Relaxed);
    }

    pub(super) fn add_ahead(&self, n: u64) {
        self.0.ahead.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn add_crowded(&self, n: u64) {
        self.0.crowded.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn add_others(&self, n: u64) {
        self.0.others.fetch_add(n, Ordering::Relaxed);
    }

    /// All known losses, in records.
    pub(super) fn lost(&self) -> u64 {
        self.losses().total()
    }

    /// Where records were lost, about. Sequence numbers miss what the kernel dropped, too, once
    /// another datagram of the same exporter comes: so both together are the larger of the two.
    /// The numbers never fall from call to call, though a mean may, and late datagrams fill gaps.
    pub(super) fn losses(&self) -> Lost {
        let (missing, dropped) = {
            let collector = self.0.collector.lock();
            let dropped = self.0.dropped.load(Ordering::Relaxed);
            (collector.lost_records(), collector.records_of(dropped))
        };
        let all = missing.max(dropped).saturating_add(self.0.crowded.load(Ordering::Relaxed));
        let mut told = self.0.told.lock();
        let new = all.saturating_sub(told.total());
        let in_kernel = new.min(dropped.saturating_sub(told.kernel));
        told.kernel += in_kernel;
        told.interface += new - in_kernel;
        *told
    }

    /// The account of a source that has handed out so many of these records.
    pub(super) fn account(&self, received: u64) -> Account {
        Account { received, lost: self.losses(), ..Account::default() }
    }

    /// The same of each exporter, by name.
    pub(super) fn accounts(&self) -> Vec<(String, Account)> {
        let collector = self.0.collector.lock();
        let account = |e: &Exporter| {
            let lost = Lost { interface: e.lost_records(), ..Lost::default() };
            (e.to_string(), Account { received: e.records, lost, ..Account::default() })
        };
        collector.exporters().iter().map(account).collect()
    }
}
