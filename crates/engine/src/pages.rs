//! Memory for tables: words that start on a cache line, stay where they are while they grow to
//! gigabytes, and lie on huge pages where the kernel has them, so that a look-up costs a cache miss
//! and not a walk of page tables too.
//!
//! Small memory comes from the allocator. Large memory is reserved once, as address space that
//! costs nothing until it is touched, so that growing never copies: a copy of gigabytes would stall
//! the wire.
//!
//! It is sound: `Words` owns `cap` words at `start`, from the allocator or from one
//! `mmap`, both zeroed, so that every word is initialised whatever `len` says; `len <= cap` always;
//! and it gives slices out only through borrows of itself. It holds plain words without pointers
//! into itself, so that it may be sent and shared like a `Vec<u64>`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = 8;

/// Words from one row to the next in a table of rows of `words`: so many that a small row lies
/// within one cache line.
pub(crate) const fn row_words(words: usize) -> usize {
    match words {
        0..=1 => 1,
        2 => 2,
        3..=4 => 4,
        n => n.next_multiple_of(LINE_WORDS),
    }
}

/// From this many words on, memory is reserved from the kernel: 1 MiB.
const LARGE: usize = 1 << 17;

/// Words that can grow in place.
#[derive(Debug)]
pub(crate) struct Words {
    start: NonNull<u64>,
    len: usize,
    cap: usize,
    /// The bytes to unmap, and where they start, if this is a mapping.
    mapped: Option<(usize, usize)>,
}

// SAFETY: it owns its memory, see above.
unsafe impl Send for Words {}
// SAFETY: shared references only read.
unsafe impl Sync for Words {}

impl Words {
    /// No words, no memory.
    pub(crate) const fn new() -> Words {
        Words { start: NonNull::dangling(), len: 0, cap: 0, mapped: None }
    }

    /// So many words, all zero.
    pub(crate) fn zeroed(len: usize) -> Words {
        let mut words = Words::allocate(len, len);
        words.len = len;
        words
    }

    /// Appends `n` words of unspecified contents and returns them. Room is made for `limit` words
    /// in all where that costs nothing.
    #[inline]
    pub(crate) fn extend(&mut self, n: usize, limit: usize) -> &mut [u64] {
        let from = self.len;
        if self.cap - from < n {
            self.grow(from + n, limit);
        }
        self.len = from + n;
        &mut self[from..]
    }

    /// Makes room for `more` words behind those that are there.
    pub(crate) fn reserve(&mut self, more: usize, limit: usize) {
        if self.cap - self.len < more {
            self.grow(self.len + more, limit);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize, limit: usize) {
        let mut bigger = Words::allocate(needed.max(self.cap * 2).max(LINE_WORDS), limit);
        bigger.len = self.len;
        bigger.copy_from_slice(self);
        *self = bigger;
    }

    /// Forgets the words; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The words as halves, in the machine's order.
    #[inline(always)]
    pub(crate) fn halves(&self) -> &[u32] {
        let words: &[u64] = self;
        // SAFETY: a word is two halves, any bits are one, and words are aligned more strictly.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 2) }
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn halves_mut(&mut self) -> &mut [u32] {
        let words: &mut [u64] = self;
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 2) }
    }

    /// Gives memory back to the kernel that holds the words `range`, as far as it covers whole
    /// pages of a large one and the kernel takes it. Their contents are unspecified then.
    pub(crate) fn release(&mut self, range: std::ops::Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.cap, "a range of the memory");
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.mapped.is_some() {
            const PAGE: usize = 4096;
            let first = (self.start.as_ptr() as usize + range.start * 8).next_multiple_of(PAGE);
            let end = (self.start.as_ptr() as usize + range.end * 8) / PAGE * PAGE;
            if first < end {
                // SAFETY: the pages lie within the mapping, which is private and anonymous: they
                // read as zero afterwards, or, where the kernel refuses, as before.
                unsafe { libc::madvise(first as *mut _, end - first, libc::MADV_DONTNEED) };
                return;
            }
        }
        let end = range.end.min(self.len);
        self[range.start.min(end)..end].fill(0);
    }

    /// Memory of at least `needed` words, empty. A mapping has room for `limit`.
    fn allocate(needed: usize, limit: usize) -> Words {
        if needed >= LARGE
            && let Some(words) = Words::map(needed.max(limit)).or_else(|| Words::map(needed))
        {
            return words;
        }
        if needed == 0 {
            return Words::new();
        }
        let layout = Words::layout(needed);
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast()) else { handle_alloc_error(layout) };
        Words { start, len: 0, cap: needed, mapped: None }
    }

    fn layout(cap: usize) -> Layout {
        Layout::array::<u64>(cap)
            .and_then(|l| l.align_to(LINE_WORDS * 8))
            .expect("tables are far smaller than the address space")
    }

    /// Address space for so many words on huge pages; `None` where the kernel has none to give.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn map(cap: usize) -> Option<Words> {
        const HUGE: usize = 2 << 20;
        let bytes = cap.checked_mul(8)?.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let aligned = (base as usize).next_multiple_of(HUGE);
        let usable = bytes - (aligned - base as usize);
        // SAFETY: the range lies within the new mapping; a refused hint is no error.
        unsafe { libc::madvise(aligned as *mut _, usable, libc::MADV_HUGEPAGE) };
        let start = NonNull::new(aligned as *mut u64)?;
        Some(Words { start, len: 0, cap: usable / 8, mapped: Some((base as usize, bytes)) })
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn map(_: usize) -> Option<Words> {
        None
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        match self.mapped {
            #[cfg(all(target_os = "linux", not(miri)))]
            Some((base, bytes)) => {
                // SAFETY: exactly what was mapped, and nobody borrows it any more.
                unsafe { libc::munmap(base as *mut _, bytes) };
            }
            _ if self.cap == 0 => {}
            // SAFETY: it was allocated with this layout.
            _ => unsafe { dealloc(self.start.as_ptr().cast(), Words::layout(self.cap)) },
        }
    }
}

impl Clone for Words {
    fn clone(&self) -> Words {
        let mut copy = Words::zeroed(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: `len` initialised words, borrowed as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Words {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_stay_while_it_grows() {
        let (mut words, mut model) = (Words::new(), Vec::new());
        let step = if cfg!(miri) { 7 } else { 1003 };
        for round in 0..300u64 {
            words.extend(step, usize::MAX >> 16).fill(round);
            model.resize(model.len() + step, round);
            assert_eq!(words.as_ptr() as usize % 64, 0);
        }
        assert_eq!(words[..], model[..]);
        assert_eq!(words.clone()[..], model[..]);
        words.clear();
        assert!(words.is_empty());
    }

    #[test]
    fn a_large_one_grows_in_place() {
        let limit = LARGE * 8;
        let mut words = Words::new();
        words.reserve(LARGE, limit);
        let at = words.as_ptr();
        words.extend(limit, limit)[limit - 1] = 7;
        assert!(cfg!(not(target_os = "linux")) || cfg!(miri) || words.as_ptr() == at);
        assert_eq!((words[0], words[limit - 1]), (0, 7));
    }

    #[test]
    fn what_was_released_is_zero() {
        for len in [100, LARGE + 5] {
            let mut words = Words::zeroed(len);
            words.fill(1);
            words.release(0..len);
            // Of a mapping only whole pages go.
            let kept = words.iter().filter(|w| **w != 0).count();
            assert!(kept < 512, "{kept} words stay");
        }
    }

    #[test]
    fn no_words_at_all() {
        assert!(Words::zeroed(0).is_empty());
        assert!(Words::new().clone().is_empty());
        Words::new().release(0..0);
    }
}
