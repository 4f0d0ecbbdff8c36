//! A hash that every host and every build computes alike.

/// FNV-1a of 64 bits (draft-eastlake-fnv).
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn values_are_those_of_the_draft() {
        let expected = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ];
        for (text, value) in expected {
            assert_eq!(hash(text.as_bytes()), value, "{text}");
        }
    }
}
