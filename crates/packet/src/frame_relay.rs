//! Frame Relay headers (Q.922, RFC 2427), and those of Cisco's own encapsulation.
//!
//! ```text
//! +--------------------+-------------------+------------+
//! | address (2 to 4)   | control 0x03 (1)  | nlpid (1)  | payload …
//! |                    | EtherType (2), if not RFC 2427 | payload …
//! +--------------------+-------------------+------------+
//! ```

use crate::walk::Reason;

/// Bytes of the longest header: four of address, control, padding, NLPID.
pub const HEADER_LEN_MAX: usize = 7;

/// Control: unnumbered information.
const UNNUMBERED: u8 = 0x03;
/// NLPID of IPv4 (RFC 2427, appendix A).
pub const NLPID_IPV4: u8 = 0xcc;
/// NLPID of IPv6.
pub const NLPID_IPV6: u8 = 0x8e;
/// NLPID of SNAP: organization and protocol follow.
pub const NLPID_SNAP: u8 = 0x80;

/// The protocol after a header, as the header names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follows {
    /// A protocol by its NLPID.
    Nlpid(u8),
    /// A protocol by its EtherType.
    Ethertype(u16),
}

/// A Frame Relay header.
#[derive(Clone, Copy, Debug)]
pub struct FrameRelay {
    /// Bytes of the header.
    pub header_len: usize,
    /// The protocol that follows.
    pub follows: Follows,
}

impl FrameRelay {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if they end inside the header, and [`Reason::FrameRelay`] if the
    /// address does not end after two, three or four bytes.
    pub fn new(bytes: &[u8]) -> Result<FrameRelay, Reason> {
        // The lowest bit of an address byte says whether it is the last.
        let last = bytes.iter().take(4).position(|b| b & 1 == 1);
        let address = match last {
            Some(last @ 1..) => last + 1,
            None if bytes.len() < 4 => return Err(Reason::ShortHeader),
            _ => return Err(Reason::FrameRelay),
        };
        let (header_len, follows) = match *bytes.get(address..).unwrap_or(&[]) {
            // A byte of padding may stand before the NLPID.
            [UNNUMBERED, 0, nlpid, ..] => (address + 3, Follows::Nlpid(nlpid)),
            [UNNUMBERED, nlpid, ..] => (address + 2, Follows::Nlpid(nlpid)),
            [high, low, ..] => (address + 2, Follows::Ethertype(u16::from_be_bytes([high, low]))),
            _ => return Err(Reason::ShortHeader),
        };
        Ok(FrameRelay { header_len, follows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encapsulations_are_read() {
        let read = |bytes: &[u8]| FrameRelay::new(bytes).map(|f| (f.header_len, f.follows));
        assert_eq!(read(&[0x18, 0x41, 3, 0xcc, 0x45]), Ok((4, Follows::Nlpid(NLPID_IPV4))));
        assert_eq!(read(&[0x18, 0x41, 3, 0, 0x80]), Ok((5, Follows::Nlpid(NLPID_SNAP))));
        assert_eq!(read(&[0x18, 0x40, 0x41, 3, 0x8e]), Ok((5, Follows::Nlpid(NLPID_IPV6))));
        assert_eq!(read(&[0x18, 0x41, 8, 0]), Ok((4, Follows::Ethertype(0x0800))));
        assert_eq!(read(&[0x18, 0x41, 3]), Err(Reason::ShortHeader));
        assert_eq!(read(&[0x19, 0x41, 3, 0xcc]), Err(Reason::FrameRelay));
        assert_eq!(read(&[0x18, 0x40, 0x40, 0x40, 3]), Err(Reason::FrameRelay));
        assert_eq!(read(&[]), Err(Reason::ShortHeader));
    }
}
