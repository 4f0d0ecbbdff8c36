//! `steer by`: which output a key chooses, which is part of the language
//! ([`weir_plan::ends::rendezvous`]).

use super::{Emit, TooDeep};
use crate::value::Lowered;
use weir_ebpf::{Alu, Cond, Operand, Reg, Reg::*};

/// The summand, the factors and the shifts of [`weir_plan::ends::mix`].
const ADDED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEPS: [(i32, u64); 2] = [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)];
const LAST_SHIFT: i32 = 31;

/// Where the hash is while words are mixed in, and whether any part of the key is there.
const HASH: Reg = R2;
const KEYED: Reg = R4;

impl Emit<'_> {
    /// `R0 =` what stands beside the output that the key chooses. Uses `R1` to `R5`.
    pub(crate) fn steer(mut self, key: &[Lowered], outputs: &[(u64, i32)]) -> Result<(), TooDeep> {
        self.w.mov(HASH, 0).mov(KEYED, 0);
        self.push(KEYED);
        self.push(HASH);
        for part in key {
            let (absent, mixed) = (self.w.label("absent_part"), self.w.label("mixed"));
            let words = self.part_of_key(part, absent);
            self.pop(HASH);
            self.pop(KEYED);
            words.iter().for_each(|&word| self.mix(HASH, word));
            self.w.mov(KEYED, 1);
            self.push(KEYED);
            self.push(HASH);
            self.w.jump(mixed);
            self.w.bind(absent);
            self.pop(HASH);
            words.iter().for_each(|_| self.mix(HASH, 0));
            self.push(HASH);
            self.w.jump(mixed);
            self.w.bind(mixed);
        }
        self.pop(HASH);
        self.pop(KEYED);
        self.choose_output(outputs);
        if self.too_deep { Err(TooDeep) } else { Ok(()) }
    }

    /// `R0 =` what stands beside the output whose word, mixed into the hash, gives most.
    fn choose_output(&mut self, outputs: &[(u64, i32)]) {
        const SCORE: Reg = R3;
        const MOST: Reg = R5;
        let done = self.w.label("output");
        for (n, &(word, deed)) in outputs.iter().enumerate() {
            if n == 0 {
                self.w.mov(R0, deed).jump_if(Cond::Eq, KEYED, 0, done);
            }
            self.w.mov(SCORE, HASH).constant(R1, word.cast_signed());
            self.mix(SCORE, R1);
            let less = self.w.label("less");
            if n > 0 {
                self.w.jump_if(Cond::Le, SCORE, MOST, less).mov(R0, deed);
            }
            self.w.mov(MOST, SCORE);
            self.w.jump(less);
            self.w.bind(less);
        }
        self.w.jump(done);
        self.w.bind(done);
    }

    /// Mixes one more word into a hash. Uses `R5` for [`HASH`], and `R1` for others.
    fn mix(&mut self, hash: Reg, word: impl Into<Operand>) {
        let scratch = if hash == HASH { R5 } else { R1 };
        let w = &mut *self.w;
        w.alu(Alu::Xor, hash, word).constant(scratch, ADDED.cast_signed());
        w.alu(Alu::Add, hash, scratch);
        for (shift, factor) in STEPS {
            w.mov(scratch, hash).alu(Alu::Rsh, scratch, shift).alu(Alu::Xor, hash, scratch);
            w.constant(scratch, factor.cast_signed()).alu(Alu::Mul, hash, scratch);
        }
        w.mov(scratch, hash).alu(Alu::Rsh, scratch, LAST_SHIFT).alu(Alu::Xor, hash, scratch);
    }
}
