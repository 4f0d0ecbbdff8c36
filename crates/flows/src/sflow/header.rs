//! The beginnings of sampled packets, read as packets are.

use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::read::read_field;
use weir_packet::record::{FlowRecord, Slot};
use weir_packet::source::{Chunk, FrameBatch, LinkType};
use weir_packet::walk::{Layers, classify};

/// Fields of a packet, and where a record has them.
const FIELDS: [(&str, Slot); 15] = [
    ("eth.src", Slot::SourceMac),
    ("eth.dst", Slot::DestinationMac),
    ("vlan.id", Slot::Vlan),
    ("ip.src", Slot::Source),
    ("ip.dst", Slot::Destination),
    ("ip.proto", Slot::IpProtocol),
    ("ip.dscp", Slot::TrafficClass),
    ("ip.ecn", Slot::TrafficClass),
    ("sport", Slot::SourcePort),
    ("dport", Slot::DestinationPort),
    ("tcp.flags", Slot::TcpFlags),
    ("icmp.type", Slot::Icmp),
    ("icmp.code", Slot::Icmp),
    ("icmp6.type", Slot::Icmp),
    ("icmp6.code", Slot::Icmp),
];

/// Reads the fields of one packet at a time.
#[derive(Debug)]
pub(crate) struct Sampled {
    batch: FrameBatch,
    layers: Layers,
    columns: Vec<(FieldId, Slot, Column)>,
}

impl Sampled {
    pub(crate) fn new() -> Sampled {
        let column = |(name, slot): (&str, Slot)| {
            let id = FieldId::named(name);
            (id, slot, Column::new(id.info().ty.repr()))
        };
        Sampled {
            batch: FrameBatch::new(),
            layers: Layers::new(),
            columns: FIELDS.into_iter().map(column).collect(),
        }
    }

    /// Fills a record from the beginning of a packet of `len` bytes; `protocol` says by what header
    /// it begins. Values that the record has already are replaced by those of the packet.
    pub(crate) fn read(&mut self, protocol: u32, len: u32, packet: &[u8], record: &mut FlowRecord) {
        let link = match protocol {
            1 => LinkType::ETHERNET,
            7 => LinkType::PPP,
            11 => LinkType::IPV4,
            12 => LinkType::IPV6,
            _ => return,
        };
        let chunk: Chunk = Arc::new(packet.to_vec());
        self.batch.restart(&chunk, 0, link);
        let caplen = packet.len() as u32;
        self.batch.push(0, 0, 0, caplen, len.max(caplen));
        classify(&self.batch, &mut self.layers);
        let mut joined = FlowRecord::EMPTY;
        for (id, slot, column) in &mut self.columns {
            read_field(*id, &self.batch, &self.layers, Bits::first(1), column);
            if !column.present.has(0) {
                continue;
            }
            let value = column.raw(0);
            // The high part comes first of those that share a slot.
            match id.info().name {
                "ip.src" | "ip.dst" => joined.set_address(*slot, value),
                "ip.dscp" => joined.set(*slot, (value << 2) as u64),
                "icmp.type" | "icmp6.type" => joined.set(*slot, (value << 8) as u64),
                "ip.ecn" | "icmp.code" | "icmp6.code" => {
                    joined.set(*slot, joined.get(*slot).unwrap_or(0) | value as u64);
                }
                _ => joined.set(*slot, value as u64),
            }
        }
        record.fill_from(&joined);
    }
}
