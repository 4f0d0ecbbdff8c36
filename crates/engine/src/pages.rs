//! Asking the kernel for huge pages under large tables, so that a look-up costs a cache miss and
//! not a walk of page tables too.
//!
//! Sound because `MADV_HUGEPAGE` is a hint: it changes neither the contents nor the addresses of
//! memory, and it is given only for whole pages inside an allocation that the caller holds.

/// Below this many bytes nothing is gained.
const WORTH: usize = 4 << 20;

/// Advises huge pages for the whole allocation of a vector, used or not. A kernel that refuses is
/// no error: the memory works all the same.
pub(crate) fn advise<T>(memory: &mut Vec<T>) {
    let bytes = memory.capacity() * size_of::<T>();
    if bytes < WORTH {
        return;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 4096;
        let start = memory.as_mut_ptr() as usize;
        let first = start.next_multiple_of(PAGE);
        let whole = (start + bytes - first) / PAGE * PAGE;
        // SAFETY: the range lies within the allocation, and the advice does not touch its contents.
        unsafe { libc::madvise(first as *mut libc::c_void, whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn contents_stay() {
        let mut v: Vec<u64> = (0..2_000_000).collect();
        super::advise(&mut v);
        v.reserve(4_000_000);
        super::advise(&mut v);
        assert!(v.iter().copied().eq(0..2_000_000));
        super::advise(&mut Vec::<u8>::new());
    }
}
