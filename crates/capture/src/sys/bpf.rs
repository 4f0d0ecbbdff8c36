//! bpf(2): maps, programs, links. A map, program or link goes when its file descriptor does, with
//! the process that held it at the latest.
//!
//! It is sound: every command gets the leading part of `union bpf_attr` that it reads, as
//! a `#[repr(C)]` struct of integers without padding, and its size; pointers in it are to slices
//! that live through the call and are as long as the kernel was told, by the sizes of the map or
//! by a length beside the pointer. The kernel checks programs itself.
//!
//! Linux 5.9 knows all that is used here but for tcx.

mod call;
mod map;
mod memory;
mod records;

pub use map::{Map, MapKind, cpu_numbers};
pub use memory::{SharedMemory, can_wait_for_programs, wait_for_programs};
pub(crate) use records::RecordRing;

use crate::limits::{EBPF_LOG_BYTES, EBPF_LOG_SHOWN};
use call::{NAME, address, bpf, bpf_fd, name_of};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use weir_ebpf::{Code, Slot};

/// Commands, from `enum bpf_cmd`.
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;
const LINK_DETACH: libc::c_int = 34;

/// `BPF_XDP`, `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;
const ATTACH_TCX_INGRESS: u32 = 46;
const ATTACH_TCX_EGRESS: u32 = 47;

/// `BPF_F_BEFORE`: before the program that is named; where none is, before all.
const BEFORE: u32 = 1 << 3;

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const TEST_LIVE_FRAMES: u32 = 1 << 1;

/// The room beyond a packet that its result is read into: the kernel may write more than a short
/// frame at its tail.
const TAILROOM: usize = 4096;

/// The purpose of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ProgramKind {
    /// A socket's filter, or what spreads packets over the sockets of a fanout group.
    SocketFilter = 1,
    /// The step of traffic control for each packet that an interface receives or sends.
    TrafficControl = 3,
    /// The step of an interface for each frame it receives.
    Xdp = 6,
}

/// A program in the kernel.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// Why the kernel does not take a program.
#[derive(Debug)]
pub struct LoadError {
    /// The error of the system call.
    pub source: io::Error,
    /// The verifier's words, if it came to that; their end, where they are many.
    pub log: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if self.log.is_empty() { Ok(()) } else { write!(f, "; the verifier: {}", self.log) }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The result of one run of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// The number that the program returned.
    pub returned: u32,
    /// The packet as the program left it.
    pub data: Vec<u8>,
    /// Nanoseconds of one run, on average.
    pub duration_ns: u32,
}

/// The facts that the kernel tells of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramInfo {
    /// Its number in the system.
    pub id: u32,
    /// Its name; may be empty.
    pub name: String,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    flags: u32,
    name: [u8; NAME],
    ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgTestRun {
    fd: u32,
    returned: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    pad: u32,
}

#[repr(C)]
struct ById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

#[repr(C)]
struct InfoByFd {
    fd: u32,
    info_len: u32,
    info: u64,
}

impl Program {
    /// Loads a program under a name of up to 15 letters, digits and `_`.
    ///
    /// # Errors
    /// Without the capabilities CAP_BPF and, for XDP, CAP_NET_ADMIN; when the verifier refuses it.
    pub fn load(kind: ProgramKind, name: &str, code: &Code) -> Result<Program, LoadError> {
        Program::load_for((kind, None), name, code)
    }

    /// Loads an XDP program for the card of the interface of this number, in the network namespace
    /// of this thread: its driver translates it, and no other place takes it.
    ///
    /// # Errors
    /// As for [`Program::load`]; `EOPNOTSUPP` or `EINVAL` when the driver can't do that, or not
    /// with these maps.
    pub fn load_on_card(ifindex: u32, name: &str, code: &Code) -> Result<Program, LoadError> {
        Program::load_for((ProgramKind::Xdp, Some(ifindex)), name, code)
    }

    fn load_for(
        kind: (ProgramKind, Option<u32>),
        name: &str,
        code: &Code,
    ) -> Result<Program, LoadError> {
        // The log costs time: it is asked for when it is needed.
        match Program::load_slots(kind, name, code.slots(), &mut []) {
            Ok(fd) => Ok(Program { fd }),
            Err(source) => {
                let mut log = vec![0; EBPF_LOG_BYTES];
                let mut text = String::new();
                if Program::load_slots(kind, name, code.slots(), &mut log).is_err() {
                    let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
                    let words = String::from_utf8_lossy(&log[..end]);
                    text = tail(words.trim(), EBPF_LOG_SHOWN).to_owned();
                }
                Err(LoadError { source, log: text })
            }
        }
    }

    fn load_slots(
        (kind, card): (ProgramKind, Option<u32>),
        name: &str,
        slots: &[Slot],
        log: &mut [u8],
    ) -> io::Result<OwnedFd> {
        let mut attr = ProgLoad {
            kind: kind as u32,
            insn_cnt: u32::try_from(slots.len()).unwrap_or(u32::MAX),
            insns: slots.as_ptr() as u64,
            license: c"Dual MIT/GPL".as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_size: u32::try_from(log.len()).unwrap_or(0),
            log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            kern_version: 0,
            flags: 0,
            name: name_of(name),
            ifindex: card.unwrap_or(0),
            expected_attach_type: if kind == ProgramKind::Xdp { ATTACH_XDP } else { 0 },
        };
        // SAFETY: the struct that BPF_PROG_LOAD reads; code, licence and log live through the call
        // and have the lengths said, the licence ends in NUL. It makes a descriptor.
        unsafe { bpf_fd(PROG_LOAD, &mut attr) }
    }

    /// Its number in this process.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Runs the program on a packet, `repeat` times. Packets of XDP programs have 14 bytes at
    /// least.
    ///
    /// # Errors
    /// When the kernel refuses the packet.
    pub fn test_run(&self, packet: &[u8], repeat: u32) -> io::Result<TestRun> {
        let mut data = vec![0; packet.len() + TAILROOM];
        let mut attr = ProgTestRun {
            fd: self.number() as u32,
            data_size_in: packet.len() as u32,
            data_size_out: data.len() as u32,
            data_in: address(packet),
            data_out: data.as_mut_ptr() as u64,
            repeat,
            ..ProgTestRun::default()
        };
        // SAFETY: the struct that BPF_PROG_TEST_RUN reads; both packets live through the call and
        // have the lengths said.
        unsafe { bpf(PROG_TEST_RUN, &mut attr)? };
        data.truncate(attr.data_size_out as usize);
        Ok(TestRun { returned: attr.returned, data, duration_ns: attr.duration })
    }

    /// Runs an XDP program on real frames, copies of `frame` that seem to have come in at the
    /// interface of number `ingress`, and does with them what it returns: the fastest way to send
    /// frames (Linux 5.18). They go out `batch` at a time, from this thread's CPU.
    ///
    /// # Errors
    /// When the kernel refuses the frame; `EINTR` when a signal comes.
    pub fn run_live(&self, frame: &[u8], ingress: u32, repeat: u32, batch: u32) -> io::Result<()> {
        // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex
        let context = [0, frame.len() as u32, 0, ingress, 0, 0];
        let mut attr = ProgTestRun {
            fd: self.number() as u32,
            data_size_in: frame.len() as u32,
            data_in: address(frame),
            repeat,
            ctx_size_in: size_of_val(&context) as u32,
            ctx_in: context.as_ptr() as u64,
            flags: TEST_LIVE_FRAMES,
            batch_size: batch,
            ..ProgTestRun::default()
        };
        // SAFETY: as above; the context is a struct xdp_md.
        unsafe { bpf(PROG_TEST_RUN, &mut attr) }.map(|_| ())
    }

    /// How many instructions the verifier followed, each as often as it did (Linux 5.16).
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn verified(&self) -> io::Result<u32> {
        let [a, b, c, d, ..] = info_of(&self.fd)?[27].to_ne_bytes();
        Ok(u32::from_ne_bytes([a, b, c, d]))
    }

    /// The facts known of the program of this number in the system.
    ///
    /// # Errors
    /// When there is none, or without the capability CAP_SYS_ADMIN.
    pub fn info(id: u32) -> io::Result<ProgramInfo> {
        let mut attr = ById { id, next_id: 0, open_flags: 0 };
        // SAFETY: the struct that BPF_PROG_GET_FD_BY_ID reads; it makes a descriptor.
        let fd = unsafe { bpf_fd(PROG_GET_FD_BY_ID, &mut attr)? };
        let name: Vec<u8> =
            info_of(&fd)?[8..10].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = name.split(|&b| b == 0).next().unwrap_or(&[]);
        Ok(ProgramInfo { id, name: String::from_utf8_lossy(name).into_owned() })
    }
}

/// The head of struct bpf_prog_info, up to the count of verified instructions.
fn info_of(fd: &OwnedFd) -> io::Result<[u64; 28]> {
    let mut info = [0; 28];
    let info_len = size_of_val(&info) as u32;
    let info_at = info.as_mut_ptr() as u64;
    let mut attr = InfoByFd { fd: fd.as_raw_fd() as u32, info_len, info: info_at };
    // SAFETY: the struct that BPF_OBJ_GET_INFO_BY_FD reads; as many bytes as it says may be
    // written, and all that the kernel reads of them are zero: no further tables are wanted.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attr)? };
    Ok(info)
}

/// The end of a text, from the start of a line where it is cut.
fn tail(text: &str, bytes_max: usize) -> &str {
    let Some(mut cut) = text.len().checked_sub(bytes_max) else { return text };
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    let rest = &text[cut..];
    rest.split_once('\n').map_or(rest, |(_, lines)| lines)
}

/// Where on its way a frame meets an XDP program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Attach {
    /// In the stack, of any interface, after the kernel has made a packet buffer of it.
    Generic = 1 << 1,
    /// In the driver.
    Native = 1 << 2,
    /// On the card, of a program that was [loaded for it](Program::load_on_card).
    Card = 1 << 3,
}

/// A program at its place; dropping it, or the end of this process, takes it away.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

#[repr(C)]
struct LinkCreate {
    program_fd: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}

impl Link {
    /// Puts an XDP program on the interface of this number, in the network namespace of this
    /// thread.
    ///
    /// # Errors
    /// Without the capability CAP_NET_ADMIN; `EBUSY` and `EEXIST` when another program is there;
    /// `EOPNOTSUPP` when the driver knows no XDP, `ERANGE` or `EINVAL` when it can't have it with
    /// this MTU or these queues.
    pub fn xdp(program: &Program, ifindex: u32, attach: Attach) -> io::Result<Link> {
        let mut attr = LinkCreate {
            program_fd: program.number() as u32,
            ifindex,
            attach_type: ATTACH_XDP,
            flags: attach as u32,
        };
        // SAFETY: the struct that BPF_LINK_CREATE reads; it makes a descriptor.
        Ok(Link { fd: unsafe { bpf_fd(LINK_CREATE, &mut attr)? } })
    }
}

impl Link {
    /// Puts a program before the others of the traffic control hook of an interface (tcx,
    /// Linux 6.6), in the network namespace of this thread: for what it sends, or for what it
    /// receives.
    ///
    /// # Errors
    /// Without the capability CAP_NET_ADMIN; `EINVAL` where the kernel is older.
    pub fn tcx(program: &Program, ifindex: u32, sends: bool) -> io::Result<Link> {
        let mut attr = LinkCreate {
            program_fd: program.number() as u32,
            ifindex,
            attach_type: if sends { ATTACH_TCX_EGRESS } else { ATTACH_TCX_INGRESS },
            flags: BEFORE,
        };
        // SAFETY: the leading part of the struct that BPF_LINK_CREATE reads, of which the rest is
        // zero; it makes a descriptor.
        Ok(Link { fd: unsafe { bpf_fd(LINK_CREATE, &mut attr)? } })
    }
}

#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Closing the descriptor does the same, but not while a process that another thread has
        // forked holds a copy of it, until it runs its program.
        let mut attr = LinkDetach { link_fd: self.fd.as_raw_fd() as u32 };
        // SAFETY: the struct that BPF_LINK_DETACH reads.
        let _ = unsafe { bpf(LINK_DETACH, &mut attr) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_last_lines() {
        assert_eq!(tail("one\ntwo\nthree", 8), "three");
        assert_eq!(tail("one\ntwo", 80), "one\ntwo");
        assert_eq!(tail("äö", 3), "ö");
    }
}
