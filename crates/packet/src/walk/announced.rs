//! The protocols that link types and link headers announce.

use crate::ethernet::Ethernet;
use crate::source::LinkType;
use crate::vlan;

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

/// Raw IP under any of its numbers; 12 and 14 are `DLT_RAW` of BSD systems.
pub(super) fn is_raw(link: LinkType) -> bool {
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
pub(super) fn family(bytes: [u8; 4]) -> (bool, bool) {
    let (little, big) = (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes));
    let family = if little < big { little } else { big };
    (family == 2, matches!(family, 10 | 24 | 28 | 30))
}
