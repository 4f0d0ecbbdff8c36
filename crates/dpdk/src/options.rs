//! How to capture and send by DPDK.

use crate::limits::MEMORY;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::Stamps;
use weir_packet::interface::InterfaceNames;

/// Is called with what happens: links, and what DPDK says.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

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
    /// The clock that counts.
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
    pub report: Option<Report>,
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
            report: None,
            stop: None,
        }
    }
}
