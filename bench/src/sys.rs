//! System calls and instructions that the standard library lacks: CPU time, a mapped file, memory
//! in huge pages, prefetch, and how often memory was asked for.
//!
//! It is sound: each unsafe call is one system call or instruction whose contract is met
//! within the function that makes it, and nothing unsafe is handed out. [`Pages`] owns zeroed
//! anonymous memory, where any bits are a valid `u64`. [`Counting`] hands every request on to the
//! system's allocator as it came, under the contract of its own caller; all that it adds is two
//! atomic additions, which neither allocate nor panic.

pub(crate) mod host;
pub(crate) mod ring;
pub(crate) mod xsk;

use memmap2::{Advice, Mmap, MmapMut, MmapOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// The process whose CPU time is asked for.
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

/// The resources that somebody used so far, by the system's count.
fn usage(who: Who) -> io::Result<libc::rusage> {
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
    Ok(unsafe { usage.assume_init() })
}

/// CPU time spent so far.
pub(crate) fn cpu_time(who: Who) -> io::Result<CpuTime> {
    let usage = usage(who)?;
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

/// Requests for memory by all threads of this process, and the bytes asked for.
static REQUESTS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which counts what it is asked for. That costs a few nanoseconds per
/// request, nothing beside the request itself.
pub(crate) struct Counting;

impl Counting {
    #[inline]
    fn count(bytes: usize) {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every request goes to `System` unchanged, which keeps the contract; counting neither
// allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same here.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count(size);
        // SAFETY: `memory` came from `System`, as all of ours does; the caller keeps the rest.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System`, as all of ours does; the caller keeps the rest.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Memory that this process has asked for so far, with [`Counting`] as its allocator.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Asked {
    /// Allocations, growths of one among them.
    pub(crate) allocations: u64,
    /// Their bytes, as if none were given back.
    pub(crate) bytes: u64,
    /// Pages that the kernel had to provide. Memory that is mapped, not allocated, shows here.
    pub(crate) pages: u64,
}

impl Asked {
    /// Until now.
    pub(crate) fn now() -> io::Result<Asked> {
        Ok(Asked {
            allocations: REQUESTS.load(Ordering::Relaxed),
            bytes: BYTES.load(Ordering::Relaxed),
            pages: usage(Who::Me)?.ru_minflt as u64,
        })
    }

    /// Since an earlier moment.
    pub(crate) fn since(self, before: Asked) -> Asked {
        Asked {
            allocations: self.allocations - before.allocations,
            bytes: self.bytes - before.bytes,
            pages: self.pages - before.pages,
        }
    }
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
    fn every_request_for_memory_is_counted() {
        use std::hint::black_box;
        let before = Asked::now().expect("counted");
        let mut text = black_box(Vec::<u8>::with_capacity(10_000));
        text.reserve(20_000);
        let zeros = black_box(vec![0u8; 40_000]);
        black_box(std::thread::spawn(|| black_box(Box::new([1u8; 80_000]))).join().is_ok());
        let asked = Asked::now().expect("counted").since(before);
        // Other tests ask too, and the thread has a name and a result of its own.
        assert!(asked.allocations >= 4 && asked.bytes >= 150_000, "{asked:?}");
        assert!(zeros.len() + text.capacity() >= 60_000);
    }

    #[test]
    fn mapped_memory_shows_in_pages() {
        let before = Asked::now().expect("counted");
        let pages = Pages::zeroed(12).expect("memory");
        assert!(Asked::now().expect("counted").since(before).pages > 0, "{}", pages.rows);
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
