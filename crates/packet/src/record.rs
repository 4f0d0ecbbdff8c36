//! Flow records of exporters, in the one form that readers of fields know.
//!
//! A record of IPFIX, NetFlow or sFlow becomes a frame of [`LinkType::FLOW_RECORDS`]: so it travels
//! in the batches of a source like a packet, and nothing is allocated for it. The frame is a word
//! with a bit for each slot that has a value, and a word for each slot, all little-endian. No
//! capture file and no interface has frames of this link type.
//!
//! [`LinkType::FLOW_RECORDS`]: crate::source::LinkType::FLOW_RECORDS

use weir_base::address::V4;

/// A value that a flow record may have. An address takes two slots, the high half first; IPv4 is
/// mapped into IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Slot {
    /// When the first packet of the flow came: nanoseconds since 1970.
    Start,
    /// When the last packet came: nanoseconds since 1970.
    End,
    /// When the datagram with the record came: nanoseconds since 1970.
    Received,
    /// Bytes of the flow since the record before.
    Bytes,
    /// Packets of the flow since the record before.
    Packets,
    /// Bytes of the other direction (RFC 5103).
    ReverseBytes,
    /// Packets of the other direction (RFC 5103).
    ReversePackets,
    /// One of so many packets was looked at.
    Sampling,
    /// Source address.
    Source,
    /// Its low half.
    SourceLow,
    /// Destination address.
    Destination,
    /// Its low half.
    DestinationLow,
    /// Address of the next hop.
    NextHop,
    /// Its low half.
    NextHopLow,
    /// Address of the exporter.
    Exporter,
    /// Its low half.
    ExporterLow,
    /// Observation domain, source ID, engine, or sub-agent.
    Domain,
    /// A [`Protocol`] of export.
    Protocol,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// Protocol number of IP.
    IpProtocol,
    /// Traffic class, or type of service: DSCP and ECN.
    TrafficClass,
    /// TCP flags of all packets, combined by "or".
    TcpFlags,
    /// ICMP type and code: type * 256 + code.
    Icmp,
    /// Identifier of the VLAN.
    Vlan,
    /// Source MAC address.
    SourceMac,
    /// Destination MAC address.
    DestinationMac,
    /// Index of the interface by which packets came (SNMP).
    InInterface,
    /// Index of the interface by which packets left (SNMP).
    OutInterface,
    /// Autonomous system of the source.
    SourceAs,
    /// Autonomous system of the destination.
    DestinationAs,
    /// Prefix length of the route to the source.
    SourceMask,
    /// Prefix length of the route to the destination.
    DestinationMask,
    /// Why the record was made (IPFIX flowEndReason).
    EndReason,
    /// 0 for packets that the exporter received, 1 for those that it sent.
    Direction,
}

/// How many slots there are.
pub const SLOTS: usize = Slot::Direction as usize + 1;

/// Bytes of a record as a frame.
pub const RECORD_BYTES: usize = 8 * (SLOTS + 1);

const _: () = assert!(SLOTS <= 64, "a bit for each slot");

/// By which protocol a record came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// NetFlow version 5.
    Netflow5,
    /// NetFlow version 9 (RFC 3954).
    Netflow9,
    /// IPFIX (RFC 7011).
    Ipfix,
    /// sFlow version 5.
    Sflow,
}

impl Protocol {
    /// All of them, in the order of their numbers in records.
    pub const ALL: [Protocol; 4] =
        [Protocol::Netflow5, Protocol::Netflow9, Protocol::Ipfix, Protocol::Sflow];

    /// The name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Netflow5 => "netflow5",
            Protocol::Netflow9 => "netflow9",
            Protocol::Ipfix => "ipfix",
            Protocol::Sflow => "sflow",
        }
    }
}

/// Whether this is the first slot of an address.
fn is_address(slot: usize) -> bool {
    let first = [Slot::Source, Slot::Destination, Slot::NextHop, Slot::Exporter];
    first.iter().any(|&first| first as usize == slot)
}

/// A flow record that is being filled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    present: u64,
    words: [u64; SLOTS],
}

impl FlowRecord {
    /// A record without values.
    pub const EMPTY: FlowRecord = FlowRecord { present: 0, words: [0; SLOTS] };

    /// Sets a slot.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: u64) {
        self.present |= 1 << slot as u8;
        self.words[slot as usize] = value;
    }

    /// The value of a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<u64> {
        (self.present >> slot as u8 & 1 == 1).then(|| self.words[slot as usize])
    }

    /// Forgets the value of a slot.
    pub fn unset(&mut self, slot: Slot) {
        self.present &= !(1 << slot as u8);
    }

    /// Sets an address by the first of its slots.
    pub fn set_address(&mut self, first: Slot, address: u128) {
        self.set(first, (address >> 64) as u64);
        self.words[first as usize + 1] = address as u64;
    }

    /// Sets an IPv4 address by the first of its slots.
    pub fn set_v4(&mut self, first: Slot, address: u32) {
        self.set_address(first, u128::from(V4 | u64::from(address)));
    }

    /// The address of which this is the first slot.
    pub fn address(&self, first: Slot) -> Option<u128> {
        let high = self.get(first)?;
        Some(u128::from(high) << 64 | u128::from(self.words[first as usize + 1]))
    }

    /// Takes over every value that another record has.
    pub fn fill_from(&mut self, other: &FlowRecord) {
        let mut slots = other.present;
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            self.words[slot] = other.words[slot];
            // The low half of an address has no bit of its own.
            if is_address(slot) {
                self.words[slot + 1] = other.words[slot + 1];
            }
            slots &= slots - 1;
        }
        self.present |= other.present;
    }

    /// Writes the record as a frame.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.present.to_le_bytes());
        for word in self.words {
            to.extend_from_slice(&word.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        let mut record = FlowRecord::EMPTY;
        assert_eq!(record.get(Slot::Bytes), None);
        record.set(Slot::Bytes, u64::MAX);
        record.set(Slot::Direction, 0);
        record.set_v4(Slot::Source, 0x0a00_0001);
        record.set_address(Slot::Destination, 1 << 127 | 5);
        assert_eq!(record.get(Slot::Bytes), Some(u64::MAX));
        assert_eq!(record.get(Slot::Direction), Some(0));
        assert_eq!(record.address(Slot::Source), Some(0xffff_0a00_0001));
        assert_eq!(record.address(Slot::Destination), Some(1 << 127 | 5));
        assert_eq!(record.address(Slot::NextHop), None);
        record.unset(Slot::Bytes);
        assert_eq!(record.get(Slot::Bytes), None);
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        assert_eq!(bytes.len(), RECORD_BYTES);
    }
}
