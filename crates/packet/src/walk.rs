//! The classifying walk: which layers each frame of a batch has, and where they start.

mod announced;
mod fast;
mod layers;
mod link;
mod look;
mod network;
pub(crate) mod opaque;
mod ports;
mod reason;
#[cfg(test)]
#[path = "walk/tests/samples.rs"]
pub(crate) mod samples;
mod site;
pub(crate) mod sites;
pub(crate) mod slow;
mod tunnel;
mod walker;

use crate::bits::Bits;
use crate::ethernet;
use crate::source::{FrameBatch, LinkType};
use crate::vlan;
use announced::{family, is_raw};

pub use announced::supported;
pub(crate) use announced::{has_ethertypes, is_tagged};
pub(crate) use fast::{HEADS, Heads};
pub(crate) use layers::PlainFrames;
pub use layers::{LAYERS, Layer, Layers};
pub(crate) use look::{Look, WINDOW};
#[cfg(any(test, fuzzing))]
pub(crate) use network::PORTS_LEN;
pub use ports::{Headers, TunnelPorts, UDP_TUNNELS};
pub use reason::{REASONS, Reason};
pub(crate) use site::Site;

/// Says where the layers of each frame of a batch start. `layers` is overwritten, except for its
/// counts, which go on from batch to batch. Frames of a link type that is not [`supported`] have
/// no layers.
pub fn classify(frames: &FrameBatch, layers: &mut Layers) {
    layers.has = [Bits::NONE; LAYERS];
    layers.hellos.next_batch();
    (layers.proto_known, layers.plain) = (Bits::NONE, PlainFrames::default());
    if frames.link == LinkType::FLOW_RECORDS {
        return;
    }
    let all = Bits::first(frames.len());
    let mut plain = classify_plain(frames, layers);
    let carriers = tunnel::carriers(frames, layers, plain);
    if !carriers.is_empty() {
        plain = plain.minus(carriers);
        forget(layers, carriers);
    }
    if frames.link == LinkType::ETHERNET {
        layers.has[Layer::Eth as usize] = plain;
    }
    if plain != all {
        classify_rest(frames, layers, all.minus(plain));
    }
}

/// The fast pass for the batch's link type: fills in the plain frames and returns which they are.
fn classify_plain(frames: &FrameBatch, layers: &mut Layers) -> Bits {
    use fast::classify as fast;
    let word = |w: &look::Window, at: usize| u16::from_be_bytes([w[at], w[at + 1]]);
    let is_ip = |ethertype: u16| (ethertype == ethernet::IPV4, ethertype == ethernet::IPV6);
    let only_if = |on: bool, (v4, v6): (bool, bool)| (on & v4, on & v6);
    match frames.link {
        // Whether a link has tags or not rarely changes within a batch.
        LinkType::ETHERNET if is_tagged(frames.frame(0)) => {
            let plain = fast::<18>(frames, layers, 1, |w| {
                only_if(vlan::is_tag(word(w, 12)), is_ip(word(w, 16)))
            });
            layers.has[Layer::Vlan as usize] = plain;
            plain
        }
        LinkType::ETHERNET => fast::<14>(frames, layers, 0, |w| is_ip(word(w, 12))),
        LinkType::LINUX_SLL => fast::<16>(frames, layers, 0, |w| {
            only_if(has_ethertypes(word(w, 2)), is_ip(word(w, 14)))
        }),
        LinkType::LINUX_SLL2 => fast::<20>(frames, layers, 0, |w| {
            only_if(has_ethertypes(word(w, 8)), is_ip(word(w, 0)))
        }),
        LinkType::NULL | LinkType::LOOP => {
            fast::<4>(frames, layers, 0, |w| family([w[0], w[1], w[2], w[3]]))
        }
        LinkType::IPV4 => fast::<0>(frames, layers, 0, |_| (true, false)),
        LinkType::IPV6 => fast::<0>(frames, layers, 0, |_| (false, true)),
        link if is_raw(link) => fast::<0>(frames, layers, 0, |_| (true, true)),
        _ => Bits::NONE,
    }
}

/// Takes back what the fast pass said of these frames.
#[cold]
fn forget(layers: &mut Layers, rows: Bits) {
    layers.has.iter_mut().for_each(|has| *has = has.minus(rows));
    layers.proto_known = layers.proto_known.minus(rows);
    layers.plain.four = layers.plain.four.minus(rows);
    layers.plain.six = layers.plain.six.minus(rows);
}

/// The slow walk for the other frames.
#[cold]
#[inline(never)]
fn classify_rest(frames: &FrameBatch, layers: &mut Layers, rows: Bits) {
    let lens = frames.lens();
    rows.each(|i| {
        let found = slow::walk(frames.link, &frames.headers, frames.frame(i), lens[i]);
        layers.l3[i] = found.l3;
        layers.l4[i] = found.l4;
        layers.proto[i] = found.proto;
        layers.vlan_depth[i] = found.vlan_depth;
        layers.below[i] = found.below;
        layers.proto_known.put(i, found.proto_known);
        let mut bits = found.layers;
        while bits != 0 {
            layers.has[bits.trailing_zeros() as usize].set(i);
            bits &= bits - 1;
        }
        if let Some(reason) = found.reason {
            layers.malformed[reason as usize] += 1;
        }
    });
    // A frame that is both is counted once, as malformed.
    layers.cut += layers.has(Layer::Cut).minus(layers.has(Layer::Malformed)).count() as u64;
}

#[cfg(test)]
mod tests {
    use super::samples::{A, B, samples, tunnels};
    use super::*;
    use crate::craft::{Frame, batch};

    /// The results of the walk for one frame: its layers, where they start, and the fault.
    fn describe(link: LinkType, captured: &[u8], len: u32) -> String {
        describe_of(Headers::OUTER, link, captured, len)
    }

    fn describe_of(headers: Headers, link: LinkType, captured: &[u8], len: u32) -> String {
        let mut layers = Layers::new();
        let mut frames = batch(link, &[(captured.to_vec(), len)]);
        frames.headers = headers;
        classify(&frames, &mut layers);
        let mut words: Vec<String> = Vec::new();
        if layers.vlan_depth[0] > 0 {
            words.push(format!("depth={}", layers.vlan_depth[0]));
        }
        let all: [(Layer, &str); LAYERS] = [
            (Layer::Eth, "eth"),
            (Layer::Vlan, "vlan"),
            (Layer::Mpls, "mpls"),
            (Layer::Pppoe, "pppoe"),
            (Layer::Wlan, "wlan"),
            (Layer::Radiotap, "radiotap"),
            (Layer::Tunnel, "tunnel"),
            (Layer::Arp, "arp"),
            (Layer::Ipv4, "ipv4"),
            (Layer::Ipv6, "ipv6"),
            (Layer::Fragment, "fragment"),
            (Layer::Ports, "ports"),
            (Layer::Tcp, "tcp"),
            (Layer::TcpWhole, "whole"),
            (Layer::Udp, "udp"),
            (Layer::Icmp, "icmp"),
            (Layer::Icmp6, "icmp6"),
            (Layer::Cut, "CUT"),
            (Layer::Malformed, "MALFORMED"),
        ];
        words.extend(all.iter().filter(|(l, _)| layers.has(*l).has(0)).map(|(_, w)| w.to_string()));
        let reason = Reason::ALL.into_iter().find(|&r| layers.malformed[r as usize] > 0);
        words.extend(reason.map(|r| format!("({r})")));
        if layers.proto_known.has(0) {
            words.push(format!("{}: {}@{}", layers.l3[0], layers.proto[0], layers.l4[0]));
        }
        if words.is_empty() {
            return "nothing".to_string();
        }
        words.join(" ")
    }

    #[test]
    fn samples_are_walked() {
        let lines: Vec<String> = samples()
            .iter()
            .map(|(name, frame)| {
                let bytes = frame.bytes();
                format!("{name}: {}", describe(frame.link(), &bytes, bytes.len() as u32))
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        tcp: eth ipv4 ports tcp whole 14: 6@34
        udp: eth ipv4 ports udp 14: 17@34
        tcp6: eth ipv6 ports tcp whole 14: 6@54
        udp6: eth ipv6 ports udp 14: 17@54
        padded: eth ipv4 ports udp 14: 17@34
        tagged: depth=1 eth vlan ipv4 ports tcp whole 18: 6@38
        tagged6: depth=1 eth vlan ipv6 ports udp 18: 17@58
        qinq: depth=2 eth vlan ipv4 ports udp 22: 17@42
        old qinq: depth=2 eth vlan ipv6 ports udp 22: 17@62
        eight tags: depth=8 eth vlan ipv4 ports udp 46: 17@66
        nine tags: depth=8 eth vlan MALFORMED (vlan depth)
        arp: eth arp
        arp in vlan: depth=1 eth vlan arp
        llc: eth
        lldp: eth
        raw: ipv4 ports tcp whole 0: 6@20
        raw6: ipv6 ports tcp whole 0: 6@40
        loopback: ipv4 ports tcp whole 4: 6@24
        loopback big-endian: ipv6 ports udp 4: 17@44
        loopback other: nothing
        cooked: ipv4 ports udp 16: 17@36
        cooked tagged: depth=1 vlan ipv6 ports tcp whole 20: 6@60
        cooked netlink: nothing
        cooked2: ipv4 ports udp 20: 17@40
        cooked2 tagged: depth=1 vlan ipv4 ports udp 24: 17@44
        slip: ipv4 ports udp 16: 17@36
        ppp: ipv4 ports udp 4: 17@24
        ppp bare: ipv6 ports udp 2: 17@42
        ppp one byte: ipv4 ports udp 1: 17@21
        ppp mpls: mpls ipv4 ports udp 8: 17@28
        ppp lcp: nothing
        ppp serial: ipv4 ports udp 4: 17@24
        ppp or hdlc: ipv4 ports udp 4: 17@24
        hdlc: ipv6 ports udp 4: 17@44
        hdlc slarp: nothing
        frame relay: ipv4 ports udp 4: 17@24
        frame relay6: ipv6 ports udp 4: 17@44
        frame relay snap: ipv4 ports udp 10: 17@30
        frame relay cisco: ipv4 ports udp 4: 17@24
        frame relay address: MALFORMED (frame relay)
        nflog: ipv4 ports udp 24: 17@44
        nflog big-endian: ipv6 ports udp 16: 17@56
        nflog without packet: nothing
        nflog attribute: MALFORMED (nflog)
        nflog length: ipv4 ports udp MALFORMED (nflog) 8: 17@28
        wlan: wlan ipv4 ports tcp whole 32: 6@52
        wlan qos: wlan ipv4 ports udp 34: 17@54
        wlan aggregate: wlan ipv4 ports udp 48: 17@68
        wlan between: wlan ipv4 ports udp 38: 17@58
        wlan encrypted: wlan
        wlan beacon: wlan
        wlan acknowledgement: wlan
        wlan version: MALFORMED (802.11 version)
        wlan short: MALFORMED (short header)
        radiotap: wlan radiotap ipv4 ports udp 47: 17@67
        radiotap checksum: wlan radiotap ipv4 ports udp 48: 17@68
        radiotap padded: wlan radiotap ipv4 ports udp 51: 17@71
        radiotap length: MALFORMED (radiotap)
        radiotap version: MALFORMED (radiotap)
        ppi: wlan ipv4 ports udp 40: 17@60
        ppi in ppi: MALFORMED (802.11 version)
        ppi length: MALFORMED (ppi)
        snap: eth ipv4 ports udp 22: 17@42
        snap unsegmented: eth ipv4 ports tcp whole 22: 6@42
        snap cdp: eth
        etag: depth=1 eth vlan ipv4 26: 253@46
        vntag: eth ipv4 ports udp 20: 17@40
        mpls: eth mpls ipv4 ports udp 18: 17@38
        mpls6: depth=1 eth vlan mpls ipv6 ports tcp whole 30: 6@70
        17 labels: eth mpls ipv4 ports udp 82: 17@102
        255 labels: eth mpls ipv4 ports udp 1034: 17@1054
        256 labels: eth mpls MALFORMED (mpls depth)
        mpls ends: eth mpls MALFORMED (short header)
        mpls other: eth mpls
        pseudowire: eth mpls ipv4 ports udp 40: 17@60
        pseudowire controlled: eth mpls ipv4 ports udp 40: 17@60
        pppoe: eth pppoe ipv4 ports udp 22: 17@42
        pppoe unsegmented: eth pppoe ipv4 ports tcp whole 22: 6@42
        pppoe total length: eth pppoe ipv4 ports udp MALFORMED (ipv4 total length) 22: 17@42
        pppoe length: eth pppoe ipv4 ports udp MALFORMED (pppoe) 22: 17@42
        pppoe discovery: eth pppoe
        pppoe version: eth MALFORMED (pppoe)
        nsh: eth ipv4 ports udp 22: 17@42
        nsh ethernet: eth ipv4 ports udp 40: 17@60
        nsh mpls: eth ipv4 ports udp 26: 17@46
        nsh without end: eth MALFORMED (link headers)
        nsh version: eth MALFORMED (nsh)
        ping: eth ipv4 icmp 14: 1@34
        unreachable: eth ipv4 icmp 14: 1@34
        ping6: eth ipv6 icmp6 14: 58@54
        neighbour: eth ipv6 icmp6 14: 58@54
        sctp: eth ipv4 ports 14: 132@34
        dccp6: eth ipv6 ports 14: 33@54
        udp-lite: eth ipv4 ports 14: 136@34
        gre: eth ipv4 14: 47@34
        options: eth ipv4 ports tcp whole 14: 6@42
        first fragment: eth ipv4 fragment ports udp 14: 17@34
        first fragment tcp: eth ipv4 fragment ports tcp whole 14: 6@34
        later fragment: eth ipv4 fragment 14: 253@34
        dont fragment: eth ipv4 ports tcp whole 14: 6@34
        unsegmented: eth ipv4 ports tcp whole 14: 6@34
        unsegmented6: eth ipv6 ports tcp whole 14: 6@54
        jumbo: eth ipv6 ports udp 14: 17@70
        jumbo beyond the frame: eth ipv6 ports udp MALFORMED (ipv6 payload length) 14: 17@62
        empty6: eth ipv6 14: 59@54
        ah: eth ipv4 ports tcp whole 14: 6@58
        ah6: eth ipv6 ports tcp whole 14: 6@78
        ah in a later fragment: eth ipv4 fragment 14: 51@34
        extensions: eth ipv6 ports udp 14: 17@86
        extensions 2: eth ipv6 ports tcp whole 14: 6@78
        first fragment6: eth ipv6 fragment ports udp 14: 17@70
        later fragment6: eth ipv6 fragment 14: 253@62
        atomic fragment6: eth ipv6 ports udp 14: 17@62
        esp6: eth ipv6 14: 50@62
        ip in ip: eth ipv4 14: 4@34
        arp for token ring: eth MALFORMED (arp)
        short ethernet: MALFORMED (short header)
        version: eth MALFORMED (ip version)
        version6: eth MALFORMED (ip version)
        raw version: MALFORMED (ip version)
        header length: eth MALFORMED (ipv4 header length)
        header length beyond total: eth MALFORMED (ipv4 header length)
        total length: eth ipv4 ports tcp whole MALFORMED (ipv4 total length) 14: 6@34
        payload length: eth ipv6 ports udp MALFORMED (ipv6 payload length) 14: 17@54
        extension length: eth ipv6 MALFORMED (ip extension header) 14: 17@782
        many extensions: eth ipv6 MALFORMED (ip extension header)
        sixteen extensions: eth ipv6 ports udp 14: 17@182
        data offset: eth ipv4 ports tcp MALFORMED (tcp data offset) 14: 6@34
        data offset beyond: eth ipv4 ports tcp MALFORMED (tcp data offset) 14: 6@34
        data offset6: eth ipv6 ports tcp MALFORMED (tcp data offset) 14: 6@54
        udp length: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        udp length 0: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        udp length beyond: eth ipv4 ports udp MALFORMED (udp length) 14: 17@34
        tcp in 8 bytes: eth ipv4 ports tcp MALFORMED (short header) 14: 6@34
        udp in 3 bytes: eth ipv4 MALFORMED (short header) 14: 17@34
        padding is no header: eth ipv4 ports tcp MALFORMED (short header) 14: 6@34
        icmp in 2 bytes: eth ipv4 icmp MALFORMED (short header) 14: 1@34
        ip in ip in ip: eth ipv4 14: 4@34
        6in4: eth ipv4 14: 41@34
        4in6: ipv6 0: 4@40
        etherip: eth ipv4 14: 97@34
        mpls in ip: eth ipv4 14: 137@34
        gre ip: eth ipv4 14: 47@34
        gre bridged: eth ipv4 14: 47@34
        gre ppp: eth ipv4 14: 47@34
        gre ppp of version 0: eth ipv4 14: 47@34
        gre ppp with a key: eth ipv4 14: 47@34
        gre ppp acknowledgement: eth ipv4 14: 47@34
        gre arp: eth ipv4 14: 47@34
        gre aruba: eth ipv4 14: 47@34
        erspan: eth ipv4 14: 47@34
        erspan ii: eth ipv4 14: 47@34
        erspan iii: eth ipv4 14: 47@34
        vxlan: eth ipv4 ports udp 14: 17@34
        vxlan gpe: eth ipv4 ports udp 14: 17@34
        vxlan without identifier: eth ipv4 ports udp 14: 17@34
        geneve: eth ipv4 ports udp 14: 17@34
        gtp: eth ipv4 ports udp 14: 17@34
        gtp echo: eth ipv4 ports udp 14: 17@34
        gtp garbage: eth ipv4 ports udp 14: 17@34
        teredo: eth ipv4 ports udp 14: 17@34
        answer on the port of teredo: eth ipv4 ports udp 14: 17@34
        in a tagged frame: depth=1 eth vlan ipv4 ports udp 18: 17@38
        tunnels without end: eth ipv4 14: 4@34
        in a first fragment: eth ipv4 fragment 14: 4@34
        in a later fragment: eth ipv4 fragment 14: 4@34
        malformed inside: eth ipv4 14: 4@34
        ");
    }

    #[test]
    fn tunnels_are_walked_to_the_innermost_packet() {
        let lines: Vec<String> = tunnels()
            .iter()
            .map(|(name, frame)| {
                let bytes = frame.bytes();
                let said = describe_of(Headers::INNER, frame.link(), &bytes, bytes.len() as u32);
                format!("{name}: {said}")
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        ip in ip in ip: eth tunnel ipv4 ports tcp whole 54: 6@74
        6in4: eth tunnel ipv6 ports udp 34: 17@74
        4in6: tunnel ipv4 ports tcp whole 40: 6@60
        etherip: eth tunnel ipv4 ports tcp whole 54: 6@74
        mpls in ip: eth tunnel ipv4 ports tcp whole 38: 6@58
        gre ip: eth tunnel ipv4 ports tcp whole 38: 6@58
        gre bridged: eth tunnel ipv4 ports tcp whole 60: 6@80
        gre ppp: eth tunnel ipv4 ports tcp whole 50: 6@70
        gre ppp of version 0: eth tunnel ipv4 ports tcp whole 42: 6@62
        gre ppp with a key: eth tunnel ipv4 ports tcp whole 43: 6@63
        gre ppp acknowledgement: eth ipv4 14: 47@34
        gre arp: eth ipv4 14: 47@34
        gre aruba: eth tunnel ipv4 ports tcp whole 70: 6@90
        erspan: eth tunnel ipv4 ports tcp whole 56: 6@76
        erspan ii: eth tunnel ipv4 ports tcp whole 68: 6@88
        erspan iii: eth tunnel ipv4 ports tcp whole 72: 6@92
        vxlan: eth tunnel ipv4 ports tcp whole 68: 6@88
        vxlan gpe: eth tunnel ipv4 ports tcp whole 50: 6@70
        vxlan without identifier: eth ipv4 ports udp 14: 17@34
        geneve: eth tunnel ipv4 ports tcp whole 72: 6@92
        gtp: eth tunnel ipv4 ports tcp whole 50: 6@70
        gtp echo: eth ipv4 ports udp 14: 17@34
        gtp garbage: eth ipv4 ports udp 14: 17@34
        teredo: eth tunnel ipv6 ports udp 50: 17@90
        answer on the port of teredo: eth ipv4 ports udp 14: 17@34
        in a tagged frame: depth=1 eth vlan tunnel ipv4 ports tcp whole 72: 6@92
        tunnels without end: eth tunnel ipv4 174: 4@194
        in a first fragment: eth tunnel ipv4 ports tcp CUT 34: 6@54
        in a later fragment: eth ipv4 fragment 14: 4@34
        malformed inside: eth tunnel ipv4 ports tcp MALFORMED (tcp data offset) 34: 6@54
        ");
    }

    /// Each tunnel over UDP is read on a port that is named for it as on its own, from either end,
    /// and a port that is named for another means that one.
    #[test]
    fn a_port_that_is_named_is_that_of_its_tunnel() {
        let ports = [("vxlan", 8472), ("vxlan-gpe", 1), ("geneve", u16::MAX), ("gtp", 4789)];
        let mut ports = ports.into_iter();
        let all = ports.try_fold(TunnelPorts::NONE, |all, (name, port)| all.with(name, port));
        let inner = Headers::INNER.with_ports(all.expect("four ports"));
        let said = |headers, bytes: &[u8]| {
            describe_of(headers, LinkType::ETHERNET, bytes, bytes.len() as u32)
        };
        for (sample, standard, port) in [
            ("vxlan", 4789, 8472_u16),
            ("vxlan gpe", 4790, 1),
            ("geneve", 6081, u16::MAX),
            ("gtp", 2152, 4789),
        ] {
            let (_, frame) = tunnels().into_iter().find(|(name, _)| *name == sample).unwrap();
            let expected = said(Headers::INNER, &frame.bytes());
            assert!(expected.contains("tunnel"), "{sample}: {expected}");
            let at = [crate::udp::SPORT, crate::udp::DPORT].map(|place| 34 + place);
            for end in at {
                let mut bytes = frame.bytes();
                let has = at.map(|at| u16::from_be_bytes([bytes[at], bytes[at + 1]]));
                assert!(has.contains(&standard), "{sample}");
                at.iter().for_each(|&at| bytes[at..at + 2].copy_from_slice(&[0xcb, 0x20]));
                bytes[end..end + 2].copy_from_slice(&port.to_be_bytes());
                assert_eq!(said(inner, &bytes), expected, "{sample}");
                assert!(!said(Headers::INNER, &bytes).contains("tunnel") || port == 4789);
                assert!(
                    !said(Headers::OUTER.with_ports(*inner.ports()), &bytes).contains("tunnel")
                );
            }
        }
    }

    #[test]
    fn without_tunnels_inner_and_outer_are_the_same() {
        let tunnelled: Vec<&str> = tunnels().iter().map(|(name, _)| *name).collect();
        for (name, frame) in samples() {
            if tunnelled.contains(&name) || ["ip in ip", "gre"].contains(&name) {
                continue;
            }
            let (link, bytes) = (frame.link(), frame.bytes());
            for snap in 0..=bytes.len() {
                let of = |headers| describe_of(headers, link, &bytes[..snap], bytes.len() as u32);
                let (inner, outer) = (of(Headers::INNER), of(Headers::OUTER));
                assert_eq!(inner, outer, "{name} cut at {snap}");
            }
        }
    }

    #[test]
    fn the_snap_length_cuts_layer_by_layer() {
        let frame = Frame::ethernet().vlan(1).ipv4(A, B).options(&[1; 4]).tcp(1, 2).bytes();
        let len = frame.len() as u32;
        let mut lines: Vec<String> = Vec::new();
        for snap in 0..=frame.len() {
            let said = describe(LinkType::ETHERNET, &frame[..snap], len);
            if lines.last().is_none_or(|last| last.split_once(' ').unwrap().1 != said) {
                lines.push(format!("{snap} {said}"));
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r"
        0 CUT
        14 eth CUT
        18 depth=1 eth vlan CUT
        38 depth=1 eth vlan ipv4 CUT 18: 6@42
        46 depth=1 eth vlan ipv4 ports tcp CUT 18: 6@42
        62 depth=1 eth vlan ipv4 ports tcp whole 18: 6@42
        ");
    }

    #[test]
    fn a_packet_that_ends_on_the_wire_is_not_cut_but_malformed() {
        let frame = Frame::ethernet().ipv4(A, B).tcp(1, 2).bytes();
        let short = &frame[..40];
        assert_eq!(
            describe(LinkType::ETHERNET, short, 40),
            "eth ipv4 ports tcp MALFORMED (ipv4 total length) 14: 6@34"
        );
        assert_eq!(describe(LinkType::ETHERNET, short, 54), "eth ipv4 ports tcp CUT 14: 6@34");
        assert_eq!(
            describe(LinkType::ETHERNET, &frame, 40),
            describe(LinkType::ETHERNET, &frame, 54)
        );
        assert_eq!(describe(LinkType::ETHERNET, &[], 0), "MALFORMED (short header)");
        assert_eq!(describe(LinkType::ETHERNET, &[], 60), "CUT");
    }

    #[test]
    fn a_frame_both_malformed_and_cut_is_counted_once() {
        let frame = Frame::ethernet().ipv4(A, B).put(crate::ipv4::TOTAL_LENGTH, &[9, 0]).tcp(1, 2);
        let mut layers = Layers::new();
        classify(&batch(LinkType::ETHERNET, &[(frame.bytes()[..36].to_vec(), 54)]), &mut layers);
        assert!(layers.has(Layer::Cut).has(0) && layers.has(Layer::Malformed).has(0));
        assert_eq!((layers.cut, layers.malformed[Reason::Ipv4TotalLength as usize]), (0, 1));
    }

    #[test]
    fn counts_go_on_from_batch_to_batch() {
        let mut layers = Layers::new();
        let bad = Frame::ethernet().ipv4(A, B).tcp(1, 2).put(crate::tcp::DATA_OFFSET, &[0]).bytes();
        let frames = batch(LinkType::ETHERNET, &[(bad.clone(), 54), (bad[..20].to_vec(), 54)]);
        for round in 1..=3 {
            classify(&frames, &mut layers);
            assert_eq!(layers.malformed[Reason::TcpDataOffset as usize], round);
            assert_eq!(layers.malformed.iter().sum::<u64>(), round);
            assert_eq!(layers.cut, round);
        }
        classify(&FrameBatch::new(), &mut layers);
        assert!(layers.has.iter().all(Bits::is_empty));
    }

    #[test]
    fn reasons_are_numbered_in_order() {
        for (i, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
        }
    }

    #[test]
    fn supported_links_are_walked_and_no_others() {
        let walked = |n: u16| {
            // Every link has some header, and here it is not all there.
            describe(LinkType(n), &[], 0) != "nothing"
        };
        for n in 0..400 {
            assert_eq!(supported(LinkType(n)), walked(n), "{n}");
        }
    }
}
