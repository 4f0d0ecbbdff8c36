//! Software prefetch: a hint to the processor, the one unsafe call of this crate.
//!
//! What makes it sound: a prefetch reads nothing that the program can see and never faults, and
//! the pointer handed to it is made from a bounds-checked reference into the caller's slice, so
//! no out-of-bounds address is even computed.

/// Asks the processor to bring the cache line of `bytes[offset]` close. Does nothing beyond the
/// end of `bytes`, and on machines other than x86-64.
#[inline(always)]
pub fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(offset) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the pointer comes from a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}

/// The bytes of a cache line.
const LINE: usize = 64;

/// Asks for two lines from `offset` on: what a small record takes, and of a large one its headers.
/// Processors follow a stream by themselves, but lose it when other memory is looked at between two
/// batches: asking for every line took a quarter off a flow meter's time.
#[inline(always)]
pub fn prefetch_record(bytes: &[u8], offset: usize) {
    prefetch(bytes, offset);
    prefetch(bytes, offset.saturating_add(LINE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_will_do() {
        for offset in [0, 2, 3, 4, usize::MAX] {
            prefetch(&[1, 2, 3], offset);
            prefetch_record(&[1, 2, 3], offset);
        }
        prefetch(&[], 0);
    }
}
