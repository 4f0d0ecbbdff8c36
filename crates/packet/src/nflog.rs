//! Packets logged by Linux netfilter (LINKTYPE_NFLOG): a small header, then attributes, one of
//! which is the packet.
//!
//! ```text
//! +-------------+--------------+----------------+
//! | family (1)  | version 0 (1)| resource (2)   | attributes …
//! +-------------+--------------+----------------+
//! attribute: length with these four bytes (2), type (2), value, padding to four bytes
//! ```
//!
//! Attributes are in the byte order of the capturing machine, which the header does not tell; the
//! first type does, since all are small numbers.

use crate::limits::NFLOG_ATTRIBUTES_MAX;
use crate::walk::Reason;

/// Bytes before the attributes.
pub const HEADER_LEN: usize = 4;
/// Bytes of an attribute before its value.
pub const ATTRIBUTE_LEN: usize = 4;
/// Type of the attribute that is the packet.
const PAYLOAD: u16 = 9;

/// Where the packet of a logged frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    /// From here, this many bytes of it.
    At(usize, usize),
    /// Beyond these bytes: some attribute ends there.
    Beyond(usize),
    /// There is none.
    None,
}

/// Finds the packet in `frame`.
///
/// # Errors
/// [`Reason::Nflog`] if the version is not 0, an attribute is shorter than its own header, or there
/// are more than [`NFLOG_ATTRIBUTES_MAX`].
pub fn packet(frame: &[u8]) -> Result<Packet, Reason> {
    if frame.get(1).is_some_and(|&version| version != 0) {
        return Err(Reason::Nflog);
    }
    let mut at = HEADER_LEN;
    let word = word(frame);
    for _ in 0..NFLOG_ATTRIBUTES_MAX {
        let Some(&[a, b, c, d]) = frame.get(at..).and_then(|f| f.first_chunk()) else {
            return Ok(if frame.len() == at { Packet::None } else { Packet::Beyond(at + 4) });
        };
        let (length, kind) = (usize::from(word([a, b])), word([c, d]));
        let Some(value) = length.checked_sub(ATTRIBUTE_LEN) else { return Err(Reason::Nflog) };
        if kind == PAYLOAD {
            return Ok(Packet::At(at + ATTRIBUTE_LEN, value));
        }
        at += length.next_multiple_of(4);
        if at > frame.len() {
            return Ok(Packet::Beyond(at));
        }
    }
    Err(Reason::Nflog)
}

/// How a word of an attribute is read.
fn word(frame: &[u8]) -> impl Fn([u8; 2]) -> u16 + use<> {
    let little = frame.get(HEADER_LEN + 3) == Some(&0);
    move |bytes| if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
}

/// The types of the attributes of a frame, those after the packet too; of one that is shorter than
/// its own header 0, and nothing after it.
pub fn kinds(frame: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let (mut at, word) = (HEADER_LEN, word(frame));
    std::iter::from_fn(move || {
        let &[a, b, c, d] = frame.get(at..)?.first_chunk()?;
        let length = usize::from(word([a, b]));
        if length < ATTRIBUTE_LEN {
            at = frame.len();
            return Some(0);
        }
        at += length.next_multiple_of(4);
        Some(word([c, d]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_found_in_both_byte_orders() {
        let little = [2, 0, 0, 1, 5, 0, 10, 0, 0, 0, 0, 0, 8, 0, 9, 0, 0x45, 0, 0, 20];
        assert_eq!(packet(&little), Ok(Packet::At(16, 4)));
        let big = [2, 0, 0, 1, 0, 5, 0, 10, 0, 0, 0, 0, 0, 8, 0, 9, 0x45, 0, 0, 20];
        assert_eq!(packet(&big), Ok(Packet::At(16, 4)));
        assert_eq!(kinds(&little).collect::<Vec<_>>(), [10, 9]);
        assert_eq!(kinds(&big).collect::<Vec<_>>(), [10, 9]);
        assert_eq!(kinds(&[2, 0, 0, 0, 3, 0, 9, 0, 8, 0, 9, 0]).collect::<Vec<_>>(), [0]);
        assert_eq!(kinds(&little[..3]).count(), 0);
        assert_eq!(packet(&little[..13]), Ok(Packet::Beyond(16)));
        assert_eq!(packet(&little[..10]), Ok(Packet::Beyond(12)));
        assert_eq!(packet(&little[..12]), Ok(Packet::None));
        assert_eq!(packet(&[2, 1, 0, 0]), Err(Reason::Nflog));
        assert_eq!(packet(&[2, 0, 0, 0, 3, 0, 9, 0]), Err(Reason::Nflog));
    }
}
