//! Fields that are asked for by their place: bytes of a header, such as `tcp[13]`.

use super::field::{Field, FieldType};
use crate::limits::{HEADER_BYTES_MAX, HEADER_INT_BYTES_MAX};
use std::fmt;

/// The start that the place of bytes counts from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Header {
    /// The first byte captured.
    Frame,
    /// The Ethernet header.
    Eth,
    /// The ARP header.
    Arp,
    /// The IPv4 or IPv6 header.
    Ip,
    /// The bytes after the IP header and its extensions, of any protocol; not in later fragments.
    Transport,
    /// The TCP header.
    Tcp,
    /// The UDP header.
    Udp,
    /// The ICMP header.
    Icmp,
    /// The ICMPv6 header.
    Icmp6,
    /// The bytes after a whole TCP or UDP header.
    Payload,
}

impl Header {
    /// All of them, by name.
    pub const ALL: [(&'static str, Header); 10] = [
        ("frame", Header::Frame),
        ("eth", Header::Eth),
        ("arp", Header::Arp),
        ("ip", Header::Ip),
        ("transport", Header::Transport),
        ("tcp", Header::Tcp),
        ("udp", Header::Udp),
        ("icmp", Header::Icmp),
        ("icmp6", Header::Icmp6),
        ("payload", Header::Payload),
    ];

    /// The header called `name`.
    pub fn by_name(name: &str) -> Option<Header> {
        Header::ALL.iter().find(|(n, _)| *n == name).map(|(_, header)| *header)
    }

    /// How queries write it.
    pub fn name(self) -> &'static str {
        Header::ALL[self as usize].0
    }
}

/// Some bytes of a header, or after it: up to [`HEADER_INT_BYTES_MAX`] are an integer in network
/// order, more are bytes. Absent where the packet has no such header, or ends before, or was not
/// captured so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HeaderBytes {
    pub(super) header: Header,
    pub(super) offset: u16,
    pub(super) size: u8,
}

impl HeaderBytes {
    /// `size` bytes, the first of them `offset` bytes after the start of the header. `None` if
    /// there are to be none, or more than [`HEADER_BYTES_MAX`].
    pub fn new(header: Header, offset: u16, size: usize) -> Option<HeaderBytes> {
        let size = u8::try_from(size).ok().filter(|n| (1..=HEADER_BYTES_MAX).contains(n))?;
        Some(HeaderBytes { header, offset, size })
    }

    /// Where the place counts from.
    pub fn header(self) -> Header {
        self.header
    }

    /// The place of the first byte.
    pub fn offset(self) -> usize {
        self.offset.into()
    }

    /// How many bytes.
    pub fn size(self) -> usize {
        self.size.into()
    }

    /// Type and width.
    pub(super) fn info(self) -> &'static Field {
        let several = usize::from(HEADER_INT_BYTES_MAX);
        &KINDS[self.size().min(several + 1) - 1]
    }
}

/// As queries write it.
impl fmt::Display for HeaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            1 => write!(f, "{}[{}]", self.header.name(), self.offset),
            n => write!(f, "{}[{}:{n}]", self.header.name(), self.offset),
        }
    }
}

/// The fields that describe bytes of a header, by size.
static KINDS: [Field; HEADER_INT_BYTES_MAX as usize + 1] =
    [int(1), int(2), int(3), int(4), int(5), int(6), int(7), many()];

const fn int(size: u8) -> Field {
    field(FieldType::Int, size * 8)
}

const fn many() -> Field {
    field(FieldType::Bytes, 0)
}

const fn field(ty: FieldType, bits: u8) -> Field {
    Field { name: "HEADER[OFFSET:SIZE]", ty, bits, always: false, doc: "Bytes of a header." }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FieldId, by_name};

    #[test]
    fn fields_by_place_are_what_they_are_made_of() {
        for (i, (name, header)) in Header::ALL.into_iter().enumerate() {
            assert_eq!(
                (header as usize, header.name(), Header::by_name(name)),
                (i, name, Some(header))
            );
            for (offset, size) in [(0, 1), (13, 2), (u16::MAX, 7), (9, 8), (1, HEADER_BYTES_MAX)] {
                let bytes = HeaderBytes::new(header, offset, size.into()).unwrap();
                let id = FieldId::of_bytes(bytes);
                assert_eq!((id.bytes(), id.position()), (Some(bytes), None));
                let info = id.info();
                let int = size <= HEADER_INT_BYTES_MAX;
                assert_eq!(info.bits, if int { size * 8 } else { 0 });
                assert_eq!(info.ty, if int { FieldType::Int } else { FieldType::Bytes });
            }
        }
        let name = |offset, size| {
            FieldId::of_bytes(HeaderBytes::new(Header::Tcp, offset, size).unwrap())
                .name()
                .into_owned()
        };
        assert_eq!((name(13, 1), name(4, 4)), ("tcp[13]".to_owned(), "tcp[4:4]".to_owned()));
        assert_eq!(by_name("len").unwrap().bytes(), None);
        assert_eq!(HeaderBytes::new(Header::Ip, 0, 0), None);
        assert_eq!(HeaderBytes::new(Header::Ip, 0, 256), None);
    }
}
