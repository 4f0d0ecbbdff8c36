//! Limits of the way by Kafka.

use std::time::Duration;

/// Bytes of a message, or of a part of one, in a record: less than the megabyte that brokers take
/// by default, with room for the key and the headers.
pub const PART_BYTES: usize = 900_000;

/// Messages after which the head is repeated: for readers that begin in the midst of a life, and
/// for topics that forget their oldest records.
pub const HEAD_EVERY_MESSAGES: u64 = 256;

/// Bytes of records that wait in memory for a broker, in KiB, if `queue.buffering.max.kbytes` does
/// not say otherwise.
pub const WAITING_KIB: usize = 64 << 10;

/// Records that wait in memory for a broker.
pub const WAITING_RECORDS: usize = 100_000;

/// How long a broker is waited for at the start.
pub const START: Duration = Duration::from_secs(10);

/// How long a delivery is waited for after the end of a run, while records wait.
pub const DRAIN: Duration = Duration::from_secs(30);

/// How long that is where the run was killed and what waits can be put on disk: the next run may
/// have started, and waits for the files.
pub const DRAIN_CUT: Duration = Duration::from_secs(1);

/// Bytes of a file of properties.
pub const PROPERTIES_MAX: usize = 64 << 10;

/// Bytes of packets after which a record is full.
pub const PACKETS_BYTES: usize = 256 << 10;

/// Bytes of a record of packets that are possible.
pub const PACKETS_BYTES_MAX: usize = 960_000;

/// Losses of the capturing host that a record has apart.
pub const GAPS_MAX: usize = 256;

/// How far after now a record may say that its run has begun, or its packets have come: clocks of
/// hosts differ. One that is further ahead is left out and counted.
pub const AHEAD_NS: i64 = 24 * 3600 * 1_000_000_000;

/// Partitions that a run spreads packets over.
pub const PARTITIONS_MAX: usize = 1024;

/// How long packets wait for others of their partition, in nanoseconds of packet time.
pub const LINGER_NS: i64 = 100_000_000;

/// How often a partition without packets is told how far the capturing host is, in nanoseconds of
/// packet time.
pub const HEARTBEAT_NS: i64 = 1_000_000_000;

/// How long results of a partition wait to be committed together.
pub const COMMIT_EVERY: Duration = Duration::from_millis(250);

/// Rows of a partition that are committed together, ...
pub const COMMIT_ROWS: u64 = 50_000;
/// ... or so many records.
pub const COMMIT_RECORDS: u64 = 256;

/// How long a transaction may last before brokers give it up: longer than one is restarted.
pub const TRANSACTION: Duration = Duration::from_secs(60);

/// How long one call waits for what a transaction needs. It is tried again.
pub const TRANSACTION_STEP: Duration = Duration::from_secs(5);

/// How long a host that does not answer keeps its partitions.
pub const SESSION: Duration = Duration::from_secs(10);

/// How long partitions wait, when they move to another host, for what this one has begun.
pub const HANDOVER: Duration = Duration::from_secs(10);

/// Bytes of a frame between a run and the process that carries its packets and rows.
pub const FRAME_MAX: usize = (256 << 20) + 64;

/// Batches of frames of a run that may wait for the thread that commits; a batch is frames that
/// arrived together.
pub const FRAMES_WAITING: usize = 8;

/// Where the start of a record is remembered from which state could be rebuilt.
pub const STARTS_MAX: usize = 4096;

/// Bytes of the order that a process of its own is given.
pub const ORDER_MAX: usize = 1 << 20;

/// Probes whose logs are read at once.
pub const PROBES_MAX: usize = 128;

/// Records at fault that are named one by one; further ones are only counted.
pub const FAULTS_NAMED: u64 = 10;

/// Brokers in an address.
pub const BROKERS_MAX: usize = 64;
