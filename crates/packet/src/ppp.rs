//! PPP frames (RFC 1661), bare and in HDLC-like framing (RFC 1662).
//!
//! ```text
//! +-----------------+----------------------+
//! | 0xff 0x03       | protocol (1 or 2)    | payload …
//! | may be left out | 1 byte if it is odd  |
//! +-----------------+----------------------+
//! ```

use crate::walk::Reason;

/// Address and control of HDLC-like framing; peers may agree to leave them out.
pub const ADDRESS_CONTROL: [u8; 2] = [0xff, 0x03];

/// PPP protocol number of IPv4.
pub const IPV4: u16 = 0x0021;
/// PPP protocol number of IPv6.
pub const IPV6: u16 = 0x0057;
/// PPP protocol number of MPLS, unicast; multicast is one of its own.
pub const MPLS: u16 = 0x0281;
/// PPP protocol number of multicast MPLS.
pub const MPLS_MULTICAST: u16 = 0x0283;

/// A PPP header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Ppp<'a> {
    protocol: u16,
    header_len: usize,
    rest: &'a [u8],
}

impl<'a> Ppp<'a> {
    /// A view of `bytes`, which start at the header.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if the protocol number is not there.
    pub fn new(bytes: &'a [u8]) -> Result<Ppp<'a>, Reason> {
        let start = if bytes.starts_with(&ADDRESS_CONTROL) { 2 } else { 0 };
        let (protocol, len) = match *bytes.get(start..).unwrap_or(&[]) {
            // An odd byte ends the number.
            [short, ..] if short & 1 == 1 => (short.into(), 1),
            [high, low, ..] => (u16::from_be_bytes([high, low]), 2),
            _ => return Err(Reason::ShortHeader),
        };
        let header_len = start + len;
        Ok(Ppp { protocol, header_len, rest: &bytes[header_len..] })
    }

    /// Number of the protocol inside (the PPP registry of IANA).
    pub fn protocol(&self) -> u16 {
        self.protocol
    }

    /// Bytes of the header: 1 to 4.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// The captured bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_peers_may_leave_out_is_not_missed() {
        let read = |bytes: &[u8]| Ppp::new(bytes).map(|p| (p.protocol(), p.header_len()));
        assert_eq!(read(&[0xff, 0x03, 0x00, 0x21, 0x45]), Ok((IPV4, 4)));
        assert_eq!(read(&[0x00, 0x57, 0x60]), Ok((IPV6, 2)));
        assert_eq!(read(&[0x21, 0x45]), Ok((IPV4, 1)));
        assert_eq!(read(&[0xff, 0x03, 0x21]), Ok((IPV4, 3)));
        assert_eq!(read(&[0xff, 0x03, 0x00]), Err(Reason::ShortHeader));
        assert_eq!(read(&[]), Err(Reason::ShortHeader));
    }
}
