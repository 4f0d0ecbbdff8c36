//! The total walk: one frame, any bytes, layer by layer. It defines what [`super::fast`] must
//! find for the frames that it takes.
//!
//! Two limits are kept apart. Where the *captured bytes* end, a header is cut, which is normal.
//! Where the *packet* ends on the wire (the IP length says so, or the frame's), a header that
//! goes on is malformed. Padding after the packet belongs to neither.

use super::link::Next;
use super::sites::{Site, Sites};
use super::{Below, Headers, Layer, Reason};
use crate::arp::{self, Arp};
use crate::icmp;
use crate::ipv4::Ipv4;
use crate::ipv6::{self, Extension, Ipv6};
use crate::limits::EXTENSION_HEADERS_MAX;
use crate::source::LinkType;
use crate::tcp::{self, Tcp};
use crate::udp::{self, Udp};

/// What the walk established about one frame. Positions are 0 where they mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    pub(super) l3: u16,
    pub(super) l4: u16,
    pub(super) proto: u8,
    pub(super) proto_known: bool,
    pub(super) vlan_depth: u8,
    pub(super) below: Below,
    /// One bit per [`Layer`].
    pub(super) layers: u32,
    /// The first fault.
    pub(super) reason: Option<Reason>,
}

/// Walks one frame: its captured bytes, and its length on the wire; to the outermost or the
/// innermost packet.
pub(super) fn walk(link: LinkType, headers: Headers, frame: &[u8], len: u32) -> Found {
    // A capture that claims fewer bytes on the wire than it holds is wrong about the wire.
    let end = frame.len().max(len as usize);
    let mut nobody = ();
    let mut walk = Walk::new(frame, end, &mut nobody);
    // Running out of bytes ends the walk; `take` has noted why.
    let _ = walk.follow(Next::Link(link), 0);
    if headers == Headers::Inner {
        walk.descend();
    }
    walk.found
}

pub(super) struct Walk<'a, S = ()> {
    pub(super) frame: &'a [u8],
    /// Where the packet ends on the wire, counted from the start of the frame.
    pub(super) end: usize,
    /// Whether the IP header left the packet's length open.
    pub(super) open: bool,
    /// Whether the frame's own link headers are behind us: what comes is not recorded as theirs.
    pub(super) inside: bool,
    /// Whether the IP packet's payload starts with a header: not in a later fragment.
    pub(super) whole: bool,
    /// Whether the packet is in the first fragment of a tunnel's packet: it may end before its
    /// time.
    pub(super) partial: bool,
    pub(super) found: Found,
    /// Who is told where headers start.
    pub(super) sites: &'a mut S,
}

/// Where a header can start: a position is stored in 16 bits.
const POSITION_MAX: usize = u16::MAX as usize;

/// `None` where the walk could not go on.
pub(super) type Walked = Option<()>;

impl<'a, S: Sites> Walk<'a, S> {
    /// A walk that has not begun, over a packet that ends there on the wire.
    pub(super) fn new(frame: &'a [u8], end: usize, sites: &'a mut S) -> Walk<'a, S> {
        let (open, inside, whole, partial) = (false, false, true, false);
        Walk { frame, end, open, inside, whole, partial, found: Found::default(), sites }
    }

    pub(super) fn add(&mut self, layer: Layer) {
        self.found.layers |= 1 << layer as usize;
    }

    /// Notes a fault. Of a packet of which only the beginning is here, one can't tell.
    pub(super) fn fault(&mut self, reason: Reason) {
        if self.partial {
            return self.add(Layer::Cut);
        }
        self.add(Layer::Malformed);
        self.found.reason.get_or_insert(reason);
    }

    /// What was captured of the packet from `at` on.
    pub(super) fn rest(&self, at: usize) -> &'a [u8] {
        self.frame.get(at..self.end.min(self.frame.len())).unwrap_or(&[])
    }

    /// The rest from `at` on if it holds `n` bytes. If not, notes whose fault it is: the snap
    /// length's, or the packet's, under the name `short`.
    pub(super) fn take(&mut self, at: usize, n: usize, short: Reason) -> Option<&'a [u8]> {
        if at + n > self.end {
            self.fault(short);
            None
        } else if at + n > POSITION_MAX {
            self.fault(Reason::LinkDepth);
            None
        } else if at + n > self.frame.len() {
            self.add(Layer::Cut);
            None
        } else {
            Some(self.rest(at))
        }
    }

    /// What a view of the rest from `at` on says. If it lacks bytes, notes whose fault that is.
    pub(super) fn view<T>(&mut self, at: usize, view: Result<T, Reason>) -> Option<T> {
        if let Err(Reason::ShortHeader) = view {
            self.take(at, self.rest(at).len() + 1, Reason::ShortHeader)?;
        }
        self.check(view)
    }

    /// Ends the packet `n` bytes behind `at`, as a header around it says; not later than it ends
    /// by all that is known. Of a header that says 0 nothing is believed.
    pub(super) fn bound(&mut self, at: usize, n: u16) {
        if n > 0 {
            self.end = self.end.min(at + usize::from(n));
        }
    }

    /// Notes a fault that a view found in a header that is all there.
    pub(super) fn check<T>(&mut self, view: Result<T, Reason>) -> Option<T> {
        view.map_err(|reason| self.fault(reason)).ok()
    }

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
            _ if super::PORTS_ONLY.contains(&proto) => self.ports(at),
            _ => None,
        }
    }

    fn ports(&mut self, at: usize) -> Walked {
        self.take(at, super::PORTS_LEN, Reason::ShortHeader)?;
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
