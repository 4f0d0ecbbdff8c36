//! Programs where fields are those of the innermost packet: what may be in a tunnel goes up.

use crate::HOOKS;
use crate::common::{self, Oracle, Tally, check, crafted, kernel_read_by, program_of};
use weir_packet::craft::Frame;
use weir_packet::walk::{Headers, TunnelPorts, UDP_TUNNELS};

/// Conditions that differ for a tunnel and what is in it.
const CONDITIONS: [&str; 6] = [
    "tcp",
    "not tcp",
    "udp and (sport == 8472 or dport == 8472)",
    "ip.src in {10.0.0.0/8}",
    "not exists(dport)",
    "ip.ttl == 7 or ip.version == 6",
];

/// Frames with a packet in a tunnel of each kind at the ports that it has by itself, that are named
/// below, and others, from and to them.
fn frames() -> Vec<Vec<u8>> {
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let inner = || Frame::ethernet().ipv4(a, b).ttl(7).tcp(40_000, 80).payload(b"x").bytes();
    let raw = || Frame::raw().ipv4(a, b).ttl(7).tcp(40_000, 80).payload(b"x").bytes();
    let carried = [
        [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner()].concat(),
        [&[0, 0, 0x65, 0x58, 0, 0, 9, 0][..], &inner()].concat(),
        [&[0x30, 255, 0, raw().len() as u8, 0, 0, 1, 0][..], &raw()].concat(),
        raw(),
        b"no packet".to_vec(),
    ];
    let named = [8472, 1, u16::MAX, 53];
    let ports = UDP_TUNNELS.into_iter().map(|(_, port)| port).chain(named).collect::<Vec<_>>();
    let mut frames = Vec::new();
    for payload in &carried {
        for &port in &ports {
            for (sport, dport) in [(9, port), (port, 9), (port, port)] {
                let outer = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]);
                frames.push(outer.udp(sport, dport).payload(payload).bytes());
                let outer = Frame::ethernet().vlan(7).ipv6([1; 16], [2; 16]);
                frames.push(outer.udp(sport, dport).payload(payload).bytes());
            }
        }
    }
    frames
}

#[test]
fn packets_in_tunnels_are_left_to_the_engine() {
    if !common::may("packets_in_tunnels_are_left_to_the_engine") {
        return;
    }
    let ports = [("vxlan", 8472), ("geneve", 1), ("gtp", u16::MAX), ("vxlan", 6081)];
    let named = ports
        .into_iter()
        .fold(TunnelPorts::NONE, |all, (name, port)| all.with(name, port).expect("four ports"));
    let (tunnels, plain) = (frames(), crafted());
    for headers in [Headers::OUTER, Headers::INNER, Headers::INNER.with_ports(named)] {
        let (mut tally, mut of_plain) = (Tally::default(), Tally::default());
        for condition in CONDITIONS {
            let text = format!("packets | where {condition}");
            for (frames, tally) in [(&tunnels, &mut tally), (&plain, &mut of_plain)] {
                let oracle = Oracle::read_by(headers, program_of(&text), frames);
                for hook in HOOKS {
                    let kernel = kernel_read_by(headers, &text, hook);
                    let kernel = kernel.unwrap_or_else(|e| panic!("{text}: {e}"));
                    check(&kernel, &oracle, frames, &text, tally);
                }
            }
        }
        // All datagrams of these ports are unclear, and those to port 53 are not.
        let (all, other) = (tunnels.len() as u64, tunnels.len() as u64 / 9);
        let runs = (CONDITIONS.len() * HOOKS.len()) as u64;
        let unnamed = if headers.ports() == &named { other } else { 4 * other };
        let unclear = if headers.are_inner() { runs * (all - unnamed) } else { 0 };
        assert_eq!(tally.unclear, unclear, "{headers:?}: {tally}");
        assert!(of_plain.filtered > 1000 && of_plain.wanted > 1000, "{headers:?}: {of_plain}");
    }
}
