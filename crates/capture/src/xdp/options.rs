//! How to capture by AF_XDP.

use crate::ebpf::Attach;
use crate::limits::{XDP_BUSY_POLL_BUDGET, XDP_MEMORY};
use weir_packet::interface::InterfaceNames;

/// How to capture by AF_XDP. The default takes the best that there is, and says what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpOptions {
    /// Where the program goes; `None`: into the driver if it can, else into the stack. No card is
    /// known that takes programs which hand frames to sockets.
    pub attach: Option<Attach>,
    /// Whether the driver puts frames into our memory itself; `None`: if it can, else the kernel
    /// copies them.
    pub zero_copy: Option<bool>,
    /// Bytes of memory for the frames of one interface, divided among its queues; each gets a
    /// power of two of frames, within [`XDP_FRAMES_MIN`](crate::limits::XDP_FRAMES_MIN) and
    /// [`XDP_FRAMES_MAX`](crate::limits::XDP_FRAMES_MAX).
    pub memory: usize,
    /// Bytes of each frame that are shown.
    pub snap: u32,
    /// Have the kernel look after the queues when this source asks, rather than by interrupts.
    pub busy_poll: Option<BusyPoll>,
    /// Where the names of interfaces go that frames come by.
    pub interfaces: InterfaceNames,
}

/// How the kernel polls a queue on behalf of its socket (Linux 5.11). It takes effect where the
/// interface defers interrupts: `napi_defer_hard_irqs` and `gro_flush_timeout` below
/// `/sys/class/net/`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusyPoll {
    /// Microseconds at a time.
    pub micros: u32,
    /// Frames at a time.
    pub budget: u32,
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        BusyPoll { micros: 20, budget: XDP_BUSY_POLL_BUDGET }
    }
}

impl Default for XdpOptions {
    fn default() -> XdpOptions {
        XdpOptions {
            attach: None,
            zero_copy: None,
            memory: XDP_MEMORY,
            snap: u32::MAX,
            busy_poll: None,
            interfaces: InterfaceNames::default(),
        }
    }
}
