//! The checksum of the Internet protocols (RFC 1071).

/// The Internet checksum (RFC 1071) of some parts in a row; only the last may have an odd length.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u64 =
        words.map(|w| u64::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
