//! The part of the walk that goes into tunnels: from the packet that the frame carries to the one
//! that this carries, and on, to the innermost.
//!
//! UDP ports and protocol numbers only hint at a tunnel. The bytes that follow are taken for a
//! packet if they lead to a sound IP header; else the headers stay those found before, and nothing
//! is held against the frame. From that header on, faults count as anywhere.

use super::layers::{Layer, Layers};
use super::link::{self, Next};
use super::site::{Site, Sites};
use super::walker::{Found, Walk, Walked};
use crate::bits::Bits;
use crate::gre::{self, Gre};
use crate::limits::TUNNELS_MAX;
use crate::source::{FrameBatch, LinkType};
use crate::{ethernet, geneve, gtp, ipv6, teredo, udp, vxlan};

/// Protocol numbers whose payload is a packet: IPv4, IPv6, an Ethernet frame (RFC 3378), MPLS (RFC
/// 4023).
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const ETHERIP: u8 = 97;
const MPLS: u8 = 137;

/// Bytes of an EtherIP header.
const ETHERIP_LEN: usize = 2;

/// The layers that belong to the frame and not to the packet in it.
const BELOW_IP: u32 = 1 << Layer::Eth as usize
    | 1 << Layer::Vlan as usize
    | 1 << Layer::Mpls as usize
    | 1 << Layer::Pppoe as usize
    | 1 << Layer::Wlan as usize
    | 1 << Layer::Radiotap as usize
    | 1 << Layer::Tunnel as usize;

const IP: u32 = 1 << Layer::Ipv4 as usize | 1 << Layer::Ipv6 as usize;
const FRAGMENT: u32 = 1 << Layer::Fragment as usize;
const CUT: u32 = 1 << Layer::Cut as usize;
const MALFORMED: u32 = 1 << Layer::Malformed as usize;
const FAULTS: u32 = CUT | MALFORMED;

/// Where in a tunnel the next header is.
type Carried = Option<(Next, usize)>;

/// The UDP packets among the plain ones of which a port may mean a tunnel.
pub(super) fn carriers(frames: &FrameBatch, layers: &Layers, plain: Bits) -> Bits {
    if !frames.headers.are_inner() {
        return Bits::NONE;
    }
    let named = frames.headers.ports();
    let is_port = |a, b| is_port(named.standard(u16::from_be_bytes([a, b])));
    let suspect = |&i: &usize| {
        let ports = frames.frame(i).get(usize::from(layers.l4[i])..).and_then(|b| b.first_chunk());
        ports.is_some_and(|&[a, b, c, d]| is_port(a, b) || is_port(c, d))
    };
    layers.has(Layer::Udp).and(plain).iter().filter(suspect).collect()
}

fn is_port(port: u16) -> bool {
    matches!(port, vxlan::PORT | vxlan::PORT_GPE | geneve::PORT | gtp::PORT | teredo::PORT)
}

impl<S: Sites> Walk<'_, S> {
    /// Goes into the tunnel that the packet is in, and into the one in it.
    pub(super) fn descend(&mut self) {
        for _ in 0..TUNNELS_MAX {
            if self.enter().is_none() {
                break;
            }
        }
    }

    /// Goes into one tunnel; `None` where there is none, and all is as before.
    pub(super) fn enter(&mut self) -> Walked {
        let outer = self.found;
        if outer.layers & IP == 0 || outer.layers & FAULTS != 0 || !self.whole {
            return None;
        }
        let packet = (self.end, self.open, self.partial);
        self.inside = true;
        self.partial |= outer.layers & FRAGMENT != 0;
        self.found = Found {
            vlan_depth: outer.vlan_depth,
            below: outer.below,
            layers: outer.layers & BELOW_IP | 1 << Layer::Tunnel as usize,
            ..Found::default()
        };
        let below = &mut self.found.below;
        if below.tunnels == 0 {
            below.outer = outer.l3;
        }
        below.tunnels += 1;
        if let Some((next, at)) = self.carried(outer.proto, outer.l4.into()) {
            let _ = self.follow(next, at);
        }
        if self.found.layers & IP == 0 {
            // It may be a packet all the same, of which the addresses stand elsewhere.
            let faults = if self.partial { FAULTS } else { MALFORMED };
            if self.found.layers & faults != 0 {
                self.sites.note(Site::Unread);
            }
            // Of a first fragment one can't tell what was missing.
            let cut = if self.partial { 0 } else { self.found.layers & CUT };
            (self.end, self.open, self.partial) = packet;
            self.found = Found { layers: outer.layers | cut, ..outer };
            return None;
        }
        Some(())
    }

    /// The next header in the packet's payload, which is of this protocol and starts at `at`.
    fn carried(&mut self, proto: u8, at: usize) -> Carried {
        match proto {
            IPV4 => Some((Next::Ipv4, at)),
            IPV6 => Some((Next::Ipv6, at)),
            MPLS => Some((Next::Mpls, at)),
            ETHERIP => {
                let version = self.peek::<ETHERIP_LEN>(at)?[0] >> 4;
                self.known((version == 3).then_some((ETHERNET, at + ETHERIP_LEN)))
            }
            gre::PROTOCOL => self.gre(at),
            udp::PROTOCOL => {
                let [a, b, c, d, e, f, ..] = self.peek::<{ udp::HEADER_LEN }>(at)?;
                self.bound(at, u16::from_be_bytes([e, f]));
                let ports = [[a, b], [c, d]].map(u16::from_be_bytes);
                self.datagram(ports.map(|port| self.ports.standard(port)), at + udp::HEADER_LEN)
            }
            _ => None,
        }
    }

    fn gre(&mut self, at: usize) -> Carried {
        let header = self.peek(at)?;
        let gre = self.known(Gre::new(header))?;
        self.sites.note(Site::Gre { at, end: self.end });
        let start = at + gre.header_len;
        self.identify(gre.key_at.and_then(|key| self.word_at(at + key)).map(|key| {
            match gre.ethertype {
                // Of the enhanced header the upper half is a length (RFC 2637).
                gre::PPP => key & 0xffff,
                _ => key,
            }
        }));
        match gre.ethertype {
            gre::PPP if gre.carries => Some((Next::Ppp, start)),
            gre::PPP => self.unread(start),
            gre::ERSPAN | gre::ERSPAN_III => {
                let len = gre::erspan_len(&gre, self.rest(start));
                let len = self.known(len)?;
                if len > 0 {
                    self.identify(self.word_at(start).map(|word| word & 0x3ff));
                }
                Some((ETHERNET, start + len))
            }
            gre::ARUBA => Some((Next::Wlan, start)),
            ethertype => self.typed_in_tunnel(ethertype, start),
        }
    }

    /// The header that an EtherType announces at the start of a tunnel, where every payload is a
    /// packet.
    fn typed_in_tunnel(&mut self, ethertype: u16, at: usize) -> Carried {
        if !link::reads(ethertype) {
            self.note_unread(at);
        }
        (ethertype >= ethernet::TYPE_MIN).then_some((Next::Type(ethertype), at))
    }

    /// The next header in the datagram of these ports, `at` its payload; of each port, the one that
    /// it stands for.
    fn datagram(&mut self, ports: [u16; 2], at: usize) -> Carried {
        let carried = ports.into_iter().find_map(|port| self.behind(port, at));
        let [is_first, is_second] = ports.map(is_port);
        let is_either = is_first && is_second && ports[0] != ports[1];
        let is_signal = ports.contains(&gtp::PORT) && gtp::is_signal(self.rest(at));
        if is_either || (is_first || is_second) && carried.is_none() && !is_signal {
            self.note_unread(at);
        }
        carried
    }

    /// The next header in the datagram of which this is a port, `at` its payload.
    fn behind(&mut self, port: u16, at: usize) -> Carried {
        match port {
            vxlan::PORT | vxlan::PORT_GPE => {
                let header = self.peek(at)?;
                if !vxlan::is_plain(&header, port) {
                    self.note_unread(at);
                }
                let next = match vxlan::next_protocol(&header, port)? {
                    1 => Next::Ipv4,
                    2 => Next::Ipv6,
                    vxlan::ETHERNET => ETHERNET,
                    4 => Next::Nsh,
                    _ => return None,
                };
                self.identify(Some(network(header)));
                Some((next, at + vxlan::HEADER_LEN))
            }
            geneve::PORT => {
                let header = self.peek(at)?;
                let (len, ethertype) = geneve::follows(&header)?;
                self.sites.note(Site::Geneve { at, len });
                if geneve::is_control(&header) {
                    self.note_unread(at);
                }
                self.identify(Some(network(header)));
                self.typed_in_tunnel(ethertype, at + len)
            }
            gtp::PORT => {
                let [first, kind, a, b, id @ ..] = self.peek::<{ gtp::HEADER_LEN }>(at)?;
                let mut len = gtp::header_len(self.rest(at));
                if gtp::carries_packet(first, kind) {
                    len = self.known(len);
                }
                let len = len?;
                self.identify(Some(u32::from_be_bytes(id)));
                self.bound(at + gtp::HEADER_LEN, u16::from_be_bytes([a, b]));
                Some((Next::Ip, at + len))
            }
            teredo::PORT => self.teredo(at),
            _ => None,
        }
    }

    /// Version 6 alone says little: the datagram must be as long as the IPv6 header says.
    fn teredo(&mut self, at: usize) -> Carried {
        let indications = teredo::header_len(self.rest(at))?;
        if indications > 0 {
            // One of them holds an address, with its bits turned.
            self.sites.note(Site::Unread);
        }
        let at = at + indications;
        let header: [u8; ipv6::HEADER_LEN] = self.peek(at)?;
        let length =
            u16::from_be_bytes([header[ipv6::PAYLOAD_LENGTH], header[ipv6::PAYLOAD_LENGTH + 1]]);
        let end = at + ipv6::HEADER_LEN + usize::from(length);
        // Behind a bubble, which is an empty packet, there may be anything (RFC 4380, section
        // 2.8). Of a first fragment only the beginning is here.
        let bubble = header[ipv6::NEXT_HEADER] == ipv6::NO_NEXT_HEADER && length == 0;
        if bubble && end < self.end {
            // Such as another address of the sender.
            self.note_unread(end);
        }
        let fits = end == self.end || bubble || self.partial && end > self.end;
        fits.then_some((Next::Ipv6, at))
    }

    /// Notes the identifier of the tunnel, if it has one.
    fn identify(&mut self, id: Option<u32>) {
        let known = &mut self.found.below.tunnel_id;
        *known = id.or(*known);
    }

    fn word_at(&self, at: usize) -> Option<u32> {
        self.rest(at).first_chunk().copied().map(u32::from_be_bytes)
    }

    /// The bytes from `at` on; if they were cut, notes that.
    fn peek<const N: usize>(&mut self, at: usize) -> Option<[u8; N]> {
        if at + N <= self.end && at + N > self.frame.len() {
            self.add(Layer::Cut);
            if !self.rest(at).is_empty() {
                self.sites.note(Site::Unread);
            }
        }
        self.rest(at).first_chunk().copied()
    }

    /// Ends the walk before what is no packet that Weir reads, and may be another.
    fn unread(&mut self, at: usize) -> Carried {
        self.note_unread(at);
        None
    }

    /// The values in a header of a tunnel. If Weir can't read it, headers are after it all the
    /// same.
    fn known<T>(&mut self, says: Option<T>) -> Option<T> {
        if says.is_none() {
            self.sites.note(Site::Unread);
        }
        says
    }
}

/// The network of a header of VXLAN or GENEVE.
fn network([.., a, b, c, _]: [u8; 8]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

const ETHERNET: Next = Next::Link(LinkType::ETHERNET);
