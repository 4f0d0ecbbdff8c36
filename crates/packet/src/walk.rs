//! The classifying walk: which layers each frame of a batch has, and where they start.

mod fast;
mod fuzz;
#[cfg(test)]
pub(crate) mod samples;
mod slow;

use crate::bits::Bits;
use crate::ethernet::{self, Ethernet};
use crate::limits::BATCH;
use crate::source::{FrameBatch, LinkType};
use crate::vlan;
use std::fmt;

pub(crate) use fast::{Look, WINDOW, look_ethernet};
pub use fuzz::fuzz_walk;

/// Why a frame is malformed. The first fault found, from the outside in, names the frame; layers
/// before it stay readable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Reason {
    /// More VLAN tags than [`crate::limits::VLAN_TAGS_MAX`].
    VlanDepth,
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
pub const REASONS: usize = 10;

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; REASONS] = [
        Reason::VlanDepth,
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
    /// Cut by the snap length inside a header the walk wanted to read.
    Cut,
    /// Malformed; the reason is counted.
    Malformed,
}

/// How many layers there are.
pub const LAYERS: usize = 14;

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
    /// Frames cut so far.
    pub cut: u64,
    pub(crate) has: [Bits; LAYERS],
    pub(crate) plain: Plain,
}

/// Which frames the fast pass took: TCP or UDP right behind IPv4 without options, or behind IPv6
/// without extension headers, neither a fragment nor cut nor malformed, with [`HEADERS`] bytes of
/// memory from the IP header on, which starts at the same place in all of them.
///
/// [`HEADERS`]: crate::read::HEADERS
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Plain {
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
            has: [Bits::NONE; LAYERS],
            plain: Plain::default(),
        }
    }
}

impl Default for Layers {
    fn default() -> Layers {
        Layers::new()
    }
}

/// Whether frames of this link type can be walked: Ethernet, raw IP, Linux cooked captures and BSD
/// loopback.
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
        )
}

/// Says where the layers of each frame of a batch start. `layers` is overwritten, except for its
/// counts, which go on from batch to batch. Frames of a link type that is not [`supported`] have
/// no layers.
pub fn classify(frames: &FrameBatch, layers: &mut Layers) {
    layers.has = [Bits::NONE; LAYERS];
    (layers.proto_known, layers.plain) = (Bits::NONE, Plain::default());
    let all = Bits::first(frames.len());
    let plain = classify_plain(frames, layers);
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

/// The slow walk for the other frames.
#[cold]
#[inline(never)]
fn classify_rest(frames: &FrameBatch, layers: &mut Layers, rows: Bits) {
    let lens = frames.lens();
    rows.each(|i| {
        let found = slow::walk(frames.link, frames.frame(i), lens[i]);
        layers.l3[i] = found.l3;
        layers.l4[i] = found.l4;
        layers.proto[i] = found.proto;
        layers.vlan_depth[i] = found.vlan_depth;
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
    layers.cut += layers.has(Layer::Cut).count() as u64;
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
    use super::samples::{A, B, samples};
    use super::*;
    use crate::craft::{Frame, batch};

    /// What the walk says of one frame: its layers, where they start, and the fault.
    fn describe(link: LinkType, captured: &[u8], len: u32) -> String {
        let mut layers = Layers::new();
        classify(&batch(link, &[(captured.to_vec(), len)]), &mut layers);
        let mut words: Vec<String> = Vec::new();
        if layers.vlan_depth[0] > 0 {
            words.push(format!("depth={}", layers.vlan_depth[0]));
        }
        let all: [(Layer, &str); LAYERS] = [
            (Layer::Eth, "eth"),
            (Layer::Vlan, "vlan"),
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
        jumbo: eth ipv6 ports udp 14: 17@62
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
        ");
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
            let frame = Frame::raw().ipv4(A, B).udp(1, 2).bytes();
            // Deep enough for any link header, and wrong for most: some fault shows.
            describe(LinkType(n), &frame[..3], 3) != "nothing"
        };
        for n in 0..400 {
            assert_eq!(supported(LinkType(n)), walked(n), "{n}");
        }
    }
}
