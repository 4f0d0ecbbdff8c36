//! Tags between a switch and its port extenders: E-tags (IEEE 802.1BR) and VN-tags (Cisco). They
//! are stepped over as VLAN tags are, and have no fields.
//!
//! ```text
//! E-tag:  priority, ingress and egress channel (6) | type of what follows (2)
//! VN-tag: direction, interfaces (4)                | type of what follows (2)
//! ```

/// EtherType of an E-tag.
pub const ETAG: u16 = 0x893f;
/// EtherType of a VN-tag.
pub const VNTAG: u16 = 0x8926;

/// Bytes of the tag that this EtherType announces, the type at its end included.
pub fn tag_len(ethertype: u16) -> Option<usize> {
    match ethertype {
        ETAG => Some(8),
        VNTAG => Some(6),
        _ => None,
    }
}
