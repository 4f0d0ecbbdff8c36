//! Captures from devices by libpcap (pcap(3PCAP)): interfaces of any system, and what only libpcap
//! knows, such as USB, Bluetooth and netfilter's logs.
//!
//! It is sound: every function is given the prototype of its manual page, and stays loaded
//! for good; a handle is made by `pcap_create`, used by one thread at a time (it is moved, never
//! shared), and closed once. Packets are lent to a function of ours for the length of a call, whose
//! bytes and header libpcap guarantees for that long, and of whose bytes no more are believed than
//! were asked for; that function gets our state by the pointer that `pcap_dispatch` hands on, which
//! is borrowed for the length of the call. Lists are walked by their own links, copied and freed
//! once. Of structures that differ between systems only the fields are read with which all of them
//! begin. Where the times of packets may be of another form than `timeval` ([`KNOWN_TIMES`]),
//! nothing is captured.

use super::{ERROR_BYTES, Handle, RawProgram, library, text};
use crate::cbpf::Instruction;
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::OnceLock;
use weir_packet::limits::CAPLEN_MAX;

/// How a device is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Bytes that are kept of a packet.
    pub(crate) snaplen: u32,
    pub(crate) promiscuous: bool,
    /// Milliseconds that packets may wait in the system for others.
    pub(crate) timeout_ms: u32,
    /// Whether they don't wait, instead.
    pub(crate) immediate: bool,
    /// Bytes of the system's buffer.
    pub(crate) buffer: usize,
    /// The clock that counts, where it is not the one that is usual: `PCAP_TSTAMP_…`.
    pub(crate) stamps: Option<c_int>,
    /// `PCAP_D_…`, where it is not both.
    pub(crate) direction: Option<c_int>,
    /// A link type that is preferred, where the device can give several.
    pub(crate) link: Option<c_int>,
}

pub(crate) const STAMPS_ADAPTER: c_int = 3;
pub(crate) const STAMPS_ADAPTER_UNSYNCED: c_int = 4;
pub(crate) const DIRECTION_IN: c_int = 1;
pub(crate) const DIRECTION_OUT: c_int = 2;

/// Why a device can't be captured from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// libpcap can't be loaded, or is too old; the loader's words.
    Missing(String),
    /// There is no such device.
    NoDevice,
    /// The process may not; libpcap's words.
    Permission(String),
    /// It is an interface that is down.
    Down,
    /// It has no such times.
    Stamps,
    /// It cannot tell directions apart; libpcap's words.
    Direction(String),
    /// Anything else, in libpcap's words.
    Other(String),
}

/// A device as libpcap lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// `PCAP_IF_…`.
    pub(crate) flags: u32,
}

pub(crate) const LOOPBACK: u32 = 1;
pub(crate) const UP: u32 = 2;
pub(crate) const RUNNING: u32 = 4;

/// A packet while libpcap lends it.
pub(crate) struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub(crate) ts: i64,
    /// Bytes that it had on the wire.
    pub(crate) len: u32,
    pub(crate) bytes: &'a [u8],
}

/// The counts of libpcap since the device was opened, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PcapStatistics {
    /// Packets that the system's filter let through, on most systems with those that found no room.
    pub(crate) received: u32,
    /// Packets for which the system's buffer had no room.
    pub(crate) dropped: u32,
    /// Packets that the interface dropped; 0 where that is not known.
    pub(crate) interface: u32,
}

/// A device that is captured from, without waiting.
pub(crate) struct PcapHandle {
    handle: NonNull<Handle>,
    libpcap: &'static Functions,
    nanoseconds: bool,
}

// SAFETY: a handle belongs to no thread; `PcapHandle` has one owner, and hands it to nobody.
unsafe impl Send for PcapHandle {}

/// Whether the times of packets are of the form that is read here. OpenBSD has its own
/// (`bpf_timeval`), and where pointers have 32 bits libpcap may have been built with times of
/// another width than ours.
const KNOWN_TIMES: bool = !cfg!(any(target_pointer_width = "32", target_os = "openbsd"));

/// The beginning of `struct pcap_pkthdr`; some systems have more after it.
#[repr(C)]
struct Header {
    ts: libc::timeval,
    caplen: u32,
    len: u32,
}

/// `struct pcap_if`.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    name: *const c_char,
    description: *const c_char,
    addresses: *mut c_void,
    flags: u32,
}

/// `struct pcap_stat`, with room for what some systems have after it.
#[repr(C)]
#[derive(Default)]
struct Stat {
    received: c_uint,
    dropped: c_uint,
    interface: c_uint,
    more: [c_uint; 5],
}

type Landing = unsafe extern "C" fn(*mut c_uchar, *const Header, *const c_uchar);
type SetNumber = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
type Ask = unsafe extern "C" fn(*mut Handle) -> c_int;

macro_rules! functions {
    ($($field:ident: $type:ty = $symbol:literal,)*) => {
        struct Functions {
            $($field: $type,)*
            /// Keeps the functions above where they are.
            _library: Library,
        }

        impl Functions {
            fn resolve(library: Library) -> Result<Functions, libloading::Error> {
                // SAFETY: the types are the prototypes of the manual pages; the functions are kept
                // together with the library.
                unsafe {
                    Ok(Functions {
                        $($field: *library.get(concat!($symbol, "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut Handle = "pcap_create",
    close: unsafe extern "C" fn(*mut Handle) = "pcap_close",
    activate: Ask = "pcap_activate",
    set_snaplen: SetNumber = "pcap_set_snaplen",
    set_promisc: SetNumber = "pcap_set_promisc",
    set_timeout: SetNumber = "pcap_set_timeout",
    set_immediate_mode: SetNumber = "pcap_set_immediate_mode",
    set_buffer_size: SetNumber = "pcap_set_buffer_size",
    set_tstamp_type: SetNumber = "pcap_set_tstamp_type",
    set_tstamp_precision: SetNumber = "pcap_set_tstamp_precision",
    get_tstamp_precision: Ask = "pcap_get_tstamp_precision",
    set_direction: SetNumber = "pcap_setdirection",
    set_datalink: SetNumber = "pcap_set_datalink",
    datalink: Ask = "pcap_datalink",
    set_nonblock: unsafe extern "C" fn(*mut Handle, c_int, *mut c_char) -> c_int
        = "pcap_setnonblock",
    set_filter: unsafe extern "C" fn(*mut Handle, *mut RawProgram) -> c_int = "pcap_setfilter",
    selectable_fd: Ask = "pcap_get_selectable_fd",
    dispatch: unsafe extern "C" fn(*mut Handle, c_int, Landing, *mut c_uchar) -> c_int
        = "pcap_dispatch",
    stats: unsafe extern "C" fn(*mut Handle, *mut Stat) -> c_int = "pcap_stats",
    geterr: unsafe extern "C" fn(*mut Handle) -> *mut c_char = "pcap_geterr",
    statustostr: unsafe extern "C" fn(c_int) -> *const c_char = "pcap_statustostr",
    find_all: unsafe extern "C" fn(*mut *mut Entry, *mut c_char) -> c_int = "pcap_findalldevs",
    free_all: unsafe extern "C" fn(*mut Entry) = "pcap_freealldevs",
    version: unsafe extern "C" fn() -> *const c_char = "pcap_lib_version",
}

/// The library, loaded when it is first needed, or why it can't be.
fn libpcap() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    let load = || Functions::resolve(library()?).map_err(|e| e.to_string());
    FUNCTIONS.get_or_init(load).as_ref().map_err(String::clone)
}

// Of pcap/pcap.h.
const PRECISION_NANO: c_int = 1;
const BREAK: c_int = -2;
const NO_SUCH_DEVICE: c_int = -5;
const PERMISSION_DENIED: c_int = -8;
const NOT_UP: c_int = -9;
const CANNOT_SET_STAMPS: c_int = -10;
const PROMISCUOUS_DENIED: c_int = -11;
const NO_SUCH_STAMPS: c_int = 3;

/// libpcap's name and version, in its own words.
///
/// # Errors
/// If there is no libpcap, in the loader's words.
pub fn version() -> Result<String, String> {
    let libpcap = libpcap()?;
    // SAFETY: a string that stays for good.
    Ok(unsafe { text((libpcap.version)()) })
}

/// All devices that libpcap knows, in its order.
///
/// # Errors
/// In libpcap's words, or the loader's.
pub(crate) fn list() -> Result<Vec<Listed>, String> {
    let libpcap = libpcap()?;
    let mut head: *mut Entry = std::ptr::null_mut();
    let mut message: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    // SAFETY: a place for the list, and a buffer of the size that libpcap writes at most.
    if unsafe { (libpcap.find_all)(&mut head, message.as_mut_ptr()) } != 0 {
        // SAFETY: libpcap wrote a message that ends in NUL.
        return Err(unsafe { text(message.as_ptr()) });
    }
    let (mut found, mut at) = (Vec::new(), head.cast_const());
    // SAFETY: the head of the list and its links, which are null at its end.
    while let Some(entry) = unsafe { at.as_ref() } {
        at = entry.next;
        // SAFETY: names end in NUL; a description does, or is null.
        let (name, description) = unsafe {
            let described = !entry.description.is_null();
            (text(entry.name), described.then(|| text(entry.description)))
        };
        found.push(Listed { name, description, flags: entry.flags });
    }
    // SAFETY: the list that was made above; everything was copied.
    unsafe { (libpcap.free_all)(head) };
    Ok(found)
}

impl PcapHandle {
    /// Opens a device of the network namespace of the calling thread.
    pub(crate) fn open(name: &str, settings: &Settings) -> Result<PcapHandle, Refusal> {
        if !KNOWN_TIMES {
            let why = "this system's libpcap gives times in a form that is not known";
            return Err(Refusal::Other(why.to_owned()));
        }
        let libpcap = libpcap().map_err(Refusal::Missing)?;
        let Ok(name) = CString::new(name) else { return Err(Refusal::NoDevice) };
        let mut message: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
        // SAFETY: a string that ends in NUL, and a buffer of the size that libpcap writes at most.
        let handle = unsafe { (libpcap.create)(name.as_ptr(), message.as_mut_ptr()) };
        let Some(handle) = NonNull::new(handle) else {
            // SAFETY: libpcap wrote a message that ends in NUL.
            return Err(Refusal::Other(unsafe { text(message.as_ptr()) }));
        };
        let mut device = PcapHandle { handle, libpcap, nanoseconds: false };
        device.set_up(settings)?;
        Ok(device)
    }

    fn set_up(&mut self, settings: &Settings) -> Result<(), Refusal> {
        let functions = self.libpcap;
        let number = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
        self.set(functions.set_snaplen, number(settings.snaplen as usize));
        self.set(functions.set_promisc, settings.promiscuous.into());
        self.set(functions.set_timeout, number(settings.timeout_ms as usize));
        self.set(functions.set_immediate_mode, settings.immediate.into());
        self.set(functions.set_buffer_size, number(settings.buffer));
        // Where there are none, times are in microseconds.
        self.set(functions.set_tstamp_precision, PRECISION_NANO);
        if let Some(stamps) = settings.stamps
            && matches!(self.set(functions.set_tstamp_type, stamps), ..0 | NO_SUCH_STAMPS)
        {
            return Err(Refusal::Stamps);
        }
        match self.ask(functions.activate) {
            NO_SUCH_STAMPS => return Err(Refusal::Stamps),
            status @ ..0 => return Err(self.refusal(status)),
            // Warnings: of a device that knows no promiscuous mode, say.
            _ => {}
        }
        self.nanoseconds = self.ask(functions.get_tstamp_precision) == PRECISION_NANO;
        if let Some(link) = settings.link {
            // It stays what it is where the device can't.
            self.set(functions.set_datalink, link);
        }
        if let Some(direction) = settings.direction
            && self.set(functions.set_direction, direction) != 0
        {
            return Err(Refusal::Direction(self.error()));
        }
        let mut message: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
        // SAFETY: an active handle, and a buffer of the size that libpcap writes at most.
        if unsafe { (functions.set_nonblock)(self.handle.as_ptr(), 1, message.as_mut_ptr()) } != 0 {
            // SAFETY: libpcap wrote a message that ends in NUL.
            return Err(Refusal::Other(unsafe { text(message.as_ptr()) }));
        }
        Ok(())
    }

    fn refusal(&self, status: c_int) -> Refusal {
        match status {
            NO_SUCH_DEVICE => Refusal::NoDevice,
            NOT_UP => Refusal::Down,
            CANNOT_SET_STAMPS => Refusal::Stamps,
            PERMISSION_DENIED | PROMISCUOUS_DENIED => Refusal::Permission(self.error()),
            _ => match self.error() {
                empty if empty.is_empty() => {
                    // SAFETY: a string that stays for good.
                    Refusal::Other(unsafe { text((self.libpcap.statustostr)(status)) })
                }
                message => Refusal::Other(message),
            },
        }
    }

    /// The link type of its packets, by the numbers of this system (`DLT_…`).
    pub(crate) fn link(&self) -> c_int {
        self.ask(self.libpcap.datalink)
    }

    /// Whether its times are in nanoseconds, not in microseconds.
    pub(crate) fn is_precise(&self) -> bool {
        self.nanoseconds
    }

    /// The descriptor that can be waited on for packets; `None` where the device has no such thing.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.ask(self.libpcap.selectable_fd);
        // SAFETY: libpcap's descriptor, open as long as the handle.
        (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Lets only packets through that this program takes.
    ///
    /// # Errors
    /// In libpcap's words.
    pub(crate) fn filter(&self, program: &[Instruction]) -> Result<(), String> {
        let Ok(len) = c_uint::try_from(program.len()) else { return Err("too long".to_owned()) };
        // libpcap copies it, and writes to the copy only.
        let instructions = program.as_ptr().cast_mut();
        let mut raw = RawProgram { len, instructions };
        // SAFETY: an active handle, and a program of so many instructions.
        match unsafe { (self.libpcap.set_filter)(self.handle.as_ptr(), &mut raw) } {
            0 => Ok(()),
            _ => Err(self.error()),
        }
    }

    /// Takes packets that are there, so many at most; says how many.
    ///
    /// # Errors
    /// In libpcap's words; what was taken before stays taken.
    pub(crate) fn dispatch(
        &mut self,
        most: c_int,
        mut take: impl FnMut(Packet<'_>),
    ) -> Result<usize, String> {
        let mut taker =
            Taker { take: &mut take, per_fraction: if self.nanoseconds { 1 } else { 1000 } };
        let user = (&raw mut taker).cast::<c_uchar>();
        // SAFETY: an active handle; what the pointer says lives, and is used by nobody else, for
        // the length of the call, during which `land` is called.
        match unsafe { (self.libpcap.dispatch)(self.handle.as_ptr(), most, land, user) } {
            BREAK => Ok(0),
            n => usize::try_from(n).map_err(|_| self.error()),
        }
    }

    /// The counts so far; `None` where the device does not say.
    pub(crate) fn statistics(&self) -> Option<PcapStatistics> {
        let mut stat = Stat::default();
        // SAFETY: an active handle, and room for the structure.
        let status = unsafe { (self.libpcap.stats)(self.handle.as_ptr(), &mut stat) };
        let Stat { received, dropped, interface, .. } = stat;
        (status == 0).then_some(PcapStatistics { received, dropped, interface })
    }

    fn set(&self, function: SetNumber, number: c_int) -> c_int {
        // SAFETY: a handle; libpcap itself checks whether it is too late for this.
        unsafe { function(self.handle.as_ptr(), number) }
    }

    fn ask(&self, function: Ask) -> c_int {
        // SAFETY: a handle; libpcap itself checks whether it is active.
        unsafe { function(self.handle.as_ptr()) }
    }

    /// libpcap's words for what went wrong last.
    fn error(&self) -> String {
        // SAFETY: the message belongs to the handle and is copied at once.
        unsafe { text((self.libpcap.geterr)(self.handle.as_ptr())) }
    }
}

impl Drop for PcapHandle {
    fn drop(&mut self) {
        // SAFETY: made by pcap_create, closed once.
        unsafe { (self.libpcap.close)(self.handle.as_ptr()) }
    }
}

/// The reader that takes packets, and what the fractions of their seconds are in nanoseconds.
struct Taker<'a> {
    take: &'a mut dyn FnMut(Packet<'_>),
    per_fraction: i64,
}

/// Hands a packet on. A panic in here would end the process: what takes packets has none.
unsafe extern "C" fn land(user: *mut c_uchar, header: *const Header, bytes: *const c_uchar) {
    // SAFETY: the pointer that `dispatch` gave; a header and so many bytes, lent for this call.
    let (taker, header, bytes) = unsafe {
        let header = &*header;
        // More than the snap length at its greatest is nothing that libpcap was asked for: such a
        // packet counts, and has no bytes.
        let bytes = match bytes.is_null() || header.caplen > CAPLEN_MAX {
            true => &[][..],
            false => std::slice::from_raw_parts(bytes, header.caplen as usize),
        };
        (&mut *user.cast::<Taker<'_>>(), header, bytes)
    };
    let seconds = wide(header.ts.tv_sec).saturating_mul(1_000_000_000);
    let fraction = wide(header.ts.tv_usec).saturating_mul(taker.per_fraction);
    let ts = seconds.saturating_add(fraction);
    (taker.take)(Packet { ts, len: header.len, bytes });
}

/// A number that some systems have in fewer bits.
fn wide(n: impl Into<i64>) -> i64 {
    n.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header that claims more than it may is not followed to bytes that nobody has.
    #[test]
    fn a_packet_has_no_more_bytes_than_were_asked_for() {
        let bytes = [7; 4];
        let mut got = Vec::new();
        for caplen in [4, CAPLEN_MAX + 1, u32::MAX] {
            let ts = libc::timeval { tv_sec: 1, tv_usec: 2 };
            let header = Header { ts, caplen, len: 90 };
            let mut take =
                |packet: Packet<'_>| got.push((packet.ts, packet.len, packet.bytes.len()));
            let mut taker = Taker { take: &mut take, per_fraction: 1000 };
            // SAFETY: a taker and a header; of bytes, as many as the header says, or none are read.
            unsafe { land((&raw mut taker).cast(), &raw const header, bytes.as_ptr()) };
        }
        let ts = 1_000_002_000;
        assert_eq!(got, [(ts, 90, 4), (ts, 90, 0), (ts, 90, 0)]);
    }
}
