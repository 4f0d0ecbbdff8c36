//! The Community ID of the naive model, after the specification's own text:
//! <https://github.com/corelight/community-id-spec>, version 1.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use std::net::IpAddr;
use weir_plan::Value;

/// Types of ICMP that ask and answer, by pairs: echo, time stamp, information, router
/// solicitation and advertisement, address mask.
const ICMP: [[u16; 2]; 5] = [[8, 0], [13, 14], [15, 16], [10, 9], [17, 18]];

/// The same of ICMPv6: echo, router and neighbour solicitation and advertisement, multicast
/// listener query and report, node information, home agent discovery.
const ICMPV6: [[u16; 2]; 6] =
    [[128, 129], [133, 134], [135, 136], [130, 131], [139, 140], [144, 145]];

/// The ID of a source and its port, a destination and its port, a protocol, an ICMP type and code:
/// absent where a part that belongs to it is absent or does not fit its place.
pub(super) fn id(seed: u16, args: &[Value]) -> Value {
    made(seed, args).map_or(Value::Absent, |id| Value::Str(id.into()))
}

fn made(seed: u16, args: &[Value]) -> Option<String> {
    let (src, dst) = (address(args, 0)?, address(args, 2)?);
    let proto = u8::try_from(number(args, 4)?).ok()?;
    let port = |at| number(args, at).and_then(|n| u16::try_from(n).ok());
    let byte = |at| number(args, at).and_then(|n| u8::try_from(n).ok()).map(u16::from);
    // The numbers in the place of ports, and whether they are the same both ways.
    let (ports, both_ways) = match proto {
        6 | 17 | 132 => (Some((port(1)?, port(3)?)), true),
        1 => with_answer(&ICMP, byte(5)?, byte(6)?),
        58 => with_answer(&ICMPV6, byte(5)?, byte(6)?),
        _ => (None, true),
    };
    let (sport, dport) = ports.unwrap_or((0, 0));
    let mut ends = [(src, sport), (dst, dport)];
    if both_ways {
        ends.sort();
    }
    let mut bytes = seed.to_be_bytes().to_vec();
    for (address, _) in ends {
        match Value::to_ip(address) {
            IpAddr::V4(four) => bytes.extend(four.octets()),
            IpAddr::V6(six) => bytes.extend(six.octets()),
        }
    }
    bytes.extend([proto, 0]);
    if ports.is_some() {
        bytes.extend(ends.iter().flat_map(|(_, port)| port.to_be_bytes()));
    }
    Some(format!("1:{}", STANDARD.encode(Sha1::digest(&bytes))))
}

/// A message's type and that of its answer; of one without an answer its type and code.
fn with_answer(pairs: &[[u16; 2]], ty: u16, code: u16) -> (Option<(u16, u16)>, bool) {
    match pairs.iter().find(|pair| pair.contains(&ty)) {
        Some([a, b]) => (Some((ty, if ty == *a { *b } else { *a })), true),
        None => (Some((ty, code)), false),
    }
}

fn address(args: &[Value], at: usize) -> Option<u128> {
    match args.get(at)? {
        Value::Ip(bits) => Some(*bits),
        _ => None,
    }
}

fn number(args: &[Value], at: usize) -> Option<i64> {
    match args.get(at)? {
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seed: u16, proto: i64, ips: [&str; 2], ends: [i64; 2], want: Option<&str>) {
        let [src, dst] = ips.map(|ip| Value::ip(ip.parse().expect("an address")));
        let [a, b] = ends.map(Value::Int);
        let none = || Value::Absent;
        let args = match proto {
            1 | 58 => [src, none(), dst, none(), Value::Int(proto), a, b],
            _ => [src, a, dst, b, Value::Int(proto), none(), none()],
        };
        assert_eq!(made(seed, &args).as_deref(), want, "{ips:?} {ends:?}");
    }

    /// The vectors that come with the specification.
    #[test]
    fn the_published_ids() {
        let tcp = ["128.232.110.120", "66.35.250.204"];
        check(0, 6, tcp, [34855, 80], Some("1:LQU9qZlK+B5F3KDmev6m5PMibrg="));
        check(1, 6, tcp, [34855, 80], Some("1:3V71V58M3Ksw/yuFALMcW0LAHvc="));
        check(0, 6, [tcp[1], tcp[0]], [80, 34855], Some("1:LQU9qZlK+B5F3KDmev6m5PMibrg="));
        let udp = ["192.168.1.52", "8.8.8.8"];
        check(0, 17, udp, [54585, 53], Some("1:d/FP5EW3wiY1vCndhwleRRKHowQ="));
        let icmp = ["192.168.0.89", "192.168.0.1"];
        check(0, 1, icmp, [8, 0], Some("1:X0snYXpgwiv9TZtqg64sgzUn6Dk="));
        check(0, 1, [icmp[1], icmp[0]], [0, 0], Some("1:X0snYXpgwiv9TZtqg64sgzUn6Dk="));
        check(0, 1, icmp, [20, 1], Some("1:tz/fHIDUHs19NkixVVoOZywde+I="));
        let icmpv6 = ["fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea"];
        check(0, 58, icmpv6, [135, 0], Some("1:dGHyGvjMfljg6Bppwm3bg0LO8TY="));
        check(0, 46, ["1.2.3.4", "5.6.7.8"], [0, 0], Some("1:ikv3kmf89luf73WPz1jOs49S768="));
        check(0, 6, tcp, [-1, 80], None);
    }
}
