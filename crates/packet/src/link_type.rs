//! Link types: by what header frames begin.

/// A link-layer header type (the LINKTYPE registry of tcpdump.org).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    /// IEEE 802.3 Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// SLIP as BSD systems write it: 16 bytes, then raw IP.
    pub const SLIP: LinkType = LinkType(8);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: LinkType = LinkType(9);
    /// Raw IP as some systems number it in files (`DLT_RAW`).
    pub const RAW_BSD: LinkType = LinkType(12);
    /// PPP in HDLC-like framing, or Cisco HDLC.
    pub const PPP_SERIAL: LinkType = LinkType(50);
    /// Raw IP, version by the first nibble.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// Frame Relay.
    pub const FRELAY: LinkType = LinkType(107);
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture v1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 behind a radiotap header.
    pub const RADIOTAP: LinkType = LinkType(127);
    /// A frame of another link type behind per-packet information.
    pub const PPI: LinkType = LinkType(192);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Packets logged by Linux netfilter.
    pub const NFLOG: LinkType = LinkType(239);
    /// Linux cooked capture v2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
    /// No link type of the registry: frames are flow records in the form of [`crate::record`].
    pub const FLOW_RECORDS: LinkType = LinkType(u16::MAX);
}
