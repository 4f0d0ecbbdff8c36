//! Payload that the walk does not go into: whether headers may be in it that hold addresses.
//!
//! Right above a link or IP, everything may hide addresses but what is known to hold none, or is
//! encrypted. A port only hints at what a datagram carries: there, what is known to carry packets,
//! to tell of them or to route them may hide addresses, and the rest is taken for data.

use super::ports::UDP_TUNNELS;

/// EtherTypes of which no address of a packet is in the payload: flow control, slow protocols, what
/// substations send (GOOSE, its management, sampled values), port authentication, and LLDP, which
/// says what a station likes of itself.
const PLAIN_TYPES: [u16; 7] = [0x8808, 0x8809, 0x888e, 0x88b8, 0x88b9, 0x88ba, 0x88cc];

/// EtherType of MACsec (802.1AE).
const MACSEC: u16 = 0x88e5;

/// Whether the payload that this EtherType announces may hold addresses.
pub(super) fn in_type(ethertype: u16, payload: &[u8]) -> bool {
    match (ethertype, payload) {
        // Encrypted, and its tag does not name the sender.
        (MACSEC, [tag, ..]) => tag & 0x2c != 0x0c,
        _ => !PLAIN_TYPES.contains(&ethertype),
    }
}

/// The same of LLC: not of spanning tree, SNA, NetBIOS, and of tests between stations.
pub(super) fn in_llc(start: [u8; 3]) -> bool {
    match start {
        [dsap, _, control] if dsap & 0xfe == 0 => !matches!(control & 0xef, 0xaf | 0xe3),
        [dsap, ..] => !matches!(dsap & 0xfe, 0x04 | 0x08 | 0x0c | 0x42 | 0xf0),
    }
}

/// Protocols that Cisco numbers, by which a station says something of itself: spanning tree, CDP.
/// Others name stations: link aggregation and trunks by MAC addresses, VLANs by the IP address of
/// the last one that changed them, unidirectional links by a text.
const PLAIN_CISCO: [u16; 2] = [0x010b, 0x2000];

/// The same of an organization's own number after SNAP: bridges (IEEE 802.1) and others carry
/// frames; AppleTalk has addresses of its own.
pub(super) fn in_snap(organization: [u8; 3], number: u16) -> bool {
    match organization {
        [0, 0, 0x0c] => !PLAIN_CISCO.contains(&number),
        organization => organization != [0x08, 0, 7],
    }
}

/// The same of PPP: not of what controls the link, and of encrypted packets (RFC 1968, RFC 3078).
pub(super) fn in_ppp(protocol: u16, payload: &[u8]) -> bool {
    match protocol {
        0xc000.. | 0x0053 | 0x0055 | 0x8053 | 0x8055 | 0x80fb | 0x80fd | 0x8281 => false,
        0x00fd => payload.first().is_none_or(|flags| flags & 0x10 == 0),
        _ => true,
    }
}

/// The same of Frame Relay by its NLPID: not of what controls the link.
pub(super) fn in_frame_relay(nlpid: u8) -> bool {
    !matches!(nlpid, 0x08 | 0x09)
}

/// The same of what Cisco calls SLARP: not of what keeps the link alive.
pub(super) fn in_slarp(payload: &[u8]) -> bool {
    !payload.starts_with(&[0, 0, 0, 2])
}

/// Protocols over IP that hold no addresses, or are encrypted: DCCP, ESP.
const PLAIN_PROTOCOLS: [u8; 2] = [33, 50];

/// The same of the payload of IP, of a protocol that is not read.
pub(crate) fn in_protocol(protocol: u8) -> bool {
    !PLAIN_PROTOCOLS.contains(&protocol)
}

/// UDP ports of what carries packets or frames and is not read: IPX, recordings of AudioCodes,
/// L2TP, GPRS over UDP, AMT, clusters of Windows, B.A.T.M.A.N., LISP, GSMTAP, GRE, RoCE, AYIYA,
/// CAPWAP, GUE (also on FOU's usual port), MPLS, PAPI, VXLAN where Linux has it by default and OTV,
/// SCTP, LLC, LWAPP, WASSP, ZEP, telnet by MAC address, mirrored packets, EtherCAT, TZSP, iVXLAN.
const CARRIERS: [u16; 43] = [
    213, 925, 1701, 2157, 2268, 3343, 4305, 4306, 4307, 4341, 4342, 4729, 4754, 4755, 4791, 5072,
    5246, 5247, 5555, 6080, 6635, 8211, 8472, 9899, 12000, 12001, 12002, 12003, 12004, 12220,
    12222, 12223, 13907, 13910, 17754, 17755, 19999, 20561, 30030, 34980, 37008, 48879, 49999,
];

/// UDP ports of what tells of packets, or where they go: packetbb, mobile hosts (434, 699, 5436,
/// 10500), rendezvous points, RIP, LDP, AODV, OLSR, keystrokes (1101), HSRP, WCCP, flow records
/// (2055, 4739, 6343, 9995, 9996), DLSw, GTP control, WiMAX, access points (2313, 2887), caches
/// (3121, 3130), GLBP, GTP', RSVP, echoes of labels and of BFD, port mappings, neighbours of
/// MikroTik, Babel, clusters, PFCP, tables of connections (8848), links (LMP), radio links (DLEP).
const TELLERS: [u16; 41] = [
    269, 434, 496, 520, 521, 646, 654, 698, 699, 701, 854, 1101, 1985, 2029, 2048, 2055, 2067,
    2123, 2231, 2313, 2887, 3121, 3130, 3222, 3386, 3455, 3503, 3785, 4739, 5350, 5351, 5436, 5678,
    6343, 6696, 8116, 8805, 8848, 9995, 9996, 10500,
];

/// TCP ports of both kinds: BGP, origins of routes (323, 324), MSDP, LDP, DLEP, XOT, remote
/// captures, DLSw, GTP, the daemons of Zebra (2600 to 2609), ATM, GTP', PCEP, LISP, IPFIX,
/// OpenFlow, STT, BMP.
const STREAMS: [u16; 32] = [
    179, 323, 324, 639, 646, 854, 925, 1998, 2002, 2065, 2067, 2123, 2152, 2600, 2601, 2602, 2603,
    2604, 2605, 2606, 2607, 2608, 2609, 2812, 3386, 4189, 4342, 4739, 6633, 6653, 7471, 11019,
];

/// How datagrams start that carry mirrored frames of 802.11 on any port (PEEKREMOTE).
const MIRRORED: [u8; 4] = [0, 0xff, 0xab, 0xcd];

/// The same of datagrams of UDP from or to this port.
pub(crate) fn in_datagram(port: u16, data: &[u8]) -> bool {
    CARRIERS.contains(&port) || TELLERS.contains(&port) || data.starts_with(&MIRRORED)
}

/// The same of datagrams of UDP-Lite, of which the walk goes into no tunnel.
pub(crate) fn in_lite_datagram(port: u16, data: &[u8]) -> bool {
    UDP_TUNNELS.iter().any(|(_, tunnel)| *tunnel == port) || in_datagram(port, data)
}

/// The same of segments of TCP from or to this port.
pub(crate) fn in_segment(port: u16, _: &[u8]) -> bool {
    STREAMS.contains(&port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_hides_nothing() {
        assert!(in_type(MACSEC, &[0x00, 0]), "in the clear");
        assert!(in_type(MACSEC, &[0x2c, 0]), "the tag names the sender");
        assert!(in_type(MACSEC, &[0x04, 0]), "changed, and not encrypted");
        assert!(!in_type(MACSEC, &[0x0c, 0]));
        assert!(in_ppp(0x00fd, &[0x80, 1]) && !in_ppp(0x00fd, &[0x90, 1]));
        assert!(!in_ppp(0x0053, &[]) && in_ppp(0x002f, &[]));
    }

    #[test]
    fn what_is_not_known_may_hide_an_address() {
        assert!(in_type(0xab37, &[]) && in_type(0x1234, &[]) && !in_type(0x88cc, &[]));
        assert!(in_snap([0, 0, 0x0c], 0x2001) && !in_snap([0, 0, 0x0c], 0x2000));
        assert!(in_protocol(253) && in_protocol(112) && !in_protocol(50));
        assert!(in_datagram(4754, &[]) && in_datagram(520, &[]) && !in_datagram(53, &[]));
        assert!(in_segment(7471, &[]) && !in_segment(80, &[]));
        assert!(in_lite_datagram(4789, &[]) && in_lite_datagram(520, &[]));
        assert!(!in_lite_datagram(53, &[]));
    }

    #[test]
    fn what_controls_a_link_hides_nothing() {
        assert!(!in_ppp(0xc021, &[]) && !in_ppp(0xc223, &[]) && !in_ppp(0x80fd, &[]));
        assert!(in_ppp(0x8021, &[]), "hosts are given their addresses");
        assert!(!in_llc([0x42, 0x42, 3]) && !in_llc([0, 1, 0xbf]) && !in_llc([0, 1, 0xf3]));
        assert!(in_llc([0, 0x1f, 0]) && in_llc([0xe0, 0xe0, 3]) && in_llc([0xaa, 0xaa, 0xf3]));
        assert!(!in_slarp(&[0, 0, 0, 2, 0, 0]) && in_slarp(&[0, 0, 0, 1]) && in_slarp(&[]));
    }
}
