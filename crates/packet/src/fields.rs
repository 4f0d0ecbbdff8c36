//! The field catalogue: name, type and meaning of everything a query can ask of a packet.
//!
//! This one table is shared by the language (names and types), the engine (readers) and the
//! documentation (`weir fields`).

mod below;
mod bytes;
mod id;
mod upper;

pub use bytes::{Header, HeaderBytes};
pub use id::FieldId;

use crate::column::Repr;

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldType {
    /// True or false.
    Bool,
    /// A 64-bit signed integer.
    Int,
    /// Nanoseconds since 1970.
    Time,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A 48-bit link address.
    Mac,
    /// A text of at most [`crate::limits::TEXT_MAX`] bytes.
    Str,
    /// At most so many bytes as they are.
    Bytes,
}

impl FieldType {
    /// How columns store it.
    pub fn repr(self) -> Repr {
        match self {
            FieldType::Bool => Repr::Bit,
            FieldType::Ip => Repr::Pair,
            _ => Repr::Word,
        }
    }

    /// Whether a column holds handles of what stands elsewhere: of texts and bytes.
    pub fn is_text(self) -> bool {
        matches!(self, FieldType::Str | FieldType::Bytes)
    }
}

/// One line of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in queries and in output, such as `tcp.dport`.
    pub name: &'static str,
    /// Its type.
    pub ty: FieldType,
    /// Which reader decodes it.
    pub item: Item,
    /// Width in bits of the largest value, for integers, and 64 if they may be negative; 0
    /// otherwise.
    pub bits: u8,
    /// Whether every packet has it.
    pub always: bool,
    /// One sentence: meaning, unit, when absent, source.
    pub doc: &'static str,
}

/// A named group of fields that queries use as a key, such as `flow`.
#[derive(Debug)]
pub struct Key {
    /// The name in queries.
    pub name: &'static str,
    /// Its parts, in order; each is a field of the catalogue.
    pub fields: &'static [Item],
    /// One sentence.
    pub doc: &'static str,
}

/// The catalogue entry called `name`.
pub fn by_name(name: &str) -> Option<FieldId> {
    FieldId::all().find(|id| id.info().name == name)
}

/// The named key called `name`.
pub fn key_by_name(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// The catalogue entry decoded by `item`.
pub fn by_item(item: Item) -> FieldId {
    debug_assert!(item != Item::Bytes, "no field of the catalogue");
    FieldId::at(item as u32)
}

/// What a field reader decodes; the discriminant is the position in [`FIELDS`]. [`Item::Bytes`],
/// the last, has none: where they are only the [`FieldId`] says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
#[expect(missing_docs, reason = "each is described by its line in FIELDS")]
pub enum Item {
    Ts,
    Number,
    Len,
    Caplen,
    LinkType,
    Interface,
    Direction,
    Malformed,
    Cut,
    Eth,
    EthSrc,
    EthDst,
    EthType,
    LinkA,
    LinkB,
    Vlan,
    VlanId,
    VlanPcp,
    VlanDei,
    VlanInner,
    VlanDepth,
    Mpls,
    MplsLabel,
    MplsExp,
    MplsTtl,
    MplsBottom,
    MplsDepth,
    Pppoe,
    PppoeCode,
    PppoeSession,
    Wlan,
    WlanType,
    WlanSubtype,
    WlanRetry,
    WlanProtected,
    WlanRa,
    WlanTa,
    WlanDa,
    WlanSa,
    WlanBssid,
    Radiotap,
    RadiotapRate,
    RadiotapFreq,
    RadiotapSignal,
    Tunnel,
    TunnelDepth,
    TunnelSrc,
    TunnelDst,
    Arp,
    ArpOp,
    ArpSenderMac,
    ArpSenderIp,
    ArpTargetMac,
    ArpTargetIp,
    Ip,
    Ipv4,
    Ipv6,
    IpSrc,
    IpDst,
    IpProto,
    IpVersion,
    IpLen,
    IpHdrLen,
    IpTtl,
    IpDscp,
    IpEcn,
    IpId,
    IpDf,
    IpFrag,
    IpFragOffset,
    IpMoreFrags,
    Ipv6FlowLabel,
    Sport,
    Dport,
    HostsA,
    HostsB,
    ConnAIp,
    ConnAPort,
    ConnBIp,
    ConnBPort,
    ConnForward,
    Tcp,
    TcpSport,
    TcpDport,
    TcpSeq,
    TcpAckno,
    TcpHdrLen,
    TcpFlags,
    TcpFin,
    TcpSyn,
    TcpRst,
    TcpPsh,
    TcpAck,
    TcpUrg,
    TcpEce,
    TcpCwr,
    TcpWindow,
    TcpChecksum,
    TcpUrgent,
    TcpPayload,
    Udp,
    UdpSport,
    UdpDport,
    UdpLen,
    UdpChecksum,
    Icmp,
    IcmpType,
    IcmpCode,
    IcmpId,
    IcmpSeq,
    Icmp6,
    Icmp6Type,
    Icmp6Code,
    Icmp6Id,
    Icmp6Seq,
    TcpMss,
    TcpWscale,
    TcpSackPermitted,
    TcpSackBlocks,
    TcpSackLeft,
    TcpSackRight,
    TcpTsval,
    TcpTsecr,
    Dns,
    DnsId,
    DnsQr,
    DnsOpcode,
    DnsAa,
    DnsTc,
    DnsRd,
    DnsRa,
    DnsRcode,
    DnsQname,
    DnsQtype,
    DnsQclass,
    DnsQdcount,
    DnsAncount,
    DnsNscount,
    DnsArcount,
    DnsAddr,
    DnsTtl,
    Tls,
    TlsContentType,
    TlsHandshakeType,
    TlsVersion,
    TlsSni,
    TlsAlpn,
    Http,
    HttpMethod,
    HttpUri,
    HttpHost,
    HttpUserAgent,
    HttpStatus,
    Dhcp,
    DhcpOp,
    DhcpType,
    DhcpXid,
    DhcpClientMac,
    DhcpClientIp,
    DhcpYourIp,
    DhcpRequestedIp,
    DhcpServerId,
    DhcpHostname,
    Ntp,
    NtpVersion,
    NtpMode,
    NtpLeap,
    NtpStratum,
    NtpRefid,
    NtpTransmit,
    Sctp,
    SctpVtag,
    SctpChunkType,
    Igmp,
    IgmpType,
    IgmpGroup,
    Esp,
    EspSpi,
    EspSeq,
    Ah,
    AhSpi,
    AhSeq,
    Lldp,
    Payload,
    Bytes,
}

/// The catalogue, in the order that `weir fields` prints.
pub static FIELDS: &[Field] = &{
    const PARTS: [&[Field]; 3] = [below::FIELDS, HEADERS, upper::FIELDS];
    let mut all = [HEADERS[0]; PARTS[0].len() + PARTS[1].len() + PARTS[2].len()];
    let (mut part, mut from, mut i) = (0, 0, 0);
    while i < all.len() {
        if i - from == PARTS[part].len() {
            (part, from) = (part + 1, i);
        }
        all[i] = PARTS[part][i - from];
        i += 1;
    }
    all
};

/// The fields from IP up to the transport headers, and those of ARP.
#[rustfmt::skip]
const HEADERS: &[Field] = &[
    field("arp", FieldType::Bool, Item::Arp, 0, ALWAYS,
        "Whether the packet is ARP for IPv4 over Ethernet (RFC 826)."),
    field("arp.op", FieldType::Int, Item::ArpOp, 16, SOMETIMES,
        "ARP operation: 1 request, 2 reply."),
    field("arp.sender_mac", FieldType::Mac, Item::ArpSenderMac, 0, SOMETIMES,
        "ARP sender hardware address."),
    field("arp.sender_ip", FieldType::Ip, Item::ArpSenderIp, 0, SOMETIMES,
        "ARP sender protocol address."),
    field("arp.target_mac", FieldType::Mac, Item::ArpTargetMac, 0, SOMETIMES,
        "ARP target hardware address."),
    field("arp.target_ip", FieldType::Ip, Item::ArpTargetIp, 0, SOMETIMES,
        "ARP target protocol address."),
    field("ip", FieldType::Bool, Item::Ip, 0, ALWAYS,
        "Whether the packet is IPv4 or IPv6."),
    field("ipv4", FieldType::Bool, Item::Ipv4, 0, ALWAYS,
        "Whether the packet is IPv4 (RFC 791)."),
    field("ipv6", FieldType::Bool, Item::Ipv6, 0, ALWAYS,
        "Whether the packet is IPv6 (RFC 8200)."),
    field("ip.src", FieldType::Ip, Item::IpSrc, 0, SOMETIMES,
        "Source address, IPv4 or IPv6."),
    field("ip.dst", FieldType::Ip, Item::IpDst, 0, SOMETIMES,
        "Destination address, IPv4 or IPv6."),
    field("ip.proto", FieldType::Int, Item::IpProto, 8, SOMETIMES,
        "Protocol number of the payload, after IPv6 extension headers and AH; fragments keep \
         it. Absent where an extension header is cut."),
    field("ip.version", FieldType::Int, Item::IpVersion, 4, SOMETIMES,
        "4 or 6."),
    field("ip.len", FieldType::Int, Item::IpLen, 32, SOMETIMES,
        "Length of the IP packet in bytes: IPv4 total length, or 40 plus IPv6 payload length. If \
         that is 0 (captured before the card cut it, jumbograms): by what carries it."),
    field("ip.hdr_len", FieldType::Int, Item::IpHdrLen, 16, SOMETIMES,
        "Length of the IP header in bytes, with IPv4 options and IPv6 extension headers."),
    field("ip.ttl", FieldType::Int, Item::IpTtl, 8, SOMETIMES,
        "Time to live, or hop limit of IPv6."),
    field("ip.dscp", FieldType::Int, Item::IpDscp, 6, SOMETIMES,
        "Differentiated services code point (RFC 2474)."),
    field("ip.ecn", FieldType::Int, Item::IpEcn, 2, SOMETIMES,
        "Explicit congestion notification bits (RFC 3168)."),
    field("ip.id", FieldType::Int, Item::IpId, 32, SOMETIMES,
        "Identification: of every IPv4 packet, and of IPv6 fragments."),
    field("ip.df", FieldType::Bool, Item::IpDf, 0, SOMETIMES,
        "Don't fragment flag; IPv4 only."),
    field("ip.frag", FieldType::Bool, Item::IpFrag, 0, SOMETIMES,
        "Whether the packet is a fragment, the first one included."),
    field("ip.frag_offset", FieldType::Int, Item::IpFragOffset, 16, SOMETIMES,
        "Fragment offset in bytes; 0 for a first fragment and for a whole packet."),
    field("ip.more_frags", FieldType::Bool, Item::IpMoreFrags, 0, SOMETIMES,
        "More fragments flag."),
    field("ipv6.flow_label", FieldType::Int, Item::Ipv6FlowLabel, 20, SOMETIMES,
        "IPv6 flow label (RFC 6437)."),
    field("sport", FieldType::Int, Item::Sport, 16, SOMETIMES,
        "Source port of TCP, UDP, UDP-Lite, SCTP or DCCP; absent in later fragments, unless \
         --fragments finds it."),
    field("dport", FieldType::Int, Item::Dport, 16, SOMETIMES,
        "Destination port of TCP, UDP, UDP-Lite, SCTP or DCCP; absent in later fragments, unless \
         --fragments finds it."),
    field("hosts.a", FieldType::Ip, Item::HostsA, 0, SOMETIMES,
        "The smaller of the two IP addresses: the same in both directions."),
    field("hosts.b", FieldType::Ip, Item::HostsB, 0, SOMETIMES,
        "The larger of the two IP addresses: the same in both directions."),
    field("conn.a_ip", FieldType::Ip, Item::ConnAIp, 0, SOMETIMES,
        "Address of the connection's smaller (address, port) endpoint: the same in both \
         directions."),
    field("conn.a_port", FieldType::Int, Item::ConnAPort, 16, SOMETIMES,
        "Port of the connection's smaller endpoint; absent without ports."),
    field("conn.b_ip", FieldType::Ip, Item::ConnBIp, 0, SOMETIMES,
        "Address of the connection's larger (address, port) endpoint."),
    field("conn.b_port", FieldType::Int, Item::ConnBPort, 16, SOMETIMES,
        "Port of the connection's larger endpoint; absent without ports."),
    field("conn.forward", FieldType::Bool, Item::ConnForward, 0, SOMETIMES,
        "Direction bit: whether the packet goes from the smaller endpoint to the larger one."),
    field("tcp", FieldType::Bool, Item::Tcp, 0, ALWAYS,
        "Whether the packet has a TCP header, its ports captured (RFC 9293)."),
    field("tcp.sport", FieldType::Int, Item::TcpSport, 16, SOMETIMES,
        "TCP source port."),
    field("tcp.dport", FieldType::Int, Item::TcpDport, 16, SOMETIMES,
        "TCP destination port."),
    field("tcp.seq", FieldType::Int, Item::TcpSeq, 32, SOMETIMES,
        "TCP sequence number."),
    field("tcp.ackno", FieldType::Int, Item::TcpAckno, 32, SOMETIMES,
        "TCP acknowledgment number; `tcp.ack` is the flag."),
    field("tcp.hdr_len", FieldType::Int, Item::TcpHdrLen, 8, SOMETIMES,
        "TCP header length in bytes, options included."),
    field("tcp.flags", FieldType::Int, Item::TcpFlags, 9, SOMETIMES,
        "The nine TCP flag bits as a number: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE \
         64, CWR 128, NS 256."),
    field("tcp.fin", FieldType::Bool, Item::TcpFin, 0, SOMETIMES,
        "FIN flag."),
    field("tcp.syn", FieldType::Bool, Item::TcpSyn, 0, SOMETIMES,
        "SYN flag."),
    field("tcp.rst", FieldType::Bool, Item::TcpRst, 0, SOMETIMES,
        "RST flag."),
    field("tcp.psh", FieldType::Bool, Item::TcpPsh, 0, SOMETIMES,
        "PSH flag."),
    field("tcp.ack", FieldType::Bool, Item::TcpAck, 0, SOMETIMES,
        "ACK flag."),
    field("tcp.urg", FieldType::Bool, Item::TcpUrg, 0, SOMETIMES,
        "URG flag."),
    field("tcp.ece", FieldType::Bool, Item::TcpEce, 0, SOMETIMES,
        "ECE flag (RFC 3168)."),
    field("tcp.cwr", FieldType::Bool, Item::TcpCwr, 0, SOMETIMES,
        "CWR flag (RFC 3168)."),
    field("tcp.window", FieldType::Int, Item::TcpWindow, 16, SOMETIMES,
        "TCP window as sent, not scaled."),
    field("tcp.checksum", FieldType::Int, Item::TcpChecksum, 16, SOMETIMES,
        "TCP checksum as sent."),
    field("tcp.urgent", FieldType::Int, Item::TcpUrgent, 16, SOMETIMES,
        "TCP urgent pointer."),
    field("tcp.payload_len", FieldType::Int, Item::TcpPayload, 32, SOMETIMES,
        "TCP payload length in bytes on the wire, from the IP length; absent in first \
         fragments."),
    field("udp", FieldType::Bool, Item::Udp, 0, ALWAYS,
        "Whether the packet has a UDP header, its ports captured (RFC 768)."),
    field("udp.sport", FieldType::Int, Item::UdpSport, 16, SOMETIMES,
        "UDP source port."),
    field("udp.dport", FieldType::Int, Item::UdpDport, 16, SOMETIMES,
        "UDP destination port."),
    field("udp.len", FieldType::Int, Item::UdpLen, 16, SOMETIMES,
        "UDP length as sent: header and payload, in bytes."),
    field("udp.checksum", FieldType::Int, Item::UdpChecksum, 16, SOMETIMES,
        "UDP checksum as sent; 0 where the sender computed none."),
    field("icmp", FieldType::Bool, Item::Icmp, 0, ALWAYS,
        "Whether the packet has an ICMP header (RFC 792)."),
    field("icmp.type", FieldType::Int, Item::IcmpType, 8, SOMETIMES,
        "ICMP type: 0 echo reply, 3 unreachable, 8 echo request, 11 time exceeded."),
    field("icmp.code", FieldType::Int, Item::IcmpCode, 8, SOMETIMES,
        "ICMP code."),
    field("icmp.id", FieldType::Int, Item::IcmpId, 16, SOMETIMES,
        "Identifier of ICMP echo requests and replies."),
    field("icmp.seq", FieldType::Int, Item::IcmpSeq, 16, SOMETIMES,
        "Sequence number of ICMP echo requests and replies."),
    field("icmp6", FieldType::Bool, Item::Icmp6, 0, ALWAYS,
        "Whether the packet has an ICMPv6 header (RFC 4443)."),
    field("icmp6.type", FieldType::Int, Item::Icmp6Type, 8, SOMETIMES,
        "ICMPv6 type: 128 echo request, 129 echo reply, 135 neighbour solicitation."),
    field("icmp6.code", FieldType::Int, Item::Icmp6Code, 8, SOMETIMES,
        "ICMPv6 code."),
    field("icmp6.id", FieldType::Int, Item::Icmp6Id, 16, SOMETIMES,
        "Identifier of ICMPv6 echo requests and replies."),
    field("icmp6.seq", FieldType::Int, Item::Icmp6Seq, 16, SOMETIMES,
        "Sequence number of ICMPv6 echo requests and replies."),
];

const ALWAYS: bool = true;
const SOMETIMES: bool = false;

const fn field(
    name: &'static str,
    ty: FieldType,
    item: Item,
    bits: u8,
    always: bool,
    doc: &'static str,
) -> Field {
    Field { name, ty, item, bits, always, doc }
}

/// The named keys.
pub static KEYS: &[Key] = &[
    Key {
        name: "flow",
        fields: &[Item::IpSrc, Item::Sport, Item::IpDst, Item::Dport, Item::IpProto],
        doc: "One direction of a connection: the 5-tuple of addresses, ports and protocol.",
    },
    Key {
        name: "conn",
        fields: &[Item::ConnAIp, Item::ConnAPort, Item::ConnBIp, Item::ConnBPort, Item::IpProto],
        doc: "A connection in both directions: the smaller (address, port) endpoint first.",
    },
    Key {
        name: "hosts",
        fields: &[Item::HostsA, Item::HostsB],
        doc: "A pair of IP addresses, the same in both directions.",
    },
    Key {
        name: "link",
        fields: &[Item::LinkA, Item::LinkB],
        doc: "A pair of Ethernet addresses, the same in both directions.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn positions_and_items_agree() {
        for (i, f) in FIELDS.iter().enumerate() {
            assert_eq!(f.item as usize, i, "{}", f.name);
            assert_eq!(by_name(f.name).and_then(FieldId::position), Some(i));
            assert_eq!(by_item(f.item).info().name, f.name);
            assert_eq!(f.ty == FieldType::Int, f.bits > 0, "{}", f.name);
        }
    }

    #[test]
    fn names_are_unique_and_described() {
        let names: BTreeSet<_> =
            FIELDS.iter().map(|f| f.name).chain(KEYS.iter().map(|k| k.name)).collect();
        assert_eq!(names.len(), FIELDS.len() + KEYS.len());
        assert!(FIELDS.iter().all(|f| f.doc.ends_with('.')));
        assert!(KEYS.iter().all(|k| k.doc.ends_with('.')));
    }
}
