//! Parts of keys as bytes that leave the process. They compare as the values do, byte by byte, and
//! say nothing of how keys are packed here.

use super::{KeyPart, Layout, MAPPED, Pool};
use crate::expr::Class;

/// The first byte of a part.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Within a text, a zero byte is followed by this one; ...
const ZERO: u8 = 0xff;
/// ...and at its end by this one.
const END: u8 = 0;

/// Bytes of a link address.
const MAC_BYTES: usize = 6;

impl KeyPart {
    /// Whether it is a link address.
    fn is_mac(&self) -> bool {
        self.class == Class::Unsigned && self.bits == 48
    }

    /// Appends a value, as [`Layout::part`] gives it.
    pub(crate) fn write(&self, raw: Option<u128>, texts: &Pool, out: &mut Vec<u8>) {
        let Some(raw) = raw else { return out.push(ABSENT) };
        out.push(PRESENT);
        match self.class {
            Class::Bit => out.push(raw as u8 & 1),
            Class::Pair => out.extend_from_slice(&raw.to_be_bytes()),
            Class::Text => write_text(texts.get(raw as u64), out),
            _ if self.is_mac() => out.extend_from_slice(&(raw as u64).to_be_bytes()[2..]),
            class => out.extend_from_slice(&class.ordered(raw as u64).to_be_bytes()),
        }
    }

    /// Reads a value; `None` if the bytes are none of this part.
    pub(crate) fn read(&self, texts: &mut Pool, from: &mut &[u8]) -> Option<Option<u128>> {
        let (&present, mut rest) = from.split_first()?;
        let raw = match (present, self.class) {
            (ABSENT, _) if self.nullable => None,
            (PRESENT, Class::Bit) => match take::<1>(&mut rest)? {
                [bit @ 0..=1] => Some(u128::from(bit)),
                _ => return None,
            },
            (PRESENT, Class::Pair) => Some(u128::from_be_bytes(take(&mut rest)?)),
            (PRESENT, Class::Text) => {
                let text = read_text(&mut rest)?;
                Some(u128::from(texts.intern(&text)))
            }
            (PRESENT, _) if self.is_mac() => {
                let mac = take::<MAC_BYTES>(&mut rest)?;
                Some(mac.iter().fold(0, |mac, byte| mac << 8 | u128::from(*byte)))
            }
            (PRESENT, class) => {
                let word = class.unordered(u64::from_be_bytes(take(&mut rest)?));
                if word > self.largest() {
                    return None;
                }
                Some(u128::from(word))
            }
            _ => return None,
        };
        *from = rest;
        Some(raw)
    }
}

/// Reads the parts of a key into `raws`. Says whether the narrow layout holds it; `None` if the
/// bytes are no such key.
pub(crate) fn read_parts(
    parts: &[KeyPart],
    texts: &mut Pool,
    from: &mut &[u8],
    raws: &mut Vec<Option<u128>>,
) -> Option<bool> {
    let mut rest = *from;
    raws.clear();
    for part in parts {
        raws.push(part.read(texts, &mut rest)?);
    }
    *from = rest;
    Some(is_narrow(parts, raws))
}

/// Whether the narrow layout holds a key of these values: its addresses are IPv4.
pub(crate) fn is_narrow(parts: &[KeyPart], raws: &[Option<u128>]) -> bool {
    let is_v4 = |raw: u128| raw >> 32 == u128::from(MAPPED);
    let mut both = parts.iter().zip(raws);
    both.all(|(part, raw)| part.class != Class::Pair || raw.is_none_or(is_v4))
}

impl Layout {
    /// Appends the first `parts` of a packed key.
    pub(crate) fn write_parts(
        &self,
        parts: &[KeyPart],
        key: &[u64],
        texts: &Pool,
        out: &mut Vec<u8>,
    ) {
        for (p, part) in parts.iter().enumerate() {
            part.write(self.part(key, p), texts, out);
        }
    }

    /// Packs values, as [`Layout::part`] gives them, of as many parts as there are; those that are
    /// left over stay zero. Addresses that are not IPv4 have no place in a narrow layout.
    pub(crate) fn pack_one(&self, raws: &[Option<u128>], key: &mut [u64]) {
        key.fill(0);
        for (place, raw) in self.places.iter().zip(raws) {
            let Some(raw) = *raw else { continue };
            if let Some((word, shift)) = place.present {
                key[word] |= 1 << shift;
            }
            match place.bits {
                128 => (key[place.word], key[place.word + 1]) = ((raw >> 64) as u64, raw as u64),
                64 => key[place.word] = raw as u64,
                bits => key[place.word] |= (raw as u64 & ((1 << bits) - 1)) << place.shift,
            }
        }
    }
}

/// Appends a text: its zero bytes are marked, so that its end is found, and a text comes before
/// those that it begins.
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        out.push(byte);
        if byte == 0 {
            out.push(ZERO);
        }
    }
    out.extend_from_slice(&[0, END]);
}

/// Reads a text; `None` where it has no end.
pub(crate) fn read_text(from: &mut &[u8]) -> Option<Vec<u8>> {
    let (mut text, mut rest) = (Vec::new(), *from);
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        text.extend_from_slice(&rest[..zero]);
        let mark = *rest.get(zero + 1)?;
        rest = &rest[zero + 2..];
        match mark {
            ZERO => text.push(0),
            END => break,
            _ => return None,
        }
    }
    *from = rest;
    Some(text)
}

/// Takes so many bytes from the front.
fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(class: Class, bits: u32) -> KeyPart {
        KeyPart { class, bits, nullable: true }
    }

    /// A part of each kind, and values of it at the edges and anywhere.
    fn any_value() -> impl Strategy<Value = (KeyPart, Option<u128>)> {
        let parts = [
            part(Class::Bit, 1),
            part(Class::Signed, 64),
            part(Class::Signed, 16),
            part(Class::Unsigned, 48),
            part(Class::Unsigned, 64),
            part(Class::Float, 64),
            part(Class::Pair, 128),
        ];
        let value =
            prop_oneof![Just(0), Just(1), Just(u128::MAX - 1), Just(u128::MAX), any::<u128>()];
        (proptest::sample::select(parts.to_vec()), proptest::option::of(value)).prop_map(
            |(part, raw)| {
                let mask = u128::MAX >> (128 - part.bits);
                (part, raw.map(|raw| raw & mask))
            },
        )
    }

    fn written(part: &KeyPart, raw: Option<u128>) -> Vec<u8> {
        let mut out = Vec::new();
        part.write(raw, &Pool::default(), &mut out);
        out
    }

    proptest! {
        #[test]
        fn a_part_is_read_back((part, raw) in any_value()) {
            let bytes = written(&part, raw);
            let mut rest = &bytes[..];
            prop_assert_eq!(part.read(&mut Pool::default(), &mut rest), Some(raw));
            prop_assert!(rest.is_empty());
            for n in 0..bytes.len() {
                prop_assert_eq!(part.read(&mut Pool::default(), &mut &bytes[..n]), None);
            }
        }

        #[test]
        fn words_compare_as_their_bytes(a: i64, b: i64) {
            let signed = part(Class::Signed, 64);
            let bytes = |n: i64| written(&signed, Some(u128::from(n as u64)));
            prop_assert_eq!(bytes(a).cmp(&bytes(b)), a.cmp(&b));
            let (x, y) = (f64::from_bits(a as u64), f64::from_bits(b as u64));
            let float = part(Class::Float, 64);
            let bytes = |f: f64| written(&float, Some(u128::from(f.to_bits())));
            prop_assert_eq!(bytes(x).cmp(&bytes(y)), x.total_cmp(&y));
        }

        #[test]
        fn texts_compare_as_their_bytes(
            a in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..5),
            b in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..5),
        ) {
            let bytes = |text: &[u8]| {
                let mut out = Vec::new();
                write_text(text, &mut out);
                out
            };
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), a.cmp(&b));
            prop_assert_eq!(read_text(&mut &bytes(&a)[..]), Some(a));
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let mut texts = Pool::default();
        let mut read = |part: &KeyPart, bytes: &[u8]| part.read(&mut texts, &mut &bytes[..]);
        let narrow = part(Class::Signed, 16);
        let word = |n: i64| [&[1][..], &((n as u64) ^ (1 << 63)).to_be_bytes()].concat();
        assert_eq!(read(&narrow, &word(65_535)), Some(Some(65_535)));
        assert_eq!(read(&narrow, &word(65_536)), None, "wider than its field");
        assert_eq!(read(&narrow, &word(-1)), None);
        assert_eq!(read(&narrow, &[2; 9]), None, "neither there nor absent");
        assert_eq!(read(&part(Class::Bit, 1), &[1, 2]), None);
        assert_eq!(read(&narrow.clone().present(), &[0]), None, "absent, though it can't be");
        let text = part(Class::Text, 64);
        assert_eq!(read(&text, &[1, 0, 1, 0, 0]), None, "a mark that there is not");
        assert_eq!(read(&text, &[1, b'a']), None, "a text without an end");
    }
}
