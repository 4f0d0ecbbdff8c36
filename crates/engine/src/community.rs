//! Community ID, version 1: the name of a connection that other tools give it too.
//!
//! Source: the specification at <https://github.com/corelight/community-id-spec>. The endpoints are
//! put in order, so that both directions have one ID; ICMP has types in the place of ports, a
//! request and its reply those of each other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use weir_plan::Value;

/// Bytes of an ID: `1:`, and a SHA-1 hash in base64.
pub(crate) const LEN: usize = 30;

/// The values that an ID is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuple {
    /// Source and destination as in [`Value::Ip`].
    pub(crate) ips: (u128, u128),
    /// Source and destination port, where there are any.
    pub(crate) ports: Option<(u16, u16)>,
    /// ICMP type and code, where there are any.
    pub(crate) icmp: Option<(u8, u8)>,
    /// The protocol number.
    pub(crate) proto: u8,
}

impl Tuple {
    /// From the arguments of [`weir_plan::Func::CommunityId`], by their place: each as columns
    /// store it. `None` without addresses or protocol; what does not fit its place is not there.
    pub(crate) fn of(part: impl Fn(usize) -> Option<u128>) -> Option<Tuple> {
        let port = |k| part(k).and_then(|n| u16::try_from(n).ok());
        let byte = |k| part(k).and_then(|n| u8::try_from(n).ok());
        Some(Tuple {
            ips: (part(0)?, part(2)?),
            ports: port(1).zip(port(3)),
            icmp: byte(5).zip(byte(6)),
            proto: byte(4)?,
        })
    }
}

/// ICMP types whose answers have a type of their own.
const ICMP_PAIRS: &[(u8, u8)] = &[(8, 0), (13, 14), (15, 16), (10, 9), (17, 18)];

/// ICMPv6 types whose answers have a type of their own.
const ICMP6_PAIRS: &[(u8, u8)] =
    &[(128, 129), (133, 134), (135, 136), (130, 131), (139, 140), (144, 145)];

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;

/// The ID; `None` where ports or ICMP types belong to it and are not known, as in later fragments.
pub(crate) fn id(seed: u16, t: &Tuple) -> Option<[u8; LEN]> {
    let (ports, one_way) = match t.proto {
        TCP | UDP | SCTP => (Some(t.ports?), false),
        ICMP => icmp(t.icmp?, ICMP_PAIRS),
        ICMP6 => icmp(t.icmp?, ICMP6_PAIRS),
        _ => (None, false),
    };
    let (sport, dport) = ports.unwrap_or_default();
    let (from, to) = ((t.ips.0, sport), (t.ips.1, dport));
    let (first, second) = if one_way || from <= to { (from, to) } else { (to, from) };
    let mut hash = Sha1::new();
    hash.update(seed.to_be_bytes());
    for ip in [first.0, second.0] {
        match Value::to_ip(ip) {
            std::net::IpAddr::V4(a) => hash.update(a.octets()),
            std::net::IpAddr::V6(a) => hash.update(a.octets()),
        }
    }
    hash.update([t.proto, 0]);
    if ports.is_some() {
        hash.update(first.1.to_be_bytes());
        hash.update(second.1.to_be_bytes());
    }
    let mut out = [0; LEN];
    out[..2].copy_from_slice(b"1:");
    STANDARD.encode_slice(hash.finalize(), &mut out[2..]).expect("20 bytes are 28 characters");
    Some(out)
}

/// The numbers that stand for ports, and whether there is no answer that would have them the other
/// way round.
fn icmp((ty, code): (u8, u8), pairs: &[(u8, u8)]) -> (Option<(u16, u16)>, bool) {
    let answer = pairs.iter().find_map(|&(a, b)| match ty {
        ty if ty == a => Some(b),
        ty if ty == b => Some(a),
        _ => None,
    });
    (Some((ty.into(), answer.unwrap_or(code).into())), answer.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seed: u16, proto: u8, src: &str, dst: &str, (a, b): (u16, u16), expected: &str) {
        let ip = |s: &str| match Value::ip(s.parse().expect("an address")) {
            Value::Ip(bits) => bits,
            other => unreachable!("{other}"),
        };
        let icmp = matches!(proto, ICMP | ICMP6);
        let t = Tuple {
            ips: (ip(src), ip(dst)),
            ports: (!icmp).then_some((a, b)),
            icmp: icmp.then_some((a as u8, b as u8)),
            proto,
        };
        let got = id(seed, &t).expect("an ID");
        assert_eq!(std::str::from_utf8(&got), Ok(expected), "{src} {dst} {a} {b}");
    }

    #[test]
    fn the_published_ids() {
        let tcp = ("128.232.110.120", "66.35.250.204", (34855, 80));
        check(0, TCP, tcp.0, tcp.1, tcp.2, "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        check(1, TCP, tcp.0, tcp.1, tcp.2, "1:3V71V58M3Ksw/yuFALMcW0LAHvc=");
        check(0, TCP, tcp.1, tcp.0, (80, 34855), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        check(0, TCP, "10.0.0.1", "10.0.0.2", (10, 11569), "1:SXBGMX1lBOwhhoDrZynfROxnhnM=");
        let same = ("192.168.1.42", "192.168.1.42", "1:eRcf7I/xocOxnYo5pbJBV5NhVm0=");
        check(0, TCP, same.0, same.1, (41, 42), same.2);
        check(0, TCP, same.0, same.1, (42, 41), same.2);
        let udp = ("192.168.1.52", "8.8.8.8", (54585, 53));
        check(0, UDP, udp.0, udp.1, udp.2, "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        check(1, UDP, udp.0, udp.1, udp.2, "1:Q9We8WO3piVF8yEQBNJF4uiSVrI=");
        let sctp = ("192.168.170.56", "192.168.170.8", (80, 7));
        check(0, SCTP, sctp.0, sctp.1, sctp.2, "1:jQgCxbku+pNGw8WPbEc/TS/uTpQ=");
        check(0, 46, "1.2.3.4", "5.6.7.8", (0, 0), "1:ikv3kmf89luf73WPz1jOs49S768=");
    }

    #[test]
    fn the_published_ids_of_icmp() {
        let (a, b) = ("192.168.0.89", "192.168.0.1");
        check(0, ICMP, a, b, (8, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        check(1, ICMP, a, b, (8, 0), "1:03g6IloqVBdcZlPyX8r0hgoE7kA=");
        check(0, ICMP, b, a, (0, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        // No pair: the code is part of the ID.
        check(0, ICMP, a, b, (20, 0), "1:3o2RFccXzUgjl7zDpqmY7yJi8rI=");
        check(0, ICMP, a, b, (20, 1), "1:tz/fHIDUHs19NkixVVoOZywde+I=");
        let (a, b) = ("fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea");
        check(0, ICMP6, a, b, (135, 0), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=");
        check(1, ICMP6, a, b, (135, 0), "1:kHa1FhMYIT6Ym2Vm2AOtoOARDzY=");
        let (a, b) = ("3ffe:507:0:1:200:86ff:fe05:80da", "3ffe:507:0:1:260:97ff:fe07:69ea");
        check(0, ICMP6, a, b, (3, 0), "1:/OGBt9BN1ofenrmSPWYicpij2Vc=");
    }

    #[test]
    fn without_its_ports_a_connection_is_not_known() {
        let t = Tuple { ips: (1, 2), ports: None, icmp: None, proto: TCP };
        assert_eq!(id(0, &t), None);
        assert_eq!(id(0, &Tuple { proto: ICMP, ..t }), None);
        assert!(id(0, &Tuple { proto: 47, ..t }).is_some());
    }
}
