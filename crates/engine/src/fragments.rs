//! The ports of later fragments, from the first fragment of their datagram.
//!
//! | | |
//! |---|---|
//! | Syntax | `--fragments`; in Rust [`crate::reading::Reading::fragments`] |
//! | Key | both addresses and the identification; of IPv4 the protocol too (RFC 791, RFC 8200); the VLAN and the tunnel that it is in |
//! | State | some 200 bytes a datagram; `FRAGMENTED_MAX` of them, each for `FRAGMENTED_NS` of packet time |
//! | Full | the datagram whose first fragment came first is forgotten, and counted |
//! | Late | a fragment before its first finds no ports, and is counted |
//! | Exact? | exact, up to identifications that return within a minute |
//!
//! It works where packets are read, in capture order: the number of workers changes nothing.

use crate::limits::{FRAGMENTED_MAX, FRAGMENTED_NS};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::ipv4;
use weir_packet::read::read_field;
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layer, Layers, classify};

/// The fate of later fragments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Later fragments that got the ports of their first.
    pub found: u64,
    /// Later fragments whose first did not come before them, had no ports, or was forgotten.
    pub missed: u64,
    /// Datagrams forgotten for want of room.
    pub evicted: u64,
}

/// Source, destination, the protocol in an IPv4 header (of IPv6, later fragments may not know it),
/// identification; and what they are within, hashed.
type Datagram = (u128, u128, u8, u32, u64);

/// The ports of a datagram, and when its first fragment came last.
#[derive(Clone, Copy)]
struct First {
    ports: [u16; 2],
    ts: i64,
}

/// The datagrams whose first fragments were seen lately.
pub struct Fragments {
    layers: Layers,
    columns: Vec<Column>,
    firsts: HashMap<Datagram, First>,
    /// The same, in the order that they came first.
    order: VecDeque<Datagram>,
    max: usize,
    counts: Counts,
}

/// The fields that are read of fragments, in the order of the columns.
const READ: [FieldId; 10] = [
    FieldId::named("ip.src"),
    FieldId::named("ip.dst"),
    FieldId::named("ip.id"),
    FieldId::named("ip.frag_offset"),
    FieldId::named("sport"),
    FieldId::named("dport"),
    FieldId::named("vlan.id"),
    FieldId::named("vlan.inner"),
    FieldId::named("tunnel.src"),
    FieldId::named("tunnel.dst"),
];

/// From which of them on they say what a datagram is within.
const WITHIN: usize = 6;

impl Default for Fragments {
    fn default() -> Fragments {
        Fragments::with_max(FRAGMENTED_MAX)
    }
}

impl Fragments {
    fn with_max(max: usize) -> Fragments {
        Fragments {
            layers: Layers::new(),
            columns: READ.iter().map(|id| Column::new(id.info().ty.repr())).collect(),
            firsts: HashMap::new(),
            order: VecDeque::new(),
            max,
            counts: Counts::default(),
        }
    }

    /// The fate of later fragments so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives the later fragments of a batch their ports, and remembers those of the first ones.
    pub fn resolve(&mut self, batch: &mut FrameBatch) {
        classify(batch, &mut self.layers);
        let fragments = self.layers.has(Layer::Fragment).and(Bits::first(batch.len()));
        if fragments.is_empty() {
            return;
        }
        for (id, column) in READ.into_iter().zip(&mut self.columns) {
            read_field(id, batch, &self.layers, fragments, column);
        }
        for i in fragments.iter() {
            let Some((datagram, offset, ports)) = self.row(batch, i) else { continue };
            let ts = batch.ts()[i];
            if offset > 0 {
                let first = self.firsts.get(&datagram);
                match first.filter(|f| ts.saturating_sub(f.ts) <= FRAGMENTED_NS) {
                    Some(first) => {
                        batch.set_ports(i, first.ports);
                        self.counts.found += 1;
                    }
                    None => self.counts.missed += 1,
                }
            } else if let Some(ports) = ports {
                self.remember(datagram, ports, ts);
            }
        }
    }

    /// Fragment `i` as it was read: its datagram, its offset, its ports. `None` if it was cut
    /// before they could be.
    fn row(&self, batch: &FrameBatch, i: usize) -> Option<(Datagram, u128, Option<[u16; 2]>)> {
        let value = |at: usize| {
            let column: &Column = &self.columns[at];
            column.present.has(i).then(|| column.raw(i))
        };
        // The protocol that the header names: behind an authentication header a first fragment
        // knows another.
        let proto = match self.layers.has(Layer::Ipv4).has(i) {
            true => *batch.frame(i).get(usize::from(self.layers.l3[i]) + ipv4::PROTOCOL)?,
            false => 0,
        };
        // Hashed with the secret of the map, so that no sender can make two tunnels look like one.
        let within: [Option<u128>; READ.len() - WITHIN] =
            std::array::from_fn(|at| value(WITHIN + at));
        let within = self.firsts.hasher().hash_one(within);
        let datagram = (value(0)?, value(1)?, proto, value(2)? as u32, within);
        let ports = value(4).zip(value(5)).map(|(src, dst)| [src as u16, dst as u16]);
        Some((datagram, value(3)?, ports))
    }

    fn remember(&mut self, datagram: Datagram, ports: [u16; 2], ts: i64) {
        if self.firsts.insert(datagram, First { ports, ts }).is_some() {
            return;
        }
        self.order.push_back(datagram);
        // Age alone takes nothing away: one packet with a wild time would take everything.
        if self.order.len() > self.max
            && let Some(first) = self.order.pop_front().and_then(|old| self.firsts.remove(&old))
        {
            self.counts.evicted += u64::from(ts.saturating_sub(first.ts) <= FRAGMENTED_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;
    use std::sync::Arc;
    use weir_packet::craft::{Frame, batch};
    use weir_packet::source::{Chunk, LinkType};
    use weir_packet::udp;
    use weir_packet::walk::Headers;

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];

    fn first(id: u16, sport: u16) -> Frame {
        let ip = Frame::raw().ipv4(A, B).id(id).fragment(0, true);
        ip.udp(sport, 53).put(udp::LENGTH, &[9, 0])
    }

    fn later(id: u16) -> Frame {
        let ip = Frame::raw().ipv4(A, B).id(id).fragment(1480, false);
        ip.put(weir_packet::ipv4::PROTOCOL, &[17]).payload(&[7; 40])
    }

    /// A batch of frames at these seconds.
    fn at(frames: &[(i64, Frame)]) -> FrameBatch {
        let bytes: Vec<Vec<u8>> = frames.iter().map(|(_, f)| f.bytes()).collect();
        let chunk: Chunk = Arc::new(bytes.concat());
        let mut out = FrameBatch::new();
        out.restart(&chunk, 0, LinkType::RAW);
        let mut start = 0;
        for (i, (bytes, (second, _))) in bytes.iter().zip(frames).enumerate() {
            let len = bytes.len() as u32;
            out.push(second * 1_000_000_000, i as u64, start, len, len);
            start += len;
        }
        out
    }

    fn ports(batch: &FrameBatch) -> Vec<Option<u16>> {
        (0..batch.len()).map(|i| batch.ports(i).map(|[sport, _]| sport)).collect()
    }

    #[test]
    fn later_fragments_get_the_ports_of_their_first() {
        let mut fragments = Fragments::default();
        let mut batch =
            at(&[(0, later(1)), (0, first(1, 7)), (0, later(1)), (60, later(1)), (61, later(1))]);
        fragments.resolve(&mut batch);
        assert_eq!(ports(&batch), [None, None, Some(7), Some(7), None]);
        assert_eq!(fragments.counts(), Counts { found: 2, missed: 2, evicted: 0 });
        // From batch to batch, and the latest first fragment counts.
        let mut batch = at(&[(61, first(1, 8)), (62, later(1)), (62, later(2))]);
        fragments.resolve(&mut batch);
        assert_eq!(ports(&batch), [None, Some(8), None]);
    }

    #[test]
    fn six_goes_by_addresses_and_identification() {
        let (a, b) = (std::net::Ipv6Addr::LOCALHOST, std::net::Ipv6Addr::UNSPECIFIED);
        let first = Frame::raw().ipv6(a, b).fragment(0, true).extension(60, &[]).udp(7, 8);
        let later = Frame::raw().ipv6(a, b).fragment(1448, false).put(0, &[60]).payload(&[1; 40]);
        let mut batch = at(&[(0, first), (0, later)]);
        Fragments::default().resolve(&mut batch);
        assert_eq!(ports(&batch), [None, Some(7)]);
    }

    #[test]
    fn the_oldest_is_forgotten_for_room() {
        let mut fragments = Fragments::with_max(2);
        let firsts: Vec<_> = (1..=3).map(|id| (0, first(id, id))).collect();
        fragments.resolve(&mut at(&firsts));
        let mut batch = at(&[(1, later(1)), (1, later(2)), (1, later(3))]);
        fragments.resolve(&mut batch);
        assert_eq!(ports(&batch), [None, Some(2), Some(3)]);
        assert_eq!(fragments.counts(), Counts { found: 2, missed: 1, evicted: 1 });
        assert!(fragments.order.len() <= 2 && fragments.firsts.len() <= 2);
    }

    #[test]
    fn neither_a_wild_time_nor_a_repetition_takes_room() {
        let mut fragments = Fragments::with_max(2);
        let mut batch = at(&[(0, first(1, 7)), (1 << 32, first(2, 8)), (0, later(1))]);
        fragments.resolve(&mut batch);
        assert_eq!(ports(&batch), [None, None, Some(7)]);
        fragments.resolve(&mut at(&vec![(1, first(2, 8)); 200]));
        let mut batch = at(&[(1, later(1))]);
        fragments.resolve(&mut batch);
        assert_eq!(ports(&batch), [Some(7)]);
        assert_eq!(fragments.counts().evicted, 0);
    }

    #[test]
    fn datagrams_of_different_tunnels_and_vlans_are_different() {
        let within =
            |vlan: u16, frame: Frame| (0, Frame::ethernet().vlan(vlan).payload(&frame.bytes()));
        let ip = |frame: (i64, Frame)| (frame.0, frame.1.put(2, &[8, 0]));
        let frames = [within(1, first(1, 7)), within(2, first(1, 8)), within(1, later(1))].map(ip);
        let mut batch = at(&frames);
        batch.link = LinkType::ETHERNET;
        Fragments::default().resolve(&mut batch);
        assert_eq!(ports(&batch), [None, None, Some(7)]);
    }

    /// The headers that a datagram is within were hashed with a hash that everybody knows: a sender
    /// could choose the addresses of a tunnel so that its fragments got the ports of another
    /// tunnel's.
    #[test]
    fn fragments_of_a_tunnel_made_to_collide_get_no_ports_of_another() {
        let fold = |h: u64, word: u64| {
            let m = u128::from(h ^ word) * 0xd6e8_feb8_6659_fd93;
            m as u64 ^ (m >> 64) as u64
        };
        // No tag: two absent values before the addresses.
        let before = [u64::MAX; 4].into_iter().fold(0x9e37_79b9_7f4a_7c15, fold);
        let (high, low) = ([0x2001_0db8_0000_0001, 0x2001_0db8_0000_0002], 7);
        let states = high.map(|high| fold(before, high));
        let source = |high: u64, low: u64| Ipv6Addr::from(u128::from(high) << 64 | u128::from(low));
        let mine = source(high[0], low);
        let theirs = source(high[1], low ^ states[0] ^ states[1]);
        let within = |source: Ipv6Addr| Frame::raw().ipv6(source, Ipv6Addr::LOCALHOST).ipv4(A, B);
        let first = |source| {
            let ip = within(source).id(1).fragment(0, true);
            (0, ip.udp(7, 53).put(udp::LENGTH, &[9, 0]))
        };
        let later = |source| {
            let ip = within(source).id(1).fragment(1480, false);
            (0, ip.put(ipv4::PROTOCOL, &[17]).payload(&[7; 40]))
        };
        let mut batch = at(&[first(mine), later(theirs), later(mine)]);
        batch.headers = Headers::INNER;
        Fragments::default().resolve(&mut batch);
        assert_eq!(ports(&batch), [None, None, Some(7)]);
    }

    #[test]
    fn an_authentication_header_changes_no_protocol() {
        let body = [0; 22];
        let (of, ah) = (weir_packet::ipv4::PROTOCOL, weir_packet::ipv6::AUTHENTICATION);
        let first = Frame::raw().ipv4(A, B).id(1).fragment(0, true).extension(ah, &body).udp(7, 8);
        let mut batch = at(&[(0, first), (0, later(1).put(of, &[ah]))]);
        Fragments::default().resolve(&mut batch);
        assert_eq!(ports(&batch), [None, Some(7)]);
    }

    #[test]
    fn whole_packets_cost_nothing_and_get_nothing() {
        let whole = Frame::raw().ipv4(A, B).udp(1, 2).bytes();
        let mut batch = batch(LinkType::RAW, &[(whole.clone(), whole.len() as u32)]);
        let mut fragments = Fragments::default();
        fragments.resolve(&mut batch);
        assert!(batch.with_ports().is_empty() && fragments.firsts.is_empty());
    }

    proptest! {
        /// Cut into batches anyhow, it is what looking back over all packets gives.
        #[test]
        fn any_cut_into_batches_gives_what_looking_back_gives(
            traffic in proptest::collection::vec((any::<bool>(), 0u16..4, 0i64..40), 1..60),
            cut in 1usize..20,
        ) {
            let mut now = 0;
            let frame = |(n, &(is_first, id, step)): (usize, &(bool, u16, i64))| {
                now += step;
                (now, if is_first { first(id, 1000 + n as u16) } else { later(id) })
            };
            let frames: Vec<(i64, Frame)> = traffic.iter().enumerate().map(frame).collect();
            let looking_back = |n: usize| {
                let (is_first, id, _) = traffic[n];
                let before = (0..n).rev().find(|&m| traffic[m].0 && traffic[m].1 == id)?;
                let fresh = frames[n].0 - frames[before].0 <= 60;
                (!is_first && fresh).then_some(1000 + before as u16)
            };
            let want: Vec<_> = (0..frames.len()).map(looking_back).collect();
            let (mut fragments, mut got) = (Fragments::default(), Vec::new());
            for frames in frames.chunks(cut) {
                let mut batch = at(frames);
                fragments.resolve(&mut batch);
                got.extend(ports(&batch));
            }
            prop_assert_eq!(got, want);
        }
    }
}
