//! Writes packets: for tests, generators and round trips. It is built with the feature `craft` of
//! this crate only.
//!
//! A [`Frame`] is built from the outside in. Lengths, types, protocol numbers and checksums come
//! out right by themselves, and [`Frame::put`] overrides any of them:
//!
//! ```
//! use weir_packet::{craft::Frame, ipv4, tcp::SYN};
//!
//! let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
//! let syn = Frame::ethernet().vlan(7).ipv4(client, server).tcp(40_000, 80).flags(SYN);
//! assert_eq!(syn.bytes().len(), 14 + 4 + 20 + 20);
//!
//! let lying = Frame::raw()
//!     .ipv4(client, server)
//!     .put(ipv4::TOTAL_LENGTH, &9000u16.to_be_bytes())
//!     .udp(53, 53)
//!     .payload(b"short");
//! assert_eq!(lying.bytes()[2..4], [0x23, 0x28]);
//! ```

#[path = "craft/messages.rs"]
pub mod messages;
#[path = "craft/quic.rs"]
pub mod quic;

use crate::checksum::checksum;
use crate::source::{FrameBatch, LinkType};
use crate::{arp, ethernet, icmp, ipv4, ipv6, tcp, udp, vlan};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A packet to be written: headers, outermost first, and a payload.
#[derive(Clone, Debug)]
pub struct Frame {
    link: LinkType,
    layers: Vec<Layer>,
    payload: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Layer {
    kind: Kind,
    header: Vec<u8>,
    /// The places and bytes that [`Frame::put`] asked for.
    overrides: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ethernet,
    Cooked,
    Cooked2,
    Loopback,
    /// With the EtherType that announces the tag.
    Vlan(u16),
    Arp,
    Ipv4,
    Ipv6,
    /// With its protocol number.
    Extension(u8),
    Tcp,
    Udp,
    Icmp,
    Icmp6,
    /// Bytes that mean nothing here, with the EtherType that announces them.
    Other(u16),
}

/// How frames start.
impl Frame {
    /// An Ethernet frame between two locally administered addresses. Not padded to 60 bytes, as
    /// frames are that are captured where they are sent.
    pub fn ethernet() -> Frame {
        let mut header = vec![0; ethernet::HEADER_LEN];
        (header[0], header[5]) = (2, 2);
        (header[6], header[11]) = (2, 1);
        Frame::bare(LinkType::ETHERNET).layer(Kind::Ethernet, header)
    }

    /// A packet without a link header.
    pub fn raw() -> Frame {
        Frame::bare(LinkType::RAW)
    }

    /// A Linux cooked frame (v1), sent by an Ethernet device.
    pub fn cooked() -> Frame {
        let mut header = vec![0; 16];
        (header[1], header[3], header[5]) = (4, 1, 6);
        Frame::bare(LinkType::LINUX_SLL).layer(Kind::Cooked, header)
    }

    /// A Linux cooked frame (v2), sent by an Ethernet device.
    pub fn cooked2() -> Frame {
        let mut header = vec![0; 20];
        (header[7], header[9], header[10], header[11]) = (2, 1, 4, 6);
        Frame::bare(LinkType::LINUX_SLL2).layer(Kind::Cooked2, header)
    }

    /// A BSD loopback frame as a little-endian machine writes it.
    pub fn loopback() -> Frame {
        Frame::bare(LinkType::NULL).layer(Kind::Loopback, vec![0; 4])
    }

    /// A frame of any link type that begins with these bytes; nothing in them is filled in.
    pub fn of(link: LinkType, header: &[u8]) -> Frame {
        Frame::bare(link).layer(Kind::Other(0), header.to_vec())
    }

    fn bare(link: LinkType) -> Frame {
        Frame { link, layers: Vec::new(), payload: Vec::new() }
    }

    fn layer(mut self, kind: Kind, header: Vec<u8>) -> Frame {
        self.layers.push(Layer { kind, header, overrides: Vec::new() });
        self
    }
}

/// Layers, each inside the ones before.
impl Frame {
    /// A VLAN tag (802.1Q) with this identifier.
    pub fn vlan(self, id: u16) -> Frame {
        self.tag(vlan::CUSTOMER, id)
    }

    /// A VLAN tag announced by the EtherType `announced`, with all 16 bits of its control
    /// information.
    pub fn tag(self, announced: u16, control: u16) -> Frame {
        let [a, b] = control.to_be_bytes();
        self.layer(Kind::Vlan(announced), vec![a, b, 0, 0])
    }

    /// A header of any kind that the EtherType `announced` announces; nothing in it is filled in.
    pub fn header(self, announced: u16, header: &[u8]) -> Frame {
        self.layer(Kind::Other(announced), header.to_vec())
    }

    /// An ARP packet: operation, then hardware and protocol address of sender and target.
    pub fn arp(
        self,
        operation: u16,
        sender: ([u8; 6], Ipv4Addr),
        target: ([u8; 6], Ipv4Addr),
    ) -> Frame {
        let mut header = arp::IPV4_OVER_ETHERNET.to_vec();
        header.extend(operation.to_be_bytes());
        for (mac, ip) in [sender, target] {
            header.extend(mac);
            header.extend(ip.octets());
        }
        self.layer(Kind::Arp, header)
    }

    /// An IPv4 header.
    pub fn ipv4(self, source: impl Into<Ipv4Addr>, destination: impl Into<Ipv4Addr>) -> Frame {
        let mut header = vec![0; ipv4::HEADER_LEN];
        header[ipv4::TTL] = 64;
        header[ipv4::PROTOCOL] = EXPERIMENT;
        header[ipv4::SOURCE..][..4].copy_from_slice(&source.into().octets());
        header[ipv4::DESTINATION..][..4].copy_from_slice(&destination.into().octets());
        self.layer(Kind::Ipv4, header)
    }

    /// An IPv6 header.
    pub fn ipv6(self, source: impl Into<Ipv6Addr>, destination: impl Into<Ipv6Addr>) -> Frame {
        let mut header = vec![0; ipv6::HEADER_LEN];
        header[0] = 0x60;
        header[ipv6::NEXT_HEADER] = EXPERIMENT;
        header[ipv6::HOP_LIMIT] = 64;
        header[ipv6::SOURCE..][..16].copy_from_slice(&source.into().octets());
        header[ipv6::DESTINATION..][..16].copy_from_slice(&destination.into().octets());
        self.layer(Kind::Ipv6, header)
    }

    /// An extension header of protocol number `kind`: `body` is what follows its next header and
    /// length bytes, padded with zeros to the header's unit. The authentication header goes into
    /// IPv4 as well.
    pub fn extension(self, kind: u8, body: &[u8]) -> Frame {
        let mut header = [&[EXPERIMENT, 0], body].concat();
        let unit = if kind == ipv6::AUTHENTICATION { 4 } else { 8 };
        header.resize(header.len().next_multiple_of(unit).max(ipv6::EXTENSION_LEN_MIN), 0);
        header[1] = match kind {
            ipv6::FRAGMENT => 0,
            ipv6::AUTHENTICATION => (header.len() / 4 - 2) as u8,
            _ => (header.len() / 8 - 1) as u8,
        };
        self.layer(Kind::Extension(kind), header)
    }

    /// A TCP header.
    pub fn tcp(self, sport: u16, dport: u16) -> Frame {
        let mut header = ports(sport, dport, tcp::HEADER_LEN);
        header[tcp::WINDOW] = 0xff;
        self.layer(Kind::Tcp, header)
    }

    /// A UDP header.
    pub fn udp(self, sport: u16, dport: u16) -> Frame {
        self.layer(Kind::Udp, ports(sport, dport, udp::HEADER_LEN))
    }

    /// An ICMP header of eight bytes.
    pub fn icmp(self, kind: u8, code: u8) -> Frame {
        self.layer(Kind::Icmp, vec![kind, code, 0, 0, 0, 0, 0, 0])
    }

    /// An ICMPv6 header of eight bytes.
    pub fn icmp6(self, kind: u8, code: u8) -> Frame {
        self.layer(Kind::Icmp6, vec![kind, code, 0, 0, 0, 0, 0, 0])
    }

    /// Appends to the payload, which comes after all headers.
    pub fn payload(mut self, bytes: &[u8]) -> Frame {
        self.payload.extend(bytes);
        self
    }
}

/// Fields of the header added last. Each panics if that header has no such field.
impl Frame {
    /// Overrides bytes of the header added last, derived fields too: the offsets are the constants
    /// of its module. Checksums are computed over the overridden bytes.
    pub fn put(mut self, at: usize, bytes: &[u8]) -> Frame {
        let layer = self.layers.last_mut().expect("a header comes before its fields");
        assert!(at + bytes.len() <= layer.header.len(), "the field is inside the header");
        layer.overrides.push((at, bytes.to_vec()));
        self
    }

    /// Ethernet source and destination.
    pub fn mac(self, source: [u8; 6], destination: [u8; 6]) -> Frame {
        self.set(&[Kind::Ethernet], ethernet::SOURCE, &source).set(
            &[Kind::Ethernet],
            ethernet::DESTINATION,
            &destination,
        )
    }

    /// IPv4 time to live, or IPv6 hop limit.
    pub fn ttl(self, ttl: u8) -> Frame {
        let at = if self.last() == Some(Kind::Ipv6) { ipv6::HOP_LIMIT } else { ipv4::TTL };
        self.set(&[Kind::Ipv4, Kind::Ipv6], at, &[ttl])
    }

    /// IPv4 identification.
    pub fn id(self, id: u16) -> Frame {
        self.set(&[Kind::Ipv4], ipv4::ID, &id.to_be_bytes())
    }

    /// IPv4 don't fragment flag.
    pub fn dont_fragment(self) -> Frame {
        self.set(&[Kind::Ipv4], ipv4::FRAGMENT, &ipv4::DONT_FRAGMENT.to_be_bytes())
    }

    /// Makes the packet a fragment: where it belongs, in bytes (a multiple of eight), and whether
    /// more follow. In IPv6 this adds a fragment header.
    pub fn fragment(self, offset: u16, more: bool) -> Frame {
        if self.last() == Some(Kind::Ipv4) {
            let word = (offset / 8) | if more { ipv4::MORE_FRAGMENTS } else { 0 };
            return self.set(&[Kind::Ipv4], ipv4::FRAGMENT, &word.to_be_bytes());
        }
        let [a, b] = (offset & 0xfff8 | u16::from(more)).to_be_bytes();
        self.extension(ipv6::FRAGMENT, &[a, b, 0, 0, 0, 1])
    }

    /// IPv4 or TCP options, padded with zeros to a multiple of four.
    pub fn options(mut self, options: &[u8]) -> Frame {
        let layer = self.one_of(&[Kind::Ipv4, Kind::Tcp]);
        layer.header.extend(options);
        layer.header.resize(layer.header.len().next_multiple_of(4), 0);
        assert!(layer.header.len() <= 60, "a header has at most 60 bytes");
        self
    }

    /// IPv6 flow label.
    pub fn flow_label(self, label: u32) -> Frame {
        let word = 6 << 28 | label & 0xf_ffff;
        self.set(&[Kind::Ipv6], ipv6::VERSION_CLASS_LABEL, &word.to_be_bytes())
    }

    /// TCP flags, all nine.
    pub fn flags(self, flags: u16) -> Frame {
        self.set(&[Kind::Tcp], tcp::FLAGS, &(flags & tcp::FLAG_BITS).to_be_bytes())
    }

    /// TCP sequence number.
    pub fn seq(self, seq: u32) -> Frame {
        self.set(&[Kind::Tcp], tcp::SEQ, &seq.to_be_bytes())
    }

    /// TCP acknowledgment number.
    pub fn ackno(self, ackno: u32) -> Frame {
        self.set(&[Kind::Tcp], tcp::ACKNO, &ackno.to_be_bytes())
    }

    /// TCP window.
    pub fn window(self, window: u16) -> Frame {
        self.set(&[Kind::Tcp], tcp::WINDOW, &window.to_be_bytes())
    }

    /// Identifier and sequence number of an ICMP or ICMPv6 echo message.
    pub fn echo(self, id: u16, seq: u16) -> Frame {
        let kinds = [Kind::Icmp, Kind::Icmp6];
        self.set(&kinds, icmp::ID, &id.to_be_bytes()).set(&kinds, icmp::SEQ, &seq.to_be_bytes())
    }

    fn last(&self) -> Option<Kind> {
        self.layers.last().map(|layer| layer.kind)
    }

    fn one_of(&mut self, kinds: &[Kind]) -> &mut Layer {
        let layer = self.layers.last_mut().expect("a header comes before its fields");
        assert!(kinds.contains(&layer.kind), "{:?} has no such field", layer.kind);
        layer
    }

    fn set(mut self, kinds: &[Kind], at: usize, bytes: &[u8]) -> Frame {
        self.one_of(kinds).header[at..][..bytes.len()].copy_from_slice(bytes);
        self
    }
}

/// The finished frame.
impl Frame {
    /// The link type the frame is for.
    pub fn link(&self) -> LinkType {
        self.link
    }

    /// The bytes of the frame.
    pub fn bytes(&self) -> Vec<u8> {
        let mut inner = self.payload.clone();
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let mut header = layer.header.clone();
            derive(&mut header, layer.kind, self.layers.get(i + 1).map(|l| l.kind), inner.len());
            layer.apply_overrides(&mut header);
            if let Some(at) = checksum_at(layer.kind) {
                header[at..at + 2].fill(0);
                let pseudo =
                    pseudo_header(layer.kind, &self.layers[..i], header.len() + inner.len());
                let covered = if layer.kind == Kind::Ipv4 { &[][..] } else { &inner };
                let mut sum = checksum(&[&pseudo, &header, covered]);
                if sum == 0 && layer.kind == Kind::Udp {
                    sum = 0xffff;
                }
                header[at..at + 2].copy_from_slice(&sum.to_be_bytes());
                layer.apply_overrides(&mut header);
            }
            header.append(&mut inner);
            inner = header;
        }
        inner
    }
}

impl Layer {
    fn apply_overrides(&self, header: &mut [u8]) {
        for (at, bytes) in &self.overrides {
            header[*at..][..bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// A batch of frames of one link type: the captured bytes of each, and its length on the wire.
/// They are a millisecond apart. Panics over [`crate::limits::BATCH`] frames.
pub fn batch(link: LinkType, frames: &[(Vec<u8>, u32)]) -> FrameBatch {
    let bytes: Vec<u8> = frames.iter().flat_map(|(captured, _)| captured).copied().collect();
    let chunk: crate::source::Chunk = Arc::new(bytes);
    let mut batch = FrameBatch::new();
    batch.restart(&chunk, 0, link);
    let mut at = 0;
    for (i, (captured, len)) in frames.iter().enumerate() {
        let ts = 1_700_000_000_000_000_000 + i as i64 * 1_000_000;
        batch.push(ts, i as u64, at, captured.len() as u32, *len);
        at += captured.len() as u32;
    }
    batch
}

/// Protocol number for experiments (RFC 3692): of packets that hold just a payload.
const EXPERIMENT: u8 = 253;

fn ports(sport: u16, dport: u16, header_len: usize) -> Vec<u8> {
    let mut header = [sport.to_be_bytes(), dport.to_be_bytes()].concat();
    header.resize(header_len, 0);
    header
}

/// Fills in what a header says of itself and of what is inside it.
fn derive(header: &mut [u8], kind: Kind, inner: Option<Kind>, inner_len: usize) {
    // A length beyond the field is left at 0, as in packets that were not cut into segments yet.
    let length = |n: usize| u16::try_from(n).unwrap_or(0).to_be_bytes();
    let len = header.len();
    match kind {
        Kind::Ipv4 => {
            header[ipv4::VERSION_IHL] = 0x40 | (len / 4) as u8;
            header[ipv4::TOTAL_LENGTH..][..2].copy_from_slice(&length(len + inner_len));
        }
        Kind::Ipv6 => header[ipv6::PAYLOAD_LENGTH..][..2].copy_from_slice(&length(inner_len)),
        Kind::Tcp => header[tcp::DATA_OFFSET] |= (len / 4 * 16) as u8,
        Kind::Udp => header[udp::LENGTH..][..2].copy_from_slice(&length(len + inner_len)),
        _ => {}
    }
    let protocol_at = match kind {
        Kind::Ipv4 => Some(ipv4::PROTOCOL),
        Kind::Ipv6 => Some(ipv6::NEXT_HEADER),
        Kind::Extension(_) => Some(0),
        _ => None,
    };
    if let (Some(at), Some(number)) = (protocol_at, inner.and_then(protocol)) {
        header[at] = number;
    }
    let type_at = match kind {
        Kind::Ethernet => Some(ethernet::TYPE),
        Kind::Vlan(_) => Some(vlan::TYPE),
        Kind::Cooked => Some(14),
        Kind::Cooked2 => Some(0),
        _ => None,
    };
    if let (Some(at), Some(number)) = (type_at, inner.and_then(ethertype)) {
        header[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }
    match inner {
        Some(Kind::Ipv4) if kind == Kind::Loopback => header[0] = 2,
        Some(Kind::Ipv6) if kind == Kind::Loopback => header[0] = 30,
        _ => {}
    }
}

fn ethertype(kind: Kind) -> Option<u16> {
    match kind {
        Kind::Vlan(announced) | Kind::Other(announced) => Some(announced),
        Kind::Arp => Some(ethernet::ARP),
        Kind::Ipv4 => Some(ethernet::IPV4),
        Kind::Ipv6 => Some(ethernet::IPV6),
        _ => None,
    }
}

fn protocol(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Ipv4 => Some(4),
        Kind::Ipv6 => Some(41),
        Kind::Extension(number) => Some(number),
        Kind::Tcp => Some(tcp::PROTOCOL),
        Kind::Udp => Some(udp::PROTOCOL),
        Kind::Icmp => Some(icmp::PROTOCOL),
        Kind::Icmp6 => Some(icmp::PROTOCOL_V6),
        _ => None,
    }
}

fn checksum_at(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Ipv4 => Some(ipv4::CHECKSUM),
        Kind::Tcp => Some(tcp::CHECKSUM),
        Kind::Udp => Some(udp::CHECKSUM),
        Kind::Icmp | Kind::Icmp6 => Some(icmp::CHECKSUM),
        _ => None,
    }
}

/// The bytes that TCP, UDP and ICMPv6 checksums cover besides the packet: the addresses of the IP
/// header they are in, their own length, and their protocol number.
fn pseudo_header(kind: Kind, outer: &[Layer], len: usize) -> Vec<u8> {
    let Some(number) =
        protocol(kind).filter(|_| matches!(kind, Kind::Tcp | Kind::Udp | Kind::Icmp6))
    else {
        return Vec::new();
    };
    let ip = outer.iter().rev().find(|layer| matches!(layer.kind, Kind::Ipv4 | Kind::Ipv6));
    let addresses = match ip {
        Some(ip) if ip.kind == Kind::Ipv4 => &ip.header[ipv4::SOURCE..ipv4::HEADER_LEN],
        Some(ip) => &ip.header[ipv6::SOURCE..ipv6::HEADER_LEN],
        None => &[],
    };
    let mut pseudo = addresses.to_vec();
    pseudo.extend((len as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, number]);
    pseudo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arp::Arp;
    use crate::ipv4::Ipv4;
    use crate::ipv6::{Extension, Ipv6};
    use crate::tcp::Tcp;
    use crate::udp::Udp;

    const A: [u8; 4] = [192, 168, 0, 1];
    const B: [u8; 4] = [192, 168, 0, 199];

    #[test]
    fn an_ip_header_byte_by_byte() {
        let frame = Frame::raw().ipv4(A, B).dont_fragment().udp(1, 2).payload(&[0; 87]).bytes();
        #[rustfmt::skip]
        assert_eq!(frame[..20], [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61,
            0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ]);
    }

    #[test]
    fn checksums_verify() {
        let v6 = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        for (frame, number) in [
            (Frame::raw().ipv6(v6(1), v6(2)).udp(9, 10).payload(b"odd"), udp::PROTOCOL),
            (Frame::raw().ipv6(v6(1), v6(2)).tcp(9, 10).options(&[1]), tcp::PROTOCOL),
            (Frame::raw().ipv6(v6(1), v6(2)).icmp6(128, 0).echo(1, 2), icmp::PROTOCOL_V6),
        ] {
            let bytes = frame.bytes();
            let (head, body) = bytes.split_at(40);
            let length = (body.len() as u32).to_be_bytes();
            assert_eq!(checksum(&[&head[8..], &length, &[0, 0, 0, number], body]), 0);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let tcp = Frame::raw()
            .ipv4(A, B)
            .ttl(3)
            .id(77)
            .options(&[7, 4, 4])
            .tcp(1234, 80)
            .seq(5)
            .ackno(6)
            .window(7)
            .flags(tcp::SYN | tcp::NS)
            .options(&[2, 4, 5, 0xb4])
            .payload(b"hello")
            .bytes();
        let ip = Ipv4::new(&tcp).unwrap();
        assert_eq!((ip.source(), ip.destination()), (A.into(), B.into()));
        assert_eq!((ip.ttl(), ip.id(), ip.options()), (3, 77, &[7, 4, 4, 0][..]));
        let tcp = Tcp::new(ip.payload()).unwrap();
        assert_eq!((tcp.sport(), tcp.dport(), tcp.seq(), tcp.ackno()), (1234, 80, 5, 6));
        assert_eq!((tcp.window(), tcp.flags()), (7, tcp::SYN | tcp::NS));
        assert_eq!((tcp.options().len(), tcp.payload()), (4, &b"hello"[..]));
    }

    #[test]
    fn extension_headers_chain() {
        let frame = Frame::raw()
            .ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
            .flow_label(0xabcde)
            .extension(ipv6::HOP_BY_HOP, &[1, 4, 0, 0, 0, 0, 1])
            .fragment(64, true)
            .udp(5, 6)
            .bytes();
        let ip = Ipv6::new(&frame).unwrap();
        assert_eq!((ip.flow_label(), ip.next_header()), (0xabcde, ipv6::HOP_BY_HOP));
        let hop = Extension::new(ipv6::HOP_BY_HOP, ip.payload()).unwrap();
        assert_eq!((hop.header_len(), hop.next_header()), (16, ipv6::FRAGMENT));
        let fragment = Extension::new(ipv6::FRAGMENT, &ip.payload()[16..]).unwrap();
        let said = fragment.fragment().unwrap();
        assert_eq!((said.offset, said.more, fragment.next_header()), (64, true, udp::PROTOCOL));
        assert_eq!(Udp::new(&ip.payload()[24..]).unwrap().dport(), 6);
    }

    #[test]
    fn tags_and_arp() {
        let sender = ([2, 0, 0, 0, 0, 1], Ipv4Addr::from(A));
        let target = ([0; 6], Ipv4Addr::from(B));
        let frame =
            Frame::ethernet().tag(vlan::SERVICE, 0x2064).vlan(7).arp(arp::REQUEST, sender, target);
        let bytes = frame.bytes();
        assert_eq!(bytes[12..22], [0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x07, 0x08, 0x06]);
        assert_eq!(Arp::new(&bytes[22..]).unwrap().target_ip(), Ipv4Addr::from(B));
    }

    #[test]
    fn overrides_win_over_what_is_derived() {
        let frame = Frame::raw()
            .ipv4(A, B)
            .put(ipv4::PROTOCOL, &[99])
            .udp(1, 2)
            .put(udp::CHECKSUM, &[0, 0])
            .put(udp::LENGTH, &[0, 7])
            .bytes();
        assert_eq!(frame[ipv4::PROTOCOL], 99);
        assert_eq!(frame[24..28], [0, 7, 0, 0]);
        assert_eq!(checksum(&[&frame[..20]]), 0, "the checksum covers the override");
    }

    #[test]
    #[should_panic(expected = "Udp has no such field")]
    fn a_field_belongs_to_its_header() {
        let _ = Frame::raw().udp(1, 2).flags(tcp::SYN);
    }
}
