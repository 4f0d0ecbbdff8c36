//! Keys as words: where each part stands, in the program and in the process.

use super::shape::ValueShape;
use weir_ebpf::{Alu, Assembler, Cond, Label, Reg, Reg::*, Size};

/// Where the parts of a key stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLayout {
    parts: Vec<PartPlace>,
    /// The word with the bits of parts that may be absent.
    presence: Option<usize>,
    words: usize,
}

/// Where a part of a key stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PartPlace {
    /// The word, from the start of the key; of an address the first of two, the high one.
    word: usize,
    shift: u32,
    /// 1 to 64, or 128.
    bits: u32,
    /// The bit of the word `presence` that says that it is there, if it may be absent.
    present: Option<u32>,
}

impl KeyLayout {
    /// The layout of keys whose parts have these shapes. Parts of fewer than 64 bits share words.
    pub fn new(keys: &[ValueShape]) -> KeyLayout {
        let mut used: Vec<u32> = Vec::new();
        let mut parts = Vec::new();
        let mut optional = 0;
        for key in keys {
            let bits = match *key {
                ValueShape::Address { .. } => 128,
                ValueShape::Word { least, greatest, .. } if least >= 0 => {
                    (u64::BITS - greatest.leading_zeros()).max(1)
                }
                ValueShape::Word { .. } => 64,
            };
            let present = key.is_nullable().then(|| {
                optional += 1;
                optional - 1
            });
            let (word, shift) = if bits == 128 {
                used.extend([64, 64]);
                (used.len() - 2, 0)
            } else {
                let word = used.iter().position(|used| used + bits <= 64).unwrap_or_else(|| {
                    used.push(0);
                    used.len() - 1
                });
                used[word] += bits;
                (word, used[word] - bits)
            };
            parts.push(PartPlace { word, shift, bits, present });
        }
        if optional == 0 {
            return KeyLayout { parts, presence: None, words: used.len() };
        }
        let free = used.iter().position(|used| used + optional <= 64);
        let word = free.unwrap_or_else(|| {
            used.push(0);
            used.len() - 1
        });
        for part in &mut parts {
            part.present = part.present.map(|bit| bit + used[word]);
        }
        KeyLayout { parts, presence: Some(word), words: used.len() }
    }

    /// Words of a key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The parts of a key of these words, numbers as their bits.
    pub(super) fn read<'a>(&'a self, key: &'a [u64]) -> impl Iterator<Item = Option<u128>> + 'a {
        let presence = self.presence.map_or(0, |word| key[word]);
        self.parts.iter().map(move |part| {
            let is_there = part.present.is_none_or(|bit| presence >> bit & 1 == 1);
            is_there.then(|| match part.bits {
                128 => u128::from(key[part.word]) << 64 | u128::from(key[part.word + 1]),
                bits => {
                    let mask = u64::MAX >> (u64::BITS - bits);
                    u128::from(key[part.word] >> part.shift & mask)
                }
            })
        })
    }

    /// Writes a key of these parts to so many [`words`](KeyLayout::words); `None` where no frame
    /// that a program reads has it.
    pub(crate) fn write(&self, key: &[Option<u128>], words: &mut [u64]) -> Option<()> {
        words.fill(0);
        for (part, value) in self.parts.iter().zip(key) {
            match (value, part.present) {
                (None, None) => return None,
                (None, Some(_)) => continue,
                (Some(value), _) if part.bits == 128 => {
                    words[part.word] = (value >> 64) as u64;
                    words[part.word + 1] = *value as u64;
                }
                (Some(value), _) => {
                    let value = u64::try_from(*value).ok()?;
                    if value.checked_shr(part.bits).is_some_and(|beyond| beyond > 0) {
                        return None;
                    }
                    words[part.word] |= value << part.shift;
                }
            }
            if let (Some(bit), Some(word)) = (part.present, self.presence) {
                words[word] |= 1 << bit;
            }
        }
        Some(())
    }

    /// The hash of a key, of which the highest bits are used; see [`KeyCode::hash`].
    pub(crate) fn hash([seed, multiplier]: [u64; 2], key: &[u64]) -> u64 {
        let multiplier = multiplier | 1;
        let folded = key.iter().fold(seed, |hash, word| {
            let hash = (hash ^ word).wrapping_mul(multiplier);
            hash ^ hash >> 32
        });
        folded.wrapping_mul(multiplier)
    }
}

/// Writes code that makes a key on the stack.
#[derive(Clone, Copy, Debug)]
pub struct KeyCode<'a> {
    /// Its layout.
    pub layout: &'a KeyLayout,
    /// Where its first word is on the stack, from `R10`; the others follow upwards.
    pub at: i16,
}

impl KeyCode<'_> {
    /// Begins a key: all of its parts are absent. Uses no register.
    pub fn begin(&self, a: &mut Assembler) {
        for word in 0..self.layout.words {
            a.store(Size::DW, R10, self.word(word), 0);
        }
    }

    /// Sets part `p` of the key to `value`. Uses `value` and `scratch`.
    pub fn set_word(&self, a: &mut Assembler, p: usize, value: Reg, scratch: Reg) {
        let part = self.layout.parts[p];
        let word = self.word(part.word);
        if part.shift > 0 {
            a.alu(Alu::Lsh, value, part.shift as i32);
        }
        a.load(Size::DW, scratch, R10, word).alu(Alu::Or, scratch, value);
        a.store(Size::DW, R10, word, scratch);
        self.set_present(a, p, value, scratch);
    }

    /// Sets part `p` of the key to an address. Uses both registers.
    pub fn set_address(&self, a: &mut Assembler, p: usize, high: Reg, low: Reg) {
        let word = self.layout.parts[p].word;
        a.store(Size::DW, R10, self.word(word), high);
        a.store(Size::DW, R10, self.word(word + 1), low);
        self.set_present(a, p, high, low);
    }

    fn set_present(&self, a: &mut Assembler, p: usize, one: Reg, scratch: Reg) {
        let (Some(bit), Some(word)) = (self.layout.parts[p].present, self.layout.presence) else {
            return;
        };
        let word = self.word(word);
        a.mov(one, 1).alu(Alu::Lsh, one, bit as i32);
        a.load(Size::DW, scratch, R10, word).alu(Alu::Or, scratch, one);
        a.store(Size::DW, R10, word, scratch);
    }

    /// Where a word of the key is on the stack.
    pub fn word(&self, word: usize) -> i16 {
        self.at + offset(word)
    }

    /// `R5 =` the hash of the key: each word is put in by exclusive or, multiplied by a secret odd
    /// number, and folded. Uses `R2` and `R3`.
    pub(crate) fn hash(&self, a: &mut Assembler, [seed, multiplier]: [u64; 2]) {
        a.load_imm64(R5, seed).load_imm64(R3, multiplier | 1);
        for word in 0..self.layout.words {
            a.load(Size::DW, R2, R10, self.word(word));
            a.alu(Alu::Xor, R5, R2).alu(Alu::Mul, R5, R3);
            a.mov(R2, R5).alu(Alu::Rsh, R2, 32).alu(Alu::Xor, R5, R2);
        }
        a.alu(Alu::Mul, R5, R3);
    }

    /// Goes on at `hit` if the words at `at` words from `R1` are the key. Uses `R2` to `R4`.
    pub(crate) fn compare(&self, a: &mut Assembler, at: usize, hit: Label) {
        let differs = a.label("another key");
        let words = self.layout.words;
        for word in 0..words {
            a.load(Size::DW, R2, R1, offset(at + word));
            a.load(Size::DW, R3, R10, self.word(word));
            if word + 1 == words && word <= 1 {
                a.jump_if(Cond::Eq, R2, R3, hit);
            } else if word == 0 {
                a.jump_if(Cond::Ne, R2, R3, differs);
            } else {
                a.alu(Alu::Xor, R2, R3);
                if word == 1 {
                    a.mov(R4, R2)
                } else {
                    a.alu(Alu::Or, R4, R2)
                };
                if word + 1 == words {
                    a.jump_if(Cond::Eq, R4, 0, hit);
                }
            }
        }
        a.bind(differs);
    }
}

/// So many words, as the offset of a load or store.
pub(crate) fn offset(words: usize) -> i16 {
    i16::try_from(words * 8).expect("a slot has few words")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: ValueShape = ValueShape::Word { least: 0, greatest: 0xffff, is_nullable: true };

    #[test]
    fn keys_come_back_from_their_words() {
        let address = ValueShape::Address { is_nullable: false };
        let number = ValueShape::Word { least: -1, greatest: 1, is_nullable: false };
        let layout = KeyLayout::new(&[WORD, address, number, WORD]);
        assert_eq!(layout.words(), 4);
        for (a, b) in [(0, u128::MAX), (1, 0), (0xfffe, 1 << 127), (0xffff, u64::MAX.into())] {
            for first in [None, Some(a)] {
                for number in [0, 1, u128::from(u64::MAX)] {
                    let key = [first, Some(b), Some(number), Some(a)];
                    let mut words = [u64::MAX; 4];
                    layout.write(&key, &mut words).expect("it fits");
                    assert_eq!(layout.read(&words).collect::<Vec<_>>(), key);
                }
            }
        }
    }

    #[test]
    fn a_part_that_programs_never_have_makes_no_key() {
        let layout = KeyLayout::new(&[WORD, ValueShape::Address { is_nullable: false }]);
        let write = |key: [Option<u128>; 2]| layout.write(&key, &mut [0; 3]);
        assert_eq!(write([Some(0x1_0000), Some(1)]), None);
        assert_eq!(write([Some(1 << 64), Some(1)]), None);
        assert_eq!(write([Some(1), None]), None);
        assert_eq!(write([None, Some(1)]), Some(()));
    }
}
