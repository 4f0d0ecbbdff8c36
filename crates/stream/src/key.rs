//! Keys that items can be grouped by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_engine::table::HashKey;

/// A key that items can be grouped by: small, comparable, hashed by its words.
///
/// Numbers, addresses, [`Flow`](crate::Flow), and pairs and triples of keys are keys. Another type
/// becomes one by naming what is hashed:
///
/// ```
/// use weir_stream::{HashKey, Key};
///
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
/// struct Port { vlan: u16, number: u16 }
///
/// impl Key for Port {
///     type Short = Port;
///     fn short(&self) -> Option<Port> { Some(*self) }
///     fn whole(short: Port) -> Port { short }
///     fn hash(&self, with: HashKey) -> u64 { (self.vlan, self.number).hash(with) }
/// }
/// ```
///
/// Tables keep most keys in a short form, so that a key and its value share a cache line: a flow
/// of IPv4 takes 16 bytes, one of IPv6 takes 40.
pub trait Key: Copy + Ord {
    /// The form in which most keys are kept; the type itself where nothing shorter will do.
    type Short: Copy + Eq + Default;

    /// The short form, or `None` for a key that has none. Keys are equal if both have a short form
    /// and these are equal, or neither has one and the keys are equal.
    fn short(&self) -> Option<Self::Short>;

    /// The key of a short form.
    fn whole(short: Self::Short) -> Self;

    /// The hash of the key [made with](HashKey::hash) a secret one, so that nobody who sends
    /// packets knows which keys fall into one place of a table. Equal keys have equal hashes, and
    /// all of what tells keys apart goes into them.
    fn hash(&self, with: HashKey) -> u64;

    /// Sorts most keys without looking at them: the smaller one of two keys has no larger rank.
    /// Where ranks are equal the keys are compared.
    fn rank(&self) -> u64 {
        0
    }
}

macro_rules! word_keys {
    ($($t:ty),*) => { $(
        impl Key for $t {
            type Short = $t;

            #[inline(always)]
            fn short(&self) -> Option<$t> {
                Some(*self)
            }

            #[inline(always)]
            fn whole(short: $t) -> $t {
                short
            }

            #[inline(always)]
            fn hash(&self, with: HashKey) -> u64 {
                with.hash([*self as u64])
            }

            #[inline(always)]
            fn rank(&self) -> u64 {
                // Negative numbers come before the others.
                let signed = <$t>::MIN < <$t>::default();
                *self as u64 ^ (signed as u64) << 63
            }
        }
    )* };
}

word_keys!(u8, u16, u32, u64, i8, i16, i32, i64);

/// Keys that are another key in other clothes.
macro_rules! keys_as {
    ($($t:ty as $word:ty: $to:expr, $from:expr, $rank:expr;)*) => { $(
        impl Key for $t {
            type Short = $word;

            #[inline(always)]
            fn short(&self) -> Option<$word> {
                Some($to(*self))
            }

            #[inline(always)]
            fn whole(short: $word) -> $t {
                $from(short)
            }

            #[inline(always)]
            fn hash(&self, with: HashKey) -> u64 {
                let word = $to(*self) as u128;
                match size_of::<$word>() {
                    16 => with.hash([(word >> 64) as u64, word as u64]),
                    _ => with.hash([word as u64]),
                }
            }

            #[inline(always)]
            fn rank(&self) -> u64 {
                $rank($to(*self))
            }
        }
    )* };
}

keys_as! {
    bool as u8: |b: bool| b as u8, |b: u8| b != 0, |b: u8| b as u64;
    u128 as u128: |n: u128| n, |n: u128| n, |n: u128| (n >> 64) as u64;
    Ipv4Addr as u32: u32::from, Ipv4Addr::from, |n: u32| n as u64;
    Ipv6Addr as u128: u128::from, Ipv6Addr::from, |n: u128| (n >> 64) as u64;
}

impl Key for IpAddr {
    type Short = u32;

    #[inline(always)]
    fn short(&self) -> Option<u32> {
        match self {
            IpAddr::V4(ip) => Some(u32::from(*ip)),
            IpAddr::V6(_) => None,
        }
    }

    #[inline(always)]
    fn whole(short: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(short))
    }

    #[inline(always)]
    fn hash(&self, with: HashKey) -> u64 {
        match self {
            IpAddr::V4(ip) => ip.hash(with),
            IpAddr::V6(ip) => ip.hash(with),
        }
    }

    #[inline(always)]
    fn rank(&self) -> u64 {
        match self {
            IpAddr::V4(ip) => ip.rank(),
            IpAddr::V6(ip) => 1 << 63 | ip.rank() >> 1,
        }
    }
}

macro_rules! tuple_keys {
    ($($part:ident $i:tt),*) => {
        impl<$($part: Key),*> Key for ($($part,)*) {
            type Short = ($($part::Short,)*);

            #[inline(always)]
            fn short(&self) -> Option<Self::Short> {
                Some(($(self.$i.short()?,)*))
            }

            #[inline(always)]
            fn whole(short: Self::Short) -> Self {
                ($($part::whole(short.$i),)*)
            }

            #[inline(always)]
            fn hash(&self, with: HashKey) -> u64 {
                with.hash([$(self.$i.hash(with)),*])
            }

            #[inline(always)]
            fn rank(&self) -> u64 {
                self.0.rank()
            }
        }
    };
}

tuple_keys!(A 0, B 1);
tuple_keys!(A 0, B 1, C 2);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<K: Key + std::fmt::Debug>(a: K, b: K) {
        for k in [a, b] {
            if let Some(short) = k.short() {
                assert_eq!(K::whole(short), k);
                let with = HashKey::new(3, 5);
                assert_eq!(K::whole(short).hash(with), k.hash(with));
            }
        }
        match (a.short(), b.short()) {
            (Some(x), Some(y)) => assert_eq!(x == y, a == b),
            (None, None) => {}
            _ => assert_ne!(a, b),
        }
        if a.rank() < b.rank() {
            assert!(a < b, "{a:?} {b:?}");
        }
    }

    fn ip() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0u32..4).prop_map(|n| IpAddr::V4((n << 30 | n).into())),
            (0u128..4).prop_map(|n| IpAddr::V6((n << 126 | n).into())),
            (0u128..4).prop_map(|n| IpAddr::V6((0xffff << 32 | n).into())),
        ]
    }

    proptest! {
        #[test]
        fn short_forms_and_ranks_agree_with_the_key(
            ips in (ip(), ip(), ip(), ip()), n in (-2i64..3, -2i64..3), b in any::<(bool, bool)>(),
        ) {
            let (a, b, c, d) = (ips.0, ips.1, (n.0, b.0), (n.1, b.1));
            check(a, b);
            check((a, b), (ips.2, ips.3));
            check(c, d);
            check((c.1, a, c.0), (d.1, b, d.0));
            check(c.0 as i8, d.0 as i8);
            check(c.0 as u128, d.0 as u128);
        }
    }
}
