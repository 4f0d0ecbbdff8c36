//! The named maxima and defaults of the engine.

/// How far the watermark stays behind the latest believed packet unless told otherwise: 1 s.
pub const LATENESS_NS: i64 = 1_000_000_000;

/// How far ahead of the clock one packet may be and still move it: 60 s. A packet beyond is
/// believed only when [`CORROBORATE`] in a row say so.
pub const JUMP_NS: i64 = 60_000_000_000;

/// Packets in a row that must agree before the clock jumps ahead, and packets that start it where
/// no two of them agree.
pub const CORROBORATE: usize = 4;

/// Bytes of a message with groups from which on further groups go into another: below what brokers
/// take by default.
pub const MESSAGE_BYTES: usize = 1 << 19;

/// Messages of a producer that may wait for one with a smaller number.
pub const EXCHANGE_AHEAD_MAX: usize = 1 << 14;

/// Watermarks that may wait for the slowest producer.
pub const EXCHANGE_CLOSINGS_MAX: usize = 1 << 20;

/// Producers of which one receiver keeps count.
pub const EXCHANGE_PROBES_MAX: usize = 1 << 12;

/// Machines of which one receiver knows the losses: its producers, and those whose messages one of
/// them passes on.
pub const EXCHANGE_MACHINES_MAX: usize = 1 << 16;

/// Windows of one node that a receiver holds.
pub const EXCHANGE_WINDOWS_MAX: usize = 1 << 16;

/// Ticks at which a receiver holds sessions of one node to be put out: those of twelve days. One
/// message may bring more.
pub const EXCHANGE_TICKS_MAX: usize = 1 << 20;

/// Windows that one summarize holds open at once; a row for a further one is counted as evicted.
pub const WINDOWS_MAX: usize = 4096;

/// Batches between the first that a worker still has in hand, or whose rows wait to be emitted, and
/// the latest that was read: beyond, workers wait.
pub const RING: usize = 64;

/// Batches that a worker reads at a time. It reads what it will process, so that memory once
/// fetched is used by the core that fetched it.
pub const TURN: usize = 4;

/// Blocks of batches, each read by one worker for all, that the slowest worker may lag.
pub const BLOCKS: usize = 8;

/// Batches of one block.
pub const BLOCK_MAX: usize = 32;

/// Batches of rows that leave workers at once and wait to be emitted, beyond which no worker
/// processes a further batch of packets (or block) unless it is the next to be emitted. Stages that
/// make many rows of one may make very many of a batch.
pub const ROW_BATCHES_AHEAD: usize = 1024;

/// Closings of windows that may wait to be emitted before workers wait with reading.
pub const CLOSES_AHEAD: u64 = 4;

/// Workers, besides the calling thread, that wait for the feed awake, or are woken by every change;
/// more of them slow down the one that reads.
pub const SEATS: usize = 2;

/// Looks at the event count before a worker goes to sleep: some 10 to 40 microseconds.
pub const SPINS: usize = 1000;

/// Batches of rows whose memory is kept for each purpose.
pub const SPARE_ROWS: usize = 64;

/// Workers of one run.
pub const WORKERS_MAX: usize = 256;

/// Slots that a new hash index starts with.
pub const INDEX_START: usize = 1 << 6;

/// Slots of the largest index that is rebuilt at once when it grows: a fraction of a millisecond.
/// A larger one moves a few slots with every batch.
pub const REBUILD_MAX: usize = 1 << 15;

/// Slots from the home of a hash to the end of its run, beyond which an index draws a new key. With
/// five slots in eight used, chance makes a run of 4 k slots at a given home with a probability of
/// exp(-0.38 k) at most (Chernoff, for Poisson arrivals of 2.5 at a home): here 10^-21.
pub const RUN_MAX: usize = 512;

/// Slots that a growing index moves with every batch, at least.
pub const MOVE_SLOTS: usize = 2048;

/// Rows that a new table has room for.
pub const ROWS_START: usize = 16;

/// Rows of a scan's table that are looked at for expiry after each batch, and for each key that
/// the batch brought.
pub const SWEEP: usize = 16;

/// Keys of a full scan that are looked at to find the age up to which keys are chosen to go, ...
pub const EVICT_SAMPLE: usize = 512;

/// ...which about one key in so many has.
pub const EVICT_SHARE: usize = 8;

/// Keys ahead of the one that goes whose memory is asked for.
pub const EVICT_AHEAD: usize = 4;

/// Bytes for pieces of hellos, for each flow that a `hello` may hold, beyond which ...
pub const HELLO_PIECES_EACH: usize = 256;

/// ... and beyond these it evicts flows. Few flows hold pieces at a time.
pub const HELLO_PIECES_MIN: usize = 4 << 20;

/// Parts of one key, and of one argument of `distinct` with its group.
pub const PARTS_MAX: usize = 32;

/// Different values of all groups together that one `distinct` holds.
pub const VALUES_MAX: u64 = 256 << 20;

/// Sketches that one `approx_distinct` holds, of at most 4.2 KB each.
pub const SKETCHES_MAX: usize = 1 << 20;

/// Sessions that have ended and wait for the next tick, beyond which none is begun: rows that would
/// begin one are counted as evicted.
pub const SESSIONS_WAITING_MAX: usize = 16 << 20;

/// Widths of the wheel's buckets in one gap of sessions: how finely those that may be idle are told
/// from those that are not.
pub const WHEEL_BUCKETS: i64 = 256;

/// Sessions chosen to be evicted next: as many as ...
pub const EVICT_SESSIONS: usize = 64;

/// ...or this share of those that are open.
pub const EVICT_SESSIONS_SHARE: usize = 8;

/// Keys that a stage gives up at once where others need the room and no row comes to it.
pub const EVICT_AT_ONCE: usize = 1 << 16;

/// Of the groups of a window that must give up room, one in so many goes at least.
pub const EVICT_GROUPS_SHARE: u128 = 8;

/// Tables that a summarize keeps for windows to come.
pub const SPARE_GROUPS: usize = 4;

/// How many times the groups of its panes the older half of a sliding window may hold, so that
/// panes need not be merged again for each window.
pub const PANES_AHEAD: usize = 4;

/// Rows beyond twice what is asked for that a `top` holds before it sorts.
pub const TOP_SLACK: usize = 1024;

/// Keys without rows that a `join` keeps, besides twice as many as it holds rows.
pub const JOIN_KEYS_SLACK: usize = 1024;

/// Time buckets of rows whose memory each side of a `join` keeps.
pub const SPARE_BUCKETS: usize = 64;

/// Gaps in what a wire brought that are remembered; beyond, each two neighbours are taken as one,
/// so that windows between them seem less complete than they were.
pub const GAPS_MAX: usize = 1 << 16;

/// Panes of time whose frames are counted for the completeness of windows; those of the oldest then
/// count as not seen.
pub const COUNTED_PANES_MAX: usize = 1 << 16;

/// Batches between two reports of progress.
pub const PROGRESS_BATCHES: u64 = 1024;

/// Bytes of all texts that one table keeps. Beyond, a new text is taken as the empty one, and
/// counted as evicted.
pub const POOL_MAX: usize = 1 << 30;

/// Fragmented datagrams whose ports are remembered at once; beyond, the oldest is forgotten.
pub const FRAGMENTED_MAX: usize = 1 << 16;

/// How long the ports of a fragmented datagram are remembered, in nanoseconds of packet time: 60 s,
/// the time that RFC 8200 gives a datagram to arrive.
pub const FRAGMENTED_NS: i64 = 60_000_000_000;

/// Batches that are read of a wire after a run ended too early to look at them: some million
/// packets. Packets after these are left to the kernel, uncounted.
pub const ABANDONED_BATCHES_MAX: u32 = 1 << 16;

/// How often more of them are waited for, as long as a source waits.
pub const ABANDONED_WAITS: u32 = 3;
