//! IPv6 headers and extension headers (RFC 8200), and the authentication header (RFC 4302).
//!
//! ```text
//!  0     4           12             16              24            31
//! +-----+-----------+---------------+---------------+-------------+
//! |  6  | dscp, ecn |                 flow label                  |
//! +-----+-----------+-------------+---------------+---------------+
//! |        payload length         |  next header  |   hop limit   |
//! +-------------------------------+---------------+---------------+
//! |  source address (16), destination address (16)                |
//! +---------------------------------------------------------------+
//! | extension headers; then payload …
//! ```

use crate::walk::Reason;
use std::net::Ipv6Addr;

/// Offset of the word of version (four bits), traffic class (eight) and flow label (twenty).
pub const VERSION_CLASS_LABEL: usize = 0;
/// Offset of the length of all that follows the header.
pub const PAYLOAD_LENGTH: usize = 4;
/// Offset of the protocol number of what follows.
pub const NEXT_HEADER: usize = 6;
/// Offset of the hop limit.
pub const HOP_LIMIT: usize = 7;
/// Offset of the source address.
pub const SOURCE: usize = 8;
/// Offset of the destination address.
pub const DESTINATION: usize = 24;
/// Bytes of the header.
pub const HEADER_LEN: usize = 40;

/// Protocol number of the hop-by-hop options header.
pub const HOP_BY_HOP: u8 = 0;
/// Protocol number of the routing header.
pub const ROUTING: u8 = 43;
/// Protocol number of the fragment header.
pub const FRAGMENT: u8 = 44;
/// Protocol number of the authentication header, in IPv4 too.
pub const AUTHENTICATION: u8 = 51;
/// Protocol number that says that nothing follows.
pub const NO_NEXT_HEADER: u8 = 59;
/// Protocol number of the destination options header.
pub const DESTINATION_OPTIONS: u8 = 60;
/// Bytes that every extension header has.
pub const EXTENSION_LEN_MIN: usize = 8;

/// Options that may stand in hop-by-hop options: one byte of padding, and a jumbogram's length.
const PAD_1: u8 = 0;
const JUMBO: u8 = 0xc2;

/// An IPv6 header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Ipv6<'a> {
    /// A view of `bytes`, which start at the header and end where the captured frame does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 40 bytes, and [`Reason::IpVersion`] if the
    /// version is not 6.
    pub fn new(bytes: &'a [u8]) -> Result<Ipv6<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        if header[VERSION_CLASS_LABEL] >> 4 != 6 {
            return Err(Reason::IpVersion);
        }
        Ok(Ipv6 { header, rest })
    }

    /// Differentiated services code point (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// Explicit congestion notification bits (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Flow label, 20 bits (RFC 6437).
    pub fn flow_label(&self) -> u32 {
        let h = self.header;
        u32::from_be_bytes([0, h[1] & 15, h[2], h[3]])
    }

    /// Bytes after the header, as the header says. See [`Ipv6::length`] for 0.
    pub fn payload_length(&self) -> u16 {
        u16::from_be_bytes([self.header[PAYLOAD_LENGTH], self.header[PAYLOAD_LENGTH + 1]])
    }

    /// Bytes after the header as sent: of a jumbogram, what its option says. `None` where nothing
    /// tells: packets captured before the network card cut them into segments, and jumbograms whose
    /// option was not captured. These reach to the end of what carries them.
    pub fn length(&self) -> Option<u32> {
        match self.payload_length() {
            0 if self.next_header() == NO_NEXT_HEADER => Some(0),
            0 => self.jumbo_length(),
            length => Some(length.into()),
        }
    }

    /// The length that the jumbo payload option gives (RFC 2675, section 2), in the hop-by-hop
    /// options.
    fn jumbo_length(&self) -> Option<u32> {
        if self.next_header() != HOP_BY_HOP {
            return None;
        }
        let header_len = Extension::new(HOP_BY_HOP, self.rest).ok()?.header_len();
        let mut options = self.rest.get(2..header_len.min(self.rest.len()))?;
        loop {
            options = match options {
                [PAD_1, rest @ ..] => rest,
                [JUMBO, 4, a, b, c, d, ..] => return Some(u32::from_be_bytes([*a, *b, *c, *d])),
                [_, length, rest @ ..] => rest.get(usize::from(*length)..)?,
                _ => return None,
            }
        }
    }

    /// Protocol number of what follows: an extension header or the payload.
    pub fn next_header(&self) -> u8 {
        self.header[NEXT_HEADER]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.header[HOP_LIMIT]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        self.address(SOURCE)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.address(DESTINATION)
    }

    /// The captured bytes after the header, extension headers included, without what follows the
    /// packet.
    pub fn payload(&self) -> &'a [u8] {
        match self.length() {
            Some(length) => &self.rest[..(length as usize).min(self.rest.len())],
            None => self.rest,
        }
    }

    fn traffic_class(&self) -> u8 {
        self.header[0] << 4 | self.header[1] >> 4
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| self.header[at + i]))
    }
}

/// Whether this protocol number is that of an extension header that can be stepped over: those of
/// RFC 8200, the authentication header, mobility (135), host identity (139) and shim6 (140). An
/// encrypted payload (50) can't.
#[inline(always)]
pub fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS | 135 | 139 | 140
    )
}

/// The first bytes of an extension header.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'a> {
    kind: u8,
    start: &'a [u8; EXTENSION_LEN_MIN],
}

impl<'a> Extension<'a> {
    /// A view of `bytes`, which start at an extension header of protocol number `kind`, one of
    /// [`is_extension`].
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 8 bytes. The rest of a longer header need
    /// not be there: compare [`Extension::header_len`].
    pub fn new(kind: u8, bytes: &'a [u8]) -> Result<Extension<'a>, Reason> {
        let start = bytes.first_chunk().ok_or(Reason::ShortHeader)?;
        Ok(Extension { kind, start })
    }

    /// Protocol number of what follows this header.
    pub fn next_header(&self) -> u8 {
        self.start[0]
    }

    /// Bytes of this header, at least 8.
    pub fn header_len(&self) -> usize {
        match self.kind {
            FRAGMENT => EXTENSION_LEN_MIN,
            AUTHENTICATION => (usize::from(self.start[1]) + 2) * 4,
            _ => (usize::from(self.start[1]) + 1) * 8,
        }
    }

    /// The fields of a fragment header; `None` for other headers, and for the atomic fragments of
    /// RFC 6946: offset 0 and no more to come is a whole packet.
    pub fn fragment(&self) -> Option<Fragment> {
        let s = self.start;
        let word = u16::from_be_bytes([s[2], s[3]]);
        let fragment = Fragment {
            offset: word & 0xfff8,
            more: word & 1 != 0,
            id: u32::from_be_bytes([s[4], s[5], s[6], s[7]]),
        };
        (self.kind == FRAGMENT && (fragment.offset != 0 || fragment.more)).then_some(fragment)
    }
}

/// Which part of which packet a fragment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where the fragment belongs, in bytes from the first.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
    /// Identification, the same in all fragments of a packet.
    pub id: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    const PACKET: [u8; 44] = [
        0x6b, 0x9a, 0xbc, 0xde, 0x00, 0x03, 17, 64,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
        b'a', b'b', b'c', 0,
    ];

    #[test]
    fn reads_a_header() {
        let ip = Ipv6::new(&PACKET).unwrap();
        assert_eq!((ip.dscp(), ip.ecn(), ip.flow_label()), (46, 1, 0xabcde));
        assert_eq!((ip.payload_length(), ip.next_header(), ip.hop_limit()), (3, 17, 64));
        assert_eq!(ip.source(), "2001:db8::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(ip.destination(), "fe80::2".parse::<Ipv6Addr>().unwrap());
        assert_eq!(ip.payload(), b"abc");
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_eq!(Ipv6::new(&PACKET[..39]).unwrap_err(), Reason::ShortHeader);
        let mut bytes = PACKET;
        bytes[0] = 0x45;
        assert_eq!(Ipv6::new(&bytes).unwrap_err(), Reason::IpVersion);
    }

    #[test]
    fn a_length_of_zero_is_open_unless_nothing_follows() {
        let mut bytes = PACKET;
        bytes[PAYLOAD_LENGTH + 1] = 0;
        assert_eq!(Ipv6::new(&bytes).unwrap().payload(), b"abc\0");
        bytes[NEXT_HEADER] = NO_NEXT_HEADER;
        assert_eq!(Ipv6::new(&bytes).unwrap().payload(), b"");
    }

    #[test]
    fn a_jumbogram_is_as_long_as_its_option_says() {
        let length = |options: &[u8]| {
            let mut bytes = [&PACKET[..HEADER_LEN], options].concat();
            bytes[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 2].fill(0);
            bytes[NEXT_HEADER] = HOP_BY_HOP;
            Ipv6::new(&bytes).unwrap().length()
        };
        assert_eq!(length(&[6, 0, 0xc2, 4, 0, 1, 0, 0, 9]), Some(65_536));
        assert_eq!(length(&[6, 1, 0, 0, 1, 2, 7, 7, 0, 0xc2, 4, 0, 0, 0, 5, 0]), Some(5));
        // Not captured, not in this header, not there.
        assert_eq!(length(&[6, 0, 0xc2, 4, 0, 1, 0]), None);
        assert_eq!(length(&[6, 0, 0, 0, 1, 0, 0xc2, 4, 0, 1, 0, 0]), None);
        assert_eq!(length(&[6, 0, 5, 2, 0, 0, 1, 0]), None);
        assert_eq!(length(&[6, 0, 5, 200, 0, 0, 0, 0]), None);
        assert_eq!(length(&[]), None);
    }

    #[test]
    fn extension_headers_have_their_own_lengths() {
        let bytes = [6, 3, 0x05, 0xd9, 0, 0, 0, 7];
        let len = |kind| Extension::new(kind, &bytes).unwrap().header_len();
        assert_eq!((len(HOP_BY_HOP), len(FRAGMENT), len(AUTHENTICATION)), (32, 8, 20));
        assert_eq!(Extension::new(ROUTING, &bytes[..7]).unwrap_err(), Reason::ShortHeader);
    }

    #[test]
    fn atomic_fragments_are_whole() {
        let fragment = |bytes: [u8; 8]| Extension::new(FRAGMENT, &bytes).unwrap().fragment();
        let part = Fragment { offset: 1496, more: true, id: 7 };
        assert_eq!(fragment([6, 0, 0x05, 0xd9, 0, 0, 0, 7]), Some(part));
        assert_eq!(fragment([6, 0, 0, 0, 0, 0, 0, 7]), None);
        assert_eq!(Extension::new(ROUTING, &[6, 0, 0, 1, 0, 0, 0, 0]).unwrap().fragment(), None);
    }
}
