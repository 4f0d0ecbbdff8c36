//! SCTP headers (RFC 9260).
//!
//! ```text
//!  0               8               16              24            31
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                       verification tag                        |
//! +---------------------------------------------------------------+
//! |                           checksum                            |
//! +---------------+---------------+-------------------------------+
//! |  chunk type   |  chunk flags  |         chunk length          |
//! +---------------+---------------+-------------------------------+
//! ```

/// The protocol number of SCTP in an IP header.
pub const PROTOCOL: u8 = 132;

/// Offset of the verification tag.
pub const TAG: usize = 4;
/// Offset of the type of the first chunk.
pub const CHUNK_TYPE: usize = 12;
/// Bytes of the header before the chunks.
pub const HEADER_LEN: usize = 12;

/// Bytes of the header of a chunk.
const CHUNK_LEN: usize = 4;

/// An SCTP packet, as much of it as was captured.
#[derive(Clone, Copy, Debug)]
pub struct Sctp<'a> {
    bytes: &'a [u8],
}

impl<'a> Sctp<'a> {
    /// A view of bytes that start at the header; each field is there if its bytes are.
    pub fn new(bytes: &'a [u8]) -> Sctp<'a> {
        Sctp { bytes }
    }

    /// Verification tag: that which the receiver chose; 0 with the first chunk of an association.
    pub fn tag(&self) -> Option<u32> {
        self.bytes.get(TAG..)?.first_chunk().map(|&bytes| u32::from_be_bytes(bytes))
    }

    /// The types of the chunks, as far as they were captured.
    pub fn chunks(&self) -> impl Iterator<Item = u8> + use<'a> {
        let mut rest = self.bytes.get(HEADER_LEN..).unwrap_or(&[]);
        std::iter::from_fn(move || {
            let &[kind, _, a, b] = rest.first_chunk()?;
            let len = usize::from(u16::from_be_bytes([a, b])).max(CHUNK_LEN);
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
            Some(kind)
        })
    }

    /// Type of the first chunk: 0 data, 1 init, 2 its acknowledgment, 3 selective acknowledgment,
    /// 4 heartbeat, 6 abort, 7 shutdown.
    pub fn chunk_type(&self) -> Option<u8> {
        self.bytes.get(CHUNK_TYPE).copied()
    }
}

/// Any bytes as a packet: no call panics, and fields are there with their bytes. Panics where that
/// is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_sctp(bytes: &[u8]) {
    let sctp = Sctp::new(bytes);
    assert_eq!(sctp.tag().is_some(), bytes.len() >= 8);
    assert_eq!(sctp.chunk_type().is_some(), bytes.len() > HEADER_LEN);
    assert!(sctp.chunks().count() * CHUNK_LEN <= bytes.len());
    assert!(sctp.chunks().next().is_none_or(|kind| sctp.chunk_type() == Some(kind)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            fuzz_sctp(&bytes);
        }
    }

    #[test]
    fn reads_as_much_as_there_is() {
        let bytes = [0, 1, 0, 2, 0, 0, 0xab, 0xcd, 1, 2, 3, 4, 10, 0, 0, 4];
        for n in 0..=bytes.len() {
            let sctp = Sctp::new(&bytes[..n]);
            assert_eq!(sctp.tag(), (n >= 8).then_some(0xabcd));
            assert_eq!(sctp.chunk_type(), (n >= 13).then_some(10));
            fuzz_sctp(&bytes[..n]);
        }
    }
}
