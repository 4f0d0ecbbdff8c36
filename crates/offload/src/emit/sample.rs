//! `sample … by`: the hash of a key, which is part of the language
//! ([`weir_plan::rows::hash_step`]).

use super::{Emit, Ways};
use crate::value::{Lowered, Num};
use crate::writer::Place;
use weir_ebpf::{Alu, Cond, Operand, Reg, Reg::*};

/// The summand and the factors of [`weir_plan::rows::hash_step`].
const ADDED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTORS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// Where the hash is while a part of the key is mixed in.
const HASH: Reg = R2;

impl Emit<'_> {
    /// Whether the hash of a key is at most `max`.
    pub(super) fn sampled(&mut self, key: &[Lowered], max: u64, ways: Ways) {
        self.w.mov(HASH, 0);
        self.push(HASH);
        for part in key {
            let (absent, mixed) = (self.w.label("absent_part"), self.w.label("mixed"));
            let words = self.part_of_key(part, absent);
            self.pop(HASH);
            self.hash_step(1);
            words.iter().for_each(|&word| self.hash_step(word));
            self.push(HASH);
            self.w.jump(mixed);
            self.w.bind(absent);
            self.pop(HASH);
            self.hash_step(0);
            self.push(HASH);
            self.w.jump(mixed);
            self.w.bind(mixed);
        }
        self.pop(R0);
        self.w.constant(R1, max.cast_signed()).jump_if(Cond::Le, R0, R1, ways.yes);
        self.w.jump(ways.no);
    }

    /// Computes a part of a key, and gives the registers that hold its words; jumps to `absent`
    /// where the packet does not have it.
    pub(super) fn part_of_key(&mut self, part: &Lowered, absent: Place) -> &'static [Reg] {
        match part {
            Lowered::Num(num) => {
                self.num(num, absent);
                &[R0]
            }
            Lowered::Test(test) => {
                self.num(&Num::truth(test.clone()), absent);
                &[R0]
            }
            Lowered::Addr(addr) => {
                self.addr(addr, absent);
                &[R0, R1]
            }
        }
    }

    /// Goes on with the hash by one word. Uses `R3`.
    fn hash_step(&mut self, word: impl Into<Operand>) {
        let w = &mut *self.w;
        w.alu(Alu::Xor, HASH, word).constant(R3, ADDED.cast_signed()).alu(Alu::Add, HASH, R3);
        for factor in FACTORS {
            w.mov(R3, HASH).alu(Alu::Rsh, R3, 33).alu(Alu::Xor, HASH, R3);
            w.constant(R3, factor.cast_signed()).alu(Alu::Mul, HASH, R3);
        }
        w.mov(R3, HASH).alu(Alu::Rsh, R3, 33).alu(Alu::Xor, HASH, R3);
    }
}
