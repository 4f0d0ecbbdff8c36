//! The fields of flow records: those that packets have too, by the same names, and their own.

use super::entry::{Entry, flag, int, ip, mac, string, time, whether};
use super::field::{Field, is_same_name};
use super::frame::Carried;
use super::rows::Rows;
use super::{FIELDS as PACKET_FIELDS, Reader};
use crate::bits::Bits;
use crate::column::Column;
use crate::record::{Protocol, Slot};
use crate::tcp;

/// The rows of the catalogue of records.
#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    time("ts", "The time of the record: its `end`; where the exporter says none, when the datagram \
         was sent (IPFIX, NetFlow) or came (sFlow).", |rows, out| {
        rows.all(out, rows.frames.ts(), |&ts| ts as u64)
    }).always(),
    int("number", 63, "The record's number, from 1.", |rows, out| {
        rows.all(out, rows.frames.seq(), |&seq| seq + 1)
    }).always(),
    time("start", "When the first packet of the flow came.", |r, out| word(r, out, Slot::Start)),
    time("end", "When the last packet of the flow came.", |r, out| word(r, out, Slot::End)),
    time("received", "When the datagram with the record came here.", |rows, out| {
        word(rows, out, Slot::Received)
    }),
    int("bytes", 63, "Bytes of the flow since the record before, as the exporter counts them: \
        mostly from the IP header on; of sFlow those of the one frame. Not scaled by `sampling`.",
        |rows, out| word(rows, out, Slot::Bytes)),
    int("packets", 63, "Packets of the flow since the record before; of sFlow 1. Not scaled by \
        `sampling`.", |rows, out| word(rows, out, Slot::Packets)),
    int("reverse_bytes", 63, "Bytes in the other direction, of records of both (RFC 5103).",
        |rows, out| word(rows, out, Slot::ReverseBytes)),
    int("reverse_packets", 63, "Packets in the other direction, of records of both (RFC 5103).",
        |rows, out| word(rows, out, Slot::ReversePackets)),
    int("sampling", 32, "The exporter looked at one of so many packets; absent where it says \
        nothing of it.", |rows, out| word(rows, out, Slot::Sampling)),
    int("end_reason", 8, "Why the record was made (IPFIX flowEndReason): 1 idle, 2 active timeout, \
        3 end of the flow, 4 forced, 5 lack of resources.", |rows, out| {
        word(rows, out, Slot::EndReason)
    }),
    string("direction", "\"in\" where the exporter received the packets, \"out\" where it sent \
        them."),
    string("protocol", "Name of the protocol in the IP packets, such as \"tcp\"; \"ip 99\" and \
        the like where the number has none here."),
    string("export", "The protocol of the export: \"netflow5\", \"netflow9\", \"ipfix\" or \
        \"sflow\"."),
    ip("exporter", "Address of the exporter: of its datagrams, of sFlow the agent's.", |r, out| {
        pair(r, out, Slot::Exporter)
    }),
    int("domain", 32, "Observation domain (IPFIX), source ID (NetFlow 9), engine type and ID \
        (NetFlow 5), or sub-agent (sFlow) within the exporter.", |rows, out| {
        word(rows, out, Slot::Domain)
    }),
    int("in_if", 32, "Index of the interface by which the packets came (SNMP ifIndex).",
        |rows, out| word(rows, out, Slot::InInterface)),
    int("out_if", 32, "Index of the interface by which the packets left (SNMP ifIndex).",
        |rows, out| word(rows, out, Slot::OutInterface)),
    ip("next_hop", "Address of the next router.", |rows, out| pair(rows, out, Slot::NextHop)),
    int("src_as", 32, "Autonomous system of the source, or its neighbour.", |rows, out| {
        word(rows, out, Slot::SourceAs)
    }),
    int("dst_as", 32, "Autonomous system of the destination, or its neighbour.", |rows, out| {
        word(rows, out, Slot::DestinationAs)
    }),
    int("src_mask", 8, "Prefix length of the route to the source.", |rows, out| {
        word(rows, out, Slot::SourceMask)
    }),
    int("dst_mask", 8, "Prefix length of the route to the destination.", |rows, out| {
        word(rows, out, Slot::DestinationMask)
    }),
    mac("eth.src", "Source MAC address.", |rows, out| word(rows, out, Slot::SourceMac)),
    mac("eth.dst", "Destination MAC address.", |rows, out| word(rows, out, Slot::DestinationMac)),
    int("vlan.id", 12, "VLAN of the packets as they came.", |r, out| word(r, out, Slot::Vlan)),
    whether("ip", "Whether the record has an IP address.", |rows| {
        either(rows, |address| address.is_some())
    }),
    whether("ipv4", "Whether its addresses are IPv4.", |rows| either(rows, is_v4)),
    whether("ipv6", "Whether its addresses are IPv6.", |rows| {
        either(rows, |address| address.is_some() && !is_v4(address))
    }),
    ip("ip.src", "Source address, IPv4 or IPv6.", |rows, out| pair(rows, out, Slot::Source)),
    ip("ip.dst", "Destination address, IPv4 or IPv6.", |r, out| pair(r, out, Slot::Destination)),
    int("ip.proto", 8, "Protocol number of the packets' payload.", |rows, out| {
        word(rows, out, Slot::IpProtocol)
    }),
    int("ip.dscp", 6, "Differentiated services code point (RFC 2474).", |rows, out| {
        some(rows, out, |i| Some(get(rows, i, Slot::TrafficClass)? >> 2))
    }),
    int("ip.ecn", 2, "Explicit congestion notification bits (RFC 3168).", |rows, out| {
        some(rows, out, |i| Some(get(rows, i, Slot::TrafficClass)? & 3))
    }),
    int("sport", 16, "Source port.", |rows, out| word(rows, out, Slot::SourcePort)),
    int("dport", 16, "Destination port.", |rows, out| word(rows, out, Slot::DestinationPort)),
    ip("hosts.a", "The smaller of the two IP addresses: the same in both directions.",
        |rows, out| rows.some_pairs(out, Bits::ALL, |i| hosts(rows, i).map(|(a, _)| a))),
    ip("hosts.b", "The larger of the two IP addresses: the same in both directions.",
        |rows, out| rows.some_pairs(out, Bits::ALL, |i| hosts(rows, i).map(|(_, b)| b))),
    ip("conn.a_ip", "Address of the connection's smaller (address, port) endpoint: the same in \
        both directions.",
        |rows, out| rows.some_pairs(out, Bits::ALL, |i| ends(rows, i).map(|e| e.a.0))),
    int("conn.a_port", 16, "Port of the connection's smaller endpoint; absent without ports.",
        |rows, out| some(rows, out, |i| ends(rows, i)?.a.1)),
    ip("conn.b_ip", "Address of the connection's larger (address, port) endpoint.",
        |rows, out| rows.some_pairs(out, Bits::ALL, |i| ends(rows, i).map(|e| e.b.0))),
    int("conn.b_port", 16, "Port of the connection's larger endpoint; absent without ports.",
        |rows, out| some(rows, out, |i| ends(rows, i)?.b.1)),
    flag("conn.forward", "Direction bit: whether the flow goes from the smaller endpoint to the \
        larger one.",
        |rows, out| rows.some_bits(out, Bits::ALL, |i| ends(rows, i).map(|e| e.forward))),
    whether("tcp", "Whether the packets are TCP.", |rows| protocol(rows, 6)),
    int("tcp.flags", 9, "TCP flags of all packets, combined by \"or\": FIN 1, SYN 2, RST 4, PSH 8, \
        ACK 16, URG 32, ECE 64, CWR 128.", |rows, out| word(rows, out, Slot::TcpFlags)),
    flag("tcp.fin", "Whether a packet had FIN.", |r, out| tcp_flag(r, out, tcp::FIN)),
    flag("tcp.syn", "Whether a packet had SYN.", |r, out| tcp_flag(r, out, tcp::SYN)),
    flag("tcp.rst", "Whether a packet had RST.", |r, out| tcp_flag(r, out, tcp::RST)),
    flag("tcp.psh", "Whether a packet had PSH.", |r, out| tcp_flag(r, out, tcp::PSH)),
    flag("tcp.ack", "Whether a packet had ACK.", |r, out| tcp_flag(r, out, tcp::ACK)),
    flag("tcp.urg", "Whether a packet had URG.", |r, out| tcp_flag(r, out, tcp::URG)),
    flag("tcp.ece", "Whether a packet had ECE (RFC 3168).", |r, out| tcp_flag(r, out, tcp::ECE)),
    flag("tcp.cwr", "Whether a packet had CWR (RFC 3168).", |r, out| tcp_flag(r, out, tcp::CWR)),
    whether("udp", "Whether the packets are UDP.", |rows| protocol(rows, 17)),
    whether("icmp", "Whether the packets are ICMP.", |rows| protocol(rows, 1)),
    int("icmp.type", 8, "ICMP type.", |rows, out| icmp(rows, out, 1, |both| both >> 8)),
    int("icmp.code", 8, "ICMP code.", |rows, out| icmp(rows, out, 1, |both| both & 0xff)),
    whether("icmp6", "Whether the packets are ICMPv6.", |rows| protocol(rows, 58)),
    int("icmp6.type", 8, "ICMPv6 type.", |rows, out| icmp(rows, out, 58, |both| both >> 8)),
    int("icmp6.code", 8, "ICMPv6 code.", |rows, out| icmp(rows, out, 58, |both| both & 0xff)),
];

/// The catalogue of flow records, in the order that `weir fields flows` prints.
pub static RECORD_FIELDS: &[Field] = &{
    let mut fields = [ENTRIES[0].field; ENTRIES.len()];
    let mut i = 0;
    while i < ENTRIES.len() {
        fields[i] = ENTRIES[i].field;
        i += 1;
    }
    fields
};

/// For each field of packets the place of the same field among those of records, from 1; or 0.
static SHARED: [u8; PACKET_FIELDS.len()] = {
    let mut places = [0; PACKET_FIELDS.len()];
    let mut p = 0;
    while p < places.len() {
        let mut r = 0;
        while r < ENTRIES.len() {
            if is_same_name(PACKET_FIELDS[p].name.as_bytes(), ENTRIES[r].field.name.as_bytes()) {
                places[p] = r as u8 + 1;
            }
            r += 1;
        }
        p += 1;
    }
    places
};

/// The reader of the field of records at this place in [`RECORD_FIELDS`].
pub(super) fn reader_at(place: usize) -> Reader {
    ENTRIES[place].reader
}

/// The place of a field of packets in [`RECORD_FIELDS`], by its position in the catalogue, if flow
/// records have it, too.
pub(super) fn shared(position: usize) -> Option<usize> {
    usize::from(SHARED[position]).checked_sub(1)
}

/// Reads the texts of records that bear this name.
pub(crate) fn record_texts(
    name: &str,
    rows: &Rows<'_>,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) {
    rows.some_words(out, Bits::ALL, |i| {
        let text = match name {
            "protocol" => {
                let number = get(rows, i, Slot::IpProtocol)?;
                return Some(Carried::InIp(number as u8).put(put));
            }
            "direction" => match get(rows, i, Slot::Direction)? {
                0 => "in",
                1 => "out",
                _ => return None,
            },
            "export" => {
                Protocol::ALL.get(get(rows, i, Slot::Protocol)? as usize).map(|p| p.name())?
            }
            _ => return None,
        };
        Some(put(text.as_bytes()))
    });
}

/// The value of a slot of row `i`.
#[inline]
fn get(rows: &Rows<'_>, i: usize, slot: Slot) -> Option<u64> {
    let present = u64::from_le_bytes(rows.load(i, 0));
    let at = 8 * (slot as usize + 1);
    (present >> slot as u8 & 1 == 1).then(|| u64::from_le_bytes(rows.load(i, at)))
}

fn address(rows: &Rows<'_>, i: usize, first: Slot) -> Option<u128> {
    let high = get(rows, i, first)?;
    let low = u64::from_le_bytes(rows.load(i, 8 * (first as usize + 2)));
    Some(u128::from(high) << 64 | u128::from(low))
}

fn some(rows: &Rows<'_>, out: &mut Column, f: impl FnMut(usize) -> Option<u64>) {
    rows.some_words(out, Bits::ALL, f);
}

fn word(rows: &Rows<'_>, out: &mut Column, slot: Slot) {
    some(rows, out, |i| get(rows, i, slot));
}

fn pair(rows: &Rows<'_>, out: &mut Column, first: Slot) {
    rows.some_pairs(out, Bits::ALL, |i| address(rows, i, first));
}

fn tcp_flag(rows: &Rows<'_>, out: &mut Column, bit: u16) {
    rows.some_bits(out, Bits::ALL, |i| {
        get(rows, i, Slot::TcpFlags).map(|flags| flags & u64::from(bit) != 0)
    });
}

fn icmp(rows: &Rows<'_>, out: &mut Column, number: u64, part: fn(u64) -> u64) {
    some(rows, out, |i| {
        let is_it = get(rows, i, Slot::IpProtocol) == Some(number);
        get(rows, i, Slot::Icmp).filter(|_| is_it).map(part)
    });
}

/// The rows of a protocol of IP.
fn protocol(rows: &Rows<'_>, number: u64) -> Bits {
    rows_that(rows, |i| get(rows, i, Slot::IpProtocol) == Some(number))
}

/// The rows of which one address is so.
fn either(rows: &Rows<'_>, is: fn(Option<u128>) -> bool) -> Bits {
    let [source, destination] = [Slot::Source, Slot::Destination];
    rows_that(rows, |i| is(address(rows, i, source).or_else(|| address(rows, i, destination))))
}

fn rows_that(rows: &Rows<'_>, mut is: impl FnMut(usize) -> bool) -> Bits {
    Bits::first(rows.frames.len()).iter().filter(|&i| is(i)).collect()
}

fn is_v4(address: Option<u128>) -> bool {
    address.is_some_and(|address| address >> 32 == 0xffff)
}

/// Both addresses of row `i`, the smaller first.
fn hosts(rows: &Rows<'_>, i: usize) -> Option<(u128, u128)> {
    let (a, b) = (address(rows, i, Slot::Source)?, address(rows, i, Slot::Destination)?);
    Some((a.min(b), a.max(b)))
}

/// The ends of a connection in their order, and whether the flow goes from `a` to `b`.
struct Ends {
    a: (u128, Option<u64>),
    b: (u128, Option<u64>),
    forward: bool,
}

fn ends(rows: &Rows<'_>, i: usize) -> Option<Ends> {
    let ports = |slot| get(rows, i, slot);
    let source = (address(rows, i, Slot::Source)?, ports(Slot::SourcePort));
    let destination = (address(rows, i, Slot::Destination)?, ports(Slot::DestinationPort));
    let forward = (source.0, source.1.unwrap_or(0)) <= (destination.0, destination.1.unwrap_or(0));
    let (a, b) = if forward { (source, destination) } else { (destination, source) };
    Some(Ends { a, b, forward })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FieldType, by_name, record_field_by_name};
    use crate::read::{read_field, read_field_text};
    use crate::record::FlowRecord;
    use crate::source::{FrameBatch, LinkType};
    use crate::walk::{Layers, classify};
    use std::net::Ipv6Addr;
    use std::sync::Arc;

    /// A record of TCP from one host to another, with everything else at its largest.
    fn full() -> FlowRecord {
        let mut record = FlowRecord::EMPTY;
        for slot in [Slot::Start, Slot::End, Slot::Received, Slot::Bytes, Slot::Packets] {
            record.set(slot, i64::MAX as u64);
        }
        record.set_v4(Slot::Source, 0x0a00_0002);
        record.set_v4(Slot::Destination, 0x0a00_0001);
        record.set(Slot::SourcePort, 0xffff);
        record.set(Slot::DestinationPort, 0);
        record.set(Slot::IpProtocol, 6);
        record.set(Slot::TrafficClass, 0xb9);
        record.set(Slot::TcpFlags, 0x12);
        record.set(Slot::Icmp, 0x0301);
        record.set(Slot::Direction, 1);
        record.set(Slot::Protocol, Protocol::Sflow as u64);
        record.set_address(Slot::Exporter, 1);
        record
    }

    fn batch(frames: &[Vec<u8>]) -> FrameBatch {
        let mut batch = FrameBatch::new();
        let chunk: crate::source::Chunk = Arc::new(frames.concat());
        batch.restart(&chunk, 0, LinkType::FLOW_RECORDS);
        let mut at = 0;
        for (i, frame) in frames.iter().enumerate() {
            let len = frame.len() as u32;
            batch.push(i as i64 - 1, i as u64, at, len, len);
            at += len;
        }
        batch
    }

    fn show(batch: &FrameBatch, row: usize, name: &str) -> String {
        let mut layers = Layers::new();
        classify(batch, &mut layers);
        let id = record_field_by_name(name).expect("a field of records");
        let ty = id.info().ty;
        let mut column = Column::new(ty.repr());
        let mut texts = Vec::new();
        if ty.is_text() {
            read_field_text(id, batch, &layers, Bits::ALL, &mut column, |text| {
                texts.push(String::from_utf8(text.to_vec()).expect("ASCII"));
                texts.len() as u64 - 1
            });
        } else {
            read_field(id, batch, &layers, Bits::ALL, &mut column);
        }
        if !column.present.has(row) {
            return "-".to_owned();
        }
        match ty {
            FieldType::Str => texts[column.raw(row) as usize].clone(),
            FieldType::Bool => (column.raw(row) == 1).to_string(),
            FieldType::Ip => {
                let ip = Ipv6Addr::from_bits(column.raw(row));
                ip.to_ipv4_mapped().map_or_else(|| ip.to_string(), |ip| ip.to_string())
            }
            _ => (column.raw(row) as i64).to_string(),
        }
    }

    #[test]
    fn records_are_read_by_the_names_of_packets() {
        let mut bytes = Vec::new();
        full().write(&mut bytes);
        let batch = batch(&[bytes]);
        let names = "ts number bytes packets ip ipv4 ipv6 ip.src ip.dst sport dport ip.proto \
                     ip.dscp ip.ecn tcp udp tcp.flags tcp.syn tcp.fin icmp.type conn.a_ip \
                     conn.a_port conn.b_ip conn.b_port conn.forward hosts.a hosts.b direction \
                     export exporter in_if sampling";
        let shown: Vec<String> = names
            .split_whitespace()
            .map(|name| format!("{name}={}", show(&batch, 0, name)))
            .collect();
        let expected = "ts=-1 number=1 bytes=9223372036854775807 packets=9223372036854775807 \
                        ip=true ipv4=true ipv6=false ip.src=10.0.0.2 ip.dst=10.0.0.1 sport=65535 \
                        dport=0 ip.proto=6 ip.dscp=46 ip.ecn=1 tcp=true udp=false tcp.flags=18 \
                        tcp.syn=true tcp.fin=false icmp.type=- conn.a_ip=10.0.0.1 conn.a_port=0 \
                        conn.b_ip=10.0.0.2 conn.b_port=65535 conn.forward=false hosts.a=10.0.0.1 \
                        hosts.b=10.0.0.2 direction=out export=sflow exporter=::1 in_if=- \
                        sampling=-";
        assert_eq!(shown.join(" "), expected);
    }

    /// A record without values, one that is cut, and one with every bit set, as no parser makes it.
    #[test]
    fn any_bytes_are_a_record() {
        let mut empty = Vec::new();
        FlowRecord::EMPTY.write(&mut empty);
        let frames = [empty, vec![0xff; 9], vec![0xff; crate::record::RECORD_BYTES], Vec::new()];
        let batch = batch(&frames);
        for field in RECORD_FIELDS {
            for row in 0..frames.len() {
                let shown = show(&batch, row, field.name);
                let is_there = field.always || row == 1 || row == 2;
                assert!(shown == "-" || is_there, "{} of row {row} is {shown}", field.name);
                assert!(shown != "-" || !field.always, "{} of row {row}", field.name);
            }
        }
    }

    /// A field of both means the same, and a name alone tells which of the two another one is of.
    #[test]
    fn fields_of_both_agree() {
        for field in RECORD_FIELDS {
            assert!(field.doc.ends_with('.'), "{}", field.name);
            assert_eq!(field.ty == FieldType::Int, field.bits > 0, "{}", field.name);
            let id = record_field_by_name(field.name).expect("a field");
            assert_eq!(id.info().name, field.name);
            match by_name(field.name) {
                Some(packet) => {
                    let packet = packet.info();
                    assert_eq!((packet.ty, packet.bits), (field.ty, field.bits), "{}", field.name);
                    assert!(field.always || !packet.always, "{}", field.name);
                }
                None => assert!(id.position().is_none() && id.bytes().is_none()),
            }
        }
    }
}
