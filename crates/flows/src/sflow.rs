//! sFlow version 5 (sflow.org, "sFlow Version 5"): samples of packets, each with the beginning of
//! the packet or some of its fields.

mod header;

use crate::bytes::Bytes;
use crate::counts::Fault;
use crate::element::has_ports;
use crate::export::Export;
use crate::limits::{LATE_DATAGRAMS_MAX, SFLOW_ITEMS_MAX};
use crate::reading::Reading;
use crate::sequence::Numbered;
pub(crate) use header::Sampled;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_base::address::{number, number_of_v6};
use weir_packet::record::{FlowRecord, Slot};

/// The header before the samples, after the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SflowHeader {
    /// The address that the agent says it has.
    pub(crate) agent: IpAddr,
    pub(crate) sub_agent: u32,
    sequence: u32,
    /// Milliseconds.
    uptime: u32,
    samples: u32,
    pub(crate) export: Export,
}

/// Reads the header of a datagram that came at this time, which is that of its samples, too.
pub(crate) fn header(bytes: &mut Bytes<'_>, received: i64) -> Option<SflowHeader> {
    let agent = address(bytes)??;
    let (sub_agent, sequence, uptime) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
    let export = Export { received, sent: received, uptime: Some(uptime) };
    Some(SflowHeader { agent, sub_agent, sequence, uptime, samples: bytes.u32()?, export })
}

/// An address with its type in front; `Some(None)` for one that is not known.
fn address(bytes: &mut Bytes<'_>) -> Option<Option<IpAddr>> {
    Some(match bytes.u32()? {
        1 => Some(Ipv4Addr::from_bits(bytes.u32()?).into()),
        2 => Some(Ipv6Addr::from_bits(bytes.u128()?).into()),
        _ => None,
    })
}

/// Reads the samples.
pub(crate) fn samples(
    reading: &mut Reading<'_>,
    header: &SflowHeader,
    mut bytes: Bytes<'_>,
    sampled: &mut Sampled,
) {
    for _ in 0..header.samples.min(SFLOW_ITEMS_MAX) {
        let Some((format, sample)) = item(&mut bytes) else {
            reading.fault(Fault::Short);
            break;
        };
        match format {
            1 | 3 => match flow_sample(Bytes(sample), format == 3, sampled) {
                Some(record) => reading.record(record, header.export.received),
                None => reading.fault(Fault::Short),
            },
            2 | 4 => reading.counts.counters += 1,
            // Of enterprises, and discarded packets.
            _ => {}
        }
    }
    reading.number(Numbered {
        number: header.sequence,
        units: Some(1),
        late_max: LATE_DATAGRAMS_MAX,
        clock: header.uptime,
        is_uptime: true,
    });
}

/// A sample, or a record of one: its format, which is below 4096 unless an enterprise defined it,
/// and its bytes.
fn item<'a>(bytes: &mut Bytes<'a>) -> Option<(u32, &'a [u8])> {
    let (format, len) = (bytes.u32()?, bytes.u32()?);
    Some((format, bytes.take(usize::try_from(len).ok()?)?))
}

/// A flow sample, whose numbers of interfaces are longer if it is expanded.
fn flow_sample(mut bytes: Bytes<'_>, expanded: bool, sampled: &mut Sampled) -> Option<FlowRecord> {
    let mut record = FlowRecord::EMPTY;
    let _sequence = bytes.u32()?;
    let _source = (bytes.u32()?, if expanded { bytes.u32()? } else { 0 });
    let (rate, _pool, _drops) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
    if rate > 0 {
        record.set(Slot::Sampling, rate.into());
    }
    for slot in [Slot::InInterface, Slot::OutInterface] {
        let (format, number) = match expanded {
            true => (bytes.u32()?, bytes.u32()?),
            false => {
                let both = bytes.u32()?;
                (both >> 30, both & 0x3fff_ffff)
            }
        };
        // Another format says why there is no one interface, the largest number that it is unknown.
        let unknown = if expanded { u32::MAX } else { 0x3fff_ffff };
        if format == 0 && number != 0 && number != unknown {
            record.set(slot, number.into());
        }
    }
    record.set(Slot::Packets, 1);
    let count = bytes.u32()?;
    for _ in 0..count.min(SFLOW_ITEMS_MAX) {
        let (format, item) = item(&mut bytes)?;
        sample_record(&mut record, format, Bytes(item), sampled)?;
    }
    Some(record)
}

/// One record of a sample. Records of other formats are left out.
fn sample_record(
    record: &mut FlowRecord,
    format: u32,
    bytes: Bytes<'_>,
    sampled: &mut Sampled,
) -> Option<()> {
    match format {
        1 => raw_header(record, bytes, sampled),
        2 => ethernet(record, bytes),
        3 => ip(record, bytes, false),
        4 => ip(record, bytes, true),
        1001 => switch(record, bytes),
        1002 => router(record, bytes),
        1003 => gateway(record, bytes),
        _ => Some(()),
    }
}

fn raw_header(record: &mut FlowRecord, mut bytes: Bytes<'_>, sampled: &mut Sampled) -> Option<()> {
    let (protocol, frame_len) = (bytes.u32()?, bytes.u32()?);
    let (_stripped, len) = (bytes.u32()?, bytes.u32()?);
    record.set(Slot::Bytes, frame_len.into());
    sampled.read(protocol, frame_len, bytes.take(usize::try_from(len).ok()?)?, record);
    Some(())
}

fn ethernet(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    let len = bytes.u32()?;
    if record.get(Slot::Bytes).is_none() {
        record.set(Slot::Bytes, len.into());
    }
    // Each address is followed by two bytes that fill its last word.
    for slot in [Slot::SourceMac, Slot::DestinationMac] {
        let address = bytes.take(8)?;
        let number = address[..6].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        record.set(slot, number);
    }
    Some(())
}

/// The fields of an IPv4 or an IPv6 packet.
fn ip(record: &mut FlowRecord, mut bytes: Bytes<'_>, six: bool) -> Option<()> {
    let (len, protocol) = (bytes.u32()?, bytes.u32()?);
    if record.get(Slot::Bytes).is_none() {
        record.set(Slot::Bytes, len.into());
    }
    for slot in [Slot::Source, Slot::Destination] {
        match six {
            true => record.set_address(slot, number_of_v6(bytes.u128()?)),
            false => record.set_v4(slot, bytes.u32()?),
        }
    }
    let ports = [bytes.u32()?, bytes.u32()?];
    let (flags, class) = (bytes.u32()?, bytes.u32()?);
    if protocol < 256 {
        record.set(Slot::IpProtocol, protocol.into());
    }
    if has_ports(protocol.into()) {
        for (slot, port) in [Slot::SourcePort, Slot::DestinationPort].into_iter().zip(ports) {
            record.set(slot, (port & 0xffff).into());
        }
    }
    if protocol == 6 {
        record.set(Slot::TcpFlags, (flags & 0x1ff).into());
    }
    record.set(Slot::TrafficClass, (class & 0xff).into());
    Some(())
}

fn switch(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    let vlan = bytes.u32()?;
    if (1..4096).contains(&vlan) {
        record.set(Slot::Vlan, vlan.into());
    }
    Some(())
}

fn router(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    next_hop(record, &mut bytes)?;
    for slot in [Slot::SourceMask, Slot::DestinationMask] {
        let len = bytes.u32()?;
        if len <= 128 {
            record.set(slot, len.into());
        }
    }
    Some(())
}

fn next_hop(record: &mut FlowRecord, bytes: &mut Bytes<'_>) -> Option<()> {
    if let Some(address) = address(bytes)? {
        record.set_address(Slot::NextHop, number(address));
    }
    Some(())
}

/// The autonomous systems: of the path to the destination the last.
fn gateway(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    next_hop(record, &mut bytes)?;
    let (_own, source, _peer) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
    record.set(Slot::SourceAs, source.into());
    for _ in 0..bytes.u32()?.min(SFLOW_ITEMS_MAX) {
        let (_type, len) = (bytes.u32()?, bytes.u32()?);
        let path = bytes.take(usize::try_from(len).ok()?.checked_mul(4)?)?;
        if let Some(last) = path.last_chunk() {
            record.set(Slot::DestinationAs, u32::from_be_bytes(*last).into());
        }
    }
    Some(())
}
