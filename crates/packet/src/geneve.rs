//! GENEVE headers (RFC 8926).
//!
//! ```text
//!  0   2           8               16                            31
//! +---+-----------+-+-+-----------+-------------------------------+
//! |ver| options/4 |O|C|           |  EtherType                    |
//! +---+-----------+-+-+-----------+---------------+---------------+
//! |  network identifier                           |  0            |
//! +-----------------------------------------------+---------------+
//! |  options …
//! ```

/// UDP port of GENEVE.
pub const PORT: u16 = 6081;
/// Bytes of the header without options.
pub const HEADER_LEN: usize = 8;

/// Bytes of the header with its options, and the EtherType of what follows. `None` for versions
/// other than 0.
pub fn follows(header: &[u8; HEADER_LEN]) -> Option<(usize, u16)> {
    let options = usize::from(header[0] & 0x3f) * 4;
    let ethertype = u16::from_be_bytes([header[2], header[3]]);
    (header[0] >> 6 == 0).then_some((HEADER_LEN + options, ethertype))
}

/// Whether the packet is for the ends of the tunnel: a control message follows.
pub fn is_control(header: &[u8; HEADER_LEN]) -> bool {
    header[1] & 0x80 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_make_it_longer() {
        assert_eq!(follows(&[2, 0, 0x65, 0x58, 0, 0, 9, 0]), Some((16, 0x6558)));
        assert_eq!(follows(&[0x42, 0, 0x65, 0x58, 0, 0, 9, 0]), None);
        assert!(
            is_control(&[0, 0x80, 0, 0, 0, 0, 0, 0])
                && !is_control(&[0xff, 0x40, 1, 1, 1, 1, 1, 1])
        );
    }
}
