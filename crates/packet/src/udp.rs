//! UDP headers (RFC 768).
//!
//! ```text
//!  0               8               16              24            31
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |            length             |           checksum            |
//! +-------------------------------+-------------------------------+
//! | payload …
//! ```
//!
//! [`Udp::new`] is the one call that can fail. It makes sure that the header is there, and after
//! it no accessor can fail, panic or allocate. It does not ask for the payload: a packet cut by
//! the snap length is normal, and [`Udp::payload`] is what was captured of it.

use crate::walk::Reason;

/// The protocol number of UDP in an IP header.
pub const PROTOCOL: u8 = 17;

/// Offset of the source port.
pub const SPORT: usize = 0;
/// Offset of the destination port.
pub const DPORT: usize = 2;
/// Offset of the length of header and payload.
pub const LENGTH: usize = 4;
/// Offset of the checksum.
pub const CHECKSUM: usize = 6;
/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// A UDP header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Udp<'a> {
    /// A view of `bytes`, which start at the header and end where the captured IP packet does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 8 bytes, and [`Reason::UdpLength`] if the
    /// length field says so. A length of 0 is good here: it stands for "to the end of the packet"
    /// in jumbograms (RFC 2675, section 4), and only the IP header can tell whether this is one.
    pub fn new(bytes: &'a [u8]) -> Result<Udp<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        let udp = Udp { header, rest };
        match udp.length() as usize {
            1..HEADER_LEN => Err(Reason::UdpLength),
            _ => Ok(udp),
        }
    }

    /// Source port; 0 where the sender expects no answer.
    pub fn sport(&self) -> u16 {
        self.word(SPORT)
    }

    /// Destination port.
    pub fn dport(&self) -> u16 {
        self.word(DPORT)
    }

    /// Bytes of header and payload as sent: at least 8, or 0 in a jumbogram. In the first fragment
    /// of a datagram this is the length of the whole datagram.
    pub fn length(&self) -> u16 {
        self.word(LENGTH)
    }

    /// Checksum as sent; 0 where the sender computed none.
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// The captured bytes of the payload, without what follows the datagram.
    pub fn payload(&self) -> &'a [u8] {
        match (self.length() as usize).checked_sub(HEADER_LEN) {
            Some(sent) => &self.rest[..sent.min(self.rest.len())],
            None => self.rest,
        }
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Port 50000 to 53, 12 bytes, checksum 0xbeef, payload `ping`.
    const QUERY: [u8; 12] =
        [0xc3, 0x50, 0x00, 0x35, 0x00, 0x0c, 0xbe, 0xef, b'p', b'i', b'n', b'g'];

    fn with_length(length: u16) -> [u8; 12] {
        let mut bytes = QUERY;
        bytes[LENGTH..CHECKSUM].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn reads_a_header() {
        let udp = Udp::new(&QUERY).unwrap();
        assert_eq!((udp.sport(), udp.dport()), (50_000, 53));
        assert_eq!(udp.length(), 12);
        assert_eq!(udp.checksum(), 0xbeef);
        assert_eq!(udp.payload(), b"ping");
    }

    #[test]
    fn a_short_header_is_refused() {
        for n in 0..HEADER_LEN {
            assert_eq!(Udp::new(&QUERY[..n]).unwrap_err(), Reason::ShortHeader);
        }
    }

    #[test]
    fn a_length_inside_the_header_is_refused() {
        for length in 1..8 {
            assert_eq!(Udp::new(&with_length(length)).unwrap_err(), Reason::UdpLength);
        }
    }

    #[test]
    fn the_payload_ends_with_the_datagram_or_the_capture() {
        let payload = |length| Udp::new(&with_length(length)).unwrap().payload().len();
        assert_eq!(payload(8), 0);
        assert_eq!(payload(10), 2);
        assert_eq!(payload(1_000), 4);
        assert_eq!(payload(0), 4);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_view_or_a_reason(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            match Udp::new(&bytes) {
                Ok(udp) => prop_assert!(udp.payload().len() + HEADER_LEN <= bytes.len()),
                Err(Reason::ShortHeader) => prop_assert!(bytes.len() < HEADER_LEN),
                Err(reason) => prop_assert_eq!(reason, Reason::UdpLength),
            }
        }
    }
}
