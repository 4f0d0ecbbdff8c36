//! Instructions that compilers do not choose by themselves: they fetch memory that will be needed
//! soon, and compare several numbers at once.
//!
//! Sound because a prefetch never faults and changes nothing that a program can see: the address is
//! a hint, and it is computed without being dereferenced. The comparison takes values, and
//! instructions that every x86-64 processor has.

/// Fetches the cache line of `slice[at]`; an index outside the slice does nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if at < slice.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86_64; the pointer lies within the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().add(at).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (slice, at);
}

/// Which of four numbers equal one: a bit for each, the lowest for the first.
#[inline(always)]
pub(crate) fn equal(four: [u32; 4], one: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_movemask_ps, _mm_set_epi32, _mm_set1_epi32,
        };
        let ([a, b, c, d], one) = (four.map(u32::cast_signed), one.cast_signed());
        // SAFETY: SSE2 is part of x86_64.
        let bits = unsafe {
            let equal = _mm_cmpeq_epi32(_mm_set_epi32(d, c, b, a), _mm_set1_epi32(one));
            _mm_movemask_ps(_mm_castsi128_ps(equal))
        };
        bits.cast_unsigned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    four.iter().enumerate().fold(0, |bits, (i, x)| bits | u32::from(*x == one) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_is_harmless() {
        prefetch(&[1u64, 2, 3], 1);
        prefetch(&[1u64, 2, 3], usize::MAX);
        prefetch::<u64>(&[], 0);
    }

    #[test]
    fn a_bit_for_each_that_is_equal() {
        assert_eq!(equal([7, 0, u32::MAX, 7], 7), 0b1001);
        assert_eq!(equal([7, 0, u32::MAX, 7], u32::MAX), 0b0100);
        assert_eq!(equal([0; 4], 0), 0b1111);
        assert_eq!(equal([1, 2, 3, 4], 0), 0);
    }
}
