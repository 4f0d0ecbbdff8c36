//! The part of the walk from the network header on: ARP, IP, and the start of the transport.

use super::layers::Layer;
use super::reason::Reason;
use super::site::{Site, Sites};
use super::walker::{POSITION_MAX, Walk, Walked};
use crate::arp::{self, Arp};
use crate::icmp;
use crate::ipv4::Ipv4;
use crate::ipv6::{self, Extension, Ipv6};
use crate::limits::EXTENSION_HEADERS_MAX;
use crate::tcp::{self, Tcp};
use crate::udp::{self, Udp};

/// Protocols of which the walk reads the ports and no more: DCCP, SCTP, UDP-Lite.
const PORTS_ONLY: [u8; 3] = [33, 132, 136];

/// Bytes of the ports at the start of a transport header.
pub(crate) const PORTS_LEN: usize = 4;

impl<S: Sites> Walk<'_, S> {
    pub(super) fn arp(&mut self, at: usize) -> Walked {
        self.sites.note(Site::Arp { at });
        // For which protocols comes first: others may be shorter.
        let start = self.take(at, arp::FIXED_LEN, Reason::Arp)?;
        if start.starts_with(&arp::IPV4_OVER_ETHERNET) {
            self.take(at, arp::PACKET_LEN, Reason::Arp)?;
        }
        self.check(Arp::new(self.rest(at)))?;
        self.add(Layer::Arp);
        self.found.l3 = at as u16;
        Some(())
    }

    pub(super) fn ipv4(&mut self, at: usize) -> Walked {
        self.sites.note(Site::Ipv4 { at });
        let bytes = self.take(at, crate::ipv4::HEADER_LEN, Reason::ShortHeader)?;
        let ip = self.check(Ipv4::new(bytes))?;
        self.add(Layer::Ipv4);
        self.found.l3 = at as u16;
        self.open = ip.total_length() == 0;
        match ip.total_length() as usize {
            0 => {}
            total if at + total > self.end => self.fault(Reason::Ipv4TotalLength),
            total => self.end = at + total,
        }
        self.found.below.end = self.end as u32;
        let later = ip.fragment_offset() > 0;
        self.whole = !later;
        if later || ip.more_fragments() {
            self.add(Layer::Fragment);
        }
        let (at, proto) = (at + ip.header_len(), ip.protocol());
        if proto != ipv6::AUTHENTICATION || later {
            self.payload(at, proto);
        }
        self.take(at - ip.header_len(), ip.header_len(), Reason::ShortHeader)?;
        if later {
            return Some(());
        }
        let (at, proto) = self.extensions(at, proto, |kind| kind == ipv6::AUTHENTICATION)?;
        self.transport(at, proto)
    }

    pub(super) fn ipv6(&mut self, at: usize) -> Walked {
        self.sites.note(Site::Ipv6 { at });
        let bytes = self.take(at, ipv6::HEADER_LEN, Reason::ShortHeader)?;
        let ip = self.check(Ipv6::new(bytes))?;
        self.add(Layer::Ipv6);
        self.found.l3 = at as u16;
        self.whole = true;
        let start = at + ipv6::HEADER_LEN;
        // A datagram in a jumbogram may leave its length open, though the packet's is known.
        self.open = ip.payload_length() == 0;
        match ip.length().map(|length| start.saturating_add(length as usize)) {
            None => {}
            Some(end) if end > self.end => self.fault(Reason::Ipv6PayloadLength),
            Some(end) => self.end = end,
        }
        self.found.below.end = self.end as u32;
        let (at, proto) = self.extensions(start, ip.next_header(), ipv6::is_extension)?;
        self.transport(at, proto)
    }

    /// Steps over the extension headers for which `skip` holds: the position and protocol number
    /// of what follows. `None` after a later fragment's header: what follows is no header.
    fn extensions(
        &mut self,
        mut at: usize,
        mut proto: u8,
        skip: impl Fn(u8) -> bool,
    ) -> Option<(usize, u8)> {
        let mut later = false;
        for _ in 0..EXTENSION_HEADERS_MAX {
            if later || !skip(proto) {
                break;
            }
            let Some(bytes) = self.take(at, ipv6::EXTENSION_LEN_MIN, Reason::ExtensionHeader)
            else {
                let len = ipv6::EXTENSION_LEN_MIN;
                self.sites.note(Site::Extension { kind: proto, at, len });
                return None;
            };
            let header = self.check(Extension::new(proto, bytes))?;
            let end = at + header.header_len();
            self.sites.note(Site::Extension { kind: proto, at, len: header.header_len() });
            if end > self.end {
                // Malformed: what would follow is named, though there is no room for it.
                self.payload(end, header.next_header());
            }
            self.take(at, header.header_len(), Reason::ExtensionHeader)?;
            if let Some(fragment) = header.fragment() {
                self.add(Layer::Fragment);
                later = fragment.offset > 0;
                self.whole = !later;
            }
            (at, proto) = (end, header.next_header());
        }
        if !later && skip(proto) {
            return self.check(Err(Reason::ExtensionHeader));
        }
        self.payload(at, proto);
        (!later).then_some((at, proto))
    }

    /// Notes where the payload of the IP packet starts and what it is.
    fn payload(&mut self, at: usize, proto: u8) {
        let at = at.min(POSITION_MAX) as u16;
        (self.found.l4, self.found.proto, self.found.proto_known) = (at, proto, true);
    }

    fn transport(&mut self, at: usize, proto: u8) -> Walked {
        self.sites.note(Site::Transport { proto, at, end: self.end });
        match proto {
            tcp::PROTOCOL => self.tcp(at),
            udp::PROTOCOL => self.udp(at),
            icmp::PROTOCOL => self.icmp(at, Layer::Icmp),
            icmp::PROTOCOL_V6 => self.icmp(at, Layer::Icmp6),
            _ if PORTS_ONLY.contains(&proto) => self.ports(at),
            _ => None,
        }
    }

    fn ports(&mut self, at: usize) -> Walked {
        self.take(at, PORTS_LEN, Reason::ShortHeader)?;
        self.add(Layer::Ports);
        Some(())
    }

    fn tcp(&mut self, at: usize) -> Walked {
        self.ports(at)?;
        self.add(Layer::Tcp);
        if self.take(at, tcp::HEADER_LEN, Reason::ShortHeader).is_none() {
            // A bad data offset shows even where what follows it is cut.
            let offset = self.rest(at).get(tcp::DATA_OFFSET)? >> 4;
            if usize::from(offset) * 4 < tcp::HEADER_LEN {
                self.fault(Reason::TcpDataOffset);
            }
            return None;
        }
        let tcp = self.check(Tcp::new(self.rest(at)))?;
        if at + tcp.header_len() > self.end {
            return self.check(Err(Reason::TcpDataOffset));
        }
        self.add(Layer::TcpWhole);
        Some(())
    }

    fn udp(&mut self, at: usize) -> Walked {
        self.ports(at)?;
        self.add(Layer::Udp);
        let bytes = self.take(at, udp::HEADER_LEN, Reason::ShortHeader)?;
        let udp = self.check(Udp::new(bytes))?;
        // The first fragment of a datagram carries the length of all of it.
        let first = self.found.layers & 1 << Layer::Fragment as usize != 0;
        let sound = match udp.length() as usize {
            0 => self.open,
            length => first || at + length <= self.end,
        };
        if !sound {
            self.fault(Reason::UdpLength);
        }
        Some(())
    }

    fn icmp(&mut self, at: usize, layer: Layer) -> Walked {
        self.take(at, 2, Reason::ShortHeader)?;
        self.add(layer);
        self.take(at, icmp::HEADER_LEN, Reason::ShortHeader)?;
        Some(())
    }
}
