//! Cisco HDLC headers (RFC 1547, section 4.3.1).
//!
//! ```text
//! +-------------+-------------+----------+
//! | address (1) | control (1) | type (2) | payload …
//! +-------------+-------------+----------+
//! ```
//!
//! The type is an EtherType, or one of Cisco's own: 0x8035 keeps the link alive.

/// Offset of the type.
pub const TYPE: usize = 2;
/// Bytes of the header.
pub const HEADER_LEN: usize = 4;

/// Whether a frame on a serial link begins with a Cisco HDLC address: to one, or to all. PPP has
/// 0xff there, or begins with a protocol number that is neither.
pub fn is_address(first: u8) -> bool {
    matches!(first, 0x0f | 0x8f)
}
