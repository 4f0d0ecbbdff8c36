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

/// Bytes of the header at the start of `bytes`, with all that comes before the user's packet.
/// `None` if there is none: another version, GTP', signalling, or a header that is not all there.
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    let &[flags, kind, ..] = bytes.first_chunk::<HEADER_LEN>()?;
    if !carries_packet(flags, kind) {
        return None;
    }
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

/// Whether `bytes` start with a header of signalling without addresses: echoes, the extension
/// headers that a peer knows, the end of a tunnel. An error names an address.
pub fn is_signal(bytes: &[u8]) -> bool {
    matches!(*bytes, [flags, 1 | 2 | 31 | 254, ..] if flags >> 4 == 3)
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
        assert!(is_signal(&[0x32, 1]) && !is_signal(&[0x32, 26]) && !is_signal(&[0x52, 1]));
    }
}
