//! The flow that a packet belongs to, as a key.

use crate::key::Key;
use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use weir_engine::table::HashKey;
use weir_plan::Value;

/// A 5-tuple. Ordered by source, destination, source port, destination port, protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow(Form);

/// Both addresses are IPv4 in [`Form::V4`], and in no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Source, destination, source port, destination port, protocol, from high bits to low; the
    /// addresses have 32 bits each, and 24 bits are left above the ports.
    V4(u128),
    /// Addresses as in queries; ports and protocol as above.
    V6(u128, u128, u64),
}

/// The bits that an IPv4 address has above its own 32.
const MAPPED: u128 = 0xffff;

impl Flow {
    /// Of IPv4: source above destination, and source port, destination port and protocol.
    #[inline(always)]
    pub(super) fn v4(addresses: u64, ends: u64) -> Flow {
        Flow(Form::V4((addresses as u128) << 64 | ends as u128))
    }

    /// Of addresses as in queries.
    #[inline(always)]
    pub(super) fn new(src: u128, dst: u128, ends: u64) -> Flow {
        if src >> 32 == MAPPED && dst >> 32 == MAPPED {
            return Flow::v4((src as u64) << 32 | dst as u32 as u64, ends);
        }
        Flow(Form::V6(src, dst, ends))
    }

    fn parts(&self) -> (u128, u128, u64) {
        match self.0 {
            Form::V4(all) => {
                (MAPPED << 32 | all >> 96, MAPPED << 32 | (all >> 64 & 0xffff_ffff), all as u64)
            }
            Form::V6(src, dst, ends) => (src, dst, ends),
        }
    }

    /// Source address.
    pub fn src(&self) -> IpAddr {
        Value::to_ip(self.parts().0)
    }

    /// Destination address.
    pub fn dst(&self) -> IpAddr {
        Value::to_ip(self.parts().1)
    }

    /// Source port.
    pub fn sport(&self) -> u16 {
        (self.parts().2 >> 24) as u16
    }

    /// Destination port.
    pub fn dport(&self) -> u16 {
        (self.parts().2 >> 8) as u16
    }

    /// Protocol number.
    pub fn proto(&self) -> u8 {
        self.parts().2 as u8
    }
}

impl Ord for Flow {
    fn cmp(&self, other: &Flow) -> Ordering {
        match (self.0, other.0) {
            (Form::V4(a), Form::V4(b)) => a.cmp(&b),
            _ => self.parts().cmp(&other.parts()),
        }
    }
}

impl PartialOrd for Flow {
    fn partial_cmp(&self, other: &Flow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for Flow {
    type Short = u128;

    #[inline(always)]
    fn short(&self) -> Option<u128> {
        match self.0 {
            Form::V4(all) => Some(all),
            Form::V6(..) => None,
        }
    }

    #[inline(always)]
    fn whole(short: u128) -> Flow {
        Flow(Form::V4(short))
    }

    #[inline(always)]
    fn hash(&self, with: HashKey) -> u64 {
        match self.0 {
            Form::V4(all) => with.hash([(all >> 64) as u64, all as u64]),
            Form::V6(src, dst, ends) => {
                with.hash([(src >> 64) as u64, src as u64, (dst >> 64) as u64, dst as u64, ends])
            }
        }
    }

    #[inline(always)]
    fn rank(&self) -> u64 {
        // From above: whether the source is beyond IPv4, whether it is IPv4, and then its highest
        // bits; or of IPv4 all of them, and as much of the destination in the same manner.
        let of_v4 = |src: u128, dst: u64| 1 << 62 | ((src as u64) << 30) | dst;
        match self.0 {
            Form::V4(all) => of_v4(all >> 96, 1 << 28 | (all >> 68) as u64 & ((1 << 28) - 1)),
            Form::V6(src, dst, _) if src >> 32 == MAPPED => {
                of_v4(src & 0xffff_ffff, if dst >> 32 < MAPPED { 0 } else { 1 << 29 })
            }
            Form::V6(src, ..) if src >> 32 < MAPPED => 0,
            Form::V6(src, ..) => 1 << 63 | (src >> 65) as u64,
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |ip: IpAddr, port| match ip {
            IpAddr::V4(a) => format!("{a}:{port}"),
            IpAddr::V6(a) => format!("[{a}]:{port}"),
        };
        let (src, dst) = (end(self.src(), self.sport()), end(self.dst(), self.dport()));
        write!(f, "{src} > {dst} proto {}", self.proto())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Addresses of both families, near each other.
    fn ip() -> impl Strategy<Value = u128> {
        prop_oneof![
            (0u128..3),
            (0u128..3).prop_map(|n| MAPPED << 32 | n),
            (0u128..3).prop_map(|n| n << 126 | n)
        ]
    }

    proptest! {
        #[test]
        fn orders_and_hashes_by_its_parts(
            a in (ip(), ip(), 0u64..3), b in (ip(), ip(), 0u64..3),
        ) {
            let flows = [a, b].map(|(src, dst, ends)| Flow::new(src, dst, ends));
            prop_assert_eq!(flows.map(|f| f.parts()), [a, b]);
            prop_assert_eq!(flows[0].cmp(&flows[1]), a.cmp(&b));
            prop_assert_eq!(flows[0] == flows[1], a == b);
            for f in flows {
                prop_assert!(f.short().is_none_or(|s| Flow::whole(s) == f));
            }
            if flows[0].rank() < flows[1].rank() {
                prop_assert!(flows[0] < flows[1]);
            }
        }
    }
}
