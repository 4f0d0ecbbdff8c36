//! Why records can't be carried.

use std::fmt;
use std::io;

/// Why records can't be carried, in words for the user.
#[derive(Debug)]
#[non_exhaustive]
pub enum KafkaFault {
    /// This Weir was built without the client.
    NotLinked,
    /// The client does not take its properties.
    Properties(String),
    /// No broker answers, or none that takes this client.
    Broker(String),
    /// The topic can't be used.
    Topic(String),
    /// The topic has no such partition.
    Partition {
        /// The partition.
        partition: i32,
        /// How many there are.
        count: i32,
    },
    /// The group of hosts can't be used.
    Group(String),
    /// A broker refuses records.
    Refused {
        /// How many were not delivered.
        undelivered: u64,
        /// Bytes on disk, for the next run.
        on_disk: u64,
        /// The first reason.
        why: String,
    },
    /// Records were still waiting when the time for that was over.
    Undelivered {
        /// How many are lost.
        records: u64,
        /// Bytes on disk, for the next run.
        on_disk: u64,
        /// The last that was heard of brokers.
        why: String,
    },
    /// Records can't be kept on disk.
    Spill(io::Error),
    /// Records that waited on disk could not be read back; so many, or more in a file.
    Torn(u64),
    /// The stream that the probe writes can't be read.
    Stream(String),
    /// The log of a probe can't be read on.
    Log(String),
    /// The log has records that can't be used: so many.
    Damaged(u64),
    /// Records that were read can't be handed on.
    Io(io::Error),
}

impl fmt::Display for KafkaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KafkaFault::NotLinked => f.write_str(
                "this Weir was built without Kafka (cargo install --path crates/weir --features \
                 kafka)",
            ),
            KafkaFault::Properties(why) => {
                write!(f, "the client does not take its properties (--kafka-config): {why}")
            }
            KafkaFault::Broker(why) => write!(
                f,
                "no broker answers as it should: {why} (is its address right, and are the \
                 properties of --kafka-config?)"
            ),
            KafkaFault::Topic(why) | KafkaFault::Group(why) => f.write_str(why),
            KafkaFault::Partition { partition, count } => {
                write!(f, "the topic has no partition {partition}: it has {count}, numbered from 0")
            }
            KafkaFault::Refused { undelivered, on_disk, why } => {
                write!(f, "a broker refuses records: {why}; {undelivered} were not delivered")?;
                match on_disk {
                    0 => Ok(()),
                    _ => write!(f, ", and {on_disk} bytes stay on disk for the next run"),
                }
            }
            KafkaFault::Undelivered { records, on_disk: 0, why } => {
                write!(f, "{records} records could not be delivered in time, and are lost: {why}")
            }
            KafkaFault::Undelivered { records: 0, on_disk, why } => write!(
                f,
                "no record is lost, but {on_disk} bytes could not be delivered in time, and stay \
                 on disk (--kafka-spill) for the next run: {why}"
            ),
            KafkaFault::Undelivered { records, on_disk, why } => write!(
                f,
                "{records} records could not be delivered in time, and are lost; {on_disk} bytes \
                 stay on disk (--kafka-spill) for the next run: {why}"
            ),
            KafkaFault::Spill(e) => write!(f, "records can't wait on disk (--kafka-spill): {e}"),
            KafkaFault::Torn(n) => {
                write!(f, "records that waited on disk were damaged at {n} places, and are lost")
            }
            KafkaFault::Stream(why) | KafkaFault::Log(why) => f.write_str(why),
            KafkaFault::Damaged(records) => {
                write!(f, "{records} records could not be used, and were left out")
            }
            KafkaFault::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for KafkaFault {}

impl KafkaFault {
    /// A thread has panicked, which is our fault; it has said where.
    #[cfg(feature = "link")]
    pub(crate) fn panicked() -> KafkaFault {
        KafkaFault::Stream("a thread that sends records has panicked".to_owned())
    }
}

impl From<io::Error> for KafkaFault {
    fn from(e: io::Error) -> KafkaFault {
        KafkaFault::Io(e)
    }
}
