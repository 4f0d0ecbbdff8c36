//! Addresses under other names in the naive model: Crypto-PAn, a bit at a time.
//!
//! After Xu, Fan, Ammar, Moon, "Prefix-Preserving IP Address Anonymization", ICNP 2002: whether a
//! bit is turned is the first bit of AES-128 over the bits before it, filled up with bits of a
//! secret block.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_packet::rewrite::Rename;

/// The key: 16 bytes of the cipher, 16 bytes that it makes the secret block of.
pub(super) struct PanKey([u8; 32]);

impl PanKey {
    pub(super) fn new(key: [u8; 32]) -> PanKey {
        PanKey(key)
    }

    fn encrypted(&self, block: [u8; 16]) -> [u8; 16] {
        let cipher = Aes128::new_from_slice(&self.0[..16]).expect("a key of 16 bytes");
        let mut block = Array::from(block);
        cipher.encrypt_block(&mut block);
        block.into()
    }

    /// The other name of an address, given and returned as its bits.
    fn bits(&self, address: &[bool]) -> Vec<bool> {
        let mut second = [0; 16];
        second.copy_from_slice(&self.0[16..]);
        let secret = bits_of(&self.encrypted(second));
        let turned = |at: usize| {
            let known = address[..at].iter().chain(&secret[at..]);
            bits_of(&self.encrypted(block(known)))[0]
        };
        (0..address.len()).map(|at| address[at] ^ turned(at)).collect()
    }

    /// The other name of some bytes.
    fn bytes<const N: usize>(&self, address: [u8; N]) -> [u8; N] {
        block(self.bits(&bits_of(&address)).iter())
    }

    fn four(&self, address: Ipv4Addr) -> Ipv4Addr {
        self.bytes(address.octets()).into()
    }

    /// The other name of an IP address, of the same version. An IPv6 address that holds one of
    /// IPv4 has the name of that in it.
    pub(super) fn ip(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(four) => self.four(four).into(),
            IpAddr::V6(six) => match six.to_ipv4_mapped() {
                Some(four) => self.four(four).to_ipv6_mapped().into(),
                None => IpAddr::from(self.bytes(six.octets())),
            },
        }
    }

    /// The other name of a MAC address: no other for all zeros and all ones; whether it is of a
    /// group and whether it was given locally, the last two bits of the first byte, stay.
    fn mac_bytes(&self, address: [u8; 6]) -> [u8; 6] {
        if address == [0; 6] || address == [0xff; 6] {
            return address;
        }
        let mut name = self.bytes(address);
        name[0] = name[0] & 0b1111_1100 | address[0] & 0b0000_0011;
        name
    }
}

/// The bits of some bytes, the highest of each first.
fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

/// The bytes of some bits.
fn block<'a, const N: usize>(bits: impl Iterator<Item = &'a bool>) -> [u8; N] {
    let mut bytes = [0; N];
    bits.enumerate().for_each(|(at, bit)| bytes[at / 8] |= u8::from(*bit) << (7 - at % 8));
    bytes
}

/// Which addresses of a frame are renamed, and how checksums follow, is the business of
/// [`weir_packet::rewrite`].
impl Rename for PanKey {
    fn ipv4(&mut self, address: u32) -> u32 {
        u32::from_be_bytes(self.bytes(address.to_be_bytes()))
    }

    fn ipv6(&mut self, address: u128) -> u128 {
        match self.ip(Ipv6Addr::from_bits(address).into()) {
            IpAddr::V6(name) => name.to_bits(),
            IpAddr::V4(_) => unreachable!("versions stay"),
        }
    }

    fn mac(&mut self, address: u64) -> u64 {
        let [_, _, bytes @ ..] = address.to_be_bytes();
        let [a, b, c, d, e, f] = self.mac_bytes(bytes);
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the original distribution.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    #[test]
    fn the_published_addresses() {
        let key = PanKey::new(KEY);
        for (address, expected) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("4.3.88.225", "124.60.155.63"),
            ("64.39.15.238", "0.219.7.41"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ] {
            let name = key.ip(address.parse().expect("an address"));
            assert_eq!(name.to_string(), expected, "{address}");
        }
    }

    #[test]
    fn what_says_whose_a_mac_address_is_stays() {
        let mut key = PanKey::new(KEY);
        for address in [0, 0xffff_ffff_ffff] {
            assert_eq!(key.mac(address), address);
        }
        for address in [1, 0x0100_5e00_0001, 0x0200_5e10_0001] {
            let name = key.mac(address);
            assert!(name != address && name >> 48 == 0, "{name:x}");
            assert_eq!((name ^ address) >> 40 & 3, 0, "{name:x}");
        }
    }
}
