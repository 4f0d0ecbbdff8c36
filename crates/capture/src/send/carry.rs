//! The kind of packets that a wire carries, and the header that a frame gets for that.

use weir_packet::egress::Refusal;
use weir_packet::shorten::{ip_start, may_be_ip, version};
use weir_packet::source::LinkType;
use weir_packet::{ethernet, gre, vxlan};

/// Bytes of the longest header: GRE with a sequence number, and ERSPAN.
const HEADER_MAX: usize = 16;

/// Bytes of a VLAN tag, by which an Ethernet frame may be longer, and EtherTypes of tags.
pub(crate) const TAG: usize = 4;
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Whether an Ethernet frame is longer than a device sends that takes so many bytes without a tag.
pub(crate) fn is_longer(frame: &[u8], most: usize) -> bool {
    let tag = frame.get(12..14).is_some_and(|kind| TAGS.iter().any(|tag| kind == tag));
    frame.len() > if tag { most + TAG } else { most }
}

/// EtherType of transparently bridged Ethernet in GRE.
const BRIDGED: u16 = 0x6558;

/// Flags of a GRE header (RFC 2890).
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;

/// The flag of a VXLAN header that has a segment (RFC 7348, section 5).
const VXLAN_SEGMENT: u8 = 0x08;

/// The header before a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    bytes: [u8; HEADER_MAX],
    len: u8,
}

impl Header {
    const NONE: Header = Header { bytes: [0; HEADER_MAX], len: 0 };

    fn new(parts: &[&[u8]]) -> Header {
        let mut header = Header::NONE;
        for part in parts {
            let at = usize::from(header.len);
            header.bytes[at..at + part.len()].copy_from_slice(part);
            header.len += part.len() as u8;
        }
        header
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The kind of packets that a wire carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Carries {
    /// Ethernet frames.
    Ethernet,
    /// IP packets; of a frame that has one, that.
    Ip,
    /// Frames of any kind.
    Any,
    /// Ethernet frames in VXLAN of this segment.
    Vxlan(u32),
    /// Ethernet frames and IP packets in GRE, perhaps with a key.
    Gre(Option<u32>),
    /// Ethernet frames in ERSPAN of this session; the number of the next.
    Erspan(u16, u32),
}

impl Carries {
    /// Whether it carries any frames of a link type.
    pub(crate) fn takes(&self, link: LinkType) -> bool {
        let is_ethernet = link == LinkType::ETHERNET;
        match self {
            Carries::Any => true,
            Carries::Ethernet | Carries::Vxlan(_) | Carries::Erspan(..) => is_ethernet,
            Carries::Ip | Carries::Gre(_) => is_ethernet || may_be_ip(link),
        }
    }

    /// How much of a frame is left out at its start, and what goes there instead.
    ///
    /// # Errors
    /// Why it does not carry the frame.
    pub(crate) fn fit(&mut self, link: LinkType, bytes: &[u8]) -> Result<(u32, Header), Refusal> {
        let is_ethernet = link == LinkType::ETHERNET;
        if is_ethernet && bytes.len() < ethernet::HEADER_LEN {
            return Err(Refusal::Short);
        }
        let ip = || ip_start(link, bytes).ok_or(Refusal::LinkType);
        let ethernet = |header| if is_ethernet { Ok((0, header)) } else { Err(Refusal::LinkType) };
        match self {
            Carries::Any if bytes.is_empty() => Err(Refusal::Short),
            Carries::Any => Ok((0, Header::NONE)),
            Carries::Ethernet => ethernet(Header::NONE),
            Carries::Ip => Ok((ip()? as u32, Header::NONE)),
            Carries::Vxlan(vni) => ethernet(vxlan_header(*vni)),
            Carries::Gre(key) if is_ethernet => ethernet(gre_header(BRIDGED, *key)),
            Carries::Gre(key) => {
                let at = ip()?;
                let ethertype = match version(&bytes[at..]) {
                    Some(6) => ethernet::IPV6,
                    _ => ethernet::IPV4,
                };
                Ok((at as u32, gre_header(ethertype, *key)))
            }
            Carries::Erspan(session, number) => {
                let fits = ethernet(erspan_header(*session, *number))?;
                *number = number.wrapping_add(1);
                Ok(fits)
            }
        }
    }
}

/// Flags (1), reserved (3), segment (3), reserved (1).
fn vxlan_header(vni: u32) -> Header {
    const { assert!(vxlan::HEADER_LEN == 8) };
    Header::new(&[&[VXLAN_SEGMENT, 0, 0, 0], &(vni << 8).to_be_bytes()])
}

/// Flags and version (2), type of what follows (2), key (4) if there is one.
fn gre_header(ethertype: u16, key: Option<u32>) -> Header {
    let flags = if key.is_some() { GRE_KEY } else { 0 };
    let (flags, ethertype) = (flags.to_be_bytes(), ethertype.to_be_bytes());
    match key {
        Some(key) => Header::new(&[&flags, &ethertype, &key.to_be_bytes()]),
        None => Header::new(&[&flags, &ethertype]),
    }
}

/// A GRE header with a number, then: version 1 and VLAN (2), class, how the VLAN is told, whether
/// cut, session (2), reserved and port (4).
fn erspan_header(session: u16, number: u32) -> Header {
    const VERSION: u16 = 1 << 12;
    /// The VLAN tag, if there is one, is in the frame.
    const TAG_KEPT: u16 = 3 << 11;
    let [flags, ethertype] = [GRE_SEQUENCE, gre::ERSPAN].map(u16::to_be_bytes);
    let [version, session] = [VERSION, TAG_KEPT | session].map(u16::to_be_bytes);
    Header::new(&[&flags, &ethertype, &number.to_be_bytes(), &version, &session, &[0; 4]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: [u8; 34] = {
        let mut frame = [0; 34];
        (frame[12], frame[14]) = (0x08, 0x45);
        frame
    };

    #[test]
    fn each_wire_takes_what_it_carries() {
        let ip = &ETHERNET[14..];
        let arp = [&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat();
        let check =
            |mut carries: Carries, link, bytes: &[u8], want: Result<(u32, &[u8]), Refusal>| {
                let got = carries.fit(link, bytes);
                let got =
                    got.as_ref().map(|(skip, header)| (*skip, header.bytes())).map_err(|e| *e);
                assert_eq!(got, want, "{carries:?} {link:?}");
            };
        let (eth, raw) = (LinkType::ETHERNET, LinkType::RAW);
        check(Carries::Ethernet, eth, &ETHERNET, Ok((0, &[])));
        check(Carries::Ethernet, raw, ip, Err(Refusal::LinkType));
        check(Carries::Ethernet, eth, &ETHERNET[..13], Err(Refusal::Short));
        check(Carries::Ip, eth, &ETHERNET, Ok((14, &[])));
        check(Carries::Ip, raw, ip, Ok((0, &[])));
        check(Carries::Ip, eth, &arp, Err(Refusal::LinkType));
        check(Carries::Any, LinkType::RADIOTAP, ip, Ok((0, &[])));
        check(Carries::Any, raw, &[], Err(Refusal::Short));
        let vxlan = [8, 0, 0, 0, 0x12, 0x34, 0x56, 0];
        check(Carries::Vxlan(0x12_3456), eth, &ETHERNET, Ok((0, &vxlan)));
        check(Carries::Vxlan(7), raw, ip, Err(Refusal::LinkType));
        check(Carries::Gre(None), eth, &ETHERNET, Ok((0, &[0, 0, 0x65, 0x58])));
        check(Carries::Gre(Some(7)), raw, ip, Ok((0, &[0x20, 0, 0x08, 0, 0, 0, 0, 7])));
        check(Carries::Gre(None), raw, &[0x60; 40], Ok((0, &[0, 0, 0x86, 0xdd])));
        check(Carries::Gre(None), LinkType::NULL, &[0x60; 40], Ok((4, &[0, 0, 0x86, 0xdd])));
        check(Carries::Gre(None), LinkType::RADIOTAP, ip, Err(Refusal::LinkType));
        // The answer for a link type, before any frame, agrees.
        let every = [
            (Carries::Ethernet, [true, false, false]),
            (Carries::Ip, [true, true, false]),
            (Carries::Any, [true; 3]),
            (Carries::Vxlan(7), [true, false, false]),
            (Carries::Gre(None), [true, true, false]),
            (Carries::Erspan(1, 0), [true, false, false]),
        ];
        for (mut carries, takes) in every {
            let links = [(eth, &ETHERNET[..]), (raw, ip), (LinkType::RADIOTAP, ip)];
            for ((link, frame), takes) in links.into_iter().zip(takes) {
                assert_eq!(carries.takes(link), takes, "{carries:?}");
                assert_eq!(carries.fit(link, frame).is_ok(), takes, "{carries:?}");
            }
        }
    }

    #[test]
    fn mirrored_frames_are_numbered() {
        let mut carries = Carries::Erspan(5, u32::MAX);
        let mut next = || carries.fit(LinkType::ETHERNET, &ETHERNET).expect("fits").1;
        let header = |number: u32| {
            let number = number.to_be_bytes();
            [&[0x10, 0, 0x88, 0xbe], &number[..], &[0x10, 0, 0x18, 5, 0, 0, 0, 0]].concat()
        };
        assert_eq!(next().bytes(), header(u32::MAX));
        assert_eq!(next().bytes(), header(0));
        assert_eq!(carries.fit(LinkType::RAW, &ETHERNET), Err(Refusal::LinkType));
    }
}
