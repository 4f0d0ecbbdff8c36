//! Any bytes as datagrams.

use crate::collector::{Collector, Datagram};
use crate::limits::{SESSIONS_MAX, TEMPLATES_MAX};
use std::net::{IpAddr, Ipv4Addr};
use weir_packet::record::Slot;

/// Reads bytes as datagrams, each with its length in two bytes in front, and asserts that every
/// record is whole and every count adds up.
pub fn fuzz_datagrams(mut data: &[u8]) {
    let mut collector = Collector::new();
    let (mut records, mut bytes, mut received) = (0u64, 0usize, 0i64);
    while let Some((len, rest)) = data.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(u16::from_be_bytes(*len).into()));
        data = rest;
        received = received.saturating_add(i64::from(len[1]) << 34);
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, len[1] & 3));
        let port = u16::from(len[1] >> 2 & 1);
        let datagram = Datagram { address, port, received, payload };
        collector.read(&datagram, &mut |record, _| {
            records += 1;
            assert!(
                record.get(Slot::Protocol).is_some() && record.address(Slot::Exporter).is_some()
            );
            for slot in [Slot::Bytes, Slot::Packets] {
                assert!(record.get(slot).is_none_or(|n| i64::try_from(n).is_ok()));
            }
            let ports = [Slot::SourcePort, Slot::DestinationPort];
            assert!(ports.iter().all(|&slot| record.get(slot).is_none_or(|n| n < 1 << 16)));
        });
        bytes += payload.len();
    }
    let counts = collector.counts();
    assert_eq!(counts.records, records);
    assert_eq!(collector.exporters().iter().map(|e| e.records).sum::<u64>(), records);
    // A record takes a byte at least, and each byte is read once more at most, after it waited.
    assert!(counts.records + counts.options <= 2 * bytes as u64);
    assert!(collector.sizes().0 <= SESSIONS_MAX && collector.sizes().1 <= TEMPLATES_MAX);
}
