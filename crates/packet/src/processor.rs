//! Loops for what the processor at hand can do beyond every x86-64 processor.
//!
//! Sound because the instructions that a function is compiled for are used only where the processor
//! was asked whether it has them.

/// Runs a loop over numbers, compiled also for processors that take eight numbers of 32 bits at
/// once (AVX2) and on those run so. `work` and what it calls must be inlined: a function that is
/// not is compiled for any processor.
#[inline(always)]
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    // Miri has no processor to ask.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(test)]
mod tests {
    use super::wide;

    #[test]
    fn the_loop_runs_once() {
        let (numbers, mut sum) = ([7u32; 64], 0);
        assert_eq!(wide(|| numbers.iter().for_each(|n| sum += n)), ());
        assert_eq!(sum, 7 * 64);
    }
}
