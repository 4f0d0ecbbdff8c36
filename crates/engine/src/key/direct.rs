//! Keys of plain packets, made of their headers' bytes.
//!
//! Almost all packets have the fields of a usual key at fixed places. Of these a key is a few loads
//! and shifts, hashed in the same loop: no column is decoded, nothing is packed part by part. The
//! keys are those that [`super::pack()`] makes of the columns.

use super::{Chosen, Layout};
use crate::expr::Class;
use crate::table::{HashKey, Keys};
use weir_packet::bits::Bits;
use weir_packet::fields::{FieldId, key_by_name};
use weir_packet::limits::BATCH;
use weir_packet::read::{Family, HEADERS, Place, Plain};
use weir_packet::{ipv4, ipv6};

/// Words of the widest key made directly: two IPv6 addresses and one more.
const WORDS_MAX: usize = 5;

/// Loads that one word is made of, at most.
const LOADS_MAX: usize = 3;

/// How the keys of the plain packets of one family are made.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    /// The family.
    pub family: Family,
    /// Which layout they have.
    pub layout: usize,
    kernel: Kernel,
    words: usize,
    loads: Loads,
    /// Presence bits.
    constant: [u64; WORDS_MAX],
    /// In which words IPv6 addresses start.
    addresses: Vec<usize>,
    /// Whether only packets without VLAN tags have such keys.
    untagged: bool,
}

type Loads = [[Load; LOADS_MAX]; WORDS_MAX];

/// The loops there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kernel {
    /// The loop that follows the list of loads.
    Loads,
    /// `flow`, IPv4.
    Flow4,
    /// `flow`, IPv6.
    Flow6,
    /// One IPv4 address that starts at this byte.
    Address4(usize),
    /// `conn`, IPv4.
    Conn4,
    /// `hosts`, IPv4.
    Hosts4,
    /// `conn`, IPv6.
    Conn6,
    /// `hosts`, IPv6.
    Hosts6,
}

/// The first `bits` bits from a byte on, to be shifted to the left; 0 bits for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Load {
    at: usize,
    bits: u32,
    left: u32,
}

const fn load(at: usize, bits: u32, left: u32) -> Load {
    Load { at, bits, left }
}

const NONE: Load = load(0, 0, 0);
const PORTS4: usize = ipv4::HEADER_LEN;
const PORTS6: usize = ipv6::HEADER_LEN;

/// An address pair; then ports and protocol.
const FLOW4: [[Load; LOADS_MAX]; 2] = [
    [load(ipv4::SOURCE, 64, 0), NONE, NONE],
    [load(ipv4::PROTOCOL, 8, 24), load(PORTS4, 32, 32), NONE],
];

const FLOW6: [[Load; LOADS_MAX]; 5] = [
    [load(ipv6::SOURCE, 64, 0), NONE, NONE],
    [load(ipv6::SOURCE + 8, 64, 0), NONE, NONE],
    [load(ipv6::DESTINATION, 64, 0), NONE, NONE],
    [load(ipv6::DESTINATION + 8, 64, 0), NONE, NONE],
    [load(ipv6::NEXT_HEADER, 8, 24), load(PORTS6, 32, 32), NONE],
];

impl Load {
    #[inline(always)]
    fn of(self, headers: &[u8; HEADERS]) -> u64 {
        let mask = if self.bits == 0 { 0 } else { u64::MAX };
        (be64(headers, self.at) & mask) >> ((64 - self.bits) & 63) << self.left
    }
}

#[inline(always)]
fn be64(headers: &[u8; HEADERS], at: usize) -> u64 {
    u64::from_be_bytes(headers[at..at + 8].try_into().expect("eight bytes"))
}

#[inline(always)]
fn be32(headers: &[u8; HEADERS], at: usize) -> u64 {
    u32::from_be_bytes(headers[at..at + 4].try_into().expect("four bytes")).into()
}

impl Direct {
    /// For keys of these packet fields: one for each family whose plain packets have them at fixed
    /// places.
    pub(crate) fn new(fields: &[FieldId], layouts: &[Layout]) -> Vec<Direct> {
        let families = [Family::Four, Family::Six];
        families.into_iter().filter_map(|family| Direct::of(fields, layouts, family)).collect()
    }

    fn of(fields: &[FieldId], layouts: &[Layout], family: Family) -> Option<Direct> {
        let layout = match family {
            Family::Six if layouts[0].classes.contains(&Class::Pair) => 1,
            _ => 0,
        };
        let Layout { places, words, .. } = &layouts[layout];
        if fields.is_empty() || *words > WORDS_MAX {
            return None;
        }
        // A canonical key is made of the loads of its two directions, which are put in order.
        let is = |name: &str| key_by_name(name).is_some_and(|k| k.fields == fields);
        let (conn, hosts) = (is("conn"), is("hosts"));
        let directed: &[FieldId] = match (conn, hosts) {
            (true, _) => key_by_name("flow").expect("it is in the catalogue").fields,
            (_, true) => &[FieldId::named("ip.src"), FieldId::named("ip.dst")],
            _ => fields,
        };
        let (mut loads, mut addresses) = (Vec::new(), Vec::new());
        let (mut constant, mut untagged) = ([0; WORDS_MAX], false);
        for (place, &field) in places.iter().zip(directed) {
            let Place::At(at, bits) = family.place(field)? else {
                // An absent part is packed as zeros.
                untagged = true;
                continue;
            };
            if bits == 128 {
                loads.push((place.word, load(at, 64, 0)));
                loads.push((place.word + 1, load(at + 8, 64, 0)));
                addresses.push(place.word);
            } else {
                loads.push((place.word, load(at, bits, place.shift)));
            }
            if let Some((word, shift)) = place.present {
                constant[word] |= 1 << shift;
            }
        }
        let loads = merged(loads)?;
        let kernel = kernel(family, &loads[..*words], conn, hosts)?;
        Some(Direct { family, layout, kernel, words: *words, loads, constant, addresses, untagged })
    }

    /// Which of some plain packets have their keys made so.
    pub(crate) fn rows(&self, plain: &Plain<'_>) -> Bits {
        if self.untagged && plain.tagged() { Bits::NONE } else { plain.rows() }
    }

    /// Makes the keys of some plain packets, hashes them with `hash_key`, and hands each hash to
    /// `ask`, which asks for what looking it up needs first. `false`, having made no key that
    /// counts, if an address may be one of IPv4 in the form of IPv6: these have another layout.
    pub(crate) fn pack(
        &self,
        plain: &Plain<'_>,
        rows: Chosen<'_>,
        keys: &mut Keys,
        hash_key: HashKey,
        ask: impl Fn(u64) + Copy,
    ) -> bool {
        keys.len = rows.positions.len();
        keys.hash_key = hash_key;
        let c = &self.constant;
        match self.kernel {
            Kernel::Flow4 => each(plain, rows, keys, ask, |h| {
                [be64(h, ipv4::SOURCE), c[1] | ports_and_protocol(h, PORTS4, ipv4::PROTOCOL)]
            }),
            Kernel::Conn4 => each(plain, rows, keys, ask, |h| {
                let (pair, ports) = (be64(h, ipv4::SOURCE), be32(h, PORTS4));
                let source = (pair >> 32) << 16 | ports >> 16;
                let destination = (pair & 0xffff_ffff) << 16 | ports & 0xffff;
                let forward = source <= destination;
                let pair = if forward { pair } else { pair.rotate_left(32) };
                let ports = if forward { ports } else { (ports as u32).rotate_left(16).into() };
                [pair, c[1] | ports << 32 | u64::from(h[ipv4::PROTOCOL]) << 24]
            }),
            Kernel::Hosts4 => each(plain, rows, keys, ask, |h| {
                let pair = be64(h, ipv4::SOURCE);
                [pair.min(pair.rotate_left(32)), c[1]]
            }),
            Kernel::Address4(at) => {
                each(plain, rows, keys, ask, |h| [c[0] | be32(h, at) << 32]);
            }
            Kernel::Flow6 => each(plain, rows, keys, ask, |h| {
                let address = |at| be64(h, ipv6::SOURCE + at);
                let last = c[4] | ports_and_protocol(h, PORTS6, ipv6::NEXT_HEADER);
                [address(0), address(8), address(16), address(24), last]
            }),
            Kernel::Conn6 => each(plain, rows, keys, ask, |h| {
                let [a, b] = addresses6(h);
                let last = c[4] | ports_and_protocol(h, PORTS6, ipv6::NEXT_HEADER);
                if (a, last >> 48) <= (b, last >> 32 & 0xffff) {
                    [a[0], a[1], b[0], b[1], last]
                } else {
                    [b[0], b[1], a[0], a[1], swap_ports(last)]
                }
            }),
            Kernel::Hosts6 => each(plain, rows, keys, ask, |h| {
                let [a, b] = addresses6(h);
                let (a, b) = (a.min(b), a.max(b));
                [a[0], a[1], b[0], b[1], c[4]]
            }),
            Kernel::Loads => match self.words {
                1 => self.pack_loads::<1>(plain, rows, keys, ask),
                2 => self.pack_loads::<2>(plain, rows, keys, ask),
                3 => self.pack_loads::<3>(plain, rows, keys, ask),
                4 => self.pack_loads::<4>(plain, rows, keys, ask),
                _ => self.pack_loads::<5>(plain, rows, keys, ask),
            },
        }
        let n = keys.len;
        !self.addresses.iter().any(|&w| keys.words[w][..n].contains(&0))
    }

    fn pack_loads<const W: usize>(
        &self,
        plain: &Plain<'_>,
        rows: Chosen<'_>,
        keys: &mut Keys,
        ask: impl Fn(u64) + Copy,
    ) {
        let loads: &[[Load; LOADS_MAX]; W] = self.loads.first_chunk().expect("at most five words");
        each::<W>(
            plain,
            rows,
            keys,
            ask,
            #[inline(always)]
            |h| {
                let mut key = [0; W];
                for ((word, loads), constant) in key.iter_mut().zip(loads).zip(&self.constant) {
                    *word = loads[0].of(h) | constant;
                    // Most words need one load or two.
                    if loads[1].bits != 0 {
                        *word |= loads[1].of(h) | loads[2].of(h);
                    }
                }
                key
            },
        );
    }
}

/// Source and destination of an IPv6 header, each as its two words.
#[inline(always)]
fn addresses6(h: &[u8; HEADERS]) -> [[u64; 2]; 2] {
    let word = |at| be64(h, ipv6::SOURCE + at);
    [[word(0), word(8)], [word(16), word(24)]]
}

#[inline(always)]
fn ports_and_protocol(h: &[u8; HEADERS], ports: usize, protocol: usize) -> u64 {
    be32(h, ports) << 32 | u64::from(h[protocol]) << 24
}

/// Ports that change places, in the high half of a word.
#[inline(always)]
fn swap_ports(last: u64) -> u64 {
    u64::from(((last >> 32) as u32).rotate_left(16)) << 32 | last & 0xffff_ffff
}

/// The loop that all kernels share.
#[inline(always)]
fn each<const W: usize>(
    plain: &Plain<'_>,
    rows: Chosen<'_>,
    keys: &mut Keys,
    ask: impl Fn(u64) + Copy,
    words: impl Fn(&[u8; HEADERS]) -> [u64; W],
) {
    let Keys { words: planes, hashes, hash_key, .. } = keys;
    let hash_key = *hash_key;
    let hashed = |key: [u64; W]| {
        let h = hash_key.hash(key);
        ask(h);
        h
    };
    let planes: &mut [[u64; BATCH]; W] = (&mut planes[..]).try_into().expect("so many words");
    let offsets = plain.offsets();
    let n = rows.positions.len().min(BATCH);
    // Two loops: most batches are taken whole.
    if rows.set == Bits::first(n)
        && let Some(offsets) = offsets.get(..n)
    {
        each_of(plain, offsets, |&offset| offset, hashes, planes, hashed, words);
    } else {
        let offset = |&i: &u16| offsets.get(usize::from(i)).copied().unwrap_or(u32::MAX);
        each_of(plain, &rows.positions[..n], offset, hashes, planes, hashed, words);
    }
}

#[inline(always)]
fn each_of<T, const W: usize>(
    plain: &Plain<'_>,
    frames: &[T],
    offset: impl Fn(&T) -> u32,
    hashes: &mut [u64; BATCH],
    planes: &mut [[u64; BATCH]; W],
    hashed: impl Fn([u64; W]) -> u64,
    words: impl Fn(&[u8; HEADERS]) -> [u64; W],
) {
    for j in 0..frames.len().min(BATCH) {
        let Some(headers) = plain.headers(offset(&frames[j])) else {
            debug_assert!(false, "a plain packet has its headers in memory, see `Plain`");
            continue;
        };
        let key = words(headers);
        hashes[j] = hashed(key);
        for (plane, word) in planes.iter_mut().zip(key) {
            plane[j] = word;
        }
    }
}

/// Loads by word, those that stand side by side in both packet and key as one. `None` if there
/// are too many.
fn merged(mut loads: Vec<(usize, Load)>) -> Option<Loads> {
    loads.sort_by_key(|(word, l)| (*word, l.at));
    let mut out = Loads::default();
    let mut used = [0; WORDS_MAX];
    for (word, next) in loads {
        if used[word] > 0 {
            let last = &mut out[word][used[word] - 1];
            let side_by_side = last.at * 8 + last.bits as usize == next.at * 8;
            if side_by_side && next.left + next.bits == last.left {
                (last.bits, last.left) = (last.bits + next.bits, next.left);
                continue;
            }
        }
        *out[word].get_mut(used[word])? = next;
        used[word] += 1;
    }
    Some(out)
}

/// The loop for these loads; canonical keys have none but their own.
fn kernel(family: Family, words: &[[Load; LOADS_MAX]], conn: bool, hosts: bool) -> Option<Kernel> {
    let pair = [load(ipv4::SOURCE, 64, 0), NONE, NONE];
    match (family, words) {
        (Family::Four, words) if conn => (words == FLOW4).then_some(Kernel::Conn4),
        (Family::Four, [first, second]) if hosts => {
            (*first == pair && *second == [NONE; LOADS_MAX]).then_some(Kernel::Hosts4)
        }
        (Family::Six, words) if conn => (words == FLOW6).then_some(Kernel::Conn6),
        (Family::Six, [addresses @ .., last]) if hosts => {
            (addresses == &FLOW6[..4] && *last == [NONE; LOADS_MAX]).then_some(Kernel::Hosts6)
        }
        _ if conn || hosts => None,
        (Family::Four, words) if words == FLOW4 => Some(Kernel::Flow4),
        (Family::Six, words) if words == FLOW6 => Some(Kernel::Flow6),
        (Family::Four, [[Load { at, bits: 32, left: 32 }, NONE, NONE]]) => {
            Some(Kernel::Address4(*at))
        }
        _ => Some(Kernel::Loads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyPart, Pool, pack};
    use crate::rows::Arena;
    use proptest::prelude::*;
    use weir_packet::bits::Bits;
    use weir_packet::column::Column;
    use weir_packet::craft::{Frame, batch};
    use weir_packet::read::read_field;
    use weir_packet::source::LinkType;
    use weir_packet::walk::{Layers, classify};
    use weir_plan::Expr;

    const HASH_KEY: HashKey = HashKey::new(1, 2);

    const FIELDS: [FieldId; 10] = [
        FieldId::named("ip.src"),
        FieldId::named("ip.dst"),
        FieldId::named("sport"),
        FieldId::named("dport"),
        FieldId::named("ip.proto"),
        FieldId::named("ip.ttl"),
        FieldId::named("ip.len"),
        FieldId::named("ip.id"),
        FieldId::named("vlan.id"),
        FieldId::named("icmp.type"),
    ];

    /// A frame of few different endpoints, so that both orders and equal ones occur.
    fn frame(kind: u8, a: u8, b: u8, ports: (u8, u8)) -> Frame {
        let (sport, dport) = (u16::from(ports.0 % 3) << 8, u16::from(ports.1 % 3) << 8);
        let (a, b) = ([10, a % 3, 0, 1], [10, b % 3, 0, 1]);
        let six = |x: [u8; 4]| {
            let mut v6 = [0u8; 16];
            (v6[0], v6[12], v6[13]) = (0x20, x[0], x[1]);
            v6
        };
        let frame = Frame::ethernet();
        let frame = if kind & 4 == 0 { frame } else { frame.vlan(5) };
        let frame = if kind & 1 == 0 { frame.ipv4(a, b) } else { frame.ipv6(six(a), six(b)) };
        let frame = frame.ttl(kind);
        if kind & 2 == 0 { frame.tcp(sport, dport) } else { frame.udp(sport, dport) }
    }

    /// The keys of a family's plain packets, made directly and made of columns.
    fn both_ways(
        fields: &[FieldId],
        frames: &[Vec<u8>],
        family: Family,
    ) -> Option<[Vec<Vec<u64>>; 2]> {
        let parts: Vec<KeyPart> = fields.iter().map(|&id| KeyPart::of(&Expr::field(id))).collect();
        let (narrow, wide) = Layout::both(&parts);
        let layouts: Vec<Layout> = [Some(narrow), wide].into_iter().flatten().collect();
        let direct = Direct::of(fields, &layouts, family)?;
        let layout = &layouts[direct.layout];
        let frames: Vec<_> = frames.iter().map(|f| (f.clone(), f.len() as u32)).collect();
        let (frames, mut layers) = (batch(LinkType::ETHERNET, &frames), Layers::new());
        classify(&frames, &mut layers);
        let plain = Plain::new(&frames, &layers, family);
        let rows = direct.rows(&plain);
        let positions: Vec<u16> = rows.iter().map(|i| i as u16).collect();
        let rows = Chosen { set: rows, positions: &positions };
        let mut keys = Keys::new(layout.words);
        assert!(direct.pack(&plain, rows, &mut keys, HASH_KEY, |_| {}));
        let all = |keys: &Keys| -> Vec<Vec<u64>> {
            (0..keys.len)
                .map(|j| keys.words.iter().map(|w| w[j]).chain([keys.hashes[j]]).collect())
                .collect()
        };
        let made = all(&keys);
        let columns: Vec<Column> = fields
            .iter()
            .map(|&id| {
                let mut column = Column::new(id.info().ty.repr());
                read_field(id, &frames, &layers, Bits::ALL, &mut column);
                column
            })
            .collect();
        let columns: Vec<&Column> = columns.iter().collect();
        pack(layout, &columns, rows, &mut Pool::default(), &Arena::default(), &mut keys);
        keys.hash(HASH_KEY);
        Some([made, all(&keys)])
    }

    proptest! {
        #[test]
        fn keys_are_those_of_columns(
            packets in proptest::collection::vec(any::<(u8, u8, u8, (u8, u8))>(), 1..60),
            chosen in proptest::sample::subsequence(FIELDS.to_vec(), 1..6).prop_shuffle(),
        ) {
            let bytes = |&(kind, a, b, ports)| frame(kind, a, b, ports).bytes();
            let mut frames: Vec<Vec<u8>> = packets.iter().map(bytes).collect();
            // Memory goes on behind the frames, or the last would not be plain.
            frames.push(vec![0; 100]);
            let named = ["flow", "conn", "hosts"];
            let named = named.map(|name| key_by_name(name).unwrap().fields.to_vec());
            let single = [FieldId::named("ip.src"), FieldId::named("ip.dst")].map(|id| vec![id]);
            let mut made = 0;
            for fields in named.into_iter().chain(single).chain([chosen]) {
                for family in [Family::Four, Family::Six] {
                    if let Some([direct, packed]) = both_ways(&fields, &frames, family) {
                        prop_assert_eq!(direct, packed, "{:?} {:?}", fields, family);
                        made += 1;
                    }
                }
            }
            prop_assert!(made >= 10, "{made} keys can be made directly");
        }
    }

    #[test]
    fn the_usual_keys_have_their_own_loops() {
        let kernel = |fields: &[FieldId], family| {
            let part = |&id: &FieldId| KeyPart::of(&Expr::field(id));
            let (narrow, wide) = Layout::both(&fields.iter().map(part).collect::<Vec<_>>());
            let layouts: Vec<Layout> = [Some(narrow), wide].into_iter().flatten().collect();
            Direct::of(fields, &layouts, family).map(|d| d.kernel)
        };
        let named = |name: &str, family| kernel(key_by_name(name).unwrap().fields, family);
        assert_eq!(named("flow", Family::Four), Some(Kernel::Flow4));
        assert_eq!(named("flow", Family::Six), Some(Kernel::Flow6));
        assert_eq!(named("conn", Family::Four), Some(Kernel::Conn4));
        assert_eq!(named("conn", Family::Six), Some(Kernel::Conn6));
        assert_eq!(named("hosts", Family::Four), Some(Kernel::Hosts4));
        assert_eq!(named("hosts", Family::Six), Some(Kernel::Hosts6));
        assert_eq!(
            kernel(&[FieldId::named("ip.dst")], Family::Four),
            Some(Kernel::Address4(ipv4::DESTINATION))
        );
        assert_eq!(
            kernel(&[FieldId::named("ip.ttl"), FieldId::named("dport")], Family::Six),
            Some(Kernel::Loads)
        );
        assert_eq!(kernel(&[FieldId::named("tcp.flags")], Family::Four), None);
    }
}
