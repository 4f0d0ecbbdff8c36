//! PPP over Ethernet (RFC 2516).
//!
//! ```text
//!  0       4       8               16                            31
//! +-------+-------+---------------+-------------------------------+
//! | ver 1 | type 1|     code      |          session              |
//! +-------+-------+---------------+-------------------------------+
//! |  length of payload            |  PPP protocol, payload …
//! +-------------------------------+
//! ```

use crate::walk::Reason;

/// EtherType of the discovery stage: no payload but tags.
pub const DISCOVERY: u16 = 0x8863;
/// EtherType of the session stage: PPP.
pub const SESSION: u16 = 0x8864;

/// Offset of the code.
pub const CODE: usize = 1;
/// Offset of the session's number.
pub const SESSION_ID: usize = 2;
/// Offset of the payload's length.
pub const LENGTH: usize = 4;
/// Bytes of the header.
pub const HEADER_LEN: usize = 6;

/// A PPPoE header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Pppoe<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Pppoe<'a> {
    /// A view of `bytes`, which start at the header.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 6 bytes, and [`Reason::Pppoe`] if version or
    /// type are not 1.
    pub fn new(bytes: &'a [u8]) -> Result<Pppoe<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        if header[0] != 0x11 { Err(Reason::Pppoe) } else { Ok(Pppoe { header, rest }) }
    }

    /// The kind of the packet; 0 for session data.
    pub fn code(&self) -> u8 {
        self.header[CODE]
    }

    /// Number of the session; 0 until there is one.
    pub fn session(&self) -> u16 {
        u16::from_be_bytes([self.header[SESSION_ID], self.header[SESSION_ID + 1]])
    }

    /// Bytes of the payload as sent.
    pub fn length(&self) -> u16 {
        u16::from_be_bytes([self.header[LENGTH], self.header[LENGTH + 1]])
    }

    /// The captured bytes of the payload, without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.rest[..self.rest.len().min(self.length().into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_header() {
        let bytes = [0x11, 0, 0x12, 0x34, 0, 2, 0x00, 0x21, 0x45];
        let pppoe = Pppoe::new(&bytes).unwrap();
        assert_eq!((pppoe.code(), pppoe.session(), pppoe.length()), (0, 0x1234, 2));
        assert_eq!(pppoe.payload(), [0x00, 0x21]);
        assert_eq!(Pppoe::new(&bytes[..5]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Pppoe::new(&[0x21; 6]).unwrap_err(), Reason::Pppoe);
    }
}
