//! The named reasons for which a frame is malformed.

use std::fmt;

/// Why a frame is malformed. The first fault found, from the outside in, names the frame; layers
/// before it stay readable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Reason {
    /// More VLAN tags than [`crate::limits::VLAN_TAGS_MAX`].
    VlanDepth,
    /// More headers below IP than [`crate::limits::LINK_HEADERS_MAX`], or one that starts beyond
    /// the first 64 KiB of the frame.
    LinkDepth,
    /// More MPLS labels than [`crate::limits::MPLS_LABELS_MAX`].
    MplsDepth,
    /// A PPPoE version or type that is not 1, or a length beyond the frame on the wire.
    Pppoe,
    /// A network service header of another version, or shorter than itself.
    Nsh,
    /// A Frame Relay address that does not end within four bytes.
    FrameRelay,
    /// An 802.11 version that is not 0.
    Wlan,
    /// A radiotap header of another version, shorter than itself, or beyond the frame on the wire.
    Radiotap,
    /// A header of per-packet information of another version, shorter than itself, or beyond the
    /// frame on the wire.
    Ppi,
    /// A netfilter log header of another version, an attribute that is shorter than itself or
    /// beyond the frame on the wire, or more than [`crate::limits::NFLOG_ATTRIBUTES_MAX`] of them.
    Nflog,
    /// The ARP header is not for IPv4 over Ethernet, or ends before its addresses on the wire.
    Arp,
    /// The version nibble contradicts the layer below.
    IpVersion,
    /// IPv4 header length under 20 bytes or beyond the total length.
    Ipv4HeaderLength,
    /// IPv4 total length beyond the frame on the wire.
    Ipv4TotalLength,
    /// IPv6 payload length beyond the frame on the wire.
    Ipv6PayloadLength,
    /// An IPv6 extension header or AH that reaches beyond the packet on the wire, or a chain longer
    /// than [`crate::limits::EXTENSION_HEADERS_MAX`].
    ExtensionHeader,
    /// TCP data offset under 5 or beyond the packet.
    TcpDataOffset,
    /// UDP length under 8 or beyond the packet.
    UdpLength,
    /// The packet ends on the wire inside a link, IP or transport header.
    ShortHeader,
}

/// How many reasons there are.
pub const REASONS: usize = 19;

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; REASONS] = [
        Reason::VlanDepth,
        Reason::LinkDepth,
        Reason::MplsDepth,
        Reason::Pppoe,
        Reason::Nsh,
        Reason::FrameRelay,
        Reason::Wlan,
        Reason::Radiotap,
        Reason::Ppi,
        Reason::Nflog,
        Reason::Arp,
        Reason::IpVersion,
        Reason::Ipv4HeaderLength,
        Reason::Ipv4TotalLength,
        Reason::Ipv6PayloadLength,
        Reason::ExtensionHeader,
        Reason::TcpDataOffset,
        Reason::UdpLength,
        Reason::ShortHeader,
    ];

    /// The name in the ledger, such as `tcp data offset`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::VlanDepth => "vlan depth",
            Reason::LinkDepth => "link headers",
            Reason::MplsDepth => "mpls depth",
            Reason::Pppoe => "pppoe",
            Reason::Nsh => "nsh",
            Reason::FrameRelay => "frame relay",
            Reason::Wlan => "802.11 version",
            Reason::Radiotap => "radiotap",
            Reason::Ppi => "ppi",
            Reason::Nflog => "nflog",
            Reason::Arp => "arp",
            Reason::IpVersion => "ip version",
            Reason::Ipv4HeaderLength => "ipv4 header length",
            Reason::Ipv4TotalLength => "ipv4 total length",
            Reason::Ipv6PayloadLength => "ipv6 payload length",
            Reason::ExtensionHeader => "ip extension header",
            Reason::TcpDataOffset => "tcp data offset",
            Reason::UdpLength => "udp length",
            Reason::ShortHeader => "short header",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Reason {}
