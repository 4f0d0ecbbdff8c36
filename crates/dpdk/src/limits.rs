//! The named maxima of this crate.

/// Devices that one capture takes; more are refused. DPDK itself has room for 32 ports.
pub const DEVICES_MAX: usize = 16;

/// Bytes of memory for the frames of one device unless told otherwise.
pub const MEMORY: usize = 64 << 20;

/// Bytes of memory of one device at most: frames are told by 32 bits, and buffers take more than
/// what is in them.
pub const MEMORY_MAX: usize = 3 << 30;

/// Buffers that batches may hold at least, however little memory is asked for, besides those that
/// wait in the rings of a device.
pub const LENT_MIN: u32 = 4096;

/// Bytes of copies that batches may hold at least, however little memory is asked for: two batches
/// of the longest frames.
pub const COPIES_MIN: usize = 32 << 20;

/// Receive queues of a device at most, and those of a virtual device that all have to be read.
pub const QUEUES_MAX: usize = 64;

/// Frames that the ring of a queue holds, if the device can: a quarter of a millisecond of small
/// frames at 10 Gbit/s, several times as long as a quiet device is not looked at.
pub const DESCRIPTORS: u32 = 4096;

/// The same of a queue that nobody reads, and that is there only because its driver sends nothing
/// without one.
pub const UNREAD_DESCRIPTORS: u32 = 512;

/// Longest frame behind its Ethernet header that a device is asked to take, where it may cut frames
/// into several buffers.
pub const MTU: u32 = 9216;

/// How long a device that fell quiet is asked again and again, in nanoseconds, ...
pub const POLL_NS: i64 = 20_000;

/// ... before there is a pause between two questions. The system makes of it up to twice as much.
pub const PAUSE_NS: i64 = 50_000;

/// Milliseconds after which counters, links and messages of DPDK are asked for while frames come.
pub const LOOK_EVERY_MS: u32 = 50;

/// Nanoseconds for which what counters said is good enough for whoever asks what was lost.
pub const COUNTS_AGE_NS: i64 = 1_000_000;

/// Nanoseconds for which what counters said of frames sent is good enough: some drivers ask the
/// card for them.
pub const SENT_AGE_NS: i64 = 5_000_000;

/// How far a device's time may be from the system's, in nanoseconds, to be believed.
pub const CLOCKS_APART_NS: i64 = 1_000_000_000;

/// How far behind the clock is what has been reached where frames bear the times of a device.
pub const REACHED_BEHIND_NS: i64 = 250_000_000;

/// Seconds after which a link that has not come up is reported; cards take some to agree how to
/// talk.
pub const LINK_SECONDS: u32 = 10;

/// Nanoseconds between two looks whether links have come up.
pub const LINK_PAUSE_NS: i64 = 20_000_000;

/// Lines of what DPDK says while a capture goes on that are passed on; further ones are not.
pub const MESSAGES_MAX: u32 = 100;

/// How many seconds DPDK's own thread has for what it is asked to do.
pub const BESIDE_SECONDS: u32 = 5;

/// Longest time to wait at the end until a device has sent what it took, in milliseconds: a queue
/// of 1024 frames of 9 KiB takes eight at 10 Gbit/s.
pub const DRAIN_MS: u32 = 200;
