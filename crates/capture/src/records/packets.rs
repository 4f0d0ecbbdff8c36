//! Flow records out of packets: the datagrams of exporters in captures, or on a wire.

use super::batches::RecordBatches;
use super::report::RecordReport;
use weir_base::address::address;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_packet::read::{Transport, Transports, read_field};
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_packet::walk::{Layers, classify};

/// The UDP ports that collectors listen on: IPFIX, NetFlow as routers and nfcapd(1) have it, sFlow.
pub const PORTS: [u16; 6] = [2055, 4739, 6343, 9555, 9995, 9996];

/// Batches of packets that are looked at before a batch without records is handed out.
const BATCHES_LOOKED_AT: usize = 64;

/// The records in the packets of another source.
pub struct RecordPackets<S> {
    inner: S,
    packets: FrameBatch,
    /// The next of them to look at.
    next: usize,
    layers: Layers,
    source: Column,
    batches: RecordBatches,
    report: RecordReport,
}

impl<S: Source> RecordPackets<S> {
    /// Reads the UDP packets to one of [`PORTS`]. Their records may come so long after their end.
    pub fn new(inner: S, lateness_ns: i64, report: &RecordReport) -> RecordPackets<S> {
        RecordPackets {
            inner,
            packets: FrameBatch::new(),
            next: 0,
            layers: Layers::new(),
            source: Column::new(Repr::Pair),
            batches: RecordBatches::new(report.clone(), lateness_ns),
            report: report.clone(),
        }
    }

    /// Whether all packets of the batch at hand are read.
    fn is_read(&self) -> bool {
        self.next >= self.packets.len()
    }

    /// Takes the next batch of packets; whether there was one.
    fn take_packets(&mut self) -> Result<bool, SourceError> {
        self.next = 0;
        if !self.inner.fill(&mut self.packets)? {
            self.packets.clear();
            return Ok(false);
        }
        let packets = &self.packets;
        classify(packets, &mut self.layers);
        let (ip_src, all) = (FieldId::named("ip.src"), Bits::first(packets.len()));
        read_field(ip_src, packets, &self.layers, all, &mut self.source);
        Ok(true)
    }

    /// Reads datagrams of the batch at hand until there are records for a batch: one datagram may
    /// have tens of thousands.
    fn read(&mut self) {
        let packets = &self.packets;
        let transports = Transports::new(packets, &self.layers);
        let mut others = 0;
        while self.next < packets.len() && self.batches.len() < BATCH {
            let i = self.next;
            self.next += 1;
            let of_exporter = |dport: u16| PORTS.contains(&dport) && self.source.present.has(i);
            match transports.of(i) {
                Some(Transport::Udp(udp)) if of_exporter(udp.dport()) => {
                    let from = (address(self.source.raw(i)), udp.sport());
                    self.batches.take(from, packets.ts()[i], udp.payload());
                }
                _ => others += 1,
            }
        }
        self.report.add_others(others);
    }
}

impl<S: Source> Source for RecordPackets<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        // Now and then the run looks whether it is to end, also where no packet carries records.
        for _ in 0..BATCHES_LOOKED_AT {
            if !self.batches.is_empty() {
                break;
            }
            if self.is_read() && !self.take_packets()? {
                self.report.set_unseen(self.inner.account().lost.total());
                return Ok(false);
            }
            self.read();
            // A wire says what time it is, where no packet does.
            if let Some(reached) = self.packets.reached().filter(|_| self.is_read()) {
                self.batches.reach(reached);
            }
        }
        self.report.set_unseen(self.inner.account().lost.total());
        if !self.batches.is_empty() {
            self.batches.lend(batch);
        }
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        !self.batches.is_empty() || !self.is_read() || self.inner.is_ready()
    }

    fn account(&self) -> Account {
        let mut account = self.report.account(self.batches.received());
        account.lost.merge(self.inner.account().lost);
        account.bytes_read = self.inner.account().bytes_read;
        account
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.report.accounts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::source::Lost;

    /// An interface that loses a packet with each batch, and has two batches.
    struct Lossy(u64);

    impl Source for Lossy {
        fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
            batch.clear();
            self.0 += 1;
            Ok(self.0 <= 2)
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn account(&self) -> Account {
            Account { lost: Lost { ring: self.0, ..Lost::default() }, ..Account::default() }
        }
    }

    #[test]
    fn packets_that_were_lost_are_told() {
        let report = RecordReport::default();
        let mut source = RecordPackets::new(Lossy(0), 0, &report);
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).expect("no error") {}
        assert_eq!((report.summary().unseen, source.account().lost.ring), (3, 3));
    }
}
