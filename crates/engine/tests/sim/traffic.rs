//! Random traffic: few hosts and ports, so that keys repeat; times that mostly rise.

use crate::hellos::{Piece, piece};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{dns_in_tcp, dns_query, dns_response};
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, Gap, LinkType, Source, SourceError};

/// When traffic starts, in nanoseconds since 1970.
pub(crate) const START_NS: i64 = 1_700_000_000_000_000_000;

/// Frames that the capture filter refused, as the source tells it.
const FILTERED: u64 = 3;

/// One packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    when: When,
    link: Link,
    vlans: Vec<u16>,
    what: What,
    /// Numbers of the two hosts.
    hosts: (u8, u8),
    ports: (u16, u16),
    payload: u8,
    numbers: Numbers,
    /// A byte to overwrite: position and value.
    damage: Option<(usize, u8)>,
    /// Bytes that the snap length leaves.
    snap: usize,
    /// Whether the source says after it what time it has reached, so far from that of traffic,
    /// which does not stay behind.
    quiet: Option<i64>,
    /// The loss that the source reports before it: how many frames, and since and until when, from
    /// the time of traffic; or that it does not know until when.
    gap: Option<(u64, i64, Option<i64>)>,
}

/// The values of header fields that nothing is read by: often the least or the largest value there
/// is.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    ttl: u8,
    id: u16,
    ack: u32,
    window: u16,
    /// Whether the payload is as long as it may be.
    is_long: bool,
}

/// Values of so many bits, every second one at the edge of the width.
fn edged(bits: u32) -> impl Strategy<Value = u32> {
    let most = u32::MAX >> (32 - bits);
    let edges = proptest::sample::select(vec![0, 1, most / 2, most / 2 + 1, most - 1, most]);
    prop_oneof![1 => Just(most), 2 => edges, 3 => 0..=most]
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let is_long = prop_oneof![150 => Just(false), 1 => Just(true)];
    (edged(8), edged(16), edged(32), edged(16), is_long).prop_map(
        |(ttl, id, ack, window, is_long)| Numbers {
            ttl: ttl as u8,
            id: id as u16,
            ack,
            window: window as u16,
            is_long,
        },
    )
}

/// When a packet came, in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum When {
    /// After the time that traffic has reached, which moves there.
    After(i64),
    /// Away from the time that traffic has reached, which stays.
    Off(i64),
    /// At this time.
    At(i64),
}

#[derive(Clone, Copy, Debug)]
enum Link {
    Ethernet,
    Raw,
    Cooked,
    Loopback,
}

#[derive(Clone, Debug)]
enum What {
    Tcp { flags: u16, seq: u32 },
    Udp,
    Icmp { kind: u8, id: u16 },
    Fragment { offset: u16, more: bool },
    Tcp6 { flags: u16, label: u32 },
    Udp6 { extensions: usize },
    Icmp6 { kind: u8 },
    Arp { operation: u16 },
    Garbage(Vec<u8>),
    Hello(Piece),
}

const MS: i64 = 1_000_000;

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        12 => (0..5 * MS).prop_map(When::After),
        6 => (5 * MS..80 * MS).prop_map(When::After),
        2 => Just(When::After(0)),
        2 => (-400 * MS..0).prop_map(When::Off),
        1 => (1000 * MS..4000 * MS).prop_map(When::After),
        1 => prop_oneof![
            (60_000 * MS..600_000 * MS).prop_map(When::Off),
            (-600_000 * MS..0).prop_map(When::Off),
            (61_000 * MS..200_000 * MS).prop_map(When::After),
            prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX)].prop_map(When::At),
        ],
    ]
}

fn what() -> impl Strategy<Value = What> {
    let flags =
        || prop_oneof![Just(0x02), Just(0x12), Just(0x10), Just(0x18), Just(0x11), 0..512u16];
    prop_oneof![
        8 => (flags(), edged(32)).prop_map(|(flags, seq)| What::Tcp { flags, seq }),
        4 => Just(What::Udp),
        1 => (prop_oneof![Just(8), Just(0), Just(3)], prop_oneof![0..3u16, Just(u16::MAX)])
            .prop_map(|(kind, id)| What::Icmp { kind, id }),
        1 => (0..3u16, any::<bool>())
            .prop_map(|(at, more)| What::Fragment { offset: at * 8, more: more || at == 0 }),
        2 => (flags(), prop_oneof![3 => 0..3u32, 1 => edged(20)])
            .prop_map(|(flags, label)| What::Tcp6 { flags, label }),
        1 => (0..3usize).prop_map(|extensions| What::Udp6 { extensions }),
        1 => prop_oneof![Just(128), Just(129), Just(135)].prop_map(|kind| What::Icmp6 { kind }),
        1 => (1..3u16).prop_map(|operation| What::Arp { operation }),
        1 => vec(any::<u8>(), 0..70).prop_map(What::Garbage),
        5 => piece().prop_map(What::Hello),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let link = prop_oneof![
        30 => Just(Link::Ethernet),
        1 => Just(Link::Raw),
        1 => Just(Link::Cooked),
        1 => Just(Link::Loopback),
    ];
    let vlans = prop_oneof![
        8 => Just(Vec::new()),
        1 => vec(prop_oneof![4 => 1..4u16, 1 => Just(0), 1 => Just(4095)], 1..3),
    ];
    let port = || {
        let edges = edged(16).prop_map(|port| port as u16);
        prop_oneof![4 => Just(80), 4 => Just(53), 4 => Just(1234), 4 => Just(40_000), 1 => edges]
    };
    let host = || prop_oneof![12 => 0..4u8, 1 => 4..8u8];
    let damage = prop_oneof![
        9 => Just(None),
        1 => (0..60usize, any::<u8>()).prop_map(Some),
    ];
    let snap = prop_oneof![9 => Just(usize::MAX), 1 => 0..90usize];
    let quiet = prop_oneof![
        40 => Just(None),
        3 => (-50 * MS..50 * MS).prop_map(Some),
        1 => (0..20_000 * MS).prop_map(Some),
    ];
    let off = || prop_oneof![3 => -50 * MS..50 * MS, 1 => -5_000 * MS..5_000 * MS];
    let until = prop_oneof![3 => off().prop_map(Some), 1 => Just(None)];
    let gap = prop_oneof![9 => Just(None), 1 => (0..9u64, off(), until).prop_map(Some)];
    let ends = ((host(), host()), (port(), port()), 0..80u8, numbers());
    (when(), link, vlans, what(), ends, damage, (snap, quiet, gap)).prop_map(
        |(when, link, vlans, what, ends, damage, (snap, quiet, gap))| Packet {
            when,
            link,
            vlans,
            what,
            hosts: ends.0,
            ports: ends.1,
            payload: ends.2,
            numbers: ends.3,
            damage,
            snap,
            quiet,
            gap,
        },
    )
}

/// The payload of the longest packets: with headers, all that a length of 16 bits allows.
const LONG_PAYLOAD: usize = 65_535 - 60;

/// The address of a host: those from 4 on are the least and the largest there are.
fn v4(host: u8) -> Ipv4Addr {
    match host {
        0..4 => Ipv4Addr::new(10, 0, 0, host),
        4 | 5 => Ipv4Addr::from_bits(u32::from(host - 4)),
        _ => Ipv4Addr::from_bits(u32::MAX - u32::from(host & 1)),
    }
}

/// The same of IPv6.
fn v6(host: u8) -> Ipv6Addr {
    match host {
        0..3 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into()),
        3 => v4(host).to_ipv6_mapped(),
        4 | 5 => Ipv6Addr::from_bits(u128::from(host - 4)),
        _ => Ipv6Addr::from_bits(u128::MAX - u128::from(host & 1)),
    }
}

impl Packet {
    /// The payload: often a DNS message on the port of DNS, of few names in either case, or an
    /// HTTP request; in TCP sometimes several, the last of which goes on in another segment.
    fn message(&self) -> Vec<u8> {
        let n = self.payload;
        let name = ["a.example", "A.example", "b.example", ""][usize::from(n / 4 % 4)];
        let kind = if n.is_multiple_of(3) { 28 } else { 1 };
        let message = match self.ports {
            (53, _) if n >= 40 => {
                let data: [&[u8]; 3] = [&[10, 0, 0, n % 3], &[10, 0, 0, 1], &[1, b'a', 0]];
                dns_response(n.into(), name, kind, n % 4, &data[..usize::from(n / 8 % 4)])
            }
            (_, 80) if n >= 40 => {
                let request = b"GET /a HTTP/1.1\r\nHost: A.example\r\n\r\n";
                return request.repeat(1 + usize::from(n % 3));
            }
            (_, 53) if n >= 20 => dns_query(n.into(), name, kind),
            _ if self.numbers.is_long => return vec![0; LONG_PAYLOAD],
            _ => return vec![0; n.into()],
        };
        match self.what {
            What::Tcp { .. } | What::Tcp6 { .. } => {
                let messages = dns_in_tcp(&message).repeat(1 + usize::from(n / 4 % 3));
                // Some go on in another segment.
                messages[..messages.len() - usize::from(n % 5)].to_vec()
            }
            _ => message,
        }
    }

    /// Link type and bytes on the wire.
    fn bytes(&self) -> (LinkType, Vec<u8>) {
        let mut frame = match self.link {
            Link::Ethernet => {
                Frame::ethernet().mac([2, 0, 0, 0, 0, self.hosts.0], [2, 0, 0, 0, 0, self.hosts.1])
            }
            Link::Raw => Frame::raw(),
            Link::Cooked => Frame::cooked(),
            Link::Loopback => Frame::loopback(),
        };
        if matches!(self.link, Link::Ethernet) {
            frame = self.vlans.iter().fold(frame, |frame, id| frame.vlan(*id));
        }
        let Numbers { ttl, id, ack, window, .. } = self.numbers;
        let ip4 = |frame: Frame| frame.ipv4(v4(self.hosts.0), v4(self.hosts.1)).ttl(ttl).id(id);
        let ip6 = |frame: Frame| frame.ipv6(v6(self.hosts.0), v6(self.hosts.1)).ttl(ttl);
        let (sport, dport) = self.ports;
        let frame = match &self.what {
            What::Tcp { flags, seq } => {
                let frame = ip4(frame).tcp(sport, dport).flags(*flags).seq(*seq);
                let frame = frame.ackno(ack).window(window);
                match seq % 4 {
                    0 => frame.options(&[2, 4, 5, 0xb4, 4, 2, 1, 1]),
                    _ => frame,
                }
            }
            What::Udp => ip4(frame).udp(sport, dport),
            What::Icmp { kind, id } => ip4(frame).icmp(*kind, 0).echo(*id, 7),
            What::Fragment { offset, more } => match offset {
                0 => ip4(frame).fragment(*offset, *more).udp(sport, dport),
                _ => ip4(frame).fragment(*offset, *more),
            },
            What::Tcp6 { flags, label } => {
                let frame = ip6(frame).flow_label(*label).tcp(sport, dport).flags(*flags);
                frame.ackno(ack).window(window)
            }
            What::Udp6 { extensions } => {
                let frame = (0..*extensions).fold(ip6(frame), |f, _| f.extension(60, &[]));
                frame.udp(sport, dport)
            }
            What::Icmp6 { kind } => ip6(frame).icmp6(*kind, 0),
            What::Arp { operation } => match self.link {
                Link::Ethernet | Link::Cooked => {
                    let mac = |host| [2, 0, 0, 0, 0, host];
                    let (a, b) = self.hosts;
                    frame.arp(*operation, (mac(a), v4(a)), (mac(b), v4(b)))
                }
                Link::Raw | Link::Loopback => ip4(frame),
            },
            What::Garbage(bytes) => return (frame.link(), bytes.clone()),
            What::Hello(piece) => piece.on(frame.ipv4(v4(0), v4(1)).ttl(ttl)),
        };
        let frame = match self.what {
            What::Hello(_) => frame,
            _ => frame.payload(&self.message()),
        };
        let mut bytes = frame.bytes();
        if let Some((at, value)) = self.damage
            && let Some(byte) = bytes.get_mut(at)
        {
            *byte = value;
        }
        (frame.link(), bytes)
    }
}

/// Packets in the order they came.
#[derive(Clone)]
pub(crate) struct Traffic {
    packets: Vec<Packet>,
    /// How far the packets of each host of the first four lag those of others, in nanoseconds: what
    /// one host sends, and its answers, come in order among themselves.
    lag: [i64; 4],
}

/// One packet a line.
impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\nlag {:?}", self.lag)?;
        self.packets.iter().try_for_each(|packet| write!(f, "\n{packet:?}"))
    }
}

/// Up to three batches of packets.
pub(crate) fn traffic() -> impl Strategy<Value = Traffic> {
    // Up to the latenesses that runs have here, exactly so much, and beyond.
    let lag = || {
        prop_oneof![
            5 => Just(0),
            1 => 0..100 * MS,
            1 => 900 * MS..2500 * MS,
            1 => proptest::sample::select(vec![50 * MS, 50 * MS + 1, 1000 * MS, 1000 * MS + 1]),
        ]
    };
    // As a tap delivers it after a router, in another VLAN.
    let copy = || prop_oneof![0..2 * MS, 99 * MS..101 * MS, Just(500 * MS), Just(500 * MS + 1)];
    let copy = || proptest::option::weighted(0.1, (copy(), 0..u8::MAX, 0..3_u16));
    let both = |(packet, copy): (Packet, Option<(i64, u8, u16)>)| {
        let copy = copy.map(|(later, ttl, vlan)| {
            let numbers = Numbers { ttl, ..packet.numbers };
            Packet { when: When::After(later), vlans: vec![vlan], numbers, ..packet.clone() }
        });
        [Some(packet), copy].into_iter().flatten()
    };
    (vec((packet(), copy()), 0..3 * BATCH), [lag(), lag(), lag(), lag()]).prop_map(
        move |(packets, lag)| Traffic {
            packets: packets.into_iter().flat_map(both).collect(),
            lag,
        },
    )
}

/// Sizes of batches, to be taken again and again.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![3 => 1..BATCH + 1, 1 => 1..8usize, 2 => Just(BATCH)], 1..4)
}

impl Traffic {
    /// The packets in batches of these sizes.
    pub(crate) fn source(&self, cuts: &[usize]) -> TrafficSource {
        let (mut bytes, mut frames, mut now) = (Vec::new(), Vec::new(), START_NS);
        for packet in &self.packets {
            let (link, frame) = packet.bytes();
            let ts = match packet.when {
                When::After(gap) => {
                    now += gap;
                    now
                }
                When::Off(gap) => now + gap,
                When::At(ts) => ts,
            };
            let lag = |host: u8| self.lag.get(usize::from(host)).copied().unwrap_or(0);
            let ts = ts.saturating_sub(lag(packet.hosts.0).max(lag(packet.hosts.1)));
            let gap = packet.gap.map(|(frames, since, until)| Gap {
                frames,
                since: now + since,
                until: until.map_or(Gap::OPEN, |until| now + until),
            });
            let (offset, caplen) = (bytes.len() as u32, frame.len().min(packet.snap) as u32);
            let (len, reached) = (frame.len() as u32, packet.quiet.map(|off| now + off));
            now = reached.map_or(now, |reached| now.max(reached));
            frames.push(Stored { link, ts, offset, caplen, len, reached, gap });
            bytes.extend(frame);
        }
        TrafficSource {
            chunk: Arc::new(bytes),
            frames,
            cuts: cuts.to_vec(),
            at: 0,
            batches: 0,
            reached: None,
            filtered: FILTERED,
        }
    }
}

impl TrafficSource {
    /// A source of nothing but some of the packets, by their numbers here, each at a time.
    pub(crate) fn pick(&self, packets: impl Iterator<Item = (usize, i64)>) -> TrafficSource {
        let one = |(i, ts)| Stored { ts, reached: None, gap: None, ..self.frames[i] };
        TrafficSource {
            chunk: Arc::clone(&self.chunk),
            frames: packets.map(one).collect(),
            cuts: self.cuts.clone(),
            at: 0,
            batches: 0,
            reached: None,
            filtered: 0,
        }
    }
}

#[derive(Clone, Copy)]
struct Stored {
    link: LinkType,
    ts: i64,
    offset: u32,
    caplen: u32,
    len: u32,
    reached: Option<i64>,
    gap: Option<Gap>,
}

/// Hands out traffic in batches.
pub(crate) struct TrafficSource {
    chunk: Chunk,
    frames: Vec<Stored>,
    cuts: Vec<usize>,
    at: usize,
    batches: usize,
    /// Is to be said by a batch of its own.
    reached: Option<i64>,
    /// Frames that the capture filter refused, as it tells.
    filtered: u64,
}

impl Source for TrafficSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if let Some(ts) = self.reached.take() {
            batch.clear();
            batch.set_reached(ts);
            return Ok(true);
        }
        let Some(first) = self.frames.get(self.at) else {
            batch.clear();
            return Ok(false);
        };
        batch.restart(&self.chunk, 0, first.link);
        let most = self.cuts[self.batches % self.cuts.len()];
        self.batches += 1;
        for frame in self.frames[self.at..].iter().take(most) {
            if frame.link != batch.link || frame.gap.is_some() && !batch.is_empty() {
                break;
            }
            frame.gap.iter().for_each(|gap| batch.set_gap(*gap));
            batch.push(frame.ts, self.at as u64, frame.offset, frame.caplen, frame.len);
            self.at += 1;
            if let Some(ts) = frame.reached {
                // With the packets before it or without, that is the same.
                match self.batches % 2 {
                    0 => batch.set_reached(ts),
                    _ => self.reached = Some(ts),
                }
                break;
            }
        }
        Ok(true)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account {
            received: self.at as u64 + self.filtered,
            filtered: self.filtered,
            bytes_read: 0,
            ..Account::default()
        }
    }
}
