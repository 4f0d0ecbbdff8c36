//! NetFlow version 5: one form of record (Cisco, "NetFlow Export Datagram Format").

use crate::bytes::Bytes;
use crate::counts::Fault;
use crate::element::has_ports;
use crate::export::Export;
use crate::limits::LATE_RECORDS_MAX;
use crate::reading::Reading;
use crate::sequence::Numbered;
use weir_packet::record::{FlowRecord, Slot};

/// Bytes of a record.
const RECORD: usize = 48;

/// The header before the records, after the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Netflow5Header {
    count: u16,
    pub(crate) export: Export,
    sequence: u32,
    /// Type and number of the engine.
    pub(crate) engine: u16,
    /// The mode in two bits, and the interval.
    sampling: u16,
}

/// Reads the header of a datagram that came at this time.
pub(crate) fn header(bytes: &mut Bytes<'_>, received: i64) -> Option<Netflow5Header> {
    let count = bytes.u16()?;
    let uptime = bytes.u32()?;
    let (seconds, nanoseconds) = (bytes.u32()?, bytes.u32()?);
    let sent = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds.min(999_999_999));
    let export = Export { received, sent, uptime: Some(uptime) };
    let sequence = bytes.u32()?;
    Some(Netflow5Header { count, export, sequence, engine: bytes.u16()?, sampling: bytes.u16()? })
}

/// Reads the records.
pub(crate) fn records(reading: &mut Reading<'_>, header: &Netflow5Header, mut bytes: Bytes<'_>) {
    let mut read = 0;
    while read < header.count
        && let Some(record) = bytes.take(RECORD)
    {
        read += 1;
        if let Some((record, ts)) = record_of(Bytes(record), header) {
            reading.record(record, ts);
        }
    }
    if read < header.count {
        reading.fault(Fault::Short);
    }
    reading.number(Numbered {
        number: header.sequence,
        units: Some(header.count.into()),
        late_max: LATE_RECORDS_MAX,
        clock: header.export.uptime.unwrap_or(0),
        is_uptime: true,
    });
}

/// A record of 48 bytes.
fn record_of(mut bytes: Bytes<'_>, header: &Netflow5Header) -> Option<(FlowRecord, i64)> {
    let mut record = FlowRecord::EMPTY;
    for slot in [Slot::Source, Slot::Destination, Slot::NextHop] {
        record.set_v4(slot, bytes.u32()?);
    }
    for slot in [Slot::InInterface, Slot::OutInterface] {
        record.set(slot, bytes.u16()?.into());
    }
    for slot in [Slot::Packets, Slot::Bytes] {
        record.set(slot, bytes.u32()?.into());
    }
    let [start, end] = [bytes.u32()?, bytes.u32()?];
    let [source, destination] = [bytes.u16()?, bytes.u16()?];
    bytes.u8()?;
    let (flags, protocol, class) = (bytes.u8()?, bytes.u8()?, bytes.u8()?);
    record.set(Slot::IpProtocol, protocol.into());
    record.set(Slot::TrafficClass, class.into());
    if protocol == 6 {
        record.set(Slot::TcpFlags, flags.into());
    }
    if has_ports(protocol.into()) {
        record.set(Slot::SourcePort, source.into());
        record.set(Slot::DestinationPort, destination.into());
    }
    if protocol == 1 {
        record.set(Slot::Icmp, destination.into());
    }
    for slot in [Slot::SourceAs, Slot::DestinationAs] {
        record.set(slot, bytes.u16()?.into());
    }
    for slot in [Slot::SourceMask, Slot::DestinationMask] {
        record.set(slot, bytes.u8()?.into());
    }
    if header.sampling & 0x3fff > 0 {
        record.set(Slot::Sampling, (header.sampling & 0x3fff).into());
    }
    let [start, end] = header.export.start_and_end([Some(start), Some(end)], None);
    record.set(Slot::Start, start? as u64);
    record.set(Slot::End, end? as u64);
    Some((record, end?))
}
