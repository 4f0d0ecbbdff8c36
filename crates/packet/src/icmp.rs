//! ICMP (RFC 792) and ICMPv6 (RFC 4443) headers, which share their first bytes.
//!
//! ```text
//!  0               8               16              24            31
//! +---------------+---------------+-------------------------------+
//! |     type      |     code      |           checksum            |
//! +---------------+---------------+-------------------------------+
//! |  identifier (echo)            |  sequence number (echo)       |
//! +-------------------------------+-------------------------------+
//! ```

use crate::walk::Reason;

/// The protocol number of ICMP in an IP header.
pub const PROTOCOL: u8 = 1;
/// The protocol number of ICMPv6 in an IP header.
pub const PROTOCOL_V6: u8 = 58;

/// Offset of the type.
pub const TYPE: usize = 0;
/// Offset of the code.
pub const CODE: usize = 1;
/// Offset of the checksum.
pub const CHECKSUM: usize = 2;
/// Offset of the identifier in an echo message.
pub const ID: usize = 4;
/// Offset of the sequence number in an echo message.
pub const SEQ: usize = 6;
/// Bytes that every message has: type, code and checksum.
pub const HEADER_LEN: usize = 4;
/// Bytes of the header of an echo message.
pub const ECHO_LEN: usize = 8;

/// ICMP type: echo reply.
pub const ECHO_REPLY: u8 = 0;
/// ICMP type: echo request.
pub const ECHO_REQUEST: u8 = 8;
/// ICMPv6 type: echo request.
pub const ECHO_REQUEST_V6: u8 = 128;
/// ICMPv6 type: echo reply.
pub const ECHO_REPLY_V6: u8 = 129;

/// An ICMP or ICMPv6 header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Icmp<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Icmp<'a> {
    /// A view of `bytes`, which start at the header and end where the captured IP packet does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 4 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Icmp<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        Ok(Icmp { header, rest })
    }

    /// Message type; ICMP and ICMPv6 number them differently.
    pub fn kind(&self) -> u8 {
        self.header[TYPE]
    }

    /// Code: what the type leaves open.
    pub fn code(&self) -> u8 {
        self.header[CODE]
    }

    /// Checksum as sent.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[CHECKSUM], self.header[CHECKSUM + 1]])
    }

    /// Identifier and sequence number of an ICMP echo request or reply; of other messages, and of
    /// ones cut before these, nothing.
    pub fn echo(&self) -> Option<(u16, u16)> {
        matches!(self.kind(), ECHO_REPLY | ECHO_REQUEST).then(|| self.id_and_seq()).flatten()
    }

    /// The same for ICMPv6.
    pub fn echo_v6(&self) -> Option<(u16, u16)> {
        matches!(self.kind(), ECHO_REQUEST_V6 | ECHO_REPLY_V6).then(|| self.id_and_seq()).flatten()
    }

    /// The captured bytes after type, code and checksum.
    pub fn body(&self) -> &'a [u8] {
        self.rest
    }

    fn id_and_seq(&self) -> Option<(u16, u16)> {
        let b = self.rest.first_chunk::<4>()?;
        Some((u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_echo_request() {
        let bytes = [8, 0, 0xab, 0xcd, 0x12, 0x34, 0x00, 0x05, b'x'];
        let icmp = Icmp::new(&bytes).unwrap();
        assert_eq!((icmp.kind(), icmp.code(), icmp.checksum()), (8, 0, 0xabcd));
        assert_eq!(icmp.echo(), Some((0x1234, 5)));
        assert_eq!(icmp.echo_v6(), None, "type 8 is unassigned in ICMPv6");
        assert_eq!(icmp.body().len(), 5);
    }

    #[test]
    fn the_two_number_their_echoes_differently() {
        let bytes = [129, 0, 0, 0, 0, 1, 0, 2];
        let icmp = Icmp::new(&bytes).unwrap();
        assert_eq!((icmp.echo(), icmp.echo_v6()), (None, Some((1, 2))));
    }

    #[test]
    fn cut_messages_have_what_was_captured() {
        assert_eq!(Icmp::new(&[8, 0, 0]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Icmp::new(&[8, 0, 0, 0, 1, 1, 2]).unwrap().echo(), None);
    }
}
