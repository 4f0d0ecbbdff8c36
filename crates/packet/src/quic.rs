//! QUIC long headers (RFC 8999; version 1: RFC 9000, version 2: RFC 9369), and what a client's
//! Initial packet says in the clear: its keys follow from a number in its header (RFC 9001,
//! section 5.2), so anybody on the path can read it.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+---------------+-----+------+-----+------+-----+-------+--------+----------+
//! |1|1| T |R R|P P|    version    | len | DCID | len | SCID | len | token | length | number … |
//! +-+-+-+-+-+-+-+-+---------------+-----+------+-----+------+-----+-------+--------+----------+
//! ```

pub mod initial;

/// Version 1 (RFC 9000).
pub const V1: u32 = 1;
/// Version 2 (RFC 9369).
pub const V2: u32 = 0x6b33_43cf;

/// Bytes of the longest connection ID in versions 1 and 2.
const CONNECTION_ID_MAX: usize = 20;

/// The purpose of a packet with a long header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketType {
    /// The first of a handshake, with keys that its header gives.
    Initial,
    /// Early data.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// A server asks the client to come again, with a token.
    Retry,
    /// A server names the versions that it has.
    VersionNegotiation,
}

impl PacketType {
    /// That of a packet with a long header, by its first byte and its version.
    fn of(first: u8, version: u32) -> Option<PacketType> {
        if first & 0x80 == 0 {
            return None;
        }
        Some(match (version, first >> 4 & 3) {
            (0, _) => PacketType::VersionNegotiation,
            (V1 | V2, _) if first & 0x40 == 0 => return None,
            (V1, 0) | (V2, 1) => PacketType::Initial,
            (V1, 1) | (V2, 2) => PacketType::ZeroRtt,
            (V1, 2) | (V2, 3) => PacketType::Handshake,
            (V1, 3) | (V2, 0) => PacketType::Retry,
            _ => return None,
        })
    }
}

/// Whether a UDP payload starts with an Initial packet, of which its header may be cut too.
pub(crate) fn starts_initial(payload: &[u8]) -> bool {
    let Some(&[first, a, b, c, d]) = payload.first_chunk() else { return false };
    PacketType::of(first, u32::from_be_bytes([a, b, c, d])) == Some(PacketType::Initial)
}

/// A packet with a long header at the start of a datagram, or after another one.
#[derive(Clone, Copy, Debug)]
pub struct LongHeader<'a> {
    version: u32,
    kind: PacketType,
    destination: &'a [u8],
    source: &'a [u8],
    /// Of an Initial packet, what a Retry packet or an earlier connection brought.
    token: &'a [u8],
    /// From the first byte to the end of the packet, as far as it was captured.
    packet: &'a [u8],
    /// Where the protected packet number starts; 0 where there is none.
    number_at: usize,
    /// The bytes after it in the datagram.
    rest: &'a [u8],
}

impl<'a> LongHeader<'a> {
    /// A view of a UDP payload; `None` if it does not start with a whole long header of version 1
    /// or 2, or with a negotiation of versions. The packet itself may be cut.
    pub fn new(payload: &'a [u8]) -> Option<LongHeader<'a>> {
        let mut left = Left { bytes: payload, at: 0 };
        let first = left.byte()?;
        let version = u32::from_be_bytes(*left.take::<4>()?);
        let kind = PacketType::of(first, version)?;
        let destination = left.counted_by_byte()?;
        let source = left.counted_by_byte()?;
        if version != 0 && destination.len().max(source.len()) > CONNECTION_ID_MAX {
            return None;
        }
        let mut token = &payload[..0];
        if kind == PacketType::Initial {
            let len = left.varint()?;
            token = left.skip(len)?;
        }
        let (end, number_at) = match kind {
            PacketType::VersionNegotiation => {
                // Many other payloads have four zeros here: one of the versions must be known.
                let (versions, []) = payload[left.at..].as_chunks() else { return None };
                let is_list = versions.iter().any(|&four| is_version(u32::from_be_bytes(four)));
                (is_list.then_some(payload.len())?, 0)
            }
            PacketType::Retry => (payload.len(), 0),
            _ => {
                let length = usize::try_from(left.varint()?).ok()?;
                (left.at.checked_add(length)?, left.at)
            }
        };
        let (packet, rest) = payload.split_at(end.min(payload.len()));
        Some(LongHeader { version, kind, destination, source, token, packet, number_at, rest })
    }

    /// The version; 0 where a server names those that it has.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The purpose of the packet.
    pub fn kind(&self) -> PacketType {
        self.kind
    }

    /// The connection ID that the receiver chose, or, in a client's first packets, a random one.
    pub fn destination_id(&self) -> &'a [u8] {
        self.destination
    }

    /// The connection ID that the sender chose for itself.
    pub fn source_id(&self) -> &'a [u8] {
        self.source
    }

    /// The token of an Initial packet, which a server gave the client; empty where there is none.
    pub fn token(&self) -> &'a [u8] {
        self.token
    }

    /// The packet that follows this one in the same datagram.
    pub fn next(&self) -> Option<LongHeader<'a>> {
        LongHeader::new(self.rest)
    }
}

/// Whether a server may name this version: a published one, a draft, or one of those that are
/// reserved so that nobody relies on the list (RFC 9000, section 15).
fn is_version(version: u32) -> bool {
    matches!(version, V1 | V2)
        || version >> 8 == 0x00ff_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
struct Left<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Left<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let taken = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|&[byte]| byte)
    }

    fn skip(&mut self, n: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(n).ok()?)?;
        let skipped = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(skipped)
    }

    /// Bytes whose number stands in one byte before them.
    fn counted_by_byte(&mut self) -> Option<&'a [u8]> {
        let n = self.byte()?;
        self.skip(n.into())
    }

    /// An integer of 1, 2, 4 or 8 bytes, as its first two bits say (RFC 9000, section 16).
    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let mut value = u64::from(first & 0x3f);
        for _ in 1..1_u32 << (first >> 6) {
            value = value << 8 | u64::from(self.byte()?);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> Option<u64> {
        Left { bytes, at: 0 }.varint()
    }

    #[test]
    fn integers_of_the_standard() {
        // RFC 9000, appendix A.1.
        let eight = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(varint(&eight), Some(151_288_809_941_952_652));
        assert_eq!(varint(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!(varint(&[0x7b, 0xbd]), Some(15_293));
        assert_eq!((varint(&[0x25]), varint(&[0x40, 0x25])), (Some(37), Some(37)));
        assert_eq!((varint(&[0xff; 8]), varint(&[0xff; 7])), (Some((1 << 62) - 1), None));
    }

    /// A packet of this first byte and version, with connection IDs `1 2` and `3`.
    fn packet(first: u8, version: u32, more: &[u8]) -> Vec<u8> {
        [&[first][..], &version.to_be_bytes(), &[2, 1, 2, 1, 3], more].concat()
    }

    #[test]
    fn packets_are_told_by_their_version() {
        let kind = |first, version, more: &[u8]| {
            LongHeader::new(&packet(first, version, more)).map(|header| header.kind())
        };
        let rest = [0, 5, 0, 0, 0, 0, 0];
        let starts = |first, version| starts_initial(&packet(first, version, &[])[..5]);
        assert!(starts(0xc0, V1) && starts(0xd0, V2) && !starts(0x40, V1) && !starts(0xe0, V1));
        assert!(!starts(0xc0, 0) && !starts_initial(&[0xc0, 0, 0, 0]));
        assert_eq!(kind(0xc0, V1, &rest), Some(PacketType::Initial));
        assert_eq!(kind(0xd0, V2, &rest), Some(PacketType::Initial));
        assert_eq!(kind(0xd0, V1, &rest[1..]), Some(PacketType::ZeroRtt));
        assert_eq!(kind(0xe0, V1, &rest[1..]), Some(PacketType::Handshake));
        assert_eq!(kind(0xf0, V1, &[]), Some(PacketType::Retry));
        assert_eq!(kind(0xc0, V2, &[]), Some(PacketType::Retry));
        assert_eq!(kind(0x80, 0, &[0, 0, 0, 1]), Some(PacketType::VersionNegotiation));
        let reserved = [0x1a, 0x2a, 0x3a, 0x4a];
        assert_eq!(kind(0x80, 0, &reserved), Some(PacketType::VersionNegotiation));
        assert_eq!(kind(0x80, 0, &[0, 0, 0, 0]), None, "no version");
        assert_eq!(kind(0x80, 0, &[]), None, "a negotiation names versions");
        assert_eq!(kind(0x80, 0, &[0, 0, 0, 1, 0]), None, "of four bytes each");
        assert_eq!(kind(0x40, V1, &rest), None, "a short header");
        assert_eq!(kind(0x80, V1, &rest), None, "the fixed bit is missing");
        assert_eq!(kind(0xc0, 0xff00_001d, &rest), None, "a draft");
        assert_eq!(kind(0xc0, V1, &rest[..6]), Some(PacketType::Initial), "cut");
        assert_eq!(kind(0xc0, V1, &rest[..1]), None, "cut within the header");
        let long = [&[0xc0, 0, 0, 0, 1, 21][..], &[9; 21], &[0, 0, 0]].concat();
        assert!(LongHeader::new(&long).is_none(), "connection IDs have at most 20 bytes");
    }

    #[test]
    fn packets_of_one_datagram() {
        let mut two = packet(0xc0, V1, &[0, 2, 8, 9]);
        two.extend(packet(0xe0, V1, &[1, 7]));
        let first = LongHeader::new(&two).unwrap();
        assert_eq!((first.destination_id(), first.source_id()), (&[1, 2][..], &[3][..]));
        let second = first.next().unwrap();
        assert_eq!((second.kind(), second.version()), (PacketType::Handshake, V1));
        assert!(second.next().is_none());
    }
}
