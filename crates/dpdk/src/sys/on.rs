//! A port that is switched on, for whoever receives or sends by it.

use super::{checked, lock};
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The setup that a port is to have.
#[repr(C)]
pub(crate) struct Wish {
    /// Bytes of memory for buffers.
    pub(crate) memory: usize,
    /// Buffers that batches may hold at least.
    pub(crate) lent_min: u32,
    /// Frames that the ring of a queue holds.
    pub(crate) descriptors: u32,
    pub(crate) mtu: u32,
    pub(crate) queues: u16,
    pub(crate) promiscuous: bool,
    /// Whether the device says when frames came.
    pub(crate) stamps: bool,
    /// Whether its driver switches flags of an interface of the kernel, which would stay so.
    pub(crate) of_kernel: bool,
    /// Whether frames are sent by it.
    pub(crate) sends: bool,
}

/// `struct weir_dpdk_port`: what does not change while it is on.
#[repr(C)]
pub(super) struct Raw {
    pub(super) memory: *mut u8,
    pub(super) bytes: usize,
    pool: *mut u8,
    pub(super) buffers: u32,
    pub(super) in_rings: u32,
    not_promiscuous: c_int,
    mtu: u32,
    pub(super) number: u16,
    pub(super) queues: u16,
    descriptors: u16,
    stamp_at: c_int,
    socket: c_int,
    stamp_flag: u64,
    out: *mut u8,
    out_buffers: u32,
    out_descriptors: u16,
}

const _: () = assert!(size_of::<Wish>() == 32, "as in the C");
const _: () = assert!(size_of::<Raw>() == 80, "as in the C");

unsafe extern "C" {
    fn weir_dpdk_open(port: u16, wish: *const Wish, it: *mut Raw, step: *mut c_int) -> c_int;
    fn weir_dpdk_close(it: *mut Raw);
    fn weir_dpdk_is_removed(port: u16) -> bool;
    fn weir_dpdk_link(port: u16) -> c_int;
}

/// Which step of opening a port failed, and why.
pub(crate) struct NotOpened {
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
}

/// A port that is switched on. Dropping it switches it off.
pub(crate) struct On {
    raw: Raw,
    /// Whether its sending side was taken.
    sender: AtomicBool,
}

// SAFETY: but for a flag that is atomic it is only read until it is dropped, and all that its
// pointers refer to is there for good; what DPDK lets one thread do at a time with a queue, or with
// a port, is done by one owner each or while `CONTROL` is locked.
unsafe impl Send for On {}
// SAFETY: as above.
unsafe impl Sync for On {}

impl On {
    /// Switches a port on.
    pub(crate) fn new(port: u16, wish: &Wish) -> Result<On, NotOpened> {
        let _alone = lock();
        let mut raw = Raw {
            memory: ptr::null_mut(),
            bytes: 0,
            pool: ptr::null_mut(),
            buffers: 0,
            in_rings: 0,
            not_promiscuous: 0,
            mtu: 0,
            number: port,
            queues: 0,
            descriptors: 0,
            stamp_at: -1,
            socket: -1,
            stamp_flag: 0,
            out: ptr::null_mut(),
            out_buffers: 0,
            out_descriptors: 0,
        };
        let mut step = 0;
        // SAFETY: structures that live through the call, the last two of which are written to.
        let opened = checked(unsafe { weir_dpdk_open(port, wish, &raw mut raw, &raw mut step) });
        match opened {
            Ok(_) => Ok(On { raw, sender: AtomicBool::new(false) }),
            Err(error) => {
                let doing = match step {
                    0 => "asking the device what it can",
                    1 => "setting the device up",
                    2 => "reserving memory for frames",
                    3 => "setting up its queues",
                    _ => "switching it on",
                };
                Err(NotOpened { doing, error })
            }
        }
    }

    pub(super) fn raw(&self) -> &Raw {
        &self.raw
    }

    pub(super) fn as_ptr(&self) -> *const Raw {
        &raw const self.raw
    }

    /// Queues that it has.
    pub(crate) fn queues(&self) -> u16 {
        self.raw.queues
    }

    /// Frames that the ring of a queue holds.
    pub(crate) fn descriptors(&self) -> u16 {
        self.raw.descriptors
    }

    /// Buffers that it has.
    pub(crate) fn buffers(&self) -> u32 {
        self.raw.buffers
    }

    /// Longest frame behind its Ethernet header that it takes.
    pub(crate) fn mtu(&self) -> u32 {
        self.raw.mtu
    }

    /// Why it does not take, or leave, frames that are meant for others.
    pub(crate) fn not_promiscuous(&self) -> Option<io::Error> {
        checked(self.raw.not_promiscuous).err()
    }

    /// Frames that wait in its queue to be sent, at most, if any are.
    pub(crate) fn out_descriptors(&self) -> Option<u16> {
        (!self.raw.out.is_null()).then_some(self.raw.out_descriptors)
    }

    /// Takes its sending side, if it has one; whether this is the first time.
    pub(super) fn take_sender(&self) -> bool {
        self.out_descriptors().is_some() && !self.sender.swap(true, Ordering::Relaxed)
    }

    /// Whether its link is up, where it says so.
    pub(crate) fn is_up(&self) -> Option<bool> {
        let _alone = lock();
        // SAFETY: asks a port that is open.
        checked(unsafe { weir_dpdk_link(self.raw.number) }).ok().map(|up| up > 0)
    }

    /// Whether the device was taken away.
    pub(crate) fn is_removed(&self) -> bool {
        // SAFETY: reads a flag.
        unsafe { weir_dpdk_is_removed(self.raw.number) }
    }
}

impl Drop for On {
    fn drop(&mut self) {
        let _alone = lock();
        // SAFETY: a port that was opened, once. Its memory, which batches may refer to, stays.
        unsafe { weir_dpdk_close(&raw mut self.raw) };
    }
}
