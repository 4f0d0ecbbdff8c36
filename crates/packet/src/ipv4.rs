//! IPv4 headers (RFC 791).
//!
//! ```text
//!  0               8               16              24            31
//! +-------+-------+-----------+---+-------------------------------+
//! |   4   |  ihl  |   dscp    |ecn|         total length          |
//! +-------+-------+-----------+---+-----+-------------------------+
//! |        identification         |0|D|M|  fragment offset / 8    |
//! +---------------+---------------+-----+-------------------------+
//! |      ttl      |   protocol    |           checksum            |
//! +---------------+---------------+-------------------------------+
//! |                        source address                         |
//! +---------------------------------------------------------------+
//! |                      destination address                      |
//! +---------------------------------------------------------------+
//! | options, up to ihl; then payload …
//! ```

use crate::walk::Reason;
use std::net::Ipv4Addr;

/// Offset of the byte of version (high four bits) and header length in 32-bit words.
pub const VERSION_IHL: usize = 0;
/// Offset of the byte of differentiated services (six bits) and congestion notification (two).
pub const DSCP_ECN: usize = 1;
/// Offset of the length of header and payload.
pub const TOTAL_LENGTH: usize = 2;
/// Offset of the identification.
pub const ID: usize = 4;
/// Offset of the flags (three bits) and the fragment offset (thirteen).
pub const FRAGMENT: usize = 6;
/// Offset of the time to live.
pub const TTL: usize = 8;
/// Offset of the protocol number.
pub const PROTOCOL: usize = 9;
/// Offset of the header checksum.
pub const CHECKSUM: usize = 10;
/// Offset of the source address.
pub const SOURCE: usize = 12;
/// Offset of the destination address.
pub const DESTINATION: usize = 16;
/// Bytes of the header without options, the least there can be.
pub const HEADER_LEN: usize = 20;

/// In the word at [`FRAGMENT`]: don't fragment.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// In the word at [`FRAGMENT`]: more fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// In the word at [`FRAGMENT`]: the fragment offset, in units of eight bytes.
pub const OFFSET_BITS: u16 = 0x1fff;

/// An IPv4 header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// A view of `bytes`, which start at the header and end where the captured frame does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 20 bytes, [`Reason::IpVersion`] if the
    /// version is not 4, and [`Reason::Ipv4HeaderLength`] if the header length is under 20 bytes
    /// or beyond the total length.
    pub fn new(bytes: &'a [u8]) -> Result<Ipv4<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        let ip = Ipv4 { header, rest };
        if header[VERSION_IHL] >> 4 != 4 {
            return Err(Reason::IpVersion);
        }
        let total = ip.total_length() as usize;
        if ip.header_len() < HEADER_LEN || (total != 0 && total < ip.header_len()) {
            return Err(Reason::Ipv4HeaderLength);
        }
        Ok(ip)
    }

    /// Bytes of the header with its options, 20 to 60.
    pub fn header_len(&self) -> usize {
        usize::from(self.header[VERSION_IHL] & 15) * 4
    }

    /// Differentiated services code point (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.header[DSCP_ECN] >> 2
    }

    /// Explicit congestion notification bits (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.header[DSCP_ECN] & 3
    }

    /// Bytes of header and payload as sent; 0 in packets captured before the network card cut
    /// them into segments, which reach to the end of the frame.
    pub fn total_length(&self) -> u16 {
        self.word(TOTAL_LENGTH)
    }

    /// Identification, the same in all fragments of a packet.
    pub fn id(&self) -> u16 {
        self.word(ID)
    }

    /// Don't fragment flag.
    pub fn dont_fragment(&self) -> bool {
        self.word(FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// More fragments flag.
    pub fn more_fragments(&self) -> bool {
        self.word(FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Where the payload belongs in the whole packet's, in bytes.
    pub fn fragment_offset(&self) -> u16 {
        (self.word(FRAGMENT) & OFFSET_BITS) * 8
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.header[TTL]
    }

    /// Protocol number of the payload.
    pub fn protocol(&self) -> u8 {
        self.header[PROTOCOL]
    }

    /// Header checksum as sent.
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        self.address(SOURCE)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        self.address(DESTINATION)
    }

    /// The captured bytes of the options.
    pub fn options(&self) -> &'a [u8] {
        let len = self.header_len() - HEADER_LEN;
        &self.rest[..len.min(self.rest.len())]
    }

    /// The captured bytes of the payload, without what follows the packet.
    pub fn payload(&self) -> &'a [u8] {
        let end = match self.total_length() as usize {
            0 => self.rest.len(),
            total => (total - HEADER_LEN).min(self.rest.len()),
        };
        self.rest[..end].get(self.header_len() - HEADER_LEN..).unwrap_or(&[])
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|i| self.header[at + i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10.0.0.1 to 192.168.1.2, one option word, three bytes of payload, one of padding.
    #[rustfmt::skip]
    const PACKET: [u8; 28] = [
        0x46, 0xb9, 0x00, 0x1b, 0x12, 0x34, 0x60, 0x03, 0x40, 0x11, 0xab, 0xcd,
        10, 0, 0, 1, 192, 168, 1, 2,
        0x94, 0x04, 0x00, 0x00, b'a', b'b', b'c', 0,
    ];

    #[test]
    fn reads_a_header() {
        let ip = Ipv4::new(&PACKET).unwrap();
        assert_eq!((ip.header_len(), ip.total_length()), (24, 27));
        assert_eq!((ip.dscp(), ip.ecn()), (46, 1));
        assert_eq!((ip.id(), ip.ttl(), ip.protocol()), (0x1234, 64, 17));
        assert!(ip.dont_fragment() && ip.more_fragments());
        assert_eq!((ip.fragment_offset(), ip.checksum()), (24, 0xabcd));
        assert_eq!(ip.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(ip.destination(), Ipv4Addr::new(192, 168, 1, 2));
        assert_eq!((ip.options(), ip.payload()), (&[0x94, 4, 0, 0][..], &b"abc"[..]));
    }

    #[test]
    fn bad_headers_are_refused() {
        let check = |at: usize, value: u8, reason| {
            let mut bytes = PACKET;
            bytes[at] = value;
            assert_eq!(Ipv4::new(&bytes).unwrap_err(), reason);
        };
        check(VERSION_IHL, 0x65, Reason::IpVersion);
        check(VERSION_IHL, 0x44, Reason::Ipv4HeaderLength);
        check(TOTAL_LENGTH + 1, 23, Reason::Ipv4HeaderLength);
        assert_eq!(Ipv4::new(&PACKET[..19]).unwrap_err(), Reason::ShortHeader);
    }

    #[test]
    fn without_a_total_length_the_packet_fills_the_frame() {
        let mut bytes = PACKET;
        bytes[TOTAL_LENGTH + 1] = 0;
        assert_eq!(Ipv4::new(&bytes).unwrap().payload(), b"abc\0");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_view_or_a_reason(
            ihl in 0u8..16,
            bytes in proptest::collection::vec(any::<u8>(), 20..90),
        ) {
            let mut bytes = bytes;
            bytes[0] = 0x40 | ihl;
            if let Ok(ip) = Ipv4::new(&bytes) {
                prop_assert!(HEADER_LEN + ip.options().len() + ip.payload().len() <= bytes.len());
            }
        }
    }
}
