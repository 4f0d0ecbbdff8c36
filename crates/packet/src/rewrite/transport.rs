//! Whether bytes are the transport header that a header of IPv6 before them announces.

use crate::{gre, icmp, ipv6, tcp, udp};

/// Protocols that a packet in a tunnel is taken to carry.
pub(super) const CARRIED: [u8; 24] =
    [0, 1, 2, 4, 6, 17, 33, 41, 43, 44, 46, 47, 50, 51, 58, 59, 60, 88, 89, 97, 103, 112, 132, 137];

/// Protocol numbers of packets in packets, ESP and SCTP.
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const ESP: u8 = 50;
const SCTP: u8 = 132;

/// EtherTypes that GRE announces: IPv4, IPv6, bridged frames, ERSPAN, PPP, labels.
const IN_GRE: [u16; 6] = [0x0800, 0x86dd, 0x6558, 0x88be, 0x880b, 0x8847];

/// Whether these bytes are like the start of a payload of this protocol and length. `None` if they
/// do not tell: they are too few, or any bytes may start one.
pub(super) fn agrees(protocol: u8, len: u16, bytes: &[u8]) -> Option<bool> {
    let byte = |at: usize| bytes.get(at).copied();
    let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
    let says = match protocol {
        tcp::PROTOCOL => {
            // Hardly any segment is urgent.
            let (flags, urgent) = (word(tcp::FLAGS)?, word(tcp::URGENT).unwrap_or(0));
            flags >= 0x5000 && flags & (0x0e00 | tcp::URG) == 0 && urgent == 0
        }
        udp::PROTOCOL => word(udp::LENGTH)? == len,
        icmp::PROTOCOL_V6 => {
            let (kind, code) = (byte(0)?, byte(1)?);
            matches!(kind, 1..=4 | 128..=161) && code < 8
        }
        // A packet that starts with a usual header.
        IPV4 => byte(0)? == 0x45 && word(2)? == len,
        IPV6 => {
            let inner = usize::from(word(ipv6::PAYLOAD_LENGTH)?);
            byte(0)? >> 4 == 6 && inner + ipv6::HEADER_LEN == usize::from(len)
        }
        gre::PROTOCOL => word(0)? & 0x4f7e == 0 && IN_GRE.contains(&word(2)?),
        // Few packets were sent under one index.
        ESP => word(0)? > 0 && byte(4)? == 0,
        SCTP => byte(12)? < 16 && word(14)? >= 4 && word(14)? <= len,
        ipv6::FRAGMENT => is_next(byte(0)?) && byte(1)? == 0 && byte(3)? & 6 == 0,
        ipv6::AUTHENTICATION => is_next(byte(0)?) && word(2)? == 0,
        ipv6::HOP_BY_HOP | ipv6::ROUTING | ipv6::DESTINATION_OPTIONS => {
            is_next(byte(0)?) && byte(1)? < 4
        }
        _ => return None,
    };
    Some(says)
}

/// Whether a header after one of extension is of this protocol.
fn is_next(protocol: u8) -> bool {
    protocol != ipv6::HOP_BY_HOP && CARRIED.contains(&protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_header_agrees_with_what_announces_it() {
        let tcp = [&[0, 80, 1, 2][..], &[9; 8], &[0x50, 0x18, 1, 0, 7, 7, 0, 0]].concat();
        let urgent = |flags: u8| [&tcp[..13], &[flags, 1, 0, 7, 7, 0, 9]].concat();
        assert_eq!(agrees(6, 1400, &tcp), Some(true));
        assert_eq!(agrees(6, 1400, &tcp[..14]), Some(true), "the rest was cut");
        assert_eq!(agrees(6, 1400, &tcp[..13]), None);
        assert_eq!(agrees(6, 1400, &[0x44; 20]), Some(false));
        assert_eq!(agrees(6, 1400, &urgent(0x18)), Some(false));
        assert_eq!(agrees(6, 1400, &urgent(0x38)), Some(false));
        let udp = [0, 1, 0, 2, 5, 0x78, 7, 7];
        assert_eq!((agrees(17, 1400, &udp), agrees(17, 1401, &udp)), (Some(true), Some(false)));
        assert_eq!(
            (agrees(58, 64, &[128, 0]), agrees(58, 64, &[100, 0])),
            (Some(true), Some(false))
        );
        assert_eq!(agrees(41, 48, &[0x60, 0, 0, 0, 0, 8]), Some(true));
        assert_eq!(agrees(47, 48, &[0x20, 0, 8, 0]), Some(true));
        assert_eq!(agrees(44, 48, &[17, 0, 5, 0xa9, 0, 0, 0, 7]), Some(true));
        assert_eq!(agrees(60, 48, &[0, 0]), Some(false), "zeros announce nothing");
        assert_eq!(agrees(89, 48, &[0; 20]), None);
    }
}
