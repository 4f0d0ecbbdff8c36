//! VXLAN headers (RFC 7348), and those that say what follows (VXLAN-GPE).
//!
//! ```text
//!  0               8               16              24            31
//! +---------------+-------------------------------+---------------+
//! |R R v v I P R O|  0                            | next protocol |
//! +---------------+-------------------------------+---------------+
//! |  network identifier                           |  0            |
//! +-----------------------------------------------+---------------+
//! ```

/// UDP port of VXLAN.
pub const PORT: u16 = 4789;
/// UDP port of VXLAN-GPE.
pub const PORT_GPE: u16 = 4790;
/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// Flag: the network identifier is valid.
const VALID: u8 = 0x08;
/// Flag: there is a next protocol.
const NEXT: u8 = 0x04;
/// Flag of VXLAN-GPE: sent to all.
const BROADCAST: u8 = 0x02;
/// Flag of VXLAN: there is a group for policies.
const GROUP: u8 = 0x80;
/// Next protocol: Ethernet.
pub const ETHERNET: u8 = 3;

/// The protocol after the header of this port, as VXLAN-GPE numbers it: 1 IPv4, 2 IPv6, 3 Ethernet,
/// 4 NSH. `None` if it is no header, for want of a network identifier.
pub fn next_protocol(header: &[u8; HEADER_LEN], port: u16) -> Option<u8> {
    let flags = header[0];
    let next = if port == PORT_GPE && flags & NEXT != 0 { header[3] } else { ETHERNET };
    (flags & VALID != 0).then_some(next)
}

/// Whether all flags of the header are known: those that say nothing of what follows, which are a
/// network identifier, groups of policies and broadcast, and on the port of VXLAN-GPE that there is
/// a next protocol.
pub fn is_plain(header: &[u8; HEADER_LEN], port: u16) -> bool {
    let known = if port == PORT_GPE { VALID | NEXT | BROADCAST } else { VALID | GROUP };
    header[0] & VALID != 0 && header[0] & !known == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_port_has_a_next_protocol() {
        let header = [0x0c, 0, 0, 1, 0, 0, 9, 0];
        assert_eq!(next_protocol(&header, PORT), Some(ETHERNET));
        assert_eq!(next_protocol(&header, PORT_GPE), Some(1));
        assert_eq!(next_protocol(&[0; 8], PORT), None);
    }

    #[test]
    fn flags_of_the_other_port_are_not_plain() {
        let is = |flags: u8, port| is_plain(&[flags, 0, 0, 1, 0, 0, 9, 0], port);
        assert!(is(0x08, PORT) && is(0x88, PORT) && is(0x0c, PORT_GPE) && is(0x0a, PORT_GPE));
        assert!(!is(0x0c, PORT) && !is(0, PORT) && !is(0x18, PORT) && !is(0x0d, PORT_GPE));
    }
}
