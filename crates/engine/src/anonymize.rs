//! Addresses under other names that keep prefixes: Crypto-PAn.
//!
//! Two addresses with n leading bits in common have n leading bits in common afterwards. Source:
//! Xu, Fan, Ammar, Moon, "Prefix-Preserving IP Address Anonymization", ICNP 2002. Each bit is
//! turned or not by a bit of AES-128, of the bits before it padded with a secret. IPv4 addresses
//! give what the original gives; IPv6 addresses are taken as 128 bits, as other tools do.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use weir_base::address::{V4, is_v4, v6_of_number};
use weir_packet::rewrite::{Rename, Rewriter};
use weir_packet::source::LinkType;
use weir_plan::address::mask;
use weir_plan::ends::Anonymize;

/// The cipher and the padding that a key gives.
pub(crate) struct CryptoPan {
    aes: Aes128,
    pad: u128,
}

impl CryptoPan {
    /// The first half of the key is that of the cipher, the second makes the padding.
    pub(crate) fn new(key: &[u8; 32]) -> CryptoPan {
        let (mut first, mut second) = ([0; 16], [0; 16]);
        first.copy_from_slice(&key[..16]);
        second.copy_from_slice(&key[16..]);
        let aes = Aes128::new(&Array::from(first));
        let mut pad = Array::from(second);
        aes.encrypt_block(&mut pad);
        CryptoPan { aes, pad: u128::from_be_bytes(pad.into()) }
    }

    /// The other name of an address, of the same version; both as in
    /// [`weir_plan::Value::Ip`]. An IPv6 address that holds one of IPv4 has the name of that in it.
    pub(crate) fn anonymize(&self, a: u128) -> u128 {
        let holds_four = is_v4((a >> 64) as u64, a as u64) || v6_of_number(a) != a;
        match holds_four {
            true => a ^ self.turned::<32>(a << 96) >> 96,
            false => a ^ self.turned::<128>(a),
        }
    }

    /// Which of the first `BITS` bits of an address are turned.
    fn turned<const BITS: usize>(&self, a: u128) -> u128 {
        let mut blocks: [Array<u8, _>; BITS] = std::array::from_fn(|at| {
            let known = mask(at as u8);
            Array::from((a & known | self.pad & !known).to_be_bytes())
        });
        self.aes.encrypt_blocks(&mut blocks);
        blocks.iter().fold(0, |bits, block| bits << 1 | u128::from(block[0] >> 7)) << (128 - BITS)
    }
}

/// Bits of a MAC address that say whether it is a group's and who gave it (IEEE 802): they stay.
const KINDS: u64 = 0x03 << 40;

/// The MAC address of everybody.
const BROADCAST: u64 = (1 << 48) - 1;

impl CryptoPan {
    /// The other name of a MAC address: prefixes are kept, and so is whether it is a group's. That
    /// of everybody, and 0 for one that is not known, have no other.
    pub(crate) fn anonymize_mac(&self, a: u64) -> u64 {
        if matches!(a, 0 | BROADCAST) {
            return a;
        }
        let turned = (self.turned::<48>(u128::from(a) << 80) >> 80) as u64;
        a ^ turned & !KINDS
    }
}

/// Names that are remembered; a power of two.
const KNOWN: usize = 256;

/// Gives the addresses of frames other names.
#[derive(Debug)]
pub(crate) struct Anonymizer {
    how: Anonymize,
    rewriter: Rewriter,
    names: Names,
}

/// Names, and the last ones given of IP addresses.
#[derive(Debug)]
struct Names {
    key: CryptoPan,
    known: Vec<Option<(u128, u128)>>,
}

impl Anonymizer {
    pub(crate) fn new(how: Anonymize) -> Anonymizer {
        let names = Names { key: CryptoPan::new(&how.key.0), known: vec![None; KNOWN] };
        let mut rewriter = Rewriter::default();
        rewriter.set_ports(&how.ports);
        Anonymizer { how, rewriter, names }
    }

    /// Rewrites a frame of this link type that is so long on the wire. False where it could not:
    /// then the frame must not leave.
    #[must_use]
    pub(crate) fn rewrite(&mut self, link: LinkType, frame: &mut [u8], len: u32) -> bool {
        self.rewriter.rewrite(link, frame, len, self.how.addresses, &mut self.names)
    }
}

impl Names {
    fn ip(&mut self, address: u128) -> u128 {
        let spread = (address ^ address >> 64) as u64;
        let slot = (spread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % KNOWN;
        match self.known[slot] {
            Some((known, name)) if known == address => name,
            _ => {
                let name = self.key.anonymize(address);
                self.known[slot] = Some((address, name));
                name
            }
        }
    }
}

impl Rename for Names {
    fn ipv4(&mut self, address: u32) -> u32 {
        self.ip(u128::from(V4 | u64::from(address))) as u32
    }

    fn ipv6(&mut self, address: u128) -> u128 {
        self.ip(address)
    }

    fn mac(&mut self, address: u64) -> u64 {
        self.key.anonymize_mac(address)
    }
}

impl std::fmt::Debug for CryptoPan {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CryptoPan").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_plan::Value;

    /// The key of the original distribution.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    #[test]
    fn the_published_addresses() {
        let names = CryptoPan::new(&KEY);
        for (address, expected) in [
            // Of the trace that comes with the original.
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("152.163.225.39", "151.140.114.167"),
            ("192.41.57.43", "252.222.221.184"),
            ("4.3.88.225", "124.60.155.63"),
            ("64.39.15.238", "0.219.7.41"),
            // As other tools give them.
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ] {
            let Value::Ip(bits) = Value::ip(address.parse().expect("an address")) else {
                unreachable!("an address")
            };
            assert_eq!(Value::to_ip(names.anonymize(bits)).to_string(), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn mac_addresses_keep_prefixes(a in 1..BROADCAST, b in 1..BROADCAST, key: [u8; 32]) {
            let names = CryptoPan::new(&key);
            let (x, y) = (names.anonymize_mac(a), names.anonymize_mac(b));
            prop_assert_eq!((x ^ y).leading_zeros(), (a ^ b).leading_zeros());
            prop_assert!(x >> 48 == 0 && (x ^ a) & KINDS == 0);
        }

        #[test]
        fn prefixes_are_kept(a: u128, b: u128, n in 0u8..129, v4: bool, key: [u8; 32]) {
            let names = CryptoPan::new(&key);
            let b = a & mask(n) | b & !mask(n);
            let version = |a: u128| if v4 { u128::from(V4) | a >> 96 } else { a };
            let (a, b) = (version(a), version(b));
            let common = (a ^ b).leading_zeros();
            prop_assert_eq!((names.anonymize(a) ^ names.anonymize(b)).leading_zeros(), common);
        }
    }
}
