//! The named maxima of this crate.

/// Capture files that are open at the same time at most while they wait for their turn.
/// Further ones are opened when it is their turn. Systems commonly allow a process 1024.
pub const CAPTURES_OPEN_MAX: usize = 256;

/// Captures that are merged by time; more are refused. A file is opened when its first frame is
/// due, so memory is for those that overlap in time: of each one or two batches, and the pages of a
/// mapped file around the reader, which the system can take back.
pub const CAPTURES_MERGED_MAX: usize = 4096;

/// Frames that one of the captures being merged has in a row for which a batch refers to its memory
/// alone. Shorter runs are gathered.
pub const MERGE_RUN: usize = 32;

/// Bytes of a buffer that frames of several captures are gathered into; it holds any frame.
pub const MERGE_BUFFER: usize = 256 << 10;

/// How far a frame may be ahead of those before it, in its capture, and be merged by its time
/// without a look at the frames after it: 60 s.
pub const MERGE_JUMP_NS: i64 = 60_000_000_000;

/// Frames after it that are looked at then. Where most of them are earlier by more than that, the
/// frame's time is wrong, and it comes with those around it.
pub const MERGE_LOOK: usize = 3;

/// Bytes of a buffer that a stream is read into; it stays within the second-level cache between
/// being filled and being read. A longer record gets a longer buffer of its own.
pub const STREAM_BUFFER: usize = 512 << 10;

/// Bytes of a mapped file whose pages are asked for at once.
pub const POPULATE: usize = 4 << 20;

/// How far ahead of the reader they are at least.
pub const POPULATE_AHEAD: usize = 1 << 20;

/// How far behind the reader they are let go: farther than batches on their way reach.
pub const RELEASE_BEHIND: usize = 64 << 20;

/// Where several files that are read at the same time share each of these, a share is a multiple of
/// this: 64 KiB, of which systems' pages are parts.
pub const PAGES_SHARE_MIN: usize = 64 << 10;

/// Stream buffers kept for use again; what more are in flight at once are freed and allocated anew.
pub const BUFFERS_KEPT: usize = 64;

/// Bytes decompressed at once. It is a block of zstd, so that a damaged block takes none of what
/// stood before it along.
pub const PIECE: usize = 128 << 10;

/// Room before a piece for the start of a record that the piece before was cut in. A longer start
/// is put together with its record by itself.
pub const HEADROOM: usize = 64 << 10;

/// Decompressed pieces that wait to be read at most.
pub const AHEAD: usize = 8;

/// Compressed bytes read at once.
pub const COMPRESSED_BUFFER: usize = 128 << 10;

/// Instructions of a capture filter.
pub const FILTER_INSTRUCTIONS_MAX: usize = 1 << 20;

/// How long a reader may take nothing once whoever writes to it is to end, in milliseconds, ...
pub const STALLED_MS: u32 = 5000;

/// ... and how long it is waited for at a time.
pub const STALLED_STEP_MS: u32 = 100;

/// Bytes of what the kernel says of interfaces that may wait to be read: some hundred changes.
pub const LINK_CHANGES_BUFFER: usize = 1 << 20;

/// How often that is read while frames come.
pub const INTERFACES_EVERY_MS: u32 = 50;

/// Bytes of frames that wait to be written to one file.
pub const WRITE_BUFFER: usize = 64 << 10;

/// Bytes of a block of a ring: the kernel hands frames over by blocks. It holds the largest frames
/// that offloads make of several (64 KiB), and stays within the second-level cache between being
/// walked and being worked on. Longer frames are cut to it.
pub const RING_BLOCK: usize = 256 << 10;

/// Bytes of a slot of a ring for a frame, at least and at most; in between it is as large as the
/// MTU of the interface asks for. The kernel queues longer frames beside the ring.
pub const RING_SLOT: usize = 2 << 10;
/// See [`RING_SLOT`].
pub const RING_SLOT_MAX: usize = 16 << 10;

/// Slots of a ring at least, however small a buffer is asked for.
pub const RING_SLOTS_MIN: usize = 1 << 10;

/// Bytes of frames longer than a slot that wait to be read. Where a process lacks CAP_NET_ADMIN,
/// the kernel allows less (net.core.rmem_max).
pub const RING_QUEUE: usize = 8 << 20;

/// Nanoseconds between two looks whether frames have come, where the kernel can't tell.
pub const RING_PAUSE_NS: u32 = 100_000;

/// Bytes of the rings of an interface together, where no other size is asked for: a quarter of a
/// second of small frames at a million a second. Frames that find no room are lost, and counted.
pub const RING_BUFFER: usize = 32 << 20;

/// How far the frames of two rings may be out of order, in nanoseconds: the time of a block, ...
pub const RINGS_APART_NS: i64 = 20_000_000;

/// ... and those of the ring for frames that found their ring full, which may be of one flow.
pub const OVERFLOW_APART_NS: i64 = 1_000_000;

/// How long such a frame waits, in nanoseconds, where no other is at hand: older ones of its flow
/// may be in a block that the kernel hands over within that time.
pub const OVERFLOW_WAIT_NS: i64 = 45_000_000;

/// Bytes of the ring that libpcap makes, where no other size is asked for. Its blocks of 256 KiB
/// are used up in [`RETIRE_MS`] where few frames come: these hold 8 s.
pub const PCAP_BUFFER: usize = 100 << 20;

/// Blocks of a ring at least, however small a buffer is asked for: more than the batches that
/// workers have on their way refer to.
pub const RING_BLOCKS_MIN: usize = 16;

/// Bytes of the rings of an interface at most; larger wishes are refused.
pub const RING_BUFFER_MAX: usize = 16 << 30;

/// Rings of an interface at most; larger wishes are refused.
pub const RINGS_MAX: usize = 64;

/// Interfaces that are captured from at once; more are refused.
pub const LIVE_INTERFACES_MAX: usize = 64;

/// Milliseconds after which the kernel hands over a block that is not full: between once and twice
/// that.
pub const RETIRE_MS: u32 = 20;

/// Milliseconds that a source waits for frames before it says that none came.
pub const WAIT_MS: u32 = 100;

/// Milliseconds after which a source asks what was lost while frames come; it also asks whenever
/// none do.
pub const LOSSES_EVERY_MS: u32 = 20;

/// Milliseconds without a look at what was lost after which nothing was read meanwhile: twice the
/// longest time between two looks of a source that is read.
pub const READ_PAUSE_MS: u32 = 200;

/// How far behind the clock is what a quiet wire has reached, in nanoseconds: two blocks' time, and
/// some for a machine that is busy.
pub const REACHED_BEHIND_NS: i64 = 250_000_000;

/// Milliseconds that frames on their way are waited for when a capture ends.
pub const DRAIN_MS: u32 = 1000;

/// Milliseconds of a wait while it ends.
pub const DRAIN_STEP_MS: u32 = 5;

/// How often in a row libpcap may fail to read from an interface that is up: one that goes down and
/// up again at once fails once.
pub const PCAP_FAILURES_MAX: u32 = 3;

/// Milliseconds after which a capture of all interfaces asks for them again: one that gets another
/// name has it in queries within that time.
pub const INDICES_OLD_MS: u32 = 1000;

/// Milliseconds after which it asks again for one that it does not know.
pub const INDICES_ASK_MS: u32 = 100;

/// Interfaces that it remembers, those that are gone among them; then it forgets all that are gone.
pub const INDICES_MAX: usize = 65_536;

/// Batches after which interfaces are looked after even if frames never stop coming.
pub const BATCHES_UNWATCHED: u32 = 4096;

/// Instructions of a filter that the Linux kernel takes (`BPF_MAXINSNS`); longer ones are applied
/// behind the ring.
pub const KERNEL_FILTER_MAX: usize = 4096;

/// Bytes of memory for the last frames, where packets around alerts are asked for: some seconds of
/// a busy gigabit. Older frames are forgotten; files that lack them are counted.
pub const LOOKBACK_BYTES: usize = 64 << 20;

/// Files of packets around alerts that are open at once; what is asked for beyond is refused, and
/// counted.
pub const LOOKBACK_OPEN_MAX: usize = 256;

/// Such files of one run unless told otherwise; what is asked for beyond is refused, and counted.
pub const LOOKBACK_FILES_MAX: u64 = 1000;

/// Bytes of frames in one of them unless told otherwise; further frames are left out, and counted.
pub const LOOKBACK_FILE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of packets around alerts that wait to be written: two such files. When there are more,
/// reading a capture waits; of a wire, further packets are left out, and counted.
pub const LOOKBACK_QUEUE_BYTES: usize = 128 << 20;

/// Bytes that each thing to be done for such a file counts there, besides what is to be written.
pub const LOOKBACK_TASK_BYTES: usize = 512;

/// Milliseconds without anything being written after which the end of a run gives such files of a
/// wire up.
pub const LOOKBACK_PATIENCE_MS: u64 = 5000;

/// Alerts that wait until the next batch is read; further ones are refused, and counted.
pub const LOOKBACK_ASKED_MAX: usize = 4096;

/// How long after its time a file still takes frames that come out of order.
pub const LOOKBACK_SLACK_NS: i64 = 1_000_000_000;

/// How far ahead time may go from one batch to the next, unless several in a row agree.
pub const LOOKBACK_JUMP_NS: u64 = 60_000_000_000;

/// Bytes of kept frames that are copied at once for somebody who looks at them: about as long the
/// thread that reads a wire may have to wait.
pub const LOOKBACK_READ_BYTES: usize = 256 << 10;

/// Frames given to the system by one call.
pub const SEND_AT_ONCE: usize = 64;

/// Bytes that may wait in a socket for its interface; the system may allow less.
pub const SEND_BUFFER: usize = 4 << 20;

/// How long the frames of a batch wait, together, for room in a full queue before what is left of
/// them is refused: where a wire is captured, which goes on meanwhile, ...
pub const SEND_WAIT_LIVE_NS: u64 = 10_000_000;

/// ... and where files are read, which can wait.
pub const SEND_WAIT_FILE_NS: u64 = 1_000_000_000;

/// How long to wait before a full queue is tried again.
pub const SEND_PAUSE_NS: u64 = 50_000;

/// How often a frame is tried again at once, where an error told of an earlier one.
pub const SEND_RETRIES: u32 = 2;

/// Bytes of the verifier's log that are asked for, ...
pub const EBPF_LOG_BYTES: usize = 1 << 20;

/// ...and of its end that an error shows.
pub const EBPF_LOG_SHOWN: usize = 2048;

/// Bytes of one answer about interfaces; the kernel sends 32 KiB at most.
pub const NETLINK_BUFFER: usize = 64 << 10;

/// Interfaces that one capture by AF_XDP takes; more are refused.
pub const XDP_INTERFACES_MAX: usize = 64;

/// Receive queues of one of them; more are refused.
pub const XDP_QUEUES_MAX: u32 = 256;

/// Bytes of memory for the frames of one interface unless told otherwise.
pub const XDP_MEMORY: usize = 64 << 20;

/// Bytes of memory that a frame takes: the smaller where that does for the MTU. A longer frame is
/// refused when the capture begins, or dropped and counted.
pub const XDP_FRAME_BYTES: [usize; 2] = [2048, 4096];

/// Longest frame behind its Ethernet header that fits into such memory whole: the kernel keeps 256
/// bytes before it (`XDP_PACKET_HEADROOM`), and the header may have two VLAN tags.
pub const XDP_MTU_MAX: usize = XDP_FRAME_BYTES[1] - 256 - (14 + 2 * 4);

/// Frames that a queue has memory for, at least...
pub const XDP_FRAMES_MIN: usize = 64;

/// ...and at most. When all are in use, what comes is dropped and counted.
pub const XDP_FRAMES_MAX: usize = 1 << 18;

/// Of the frames that a queue has memory for, one in so many at most is in one batch.
pub const XDP_BATCH_PART: usize = 4;

/// Batches over the memory of one queue, or device, that may be held at once; beyond, frames wait
/// in the ring.
pub const LOANS_MAX: usize = 1024;

/// Frames that a socket of AF_XDP has memory for that sends, a power of two: those that drivers
/// have not sent yet. When all are in use, the queue is full.
pub const XDP_SEND_FRAMES: u32 = 2048;

/// Frames that the kernel looks at in one turn of busy-polling, unless told otherwise: a batch.
pub const XDP_BUSY_POLL_BUDGET: u32 = 256;

/// Where so many frames came since frames were last waited for, ...
pub const XDP_GATHER_FROM: u64 = 32;

/// ...they are let gather for so many nanoseconds before they are looked for again, ...
pub const XDP_GATHER_NS: u32 = 100_000;

/// ...if each queue has memory for so many.
pub const XDP_GATHER_FRAMES_MIN: usize = 4096;

/// Milliseconds after which counters of the kernel are read anew while frames come.
pub const XDP_COUNTS_EVERY_MS: u32 = 50;

/// How often a queue that is taken is tried again: the kernel takes a moment to clean up after a
/// socket, on a busy machine several seconds, ...
pub const XDP_BIND_TRIES: u32 = 250;

/// ...and how many milliseconds apart.
pub const XDP_BIND_EVERY_MS: u32 = 20;

/// Bytes of the ring of a capture by tcx: at least room for some of the longest packets, at most
/// what offsets within it, which stands in memory twice, can say.
pub const TCX_RING_MIN: usize = 1 << 20;
/// See [`TCX_RING_MIN`].
pub const TCX_RING_MAX: usize = 1 << 30;

/// Nanoseconds that a capture by tcx waits for more packets than one.
pub const TCX_GATHER_NS: u64 = 1_000_000;

/// Nanoseconds between the moment when a packet gets its time and the moment when it can be read,
/// at most, ...
pub const TCX_BEHIND_NS: i64 = 10_000_000;

/// ... and milliseconds after which nothing comes from a program that was taken away.
pub const TCX_DRAIN_MS: u32 = 10;

/// Nanoseconds that two readings of the difference of two clocks differ by, though nobody set one.
pub const TCX_CLOCK_SLACK_NS: u64 = 20_000;

/// Addresses that flow records are received at in one run; more are refused.
pub const RECORD_SOCKETS_MAX: usize = 16;

/// Datagrams with flow records that are received before what time it is is said again.
pub const RECORD_DATAGRAMS: usize = 1024;

/// The memory for datagrams with flow records on their way from the kernel, in bytes for each
/// socket. The kernel drops what comes while it is full, and counts that.
pub const RECORD_BUFFER: usize = 8 << 20;

/// How far the end of a flow may be after its datagram came, in nanoseconds: windows in the future
/// stay open until then, so that a record further ahead counts for the time at which it came.
pub const RECORD_AHEAD_NS: i64 = 60 * 1_000_000_000;

/// Flow records that one datagram may bring, with those that wait for its templates; further ones
/// are lost, and counted.
pub const RECORDS_AT_ONCE: usize = 1 << 16;
