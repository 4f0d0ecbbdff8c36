//! libpcap, opened at run time, so that neither building nor running needs it where no filter is
//! given and no device is captured from that only it knows. Here is its filter compiler; for
//! captures see [`device`].
//!
//! It is sound: the four types below are laid out as `pcap/bpf.h` says and have been since
//! libpcap 1.0; every symbol is given the prototype of its manual page; the library stays loaded
//! as long as its functions can be called; what it allocates is copied and freed before the lock
//! is let go. The compiler kept global state before libpcap 1.8, so one thread at a time is in
//! it. `fdopen` and `fclose` are looked up through libpcap too: the `FILE` must come from the C
//! library that libpcap uses.
//!
//! The compiler is given an empty capture file, by a pipe, rather than a bare link type: for some
//! link types it compiles differently for files (address families of BSD loopback and their byte
//! order, direction), and the answer should be that of `tcpdump -r`.

pub(crate) mod device;

use crate::cbpf::Instruction;
use crate::limits::FILTER_INSTRUCTIONS_MAX;
use libloading::Library;
use parking_lot::Mutex;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::ptr::NonNull;
use weir_packet::pcap::FileHeader;

/// Names under which systems ship it.
#[cfg(target_vendor = "apple")]
const NAMES: &[&str] = &["libpcap.A.dylib", "libpcap.dylib"];
#[cfg(not(target_vendor = "apple"))]
const NAMES: &[&str] = &["libpcap.so.1", "libpcap.so.0.8", "libpcap.so"];

/// `PCAP_ERRBUF_SIZE`.
const ERROR_BYTES: usize = 256;

/// Why an expression could not be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CompileError {
    /// libpcap can't be loaded; the loader's words.
    Missing(String),
    /// libpcap refuses the expression; its words.
    Expression(String),
    /// The expression can't even be put to libpcap.
    System(String),
}

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    len: c_uint,
    instructions: *mut Instruction,
}

/// `pcap_t` and `FILE`, of which we know nothing.
type Handle = c_void;

type FdOpen = unsafe extern "C" fn(c_int, *const c_char) -> *mut Handle;
type FClose = unsafe extern "C" fn(*mut Handle) -> c_int;
type FOpenOffline = unsafe extern "C" fn(*mut Handle, *mut c_char) -> *mut Handle;
type Compile =
    unsafe extern "C" fn(*mut Handle, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int;
type FreeCode = unsafe extern "C" fn(*mut RawProgram);
type GetErr = unsafe extern "C" fn(*mut Handle) -> *mut c_char;
type Close = unsafe extern "C" fn(*mut Handle);

struct Libpcap {
    fdopen: FdOpen,
    fclose: FClose,
    fopen_offline: FOpenOffline,
    compile: Compile,
    freecode: FreeCode,
    geterr: GetErr,
    close: Close,
    /// Keeps the functions above where they are.
    _library: Library,
}

/// The library once it is loaded, and the lock that its compiler needs.
static LIBPCAP: Mutex<Option<Libpcap>> = Mutex::new(None);

/// Compiles `expression` for the frames of a capture file with this header.
pub(crate) fn compile(
    header: &FileHeader,
    expression: &str,
) -> Result<Vec<Instruction>, CompileError> {
    let Ok(expression) = CString::new(expression) else {
        return Err(CompileError::Expression("the expression contains a NUL byte".to_owned()));
    };
    let mut guard = LIBPCAP.lock();
    let libpcap = match &mut *guard {
        Some(libpcap) => libpcap,
        none => none.insert(Libpcap::load()?),
    };
    let capture = libpcap.open_capture(header)?;
    let mut program = RawProgram { len: 0, instructions: std::ptr::null_mut() };
    // SAFETY: an open capture, a program to write to, a string that ends in NUL; 1 for "optimise",
    // 0 for "no netmask", as tcpdump has it for files.
    let status = unsafe {
        (libpcap.compile)(capture.handle.as_ptr(), &mut program, expression.as_ptr(), 1, 0)
    };
    if status != 0 {
        // SAFETY: the message belongs to the open capture and is copied at once.
        let message = unsafe { text((libpcap.geterr)(capture.handle.as_ptr())) };
        return Err(CompileError::Expression(message));
    }
    let len = (program.len as usize).min(FILTER_INSTRUCTIONS_MAX + 1);
    let instructions = if program.instructions.is_null() || len == 0 {
        Vec::new()
    } else {
        // SAFETY: a compiled program holds `len` instructions, until it is freed below.
        unsafe { std::slice::from_raw_parts(program.instructions, len) }.to_vec()
    };
    // SAFETY: a program that pcap_compile filled, freed once.
    unsafe { (libpcap.freecode)(&mut program) };
    Ok(instructions)
}

impl Libpcap {
    fn load() -> Result<Libpcap, CompileError> {
        let library = library().map_err(CompileError::Missing)?;
        Libpcap::resolve(library).map_err(|e| CompileError::Missing(e.to_string()))
    }

    fn resolve(library: Library) -> Result<Libpcap, libloading::Error> {
        // SAFETY: the types are the prototypes of the manual pages; the functions are kept
        // together with the library.
        unsafe {
            Ok(Libpcap {
                fdopen: *library.get(b"fdopen\0")?,
                fclose: *library.get(b"fclose\0")?,
                fopen_offline: *library.get(b"pcap_fopen_offline\0")?,
                compile: *library.get(b"pcap_compile\0")?,
                freecode: *library.get(b"pcap_freecode\0")?,
                geterr: *library.get(b"pcap_geterr\0")?,
                close: *library.get(b"pcap_close\0")?,
                _library: library,
            })
        }
    }

    /// Opens an empty capture file with this header.
    fn open_capture(&self, header: &FileHeader) -> Result<Capture<'_>, CompileError> {
        let system = |e: io::Error| CompileError::System(e.to_string());
        let (reader, mut writer) = io::pipe().map_err(system)?;
        // Less than a pipe holds, so this does not wait; dropping the writer ends the file.
        writer.write_all(&header.to_bytes()).map_err(system)?;
        drop(writer);
        // SAFETY: a descriptor that is ours to give away; the FILE owns it from here.
        let file = unsafe { (self.fdopen)(reader.into_raw_fd(), c"r".as_ptr()) };
        if file.is_null() {
            return Err(system(io::Error::last_os_error()));
        }
        let mut message: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
        // SAFETY: an open FILE, and a buffer of the size that libpcap writes at most.
        let handle = unsafe { (self.fopen_offline)(file, message.as_mut_ptr()) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Capture { handle, close: self.close, _libpcap: self }),
            None => {
                // SAFETY: libpcap left the FILE open; the message ends in NUL.
                let message = unsafe {
                    (self.fclose)(file);
                    text(message.as_ptr())
                };
                Err(CompileError::Expression(message))
            }
        }
    }
}

/// An open capture, closed when dropped; it owns its FILE.
struct Capture<'a> {
    handle: NonNull<Handle>,
    close: Close,
    _libpcap: &'a Libpcap,
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // SAFETY: opened by pcap_fopen_offline, closed once.
        unsafe { (self.close)(self.handle.as_ptr()) }
    }
}

/// Loads libpcap, or says what was looked for, and in the loader's words why it can't be had.
fn library() -> Result<Library, String> {
    first_of(NAMES)
}

/// Loads the first of these libraries that there is.
fn first_of(names: &[&str]) -> Result<Library, String> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: loading libpcap runs no code that has requirements on us.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    // One that is there and can't be loaded says more than those that are not there.
    let is_there = |reason: &&String| !reason.contains("No such file");
    let reason = reasons.iter().find(is_there).or(reasons.first()).cloned().unwrap_or_default();
    Err(format!("looked for {}; {reason}", names.join(", ")))
}

/// Copies a C string.
///
/// # Safety
/// `s` is null or points to bytes that end in NUL and don't change meanwhile.
unsafe fn text(s: *const c_char) -> String {
    if s.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of another system's library was told, as the last that was looked for.
    #[test]
    fn a_library_that_is_missing_is_told_by_what_was_looked_for() {
        let names = ["libweir-is-not-there.so.1", "libweir-is-not-there.so"];
        let reason = first_of(&names).expect_err("there is none");
        assert!(
            reason.starts_with("looked for libweir-is-not-there.so.1, libweir-is-"),
            "{reason}"
        );
        assert!(reason.contains("; libweir-is-not-there.so.1: cannot open"), "{reason}");
        let is_elf = NAMES.iter().all(|name| name.contains(".so"));
        assert_eq!(is_elf, !cfg!(target_vendor = "apple"));
    }
}
