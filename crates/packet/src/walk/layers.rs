//! The results of the walk over the frames of a batch.

use super::reason::REASONS;
use crate::bits::Bits;
use crate::hellos::Hellos;
use crate::limits::BATCH;

/// A layer or a fact about a frame that the walk establishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Layer {
    /// An Ethernet header.
    Eth,
    /// At least one VLAN tag.
    Vlan,
    /// At least one MPLS label.
    Mpls,
    /// A PPPoE header.
    Pppoe,
    /// An 802.11 header, all of it captured.
    Wlan,
    /// A radiotap header, all of it captured.
    Radiotap,
    /// The headers from IP on are those of a packet in a tunnel; see [`super::Headers::INNER`].
    Tunnel,
    /// ARP for IPv4 over Ethernet, its addresses captured.
    Arp,
    /// An IPv4 header, its 20 fixed bytes captured and its header length sound.
    Ipv4,
    /// An IPv6 header, its 40 bytes captured.
    Ipv6,
    /// A fragment, first or later.
    Fragment,
    /// Transport ports captured: TCP, UDP, UDP-Lite, SCTP, DCCP; not in later fragments.
    Ports,
    /// A TCP header with its ports captured.
    Tcp,
    /// The TCP header's 20 fixed bytes captured and its data offset valid: every field readable.
    TcpWhole,
    /// A UDP header with its ports captured.
    Udp,
    /// An ICMP header, type and code captured.
    Icmp,
    /// An ICMPv6 header, type and code captured.
    Icmp6,
    /// Cut inside a header the walk wanted to read: by the snap length, or in a tunnel whose packet
    /// is a first fragment, by its end.
    Cut,
    /// Malformed; the reason is counted.
    Malformed,
}

/// How many layers there are.
pub const LAYERS: usize = 19;

/// Where the layers of each frame of a batch start. Positions count from the start of the frame
/// and mean something only for frames that have the layer.
#[derive(Clone, Debug)]
pub struct Layers {
    /// Start of the ARP or IP header.
    pub l3: Box<[u16; BATCH]>,
    /// Start of the transport header, after IPv4 options and IPv6 extension headers.
    pub l4: Box<[u16; BATCH]>,
    /// Protocol number of the transport header; of all IP packets, fragments too, where the
    /// chain of extension headers could be read (`proto_known`).
    pub proto: Box<[u8; BATCH]>,
    /// IP packets whose protocol number is known.
    pub proto_known: Bits,
    /// VLAN tags.
    pub vlan_depth: Box<[u8; BATCH]>,
    /// Malformed frames so far, by [`Reason`](super::Reason); grows from batch to batch.
    pub malformed: [u64; REASONS],
    /// Frames cut so far, but for those that are malformed too.
    pub cut: u64,
    pub(crate) below: Box<[Below; BATCH]>,
    pub(crate) has: [Bits; LAYERS],
    pub(crate) plain: PlainFrames,
    pub(crate) hellos: Hellos,
}

/// The headers below IP in a frame that the fast pass did not take. Positions count from the start
/// of the frame and are 0 where they mean nothing. They are of the frame's own headers: not of a
/// frame inside a pseudowire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Below {
    /// The first VLAN tag, and the second.
    pub(crate) tags: [u16; 2],
    /// The first byte after the Ethernet or cooked header and its tags.
    pub(crate) link_end: u16,
    /// The first MPLS label, and how many there are.
    pub(crate) mpls: u16,
    pub(crate) mpls_depth: u8,
    /// The PPPoE header.
    pub(crate) pppoe: u16,
    /// The 802.11 header.
    pub(crate) wlan: u16,
    /// The IP header of the outermost tunnel, and how many tunnels there are.
    pub(crate) outer: u16,
    pub(crate) tunnels: u8,
    /// The identifier of the innermost tunnel that has one.
    pub(crate) tunnel_id: Option<u32>,
    /// Where the IP packet ends on the wire: where its header says, and if that leaves it open or
    /// lies, where the innermost header around it that tells a length says, or the frame.
    pub(crate) end: u32,
}

/// Which frames the fast pass took: TCP or UDP right behind IPv4 without options, or behind IPv6
/// without extension headers, neither a fragment nor cut nor malformed, with [`HEADERS`] bytes of
/// memory from the IP header on, which starts at the same place in all of them.
///
/// [`HEADERS`]: crate::read::HEADERS
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PlainFrames {
    pub(crate) four: Bits,
    pub(crate) six: Bits,
    pub(crate) l3: u8,
}

impl Layers {
    /// The rows that have a layer.
    #[inline(always)]
    pub fn has(&self, layer: Layer) -> Bits {
        self.has[layer as usize]
    }
}

impl Layers {
    /// Of an empty batch.
    pub fn new() -> Layers {
        Layers {
            l3: Box::new([0; BATCH]),
            l4: Box::new([0; BATCH]),
            proto: Box::new([0; BATCH]),
            proto_known: Bits::NONE,
            vlan_depth: Box::new([0; BATCH]),
            malformed: [0; REASONS],
            cut: 0,
            below: Box::new([Below::default(); BATCH]),
            has: [Bits::NONE; LAYERS],
            plain: PlainFrames::default(),
            hellos: Hellos::default(),
        }
    }
}

impl Default for Layers {
    fn default() -> Layers {
        Layers::new()
    }
}
