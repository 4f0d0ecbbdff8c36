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

/// Bytes of a file of properties.
pub const PROPERTIES_MAX: usize = 64 << 10;

/// Bytes of the order that a process of its own is given.
pub const ORDER_MAX: usize = 1 << 20;

/// Probes whose logs are read at once.
pub const PROBES_MAX: usize = 128;

/// Records at fault that are named one by one; further ones are only counted.
pub const FAULTS_NAMED: u64 = 10;

/// Brokers in an address.
pub const BROKERS_MAX: usize = 64;
