//! LLC headers (IEEE 802.2) and their extension SNAP, where they lead to an EtherType.
//!
//! ```text
//! +---------------+---------------+---------+----------+------+
//! | dsap 0xaa (1) | ssap 0xaa (1) | 0x03 (1)| oui (3)  | type (2) | payload …
//! +---------------+---------------+---------+----------+------+
//! ```

/// How an LLC header begins that SNAP follows: unnumbered information between two SNAP points.
pub const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
/// How an LLC header begins that IPv4 follows (RFC 948, no longer in use).
pub const IP: [u8; 3] = [0x06, 0x06, 0x03];

/// Bytes of an LLC header with unnumbered control.
pub const LLC_LEN: usize = 3;
/// Bytes of an LLC header with SNAP.
pub const SNAP_LEN: usize = 8;

/// Organizations whose protocol number is an EtherType: encapsulated Ethernet (RFC 1042), and
/// bridge tunnels (802.1H).
const ETHERTYPES: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// The EtherType in a SNAP header, if `header` is one and the organization's numbers are
/// EtherTypes.
pub fn snap_ethertype(header: &[u8; SNAP_LEN]) -> Option<u16> {
    let [_, _, _, a, b, c, high, low] = *header;
    let leads = header.starts_with(&SNAP) && ETHERTYPES.contains(&[a, b, c]);
    leads.then(|| u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snap_leads_to_an_ethertype() {
        assert_eq!(snap_ethertype(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]), Some(0x0800));
        assert_eq!(snap_ethertype(&[0xaa, 0xaa, 3, 0, 0, 0xf8, 0x86, 0xdd]), Some(0x86dd));
        // Cisco's own numbers: its discovery protocol.
        assert_eq!(snap_ethertype(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0]), None);
        assert_eq!(snap_ethertype(&[0x42, 0x42, 3, 0, 0, 0, 8, 0]), None);
    }
}
