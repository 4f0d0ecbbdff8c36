//! Random numbers, and conversations drawn by popularity.

/// The step of the SplitMix64 sequence.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random stream: xoshiro256** (D. Blackman, S. Vigna, 2018), seeded by SplitMix64.
pub(super) struct Rng([u64; 4]);

impl Rng {
    pub(super) fn new(mut seed: u64) -> Rng {
        Rng(std::array::from_fn(|_| {
            seed = seed.wrapping_add(GOLDEN);
            finalize(seed)
        }))
    }

    pub(super) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }
}

/// A random number that depends on `a` and `b` alone.
pub(super) fn mix(a: u64, b: u32) -> u64 {
    let seed = a.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(u64::from(b));
    finalize(seed.wrapping_add(GOLDEN))
}

fn finalize(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// How popular each conversation is: an alias table (A. J. Walker, 1977), which draws in constant
/// time.
pub(super) struct Popularity {
    /// Chance, of 2^32, that a slot stands for itself.
    own: Vec<u32>,
    /// Whom it stands for otherwise.
    alias: Vec<u32>,
}

impl Popularity {
    /// The `i`-th of `n` conversations, from 0, has weight `(i + 1)^-s`.
    pub(super) fn zipf(n: u32, s: f64) -> Popularity {
        let weights: Vec<f64> =
            (1..=n).map(|i| if s == 0.0 { 1.0 } else { f64::from(i).powf(-s) }).collect();
        let sum: f64 = weights.iter().sum();
        let mut p: Vec<f64> = weights.iter().map(|w| w * f64::from(n) / sum).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n).partition(|&i| p[i as usize] < 1.0);

        let mut own = vec![u32::MAX; n as usize];
        let mut alias: Vec<u32> = (0..n).collect();
        while let (Some(&b), false) = (large.last(), small.is_empty()) {
            let a = small.pop().expect("checked above") as usize;
            own[a] = (p[a] * f64::from(u32::MAX)) as u32;
            alias[a] = b;
            p[b as usize] -= 1.0 - p[a];
            if p[b as usize] < 1.0 {
                large.pop();
                small.push(b);
            }
        }
        Popularity { own, alias }
    }

    /// Draws a conversation; takes two numbers of the stream.
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        let slot = ((u128::from(rng.next()) * self.own.len() as u128) >> 64) as usize;
        if rng.next() as u32 <= self.own[slot] { slot as u32 } else { self.alias[slot] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_follows_the_law() {
        const DRAWS: u32 = 400_000;
        let (popularity, mut rng) = (Popularity::zipf(4, 1.0), Rng::new(1));
        let mut seen = [0u32; 4];
        for _ in 0..DRAWS {
            seen[popularity.draw(&mut rng) as usize] += 1;
        }
        let sum = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
        for (i, n) in seen.into_iter().enumerate() {
            let expected = f64::from(DRAWS) / (i + 1) as f64 / sum;
            assert!((f64::from(n) - expected).abs() < expected * 0.02, "{i}: {n} of {expected}");
        }
    }
}
