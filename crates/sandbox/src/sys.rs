//! A filter over the system calls of this process (seccomp(2)), and whether there is Landlock: the
//! only unsafe code of this crate.
//!
//! Why it is sound: the kernel copies the program, whose layout is that of `linux/filter.h`, while
//! the call lasts. From then on some calls fail that did not fail before, which does not concern
//! memory.

use seccompiler::sock_filter;
use std::ffi::c_int;
use std::{error, fmt, io};

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    len: libc::c_ushort,
    instructions: *const sock_filter,
}

/// Runs a program before each system call of all threads of this process, and of those to come. It
/// reads a `struct seccomp_data` and returns a `SECCOMP_RET_…`. It can't be taken back.
///
/// The calling thread must have promised to gain no privileges (`PR_SET_NO_NEW_PRIVS`), or have
/// CAP_SYS_ADMIN.
///
/// # Errors
/// Of the kernel: `EINVAL` where it has no such filters or finds fault with the program, `EACCES`
/// without the promise. When the program is too long, or another thread has another filter.
pub(crate) fn filter_system_calls(program: &[sock_filter]) -> Result<(), FilterError> {
    let too_long = |_| FilterError::TooLong(program.len());
    let len = libc::c_ushort::try_from(program.len()).map_err(too_long)?;
    let program = Program { len, instructions: program.as_ptr() };
    // Kernels before 5.16 slow down all loads of a process with a filter, against speculation
    // about stores (`spec_store_bypass_disable=seccomp`); this one runs no code of others.
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let set = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: a program that lives through the call, and its length.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) };
    match checked(c_int::try_from(result).unwrap_or(c_int::MAX)).map_err(FilterError::Kernel)? {
        0 => Ok(()),
        thread => Err(FilterError::OtherFilter(thread)),
    }
}

/// Why there is no filter of system calls.
#[derive(Debug)]
pub(crate) enum FilterError {
    /// The kernel refuses it.
    Kernel(io::Error),
    /// The program has so many instructions, which are more than the kernel counts.
    TooLong(usize),
    /// The thread of this number has a filter of its own.
    OtherFilter(c_int),
}

impl error::Error for FilterError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Kernel(e) => e.fmt(f),
            FilterError::TooLong(n) => write!(f, "the filter has {n} instructions, 65535 at most"),
            FilterError::OtherFilter(thread) => write!(f, "thread {thread} has another filter"),
        }
    }
}

/// The version of Landlock's interface that the kernel has, from 1 (landlock_create_ruleset(2)).
///
/// # Errors
/// `ENOSYS` where the kernel has none, `EOPNOTSUPP` where it is switched off.
pub fn landlock_abi() -> io::Result<u32> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`, which takes no attributes.
    const VERSION: c_int = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag nothing is read, written or made.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION) };
    let abi = checked(c_int::try_from(abi).unwrap_or(c_int::MAX))?;
    Ok(abi.unsigned_abs())
}

/// The result of a call into the system, or why it failed.
fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_too_long_never_reaches_the_kernel() {
        let program = vec![sock_filter { code: 6, jt: 0, jf: 0, k: 0 }; 1 << 16];
        let error = filter_system_calls(&program).expect_err("refused");
        assert!(matches!(error, FilterError::TooLong(65536)), "{error}");
    }
}
