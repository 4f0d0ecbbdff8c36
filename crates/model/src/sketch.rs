//! HyperLogLog of the naive model: the library's own sketch, fed value by value.
//!
//! Up to three different values are counted. Of more, the estimate is that of the sketch of Apache
//! DataSketches with 2^12 registers of 8 bits. An integer, a time, a duration, a bool, a float, a
//! MAC address and an IPv4 address goes into it as the number that its bits are; anything else as a
//! hash of its words.

use datasketches::hll::{HllSketch, HllType};
use std::collections::BTreeSet;
use weir_plan::Value;

/// About how many different values there are among these.
pub(super) fn count(values: impl Iterator<Item = Value>) -> u64 {
    let items: BTreeSet<u64> = values.map(|v| item(&v)).collect();
    if items.len() <= 3 {
        return items.len() as u64;
    }
    let mut sketch = HllSketch::new(12, HllType::Hll8).expect("a size that there is");
    for item in items {
        sketch.update(item);
    }
    sketch.composite_estimate().round() as u64
}

/// The number that goes into the sketch for a value; 0 for an absent one.
fn item(value: &Value) -> u64 {
    match value {
        Value::Absent => 0,
        Value::Bool(b) => u64::from(*b),
        Value::Int(n) | Value::Time(n) | Value::Duration(n) => *n as u64,
        Value::Float(f) => f.to_bits(),
        Value::Mac(m) => *m,
        Value::Ip(a) | Value::Net(a, _) => match Value::to_ip(*a) {
            std::net::IpAddr::V4(four) => four.to_bits().into(),
            std::net::IpAddr::V6(six) => {
                let bits = six.to_bits();
                hashed([(bits >> 64) as u64, bits as u64])
            }
        },
        Value::Str(s) => hashed_text(s.as_bytes()),
        Value::Bytes(b) => hashed_text(b),
        // Of each part what the parts before it came to, whether it is there, and its own item.
        Value::Tuple(parts) => {
            let with = |hash, part: &Value| hashed([hash, part.exists().into(), item(part)]);
            parts.iter().fold(0, with)
        }
    }
}

/// A text as words of eight bytes, the first byte lowest, zeros after the last; then its length.
fn hashed_text(text: &[u8]) -> u64 {
    let mut words: Vec<u64> = Vec::new();
    for (i, byte) in text.iter().enumerate() {
        if i % 8 == 0 {
            words.push(0);
        }
        *words.last_mut().expect("a word") |= u64::from(*byte) << (i % 8 * 8);
    }
    words.push(text.len() as u64);
    hashed(words)
}

/// Folds words as wyhash does: each time the halves of a product of 128 bits, one on the other.
fn hashed(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hash: u64 = 0x9e37_79b9_7f4a_7c15;
    for word in words {
        let product = u128::from(hash ^ word) * 0xd6e8_feb8_6659_fd93;
        hash = (product ^ product >> 64) as u64;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers filled on one host merge with those of another, of whatever version.
    #[test]
    fn what_goes_into_sketches_never_changes() {
        let v6 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
        let tuple = Value::Tuple(vec![Value::Ip(v6), Value::Int(443), Value::Absent]);
        let values = [
            (Value::Int(-1), u64::MAX),
            (Value::Bool(true), 1),
            (Value::Ip(0xffff_0a00_0001), 0x0a00_0001),
            (Value::Ip(v6), 0x53ee_ec05_73f9_b915),
            (Value::Str("".into()), 0xc9d8_74ca_57d9_e055),
            (Value::Str("www.example".into()), 0x5e4b_4163_c576_855d),
            (tuple, 0xadac_229f_8321_9959),
        ];
        let got = values.each_ref().map(|(value, _)| item(value));
        assert_eq!(got, values.map(|(_, item)| item), "{got:#x?}");
    }

    #[test]
    fn few_values_are_counted() {
        let ints = |n: i64| (0..n).chain(0..n).map(Value::Int);
        for n in 0..200 {
            assert_eq!(count(ints(n)), n as u64);
        }
        let about = count(ints(100_000)) as i64;
        assert!((about - 100_000).abs() < 5_000, "{about}");
    }

    #[test]
    fn values_that_differ_go_in_as_different_items() {
        let (a, b) = (Value::Int(1), Value::Int(2));
        let tuple = |parts: &[&Value]| Value::Tuple(parts.iter().map(|v| (*v).clone()).collect());
        let text = |s: &str| Value::Str(s.into());
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        let all = [
            tuple(&[&a, &b]),
            tuple(&[&b, &a]),
            tuple(&[&a, &Value::Absent]),
            tuple(&[&Value::Absent, &a]),
            text(""),
            text("\0"),
            text("12345678"),
            text("12345678\0"),
            ip("10.0.0.1"),
            ip("::a00:1"),
            ip("2001:db8::1"),
            a,
            b,
        ];
        let items: BTreeSet<u64> = all.iter().map(item).collect();
        assert_eq!(items.len(), all.len());
        assert_eq!(item(&ip("0.0.0.7")), 7);
    }
}
