//! The part of the walk below IP: link headers, tags, labels and what else stands before a network
//! header, one after the other.
//!
//! Each step reads one header and says what comes [`Next`]. Nothing recurses, and the number of
//! steps is bounded.

use super::announced;
use super::layers::Layer;
use super::opaque;
use super::reason::Reason;
use super::site::{Site, Sites};
use super::walker::{Walk, Walked};
use crate::ethernet::{self, Ethernet};
use crate::frame_relay::{self, Follows, FrameRelay};
use crate::hdlc;
use crate::ipv4::Ipv4;
use crate::limits::{LINK_HEADERS_MAX, MPLS_LABELS_MAX, VLAN_TAGS_MAX};
use crate::llc;
use crate::mpls::{self, Label};
use crate::nflog::{self, Packet};
use crate::nsh::{self, Nsh};
use crate::port_tag;
use crate::ppi::{self, Ppi};
use crate::ppp::{self, Ppp};
use crate::pppoe::{self, Pppoe};
use crate::radiotap::{self, Radiotap};
use crate::source::LinkType;
use crate::vlan::{self, Vlan};
use crate::wlan::{self, Wlan};

/// EtherType of an Ethernet frame (transparent bridging).
const BRIDGED: u16 = 0x6558;

/// EtherType of reverse ARP (RFC 903), whose addresses stand where those of ARP do; Cisco HDLC
/// gives the number to a protocol of its own.
const RARP: u16 = 0x8035;

/// The next header, and where it starts; `None` where the walk could not go on, or has no need.
type Then = Option<(Next, usize)>;

/// A header that the walk is about to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The header of a link.
    Link(LinkType),
    /// The protocol of an EtherType; under [`ethernet::TYPE_MIN`] the number is the length of LLC.
    Type(u16),
    Llc,
    Ppp,
    Hdlc,
    Wlan,
    Mpls,
    Nsh,
    Arp,
    Ipv4,
    Ipv6,
    /// IP of either version.
    Ip,
}

/// Whether the walk reads what this EtherType announces.
pub(super) fn reads(ethertype: u16) -> bool {
    let shim = matches!(ethertype, mpls::UNICAST | mpls::MULTICAST | nsh::ETHERTYPE | BRIDGED);
    let packet = matches!(ethertype, ethernet::IPV4 | ethernet::IPV6 | ethernet::ARP | RARP);
    let session = matches!(ethertype, pppoe::SESSION | pppoe::DISCOVERY);
    let tag = vlan::is_tag(ethertype) || port_tag::tag_len(ethertype).is_some();
    packet || shim || session || tag
}

impl<S: Sites> Walk<'_, S> {
    /// Walks from a header on to the end of what there is to know.
    pub(super) fn follow(&mut self, mut next: Next, mut at: usize) -> Walked {
        for _ in 0..LINK_HEADERS_MAX {
            (next, at) = match next {
                Next::Link(link) => self.link(link, at)?,
                Next::Type(ethertype) => self.typed(ethertype, at)?,
                Next::Llc => self.llc(at)?,
                Next::Ppp => self.ppp(at)?,
                Next::Hdlc => self.hdlc(at)?,
                Next::Wlan => self.wlan(at, false)?,
                Next::Mpls => self.mpls(at)?,
                Next::Nsh => self.nsh(at)?,
                Next::Arp => return self.arp(at),
                Next::Ipv4 => return self.ipv4(at),
                Next::Ipv6 => return self.ipv6(at),
                Next::Ip => match self.take(at, 1, Reason::ShortHeader)?[0] >> 4 {
                    4 => (Next::Ipv4, at),
                    6 => (Next::Ipv6, at),
                    _ => return self.check(Err(Reason::IpVersion)),
                },
            };
        }
        self.check(Err(Reason::LinkDepth))
    }

    fn link(&mut self, link: LinkType, at: usize) -> Then {
        match link {
            LinkType::ETHERNET => self.ethernet(at),
            LinkType::LINUX_SLL => self.cooked(at, 16, 2, 14),
            LinkType::LINUX_SLL2 => self.cooked(at, 20, 8, 0),
            LinkType::NULL | LinkType::LOOP => self.loopback(at),
            LinkType::IPV4 => Some((Next::Ipv4, at)),
            LinkType::IPV6 => Some((Next::Ipv6, at)),
            LinkType::SLIP => {
                self.take(at, SLIP_LEN, Reason::ShortHeader)?;
                Some((Next::Ip, at + SLIP_LEN))
            }
            LinkType::PPP | LinkType::PPP_SERIAL => {
                let first = self.take(at, 1, Reason::ShortHeader)?[0];
                Some((if hdlc::is_address(first) { Next::Hdlc } else { Next::Ppp }, at))
            }
            LinkType::C_HDLC => Some((Next::Hdlc, at)),
            LinkType::FRELAY => self.frame_relay(at),
            LinkType::IEEE802_11 => Some((Next::Wlan, at)),
            LinkType::RADIOTAP => self.radiotap(at),
            LinkType::PPI => self.ppi(at),
            LinkType::NFLOG if at == 0 => self.nflog(),
            _ if announced::is_raw(link) => Some((Next::Ip, at)),
            _ => self.stop(at, true),
        }
    }

    /// Ends the walk before what Weir does not read, in which addresses may stand or not.
    fn stop(&mut self, at: usize, may_hide: bool) -> Then {
        if may_hide {
            self.note_unread(at);
        }
        None
    }

    fn ethernet(&mut self, at: usize) -> Then {
        self.sites.note(Site::Ethernet { at });
        let bytes = self.take(at, ethernet::HEADER_LEN, Reason::ShortHeader)?;
        let eth = self.check(Ethernet::new(bytes))?;
        if at == 0 {
            self.add(Layer::Eth);
            self.found.below.link_end = ethernet::HEADER_LEN as u16;
        }
        Some((Next::Type(eth.ethertype()), at + ethernet::HEADER_LEN))
    }

    /// A Linux cooked header of `len` bytes: where its hardware type and its protocol are.
    fn cooked(&mut self, at: usize, len: usize, hardware: usize, protocol: usize) -> Then {
        self.sites.note(Site::Cooked { at, len });
        let h = self.take(at, len, Reason::ShortHeader)?;
        let word = |at: usize| u16::from_be_bytes([h[at], h[at + 1]]);
        if !announced::has_ethertypes(word(hardware)) {
            return self.stop(at + len, true);
        }
        let next = match word(protocol) {
            // Linux's numbers for frames without an EtherType are no lengths.
            CAN..=CAN_MAX => return None,
            number @ 0..ethernet::TYPE_MIN => {
                if !matches!(number, RAW_802_3 | LLC) {
                    self.note_unread(at + len);
                }
                Next::Llc
            }
            ethertype => Next::Type(ethertype),
        };
        if at == 0 {
            self.found.below.link_end = len as u16;
        }
        Some((next, at + len))
    }

    fn loopback(&mut self, at: usize) -> Then {
        let h = self.take(at, 4, Reason::ShortHeader)?;
        match announced::family([h[0], h[1], h[2], h[3]]) {
            (true, _) => Some((Next::Ipv4, at + 4)),
            (_, true) => Some((Next::Ipv6, at + 4)),
            _ => self.stop(at + 4, true),
        }
    }

    fn typed(&mut self, ethertype: u16, at: usize) -> Then {
        match ethertype {
            ethernet::IPV4 => Some((Next::Ipv4, at)),
            ethernet::IPV6 => Some((Next::Ipv6, at)),
            ethernet::ARP => Some((Next::Arp, at)),
            mpls::UNICAST | mpls::MULTICAST => Some((Next::Mpls, at)),
            pppoe::SESSION | pppoe::DISCOVERY => self.pppoe(at),
            nsh::ETHERTYPE => Some((Next::Nsh, at)),
            BRIDGED => Some((Next::Link(LinkType::ETHERNET), at)),
            // In place of a type stands how many bytes follow, without padding.
            length @ 0..ethernet::TYPE_MIN => {
                self.bound(at, length);
                Some((Next::Llc, at))
            }
            _ if vlan::is_tag(ethertype) => self.vlan(at),
            RARP => {
                self.sites.note(Site::Arp { at });
                None
            }
            _ => match port_tag::tag_len(ethertype) {
                Some(len) => self.port_tag(at, len),
                None => self.stop(at, opaque::in_type(ethertype, self.rest(at))),
            },
        }
    }

    fn port_tag(&mut self, at: usize, len: usize) -> Then {
        let tag = self.take(at, len, Reason::ShortHeader)?;
        self.tagged(at + len);
        Some((Next::Type(u16::from_be_bytes([tag[len - 2], tag[len - 1]])), at + len))
    }

    fn vlan(&mut self, at: usize) -> Then {
        if self.inside {
            let bytes = self.take(at, vlan::TAG_LEN, Reason::ShortHeader)?;
            let tag = self.check(Vlan::new(bytes))?;
            return Some((Next::Type(tag.ethertype()), at + vlan::TAG_LEN));
        }
        let depth = usize::from(self.found.vlan_depth);
        if depth == VLAN_TAGS_MAX {
            return self.check(Err(Reason::VlanDepth));
        }
        let bytes = self.take(at, vlan::TAG_LEN, Reason::ShortHeader)?;
        let tag = self.check(Vlan::new(bytes))?;
        self.add(Layer::Vlan);
        self.found.vlan_depth += 1;
        if let Some(start) = self.found.below.tags.get_mut(depth) {
            *start = at as u16;
        }
        self.tagged(at + vlan::TAG_LEN);
        Some((Next::Type(tag.ethertype()), at + vlan::TAG_LEN))
    }

    /// Notes that a tag of the frame's own ends here.
    fn tagged(&mut self, end: usize) {
        if !self.inside {
            self.found.below.link_end = end as u16;
        }
    }

    /// LLC leads to IP by SNAP only. Whether SNAP follows is a guess until its start is seen, so
    /// that a frame that ends before it lacks nothing.
    fn llc(&mut self, at: usize) -> Then {
        let start: [u8; llc::LLC_LEN] = *self.rest(at).first_chunk()?;
        match start {
            llc::IP => Some((Next::Ipv4, at + llc::LLC_LEN)),
            llc::SNAP => {
                let bytes = self.take(at, llc::SNAP_LEN, Reason::ShortHeader)?;
                let Some(ethertype) = llc::snap_ethertype(bytes.first_chunk()?) else {
                    let organization = [bytes[3], bytes[4], bytes[5]];
                    let number = u16::from_be_bytes([bytes[6], bytes[7]]);
                    return self.stop(at + llc::SNAP_LEN, opaque::in_snap(organization, number));
                };
                self.typed_or_unread(ethertype, at + llc::SNAP_LEN)
            }
            _ => self.stop(at, opaque::in_llc(start)),
        }
    }

    /// The header that an EtherType announces, where the number can't be a length.
    fn typed_or_unread(&mut self, ethertype: u16, at: usize) -> Then {
        match ethertype {
            ethernet::TYPE_MIN.. => Some((Next::Type(ethertype), at)),
            _ => self.stop(at, true),
        }
    }

    fn ppp(&mut self, at: usize) -> Then {
        let ppp = self.view(at, Ppp::new(self.rest(at)))?;
        let next = match ppp.protocol() {
            ppp::IPV4 => Next::Ipv4,
            ppp::IPV6 => Next::Ipv6,
            ppp::MPLS | ppp::MPLS_MULTICAST => Next::Mpls,
            other => {
                let may_hide = opaque::in_ppp(other, ppp.payload());
                return self.stop(at + ppp.header_len(), may_hide);
            }
        };
        Some((next, at + ppp.header_len()))
    }

    fn hdlc(&mut self, at: usize) -> Then {
        let header = self.take(at, hdlc::HEADER_LEN, Reason::ShortHeader)?;
        let ethertype = u16::from_be_bytes([header[hdlc::TYPE], header[hdlc::TYPE + 1]]);
        let at = at + hdlc::HEADER_LEN;
        match ethertype {
            RARP => self.stop(at, opaque::in_slarp(self.rest(at))),
            _ => self.typed_or_unread(ethertype, at),
        }
    }

    fn frame_relay(&mut self, at: usize) -> Then {
        let header = self.view(at, FrameRelay::new(self.rest(at)))?;
        let at = at + header.header_len;
        match header.follows {
            Follows::Nlpid(frame_relay::NLPID_IPV4) => Some((Next::Ipv4, at)),
            Follows::Nlpid(frame_relay::NLPID_IPV6) => Some((Next::Ipv6, at)),
            Follows::Nlpid(frame_relay::NLPID_SNAP) => {
                let snap = self.take(at, 5, Reason::ShortHeader)?;
                match [snap[0], snap[1], snap[2], snap[3], snap[4]] {
                    [0, 0, 0, high, low] if high >= 6 => {
                        Some((Next::Type(u16::from_be_bytes([high, low])), at + 5))
                    }
                    // Bridged Ethernet, with and without its checksum.
                    [0, 0x80, 0xc2, 0, 1 | 7] => Some((Next::Link(LinkType::ETHERNET), at + 5)),
                    _ => self.stop(at + 5, true),
                }
            }
            Follows::Nlpid(nlpid) => self.stop(at, opaque::in_frame_relay(nlpid)),
            Follows::Ethertype(ethertype) => self.typed_or_unread(ethertype, at),
        }
    }

    fn ppi(&mut self, at: usize) -> Then {
        let bytes = self.take(at, ppi::HEADER_LEN, Reason::ShortHeader)?;
        let ppi = self.check(Ppi::new(bytes))?;
        self.take(at, ppi.header_len(), Reason::Ppi)?;
        match ppi.link() {
            Some(link) => Some((Next::Link(link), at + ppi.header_len())),
            None => self.stop(at + ppi.header_len(), true),
        }
    }

    fn radiotap(&mut self, at: usize) -> Then {
        let bytes = self.take(at, radiotap::HEADER_LEN, Reason::ShortHeader)?;
        let len = self.check(Radiotap::new(bytes))?.header_len();
        let bytes = self.take(at, len, Reason::Radiotap)?;
        let radio = self.check(Radiotap::new(bytes))?;
        if at == 0 {
            self.add(Layer::Radiotap);
        }
        if radio.flags() & radiotap::FLAG_FCS != 0 {
            self.end = self.end.saturating_sub(4).max(at + len);
        }
        self.wlan(at + len, radio.flags() & radiotap::FLAG_PADDED != 0)
    }

    fn wlan(&mut self, at: usize, padded: bool) -> Then {
        self.sites.note(Site::Wlan { at, padded });
        self.take(at, wlan::CONTROL_LEN, Reason::ShortHeader)?;
        let header = self.view(at, Wlan::new(self.rest(at)))?;
        self.take(at, header.header_len(), Reason::ShortHeader)?;
        if !self.inside {
            self.add(Layer::Wlan);
            self.found.below.wlan = at as u16;
        }
        let len = header.header_len();
        let body = at + if padded { len.next_multiple_of(4) } else { len };
        match header.llc() {
            Some(llc) => {
                // The bit means something else in other networks, where LLC follows.
                if header.may_be_mesh() && !self.rest(body + llc).starts_with(&llc::SNAP) {
                    self.note_unread(body + llc);
                }
                Some((Next::Llc, body + llc))
            }
            // It may begin with any header that the first fragment had no room for.
            None => self.stop(body, header.is_later_fragment()),
        }
    }

    fn nflog(&mut self) -> Then {
        self.sites.note(Site::Nflog);
        let family = self.take(0, nflog::HEADER_LEN, Reason::ShortHeader)?[0];
        match self.check(nflog::packet(self.rest(0)))? {
            Packet::At(at, len) => {
                if at + len <= self.end {
                    self.end = at + len;
                } else {
                    self.fault(Reason::Nflog);
                }
                match family {
                    LINUX_INET => Some((Next::Ipv4, at)),
                    LINUX_INET6 => Some((Next::Ipv6, at)),
                    _ => self.stop(at, true),
                }
            }
            Packet::Beyond(end) => {
                self.take(0, end, Reason::Nflog)?;
                None
            }
            Packet::None => None,
        }
    }

    fn pppoe(&mut self, at: usize) -> Then {
        let bytes = self.take(at, pppoe::HEADER_LEN, Reason::ShortHeader)?;
        let pppoe = self.check(Pppoe::new(bytes))?;
        if !self.inside {
            self.add(Layer::Pppoe);
            self.found.below.pppoe = at as u16;
            self.inside = true;
        }
        let start = at + pppoe::HEADER_LEN;
        match start + usize::from(pppoe.length()) {
            end if end > self.end => self.fault(Reason::Pppoe),
            end => self.end = end,
        }
        // Any other code belongs to discovery, and is followed by its tags.
        (pppoe.code() == 0).then_some((Next::Ppp, start))
    }

    fn mpls(&mut self, mut at: usize) -> Then {
        let outermost = !self.inside;
        if outermost {
            self.found.below.mpls = at as u16;
            self.inside = true;
        }
        for _ in 0..MPLS_LABELS_MAX {
            let bytes = self.take(at, mpls::ENTRY_LEN, Reason::ShortHeader)?;
            let label = self.check(Label::new(bytes))?;
            if outermost {
                self.add(Layer::Mpls);
                self.found.below.mpls_depth += 1;
            }
            at += mpls::ENTRY_LEN;
            if label.is_bottom() {
                return self.below_the_stack(at);
            }
        }
        self.check(Err(Reason::MplsDepth))
    }

    /// The header after the last label: IP, unless its first bytes rather are a frame's.
    fn below_the_stack(&mut self, at: usize) -> Then {
        let rest = self.take(at, 1, Reason::ShortHeader)?;
        let frame = || Some((Next::Link(LinkType::ETHERNET), at + mpls::pseudowire(rest)?));
        let fits = |ip: Ipv4<'_>| at + usize::from(ip.total_length()) <= self.end;
        match rest[0] >> 4 {
            4 if Ipv4::new(rest).is_ok_and(fits) => Some((Next::Ipv4, at)),
            4 => frame().or(Some((Next::Ipv4, at))),
            6 => frame().or(Some((Next::Ipv6, at))),
            // Any other pseudowire may carry packets or frames, and so may a channel beside it.
            _ => frame().or_else(|| self.stop(at, true)),
        }
    }

    fn nsh(&mut self, at: usize) -> Then {
        let bytes = self.take(at, nsh::HEADER_LEN, Reason::ShortHeader)?;
        let header = self.check(Nsh::new(bytes))?;
        let context = &self.take(at, header.header_len(), Reason::Nsh)?[nsh::HEADER_LEN..];
        if context[..header.header_len() - nsh::HEADER_LEN].iter().any(|&byte| byte != 0) {
            // Its context about a packet has no form of its own.
            self.note_unread(at);
        }
        self.inside = true;
        let next = match header.next_protocol() {
            nsh::IPV4 => Next::Ipv4,
            nsh::IPV6 => Next::Ipv6,
            nsh::ETHERNET => Next::Link(LinkType::ETHERNET),
            nsh::NSH => Next::Nsh,
            nsh::MPLS => Next::Mpls,
            _ => return self.stop(at + header.header_len(), true),
        };
        Some((next, at + header.header_len()))
    }
}

/// Bytes before the packet in a SLIP capture: its direction, and how its header was compressed.
const SLIP_LEN: usize = 16;

/// Frames without an EtherType as Linux numbers them: with LLC or without, and those of CAN, which
/// have no addresses.
const RAW_802_3: u16 = 1;
const LLC: u16 = 4;
const CAN: u16 = 0x0c;
const CAN_MAX: u16 = 0x0e;

/// Address families as Linux numbers them.
const LINUX_INET: u8 = 2;
const LINUX_INET6: u8 = 10;
