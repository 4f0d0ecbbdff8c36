//! Addresses that are set aside for a purpose, and prefixes.
//!
//! The networks are those of the IANA registries of special-purpose addresses (RFC 6890) as of
//! 2024, and the multicast networks of RFC 5771 and RFC 4291.

use crate::value::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_base::address::{V4, number};

/// A kind of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Block {
    /// Of a private network: RFC 1918, and unique local addresses (RFC 4193).
    Private,
    /// A host's own: 127.0.0.0/8 and ::1.
    Loopback,
    /// Of one link: 169.254.0.0/16 (RFC 3927) and fe80::/10.
    LinkLocal,
    /// Of a group: 224.0.0.0/4 and ff00::/8.
    Multicast,
    /// One host of the Internet: in no network that the registries call not globally reachable,
    /// and no group.
    Global,
}

/// An address as in [`Value::Ip`] and the bits of 128 that belong to the network.
pub type Network = (u128, u8);

const fn v4(a: u8, b: u8, c: u8, d: u8, len: u8) -> Network {
    let bits = u32::from_be_bytes([a, b, c, d]);
    (V4 as u128 | bits as u128, 96 + len)
}

const fn v6(high: u64, low: u64, len: u8) -> Network {
    ((high as u128) << 64 | low as u128, len)
}

const PRIVATE: &[Network] =
    &[v4(10, 0, 0, 0, 8), v4(172, 16, 0, 0, 12), v4(192, 168, 0, 0, 16), v6(0xfc00 << 48, 0, 7)];

const LOOPBACK: &[Network] = &[v4(127, 0, 0, 0, 8), v6(0, 1, 128)];

const LINK_LOCAL: &[Network] = &[v4(169, 254, 0, 0, 16), v6(0xfe80 << 48, 0, 10)];

const MULTICAST: &[Network] = &[v4(224, 0, 0, 0, 4), v6(0xff00 << 48, 0, 8)];

/// Addresses that are not reached from everywhere, besides the above.
const LOCAL: &[Network] = &[
    v4(0, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(240, 0, 0, 0, 4),
    v6(0, 0, 128),
    v6(0x0064_ff9b_0001_0000, 0, 48),
    v6(0x0100 << 48, 0, 64),
    v6(0x2001 << 48, 0, 23),
    v6(0x2001_0db8_0000_0000, 0, 32),
    v6(0x3fff << 48, 0, 20),
    v6(0x5f00 << 48, 0, 16),
];

/// Networks within those that are reached from everywhere all the same.
const REACHED: &[Network] = &[
    v4(192, 0, 0, 9, 32),
    v4(192, 0, 0, 10, 32),
    v6(0x2001_0001_0000_0000, 1, 128),
    v6(0x2001_0001_0000_0000, 2, 128),
    v6(0x2001_0001_0000_0000, 3, 128),
    v6(0x2001_0003_0000_0000, 0, 32),
    v6(0x2001_0004_0112_0000, 0, 48),
    v6(0x2001_0020_0000_0000, 0, 28),
    v6(0x2001_0030_0000_0000, 0, 28),
];

impl Block {
    /// The networks that the kind consists of; for [`Block::Global`] `None`: it is defined by what
    /// it is not.
    pub fn networks(self) -> Option<&'static [Network]> {
        match self {
            Block::Private => Some(PRIVATE),
            Block::Loopback => Some(LOOPBACK),
            Block::LinkLocal => Some(LINK_LOCAL),
            Block::Multicast => Some(MULTICAST),
            Block::Global => None,
        }
    }

    /// Whether an address, as in [`Value::Ip`], is of the kind.
    pub fn holds(self, a: u128) -> bool {
        let within = |all: &[Network]| all.iter().any(|n| contains(*n, a));
        match self.networks() {
            Some(networks) => within(networks),
            None => {
                let local = [PRIVATE, LOOPBACK, LINK_LOCAL, MULTICAST, LOCAL];
                within(REACHED) || !local.iter().any(|networks| within(networks))
            }
        }
    }

    /// The ranges of addresses of the kind, both ends included: disjoint and ascending.
    pub fn ranges(self) -> Vec<(u128, u128)> {
        let lists = [PRIVATE, LOOPBACK, LINK_LOCAL, MULTICAST, LOCAL, REACHED];
        let all = self.networks().map_or(lists.concat(), <[Network]>::to_vec);
        // Where any network starts or ends, the answer may change; nowhere else.
        let mut starts: Vec<u128> = vec![0];
        for (first, last) in all.into_iter().flat_map(ranges) {
            starts.push(first);
            starts.extend(last.checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut out: Vec<(u128, u128)> = Vec::new();
        for (i, &first) in starts.iter().enumerate() {
            let last = starts.get(i + 1).map_or(u128::MAX, |next| next - 1);
            if !self.holds(first) {
                continue;
            }
            match out.last_mut() {
                Some(range) if range.1.checked_add(1) == Some(first) => range.1 = last,
                _ => out.push((first, last)),
            }
        }
        out
    }
}

/// The first and the last IPv4 address, as in [`Value::Ip`].
pub const IPV4: (u128, u128) = (V4 as u128, V4 as u128 | u32::MAX as u128);

/// Whether a network holds an address. One of IPv6 holds no IPv4 address, though these stand among
/// its numbers.
pub fn contains((network, len): Network, a: u128) -> bool {
    let is_ipv4 = (IPV4.0..=IPV4.1).contains(&a);
    (len >= 96 || !is_ipv4) && (a ^ network).leading_zeros() >= len.into()
}

/// The addresses of a network, as ranges in order.
pub fn ranges((network, len): Network) -> impl Iterator<Item = (u128, u128)> {
    let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
    let (first, last) = (network & !host, network | host);
    let around = len < 96 && first < IPV4.0 && IPV4.1 <= last;
    let parts = match around {
        true => [(first, IPV4.0 - 1), (IPV4.1.saturating_add(1), last)],
        false => [(first, last), (1, 0)],
    };
    parts.into_iter().filter(|(first, last)| first <= last)
}

/// The mask of a prefix of `len` bits of 128.
pub fn mask(len: u8) -> u128 {
    !u128::MAX.checked_shr(len.into()).unwrap_or(0)
}

/// An address, as in [`Value::Ip`], with only its first bits: `v4` (of 32) of an IPv4 address, `v6`
/// (of 128) of an IPv6 address.
pub fn prefix(a: u128, v4: u8, v6: u8) -> u128 {
    let kept = match Value::to_ip(a) {
        IpAddr::V4(a) => {
            let host = u32::MAX.checked_shr(v4.into()).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() & !host))
        }
        IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() & mask(v6))),
    };
    number(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> u128 {
        match Value::ip(text.parse().expect("an address")) {
            Value::Ip(bits) => bits,
            other => unreachable!("{other}"),
        }
    }

    #[test]
    fn addresses_are_of_their_kind() {
        use Block::{Global, LinkLocal, Loopback, Multicast, Private};
        for (kind, inside, outside) in [
            (Private, "172.31.255.255", "172.32.0.0"),
            (Private, "fd00::1", "fe00::"),
            (Loopback, "127.8.9.10", "128.0.0.0"),
            (Loopback, "::1", "::2"),
            (LinkLocal, "169.254.0.1", "169.253.255.255"),
            (LinkLocal, "febf::1", "fec0::"),
            (Multicast, "239.255.255.255", "240.0.0.0"),
            (Multicast, "ff02::1", "feff::"),
            (Global, "8.8.8.8", "10.0.0.1"),
            (Global, "192.0.0.9", "192.0.0.8"),
            (Global, "100.128.0.0", "100.64.0.1"),
            (Global, "2606:4700::1111", "2001:db8::1"),
            (Global, "2001:4:112::1", "2001:2::1"),
            (Global, "9.255.255.255", "255.255.255.255"),
            (Global, "2001:200::", "ff0e::1"),
        ] {
            assert!(kind.holds(ip(inside)), "{kind:?} {inside}");
            assert!(!kind.holds(ip(outside)), "{kind:?} {outside}");
        }
    }

    #[test]
    fn prefixes_are_those_of_their_version() {
        for (a, v4, v6, kept) in [
            ("192.0.2.129", 24, 64, "192.0.2.0"),
            ("192.0.2.129", 0, 64, "0.0.0.0"),
            ("192.0.2.129", 32, 0, "192.0.2.129"),
            ("192.0.2.129", 48, 48, "192.0.2.129"),
            ("2001:db8:1:2:3::4", 24, 64, "2001:db8:1:2::"),
            ("2001:db8::1", 24, 0, "::"),
            ("2001:db8::1", 0, 128, "2001:db8::1"),
        ] {
            assert_eq!(prefix(ip(a), v4, v6), ip(kept), "{a}");
        }
    }

    proptest! {
        #[test]
        fn ranges_say_the_same(a: u128, near in 0usize..40, off in -2i128..3, kind in 0usize..5) {
            let kinds =
                [Block::Private, Block::Loopback, Block::LinkLocal, Block::Multicast, Block::Global];
            let kind = kinds[kind];
            let ranges = kind.ranges();
            let edge = ranges[near % ranges.len()];
            for a in [a, edge.0.wrapping_add_signed(off), edge.1.wrapping_add_signed(off)] {
                let within = ranges.iter().any(|&(first, last)| (first..=last).contains(&a));
                prop_assert_eq!(within, kind.holds(a));
            }
        }
    }
}
