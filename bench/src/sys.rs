//! What the standard library lacks: CPU time, a mapped file, memory in huge pages, prefetch.
//!
//! What makes it sound: each unsafe call is one system call or instruction whose contract is met
//! within the function that makes it, and nothing unsafe is handed out. [`Pages`] owns zeroed
//! anonymous memory, where any bits are a valid `u64`.

use memmap2::{Advice, Mmap, MmapMut, MmapOptions};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// CPU time that this process has spent in user mode.
pub(crate) fn user_time() -> io::Result<Duration> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage` that the call may write.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are a valid `rusage`, and the call filled it in.
    let time = unsafe { usage.assume_init() }.ru_utime;
    Ok(Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64))
}

/// Maps a file that nobody writes to while the benchmark runs, all pages at once.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    // SAFETY: a trace is renamed into place when it is whole and never written again.
    unsafe { MmapOptions::new().populate().map(&File::open(path)?) }
}

/// Rows of one cache line each, in huge pages where the system grants them, touched beforehand.
pub(crate) struct Pages {
    memory: MmapMut,
    /// Bytes to the first huge page.
    skip: usize,
    rows: usize,
}

impl Pages {
    /// `2^log2` rows of zeros.
    pub(crate) fn zeroed(log2: u32) -> io::Result<Pages> {
        let rows = 1usize << log2;
        let mut memory = MmapMut::map_anon(rows * 64 + HUGE)?;
        let skip = memory.as_ptr().align_offset(HUGE);
        // Only advice: small pages are slower, not wrong.
        let _ = memory.advise(Advice::HugePage);
        memory[skip..skip + rows * 64].fill(0);
        Ok(Pages { memory, skip, rows })
    }

    /// The rows.
    pub(crate) fn rows(&mut self) -> &mut [[u64; 8]] {
        let bytes = &mut self.memory[self.skip..self.skip + self.rows * 64];
        // SAFETY: the slice is that long, starts at a huge page and so at a multiple of eight, and
        // is borrowed mutably for as long as the result.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), self.rows) }
    }
}

/// Asks the processor to bring the cache line of `value` close.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the pointer comes from a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_and_hold_what_is_written() {
        let mut pages = Pages::zeroed(6).expect("memory");
        let rows = pages.rows();
        assert_eq!(rows.len(), 64);
        assert_eq!(rows.as_ptr().align_offset(HUGE), 0);
        assert!(rows.iter().flatten().all(|&w| w == 0));
        rows[63] = [7; 8];
        assert_eq!(pages.rows()[63], [7; 8]);
    }
}
