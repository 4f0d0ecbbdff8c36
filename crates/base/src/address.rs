//! Addresses as numbers of 128 bits.
//!
//! An IPv4 address is held as IPv4-mapped IPv6 (`::ffff:0:0/96`, RFC 4291, section 2.5.5.2), so
//! that one column holds both. An IPv6 address that is in that block itself, as packets may have
//! though none should, is another host. It is held as the address at the same place in the block
//! before it (`::fffe:0:0/96`, which IANA has assigned to nobody), and shown as what it is. So it
//! is in the same networks as before, but for those of IPv4.

use std::net::{IpAddr, Ipv6Addr};

/// The low 64 bits of the number of 0.0.0.0; the high ones of an IPv4 address are 0.
pub const V4: u64 = 0xffff_0000_0000;

/// The bits above those of an IPv4 address.
const ABOVE: u64 = V4 >> 32;

/// The bit in which the two blocks differ.
const APART: u64 = 1 << 32;

/// The form in which addresses are written where a format has both.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AddressForm {
    /// Their bytes, in the order of the wire: small, and in the order of the numbers.
    #[default]
    Bytes,
    /// As people write them.
    Text,
}

/// The number of an address.
pub const fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().to_bits(),
        IpAddr::V6(six) => number_of_v6(six.to_bits()),
    }
}

/// The address that a number is of.
pub const fn address(number: u128) -> IpAddr {
    match Ipv6Addr::from_bits(number).to_ipv4_mapped() {
        Some(four) => IpAddr::V4(four),
        None => IpAddr::V6(Ipv6Addr::from_bits(v6_of_number(number))),
    }
}

/// The number of an IPv6 address, given its 128 bits.
pub const fn number_of_v6(bits: u128) -> u128 {
    let (high, low) = words_of_v6((bits >> 64) as u64, bits as u64);
    (high as u128) << 64 | low as u128
}

/// The same of the high and the low 64 bits.
#[inline(always)]
pub const fn words_of_v6(high: u64, low: u64) -> (u64, u64) {
    (high, low ^ if is_v4(high, low) { APART } else { 0 })
}

/// The 128 bits of the IPv6 address that a number is of.
pub const fn v6_of_number(number: u128) -> u128 {
    if number >> 32 == ABOVE as u128 - 1 { number | APART as u128 } else { number }
}

/// Whether a number is that of an IPv4 address, given its high and its low 64 bits.
#[inline(always)]
pub const fn is_v4(high: u64, low: u64) -> bool {
    high == 0 && low >> 32 == ABOVE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_number_of_its_own_and_comes_back() {
        let mut numbers = Vec::new();
        for text in [
            "0.0.0.0",
            "10.0.0.1",
            "255.255.255.255",
            "::",
            "::ffff:0.0.0.0",
            "::ffff:10.0.0.1",
            "::ffff:255.255.255.255",
            "::fffd:ffff:ffff",
            "::1:0:0:0",
            "::10.0.0.1",
            "ffff::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "1::ffff:a00:1",
        ] {
            let ip: IpAddr = text.parse().expect("an address");
            assert_eq!(address(number(ip)), ip, "{text}");
            numbers.push(number(ip));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 13);
    }

    #[test]
    fn ipv6_addresses_stay_in_their_order() {
        let six = |text: &str| number(IpAddr::V6(text.parse().expect("an address")));
        assert!(six("::fffd:ffff:ffff") < six("::ffff:0.0.0.0"));
        assert!(six("::ffff:255.255.255.255") < six("::1:0:0:0"));
        assert!(six("::ffff:1.0.0.0") < six("::ffff:1.0.0.1"));
    }
}
