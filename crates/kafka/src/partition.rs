//! Which partition a probe writes: that which Kafka's own clients choose for its name as the key
//! (`DefaultPartitioner`, and `murmur2` in librdkafka), so that other programs find it.

/// The partition of a key among so many, which are more than none.
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    let positive = (murmur2(key) & 0x7fff_ffff).cast_signed();
    positive % partitions.max(1)
}

/// MurmurHash2 of 32 bits with Kafka's seed.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let rest = rest.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values in the tests of Kafka's clients (`UtilsTest.testMurmur2`).
    #[test]
    fn the_hash_is_that_of_kafka() {
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()).cast_signed(), hash, "{text}");
        }
    }

    #[test]
    fn partitions_are_those_there_are() {
        for partitions in [1, 2, 3, i32::MAX] {
            for key in ["", "a", "ab", "abc", "abcd", "north", "foobar"] {
                assert!((0..partitions).contains(&partition_of(key.as_bytes(), partitions)));
            }
        }
        assert_eq!(partition_of(b"foobar", 0), 0);
        assert_eq!(partition_of(b"abc", 10), 479_470_107 % 10);
    }
}
