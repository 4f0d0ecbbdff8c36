//! DPDK by way of a little C ([`shim.c`](../../src/sys/shim.c)): what of it is inline can't be
//! called from here.
//!
//! It is sound:
//!
//! - *Layouts.* What both sides share are plain structures of numbers; their sizes are checked on
//!   both sides when they are compiled.
//! - *Once, and in turn.* Functions that set up DPDK, or ask a port for its counters or its link,
//!   are called while [`CONTROL`] is locked. Each side of a port, the receiving ([`port`]) and the
//!   sending ([`sender`]), is owned by one place; what it does takes it mutably, wherever DPDK asks
//!   that nobody else does it at the same time. DPDK lets both sides work at the same time. The
//!   port is switched off when the last of them is dropped.
//! - *Buffers.* [`port`] is the only place that knows them: each that was received is given back
//!   once, when no batch refers to it any more (see [`Loans`](weir_capture::loans::Loans)), or when
//!   it was copied. Frames that are sent are copied into buffers of a pool of their own, which DPDK
//!   gives back.
//! - *Memory.* That of a port reads as one slice of bytes while devices fill frames in it and DPDK
//!   writes its own notes there. The bytes read through a batch are those of frames that a device
//!   has handed out and gets back only later; the other bytes may change at any time. Code that
//!   looks a little beyond a frame may so see bytes that change: nothing relies on reading the same
//!   value twice, all access is by checked slices, and what lies beyond a frame is masked away. The
//!   memory is never unmapped, for DPDK can be started once in a process and lasts as long as that:
//!   so batches may outlive the port.

pub(crate) mod on;
pub(crate) mod port;
pub(crate) mod sender;

use parking_lot::{Mutex, MutexGuard};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;

/// Held by who sets something up.
static CONTROL: Mutex<()> = Mutex::new(());

/// Bytes of a name (`RTE_ETH_NAME_MAX_LEN`).
const NAME: usize = 64;

#[repr(C)]
struct RawAbout {
    name: [u8; NAME],
    device: [u8; NAME],
    driver: [u8; NAME],
    queues_max: u32,
    mtu_max: u32,
    stamps: bool,
}

const _: () = assert!(size_of::<RawAbout>() == 204, "as in the C");

unsafe extern "C" {
    fn weir_dpdk_said(into: *mut c_char, len: usize) -> usize;
    fn weir_dpdk_start(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn weir_dpdk_has_huge_pages() -> bool;
    fn weir_dpdk_processor() -> c_int;
    fn weir_dpdk_version() -> *const c_char;
    fn weir_dpdk_beside(
        call: extern "C" fn(*mut c_void),
        with: *mut c_void,
        seconds: c_uint,
    ) -> c_int;
    fn weir_dpdk_ports(ports: *mut u16, most: c_int) -> c_int;
    fn weir_dpdk_probe(devargs: *const c_char) -> c_int;
    fn weir_dpdk_about(port: u16, about: *mut RawAbout) -> c_int;
}

/// The facts about a port.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The name of the port.
    pub(crate) name: String,
    /// That of the device, which may have several ports.
    pub(crate) device: String,
    pub(crate) driver: String,
    pub(crate) queues_max: u32,
    /// Whether it says when frames came.
    pub(crate) stamps: bool,
}

fn lock() -> MutexGuard<'static, ()> {
    CONTROL.lock()
}

/// Zero or more, or the error that is told by a negative number.
fn checked(code: c_int) -> io::Result<c_int> {
    match code {
        0.. => Ok(code),
        _ => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

fn text(what: &str) -> io::Result<CString> {
    CString::new(what).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}

/// DPDK's messages since it was last asked.
pub(crate) fn said() -> String {
    let mut into = vec![0_u8; 8192];
    // SAFETY: room of this length, which is written to.
    let n = unsafe { weir_dpdk_said(into.as_mut_ptr().cast(), into.len()) };
    into.truncate(n);
    String::from_utf8_lossy(&into).into_owned()
}

/// Starts DPDK with these arguments, that of the program first. It may be once in a process.
pub(crate) fn start(arguments: &[String]) -> io::Result<()> {
    let _alone = lock();
    let texts = arguments.iter().map(|a| text(a)).collect::<io::Result<Vec<CString>>>()?;
    // It keeps some of them, and sorts them.
    let mut pointers: Vec<*mut c_char> = texts.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = Vec::leak(pointers);
    let n = c_int::try_from(arguments.len()).unwrap_or(c_int::MAX);
    // SAFETY: as many texts as are told, which end in zero and last for good, and a null behind.
    checked(unsafe { weir_dpdk_start(n, pointers.as_mut_ptr()) }).map(drop)
}

/// Whether memory is of huge pages.
pub(crate) fn has_huge_pages() -> bool {
    // SAFETY: asks for a setting.
    unsafe { weir_dpdk_has_huge_pages() }
}

/// The processor that this thread is on.
pub(crate) fn processor() -> usize {
    // SAFETY: asks the system.
    usize::try_from(unsafe { weir_dpdk_processor() }).unwrap_or(0)
}

/// The version of DPDK, in words.
pub(crate) fn version() -> String {
    // SAFETY: a constant text of the library, which ends in zero.
    unsafe { CStr::from_ptr(weir_dpdk_version()) }.to_string_lossy().into_owned()
}

/// Calls a function once in the thread that DPDK waits for interrupts in, and waits until it is
/// done.
pub(crate) fn beside(call: Box<dyn FnOnce() + Send>, seconds: u32) -> io::Result<()> {
    extern "C" fn run(with: *mut c_void) {
        // SAFETY: made below, for one call.
        let call = unsafe { Box::from_raw(with.cast::<Box<dyn FnOnce() + Send>>()) };
        call();
    }
    let _alone = lock();
    let with = Box::into_raw(Box::new(call)).cast();
    // SAFETY: a function and what it is called with, which is its own from here on: where it is not
    // called in time, it may be later, so that nothing may be freed here.
    checked(unsafe { weir_dpdk_beside(run, with, seconds) }).map(drop)
}

/// The ports that there are.
pub(crate) fn ports() -> Vec<u16> {
    let mut ports = [0_u16; 1024];
    // SAFETY: room for so many numbers, which are written to.
    let n = unsafe { weir_dpdk_ports(ports.as_mut_ptr(), ports.len() as c_int) };
    ports[..usize::try_from(n).unwrap_or(0)].to_vec()
}

/// Makes a virtual device.
pub(crate) fn probe(device: &str) -> io::Result<()> {
    let _alone = lock();
    let device = text(device)?;
    // SAFETY: a text that ends in zero and lives through the call.
    checked(unsafe { weir_dpdk_probe(device.as_ptr()) }).map(drop)
}

/// The facts about a port.
pub(crate) fn about(port: u16) -> io::Result<About> {
    let mut raw = RawAbout {
        name: [0; NAME],
        device: [0; NAME],
        driver: [0; NAME],
        queues_max: 0,
        mtu_max: 0,
        stamps: false,
    };
    // SAFETY: a structure that lives through the call and is written to.
    checked(unsafe { weir_dpdk_about(port, &raw mut raw) })?;
    let name = |bytes: [u8; NAME]| {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(About {
        name: name(raw.name),
        device: name(raw.device),
        driver: name(raw.driver),
        queues_max: raw.queues_max,
        stamps: raw.stamps,
    })
}
