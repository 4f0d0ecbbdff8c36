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

/// Whose CPU time is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// This process, all its threads.
    Me,
    /// The processes that this one started and waited for.
    Children,
}

/// CPU time, by mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    /// In the program itself.
    pub(crate) user: Duration,
    /// In the kernel on its behalf.
    pub(crate) system: Duration,
}

/// CPU time spent so far.
pub(crate) fn cpu_time(who: Who) -> io::Result<CpuTime> {
    let who = match who {
        Who::Me => libc::RUSAGE_SELF,
        Who::Children => libc::RUSAGE_CHILDREN,
    };
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage` that the call may write.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are a valid `rusage`, and the call filled it in.
    let usage = unsafe { usage.assume_init() };
    let duration = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    Ok(CpuTime { user: duration(usage.ru_utime), system: duration(usage.ru_stime) })
}

/// CPU time that this thread has spent in either mode, to the nanosecond: other work on the
/// machine does not add to it.
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` that the call may write.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every thread has a clock of its own");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
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
    fn time_is_counted_where_it_is_spent() {
        let (mine, thread) = (cpu_time(Who::Me).expect("counted"), thread_time());
        let spun = (0..20_000_000u64).fold(1, |a: u64, b| std::hint::black_box(a ^ b));
        assert!(thread_time() > thread, "{spun}");
        let after = cpu_time(Who::Me).expect("counted");
        assert!(after.user + after.system > mine.user + mine.system);
        std::process::Command::new("true").status().expect("runs");
        let children = cpu_time(Who::Children).expect("counted");
        assert!(children.user + children.system > Duration::ZERO);
    }

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
