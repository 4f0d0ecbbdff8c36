//! Network service headers (RFC 8300).
//!
//! ```text
//!  0   2 3 4         10          16      20      24            31
//! +---+-+-+-----------+-----------+-------+-------+---------------+
//! |ver|O|U|  ttl      | length/4  |  0    |  type | next protocol |
//! +---+-+-+-----------+-----------+-------+-------+---------------+
//! |  service path                                 | service index |
//! +-----------------------------------------------+---------------+
//! |  context …
//! ```

use crate::walk::Reason;

/// EtherType of NSH.
pub const ETHERTYPE: u16 = 0x894f;
/// Bytes of the header without context.
pub const HEADER_LEN: usize = 8;

/// Next protocol: IPv4.
pub const IPV4: u8 = 1;
/// Next protocol: IPv6.
pub const IPV6: u8 = 2;
/// Next protocol: an Ethernet frame.
pub const ETHERNET: u8 = 3;
/// Next protocol: another NSH.
pub const NSH: u8 = 4;
/// Next protocol: MPLS.
pub const MPLS: u8 = 5;

/// A network service header.
#[derive(Clone, Copy, Debug)]
pub struct Nsh<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Nsh<'a> {
    /// A view of `bytes`, which start at the header. The context need not be there.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 8 bytes, and [`Reason::Nsh`] if the version
    /// is not 0 or the length is under 8.
    pub fn new(bytes: &'a [u8]) -> Result<Nsh<'a>, Reason> {
        let nsh = Nsh(bytes.first_chunk().ok_or(Reason::ShortHeader)?);
        let sound = nsh.0[0] >> 6 == 0 && nsh.header_len() >= HEADER_LEN;
        if sound { Ok(nsh) } else { Err(Reason::Nsh) }
    }

    /// Bytes of the header with its context.
    pub fn header_len(&self) -> usize {
        usize::from(self.0[1] & 0x3f) * 4
    }

    /// The protocol that follows the header.
    pub fn next_protocol(&self) -> u8 {
        self.0[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_header() {
        let nsh = Nsh::new(&[0x0f, 0xc6, 1, 3, 0, 0, 1, 255]).unwrap();
        assert_eq!((nsh.header_len(), nsh.next_protocol()), (24, ETHERNET));
        assert_eq!(Nsh::new(&[0; 7]).unwrap_err(), Reason::ShortHeader);
        assert_eq!(Nsh::new(&[0; 8]).unwrap_err(), Reason::Nsh);
        assert_eq!(Nsh::new(&[0x40, 2, 1, 1, 0, 0, 0, 0]).unwrap_err(), Reason::Nsh);
    }
}
