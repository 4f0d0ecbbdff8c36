//! Messages and parts of messages that the readers of fields leave unread: a packet shows a reader
//! its first message, and of a message as much as the packet holds. Nothing is put together over
//! packets here, so the rest is counted, by protocol and [reason](UnreadReason), for the protocols
//! whose fields a program reads.
//!
//! Counts are of packets alone: neither the other stages of a program, nor batches or workers
//! change them.

use crate::bits::Bits;
use crate::fields::FieldId;
use crate::fields::rows::Rows;
use crate::repeated::{REPEATED, Repeated};
use crate::source::{FrameBatch, LinkType};
use crate::walk::{Layer, Layers, Reason};
use crate::{dhcp, dns, http, quic, sctp, tcp, tls, udp, wlan};

/// A protocol of which something may be left unread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum UnreadProtocol {
    /// DNS: messages over TCP, and questions.
    Dns,
    /// HTTP/1: requests and responses.
    Http,
    /// TLS: hellos.
    Tls,
    /// QUIC: hellos in Initial packets.
    Quic,
    /// DHCP: messages, and their options.
    Dhcp,
    /// SCTP: chunks.
    Sctp,
    /// TCP: options.
    Tcp,
    /// Ports of TCP, UDP, UDP-Lite, SCTP and DCCP.
    Ports,
    /// 802.11: packets of an aggregate.
    Wlan,
}

/// How many protocols there are.
pub const UNREAD_PROTOCOLS: usize = 9;

impl UnreadProtocol {
    /// All of them, in the order of their numbers.
    pub const ALL: [UnreadProtocol; UNREAD_PROTOCOLS] = [
        UnreadProtocol::Dns,
        UnreadProtocol::Http,
        UnreadProtocol::Tls,
        UnreadProtocol::Quic,
        UnreadProtocol::Dhcp,
        UnreadProtocol::Sctp,
        UnreadProtocol::Tcp,
        UnreadProtocol::Ports,
        UnreadProtocol::Wlan,
    ];

    /// Its name in the ledger, such as `dns`: that of its fields.
    pub fn name(self) -> &'static str {
        match self {
            UnreadProtocol::Dns => "dns",
            UnreadProtocol::Http => "http",
            UnreadProtocol::Tls => "tls",
            UnreadProtocol::Quic => "quic",
            UnreadProtocol::Dhcp => "dhcp",
            UnreadProtocol::Sctp => "sctp",
            UnreadProtocol::Tcp => "tcp",
            UnreadProtocol::Ports => "ports",
            UnreadProtocol::Wlan => "wlan",
        }
    }
}

/// Why something is left unread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum UnreadReason {
    /// A message that later packets go on with; or, of a stream, that earlier ones began.
    Continues,
    /// A message, question, chunk or frame after the first of its kind.
    Further,
    /// A message whose rest the snap length cut off.
    Cut,
    /// Options where other fields of the message usually are.
    Elsewhere,
    /// A later fragment that does not know its first.
    Fragment,
}

/// How many reasons there are.
pub const UNREAD_REASONS: usize = 5;

impl UnreadReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [UnreadReason; UNREAD_REASONS] = [
        UnreadReason::Continues,
        UnreadReason::Further,
        UnreadReason::Cut,
        UnreadReason::Elsewhere,
        UnreadReason::Fragment,
    ];

    /// Its name in the ledger, such as `further in the packet`.
    pub fn name(self) -> &'static str {
        match self {
            UnreadReason::Continues => "continues in another packet",
            UnreadReason::Further => "further in the packet",
            UnreadReason::Cut => "cut by the snap length",
            UnreadReason::Elsewhere => "options in other fields",
            UnreadReason::Fragment => "fragment without its first",
        }
    }
}

/// How much was left unread, by protocol and reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unread {
    counts: [[u64; UNREAD_REASONS]; UNREAD_PROTOCOLS],
}

impl Unread {
    /// The count of a protocol and a reason.
    pub fn of(&self, protocol: UnreadProtocol, reason: UnreadReason) -> u64 {
        self.counts[protocol as usize][reason as usize]
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, protocol: UnreadProtocol, reason: UnreadReason) -> &mut u64 {
        &mut self.counts[protocol as usize][reason as usize]
    }

    /// The counts that are not 0, in the order of protocols, then of reasons.
    pub fn each(self) -> impl Iterator<Item = (UnreadProtocol, UnreadReason, u64)> {
        let cells = UnreadProtocol::ALL
            .into_iter()
            .flat_map(|protocol| UnreadReason::ALL.map(|reason| (protocol, reason)));
        cells.filter_map(move |(protocol, reason)| {
            let n = self.of(protocol, reason);
            (n > 0).then_some((protocol, reason, n))
        })
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Adds those of another part of a run.
    pub fn merge(&mut self, other: Unread) {
        for (sum, n) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *sum = sum.saturating_add(*n);
        }
    }
}

/// The protocols whose readers are watched.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct WatchedProtocols(u16);

/// Fields of a frame, whatever packets it holds.
const OF_FRAMES: [&str; 13] = [
    "frame",
    "ts",
    "number",
    "len",
    "caplen",
    "linktype",
    "interface",
    "direction",
    "protocol",
    "malformed",
    "cut",
    "wlan",
    "radiotap",
];

impl WatchedProtocols {
    /// The one that a field, or a kind of repeated parts, of this name is of.
    fn watch(&mut self, name: &str) {
        let (header, part) = name.split_once('.').unwrap_or((name, ""));
        let protocol = match (header, part) {
            ("dns", _) => Some(UnreadProtocol::Dns),
            ("http", _) => Some(UnreadProtocol::Http),
            ("tls", "version" | "sni" | "alpn" | "ja4" | "ech") => Some(UnreadProtocol::Tls),
            ("quic", "sni" | "alpn" | "ja4" | "ech") => Some(UnreadProtocol::Quic),
            ("dhcp", _) => Some(UnreadProtocol::Dhcp),
            ("sctp", "chunk_type") => Some(UnreadProtocol::Sctp),
            ("tcp", "mss" | "wscale" | "tsval" | "tsecr" | "option") => Some(UnreadProtocol::Tcp),
            ("tcp", part) if part.starts_with("sack") => Some(UnreadProtocol::Tcp),
            ("sport" | "dport", _)
            | ("tcp" | "udp", "sport" | "dport")
            | ("conn", "a_port" | "b_port") => Some(UnreadProtocol::Ports),
            _ => None,
        };
        protocol.into_iter().for_each(|protocol| self.add(protocol));
        if !OF_FRAMES.contains(&header) {
            self.add(UnreadProtocol::Wlan);
        }
    }

    fn add(&mut self, protocol: UnreadProtocol) {
        self.0 |= 1 << protocol as usize;
    }

    fn has(self, protocol: UnreadProtocol) -> bool {
        self.0 >> protocol as usize & 1 != 0
    }
}

/// Counts what readers of some protocols leave unread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UnreadCounts {
    watched: WatchedProtocols,
    unread: Unread,
}

impl UnreadCounts {
    /// Of the protocols whose fields and repeated parts these are.
    pub fn of(
        fields: impl IntoIterator<Item = FieldId>,
        parts: impl IntoIterator<Item = Repeated>,
    ) -> UnreadCounts {
        let mut watched = WatchedProtocols::default();
        fields.into_iter().for_each(|field| watched.watch(&field.name()));
        parts.into_iter().for_each(|what| watched.watch(REPEATED[what as usize].name));
        UnreadCounts { watched, unread: Unread::default() }
    }

    /// The counts so far.
    pub fn so_far(&self) -> Unread {
        self.unread
    }

    /// Looks at a batch; `layers` is what [`crate::walk::classify`] said of it.
    #[inline]
    pub fn observe(&mut self, frames: &FrameBatch, layers: &Layers) {
        if self.watched != WatchedProtocols::default() && frames.link != LinkType::FLOW_RECORDS {
            count(self.watched, &Rows::new(frames, layers, Bits::ALL), &mut self.unread);
        }
    }
}

/// How readers of each protocol are watched, in the order of their numbers.
const EACH: [fn(&Rows<'_>, &mut Count<'_>); UNREAD_PROTOCOLS] = [
    in_dns,
    in_http,
    in_tls,
    in_quic,
    in_dhcp,
    in_sctp,
    in_tcp_options,
    in_fragments,
    in_aggregates,
];

#[inline(never)]
fn count(watched: WatchedProtocols, rows: &Rows<'_>, unread: &mut Unread) {
    for (protocol, count) in UnreadProtocol::ALL.into_iter().zip(EACH) {
        if watched.has(protocol) {
            count(rows, &mut Count { protocol, unread });
        }
    }
}

/// The counts of one protocol.
struct Count<'a> {
    protocol: UnreadProtocol,
    unread: &'a mut Unread,
}

impl Count<'_> {
    fn add(&mut self, reason: UnreadReason, n: u64) {
        let count = self.unread.of_mut(self.protocol, reason);
        *count = count.saturating_add(n);
    }

    /// A message that is not whole in a payload of which so much was captured and sent.
    fn add_in_part(&mut self, captured: usize, sent: usize) {
        let is_cut = captured < sent;
        self.add(if is_cut { UnreadReason::Cut } else { UnreadReason::Continues }, 1);
    }
}

/// Why a packet does not show all payload of a UDP datagram, if it does not: later fragments of IP
/// may have the rest.
fn missing(rows: &Rows<'_>, i: usize) -> Option<UnreadReason> {
    let sent = rows.packet_end(i).saturating_sub(rows.l4(i) + udp::HEADER_LEN);
    let (captured, whole) = match udp::Udp::new(rows.body(i)) {
        Ok(udp) => {
            let length = usize::from(udp.length()).checked_sub(udp::HEADER_LEN);
            (udp.payload().len(), length.unwrap_or(sent))
        }
        Err(Reason::ShortHeader) => (0, sent),
        Err(_) => return None,
    };
    if captured < whole.min(sent) {
        return Some(UnreadReason::Cut);
    }
    let goes_on = captured < whole && rows.layers.has(Layer::Fragment).has(i);
    goes_on.then_some(UnreadReason::Continues)
}

/// How much payload a TCP segment had on the wire.
fn sent(rows: &Rows<'_>, i: usize) -> usize {
    let header = tcp::Tcp::new(rows.body(i)).map_or(0, |tcp| tcp.header_len());
    (rows.packet_end(i) - rows.l4(i)).saturating_sub(header)
}

fn in_dns(rows: &Rows<'_>, count: &mut Count<'_>) {
    use crate::fields::dns::{candidates, message};
    candidates(rows).each(|i| {
        let first = message(rows, i);
        let questions = first.map_or(0, |message| message.further_questions());
        count.add(UnreadReason::Further, questions as u64);
        if rows.layers.has(Layer::Udp).has(i) {
            let missing = missing(rows, i);
            let unread = missing.filter(|_| !first.is_some_and(|message| message.is_whole()));
            return unread.into_iter().for_each(|reason| count.add(reason, 1));
        }
        let (payload, sent) = (rows.tcp_payload(i), sent(rows, i));
        let mut at = 0;
        while at < sent {
            let rest = payload.get(at..).unwrap_or(&[]);
            let Some(message) = dns::Dns::in_segment(rest, sent - at) else {
                return count.add_in_part(payload.len(), sent);
            };
            let end = at + 2 + usize::from(u16::from_be_bytes([rest[0], rest[1]]));
            // The first is read, as much of it as was captured.
            if at > 0 {
                count.add(UnreadReason::Further, 1);
            } else if payload.len() < end && !message.is_whole() {
                count.add(UnreadReason::Cut, 1);
            }
            at = end;
        }
    });
}

fn in_http(rows: &Rows<'_>, count: &mut Count<'_>) {
    rows.has(Layer::TcpWhole).each(|i| {
        let payload = rows.tcp_payload(i);
        let Some(first) = http::Http::new(payload) else { return };
        let Some(mut rest) = first.after() else {
            return count.add_in_part(payload.len(), sent(rows, i));
        };
        while let Some(next) = http::Http::new(rest) {
            count.add(UnreadReason::Further, 1);
            rest = next.after().unwrap_or(&[]);
        }
    });
}

fn in_tls(rows: &Rows<'_>, count: &mut Count<'_>) {
    rows.has(Layer::TcpWhole).each(|i| {
        let payload = rows.tcp_payload(i);
        let record = tls::Tls::new(tls::after_change_cipher_spec(payload));
        if record.is_none_or(|record| !record.starts_hello()) {
            return;
        }
        let is_whole = |hello: &tls::Hello<'_>| Some(hello.is_whole());
        if rows.layers.hellos.of_tls(i, payload, is_whole) != Some(true) {
            count.add_in_part(payload.len(), sent(rows, i));
        }
    });
}

fn in_quic(rows: &Rows<'_>, count: &mut Count<'_>) {
    rows.has(Layer::Udp).each(|i| {
        let payload = rows.udp_payload(i);
        let starts_initial = quic::starts_initial(payload);
        if !starts_initial && quic::LongHeader::new(payload).is_none() {
            return;
        }
        let is_whole = |hello: &tls::Hello<'_>| Some(hello.is_whole());
        let unread = match rows.layers.hellos.of_quic(i, payload, is_whole) {
            Some(true) => None,
            Some(false) => missing(rows, i).or(Some(UnreadReason::Continues)),
            // Nothing tells whose hello an Initial packet holds of which a part is missing.
            None => missing(rows, i).filter(|_| starts_initial),
        };
        unread.into_iter().for_each(|reason| count.add(reason, 1));
    });
}

fn in_dhcp(rows: &Rows<'_>, count: &mut Count<'_>) {
    rows.on_ports(Layer::Udp, &dhcp::PORTS).each(|i| {
        let payload = rows.udp_payload(i);
        let message = dhcp::Dhcp::new(payload);
        let overload = message.and_then(|message| message.option(dhcp::OVERLOAD)?.first().copied());
        count.add(UnreadReason::Elsewhere, u64::from(matches!(overload, Some(1..=3))));
        // Of fewer bytes nothing tells whether they are plain BOOTP.
        let may_go_on =
            message.map_or(payload.len() < dhcp::HEADER_LEN, |message| !message.is_whole());
        let unread = missing(rows, i).filter(|_| may_go_on);
        unread.into_iter().for_each(|reason| count.add(reason, 1));
    });
}

fn in_sctp(rows: &Rows<'_>, count: &mut Count<'_>) {
    crate::fields::carried::carries(rows, sctp::PROTOCOL).each(|i| {
        let chunks = sctp::Sctp::new(rows.body(i)).chunks().count();
        count.add(UnreadReason::Further, chunks.saturating_sub(1) as u64);
    });
}

fn in_tcp_options(rows: &Rows<'_>, count: &mut Count<'_>) {
    rows.has(Layer::TcpWhole).each(|i| {
        let is_cut = tcp::Tcp::new(rows.body(i))
            .is_ok_and(|tcp| tcp.options().len() < tcp.header_len() - tcp::HEADER_LEN);
        count.add(UnreadReason::Cut, u64::from(is_cut));
    });
}

/// Protocols whose header starts with ports.
const WITH_PORTS: [u8; 5] = [tcp::PROTOCOL, udp::PROTOCOL, 33, sctp::PROTOCOL, 136];

fn in_fragments(rows: &Rows<'_>, count: &mut Count<'_>) {
    let layers = rows.layers;
    let known = rows.frames.with_ports().or(layers.has(Layer::Ports));
    let without = rows.has(Layer::Fragment).minus(known).minus(layers.has(Layer::Cut));
    without.minus(layers.has(Layer::Malformed)).each(|i| {
        let has_ports = WITH_PORTS.contains(&layers.proto[i]);
        count.add(UnreadReason::Fragment, u64::from(has_ports));
    });
}

fn in_aggregates(rows: &Rows<'_>, count: &mut Count<'_>) {
    let ip: Bits = rows.has(Layer::Wlan).and(rows.ip());
    ip.each(|i| {
        let frame = rows.frames.frame(i);
        let at = usize::from(rows.layers.below[i].wlan);
        let further = wlan::Wlan::new(frame.get(at..).unwrap_or(&[]))
            .map_or(0, |wlan| wlan.further_frames(frame, rows.l3(i)));
        count.add(UnreadReason::Further, further);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::{client_hello, dhcp, dns_in_tcp, dns_query, dns_response};
    use crate::craft::quic::{Initial, crypto_frame};
    use crate::craft::{Frame, batch};
    use crate::fields::by_name;
    use crate::walk::classify;

    /// The counts for a frame of which so many bytes were captured, where these fields are read.
    fn shown_of(frame: &Frame, captured: usize, fields: &str) -> String {
        let bytes = frame.bytes();
        let len = bytes.len() as u32;
        let frames = batch(frame.link(), &[(bytes[..captured.min(bytes.len())].to_vec(), len)]);
        let mut layers = Layers::new();
        classify(&frames, &mut layers);
        let fields = fields.split(' ').map(|name| by_name(name).expect("a field"));
        let mut counts = UnreadCounts::of(fields, []);
        counts.observe(&frames, &layers);
        let cells = counts.so_far().each();
        let cell = |(protocol, reason, n): (UnreadProtocol, UnreadReason, u64)| {
            format!("{n} {} {}", protocol.name(), reason.name())
        };
        cells.map(cell).collect::<Vec<_>>().join(", ")
    }

    fn shown(frame: &Frame, fields: &str) -> String {
        shown_of(frame, usize::MAX, fields)
    }

    fn tcp(port: u16, payload: &[u8]) -> Frame {
        Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(40_000, port).payload(payload)
    }

    fn udp(port: u16, payload: &[u8]) -> Frame {
        Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(40_000, port).payload(payload)
    }

    #[test]
    fn messages_of_dns() {
        let message = dns_in_tcp(&dns_query(7, "www.example", 1));
        let several = message.repeat(3);
        assert_eq!(shown(&tcp(53, &message), "dns.id"), "");
        assert_eq!(shown(&tcp(53, &several), "dns"), "2 dns further in the packet");
        assert_eq!(shown(&tcp(53, &several), "http"), "", "where nothing of it is read");
        assert_eq!(shown(&tcp(54, &several), "dns"), "", "on another port");
        let cut = several.len() - 1;
        assert_eq!(
            shown(&tcp(53, &several[..cut]), "dns"),
            "1 dns continues in another packet, 1 dns further in the packet"
        );
        for start in [1, 2, 20] {
            let part = shown(&tcp(53, &message[..start]), "dns");
            assert_eq!(part, "1 dns continues in another packet", "{start} bytes");
            let rest = shown(&tcp(53, &message[start..]), "dns");
            assert_eq!(rest, "1 dns continues in another packet", "from {start} on");
        }
        assert_eq!(shown(&tcp(53, &[]), "dns"), "", "an acknowledgement");
        assert_eq!(shown_of(&tcp(53, &message), 60, "dns"), "1 dns cut by the snap length");
        let cut = "1 dns cut by the snap length";
        assert_eq!(shown_of(&tcp(53, &message), 80, "dns"), cut, "in its question");
        let mut two = dns_query(7, "www.example", 1);
        two[5] = 2;
        two.extend([0, 0, 1, 0, 1]);
        assert_eq!(shown(&udp(53, &two), "dns.qname"), "1 dns further in the packet");
    }

    /// A query that told of 65535 questions added 65534.
    #[test]
    fn questions_that_have_no_room_are_not_counted() {
        let mut query = dns_query(7, "www.example", 1);
        (query[4], query[5]) = (255, 255);
        assert_eq!(shown(&udp(53, &query), "dns"), "");
        query.extend([0; 14]);
        assert_eq!(shown(&udp(53, &query), "dns"), "2 dns further in the packet");
    }

    /// Cut datagrams, and first fragments, were not counted.
    #[test]
    fn datagrams_of_dns_in_part() {
        let response = dns_response(7, "www.example", 1, 0, &[&[1; 4], &[2; 4]]);
        let (cut, headers) = ("1 dns cut by the snap length", 14 + 20 + 8);
        let frame = udp(53, &response);
        for n in [4, 8, 8 + 11, 8 + 12, 8 + response.len() - 1] {
            assert_eq!(shown_of(&frame, 34 + n, "dns.addr"), cut, "{n} bytes of the datagram");
        }
        assert_eq!(shown(&frame, "dns"), "");
        let padded = udp(53, &[&response[..], b"more"].concat());
        assert_eq!(shown_of(&padded, headers + response.len(), "dns"), "", "all of the message");

        let length = (8 + response.len() as u16 + 8).to_be_bytes();
        let first = |payload: &[u8]| {
            let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).fragment(0, true);
            frame.udp(40_000, 53).put(udp::LENGTH, &length).payload(payload)
        };
        let part = first(&response[..32]);
        assert_eq!(shown(&part, "dns"), "1 dns continues in another packet");
        assert_eq!(shown_of(&part, headers + 20, "dns"), cut, "a message counts once");
        assert_eq!(shown(&first(&response), "dns"), "", "all of the message");
        let later = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).fragment(40, false);
        assert_eq!(shown(&later.put(9, &[17]).payload(&response[32..]), "dns"), "");
        let wrong = udp(53, &response[..32]).put(udp::LENGTH, &length);
        assert_eq!(shown(&wrong, "dns"), "", "that is malformed");
    }

    #[test]
    fn messages_of_http() {
        let request = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
        let three = request.repeat(3);
        assert_eq!(shown(&tcp(80, request), "http.uri"), "");
        assert_eq!(shown(&tcp(80, &three), "http.uri"), "2 http further in the packet");
        assert_eq!(shown(&tcp(80, &request[..20]), "http"), "1 http continues in another packet");
        assert_eq!(shown_of(&tcp(80, request), 80, "http"), "1 http cut by the snap length");
        let posted = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /";
        assert_eq!(shown(&tcp(80, posted), "http"), "", "a body is no message");
        let both = [&posted[..], request].concat();
        assert_eq!(shown(&tcp(80, &both), "http"), "1 http further in the packet");
        let answers = b"HTTP/1.1 304 Not Modified\r\n\r\n".repeat(2);
        assert_eq!(shown(&tcp(80, &answers), "http.status"), "1 http further in the packet");
        let far = b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n";
        assert_eq!(shown(&tcp(80, far), "http"), "");
    }

    #[test]
    fn hellos() {
        let hello = client_hello("www.example.org", &["h2"], &[0x0304]);
        assert_eq!(shown(&tcp(443, &hello), "tls.sni"), "");
        let part = tcp(443, &hello[..hello.len() - 9]);
        assert_eq!(shown(&part, "tls.sni"), "1 tls continues in another packet");
        assert_eq!(shown(&part, "tls tls.content_type"), "", "where no hello is read");
        assert_eq!(shown(&tcp(443, &hello[..6]), "tls.ja4"), "1 tls continues in another packet");
        assert_eq!(shown_of(&tcp(443, &hello), 80, "tls.ja4"), "1 tls cut by the snap length");
        assert_eq!(shown(&tcp(443, &[23, 3, 3, 0, 9, 1, 2]), "tls.sni"), "", "data");
    }

    /// A client's second hello stands there after a HelloRetryRequest.
    #[test]
    fn hellos_after_a_change_of_cipher() {
        let changed = |rest: &[u8]| tcp(443, &[&[20, 3, 3, 0, 1, 1], rest].concat());
        let hello = client_hello("www.example.org", &["h2"], &[0x0304]);
        assert_eq!(shown(&changed(&hello), "tls.sni"), "");
        let part = changed(&hello[..hello.len() - 9]);
        assert_eq!(shown(&part, "tls.sni"), "1 tls continues in another packet");
        assert_eq!(shown_of(&changed(&hello), 80, "tls.ja4"), "1 tls cut by the snap length");
        let finished = [22, 3, 3, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(shown(&changed(&finished), "tls.sni"), "", "a message of TLS 1.2");
        assert_eq!(shown(&changed(&[]), "tls.sni"), "");
    }

    /// Hellos of which the snap length cut off a part were not counted.
    #[test]
    fn hellos_of_quic() {
        let hello = &client_hello("www.example.org", &["h3"], &[0x0304])[tls::HEADER_LEN..];
        let initial = |data: &[u8]| {
            Initial::new(quic::V1, &[7; 8]).packet(&[&crypto_frame(0, data)[..], &[0; 99]].concat())
        };
        let whole = initial(hello);
        let frame = udp(443, &whole);
        assert_eq!(shown(&frame, "quic.sni"), "");
        let part = udp(443, &initial(&hello[..60]));
        assert_eq!(shown(&part, "quic.sni"), "1 quic continues in another packet");
        // After the headers: the version, the ID, and all but the last byte.
        for n in [5, 12, 60, whole.len() - 1] {
            let cut = shown_of(&frame, 42 + n, "quic.ja4");
            assert_eq!(cut, "1 quic cut by the snap length", "{n} bytes");
        }
        assert_eq!(shown_of(&frame, 42 + 4, "quic.sni"), "", "it may be anything");
        assert_eq!(shown_of(&frame, 99, "quic.version"), "", "where no hello is read");
        let both = udp(443, &[initial(&hello[..60]), whole].concat());
        assert_eq!(shown_of(&both, 300, "quic.sni"), "1 quic cut by the snap length");
        let handshake = udp(443, &[&[0xe3, 0, 0, 0, 1, 0, 0, 64, 99][..], &[7; 99]].concat());
        assert_eq!(shown_of(&handshake, 90, "quic.sni"), "");
    }

    #[test]
    fn the_rest_of_headers() {
        let overload = dhcp(1, 7, [2, 0, 0, 0, 0, 7], [0; 4], &[(53, &[1]), (52, &[1])]);
        let frame = Frame::ethernet().ipv4([0; 4], [255; 4]).udp(68, 67).payload(&overload);
        assert_eq!(shown(&frame, "dhcp.hostname"), "1 dhcp options in other fields");
        let end = frame.bytes().len();
        let cut = |snap| shown_of(&frame, snap, "dhcp.server_id");
        assert_eq!(cut(end - 1), "1 dhcp cut by the snap length, 1 dhcp options in other fields");
        for snap in [42, 43, 42 + dhcp::HEADER_LEN - 1, 42 + dhcp::HEADER_LEN, end - 4] {
            assert_eq!(cut(snap), "1 dhcp cut by the snap length", "{snap} bytes");
        }
        let first = Frame::ethernet().ipv4([0; 4], [255; 4]).fragment(0, true).udp(68, 67);
        let first = first.put(udp::LENGTH, &700_u16.to_be_bytes());
        let first = first.payload(&overload[..overload.len() - 1]);
        assert!(shown(&first, "dhcp.type").starts_with("1 dhcp continues in another packet"));
        let chunks =
            [&[0, 5, 0, 6][..], &[0; 8], &[3, 0, 0, 6, 1, 2, 0, 0, 0, 0, 0, 5, 9]].concat();
        let sctp = Frame::ethernet().ipv4([1; 4], [2; 4]).put(9, &[132]).payload(&chunks);
        assert_eq!(shown(&sctp, "sctp.chunk_type"), "1 sctp further in the packet");
        let options = Frame::ethernet().ipv4([1; 4], [2; 4]).tcp(1, 2).options(&[1; 12]);
        assert_eq!(shown(&options, "tcp.mss"), "");
        assert_eq!(shown_of(&options, 60, "tcp.mss"), "1 tcp cut by the snap length");
    }

    #[test]
    fn fragments_without_their_first() {
        let later = |proto| {
            let frame = Frame::ethernet().ipv4([1; 4], [2; 4]).fragment(1480, false);
            frame.put(9, &[proto]).payload(&[7; 40])
        };
        for fields in ["sport", "udp.dport", "conn.b_port"] {
            assert_eq!(shown(&later(17), fields), "1 ports fragment without its first");
        }
        assert_eq!(shown(&later(1), "sport"), "", "of ICMP, which has no ports");
        assert_eq!(shown(&later(17), "ip.src"), "");
        let first = Frame::ethernet().ipv4([1; 4], [2; 4]).fragment(0, true).udp(1, 2);
        assert_eq!(shown(&first.payload(&[7; 40]), "sport"), "");
    }

    #[test]
    fn frames_of_an_aggregate() {
        let packet = Frame::raw().ipv4([1; 4], [2; 4]).udp(1, 2).payload(b"abcd").bytes();
        let body = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet[..]].concat();
        let len = (body.len() as u16).to_be_bytes();
        let mut one = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &len[..], &body].concat();
        one.resize(one.len().next_multiple_of(4), 0);
        let header = [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 2], &[0x80, 0]].concat();
        let frame =
            |n: usize| Frame::of(LinkType::IEEE802_11, &[&header[..], &one.repeat(n)].concat());
        assert_eq!(shown(&frame(1), "ip.src"), "");
        assert_eq!(shown(&frame(3), "ip.src"), "2 wlan further in the packet");
        assert_eq!(shown(&frame(3), "len wlan.ra"), "");
    }
}
