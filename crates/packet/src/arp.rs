//! ARP for IPv4 over Ethernet (RFC 826).
//!
//! ```text
//!  0               8               16              24            31
//! +-------------------------------+-------------------------------+
//! |  hardware type: 1             |  protocol type: 0x0800        |
//! +---------------+---------------+-------------------------------+
//! |  6            |  4            |  operation                    |
//! +---------------+---------------+-------------------------------+
//! |  sender hardware address (6), sender protocol address (4)     |
//! |  target hardware address (6), target protocol address (4)     |
//! +---------------------------------------------------------------+
//! ```

use crate::walk::Reason;
use std::net::Ipv4Addr;

/// Offset of the operation.
pub const OPERATION: usize = 6;
/// Offset of the sender's hardware address.
pub const SENDER_MAC: usize = 8;
/// Offset of the sender's protocol address.
pub const SENDER_IP: usize = 14;
/// Offset of the target's hardware address.
pub const TARGET_MAC: usize = 18;
/// Offset of the target's protocol address.
pub const TARGET_IP: usize = 24;
/// Bytes before the addresses: the types, the address lengths and the operation.
pub const FIXED_LEN: usize = 8;
/// Bytes of a packet.
pub const PACKET_LEN: usize = 28;

/// How a packet for IPv4 over Ethernet begins.
pub const IPV4_OVER_ETHERNET: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Operation: who has the target's protocol address?
pub const REQUEST: u16 = 1;
/// Operation: the sender has it.
pub const REPLY: u16 = 2;

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct Arp<'a>(&'a [u8; PACKET_LEN]);

impl<'a> Arp<'a> {
    /// A view of `bytes`, which start at the packet; what follows it, such as padding, is left
    /// aside.
    ///
    /// # Errors
    /// [`Reason::Arp`] if the packet is for other protocols than these two, and
    /// [`Reason::ShortHeader`] if there are fewer than 28 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Arp<'a>, Reason> {
        match bytes.first_chunk::<6>() {
            Some(&IPV4_OVER_ETHERNET) => {}
            Some(_) => return Err(Reason::Arp),
            None => return Err(Reason::ShortHeader),
        }
        bytes.first_chunk().map(Arp).ok_or(Reason::ShortHeader)
    }

    /// The operation of the packet: [`REQUEST`], [`REPLY`], or a rarer one.
    pub fn operation(&self) -> u16 {
        u16::from_be_bytes(self.part(OPERATION))
    }

    /// Ethernet address of the sender.
    pub fn sender_mac(&self) -> [u8; 6] {
        self.part(SENDER_MAC)
    }

    /// IPv4 address of the sender; `0.0.0.0` in a probe (RFC 5227).
    pub fn sender_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.part::<4>(SENDER_IP))
    }

    /// Ethernet address of the target; not known yet in a request.
    pub fn target_mac(&self) -> [u8; 6] {
        self.part(TARGET_MAC)
    }

    /// IPv4 address of the target.
    pub fn target_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.part::<4>(TARGET_IP))
    }

    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[at + i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    const WHO_HAS: [u8; 30] = [
        0, 1, 8, 0, 6, 4, 0, 1,
        2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
        0, 0,
    ];

    #[test]
    fn reads_a_request() {
        let arp = Arp::new(&WHO_HAS).unwrap();
        assert_eq!(arp.operation(), REQUEST);
        assert_eq!((arp.sender_mac(), arp.target_mac()), ([2, 0, 0, 0, 0, 1], [0; 6]));
        assert_eq!(arp.sender_ip(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(arp.target_ip(), Ipv4Addr::new(10, 0, 0, 2));
    }

    #[test]
    fn others_are_refused() {
        assert_eq!(Arp::new(&WHO_HAS[..27]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Arp::new(&WHO_HAS[..3]).unwrap_err(), Reason::ShortHeader);
        let mut token_ring = WHO_HAS;
        token_ring[1] = 6;
        assert_eq!(Arp::new(&token_ring).unwrap_err(), Reason::Arp);
    }
}
