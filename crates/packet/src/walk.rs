//! The classifying walk: which layers each frame of a batch has, and where they start.

mod fast;
mod fuzz;
mod link;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod sites;
mod slow;
mod tunnel;

use crate::bits::Bits;
use crate::ethernet::{self, Ethernet};
use crate::limits::BATCH;
use crate::source::{FrameBatch, LinkType};
use crate::vlan;
use std::fmt;

pub(crate) use fast::{HEADS, Heads, Look, WINDOW};
pub use fuzz::fuzz_walk;

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
    /// The headers from IP on are those of a packet in a tunnel; see [`Headers::Inner`].
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

/// Which packet of a frame the layers from IP on are those of, where packets are in tunnels: IP in
/// IP, GRE, ERSPAN, EtherIP, MPLS in IP, VXLAN, GENEVE, GTP-U and Teredo.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Headers {
    /// The outermost: the one that the network between the ends of the tunnel sees.
    #[default]
    Outer,
    /// The innermost, to [`crate::limits::TUNNELS_MAX`] tunnels. What is below IP stays that of the
    /// frame.
    Inner,
}

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
    /// Malformed frames so far, by [`Reason`]; grows from batch to batch.
    pub malformed: [u64; REASONS],
    /// Frames cut so far, but for those that are malformed too.
    pub cut: u64,
    pub(crate) below: Box<[Below; BATCH]>,
    pub(crate) has: [Bits; LAYERS],
    pub(crate) plain: PlainFrames,
}

/// What lies below IP in a frame that the fast pass did not take. Positions count from the start of
/// the frame and are 0 where they mean nothing. They are of the frame's own headers: not of a frame
/// inside a pseudowire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Below {
    /// The first VLAN tag, and the second.
    pub(crate) tags: [u16; 2],
    /// What follows the Ethernet or cooked header and its tags.
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
        }
    }
}

impl Default for Layers {
    fn default() -> Layers {
        Layers::new()
    }
}

/// Whether frames of this link type can be walked: Ethernet, raw IP, Linux cooked captures and
/// netfilter logs, BSD loopback and SLIP, 802.11 with and without what the radio said, PPP, Cisco
/// HDLC and Frame Relay.
pub fn supported(link: LinkType) -> bool {
    is_raw(link)
        || matches!(
            link,
            LinkType::ETHERNET
                | LinkType::LINUX_SLL
                | LinkType::LINUX_SLL2
                | LinkType::NULL
                | LinkType::LOOP
                | LinkType::IPV4
                | LinkType::IPV6
                | LinkType::SLIP
                | LinkType::PPP
                | LinkType::PPP_SERIAL
                | LinkType::C_HDLC
                | LinkType::FRELAY
                | LinkType::IEEE802_11
                | LinkType::RADIOTAP
                | LinkType::PPI
                | LinkType::NFLOG
        )
}

/// Says where the layers of each frame of a batch start. `layers` is overwritten, except for its
/// counts, which go on from batch to batch. Frames of a link type that is not [`supported`] have
/// no layers.
pub fn classify(frames: &FrameBatch, layers: &mut Layers) {
    layers.has = [Bits::NONE; LAYERS];
    (layers.proto_known, layers.plain) = (Bits::NONE, PlainFrames::default());
    let all = Bits::first(frames.len());
    let mut plain = classify_plain(frames, layers);
    let carriers = tunnel::carriers(frames, layers, plain);
    if !carriers.is_empty() {
        plain = plain.minus(carriers);
        forget(layers, carriers);
    }
    if frames.link == LinkType::ETHERNET {
        layers.has[Layer::Eth as usize] = plain;
    }
    if plain != all {
        classify_rest(frames, layers, all.minus(plain));
    }
}

/// The fast pass for the batch's link type: fills in the plain frames and returns which they are.
fn classify_plain(frames: &FrameBatch, layers: &mut Layers) -> Bits {
    use fast::classify as fast;
    let word = |w: &fast::Window, at: usize| u16::from_be_bytes([w[at], w[at + 1]]);
    let is_ip = |ethertype: u16| (ethertype == ethernet::IPV4, ethertype == ethernet::IPV6);
    let only_if = |on: bool, (v4, v6): (bool, bool)| (on & v4, on & v6);
    match frames.link {
        // Whether a link has tags or not rarely changes within a batch.
        LinkType::ETHERNET if is_tagged(frames.frame(0)) => {
            let plain = fast::<18>(frames, layers, 1, |w| {
                only_if(vlan::is_tag(word(w, 12)), is_ip(word(w, 16)))
            });
            layers.has[Layer::Vlan as usize] = plain;
            plain
        }
        LinkType::ETHERNET => fast::<14>(frames, layers, 0, |w| is_ip(word(w, 12))),
        LinkType::LINUX_SLL => fast::<16>(frames, layers, 0, |w| {
            only_if(has_ethertypes(word(w, 2)), is_ip(word(w, 14)))
        }),
        LinkType::LINUX_SLL2 => fast::<20>(frames, layers, 0, |w| {
            only_if(has_ethertypes(word(w, 8)), is_ip(word(w, 0)))
        }),
        LinkType::NULL | LinkType::LOOP => {
            fast::<4>(frames, layers, 0, |w| family([w[0], w[1], w[2], w[3]]))
        }
        LinkType::IPV4 => fast::<0>(frames, layers, 0, |_| (true, false)),
        LinkType::IPV6 => fast::<0>(frames, layers, 0, |_| (false, true)),
        link if is_raw(link) => fast::<0>(frames, layers, 0, |_| (true, true)),
        _ => Bits::NONE,
    }
}

/// Takes back what the fast pass said of these frames.
#[cold]
fn forget(layers: &mut Layers, rows: Bits) {
    layers.has.iter_mut().for_each(|has| *has = has.minus(rows));
    layers.proto_known = layers.proto_known.minus(rows);
    layers.plain.four = layers.plain.four.minus(rows);
    layers.plain.six = layers.plain.six.minus(rows);
}

/// The slow walk for the other frames.
#[cold]
#[inline(never)]
fn classify_rest(frames: &FrameBatch, layers: &mut Layers, rows: Bits) {
    let lens = frames.lens();
    rows.each(|i| {
        let found = slow::walk(frames.link, frames.headers, frames.frame(i), lens[i]);
        layers.l3[i] = found.l3;
        layers.l4[i] = found.l4;
        layers.proto[i] = found.proto;
        layers.vlan_depth[i] = found.vlan_depth;
        layers.below[i] = found.below;
        layers.proto_known.put(i, found.proto_known);
        let mut bits = found.layers;
        while bits != 0 {
            layers.has[bits.trailing_zeros() as usize].set(i);
            bits &= bits - 1;
        }
        if let Some(reason) = found.reason {
            layers.malformed[reason as usize] += 1;
        }
    });
    // A frame that is both is counted once, as malformed.
    layers.cut += layers.has(Layer::Cut).minus(layers.has(Layer::Malformed)).count() as u64;
}

/// Protocols of which the walk reads the ports and no more: DCCP, SCTP, UDP-Lite.
const PORTS_ONLY: [u8; 3] = [33, 132, 136];

/// Bytes of the ports at the start of a transport header.
const PORTS_LEN: usize = 4;

/// Raw IP under any of its numbers; 12 and 14 are `DLT_RAW` of BSD systems.
fn is_raw(link: LinkType) -> bool {
    matches!(link, LinkType::RAW | LinkType::RAW_BSD | LinkType(14))
}

/// Whether the type field of an Ethernet header announces a VLAN tag.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    Ethernet::new(frame).is_ok_and(|eth| vlan::is_tag(eth.ethertype()))
}

/// Whether the protocol field of a Linux cooked header is an EtherType, by its hardware type: it
/// is not for netlink (824), radiotap (803) and Frame Relay (770).
#[inline(always)]
pub(crate) fn has_ethertypes(hardware: u16) -> bool {
    (hardware != 824) & (hardware != 803) & (hardware != 770)
}

/// Whether an address family is IPv4, IPv6. It is in the byte order of the capturing machine, and
/// every family is a small number; the BSDs each have their own for IPv6.
#[inline(always)]
fn family(bytes: [u8; 4]) -> (bool, bool) {
    let (little, big) = (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes));
    let family = if little < big { little } else { big };
    (family == 2, matches!(family, 10 | 24 | 28 | 30))
}

#[cfg(test)]
mod tests {
    use super::samples::{A, B, samples, tunnels};
    use super::*;
    use crate::craft::{Frame, batch};

    /// What the walk says of one frame: its layers, where they start, and the fault.
    fn describe(link: LinkType, captured: &[u8], len: u32) -> String {
        describe_of(Headers::Outer, link, captured, len)
    }

    fn describe_of(headers: Headers, link: LinkType, captured: &[u8], len: u32) -> String {
        let mut layers = Layers::new();
        let mut frames = batch(link, &[(captured.to_vec(), len)]);
        frames.headers = headers;
        classify(&frames, &mut layers);
        let mut words: Vec<String> = Vec::new();
        if layers.vlan_depth[0] > 0 {
            words.push(format!("depth={}", layers.vlan_depth[0]));
        }
        let all: [(Layer, &str); LAYERS] = [
            (Layer::Eth, "eth"),
            (Layer::Vlan, "vlan"),
            (Layer::Mpls, "mpls"),
            (Layer::Pppoe, "pppoe"),
            (Layer::Wlan, "wlan"),
            (Layer::Radiotap, "radiotap"),
            (Layer::Tunnel, "tunnel"),
            (Layer::Arp, "arp"),
            (Layer::Ipv4, "ipv4"),
            (Layer::Ipv6, "ipv6"),
            (Layer::Fragment, "fragment"),
            (Layer::Ports, "ports"),
            (Layer::Tcp, "tcp"),
            (Layer::TcpWhole, "whole"),
            (Layer::Udp, "udp"),
            (Layer::Icmp, "icmp"),
            (Layer::Icmp6, "icmp6"),
            (Layer::Cut, "CUT"),
            (Layer::Malformed, "MALFORMED"),
        ];
        words.extend(all.iter().filter(|(l, _)| layers.has(*l).has(0)).map(|(_, w)| w.to_string()));
        let reason = Reason::ALL.into_iter().find(|&r| layers.malformed[r as usize] > 0);
        words.extend(reason.map(|r| format!("({r})")));
        if layers.proto_known.has(0) {
            words.push(format!("{}: {}@{}", layers.l3[0], layers.proto[0], layers.l4[0]));
        }
        if words.is_empty() {
            return "nothing".to_string();
        }
        words.join(" ")
    }

    #[test]
    fn samples_are_walked() {
        let lines: Vec<String> = samples()
            .iter()
            .map(|(name, frame)| {
                let bytes = frame.bytes();
                format!("{name}: {}", describe(frame.link(), &bytes, bytes.len() as u32))
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        tcp: eth ipv4 ports tcp whole 14: 6@34
        udp: eth ipv4 ports udp 14: 17@34
        tcp6: eth ipv6 ports tcp whole 14: 6@54
        udp6: eth ipv6 ports udp 14: 17@54
        padded: eth ipv4 ports udp 14: 17@34
        tagged: depth=1 eth vlan ipv4 ports tcp whole 18: 6@38
        tagged6: depth=1 eth vlan ipv6 ports udp 18: 17@58
        qinq: depth=2 eth vlan ipv4 ports udp 22: 17@42
        old qinq: depth=2 eth vlan ipv6 ports udp 22: 17@62
        eight tags: depth=8 eth vlan ipv4 ports udp 46: 17@66
        nine tags: depth=8 eth vlan MALFORMED (vlan depth)
        arp: eth arp
        arp in vlan: depth=1 eth vlan arp
        llc: eth
        lldp: eth
        raw: ipv4 ports tcp whole 0: 6@20
        raw6: ipv6 ports tcp whole 0: 6@40
        loopback: ipv4 ports tcp whole 4: 6@24
        loopback big-endian: ipv6 ports udp 4: 17@44
        loopback other: nothing
        cooked: ipv4 ports udp 16: 17@36
        cooked tagged: depth=1 vlan ipv6 ports tcp whole 20: 6@60
        cooked netlink: nothing
        cooked2: ipv4 ports udp 20: 17@40
        cooked2 tagged: depth=1 vlan ipv4 ports udp 24: 17@44
        slip: ipv4 ports udp 16: 17@36
        ppp: ipv4 ports udp 4: 17@24
        ppp bare: ipv6 ports udp 2: 17@42
        ppp one byte: ipv4 ports udp 1: 17@21
        ppp mpls: mpls ipv4 ports udp 8: 17@28
        ppp lcp: nothing
        ppp serial: ipv4 ports udp 4: 17@24
        ppp or hdlc: ipv4 ports udp 4: 17@24
        hdlc: ipv6 ports udp 4: 17@44
        hdlc slarp: nothing
        frame relay: ipv4 ports udp 4: 17@24
        frame relay6: ipv6 ports udp 4: 17@44
        frame relay snap: ipv4 ports udp 10: 17@30
        frame relay cisco: ipv4 ports udp 4: 17@24
        frame relay address: MALFORMED (frame relay)
        nflog: ipv4 ports udp 24: 17@44
        nflog big-endian: ipv6 ports udp 16: 17@56
        nflog without packet: nothing
        nflog attribute: MALFORMED (nflog)
        nflog length: ipv4 ports udp MALFORMED (nflog) 8: 17@28
        wlan: wlan ipv4 ports tcp whole 32: 6@52
        wlan qos: wlan ipv4 ports udp 34: 17@54
        wlan aggregate: wlan ipv4 ports udp 48: 17@68
        wlan between: wlan ipv4 ports udp 38: 17@58
        wlan encrypted: wlan
        wlan beacon: wlan
        wlan acknowledgement: wlan
        wlan version: MALFORMED (802.11 version)
        wlan short: MALFORMED (short header)
        radiotap: wlan radiotap ipv4 ports udp 47: 17@67
        radiotap checksum: wlan radiotap ipv4 ports udp 48: 17@68
        radiotap padded: wlan radiotap ipv4 ports udp 51: 17@71
        radiotap length: MALFORMED (radiotap)
        radiotap version: MALFORMED (radiotap)
        ppi: wlan ipv4 ports udp 40: 17@60
        ppi in ppi: MALFORMED (802.11 version)
        ppi length: MALFORMED (ppi)
        snap: eth ipv4 ports udp 22: 17@42
        snap unsegmented: eth ipv4 ports tcp whole 22: 6@42
        snap cdp: eth
        etag: depth=1 eth vlan ipv4 26: 253@46
        vntag: eth ipv4 ports udp 20: 17@40
        mpls: eth mpls ipv4 ports udp 18: 17@38
        mpls6: depth=1 eth vlan mpls ipv6 ports tcp whole 30: 6@70
        17 labels: eth mpls ipv4 ports udp 82: 17@102
        255 labels: eth mpls ipv4 ports udp 1034: 17@1054
        256 labels: eth mpls MALFORMED (mpls depth)
        mpls ends: eth mpls MALFORMED (short header)
        mpls other: eth mpls
        pseudowire: eth mpls ipv4 ports udp 40: 17@60
        pseudowire controlled: eth mpls ipv4 ports udp 40: 17@60
        pppoe: eth pppoe ipv4 ports udp 22: 17@42
        pppoe unsegmented: eth pppoe ipv4 ports tcp whole 22: 6@42
        pppoe total length: eth pppoe ipv4 ports udp MALFORMED (ipv4 total length) 22: 17@42
        pppoe length: eth pppoe ipv4 ports udp MALFORMED (pppoe) 22: 17@42
        pppoe discovery: eth pppoe
        pppoe version: eth MALFORMED (pppoe)
        nsh: eth ipv4 ports udp 22: 17@42
        nsh ethernet: eth ipv4 ports udp 40: 17@60
        nsh mpls: eth ipv4 ports udp 26: 17@46
        nsh without end: eth MALFORMED (link headers)
        nsh version: eth MALFORMED (nsh)
        ping: eth ipv4 icmp 14: 1@34
        unreachable: eth ipv4 icmp 14: 1@34
        ping6: eth ipv6 icmp6 14: 58@54
        neighbour: eth ipv6 icmp6 14: 58@54
        sctp: eth ipv4 ports 14: 132@34
        dccp6: eth ipv6 ports 14: 33@54
        udp-lite: eth ipv4 ports 14: 136@34
        gre: eth ipv4 14: 47@34
        options: eth ipv4 ports tcp whole 14: 6@42
        first fragment: eth ipv4 fragment ports udp 14: 17@34
        first fragment tcp: eth ipv4 fragment ports tcp whole 14: 6@34
        later fragment: eth ipv4 fragment 14: 253@34
        dont fragment: eth ipv4 ports tcp whole 14: 6@34
        unsegmented: eth ipv4 ports tcp whole 14: 6@34
        unsegmented6: eth ipv6 ports tcp whole 14: 6@54
        jumbo: eth ipv6 ports udp 14: 17@70
        jumbo beyond the frame: eth ipv6 ports udp MALFORMED (ipv6 payload length) 14: 17@62
        empty6: eth ipv6 14: 59@54
        ah: eth ipv4 ports tcp whole 14: 6@58
        ah6: eth ipv6 ports tcp whole 14: 6@78
        ah in a later fragment: eth ipv4 fragment 14: 51@34
        extensions: eth ipv6 ports udp 14: 17@86
        extensions 2: eth ipv6 ports tcp whole 14: 6@78
        first fragment6: eth ipv6 fragment ports udp 14: 17@70
        later fragment6: eth ipv6 fragment 14: 253@62
        atomic fragment6: eth ipv6 ports udp 14: 17@62
        esp6: eth ipv6 14: 50@62
        ip in ip: eth ipv4 14: 4@34
        arp for token ring: eth MALFORMED (arp)
        short ethernet: MALFORMED (short header)
        version: eth MALFORMED (ip version)
        version6: eth MALFORMED (ip version)
        raw version: MALFORMED (ip version)
        header length: eth MALFORMED (ipv4 header length)
        header length beyond total: eth MALFORMED (ipv4 header length)
        total length: eth ipv4 ports tcp whole MALFORMED (ipv4 total length) 14: 6@34
        payload length: eth ipv6 ports udp MALFORMED (ipv6 payload length) 14: 17@54
        extension length: eth ipv6 MALFORMED (ip extension header) 14: 17@782
        many extensions: eth ipv6 MALFORMED (ip extension header)
        sixteen extensions: eth ipv6 ports udp 14: 17@182
        data offset: eth ipv4 ports tcp MALFORMED (tcp data offset) 14: 6@34
        data offset beyond: eth ipv4 ports tcp MALFORMED (tcp data offset) 14: 6@34
        data offset6: eth ipv6 ports tcp MALFORMED (tcp data offset) 14: 6@54
        udp length: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        udp length 0: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        udp length beyond: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        tcp in 8 bytes: eth ipv4 ports tcp MALFORMED (short header) 14: 6@34
        udp in 3 bytes: eth ipv4 MALFORMED (short header) 14: 17@34
        padding is no header: eth ipv4 ports tcp MALFORMED (short header) 14: 6@34
        icmp in 2 bytes: eth ipv4 icmp MALFORMED (short header) 14: 1@34
        ip in ip in ip: eth ipv4 14: 4@34
        6in4: eth ipv4 14: 41@34
        4in6: ipv6 0: 4@40
        etherip: eth ipv4 14: 97@34
        mpls in ip: eth ipv4 14: 137@34
        gre ip: eth ipv4 14: 47@34
        gre bridged: eth ipv4 14: 47@34
        gre ppp: eth ipv4 14: 47@34
        gre ppp of version 0: eth ipv4 14: 47@34
        gre ppp with a key: eth ipv4 14: 47@34
        gre ppp acknowledgement: eth ipv4 14: 47@34
        gre arp: eth ipv4 14: 47@34
        gre aruba: eth ipv4 14: 47@34
        erspan: eth ipv4 14: 47@34
        erspan ii: eth ipv4 14: 47@34
        erspan iii: eth ipv4 14: 47@34
        vxlan: eth ipv4 ports udp 14: 17@34
        vxlan gpe: eth ipv4 ports udp 14: 17@34
        vxlan without identifier: eth ipv4 ports udp 14: 17@34
        geneve: eth ipv4 ports udp 14: 17@34
        gtp: eth ipv4 ports udp 14: 17@34
        gtp echo: eth ipv4 ports udp 14: 17@34
        gtp garbage: eth ipv4 ports udp 14: 17@34
        teredo: eth ipv4 ports udp 14: 17@34
        answer on the port of teredo: eth ipv4 ports udp 14: 17@34
        in a tagged frame: depth=1 eth vlan ipv4 ports udp 18: 17@38
        tunnels without end: eth ipv4 14: 4@34
        in a first fragment: eth ipv4 fragment 14: 4@34
        in a later fragment: eth ipv4 fragment 14: 4@34
        malformed inside: eth ipv4 14: 4@34
        ");
    }

    #[test]
    fn tunnels_are_walked_to_the_innermost_packet() {
        let lines: Vec<String> = tunnels()
            .iter()
            .map(|(name, frame)| {
                let bytes = frame.bytes();
                let said = describe_of(Headers::Inner, frame.link(), &bytes, bytes.len() as u32);
                format!("{name}: {said}")
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        ip in ip in ip: eth tunnel ipv4 ports tcp whole 54: 6@74
        6in4: eth tunnel ipv6 ports udp 34: 17@74
        4in6: tunnel ipv4 ports tcp whole 40: 6@60
        etherip: eth tunnel ipv4 ports tcp whole 54: 6@74
        mpls in ip: eth tunnel ipv4 ports tcp whole 38: 6@58
        gre ip: eth tunnel ipv4 ports tcp whole 38: 6@58
        gre bridged: eth tunnel ipv4 ports tcp whole 60: 6@80
        gre ppp: eth tunnel ipv4 ports tcp whole 50: 6@70
        gre ppp of version 0: eth tunnel ipv4 ports tcp whole 42: 6@62
        gre ppp with a key: eth tunnel ipv4 ports tcp whole 43: 6@63
        gre ppp acknowledgement: eth ipv4 14: 47@34
        gre arp: eth ipv4 14: 47@34
        gre aruba: eth tunnel ipv4 ports tcp whole 70: 6@90
        erspan: eth tunnel ipv4 ports tcp whole 56: 6@76
        erspan ii: eth tunnel ipv4 ports tcp whole 68: 6@88
        erspan iii: eth tunnel ipv4 ports tcp whole 72: 6@92
        vxlan: eth tunnel ipv4 ports tcp whole 68: 6@88
        vxlan gpe: eth tunnel ipv4 ports tcp whole 50: 6@70
        vxlan without identifier: eth ipv4 ports udp 14: 17@34
        geneve: eth tunnel ipv4 ports tcp whole 72: 6@92
        gtp: eth tunnel ipv4 ports tcp whole 50: 6@70
        gtp echo: eth ipv4 ports udp 14: 17@34
        gtp garbage: eth ipv4 ports udp 14: 17@34
        teredo: eth tunnel ipv6 ports udp 50: 17@90
        answer on the port of teredo: eth ipv4 ports udp 14: 17@34
        in a tagged frame: depth=1 eth vlan tunnel ipv4 ports tcp whole 72: 6@92
        tunnels without end: eth tunnel ipv4 174: 4@194
        in a first fragment: eth tunnel ipv4 ports tcp CUT 34: 6@54
        in a later fragment: eth ipv4 fragment 14: 4@34
        malformed inside: eth tunnel ipv4 ports tcp MALFORMED (tcp data offset) 34: 6@54
        ");
    }

    #[test]
    fn without_tunnels_inner_and_outer_are_the_same() {
        let tunnelled: Vec<&str> = tunnels().iter().map(|(name, _)| *name).collect();
        for (name, frame) in samples() {
            if tunnelled.contains(&name) || ["ip in ip", "gre"].contains(&name) {
                continue;
            }
            let (link, bytes) = (frame.link(), frame.bytes());
            for snap in 0..=bytes.len() {
                let of = |headers| describe_of(headers, link, &bytes[..snap], bytes.len() as u32);
                let (inner, outer) = (of(Headers::Inner), of(Headers::Outer));
                assert_eq!(inner, outer, "{name} cut at {snap}");
            }
        }
    }

    #[test]
    fn the_snap_length_cuts_layer_by_layer() {
        let frame = Frame::ethernet().vlan(1).ipv4(A, B).options(&[1; 4]).tcp(1, 2).bytes();
        let len = frame.len() as u32;
        let mut lines: Vec<String> = Vec::new();
        for snap in 0..=frame.len() {
            let said = describe(LinkType::ETHERNET, &frame[..snap], len);
            if lines.last().is_none_or(|last| last.split_once(' ').unwrap().1 != said) {
                lines.push(format!("{snap} {said}"));
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r"
        0 CUT
        14 eth CUT
        18 depth=1 eth vlan CUT
        38 depth=1 eth vlan ipv4 CUT 18: 6@42
        46 depth=1 eth vlan ipv4 ports tcp CUT 18: 6@42
        62 depth=1 eth vlan ipv4 ports tcp whole 18: 6@42
        ");
    }

    #[test]
    fn a_packet_that_ends_on_the_wire_is_not_cut_but_malformed() {
        let frame = Frame::ethernet().ipv4(A, B).tcp(1, 2).bytes();
        let short = &frame[..40];
        assert_eq!(
            describe(LinkType::ETHERNET, short, 40),
            "eth ipv4 ports tcp MALFORMED (ipv4 total length) 14: 6@34"
        );
        assert_eq!(describe(LinkType::ETHERNET, short, 54), "eth ipv4 ports tcp CUT 14: 6@34");
        assert_eq!(
            describe(LinkType::ETHERNET, &frame, 40),
            describe(LinkType::ETHERNET, &frame, 54)
        );
        assert_eq!(describe(LinkType::ETHERNET, &[], 0), "MALFORMED (short header)");
        assert_eq!(describe(LinkType::ETHERNET, &[], 60), "CUT");
    }

    #[test]
    fn a_frame_both_malformed_and_cut_is_counted_once() {
        let frame = Frame::ethernet().ipv4(A, B).put(crate::ipv4::TOTAL_LENGTH, &[9, 0]).tcp(1, 2);
        let mut layers = Layers::new();
        classify(&batch(LinkType::ETHERNET, &[(frame.bytes()[..36].to_vec(), 54)]), &mut layers);
        assert!(layers.has(Layer::Cut).has(0) && layers.has(Layer::Malformed).has(0));
        assert_eq!((layers.cut, layers.malformed[Reason::Ipv4TotalLength as usize]), (0, 1));
    }

    #[test]
    fn counts_go_on_from_batch_to_batch() {
        let mut layers = Layers::new();
        let bad = Frame::ethernet().ipv4(A, B).tcp(1, 2).put(crate::tcp::DATA_OFFSET, &[0]).bytes();
        let frames = batch(LinkType::ETHERNET, &[(bad.clone(), 54), (bad[..20].to_vec(), 54)]);
        for round in 1..=3 {
            classify(&frames, &mut layers);
            assert_eq!(layers.malformed[Reason::TcpDataOffset as usize], round);
            assert_eq!(layers.malformed.iter().sum::<u64>(), round);
            assert_eq!(layers.cut, round);
        }
        classify(&FrameBatch::new(), &mut layers);
        assert!(layers.has.iter().all(Bits::is_empty));
    }

    #[test]
    fn reasons_are_numbered_in_order() {
        for (i, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
        }
    }

    #[test]
    fn supported_links_are_walked_and_no_others() {
        let walked = |n: u16| {
            // Every link has some header, and here it is not all there.
            describe(LinkType(n), &[], 0) != "nothing"
        };
        for n in 0..400 {
            assert_eq!(supported(LinkType(n)), walked(n), "{n}");
        }
    }
}
