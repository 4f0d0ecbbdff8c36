//! Asking the processor to fetch memory that will be needed soon.
//!
//! Sound because a prefetch never faults and changes nothing that a program can see: the address
//! is a hint, and it is computed without being dereferenced.

/// Fetches the cache line of `slice[at]`; an index outside the slice does nothing.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if at < slice.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86_64; the pointer lies within the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().add(at).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (slice, at);
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_index_is_harmless() {
        super::prefetch(&[1u64, 2, 3], 1);
        super::prefetch(&[1u64, 2, 3], usize::MAX);
        super::prefetch::<u64>(&[], 0);
    }
}
