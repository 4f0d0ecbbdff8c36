//! The indications between UDP and IPv6 in Teredo packets (RFC 4380, section 5.1.1).
//!
//! ```text
//! authentication: 0x0001 | lengths of identifier and value (1, 1) | both | nonce (8) | 1
//! origin:         0x0000 | port (2) | address (4)
//! ```

/// UDP port of Teredo servers.
pub const PORT: u16 = 3544;

/// Bytes at the start of `bytes` before the IPv6 header, if they look like Teredo: each indication
/// once at most, in this order, then version 6.
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    if let [0, 1, identifier, value, ..] = *bytes {
        at += 13 + usize::from(identifier) + usize::from(value);
    }
    if bytes.get(at..)?.starts_with(&[0, 0]) {
        at += 8;
    }
    (bytes.get(at)? >> 4 == 6).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indications_are_stepped_over() {
        assert_eq!(header_len(&[0x60]), Some(0));
        let origin = [&[0, 0, 1, 2, 3, 4, 5, 6][..], &[0x60]].concat();
        assert_eq!(header_len(&origin), Some(8));
        let both = [&[0, 1, 1, 0, 7][..], &[0; 9], &origin].concat();
        assert_eq!(header_len(&both), Some(22));
        assert_eq!(header_len(&both[..22]), None);
        assert_eq!(header_len(&[0x45]), None);
        assert_eq!(header_len(&[]), None);
    }
}
