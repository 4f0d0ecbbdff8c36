//! GTP-U headers (3GPP TS 29.281).
//!
//! ```text
//!  0     3 4 5 6 7 8               16                            31
//! +-----+-+-+-+-+-+---------------+-------------------------------+
//! | ver |P| |E|S|N|  type         |  length                       |
//! +-----+-+-+-+-+-+---------------+-------------------------------+
//! |  tunnel endpoint identifier                                   |
//! +-------------------------------+---------------+---------------+
//! |  sequence                     |  N-PDU        |  next type    |  if E, S or N
//! +-------------------------------+---------------+---------------+
//! |  extension headers: length/4 (1), content, next type (1) …
//! ```

use crate::limits::EXTENSION_HEADERS_MAX;

/// UDP port of GTP-U.
pub const PORT: u16 = 2152;
/// Bytes of the shortest header.
pub const HEADER_LEN: usize = 8;

/// Type: a user's packet.
const PACKET: u8 = 255;
/// Flag: extension headers follow.
const EXTENDED: u8 = 0x04;
/// Information elements of signals: a number of one byte, a list after its length of one byte.
const RESTARTS: u8 = 14;
const EXTENSION_TYPES: u8 = 141;

/// Bytes of the header at the start of `bytes`, with all that comes before the user's packet.
/// `None` if there is none: another version, GTP', signalling, or a header that is not all there.
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    let &[flags, kind, ..] = bytes.first_chunk::<HEADER_LEN>()?;
    carries_packet(flags, kind).then(|| start(flags, bytes))?
}

/// Where the part after the extension headers starts.
fn start(flags: u8, bytes: &[u8]) -> Option<usize> {
    if flags & 7 == 0 {
        return Some(HEADER_LEN);
    }
    let mut at = HEADER_LEN + 4;
    let mut next = *bytes.get(at - 1)?;
    for _ in 0..EXTENSION_HEADERS_MAX {
        if flags & EXTENDED == 0 || next == 0 {
            return Some(at);
        }
        let len = usize::from(*bytes.get(at)?) * 4;
        at += len.max(4);
        next = *bytes.get(at - 1)?;
    }
    None
}

/// Whether a header that begins with these bytes is followed by a packet: version 1, and not GTP'.
pub fn carries_packet(flags: u8, kind: u8) -> bool {
    flags >> 4 == 3 && kind == PACKET
}

/// Whether `bytes` are signalling without addresses: echoes, the extension headers that a peer
/// knows, the end of a tunnel, and in them no information elements but the counter of restarts and
/// the list of extension headers. An error names an address, and so may a private extension.
pub fn is_signal(bytes: &[u8]) -> bool {
    let [flags @ 0x30..0x40, 1 | 2 | 31 | 254, ..] = *bytes else { return false };
    let Some(mut at) = start(flags, bytes) else { return false };
    while let Some(element) = bytes.get(at) {
        at += match *element {
            RESTARTS => 2,
            EXTENSION_TYPES => 2 + bytes.get(at + 1).map_or(0, |&len| usize::from(len)),
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_may_go_on() {
        assert_eq!(header_len(&[0x30, 255, 0, 0, 0, 0, 0, 1]), Some(8));
        assert_eq!(header_len(&[0x32, 255, 0, 0, 0, 0, 0, 1, 0, 1, 0, 7]), Some(12));
        let extended = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
        assert_eq!(header_len(&extended), Some(16));
        assert_eq!(header_len(&extended[..15]), None);
        assert_eq!(header_len(&[0x30, 26, 0, 0, 0, 0, 0, 1]), None, "an error indication");
        assert_eq!(header_len(&[0x20, 255, 0, 0, 0, 0, 0, 1]), None, "GTP'");
        assert_eq!(header_len(&[0x48; 8]), None, "version 2");
    }

    #[test]
    fn a_signal_names_no_address() {
        let signal = |flags: u8, kind: u8, elements: &[u8]| {
            let header = [flags, kind, 0, 4 + elements.len() as u8, 0, 0, 0, 0, 0, 1, 0, 0];
            is_signal(&[&header, elements].concat())
        };
        assert!(signal(0x32, 1, &[]) && signal(0x32, 2, &[14, 7]) && signal(0x32, 254, &[]));
        assert!(signal(0x32, 31, &[141, 2, 0x85, 0xc0]));
        assert!(!signal(0x32, 26, &[]) && !signal(0x52, 1, &[]));
        assert!(!signal(0x32, 31, &[0x85, 0, 4, 192, 0, 2, 123]));
        assert!(!signal(0x32, 31, &[141, 1, 0x85, 0x85, 0, 4, 192, 0, 2, 123]));
        assert!(!signal(0x32, 2, &[14, 0, 255, 0, 6, 0, 1, 192, 0, 2, 123]), "a private extension");
        assert!(is_signal(&[0x30, 254, 0, 0, 0, 0, 0, 1]));
        assert!(!is_signal(&[0x32, 1, 0, 4, 0, 0, 0, 0]), "cut in its header");
    }
}
