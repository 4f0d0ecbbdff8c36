//! Live capture by DPDK (dpdk.org): frames come from devices that this process drives itself,
//! without the kernel, and are read where they lie.
//!
//! [`open_dpdk`] takes devices as DPDK names them, cards by their PCI addresses and virtual devices
//! by driver and number, and gives a source over all of them. The feature `link` links DPDK's
//! libraries; without it [`open_dpdk`] says that they are not there, and [`is_linked`] is false.
//!
//! *Memory.* Each port has a pool of buffers in one piece of memory. The device takes buffers to
//! fill and hands them out; a batch refers to them where they are, and when it is let go they go
//! back. Frames that are in several pieces, or in memory of the device's own, are copied. The rings
//! of the device always have their buffers, however many batches are held: when those that
//! batches may hold are all in use, frames wait in the rings, and are then lost and counted there.
//!
//! *Sending.* Frames are copied into buffers of the device that they leave by: one that is captured
//! from, or another. [`Senders`] are opened together with the capture, or alone
//! ([`open_senders`]), for DPDK has to know its devices when it is started.
//!
//! *Time.* The frames of a batch get the system's time at which they were taken, which never runs
//! backwards within a source; or the device's, where that is asked for and can be had.
//!
//! *Waiting.* Nobody wakes a program of DPDK. A device that fell quiet is asked again and again for
//! some microseconds, then about every tenth of a millisecond; or without a pause, if asked for.

#![deny(unsafe_code)]

#[cfg(any(feature = "link", test))]
mod arguments;
#[cfg(any(feature = "link", test))]
#[cfg_attr(not(feature = "link"), expect(dead_code, reason = "what tests look at"))]
mod clock;
#[cfg(any(feature = "link", test))]
mod copies;
#[cfg(any(feature = "link", test))]
mod counts;
#[cfg(any(feature = "link", test))]
#[cfg_attr(not(feature = "link"), expect(dead_code, reason = "what tests look at"))]
mod device;
pub mod limits;
#[cfg(feature = "link")]
pub mod machine;
mod mode;
#[cfg(feature = "link")]
mod open;
mod senders;
#[cfg(feature = "link")]
mod sending;
mod shares;
#[cfg(feature = "link")]
mod source;
#[cfg(feature = "link")]
#[expect(unsafe_code, reason = "calls C; says what makes it sound")]
mod sys;

pub use mode::{Mode, Pages};
pub use senders::Senders;
pub use shares::{receives_from, sends_to};

use crate::limits::MEMORY;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::Stamps;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::{Source, SourceError};

/// Is told of what happens: links, and what DPDK says.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// How to capture by DPDK.
pub struct DpdkOptions {
    /// Bytes of memory for the frames of one device.
    pub memory: usize,
    /// Bytes of each frame that are shown.
    pub snap: u32,
    /// Receive queues of each device; `None`: all of a virtual device that spreads frames over what
    /// it has, as many as `workers` of others. A device that has fewer gives those it has.
    pub queues: Option<usize>,
    /// Threads that work on frames.
    pub workers: usize,
    /// Take frames that are meant for others too.
    pub promiscuous: bool,
    /// Whose clock counts.
    pub stamps: Stamps,
    /// Ask devices for frames without a pause.
    pub busy_poll: bool,
    /// Where the names of devices go that frames come by.
    pub interfaces: InterfaceNames,
    /// Further arguments for DPDK (those of its environment abstraction layer).
    pub arguments: Vec<String>,
    /// Devices that frames are sent by, those among them that are captured from, too, by their
    /// names.
    pub sends: Vec<String>,
    /// Called with what happens, by the thread that reads.
    pub tell: Option<Tell>,
    /// Set from elsewhere to end the capture: what has come is delivered, and the source ends.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for DpdkOptions {
    fn default() -> DpdkOptions {
        DpdkOptions {
            memory: MEMORY,
            snap: u32::MAX,
            queues: None,
            workers: 1,
            promiscuous: true,
            stamps: Stamps::Host,
            busy_poll: false,
            interfaces: InterfaceNames::default(),
            arguments: Vec::new(),
            sends: Vec::new(),
            tell: None,
            stop: None,
        }
    }
}

/// A capture that has begun.
pub struct Opened {
    /// Where frames come from.
    pub source: Box<dyn Source>,
    /// What each port was set up as.
    pub modes: Vec<Mode>,
    /// Where frames go.
    pub senders: Senders,
}

/// Whether DPDK is part of this program.
pub fn is_linked() -> bool {
    cfg!(feature = "link")
}

/// Captures from devices: `0000:3b:00.0`, `net_af_packet0,iface=eth1`, `net_pcap0,rx_pcap=FILE`.
/// DPDK is started by the first call in a process, with the memory that its devices take, and lasts
/// as long as the process.
///
/// # Errors
/// When a device is not there, belongs to the kernel, or refuses what is asked for; when there is
/// not enough memory; and without the feature `link`, always.
pub fn open_dpdk(devices: &[String], options: DpdkOptions) -> Result<Opened, SourceError> {
    #[cfg(feature = "link")]
    return open::open(devices, options);
    #[cfg(not(feature = "link"))]
    {
        drop((devices, options));
        Err(not_linked())
    }
}

/// Opens the devices of [`DpdkOptions::sends`], of a run that captures by another way, or not at
/// all; says what each port was set up as.
///
/// # Errors
/// As of [`open_dpdk`].
pub fn open_senders(options: DpdkOptions) -> Result<(Senders, Vec<Mode>), SourceError> {
    #[cfg(feature = "link")]
    return open::open_senders(options);
    #[cfg(not(feature = "link"))]
    {
        drop(options);
        Err(not_linked())
    }
}

/// What is said of anything that takes DPDK.
#[cfg(not(feature = "link"))]
fn not_linked() -> SourceError {
    let reason = "this program was built without DPDK; to build one with it, on Debian or \
                  Ubuntu: apt-get install libdpdk-dev && cargo build --release --features dpdk";
    let source = std::io::Error::new(std::io::ErrorKind::Unsupported, reason);
    SourceError::Io { name: "DPDK".to_owned(), source }
}

/// Has DPDK's own thread, which waits for interrupts, do something once: each thread gives up
/// privileges for itself. Threads that drivers and arguments may have started besides are not
/// asked.
///
/// # Errors
/// When there is no such thread, or it does not do it in time.
pub fn in_its_thread(call: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    #[cfg(feature = "link")]
    return sys::beside(call, limits::BESIDE_SECONDS);
    #[cfg(not(feature = "link"))]
    {
        drop(call);
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
