//! Payload that the walk does not go into: whether headers may be in it that hold addresses.
//!
//! What nobody knows is taken for data. What is known to carry packets or frames, or to hold
//! addresses of its own to resolve or route them, may hide addresses, unless it is encrypted.

/// EtherTypes of which an address may be in the payload.
const TYPES: [u16; 32] = [
    0x0600, 0x6003, // XNS and DECnet, whose addresses are MAC addresses.
    0x0660, 0x0661, // DLOG.
    0x2001, // Address resolution over GRE (RFC 2332), group management of switches.
    0x22f3, 0x8942, 0x8946, // TRILL.
    0x4305, // B.A.T.M.A.N.
    0x6559, // Frame Relay.
    0x80f3, // Address resolution of AppleTalk.
    0x8137, 0x8138, // IPX, whose addresses end in MAC addresses.
    0x876b, // Compressed TCP/IP headers (RFC 1144).
    0x880b, // PPP.
    0x883e, // Redirected packets (WCCP).
    0x8870, // LLC in frames of more than 1536 bytes.
    0x88e7, // Provider backbone bridges.
    0x88fb, 0x892f, // Seamless redundancy (PRP, HSR).
    0x8903, // FabricPath.
    0x8909, // Cisco's metadata, before the type of what follows.
    0x890d, // 802.11 over a wire.
    0x8914, // FCoE initialization.
    0x9000, // Loopback tests, which name the next station.
    0x9200, 0x9300, // VLAN tags under other numbers.
    0x9999, 0x8874, 0xdada, // Tags of switch chips.
    0xa0ed, // 6LoWPAN.
    0xf1c1, // Redundancy tags (802.1CB).
];

/// EtherType of MACsec (802.1AE).
const MACSEC: u16 = 0x88e5;

/// Whether the payload that this EtherType announces may hold addresses.
pub(super) fn in_type(ethertype: u16, payload: &[u8]) -> bool {
    match (ethertype, payload) {
        // Encrypted, and its tag does not name the sender.
        (MACSEC, [tag, ..]) => tag & 0x2c != 0x0c,
        _ => TYPES.contains(&ethertype),
    }
}

/// The same of LLC: not of spanning tree, SNA, NetBIOS, and of tests between stations.
pub(super) fn in_llc(start: [u8; 3]) -> bool {
    match start {
        [dsap, _, control] if dsap & 0xfe == 0 => !matches!(control & 0xef, 0xaf | 0xe3),
        [dsap, ..] => !matches!(dsap & 0xfe, 0x04 | 0x08 | 0x0c | 0x42 | 0xf0),
    }
}

/// The same of an organization's own number after SNAP: Cisco and Apple number protocols that say
/// something of a station; bridges (IEEE 802.1) and others carry frames.
pub(super) fn in_snap(organization: [u8; 3]) -> bool {
    !matches!(organization, [0, 0, 0x0c] | [0x08, 0, 7])
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
    fn what_controls_a_link_hides_nothing() {
        assert!(!in_ppp(0xc021, &[]) && !in_ppp(0xc223, &[]) && !in_ppp(0x80fd, &[]));
        assert!(in_ppp(0x8021, &[]), "hosts are given their addresses");
        assert!(!in_llc([0x42, 0x42, 3]) && !in_llc([0, 1, 0xbf]) && !in_llc([0, 1, 0xf3]));
        assert!(in_llc([0, 0x1f, 0]) && in_llc([0xe0, 0xe0, 3]) && in_llc([0xaa, 0xaa, 0xf3]));
        assert!(!in_slarp(&[0, 0, 0, 2, 0, 0]) && in_slarp(&[0, 0, 0, 1]) && in_slarp(&[]));
    }
}
